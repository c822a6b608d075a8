"""The client of one server."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Unpack, overload

import numpy as np

from . import _core, _options
from ._arrays import memory_of
from ._base import BaseClient, make_link
from ._compare import Comparison, Metric, Question
from ._device import Registration
from ._errors import invalid, unsupported
from ._jobs import Job, Link
from ._options import Axes, CallOptions, Output, Via
from ._remote import RemoteArray
from ._security import Security, Tls
from ._trace import Trace

if TYPE_CHECKING:
    import numpy.typing as npt

T = TypeVar("T")


class _Calls(threading.local):
    """Of one thread: its last call, and who wants to see its calls."""

    def __init__(self) -> None:
        self.last: _core.Call | None = None
        self.traces: list[Trace] = []

    def run(self, job: Job[T]) -> T:
        call = self.last = job.call
        call.run()
        for trace in self.traces:
            trace.add(job.title, call)
        return job.finish()


class Client(BaseClient):
    """A server, and the calls it takes. Made by `connect`. Thread-safe: any number of calls at a time, each without the
    interpreter's lock.

    Operands are numpy arrays of any order and strides, whatever lends its memory by DLPack (torch, CuPy, JAX, …), and
    `RemoteArray`. Their dtypes: bool, int8 … uint64, float16, bfloat16 (of ml_dtypes), float32, float64, complex64,
    complex128, little-endian; each operation says which of them it takes. Shapes: up to 16 axes, none of them empty.

    Every call takes the keywords of `CallOptions`, such as ``timeout=5``, and raises `Error` or one of its kinds:
    UnsupportedType (a TypeError) for what has no dtype here, InvalidArgument (a ValueError) for wrong shapes, axes and
    values, DeadlineExceeded (a TimeoutError), Unavailable (a ConnectionError), NotFound (a KeyError), PermissionDenied,
    Exhausted where the server has no room. After a call nothing refers to its arrays.

    A context manager; picklable: the copy connects anew, with the same arguments. In a child by fork() calls raise
    `Forked`, unless no call was made before the fork.
    """

    _kind = RemoteArray
    _calls: _Calls

    def __init__(self, link: Link) -> None:
        super().__init__(link, _Calls())

    def __reduce__(self) -> tuple[Any, ...]:
        link = self._link
        return _connect, (link.address, link.via, link.defaults, link.metadata, link.dead_peer, link.security)

    # --- operations
    @overload
    def rmse(self, a: Any, b: Any, axis: None = None, output: Output = "rmse", *, out: None = None,
             store: Literal[False] = False, **call: Unpack[CallOptions]) -> float: ...  # fmt: skip
    @overload
    def rmse(self, a: Any, b: Any, axis: int | Sequence[int], output: Output = "rmse", *, out: None = None,
             store: Literal[False] = False, **call: Unpack[CallOptions]) -> npt.NDArray[np.float64] | float: ...  # fmt: skip
    @overload
    def rmse(self, a: Any, b: Any, axis: Axes = None, output: Output = "rmse", *, out: None = None,
             store: Literal[True], **call: Unpack[CallOptions]) -> RemoteArray: ...  # fmt: skip
    @overload
    def rmse(self, a: Any, b: Any, axis: Axes = None, output: Output = "rmse", *, out: T,
             store: Literal[False] = False, **call: Unpack[CallOptions]) -> T: ...  # fmt: skip
    def rmse(self, a: Any, b: Any, axis: Axes = None, output: Output = "rmse", *, out: Any = None,
             store: bool = False, **call: Unpack[CallOptions]) -> Any:  # fmt: skip
        """Root-mean-square error of two arrays, ``sqrt(mean((a - b) ** 2))`` in float64, the same bits on every device.

        Args:
            a, b: equal shape and dtype, any dtype but bool and complex.
            axis: to reduce, one or several; None: all.
            output: ``"rmse"``, ``"mse"`` (without the root), or ``"sum_squares"`` (without the division, too).
            out: float64 of the axes that stay, instead of a new array.
            store: keep the result at the server.

        Returns: a float where no axis stays, else a float64 array of the axes that stay; `out`; or a RemoteArray.
        """
        if axis is None and out is None and not store and not call and type(a) is type(b) is np.ndarray:
            value = self._quick_rmse(a, b, output)
            if value is not None:
                return value
        return self._run(self._link.rmse_job(a, b, axis, output, out, store, self._how(call)))

    def _quick_rmse(self, a: npt.NDArray[Any], b: npt.NDArray[Any], output: Output) -> float | None:
        """In one step of the C++ client, where there is nothing that would need more; else None."""
        link, calls = self._link, self._calls
        if calls.traces or link.via == "region" or not link.regions.empty:
            return None
        calls.last = None
        done = link.core().quick_rmse(a, b, _options.output(output), link.options({}))
        if done is None:
            return None
        calls.last, value = done
        return value

    def compare(self, a: Any, b: Any, axis: Axes = None, metrics: Metric | Sequence[Metric] | None = None,
                data_range: float | None = None, **call: Unpack[CallOptions]) -> Comparison:  # fmt: skip
        """Error metrics of two arrays in one pass, the same bits on every device.

        Args:
            a, b: equal shape and dtype, any dtype but bool and complex.
            axis: to reduce, one or several; None: all.
            metrics: the names of `Comparison`'s first eleven fields, each once, or one of them; None: all.
            data_range: largest less smallest value that the data can have, finite and more than 0: adds `psnr` where mse is
                asked for, `nrmse` where rmse is.

        Returns: a `Comparison`: numbers where no axis stays, else arrays of the axes that stay.
        """
        found: Comparison = self._run(self._link.compare_job(a, b, Question(axis, metrics, data_range), self._how(call)))
        return found

    @overload
    def transpose(self, a: Any, axes: Axes = None, out: None = None, *, store: Literal[False] = False,
                  **call: Unpack[CallOptions]) -> npt.NDArray[Any]: ...  # fmt: skip
    @overload
    def transpose(self, a: Any, axes: Axes = None, out: None = None, *, store: Literal[True],
                  **call: Unpack[CallOptions]) -> RemoteArray: ...  # fmt: skip
    @overload
    def transpose(self, a: Any, axes: Axes, out: T, *, store: Literal[False] = False,
                  **call: Unpack[CallOptions]) -> T: ...  # fmt: skip
    @overload
    def transpose(self, a: Any, axes: Axes = None, *, out: T, store: Literal[False] = False,
                  **call: Unpack[CallOptions]) -> T: ...  # fmt: skip
    def transpose(self, a: Any, axes: Axes = None, out: Any = None, *, store: bool = False,
                  **call: Unpack[CallOptions]) -> Any:  # fmt: skip
        """The array with its axes permuted, in C order. Operands in any order of axes are sent as they lie.

        Args:
            a: any dtype.
            axes: axis i of the result is axis ``axes[i]`` of `a`; None: reversed.
            out: of the result's shape and dtype, instead of a new array.
            store: keep the result at the server.

        Returns: an ndarray of `a`'s dtype; `out`; or a RemoteArray.
        """
        return self._run(self._link.transpose_job(a, axes, out, store, self._how(call)))

    @overload
    def gaussian_pdf(self, x: Any, mean: float, stddev: float, out: None = None, *, store: Literal[False] = False,
                     **call: Unpack[CallOptions]) -> npt.NDArray[Any]: ...  # fmt: skip
    @overload
    def gaussian_pdf(self, x: Any, mean: float, stddev: float, out: None = None, *, store: Literal[True],
                     **call: Unpack[CallOptions]) -> RemoteArray: ...  # fmt: skip
    @overload
    def gaussian_pdf(self, x: Any, mean: float, stddev: float, out: T, *, store: Literal[False] = False,
                     **call: Unpack[CallOptions]) -> T: ...  # fmt: skip
    def gaussian_pdf(self, x: Any, mean: float, stddev: float, out: Any = None, *, store: bool = False,
                     **call: Unpack[CallOptions]) -> Any:  # fmt: skip
        """Density of the normal distribution at every element: at most 1 ulp from the exact value.

        Args:
            x: float32 or float64.
            mean: finite.
            stddev: finite and more than 0.
            out: of `x`'s shape and dtype, instead of a new array; may be `x`.
            store: keep the result at the server.

        Returns: an ndarray of `x`'s shape and dtype; `out`; or a RemoteArray.
        """
        return self._run(self._link.pdf_job(x, mean, stddev, out, store, self._how(call)))

    # --- what stays at the server
    def put(self, a: Any, ttl: float | None = None, evictable: bool = False, **call: Unpack[CallOptions]) -> RemoteArray:
        """Sends an array, of any dtype, to stay at the server.

        Args:
            ttl: seconds until it expires; None: the server's default.
            evictable: it may go before that when its memory is needed.

        Returns: a RemoteArray, with which the array goes.
        """
        there: RemoteArray = self._run(self._link.put_job(a, ttl, evictable, self._how(call)))
        return there

    def array(self, id: str, **call: Unpack[CallOptions]) -> RemoteArray:
        """An array that is at the server already, by its id; it does not go with the RemoteArray.

        Raises NotFound where this caller has none of that id.
        """
        return self._link.attach(id, RemoteArray, call)

    def arrays(self, **call: Unpack[CallOptions]) -> list[str]:
        """The ids of this caller's arrays at the server, oldest first."""
        return self._link.core().list(self._link.options(call))

    # --- memory shared with the server
    def empty(self, shape: int | Sequence[int], dtype: npt.DTypeLike = np.float32) -> npt.NDArray[Any]:
        """A new array in memory shared with the server, which must be on this host and allow it (--allow-regions).

        Calls that read it or write to it send nothing. The memory goes with the array and its views. Its elements are 0.

        Raises Unimplemented where the server allows no regions, NotFound where it is on another host, PermissionDenied
        where it runs as another user.
        """
        extents = (shape,) if isinstance(shape, int | np.integer) else tuple(shape)
        if any(isinstance(extent, bool) or not isinstance(extent, int | np.integer) for extent in extents):
            raise unsupported("shape", f"{shape!r}", "integers of 1 or more")
        if any(extent < 1 for extent in extents):
            raise invalid("shape", shape, "extents of 1 or more")
        wanted = np.dtype(dtype)
        memory_of(np.empty((), wanted), "array")
        return self._link.empty(tuple(map(int, extents)), wanted)

    def share(self, a: Any) -> npt.NDArray[Any]:
        """A copy of an array in memory shared with the server; see `empty`."""
        return self._link.share(memory_of(a, "a").array)

    def register(self, x: Any, **call: Unpack[CallOptions]) -> Registration:
        """Registers a CUDA array's memory with the server, which must be on this host and allow it (--allow-device-regions).

        Arrays on the server's own GPU from 1 MiB on need no copy anyway: each call registers them and ends that. What is
        registered here, and what lies in it, spares calls that: some two milliseconds an array. In C order, memory of cudaMalloc.

        Returns: a `Registration`, a context manager.
        """
        return self._link.devices.register(x, call)

    # --- the server
    def describe(self, **call: Unpack[CallOptions]) -> dict[str, Any]:
        """What the server is: version, devices, memory, how much of it is in use."""
        return self._link.core().describe(self._link.options(call))

    def ping(self, **call: Unpack[CallOptions]) -> float:
        """Seconds of one round trip; Unavailable where the server does not serve."""
        return self._link.core().ping(self._link.options(call))

    def close(self) -> None:
        """Closes the connection once calls that run have ended. What RemoteArrays own goes with them, not here."""
        self._link.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _connect(address: str, via: str, defaults: CallOptions, metadata: dict[str, str], dead_peer: float,
             security: Security) -> Client:  # fmt: skip
    return Client(Link(address, via, metadata, dead_peer, security, defaults))


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
    """A client of the server at `address`; the connection is made with the first call.

    Args:
        address: ``"host:port"`` or ``"unix:PATH"``.
        via: ``"auto"`` uses shared memory for arrays that lie there (`Client.empty`, `Client.share`) and the wire for
            the rest; ``"wire"`` always the wire; ``"region"`` copies operands and results into shared memory.
        connections: that carry one large call, at most; 0: one for each 32 MiB, up to half of this machine's cores and 8.
        timeout: seconds for each call unless it says otherwise, retries included; None: for ever.
        tls: True: with a server that this machine's authorities vouch for; a path: that those in this PEM file do; or `Tls`.
        token: NAME.SECRET of a server with --tokens, or a JWT, or a pathlib.Path of a file with it. In clear it is sent to
            this host alone. Pickled with the client, where it is text.
        insecure: send the token in clear also beyond this host.
        metadata: sent with every call, such as the name that a server with --identity-header goes by.
        dead_peer: seconds after which a connection whose peer takes nothing is given up.
    """
    return Client(
        make_link(address, via, connections, timeout, metadata, dead_peer, Security.of(tls, token, insecure))
    )
