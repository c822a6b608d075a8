"""Comparisons of two arrays: what is asked for, and what comes back."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from . import _core, _options
from ._errors import invalid, unsupported

if TYPE_CHECKING:
    import numpy.typing as npt

#: One of a comparison's numbers.
Metric = Literal[
    "rmse", "mse", "sum_squares", "mean_abs", "sum_abs", "mean", "sum", "max_abs", "max_abs_index", "nan_pairs", "unequal_pairs"
]  # fmt: skip
#: In the order of the wire's numbers; a test compares them with the C++ client's.
METRICS: tuple[Metric, ...] = (
    "rmse", "mse", "sum_squares", "mean_abs", "sum_abs", "mean", "sum", "max_abs", "max_abs_index", "nan_pairs", "unequal_pairs"
)  # fmt: skip


@dataclasses.dataclass(frozen=True, eq=False)
class Comparison:
    """Error metrics of two arrays, of ``d = float64(a) - float64(b)``. A pair is NaN when its d is (also Inf - Inf).

    Each is None where it was not asked for; a float or an int where no axis stays; else an array of the axes that stay:
    float64, int64 for the index, uint64 for counts.
    """

    rmse: Any = None  #: ``sqrt(mean(d ** 2))``
    mse: Any = None  #: ``mean(d ** 2)``
    sum_squares: Any = None  #: ``sum(d ** 2)``
    mean_abs: Any = None  #: ``mean(abs(d))``
    sum_abs: Any = None  #: ``sum(abs(d))``
    mean: Any = None  #: ``mean(d)``, signed
    sum: Any = None  #: ``sum(d)``, signed
    max_abs: Any = None  #: largest ``abs(d)`` without NaN pairs; NaN where no other pair is
    max_abs_index: Any = None  #: where it is first: C order index over the reduced axes (`numpy.unravel_index`); -1 where nowhere
    nan_pairs: Any = None  #: how many pairs are NaN
    unequal_pairs: Any = None  #: how many pairs are not equal: NaN is unequal to all, -0 equals +0
    psnr: Any = None  #: with `data_range`: dB, ``10 * log10(data_range ** 2 / mse)``; infinite for equal arrays
    nrmse: Any = None  #: with `data_range`: ``rmse / data_range``

    def items(self) -> list[tuple[str, Any]]:
        """Name and value of what was asked for."""
        return [(name, value) for name in NAMED if (value := getattr(self, name)) is not None]

    def __str__(self) -> str:
        return "\n".join(f"{name} {value}" for name, value in self.items())


NAMED = tuple(field.name for field in dataclasses.fields(Comparison))


class Question:
    """What is asked for, checked."""

    def __init__(self, axis: int | Sequence[int] | None, metrics: Metric | Sequence[Metric] | None, data_range: float | None) -> None:
        self.axes = _options.reduced(axis)
        self.metrics = _metrics(metrics)
        self.data_range = None if data_range is None else _options.real(data_range, "data_range")
        if self.data_range is None:
            return
        if not (math.isfinite(self.data_range) and self.data_range > 0):
            raise invalid("data_range", self.data_range, "any finite number greater than 0")
        if not {"rmse", "mse"} & set(self.metrics):
            raise invalid("data_range", self.data_range, "None where the metrics have neither rmse nor mse")

    def operation(self) -> _core.Operation:
        return _core.Operation("compare", {"axes": self.axes, "metrics": [METRICS.index(metric) for metric in self.metrics]})

    def answer(self, values: dict[str, Any]) -> Comparison:
        """`values`: of `metrics`, arrays, 0-d where no axis stays, or Dask's."""
        if self.data_range is not None:
            values = {**values, **derived(values, self.data_range)}
        return Comparison(**values)

    def numbers(self, arrays: Sequence[npt.NDArray[Any]]) -> Comparison:
        """Of the results of a call: 0-d arrays as numbers."""
        values: dict[str, Any] = {name: a.item() if a.ndim == 0 else a for name, a in zip(self.metrics, arrays)}
        if self.data_range is not None and arrays[0].ndim == 0:
            values |= {name: float(value) for name, value in derived(values, self.data_range).items()}
            return Comparison(**values)
        return self.answer(values)


def derived(values: dict[str, Any], data_range: float) -> dict[str, Any]:
    made: dict[str, Any] = {}
    if "mse" in values:
        with np.errstate(divide="ignore"):
            made["psnr"] = 20 * math.log10(data_range) - 10 * np.log10(values["mse"])
    if "rmse" in values:
        made["nrmse"] = values["rmse"] / data_range
    return made


def _metrics(metrics: Metric | Sequence[Metric] | None) -> tuple[Metric, ...]:
    if metrics is None:
        return METRICS
    listed = (metrics,) if isinstance(metrics, str) else metrics
    if not isinstance(listed, Sequence):
        raise unsupported("metrics", f"{metrics!r}", "names of metrics, or None for all")
    for metric in listed:
        if metric not in METRICS:
            raise invalid("metrics", repr(metric), ", ".join(METRICS))
    if not listed or len(set(listed)) < len(listed):
        raise invalid("metrics", repr(metrics), "each once, or None for all")
    return tuple(listed)
