"""The wall clock of the server and of its clients, which a campaign moves: their own (own_clock.cc), or the machine's."""
import contextlib
import mmap
import os
import struct
import time

from preloaded import build


class CannotBe(Exception):
    """Why a disturbance is left out on this machine."""


class OwnClock:
    """For processes that are started with this environment. Without a compiler there is none, and nothing can be moved."""

    def __init__(self, folder):
        self.environment, library = {}, build("own_clock.cc", folder)
        if library is None:
            return
        shift = os.path.join(folder, "shift")
        with open(shift, "w+b") as file:
            file.write(bytes(mmap.PAGESIZE))
            file.flush()
            self.shift = mmap.mmap(file.fileno(), mmap.PAGESIZE)
        self.environment = {"LD_PRELOAD": library, "OWN_CLOCK": shift}

    @contextlib.contextmanager
    def moved(self, seconds):
        if not self.environment:
            raise CannotBe("there is no compiler for a clock of its own")
        self.shift[:8] = struct.pack("q", int(seconds * 1e9))
        try:
            yield
        finally:
            self.shift[:8] = bytes(8)


class MachineClock:
    """The kernel's: of all who share the machine."""
    environment = {}

    @contextlib.contextmanager
    def moved(self, seconds):
        """Put right again by the clock that cannot be set."""
        real, steady = time.time(), time.monotonic()
        try:
            time.clock_settime(time.CLOCK_REALTIME, real + seconds)
        except OSError as error:
            raise CannotBe(f"the clock cannot be set: {error.strerror}") from error
        try:
            yield
        finally:
            time.clock_settime(time.CLOCK_REALTIME, real + time.monotonic() - steady)
