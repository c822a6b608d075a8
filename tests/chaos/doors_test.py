"""Clients without credentials against a whole server: what they cost it, and what others notice.

    doors_test.py TILEWIRED TILEWIRE [--device cuda] [--haproxy] [--report] [--scale N] [--seconds N] [--processes N]

Each attack runs against a fresh server that is allowed so much memory beyond what it has when idle. The server must
live, stay within that and a margin, answer a small call during the attack and after it, and drain. --scale
multiplies the attacks; --seconds bounds rapid resets by time, however many that are; --report prints figures; --haproxy puts HAProxy
before the server, as deploy/ ships it; --processes has bursts from so many, on cores of their own where there are eight.
"""
import contextlib
import multiprocessing
import resource
import threading
import time
import unittest

import http2
import proxied
from attacked import OPTIONS, honest_calls, main, on_cores_of, peak, row, serving

MIB = 1 << 20
ALLOWED = 192 * MIB  # beyond the idle server
MARGIN = 256 * MIB   # what comes between two looks, and what malloc keeps
FILES = 1024         # that a server may open which is flooded with connections
PROXY = 256 * MIB    # that HAProxy may have
ATTACKER = "127.0.0.2"  # an address of their own: others call from 127.0.0.1
BLOCK = http2.request(b"/tilewire.v1.Kernels/Rmse")


def flood(address, connections, sources=(ATTACKER,)):
    """D1: more connections than the server may open files, from addresses of their own. Yields them, then how many."""
    for i in range(connections):
        with contextlib.suppress(ConnectionResetError):  # as HAProxy refuses
            yield http2.Connection(address, sources[i % len(sources)])
    yield connections


def expanding_headers(address, connections, streams, references):
    """D2: a header of 3,500 bytes, sent once and referred to so often, on every stream: just less than the 16 MiB
    that gRPC 1.51 takes of a client which has acknowledged no SETTINGS. Yields the connections, then the bytes sent."""
    sent = 0
    for _ in range(connections):
        connection = http2.Connection(address, ATTACKER)
        first = http2.request(b"/tilewire.v1.Kernels/Execute", http2.remembered(b"x", b"y" * 3500))
        block = http2.request(b"/tilewire.v1.Kernels/Execute", http2.REFERENCE * references)
        connection.send(http2.frame(http2.HEADERS, http2.END_HEADERS, 1, first))
        for i in range(1, streams):
            if not connection.send(http2.frame(http2.HEADERS, http2.END_HEADERS, 2 * i + 1, block)):
                break
        sent += connection.sent
        yield connection
    yield sent


def resets(block, first):
    """A hundred streams, from that number on, opened and reset."""
    reset = http2.CANCEL.to_bytes(4, "big")
    return b"".join(http2.frame(http2.HEADERS, http2.END_HEADERS, i, block) + http2.frame(http2.RST_STREAM, 0, i, reset)
                    for i in range(first, first + 200, 2))


def rapid_resets(address, path, connections, streams):
    """D3: streams that are opened and reset at once, a hundred a write. Yields the connections, then how many streams."""
    block = http2.request(path)
    if OPTIONS.seconds:
        yield without_end(address, lambda: endless_resets(block, 1), connections, OPTIONS.seconds)
        return
    sent = 0
    for _ in range(connections):
        connection = http2.Connection(address, ATTACKER)
        for begin in range(0, streams, 100):
            if not connection.send(resets(block, 2 * begin + 1)):
                break
            sent += 100
        yield connection
    yield sent


def endless_resets(block, first):
    while True:
        yield resets(block, first)
        first += 200


def endless_header(block):
    """A literal of a gigabyte that comes in frames of 500 bytes (RFC 7541, 5.1 and 6.2.2)."""
    yield http2.frame(http2.HEADERS, 0, 3, block + b"\0\3abc\x7f\x81\xff\xff\xff\3")
    while True:
        yield http2.frame(http2.CONTINUATION, 0, 3, bytes(500)) * 10


