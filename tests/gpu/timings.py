#!/usr/bin/env python3
"""Timings of repeated calls, as `tilewire --json` prints them.

    timings.py keep WAY ANSWER.json     one line of JSON: the timing without spans, and which way the call went
    timings.py table NAME KEPT.jsonl    a row of medians for each way, in the order of their first call
"""
import json
import statistics
import sys

STAGES = ("receive_us", "stage_us", "h2d_us", "kernel_us", "d2h_us", "send_us", "other_us")


def keep(way, path):
    with open(path, encoding="utf-8") as file:
        timing = json.load(file)["timing"]
    timing.pop("spans", None)
    print(json.dumps({"way": way, **timing}))


def median(calls, key):
    values = [call[key] for call in calls if call.get(key) is not None]
    return statistics.median(values) if values else None


def table(name, path):
    ways = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            call = json.loads(line)
            ways.setdefault(call["way"], []).append(call)
    print(f"{name:10} {'ms, medians of':>14} {'client':>8} {'server':>8} {'GB/s':>6} " +
          " ".join(f"{stage[:-3]:>8}" for stage in STAGES) + "  copied/byte  overlap  limit")
    for way, calls in ways.items():
        wall = median(calls, "client_wall_us")
        moved = calls[0]["bytes_in"] + calls[0]["bytes_out"]
        stages = " ".join(f"{value / 1e3:8.1f}" if value is not None else f"{'-':>8}"
                          for value in (median(calls, stage) for stage in STAGES))
        share = median(calls, "bottleneck_share")
        print(f"{way:>22} {len(calls):2d} {wall / 1e3:8.1f} {median(calls, 'wall_us') / 1e3:8.1f} "
              f"{calls[0]['bytes_in'] / wall / 1e3:6.2f} {stages} {(median(calls, 'bytes_copied') or 0) / moved:12.2f} "
              f"{median(calls, 'overlap') or 0:8.2f}  {calls[-1].get('bottleneck', '-')}"
              + (f" {share:.0%}" if share else ""))


if __name__ == "__main__":
    {"keep": keep, "table": table}[sys.argv[1]](*sys.argv[2:])
