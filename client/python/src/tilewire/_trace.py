"""Pictures of calls."""

from __future__ import annotations

import os
import pathlib
from types import TracebackType
from typing import TYPE_CHECKING

from ._errors import invalid
from ._timing import Timing

if TYPE_CHECKING:
    from collections.abc import Callable

    from . import _core


class TracedCall:
    """One call of a traced block. Jupyter shows its picture."""

    def __init__(self, title: str, reply: _core.Reply) -> None:
        self.title = title
        self._reply = reply

    @property
    def timing(self) -> Timing:
        return Timing.of(self._reply)

    @property
    def svg(self) -> str:
        """The time line of the call as a self-contained picture."""
        return self._reply.timeline_svg(self.title)

    @property
    def json(self) -> str:
        """The same for ui.perfetto.dev (Chrome trace format)."""
        return self._reply.trace_json(self.title)

    def _repr_svg_(self) -> str:
        return self.svg


class Trace:
    """``with client.trace("t.svg") as trace:`` keeps every span of the calls in the block.

    When the block ends, the picture of its first call is in the file, that of the second in ``t-2.svg``, and so on;
    with a name that ends in ``.json`` they are Chrome traces. ``trace.calls`` has all of them; without a name there are
    no files.
    """

    def __init__(self, path: str | os.PathLike[str] | None, enter: Callable[[Trace], None], leave: Callable[[Trace], None]):
        self._path = None if path is None else pathlib.Path(path)
        if self._path is not None and self._path.suffix not in (".svg", ".json"):
            raise invalid("trace", repr(str(path)), "a name that ends in .svg or .json")
        self._enter, self._leave = enter, leave
        self.calls: list[TracedCall] = []

    def __enter__(self) -> Trace:
        self._enter(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None) -> None:
        self._leave(self)
        if self._path is None:
            return
        for number, call in enumerate(self.calls, 1):
            name = self._path if number == 1 else self._path.with_stem(f"{self._path.stem}-{number}")
            name.write_text(call.svg if name.suffix == ".svg" else call.json, encoding="utf-8")

    def add(self, title: str, call: _core.Call) -> None:
        if (reply := call.reply) is not None:
            self.calls.append(TracedCall(title, reply))

    def _repr_svg_(self) -> str | None:
        return self.calls[-1].svg if self.calls else None
