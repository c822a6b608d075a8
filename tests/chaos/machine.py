"""What happens to the machine under a server: its clock jumps, its control group has little memory. Each only where that can be done."""
import contextlib
import datetime
import os
import time

import grpc
from clocks import CannotBe
from disturbances import MIB, NO_SERVER, everybody_again, told
from stubs import ar

HOUR = 3600


def answer(world, name):
    """How a small call of that token ends."""
    admin = world.admin(name)
    admin.connect()
    try:
        admin.arrays.List(ar.ListRequest(), **admin.rest)
        return "OK"
    except grpc.RpcError as error:
        return error.code().name
    finally:
        admin.close()


def clock_jumps(world, rng):
    """Hours forward and back again, under load: no call fails of it, but a token has expired meanwhile. Python's clients count their
    deadlines by the clock that is moved, so a call that begins at that very moment may be late at once."""
    credentials = world.served.credentials
    expires = datetime.datetime.fromtimestamp(time.time() + HOUR / 2, datetime.UTC)
    told(world, "tokens", lambda: credentials.tokens(expiring=("eve", expires.strftime("%Y-%m-%dT%H:%M:%SZ"))))
    answers = [answer(world, "eve")]
    try:
        with world.allowing("clock jumps", ("DEADLINE_EXCEEDED", ""), cut=True, who="stubs"):
            with world.clock.moved(rng.uniform(1, 20) * HOUR):
                world.more_calls()
                answers.append(answer(world, "eve"))
                world.more_calls()
            world.more_calls()
        answers.append(answer(world, "eve"))
    finally:
        told(world, "tokens", credentials.tokens)
    if answers != ["OK", "UNAUTHENTICATED", "OK"]:
        world.wrong.append(f"clock jumps: a token that expires in between: {answers}")


class Group:
    """A control group of our own with a limit on memory, of either version."""

    def __init__(self):
        with open("/proc/mounts", encoding="utf-8") as file:
            mounts = [line.split() for line in file]
        for _, folder, kind, options, *_ in mounts:
            controllers = os.path.join(folder, "cgroup.controllers")
            if kind == "cgroup" and "memory" in options.split(","):
                self.limit, self.none = "memory.limit_in_bytes", "-1"
            elif kind == "cgroup2" and os.path.exists(controllers) and "memory" in self.text(controllers).split():
                self.limit, self.none = "memory.max", "max"
            else:
                continue
            self.parent, self.folder = folder, os.path.join(folder, f"tilewire-chaos-{os.getpid()}")
            try:
                if kind == "cgroup2":
                    self.write(os.path.join(folder, "cgroup.subtree_control"), "+memory")
                os.makedirs(self.folder, exist_ok=True)
                self.set(self.none)
                return
            except OSError as error:
                raise CannotBe(f"no control group can be made: {error.strerror}") from error
        raise CannotBe("no control groups with memory")

    @staticmethod
    def text(path):
        with open(path, encoding="ascii") as file:
            return file.read()

    @staticmethod
    def write(path, text):
        with open(path, "w", encoding="ascii") as file:
            file.write(text)

    def set(self, value):
        self.write(os.path.join(self.folder, self.limit), value)

    def take(self, pid):
        self.write(os.path.join(self.folder, "cgroup.procs"), str(pid))

    def let_go(self, pid, alive):
        """Back to where there is no limit. Pages that it has stay counted here, so the folder may be left."""
        if alive:
            self.write(os.path.join(self.parent, "cgroup.procs"), str(pid))
        with contextlib.suppress(OSError):
            os.rmdir(self.folder)


def small_group(world, rng):
    """A control group lets the server have so much more and no more: it refuses, and ends connections, before it is killed for it."""
    group, pid = Group(), world.served.process.pid
    with world.allowing("small group", ("RESOURCE_EXHAUSTED", ""), NO_SERVER, cut=True):
        group.set(str(rng.randint(256, 512) * MIB))
        group.take(pid)
        try:
            world.more_calls(48)
        finally:
            group.set(group.none)
            group.let_go(pid, world.served.alive())
        everybody_again(world)


MACHINE = {"small_group": small_group, "clock_jumps": clock_jumps}
