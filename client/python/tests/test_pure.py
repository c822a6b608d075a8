"""The client in one file: the answers of the package, by grpcio alone."""

import importlib.util
import pathlib

import ml_dtypes
import numpy as np
import pytest

import tilewire as tw

pytest.importorskip("grpc")
_spec = importlib.util.spec_from_file_location("tilewire_pure", pathlib.Path(__file__).parents[1] / "pure" / "tilewire_pure.py")
assert _spec is not None and _spec.loader is not None
pure = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(pure)


@pytest.mark.parametrize("shape", [(), (7,), (30, 40), (3, 700, 900)])
@pytest.mark.parametrize("dtype", ["int32", "uint8", "float16", "float32", "float64", ml_dtypes.bfloat16])
def test_the_same_answers(server: tw.LocalClient, rng: np.random.Generator, shape: tuple[int, ...], dtype: object) -> None:
    a, b = (np.asarray(rng.random(shape) * 100).astype(dtype) for _ in "ab")
    with pure.Client(server.address) as c:
        assert c.rmse(a, b, timeout=30) == server.rmse(a, b)
        assert c.rmse(a, b, output="mse") == server.rmse(a, b, output="mse")
        turned = c.transpose(a)
        assert turned.dtype == a.dtype and (turned == a.T).all()
        if len(shape) > 1:
            assert (c.rmse(a, b, axis=(-1,)) == server.rmse(a, b, axis=-1)).all()
            assert (c.transpose(a.T) == a).all()
        if a.dtype in (np.float32, np.float64):
            assert (c.gaussian_pdf(a, 50, 20.5) == server.gaussian_pdf(a, 50, 20.5)).all()


def test_errors(server: tw.LocalClient) -> None:
    with pure.Client(server.address) as c:
        with pytest.raises(pure.Error) as caught:
            c.rmse(np.ones(3), np.ones(4))
        assert caught.value.code == "INVALID_ARGUMENT" and caught.value.reason == "BAD_VALUE" and caught.value.field
        for wrong in ([1.0], np.ones(3, ">f4"), np.array(["a"]), np.ma.masked_array([1.0])):
            with pytest.raises(TypeError, match="little-endian"):
                c.rmse(wrong, wrong)
