"""The examples run, as scripts and as notebooks, and show what they say."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import subprocess
import sys

import pytest

EXAMPLES = pathlib.Path(__file__).parents[1] / "examples"
SCRIPTS = sorted(path for path in EXAMPLES.glob("*.py") if path.name != "notebook.py")


def test_there_are_four() -> None:
    assert [path.stem for path in SCRIPTS] == ["batched_rmse", "overlap", "rmse_ladder", "transpose"]


@pytest.mark.parametrize("script", SCRIPTS, ids=[path.stem for path in SCRIPTS])
def test_as_a_script(script: pathlib.Path) -> None:
    pytest.importorskip("matplotlib")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=110, check=False,
                          env={**os.environ, "MPLBACKEND": "agg"})  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("script", SCRIPTS, ids=[path.stem for path in SCRIPTS])
def test_as_a_notebook(script: pathlib.Path, tmp_path: pathlib.Path) -> None:
    pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    spec = importlib.util.spec_from_file_location("notebook", EXAMPLES / "notebook.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    notebook = module.run(script, tmp_path / "out.ipynb")
    shown = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    kinds = {kind for output in shown for kind in output.get("data", {})}
    assert "image/png" in kinds, "a plot"
    assert "image/svg+xml" in kinds or script.stem != "overlap", "a trace draws itself"
    assert (tmp_path / "out.ipynb").stat().st_size > 1000
