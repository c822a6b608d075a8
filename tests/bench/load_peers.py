#!/usr/bin/env python3
"""What tilewire-load measures of each operation, beside what a user would pick instead: one table.

    load_peers.py FOLDER [--peers FILE] [--size 256MiB] [--connections 1,4,8] [--callers 4] [--rounds 3] [--keep FOLDER]

FOLDER is a bundle or a build. Every round runs, against one server: an overlap study of each operation, closed loops of
it by several callers, the smallest call, and the peers; so all sides meet the same machine. Figures are medians. With
--keep the results and pages of the last round are kept. Ctrl-C or SIGTERM ends it, once the program that runs
has ended, with what was measured so far; the files are also written anew after every part of a round. README.md says
what the rows and columns mean.
"""
import argparse
import json
import os
import re
import signal
import sys

from beside import Peers
from compare import beside_cell, plural, render
from programs import (Failure, Server, add_common_options, find_program, numbers, report_of, run, scratch_folder, spread, tell,
                      write_report, write_text)

OPERATIONS = ("rmse", "transpose", "gaussian-pdf")
SMALL = "rmse, 4 KiB unary, p50"
UNITS = {"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


def byte_size(text):
    """An argparse type: 4096, 64KiB, 256MiB, 1GiB."""
    match = re.fullmatch(r"(\d+)(KiB|MiB|GiB|)", text)
    if not match or int(match[1]) * UNITS[match[2]] < 4096:
        raise argparse.ArgumentTypeError(f"{text!r}; allowed: 4KiB or more, as 4096, 64KiB, 256MiB, 1GiB")
    return int(match[1]) * UNITS[match[2]]


def size_text(size):
    unit = next(name for name in ("GiB", "MiB", "KiB", "") if size % UNITS[name] == 0)
    return f"{size // UNITS[unit]}{unit or 'B'}"


class Stopped(Exception):
    """Somebody asked for the end."""


class Stopper:
    """Ctrl-C and SIGTERM from now on: told between two programs, so that none is left behind."""

    def __init__(self):
        self.asked = False
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self.ask)

    def ask(self, *_):
        self.asked = True

    def check(self):
        if self.asked:
            raise Stopped


