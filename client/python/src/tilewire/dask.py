"""Arrays of Dask, computed by several servers: the bits of one.

    import dask.array as da, tilewire.dask
    value = tilewire.dask.rmse(X, Y, servers=["one:50051", "two:50051"]).compute()

The order in which `rmse.1` adds is a tree over tiles of 4096 elements. Servers compute the sums of pieces that begin at
multiples of 4096 · 2^k elements and are as long, each of which is a node of that tree; adding those in the tree's order gives
what one server gives, whatever the chunks, workers and servers were, and whichever of them had to stand in for another.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ._client import Client
from ._compare import METRICS, Comparison, Metric, Question, derived
from ._errors import Error, invalid, unsupported
from ._options import Axes, Output
from ._options import axes as checked_axes
from ._options import output as checked_output
from ._options import reduced
from ._servers import Server, by_any

try:
    from dask import array
except ImportError as error:
    raise ImportError("tilewire.dask needs Dask: pip install tilewire[dask]") from error

if TYPE_CHECKING:
    import numpy.typing as npt

da: Any = array  # half of it has no types
TILE = 4096
#: Of one operand of one call, about.
PIECE_BYTES = 32 << 20


class RechunkWarning(UserWarning):
    """Chunks do not lie where sums may be cut: Dask moves elements between them first."""


def _sums(x: npt.NDArray[Any], y: npt.NDArray[Any], servers: Sequence[Server], timeout: float | None,
          block_info: Any = None) -> npt.NDArray[np.float64]:  # fmt: skip
    """Sums of squares of the rows of one piece: shape (rows, 1)."""
    sums = by_any(servers, block_info, lambda c: c.rmse(x, y, 1, "sum_squares", timeout=timeout, max_attempts=3))
    return np.asarray(sums).reshape(-1, 1)


def _parts(x: npt.NDArray[Any], y: npt.NDArray[Any], servers: Sequence[Server], timeout: float | None, parts: Sequence[Metric],
           block_info: Any = None) -> npt.NDArray[np.uint64]:  # fmt: skip
    """What comparisons of the rows of one piece are made of, words of 8 bytes: shape (rows, 1, parts)."""
    found = by_any(servers, block_info, lambda c: c.compare(x, y, 1, parts, timeout=timeout, max_attempts=3))
    if found.max_abs_index is not None and block_info:
        start = block_info[0]["array-location"][1][0]
        found.max_abs_index[found.max_abs_index >= 0] += start
    return np.stack([getattr(found, part).view(np.uint64) for part in parts], axis=-1)[:, np.newaxis]


def _merge(nodes: npt.NDArray[np.float64], count: int, output: str) -> npt.NDArray[np.float64]:
    """The tree over nodes (rows, nodes of one level), and what is made of its root."""
    while nodes.shape[1] > 1:
        pairs = nodes[:, 0:-1:2] + nodes[:, 1::2]
        nodes = np.concatenate([pairs, nodes[:, -1:]], axis=1) if nodes.shape[1] % 2 else pairs
    total = nodes[:, 0]
    if output != "sum_squares":
        total = total / count
    if output == "rmse":
        total = np.sqrt(total)
    return np.where(np.isnan(total), np.nan, total)


def _piece(rows: int, columns: int, itemsize: int) -> tuple[int, int]:
    """Rows and columns of a piece: whole rows where they fit, else runs of 4096 · 2^k columns of single rows."""
    most = max(PIECE_BYTES // itemsize, TILE)
    if columns <= most:
        return min(rows, max(1, most // columns)), columns
    return 1, TILE << (most // TILE).bit_length() - 1


def _rows(x: Any, kept: Sequence[int], axes: Sequence[int], shape: tuple[int, int]) -> Any:
    """As a matrix: what stays by what is reduced, both in the array's order."""
    return x.transpose([*kept, *axes]).reshape(shape)


def _as_dask(x: Any, like: Any, field: str) -> Any:
    if isinstance(x, da.Array):
        if any(math.isnan(extent) for extent in x.shape):
            raise invalid(field, f"of unknown shape {x.shape}", "known chunks: x.compute_chunk_sizes()")
        return x
    if not hasattr(x, "dtype") or not hasattr(x, "shape"):
        raise unsupported(field, f"a {type(x).__qualname__}", "a Dask array or a numpy array")
    return da.from_array(x, chunks=like.chunks if isinstance(like, da.Array) and like.shape == x.shape else "auto")


