#!/usr/bin/env python3
"""Do tilewire-load, an independent client and the server's own metrics agree on rate and latency?

    agree.py FOLDER [--callers 1,8] [--rate 500] [--seconds 10] [--rounds 5] [--tolerance 5]

FOLDER is a bundle or a build. Against one server, both clients call 4 KiB RMSE in turns: closed loops of so many callers,
then an open loop of so many calls a second. Around every run the server's metrics are read, and while it lasts its counter
of calls, by this script's clock. One line a figure; exit code 1 where a difference that is judged exceeds the tolerance.
"""
import argparse
import json
import os
import re
import socket
import statistics
import sys
import threading
import time
import urllib.request

from programs import (Failure, Server, add_common_options, figures, find_program, numbers, report_of, run, scratch_folder, table,
                      write_text)

METHOD = 'method="Kernels.Rmse"'
LATENCIES = ("mean", "p50", "p90", "p99")
BYTES_OF_CALL = 2 * 4096


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Metrics:
    """The server's own figures."""

    def __init__(self, port):
        self.url = f"http://127.0.0.1:{port}/metrics"

    def read(self):
        """name{labels} -> value."""
        try:
            with urllib.request.urlopen(self.url, timeout=10) as reply:
                text = reply.read().decode()
        except OSError as error:
            raise Failure(f"{self.url}: {error}") from error
        return {name: float(value) for name, value in re.findall(r"^(\w+(?:\{.*\})?) (\S+)$", text, re.M)}

    @staticmethod
    def calls(metrics):
        return metrics.get(f"tilewire_call_wall_seconds_count{{{METHOD}}}", 0.0)


class Counting(threading.Thread):
    """Reads the counter of calls while a run lasts; `rate` is its slope from the first reading at which it had moved to the
    last one at which it still moved."""

    def __init__(self, metrics, calls):
        super().__init__(daemon=True)
        self.metrics, self.before, self.points, self.over = metrics, calls, [], threading.Event()

    def run(self):
        while not self.over.wait(0.05):
            try:
                self.points.append((time.monotonic(), Metrics.calls(self.metrics.read())))
            except Failure:
                return

    def rate(self, after):
        self.over.set()
        self.join()
        inner = [point for point in self.points if self.before < point[1] < after]
        if len(inner) < 2:
            return None
        return (inner[-1][1] - inner[0][1]) / (inner[-1][0] - inner[0][0])


def server_view(before, after, rate):
    """What the server says of the calls between two readings."""
    since = lambda name: after.get(name, 0.0) - before.get(name, 0.0)
    calls = since(f"tilewire_call_wall_seconds_count{{{METHOD}}}")
    view = {"calls": calls, "calls_per_second": rate, "bytes_in": since(f"tilewire_received_bytes_total{{{METHOD}}}"),
            "wall_us": 1e6 * since(f"tilewire_call_wall_seconds_sum{{{METHOD}}}") / max(calls, 1), "stages_us": {}}
    for stage in ("queue", "receive", "stage", "h2d", "kernel", "d2h", "send"):
        count = since(f'tilewire_stage_seconds_count{{stage="{stage}"}}')
        if count:
            view["stages_us"][stage] = 1e6 * since(f'tilewire_stage_seconds_sum{{stage="{stage}"}}') / count
    return view


