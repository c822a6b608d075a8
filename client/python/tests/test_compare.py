"""Comparisons against numpy and exact fractions."""

import asyncio
import dataclasses
import math
from fractions import Fraction

import numpy as np
import pytest
from test_operations import REAL, sample

import tilewire as tw
import tilewire.aio
from tilewire import _core
from tilewire._compare import METRICS


def exact(a: np.ndarray, b: np.ndarray) -> dict[str, float | int]:
    """Of arrays without NaN and infinity, every number by one rounding of the exact value."""
    d = [Fraction(x.item()) - Fraction(y.item()) for x, y in zip(a.ravel(), b.ravel())]
    squares, magnitudes, n = sum(x * x for x in d), [abs(x) for x in d], len(d)
    return {
        "rmse": math.sqrt(squares / n), "mse": float(squares / n), "sum_squares": float(squares),
        "mean_abs": float(sum(magnitudes) / n), "sum_abs": float(sum(magnitudes)), "mean": float(sum(d) / n), "sum": float(sum(d)),
        "max_abs": float(max(magnitudes)), "max_abs_index": magnitudes.index(max(magnitudes)), "nan_pairs": 0,
        "unequal_pairs": sum(x != 0 for x in d),
    }  # fmt: skip


def same(found: tw.Comparison, expected: tw.Comparison) -> None:
    assert [name for name, _ in found.items()] == [name for name, _ in expected.items()]
    for (name, value), (_, number) in zip(found.items(), expected.items()):
        kind = np.int64 if name == "max_abs_index" else np.uint64
        wanted = np.asarray(number, kind) if type(number) is int else number
        assert np.asarray(value).dtype == np.asarray(wanted).dtype and np.shape(value) == np.shape(wanted), name
        assert np.asarray(value).tobytes() == np.asarray(wanted).tobytes(), name


def test_names_are_the_wires() -> None:
    assert list(METRICS) == _core.words("compare", "metrics")
    assert [field.name for field in dataclasses.fields(tw.Comparison)] == [*METRICS, "psnr", "nrmse"]
    with pytest.raises(KeyError):
        _core.words("compare", "colours")
    with pytest.raises(KeyError):
        _core.Operation("compute", {})


@pytest.mark.parametrize("name", REAL)
def test_all_metrics(client: tw.Client, rng: np.random.Generator, name: str) -> None:
    a, b = sample(name, (37, 51), rng), sample(name, (37, 51), rng)
    a[5, 7:30] = b[5, 7:30]
    found, wanted = client.compare(a, b), exact(a, b)
    assert [key for key, _ in found.items()] == list(METRICS)
    for key, value in found.items():
        if isinstance(wanted[key], int):
            assert type(value) is int and value == wanted[key], key
        else:
            scale = wanted["mean_abs" if key == "mean" else "sum_abs" if key == "sum" else key]
            assert type(value) is float and abs(value - wanted[key]) <= 1e-13 * scale, key
    assert found.rmse == client.rmse(a, b) and found.sum_squares == client.rmse(a, b, output="sum_squares")
    place = np.unravel_index(found.max_abs_index, a.shape)
    assert found.max_abs == abs(float(a[place]) - float(b[place]))


@pytest.mark.parametrize("axis", [0, 1, -1, (0, 2), (2, 0), (0, 1, 2)])
def test_batches_are_arrays(client: tw.Client, rng: np.random.Generator, axis: int | tuple[int, ...]) -> None:
    a, b = rng.integers(-9, 9, (2, 4, 33, 65)).astype("i4")
    found = client.compare(a, b, axis)
    d = (a - b).astype("f8")
    count = d.size // np.sum(d, axis).size
    for value, wanted in ((found.sum_squares, (d * d).sum(axis)), (found.sum_abs, np.abs(d).sum(axis)), (found.sum, d.sum(axis)),
                          (found.mean, d.sum(axis) / count), (found.mse, (d * d).sum(axis) / count),
                          (found.max_abs, np.abs(d).max(axis)), (found.unequal_pairs, (d != 0).sum(axis))):  # fmt: skip
        assert np.shape(value) == np.shape(wanted) and (value == wanted).all()
    if np.ndim(found.sum):
        assert (found.sum.dtype, found.max_abs_index.dtype, found.nan_pairs.dtype) == (np.float64, np.int64, np.uint64)
        reduced = sorted(n % 3 for n in np.atleast_1d(axis))
        rows = np.abs(d).transpose([n for n in range(3) if n not in reduced] + reduced).reshape(-1, count)
        assert (found.max_abs_index.ravel() == rows.argmax(1)).all()


