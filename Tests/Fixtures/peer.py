"""What servers of tests have in common: they serve on loopback, and those that are programs print their port and
end with their standard input."""

import concurrent.futures
import http.server
import json
import os
import pathlib
import socket
import ssl
import sys
import threading
import urllib.parse


class Handler(http.server.BaseHTTPRequestHandler):
    """Writes no log, and keeps connections open."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    @property
    def base(self):
        """The URL of the server, which speaks plain HTTP."""
        return "http://127.0.0.1:%d" % self.server.server_port

    def body(self):
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def head(self, status, headers=()):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()

    def answer(self, body, status=200, headers=()):
        """Bytes and text as they are, anything else as JSON."""
        if not isinstance(body, (bytes, str)):
            body = json.dumps(body)
        if isinstance(body, str):
            body = body.encode()
        self.head(status, [*headers, ("Content-Length", str(len(body)))])
        self.wfile.write(body)


def form(body):
    """The fields of a form, each of which is there once."""
    fields = urllib.parse.parse_qsl(body.decode(), keep_blank_values=True, strict_parsing=True)
    assert len(dict(fields)) == len(fields), "a field is there twice"
    return dict(fields)


def tls(certificate, key, authority=None, protocols=()):
    """With an authority, clients must show a certificate of it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    if protocols:
        context.set_alpn_protocols(protocols)
    context.load_cert_chain(certificate, key)
    if authority:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(authority)
    return context


def start(function, *arguments):
    threading.Thread(target=function, args=arguments, daemon=True).start()


def serve_http(handler, context=None):
    """A server that serves already, on `server_port`."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    if context:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    start(server.serve_forever)
    return server


def serve_sockets(serve, context=None):
    """Calls `serve` with each connection, in a thread of its own; the port."""
    listener = socket.create_server(("127.0.0.1", 0))

    def run(sock):
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if context:
                sock = context.wrap_socket(sock, server_side=True)
            serve(sock)
        except (EOFError, OSError):
            pass  # the client is gone
        finally:
            sock.close()

    def accept():
        while True:
            start(run, listener.accept()[0])

    start(accept)
    return listener.getsockname()[1]


def serve_grpc(*handlers, port=0, identity=None, authority=None, threads=16, options=()):
    """A gRPC server that serves already, and its port. The identity: paths of a certificate and its key."""
    import grpc  # only these servers need it

    server = grpc.server(concurrent.futures.ThreadPoolExecutor(threads), options=options)
    server.add_generic_rpc_handlers(handlers)
    address = "127.0.0.1:%d" % port
    if identity:
        server_port = server.add_secure_port(address, credentials(*identity, authority))
    else:
        server_port = server.add_insecure_port(address)
    server.start()
    return server, server_port


def credentials(certificate, key, authority=None):
    """Those of a gRPC server."""
    import grpc

    key, certificate, authority = (
        path and pathlib.Path(path).read_bytes() for path in (key, certificate, authority))
    return grpc.ssl_server_credentials([(key, certificate)], authority, authority is not None)


def announce(port):
    """Prints the port, and ends the process with its standard input, so that it does not outlive its test."""
    print(port, flush=True)
    sys.stdin.read()
    os._exit(0)


def run(server):
    """The whole life of an HTTP server."""
    announce(server.server_port)
