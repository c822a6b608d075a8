"""The wall clock of the server and of its clients, which a campaign moves: their own (own_clock.cc), or the machine's."""
import contextlib
import mmap
import os
import shutil
import struct
import subprocess
import time

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "own_clock.cc")


class CannotBe(Exception):
    """Why a disturbance is left out on this machine."""


class OwnClock:
    """For processes that are started with this environment. Without a compiler there is none, and nothing can be moved."""

    def __init__(self, folder):
        self.environment, compiler = {}, shutil.which("c++")
        if compiler is None:
            return
        library, shift = os.path.join(folder, "own_clock.so"), os.path.join(folder, "shift")
        subprocess.run([compiler, "-std=c++20", "-O1", "-shared", "-fPIC", SOURCE, "-o", library, "-ldl"], check=True)
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