class Bench:
    def __init__(self, options, folder, server, metrics):
        self.options, self.folder, self.server, self.metrics = options, folder, server, metrics
        self.load, self.independent = (find_program(options.folder, name) for name in
                                       ("tilewire-load", "tilewire_independent_bench"))

    def run_independent(self, callers, rate, seconds):
        said = json.loads(run([self.independent, "--server", self.server.address, "--callers", str(callers), "--rate",
                               str(rate), "--seconds", str(seconds), "--warmup", "0"], seconds + self.options.timeout))
        return {"made": said["made"], "calls_per_second": said["calls_per_second"], "latency_us": said["latency_us"],
                "wall_us": said["server_wall_us"]}

    def run_load(self, callers, rate, seconds):
        mode = {"type": "open", "arrivals": "constant", "rate": rate, "callers": callers} if rate else {
            "type": "closed", "callers": callers}
        scenario, result = (os.path.join(self.folder, name) for name in ("scenario.json", "result.json"))
        write_text(scenario, json.dumps({"mode": mode, "seconds": seconds, "warmup_seconds": 0, "operations": [
            {"operation": "rmse", "shape": [BYTES_OF_CALL // 8], "access": "unary"}]}))
        run([self.load, "run", scenario, "--server", self.server.address, "--json", result], seconds + self.options.timeout)
        with open(result, encoding="utf-8") as file:
            said = json.load(file)
        total = said["total"]
        return {"calls": total["calls"], "calls_per_second": total["calls_per_second"], "latency_us": total["latency_us"],
                "stages_us": total["stages_us"], "bottleneck": said["generator"]["bottleneck"]}

    def measure(self, how, callers, rate, seconds):
        """One run, with what the server says of it."""
        before = self.metrics.read()
        counting = Counting(self.metrics, Metrics.calls(before))
        counting.start()
        try:
            said = how(callers, rate, seconds)
        finally:
            after = self.metrics.read()
            slope = counting.rate(Metrics.calls(after))
        return said | {"server": server_view(before, after, slope)}

    def compare(self, callers, rate):
        """Both clients in turns; who goes first changes from round to round."""
        sides = {"load": self.run_load, "independent": self.run_independent}
        for how in sides.values():
            how(callers, rate, min(1, self.options.seconds))  # warms up, and is not measured
        rounds = {name: [] for name in sides}
        for number in range(self.options.rounds):
            for name in list(sides)[::1 if number % 2 == 0 else -1]:
                rounds[name].append(self.measure(sides[name], callers, rate, self.options.seconds))
        return rounds


def values_of(runs, *path):
    """A figure of each run, found by its keys; None where a run has none."""
    values = []
    for value in runs:
        for key in path:
            value = value.get(key) if value else None
        values.append(value)
    return values


def make_row(name, ours, other, whose, judged):
    """Medians of both, and the median of the differences within each round: what slows a round down hits both."""
    row = {"name": name, "whose": whose, "judged": judged}
    pairs = [pair for pair in zip(ours, other) if None not in pair and pair[1] != 0]
    row["load"], row["other"] = (statistics.median(pair[i] for pair in pairs) if pairs else None for i in (0, 1))
    if pairs:
        row["difference_percent"] = statistics.median(100 * (a / b - 1) for a, b in pairs)
    return row


def rows_of(rounds):
    """Figures of one setting, ours beside another's."""
    load, independent = rounds["load"], rounds["independent"]
    there = "server's own, same runs"
    rows = [make_row("calls a second", values_of(load, "calls_per_second"), values_of(load, "server", "calls_per_second"), there,
                     True),
            make_row("calls a second", values_of(load, "calls_per_second"), values_of(independent, "calls_per_second"),
                     "independent client", True)]
    rows += [make_row(f"latency {key}, us", values_of(load, "latency_us", key), values_of(independent, "latency_us", key),
                      "independent client", key == "p50") for key in LATENCIES]
    rows += [make_row(f"{stage} at the server, us", values_of(load, "stages_us", stage),
                      values_of(load, "server", "stages_us", stage), there, True) for stage in load[0]["stages_us"]]
    walls = [values_of(runs, "server", "wall_us") for runs in (load, independent)]
    rows.append(make_row("time at the server, us", *walls, "server's own, under the independent client", False))
    outside = [[mean - wall for mean, wall in zip(values_of(runs, "latency_us", "mean"), wall_us)]
               for runs, wall_us in zip((load, independent), walls)]
    rows.append(make_row("mean latency less time at the server, us", *outside, "independent client", False))
    return rows


def count_complaints(rounds):
    """The counts that must agree to the last call and byte. A closed loop leaves out calls that end after the window."""
    found = []
    for name, runs in rounds.items():
        for number, one in enumerate(runs):
            said, server = one.get("made", one.get("calls")), one["server"]["calls"]
            if one["server"]["bytes_in"] != server * BYTES_OF_CALL:
                found.append(f"{name}, round {number + 1}: {one['server']['bytes_in']:.0f} bytes of {server:.0f} calls")
            if name == "independent" and said != server:
                found.append(f"independent, round {number + 1}: {said} calls, the server counted {server:.0f}")
            if name == "load" and not 0 <= server - said <= one["callers"]:
                found.append(f"load, round {number + 1}: {said} calls, the server counted {server:.0f}")
    return found


def measure(options):
    port = free_port()
    with scratch_folder() as folder, Server(find_program(options.folder, "tilewired"), [
            "--device", options.device, "--metrics-listen", f"127.0.0.1:{port}"]) as server:
        bench = Bench(options, folder, server, Metrics(port))
        settings = [(callers, 0) for callers in options.callers] + [(64, rate) for rate in options.rate]
        report = {"version": 1, "device": server.device, "rounds": options.rounds, "seconds": options.seconds,
                  "tolerance_percent": options.tolerance, "settings": []}
        for callers, rate in settings:
            name = f"{rate} calls a second" if rate else f"closed loop, {callers} caller{'s' * (callers > 1)}"
            print(name, file=sys.stderr, flush=True)
            rounds = bench.compare(callers, rate)
            for one in rounds["load"]:
                one["callers"] = callers
            report["settings"].append({"name": name, "rows": rows_of(rounds), "counts": count_complaints(rounds),
                                       "bottleneck": any(one["bottleneck"] for one in rounds["load"]), "rounds": rounds})
    return report


def off(report, row):
    return row["judged"] and (row.get("difference_percent") is None or
                              abs(row["difference_percent"]) > report["tolerance_percent"])


def render(report, markdown):
    lines = []
    for setting in report["settings"]:
        for row in setting["rows"]:
            share = row.get("difference_percent")
            verdict = "no" if off(report, row) else "yes" if row["judged"] else "-"
            lines.append([setting["name"], row["name"], *("-" if value is None else figures(value) for value in
                                                          (row["load"], row["other"])),
                          "-" if share is None else f"{share:+.1f}%", verdict, row["whose"]])
    head = (f"{report['device']}; 4 KiB RMSE, unary; medians of {report['rounds']} rounds of {report['seconds']:g} s, both "
            f"clients in turns; agree: within {report['tolerance_percent']:g}%")
    settings = report["settings"]
    notes = [f"{setting['name']}: {text}" for setting in settings for text in setting["counts"]]
    notes = notes or ["Calls and bytes agree exactly with the server's counters in every run."]
    notes += [f"{setting['name']}: tilewire-load says that it was itself the bottleneck" for setting in settings
              if setting["bottleneck"]]
    columns = ["", "figure", "tilewire-load", "other", "difference", "agree", "the other is"]
    return "\n".join([head, "", table(columns, lines, markdown), "", *notes])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", help="bundle or build folder with Tilewire's programs")
    add_common_options(parser)
    parser.add_argument("--callers", type=numbers, default=[1, 8], help="of the closed loops (default: 1,8)")
    parser.add_argument("--rate", type=numbers, default=[500], help="calls a second of the open loops (default: 500)")
    parser.add_argument("--seconds", type=float, default=10, help="of a run (default: 10)")
    parser.add_argument("--tolerance", type=float, default=5, help="per cent (default: 5)")
    parser.add_argument("--timeout", type=float, default=60, help="seconds that a run may take beyond its length (default: 60)")
    options = parser.parse_args()
    if options.rounds < 1 or options.seconds <= 0:
        parser.error("--rounds is at least 1 and --seconds over 0")
    report = report_of(options, measure, render)
    if report is None:
        return 2
    bad = any(setting["counts"] or any(off(report, row) for row in setting["rows"]) for setting in report["settings"])
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
