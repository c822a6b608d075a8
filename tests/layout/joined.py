"""Several sources read by one clang: what they include is read once, and yet each of them sees no more than it includes itself.

Every source and every header of ours is a submodule, so clang hides in each what only another one declares or defines. Two things have other
names in what it reads, for in a submodule it finds neither a second unnamed namespace nor a second main(). Modules being stricter, and less
used, than plain includes, what it complains about here is a reason to read a source alone, no more.
"""

import json
import os
import re

FLAGS = (
    "-fmodules",
    "-fno-implicit-modules",
    "-fno-implicit-module-maps",
    "-Xclang",
    "-fmodules-local-submodule-visibility",
    "-fmodule-name=Own",
    "-ferror-limit=0",
)
UNNAMED = re.compile(r"^namespace \{", re.MULTILINE)
MAIN = re.compile(r"^int main\(", re.MULTILINE)
PLACE = re.compile(r"(/[^\s:']+):\d+")


def name_of(path):
    return "Of_" + "".join(c if c.isalnum() else f"_{ord(c):x}_" for c in path)


def write(folder, root, paths, own, foreign):
    """Writes into `folder` what clang is to read, and returns it with the flags for it. `own`: the headers that are submodules; `foreign`:
    text that includes the others, which all of the sources see."""
    submodules = "".join(f'  module {name_of(path)} {{ header "{os.path.join(root, path)}" export * }}\n' for path in (*own, *paths))
    instead = []  # under their own names, for clang tells places by them
    for i, path in enumerate(paths):
        with open(os.path.join(root, path), encoding="utf-8") as file:
            text = file.read()
        text = UNNAMED.sub(f"inline namespace {name_of(path)} {{", text)
        text = MAIN.sub(f"int main_{name_of(path)}(", text)
        place = os.path.join(folder, f"{i}.cc")
        with open(place, "w", encoding="utf-8") as file:
            file.write(text)
        instead.append({"type": "file", "name": os.path.join(root, path), "external-contents": place})
    written = {
        "own.modulemap": f"module Own {{\n{submodules}}}\n",
        "instead.json": json.dumps({"version": 0, "use-external-names": False, "roots": instead}),
        "all.cc": foreign + "".join(f'#include "{os.path.join(root, path)}"\n' for path in paths),
    }
    for name, text in written.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)
    return os.path.join(folder, "all.cc"), (
        *FLAGS,
        "-fmodule-map-file=" + os.path.join(folder, "own.modulemap"),
        "-ivfsoverlay",
        os.path.join(folder, "instead.json"),
    )


def suspects(root, paths, text):
    """The sources that a failed reading's output names."""
    places = set(PLACE.findall(text))
    return [path for path in paths if os.path.join(root, path) in places]
