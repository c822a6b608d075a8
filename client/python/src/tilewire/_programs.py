"""The programs that the package carries."""

from __future__ import annotations

import os
import pathlib
import sys
from typing import NoReturn


def path(name: str) -> pathlib.Path:
    """Where a program lies."""
    return pathlib.Path(__file__).with_name("bin") / name


def _become(name: str) -> NoReturn:
    program = os.fspath(path(name))
    os.execv(program, [program, *sys.argv[1:]])


def tilewire() -> NoReturn:
    _become("tilewire")


def tilewire_load() -> NoReturn:
    _become("tilewire-load")


def tilewired() -> NoReturn:
    _become("tilewired")
