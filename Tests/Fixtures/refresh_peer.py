"""A token endpoint on a loopback port that takes refresh tokens, and replaces them.

    refresh_peer.py TOKEN rotate|keep|incomplete [SECRET]

Each token works once with `rotate`: the answer has the next one, `next-1`, `next-2` and so on.
With `incomplete` likewise, and the first answer has nothing else of use.
"""

import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs

current = sys.argv[1]
ROTATES = sys.argv[2] != "keep"
INCOMPLETE = sys.argv[2] == "incomplete"
SECRET = sys.argv[3] if len(sys.argv) > 3 else None
lock = threading.Lock()
count = 0


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def do_POST(self):
        global current, count
        text = self.rfile.read(int(self.headers["Content-Length"])).decode()
        form = {name: values[0] for name, values in parse_qs(text, strict_parsing=True).items()}
        assert form.pop("grant_type") == "refresh_token" and form.pop("client_id") == "app"
        assert form.pop("client_secret", None) == SECRET
        token = form.pop("refresh_token")
        assert not form
        with lock:
            accepted = token == current
            count += accepted
            if accepted and ROTATES:
                current = "next-%d" % count
            answer = {
                "access_token": "001Dp00000JJkkH!secret.%d" % count,
                "instance_url": "http://127.0.0.1:%d" % server.server_address[1],
            }
            if ROTATES:
                answer["refresh_token"] = current
            if INCOMPLETE and count == 1:
                del answer["instance_url"]
        if not accepted:
            # Repeats what it was sent, which must not reach a log.
            answer = {
                "error": "invalid_grant", "error_description": "expired access/refresh token " + token,
            }
        body = json.dumps(answer).encode()
        self.send_response(200 if accepted else 400)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.stdin.read()
os._exit(0)
