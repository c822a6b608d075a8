#!/usr/bin/env python3
"""Tilewire beside what a user would pick instead and beside the machine's limits: one run, all sides in turns.

    compare.py FOLDER [--peers FILE] [--ceilings FILE] [--mib 1024] [--connections 1,4,8] [--rounds 5]

FOLDER is a bundle or a build. Every round measures each side once, so that all meet the same machine; the table
holds medians. A side that cannot run here (no GPU, a module that is not installed) is named with its reason, and the
rest goes on. README.md says what the rows and columns mean.
"""
import argparse
import os
import re
import sys

from beside import Ceilings, Peers
from programs import (Failure, Server, add_common_options, call, figures, find_program, matrix_shape, numbers, report_of, run,
                      scratch_folder, spread, table, write_npy)

SINK, ECHO = "raw gRPC sink", "raw gRPC echo"


class Tilewire:
    """Our side: every round adds a value to each row; `raw` holds what bare gRPC reached beside it."""

    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.bench, self.client, self.server_program = (find_program(options.folder, name) for name in
                                                        ("tilewire_bench", "tilewire", "tilewired"))
        self.found, self.raw, self.device = {}, {}, None
        self.failures = {}  # row -> why, for each round that failed
        rows, columns = matrix_shape(options.mib)
        write_npy(self.path("in.npy"), rows, columns, 1)

    def path(self, name):
        return os.path.join(self.folder, name)

    def add(self, row, value, raw=None):
        self.found.setdefault(row, []).append(value)
        if raw is not None:
            self.raw.setdefault(row, []).append(raw)

    def measure(self, row, how):
        """A failure is the row's in this round, not the run's."""
        try:
            how(row)
        except Failure as failure:
            self.failures.setdefault(row, []).append(str(failure))

    def run_bench(self, *words):
        return run([self.bench, "--device", self.options.device, *map(str, words)], self.options.timeout)

    @staticmethod
    def figure(text, pattern):
        match = re.search(pattern, text)
        if not match:
            raise Failure(f"tilewire_bench printed no line like {pattern!r}")
        return float(match[1])

    def wire(self, connections):
        def how(row):
            text = self.run_bench("wire", "--mib", 2 * self.options.mib, "--connections", connections, "--rounds", 1)
            self.add(row, self.figure(text, r"tilewire RMSE +([\d.]+) GB/s"),
                     self.figure(text, r"raw gRPC sink +([\d.]+) GB/s"))
        return how

    def small(self, row):
        text = self.run_bench("small", "--calls", self.options.calls)
        self.add(row, self.figure(text, r"tilewire RMSE, warm +p50 +([\d.]+)"),
                 self.figure(text, r"raw gRPC echo, warm +p50 +([\d.]+)"))

    def file_call(self, server, connections, *words):
        def how(row):
            timing = call(self.client, server.address, ["--connections", connections, *words], self.options.timeout)["timing"]
            self.add(row, timing["bytes_in"] / timing["client_wall_us"] / 1e3)
        return how

    def round(self):
        mib = self.options.mib
        for count in self.options.connections:
            self.measure(f"rmse, 2 x {mib} MiB, {plural(count)}", self.wire(count))
        self.measure("rmse, 4 KiB unary", self.small)
        try:
            self.calls_of_files()
        except Failure as failure:  # no server, no rows
            for row in self.rows()[len(self.options.connections) + 1:]:
                self.failures.setdefault(row, []).append(str(failure))

    def calls_of_files(self):
        """Transposes and densities, by the command line client."""
        mib = self.options.mib
        with Server(self.server_program, ["--device", self.options.device]) as server:
            self.device = server.device
            # Warms the server up, and checks it.
            run([self.client, "--server", server.address, "selftest"], self.options.timeout)
            for count in self.options.connections:
                self.measure(f"transpose, {mib} MiB, {plural(count)}",
                             self.file_call(server, count, "transpose", self.path("in.npy"), self.path("out.npy")))
                self.measure(f"gaussian-pdf, {mib} MiB, {plural(count)}",
                             self.file_call(server, count, "gaussian-pdf", self.path("in.npy"), self.path("out.npy"), "--mean",
                                            0.5, "--stddev", 0.2))

    def rows(self):
        """Names of all rows in the order of the table."""
        mib = self.options.mib
        forms = [plural(count) for count in self.options.connections]
        return ([f"rmse, 2 x {mib} MiB, {form}" for form in forms] + ["rmse, 4 KiB unary"] +
                [f"{name}, {mib} MiB, {form}" for name in ("transpose", "gaussian-pdf") for form in forms])


def plural(connections):
    return f"{connections} connection{'' if connections == 1 else 's'}"


def beside_cell(name, kind, less, ours, value, missing):
    """One comparison. ratio: how many times as good Tilewire is; share: how much of the limit it reaches."""
    cell = {"name": name, "kind": kind}
    if value is None:
        cell["missing"] = missing
        return cell
    cell["median"] = value
    if ours and value:
        cell["ratio" if kind == "peer" else "share"] = value / ours if less else ours / value
    return cell


