"""Measures torch's permute and copy for the random permutations that tilewire_kernel_bench measured.

    tilewire_kernel_bench ^permute/ --json permute.json
    python3 kernels/bench/permute_torch.py permute.json [--json torch.json] [--min-time 0.01]

Same cases, same GPU, the same way (medians of cold runs: the L2 is flushed before each by reading four times its
size). The copy is clone(), not contiguous(): that would return at once where only unit axes move. Prints how many times
faster ours is: distribution and geometric mean. Needs torch with CUDA.
"""
import json
import math
import statistics

import torch

from beside_torch import cases_of, l2_flush, parser_of, random_tensor, seconds_of

# An element's size is all that matters to a copy; torch has no unsigned types beyond bytes in older versions.
TYPES = {"bool": torch.uint8, "i8": torch.uint8, "u8": torch.uint8, "i16": torch.int16, "u16": torch.int16,
         "f16": torch.float16, "bf16": torch.bfloat16, "i32": torch.int32, "u32": torch.int32, "f32": torch.float32,
         "i64": torch.int64, "u64": torch.int64, "f64": torch.float64, "c64": torch.complex64, "c128": torch.complex128}


def measure(case, flush, arguments):
    source = random_tensor(case["shape"], TYPES[case["dtype"]])
    axes = case["axes"]
    runs = seconds_of(lambda: source.permute(axes).clone(memory_format=torch.contiguous_format), flush, arguments.min_time, arguments.max_runs)
    ours = case["cold"]["median_s"]
    torch_median = statistics.median(runs)
    return {"name": case["name"], "bytes": case["bytes"], "ours_s": ours, "torch_s": torch_median,
            "torch_min_s": min(runs), "torch_max_s": max(runs), "runs": len(runs), "ratio": torch_median / ours}


def distribution(ratios):
    ratios = sorted(ratios)
    at = lambda q: ratios[min(len(ratios) - 1, int(q * len(ratios)))]
    return {"min": ratios[0], "p5": at(0.05), "p25": at(0.25), "median": statistics.median(ratios), "p75": at(0.75),
            "p95": at(0.95), "max": ratios[-1], "geometric_mean": math.exp(statistics.fmean(map(math.log, ratios)))}


def main():
    parser = parser_of(__doc__)
    parser.add_argument("--json", help="write every case's figures to this file")
    arguments = parser.parse_args()
    cases = cases_of(arguments.results, ("permute",), lambda r: "cold" in r)
    name = torch.cuda.get_device_name()
    flush = l2_flush()
    results = [measure(case, flush, arguments) for case in cases]
    summary = distribution([r["ratio"] for r in results])
    print(f"{name}, torch {torch.__version__}, {len(results)} permutations: torch's time / ours")
    print(", ".join(f"{key} {value:.2f}" for key, value in summary.items()))
    for result in sorted(results, key=lambda r: r["ratio"])[:5]:
        print(f"  {result['ratio']:6.2f}  {result['name']}")
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump({"gpu": name, "torch": torch.__version__, "summary": summary, "results": results}, file, indent=1)


if __name__ == "__main__":
    main()
