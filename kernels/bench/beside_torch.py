"""What the scripts that measure torch beside tilewire_kernel_bench share: its cases, and cold runs the way it makes them."""
import argparse
import json
import sys

import torch


def parser_of(doc):
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", help="what tilewire_kernel_bench --json wrote")
    parser.add_argument("--min-time", type=float, default=0.01, help="seconds of measured time a case (default 0.01)")
    parser.add_argument("--max-runs", type=int, default=200, help="runs of a case (default 200)")
    return parser


def cases_of(path, groups, wanted):
    """The measured cases of these groups that are `wanted`; exits unless there are some, measured on the GPU that torch finds."""
    with open(path, encoding="utf-8") as file:
        report = json.load(file)
    cases = [r for r in report["results"] if r["group"] in groups and r["outcome"] == "measured" and wanted(r)]
    if not cases:
        sys.exit(f"error: no such measurements of group {' or '.join(groups)} in {path}")
    if not torch.cuda.is_available():
        sys.exit("error: torch finds no GPU")
    name, measured_on = torch.cuda.get_device_name(), report["machine"].get("gpu")
    if name != measured_on:
        sys.exit(f"error: measured on {measured_on}, but this is {name}: a ratio would mean nothing")
    return cases


def random_tensor(shape, dtype):
    if dtype.is_floating_point or dtype.is_complex:
        return torch.randn(shape, dtype=dtype, device="cuda")
    info = torch.iinfo(dtype)
    return torch.randint(info.min, info.max, shape, dtype=dtype, device="cuda")


def l2_flush():
    """A function that reads four times the L2's size; it also keeps the GPU busy while the host enqueues what comes next."""
    return torch.rand(torch.cuda.get_device_properties(0).L2_cache_size, device="cuda").max


def seconds_of(function, before, min_seconds, max_runs):
    """Runs, each after `before()`, until there are 11 and so many seconds were measured."""
    function()
    torch.cuda.synchronize()
    runs = []
    while len(runs) < 11 or (sum(runs) < min_seconds and len(runs) < max_runs):
        events = []
        for _ in range(4):
            before()
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            function()
            end.record()
            events.append((begin, end))
        torch.cuda.synchronize()
        runs += [begin.elapsed_time(end) * 1e-3 for begin, end in events]
    return runs
