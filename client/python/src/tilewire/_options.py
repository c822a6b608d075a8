"""Arguments that calls have beside arrays, checked: what is wrong is refused by name before anything is sent."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from numbers import Real
from typing import Literal, TypedDict

from . import _core
from ._errors import invalid, unsupported

#: Which value ``rmse`` returns.
Output = Literal["rmse", "mse", "sum_squares"]
OUTPUTS: dict[str, int] = {"rmse": 0, "mse": 1, "sum_squares": 2}
#: To reduce, or in what order.
Axes = int | Sequence[int] | None
#: How arrays travel.
Via = Literal["auto", "wire", "region"]
VIAS = ("auto", "wire", "region")


class CallOptions(TypedDict, total=False):
    """Options of one call, instead of the client's.

    timeout: seconds for the whole call, retries included; None waits for ever.
    connections: that carry a large call, at most; 0 chooses.
    request_id: up to 128 visible ASCII characters, in the server's log.
    max_attempts: tries in all, for servers that are busy or cannot be reached.
    block_bytes, lanes, sequential: for study; results are the same.
    """

    timeout: float | None
    connections: int
    request_id: str
    max_attempts: int
    block_bytes: int
    lanes: int
    sequential: bool


def seconds(value: object, field: str) -> float:
    """Seconds, 0 or more; −1 for None: for ever."""
    if value is None:
        return -1.0
    number = real(value, field)
    if not number >= 0:
        raise invalid(field, number, "seconds, 0 or more, or None")
    return min(number, 1e9)


def real(value: object, field: str) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise unsupported(field, f"{value!r}", "a real number")
    return float(value)


def whole(value: object, field: str, most: int) -> int:
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise unsupported(field, f"{value!r}", "an integer") from None
    if isinstance(value, bool):
        raise unsupported(field, f"{value!r}", "an integer")
    if not 0 <= number <= most:
        raise invalid(field, number, f"0 to {most}")
    return number


def axes(value: int | Sequence[int] | None, field: str) -> list[int]:
    """Axes for the wire, where none stand for all; the C++ client checks them against the array."""
    if value is None:
        return []
    try:
        listed = [operator.index(value)]  # type: ignore[arg-type]
    except TypeError:
        if isinstance(value, str | bytes) or not isinstance(value, Sequence):
            raise unsupported(field, f"{value!r}", "an integer, a tuple of integers, or None") from None
        listed = []
        for axis in value:
            if isinstance(axis, bool) or not hasattr(axis, "__index__"):
                raise unsupported(field, f"{value!r}", "a tuple of integers") from None
            listed.append(operator.index(axis))
    if isinstance(value, bool):
        raise unsupported(field, f"{value!r}", "an integer, a tuple of integers, or None")
    for axis in listed:
        if not -(2**31) <= axis < 2**31:
            raise invalid(field, axis, "axes of the array")
    return listed


def reduced(axis: int | Sequence[int] | None) -> list[int]:
    listed = axes(axis, "axis")
    if axis is not None and not listed:
        raise invalid("axis", "()", "None for all axes, or one axis at least")
    return listed


def output(value: str) -> int:
    number = OUTPUTS.get(value) if isinstance(value, str) else None
    if number is None:
        raise invalid("output", repr(value), ", ".join(map(repr, OUTPUTS)))
    return number


def normal(mean: object, stddev: object) -> tuple[float, float]:
    at, width = real(mean, "mean"), real(stddev, "stddev")
    if not math.isfinite(at):
        raise invalid("mean", at, "any finite number")
    if not (math.isfinite(width) and width > 0):
        raise invalid("stddev", width, "any finite number greater than 0")
    return at, width


_ALL = frozenset(CallOptions.__annotations__)


def make(options: CallOptions, trace: bool) -> _core.Options:
    unknown = set(options) - _ALL
    if unknown:
        raise TypeError(f"unknown option {sorted(unknown)[0]!r}; allowed: {', '.join(sorted(_ALL))}")
    request_id = options.get("request_id", "")
    if not isinstance(request_id, str):
        raise unsupported("request_id", f"{request_id!r}", "text")
    return _core.Options(
        timeout=seconds(options.get("timeout"), "timeout"),
        connections=whole(options.get("connections", 0), "connections", 64),
        trace=trace,
        request_id=request_id,
        max_attempts=whole(options.get("max_attempts", _core.default_attempts), "max_attempts", 1000),
        block_bytes=whole(options.get("block_bytes", 0), "block_bytes", 2**60),
        lanes=whole(options.get("lanes", 0), "lanes", 2**31 - 1),
        sequential=bool(options.get("sequential", False)),
    )
