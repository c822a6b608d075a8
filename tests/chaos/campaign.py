"""A server, clients that never stop calling, and what happens to both; a model knows every right answer and every error allowed.

    campaign.py TILEWIRED TILEWIRE [--seconds N] [--seed N] [--only NAME,...] [--report]

Each disturbance comes once; with --seconds again and again, in an order that the seed gives. --only rotation replaces certificates,
tokens and policy once a second. README.md in this folder has the table.
"""
import argparse
import glob
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
from model import cases, right

HERE = os.path.dirname(os.path.abspath(__file__))
MIB = 1 << 20
LEAK = 256 * MIB  # above what a server had after its first load


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


def disturb(world, options, what):
    """All that there are once, or until the time is over. How often each."""
    from world import shuffled
    rng, begin, done = random.Random(f"{options.seed}/disturbances"), time.monotonic(), {}
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
        what[name](world, rng)
        world.settle()
        done[name] = done.get(name, 0) + 1
        world.took[name] = world.took.get(name, 0) + time.monotonic() - at
        assert not world.wrong, (name, world.wrong)
    return done


def rotate(world, options, rotation):
    """Once a second, without a pause in the calls."""
    rng, begin, count = random.Random(options.seed), time.monotonic(), 0
    world.tell("go")
    while count < 3 or time.monotonic() - begin < options.seconds:
        rotation(world, rng)
        count += 1
        world.pump(max(0, begin + count - time.monotonic()))
        world.served.resident.append((time.monotonic(), world.served.memory()))
        assert not world.wrong, world.wrong
    world.settle()
    return {"rotation": count}


def report(world, done, seconds):
    served = world.served
    print(f"{seconds:.0f} s, seed {world.seed}: {world.calls} calls, {world.good} good; {served.starts} starts of the server, "
          f"{world.spawned} of clients")
    print("disturbances:", ", ".join(f"{name} {count} ({world.took.get(name, 0) / count:.1f} s each)" for name, count in sorted(done.items())))
    print("errors that were allowed:", world.failures or "none")
    print("noted:", world.noted or "nothing")
    print("warnings of the server:", dict(served.warned) or "none")
    for lasted, first, last, most, rate in sorted(world.lives, reverse=True)[:3]:
        print(f"memory of a server that lived {lasted:.0f} s: {first / MIB:.1f} MiB after its first load, {last / MIB:.1f} at the end, "
              f"{most / MIB:.1f} at most; {rate:+.2f} MiB a minute")


def campaign(options, folder):
    make_stubs(os.path.join(folder))
    from credentials import Credentials
    from disturbances import ALL, rotation
    from served import Served
    from world import World
    only = options.only.split(",") if options.only else list(ALL)
    assert only == ["rotation"] or set(only) <= set(ALL), f"--only: {sorted(ALL)}, or rotation"
    prefix = f"/tilewire-chaos-{os.getpid()}"
    served = Served(options.tilewired, folder, Credentials(folder), prefix)
    world = World(served, folder, folder, options.seed, options.tilewire)
    begin = time.monotonic()
    try:
        served.start()
        learn(world, cases(options.seed))
        world.spawn_all()
        done = rotate(world, options, rotation) if only == ["rotation"] else disturb(world, options, {name: ALL[name] for name in only})
        world.keep_slope()
        served.process.terminate()
        world.until(lambda: not served.alive(), "the end of the server", dead=True)
        assert served.end_reading() == 0, served.log
        assert not world.wrong, world.wrong
        assert all(most < first + LEAK for _, first, _, most, _ in world.lives), world.lives
        bad = [line for line in served.warned if not line.startswith("warn")]
        assert not bad, bad
        if options.report:
            report(world, done, time.monotonic() - begin)
        print(f"{world.calls} calls, {sum(done.values())} disturbances: all is right")
    except BaseException:
        print(f"campaign: seed {options.seed}; the server's last lines:", *served.log[-20:], sep="\n  ", file=sys.stderr)
        raise
    finally:
        world.end()
        for left in glob.glob("/dev/shm" + prefix + "*"):
            os.unlink(left)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tilewired", type=os.path.abspath)
    parser.add_argument("tilewire", type=os.path.abspath)
    parser.add_argument("--seconds", type=float, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--report", action="store_true")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("campaign: ended by SIGTERM"))  # so that nobody is left behind
    with tempfile.TemporaryDirectory(prefix="tilewire-chaos-") as folder:
        campaign(options, folder)


main()
