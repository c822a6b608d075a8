"""Writes a device's table of kernels/rmse/RESULTS.md from what tilewire_kernel_bench measured.

    tilewire_kernel_bench '^(copies|layouts)/' --max-time 0.06 --json layouts.json
    python3 kernels/bench/rmse_results.py layouts.json --date 2026-11-22 --write kernels/rmse/RESULTS.md
    python3 kernels/bench/rmse_results.py layouts.json --before older.json     which layouts moved, on stdout

Several files are taken as one run. The table goes between the marks that name the device; without --write it is printed.
"""
import argparse
import json
import sys

MODES = ("cold", "hot")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="+", help="JSON of tilewire_kernel_bench")
    parser.add_argument("--before", nargs="+", default=[], help="JSON of the version that it is held against")
    parser.add_argument("--points", type=float, default=1, help="moves of up to so many points are left out")
    parser.add_argument("--date", default="", help="of the run")
    parser.add_argument("--write", metavar="PAGE", help="puts the table into this page")
    return parser.parse_args()


def layouts_of(paths):
    """The cases of the group `layouts` in order, the device and the read rates of the runs. Ends the program where one failed."""
    cases, device, rates = [], "", []
    for path in paths:
        with open(path, encoding="utf-8") as file:
            report = json.load(file)
        device = report["machine"]["gpu"]
        rates.append(report["limits_bytes_per_s"]["device read"] / 1e12)
        for case in report["results"]:
            if case["group"] != "layouts":
                continue
            if case["outcome"] != "measured":
                sys.exit(f"{path}: {case['name']}: {case['outcome']}: {case.get('reason', '')}")
            cases.append(case)
    return cases, device, rates


def share(case, mode):
    return case[mode]["share_of_limit"] * 100


def microseconds(case, mode):
    return f"{case[mode]['median_s'] * 1e6:.3g}" if case[mode]["median_s"] < 1e-4 else f"{case[mode]['median_s'] * 1e6:.0f}"


def shape_of(case):
    return "×".join(str(extent) for extent in case["shape"])


def over(axes):
    return " over " + ", ".join(map(str, axes)) if axes else ""


def rows(cases):
    """A row for all layouts of a kind, a dtype and axes; of a kind and all dtypes where one has but one shape."""
    kinds = {}
    for case in cases:
        kind = case["name"].split("/")[0]
        kinds.setdefault((kind, case["dtype"] if kind != "one" else "", tuple(case["axes"])), []).append(case)
    for (kind, dtype, axes), group in kinds.items():
        label = f"{kind}, {dtype}{over(axes)}" if dtype else "one segment"
        shapes = " · ".join(shape_of(c) if dtype else f"{c['dtype']} {shape_of(c)}" for c in group)
        yield [label, shapes] + [" · ".join(f"{share(c, m):.0f}" for c in group) for m in MODES] \
            + [" · ".join(microseconds(c, m) for c in group) for m in MODES]


def table(results, date):
    cases, device, rates = layouts_of(results)
    spread = f"{min(rates):.2f}" if max(rates) - min(rates) < .005 else f"{min(rates):.2f} to {max(rates):.2f}"
    lines = [f"{device}, {date}: {len(cases)} layouts. 100% is what a kernel that only reads gets in the same run, {spread} TB/s.", "",
             "| layouts | shapes | cold, % | hot, % | cold, µs | hot, µs |", "|---|---|---|---|---|---|"]
    lines += ["| " + " | ".join(row) + " |" for row in rows(cases)]
    return device, "\n".join(lines) + "\n"


def moved(results, before, points):
    """The layouts that moved, those that lost first."""
    now = {c["name"]: c for c in layouts_of(results)[0]}
    then = {c["name"]: c for c in layouts_of(before)[0]}
    if now.keys() != then.keys():
        sys.exit(f"not the same layouts: {sorted(now.keys() ^ then.keys())}")
    both = [m for m in MODES if all(m in c for c in (*now.values(), *then.values()))]
    gain = {n: [share(now[n], m) - share(then[n], m) for m in both] for n in now}
    lines = ["| layout | " + " | ".join(f"{m}, %" for m in both) + " |", "|---|" + "---|" * len(both)]
    for name in sorted(gain, key=lambda n: gain[n][-1]):
        if max(map(abs, gain[name])) > points:
            cells = [f"{share(then[name], m):.1f} → {share(now[name], m):.1f}" for m in both]
            lines.append(f"| {name.split('/', 1)[0]} {name.split('/', 1)[1]} | " + " | ".join(cells) + " |")
    few = sum(max(map(abs, g)) <= points for g in gain.values())
    return "\n".join(lines) + f"\n\n{few} of {len(gain)} layouts moved by {points:g} point{'s' * (points != 1)} at most.\n"


def put(page, device, text):
    begin, end = f"<!-- rmse_results: {device} -->\n", "<!-- end -->\n"
    with open(page, encoding="utf-8") as file:
        whole = file.read()
    if begin not in whole:
        sys.exit(f"{page} has no line {begin.strip()}")
    start = whole.index(begin) + len(begin)
    with open(page, "w", encoding="utf-8") as file:
        file.write(whole[:start] + text + whole[whole.index(end, start):])


def main():
    given = arguments()
    if given.before:
        print(moved(given.results, given.before, given.points), end="")
        return
    device, text = table(given.results, given.date)
    if given.write:
        put(given.write, device, text)
    else:
        print(text, end="")


if __name__ == "__main__":
    main()
