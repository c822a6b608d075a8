"""Checks that every source file can be read in a sitting: at most 300 lines. Usage: sizes.py ROOT"""
import sys

import tree

MAX_LINES = 300
SUFFIXES = (".cc", ".h", ".cu", ".cuh", ".inc", ".py", ".sh", ".cmake", "CMakeLists.txt", ".proto", ".js", ".css", ".html", ".go", ".java")
# Tables written by a program.
GENERATED = {"kernels/rmse/golden.h", "kernels/rmse/golden_table.inc"}


def main():
    root = sys.argv[1]
    files = [f for f in tree.project_files(root, SUFFIXES) if f not in GENERATED]
    problems = []
    for path in files:
        lines = len(tree.read_lines(root, path))
        if lines > MAX_LINES:
            problems.append(f"{path}:{lines}: {lines} lines; allowed: {MAX_LINES}")
    tree.finish("file sizes", len(files), problems)


if __name__ == "__main__":
    main()
