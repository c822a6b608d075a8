"""Memory shared with a server on the same host."""

from __future__ import annotations

import bisect
import threading
import weakref
from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _core

if TYPE_CHECKING:
    import numpy.typing as npt


class Holder:
    """Owns a region; numpy keeps it as long as an array lies there, views included."""

    __slots__ = ("__weakref__", "address", "id", "nbytes", "region")

    def __init__(self, region: _core.Region) -> None:
        self.region = region
        self.id: str = region.id
        self.address: int = region.address
        self.nbytes: int = region.nbytes

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return {"version": 3, "data": (self.address, False), "shape": (self.nbytes,), "typestr": "|u1"}


class Regions:
    """The regions of a client, by address. Thread-safe; arrays may go at any time, also while the lock is held."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._starts: list[int] = []
        self._holders: dict[int, weakref.ref[Holder]] = {}
        self._gone: deque[int] = deque()

    @property
    def empty(self) -> bool:
        """Whether no array can lie in one."""
        return not self._starts

    def _forget(self) -> None:
        while self._gone:
            address = self._gone.popleft()
            if address in self._holders and self._holders[address]() is None:
                del self._holders[address]
                self._starts.remove(address)

    def array(self, region: _core.Region, dtype: np.dtype[Any], shape: tuple[int, ...], nbytes: int) -> npt.NDArray[Any]:
        """The only reference to a new region: an array that lies at its start."""
        holder = Holder(region)
        address = holder.address
        with self._lock:
            self._forget()
            if address not in self._holders:
                bisect.insort(self._starts, address)
            self._holders[address] = weakref.ref(holder, lambda _: self._gone.append(address))
        return np.asarray(holder)[:nbytes].view(dtype).reshape(shape)

    def find(self, address: int, nbytes: int) -> tuple[str, int] | None:
        """The region and the offset in it of memory that lies in one."""
        if not self._starts:
            return None
        with self._lock:
            self._forget()
            at = bisect.bisect_right(self._starts, address) - 1
            holder = self._holders[self._starts[at]]() if at >= 0 else None
        if holder is None or address + nbytes > holder.address + holder.nbytes:
            return None
        return holder.id, address - holder.address
