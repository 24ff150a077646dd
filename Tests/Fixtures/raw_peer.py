"""A peer that writes HTTP/2 frames by hand, to say what no correct server would.

Usage: raw_peer.py SCENARIO [CERTIFICATE KEY], with the latter two over TLS. Prints its port; ends
with the end of its standard input.
"""

import gzip
import itertools
import socket
import struct
import sys

import peer

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST, SETTINGS, PUSH, PING, GOAWAY, WINDOW, CONTINUATION = 0, 1, 3, 4, 5, 6, 7, 8, 9
END_STREAM, END_HEADERS, ACK = 1, 4, 1
connections = itertools.count(1)
requests = 0


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def length(value):
    """An HPACK integer with a prefix of seven bits."""
    if value < 127:
        return bytes([value])
    out, value = bytes([127]), value - 127
    while value >= 128:
        out += bytes([value % 128 + 128])
        value //= 128
    return out + bytes([value])


def block(*fields):
    """HPACK: literal fields without indexing and without Huffman code."""
    out = b""
    for name, value in fields:
        name, value = name.encode(), value.encode("latin-1")
        out += b"\x00" + length(len(name)) + name + length(len(value)) + value
    return out


def message(payload, flag=0):
    return bytes([flag]) + struct.pack(">I", len(payload)) + payload


OK = block((":status", "200"), ("content-type", "application/grpc"))
STATUS_OK = block(("grpc-status", "0"))


def answer(stream, text):
    return (
        frame(HEADERS, END_HEADERS, stream, OK)
        + frame(DATA, 0, stream, message(text))
        + frame(HEADERS, END_HEADERS | END_STREAM, stream, STATUS_OK)
    )


