"""Threads, forks, other processes, Ctrl-C, and the end of the interpreter."""

import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import tilewire as tw

A = np.ones((50, 60), "f4")


def script(text: str, *arguments: str, timeout: float = 60) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", textwrap.dedent(text), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)


def in_child(work) -> tuple[str, float]:
    """What `work()` says in a child by fork(), and the seconds."""
    start = time.monotonic()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            said = work()
        except BaseException as error:
            said = type(error).__name__
        os.write(writer, str(said).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    return said, time.monotonic() - start


def test_threads(client: tw.Client, rng: np.random.Generator) -> None:
    arrays = rng.random((32, 20, 5000))
    expected = [client.rmse(x, arrays[0]) for x in arrays]
    with ThreadPoolExecutor(16) as pool:
        for _ in range(3):
            assert list(pool.map(lambda x: client.rmse(x, arrays[0]), arrays)) == expected


def test_calls_leave_the_lock_to_others(client: tw.Client) -> None:
    a = np.zeros(1 << 28, "u1")
    turns, over = 0, threading.Event()

    def turn() -> None:
        nonlocal turns
        while not over.is_set():
            turns += 1

    other = threading.Thread(target=turn)
    other.start()
    try:
        begin = turns
        client.rmse(a, a)
        assert turns - begin > 10_000
    finally:
        over.set()
        other.join()


def test_a_fork_before_the_first_call(server: tw.LocalClient) -> None:
    text = """
        import os, sys, numpy as np, tilewire as tw
        client = tw.connect(sys.argv[1])
        child = os.fork()
        assert client.rmse(np.ones(9), np.zeros(9)) == 1
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) if child else 0)
    """
    done = script(text, server.address)
    assert done.returncode == 0, done.stderr


def test_a_fork_after_the_first_call(client: tw.Client) -> None:
    there = client.put(A)
    shared = client.share(A)
    works = [lambda: client.rmse(A, A), there.get, lambda: tw.connect(client.address).ping(), lambda: client.empty(3)]
    for work in works:
        said, seconds = in_child(work)
        assert said == "Forked" and seconds < 1
    said, seconds = in_child(lambda: there.delete())
    assert said == "Forked" and seconds < 1

    def forget() -> str:
        nonlocal there, shared, client
        del there, shared, client
        return "forgotten"

    said, seconds = in_child(forget)
    assert said == "forgotten" and seconds < 1
    assert (there.get() == A).all() and client.rmse(shared, A) == 0  # the parent's are still there
    there.delete()


def run_in_another(client: tw.Client) -> float:
    return client.rmse(A, A + 2)


def test_pickle(server: tw.LocalClient) -> None:
    with tw.connect(server.address, timeout=33, connections=2, metadata={"x": "y"}) as client:
        client.rmse(A, A)
        again = pickle.loads(pickle.dumps(client))
        assert again.rmse(A, A) == 0 and again._link.defaults == client._link.defaults and again._link.metadata == {"x": "y"}
        assert type(pickle.loads(pickle.dumps(server))) is tw.Client
        with multiprocessing.get_context("spawn").Pool(2) as pool:
            assert pool.map(run_in_another, [client, client]) == [2.0, 2.0]


def test_interrupt(server: tw.LocalClient) -> None:
    text = """
        import os, signal, sys, threading, time, numpy as np, tilewire as tw
        signal.signal(signal.SIGINT, signal.default_int_handler)  # shells have what they start in the background ignore it
        client = tw.connect(sys.argv[1])
        a = np.zeros(1 << 28, "u1")
        main, over = os.getpid(), threading.Event()
        def interrupt():
            while client.describe()["jobs_in_flight"] == 0 and not over.is_set():
                pass
            os.kill(main, signal.SIGINT)
        threading.Thread(target=interrupt).start()
        try:
            for _ in range(1000):
                client.rmse(a, a)
        except KeyboardInterrupt:
            over.set()
            print("interrupted", client.rmse(a[:9], a[:9]))
    """
    done = script(text, server.address)
    assert done.stdout.strip() == "interrupted 0.0", done.stderr


ENDS = {
    "a client": "",
    "an array that stays": "there = client.put(np.ones(9))",
    "a region": "shared = client.share(np.ones(9))",
    "a thread that calls": "threading.Thread(target=lambda: [client.rmse(a, a) for _ in range(99)], daemon=True).start()",
    "a server of its own": "own = tw.local('cpu'); own.rmse(a, a)",
    "an event loop": "asyncio.run(tw.aio.connect(sys.argv[1]).rmse(a, a))",
    "an event loop with calls": """
async def main():
    client = tw.aio.connect(sys.argv[1])
    tasks = [asyncio.create_task(client.rmse(a, a)) for _ in range(20)]
    await tasks[0]
asyncio.run(main())""",
    "an exception": "raise SystemExit(0)",
}


@pytest.mark.parametrize("end", ENDS)
def test_the_interpreter_ends(server: tw.LocalClient, end: str) -> None:
    before = server.arrays()
    text = "import asyncio, sys, threading, numpy as np, tilewire as tw, tilewire.aio\n"
    text += "client = tw.connect(sys.argv[1]); a = np.ones(1 << 20); client.rmse(a, a)\n" + ENDS[end]
    start = time.monotonic()
    done = subprocess.run([sys.executable, "-c", text, server.address], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == "" and time.monotonic() - start < 30
    assert server.arrays() == before


def test_a_killed_process_takes_its_server_along() -> None:
    text = "import os, signal, tilewire as tw; c = tw.local('cpu'); print(c.address, flush=True); os.kill(os.getpid(), signal.SIGKILL)"
    done = script(text)
    assert done.returncode == -signal.SIGKILL
    with tw.connect(done.stdout.strip()) as client:
        while True:  # until it has drained
            try:
                client.ping(timeout=5)
            except (tw.Unavailable, tw.DeadlineExceeded):
                break
