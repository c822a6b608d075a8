"""Arrays on the server's own GPU, lent to it by CUDA IPC: no byte of them is copied."""

from __future__ import annotations

import contextlib
import socket
import threading
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from . import _core
from ._arrays import NAMES, DLPack
from ._errors import Error, Exhausted, FailedPrecondition, InvalidArgument, NotFound, PermissionDenied, Unimplemented, unsupported

if TYPE_CHECKING:
    from ._jobs import Link
    from ._options import CallOptions

_CUDA = 2  #: DLPack's device type
_LEGACY = 1  #: DLPack's number of CUDA's legacy stream: what the array's library still does to it is ordered before
_SMALL = 1 << 20  #: bytes; what is smaller is copied sooner than lent: about 1.2 ms to open and close it, H200, 2026-11-23
_ALIGNMENT = 256  #: bytes; where arrays may begin in a region of the device


class Registration:
    """Device memory of an array, registered with a server until this goes. Made by `Client.register`.

    A context manager. The array's memory stays as long as this; who frees it by other means does that after `unregister`.
    """

    __slots__ = ("__weakref__", "_lent", "_region", "address", "id", "nbytes")

    def __init__(self, lent: _core.Lent, region: _core.DeviceRegion) -> None:
        self._lent: _core.Lent | None = lent
        self._region: _core.DeviceRegion | None = region
        self.id: str = region.id  #: the server's name for it
        self.address: int = lent.address
        self.nbytes: int = lent.nbytes

    def unregister(self) -> None:
        """Ends it when no call uses it any more, at most two seconds from now (DeadlineExceeded)."""
        region, self._region = self._region, None
        if region is not None:
            region.unregister()
        self._lent = None

    def covers(self, lent: _core.Lent) -> bool:
        from_start = lent.address - self.address
        return (
            self._region is not None
            and from_start >= 0
            and from_start + lent.nbytes <= self.nbytes
            and from_start % _ALIGNMENT == 0
        )

    def __del__(self) -> None:
        with contextlib.suppress(Error):  # then it goes at the server when its time is over
            self.unregister()

    def __enter__(self) -> Registration:
        return self

    def __exit__(self, *_: object) -> None:
        self.unregister()

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Registration belongs to its process")


class OnDevice:
    """An operand, or a place for a result, in memory that is registered."""

    __slots__ = ("_registration", "dtype", "lent", "region", "result", "shape")

    def __init__(self, lent: _core.Lent, registration: Registration, result: Any = None) -> None:
        self._registration, self.lent, self.result = registration, lent, result
        self.region = (registration.id, lent.address - registration.address)
        self.dtype = NAMES.index(lent.dtype) + 1
        self.shape = tuple(lent.shape)

    def source(self) -> _core.Source:
        return _core.Source.region(*self.region, self.dtype, self.shape)

    def done(self) -> Any:
        return self.result


