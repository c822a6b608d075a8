"""Clients that speak HTTP/2 by hand, and not as one should: a connection, frames, and headers without a library."""
import socket
import struct

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PING, WINDOW_UPDATE, CONTINUATION = 0, 1, 2, 3, 4, 6, 8, 9
END_STREAM, ACK, END_HEADERS = 1, 1, 4
CANCEL = 8
REFERENCE = b"\xbe"  # HPACK: entry 62, the newest of the dynamic table


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def text(value):
    """HPACK: a string without Huffman coding; lengths up to 2^14."""
    size = len(value)
    if size < 127:
        return bytes([size]) + value
    size -= 127
    return bytes([127]) + (bytes([size]) if size < 128 else bytes([size & 127 | 128, size >> 7])) + value


def request(path, more=b""):
    """The header block of a gRPC call, with `more` behind it."""
    return (b"\x83\x86" + b"\x04" + text(path) + b"\x01" + text(b"chaos") + b"\x00" + text(b"content-type") +
            text(b"application/grpc") + b"\x00" + text(b"te") + text(b"trailers") + more)


def remembered(name, value):
    """A header that goes into the dynamic table: REFERENCE says it again in one byte."""
    return b"\x40" + text(name) + text(value)


class Connection:
    """Sends what it is told and reads nothing, so it acknowledges no SETTINGS."""

    def __init__(self, address, source="127.0.0.1"):
        host, port = address.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout=20, source_address=(source, 0))
        self.sent = 0
        self.send(PREFACE + frame(SETTINGS, 0, 0))

    def send(self, data):
        """False once the server has closed the connection, or takes nothing for 20 s."""
        try:
            self.socket.sendall(data)
        except OSError:
            return False
        self.sent += len(data)
        return True

    def settle(self):
        """Returns when the server has read what was sent: it answers a ping, or has closed the connection."""
        answer, came = frame(PING, ACK, 0, b"settled."), b""
        if self.send(frame(PING, 0, 0, b"settled.")):
            while answer not in came:
                piece = self.socket.recv(4096)
                if not piece:
                    return
                came += piece

    def close(self):
        self.socket.close()