def test_what_is_asked_for(client: tw.Client, rng: np.random.Generator) -> None:
    a, b = rng.random((2, 3000))
    found = client.compare(a, b, metrics=("max_abs", "rmse"))
    assert found.mse is None and found.rmse == client.rmse(a, b) and found.max_abs == np.abs(a - b).max()
    assert str(found) == f"rmse {found.rmse}\nmax_abs {found.max_abs}"
    one = client.compare(a, b, metrics="mse", data_range=2)
    assert [name for name, _ in one.items()] == ["mse", "psnr"]
    assert one.psnr == pytest.approx(10 * math.log10(4 / one.mse), rel=1e-14)
    both = client.compare(a.reshape(3, -1), b.reshape(3, -1), 1, data_range=0.5)
    assert both.psnr.shape == (3,) and (both.nrmse == both.rmse / 0.5).all()
    assert client.compare(a, a, data_range=1).psnr == math.inf


def test_nan_infinity_and_zeros(client: tw.Client) -> None:
    a = np.array([np.nan, 1.0, np.inf, np.inf, -0.0])
    found = client.compare(a, np.array([1.0, 1.0, np.inf, 5.0, 0.0]))
    assert (found.nan_pairs, found.unequal_pairs, found.max_abs, found.max_abs_index) == (2, 2, math.inf, 3)
    assert math.isnan(found.sum) and math.isnan(found.rmse)
    none = client.compare(a[:1], a[:1])
    assert math.isnan(none.max_abs) and none.max_abs_index == -1 and none.nan_pairs == 1
    equal = client.compare(a[1:2], a[1:2])
    assert (equal.max_abs, equal.max_abs_index, equal.rmse) == (0, 0, 0)


def test_ties_of_64_bit_integers_are_exact(client: tw.Client) -> None:
    a, b = np.zeros((2, 5000), "u8")
    a[4000], a[17], b[9] = 2**63, 2**63 - 1, 2**63
    found = client.compare(a, b)
    assert found.max_abs == 2.0**63 and found.max_abs_index == 9 and found.unequal_pairs == 3


def test_every_way_gives_the_same_bits(server: tw.LocalClient, rng: np.random.Generator) -> None:
    a, b = rng.standard_normal((2, 300, 4097))

    async def main() -> tw.Comparison:
        async with tw.aio.connect(server.address) as c:
            return await c.compare(a, b, 0, data_range=8)

    plain = server.compare(a, b, 0, data_range=8)
    assert server.timing is not None and server.timing.numeric_version == "compare.1"
    same(asyncio.run(main()), plain)
    with tw.connect(server.address, via="region") as shared, server.put(b) as there:
        same(shared.compare(a, b, 0, data_range=8), plain)
        same(server.compare(a, there, 0, data_range=8), plain)
        same(server.compare(a, b, 0, data_range=8, connections=4), plain)
        same(server.compare(np.asfortranarray(a), b, 0, data_range=8, block_bytes=4096, lanes=1), plain)
    with server.trace() as trace:
        server.compare(a, b)
    assert [call.title for call in trace.calls] == ["compare"]


def test_several_servers(server: tw.LocalClient, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    dask = pytest.importorskip("dask")
    da = pytest.importorskip("dask.array")
    import tilewire.dask as several

    monkeypatch.setattr(several, "PIECE_BYTES", 1 << 17)
    with tw.local("cpu") as other:
        servers = [server, other]
        for shape, axis in (((300_001,), None), ((5, 70_000), 1), ((40, 30, 50), (0, 2)), ((64, 8193), 0)):
            a, b = rng.standard_normal((2, *shape))
            if axis == 0:
                a.flat[7::5003] = b.flat[11::9001] = np.nan
            a.flat[50_000:50_900] = b.flat[50_000:50_900]
            with pytest.warns(several.RechunkWarning):
                lazy = several.compare(da.from_array(a, 1237), da.from_array(b, 4096), axis, data_range=3, servers=servers)
            (found,) = dask.compute(lazy, scheduler="threads")
            wanted = server.compare(a, b, axis, data_range=3)
            same(dataclasses.replace(found), wanted)
        ties = np.zeros(100_000, "f4")
        ties[[90_000, 70_000, 33]] = -2, 2, np.nan
        lazy = several.compare(da.from_array(ties, 4096), np.zeros_like(ties), metrics="max_abs_index", servers=servers)
        assert lazy.max_abs_index.compute() == 70_000 and lazy.rmse is None
        whole = np.arange(100_000)
        lazy = several.compare(da.from_array(whole, 1 << 14), whole[::-1].copy(), servers=servers)
        assert lazy.max_abs_index is None and lazy.sum.compute() == 0 and lazy.max_abs.compute() == 99_999
        with pytest.raises(ValueError, match="max_abs_index"):
            several.compare(da.from_array(whole), whole, metrics=["max_abs_index"], servers=servers)
