"""Writes the seeds of the connection fuzzer: what a client may rightly say, method by method, and how it may go wrong.

    seeds.py FOLDER

Records are those of records.h, messages those of proto/tilewire/v1. 33 equal letters are an id that the server told on this
connection, A being the first; 33 times Z is the name of shared memory. What CERTAIN has tells how its calls end, and the
fuzzer checks that: so it is known to reach the handlers.
"""
import os
import shutil
import struct
import sys

CALL, MESSAGE, CHUNK, METADATA, FRAME, RAW, SETTLE, END = range(8)
LAST, NONE, COMPRESSED, LONGER, CUT, PADDED = 1, 2, 4, 8, 16, 32
STAGED, UNIX, NO_GREETING, RESET, HALF_CLOSE, SEALED = 1, 2, 4, 8, 16, 32
(RMSE, TRANSPOSE, GAUSSIAN, COMPUTE, EXECUTE, PUT, GET, STAT, LIST, DELETE, REGISTER, UNREGISTER, REGIONS, DESCRIBE, KERNELS,
 HEALTH, WATCH, REFLECTION, UNKNOWN, ROOT, CEILINGS) = range(21)
TIMEOUT, REQUEST_ID, TRACEPARENT, ENCODING, CONTENT_TYPE, AUTHORIZATION, USER, BINARY, TE, PATH, PROBE, ACCEPT = range(12)
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
I32, F32, F64 = 6, 12, 13
FIRST, SECOND, THIRD, FOURTH, SHARED = (letter * 33 for letter in (b"A", b"B", b"C", b"D", b"Z"))
NOBODYS = b"0123456789abcdef-0123456789abcdef"