def endless_priorities(call):
    """Frames that gRPC skips, and a call that is answered with every 64 KiB of them."""
    stream = 3
    while True:
        yield http2.frame(http2.PRIORITY, 0, 1, b"\0\0\0\0\x10") * 4681 + http2.frame(
            http2.HEADERS, http2.END_HEADERS | http2.END_STREAM, stream, call)
        stream += 2


def endless_streams():
    """Each brings three thousand empty messages, and is refused."""
    call, stream = http2.request(b"/tilewire.v1.Kernels/Execute"), 3
    while True:
        yield (http2.frame(http2.HEADERS, http2.END_HEADERS, stream, call) +
               http2.frame(http2.DATA, http2.END_STREAM, stream, bytes(15_000)))
        stream += 2


def endless_windows():
    while True:
        yield http2.frame(http2.WINDOW_UPDATE, 0, 0, b"\0\0\0\1") * 1000


def burst(name):
    """1.5 MB that any connection may send: pings, frames without data or settings beside calls, or streams that are reset."""
    call, streams = http2.request(b"/tilewire.v1.Kernels/Rmse"), 1
    piece = {"pings": http2.frame(http2.PING, 0, 0, b"chaos..."), "settings": http2.frame(http2.SETTINGS, 0, 0, b"\0\4\0\1\0\0"),
             "data": http2.frame(http2.DATA, 0, 1), "resets": b""}[name]
    if name == "settings":
        streams = 250
    opened = b"".join(http2.frame(http2.HEADERS, http2.END_HEADERS, 2 * i + 1, call) for i in range(streams))
    if name == "resets":
        return opened + b"".join(resets(call, 3 + 200 * i) for i in range(24))
    return opened + piece * (1_500_000 // len(piece))


def again_and_again(address, connections, seconds, attack):
    """`attack(connection, until)` on one connection after the other, by so many threads for so long. Returns what it did."""
    until, done = time.monotonic() + seconds, []

    def run():
        while time.monotonic() < until:
            with contextlib.suppress(OSError):
                connection = http2.Connection(address, ATTACKER)
                attack(connection, until)
                done.append(connection.sent)
                connection.close()
    attackers = [threading.Thread(target=run) for _ in range(connections)]
    for attacker in attackers:
        attacker.start()
    for attacker in attackers:
        attacker.join()
    return done


def one_after_the_other(address, name, connections, seconds):
    """Bursts on connections that are closed at once. Returns how many that were."""
    if OPTIONS.processes:
        on_cores_of("attackers")
        with multiprocessing.get_context("spawn").Pool(OPTIONS.processes) as pool:
            on_cores_of("callers")
            return sum(pool.starmap(one_after_the_other, [(address, name, 1, seconds)] * OPTIONS.processes))
    all_of_it = burst(name)
    return len(again_and_again(address, connections, seconds, lambda connection, _: connection.send(all_of_it)))


def without_end(address, pieces, connections, seconds, call=None):
    """`pieces()` at once on so many connections for so long; each that is closed has a successor. With the header block of
    a call they come beside it, while it is open. Returns how many bytes that were."""
    def attack(connection, until):
        connection.socket.settimeout(2)
        if call:
            connection.send(http2.frame(http2.HEADERS, http2.END_HEADERS, 1, call))
            connection.settle()  # threads wait for more of it
        for piece in pieces():
            if time.monotonic() >= until or not connection.send(piece):
                break
    return sum(again_and_again(address, connections, seconds, attack))


class Doors(unittest.TestCase):
    def through(self, files):
        """What a server is told that has all its connections from a proxy."""
        return ["--max-connections-per-peer", str(files // 2 if files else 10_000)] if OPTIONS.haproxy else []

    def attack(self, name, make, files=None):
        """`make(address)` yields connections, which stay open, and at last what it has sent."""
        with serving() as idle:
            usual = max(idle.ping() for _ in range(5))
            before = idle.peak()
        with serving("--memory-bytes", str(before + ALLOWED), *self.through(files), files=files) as server:
            self.assertIsNotNone(server.ping())
            begin, kept = time.monotonic(), []
            with honest_calls(server) as pings:
                for made in make(server.address):
                    kept.append(made)
                    if isinstance(made, http2.Connection):
                        self.addCleanup(made.close)
            took, sent = time.monotonic() - begin, kept.pop()
            self.assertIsNone(server.process.poll(), server.log)
            self.assertTrue(server.served(), "who comes while the attackers are still there")
            ended = server.metric("tilewire_connections_ended_total")
            refused = server.metric("tilewire_connections_refused_total")
            for connection in kept:
                connection.close()
            back = server.back()
            self.assertIsNotNone(back, "who comes afterwards")
            most = server.peak()
            failed = pings.count(None)
            row(name, server, pings, back)
            if OPTIONS.report:
                print(f"{name}: sent {sent} in {took:.1f} s; memory {before / MIB:.0f} idle, {most / MIB:.0f} MiB at most; "
                      f"{refused:.0f} of {len(kept)} connections refused, {ended:.0f} ended; {len(pings)} honest calls, "
                      f"{failed} failed, slowest {max([p for p in pings if p is not None], default=0):.2f} s (at rest {usual:.2f})")
            self.assertLess(most, before + ALLOWED + MARGIN)
            if server.proxy:
                self.assertIsNone(server.proxy.process.poll(), server.proxy.log)
                self.assertLess(peak(server.proxy.process), PROXY)
            if len(pings) >= 5:  # an attack may be over before a second call
                self.assertLess(failed, len(pings), "not one honest call in all the time")
            self.assertEqual(server.end(), 0, server.log)

    def more_connections(self, name, sources):
        own = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        most = proxied.MAXCONN if OPTIONS.haproxy else FILES
        if 0 <= own < 2 * most:
            self.skipTest("too few open files for an attacker")
        resource.setrlimit(resource.RLIMIT_NOFILE, (own, own))
        self.attack(name, lambda address: flood(address, most * 4 // 3, sources), files=FILES)

    def test_more_connections_than_open_files(self):
        self.more_connections("D1", (ATTACKER,))

    def test_connections_from_several_addresses(self):
        if not OPTIONS.haproxy:
            self.skipTest("the server's own shares are by address (--max-connections-per-peer)")
        self.more_connections("D1, four addresses", [f"127.0.0.{i}" for i in range(2, 6)])

    def test_headers_that_expand(self):
        self.attack("D2", lambda address: expanding_headers(address, 20, 220 * OPTIONS.scale, 4_000))

    def test_rapid_resets(self):
        self.attack("D3", lambda address: rapid_resets(address, b"/tilewire.v1.Kernels/Rmse", 10, 4_000 * OPTIONS.scale))

    def beside_a_call(self, name, pieces, connections):
        seconds = OPTIONS.seconds or 3
        self.attack(name, lambda address: iter([without_end(address, pieces, connections, seconds, BLOCK)]))

    def test_header_without_an_end(self):
        self.beside_a_call("a header without an end", lambda: endless_header(BLOCK), 1)

    def test_headers_without_an_end(self):
        self.beside_a_call("eight of them", lambda: endless_header(BLOCK), 8)

    def test_rapid_resets_beside_a_call(self):
        self.beside_a_call("rapid resets beside a call", lambda: endless_resets(BLOCK, 3), 3)

    def test_frames_between_calls(self):
        self.beside_a_call("frames between calls", lambda: endless_priorities(BLOCK), 1)

    def test_streams_that_are_refused(self):
        self.beside_a_call("streams that are refused", endless_streams, 2)

    def test_windows_without_an_end(self):
        self.beside_a_call("windows without an end", endless_windows, 1)

    def bursts(self, name):
        seconds = OPTIONS.seconds or 3
        self.attack(f"bursts of {name}", lambda address: iter([one_after_the_other(address, name, 2, seconds)]))

    def test_bursts_of_pings(self):
        self.bursts("pings")

    def test_bursts_of_settings(self):
        self.bursts("settings")

    def test_bursts_of_data(self):
        self.bursts("data")

    def test_bursts_of_resets(self):
        self.bursts("resets")

    def test_rapid_resets_of_an_unknown_method(self):
        self.attack("D3 unknown", lambda address: rapid_resets(address, b"/no.Such/Method", 10, 1_000 * OPTIONS.scale))


if __name__ == "__main__":
    main("doors_test.py")
