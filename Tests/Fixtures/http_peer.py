"""Answers HTTP requests on a loopback port; with a certificate and a key file, HTTPS. A third file
names the authority whose certificate clients must show.

GET  /status/<code>   that status
GET  /bytes/<count>   a body of that many bytes, gzip-compressed
GET  /hang            no answer at all
GET  /cut             a body shorter than announced
GET  /cut-chunks      a body in chunks, the second of which is cut in the middle
GET  /garbage         bytes that are no HTTP
GET  /switch          status 101, which nobody asked for, and bytes
GET  /pattern/<count> a body of that many bytes: 0 to 250, over and over
GET  /sent            how many bytes of patterns were sent by all requests so far
GET  /stall           the first 5 bytes of a longer body, then nothing
GET  /drip/<count>    a body of that many bytes, in chunks of one byte, 50 a second
ANY  other            method, headers and body of the request as JSON
"""

import gzip
import json
import os
import ssl
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


PATTERN = bytes(range(251)) * 256
sent = 0


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def answer(self, status, body, headers=()):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        kind, _, value = self.path[1:].partition("?")[0].partition("/")
        if kind == "status":
            self.answer(int(value), b"", [("Location", "/elsewhere")])
        elif kind == "bytes":
            self.answer(200, gzip.compress(b"x" * int(value)), [("Content-Encoding", "gzip")])
        elif kind == "hang":
            threading.Event().wait()
        elif kind == "cut":
            self.send_response(200)
            self.send_header("Content-Length", "10")
            self.end_headers()
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
            self.answer(200, str(sent).encode())
        elif kind == "stall":
            self.send_response(200)
            self.send_header("Content-Length", "10")
            self.end_headers()
            self.wfile.write(b"12345")
            threading.Event().wait()
        elif kind == "drip":
            self.chunks()
            for _ in range(int(value)):
                self.wfile.write(b"1\r\nx\r\n")
                time.sleep(0.02)
            self.wfile.write(b"0\r\nX-Trailer: late\r\n\r\n")
        elif kind == "garbage":
            self.wfile.write(b"\x00\x01 no HTTP\r\n\r\n")
            self.close_connection = True
        else:
            self.echo()

    def do_POST(self):
        self.echo()

    do_PATCH = do_POST
    do_DELETE = do_POST

    def chunks(self):
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def pattern(self, count):
        global sent
        self.send_response(200)
        self.send_header("Content-Length", str(count))
        self.end_headers()
        while count > 0:
            piece = PATTERN[:count]
            try:
                self.wfile.write(piece)
            except OSError:
                self.close_connection = True
                return
            sent += len(piece)
            count -= len(piece)

    def echo(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        text = json.dumps(
            {"method": self.command, "path": self.path, "body": body.decode("latin-1"),
             "headers": {name.lower(): value for name, value in self.headers.items()}})
        self.answer(200, text.encode(), [("X-Padded", " \t padded \t ")])


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
if len(sys.argv) > 2:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[1], sys.argv[2])
    if len(sys.argv) > 3:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(sys.argv[3])
    server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_address[1], flush=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.stdin.read()
os._exit(0)
