"""A client of a campaign: calls without end and tells each in a line of JSON, until its stdin says otherwise.

Started by campaign.py alone, with its settings in JSON. Lines of stdin: go, quiet, end.
"""
import json
import os
import pickle
import queue
import random
import re
import subprocess
import sys
import threading
import time

import numpy as np

SETTINGS = json.loads(sys.argv[1])
PAUSE = 0.05  # seconds after an error. A channel of gRPC 1.51 on which calls fail without a pause does not connect for half a minute
sys.path.insert(0, SETTINGS["stubs"])
import grpc  # noqa: E402
from stubs import PATIENCE, UNARY, Stubs, reason  # noqa: E402


class Failed(Exception):
    """A program that ended with an error of the server's."""


class ByStubs:
    def __init__(self):
        self.stubs = Stubs(SETTINGS["target"], SETTINGS["ca"], SETTINGS["token"], SETTINGS["fresh"], SETTINGS["prefix"])

    def call(self, rng, case):
        ways = ["stream", "stream", "stored", "shared"] + (["unary"] * 3 if case.size() <= UNARY else [])
        self.way = rng.choice(ways)
        self.stubs.connect()
        self.stubs.opened, self.stubs.since = False, None
        return getattr(self.stubs, self.way)(case)

    def tidy(self):
        self.way = "tidy"
        self.stubs.opened = False
        self.stubs.connect()
        self.stubs.tidy()
        self.stubs.close()

    def told(self, error):
        opened = self.stubs.opened
        if error.code() != grpc.StatusCode.PERMISSION_DENIED:
            self.stubs.forget()
        if error.code() == grpc.StatusCode.UNAVAILABLE:  # see PAUSE
            self.stubs.close()
        return error.code().name, reason(error), error.details(), opened, self.stubs.since


class ByProgram:
    """The command line, a process for each call."""

    def __init__(self):
        self.folder = SETTINGS["folder"]
        flags = ["--server", SETTINGS["target"], "--token-file", SETTINGS["token_file"], "--timeout", str(PATIENCE)]
        if not SETTINGS["target"].startswith("unix:"):
            flags += ["--tls-ca", SETTINGS["ca"]]
        self.command = [SETTINGS["tilewire"], *flags]
        self.out = os.path.join(self.folder, f"out-{os.getpid()}.npy")

    def run(self, *arguments):
        done = subprocess.run([*self.command, *arguments], capture_output=True, text=True, check=False)
        if done.returncode:
            raise Failed(done.returncode, done.stderr.strip())
        return done.stdout.strip()

    def call(self, rng, case):
        files = [os.path.join(self.folder, f"{case.name}-{i}.npy") for i in range(len(case.inputs))]
        self.way = rng.choice(["wire", "connections", "region", "stored"])
        self.since, ids, flags = None, [], []
        if self.way == "stored":
            self.since = time.monotonic()
            ids = [self.run("put", file) for file in files]
            files = ["array:" + i for i in ids]
        elif self.way == "connections":
            flags = ["--connections", "3"]
        elif self.way == "region":
            flags = ["--via", "region"]
        attributes = case.attributes
        if case.kind == "gaussian_pdf":
            words = ["gaussian-pdf", *files, self.out, "--mean", str(attributes["mean"]), "--stddev", str(attributes["stddev"])]
        else:
            axes = ",".join(map(str, attributes["axes"]))
            words = ["rmse", *files, "--out", self.out] if case.kind == "rmse" else ["transpose", *files, self.out]
            words += ["--axis" if case.kind == "rmse" else "--axes", axes] if axes else []
        try:
            self.run(*flags, *words)
        except Failed:
            if ids:
                subprocess.run([*self.command, "rm", *ids], capture_output=True, check=False)
            raise
        if ids:
            self.run("rm", *ids)
        return [np.load(self.out)], self.since

    def tidy(self):
        self.way, self.since = "tidy", None

    def told(self, error):
        code, text = error.args
        found = re.search(r"error: ([A-Z_]+): ", text)
        return (found.group(1) if found else f"exit code {code}"), "", text[-300:], False, self.since


def once(caller, rng, case):
    """One call (None: giving back what is left there), told. Whether it went well."""
    begin, said = time.monotonic(), {"case": case.name if case else "tidy"}
    print(json.dumps({"begins": begin}), flush=True)
    try:
        if case is None:
            caller.tidy()
        else:
            results, since = caller.call(rng, case)
            said["since"] = since
            said["right"] = [np.ascontiguousarray(x).tobytes() for x in results] == case.bits
        said["code"] = "OK"
    except (grpc.RpcError, Failed) as error:
        said["code"], said["reason"], said["text"], said["opened"], said["since"] = caller.told(error)
    said |= {"way": caller.way, "begin": begin, "end": time.monotonic()}
    print(json.dumps(said), flush=True)
    return said["code"] == "OK"


def main():
    with open(os.path.join(SETTINGS["folder"], "cases"), "rb") as file:
        cases = pickle.load(file)
    caller, rng, words = ByStubs() if SETTINGS["kind"] == "stubs" else ByProgram(), random.Random(SETTINGS["seed"]), queue.Queue()
    if SETTINGS["kind"] != "stubs":
        cases = [case for case in cases if case.kind != "compare"]  # its lines have no bits

    def listen():
        for line in sys.stdin:
            words.put(line.strip())
        words.put("end")
    threading.Thread(target=listen, daemon=True).start()
    print(json.dumps({"ready": True}), flush=True)
    going = paused = False
    while True:
        try:
            word = words.get(block=paused or not going, timeout=PAUSE if going else None)
        except queue.Empty:
            paused = not once(caller, rng, rng.choice(cases))
            continue
        going = word == "go"
        if word == "quiet":
            once(caller, rng, None)
            print(json.dumps({"quiet": True}), flush=True)
        elif word == "end":
            return


main()
