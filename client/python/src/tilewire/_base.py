"""What both clients are, whichever way they run their calls."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from ._jobs import How, Link
from ._options import CallOptions, Via
from ._remote import Remote
from ._security import Security
from ._timing import Timing
from ._trace import Trace

if TYPE_CHECKING:
    from . import _core


class Calls(Protocol):
    """How a client runs its calls, and what it knows of them."""

    @property
    def last(self) -> _core.Call | None:
        """The one that `timing` tells of."""

    @property
    def traces(self) -> list[Trace]:
        """Who wants to see them."""

    @property
    def run(self) -> Any:
        """Runs a job: its outcome, or an awaitable of it."""


class BaseClient:
    """A server and its calls."""

    _kind: ClassVar[type[Remote]]

    def __init__(self, link: Link, calls: Calls) -> None:
        self._link = link
        self._calls = calls
        link.run = self._run = calls.run  # of which the link may hold one that does not hold the link

    def __repr__(self) -> str:
        module = type(self).__module__.removesuffix("._client").removesuffix("._local")
        return f"<{module}.{type(self).__name__} of {self._link.address}{', closed' if self._link.closed else ''}>"

    @property
    def address(self) -> str:
        """The server's."""
        return self._link.address

    @property
    def timing(self) -> Timing | None:
        """Where the time went: of this thread's last call, with `tilewire.aio` of the call that ended last; None before it."""
        return Timing.of_call(self._calls.last)

    def trace(self, path: str | os.PathLike[str] | None = None) -> Trace:
        """``with client.trace("t.svg"):`` draws the calls of the block: those that this thread makes, with `tilewire.aio`
        those that end in it; see `Trace`."""
        traces = self._calls.traces
        return Trace(path, traces.append, traces.remove)

    def _how(self, options: CallOptions) -> How:
        return How(self._kind, options, bool(self._calls.traces))


def make_link(address: str, via: Via, connections: int, timeout: float | None, metadata: Mapping[str, str] | None,
              dead_peer: float, security: Security | None = None) -> Link:  # fmt: skip
    defaults: CallOptions = {"connections": connections, "timeout": timeout}
    return Link(address, via, dict(metadata or {}), dead_peer, security or Security(), defaults)
