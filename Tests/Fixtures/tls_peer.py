"""A server that TLS clients should not trust, or that does not trust them.

Usage: tls_peer.py CERTIFICATE KEY [VERSION | AUTHORITY]. VERSION: 1.1 for nothing newer. AUTHORITY: a
file; clients have to show a certificate of it. Prints its port; ends with the end of its standard input.
"""

import ssl
import sys

import peer


def serve(sock):
    while sock.recv(65536):
        pass


def main():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    # Keys and versions that OpenSSL itself would refuse by now.
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.set_alpn_protocols(["h2"])
    if sys.argv[3:] and sys.argv[3] != "1.1":
        context.load_verify_locations(sys.argv[3])
        context.verify_mode = ssl.CERT_REQUIRED
    elif sys.argv[3:]:
        context.minimum_version = ssl.TLSVersion.TLSv1
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.load_cert_chain(sys.argv[1], sys.argv[2])
    peer.announce(peer.serve_sockets(serve, context))


main()
