"""Arrays of every kind."""

import numpy as np
import pytest
from conftest import rmse

import tilewire as tw

ml_dtypes = pytest.importorskip("ml_dtypes")


class Lent:
    """What only has DLPack, such as a tensor of a library that numpy does not know."""

    def __init__(self, array: np.ndarray, device: tuple[int, int] = (1, 0)) -> None:
        self._array, self._device = array, device

    def __dlpack__(self, **how: object) -> object:
        return self._array.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._device


class OnDevice(Lent):
    """What lies where this process cannot read, with its library's own copy to the host."""

    def __init__(self, array: np.ndarray) -> None:
        super().__init__(array, (2, 0))

    def __dlpack__(self, **how: object) -> object:
        raise BufferError("not on the host")

    def get(self) -> np.ndarray:
        return self._array.copy()

    def set(self, array: np.ndarray) -> None:
        self._array[...] = array


LAYOUTS = {
    "c": lambda x: x,
    "fortran": np.asfortranarray,
    "turned": lambda x: np.ascontiguousarray(x.transpose(2, 0, 1)).transpose(1, 2, 0),
    "stepped": lambda x: np.repeat(x, 2, axis=1)[:, ::2],
    "reversed": lambda x: np.ascontiguousarray(x[::-1])[::-1],
    "broadcast": lambda x: np.broadcast_to(x[:1], x.shape),
    "read-only": lambda x: (x.setflags(write=False), x)[1],
    "subclass": lambda x: x.view(type("Mine", (np.ndarray,), {})),
    "lent": Lent,
    "on a device": OnDevice,
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(client: tw.Client, rng: np.random.Generator, layout: str) -> None:
    plain = rng.random((13, 24, 35))
    x = LAYOUTS[layout](plain.copy())
    values = np.asarray(x if isinstance(x, np.ndarray) else x._array)
    assert client.rmse(x, values * 2, (0, 2)) == pytest.approx(rmse(values, values * 2, (0, 2)), rel=1e-13)
    assert client.rmse(x, values * 2) == client.rmse(values.copy(), values * 2)  # the bits of a C order copy
    for axes in (None, (1, 2, 0), (-3, -1, -2), (0, 1, 2)):
        assert (client.transpose(x, axes) == values.transpose(axes)).all()
    assert (client.gaussian_pdf(x, 0.25, 3) == client.gaussian_pdf(values.copy(), 0.25, 3)).all()
    with client.put(x) as there:
        assert (np.asarray(there) == values).all()


def test_any_order_of_axes_is_sent_as_it_lies(client: tw.Client, rng: np.random.Generator, monkeypatch) -> None:
    monkeypatch.setattr(np, "ascontiguousarray", None)
    x = rng.random((6, 7, 8, 9)).transpose(2, 0, 3, 1)
    assert (client.transpose(x, (1, 3, 0, 2)) == x.transpose(1, 3, 0, 2)).all()
    result = client.gaussian_pdf(x, 0, 1)
    assert result.shape == x.shape and result.strides == x.strides


def test_no_axes(client: tw.Client) -> None:
    x = np.float32(2.5)
    assert client.rmse(x, np.float32(1)) == 1.5
    assert client.rmse(np.array(2.5), np.array(1.0)) == 1.5
    assert client.transpose(np.array(7)).shape == () and client.gaussian_pdf(np.array(0.0), 0, 1) == pytest.approx(0.3989422804)


def test_sixteen_axes(client: tw.Client) -> None:
    x = np.arange(2**16, dtype="u2").reshape((2,) * 16)
    assert (client.transpose(x) == x.T).all()


def test_memmap(client: tw.Client, rng: np.random.Generator, tmp_path) -> None:
    a = rng.random((400, 500), dtype="f4")
    np.save(tmp_path / "a.npy", a)
    mapped = np.load(tmp_path / "a.npy", mmap_mode="r")
    assert client.rmse(mapped, a * 2) == client.rmse(a, a * 2)
    out = np.lib.format.open_memmap(tmp_path / "t.npy", mode="w+", dtype="f4", shape=(500, 400))
    client.transpose(mapped, out=out)
    out.flush()
    assert (np.load(tmp_path / "t.npy") == a.T).all()


def test_bfloat16(client: tw.Client, rng: np.random.Generator) -> None:
    a, b = (rng.random((300, 500)).astype(ml_dtypes.bfloat16) for _ in "ab")
    assert client.rmse(a, b) == pytest.approx(float(rmse(a, b)), rel=1e-14)
    turned = client.transpose(a)
    assert turned.dtype == a.dtype and (turned == a.T).all()
    with client.put(a) as there:
        assert there.dtype == a.dtype and there.nbytes == a.nbytes and (np.asarray(there) == a).all()


def test_others_that_say_what_they_are(client: tw.Client) -> None:
    class Column:
        dtype = np.dtype("f8")

        def __array__(self, dtype=None, copy=None):
            return np.arange(5.0)

    assert client.rmse(Column(), np.arange(5.0) + 2) == 2.0


def test_results_of_others(client: tw.Client, rng: np.random.Generator) -> None:
    a = rng.random((40, 50))
    out = OnDevice(np.zeros((50, 40)))
    assert client.transpose(a, out=out) is out and (out._array == a.T).all()


def test_torch(client: tw.Client) -> None:
    torch = pytest.importorskip("torch")
    a, b = torch.rand(2, 300, 400)
    assert client.rmse(a, b) == pytest.approx(float(((a.double() - b.double()) ** 2).mean().sqrt()), rel=1e-14)
    out = torch.empty(400, 300)
    assert client.transpose(a, out=out) is out and torch.equal(out, a.T)
    half = a.bfloat16()
    wide = torch.empty(400, 300, dtype=torch.bfloat16)
    assert torch.equal(client.transpose(half, out=wide), half.T)
    with pytest.raises(TypeError, match="does not lend"):
        client.rmse(a.requires_grad_(), b)