def respond(scenario, stream, connection):
    """Bytes to send for a request; None closes the connection."""
    head = frame(HEADERS, END_HEADERS, stream, OK)
    name, _, argument = scenario.partition(":")
    if name == "no_trailers":
        return head + frame(DATA, END_STREAM, stream, message(b"one"))
    if name == "no_trailers_empty_data":
        return head + frame(DATA, 0, stream, message(b"one")) + frame(DATA, END_STREAM, stream)
    if name == "inside_message":
        return head + frame(DATA, END_STREAM, stream, message(b"one")[:-1])
    if name == "status_inside_message":
        return (head + frame(DATA, 0, stream, message(b"one")[:-1])
                + frame(HEADERS, END_HEADERS | END_STREAM, stream, STATUS_OK))
    if name == "http_status":
        return frame(HEADERS, END_HEADERS | END_STREAM, stream,
                     block((":status", argument), ("content-type", "text/html")))
    if name == "html":
        return (frame(HEADERS, END_HEADERS, stream, block((":status", "200"), ("content-type", "text/html")))
                + frame(DATA, END_STREAM, stream, b"<html>"))
    if name == "trailers_only":
        return frame(HEADERS, END_HEADERS | END_STREAM, stream,
                     block((":status", "200"), ("content-type", "application/grpc"), ("grpc-status", "5"),
                           ("grpc-message", "%C3%A4 100%25 %zz%"), ("x-detail-bin", "AQI, AwQ=")))
    if name == "forged_mark":
        return frame(HEADERS, END_HEADERS | END_STREAM, stream,
                     block((":status", "200"), ("content-type", "application/grpc"), ("grpc-status", "14"),
                           (argument, "")))
    if name == "refused":
        body = {"at_once": b"", "after_headers": b"", "inside_message": message(b"one")[:-1]}[argument]
        status = block(("grpc-status", "16"), ("grpc-message", "no"))
        if argument == "at_once":
            return frame(HEADERS, END_HEADERS | END_STREAM, stream, OK + status)
        return (head + (frame(DATA, 0, stream, body) if body else b"")
                + frame(HEADERS, END_HEADERS | END_STREAM, stream, status))
    if name == "rst":
        return head + frame(RST, 0, stream, struct.pack(">I", int(argument)))
    if name in ("refuse_once", "refuse_twice"):
        if requests <= (1 if name == "refuse_once" else 2):
            return frame(RST, 0, stream, struct.pack(">I", 7))
        return answer(stream, b"served on connection %d" % connection)
    if name == "refuse_always":
        return frame(RST, 0, stream, struct.pack(">I", 7))
    if name == "goaway_once":
        if connection == 1:
            return frame(GOAWAY, 0, 0, struct.pack(">II", 0, 0))
        return answer(stream, b"served on connection %d" % connection)
    if name == "goaway_finishing":
        if connection == 1:
            return frame(GOAWAY, 0, 0, struct.pack(">II", stream, 0)) + answer(stream, b"finished on connection 1")
        return answer(stream, b"served on connection %d" % connection)
    if name == "die":
        return head + frame(DATA, 0, stream, message(b"one")), None
    if name in ("mute", "stalled"):
        return head
    if name == "one_call":
        return frame(GOAWAY, 0, 0, struct.pack(">II", stream, 0)) + answer(stream, b"connection %d" % connection)
    if name == "header_flood":
        first = frame(HEADERS, 0, stream, OK)
        more = block(("x-flood", "a" * 8000))
        return first + b"".join(frame(CONTINUATION, 0, stream, more) for _ in range(40)) + frame(
            CONTINUATION, END_HEADERS, stream, more)
    if name == "long_headers":
        fields = [("x-%d" % i, "a" * 1000) for i in range(80)]
        return frame(HEADERS, END_HEADERS, stream, OK + block(*fields))
    if name == "long_trailers":
        fields = [("grpc-status", "0")] + [("x-%d" % i, "a" * 1000) for i in range(15)]
        return head + frame(HEADERS, END_HEADERS | END_STREAM, stream, block(*fields))
    if name == "oversized":
        return head + frame(DATA, 0, stream, b"\x00\x7f\xff\xff\xff" + b"x" * 100)
    if name == "compressed":
        return head + frame(DATA, 0, stream, message(b"one", flag=1))
    if name == "data_first":
        return frame(DATA, 0, stream, message(b"one"))
    if name == "garbage":
        return head + b"\xff" * 400
    if name == "padded":
        padded = lambda payload, flags: frame(DATA, flags | 8, stream, bytes([200]) + payload + bytes(200))
        body = b"".join(message(bytes(10)) for _ in range(1000))
        chunks = [body[i:i + 10] for i in range(0, len(body), 10)]
        return (head + b"".join(padded(c, 0) for c in chunks)
                + frame(HEADERS, END_HEADERS | END_STREAM, stream, STATUS_OK))
    if name in HOSTILE:
        return HOSTILE[name](stream, head, argument)
    return answer(stream, b"fine")


GZIP = block((":status", "200"), ("content-type", "application/grpc"), ("grpc-encoding", "gzip"))


