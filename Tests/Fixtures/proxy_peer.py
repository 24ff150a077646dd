"""An HTTP proxy that opens tunnels (CONNECT), to one port on loopback whatever the name asked for.

Usage: proxy_peer.py PORT [MODE]. Prints its port; ends with the end of its standard input. A name
that no name service knows is reached through it only.

MODE: open (default); auth:USER:PASSWORD; status:CODE; drip (its answer byte by byte); interim (the
same after an interim answer); limit:BYTES (cuts the tunnel when the server has sent more); eager (the server's first bytes in one packet with the answer); hang_up; silent;
garbage; endless (header fields for ever).
"""

import base64
import socket
import sys

import peer

TARGET = int(sys.argv[1])
MODE, _, ARGUMENT = (sys.argv[2] if len(sys.argv) > 2 else "open").partition(":")
ESTABLISHED = b"HTTP/1.1 200 Connection established\r\nVia: test\r\n\r\n"


def relay(source, sink, limit=None):
    total = 0
    try:
        while data := source.recv(65536):
            total += len(data)
            if limit is not None and total > limit:
                sink.shutdown(socket.SHUT_RDWR)
                return
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def wanted():
    return b"proxy-authorization: basic " + base64.b64encode(ARGUMENT.encode()).lower()


def serve(sock):
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        data = sock.recv(1)  # what follows the head belongs to the server
        if not data:
            return
        head += data
    lines = head.lower().split(b"\r\n")
    words = lines[0].split()
    if words[0] != b"connect" or b"host: " + words[1] not in lines:
        sock.sendall(b"HTTP/1.1 400 no proper CONNECT\r\n\r\n")
        return
    if MODE == "auth" and wanted() not in lines:
        sock.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\n"
                     b"Proxy-Authenticate: Basic realm=test\r\nContent-Length: 0\r\n\r\n")
        return
    if MODE == "status":
        sock.sendall(b"HTTP/1.1 %s Not today\r\nContent-Length: 0\r\n\r\n" % ARGUMENT.encode())
        return
    if MODE == "hang_up":
        return
    if MODE == "silent":
        while sock.recv(65536):
            pass
        return
    if MODE == "garbage":
        sock.sendall(b"220 mail.example ESMTP ready\r\n" * 5)
        while sock.recv(65536):
            pass
        return
    if MODE == "endless":
        sock.sendall(b"HTTP/1.1 200 OK\r\n")
        while True:
            sock.sendall(b"X-Flood: %s\r\n" % (b"a" * 1000))
    server = socket.create_connection(("127.0.0.1", TARGET))
    if MODE in ("drip", "interim"):
        for byte in (b"HTTP/1.1 100 Continue\r\n\r\n" if MODE == "interim" else b"") + ESTABLISHED:
            sock.sendall(bytes([byte]))
    elif MODE == "eager":
        peer.start(relay, sock, server)
        sock.sendall(ESTABLISHED + server.recv(65536))
    else:
        sock.sendall(ESTABLISHED)
    if MODE != "eager":
        peer.start(relay, sock, server)
    relay(server, sock, int(ARGUMENT) if MODE == "limit" else None)


peer.announce(peer.serve_sockets(serve))
