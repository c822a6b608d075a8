"""Servers that are busy, or stand still."""

import os
import pathlib
import signal
import threading
import time

import numpy as np
import pytest

import tilewire as tw

A = np.ones((50, 60), "f4")


def test_busy_servers_are_asked_again() -> None:
    a = np.zeros(1 << 21, "u1")
    with tw.local("cpu", flags=["--max-in-flight", "1", "--queue-length", "1", "--queue-seconds", "0.1"]) as client:
        attempts: set[int] = set()
        refused: list[tw.Exhausted] = []
        over = threading.Event()
        wrong: list[BaseException] = []

        def patient() -> None:
            with tw.connect(client.address) as own:
                while not over.is_set():
                    try:
                        assert own.rmse(a, a, max_attempts=1000, timeout=100) == 0
                    except BaseException as error:
                        wrong.append(error)
                        over.set()
                    timing = own.timing
                    attempts.add(timing.attempts if timing is not None else 0)
                    if refused and max(attempts) > 1:
                        over.set()

        def impatient() -> None:
            with tw.connect(client.address) as own:
                while not over.is_set():
                    try:
                        own.rmse(a, a, max_attempts=1)
                    except tw.Exhausted as error:
                        refused.append(error)

        threads = [threading.Thread(target=work) for work in (patient, impatient) * 6]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong and refused[0].reason == "BUSY" and max(attempts) > 1


@pytest.mark.parametrize("size", [1000, 1 << 26])
def test_a_server_that_stands_still(size: int) -> None:
    with tw.local("cpu") as client:
        keeper = client.server._process.pid
        server = int(pathlib.Path(f"/proc/{keeper}/task/{keeper}/children").read_text().split()[0])
        a = np.zeros(size, "u1")
        with tw.connect(client.address, timeout=1, dead_peer=1) as own:
            own.rmse(A, A)
            os.kill(server, signal.SIGSTOP)
            try:
                start = time.monotonic()
                with pytest.raises(TimeoutError) as caught:
                    own.rmse(a, a)
                assert isinstance(caught.value, tw.DeadlineExceeded) and time.monotonic() - start < 30
            finally:
                os.kill(server, signal.SIGCONT)
            own.rmse(A, A, timeout=60)
