"""The same calls with ``await``.

    async with tilewire.aio.connect("server:50051") as c:
        values = await asyncio.gather(*(c.rmse(x, reference) for x in candidates))

Any number of calls are under way at a time on one event loop; threads that never take the interpreter's lock run them.
Cancelling a task cancels its call at the server.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import threading
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, Unpack

from . import _core
from ._base import BaseClient, make_link
from ._compare import Comparison, Metric, Question
from ._device import Registration
from ._errors import FailedPrecondition, closed
from ._jobs import Job, Link
from ._options import Axes, CallOptions, Output, Via
from ._remote import Remote
from ._security import Security, Tls
from ._trace import Trace

T = TypeVar("T")

#: Calls that a client has under way at a time; more wait for their turn.
MOST_CALLS = 256


class _Runner:
    """The calls of one event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._pool = _core.Pool(MOST_CALLS)
        self._numbers = itertools.count()
        self._pending: dict[int, tuple[Job[Any], asyncio.Future[None]]] = {}
        loop.add_reader(self._pool.descriptor, self._finished)

    def submit(self, job: Job[Any]) -> asyncio.Future[None]:
        number = next(self._numbers)
        done: asyncio.Future[None] = self.loop.create_future()
        self._pending[number] = job, done
        self._pool.submit(job.call, number)
        return done

    def _finished(self) -> None:
        for number in self._pool.finished():
            _, done = self._pending.pop(number)
            if not done.done():
                done.set_result(None)

    def close(self) -> None:
        if not self.loop.is_closed():
            self.loop.remove_reader(self._pool.descriptor)
        self._pool.close()  # cancels what runs and waits for it
        for _, done in self._pending.values():
            if not done.done() and not self.loop.is_closed():
                done.cancel()
        self._pending.clear()


class _Calls:
    """What a client knows of its calls, and how it runs them."""

    def __init__(self) -> None:
        self.closed = False
        self.runner: _Runner | None = None
        self.last: _core.Call | None = None
        self.traces: list[Trace] = []
        self._making = threading.Lock()

    async def run(self, job: Job[T]) -> T:
        loop = asyncio.get_running_loop()
        with self._making:
            if self.closed:
                raise closed("client")
            if self.runner is None:
                self.runner = _Runner(loop)
        if self.runner.loop is not loop:
            raise FailedPrecondition("this client belongs to another event loop", reason="OTHER_LOOP")
        try:
            await self.runner.submit(job)
        except asyncio.CancelledError:
            job.call.cancel()
            raise
        self.last = job.call
        job.call.check()
        for trace in self.traces:
            trace.add(job.title, job.call)
        return job.finish()

    def close(self) -> None:
        self.closed = True
        runner, self.runner = self.runner, None
        if runner is not None:
            runner.close()


class RemoteArray(Remote):
    """An array that stays at the server, an operand of any call of its client; deleted with this object.

    ``async with``: deleted when the block ends, without holding up the loop.
    """

    async def get(self, out: Any = None) -> Any:
        """Fetches it: an ndarray of `shape` and `dtype`, or `out`, which has both."""
        return await self._link.run(self._link.get_job(self, out, {}))

    async def delete(self) -> None:
        """Deletes it at the server now."""
        await asyncio.get_running_loop().run_in_executor(None, self._drop)

    async def __aenter__(self) -> RemoteArray:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.delete()


class Client(BaseClient):
    """As `tilewire.Client`, but its calls are awaited. For one event loop: the one of its first call."""

    _kind = RemoteArray
    _calls: _Calls

    def __init__(self, link: Link) -> None:
        super().__init__(link, _Calls())

    # --- operations
    async def rmse(self, a: Any, b: Any, axis: Axes = None, output: Output = "rmse", *, out: Any = None,
                   store: bool = False, **call: Unpack[CallOptions]) -> Any:  # fmt: skip
        """As `tilewire.Client.rmse`."""
        return await self._run(self._link.rmse_job(a, b, axis, output, out, store, self._how(call)))

    async def compare(self, a: Any, b: Any, axis: Axes = None, metrics: Metric | Sequence[Metric] | None = None,
                      data_range: float | None = None, **call: Unpack[CallOptions]) -> Comparison:  # fmt: skip
        """As `tilewire.Client.compare`."""
        found: Comparison = await self._run(self._link.compare_job(a, b, Question(axis, metrics, data_range), self._how(call)))
        return found

    async def transpose(self, a: Any, axes: Axes = None, out: Any = None, *, store: bool = False,
                        **call: Unpack[CallOptions]) -> Any:  # fmt: skip
        """As `tilewire.Client.transpose`."""
        return await self._run(self._link.transpose_job(a, axes, out, store, self._how(call)))

    async def gaussian_pdf(self, x: Any, mean: float, stddev: float, out: Any = None, *, store: bool = False,
                           **call: Unpack[CallOptions]) -> Any:  # fmt: skip
        """As `tilewire.Client.gaussian_pdf`."""
        return await self._run(self._link.pdf_job(x, mean, stddev, out, store, self._how(call)))

    # --- what stays at the server
    async def put(self, a: Any, ttl: float | None = None, evictable: bool = False, **call: Unpack[CallOptions]) -> RemoteArray:
        """As `tilewire.Client.put`."""
        there: RemoteArray = await self._run(self._link.put_job(a, ttl, evictable, self._how(call)))
        return there

    async def register(self, x: Any, **call: Unpack[CallOptions]) -> Registration:
        """As `tilewire.Client.register`."""
        return await asyncio.to_thread(self._link.devices.register, x, call)

    # --- the server: short questions, by the loop's executor
    async def array(self, id: str, **call: Unpack[CallOptions]) -> RemoteArray:
        """As `tilewire.Client.array`."""
        return await asyncio.to_thread(self._link.attach, id, RemoteArray, call)

    async def arrays(self, **call: Unpack[CallOptions]) -> list[str]:
        """As `tilewire.Client.arrays`."""
        return await asyncio.to_thread(self._link.core().list, self._link.options(call))

    async def describe(self, **call: Unpack[CallOptions]) -> dict[str, Any]:
        """As `tilewire.Client.describe`."""
        return await asyncio.to_thread(self._link.core().describe, self._link.options(call))

    async def ping(self, **call: Unpack[CallOptions]) -> float:
        """As `tilewire.Client.ping`."""
        return await asyncio.to_thread(self._link.core().ping, self._link.options(call))

    async def close(self) -> None:
        """Cancels calls that are under way, waits for them, and closes the connection."""
        self._link.close()
        self._calls.close()

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def connect(
    address: str = "localhost:50051",
    via: Via = "auto",
    connections: int = 0,
    timeout: float | None = None,
    *,
    tls: bool | str | os.PathLike[str] | Tls = False,
    token: str | os.PathLike[str] | None = None,
    insecure: bool = False,
    metadata: Mapping[str, str] | None = None,
    dead_peer: float = 30.0,
) -> Client:
    """As `tilewire.connect`."""
    return Client(
        make_link(address, via, connections, timeout, metadata, dead_peer, Security.of(tls, token, insecure))
    )
