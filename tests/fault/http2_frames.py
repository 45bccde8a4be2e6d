"""HTTP/2 frames written by hand (RFC 9113), so that they can be wrong; as much of gRPC over them as a call needs."""
import contextlib
import socket
import ssl
import struct

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
END_STREAM, ACK, END_HEADERS = 1, 1, 4


def frame(kind, flags=0, stream=0, payload=b"", length=None):
    size = len(payload) if length is None else length
    return struct.pack(">I", size)[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def settings(**values):
    numbers = {"header_table": 1, "push": 2, "streams": 3, "window": 4, "frame": 5, "headers": 6}
    return frame(SETTINGS, payload=b"".join(struct.pack(">HI", numbers[name], value) for name, value in values.items()))


def window_update(stream, increment):
    return frame(WINDOW_UPDATE, 0, stream, struct.pack(">I", increment))


def reset(stream):
    return frame(RST_STREAM, 0, stream, struct.pack(">I", 8))


def string(text):
    """HPACK (RFC 7541): not Huffman coded."""
    size = len(text)
    if size < 127:
        return bytes([size]) + text
    size, coded = size - 127, bytearray([127])
    while size >= 128:
        coded.append(size % 128 + 128)
        size //= 128
    return bytes(coded) + bytes([size]) + text


def header(name, value, indexed=False):
    """A literal; `indexed`: the receiver is to remember it."""
    return (b"\x40" if indexed else b"\x00") + string(name) + string(value)


def request_headers(path, more=b""):
    return b"".join(header(name, value) for name, value in (
        (b":method", b"POST"), (b":scheme", b"http"), (b":path", path), (b":authority", b"localhost"),
        (b"content-type", b"application/grpc"), (b"te", b"trailers"))) + more


def call(stream, path, message=b"", end=True):
    """A whole unary request; without `end` more of it could come."""
    body = struct.pack(">BI", 0, len(message)) + message
    return (frame(HEADERS, END_HEADERS, stream, request_headers(path)) +
            frame(DATA, END_STREAM if end else 0, stream, body))


class Connection:
    """A socket that sends bytes and may read frames; over TLS where `tls` is a context."""

    # Of all that are made from then on:
    tls = None
    source = "127.0.0.1"

    def __init__(self, port, begin=PREFACE + settings(), timeout=10.0):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=timeout, source_address=(self.source, 0))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.tls:
            self.socket = self.tls.wrap_socket(self.socket, server_hostname="localhost")
        self.next_stream = 1
        self.buffer = b""
        self.sent = 0
        if begin:
            self.send(begin)

    def send(self, data):
        """Whether the other end took it."""
        try:
            self.socket.sendall(data)
        except OSError:
            return False
        self.sent += len(data)
        return True

    def stream(self):
        self.next_stream += 2
        return self.next_stream - 2

    def read_frame(self):
        while True:
            if len(self.buffer) >= 9:
                size = int.from_bytes(self.buffer[:3], "big")
                if len(self.buffer) >= 9 + size:
                    kind, flags, stream = struct.unpack(">BBI", self.buffer[3:9])
                    payload, self.buffer = self.buffer[9:9 + size], self.buffer[9 + size:]
                    return kind, flags, stream & 0x7FFFFFFF, payload
            more = self.socket.recv(1 << 16)
            if not more:
                raise ConnectionError("the server closed the connection")
            self.buffer += more

    def ask(self, path, message=b""):
        """The answer's bytes; waits for the end of the stream. b"" where the call failed."""
        number = self.stream()
        if not self.send(call(number, path, message)):
            raise ConnectionError("the server does not read")
        answer = b""
        while True:
            kind, flags, stream, payload = self.read_frame()
            if kind == SETTINGS and not flags & ACK:
                self.send(frame(SETTINGS, ACK))
            elif kind == PING and not flags & ACK:
                self.send(frame(PING, ACK, 0, payload))
            elif kind == GOAWAY:
                raise ConnectionError(f"the server went away: {payload[8:]!r}")
            elif stream != number:
                continue
            elif kind == DATA:
                answer += payload
                if payload:
                    self.send(window_update(0, len(payload)))
            elif kind == RST_STREAM:
                raise ConnectionError("the server reset the call")
            if kind in (DATA, HEADERS) and flags & END_STREAM:
                return answer[5:]

    def is_open(self):
        """Whether the server has not closed it; what it sent is thrown away."""
        self.socket.setblocking(False)
        try:
            while self.socket.recv(1 << 16):
                pass
            return False
        except (BlockingIOError, ssl.SSLWantReadError):
            return True
        except OSError:
            return False

    def close(self):
        with contextlib.suppress(OSError):
            self.socket.close()
