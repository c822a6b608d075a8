#!/usr/bin/env python3
"""Block size x lanes x overlap of a server, connections and size of a call: what is best where?

    sweep.py FOLDER [--operation rmse] [--blocks 1MiB,4MiB,16MiB] [--lanes 1,2,4] [--overlap both]
                    [--connections 1,4,8] [--mib 64,1024] [--rounds 3] [--csv FILE] [--json FILE] [--markdown FILE]

FOLDER is a bundle or a build. Every round starts every server once and calls it in every way, so that all settings meet
the same machine; figures are medians. A setting that the server refuses is named with its reason, the rest goes on.
"""
import argparse
import csv
import io
import itertools
import json
import os
import sys

from programs import (Failure, Server, call, figures, find_program, matrix_shape, numbers, scratch_folder, spread, table,
                      write_npy, write_text)

OPERATIONS = ("rmse", "transpose", "gaussian-pdf")
SETTING = ("block_bytes", "lanes", "overlap")
# Of the server's timing: medians of what one call spends in each stage, so that a slow setting explains itself.
STAGES = ("receive_us", "stage_us", "h2d_us", "kernel_us", "d2h_us", "send_us", "other_us", "wall_us")


class Sweep:
    """All measurements: `cells` has one entry for a setting of the server and a form of the call."""

    def __init__(self, options, folder):
        self.options, self.folder, self.device = options, folder, None
        self.client, self.program = (find_program(options.folder, name) for name in ("tilewire", "tilewired"))
        self.settings = list(itertools.product(options.blocks, options.lanes, options.overlap))
        self.forms = list(itertools.product(options.operation, options.mib, options.connections))
        self.seen = {key: [] for key in itertools.product(self.settings, self.forms)}
        self.errors = {}
        for mib in options.mib:
            for seed, name in enumerate("ab"):
                write_npy(self.path(f"{name}{mib}.npy"), *matrix_shape(mib), seed)

    def path(self, name):
        return os.path.join(self.folder, name)

    def words(self, form):
        operation, mib, connections = form
        a, b, out = self.path(f"a{mib}.npy"), self.path(f"b{mib}.npy"), self.path("out.npy")
        arguments = {"rmse": [a, b], "transpose": [a, out], "gaussian-pdf": [a, out, "--mean", 0.5, "--stddev", 0.2]}
        return ["--connections", connections, operation, *arguments[operation]]

    def round(self):
        for setting in self.settings:
            if setting in self.errors:
                continue
            block, lanes, overlap = setting
            flags = ["--device", self.options.device, "--block-bytes", block, "--lanes", str(lanes)]
            try:
                with Server(self.program, flags + ([] if overlap == "on" else ["--no-overlap"])) as server:
                    self.device = server.device
                    # A call of the largest size first: a server grows its pools when they are first used.
                    call(self.client, server.address, self.words((self.forms[0][0], max(self.options.mib), 1)),
                         self.options.timeout)
                    self.call_in_every_form(setting, server)
            except Failure as failure:
                self.errors[setting] = str(failure)

    def call_in_every_form(self, setting, server):
        for form in self.forms:
            if (setting, form) in self.errors:
                continue
            try:
                self.seen[setting, form].append(call(self.client, server.address, self.words(form),
                                                     self.options.timeout)["timing"])
            except Failure as failure:
                self.errors[setting, form] = str(failure)

    def cell(self, setting, form):
        """One line of the CSV: the setting, the form, and a rate or the reason why there is none."""
        cell = dict(zip(SETTING, setting)) | dict(zip(("operation", "mib", "connections"), form))
        error = self.errors.get(setting) or self.errors.get((setting, form))
        timings = self.seen[setting, form]
        if error or not timings:
            return cell | {"error": error or "not measured"}
        rates = spread([timing["bytes_in"] / timing["client_wall_us"] / 1e3 for timing in timings])
        cell |= {"gb_per_s": rates["median"], "gb_per_s_min": rates["min"], "gb_per_s_max": rates["max"]}
        for name, stage in [*((stage, stage) for stage in STAGES), ("overlap_factor", "overlap")]:
            values = [timing[stage] for timing in timings if stage in timing]
            cell[name] = spread(values)["median"] if values else None
        return cell | {"streams": timings[-1]["streams"], "bottleneck": timings[-1].get("bottleneck", "")}

    def report(self):
        cells = [self.cell(setting, form) for form in self.forms for setting in self.settings]
        return {"version": 1, "device": self.device, "rounds": self.options.rounds, "cells": cells,
                "best": [best(cells, form) for form in self.forms]}


def of_form(cells, form):
    return [cell for cell in cells if (cell["operation"], cell["mib"], cell["connections"]) == form]


