"""Loops that must leave nothing: memory, descriptors, threads, arrays, regions, jobs. TILEWIRE_LOOPS=10 makes them ten times as long."""

import asyncio
import contextlib
import gc
import os
import threading
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import tilewire as tw
import tilewire.aio

LOOPS = int(os.environ.get("TILEWIRE_LOOPS", "1"))
A = np.ones((16, 64), "f4")
MIB = 1 << 20


def resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def leases(server: tw.Client) -> dict[str, object]:
    """What the server has given: arrays, regions, jobs, memory."""
    names = ("arrays_stored", "array_bytes", "regions_registered", "jobs_in_flight", "jobs_queued", "device_bytes_in_use",
             "pinned_bytes_in_use")  # fmt: skip
    described = server.describe()
    return {name: described[name] for name in names}


@contextlib.contextmanager
def nothing_left(server: tw.Client, warm: Callable[[], None], growth: int) -> Iterator[None]:
    """What the block does may leave no more than `growth` bytes, and nothing else."""
    warm()
    gc.collect()
    before = resident(), descriptors(), threading.active_count(), leases(server)
    yield
    gc.collect()
    assert resident() - before[0] < growth
    while descriptors() > before[1] + 2:  # gRPC closes sockets in its own time
        pass
    assert threading.active_count() == before[2]
    while leases(server) != before[3]:  # the server ends cancelled calls in its own time
        pass


def repeat(count: int, work: Callable[[], object]) -> Callable[[], None]:
    def run() -> None:
        for _ in range(count):
            work()

    return run


def test_calls(server: tw.LocalClient) -> None:
    with tw.connect(server.address) as c:
        out = np.empty((64, 16), "f4")

        def work() -> None:
            c.rmse(A, A)
            c.rmse(A, A, axis=1)
            c.transpose(A, out=out)
            c.gaussian_pdf(A, 0, 1)
            c.compare(A, A, data_range=1)
            assert c.timing is not None

        with nothing_left(server, repeat(500, work), 8 * MIB):
            repeat(2000 * LOOPS, work)()  # of five calls


def test_large_calls(server: tw.LocalClient) -> None:
    a = np.ones((1024, 1024))
    with tw.connect(server.address) as c, nothing_left(server, repeat(10, lambda: c.transpose(a)), 24 * MIB):
        repeat(20 * LOOPS, lambda: c.transpose(a))()


def test_connects(server: tw.LocalClient) -> None:
    def work() -> None:
        with tw.connect(server.address) as c:
            c.rmse(A, A)

    with nothing_left(server, repeat(30, work), 24 * MIB):
        repeat(1000 * LOOPS, work)()


def test_exceptions(server: tw.LocalClient) -> None:
    with tw.connect(server.address) as c:

        def work() -> None:
            with pytest.raises(ValueError):
                c.rmse(A, A[1:])
            with pytest.raises(KeyError):
                c.array("0000000000000000-0000000000000000")
            with pytest.raises(TypeError):
                c.rmse([1], [2])
            with pytest.raises(TimeoutError):
                c.rmse(A, A, timeout=0)

        with nothing_left(server, repeat(100, work), 8 * MIB):
            repeat(250 * LOOPS, work)()  # of four


def test_arrays_and_regions(server: tw.LocalClient) -> None:
    with tw.connect(server.address) as c:

        def work() -> None:
            there = c.put(A)
            turned = c.transpose(there, store=True)
            shared = c.share(A)
            assert c.rmse(shared, there) == 0 and turned.get().shape == (64, 16)

        with nothing_left(server, repeat(30, work), 8 * MIB):
            repeat(100 * LOOPS, work)()


def test_cancelled_tasks(server: tw.LocalClient) -> None:
    a = np.zeros(1 << 24, "u1")

    async def main(count: int) -> None:
        async with tw.aio.connect(server.address) as c:
            for _ in range(count):
                tasks = [asyncio.create_task(c.rmse(a, a)) for _ in range(5)]
                await asyncio.sleep(0)
                for task in tasks[1:]:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    with nothing_left(server, lambda: asyncio.run(main(5)), 48 * MIB):
        asyncio.run(main(10 * LOOPS))


def test_servers_of_ones_own() -> None:
    def work() -> None:
        with tw.local("cpu") as c:
            c.ping()

    work()
    before = descriptors(), threading.active_count()
    repeat(3 * LOOPS, work)()
    while descriptors() > before[0] + 2 or threading.active_count() > before[1]:
        pass
