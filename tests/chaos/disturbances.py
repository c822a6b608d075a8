"""What happens to server and clients while calls run. Each takes the world and a source of chance."""
import contextlib
import os
import resource
import signal

import grpc
from credentials import GOOD_POLICY, NARROW_POLICY
from stubs import reason, t
from stubs import k as kernels

NO_SERVER = ("UNAVAILABLE", "")
UNTAKEN = ("CANCELLED", "")  # what gRPC's own shutdown says to calls that came in its last moment
MIB = 1 << 20


def kill_clients(world, rng):
    """kill -9 in the middle of calls; others come in their place."""
    for number in rng.sample(sorted(world.clients), rng.randint(1, 2)):
        world.kill(world.clients[number])
        world.tell("go", [world.spawn(number)])
    world.more_calls()


def stop_clients(world, rng):
    """SIGSTOP, and SIGCONT later: shorter than --idle-seconds."""
    chosen = [world.clients[number] for number in rng.sample(sorted(world.clients), rng.randint(1, 3))]
    for client in chosen:
        os.killpg(client.process.pid, signal.SIGSTOP)
    world.pump(rng.uniform(0.1, 1.5))
    for client in chosen:
        os.killpg(client.process.pid, signal.SIGCONT)
    world.more_calls()


def stop_server(world, rng):
    """The same of the server: no call may fail of it."""
    world.served.process.send_signal(signal.SIGSTOP)
    world.pump(rng.uniform(0.1, 1.5))
    world.served.process.send_signal(signal.SIGCONT)
    world.more_calls()


def kill_server(world, rng):
    """kill -9 of the server, and a new one at its port and its unix socket: nothing kept is found there."""
    with world.allowing("killed", NO_SERVER, ("NOT_FOUND", ""), gone=True, cut=True):
        world.keep_slope()
        world.served.process.kill()
        world.served.end_reading()
        world.pump(rng.uniform(0, 0.3))
        if rng.random() < 0.3:
            kill_client_alone(world, rng)
        world.served.start()
        everybody_again(world)


def kill_client_alone(world, rng):
    number = rng.choice(sorted(world.clients))
    world.kill(world.clients[number])
    world.tell("go", [world.spawn(number)])


def everybody_again(world):
    """Until each client has been served by the server that there is now."""
    now = world.now()
    world.until(lambda: all(client.last_good > now for client in world.clients.values()), "clients that are served again")


def drain_server(world, rng):
    """SIGTERM under load: exit code 0, what was taken is answered, the rest refused. Then a new one."""
    with world.allowing("drained", NO_SERVER, UNTAKEN, ("NOT_FOUND", ""), gone=True):
        world.keep_slope()
        world.served.process.send_signal(signal.SIGTERM)
        world.until(lambda: not world.served.alive(), "the end of the drain", dead=True)
        code = world.served.end_reading()
        if code:
            world.wrong.append(f"drained with exit code {code}: {world.served.log[-5:]}")
        world.served.start()
        everybody_again(world)


def told(world, what, change):
    """Until the server has said it of a change of files."""
    before = world.served.told[what]
    change()
    world.until(lambda: world.served.told[what] > before, f"the server's word of {what}")


def certificates(world, rng):
    """A new pair; one that cannot be used, and the old goes on; a good one again. No call fails."""
    credentials = world.served.credentials
    told(world, "certificates", credentials.certificate)
    world.more_calls()
    told(world, "bad certificates", lambda: credentials.broken_certificate(rng))
    world.more_calls()
    told(world, "certificates", credentials.certificate)
    world.more_calls()


def tokens(world, rng):
    """The same of tokens: new salts for the same secrets."""
    credentials = world.served.credentials
    told(world, "bad tokens", lambda: credentials.tokens(broken=True))
    world.more_calls()
    told(world, "tokens", credentials.tokens)
    world.more_calls()


