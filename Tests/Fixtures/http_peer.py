"""Answers HTTP requests on a loopback port; with a certificate and a key file, HTTPS. A third file
names the authority whose certificate clients must show.

GET  /status/<code>   that status
GET  /bytes/<count>   a body of that many bytes, gzip-compressed
GET  /hang            no answer at all
GET  /cut             a body shorter than announced
GET  /garbage         bytes that are no HTTP
ANY  other            method, headers and body of the request as JSON
"""

import gzip
import json
import os
import ssl
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


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
        kind, _, value = self.path[1:].partition("/")
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
        elif kind == "garbage":
            self.wfile.write(b"\x00\x01 no HTTP\r\n\r\n")
            self.close_connection = True
        else:
            self.echo()

    def do_POST(self):
        self.echo()

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
