"""A PostgreSQL server that answers as no server should, `hostile_postgres.py KIND [SEED [FOLDER]]`.

Serves on a loopback port, or a socket in FOLDER. Prints its port; ends with its standard input. KIND says how statements with rows are answered:
`none` (no row), `narrow` (one column), `nulls`, `junk`, `random` (by SEED, statement by statement);
`endless-rows`, `endless-notices`, `endless-notifications`, `endless-results`, `huge`;
`deaf` (accepts a connection and says nothing), `mute` (a login, then nothing), `mute-NUMBER` (so
many statements, then nothing, and new connections are deaf), `slow` (as mute-1, but new connections
are taken), `slow-NUMBER` (as mute-NUMBER, likewise), `refuse-CODE` (a login refused with an SQLSTATE), `auth-NUMBER` (a request for this kind
of authentication), `tls` (agrees to encryption, then nothing).
"""

import random
import socket
import struct
import sys
import threading

ROWS = ("SELECT", "WITH", "FETCH", "SHOW", "INSERT", "UPDATE", "DELETE", "VALUES")
JUNK = (
    None, b"", b"t", b"f", b"-1", b"0", b"9223372036854775807", b"-9223372036854775808", b"1e999",
    b"{}", b"{\"a\": 1}", b"[]", b"infinity", b"\xff\xfe", b"\x00\x00\x00\x01" * 8, b"r", b"current",
    b"history", b"opportunity", b"Opportunity", b"{a,b}", b"x" * 5000,
)


def message(kind, body=b""):
    return kind + struct.pack("!I", len(body) + 4) + body


def description(columns):
    fields = b"".join(
        b"c%d\0" % index + struct.pack("!IhIhih", 0, 0, 25, -1, -1, 0) for index in range(columns)
    )
    return message(b"T", struct.pack("!h", columns) + fields)


def row(values):
    body = struct.pack("!h", len(values))
    for value in values:
        body += struct.pack("!i", -1) if value is None else struct.pack("!i", len(value)) + value
    return message(b"D", body)


class Server:
    def __init__(self, kind, seed):
        self.kind, self.chance = kind, random.Random(seed)
        self.left = 1 if kind == "slow" else None
        if kind.startswith(("mute-", "slow-")):
            self.left = int(kind[5:])
        self.is_mute = False
        self.held = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        # A socket of the file system has the port in its name.
        if len(sys.argv) > 3:
            self.listener = socket.socket(socket.AF_UNIX)
            self.listener.bind("%s/.s.PGSQL.%d" % (sys.argv[3], self.port))
            self.listener.listen()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client, _ = self.listener.accept()
            if client.family == socket.AF_INET:
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self.kind == "deaf" or self.is_mute:
                self.held.append(client)
            else:
                threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        try:
            self.converse(client, client.makefile("rb"))
        except (OSError, struct.error):
            client.close()

    def converse(self, client, reader):
        while True:
            (length,) = struct.unpack("!I", reader.read(4))
            (version,) = struct.unpack("!I", reader.read(length - 4)[:4])
            if version == 196608:
                break
            client.sendall(b"S" if self.kind == "tls" else b"N")
        if self.kind.startswith("refuse-"):
            code = self.kind[7:].encode()
            client.sendall(message(b"E", b"SFATAL\0VFATAL\0C" + code + b"\0Mrefused\0\0"))
            client.close()
            return
        if self.kind.startswith("auth-"):
            client.sendall(message(b"R", struct.pack("!I", int(self.kind[5:]))))
            return
        client.sendall(
            message(b"R", struct.pack("!I", 0)) + message(b"S", b"server_version\x0015.4\0")
            + message(b"S", b"server_encoding\0UTF8\0") + message(b"K", struct.pack("!II", 1, 2))
            + message(b"Z", b"I")
        )
        status, sql, is_copy = b"I", b"", False
        while True:
            kind = reader.read(1)
            if not kind or kind == b"X":
                client.close()
                return
            (length,) = struct.unpack("!I", reader.read(4))
            body = reader.read(length - 4)
            if kind == b"P":
                sql = body.split(b"\0")[1]
            elif kind == b"Q":
                sql = body.rstrip(b"\0")
            if kind in b"Qcf" or (kind == b"S" and not is_copy):
                words = sql.decode(errors="replace").split()
                if "BEGIN" in words[:1] or "BEGIN;" in words[:1]:
                    status = b"T"
                if words[:1] in (["COMMIT"], ["ROLLBACK"]) and "TO" not in words[:2]:
                    status = b"I"
                if self.kind == "mute":
                    continue
                if self.left is not None:
                    self.left -= 1
                    if self.left < 0:
                        self.is_mute = not self.kind.startswith("slow")
                        continue
                if kind == b"Q" and "COPY" in sql.decode(errors="replace"):
                    is_copy = True
                    client.sendall(message(b"G", struct.pack("!bh", 1, 0)))
                    continue
                head = message(b"1") + message(b"2") if kind == b"S" else b""
                self.answer(client, head, words, kind == b"S", kind in b"cf")
                is_copy = False
                client.sendall(message(b"Z", status))

    def answer(self, client, head, words, is_extended, ends_copy):
        kind = self.kind
        if kind == "random":
            kind = self.chance.choice(["none", "narrow", "nulls", "junk", "junk", "junk"])
        if ends_copy:
            client.sendall(message(b"C", b"COPY 9223372036854775807\0"))
        elif kind.startswith("endless-") or kind == "huge":
            client.sendall(head)
            self.flood(client, kind)
        elif any(word in ROWS for word in words):
            client.sendall(head + self.rows(kind) + message(b"C", b"SELECT 1\0"))
        else:
            client.sendall(head + (message(b"n") if is_extended else b"") + message(b"C", b"SET\0"))

    def rows(self, kind):
        if kind == "none":
            return description(1)
        if kind == "narrow":
            return description(1) + row([b"t"])
        if kind == "nulls":
            return description(24) + row([None] * 24)
        columns = self.chance.choice([1, 3, 8, 24])
        return description(columns) + b"".join(
            row([self.chance.choice(JUNK) for _ in range(columns)])
            for _ in range(self.chance.choice([1, 1, 1, 2, 5]))
        )

    @staticmethod
    def flood(client, kind):
        if kind == "huge":
            client.sendall(description(1) + b"D" + struct.pack("!I", 1 << 30))
            client.sendall(struct.pack("!hi", 1, (1 << 30) - 10))
            chunk = b"x" * (1 << 20)
        elif kind == "endless-rows":
            client.sendall(description(1))
            chunk = row([b"x" * 100]) * 5000
        elif kind == "endless-notices":
            chunk = message(b"N", b"SNOTICE\0VNOTICE\0C00000\0M" + b"x" * 100 + b"\0\0") * 5000
        elif kind == "endless-notifications":
            chunk = message(b"A", struct.pack("!I", 1) + b"channel\0" + b"x" * 100 + b"\0") * 5000
        else:
            chunk = message(b"C", b"SELECT 1\0") * 20000
        while True:
            client.sendall(chunk)


print(Server(sys.argv[1], int((sys.argv + ["0"])[2])).port, flush=True)
sys.stdin.read()
