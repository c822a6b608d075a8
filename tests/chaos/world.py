"""Server, clients and the model of a campaign: who may see which error when."""
import contextlib
import json
import os
import random
import selectors
import signal
import subprocess
import sys
import time

from memory import course
from stubs import Stubs

PATIENCE = 300  # seconds, for what must come in the end
CLIENTS = (("stubs", "tcp", "ann", False), ("stubs", "tcp", "bob", False), ("stubs", "tcp", "ann", True),
           ("stubs", "unix", "bob", False), ("program", "tcp", "ann", False), ("program", "unix", "bob", False))
LOST = 60       # seconds after which a call whose server has died is one that its client has lost
REPORTED = 20  # wrong answers that are told in full


class Client:
    """One process, which leads a group of its own, and what it has told."""

    def __init__(self, number, process):
        self.number, self.process = number, process
        self.quiet = self.ready = False
        self.last_good = 0  # when its last good call began
        self.said = {}  # of its last call
        self.begun = None  # when the call that it is in began
        self.rest = b""


class World:
    def __init__(self, served, folder, stubs, seed, tilewire, clock):
        self.served, self.folder, self.stubs, self.seed, self.tilewire, self.clock = served, folder, stubs, seed, tilewire, clock
        self.clients, self.states, self.wrong, self.failures = {}, [], [], {}
        self.calls = self.good = self.spawned = 0
        self.lives, self.noted, self.took = [], {}, {}
        self.awaited = ""  # what is waited for now
        self.disturbed = False  # clients were killed, or may not know what they had: it stays
        self.selector = selectors.DefaultSelector()

    # --- clients
    def spawn(self, number):
        kind, place, name, fresh = CLIENTS[number]
        self.spawned += 1
        settings = {"kind": kind, "target": self.served.tcp if place == "tcp" else self.served.unix, "fresh": fresh,
                    "ca": self.served.credentials.path("ca.pem"), "token_file": self.served.credentials.path(name + ".token"),
                    "token": f"{name}.{self.served.credentials.secrets[name]}", "folder": self.folder, "stubs": self.stubs,
                    "prefix": self.served.prefix, "seed": f"{self.seed}/{self.spawned}", "tilewire": self.tilewire}
        program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "caller.py")
        process = subprocess.Popen([sys.executable, "-B", program, json.dumps(settings)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   start_new_session=True, bufsize=0, env=dict(os.environ, OPENBLAS_NUM_THREADS="1", **self.clock.environment))
        self.clients[number] = client = Client(number, process)
        self.selector.register(process.stdout, selectors.EVENT_READ, client)
        return client

    def spawn_all(self):
        for number in range(len(CLIENTS)):
            self.spawn(number)
        self.until(lambda: all(client.ready for client in self.clients.values()), "clients that are ready")

    def tell(self, word, clients=None):
        self.word = word
        for client in clients or self.clients.values():
            client.quiet = False
            client.process.stdin.write(word.encode() + b"\n")

    def kill(self, client):
        """With the program that it has called. What it said until then counts."""
        os.killpg(client.process.pid, signal.SIGKILL)
        client.process.wait()
        while self.read(client):
            pass
        self.selector.unregister(client.process.stdout)
        client.process.stdout.close()
        client.process.stdin.close()
        self.disturbed = True

    def everyone_quiet(self):
        self.tell("quiet")
        self.until(lambda: all(client.quiet for client in self.clients.values()), "clients that are quiet")

    # --- what they say
    def read(self, client):
        data = os.read(client.process.stdout.fileno(), 1 << 16)
        *lines, client.rest = (client.rest + data).split(b"\n")
        for line in lines:
            said = json.loads(line)
            client.ready |= "ready" in said
            client.begun = said.get("begins")
            client.quiet |= "quiet" in said
            if "code" in said:
                self.judge(client, said)
        return data

    def pump(self, seconds):
        """Listens to the clients once, or for so long."""
        until = time.monotonic() + seconds
        while True:
            for key, _ in self.selector.select(max(0, until - time.monotonic())):
                if not self.read(key.data):
                    raise AssertionError(f"client {key.data.number} ended by itself: {key.data.process.wait()}")
            if time.monotonic() >= until:
                return

    def until(self, condition, what, dead=False):
        begin, self.awaited = time.monotonic(), what
        while not condition():
            if not dead and not self.served.alive():
                raise AssertionError(f"the server has died: {self.served.process.returncode} {self.served.log[-20:]}")
            if time.monotonic() - begin > PATIENCE:
                raise AssertionError(f"not in {PATIENCE} s: {what}; {self.served.busy() if not dead else ''}{self.last_words()}")
            self.pump(0.02)
            self.replace_the_lost()
        self.awaited = ""

    def replace_the_lost(self):
        """Stubs in a call that began before its server died, long ago: no server owes them anything. gRPC's Python, 1.51 and
        1.85, now and then loses a stream with its connection, and the call outlives that, and its own deadline."""
        if not self.served.died or time.monotonic() - self.served.died < LOST:
            return
        for number, client in list(self.clients.items()):
            if CLIENTS[number][0] == "stubs" and client.begun and client.begun < self.served.died:
                self.note(f"calls that gRPC's client has lost with their server ({CLIENTS[number][1]})")
                self.kill(client)
                self.tell(self.word, [self.spawn(number)])

    def unfinished(self):
        """What was waited for when the campaign ended, and which gauges of the server are not 0."""
        try:
            busy = self.served.busy() if self.served.process and self.served.alive() else "there is no server"
        except Exception as error:  # whatever stands in the way, the reason for the end is the other one
            busy = f"the server's metrics cannot be had: {error}"
        return f"{self.awaited or 'nothing'}; gauges that are not 0: {busy or 'none'}"

    def last_words(self):
        """What each client said last, and how long ago its last good call had begun."""
        return "".join(f"\n  {time.monotonic() - client.last_good:.1f} s {CLIENTS[number]} {json.dumps(client.said)[:400]}"
                       for number, client in sorted(self.clients.items()))

    def more_calls(self, count=12, good=True):
        """Until so many more calls have ended (well)."""
        now = self.good if good else self.calls
        self.until(lambda: (self.good if good else self.calls) >= now + count, "further calls")

    def failed(self, code):
        """Calls that ended so, whatever the reason."""
        return sum(count for name, count in self.failures.items() if name.split()[0] == code)

    # --- the model
    @contextlib.contextmanager
    def allowing(self, name, *errors, gone=False, cut=False, lasting=True, who=None):
        """While this lasts `errors` are allowed: (code, reason), reason "" any. lasting: for each client until its first
        good call begun later. gone: what the server kept for clients may not be found again. cut: streams that it had taken may
        fail too. who: the only ones who may see them, of that kind, place or name."""
        state = {"name": name, "errors": errors, "gone": gone, "cut": cut, "lasting": lasting, "who": who, "denied": None,
                 "begin": time.monotonic(), "end": None}
        self.states.append(state)
        yield state
        state["end"] = time.monotonic()

    def judge(self, client, said):
        self.calls += 1
        client.said = said
        since = said.get("since") or said["begin"]
        if said["code"] == "OK":
            if not said.get("right", True):
                self.complain(client, said, "wrong bytes")
            if any(s["gone"] and s["end"] and since < s["begin"] and said["begin"] > s["end"] for s in self.states):
                self.complain(client, said, "the server knows what an earlier one kept")
            if any(self.denies(s, client, said) for s in self.states[-1:]):
                self.complain(client, said, "the policy forbids it")
            client.last_good = max(client.last_good, said["begin"])
            self.good += 1
            return
        name = f"{said['code']} {said['reason']}".strip()
        # Whoever was told so knows what it has kept; others may have lost sight of it.
        self.disturbed |= said["code"] != "PERMISSION_DENIED"
        self.failures[name] = self.failures.get(name, 0) + 1
        if not any(self.excuses(state, client, said) for state in self.states):
            self.complain(client, said, "not allowed now")

    def excuses(self, state, client, said):
        if state["begin"] > said["end"]:
            return False
        over = state["end"] or float("inf")
        if said["code"] == "NOT_FOUND":  # whenever it is asked for
            return state["gone"] and (said.get("since") or said["begin"]) < over
        if (client.last_good if state["lasting"] else said["begin"]) > over:
            return False
        if said["opened"] and not state["cut"]:
            return False
        if state["who"] and state["who"] not in CLIENTS[client.number]:
            return False
        return any(said["code"] == code and (not reason or not said["reason"] or said["reason"] == reason)
                   for code, reason in state["errors"])

    def denies(self, state, client, said):
        return (state["denied"] and said["case"].startswith("gaussian") and CLIENTS[client.number][2] == state["who"] and
                state["denied"] < said["begin"] and said["end"] < (state["end"] or float("inf")))

    def complain(self, client, said, what):
        self.wrong.append(f"{what}: client {CLIENTS[client.number]} {said}; states {[(s['name'], s['begin'], s['end']) for s in self.states[-3:]]}"
                          if len(self.wrong) < REPORTED else what)

    # --- between disturbances
    def admin(self, name="ann"):
        return Stubs(self.served.unix, "", f"{name}.{self.served.credentials.secrets[name]}")

    def settle(self):
        """Everybody quiet: nothing may be left, but by those who were killed."""
        self.everyone_quiet()
        self.until(lambda: not self.served.metric("tilewire_calls_in_progress"), "calls of the dead")
        left = sum(self.admin(name).sweep() for name in ("ann", "bob"))
        if left and not self.disturbed:
            self.wrong.append(f"{left} arrays and regions are left of clients that tidied up")
        self.disturbed = False
        self.until(lambda: not self.served.busy(), "gauges at 0 and files closed")
        self.served.weigh()

    def keep_slope(self):
        """Of a server that is about to end: how long it lived, and its memory, mostly when everybody was quiet."""
        (own, heap), self.served.weighed = self.served.weighed, ([], [])
        if own:
            self.lives.append(dict(course(own), heap=course(heap) if heap else None))

    def note(self, what):
        self.noted[what] = self.noted.get(what, 0) + 1

    @staticmethod
    def now():
        return time.monotonic()

    def end(self):
        for client in self.clients.values():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(client.process.pid, signal.SIGKILL)
            client.process.wait()
        if self.served.process and self.served.alive():
            self.served.process.kill()
            self.served.end_reading()


def shuffled(seed, names):
    """All of them again and again, each time in another order."""
    rng = random.Random(seed)
    while True:
        order = list(names)
        rng.shuffle(order)
        yield from order
