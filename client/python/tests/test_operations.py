"""What the operations compute, against numpy."""

import math

import numpy as np
import pytest
from conftest import rmse

import tilewire as tw
from tilewire import _core
from tilewire._arrays import NAMES

REAL = [name for name in NAMES if name not in ("bool", "bfloat16", "complex64", "complex128")]


def sample(name: str, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    dtype = np.dtype(name)
    if dtype.kind in "fc":
        return rng.standard_normal(shape).astype(dtype)
    return rng.integers(0, 2 if dtype.kind == "b" else 100, shape).astype(dtype)


def test_names_are_the_wires() -> None:
    short = {"bool": "bool", "int": "i", "uint": "u", "float": "f", "bfloat": "bf", "complex": "c"}
    for code, name, size in _core.dtypes():
        long = NAMES[code - 1]
        assert short[long.rstrip("0123456789")] + long.lstrip("abcdefghijklmnopqrstuvwxyz") == name
        assert long == "bool" or int(long.lstrip("abcdefghijklmnopqrstuvwxyz")) == 8 * size
    assert len(NAMES) == len(_core.dtypes())


@pytest.mark.parametrize("name", REAL)
def test_rmse(client: tw.Client, rng: np.random.Generator, name: str) -> None:
    a, b = sample(name, (37, 501), rng), sample(name, (37, 501), rng)
    value = client.rmse(a, b)
    assert type(value) is float
    assert value == pytest.approx(float(rmse(a, b)), rel=1e-14)
    rows = client.rmse(a, b, axis=1)
    assert isinstance(rows, np.ndarray) and rows.dtype == np.float64 and rows.shape == (37,)
    np.testing.assert_allclose(rows, rmse(a, b, 1), rtol=1e-13)


def test_rmse_is_exact_where_numpy_is(client: tw.Client, rng: np.random.Generator) -> None:
    a, b = rng.integers(-9, 9, (2, 5, 12289)).astype("i4")
    d = (a - b).astype(float)
    assert client.rmse(a, b) == math.sqrt((d * d).sum() / d.size)
    assert client.rmse(a, b, output="mse") == (d * d).sum() / d.size
    assert client.rmse(a, b, output="sum_squares") == (d * d).sum()
    assert (client.rmse(a, b, axis=-1, output="sum_squares") == (d * d).sum(-1)).all()


def test_rmse_of_int32_three_apart(client: tw.Client) -> None:
    a = np.arange(1000, dtype="i4")
    assert client.rmse(a, a + np.int32(3)) == 3.0


@pytest.mark.parametrize("axis", [0, 1, 2, -1, (0, 1), (0, 2), (2, 0), (1, -1), (0, 1, 2), None])
def test_axes(client: tw.Client, rng: np.random.Generator, axis: object) -> None:
    a, b = rng.standard_normal((2, 4, 65, 33))
    np.testing.assert_allclose(client.rmse(a, b, axis), rmse(a, b, axis), rtol=1e-13)


def test_nan_and_infinity(client: tw.Client) -> None:
    a = np.array([1.0, np.nan]), np.array([np.inf, 1.0])
    assert math.isnan(client.rmse(a[0], a[0])) and client.rmse(a[1], np.zeros(2)) == math.inf


@pytest.mark.parametrize("name", [name for name in NAMES if name != "bfloat16"])
def test_transpose(client: tw.Client, rng: np.random.Generator, name: str) -> None:
    a = sample(name, (5, 17, 4), rng)
    for axes in (None, (1, 0, 2), (-1, 0, 1), (0, 1, 2)):
        result = client.transpose(a, axes)
        assert result.dtype == a.dtype and result.flags.c_contiguous
        assert (result == a.transpose(axes)).all()


@pytest.mark.parametrize("name", ["float32", "float64"])
def test_gaussian_pdf(client: tw.Client, rng: np.random.Generator, name: str) -> None:
    x = sample(name, (300, 77), rng)
    exact = np.exp(-(((x.astype("f16") - 0.5) / 2) ** 2) / 2) / (2 * np.sqrt(2 * np.longdouble("3.14159265358979323846")))
    result = client.gaussian_pdf(x, 0.5, 2)
    assert result.dtype == x.dtype
    assert (np.abs(result - exact) <= 1.001 * np.spacing(exact.astype(x.dtype))).all()


@pytest.mark.parametrize("connections", [1, 3])
def test_large_arrays_are_streamed(client: tw.Client, rng: np.random.Generator, connections: int) -> None:
    a, b = rng.random((2, 700, 3001), dtype="f4")
    assert client.rmse(a, b, connections=connections) == pytest.approx(float(rmse(a, b)), rel=1e-13)
    timing = client.timing
    assert timing is not None and timing.streamed and timing.bytes_in == 2 * a.nbytes
    assert (client.transpose(a, connections=connections) == a.T).all()
    assert client.gaussian_pdf(a, 0, 1, connections=connections)[5, 7] == pytest.approx(
        math.exp(-(float(a[5, 7]) ** 2) / 2) / math.sqrt(2 * math.pi), rel=1e-6)


def test_ways_and_connections_give_the_same_bits(server: tw.LocalClient, rng: np.random.Generator) -> None:
    a, b = rng.standard_normal((2, 300, 4097))
    with tw.connect(server.address) as plain, tw.connect(server.address, via="region") as shared, plain.put(b) as there:
        values = {plain.rmse(a, b), plain.rmse(a, b, connections=5), plain.rmse(a, there), shared.rmse(a, b),
                  plain.rmse(a, b, block_bytes=4096, lanes=1, sequential=True)}
        assert len(values) == 1
        columns = plain.rmse(a, b, axis=0)
        assert (shared.rmse(a, b, axis=0) == columns).all()


def test_out(client: tw.Client, rng: np.random.Generator) -> None:
    a, b = rng.random((2, 600, 700), dtype="f4")
    out = np.empty((700, 600), "f4")
    assert client.transpose(a, out=out) is out and (out == a.T).all()
    wide = np.zeros((700, 1200), "f4")
    assert (client.transpose(a, out=wide[:, ::2]) == a.T).all() and (wide[:, ::2] == a.T).all() and not wide[:, 1::2].any()
    rows = np.empty(600)
    assert client.rmse(a, b, 1, out=rows) is rows and (rows == client.rmse(a, b, 1)).all()
    one = np.empty(())
    assert client.rmse(a, b, out=one) is one and one == client.rmse(a, b)
    expected = client.gaussian_pdf(a, 0, 1)
    assert client.gaussian_pdf(a, 0, 1, out=a) is a and (a == expected).all()


def test_out_may_be_the_operand(client: tw.Client, rng: np.random.Generator) -> None:
    a = rng.random((900, 900), dtype="f4")
    turned = a.T.copy()
    client.transpose(a, out=a)
    assert (a == turned).all()


def test_trace_and_timing(client: tw.Client, rng: np.random.Generator, tmp_path) -> None:
    a, b = rng.random((2, 800, 900), dtype="f4")
    assert client.timing is None
    with client.trace(tmp_path / "t.svg") as trace:
        client.rmse(a, b)
        client.transpose(a)
    assert [call.title for call in trace.calls] == ["rmse", "transpose"]
    for name in ("t.svg", "t-2.svg"):
        assert (tmp_path / name).read_text().startswith("<svg")
    assert trace._repr_svg_() == trace.calls[1].svg
    with client.trace(tmp_path / "t.json"):
        client.rmse(a, b)
    assert "traceEvents" in (tmp_path / "t.json").read_text()
    timing = client.timing
    assert timing is not None and timing.wall_us > 0 and timing.numeric_version == "rmse.1" and timing.device == "cpu"
    assert timing.other_us is not None and 0 <= timing.other_us <= timing.wall_us
    assert "rmse.1 on cpu" in str(timing) and "<pre>" in timing._repr_html_()
    client.rmse(a, b)
    assert len(trace.calls) == 2


@pytest.mark.parametrize("name", REAL)
def test_the_short_way_and_the_long_way(client: tw.Client, rng: np.random.Generator, name: str) -> None:
    """Plain arrays take one step of C++; with an option, the long way: the same bits."""
    for shape in ((), (1,), (3, 5, 7), (300_000,)):
        a, b = np.asarray(sample(name, shape, rng)), np.asarray(sample(name, shape, rng))
        for output in ("rmse", "mse", "sum_squares"):
            value = client.rmse(a, b, output=output)  # type: ignore[call-overload]
            short = client.timing
            assert type(value) is float and short is not None and short.numeric_version == "rmse.1"
            assert value == client.rmse(a, b, output=output, max_attempts=5)  # type: ignore[call-overload]


def test_the_short_way_fails_as_the_long_way(client: tw.Client) -> None:
    a = np.zeros((4, 5), "f4")
    for wrong in (np.zeros((5, 4), "f4"), np.zeros((4, 5)), np.zeros((4, 5), "?"), np.zeros((0, 5), "f4"), np.zeros((4, 5), ">f4")):
        said = []
        for how in ({}, {"max_attempts": 5}):
            with pytest.raises(tw.Error) as caught:
                client.rmse(a, wrong, **how)  # type: ignore[call-overload]
            said.append((type(caught.value), str(caught.value), caught.value.field, caught.value.allowed))
        assert said[0] == said[1]
        assert client.timing is None