def for_ever(chunk):
    """The chunk again and again, whether or not the client reads; nothing of the client is read."""
    return itertools.repeat(chunk * max(1, 16384 // len(chunk)))


def drip(data):
    return (bytes([byte]) for byte in data)


def bomb(size):
    return message(gzip.compress(bytes(size)), flag=1)


def body(stream, data):
    return b"".join(frame(DATA, 0, stream, data[i:i + 16384]) for i in range(0, len(data), 16384))


def end(stream):
    return frame(HEADERS, END_HEADERS | END_STREAM, stream, STATUS_OK)


def setting(key, value):
    return struct.pack(">HI", key, value)


# What a peer says instead of an answer: bytes, or an iterator of bytes that may have no end.
HOSTILE = {
    "drip": lambda stream, head, _: drip(answer(stream, b"fine")),
    "unknown_frames": lambda stream, head, _: frame(0xFA, 0xFF, stream, bytes(5000)) * 100 + answer(stream, b"fine"),
    "interim": lambda stream, head, _: frame(HEADERS, END_HEADERS, stream, block((":status", "103"))) * 100
    + answer(stream, b"fine"),
    "data_after_end": lambda stream, head, _: answer(stream, b"fine") + frame(DATA, 0, stream, message(b"more")),
    "trailers_after_end": lambda stream, head, _: answer(stream, b"fine") + end(stream),
    "open_trailers": lambda stream, head, _: head + frame(HEADERS, END_HEADERS, stream, STATUS_OK),
    "data_after_trailers": lambda stream, head, _: head + frame(HEADERS, END_HEADERS, stream, STATUS_OK)
    + frame(DATA, END_STREAM, stream, message(b"late")),
    "oversized_frame": lambda stream, head, _: head + (2 << 20).to_bytes(3, "big") + bytes([DATA, 0])
    + struct.pack(">I", stream) + bytes(2 << 20),
    "push": lambda stream, head, _: frame(PUSH, END_HEADERS, stream, struct.pack(">I", 2) + OK),
    "idle_stream": lambda stream, head, _: frame(HEADERS, END_HEADERS, 99, OK),
    "even_stream": lambda stream, head, _: frame(HEADERS, END_HEADERS, 2, OK),
    "no_increment": lambda stream, head, _: frame(WINDOW, 0, 0, struct.pack(">I", 0)),
    "too_much_window": lambda stream, head, _: frame(WINDOW, 0, 0, struct.pack(">I", 0x7FFFFFFF)) * 2,
    "bad_setting": lambda stream, head, _: frame(SETTINGS, 0, 0, setting(4, 1 << 31)),
    "many_settings": lambda stream, head, _: frame(SETTINGS, 0, 0, setting(4, 65535) * 2000),
    "bad_padding": lambda stream, head, _: head + frame(DATA, 8, stream, bytes([200]) + bytes(10)),
    "bad_block": lambda stream, head, _: frame(HEADERS, END_HEADERS, stream, b"\xff" * 20),
    "upper_case": lambda stream, head, _: frame(HEADERS, END_HEADERS, stream, OK + block(("X-Upper", "a"))),
    "no_status": lambda stream, head, _: frame(HEADERS, END_HEADERS, stream, block(("content-type", "application/grpc"))),
    "settings_flood": lambda stream, head, _: for_ever(frame(SETTINGS, 0, 0, setting(3, 100))),
    "ping_flood": lambda stream, head, _: for_ever(frame(PING, 0, 0, bytes(8))),
    "empty_data_flood": lambda stream, head, _: itertools.chain([head], for_ever(frame(DATA, 0, stream))),
    "interim_flood": lambda stream, head, _: for_ever(frame(HEADERS, END_HEADERS, stream, block((":status", "103")))),
    "continuation_flood": lambda stream, head, _: itertools.chain(
        [frame(HEADERS, 0, stream, OK)], for_ever(frame(CONTINUATION, 0, stream, block(("x-flood", "a" * 8000))))),
    "empty_continuation_flood": lambda stream, head, _: itertools.chain(
        [frame(HEADERS, 0, stream, OK)], for_ever(frame(CONTINUATION, 0, stream))),
    # One field of 4,000 bytes put into the table, then named 10,000 times by one byte each.
    "hpack_bomb": lambda stream, head, _: frame(
        HEADERS, END_HEADERS, stream,
        OK + b"\x40" + length(6) + b"x-bomb" + length(3900) + b"a" * 3900 + b"\xbe" * 10000),
    "window_overrun": lambda stream, head, _: itertools.chain([head], for_ever(frame(DATA, 0, stream, message(bytes(8000))))),
    "endless_message": lambda stream, head, _: itertools.chain(
        [head, frame(DATA, 0, stream, b"\x00" + struct.pack(">I", 16 << 20))], for_ever(frame(DATA, 0, stream, bytes(16000)))),
    "gzip_bomb": lambda stream, head, size: frame(HEADERS, END_HEADERS, stream, GZIP)
    + body(stream, bomb(int(size))) + end(stream),
    "gzip_bombs": lambda stream, head, size: frame(HEADERS, END_HEADERS, stream, GZIP)
    + body(stream, bomb(int(size)) * 100) + end(stream),
    "gzip_damaged": lambda stream, head, _: frame(HEADERS, END_HEADERS, stream, GZIP)
    + body(stream, message(gzip.compress(b"text")[:-3], flag=1)) + end(stream),
    "gzip_empty": lambda stream, head, _: frame(HEADERS, END_HEADERS, stream, GZIP)
    + body(stream, message(b"", flag=1)) + end(stream),
    "snappy": lambda stream, head, _: frame(
        HEADERS, END_HEADERS, stream, OK + block(("grpc-encoding", "snappy"))) + body(stream, message(b"x", flag=1)),
}


class Connection:
    def __init__(self, sock, number):
        self.sock, self.number, self.buffer = sock, number, b""

    def read(self, count):
        while len(self.buffer) < count:
            chunk = self.sock.recv(65536)
            if not chunk:
                raise EOFError
            self.buffer += chunk
        out, self.buffer = self.buffer[:count], self.buffer[count:]
        return out

    def serve(self, scenario):
        global requests
        if scenario == "silent":
            while self.sock.recv(65536):
                pass
            return
        if scenario == "http1":
            self.sock.recv(65536)
            self.sock.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            while self.sock.recv(65536):
                pass
            return
        if scenario == "hang_up":
            self.sock.recv(65536)
            return
        if scenario == "chatter":
            self.sock.sendall(b"220 mail.example ESMTP ready\r\n")
            while self.sock.recv(65536):
                pass
            return
        assert self.read(len(PREFACE)) == PREFACE
        if scenario == "cut":
            return self.serve_cut()
        # A window of nothing stalls every request; without streams none is sent.
        limits = {"stalled": setting(4, 0), "no_streams": setting(3, 0)}
        self.sock.sendall(frame(SETTINGS, 0, 0, limits.get(scenario, b"")))
        if scenario == "calm" and self.number == 1:
            self.sock.sendall(frame(GOAWAY, 0, 0, struct.pack(">II", 0, 11) + b"too_many_pings"))
        if scenario == "goodbye_at_once":
            self.sock.sendall(frame(GOAWAY, 0, 0, struct.pack(">II", 0, 0) + b"go away"))
        while True:
            head = self.read(9)
            size, kind, flags = int.from_bytes(head[:3], "big"), head[3], head[4]
            stream = int.from_bytes(head[5:], "big")
            payload = self.read(size)
            if kind == SETTINGS and not flags & ACK:
                self.sock.sendall(frame(SETTINGS, ACK, 0))
            elif kind == PING and not flags & ACK and scenario != "mute":
                self.sock.sendall(frame(PING, ACK, 0, payload))
            elif kind == HEADERS:
                requests += 1
                out = respond(scenario, stream, self.number)
                if isinstance(out, tuple):
                    self.sock.sendall(out[0])
                    # With unread bytes a close would be a reset, and take what was sent with it.
                    self.sock.shutdown(socket.SHUT_WR)
                    while self.sock.recv(65536):
                        pass
                    return
                for chunk in [out] if isinstance(out, bytes) else out:
                    self.sock.sendall(chunk)
                if scenario == "one_call":
                    self.sock.shutdown(socket.SHUT_WR)
                    while self.sock.recv(65536):
                        pass
                    return

    def serve_cut(self):
        """Of a correct conversation, the first bytes: one more on each connection."""
        count = self.number - 1
        said = frame(SETTINGS, ACK, 0) + frame(PING, 0, 0, bytes(8)) + answer(1, b"fine")
        settings = frame(SETTINGS, 0, 0)
        self.sock.sendall(settings[:count])
        if count >= len(settings):
            # An answer follows a request.
            kind = None
            while kind != HEADERS:
                head = self.read(9)
                self.read(int.from_bytes(head[:3], "big"))
                kind = head[3]
            self.sock.sendall(said[:count - len(settings)])
        self.sock.shutdown(socket.SHUT_WR)
        while self.sock.recv(65536):
            pass


def serve(sock):
    Connection(sock, next(connections)).serve(sys.argv[1])


peer.announce(peer.serve_sockets(serve, peer.tls(*sys.argv[2:], protocols=["h2"]) if len(sys.argv) > 2 else None))
