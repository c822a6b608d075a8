"""A server on the CPU for all tests, of the installed wheel, and what they compare with."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import tilewire as tw


@pytest.fixture(scope="session")
def server() -> Iterator[tw.LocalClient]:
    with tw.local("cpu", flags=["--max-in-flight", "128"]) as client:
        yield client


@pytest.fixture
def client(server: tw.LocalClient) -> Iterator[tw.Client]:
    """A client of its own; it leaves nothing at the server."""
    before = set(server.arrays())
    with tw.connect(server.address, timeout=60) as client:
        yield client
    assert set(server.arrays()) <= before


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20)


def rmse(a: np.ndarray, b: np.ndarray, axis: object = None) -> np.ndarray:
    d = a.astype(np.float64) - b.astype(np.float64)
    return np.sqrt(np.mean(d * d, axis=axis))
