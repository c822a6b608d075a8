#!/usr/bin/env python3
"""Do tilewire-load, an independent client and the server's own metrics agree on rate and latency?

    agree.py FOLDER [--callers 1,8] [--rate 500] [--seconds 0.5] [--rounds 12] [--budget 120] [--tolerance 5]

FOLDER is a bundle or a build. Against one server, both clients call 4 KiB RMSE in turns: closed loops of so many callers,
then an open loop of so many calls a second. Runs are short and many, because each is a process of its own, and where the
machine puts its threads is worth more than the tolerance: rounds go on until the median of their differences is known to
half of it, or the budget is spent. Around every run the server's metrics are read, and while it lasts its counter of
calls, by this script's clock.

One line a figure. One that is judged "agrees" where the whole interval of its median difference (95%) is within the
tolerance, "differs" where none of it is, and is "undecided" where the interval says neither or rounds are too few for one.
Exit code: 0 all agree; 1 one differs, or calls or bytes were counted wrong; 3 none differs, but not all are decided; 2 bad
usage, no programs, nothing measured or a file that cannot be written.
"""
import argparse
import json
import math
import os
import statistics
import sys
import time

from programs import (Failure, Server, add_common_options, figures, find_program, numbers, report_of, run, scratch_folder,
                      table, tell, write_report, write_text)
from server_metrics import Counting, Metrics, free_port, server_view

LATENCIES = ("mean", "p50", "p90", "p99")
BYTES_OF_CALL = 2 * 4096


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
        before = self.metrics.read_idle()
        counting = Counting(self.metrics, Metrics.calls(before))
        counting.start()
        try:
            said = how(callers, rate, seconds)
        finally:
            after = self.metrics.read_idle()
            slope = counting.rate(Metrics.calls(after))
        return said | {"server": server_view(before, after, slope)}

    def compare(self, callers, rate, until):
        """Both clients in turns; who goes first changes from round to round. `until`: on the clock, when those rounds end that
        would only make differences better known."""
        sides = {"load": self.run_load, "independent": self.run_independent}
        for how in sides.values():
            how(callers, rate, min(1, self.options.seconds))  # warms up, and is not measured
        rounds, number, length = {name: [] for name in sides}, 0, 0
        while number < self.options.rounds or (time.monotonic() + length < until and not settled(rounds, self.options.tolerance)):
            begin = time.monotonic()
            for name in list(sides)[::1 if number % 2 == 0 else -1]:
                rounds[name].append(self.measure(sides[name], callers, rate, self.options.seconds) | {"callers": callers})
            number, length = number + 1, time.monotonic() - begin
        return rounds


def values_of(runs, *path):
    """A figure of each run, found by its keys; None where a run has none."""
    values = []
    for one in runs:
        value = one
        for key in path:
            value = value.get(key) if value else None
        values.append(value)
    return values


def interval(values):
    """Where the median of what the values come from is, with at least 95%, by their ranks alone. None for fewer than six."""
    values, beyond, rank = sorted(values), 1, 0
    # Each value is below the median as a coin falls: in `beyond` of 2^n ways, at most `rank` of them are.
    while 40 * beyond <= 2 ** len(values):  # 2.5% on either side; whole numbers, since 2^n outgrows a float
        rank += 1
        beyond += math.comb(len(values), rank)
    return (values[rank - 1], values[-rank]) if rank > 0 else None


def make_row(name, ours, other, whose, judged):
    """Medians of both, and the median of the differences within each round: what slows a round down hits both."""
    row = {"name": name, "whose": whose, "judged": judged}
    pairs = [pair for pair in zip(ours, other) if None not in pair and pair[1] != 0]
    row["load"], row["other"] = (statistics.median(pair[i] for pair in pairs) if pairs else None for i in (0, 1))
    if pairs:
        differences = [100 * (a / b - 1) for a, b in pairs]
        row["difference_percent"], row["interval_percent"] = statistics.median(differences), interval(differences)
    return row


def rows_of(rounds):
    """Figures of one setting, ours beside another's."""
    load, independent = rounds["load"], rounds["independent"]
    there = "server's own, same runs"
    rows = [make_row("calls a second", values_of(load, "calls_per_second"), values_of(load, "server", "calls_per_second"), there,
                     True),
            make_row("calls a second", values_of(load, "calls_per_second"), values_of(independent, "calls_per_second"),
                     "independent client", True)]
    for key in LATENCIES:
        ours = values_of(load, "latency_us", key)
        if None not in ours:  # a tail that too few calls of a round support is not told
            rows.append(make_row(f"latency {key}, us", ours, values_of(independent, "latency_us", key), "independent client",
                                 key == "p50"))
    # What no stage covers ends with the reply for the client, with the call for the server's metrics.
    rows += [make_row(f"{stage} at the server, us", values_of(load, "stages_us", stage),
                      values_of(load, "server", "stages_us", stage), there, True)
             for stage in load[0]["stages_us"] if stage != "other"]
    walls = [values_of(runs, "server", "wall_us") for runs in (load, independent)]
    rows.append(make_row("time at the server, us", *walls, "server's own, under the independent client", False))
    outside = [[mean - wall for mean, wall in zip(values_of(runs, "latency_us", "mean"), wall_us)]
               for runs, wall_us in zip((load, independent), walls)]
    rows.append(make_row("mean latency less time at the server, us", *outside, "independent client", False))
    return rows