class Devices:
    """What a client lends a server of its GPU. Thread-safe."""

    def __init__(self, link: Link) -> None:
        self._link = weakref.ref(link)
        self._lock = threading.Lock()
        self._kept: weakref.WeakSet[Registration] = weakref.WeakSet()
        self._takes: bool | None = None  #: whether the server takes such memory; None: not asked yet

    def operand(self, x: object) -> OnDevice | None:
        """None where it must be copied: it is elsewhere, or the server does not take it."""
        if not _on_cuda(x) or not self._asked():
            return None
        lent = _lend(x)
        if lent is not None and not _lies_well(lent):
            lent = _lend(_side_by_side(x))
        return None if lent is None else self._registered(lent)

    def place(self, out: object, code: int, shape: tuple[int, ...], operands: Sequence[object]) -> OnDevice | None:
        """A place for a result in `out` itself; None where it must be copied there."""
        if not _on_cuda(out) or not self._asked():
            return None
        lent = _lend(out)
        if lent is None or not _lies_well(lent) or lent.dtype != NAMES[code - 1] or tuple(lent.shape) != shape:
            return None
        if any(isinstance(operand, OnDevice) and _overlap(lent, operand.lent) for operand in operands):
            return None
        return self._registered(lent, out)

    def register(self, x: object, call: CallOptions) -> Registration:
        """Raises whatever keeps it from being registered."""
        if not _on_cuda(x):
            raise unsupported("x", f"a {type(x).__module__}.{type(x).__qualname__}", "an array in memory of a CUDA device")
        lent = _lend(x)
        if lent is None or not lent.in_order or lent.address % _ALIGNMENT:
            raise unsupported("x", "an array that cannot be lent as it lies", f"C order, at a multiple of {_ALIGNMENT} bytes")
        registration = self._register(lent, call)
        if registration is None:
            raise FailedPrecondition(
                "the driver does not export this memory; it must be of cudaMalloc", reason="REGION_UNPINNABLE", field="x"
            )
        with self._lock:
            self._kept.add(registration)
        return registration

    def _registered(self, lent: _core.Lent, result: Any = None) -> OnDevice | None:
        with self._lock:
            kept = next((one for one in self._kept if one.covers(lent)), None)
        if kept is not None:
            lent.export()  # which waits for what is still written there
            return OnDevice(lent, kept, result)
        if lent.nbytes < _SMALL:
            return None
        try:
            own = self._register(lent, {})
        except (Exhausted, NotFound):
            return None
        except (FailedPrecondition, InvalidArgument, PermissionDenied, Unimplemented) as error:
            if error.reason not in ("REGION_UNPINNABLE", "BAD_VALUE", "REGION_ACCESS", "REGIONS_OFF"):
                raise
            self._takes = False
            return None
        return None if own is None else OnDevice(lent, own, result)

    def _register(self, lent: _core.Lent, call: CallOptions) -> Registration | None:
        link = self._link()
        exported = lent.export()
        if link is None or exported is None:
            return None
        return Registration(lent, link.core().register_device(*exported, lent.nbytes, 0.0, link.options(call)))

    def _asked(self) -> bool:
        link = self._link()
        if self._takes is None and link is not None:
            # A handle means something on its own host alone: elsewhere it could name what is another's.
            about = link.core().describe(link.options({})) if _on_this_host(link.address) else {}
            self._takes = bool(about.get("device_regions")) and about["devices"][0]["id"].startswith("cuda")
        return bool(self._takes)


def _on_cuda(x: object) -> bool:
    try:
        return isinstance(x, DLPack) and x.__dlpack_device__()[0] == _CUDA
    except (BufferError, RuntimeError, TypeError):  # what is wrong with it, memory_of says
        return False


def _lend(x: Any) -> _core.Lent | None:
    """None where its library does not lend it; why, it says again when it is copied."""
    try:
        lent = _core.Lent(x.__dlpack__(stream=_LEGACY))
    except (BufferError, RuntimeError, TypeError, ValueError):
        return None
    return lent if lent.dtype in NAMES and lent.nbytes > 0 else None


def _lies_well(lent: _core.Lent) -> bool:
    return lent.in_order and lent.address % _ALIGNMENT == 0


def _side_by_side(x: Any) -> Any:
    """A copy in C order on the same device; what no such copy is known of is left as it is."""
    if hasattr(x, "contiguous") and hasattr(x, "clone"):  # torch
        return x.clone() if x.is_contiguous() else x.contiguous()
    if hasattr(x, "flags") and hasattr(x, "copy"):  # CuPy
        return x.copy(order="C")
    return x


def _overlap(a: _core.Lent, b: _core.Lent) -> bool:
    return a.address < b.address + b.nbytes and b.address < a.address + a.nbytes


def _on_this_host(address: str) -> bool:
    if address.startswith("unix:"):
        return True
    host = address.rpartition(":")[0].strip("[]")
    with contextlib.suppress(OSError):
        for family, _, _, _, found in socket.getaddrinfo(host, None, type=socket.SOCK_DGRAM):
            with socket.socket(family, socket.SOCK_DGRAM) as own:
                own.bind((found[0], 0))  # which only an address of this host allows
                return True
    return False
