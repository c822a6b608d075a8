"""Measures torch's RMSE, eager and compiled, for the cases that tilewire_kernel_bench measured.

    tilewire_kernel_bench '^(rmse|batched)/' --json rmse.json
    python3 kernels/bench/rmse_torch.py rmse.json

Same cases, same GPU; medians of cold runs (the L2 is flushed before each) and of hot ones, torch's time over ours. The
expression is sqrt(mean((a - b)**2)) over the case's axes, in the operands' own type, as a user would write it; bytes are turned into f32
first, as they must be. Needs torch with CUDA.
"""
import functools
import statistics

import torch

from beside_torch import cases_of, l2_flush, parser_of, random_tensor, seconds_of

TYPES = {"f32": torch.float32, "f64": torch.float64, "f16": torch.float16, "bf16": torch.bfloat16, "u8": torch.uint8}


def expression(axes, dtype):
    own = (lambda x: x) if dtype.is_floating_point else (lambda x: x.float())

    def rmse(a, b):
        squares = (own(a) - own(b)) ** 2
        return torch.sqrt(torch.mean(squares, dim=axes) if axes else torch.mean(squares))
    return rmse


def nothing():
    """Before hot runs."""


def main():
    arguments = parser_of(__doc__).parse_args()
    cases = cases_of(arguments.results, ("rmse", "batched"), lambda r: r["implementation"] == "tilewire whole"
                     and r["dtype"] in TYPES and r["bytes"] >= 1 << 20)
    flush = l2_flush()
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}: microseconds, and torch's time over ours")
    for case in cases:
        dtype = TYPES[case["dtype"]]
        a, b = (random_tensor(case["shape"], dtype) for _ in range(2))
        axes = tuple(case.get("axes") or ())
        eager = expression(axes, dtype)
        torch._dynamo.reset()  # or what was compiled for earlier cases would count against a limit, and eager code run
        compiled = torch.compile(expression(axes, dtype), dynamic=False)
        for place, before in (("cold", flush), ("hot", nothing)):
            if place not in case:
                continue
            ours = case[place]["median_s"]
            took = [statistics.median(seconds_of(functools.partial(f, a, b), before, arguments.min_time, arguments.max_runs))
                    for f in (eager, compiled)]
            print(f"{case['name']:40s} {place:4s} ours {ours * 1e6:8.1f}  eager {took[0] * 1e6:8.1f} ({took[0] / ours:.2f}x)  "
                  f"compiled {took[1] * 1e6:8.1f} ({took[1] / ours:.2f}x)", flush=True)
        del a, b


if __name__ == "__main__":
    main()
