"""Arrays of other libraries: on the host lent without a copy, from a device through one staged copy."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ._arrays import ALLOWED, BF16, DLPack, Memory, code_of
from ._errors import UnsupportedType, unsupported

if TYPE_CHECKING:
    import numpy.typing as npt

# Of DLPack's device types, those whose memory this process can read: CPU, and pinned or managed memory of CUDA and ROCm.
_HOST = {1, 3, 11, 13}


def _library(x: object) -> str:
    return type(x).__module__.partition(".")[0]


def on_host(x: DLPack) -> bool:
    return x.__dlpack_device__()[0] in _HOST


def _refused(x: object, field: str, error: Exception) -> UnsupportedType:
    return unsupported(field, f"a {type(x).__module__}.{type(x).__qualname__} that does not lend its memory ({error})", ALLOWED)


def _torch(x: Any, field: str) -> Memory:
    if x.layout is not _module(x).strided:
        raise unsupported(field, f"a tensor of layout {x.layout}", "a strided one: x.to_dense()")
    if x.dtype == _module(x).bfloat16:  # numpy has no such dtype of its own: its bits
        return Memory(x.view(_module(x).int16).numpy().view(np.uint16), BF16)
    array = x.numpy()
    return Memory(array, code_of(array.dtype, field))


def _module(x: object) -> Any:
    import sys

    return sys.modules[_library(x)]


def _staged(x: Any, field: str) -> Any:
    """The same array on the host, by its own library's copy."""
    if hasattr(x, "cpu"):
        return x.cpu()
    if hasattr(x, "get"):
        return x.get()
    if hasattr(x, "copy_to_host"):
        return x.copy_to_host()
    if hasattr(x, "__array__"):
        return np.asarray(x)
    raise unsupported(field, f"a {type(x).__module__}.{type(x).__qualname__} on a device", "what can be copied to the host")


def memory_of(x: DLPack, field: str) -> Memory:
    """An operand that is no numpy array."""
    try:
        if not on_host(x):
            x = _staged(x, field)
        if isinstance(x, np.ndarray):
            return Memory(x, code_of(x.dtype, field))
        if _library(x) == "torch":
            return _torch(x, field)
        # JAX shows its memory as numpy arrays of ml_dtypes' dtypes, which DLPack does not give numpy.
        array = np.asarray(x) if _library(x) in ("jax", "jaxlib") else np.from_dlpack(x)
    except UnsupportedType:
        raise
    except (BufferError, RuntimeError, TypeError) as error:
        raise _refused(x, field, error) from error
    return Memory(array, code_of(array.dtype, field))


def copy_back(out: Any) -> Callable[[npt.NDArray[Any]], None]:
    """How a result on the host gets to an array on a device."""
    if hasattr(out, "copy_"):  # torch

        def to_torch(array: npt.NDArray[Any]) -> None:
            torch = _module(out)
            host = torch.from_numpy(array.view(np.int16) if out.dtype == torch.bfloat16 else array)
            out.copy_(host.view(torch.bfloat16) if out.dtype == torch.bfloat16 else host)

        return to_torch
    if hasattr(out, "set"):  # CuPy

        def to_cupy(array: npt.NDArray[Any]) -> None:
            out.set(array)

        return to_cupy
    raise unsupported("out", f"a {type(out).__module__}.{type(out).__qualname__} on a device", "torch, CuPy, or an array on the host")