def best(cells, form):
    """The fastest setting of a form, and what overlap is worth there: its rate over the same setting's without."""
    entry = dict(zip(("operation", "mib", "connections"), form))
    measured = [cell for cell in of_form(cells, form) if "gb_per_s" in cell]
    if not measured:
        return entry | {"error": of_form(cells, form)[0]["error"]}
    top = max(measured, key=lambda cell: cell["gb_per_s"])
    entry |= {key: top[key] for key in (*SETTING, "gb_per_s", "bottleneck")}
    twin = [cell for cell in measured if cell["overlap"] != top["overlap"] and
            all(cell[key] == top[key] for key in SETTING[:2])]
    if twin:
        on, off = (top, twin[0]) if top["overlap"] == "on" else (twin[0], top)
        entry["overlap_gain"] = on["gb_per_s"] / off["gb_per_s"]
    return entry


def render(report, markdown):
    """A row for a form of the call, a column for a setting of the server; the best of each row has a star."""
    cells, notes = report["cells"], []
    settings = list(dict.fromkeys(tuple(cell[key] for key in SETTING) for cell in cells))
    head = ["", *(f"{block} x {lanes}{'' if overlap == 'on' else ' off'}" for block, lanes, overlap in settings), "best",
            "overlap"]
    lines = []
    for entry in report["best"]:
        form = (entry["operation"], entry["mib"], entry["connections"])
        line = [f"{form[0]} {form[1]} MiB, {form[2]} conn."]
        for cell in of_form(cells, form):
            if "error" in cell:
                if cell["error"] not in notes:
                    notes.append(cell["error"])
                line.append(f"failed [{notes.index(cell['error']) + 1}]")
            else:
                top = all(cell[key] == entry[key] for key in SETTING)
                line.append(figures(cell["gb_per_s"]) + ("*" if top else " "))
        line.append("-" if "error" in entry else f"{entry['block_bytes']} x {entry['lanes']}" +
                    ("" if entry["overlap"] == "on" else " off"))
        line.append(f"x{figures(entry['overlap_gain'])}" if "overlap_gain" in entry else "-")
        lines.append(line)
    text = (f"{report['device'] or 'no device'}; GB/s of input as the client sees it, medians of {report['rounds']} "
            f"round{'s' * (report['rounds'] > 1)}; columns: block x lanes, off: --no-overlap; last column: what overlap is worth "
            "at the best setting")
    end = [f"[{i + 1}] {note}" for i, note in enumerate(notes)]
    return "\n".join([text, "", table(head, lines, markdown), *([""] if end else []),
                      ("\n\n" if markdown else "\n").join(end)]).rstrip()


def as_csv(report):
    names = list(dict.fromkeys(name for cell in report["cells"] for name in cell))
    text = io.StringIO()
    writer = csv.DictWriter(text, names, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(report["cells"])
    return text.getvalue().rstrip("\n")


def words_of(*allowed):
    """An argparse type: words separated by commas, of those allowed where there are any."""
    def words(text):
        found = text.split(",")
        if not all(word and (not allowed or word in allowed) for word in found):
            raise argparse.ArgumentTypeError(f"{text!r}; allowed: {', '.join(allowed) or 'words'}, separated by commas")
        return found
    return words


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", help="bundle or build folder with Tilewire's programs")
    parser.add_argument("--operation", type=words_of(*OPERATIONS), default=["rmse"], help="of " + ", ".join(OPERATIONS))
    parser.add_argument("--device", default="auto", help="of tilewired (default: auto)")
    parser.add_argument("--blocks", type=words_of(), default=["1MiB", "4MiB", "16MiB"], help="default: 1MiB,4MiB,16MiB")
    parser.add_argument("--lanes", type=numbers, default=[1, 2, 4], help="default: 1,2,4")
    parser.add_argument("--overlap", choices=("on", "off", "both"), default="both", help="default: both")
    parser.add_argument("--connections", type=numbers, default=[1, 4, 8], help="default: 1,4,8")
    parser.add_argument("--mib", type=numbers, default=[64, 1024], help="MiB of one operand (default: 64,1024)")
    parser.add_argument("--rounds", type=int, default=3, help="default: 3")
    parser.add_argument("--timeout", type=float, default=600, help="seconds that one call may take (default: 600)")
    for kind in ("csv", "json", "markdown"):
        parser.add_argument("--" + kind, metavar="FILE", help=f"write {kind} there (-: stdout, instead of the table)")
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error("--rounds is at least 1")
    options.overlap = ["on", "off"] if options.overlap == "both" else [options.overlap]
    return options


def main():
    options = parse()
    try:
        with scratch_folder() as folder:
            sweep = Sweep(options, folder)
            for number in range(options.rounds):
                print(f"round {number + 1} of {options.rounds}: {len(sweep.settings)} servers", file=sys.stderr, flush=True)
                sweep.round()
            report = sweep.report()
        for path, text in ((options.csv, as_csv(report)), (options.json, json.dumps(report, indent=1)),
                           (options.markdown, render(report, markdown=True))):
            if path:
                write_text(path, text)
    except Failure as failure:
        print(f"error: {failure}", file=sys.stderr)
        return 2
    if "-" not in (options.csv, options.json, options.markdown):
        print(render(report, markdown=False))
    return 1 if all("error" in entry for entry in report["best"]) else 0


if __name__ == "__main__":
    sys.exit(main())
