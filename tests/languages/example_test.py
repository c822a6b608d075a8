#!/usr/bin/python3
"""Builds a language's example and holds what it prints against numpy.

    example_test.py [--require] LANGUAGE TILEWIRED        (LANGUAGE: go, java)

The server has one place and no queue, and a stream of ours keeps that place until the example has been told that the server
is BUSY. A liar between the two shows that the example notices wrong answers. Exit code 77 where the language's packages
are missing; with --require that is a failure.
"""
import argparse
import concurrent.futures
import math
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/integration"), str(ROOT / "client/python/pure")]
import grpc  # noqa: E402
import numpy as np  # noqa: E402
import tilewire_pure as pure  # noqa: E402
from numpy_check import Server, gaussian_reference  # noqa: E402

NEEDED = {"go": ("go", "protoc-gen-go", "protoc-gen-go-grpc", "/usr/share/gocode/src/google.golang.org/grpc"),
          "java": ("javac", "grpc_java_plugin", "/usr/share/java/grpc-netty.jar", "/usr/share/java/netty-codec-http2.jar",
                   "/usr/share/java/perfmark-api.jar", "/usr/share/java/protobuf.jar")}
LINES = re.compile(r"""server \S+ on cpu: messages to 4259840 bytes, unary ones to 4194304
(?P<busy>(?:busy: the queue is full.*; again in 250 ms
)*)rmse (?P<rmse>\S+), computed here (?P<own_rmse>\S+)
refused: code 3, reason BAD_VALUE, field stddev, value -1, allowed any finite number greater than 0
gaussian pdf of 1000003 values in 16 chunks, sum (?P<sum>\S+), relative difference at most (?P<worst>\S+)
""")
MEAN, STDDEV, COUNT = 0.5, 2.0, 1000003
BLOCK_BYTES = "256KiB"  # of which the example's array has 16
PATIENCE = 300  # seconds; nothing waits that long unless something hangs


def missing(language):
    return [name for name in NEEDED[language] if not (os.path.exists(name) if name.startswith("/") else shutil.which(name))]


def right_rmse():
    i = np.arange(20000)
    d = (i % 1009).astype("f8") / 8 - (i % 997).astype("f8") / 16
    return math.sqrt(np.mean(d * d))


def right_sum():
    x = (np.arange(COUNT) / 2**17 - 4).astype("f4")
    return float(np.sum(gaussian_reference(x, MEAN, STDDEV)))


def complaint(printed, busy):
    """What is wrong with what an example printed; empty where nothing is."""
    found = LINES.fullmatch(printed)
    if not found:
        return "these are not the lines"
    if bool(found["busy"]) != busy:
        return "busy"
    for name, right, tolerance in ("rmse", right_rmse(), 1e-14), ("own_rmse", right_rmse(), 1e-14), ("sum", right_sum(), 1e-8):
        if not math.isclose(float(found[name]), right, rel_tol=tolerance):
            return f"{name} is not {right}"
    return "" if 0 < float(found["worst"]) < 1.2e-7 else "the gaussian pdf differs"


class Holder:
    """A job that has the server's only place until it is let go."""
    def __init__(self, address):
        self.channel = grpc.insecure_channel(address)
        spec = pure.spec(np.zeros(1 << 20, "f4"), "x")
        opening = pure.field(1, pure.field(3, pure.field(1, MEAN) + pure.field(2, STDDEV)) + pure.field(8, spec))
        self.gone = concurrent.futures.Future()

        def messages():
            yield opening
            self.gone.result()

        self.call = self.channel.stream_stream("/tilewire.v1.Kernels/Execute")(messages(), timeout=PATIENCE)
        next(self.call)  # Opened

    def let_go(self):
        self.call.cancel()
        if not self.gone.done():
            self.gone.set_result(None)

    def close(self):
        self.let_go()
        self.channel.close()


