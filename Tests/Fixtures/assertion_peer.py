"""A token endpoint on a loopback port that takes assertions, verified by PyJWT.

    assertion_peer.py PUBLIC_KEY SECONDS

Its clock is SECONDS ahead of this machine's, in the Date header too. It knows the client `app` and the
user `user@example.com`. Tokens count the requests, refused ones included.
"""

import json
import os
import sys
import threading
import time
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs

import jwt

with open(sys.argv[1], encoding="ascii") as file:
    KEY = file.read()
AHEAD = int(sys.argv[2])
requests = 0


def refusal(assertion, audience):
    try:
        claims = jwt.decode(
            assertion, KEY, algorithms=["RS256"], audience=audience,
            options={"require": ["exp"], "verify_exp": False},
        )
    except jwt.InvalidAudienceError:
        return "invalid_grant", "audience is invalid"
    except jwt.InvalidTokenError:
        return "invalid_grant", "invalid assertion"
    now = time.time() + AHEAD
    if not now < claims["exp"] <= now + 181:
        return "invalid_grant", "assertion expired"
    if claims["iss"] != "app":
        return "invalid_client_id", "client identifier invalid"
    if claims["sub"] != "user@example.com":
        return "invalid_grant", "user hasn't approved this consumer"
    return None


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def date_time_string(self, timestamp=None):
        return formatdate(time.time() + AHEAD, usegmt=True)

    def do_POST(self):
        global requests
        requests += 1
        text = self.rfile.read(int(self.headers["Content-Length"])).decode()
        form = parse_qs(text, strict_parsing=True)
        assert form["grant_type"] == ["urn:ietf:params:oauth:grant-type:jwt-bearer"]
        assert sorted(form) == ["assertion", "grant_type"]
        host = "http://127.0.0.1:%d" % server.server_address[1]
        refused = refusal(form["assertion"][0], host)
        if refused:
            # Repeats what it was sent, which must not reach a log.
            answer = {"error": refused[0], "error_description": refused[1]}
            if refused[1] == "invalid assertion":
                answer["error_description"] += ": " + text
        else:
            answer = {
                "access_token": "001Dp00000JJkkH!secret.%d" % requests, "instance_url": host,
                "id": host + "/id/00DXX0000000001AAA/005xx0000012345AAA",
            }
        body = json.dumps(answer).encode()
        self.send_response(400 if refused else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.stdin.read()
os._exit(0)
