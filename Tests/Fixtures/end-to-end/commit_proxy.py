"""A TCP proxy in front of PostgreSQL that cuts connections at critical moments.

- answer: COMMIT was executed, its answer never arrives;
- request: the statement with COMMIT never arrives;
- copy: in the middle of the rows of a COPY.

It reads the messages of the protocol's version 3 and answers requests for encryption with no.
"""

import random
import socket
import struct
import threading

ENCRYPTION_REQUESTS = (80877103, 80877104)


class Proxy:
    """A context manager; serves from the moment it is made. Nothing is cut until `arm`."""

    def __init__(self, target_port, seed):
        self.target_port = target_port
        self.chance = random.Random(seed)
        self.lock = threading.Lock()
        self.armed, self.countdown = None, 0
        self.cuts = {"answer": 0, "request": 0, "copy": 0}
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()

    def arm(self, kind, passes):
        """Cuts once, after this many occasions."""
        with self.lock:
            self.armed, self.countdown = kind, passes

    def is_cut(self, kind):
        with self.lock:
            if self.armed != kind:
                return False
            self.countdown -= 1
            if self.countdown >= 0:
                return False
            self.armed = None
            self.cuts[kind] += 1
            return True

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        try:
            startup = receive_startup(client)
            server = socket.create_connection(("127.0.0.1", self.target_port))
        except (OSError, EOFError):
            client.close()
            return
        ends = (client, server)
        try:
            # Otherwise each small message waits 40 ms for the answer to the one before it.
            for end in ends:
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            server.sendall(startup)
            answers = threading.Thread(target=self.pump, args=(ends, server, client, self.cuts_answer))
            answers.start()
            self.pump(ends, client, server, self.cuts_question)
            answers.join()
        except OSError:
            pass
        for end in ends:
            end.close()

    def pump(self, ends, source, target, cuts):
        """Passes whole messages on until one end closes or a cut is due."""
        pending = bytearray()
        try:
            while chunk := source.recv(1 << 16):
                pending += chunk
                at = 0
                while len(pending) - at >= 5:
                    size = 1 + struct.unpack_from(">I", pending, at + 1)[0]
                    if len(pending) - at < size:
                        break
                    if cuts(pending[at : at + 1], pending, at + 5, at + size):
                        target.sendall(pending[:at])
                        return
                    at += size
                target.sendall(pending[:at])
                del pending[:at]
        except OSError:
            pass
        finally:
            for end in ends:
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    def cuts_answer(self, kind, data, start, end):
        return kind == b"C" and data[start : start + 6] == b"COMMIT" and self.is_cut("answer")

    def cuts_question(self, kind, data, start, end):
        if kind == b"d":
            return self.is_cut("copy")
        is_commit = kind in (b"Q", b"P") and b"COMMIT" in data[start:end].upper()
        return is_commit and self.is_cut("request")


def receive(connection, count):
    data = b""
    while len(data) < count:
        chunk = connection.recv(count - len(data))
        if not chunk:
            raise EOFError
        data += chunk
    return data


def receive_startup(client):
    while True:
        head = receive(client, 8)
        size, code = struct.unpack(">II", head)
        if code not in ENCRYPTION_REQUESTS:
            return head + receive(client, size - 8)
        client.sendall(b"N")
