"""Clang reads sources: those that a build compiles together (the builds of people and of releases do not) must be right alone, and who touches
what a Mutex guards, without it, is an error. Those with the same flags are read at once (joined.py), and alone if anything seems wrong then.

Usage: thread_safety.py ROOT BUILD [--only REGEX] [--clang PROGRAM] [--jobs N] [--list]

BUILD is a finished build: its compile_commands.json says where headers are and what is compiled together, and it holds the generated ones.
Beside those, sources of server/, client/ and tests/devices/ that see server/base/thread_annotations.h are looked at; other locks are not
allowed (includes.py). Exit status 1: something is wrong; 77: no clang here that can read the sources.
"""
import argparse
import concurrent.futures
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

import includes
import incomplete
import joined

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


def outside(root, tree, paths):
    """Text that includes all that `paths` include and that is not in the source tree, also through ours: foreign and generated headers."""
    found = set()
    for own in set().union(*(tree.reached(path) for path in paths)):
        found.update((kind, header) for _, kind, header in tree.files[own]
                     if header not in tree.files and not os.path.isfile(os.path.join(root, header)))
    return "".join(f"#include <{header}>\n" if kind == "<" else f'#include "{header}"\n' for kind, header in sorted(found))


class Group:
    """Sources with the same flags that can be read at once."""

    def __init__(self, clang, root, tree, pool, paths, directory, flags):
        self.clang, self.root, self.tree, self.pool = clang, root, tree, pool
        self.paths, self.directory, self.flags = paths, directory, flags
        self.reading = pool.submit(self.read_all, paths)

    def read(self, *words):
        """Exit status and what clang says."""
        done = subprocess.run([self.clang, *self.flags, *words], cwd=self.directory, capture_output=True, text=True, check=False)
        return done.returncode, done.stderr

    def read_all(self, paths):
        """By one clang: exit status and what it says."""
        if len(paths) == 1:
            return self.read(*FLAGS, os.path.join(self.root, paths[0]))
        own = [path for path in set().union(*(self.tree.reached(path) for path in paths)) if path.endswith(".h")]
        with tempfile.TemporaryDirectory() as folder:
            text, flags = joined.write(folder, self.root, paths, sorted(own), outside(self.root, self.tree, paths))
            return self.read(*flags, *FLAGS, text)

    def read_each(self, paths):
        """Those that are wrong, each with what clang says."""
        with tempfile.TemporaryDirectory() as folder:
            known = ()
            if len(paths) > 2:  # foreign and generated headers take longest: read once, where they can be read together
                header, made = os.path.join(folder, "all.h"), os.path.join(folder, "all.pch")
                with open(header, "w", encoding="utf-8") as file:
                    file.write(outside(self.root, self.tree, paths))
                status, _ = self.read("-x", "c++-header", "-Wno-everything", "-fpch-instantiate-templates", header, "-o", made)
                known = ("-include-pch", made) if status == 0 else ()
            readings = {path: self.pool.submit(self.read, *known, *FLAGS, os.path.join(self.root, path)) for path in paths}
            results = {path: reading.result() for path, reading in readings.items()}
        return {path: text for path, (status, text) in results.items() if status != 0}

    def wrong(self):
        """Those that are wrong, each with what clang says of it alone; not always all, if any."""
        paths, (status, text) = self.paths, self.reading.result()
        while status != 0:
            if len(paths) == 1:
                return {paths[0]: text}
            suspects = joined.suspects(self.root, paths, text)
            found = self.read_each(suspects or paths)
            paths = [path for path in paths if path not in suspects]
            if found or not suspects or not paths:
                return found
            # An error in what is right alone hides others: clang looks at no locks after it.
            print(f"read once more, for what clang finds only at once is wrong with: {' '.join(suspects)}")
            status, text = self.read_all(paths)
        return {}


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
    groups = {}
    for path, directory, flags in known:
        groups.setdefault((directory, flags, path.startswith("server/engine/")), []).append(path)
    wrong = {}
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        parts = [(part, *place) for place, paths in groups.items() for part in incomplete.split(root, tree, paths)]
        parts.sort(key=lambda part: -len(part[0]))
        for group in [Group(clang, root, tree, pool, paths, directory, flags) for paths, directory, flags, _ in parts]:
            wrong.update(group.wrong())
    for path, text in wrong.items():
        print(f"{path}: not thread-safe, or does not compile alone:\n{text}")
    for path in unknown:
        print(f"{path}: not part of this build, not looked at")
    print(f"thread safety: {len(known)} sources, {len(wrong)} wrong")
    return 1 if wrong or not known else 0


if __name__ == "__main__":
    sys.exit(main())
