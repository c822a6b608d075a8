"""Arrays on the server's own GPU. Without one, that they are copied."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from test_arrays import OnDevice

import tilewire as tw
from tilewire._device import _on_this_host


def library(name: str) -> SimpleNamespace:
    """How a library makes an array on the GPU, and takes it back."""
    if name == "torch":
        torch = pytest.importorskip("torch")
        if not torch.cuda.is_available():
            pytest.skip("torch has no GPU here")
        return SimpleNamespace(give=lambda a: torch.from_numpy(a).cuda(), take=lambda x: x.cpu().numpy(), module=torch)
    cupy = pytest.importorskip("cupy")
    try:
        cupy.zeros(1)
    except Exception as error:  # whatever it says where there is no GPU
        pytest.skip(f"CuPy has no GPU here: {error}")
    return SimpleNamespace(give=cupy.asarray, take=cupy.asnumpy, module=cupy)


@pytest.fixture(scope="module", params=["torch", "cupy"])
def gpu(request: pytest.FixtureRequest) -> SimpleNamespace:
    return library(request.param)


@pytest.fixture(scope="module")
def own() -> Iterator[tw.LocalClient]:
    if not pathlib.Path("/dev/nvidiactl").exists():
        pytest.skip("no NVIDIA driver here")
    with tw.local("cuda", timeout=60) as client:
        yield client


def uncopied(c: tw.Client) -> bool:
    """Whether the last call's operands were read where they are."""
    timing = c.timing
    assert timing is not None
    return timing.bytes_in == timing.region_bytes_in == 0


@pytest.fixture
def nothing_left(own: tw.LocalClient) -> Iterator[Callable[[], int]]:
    def registered() -> int:
        return int(own.describe()["regions_registered"])

    yield registered
    assert registered() == 0


@pytest.mark.parametrize("dtype", ["i4", "u8", "f2", "f4", "f8"])
def test_bits_without_a_copy(own: tw.LocalClient, gpu: Any, nothing_left: Any, rng: np.random.Generator, dtype: str) -> None:
    a, b = (rng.integers(0, 200, (800, 1500)).astype(dtype) for _ in "ab")
    x, y = gpu.give(a), gpu.give(b)
    assert own.rmse(x, y) == own.rmse(a, b)
    own.rmse(x, y)
    assert uncopied(own)
    assert (own.rmse(x, y, axis=1) == own.rmse(a, b, axis=1)).all() and own.rmse(x, b) == own.rmse(a, b)
    assert own.compare(x, y).items() == own.compare(a, b).items()
    assert (own.transpose(x) == a.T).all()
    out = gpu.give(np.zeros((1500, 800), dtype))
    assert own.transpose(x, out=out) is out and (gpu.take(out) == a.T).all()
    assert uncopied(own) and own.timing.bytes_out == 0
    with own.put(x) as there:
        assert (np.asarray(there) == a).all()


def test_pdf_into_itself_and_beside(own: tw.LocalClient, gpu: Any, nothing_left: Any, rng: np.random.Generator) -> None:
    a = rng.random((640, 1000), dtype="f4")
    wanted = own.gaussian_pdf(a, 0.5, 2)
    x, out = gpu.give(a), gpu.give(np.zeros_like(a))
    assert own.gaussian_pdf(x, 0.5, 2, out=out) is out and (gpu.take(out) == wanted).all() and uncopied(own)
    assert own.gaussian_pdf(x, 0.5, 2, out=x) is x and (gpu.take(x) == wanted).all()


def test_views(own: tw.LocalClient, gpu: Any, nothing_left: Any, rng: np.random.Generator) -> None:
    a = rng.random((1025, 517))
    x = gpu.give(a)
    for view, plain in ((x.T, a.T), (x[1:], a[1:]), (x[::2, 3:], a[::2, 3:]), (x[:2, 0], a[:2, 0])):
        assert own.rmse(view, np.zeros_like(plain)) == own.rmse(plain.copy(), np.zeros_like(plain))
        assert (own.transpose(view) == plain.T).all() and uncopied(own) == (plain.nbytes > 1 << 20)
    with pytest.raises(tw.InvalidArgument):
        own.rmse(x, x[1:])
    with pytest.raises(tw.InvalidArgument):
        own.transpose(x, out=gpu.give(a))


def test_registered_once(own: tw.LocalClient, gpu: Any, nothing_left: Any, rng: np.random.Generator) -> None:
    a = rng.random((512, 512), dtype="f4")
    x = gpu.give(a)
    with own.register(x) as kept:
        assert nothing_left() == 1 and kept.nbytes == a.nbytes
        for _ in range(20):
            assert own.rmse(x, x[:]) == 0 and uncopied(own)
        assert own.rmse(x[:64], gpu.give(np.zeros((64, 512), "f4"))) == own.rmse(a[:64], np.zeros((64, 512), "f4"))
    assert nothing_left() == 0
    kept.unregister()


def test_work_under_way_is_waited_for(own: tw.LocalClient, nothing_left: Any) -> None:
    torch = library("torch").module
    x = torch.zeros(1 << 24, device="cuda")
    with torch.cuda.stream(torch.cuda.Stream()):
        for _ in range(200):
            x += 1
        assert own.rmse(x, torch.full_like(x, 150)) == 50.0


def test_many_calls_leave_nothing(own: tw.LocalClient, gpu: Any, nothing_left: Any, rng: np.random.Generator) -> None:
    before = own.describe()["device_bytes_in_use"]
    for _ in range(300):
        x = gpu.give(rng.random(1 << 18, dtype="f4"))
        own.rmse(x, x)
    del x
    assert nothing_left() == 0 and own.describe()["device_bytes_in_use"] == before


def test_memory_that_cannot_be_exported_is_copied(own: tw.LocalClient, nothing_left: Any, rng: np.random.Generator) -> None:
    cupy = library("cupy").module
    a = rng.random(300_000)
    with cupy.cuda.using_allocator(cupy.cuda.MemoryAsyncPool().malloc):
        x = cupy.asarray(a)
        assert own.rmse(x, x * 0) == own.rmse(a, a * 0) and not uncopied(own)
        with pytest.raises(tw.FailedPrecondition, match="cudaMalloc"):
            own.register(x)
        del x


def test_the_server_may_refuse(gpu: Any, rng: np.random.Generator) -> None:
    a = rng.random(300_000)
    x = gpu.give(a)
    with tw.local("cpu") as c:
        assert c.rmse(x, x) == 0 and not uncopied(c)
    with tw.local("cuda") as server, tw.connect(server.address, via="wire") as c:
        assert c.rmse(x, x) == 0 and not uncopied(c)


def test_without_a_device_of_the_server_they_are_copied(client: tw.Client, rng: np.random.Generator) -> None:
    a = rng.random(1000)
    assert client.rmse(OnDevice(a), a * 0) == client.rmse(a, a * 0) and client.timing.bytes_in > 0
    with pytest.raises(tw.UnsupportedType, match="CUDA device"):
        client.register(a)


def test_handles_are_for_this_host() -> None:
    assert _on_this_host("localhost:50051") and _on_this_host("[::1]:1") and _on_this_host("unix:/run/x")
    assert not _on_this_host("192.0.2.1:50051") and not _on_this_host("no.such.host.invalid:1")
