#!/usr/bin/env python3
"""What doors cost: TLS, client certificates, and everything else that keeps others out, beside the same calls without.

    price.py FOLDER [--device auto] [--ways WAY;WAY...] [--rounds 3] [--turns 4] [--seconds 1] [--mib 64,256] [--json FILE] [--markdown FILE]

FOLDER is a bundle or a build. Every round starts a server for each way. They are all up at once and are called in turns, in
another order each time, so that all meet the same machine; and each round they are other processes, since two that do the same
differ by some percent. Figures are medians, and what stands beside them is the median of the differences or shares of one turn,
to the way that is printed first. Certificates and the token are made by openssl and tilewired when it runs, and end with it.

All off: nothing is given up by the process, either. Again: what two servers of equal work differ by. A token unasked: clients send
one, and the server does not look at it, so this is what gRPC takes to carry it. All on: tokens, a policy with limits, an audit
log, and bounds of connections; but tokens: the rest of it, for callers without a name.

Exit code: 0; 1 nothing could be measured; 2 bad usage or no programs.
"""
import argparse
import contextlib
import json
import os
import random
import statistics
import subprocess
import sys

from programs import (Failure, Server, add_common_options, figures, find_program, matrix_shape, numbers, report_of, run,
                      scratch_folder, spread, table, write_text)

WAYS = ("in clear", "in clear, again", "all off", "in clear, a token unasked", "in clear, all on",
        "in clear, all on but tokens", "TLS", "TLS, all on", "TLS, client certificate")
# Counted, and never reached.
BOUNDS = ("--max-calls-per-connection", "1000000", "--max-streams-per-connection", "1000000", "--calls-per-second-per-connection", "1000000",
          "--bytes-per-second-per-connection", "16384GiB")
POLICY = {"rules": [{"who": ["token:price", "anonymous"], "methods": ["*"], "admin": True, "max_bytes": "64GiB", "calls_per_second": 1000000,
                     "bytes_per_second": "16384GiB", "max_in_flight": 1000000, "queue_length": 1000000, "streams": 1000000,
                     "device_bytes": "16384GiB"}]}
LESS = "p50, us"  # the row where less is better


def make_pair(folder, name, authority=None):
    """NAME.pem and NAME.key in the folder, signed by that authority or by itself."""
    path = os.path.join(folder, name)
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", path + ".key", "-subj", f"/CN={name}"]
    if authority is None:
        run(["openssl", "req", "-x509", *key, "-out", path + ".pem", "-days", "2"], 60)
        return
    write_text(path + ".names", f"subjectAltName=DNS:localhost,DNS:{name}")
    run(["openssl", "req", *key, "-out", path + ".request"], 60)
    run(["openssl", "x509", "-req", "-in", path + ".request", "-CA", authority + ".pem", "-CAkey", authority + ".key",
         "-CAcreateserial", "-days", "2", "-extfile", path + ".names", "-out", path + ".pem"], 60)