def policy(world, rng):
    """A policy that lets one caller do less: just that is denied, from then on and until it is taken back. Broken ones change nothing."""
    credentials, what = world.served.credentials, "rules of the policy"
    with world.allowing("narrowed", ("PERMISSION_DENIED", "POLICY"), who="bob", lasting=False) as state:
        told(world, what, lambda: credentials.policy(NARROW_POLICY))
        state["denied"] = world.now()
        world.more_calls()
        told(world, "bad " + what, lambda: credentials.policy(rng.choice(['{"rules": [', "[]", '{"rules": [{"who": 5}]}'])))
        world.more_calls()
        state["denied"] = None
        told(world, what, lambda: credentials.policy(GOOD_POLICY))
    world.more_calls()


def rotation(world, rng):
    """One of these each second, as often broken as good; always good in the end."""
    credentials = world.served.credentials
    what = rng.choice(["certificates", "tokens", "rules of the policy"])
    good = {"certificates": credentials.certificate, "tokens": credentials.tokens,
            "rules of the policy": lambda: credentials.policy(GOOD_POLICY)}
    bad = {"certificates": lambda: credentials.broken_certificate(rng), "tokens": lambda: credentials.tokens(broken=True),
           "rules of the policy": lambda: credentials.policy("{")}
    if rng.random() < 0.5:
        told(world, "bad " + what, bad[what])
    told(world, what, good[what])


@contextlib.contextmanager
def limited(world, limit, value):
    """The server's soft limit, for a while."""
    pid = world.served.process.pid
    before = resource.prlimit(pid, limit)
    resource.prlimit(pid, limit, (value, before[1]))
    try:
        yield
    finally:
        if world.served.alive():
            resource.prlimit(pid, limit, before)


def full_disk(world, rng):
    """No byte more for the audit log: calls go on, lines are counted as dropped. Later it grows again."""
    dropped = "tilewire_audit_lines_dropped_total"
    with limited(world, resource.RLIMIT_FSIZE, os.path.getsize(world.served.audit)):
        world.more_calls()
        world.until(lambda: world.served.metric(dropped) > 0, dropped)
    size = os.path.getsize(world.served.audit)
    world.until(lambda: os.path.getsize(world.served.audit) > size, "lines of the audit log again")


def few_descriptors(world, rng):
    """No further file: new connections and regions are refused, those that there are go on; later all is well again."""
    with world.allowing("few descriptors", NO_SERVER, ("RESOURCE_EXHAUSTED", "")), \
            limited(world, resource.RLIMIT_NOFILE, int(world.served.metric("tilewire_process_open_fds")) + rng.randint(0, 3)):
        world.more_calls()
        world.pump(rng.uniform(0, 0.5))
    everybody_again(world)


def little_memory(world, rng):
    """Addresses end: a large job is refused by name or done, small ones go on, and the server lives."""
    admin = world.admin()
    with world.allowing("little memory", ("RESOURCE_EXHAUSTED", ""), NO_SERVER), \
            limited(world, resource.RLIMIT_AS, world.served.memory("VmSize") + rng.randint(64, 160) * MIB):
        admin.connect()
        shape = t.ArraySpec(dtype=12, shape=[rng.randint(20, 60), MIB])
        opened = kernels.ExecuteRequest(open=kernels.Open(op=t.Operation(transpose=t.TransposeOp()), operands=[shape]))
        call = admin.kernels.Execute(iter([opened]), **admin.rest)
        try:
            list(call)  # ends without its bytes
            world.wrong.append("an array without bytes was transposed")
        except grpc.RpcError as error:
            name = f"{error.code().name} {reason(error)}"
            world.note(f"little memory: {name}")
            if error.code() not in (grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.UNAVAILABLE):
                world.wrong.append(f"little memory: {name} {error.details()}")
        world.more_calls()
    admin.close()
    everybody_again(world)


ALL = {what.__name__: what for what in (kill_clients, stop_clients, stop_server, kill_server, drain_server, certificates, tokens, policy,
                                        full_disk, few_descriptors, little_memory)}
