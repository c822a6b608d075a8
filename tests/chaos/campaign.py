"""A server, clients that never stop calling, and what happens to both; a model knows every right answer and every error allowed.

    campaign.py TILEWIRED TILEWIRE [--seconds N] [--seed N] [--only NAME,...] [--device cuda] [--stubs FOLDER] [--set-clock]
                [--report] [--json FILE]

Each disturbance comes once; with --seconds again and again, in an order that the seed gives. --only rotation replaces certificates,
tokens and policy once a second. --set-clock: clock_jumps moves the clock of this machine, not one of the server's and the clients' own.
--stubs: made before, for machines without protoc (carry.sh). README.md in this folder has the table.
"""
import argparse
import glob
import json
import os
import pickle
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np
from memory import Heap
from model import cases, right

HERE = os.path.dirname(os.path.abspath(__file__))
MIB = 1 << 20
LONG = 300        # seconds that a server must live until its memory can be told to grow
LEAK = 256 * MIB  # of its own, in the last quarter of that time above the first
HEAP_LEAK = 16 * MIB  # the same of what it has from malloc
MOST = 1536 * MIB  # of any: --device-bytes, and what calls take besides
CPU_ALONE = ("little_memory",)  # a driver maps as many addresses as it likes


def make_stubs(folder):
    proto = os.path.join(HERE, "..", "..", "proto")
    plugin = shutil.which("grpc_python_plugin")
    subprocess.run(["protoc", "-I", proto, f"--python_out={folder}", f"--grpc_python_out={folder}", f"--plugin=protoc-gen-grpc_python={plugin}",
                    *(f"tilewire/v1/{name}.proto" for name in ("types", "kernels", "arrays", "regions"))], check=True)
    sys.path.insert(0, folder)


def learn(world, known):
    """The bits of each answer, once numpy agrees."""
    admin = world.admin()
    admin.connect()
    for case in known:
        results = admin.stream(case)[0]
        assert right(case, results), f"{case.name}: numpy disagrees"
        case.bits = [np.ascontiguousarray(x).tobytes() for x in results]
        for i, x in enumerate(case.inputs):
            np.save(os.path.join(world.folder, f"{case.name}-{i}.npy"), x)
    admin.close()
    with open(os.path.join(world.folder, "cases"), "wb") as file:
        pickle.dump(known, file)


def disturb(world, options, what, done):
    """All that there are once, or until the time is over. `done`: how often each."""
    from clocks import CannotBe
    from world import shuffled
    rng, begin = random.Random(f"{options.seed}/disturbances"), time.monotonic()
    names = shuffled(options.seed, what)
    for _ in range(10**9) if options.seconds else range(len(what)):
        if options.seconds and time.monotonic() - begin > options.seconds:
            break
        name = next(names)
        at = time.monotonic()
        if options.report:
            print(f"{at - begin:.0f} s: {name}", file=sys.stderr)
        world.tell("go")
        world.more_calls()
        try:
            what[name](world, rng)
        except CannotBe as why:
            world.note(f"{name} left out: {why}")
        world.settle()
        done[name] = done.get(name, 0) + 1
        world.took[name] = world.took.get(name, 0) + time.monotonic() - at
        assert not world.wrong, (name, world.wrong)


def rotate(world, options, rotation, done):
    """Once a second, without a pause in the calls."""
    rng, begin, count = random.Random(options.seed), time.monotonic(), 0
    world.tell("go")
    while count < 3 or time.monotonic() - begin < options.seconds:
        rotation(world, rng)
        count += 1
        done["rotation"] = count
        world.pump(max(0, begin + count - time.monotonic()))
        world.served.weigh()
        assert not world.wrong, world.wrong
    world.settle()


def grown(life):
    """Pools keep what jobs once had, within --device-bytes and the like; all else is from malloc, and goes back to it."""
    heap = life["heap"]
    return life["most"] > MOST or (life["seconds"] >= LONG and (life["last"] > life["first"] + LEAK or
                                                                (heap and heap["last"] > heap["first"] + HEAP_LEAK)))


