"""A client of a Tilewire server in one file, for machines that the package does not fit: needs grpcio and numpy, no stubs.

    import numpy as np, tilewire_pure as tw
    c = tw.Client("server:50051")
    print(c.rmse(a, b), c.rmse(a, b, axis=1), c.transpose(a), c.gaussian_pdf(a, 0, 1))

Small calls are one message, larger ones a stream of chunks. Slower than the package (one connection, copies), the same bits.
"""

import struct

import grpc
import numpy as np

NAMES = ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "bfloat16", "float32",
         "float64", "complex64", "complex128")  # fmt: skip
CODES = {name: code for code, name in enumerate(NAMES, 1)}
OUTPUTS = {"rmse": 0, "mse": 1, "sum_squares": 2}
CHUNK = 1 << 20
UNARY = 1 << 20  # bytes of operands and result that go as one message
LIMITS = [("grpc.max_receive_message_length", 5 << 20), ("grpc.max_send_message_length", 5 << 20), ("grpc.enable_http_proxy", 0)]


class Error(Exception):
    """A call that failed: code ("INVALID_ARGUMENT"), reason ("BAD_VALUE"), field, value, allowed."""

    def __init__(self, code, message, reason="", field="", value="", allowed=""):
        super().__init__(f"{code}: {message}")
        self.code, self.reason, self.field, self.value, self.allowed = code, reason, field, value, allowed


# --- messages: fields as (number, value) pairs; what they mean is in proto/tilewire/v1
def varint(n):
    n &= (1 << 64) - 1
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes(out) + bytes([n])


def field(number, value):
    """A field: bytes and text by length, float as double, int as varint."""
    if isinstance(value, float):
        return varint(number << 3 | 1) + struct.pack("<d", value)
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return b"".join((varint(number << 3 | 2), varint(len(value)), value))


def packed(number, values):
    return field(number, b"".join(map(varint, values))) if values else b""


def fields(message):
    """number → values, in the order they came."""
    found, at = {}, 0

    def number():
        nonlocal at
        n = shift = 0
        while True:
            byte = message[at]
            at += 1
            n |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return n

    while at < len(message):
        tag = number()
        kind = tag & 7
        if kind == 0:
            value = number()
        else:
            size = {1: 8, 5: 4}.get(kind) or number()
            value = message[at : at + size]
            at += size
        found.setdefault(tag >> 3, []).append(value)
    return found


def numbers(values):
    """A repeated integer, packed or not."""
    found = []
    for value in values:
        if isinstance(value, int):
            found.append(value)
            continue
        n = shift = 0
        for byte in value:
            n |= (byte & 127) << shift
            shift = shift + 7 if byte > 127 else 0
            if byte < 128:
                found.append(n)
                n = 0
    return found


# --- arrays
def spec(x, name):
    dtype = getattr(x, "dtype", None)
    if not isinstance(x, np.ndarray | np.generic) or isinstance(x, np.ma.MaskedArray) or dtype.name not in CODES or dtype.str[0] == ">":
        what = repr(dtype) if dtype is not None else type(x).__name__
        raise TypeError(f"{name} has no dtype of the wire ({what}); allowed, little-endian: {', '.join(NAMES)}")
    return field(1, CODES[dtype.name]) + packed(2, x.shape)


def array(result_spec, data):
    found = fields(result_spec)
    name = NAMES[found[1][0] - 1]
    if name == "bfloat16":
        import ml_dtypes  # noqa: F401  numpy knows the name then
    return np.frombuffer(data, np.dtype(name)).reshape(numbers(found.get(2, [])))


def explained(error):
    """The server's own words."""
    details = dict(error.trailing_metadata() or ()).get("grpc-status-details-bin")
    known = {}
    for packed_any in fields(details).get(3, []) if details else []:
        info = fields(fields(packed_any).get(2, [b""])[0])
        known["reason"] = info.get(1, [b""])[0].decode()
        for entry in info.get(3, []):
            pair = fields(entry)
            known[pair[1][0].decode()] = pair.get(2, [b""])[0].decode()
    known = {key: known[key] for key in ("reason", "field", "value", "allowed") if key in known}
    return Error(error.code().name, error.details(), **known)


class Client:
    """One server. Thread-safe. Every call takes a timeout in seconds and raises Error, or TypeError for what is no array."""

    def __init__(self, address="localhost:50051", credentials=None, metadata=()):
        secure = credentials is not None
        self._channel = grpc.secure_channel(address, credentials, LIMITS) if secure else grpc.insecure_channel(address, LIMITS)
        self._metadata = tuple(metadata)
        self._execute = self._channel.stream_stream("/tilewire.v1.Kernels/Execute")

    def close(self):
        self._channel.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def rmse(self, a, b, axis=None, output="rmse", timeout=None):
        """A float, or float64 of the axes that stay. Equal shapes and dtypes; any dtype but bool and complex."""
        axes = [] if axis is None else [axis] if isinstance(axis, int) else list(axis)
        op = packed(1, axes) + field(2, OUTPUTS[output])
        result = self._call("Rmse", 1, op, [("a", 14, a), ("b", 15, b)], timeout)
        return float(result) if result.ndim == 0 else result

    def transpose(self, a, axes=None, timeout=None):
        """The axes permuted, reversed by default; any dtype."""
        return self._call("Transpose", 2, packed(1, list(axes or ())), [("a", 15, a)], timeout)

    def gaussian_pdf(self, x, mean, stddev, timeout=None):
        """Density of the normal distribution at every element; float32 or float64."""
        return self._call("GaussianPdf", 3, field(1, float(mean)) + field(2, float(stddev)), [("x", 15, x)], timeout)

    def _call(self, method, number, op, operands, timeout):
        specs = [spec(x, name) for name, _, x in operands]
        arrays = [np.ascontiguousarray(x).reshape(-1).view("u1").data for _, _, x in operands]
        try:
            if sum(x.nbytes for x in arrays) + arrays[0].nbytes <= UNARY:
                parts = [field(n, field(1, s) + field(15, bytes(x))) for (_, n, _), s, x in zip(operands, specs, arrays)]
                call = self._channel.unary_unary(f"/tilewire.v1.Kernels/{method}")
                reply = call(field(1, op) + b"".join(parts), timeout=timeout, metadata=self._metadata)
                result = fields(fields(reply)[1][0])
                return array(result[1][0], result.get(15, [b""])[0])
            return self._stream(number, op, specs, arrays, timeout)
        except grpc.RpcError as error:
            raise explained(error) from None

    def _stream(self, number, op, specs, arrays, timeout):
        def messages():
            yield field(1, field(number, op) + b"".join(field(8, s) for s in specs))
            for at in range(0, arrays[0].nbytes, CHUNK):  # operands in turn, so that the server computes meanwhile
                for operand, x in enumerate(arrays):
                    yield field(2, field(1, operand) + field(2, at) + field(15, bytes(x[at : at + CHUNK])))

        pieces, result = [], None
        for reply in self._execute(messages(), timeout=timeout, metadata=self._metadata):
            found = fields(reply)
            if 2 in found:
                pieces.append(fields(found[2][0])[15][0])  # output ascends
            elif 3 in found:
                result = fields(fields(found[3][0])[1][0])
        return array(result[1][0], b"".join(pieces) or result[15][0])
