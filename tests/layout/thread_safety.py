"""Clang reads sources one by one: those that a build compiles together (the builds of people and of releases do not) must be right alone, and who
touches what a Mutex guards, without it, is an error.

Usage: thread_safety.py ROOT BUILD [--only REGEX] [--clang PROGRAM] [--jobs N] [--list]

BUILD is a finished build: its compile_commands.json says where headers are and what is compiled together, and it holds the generated ones.
Beside those, sources of server/, client/ and tests/devices/ that see server/base/thread_annotations.h are looked at; other locks are not
allowed (includes.py). Exit status 1: something is wrong; 77: no clang here that can read the sources.
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

import includes

CLANGS = ("clang++-16", "clang++-17", "clang++-18", "clang++-19", "clang++")
OLDEST = 16  # older ones do not read libstdc++'s C++20
FOLDERS = ("server/", "client/", "tests/devices/")  # what may have locks
MARK = "server/base/thread_annotations.h"
FLAGS = ("-fsyntax-only", "-Wno-everything", "-Wthread-safety", "-Wthread-safety-beta", "-Werror=thread-safety",
         "-Werror=thread-safety-beta")
SKIPPED = 77
TOGETHER = re.compile(r"/Unity/unity_\d+_cxx\.cxx$")
CUDA = os.path.join(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "include")
CUDA_SOURCE = re.compile(r"^server/engine/device/cuda/\w+\.cc$")


def find_clang(wanted):
    """A clang that is new enough, or None."""
    for name in (wanted,) if wanted else CLANGS:
        path = shutil.which(name)
        if not path:
            continue
        asked = subprocess.run([path, "-dumpversion"], capture_output=True, text=True, check=False)
        if asked.returncode == 0 and int(asked.stdout.split(".")[0]) >= OLDEST:
            return path
    return None


def kept_flags(command):
    """Of a compiler's command what says where headers are and what is defined."""
    words = shlex.split(command)
    flags = []
    for i, word in enumerate(words):
        if word in ("-isystem", "-I", "-D"):
            flags += [word, words[i + 1]]
        elif word.startswith(("-I", "-D", "-std=")):
            flags.append(word)
    return tuple(flags)


def compiled(entry):
    """The sources that an entry of compile_commands.json compiles: several where CMake puts them together."""
    if not TOGETHER.search(entry["file"]):
        return [entry["file"]]
    with open(entry["file"], encoding="utf-8") as file:
        return re.findall(r'^#include "(.+)"$', file.read(), re.MULTILINE)


def sources(root, build):
    """(path, folder to run in, flags) of every source to look at, and those that the build does not know."""
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        commands = {os.path.relpath(source, root): entry for entry in json.load(file) for source in compiled(entry)}
    together = {path for path, entry in commands.items() if TOGETHER.search(entry["file"])}
    tree = includes.Includes(root, includes.TOP + ("tests/",))
    marked = [path for path in tree.files if path in together or
              path.startswith(FOLDERS) and path.endswith(".cc") and MARK in tree.reached(path)]
    known = [(path, commands[path]["directory"], kept_flags(commands[path]["command"]))
             for path in marked if path in commands]
    unknown = [path for path in marked if path not in commands]
    like = next((source for source in known if source[0].startswith("server/engine/")), None)
    if like and os.path.isfile(os.path.join(CUDA, "cuda_runtime_api.h")):  # a build without CUDA beside a toolkit
        known += [(path, like[1], like[2] + ("-isystem", CUDA)) for path in unknown if CUDA_SOURCE.search(path)]
        unknown = [path for path in unknown if not CUDA_SOURCE.search(path)]
    return tree, known, unknown


def outside(tree, path):
    """What `path` includes that is not in the source tree, also through ours: foreign and generated headers."""
    found = set()
    for own in tree.reached(path):
        found.update((kind, header) for _, kind, header in tree.files[own] if header not in tree.files)
    return found


def precompile(clang, folder, flags, headers):
    """The headers, read once for all sources with these flags; None where they cannot be read together."""
    text = "".join(f"#include <{header}>\n" if kind == "<" else f'#include "{header}"\n'
                   for kind, header in sorted(headers))
    stem = os.path.join(folder, hashlib.sha256(repr((flags, text)).encode()).hexdigest()[:16])
    with open(stem + ".h", "w", encoding="utf-8") as file:
        file.write(text)
    command = [clang, "-x", "c++-header", *flags, "-Wno-everything", "-fpch-instantiate-templates", stem + ".h", "-o", stem + ".pch"]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    return stem + ".pch" if made.returncode == 0 else None


def check(clang, root, path, directory, flags, pch):
    """`pch`: a future of the precompiled headers, or None."""
    made = pch.result() if pch else None
    known = ["-include-pch", made] if made else []
    command = [clang, *flags, *known, *FLAGS, os.path.join(root, path)]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("root")
    parser.add_argument("build")
    parser.add_argument("--only", default="", help="only sources whose paths match")
    parser.add_argument("--clang")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--list", action="store_true", help="print the sources, check nothing")
    options = parser.parse_args()
    root = os.path.abspath(options.root)
    tree, known, unknown = sources(root, options.build)
    known, unknown = ([entry for entry in known if re.search(options.only, entry[0])],
                      [path for path in unknown if re.search(options.only, path)])
    if options.list:
        print("\n".join(path for path, _, _ in known))
        return 0
    clang = find_clang(options.clang)
    if clang is None:
        print(f"thread safety: skipped, no clang {OLDEST} or newer here")
        return SKIPPED
    wrong = 0
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        groups = {}
        for source in known:
            path, _, flags = source
            groups.setdefault((flags, path.startswith("server/engine/")), []).append(source)
        checks, precompiled = {}, {}
        for (flags, place), members in sorted(groups.items(), key=lambda group: -len(group[1])):
            if len(members) > 2:
                headers = set().union(*(outside(tree, path) for path, _, _ in members))
                precompiled[flags, place] = pool.submit(precompile, clang, folder, flags, headers)
        for (flags, place), members in groups.items():  # after all of those, so that none waits for one that is just begun
            for path, directory, _ in members:
                checks[path] = pool.submit(check, clang, root, path, directory, flags, precompiled.get((flags, place)))
        for path, future in checks.items():
            status, text = future.result()
            if status != 0:
                wrong += 1
                print(f"{path}: not thread-safe, or does not compile alone:\n{text}")
    for path in unknown:
        print(f"{path}: not part of this build, not looked at")
    print(f"thread safety: {len(known)} sources, {wrong} wrong")
    return 1 if wrong or not known else 0


if __name__ == "__main__":
    sys.exit(main())
