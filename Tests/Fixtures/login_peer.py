"""A token endpoint on a loopback port.

It knows the client `app` with the secret given as first argument. The path before
/services/oauth2/token chooses the answer: none for tokens (each login counts one up in its token),
/answer/<status>/-<percent-encoded body> for any other.
"""

import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote

SECRET = sys.argv[1]
ENDPOINT = "/services/oauth2/token"
counter = threading.Lock()
logins = 0


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def date_time_string(self, timestamp=None):
        return "Sun, 06 Nov 1994 08:49:37 GMT"

    def answer(self, status, body):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def do_POST(self):
        global logins
        text = self.rfile.read(int(self.headers["Content-Length"])).decode()
        assert self.path.endswith(ENDPOINT)
        prefix = self.path[: -len(ENDPOINT)]
        if prefix:
            _, _, status, body = prefix.split("/", 3)
            return self.answer(int(status), unquote(body[1:]))
        form = parse_qs(text, strict_parsing=True)
        if form["grant_type"] != ["client_credentials"]:
            return self.answer(400, json.dumps({"error": "unsupported_grant_type"}))
        if form["client_id"] != ["app"] or form["client_secret"] != [SECRET]:
            # Repeats what it was sent, which must not reach a log.
            refusal = {"error": "invalid_client", "error_description": "not known: " + text}
            return self.answer(400, json.dumps(refusal))
        with counter:
            logins += 1
            number = logins
        host = "http://127.0.0.1:%d" % server.server_address[1]
        self.answer(200, json.dumps({
            "access_token": "001Dp00000JJkkH!secret.%d_x" % number,
            "instance_url": host,
            "id": "https://login.salesforce.com/id/00DXX0000000001AAA/005xx0000012345AAA",
            "token_type": "Bearer", "issued_at": "1700000000000", "signature": "c2ln"}))


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.stdin.read()
os._exit(0)
