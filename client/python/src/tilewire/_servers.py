"""Several servers that can stand in for each other, for whichever process has a piece to compute."""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from ._base import make_link
from ._client import Client
from ._errors import DeadlineExceeded, Exhausted, Unavailable
from ._security import Security

T = TypeVar("T")
#: A server that failed is asked last for so long.
SHUNNED_SECONDS = 10.0


class Server(NamedTuple):
    """Where a server is and how to connect to it, for whichever process has to."""

    address: str
    security: Security = Security()
    metadata: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, given: str | Client) -> Server:
        if isinstance(given, Client):
            return cls(given.address, given._link.security, tuple(given._link.metadata.items()))
        return cls(given)

    def connect(self) -> Client:
        return Client(make_link(self.address, "auto", 1, None, dict(self.metadata), 30.0, self.security))


class Servers:
    """The connections of this process, made once for all tasks. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._clients: dict[tuple[int, Server], Client] = {}
        self._failed: dict[Server, float] = {}

    def client(self, server: Server) -> Client:
        with self._lock:
            own = (os.getpid(), server)
            if own not in self._clients:
                self._clients[own] = server.connect()
            return self._clients[own]

    def order(self, servers: Sequence[Server], number: int) -> list[Server]:
        """Which to ask for piece `number`, first to last: in turn, those that failed lately at the end."""
        turn = [servers[(number + n) % len(servers)] for n in range(len(servers))]
        now = time.monotonic()
        return sorted(turn, key=lambda server: now - self._failed.get(server, -math.inf) < SHUNNED_SECONDS)

    def failed(self, server: Server) -> None:
        self._failed[server] = time.monotonic()


#: Of this process.
SERVERS = Servers()


def by_any(servers: Sequence[Server], block_info: Any, ask: Callable[[Client], T]) -> T:
    """What `ask` has of whichever server answers for a piece."""
    location = block_info[0]["chunk-location"] if block_info else (0, 0)
    number = location[0] * (block_info[0]["num-chunks"][1] if block_info else 1) + location[1]
    errors = []
    for server in SERVERS.order(servers, number):
        try:
            return ask(SERVERS.client(server))
        except (Unavailable, DeadlineExceeded, Exhausted) as error:
            SERVERS.failed(server)
            errors.append(f"{server.address}: {error}")
    raise Unavailable("no server could do a piece: " + "; ".join(errors), reason="NO_SERVER")
