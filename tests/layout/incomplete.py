"""Which sources must not be read at once, because of a type that one of them only declares and another one defines.

A template that needs the whole type, as unique_ptr's deleter does, is instantiated once for all that clang reads at once, and there sees the
definition, wherever it is.
"""

import os
import re

ATTRIBUTES = r"(?:\[\[\w+\]\] |alignas\(\w+\) |[A-Z_]{4,}(?:\([^)]*\))? )*"
DECLARED = re.compile(rf"^( *)(?:template <.*> )?(?:class|struct) {ATTRIBUTES}(\w+);", re.MULTILINE)
DEFINED = re.compile(rf"^( *)(?:class|struct) {ATTRIBUTES}([\w:]+)(?: final)?\s*(?::[^:;{{][^;{{]*)?\{{", re.MULTILINE)


def names(text, pattern):
    """Of the types that match; of a nested one with the name of the class around it."""
    defined = [(match.start(), match[1], match[2]) for match in DEFINED.finditer(text)]
    found = set()
    for match in pattern.finditer(text):
        around = [name for start, indent, name in defined if start < match.start() and len(indent) < len(match[1])]
        found.add("::".join("::".join(around[-1:] + [match[2]]).split("::")[-2:]))
    return found


def split(root, tree, paths):
    """Lists of those of `paths` that can be read at once."""
    declared, defined = {}, {}
    for path in set().union(*(tree.reached(path) for path in paths)):
        with open(os.path.join(root, path), encoding="utf-8") as file:
            text = file.read()
        declared[path], defined[path] = names(text, DECLARED), names(text, DEFINED)
    parts = []  # each: its sources, what one of them only declares, what they define
    for path in paths:
        here = set().union(*(defined[file] for file in tree.reached(path)))
        missing = set().union(*(declared[file] for file in tree.reached(path))) - here
        for part in parts:
            if not missing & part[2] and not here & part[1]:
                break
        else:
            part = ([], set(), set())
            parts.append(part)
        part[0].append(path)
        part[1].update(missing)
        part[2].update(here)
    return [part[0] for part in parts]