def varint(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def field(number, value):
    """Of a message: a varint, a double, or what has a length."""
    if isinstance(value, float):
        return varint(number << 3 | 1) + struct.pack("<d", value)
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def record(kind, a=0, b=0, payload=b""):
    return bytes([kind, a, b]) + struct.pack("<H", len(payload)) + payload


def call(method, payload=b"", flags=LAST):
    return record(CALL, method, flags, payload)


def frame(kind, flags, stream, payload=b""):
    return record(FRAME, kind, flags, bytes([stream]) + payload)


def chunk(operand, offset, size, flags=0, checksum=0, which=0):
    return record(CHUNK, which, flags, struct.pack("<BHHB", operand, offset // 256, size // 8, checksum))


def metadata(name, value):
    return record(METADATA, name, 0, value)


def spec(dtype, *shape):
    return field(1, dtype) + field(2, b"".join(varint(extent) for extent in shape))


def operand(dtype, *shape, size=4):
    count = size
    for extent in shape:
        count *= extent
    return field(1, spec(dtype, *shape)) + field(15, bytes(i * 5 % 63 for i in range(count)))


def opening(operation, *operands, options=b"", references=b""):
    """ExecuteRequest.open."""
    body = operation + b"".join(field(8, each) for each in operands)
    return field(1, body + (field(9, options) if options else b"") + references)


def place(region, offset=0):
    return field(1, region) + (field(2, offset) if offset else b"")


def refer(which, array=b"", region=b""):
    """Open.references: operand `which` is an array, or lies in a region."""
    parts = (field(1, which) if which else b"") + (field(2, array) if array else b"") + (field(3, region) if region else b"")
    return field(10, parts)


def execute(operation, *operands, options=b"", references=b"", flags=LAST):
    return call(EXECUTE, opening(operation, *operands, options=options, references=references), flags)


def joined(job, operand):
    """Two streams carry 16 KiB of an operand, each half; the further one half-closes first."""
    return (call(EXECUTE, field(3, field(1, job)), 0) + settle + chunk(operand, 0, 8192) + chunk(operand, 8192, 8192, 0, 0, 1) +
            half_close + half_close)


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


def sealed(flags, failures, body):
    data = bytes([flags | SEALED]) + body + bytes([failures])
    return data + struct.pack("<I", crc32c(data))


rmse, transpose, gaussian, put, compare = (field(n, b) for n, b in (
    (1, b""), (2, b""), (3, field(1, 0.5) + field(2, 2.0)), (4, b""), (4, b"")))
settle, all_ended = record(SETTLE), record(SETTLE, 1)
half_close, cancel = record(END), record(END, 0, 1)
two = operand(F32, 3, 4)
kept, two_streams = field(7, field(1, 60.0)), field(3, 2) + field(4, 4096)
vector, square = spec(F32, 4096), spec(F32, 64, 64)
stored = call(PUT, opening(put, spec(F32, 32, 32), options=field(7, field(1, 60.0))), 0) + settle + chunk(0, 0, 4096, LAST) + settle
# Arrays.Put tells the job's id first, then the array's.
registered = call(REGISTER, field(1, field(1, SHARED) + field(3, 65536)) + field(4, 1)) + settle

# How many of their calls fail, and what they say.
CERTAIN = {
    "rmse": (0, call(RMSE, field(14, two) + field(15, two))),
    "rmse_axes": (0, call(RMSE, field(1, field(1, varint(1))) + field(14, two) + field(15, two))),
    "transpose": (0, call(TRANSPOSE, field(15, two))),
    "gaussian": (0, call(GAUSSIAN, field(1, field(1, 0.5) + field(2, 2.0)) + field(15, two))),
    "compute": (0, b"".join(call(COMPUTE, field(1, which) + field(15, two) + more) for which, more in (
        (rmse, field(15, two)), (transpose, b""), (gaussian, b""), (compare, field(15, two))))),
    "execute": (0, call(EXECUTE, opening(rmse, spec(F32, 2048), spec(F32, 2048)), 0) + settle + chunk(0, 0, 8192) +
                   chunk(1, 0, 8192, LAST)),
    "execute_op": (0, call(EXECUTE, opening(field(5, compare), spec(F64, 8, 64), spec(F64, 8, 64)), 0) + chunk(0, 0, 4096, 0, 1) +
                      chunk(1, 0, 4096, LAST, 1)),
    "execute_blocks": (0, call(EXECUTE, opening(transpose, spec(F32, 64, 64), options=field(1, 1) + field(2, 4096) +
                        field(4, 4096)), 0) + settle +
                      b"".join(chunk(0, at, 4096) for at in (8192, 0, 12288, 4096)) + half_close),
    "execute_output": (0, call(EXECUTE, opening(gaussian, spec(F32, 160, 128), options=field(2, 4096)), 0) + settle +
                      b"".join(chunk(0, at, 16384) for at in range(0, 81920, 16384)) + half_close),
    "join": (0, call(EXECUTE, opening(transpose, spec(F32, 64, 64), options=field(3, 2) + field(4, 4096)), 0) + settle +
            call(EXECUTE, field(3, field(1, FIRST)), 0) + settle + chunk(0, 0, 8192) + chunk(0, 8192, 8192, 0, 0, 1) + half_close +
            half_close),
    "arrays": (0, stored + call(STAT, field(1, SECOND)) + call(LIST, field(1, 1)) + call(GET, field(1, SECOND)) + all_ended +
                  call(DELETE, field(1, SECOND))),
    "regions": (0, registered + call(REGIONS) + call(RMSE, field(14, field(1, spec(F32, 64)) + field(3, place(FIRST))) +
                   field(15, field(1, spec(F32, 64)) + field(3, place(FIRST, 256)))) +
               all_ended + call(UNREGISTER, field(1, FIRST))),
    "regions_result": (0, registered + execute(transpose, square, options=field(8, place(FIRST)),
                                               references=refer(0, b"", place(FIRST, 32768)))),
    "array_alone": (0, stored + execute(transpose, b"", references=refer(0, SECOND))),
    "array_twice": (0, stored + execute(field(5, compare), b"", b"", references=refer(0, SECOND) + refer(1, SECOND))),
    "array_to_array": (0, stored + execute(transpose, b"", options=kept, references=refer(0, SECOND)) + all_ended +
                       call(STAT, field(1, FOURTH)) + call(GET, field(1, FOURTH)) + all_ended + call(DELETE, field(1, FOURTH))),
    "array_and_sent": (0, stored + execute(rmse, b"", spec(F32, 32, 32), references=refer(0, SECOND), flags=0) + settle +
                        chunk(1, 0, 4096, LAST)),
    "array_and_region": (0, stored + registered + execute(rmse, b"", spec(F32, 32, 32), references=refer(0, SECOND) +
                        refer(1, b"", place(THIRD, 4096)))),
    "array_deleted": (0, stored + execute(rmse, b"", spec(F32, 32, 32), references=refer(0, SECOND), flags=0) + settle +
                      call(DELETE, field(1, SECOND)) + settle + chunk(1, 0, 4096, LAST)),
    "array_from_region": (0, registered +
                        call(PUT, opening(put, spec(F32, 32, 32), options=kept, references=refer(0, b"", place(FIRST)))) + all_ended +
                          call(GET, field(1, THIRD) + field(2, field(8, place(FIRST, 4096)))) + all_ended + call(DELETE, field(1, THIRD))),
    "array_cancelled": (1, stored + execute(rmse, b"", spec(F32, 32, 32), references=refer(0, SECOND), flags=0) + settle + cancel),
    "region_and_sent": (0, registered + execute(rmse, vector, vector, references=refer(0, b"", place(FIRST)), flags=0) + settle +
                        chunk(1, 0, 16384, LAST)),
    "region_results": (0, registered + execute(field(5, compare), vector, vector, options=field(8, place(FIRST, 32768)),
                                               references=refer(0, b"", place(FIRST)) + refer(1, b"", place(FIRST, 16384)))),
    "region_to_array": (0, registered + execute(gaussian, vector, options=kept, references=refer(0, b"", place(FIRST, 4)))),
    "region_result_sent": (0, registered + execute(transpose, square, options=field(8, place(FIRST, 256)), flags=0) + settle +
                        chunk(0, 0, 16384, LAST)),
    "region_forgotten": (0, registered + execute(rmse, vector, vector, references=refer(0, b"", place(FIRST)), flags=0) + settle +
                         call(UNREGISTER, field(1, FIRST)) + settle + chunk(1, 0, 16384, LAST)),
    "region_cancelled": (1, registered + execute(rmse, vector, vector, references=refer(0, b"", place(FIRST)), flags=0) + settle + cancel),
    "join_array": (0, call(PUT, opening(put, vector), 0) + settle + chunk(0, 0, 16384, LAST) + settle +
                   execute(rmse, b"", vector, options=two_streams, references=refer(0, SECOND), flags=0) + settle + joined(THIRD, 1)),
    "join_region": (0, registered + execute(rmse, vector, vector, options=two_streams, references=refer(0, b"", place(FIRST)), flags=0) +
                    settle + joined(SECOND, 1)),
    "join_put": (0, call(PUT, opening(put, vector, options=two_streams), 0) + settle + joined(FIRST, 0)),
    "join_to_array": (0, execute(transpose, square, options=two_streams + kept, flags=0) + settle + joined(FIRST, 0)),
    "join_to_region": (0, registered + execute(transpose, square, options=two_streams + field(8, place(FIRST)), flags=0) + settle +
                        joined(SECOND, 0)),
    "join_refused": (2, execute(transpose, square, flags=0) + settle + call(EXECUTE, field(3, field(1, FIRST)), 0) + settle +
                     call(EXECUTE, field(3, field(1, NOBODYS)), 0) + settle + chunk(0, 0, 16384, LAST)),
    "references_refused": (11, stored + registered + b"".join(each + all_ended for each in (
        execute(transpose, b"", references=refer(0, NOBODYS)),
        execute(transpose, vector, references=refer(0, b"", place(NOBODYS))),
        execute(transpose, b"", references=refer(7, SECOND)),
        execute(transpose, b"", references=refer(0, SECOND) * 2),
        execute(transpose, b"", references=refer(0, SECOND, place(THIRD))),
        execute(transpose, b"", references=refer(0)),
        execute(transpose, spec(F64, 2), references=refer(0, SECOND)),
        execute(transpose, vector, references=refer(0, b"", place(THIRD, 65532))),
        execute(transpose, b"", options=kept + field(8, place(THIRD)), references=refer(0, SECOND)),
        execute(transpose, b"", options=field(8, place(NOBODYS)), references=refer(0, SECOND)),
        call(PUT, opening(put, vector, references=refer(0, SECOND)))))),
    "regions_gone": (4, registered + call(UNREGISTER, field(1, FIRST)) + all_ended + call(UNREGISTER, field(1, FIRST)) + all_ended +
                     execute(transpose, vector, references=refer(0, b"", place(FIRST))) + call(REGISTER, b"") +
                     call(REGIONS, field(2, b"none"))),
    "region_read_only": (1, call(REGISTER, field(1, field(1, SHARED) + field(3, 65536))) + settle +
                         execute(gaussian, vector, options=field(8, place(FIRST)), references=refer(0, b"", place(FIRST)))),
}
SEEDS = {
    "execute_wrong_sum": call(EXECUTE, opening(transpose, spec(F32, 1024)), 0) + settle + chunk(0, 0, 4096, LAST, 2),
    "execute_early_end": call(EXECUTE, opening(transpose, spec(F32, 1024)), 0) + settle + chunk(0, 0, 2048, LAST),
    "execute_cancelled": call(EXECUTE, opening(transpose, spec(F32, 1024)), 0) + settle + chunk(0, 0, 2048) + cancel,
    "execute_run_rule": call(EXECUTE, opening(transpose, spec(F32, 4096), options=field(4, 4096)), 0) + settle + chunk(0, 512, 2048) +
                        settle,
    "execute_silent": call(EXECUTE, b"", NONE) * 4,
    "execute_held": call(EXECUTE, opening(rmse, spec(F32, 2048), spec(F32, 2048)), 0) * 12 + settle,
    "execute_windowed": call(EXECUTE, opening(gaussian, spec(F32, 16 << 20)), 0) + settle + chunk(0, 0, 16384) + settle +
                        chunk(0, 1 << 23, 16384),
    "join_get": call(PUT, opening(put, spec(F32, 160, 128)), 0) + settle +
                b"".join(chunk(0, at, 16384) for at in range(0, 81920, 16384)) + half_close + settle +
                call(GET, field(1, SECOND) + field(2, two_streams + field(2, 4096))) + settle +
                call(EXECUTE, field(3, field(1, THIRD)), 0) + settle + half_close,
    "join_lost": call(EXECUTE, opening(transpose, spec(F32, 64, 64), options=field(3, 2)), 0) + settle +
                 call(EXECUTE, field(3, field(1, FIRST)), 0) + settle + cancel + settle,
    "join_unknown": call(EXECUTE, field(3, field(1, NOBODYS)), 0),
    "arrays_used": stored + call(COMPUTE, field(1, transpose) + field(2, field(7, field(2, 1) + field(3, b"key"))) +
                   field(15, field(2, SECOND))) +
                   call(EXECUTE, opening(transpose, b"", references=field(10, field(2, SECOND)))),
    "arrays_kept": stored,
    "regions_refused": call(REGISTER, field(1, field(1, b"/other") + field(3, 1))) + call(REGISTER, field(2, field(1, bytes(64)) +
                       field(3, 256))) +
                       call(REGISTER, field(1, field(1, SHARED) + field(2, 65000) + field(3, 65536))),
    "device": call(DESCRIBE) + call(KERNELS) + call(KERNELS, rmse + field(8, spec(F32, 64, 64)) * 2) +
              call(KERNELS, field(9, transpose) + field(8, spec(I32, 8, 8))),
    "ceilings": call(CEILINGS),
    "others": call(HEALTH, field(1, b"readiness")) + call(WATCH) + call(REFLECTION, field(7, b"")) + call(UNKNOWN, two) + call(ROOT),
    "named": metadata(REQUEST_ID, b"an-id") + metadata(TRACEPARENT, b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01") +
             metadata(TIMEOUT, b"10S") + metadata(AUTHORIZATION, b"Bearer x") + metadata(USER, b"me") + call(DESCRIBE),
    "late": metadata(TIMEOUT, b"1n") + call(RMSE, field(14, two) + field(15, two)) + metadata(TIMEOUT, b"1m") +
            call(EXECUTE, opening(transpose, spec(F32, 64)), 0),
    "headers": b"".join(metadata(name, value) + call(DESCRIBE) for name, value in (
        (ENCODING, b"gzip"), (CONTENT_TYPE, b"text/html"), (BINARY, b"/w=="), (TE, b"none"),
        (PATH, b"/second"), (PROBE, b"token"), (ACCEPT, b"gzip"))),
    "messages": b"".join(call(TRANSPOSE, field(15, two), LAST | flags) for flags in (NONE, COMPRESSED, LONGER, CUT, PADDED)),
    "nothing_sent": b"",
    "reset_at_once": (call(RMSE, field(14, two), 0) + cancel) * 16,
    "frames": frame(PING, 0, 0, b"12345678") + frame(PRIORITY, 0, 1, b"\0\0\0\0\1") + frame(SETTINGS, 0, 0, b"\0\4\0\0\0\0") +
              call(GET, field(1, FIRST)) + frame(WINDOW_UPDATE, 0, 0, b"\0\0\1\0") + frame(99, 0, 1, b"?") + settle,
    "frame_goaway": call(EXECUTE, opening(transpose, spec(F32, 64)), 0) + frame(GOAWAY, 0, 0, bytes(8)) + settle + chunk(0, 0, 256, LAST),
    "frame_too_large": frame(SETTINGS, 0, 0, b"\0\5\0") + call(DESCRIBE),
    "frame_push": frame(PUSH, 4, 1, b"\0\0\0\2\x82"),
    "frame_continued": frame(HEADERS, 0, 1, b"\x83\x86\x04\x01/") + frame(CONTINUATION, 4, 1, b"\x84"),
    "frame_data_to_nobody": frame(DATA, 1, 7, b"\0\0\0\0\0"),
    "frame_window_overflow": frame(WINDOW_UPDATE, 0, 0, b"\x7f\xff\xff\xff") * 2 + call(DESCRIBE),
    "hpack": frame(HEADERS, 4, 1, b"\x83\x86\x44\x01/\x40\x01a\x7f\x80\x01" + b"x" * 255 + b"\xbe" * 40),
    "pings": frame(PING, 0, 0, bytes(8)) * 40,
    "raw_in_between": call(DESCRIBE) + record(RAW, 0, 0, b"\0\0\5\0\0\0\0\0") + call(DESCRIBE),
}
OTHERS = {
    "http1": (NO_GREETING, record(RAW, 0, 0, b"GET / HTTP/1.1\r\nHost: fuzz\r\n\r\n")),
    "no_settings": (NO_GREETING | UNIX | HALF_CLOSE, record(RAW, 0, 0, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n") + call(DESCRIBE)),
    "half_a_preface": (NO_GREETING | UNIX, record(RAW, 0, 0, b"PRI * HT")),
    "tls": (NO_GREETING, record(RAW, 0, 0, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")),
}


def main(folder):
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    # Each at another door, and with another end.
    seeds = {name: (i % 4 | (0, RESET, HALF_CLOSE)[i % 3], body) for i, (name, body) in enumerate(SEEDS.items())} | OTHERS
    files = {name: bytes([flags]) + body for name, (flags, body) in seeds.items()}
    for i, (name, (failures, body)) in enumerate(CERTAIN.items()):
        for door in range(4):
            files[f"{name}.{door}"] = sealed(door | (0, RESET, HALF_CLOSE)[(i + door) % 3], failures, body)
    for name, data in files.items():
        with open(os.path.join(folder, name), "wb") as file:
            file.write(data)


if __name__ == "__main__":
    main(sys.argv[1])
