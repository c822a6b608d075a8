"""The list of kernels in kernels/rmse/CUDA.md is what tilewire_rmse_kernels prints.

Usage: rmse_kernels_test.py PROGRAM CUDA.md [--write]
"""
import subprocess
import sys

BEGIN, END = "<!-- tilewire_rmse_kernels -->\n", "<!-- end -->\n"


def main():
    program, page = sys.argv[1:3]
    table = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    with open(page, encoding="utf-8") as file:
        text = file.read()
    begin, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    if text[begin:end] == table:
        return 0
    if "--write" in sys.argv:
        with open(page, "w", encoding="utf-8") as file:
            file.write(text[:begin] + table + text[end:])
        return 0
    print(f"{page} has another list than {program} prints; --write puts it in")
    return 1


if __name__ == "__main__":
    sys.exit(main())