class Loads:
    """Our side: every round adds a value to each row, and to what is held against it."""

    def __init__(self, options, folder, stopper):
        self.options, self.folder, self.stopper = options, folder, stopper
        self.program, self.server_program = (find_program(options.folder, name) for name in ("tilewire-load", "tilewired"))
        self.device, self.failures, self.found, self.beside = None, {}, {}, {}

    def add(self, row, value, **beside):
        self.found.setdefault(row, []).append(value)
        for name, other in beside.items():
            if other:
                self.beside.setdefault(row, {}).setdefault(name, []).append(other)

    def load(self, server, name, words):
        """One run of tilewire-load; its result as JSON."""
        files = {kind: os.path.join(self.folder, f"{name}.{kind}") for kind in ("json", "html")}
        run([self.program, *map(str, words), "--server", server.address, "--json", files["json"], "--html", files["html"]],
            self.options.timeout)
        with open(files["json"], encoding="utf-8") as file:
            return json.load(file)

    @staticmethod
    def limit(result, operation):
        """The machine's own limit of that operation's copies, GB/s: one way, or both ways at once where arrays come back."""
        ceilings = result.get("ceilings", {})
        if operation == "rmse":
            return ceilings.get("h2d", 0) / 1e9
        return (ceilings.get("h2d_both", 0) + ceilings.get("d2h_both", 0)) / 1e9

    def study(self, server, operation):
        connections = ",".join(map(str, self.options.connections))
        result = self.load(server, f"study-{operation}", [
            "study", operation, "--via", "wire", "--sizes", self.options.size, "--connections", connections, "--seconds",
            self.options.seconds])
        cells = {(cell["connections"], cell["overlap"]): cell["bytes_per_second"] / 1e9 for cell in result["study"]}
        for count in self.options.connections:
            self.add(self.study_row(operation, count), cells[count, True], without=cells[count, False],
                     limit=self.limit(result, operation))

    def scenario(self, name, callers, **operation):
        path = os.path.join(self.folder, f"{name}-scenario.json")
        write_text(path, json.dumps({"name": name, "mode": {"type": "closed", "callers": callers}, "inputs": 2,
                                     "seconds": self.options.seconds, "operations": [operation]}))
        return path

    def busy(self, server, operation):
        """Several callers at once, each with one connection."""
        callers = self.options.callers
        elements = self.options.size // 4
        columns = 1 << ((elements.bit_length() - 1) // 2)
        path = self.scenario(f"run-{operation}", callers, operation=operation, shape=[elements // columns, columns],
                             access="stream")
        result = self.load(server, f"run-{operation}", ["run", path, "--ceilings"])
        self.add(self.busy_row(operation), result["total"]["bytes_per_second"] / 1e9, limit=self.limit(result, operation))

    def small(self, server):
        path = self.scenario("run-small", 1, operation="rmse", shape=[1024], access="unary")
        self.add(SMALL, self.load(server, "run-small", ["run", path])["total"]["latency_us"]["p50"])

    def measure(self, rows, how, *words):
        """A failure is the rows' in this round, not the run's."""
        self.stopper.check()
        try:
            how(*words)
        except Failure as failure:
            self.stopper.check()  # Ctrl-C ends the programs too, which is no failure of theirs
            for row in rows:
                self.failures.setdefault(row, []).append(str(failure))

    def round(self):
        try:
            with Server(self.server_program, ["--device", self.options.device]) as server:
                self.device = server.device
                for operation in OPERATIONS:
                    self.measure([self.study_row(operation, count) for count in self.options.connections], self.study, server,
                                 operation)
                    self.measure([self.busy_row(operation)], self.busy, server, operation)
                self.measure([SMALL], self.small, server)
        except Failure as failure:  # no server, no rows
            self.stopper.check()
            for row in self.rows():
                self.failures.setdefault(row, []).append(str(failure))

    def arrays(self, operation):
        return f"{operation}, {'2 x ' * (operation == 'rmse')}{size_text(self.options.size)}"

    def study_row(self, operation, connections):
        return f"{self.arrays(operation)}, one caller, {plural(connections)}"

    def busy_row(self, operation):
        return f"{self.arrays(operation)}, {self.options.callers} callers"

    def rows(self):
        """Names of all rows in the order of the table."""
        return [row for operation in OPERATIONS for row in (
            *(self.study_row(operation, count) for count in self.options.connections), self.busy_row(operation))] + [SMALL]


def make_row(name, loads, peers):
    """A row of the report, as compare.py's: ours, and everything there is to hold it against."""
    less = name == SMALL
    row = {"name": name, "unit": "us" if less else "GB/s", "better": "less" if less else "more",
           "failed": loads.failures.get(name, []), "beside": []}
    ours = None
    if loads.found.get(name):
        row["tilewire"] = spread(loads.found[name])
        ours = row["tilewire"]["median"]
    for key, title, kind in (("without", "without overlap", "peer"), ("limit", "copy limit", "ceiling")):
        values = loads.beside.get(name, {}).get(key)
        if values:
            row["beside"].append(beside_cell(title, kind, less, ours, spread(values)["median"], None))
    if peers and name.startswith("rmse"):
        for peer in [*peers.names, *([os.path.basename(peers.script)] if peers.missing else [])]:
            value, missing = peers.value(peer + " small" if less else peer)
            if not less or value is not None or peers.missing:
                row["beside"].append(beside_cell(peer, "peer", less, ours, value, missing))
    return row


def keep(folder, kept):
    """The results and pages of the last round."""
    try:
        os.makedirs(kept, exist_ok=True)
        for name in sorted(os.listdir(folder)):
            with open(os.path.join(folder, name), encoding="utf-8") as source, open(
                    os.path.join(kept, name), "w", encoding="utf-8") as copy:
                copy.write(source.read())
    except OSError as error:
        raise Failure(f"{kept}: {error.strerror}") from error


def peers_round(peers, stopper):
    """What asks for the end ends the script too, which is no failure of its."""
    missing = peers.missing
    peers.round()
    if stopper.asked:
        peers.missing = missing


def measure(options):
    """The report of all rounds as one object, ready for JSON."""
    peers = Peers(options.peers, options.timeout) if options.peers else None
    stopper = Stopper()

    def report():
        return {"version": 1, "device": loads.device, "rounds": rounds, "size": options.size,
                "rows": [make_row(name, loads, peers) for name in loads.rows()]}

    with scratch_folder() as folder:
        loads, rounds = Loads(options, folder, stopper), 0
        try:
            for number in range(options.rounds):
                tell(f"round {number + 1} of {options.rounds}: loads")
                loads.round()
                stopper.check()
                if peers:
                    write_report(options, report(), render, to_stdout=False)
                    tell(f"round {number + 1} of {options.rounds}: peers")
                    peers_round(peers, stopper)
                    stopper.check()
                rounds += 1
                write_report(options, report(), render, to_stdout=False)
                if options.keep:
                    keep(folder, options.keep)
        except Stopped:  # machines are lent for a while, and what was measured is worth having
            tell(f"stopped after {rounds} rounds; what the one begun has measured counts")
            if options.keep:
                keep(folder, options.keep)
    return report()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", help="bundle or build folder with Tilewire's programs")
    add_common_options(parser)
    parser.add_argument("--peers", metavar="FILE", help="Python script whose command `rpc` measures other services")
    parser.add_argument("--size", type=byte_size, default=byte_size("256MiB"), help="of one operand (default: 256MiB)")
    parser.add_argument("--connections", type=numbers, default=[1, 4, 8], help="of the study's calls (default: 1,4,8)")
    parser.add_argument("--callers", type=int, default=4, help="of the closed loops (default: 4)")
    parser.add_argument("--seconds", type=float, default=2, help="of each measurement (default: 2)")
    parser.add_argument("--timeout", type=float, default=600, help="seconds that any one program may take (default: 600)")
    parser.add_argument("--keep", metavar="FOLDER", help="copy results and pages of the last round there")
    options = parser.parse_args()
    if options.rounds < 1 or options.callers < 1 or options.seconds <= 0:
        parser.error("--rounds and --callers are at least 1, --seconds over 0")
    report = report_of(options, measure, render)
    if report is None:
        return 2
    return 0 if any("tilewire" in row for row in report["rows"]) else 1


if __name__ == "__main__":
    sys.exit(main())
