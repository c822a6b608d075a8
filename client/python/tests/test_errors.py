"""Wrong input of every kind: the named exception, and nothing hangs."""

import pickle
import time
from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

import tilewire as tw

A = np.ones((4, 6), "f4")
BIG = np.ones((4, 6), ">f4")
RECORD = np.zeros(3, [("x", "f4"), ("y", "i4")])
Wrong = Callable[[tw.Client], object]

# What is wrong: the call, the exception, and what its message or field says.
CASES: dict[str, tuple[Wrong, type[BaseException], str]] = {
    "a list": (lambda c: c.rmse([1.0], [2.0]), TypeError, "a is a list"),
    "a number": (lambda c: c.rmse(1.0, 2.0), TypeError, "a is a float"),
    "None": (lambda c: c.transpose(None), TypeError, "a is a NoneType"),
    "bytes": (lambda c: c.transpose(b"1234"), TypeError, "a is a bytes"),
    "text": (lambda c: c.rmse("a.npy", "b.npy"), TypeError, "a is a str"),
    "an array of text": (lambda c: c.transpose(np.array(["a"])), TypeError, "a.dtype is <U1"),
    "objects": (lambda c: c.transpose(np.array([None])), TypeError, "a.dtype is object"),
    "records": (lambda c: c.transpose(RECORD), TypeError, "a.dtype is \\[\\('x'"),
    "dates": (lambda c: c.transpose(np.zeros(3, "M8[s]")), TypeError, "datetime64"),
    "long double": (lambda c: c.transpose(np.zeros(3, "g")), TypeError, "float128"),
    "big-endian": (lambda c: c.rmse(BIG, BIG), TypeError, "big-endian float32"),
    "a masked array": (lambda c: c.rmse(np.ma.masked_array(A, A > 0), A), TypeError, "masked array"),
    "int4": (lambda c: c.transpose(np.zeros(3, ml_dtypes.int4)), TypeError, "int4"),
    "shapes that differ": (lambda c: c.rmse(A, A[:2]), ValueError, "b.shape is \\(2, 6\\)"),
    "no broadcasting": (lambda c: c.rmse(A, A[0]), ValueError, "b.shape is \\(6\\)"),
    "dtypes that differ": (lambda c: c.rmse(A, A.astype("f8")), ValueError, "b.dtype is f64"),
    "bool": (lambda c: c.rmse(A > 0, A > 0), ValueError, "a.dtype is bool"),
    "complex": (lambda c: c.rmse(A * 1j, A * 1j), ValueError, "a.dtype is c64"),
    "nothing in it": (lambda c: c.rmse(A[:0], A[:0]), ValueError, "allowed"),
    "seventeen axes": (lambda c: c.transpose(np.zeros((1,) * 17)), ValueError, "16"),
    "axis beyond": (lambda c: c.rmse(A, A, axis=2), ValueError, "axes"),
    "axis before": (lambda c: c.rmse(A, A, axis=-3), ValueError, "axes"),
    "axis far beyond": (lambda c: c.rmse(A, A, axis=2**40), ValueError, "axis"),
    "axis twice": (lambda c: c.rmse(A, A, axis=(0, -2)), ValueError, "axes"),
    "no axis": (lambda c: c.rmse(A, A, axis=()), ValueError, "axis is \\(\\)"),
    "axis of text": (lambda c: c.rmse(A, A, axis="0"), TypeError, "axis is '0'"),
    "half an axis": (lambda c: c.rmse(A, A, axis=0.5), TypeError, "axis is 0.5"),
    "axis True": (lambda c: c.rmse(A, A, axis=True), TypeError, "axis is True"),
    "an unknown output": (lambda c: c.rmse(A, A, output="mean"), ValueError, "output is 'mean'"),
    "too few axes": (lambda c: c.transpose(A, (0,)), ValueError, "axes"),
    "an axis missing": (lambda c: c.transpose(A, (0, 0)), ValueError, "axes"),
    "integers to gaussian_pdf": (lambda c: c.gaussian_pdf(A.astype("i4"), 0, 1), ValueError, "dtype is i32"),
    "stddev 0": (lambda c: c.gaussian_pdf(A, 0, 0), ValueError, "stddev is 0.0"),
    "stddev negative": (lambda c: c.gaussian_pdf(A, 0, -1), ValueError, "stddev is -1.0"),
    "stddev NaN": (lambda c: c.gaussian_pdf(A, 0, float("nan")), ValueError, "stddev is nan"),
    "mean infinite": (lambda c: c.gaussian_pdf(A, float("inf"), 1), ValueError, "mean is inf"),
    "mean of text": (lambda c: c.gaussian_pdf(A, "0", 1), TypeError, "mean is '0'"),
    "out of another shape": (lambda c: c.transpose(A, out=np.empty((4, 6), "f4")), ValueError, "out.shape"),
    "out of another dtype": (lambda c: c.transpose(A, out=np.empty((6, 4))), TypeError, "out.dtype is float64"),
    "out read-only": (lambda c: c.transpose(A, out=np.broadcast_to(A[:1, :1], (6, 4))), TypeError, "read-only"),
    "out a list": (lambda c: c.transpose(A, out=[0] * 24), TypeError, "out is a list"),
    "out and store": (lambda c: c.transpose(A, out=np.empty((6, 4), "f4"), store=True), ValueError, "store"),
    "timeout negative": (lambda c: c.rmse(A, A, timeout=-1), ValueError, "timeout is -1"),
    "timeout NaN": (lambda c: c.rmse(A, A, timeout=float("nan")), ValueError, "timeout is nan"),
    "timeout of text": (lambda c: c.rmse(A, A, timeout="1"), TypeError, "timeout is '1'"),
    "connections negative": (lambda c: c.rmse(A, A, connections=-1), ValueError, "connections is -1"),
    "an unknown option": (lambda c: c.rmse(A, A, conections=2), TypeError, "unknown option 'conections'"),
    "request id with a newline": (lambda c: c.rmse(A, A, request_id="a\nb"), ValueError, "request_id"),
    "ttl 0": (lambda c: c.put(A, ttl=0), ValueError, "ttl is 0.0"),
    "ttl longer than the server's": (lambda c: c.put(A, ttl=1e9), tw.Error, "ttl"),
    "an unknown id": (lambda c: c.array("0000000000000000-0000000000000000"), KeyError, "NOT_FOUND"),
    "no id": (lambda c: c.array(7), TypeError, "id is 7"),
    "an empty shape": (lambda c: c.empty((3, 0)), ValueError, "shape"),
    "a shape of floats": (lambda c: c.empty((3.0,)), TypeError, "shape"),
    "a region of objects": (lambda c: c.empty(3, object), TypeError, "object"),
    "a trace of another kind": (lambda c: c.trace("t.png"), ValueError, "t.png"),
    "an unknown way": (lambda c: tw.connect(c.address, via="pigeon"), ValueError, "via is 'pigeon'"),
    "no address": (lambda c: tw.connect(7), TypeError, "address is 7"),
    "metadata with a newline": (lambda c: tw.connect(c.address, metadata={"x": "a\nb"}).rmse(A, A), ValueError, "metadata"),
    "an unknown metric": (lambda c: c.compare(A, A, metrics="psnr"), ValueError, "metrics is 'psnr'"),
    "a metric twice": (lambda c: c.compare(A, A, metrics=("mse", "mse")), ValueError, "metrics is"),
    "no metric": (lambda c: c.compare(A, A, metrics=()), ValueError, "metrics is \\(\\)"),
    "a number as metric": (lambda c: c.compare(A, A, metrics=0), TypeError, "metrics is 0"),
    "data range 0": (lambda c: c.compare(A, A, data_range=0), ValueError, "data_range is 0.0"),
    "data range of text": (lambda c: c.compare(A, A, data_range="1"), TypeError, "data_range is '1'"),
    "data range of no use": (lambda c: c.compare(A, A, metrics="sum", data_range=1), ValueError, "neither rmse nor mse"),
    "shapes to compare": (lambda c: c.compare(A, A[0]), ValueError, "b.shape is \\(6\\)"),
    "time over": (lambda c: c.rmse(A, A, timeout=0), TimeoutError, "DEADLINE_EXCEEDED"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_wrong_input(client: tw.Client, case: str) -> None:
    call, kind, text = CASES[case]
    with pytest.raises(kind, match=text) as caught:
        call(client)
    if case != "an unknown option":
        assert isinstance(caught.value, tw.Error)
    assert client.rmse(A, A + 1) == 1.0  # the client is as good as before


def test_errors_say_what_was_wrong(client: tw.Client) -> None:
    with pytest.raises(tw.InvalidArgument) as caught:
        client.rmse(A, A[:2])
    error = caught.value
    assert (error.code, error.reason, error.field) == ("INVALID_ARGUMENT", "BAD_VALUE", "b.shape")
    assert error.value == "(2, 6)" and error.allowed.startswith("(4, 6)")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error) and str(again) == str(error) and again.allowed == error.allowed
    with pytest.raises(tw.NotFound) as lost:
        client.array("0000000000000000-0000000000000000")
    assert not str(lost.value).startswith("'")


def test_arrays_of_another_server(client: tw.Client) -> None:
    with tw.local("cpu") as other, other.put(A) as there:
        with pytest.raises(ValueError, match="an array at"):
            client.rmse(there, A)
        assert client.rmse(np.asarray(there), A) == 0


def test_a_server_that_is_not_there() -> None:
    with tw.connect("localhost:1") as client:
        start = time.monotonic()
        with pytest.raises(ConnectionError) as caught:
            client.rmse(A, A, max_attempts=2)
        assert isinstance(caught.value, tw.Unavailable) and time.monotonic() - start < 20
        with pytest.raises(ConnectionError):
            client.ping()


def test_a_server_that_goes_away() -> None:
    with tw.local("cpu") as client:
        there = client.put(A)
        client.server.stop()
        with pytest.raises(ConnectionError):
            client.rmse(A, A, max_attempts=1)
        start = time.monotonic()
        del there
        assert time.monotonic() - start < 5


@pytest.mark.parametrize("connections", [1, 4])
def test_deadline_within_an_upload(client: tw.Client, connections: int) -> None:
    a = np.zeros(1 << 27, "u1")  # of untouched pages
    for timeout in (0.001, 0.01, 0.03):
        with pytest.raises(TimeoutError) as caught:
            client.rmse(a, a, timeout=timeout, connections=connections)
        assert isinstance(caught.value, tw.DeadlineExceeded)


def test_closed(client: tw.Client) -> None:
    there = client.put(A)
    with there:
        pass
    with pytest.raises(tw.FailedPrecondition, match="closed"):
        there.get()
    other = tw.connect(client.address)
    other.rmse(A, A)
    other.close()
    with pytest.raises(tw.FailedPrecondition, match="closed"):
        other.rmse(A, A)
    other.close()


def test_a_program_that_does_not_start() -> None:
    with pytest.raises(tw.Unavailable, match="lanes"):
        tw.local("cpu", flags=["--lanes", "many"])
