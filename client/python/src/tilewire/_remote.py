"""Arrays that stay at the server."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np

from . import _core
from ._arrays import NAMES, dtype_of
from ._errors import closed

if TYPE_CHECKING:
    import numpy.typing as npt

    from ._jobs import Link


class Remote:
    """What is known of an array at a server; RemoteArray and its sibling of tilewire.aio fetch it."""

    def __init__(self, link: Link, source: _core.Source, id: str, code: int, shape: tuple[int, ...], stored: _core.Stored | None):
        self._link = link
        self._source: _core.Source | None = source
        self._stored = stored
        self._code = code
        self.id = id  #: the server's name for it, also for other processes of the same caller
        self.shape = shape

    @classmethod
    def owning(cls, link: Link, stored: _core.Stored | None) -> Self:
        assert stored is not None  # a call that stores has one when it ends well
        return cls(link, stored.source, stored.id, stored.dtype, tuple(stored.shape), stored)

    @property
    def dtype(self) -> np.dtype[Any]:
        return dtype_of(self._code)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * SIZES[self._code]

    def __repr__(self) -> str:
        state = "" if self._source is not None else ", closed"
        return f"<{type(self).__name__} {self.shape} {NAMES[self._code - 1]} at {self._link.address}{state}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{type(self).__name__} belongs to its process; elsewhere use client.array(id), and release() here")

    def source(self) -> _core.Source:
        if self._source is None:
            raise closed("array")
        return self._source

    def release(self) -> str:
        """Gives the array up without deleting it: its id. It then stays until its time is over."""
        self.source()
        if self._stored is not None:
            self._stored.release()
        self._stored = self._source = None
        return self.id

    def _drop(self) -> None:
        stored, self._stored, self._source = self._stored, None, None
        if stored is not None:
            stored.delete()


SIZES = {code: size for code, _, size in _core.dtypes()}


class RemoteArray(Remote):
    """An array that stays at the server, an operand of any call; deleted with this object. numpy.asarray() fetches it.

    A context manager: the array is deleted when the block ends. Not picklable: another process uses ``client.array(id)``.
    """

    def get(self, out: Any = None) -> Any:
        """Fetches it: an ndarray of `shape` and `dtype`, or `out`, which has both.

        Raises NotFound when it is gone, such as when its time to live is over.
        """
        return self._link.run(self._link.get_job(self, out, {}))

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        if copy is False:
            raise ValueError("an array at a server cannot be had without a copy")
        array: npt.NDArray[Any] = self.get()
        return array if dtype is None else array.astype(dtype, copy=False)

    def delete(self) -> None:
        """Deletes it at the server now. Nothing where that was done."""
        self._drop()

    def __enter__(self) -> RemoteArray:
        return self

    def __exit__(self, *_: object) -> None:
        self.delete()