def verdict(row, tolerance):
    if not row["judged"]:
        return "-"
    if row.get("interval_percent") is None:
        return "undecided"
    low, high = row["interval_percent"]
    if -tolerance <= low and high <= tolerance:
        return "agrees"
    return "differs" if high < -tolerance or low > tolerance else "undecided"


def settled(rounds, tolerance):
    """Whether all that is judged is known well enough, as far as more rounds help."""
    bounds = [row["interval_percent"] for row in rows_of(rounds) if row["judged"] and "interval_percent" in row]
    return all(known and known[1] - known[0] <= tolerance for known in bounds)


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


def start(options):
    """A server, and the port of its metrics; of another port where somebody took the first one meanwhile."""
    for left in reversed(range(5)):
        port = free_port()
        try:
            return Server(find_program(options.folder, "tilewired"),
                          ["--device", options.device, "--metrics-listen", f"127.0.0.1:{port}"]), port
        except Failure as failure:
            if left == 0 or "--metrics-listen" not in str(failure):
                raise


def measure(options):
    started, port = start(options)
    with started as server, scratch_folder() as folder:
        bench = Bench(options, folder, server, Metrics(port))
        settings = [(callers, 0) for callers in options.callers] + [(64, rate) for rate in options.rate]
        report = {"version": 3, "device": server.device, "seconds": options.seconds, "tolerance_percent": options.tolerance,
                  "settings": []}
        begin = time.monotonic()
        for number, (callers, rate) in enumerate(settings):
            name = f"{rate} calls a second" if rate else f"closed loop, {callers} caller{'s' * (callers > 1)}"
            tell(name)
            # What one setting leaves of its share of the time is the next one's.
            rounds = bench.compare(callers, rate, begin + options.budget * (number + 1) / len(settings))
            rows = [row | {"verdict": verdict(row, options.tolerance)} for row in rows_of(rounds)]
            report["settings"].append({"name": name, "rows": rows, "counts": count_complaints(rounds),
                                       "bottleneck": any(one["bottleneck"] for one in rounds["load"]), "rounds": rounds})
            write_report(options, report, render, to_stdout=False)
    return report


def exit_code(report):
    verdicts = {row["verdict"] for setting in report["settings"] for row in setting["rows"]}
    if "differs" in verdicts or any(setting["counts"] for setting in report["settings"]):
        return 1
    return 3 if "undecided" in verdicts else 0


def difference_text(row):
    if "difference_percent" not in row:
        return "-"
    known = row["interval_percent"]
    return f"{row['difference_percent']:+.1f}%" + (f" ({known[0]:+.1f} to {known[1]:+.1f})" if known else "")


def render(report, markdown):
    lines = [[setting["name"], row["name"], *("-" if row[key] is None else figures(row[key]) for key in ("load", "other")),
              difference_text(row), row["verdict"], row["whose"]] for setting in report["settings"] for row in setting["rows"]]
    settings = report["settings"]
    counts = " and ".join(sorted({str(len(setting["rounds"]["load"])) for setting in settings}, key=int))
    head = (f"{report['device']}; 4 KiB RMSE, unary; medians of {counts} rounds of {report['seconds']:g} s, both clients in turns, "
            f"and where those of more rounds would be (95%); tolerance {report['tolerance_percent']:g}%")
    notes = [f"{setting['name']}: {text}" for setting in settings for text in setting["counts"]]
    notes = notes or ["Calls and bytes agree exactly with the server's counters in every run."]
    notes += [f"{setting['name']}: tilewire-load says that it was itself the bottleneck" for setting in settings
              if setting["bottleneck"]]
    columns = ["", "figure", "tilewire-load", "other", "difference", "verdict", "the other is"]
    return "\n".join([head, "", table(columns, lines, markdown), "", *notes])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", help="bundle or build folder with Tilewire's programs")
    add_common_options(parser, rounds=12)
    parser.add_argument("--callers", type=numbers, default=[1, 8], help="of the closed loops (default: 1,8)")
    parser.add_argument("--rate", type=numbers, default=[500], help="calls a second of the open loops (default: 500)")
    parser.add_argument("--seconds", type=float, default=0.5, help="of a run (default: 0.5)")
    parser.add_argument("--budget", type=float, default=120, metavar="SECONDS",
                        help="of all settings; --rounds are made anyway, more only within it (default: 120)")
    parser.add_argument("--tolerance", type=float, default=5, help="per cent (default: 5)")
    parser.add_argument("--timeout", type=float, default=60, help="seconds that a run may take beyond its length (default: 60)")
    options = parser.parse_args()
    if options.rounds < 1 or options.seconds <= 0:
        parser.error("--rounds is at least 1 and --seconds over 0")
    report = report_of(options, measure, render)
    return 2 if report is None else exit_code(report)


if __name__ == "__main__":
    sys.exit(main())