class Price:
    def __init__(self, options, folder):
        self.options, self.folder, self.device, self.failures = options, folder, None, []
        self.load, self.server = (find_program(options.folder, name) for name in ("tilewire-load", "tilewired"))
        self.rows, self.beside = {}, {}  # values of each row and way; what they are to those of the first way in the same turn
        self.scenarios = {
            f"rmse 4 KiB, one caller, {LESS}": (1, {"shape": [1024], "access": "unary"}),
            "rmse 4 KiB, 16 callers, calls/s": (16, {"shape": [1024], "access": "unary"})}
        if options.mib:
            small, large = options.mib
            self.scenarios |= {
                f"rmse 2 x {small} MiB, one connection, GB/s": (1, {"shape": matrix_shape(small), "access": "stream"}),
                f"rmse 2 x {large} MiB, 2 callers, 4 connections each, GB/s":
                    (2, {"shape": matrix_shape(large), "access": "striped", "connections": 4})}
        make_pair(folder, "authority")
        for name in ("server", "client"):
            make_pair(folder, name, self.path("authority"))
        made = subprocess.run([self.server, "--make-token", "price"], capture_output=True, text=True, check=True, timeout=60)
        write_text(self.path("policy"), json.dumps(POLICY))
        write_text(self.path("tokens"), made.stdout.strip())
        write_text(self.path("token"), made.stderr.strip().split()[-1])

    def path(self, name):
        return os.path.join(self.folder, name)

    def flags(self, way):
        """Of the server, and of its client."""
        server, client = [], []
        if way == "all off":
            server += ["--no-confinement", "--core-dumps"]
        if "all on" in way:
            server += ["--policy", self.path("policy"), "--audit-log", self.path("audit of " + way), *BOUNDS]
        if way.endswith(("all on", "unasked")):
            client += ["--token-file", self.path("token")]
        if way.endswith("all on"):
            server += ["--tokens", self.path("tokens"), "--anonymous", "deny"]
        if "TLS" in way:
            server += ["--tls-cert", self.path("server.pem"), "--tls-key", self.path("server.key")]
            client += ["--tls-ca", self.path("authority.pem")]
        if "client certificate" in way:
            server += ["--tls-client-ca", self.path("authority.pem"), "--tls-client", "required"]
            client += ["--tls-cert", self.path("client.pem"), "--tls-key", self.path("client.key")]
        return server, client

    def call(self, server, row, client):
        callers, operation = self.scenarios[row]
        scenario, result = self.path("scenario.json"), self.path("result.json")
        write_text(scenario, json.dumps({"mode": {"type": "closed", "callers": callers}, "inputs": 2,
                                         "warmup_seconds": min(0.5, self.options.seconds / 2), "seconds": self.options.seconds,
                                         "operations": [{"operation": "rmse", **operation}]}))
        run([self.load, "run", scenario, "--server", server.address, "--json", result, *client], 60 + 10 * self.options.seconds)
        with open(result, encoding="utf-8") as file:
            total = json.load(file)["total"]
        return {"us": total["latency_us"]["p50"], "calls/s": total["calls_per_second"],
                "GB/s": total["bytes_per_second"] / 1e9}[row.rsplit(" ", 1)[1]]

    def start(self, servers, way):
        try:
            server = servers.enter_context(Server(self.server, ["--device", self.options.device, *self.flags(way)[0]]))
            self.device = server.device
            return server
        except Failure as failure:
            self.failures.append(f"{way}: {failure}")
            return None

    def turn(self, row, servers):
        """A value of each way, but of those that fail: they have no more turns."""
        got = {}
        for way in random.sample(list(servers), len(servers)):
            try:
                got[way] = self.call(servers[way], row, self.flags(way)[1])
            except Failure as failure:
                self.failures.append(f"{way}: {failure}")
                del servers[way]
        base = got.get(self.options.ways[0])
        for way, value in got.items():
            self.rows[row].setdefault(way, []).append(value)
            if base:
                self.beside[row].setdefault(way, []).append(value / base)

    def round(self):
        try:
            with contextlib.ExitStack() as stack:
                servers = {way: self.start(stack, way) for way in self.options.ways}
                servers = {way: server for way, server in servers.items() if server}
                for row in self.scenarios:
                    self.rows.setdefault(row, {})
                    self.beside.setdefault(row, {})
                    for _ in range(self.options.turns):
                        self.turn(row, servers)
        except Failure as failure:  # how a server ended that nobody stopped
            self.failures.append(str(failure))


def median_of(ratios):
    return statistics.median(ratios) if ratios else None


def measure(options):
    with scratch_folder() as folder:
        price = Price(options, folder)
        for _ in range(options.rounds):
            price.round()
    if not any(price.rows.values()):
        raise Failure(price.failures[0])
    return {"version": 2, "device": price.device, "ways": list(options.ways), "rounds": options.rounds, "failed": price.failures,
            "rows": {row: {way: {**spread(ways[way]), "beside": median_of(price.beside[row].get(way))}
                           for way in options.ways if way in ways} for row, ways in price.rows.items() if ways}}


def cell(row, ways, way, first):
    if way not in ways:
        return "–"
    value, beside = ways[way]["median"], ways[way]["beside"]
    if way == first or beside is None:
        return figures(value)
    return f"{figures(value)} ({100 * (beside - 1):+.1f}%)" if row.endswith(LESS) else f"{figures(value)} ({100 * beside:.1f}%)"


def render(report, markdown):
    names = report["ways"]
    rows = [[row, *(cell(row, ways, way, names[0]) for way in names)] for row, ways in report["rows"].items()]
    return "\n".join([table(["", *names], rows, markdown), *(f"failed: {failure}" for failure in report["failed"])])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", metavar="FOLDER")
    parser.add_argument("--ways", type=lambda text: text.split(";"), default=list(WAYS),
                        help=f"with semicolons between; the first is what others stand beside (default: {';'.join(WAYS)})")
    parser.add_argument("--turns", type=int, default=4, help="of each way, in each round (default: 4)")
    parser.add_argument("--seconds", type=float, default=1, help="of each measurement (default: 1)")
    parser.add_argument("--mib", type=lambda text: [] if text == "none" else numbers(text), default=[64, 256],
                        help="of each array, small and large, or none: small calls alone (default: 64,256)")
    add_common_options(parser, rounds=3)
    options = parser.parse_args()
    if len(options.mib) not in (0, 2) or min(options.rounds, options.turns, options.seconds) <= 0:
        parser.error("--mib takes two sizes or none, --rounds, --turns and --seconds positive numbers")
    unknown = [way for way in options.ways if way not in WAYS]
    if unknown:
        parser.error(f"--ways: there is no \"{unknown[0]}\"; there are: {'; '.join(WAYS)}")
    return 0 if report_of(options, measure, render) else 1


if __name__ == "__main__":
    sys.exit(main())
