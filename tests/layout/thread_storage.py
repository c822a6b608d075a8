"""Checks how much of every thread's stack thread-local storage takes. Usage: thread_storage.py PROGRAM

What a program's thread_local variables take stands at the end of each thread's stack, also of those that a library makes
with little: the metrics server's have 100 KiB, and those who answer with an error need 50 of them.
"""
import struct
import sys

MOST = 16 << 10
PT_TLS = 7


def thread_local_bytes(program):
    """What the segment of a 64-bit little-endian ELF file takes in memory."""
    with open(program, "rb") as file:
        head = file.read(64)
        if head[:6] != b"\x7fELF\x02\x01":
            raise ValueError(f"{program} is no 64-bit little-endian ELF file")
        table, = struct.unpack_from("<Q", head, 32)
        entry_bytes, entries = struct.unpack_from("<HH", head, 54)
        file.seek(table)
        headers = file.read(entry_bytes * entries)
    for at in range(0, len(headers), entry_bytes):
        kind, = struct.unpack_from("<I", headers, at)
        if kind == PT_TLS:
            return struct.unpack_from("<Q", headers, at + 40)[0]
    return 0


def main():
    taken = thread_local_bytes(sys.argv[1])
    if taken > MOST:
        print(f"{sys.argv[1]}: thread-local variables take {taken} bytes of each thread's stack, more than {MOST}: "
              "keep what is large on the heap (server/base/per_thread.h)")
    return int(taken > MOST)


if __name__ == "__main__":
    sys.exit(main())
