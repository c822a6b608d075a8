"""Arrays of every kind as memory with a dtype of the wire."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, runtime_checkable

import numpy as np

from . import _core
from ._errors import invalid, unsupported

if TYPE_CHECKING:
    import numpy.typing as npt

#: numpy's names of the dtypes, in the order of the C++ client's table; a test compares the two.
NAMES: Final = (
    "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "bfloat16", "float32",
    "float64", "complex64", "complex128",
)  # fmt: skip
ALLOWED: Final = f"an array of {', '.join(NAMES)}, little-endian"
BF16: Final = 11

_codes: dict[np.dtype[Any], int] = {
    np.dtype(name): code for code, name in enumerate(NAMES, 1) if name != "bfloat16"
}
_dtypes: dict[int, np.dtype[Any]] = {code: dtype for dtype, code in _codes.items()}


@runtime_checkable
class DLPack(Protocol):
    """Whatever lends its memory by DLPack: tensors of torch, CuPy, JAX, …"""

    def __dlpack__(self, *, stream: Any = None) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...


class Memory(NamedTuple):
    """An operand's elements: an array, its dtype's number, and its shape."""

    array: npt.NDArray[Any]
    dtype: int

    @property
    def address(self) -> int:
        return int(self.array.__array_interface__["data"][0])


def dtype_of(code: int) -> np.dtype[Any]:
    """numpy's dtype for a number. bf16 needs ml_dtypes."""
    found = _dtypes.get(code)
    if found is not None:
        return found
    if code != BF16:
        raise unsupported("dtype", f"number {code}", "1 to 15")
    try:
        import ml_dtypes
    except ImportError as error:
        raise unsupported(
            "dtype", "bfloat16", "with the package ml_dtypes (pip install tilewire[bf16]), which gives numpy that dtype"
        ) from error
    dtype: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
    _codes[dtype], _dtypes[BF16] = BF16, dtype
    return dtype


def code_of(dtype: np.dtype[Any], field: str) -> int:
    """The number of a dtype, or TypeError by its name: nothing is guessed."""
    code = _codes.get(dtype)
    if code is not None:
        return code
    if dtype.name == "bfloat16" and dtype.itemsize == 2 and dtype.isnative:
        dtype_of(BF16)
        return BF16
    if dtype.newbyteorder("=") in _codes:
        raise unsupported(f"{field}.dtype", f"big-endian {dtype.name}", "little-endian: x.astype(x.dtype.newbyteorder('<'))")
    raise unsupported(f"{field}.dtype", str(dtype) or repr(dtype), ", ".join(NAMES))


def memory_of(x: object, field: str) -> Memory:
    """An operand as memory of this process, of any order and strides. Copies nothing but what is on a device."""
    if type(x) is np.ndarray:
        code = _codes.get(x.dtype)
        return Memory(x, code if code is not None else code_of(x.dtype, field))
    if isinstance(x, np.ma.MaskedArray):
        raise unsupported(field, "a masked array", f"{ALLOWED}: say what masked elements are (x.filled(…))")
    if isinstance(x, np.ndarray | np.generic):
        array = np.asarray(x)
        return Memory(array, code_of(array.dtype, field))
    if isinstance(x, DLPack):
        from . import _dlpack

        return _dlpack.memory_of(x, field)
    if hasattr(x, "__array__") and hasattr(x, "dtype"):  # pandas, xarray, h5py: they say what they are
        array = np.asarray(x)
        return Memory(array, code_of(array.dtype, field))
    raise unsupported(field, f"a {type(x).__module__}.{type(x).__qualname__}".replace("builtins.", ""), ALLOWED)


def contiguous(memory: Memory) -> Memory:
    """The same elements in C order, copied where they are not."""
    if memory.array.flags.c_contiguous:
        return memory
    return Memory(np.ascontiguousarray(memory.array), memory.dtype)


def as_stored(array: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], tuple[int, ...]] | None:
    """A view of the same elements that is in C order, and for each axis of `array` the view's axis. None where they do not
    lie side by side, so that only a copy has such an order."""
    order = sorted(range(array.ndim), key=lambda axis: (-abs(array.strides[axis]), axis))
    view = array.transpose(order)
    if not view.flags.c_contiguous:
        return None
    return view, tuple(order.index(axis) for axis in range(array.ndim))


def source_of(memory: Memory) -> _core.Source:
    """An operand of the C++ client; `memory` is in C order and stays until the call is over."""
    return _core.Source.memory(memory.address, memory.dtype, memory.array.shape)


class Place:
    """Where a result goes: C order memory, and what is to do when it is there."""

    __slots__ = ("_back", "memory", "result")

    def __init__(self, result: Any, memory: npt.NDArray[Any], back: Callable[[npt.NDArray[Any]], None] | None = None) -> None:
        self.result = result  #: what the caller gets
        self.memory = memory  #: where the client writes
        self._back = back  #: takes it from there

    @property
    def address(self) -> int:
        return int(self.memory.__array_interface__["data"][0])

    def done(self) -> Any:
        if self._back is not None:
            self._back(self.memory)
        return self.result


def new_place(code: int, shape: tuple[int, ...]) -> Place:
    array = np.empty(shape, dtype_of(code))
    return Place(array, array)


def new_places(specs: Sequence[tuple[int, Sequence[int]]]) -> tuple[list[npt.NDArray[Any]], list[tuple[int, int]]]:
    """Memory for several results, with the address and the bytes of each. Single numbers share a piece: asking for memory
    and for its address one by one would take longer than a small call."""
    if any(shape for _, shape in specs):
        arrays = [np.empty(tuple(shape), dtype_of(code)) for code, shape in specs]
        return arrays, [(int(array.__array_interface__["data"][0]), array.nbytes) for array in arrays]
    block = np.empty(2 * len(specs))  # an element has 16 bytes at most
    start = int(block.__array_interface__["data"][0])
    arrays = [np.ndarray((), dtype_of(code), block, 16 * at) for at, (code, _) in enumerate(specs)]
    return arrays, [(start + 16 * at, array.itemsize) for at, array in enumerate(arrays)]


def place_in(out: object, code: int, shape: tuple[int, ...], operands: Sequence[Memory]) -> Place:
    """A place in an array of the caller: written where it lies when it is in C order and no operand, else copied to."""
    if type(out).__module__.partition(".")[0] in ("jax", "jaxlib"):
        raise unsupported("out", "a JAX array, which nobody may write to", ALLOWED)
    memory = memory_of(out, "out")
    array = memory.array
    if memory.dtype != code:
        raise unsupported("out.dtype", NAMES[memory.dtype - 1], f"{NAMES[code - 1]}, as the result")
    if array.shape != shape:
        raise invalid("out.shape", array.shape, f"{shape}, as the result")
    if not isinstance(out, np.ndarray) and isinstance(out, DLPack):
        from . import _dlpack

        if not _dlpack.on_host(out):
            return Place(out, np.empty(shape, array.dtype), _dlpack.copy_back(out))
    if not array.flags.writeable:
        raise unsupported("out", "read-only", "an array that may be written to")
    overlaps = any(np.may_share_memory(array, operand.array) for operand in operands)
    if array.flags.c_contiguous and not overlaps:
        return Place(out, array)

    def copy(result: npt.NDArray[Any]) -> None:
        array[...] = result

    return Place(out, np.empty(shape, array.dtype), copy)
