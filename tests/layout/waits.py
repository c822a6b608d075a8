"""Checks that tests wait for what they wait for, not for time to pass. Usage: waits.py ROOT

A sleep makes a test slow where the machine is fast, and wrong where it is slow. The few files that must see real time
are listed in tests/README.md with their reasons; a file on that list that does not need to be there is wrong too.
"""
import re
import sys

import tree

SUFFIXES = (".cc", ".h", ".cu", ".cuh", ".py", ".sh")
# A future that is not ready after some time is a sleep as well, and so is waiting until nothing has moved for a while.
SLEEP = re.compile(r"\b(sleep_for|sleep_until|usleep|nanosleep|WaitUntilQuiet)\s*\(|\btime\.sleep\b|^\s*sleep\s+[\d$]"
                   r"|future_status::timeout")
HEADING, ROW = "## Tests that see real time", re.compile(r"^\| `([^`]+)` \|")
MOST = 10


def is_test(path):
    if not path.startswith("tests/") or path.startswith("tests/layout/"):
        return False
    # Programs that measure are no tests; the tests of their scripts are.
    measures = path.startswith("tests/bench/") or path == "tests/gpu/measure.sh"
    return not measures or path.endswith("_test.py")


def listed(root):
    """path -> line in tests/README.md, of the files that may see real time."""
    found, inside = {}, False
    for number, line in enumerate(tree.read_lines(root, "tests/README.md"), 1):
        if line.startswith("#"):
            inside = line == HEADING
        match = ROW.match(line) if inside else None
        if match:
            found["tests/" + match.group(1)] = number
    return found


def main():
    root = sys.argv[1]
    allowed = listed(root) if tree.project_files(root, ("tests/README.md",)) else {}
    paths = [path for path in tree.project_files(root, SUFFIXES) if is_test(path)]
    problems, used = [], set()
    for path in paths:
        for number, line in enumerate(tree.read_lines(root, path), 1):
            if not SLEEP.search(line):
                continue
            used.add(path)
            if path not in allowed:
                problems.append(f"{path}:{number}: sleeps; wait for the condition itself (tests/unit/waiting.h), or let time "
                                "pass that the test owns (server/base/time_source.h)")
    problems += [f"tests/README.md:{allowed[path]}: {path} does not sleep; it need not be listed"
                 for path in sorted(set(allowed) - used)]
    if len(allowed) > MOST:
        problems.append(f"tests/README.md: {len(allowed)} files see real time; allowed: {MOST}")
    tree.finish("waits", len(paths), problems)


if __name__ == "__main__":
    main()
