"""Answers HTTP requests on a loopback port; with a certificate and a key file, HTTPS. A third file
names the authority whose certificate clients must show.

GET  /status/<code>   that status
GET  /bytes/<count>   a body of that many bytes, gzip-compressed
GET  /hang            no answer at all
GET  /hung            an answer when a request hangs
GET  /cut             a body shorter than announced
GET  /cut-chunks      a body in chunks, the second of which is cut in the middle
GET  /garbage         bytes that are no HTTP
GET  /switch          status 101, which nobody asked for, and bytes
GET  /pattern/<count> a body of that many bytes: 0 to 250, over and over
GET  /sent            how many bytes of patterns were sent by all requests so far
GET  /waits           the same, when a pattern waits for a client that takes no more
GET  /stall           the first 5 bytes of a longer body, then nothing
GET  /drip/<count>    a body of that many bytes, in chunks of one byte, 50 a second
POST /keep            status 204; the request is kept
GET  /kept            the requests that were kept, as JSON
POST <any of these>   what GET answers
PUT  /hang            no answer at all, and the body is not read
ANY  other            method, headers and body of the request as JSON; HEAD without a body
"""

import gzip
import select
import socket
import sys
import threading
import time

import peer

PATTERN = bytes(range(251)) * 256
sent = 0
kept = []
hangs, waits = threading.Event(), threading.Event()


class Handler(peer.Handler):
    def do_GET(self):
        kind, _, value = self.path[1:].partition("?")[0].partition("/")
        if kind == "status":
            self.answer(b"", int(value), [("Location", "/elsewhere")])
        elif kind == "bytes":
            self.answer(gzip.compress(b"x" * int(value)), 200, [("Content-Encoding", "gzip")])
        elif kind == "hang":
            hangs.set()
            threading.Event().wait()
        elif kind == "hung":
            hangs.wait()
            self.answer("")
        elif kind == "cut":
            self.head(200, [("Content-Length", "10")])
            self.wfile.write(b"12345")
            self.close_connection = True
        elif kind == "cut-chunks":
            self.chunks()
            self.wfile.write(b"5\r\n12345\r\n7\r\n678")
            self.close_connection = True
        elif kind == "switch":
            self.wfile.write(b"HTTP/1.1 101 Switching Protocols\r\n\r\n" + b"x" * 1_000_000)
            self.close_connection = True
        elif kind == "pattern":
            self.pattern(int(value))
        elif kind == "sent":
            self.answer(str(sent))
        elif kind == "waits":
            waits.wait()
            self.answer(str(sent))
        elif kind == "stall":
            self.head(200, [("Content-Length", "10")])
            self.wfile.write(b"12345")
            threading.Event().wait()
        elif kind == "drip":
            self.chunks()
            for _ in range(int(value)):
                self.wfile.write(b"1\r\nx\r\n")
                time.sleep(0.02)  # fifty a second
            self.wfile.write(b"0\r\nX-Trailer: late\r\n\r\n")
        elif kind == "garbage":
            self.wfile.write(b"\x00\x01 no HTTP\r\n\r\n")
            self.close_connection = True
        elif kind == "keep":
            kept.append(self.request_as_read())
            self.answer(b"", 204)
        elif kind == "kept":
            self.answer({"requests": kept}, 200)
        else:
            self.echo()

    do_POST = do_GET

    def do_PATCH(self):
        self.echo()

    do_DELETE = do_PATCH

    def do_PUT(self):
        if self.path == "/hang":
            threading.Event().wait()
        self.echo()

    def do_HEAD(self):
        self.head(200, [("Content-Length", "12345"), ("X-Method", self.command)])

    def chunks(self):
        self.head(200, [("Transfer-Encoding", "chunked")])

    def pattern(self, count):
        global sent
        # Then a socket that can be written to has room for a piece.
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        self.head(200, [("Content-Length", str(count))])
        while count > 0:
            piece = PATTERN[:count]
            try:
                if not select.select([], [self.connection], [], 0)[1]:
                    waits.set()
                    select.select([], [self.connection], [])
                    waits.clear()
                self.wfile.write(piece)
            except OSError:
                self.close_connection = True
                return
            sent += len(piece)
            count -= len(piece)

    def request_as_read(self):
        headers = {name.lower(): value for name, value in self.headers.items()}
        return {"method": self.command, "path": self.path, "body": self.body().decode("latin-1"), "headers": headers}

    def echo(self):
        self.answer(self.request_as_read(), 200, [("X-Padded", " \t padded \t ")])


peer.run(peer.serve_http(Handler, peer.tls(*sys.argv[1:]) if len(sys.argv) > 2 else None))
