#!/usr/bin/env python3
"""What doors cost: TLS, client certificates, and everything else that keeps others out, beside the same calls without.

    price.py FOLDER [--device auto] [--rounds 3] [--seconds 3] [--mib 64,256] [--json FILE] [--markdown FILE]

FOLDER is a bundle or a build. Every round starts a server a way, in turns, so that all ways meet the same machine; figures
are medians, and shares are of the way that is printed first. Certificates and the token are made by openssl and tilewired
when it runs, and end with it. All off: nothing is given up by the process, either. All on: tokens, a policy with limits, an audit log,
and bounds of connections. Exit code: 0; 1 nothing could be measured; 2 bad usage or no programs.
"""
import argparse
import json
import os
import subprocess
import sys

from programs import (Failure, Server, add_common_options, figures, find_program, matrix_shape, numbers, report_of, run,
                      scratch_folder, spread, table, write_text)

WAYS = ("all off", "in clear", "in clear, all on", "TLS", "TLS, all on", "TLS, client certificate")
# Counted, and never reached.
BOUNDS = ("--max-calls-per-connection", "1000000", "--max-streams-per-connection", "1000000", "--calls-per-second-per-connection", "1000000",
          "--bytes-per-second-per-connection", "16384GiB")
POLICY = {"rules": [{"who": ["token:price"], "methods": ["*"], "admin": True, "max_bytes": "64GiB", "calls_per_second": 1000000,
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
        self.rows = {}
        small, large = options.mib
        self.scenarios = {
            f"rmse 4 KiB, one caller, {LESS}": (1, {"shape": [1024], "access": "unary"}),
            "rmse 4 KiB, 16 callers, calls/s": (16, {"shape": [1024], "access": "unary"}),
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
            server += ["--tokens", self.path("tokens"), "--anonymous", "deny", "--policy", self.path("policy"), "--audit-log", self.path("audit"),
                       *BOUNDS]
            client += ["--token-file", self.path("token")]
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
                                         "seconds": self.options.seconds, "operations": [{"operation": "rmse", **operation}]}))
        run([self.load, "run", scenario, "--server", server.address, "--json", result, *client], 60 + 10 * self.options.seconds)
        with open(result, encoding="utf-8") as file:
            total = json.load(file)["total"]
        return {"us": total["latency_us"]["p50"], "calls/s": total["calls_per_second"],
                "GB/s": total["bytes_per_second"] / 1e9}[row.rsplit(" ", 1)[1]]

    def round(self):
        for way in WAYS:
            server_flags, client_flags = self.flags(way)
            try:
                with Server(self.server, ["--device", self.options.device, *server_flags]) as server:
                    self.device = server.device
                    for row in self.scenarios:
                        value = self.call(server, row, client_flags)
                        self.rows.setdefault(row, {}).setdefault(way, []).append(value)
            except Failure as failure:
                self.failures.append(f"{way}: {failure}")


def measure(options):
    with scratch_folder() as folder:
        price = Price(options, folder)
        for _ in range(options.rounds):
            price.round()
    if not price.rows:
        raise Failure(price.failures[0])
    return {"version": 1, "device": price.device, "rounds": options.rounds, "failed": price.failures,
            "rows": {row: {way: spread(values) for way, values in ways.items()} for row, ways in price.rows.items()}}


def cell(row, ways, way):
    if way not in ways:
        return "–"
    value = ways[way]["median"]
    if way == WAYS[0] or WAYS[0] not in ways:
        return figures(value)
    base = ways[WAYS[0]]["median"]
    return f"{figures(value)} ({value - base:+.0f})" if row.endswith(LESS) else f"{figures(value)} ({100 * value / base:.0f}%)"


def render(report, markdown):
    rows = [[row, *(cell(row, ways, way) for way in WAYS)] for row, ways in report["rows"].items()]
    return "\n".join([table(["", *WAYS], rows, markdown), *(f"failed: {failure}" for failure in report["failed"])])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", metavar="FOLDER")
    parser.add_argument("--seconds", type=float, default=3, help="of each measurement (default: 3)")
    parser.add_argument("--mib", type=numbers, default=[64, 256], help="of each array, small and large (default: 64,256)")
    add_common_options(parser, rounds=3)
    options = parser.parse_args()
    if len(options.mib) != 2 or options.rounds < 1 or options.seconds <= 0:
        parser.error("--mib takes two sizes, --rounds and --seconds positive numbers")
    return 0 if report_of(options, measure, render) else 1


if __name__ == "__main__":
    sys.exit(main())