def rmse(X: Any, Y: Any, axis: Axes = None, output: Output = "rmse", *, servers: Sequence[str | Client],
         timeout: float | None = 120.0) -> Any:  # fmt: skip
    """Root-mean-square error of two arrays of Dask, by several servers, with the bits of one; see `tilewire.Client.rmse`.

    Args:
        X, Y: equal shape and dtype; a Dask array, or a numpy array beside one.
        axis, output: as for `tilewire.Client.rmse`.
        servers: addresses, or clients, whose TLS, token and metadata workers use too (they travel with the tasks). A piece whose
            server fails is given to the next.
        timeout: seconds for a piece at one server; then the next one is asked.

    Returns: a Dask array, float64, of the axes that stay (0-d where none does): nothing is computed yet. Its tasks raise
    Unavailable where no server answers.

    Chunks that lie otherwise than sums may be cut are moved by Dask, and a RechunkWarning says so: best are 1-d arrays
    cut at 4096 · 2^k elements, or chunks that hold all of the reduced axes.
    """
    checked_output(output)
    pieces = _pieces(X, Y, axis, servers)
    sums = da.map_blocks(_sums, pieces.x, pieces.y, pieces.servers, timeout, dtype=np.float64,
                         chunks=(pieces.x.chunks[0], (1,) * pieces.x.numblocks[1]), meta=np.empty((0, 0)))  # fmt: skip
    merged = sums.rechunk({1: -1}).map_blocks(_merge, pieces.columns, output, dtype=np.float64, drop_axis=1, meta=np.empty(0))
    return merged.reshape(pieces.batch)


def compare(X: Any, Y: Any, axis: Axes = None, metrics: Metric | Sequence[Metric] | None = None, data_range: float | None = None,
            *, servers: Sequence[str | Client], timeout: float | None = 120.0) -> Comparison:  # fmt: skip
    """Error metrics of two arrays of Dask, by several servers, with the bits of one; see `tilewire.Client.compare`.

    Args:
        X, Y, servers, timeout: as for `rmse`.
        axis, metrics, data_range: as for `tilewire.Client.compare`. Of 64-bit integers `max_abs_index` is not offered, since
            exact numbers decide its ties: None is all the others then.

    Returns: a `Comparison` of Dask arrays of the axes that stay (0-d where none does). Nothing is computed yet; together
    they are computed in one pass: ``dask.compute(comparison)[0]``.
    """
    pieces = _pieces(X, Y, axis, servers)
    exact = pieces.x.dtype.kind in "iu" and pieces.x.dtype.itemsize == 8
    if metrics is None and exact:
        metrics = [metric for metric in METRICS if metric != "max_abs_index"]
    question = Question(axis, metrics, data_range)
    if exact and "max_abs_index" in question.metrics:
        raise invalid("metrics", "'max_abs_index' of 64-bit integers", "the others, or rmse and compare of one server")
    parts = sorted({part for metric in question.metrics for part in _MADE_OF.get(metric, (metric,))}, key=METRICS.index)
    words = da.map_blocks(_parts, pieces.x, pieces.y, pieces.servers, timeout, parts, dtype=np.uint64, new_axis=2,
                          chunks=(pieces.x.chunks[0], (1,) * pieces.x.numblocks[1], (len(parts),)),
                          meta=np.empty((0, 0, 0), np.uint64)).rechunk({1: -1})  # fmt: skip

    def merged(metric: str) -> Any:
        kind = _KINDS.get(metric, np.float64)
        value = words.map_blocks(_merge_metric, metric, parts, pieces.columns, data_range, dtype=kind, drop_axis=(1, 2),
                                 meta=np.empty(0, kind))  # fmt: skip
        return value.reshape(pieces.batch)

    names: list[str] = [*question.metrics]
    if data_range is not None:
        names += [name for name, of in (("psnr", "mse"), ("nrmse", "rmse")) if of in names]
    return Comparison(**{name: merged(name) for name in names})


#: What pieces are asked for, where that is something else.
_MADE_OF: dict[str, tuple[Metric, ...]] = {
    "rmse": ("sum_squares",), "mse": ("sum_squares",), "mean_abs": ("sum_abs",), "mean": ("sum",),
    "max_abs_index": ("max_abs", "max_abs_index"),
}  # fmt: skip
_KINDS: dict[str, type[np.generic]] = {"max_abs_index": np.int64, "nan_pairs": np.uint64, "unequal_pairs": np.uint64}