class Liar(grpc.GenericRpcHandler):
    """Passes calls on to a server, and one kind of answer back changed."""
    def __init__(self, address, method, lie):
        self.channel, self.method, self.lie = grpc.insecure_channel(address), method, lie
        self.server = grpc.server(concurrent.futures.ThreadPoolExecutor(4), handlers=[self])
        self.address = f"localhost:{self.server.add_insecure_port('localhost:0')}"
        self.server.start()

    def service(self, details):
        lie = self.lie if details.method.endswith(self.method) else bytes

        def unary(request, context):
            try:
                return lie(self.channel.unary_unary(details.method)(request, timeout=PATIENCE))
            except grpc.RpcError as error:
                context.set_trailing_metadata(error.trailing_metadata())
                return context.abort(error.code(), error.details())

        def stream(requests, _):
            yield from map(lie, self.channel.stream_stream(details.method)(requests, timeout=PATIENCE))

        if details.method.endswith("/Execute"):
            return grpc.stream_stream_rpc_method_handler(stream)
        return grpc.unary_unary_rpc_method_handler(unary)

    def close(self):
        self.server.stop(None).wait()
        self.channel.close()


def wrong_rmse(reply):
    right = struct.pack("<d", right_rmse())
    if right not in reply:
        raise AssertionError("no RMSE to lie about")
    return reply.replace(right, struct.pack("<d", right_rmse() * (1 + 1e-11)))


def wrong_chunk(reply):
    """Output ends in the bytes of an f32: another exponent in the last one."""
    return reply[:-1] + bytes([reply[-1] ^ 1]) if reply[0] == 0x12 else reply


class Example(unittest.TestCase):
    language = tilewired = ""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="tilewire-example-")
        cls.addClassCleanup(folder.cleanup)
        subprocess.run([ROOT / "client" / cls.language / "build.sh", folder.name], check=True, timeout=600)
        cls.program = os.path.join(folder.name, "example")

    def setUp(self):
        flags = ["--block-bytes", BLOCK_BYTES, "--max-in-flight", "1", "--queue-length", "0"]
        server = Server(self.tilewired, "cpu", flags)
        self.addCleanup(server.process.stdout.close)
        self.addCleanup(server.close)
        self.address = server.address

    def start(self, address):
        process = subprocess.Popen([self.program, address], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)  # of no effect where it has ended
        return process

    def test_right_answers_once_the_server_is_no_longer_busy(self):
        holder = Holder(self.address)
        self.addCleanup(holder.close)
        process = self.start(self.address)
        first = process.stdout.readline() + process.stdout.readline()  # the server, busy
        holder.let_go()
        rest, errors = process.communicate(timeout=PATIENCE)
        printed = first + rest
        print(printed, end="")
        self.assertEqual((process.returncode, errors), (0, ""))
        self.assertEqual(complaint(printed, busy=True), "")

        # What is printed is looked at, whatever the exit code.
        for said, instead in (("rmse 4", "rmse 5"), ("here 4", "here 5"), ("BAD_VALUE", "LIMIT"), ("field stddev", "field mean"),
                              ("in 16 chunks", "in 4 chunks"), ("sum 12", "sum 13"), ("e-08", "e-07"), ("busy: ", "")):
            self.assertIn(said, printed)
            self.assertNotEqual(complaint(printed.replace(said, instead), busy=True), "", said)

    def expect_noticed(self, method, lie, word):
        liar = Liar(self.address, method, lie)
        self.addCleanup(liar.close)
        printed, errors = self.start(liar.address).communicate(timeout=PATIENCE)
        self.assertIn(f"wrong: {word}\n", errors, printed)
        self.assertNotEqual(complaint(printed, busy=False), "")

    def test_a_wrong_rmse_is_noticed(self):
        self.expect_noticed("/Rmse", wrong_rmse, "rmse")

    def test_a_wrong_value_in_a_stream_is_noticed(self):
        self.expect_noticed("/Execute", wrong_chunk, "gaussian pdf")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--require", action="store_true")
    parser.add_argument("language", choices=sorted(NEEDED))
    parser.add_argument("tilewired")
    options = parser.parse_args()
    lacking = missing(options.language)
    if lacking:
        print(f"{options.language} example: {', '.join(lacking)} not found (deploy/install-deps.sh --languages)")
        raise SystemExit(1 if options.require else 77)
    Example.language, Example.tilewired = options.language, options.tilewired
    unittest.main(argv=sys.argv[:1], verbosity=2)


if __name__ == "__main__":
    main()
