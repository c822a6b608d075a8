"""Measures torch's permute and copy for the random permutations that tilewire_kernel_bench measured.

    tilewire_kernel_bench ^permute/ --json permute.json
    python3 kernels/bench/permute_torch.py permute.json [--json torch.json] [--min-time 0.01]

Same cases, same GPU, the same way (medians of cold runs: the L2 is flushed before each by reading four times its
size). The copy is clone(), not contiguous(): that would return at once where only unit axes move. Prints how many times faster ours is: distribution and geometric mean. Needs torch with CUDA.
"""
import argparse
import json
import math
import statistics
import sys

import torch

# An element's size is all that matters to a copy; torch has no unsigned types beyond bytes in older versions.
TYPES = {"bool": torch.uint8, "i8": torch.uint8, "u8": torch.uint8, "i16": torch.int16, "u16": torch.int16,
         "f16": torch.float16, "bf16": torch.bfloat16, "i32": torch.int32, "u32": torch.int32, "f32": torch.float32,
         "i64": torch.int64, "u64": torch.int64, "f64": torch.float64, "c64": torch.complex64, "c128": torch.complex128}


def random_tensor(shape, dtype):
    if dtype.is_floating_point or dtype.is_complex:
        return torch.randn(shape, dtype=dtype, device="cuda")
    info = torch.iinfo(dtype)
    return torch.randint(info.min, info.max, shape, dtype=dtype, device="cuda")


def seconds_of(permute, flush, min_seconds, max_runs):
    """Cold runs until there are 11 and so many seconds were measured."""
    permute()
    torch.cuda.synchronize()
    runs = []
    while len(runs) < 11 or (sum(runs) < min_seconds and len(runs) < max_runs):
        events = []
        for _ in range(4):
            flush.max()  # reads; also keeps the GPU busy while the host enqueues
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            permute()
            end.record()
            events.append((begin, end))
        torch.cuda.synchronize()
        runs += [begin.elapsed_time(end) * 1e-3 for begin, end in events]
    return runs


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
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", help="what tilewire_kernel_bench --json wrote")
    parser.add_argument("--json", help="write every case's figures to this file")
    parser.add_argument("--min-time", type=float, default=0.01, help="seconds of measured time a case (default 0.01)")
    parser.add_argument("--max-runs", type=int, default=200, help="runs of a case (default 200)")
    arguments = parser.parse_args()
    with open(arguments.results, encoding="utf-8") as file:
        report = json.load(file)
    cases = [r for r in report["results"] if r["group"] == "permute" and r["outcome"] == "measured" and "cold" in r]
    if not cases:
        sys.exit("error: no cold measurements of group permute in " + arguments.results)
    if not torch.cuda.is_available():
        sys.exit("error: torch finds no GPU")
    name = torch.cuda.get_device_name()
    if name != report["machine"].get("gpu"):
        sys.exit(f"error: measured on {report['machine'].get('gpu')}, but this is {name}: a ratio would mean nothing")
    flush = torch.rand(4 * torch.cuda.get_device_properties(0).L2_cache_size // 4, device="cuda")
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
