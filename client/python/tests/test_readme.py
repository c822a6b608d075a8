"""README's Python runs as it stands."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[3]
BLOCKS = [
    (path.relative_to(ROOT).as_posix(), block)
    for path in (ROOT / "README.md", ROOT / "client" / "python" / "README.md")
    for block in re.findall(r"^```python\n(.*?)^```$", path.read_text(encoding="utf-8"), re.M | re.S)
    if "tilewire as tw" in block
]


def test_there_is_something() -> None:
    assert sorted(name for name, _ in BLOCKS) == ["README.md", "client/python/README.md"]


@pytest.mark.parametrize(("name", "block"), BLOCKS, ids=[name for name, _ in BLOCKS])
def test_readme(name: str, block: str, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {}
    exec(block, names)
    names["c"].close()  # type: ignore[attr-defined]
    assert "rmse.1" in capsys.readouterr().out