def tell(world, done, seconds, path):
    """The figures for long.py, whatever became of the campaign."""
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"seed": world.seed, "seconds": seconds, "calls": world.calls, "good": world.good, "starts": world.served.starts,
                   "disturbances": done, "errors": world.failures, "noted": world.noted, "lives": world.lives, "wrong": world.wrong}, file)


def report(world, done, seconds):
    served = world.served
    print(f"{seconds:.0f} s, seed {world.seed}: {world.calls} calls, {world.good} good; {served.starts} starts of the server, "
          f"{world.spawned} of clients")
    print("disturbances:", ", ".join(f"{name} {count} ({world.took.get(name, 0) / count:.1f} s each)" for name, count in sorted(done.items())))
    print("errors that were allowed:", world.failures or "none")
    print("noted:", world.noted or "nothing")
    print("warnings of the server:", dict(served.warned) or "none")
    for life in sorted(world.lives, key=lambda life: life["seconds"], reverse=True)[:3]:
        print(f"memory of a server that lived {life['seconds']:.0f} s: {told(life)}; from malloc: {told(life['heap'])}")


def told(course):
    if course is None:
        return "not known"
    return (f"{course['first'] / MIB:.1f} MiB in its first quarter, {course['last'] / MIB:.1f} in its last, {course['most'] / MIB:.1f} at most; "
            f"{course['slope']:+.2f} MiB a minute")


def campaign(options, folder):
    stubs = options.stubs or folder
    if options.stubs:
        sys.path.insert(0, stubs)
    else:
        make_stubs(folder)
    from clocks import MachineClock, OwnClock
    from credentials import Credentials
    from disturbances import ALL, rotation
    from faults import FAULTS
    from machine import MACHINE
    from served import Served
    from world import World
    known = {**ALL, **MACHINE, **(FAULTS if options.tilewired.endswith("_faulty") else {})}
    only = options.only.split(",") if options.only else [name for name in known if options.device == "cpu" or name not in CPU_ALONE]
    assert only == ["rotation"] or set(only) <= set(known), f"--only: {sorted(known)}, or rotation"
    prefix = f"/tilewire-chaos-{os.getpid()}"
    clock = MachineClock() if options.set_clock else OwnClock(folder)
    served = Served(options.tilewired, folder, Credentials(folder), prefix, options.device, clock.environment, Heap(folder))
    world = World(served, folder, stubs, options.seed, options.tilewire, clock)
    begin, done = time.monotonic(), {}
    try:
        served.start()
        learn(world, cases(options.seed))
        world.spawn_all()
        if only == ["rotation"]:
            rotate(world, options, rotation, done)
        else:
            disturb(world, options, {name: known[name] for name in only}, done)
        world.keep_slope()
        served.process.terminate()
        world.until(lambda: not served.alive(), "the end of the server", dead=True)
        assert served.end_reading() == 0, served.log
        assert not world.wrong, world.wrong
        assert not any(grown(life) for life in world.lives), world.lives
        assert not served.unexpected(), served.unexpected()
        if options.report:
            report(world, done, time.monotonic() - begin)
        print(f"{world.calls} calls, {sum(done.values())} disturbances: all is right")
    except BaseException:
        print(f"campaign: seed {options.seed}; the server's last lines:", *served.log[-20:], sep="\n  ", file=sys.stderr)
        print(f"campaign: it waited for {world.unfinished()}", file=sys.stderr)
        print(f"campaign: after {done}, {world.failures}; threads of the server: {served.threads()}; what clients said last:"
              f"{world.last_words()}", file=sys.stderr)
        raise
    finally:
        world.end()
        if options.json:
            tell(world, done, time.monotonic() - begin, options.json)
        for left in glob.glob("/dev/shm" + prefix + "*"):
            os.unlink(left)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tilewired", type=os.path.abspath)
    parser.add_argument("tilewire", type=os.path.abspath)
    parser.add_argument("--seconds", type=float, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--set-clock", action="store_true")
    parser.add_argument("--stubs", type=os.path.abspath)
    parser.add_argument("--report", action="store_true")
    parser.add_argument("--json", type=os.path.abspath)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("campaign: ended by SIGTERM"))  # so that nobody is left behind
    with tempfile.TemporaryDirectory(prefix="tilewire-chaos-") as folder:
        campaign(options, folder)


main()
