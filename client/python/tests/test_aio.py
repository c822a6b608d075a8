"""The same with await."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import numpy as np
import pytest

import tilewire as tw
import tilewire.aio


def run(main: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(asyncio.wait_for(main, 120))


def test_the_same_answers(server: tw.LocalClient, rng: np.random.Generator) -> None:
    a, b = rng.random((2, 300, 500))

    async def main() -> None:
        async with tw.aio.connect(server.address) as c:
            assert await c.rmse(a, b) == server.rmse(a, b)
            assert (await c.rmse(a, b, 0) == server.rmse(a, b, 0)).all()
            assert (await c.transpose(a) == a.T).all()
            assert (await c.gaussian_pdf(a, 0, 1) == server.gaussian_pdf(a, 0, 1)).all()
            async with await c.put(a) as there:
                assert there.id in await c.arrays() and (await there.get() == a).all()
                turned = await c.transpose(there, store=True)
                assert isinstance(turned, tw.aio.RemoteArray) and (await turned.get() == a.T).all()
                assert (await (await c.array(there.id)).get() == a).all()
                await turned.delete()
            assert await c.ping() > 0 and (await c.describe())["numeric_versions"]
            with c.trace() as trace:
                await c.rmse(a, b)
            assert trace.calls[0].svg.startswith("<svg") and c.timing is not None
            with pytest.raises(tw.InvalidArgument):
                await c.rmse(a, b[1:])
            with pytest.raises(TimeoutError):
                await c.rmse(a, b, timeout=0)

    run(main())
    assert server.arrays() == []


def test_hundreds_in_flight(server: tw.LocalClient) -> None:
    arrays = [np.full(1000, n, "f4") for n in range(600)]

    async def main() -> None:
        async with tw.aio.connect(server.address) as c:
            values = await asyncio.gather(*(c.rmse(x, arrays[0]) for x in arrays))
            assert values == [float(n) for n in range(600)]

    run(main())


def test_cancelling_a_task_cancels_its_call(server: tw.LocalClient) -> None:
    a = np.zeros(1 << 28, "u1")

    async def main() -> None:
        async with tw.aio.connect(server.address) as c:
            task = asyncio.create_task(c.rmse(a, a))
            while (await c.describe())["jobs_in_flight"] == 0:
                assert not task.done()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            while (await c.describe())["jobs_in_flight"] != 0:
                pass
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(c.rmse(a, a), 0.02)
            assert await c.rmse(a[:9], a[:9]) == 0

    run(main())


def test_a_loop_of_its_own(server: tw.LocalClient) -> None:
    client = tw.aio.connect(server.address)
    a = np.ones(9)

    async def call() -> float:
        return await client.rmse(a, a)

    assert run(call()) == 0
    with pytest.raises(tw.FailedPrecondition, match="another event loop"):
        run(call())


def test_closing_ends_what_runs(server: tw.LocalClient) -> None:
    a = np.zeros(1 << 27, "u1")

    async def main() -> None:
        client = tw.aio.connect(server.address)
        tasks = [asyncio.create_task(client.rmse(a, a)) for _ in range(5)]
        while (await client.describe())["jobs_in_flight"] == 0:
            pass
        await client.close()
        ends = await asyncio.gather(*tasks, return_exceptions=True)
        assert any(isinstance(end, asyncio.CancelledError) for end in ends)
        with pytest.raises(tw.FailedPrecondition, match="closed"):
            await client.rmse(a, a)

    run(main())
