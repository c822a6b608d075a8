"""What the layout checks share: finding the project's files and reporting what is wrong with them."""
import os
import subprocess
import sys

# Folders that hold what a build or a tool made; only looked at where git cannot say what is ours.
SKIPPED = {"build", "bundle", "generated", "__pycache__", "node_modules"}


def project_files(root, suffixes):
    """Paths below root, relative, with '/', sorted: what git tracks or would track; without git a walk of the tree."""
    files = _git_files(root)
    if files is None:
        files = _walk(root)
    return sorted(f for f in files if f.endswith(tuple(suffixes)) and os.path.isfile(os.path.join(root, f)))


def _git_files(root):
    if not os.path.exists(os.path.join(root, ".git")):
        return None  # a source archive, perhaps unpacked inside another repository
    command = ["git", "-c", "safe.directory=*", "-C", root, "ls-files", "-z", "--cached", "--others",
               "--exclude-standard"]
    try:
        output = subprocess.run(command, capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    return [f for f in output.decode().split("\0") if f]


def _walk(root):
    files = []
    for folder, names, found in os.walk(root):
        names[:] = [n for n in names if not _is_skipped(folder, n)]
        relative = os.path.relpath(folder, root).replace(os.sep, "/")
        files += [f if relative == "." else f"{relative}/{f}" for f in found]
    return files


def _is_skipped(folder, name):
    if name.startswith(".") or name in SKIPPED or name.startswith("build-"):
        return True
    return os.path.exists(os.path.join(folder, name, "CMakeCache.txt"))


def read_lines(root, path):
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
        return file.read().splitlines()


def finish(what, checked, problems):
    """Prints the problems and ends the program; no file found at all is a problem too."""
    for problem in problems:
        print(problem)
    if checked == 0:
        print(f"{what}: found no files to check")
    print(f"{what}: {checked} checked, {len(problems)} wrong")
    sys.exit(1 if problems or checked == 0 else 0)
