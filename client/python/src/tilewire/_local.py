"""A server of one's own."""

from __future__ import annotations

import atexit
import contextlib
import os
import subprocess
import threading
import weakref
from collections.abc import Sequence
from typing import IO

from . import _programs
from ._base import make_link
from ._client import Client
from ._errors import Unavailable
from ._options import Via

# Ends the server when standard input ends, that is when this process does, however it ends.
_KEEPER = 'trap "" INT; "$@" </dev/null & server=$!; exec >&- 2>&-; read -r _; kill -TERM $server 2>/dev/null; wait $server'
_END_SECONDS = 40.0


class LocalServer:
    """A running server, ended with this object or with this process."""

    def __init__(self, device: str, flags: Sequence[str]) -> None:
        program = os.fspath(_programs.path("tilewired"))
        # Regions have names of this process, so that no other server takes them.
        own = f"/tilewire-{os.getpid()}-{id(self):x}-"
        command = [program, "--listen", "localhost:0", "--device", device, "--allow-regions", own, "--allow-device-regions", *flags]
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", _KEEPER, "tilewired", *command],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1,
        )  # fmt: skip
        self._stop = weakref.finalize(self, _stop, self._process, os.getpid())
        self._stop.atexit = False
        atexit.register(self._stop)
        self._said: list[str] = []
        stderr = self._process.stderr
        assert stderr is not None and self._process.stdout is not None
        self._listener = threading.Thread(target=_drain, args=(stderr, self._said), daemon=True)
        self._listener.start()
        self.address, self.device = self._ready(self._process.stdout)
        threading.Thread(target=_drain, args=(self._process.stdout, None), daemon=True).start()

    def _ready(self, stdout: IO[str]) -> tuple[str, str]:
        for line in stdout:
            if line.startswith("tilewired ready "):
                address, _, device = line.removeprefix("tilewired ready ").strip().partition(" device=")
                return address, device
        self.stop()
        self._listener.join()
        raise Unavailable("the server did not start: " + " ".join(self._said[-3:]).strip(), reason="NOT_STARTED")

    def stop(self) -> None:
        """Ends the server and waits for it."""
        atexit.unregister(self._stop)
        self._stop()


def _drain(stream: IO[str], kept: list[str] | None) -> None:
    with contextlib.suppress(ValueError, OSError):
        for line in stream:
            if kept is not None:
                kept.append(line)
                del kept[:-20]


def _stop(process: subprocess.Popen[str], owner: int) -> None:
    if os.getpid() != owner:
        return
    assert process.stdin is not None
    with contextlib.suppress(OSError):
        process.stdin.close()
    try:
        process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()


class LocalClient(Client):
    """A client of a server of its own, which ends with it; see `local`."""

    def __init__(self, server: LocalServer, via: Via, connections: int, timeout: float | None) -> None:
        super().__init__(make_link(server.address, via, connections, timeout, None, 30.0))
        self.server = server

    def close(self) -> None:
        """Closes the connection and ends the server."""
        super().close()
        self.server.stop()

    def __enter__(self) -> LocalClient:
        return self


def local(
    device: str = "auto",
    via: Via = "auto",
    connections: int = 0,
    timeout: float | None = None,
    *,
    flags: Sequence[str] = (),
) -> LocalClient:
    """Starts a server on a free port of this machine and connects to it; it ends with the client or with this process.

    Args:
        device: ``"auto"`` (a GPU where one works, else the CPU), ``"cpu"``, ``"cuda"``, ``"cuda:N"``.
        via, connections, timeout: as for `connect`.
        flags: of tilewired, such as ``["--device-bytes", "4GiB"]``.

    Raises Unavailable, with what the server said, where it does not start. Pickled, it is a plain client of the address.
    """
    return LocalClient(LocalServer(device, flags), via, connections, timeout)