def _merge_metric(words: npt.NDArray[np.uint64], metric: str, parts: Sequence[str], count: int,
                  data_range: float | None) -> npt.NDArray[Any]:  # fmt: skip
    """One metric of rows, of the words of all their pieces."""

    def part(name: str, kind: type[np.generic] = np.float64) -> npt.NDArray[Any]:
        found: npt.NDArray[Any] = words[:, :, parts.index(name)].view(kind)
        return found

    if metric in ("nan_pairs", "unequal_pairs"):
        return np.asarray(part(metric, np.uint64).sum(axis=1))
    if metric in ("psnr", "nrmse"):
        assert data_range is not None
        of = "mse" if metric == "psnr" else "rmse"
        return np.asarray(derived({of: _merge(part("sum_squares"), count, of)}, data_range)[metric])
    if metric in ("max_abs", "max_abs_index"):
        values = part("max_abs")
        none = np.isnan(values)
        largest = np.where(none, -1.0, values).max(axis=1)
        if metric == "max_abs":
            return np.where(largest < 0, np.nan, largest)
        first = np.where(none | (values != largest[:, np.newaxis]), np.iinfo(np.int64).max, part(metric, np.int64)).min(axis=1)
        return np.where(largest < 0, -1, first)
    made_of = _MADE_OF.get(metric, (metric,))[0]
    output = {"rmse": "rmse", "mse": "mse", "mean_abs": "mse", "mean": "mse"}.get(metric, "sum_squares")
    return _merge(part(made_of), count, output)


class _Pieces(NamedTuple):
    """Both arrays as matrices, what stays by what is reduced, whose chunks are the pieces."""

    x: Any
    y: Any
    servers: list[Server]
    batch: tuple[int, ...]  #: extents of the axes that stay
    columns: int


def _pieces(X: Any, Y: Any, axis: Axes, servers: Sequence[str | Client]) -> _Pieces:
    known = [Server.of(server) for server in servers]
    if not known or not all(isinstance(server.address, str) and server.address for server in known):
        raise invalid("servers", repr(list(servers)), "one address or client at least")
    x = _as_dask(X, Y, "X")
    y = _as_dask(Y, x, "Y")
    if x.shape != y.shape:
        raise invalid("Y.shape", y.shape, f"{x.shape}, as X")
    if x.dtype != y.dtype:
        raise invalid("Y.dtype", y.dtype, f"{x.dtype}, as X")
    axes = _reduced(axis, x.ndim)
    kept = [n for n in range(x.ndim) if n not in axes]
    batch = tuple(x.shape[n] for n in kept)
    rows, columns = math.prod(batch), math.prod(x.shape[n] for n in axes)
    if rows * columns == 0:
        raise invalid("X.shape", x.shape, "no empty axis")
    chunks = _piece(rows, columns, x.dtype.itemsize)
    matrices = []
    for name, given in (("X", x), ("Y", y)):
        matrix = _rows(given, kept, axes, (rows, columns)).rechunk(chunks)
        if not _lies_well(given, kept, axes, matrix):
            warnings.warn(f"{name}: chunks {given.chunksize} are cut anew, as {matrix.chunksize} of {matrix.shape}", RechunkWarning,
                          stacklevel=3)  # fmt: skip
        matrices.append(matrix)
    return _Pieces(matrices[0], matrices[1], known, batch, columns)


def _reduced(axis: Axes, rank: int) -> list[int]:
    """The axes to reduce in the array's order."""
    listed = reduced(axis) or list(range(rank))
    for one in listed:
        if not -rank <= one < rank:
            raise invalid("axis", one, f"{-rank} to {rank - 1}")
    axes = sorted(one % rank for one in listed)
    if len(set(axes)) < len(axes):
        raise invalid("axis", checked_axes(axis, "axis"), "each axis once")
    return axes


def _lies_well(given: Any, kept: Sequence[int], axes: Sequence[int], matrix: Any) -> bool:
    """Whether the pieces are the chunks, so that no element moves from one to another."""
    return math.prod(given.numblocks) == math.prod(matrix.numblocks) and all(
        len(given.chunks[n]) == 1 for n in itertools.islice(axes, 1 if not kept else 0, None)
    )


__all__ = ["Error", "RechunkWarning", "compare", "rmse"]
