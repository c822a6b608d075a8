"""Clients without credentials that hold what they do not use, on a whole server: whether others are served beside.

    holders_test.py TILEWIRED TILEWIRE [--device cuda] [--haproxy] [--report] [--scale N]

The attackers come from an address of their own and hold as many places as there are. Every honest call must be answered, and every
attacker ended by the limit that is meant for it. --scale repeats the attacks; --report prints figures; --haproxy puts HAProxy
before the server, as deploy/ ships it.
"""
import os
import statistics
import struct
import tempfile
import threading
import time
import unittest

import http2
from attacked import OPTIONS, main, row, serving

PLACES = 32      # that jobs have at once: there is memory for more of these
CHUNK = 4096
OPERAND = 16384  # f32
F32 = 12
# As short as it may be without ending honest calls of a slow machine.
SECONDS = "1"


def varint(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def field(number, value):
    """Of a protobuf message: a varint, or what has a length."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def message(number, body):
    """An ExecuteRequest with that field, as gRPC frames it."""
    request = field(number, body)
    return b"\0" + struct.pack(">I", len(request)) + request


def rmse():
    spec = field(1, F32) + field(2, varint(OPERAND))
    return message(1, field(1, b"") + field(8, spec) + field(8, spec))


def chunk(operand, offset):
    return message(2, field(1, operand) + field(2, offset) + field(15, bytes(CHUNK)))


def npy(path):
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({OPERAND // 16},), }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + bytes(OPERAND // 4))


class Attacker(http2.Connection):
    """Streams of Execute, by their numbers on this connection."""

    def __init__(self, address):
        super().__init__(address, "127.0.0.2")
        self.streams = 0

    def begin(self, first=b""):
        """A stream that stays open, with its first message."""
        number = 2 * self.streams + 1
        self.streams += 1
        self.send(http2.frame(http2.HEADERS, http2.END_HEADERS, number,
                              http2.request(b"/tilewire.v1.Kernels/Execute")))
        if first:
            self.bring(number, first)
        return number

    def bring(self, number, data):
        self.send(http2.frame(http2.DATA, 0, number, data))


class Holders(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = os.path.join(folder.name, "a.npy")
        npy(self.file)

    def honest(self, server):
        return server.call("rmse", self.file, self.file)

    def attack(self, name, streams, limit, hold, *flags, reasons=("IDLE",)):
        """`hold(server, ended)` holds something by so many streams and returns once ended() of them are, each for one of `reasons`."""
        def refused(server, reason):
            return server.metric(f'tilewire_refusals_total{{reason="{reason}"')

        def ended(server):
            return sum(refused(server, reason) for reason in reasons)
        # Without shares of places, which would keep the attackers from holding them all.
        with serving("--max-in-flight", str(PLACES), "--shared-in-flight", "0", "--block-bytes", str(CHUNK), *flags) as server:
            usual = [self.honest(server) for _ in range(5)]
            self.assertNotIn(None, usual, server.log)
            calls, over = [], threading.Event()

            def beside():
                while not over.is_set():
                    calls.append(self.honest(server))
            caller = threading.Thread(target=beside)
            begin, rounds = time.monotonic(), 2 * OPTIONS.scale
            caller.start()
            try:
                for i in range(rounds):
                    hold(server, lambda before=i * streams: ended(server) - before)
            finally:
                over.set()
                caller.join()
            took = time.monotonic() - begin
            back = server.back()
            self.assertIsNotNone(back, "who comes afterwards")
            row(name, server, calls, back)
            self.assertTrue(calls)
            self.assertNotIn(None, calls, "an honest call was not answered")
            self.assertEqual(ended(server), rounds * streams)
            for reason in reasons:
                self.assertGreater(refused(server, reason), 0, reason)
            self.assertEqual(server.end(), 0, server.log)
            server.reader.join()
            named = sum(limit in line for line in server.idle)
            self.assertGreater(named, 0, server.idle[:3])  # of a flood that is alike a few lines tell
            if OPTIONS.report:
                print(f"{name}: {rounds} times {streams} streams in {took:.1f} s, all ended; "
                      f"{len(calls)} honest calls, none failed, median {statistics.median(calls):.2f} s, slowest {max(calls):.2f} "
                      f"(at rest {statistics.median(usual):.2f}, {max(usual):.2f})")

    def ended(self, server, count, streams, more=lambda: None):
        """Goes on with `more` until so many are."""
        until = time.monotonic() + 120
        while count() < streams:
            self.assertLess(time.monotonic(), until, (count(), server.log))
            more()
            threading.Event().wait(0.2)

    def test_jobs_to_which_nothing_is_sent(self):
        def hold(server, count):
            attacker = Attacker(server.address)
            self.addCleanup(attacker.close)
            for _ in range(2 * PLACES):
                attacker.begin(rmse())
            self.ended(server, count, 2 * PLACES)
        # The limit for a block and the one for a rate come to the same here.
        self.attack("D4 silence", 2 * PLACES, "--idle-seconds", hold, "--idle-seconds", SECONDS)

    def test_jobs_that_are_fed_slowly(self):
        def hold(server, count):
            attackers = [Attacker(server.address) for _ in range(8)]  # what each sends at once fits its first window
            streams = [(attacker, attacker.begin(rmse())) for attacker in attackers for _ in range(PLACES // 8)]
            for attacker in attackers:
                self.addCleanup(attacker.close)
            chunks = iter([chunk(operand, offset) for operand in (0, 1) for offset in range(0, 4 * OPERAND, CHUNK)])

            def more():
                data = next(chunks, None)
                for attacker, number in streams if data else []:
                    attacker.bring(number, data)
            self.ended(server, count, PLACES, more)
        self.attack("D4 slowly", PLACES, "--least-rate", hold, "--idle-seconds", SECONDS, "--least-rate", "256KiB")

    def test_headers_alone(self):
        def hold(server, count):
            # HAProxy lets a connection have a hundred streams.
            connections = 12 if OPTIONS.haproxy else 5
            for _ in range(connections):
                attacker = Attacker(server.address)
                self.addCleanup(attacker.close)
                for _ in range(1080 // connections):
                    attacker.begin()
            self.ended(server, count, 1080)
        # BUSY: a caller alone has no more than 13/16 of these places.
        self.attack("D4 headers", 1080, "no first message", hold, "--idle-seconds", SECONDS, reasons=("IDLE", "BUSY"))


if __name__ == "__main__":
    main("holders_test.py")
