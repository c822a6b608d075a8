"""Finishes a wheel that auditwheel has put shared libraries into. Usage: finish.py WHEEL FOLDER

- Symbols that are unique in a process (STB_GNU_UNIQUE) become global ones in those libraries: the loader would else give
  another package's gRPC the variables of ours, whatever scope they were loaded in.
- The licences of the packages that the libraries came from go into the wheel, and nanobind's, which is linked in.
"""

import importlib.metadata
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from elftools.elf.elffile import ELFFile

GLOBAL, UNIQUE = 1, 10
GRAFTED = re.compile(r"^(.+)-[0-9a-f]{8,}(\.so.*)$")
FOLDERS = ("/usr/lib/x86_64-linux-gnu", "/lib/x86_64-linux-gnu")


def own_symbols(path):
    """Makes the unique symbols of a library its own. The number of them."""
    changed = 0
    with path.open("r+b") as file:
        table = ELFFile(file).get_section_by_name(".dynsym")
        size, start = table["sh_entsize"], table["sh_offset"]
        infos = [start + n * size + 4 for n in range(table.num_symbols())]  # st_info, after st_name
        for at in infos:
            file.seek(at)
            info = file.read(1)[0]
            if info >> 4 == UNIQUE:
                file.seek(at)
                file.write(bytes([GLOBAL << 4 | info & 15]))
                changed += 1
    return changed


def owner(name):
    """The Debian package of a library, or None."""
    for folder in FOLDERS:
        real = pathlib.Path(folder, name).resolve()
        for path in (real, pathlib.Path("/", *real.parts[2:])):  # packages still name the path before the /usr merge
            found = subprocess.run(["dpkg-query", "-S", path], capture_output=True, text=True, check=False)
            if found.returncode == 0:
                return found.stdout.split(":")[0]
    return None


def add_licences(libraries, folder):
    missing = []
    for library in libraries:
        match = GRAFTED.match(library.name)
        package = owner("".join(match.groups())) if match else None
        text = pathlib.Path("/usr/share/doc", package or "-", "copyright")
        if text.exists():
            shutil.copyfile(text, folder / f"{package}.txt")
        else:
            missing.append(library.name)
    linked = importlib.metadata.distribution("nanobind")
    for file in linked.files or ():
        if "licenses" in file.parts and file.name == "LICENSE":
            shutil.copyfile(linked.locate_file(file), folder / "nanobind.txt")
    if not (folder / "nanobind.txt").exists():
        missing.append("nanobind")
    if missing:
        sys.exit(f"finish: no licence text for {', '.join(missing)}")


def main():
    wheel, folder = map(pathlib.Path, sys.argv[1:])
    with tempfile.TemporaryDirectory() as work:
        subprocess.run([sys.executable, "-m", "wheel", "unpack", "-d", work, wheel], check=True, stdout=subprocess.DEVNULL)
        (root,) = pathlib.Path(work).iterdir()
        libraries = sorted(root.glob("tilewire.libs/*.so*"))
        symbols = sum(map(own_symbols, libraries))
        add_licences(libraries, root / "tilewire" / "licenses")
        subprocess.run([sys.executable, "-m", "wheel", "pack", "-d", folder, root], check=True, stdout=subprocess.DEVNULL)
        print(f"finish: {len(libraries)} libraries, {symbols} unique symbols made their own")


if __name__ == "__main__":
    main()
