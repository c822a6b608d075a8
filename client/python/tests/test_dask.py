"""Several servers by Dask: the bits of one."""

import warnings
from collections.abc import Iterator

import numpy as np
import pytest

import tilewire as tw
from tilewire._servers import SERVERS, Server

da = pytest.importorskip("dask.array")
tilewire_dask = pytest.importorskip("tilewire.dask")


@pytest.fixture(scope="module")
def servers(server: tw.LocalClient) -> Iterator[list[str]]:
    with tw.local("cpu") as two, tw.local("cpu") as three:
        yield [server.address, two.address, three.address]


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch) -> None:
    monkeypatch.setattr(tilewire_dask, "PIECE_BYTES", 1 << 17)
    warnings.simplefilter("ignore", tilewire_dask.RechunkWarning)


def same(value: object, expected: object) -> None:
    assert np.asarray(value).dtype == np.float64 and np.shape(value) == np.shape(expected)
    assert np.asarray(value).tobytes() == np.asarray(expected, "f8").tobytes()


def random_chunks(shape: tuple[int, ...], rng: np.random.Generator) -> tuple[tuple[int, ...], ...]:
    def cut(extent: int) -> tuple[int, ...]:
        places = np.unique(rng.integers(1, extent + 1, rng.integers(0, 5)))
        return tuple(int(n) for n in np.diff([0, *places[places < extent], extent]))

    return tuple(cut(extent) for extent in shape)


def test_random_chunks(servers: list[str], server: tw.LocalClient, rng: np.random.Generator) -> None:
    for _ in range(60):
        shape = tuple(int(n) for n in rng.integers(1, [200, 300, 40][: rng.integers(1, 4)] * np.array(1)))
        if rng.random() < 0.3:
            shape = (int(rng.integers(1, 400_000)),)
        a, b = rng.standard_normal((2, *shape)).astype(rng.choice(["f4", "f8"]))
        rank = len(shape)
        chosen = [n for n in range(rank) if rng.random() < 0.5]
        axis = tuple(chosen) or None
        output = rng.choice(["rmse", "mse", "sum_squares"])
        x, y = da.from_array(a, random_chunks(shape, rng)), da.from_array(b, random_chunks(shape, rng))
        value = tilewire_dask.rmse(x, y, axis, output, servers=servers[: rng.integers(1, 4)])
        same(value.compute(scheduler="threads"), server.rmse(a, b, axis, output))


def test_every_length_of_the_tree(servers: list[str], server: tw.LocalClient, rng: np.random.Generator) -> None:
    for tiles in (1, 2, 3, 4, 5, 7, 8, 9, 31, 33, 100):
        for n in (4096 * tiles - 1, 4096 * tiles, 4096 * tiles + 1):
            a, b = rng.standard_normal((2, n))
            value = tilewire_dask.rmse(da.from_array(a, 4096), da.from_array(b, 5000), servers=servers)
            same(value.compute(), server.rmse(a, b))


def test_nan_and_infinity(servers: list[str], server: tw.LocalClient) -> None:
    a = np.zeros(200_000)
    for at in (np.nan, np.inf, -np.nan):
        a[123_456] = at
        same(tilewire_dask.rmse(da.from_array(a), np.zeros(200_000), servers=servers).compute(), server.rmse(a, np.zeros(200_000)))


def test_pieces_go_to_all_servers(servers: list[str], rng: np.random.Generator) -> None:
    a = da.from_array(rng.random(1 << 20), 1 << 14)
    before = [SERVERS.client(Server(address)).describe()["instance"] for address in servers]
    assert len(set(before)) == 3
    asked: list[str] = []
    order = SERVERS.order
    try:
        SERVERS.order = lambda known, n: asked.append(order(known, n)[0].address) or order(known, n)
        tilewire_dask.rmse(a, a, servers=servers).compute()
    finally:
        SERVERS.order = order
    assert set(asked) == set(servers)


def test_a_server_that_dies(server: tw.LocalClient, rng: np.random.Generator) -> None:
    a, b = rng.standard_normal((2, 1 << 20))
    with tw.local("cpu") as mortal:
        died = []

        def killing(block: np.ndarray, block_info=None) -> np.ndarray:
            if block_info and block_info[0]["chunk-location"][0] == 30 and not died:
                died.append(mortal.server.stop())
            return block

        x = da.from_array(a, 1 << 14).map_blocks(killing, dtype=a.dtype, meta=np.empty(0))
        value = tilewire_dask.rmse(x, da.from_array(b, 1 << 14), servers=[mortal.address, server])
        same(value.compute(scheduler="threads"), server.rmse(a, b))
        assert died
        with pytest.raises(tw.Unavailable, match="no server"):
            tilewire_dask.rmse(x, b, servers=[mortal.address]).compute()


def test_processes(servers: list[str], server: tw.LocalClient, rng: np.random.Generator) -> None:
    a, b = rng.standard_normal((2, 1 << 19))
    value = tilewire_dask.rmse(da.from_array(a, 1 << 14), da.from_array(b, 1 << 14), servers=servers)
    same(value.compute(scheduler="processes", num_workers=2), server.rmse(a, b))


def test_distributed(servers: list[str], server: tw.LocalClient, rng: np.random.Generator) -> None:
    distributed = pytest.importorskip("distributed")
    a, b = rng.standard_normal((2, 40, 1 << 15))
    how = {"n_workers": 4, "threads_per_worker": 1, "processes": False, "dashboard_address": None}
    with distributed.LocalCluster(**how) as cluster, distributed.Client(cluster):
        value = tilewire_dask.rmse(da.from_array(a, (7, 5000)), da.from_array(b, (40, 1 << 13)), servers=servers)
        same(value.compute(), server.rmse(a, b))


def test_says_when_it_cuts_anew(servers: list[str], rng: np.random.Generator) -> None:
    a = rng.standard_normal((64, 8192))
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        tilewire_dask.rmse(da.from_array(a, (2, 8192)), da.from_array(a, (2, 8192)), 1, servers=servers)
        assert not seen
        tilewire_dask.rmse(da.from_array(a, (2, 5000)), da.from_array(a, (2, 8192)), 1, servers=servers)
        assert [warning.category for warning in seen] == [tilewire_dask.RechunkWarning] and "X: chunks" in str(seen[0].message)


def test_wrong_input(servers: list[str]) -> None:
    a = da.zeros((3, 4))
    for wrong, kind in (
        (lambda: tilewire_dask.rmse(a, da.zeros((4, 3)), servers=servers), ValueError),
        (lambda: tilewire_dask.rmse(a, da.zeros((3, 4), dtype="f4"), servers=servers), ValueError),
        (lambda: tilewire_dask.rmse(a, a, 2, servers=servers), ValueError),
        (lambda: tilewire_dask.rmse(a, a, (0, 0), servers=servers), ValueError),
        (lambda: tilewire_dask.rmse(a, a, output="mean", servers=servers), ValueError),
        (lambda: tilewire_dask.rmse(a, a, servers=[]), ValueError),
        (lambda: tilewire_dask.rmse([1.0], a, servers=servers), TypeError),
        (lambda: tilewire_dask.rmse(a[a[:, 0] > 0], a, servers=servers), ValueError),
        (lambda: tilewire_dask.rmse(da.zeros((0, 4)), da.zeros((0, 4)), servers=servers), ValueError),
    ):
        with pytest.raises(kind):
            wrong()
