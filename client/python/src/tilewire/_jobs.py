"""Calls, made ready: what to send, where the result goes. Clients differ only in how they run them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np

from . import _core, _options
from ._arrays import Memory, Place, as_stored, contiguous, dtype_of, memory_of, new_place, new_places, place_in, source_of
from ._compare import Comparison, Question
from ._device import Devices, OnDevice
from ._errors import closed, invalid, unsupported
from ._options import Axes, CallOptions
from ._regions import Regions
from ._remote import SIZES, Remote
from ._security import Security

if TYPE_CHECKING:
    import numpy.typing as npt

T = TypeVar("T")
R = TypeVar("R", bound=Remote)
#: An array of this process, or one that the server reads where it is.
Operand: TypeAlias = "Memory | Remote | OnDevice"
Op: TypeAlias = "_core.RmseOp | _core.TransposeOp | _core.GaussianOp"


class Job(Generic[T]):
    """A call and what becomes of its outcome. Keeps its arrays until it has run."""

    __slots__ = ("_finish", "_keep", "call", "title")

    def __init__(self, title: str, call: _core.Call, finish: Callable[[], T], keep: object) -> None:
        self.title, self.call, self._finish, self._keep = title, call, finish, keep

    def finish(self) -> T:
        return self._finish()

    def then(self, make: Callable[[T], Any]) -> Job[Any]:
        """The same call, and what is made of its outcome."""
        finish = self._finish
        return Job(self.title, self.call, lambda: make(finish()), self._keep)


class How(NamedTuple):
    """How a client makes a call."""

    kind: type[Remote]  #: of what stays at the server
    options: CallOptions
    trace: bool


class Link:
    """What a client shares with what it made at the server. Thread-safe."""

    def __init__(self, address: str, via: str, metadata: dict[str, str], dead_peer: float, security: Security,
                 defaults: CallOptions) -> None:  # fmt: skip
        if not isinstance(address, str) or not address:
            raise unsupported("address", f"{address!r}", 'text such as "localhost:50051" or "unix:/run/tilewired.sock"')
        if via not in _options.VIAS:
            raise invalid("via", repr(via), ", ".join(map(repr, _options.VIAS)))
        self.address, self.via, self.defaults = address, via, defaults
        self.metadata, self.dead_peer = dict(metadata), _options.real(dead_peer, "dead_peer")
        self.security = security
        self.regions = Regions()
        self.devices = Devices(self)
        self.run: Callable[[Job[Any]], Any] = _no_runner
        self._plain = {trace: _options.make(defaults, trace) for trace in (False, True)}
        self._lock = threading.Lock()
        self._core: _core.Client | None = None
        self.closed = False

    def core(self) -> _core.Client:
        """The connection, made when it is first needed: a process that has made none may fork."""
        core = self._core
        if core is None:
            with self._lock:
                if self.closed:
                    raise closed("client")
                if self._core is None:
                    self._core = _core.Client(self.address, self.security.read(self.dead_peer, self.metadata))
                core = self._core
        return core

    def close(self) -> None:
        with self._lock:
            self.closed = True
            self._core = None

    def options(self, call: CallOptions, trace: bool = False) -> _core.Options:
        return _options.make({**self.defaults, **call}, trace) if call else self._plain[trace]

    # --- operands and results
    def operand(self, x: object, field: str) -> Operand:
        if type(x) is np.ndarray:
            return memory_of(x, field)
        if not isinstance(x, Remote):
            lent = self.devices.operand(x) if self.via != "wire" else None
            return memory_of(x, field) if lent is None else lent
        if x._link.address != self.address:
            raise invalid(field, f"an array at {x._link.address}", f"one at {self.address}, or numpy.asarray of it")
        return x

    def source(self, operand: Operand) -> tuple[_core.Source, object]:
        """What is sent, and what must stay meanwhile."""
        if not isinstance(operand, Memory):
            return operand.source(), operand
        operand = contiguous(operand)
        array = operand.array
        if self.via != "wire":
            place = self.regions.find(operand.address, array.nbytes)
            if place is not None:
                return _core.Source.region(*place, operand.dtype, array.shape), array
            if self.via == "region":
                shared = self.share(array)
                return self.source(Memory(shared, operand.dtype))[0], shared
        return source_of(operand), array

    def spec(self, op: Op, operands: Sequence[Operand]) -> tuple[int, tuple[int, ...]]:
        """dtype and shape of a result; all that is wrong with the operands shows here, before one is copied."""
        sources = [source_of(o) if isinstance(o, Memory) else o.source() for o in operands]
        code, shape = _core.result_spec(op, sources)
        return code, tuple(shape)

    def place(self, out: object, code: int, shape: tuple[int, ...], operands: Sequence[Operand]) -> Place | OnDevice:
        if out is not None:
            lent = self.devices.place(out, code, shape, operands) if self.via != "wire" else None
            if lent is not None:
                return lent
            return place_in(out, code, shape, [o for o in operands if isinstance(o, Memory)])
        return self.room(code, shape)

    def room(self, code: int, shape: tuple[int, ...]) -> Place:
        """A place that is nobody's yet."""
        if self.via == "region":
            array = self.empty(shape, dtype_of(code))
            return Place(array, array)
        return new_place(code, shape)

    # --- regions
    def region_of(self, place: Place | OnDevice) -> tuple[str, int] | None:
        """The region that a result is written to, and where in it; None: it comes over the wire."""
        if isinstance(place, OnDevice):
            return place.region
        return None if self.via == "wire" else self.regions.find(place.address, place.memory.nbytes)

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
        nbytes = int(np.prod(shape, dtype=object)) * dtype.itemsize
        if nbytes < 1:
            raise invalid("shape", shape, "extents of 1 or more")
        region = self.core().share(nbytes, 0.0, self.options({}))
        return self.regions.array(region, dtype, shape, nbytes)

    def share(self, a: npt.NDArray[Any]) -> npt.NDArray[Any]:
        shared = self.empty(a.shape, a.dtype)
        shared[...] = a
        return shared

    # --- calls
    def compute(self, title: str, op: Op, operands: Sequence[Operand], out: object, how: How) -> Job[Any]:
        """A result that is brought: to new memory, to `out`, or to a region."""
        code, shape = self.spec(op, operands)
        return self.compute_to(title, op, operands, self.place(out, code, shape, operands), how)

    def compute_to(self, title: str, op: Op, operands: Sequence[Operand], place: Place | OnDevice, how: How) -> Job[Any]:
        sources, keep = zip(*(self.source(operand) for operand in operands))
        core, options = self.core(), self.options(how.options, how.trace)
        region = self.region_of(place)
        if region is not None:
            made = core.execute_into(op, list(sources), *region, options)
        else:
            assert isinstance(place, Place)
            made = core.execute(op, list(sources), place.address, place.memory.nbytes, options)
        return Job(title, made, place.done, (keep, place))

    def store(self, title: str, op: Op, operands: Sequence[Operand], how: How) -> Job[Any]:
        """A result that stays."""
        self.spec(op, operands)
        sources, keep = zip(*(self.source(operand) for operand in operands))
        made = self.core().store(op, list(sources), 0.0, False, self.options(how.options, how.trace))
        return Job(title, made, lambda: how.kind.owning(self, made.take_stored()), keep)

    def operate(self, title: str, op: Op, operands: Sequence[Operand], out: object, store: bool, how: How) -> Job[Any]:
        if not store:
            return self.compute(title, op, operands, out, how)
        if out is not None:
            raise invalid("out", "given", "None with store=True: the result stays at the server")
        return self.store(title, op, operands, how)

    # --- the operations
    def rmse_job(self, a: object, b: object, axis: Axes, output: str, out: object, store: bool, how: How) -> Job[Any]:
        op = _core.RmseOp(_options.reduced(axis), _options.output(output))
        job = self.operate("rmse", op, [self.operand(a, "a"), self.operand(b, "b")], out, store, how)
        return job.then(_number) if out is None and not store else job

    def compare_job(self, a: object, b: object, question: Question, how: How) -> Job[Comparison]:
        """All results in one call, each in memory of its own."""
        op, operands = question.operation(), [self.operand(a, "a"), self.operand(b, "b")]
        specs = _core.result_specs(op, [source_of(o) if isinstance(o, Memory) else o.source() for o in operands])
        results, places = new_places(specs)
        sources, keep = zip(*(self.source(operand) for operand in operands))
        made = self.core().execute_all(op, list(sources), places, self.options(how.options, how.trace))
        return Job("compare", made, lambda: question.numbers(results), (keep, results))

    def transpose_job(self, a: object, axes: Axes, out: object, store: bool, how: How) -> Job[Any]:
        op, operand = self.transpose_of(a, axes)
        return self.operate("transpose", op, [operand], out, store, how)

    def transpose_of(self, a: object, axes: Axes) -> tuple[_core.TransposeOp, Operand]:
        """The permutation, and the array as it is stored: any order of axes costs nothing."""
        operand = self.operand(a, "a")
        listed = _options.axes(axes, "axes")
        op = _core.TransposeOp(listed)
        if not isinstance(operand, Memory) or operand.array.flags.c_contiguous:
            return op, operand
        self.spec(op, [operand])
        stored = as_stored(operand.array)
        if stored is None:
            return op, operand
        view, place = stored
        rank = view.ndim
        wanted = [axis % rank for axis in listed] or list(range(rank))[::-1]
        return _core.TransposeOp([place[axis] for axis in wanted]), Memory(view, operand.dtype)

    def pdf_job(self, x: object, mean: object, stddev: object, out: object, store: bool, how: How) -> Job[Any]:
        """Element by element: a result without a place of its own lies in memory as `x` does."""
        op = _core.GaussianOp(*_options.normal(mean, stddev))
        operand = self.operand(x, "x")
        if store or out is not None or not isinstance(operand, Memory) or operand.array.flags.c_contiguous:
            return self.operate("gaussian_pdf", op, [operand], out, store, how)
        self.spec(op, [operand])
        stored = as_stored(operand.array)
        if stored is None:
            return self.compute("gaussian_pdf", op, [operand], out, how)
        view, place = stored
        result = self.room(operand.dtype, view.shape)
        turned = Place(result.memory.transpose(place), result.memory)
        return self.compute_to("gaussian_pdf", op, [Memory(view, operand.dtype)], turned, how)

    # --- what stays
    def put_job(self, a: object, ttl: object, evictable: bool, how: How) -> Job[Any]:
        operand = self.operand(a, "a")
        if isinstance(operand, Remote):
            raise invalid("a", "at the server already", "an array of this process")
        seconds = 0.0 if ttl is None else _options.seconds(ttl, "ttl")
        if ttl is not None and seconds < 0.001:
            raise invalid("ttl", seconds, "0.001 seconds or more, or None for the server's default")
        source, keep = self.source(operand)
        made = self.core().put(source, seconds, bool(evictable), self.options(how.options, how.trace))
        return Job("put", made, lambda: how.kind.owning(self, made.take_stored()), keep)

    def get_job(self, array: Remote, out: object, call: CallOptions, trace: bool = False) -> Job[Any]:
        source = array.source()
        place = place_in(out, array._code, array.shape, []) if out is not None else new_place(array._code, array.shape)
        made = self.core().get(source, place.address, array.size * SIZES[array._code], self.options(call, trace))
        return Job("get", made, place.done, (array, place))

    def attach(self, id: str, kind: type[R], call: CallOptions) -> R:
        if not isinstance(id, str):
            raise unsupported("id", f"{id!r}", "text, a RemoteArray's id")
        code, shape = self.core().stat(id, self.options(call))
        return kind(self, _core.Source.resident(id, code, shape), id, code, tuple(shape), None)


def _number(result: npt.NDArray[Any]) -> Any:
    return float(result) if result.ndim == 0 else result


def _no_runner(_: Job[Any]) -> Any:
    raise closed("client")
