"""Checks that relative links in Markdown files lead to something, headings included. Usage: links.py ROOT"""
import os
import re
import sys
import urllib.parse

import tree

LINK = re.compile(r'\[[^\]]*\]\(\s*<?([^)\s>]+)>?(?:\s+"[^"]*")?\s*\)|^\s*\[[^\]]+\]:\s*(\S+)|'
                  r'<(?:img|a)[^>]*?(?:src|href)="([^"]+)"')
FENCE = re.compile(r"^\s*(```|~~~)")
HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*$")


def prose(lines):
    """(number, line) outside of code blocks, inline code removed."""
    fenced = False
    for number, line in enumerate(lines, 1):
        if FENCE.match(line):
            fenced = not fenced
        elif not fenced:
            yield number, line


def anchors(root, path):
    """The names that GitHub gives to headings."""
    names = set()
    for _, line in prose(tree.read_lines(root, path)):
        match = HEADING.match(line)
        if not match:
            continue
        name = re.sub(r"[^\w\- ]", "", match.group(1).lower()).replace(" ", "-")
        count = 0
        while (name if count == 0 else f"{name}-{count}") in names:
            count += 1
        names.add(name if count == 0 else f"{name}-{count}")
    return names


def problem_of(root, path, target):
    if re.match(r"[a-zA-Z][a-zA-Z0-9+.-]*:", target):
        return None  # a URL: not checked, tests run without network
    file, _, heading = target.partition("#")
    full = os.path.normpath(os.path.join(os.path.dirname(path), urllib.parse.unquote(file))) if file else path
    if file.startswith("/") or full.startswith(".."):
        return "leaves the repository"
    if not os.path.exists(os.path.join(root, full)):
        return "does not exist"
    if heading and full.endswith(".md") and heading not in anchors(root, full):
        return f"{full} has no such heading"
    return None


def main():
    root = sys.argv[1]
    files = tree.project_files(root, (".md",))
    problems = []
    for path in files:
        for number, line in prose(tree.read_lines(root, path)):
            for match in LINK.finditer(re.sub(r"`[^`]*`", "``", line)):
                target = next(group for group in match.groups() if group)
                problem = problem_of(root, path, target)
                if problem:
                    problems.append(f"{path}:{number}: link {target}: {problem}")
    tree.finish("links", len(files), problems)


if __name__ == "__main__":
    main()
