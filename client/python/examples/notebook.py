"""Makes a notebook of an example, and runs it: python notebook.py EXAMPLE.py [OUT.ipynb]. Needs nbformat, nbclient and ipykernel."""

from __future__ import annotations

import pathlib
import sys

import nbformat
from nbclient import NotebookClient

_CELL = "# %%"


def notebook_of(script: str) -> nbformat.NotebookNode:
    """Cells begin with ``# %%``, those of text with ``# %% [markdown]``, as editors and jupytext know it."""
    notebook = nbformat.v4.new_notebook()
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
    for part in script.split(f"{_CELL}")[1:]:
        kind, _, body = part.partition("\n")
        if "[markdown]" in kind:
            text = "\n".join(line.removeprefix("#").removeprefix(" ") for line in body.strip().splitlines())
            notebook.cells.append(nbformat.v4.new_markdown_cell(text))
        else:
            notebook.cells.append(nbformat.v4.new_code_cell(body.strip()))
    return notebook


def run(script: pathlib.Path, out: pathlib.Path) -> nbformat.NotebookNode:
    """The notebook with what its cells showed, also in `out`. Raises CellExecutionError where one fails."""
    notebook = notebook_of(script.read_text(encoding="utf-8"))
    NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    nbformat.write(notebook, out)
    return notebook


if __name__ == "__main__":
    source = pathlib.Path(sys.argv[1])
    run(source, pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else source.with_suffix(".ipynb"))
