"""Arrays that stay, and memory that is shared."""

import gc
import pickle

import numpy as np
import pytest

import tilewire as tw


def test_chain(client: tw.Client, rng: np.random.Generator) -> None:
    a, b = rng.random((2, 70, 500))
    with client.put(b) as reference, client.put(a) as x:
        assert (reference.shape, reference.dtype, reference.nbytes, reference.ndim, reference.size) == (
            (70, 500), np.dtype("f8"), b.nbytes, 2, b.size)  # fmt: skip
        turned = client.transpose(x, store=True)
        density = client.gaussian_pdf(turned, 0, 1, store=True)
        assert isinstance(density, tw.RemoteArray) and density.shape == (500, 70)
        assert (np.asarray(density) == client.gaussian_pdf(a.T.copy(), 0, 1)).all()
        rows = client.rmse(x, reference, axis=1, store=True)
        assert rows.shape == (70,) and (rows.get() == client.rmse(a, b, axis=1)).all()
        assert client.rmse(x, b) == client.rmse(a, reference) == client.rmse(a, b)
        assert len(client.arrays()) == 5
        del turned, density, rows
    assert client.arrays() == []


def test_get_into(client: tw.Client, rng: np.random.Generator) -> None:
    a = rng.random((500, 1000))
    with client.put(a) as there:
        out = np.empty_like(a)
        assert there.get(out) is out and (out == a).all()
        columns = np.empty((1000, 500)).T
        assert (there.get(columns) == a).all()
        assert np.asarray(there, dtype="f4").dtype == np.float32
        with pytest.raises(ValueError, match="out.shape"):
            there.get(np.empty(3))
        if np.lib.NumpyVersion(np.__version__) >= "2.0.0":
            with pytest.raises(ValueError, match="copy"):
                np.array(there, copy=False)


def test_release_and_attach(client: tw.Client) -> None:
    a = np.arange(12.0).reshape(3, 4)
    id = client.put(a).release()
    assert id in client.arrays()
    there = client.array(id)
    assert there.shape == (3, 4) and (there.get() == a).all()
    there.delete()  # it owns nothing
    assert id in client.arrays()
    client._link.core().delete(id, client._link.options({}))
    again = client.put(a)
    again.release()
    client._link.core().delete(again.id, client._link.options({}))
    with pytest.raises(KeyError):
        client.array(again.id)


def test_time_to_live(client: tw.Client) -> None:
    there = client.put(np.ones(3), ttl=0.001, evictable=True)
    with pytest.raises(tw.NotFound):
        while True:  # until it is gone
            there.get()


def test_not_picklable(client: tw.Client) -> None:
    with client.put(np.ones(3)) as there, pytest.raises(TypeError, match=r"client\.array\(id\)"):
        pickle.dumps(there)


def regions(client: tw.Client) -> int:
    return client.describe()["regions_registered"]


def test_regions(client: tw.Client, rng: np.random.Generator) -> None:
    a, b = rng.random((2, 300, 400), dtype="f4")
    x, y, out = client.share(a), client.empty(a.shape, "f4"), client.empty((400, 300), "f4")
    assert not y.any() and regions(client) == 3
    y[...] = b
    assert client.rmse(x, y) == client.rmse(a, b)
    client.rmse(x, y)
    assert client.timing is not None and client.timing.bytes_in == 0 and client.timing.region_bytes_in == 2 * a.nbytes
    assert client.transpose(x, out=out) is out and (out == a.T).all()
    assert client.timing.bytes_out == 0 and client.timing.region_bytes_out == a.nbytes
    expected = client.rmse(a[100:], b[100:])
    assert client.rmse(x[100:], b[100:]) == expected  # part of a region
    assert client.timing.region_bytes_in == 200 * 400 * 4 and client.timing.bytes_in == 200 * 400 * 4
    assert client.rmse(x[:, 1:], y[:, 1:]) == client.rmse(a[:, 1:], b[:, 1:])  # not in one piece
    part = x[5]
    del x, y, out
    gc.collect()
    assert regions(client) == 1 and (part == a[5]).all()
    del part
    assert regions(client) == 0


def test_ways(server: tw.LocalClient, rng: np.random.Generator) -> None:
    a = rng.random((300, 400), dtype="f4")
    with tw.connect(server.address, via="region") as shared, tw.connect(server.address, via="wire") as wire:
        assert (shared.transpose(a) == a.T).all()
        assert shared.timing is not None and shared.timing.bytes_in == shared.timing.bytes_out == 0
        x = wire.share(a)
        assert (wire.transpose(x) == a.T).all() and wire.timing is not None and wire.timing.bytes_in == a.nbytes