def make_row(name, tilewire, peers, ceilings):
    """A row of the report: ours, and everything there is to hold it against."""
    less = name == "rmse, 4 KiB unary"
    row = {"name": name, "unit": "us" if less else "GB/s", "better": "less" if less else "more", "beside": []}
    ours = None
    if tilewire.found.get(name):
        row["tilewire"] = spread(tilewire.found[name])
        ours = row["tilewire"]["median"]
    row["failed"] = tilewire.failures.get(name, [])
    if name in tilewire.raw:
        raw = spread(tilewire.raw[name])["median"]
        row["beside"].append(beside_cell(ECHO if less else SINK, "ceiling", less, ours, raw, None))
    if peers and name.startswith("rmse"):
        # Where the script ended early, its file name stands for the peers that it did not come to.
        for peer in [*peers.names, *([os.path.basename(peers.script)] if peers.missing else [])]:
            value, missing = peers.value(peer + " small" if less else peer)
            if not less or value is not None or peers.missing:
                row["beside"].append(beside_cell(peer, "peer", less, ours, value, missing))
    if ceilings:
        limit, title = ("rmse 4 KiB", "device, 4 KiB") if less else ("h2d", "PCIe in") if name.startswith("rmse") else (
            "both", "PCIe, both ways")
        value, missing = ceilings.value(limit)
        row["beside"].append(beside_cell(title, "ceiling", less, ours, value, missing))
    return row


def note(notes, text):
    """The mark of a footnote, which is there once however many cells it explains."""
    if text not in notes:
        notes.append(text)
    return f"[{notes.index(text) + 1}]"


def own_text(row, notes):
    marks = f", {len(row['failed'])} failed {note(notes, row['failed'][-1])}" if row["failed"] else ""
    if "tilewire" not in row:
        return "missing" + marks
    return "{} ({}-{})".format(*(figures(row["tilewire"][key]) for key in ("median", "min", "max"))) + marks


def cell_text(cell, notes):
    if cell is None:
        return "-"
    if "missing" in cell:
        return f"missing {note(notes, cell['missing'])}"
    text = figures(cell["median"])
    if "ratio" in cell:
        text += f" (x{figures(cell['ratio'])})"
    if "share" in cell:
        text += f" ({100 * cell['share']:.0f}%)"
    return text


def render(report, markdown):
    """The table with its notes, as text or Markdown."""
    names = list(dict.fromkeys(cell["name"] for row in report["rows"] for cell in row["beside"]))
    notes, lines = [], []
    for row in report["rows"]:
        cells = {cell["name"]: cell for cell in row["beside"]}
        lines.append([row["name"], row["unit"], own_text(row, notes)] + [cell_text(cells.get(name), notes) for name in names])
    head = (f"{report['device'] or 'no device'}; medians of {report['rounds']} round{'s' * (report['rounds'] > 1)}, all sides "
            "in turns; (xN): Tilewire is N times as good; (N%): share of that limit")
    if report["rounds"] < 5:
        head += "; under 5 rounds: not for quoting"
    end = [f"[{i + 1}] {text}" for i, text in enumerate(notes)]
    return "\n".join([head, "", table(["", "", "Tilewire"] + names, lines, markdown), *([""] if end else []),
                      ("\n\n" if markdown else "\n").join(end)]).rstrip()


def measure(options):
    """The report of all rounds as one object, ready for JSON."""
    peers = Peers(options.peers, options.timeout) if options.peers else None
    ceilings = Ceilings(options.ceilings, options.timeout) if options.ceilings else None
    with scratch_folder() as folder:
        tilewire = Tilewire(options, folder)
        for number in range(options.rounds):
            for side in (tilewire, peers, ceilings):
                if side:
                    print(f"round {number + 1} of {options.rounds}: {type(side).__name__.lower()}", file=sys.stderr, flush=True)
                    side.round()
    if ceilings:
        ceilings.close()
    rows = [make_row(name, tilewire, peers, ceilings) for name in tilewire.rows()]
    return {"version": 1, "device": tilewire.device, "rounds": options.rounds, "mib": options.mib, "rows": rows}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", help="bundle or build folder with Tilewire's programs")
    add_common_options(parser)
    parser.add_argument("--peers", metavar="FILE", help="Python script whose command `rpc` measures other services")
    parser.add_argument("--ceilings", metavar="FILE", help="program, or its .cu source, that prints the machine's limits")
    parser.add_argument("--mib", type=int, default=1024, help="MiB of one operand (default: 1024)")
    parser.add_argument("--connections", type=numbers, default=[1, 4, 8], help="default: 1,4,8")
    parser.add_argument("--calls", type=int, default=2000, help="small calls a round (default: 2000)")
    parser.add_argument("--timeout", type=float, default=600, help="seconds that any one program may take (default: 600)")
    options = parser.parse_args()
    if options.mib < 1 or options.rounds < 1 or options.calls < 1:
        parser.error("--mib, --rounds and --calls are at least 1")
    report = report_of(options, measure, render)
    if report is None:
        return 2
    return 0 if any("tilewire" in row for row in report["rows"]) else 1


if __name__ == "__main__":
    sys.exit(main())
