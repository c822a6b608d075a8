#!/usr/bin/env python3
"""Adds up one CTest run: prints "PASSED FAILED SKIPPED" on the first line, then the cases that failed or were skipped,
then the slowest entries.

Usage: count.py JUNIT REPORTS [--slowest N]

JUNIT is what `ctest --output-junit` wrote, one entry a GoogleTest suite or a script, or `pytest --junitxml`. REPORTS is the folder in which the
suites left reports of their own, PROGRAM.SUITE.xml: where an entry has one its cases count, elsewhere the entry does. An
entry that failed although all its reported cases passed (a crash, a leak found at the end, a time limit) is one failure
more. Exit code 1 where something failed or nothing was counted, 2 for files that cannot be read.
"""
import argparse
import pathlib
import sys
import xml.etree.ElementTree as xml


def cases_of(report):
    """(name, outcome) of every case of a GoogleTest report; nothing for one that was cut short."""
    try:
        root = xml.parse(report).getroot()
    except xml.ParseError:
        return
    if root.find(".//testcase") is None:
        yield report.stem, "failed"  # a suite without cases tests nothing
    for case in root.iter("testcase"):
        name = f"{case.get('classname')}.{case.get('name')}"
        if case.find("failure") is not None:
            yield name, "failed"
        elif case.get("status") == "notrun":
            continue  # disabled: by hand only
        elif case.get("result") == "skipped":
            yield name, "skipped"
        else:
            yield name, "passed"


def entry_outcome(entry):
    if entry.find("failure") is not None or entry.find("error") is not None or entry.get("status") == "fail":
        return "failed"
    return "skipped" if entry.find("skipped") is not None or entry.get("status") in ("notrun", "disabled") else "passed"


def count(junit, reports):
    """({outcome: [names]}, [(seconds, entry)])."""
    by_suite = {}
    for report in pathlib.Path(reports).glob("*.xml"):
        suite = report.stem.split(".", 1)[1]
        if suite in by_suite:
            raise ValueError(f"{report.name} and {by_suite[suite].name} have suites of one name")
        by_suite[suite] = report
    outcomes = {"passed": [], "failed": [], "skipped": []}
    seconds = []
    for entry in xml.parse(junit).getroot().iter("testcase"):
        name, outcome = entry.get("name"), entry_outcome(entry)
        seconds.append((float(entry.get("time") or 0), name))
        report = by_suite.get(name.replace("/", "-"))
        cases = list(cases_of(report)) if report and outcome != "skipped" else []
        for case, result in cases:
            outcomes[result].append(case)
        if not cases or (outcome == "failed" and all(result != "failed" for _, result in cases)):
            outcomes[outcome].append(name)
    return outcomes, seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("junit")
    parser.add_argument("reports")
    parser.add_argument("--slowest", type=int, default=0, metavar="N", help="also print the N entries that took longest")
    arguments = parser.parse_args()
    try:
        outcomes, seconds = count(arguments.junit, arguments.reports)
    except (OSError, ValueError, xml.ParseError) as error:
        print(f"count.py: error: {arguments.junit}: {error}", file=sys.stderr)
        return 2
    print(*(len(outcomes[key]) for key in ("passed", "failed", "skipped")))
    for key in ("skipped", "failed"):
        for name in outcomes[key]:
            print(f"{key}: {name}")
    for time, name in sorted(seconds, reverse=True)[:arguments.slowest]:
        print(f"{time:7.1f} s  {name}")
    return 1 if outcomes["failed"] or not any(outcomes.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
