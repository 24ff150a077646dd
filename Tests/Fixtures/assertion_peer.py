"""A token endpoint on a loopback port that takes assertions, verified by PyJWT.

    assertion_peer.py PUBLIC_KEY SECONDS

Its clock is SECONDS ahead of this machine's, in the Date header too. It knows the client `app` and the
user `user@example.com`. Tokens count the requests, refused ones included.
"""

import sys
import time
from email.utils import formatdate

import jwt

import peer

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


class Handler(peer.Handler):
    def date_time_string(self, timestamp=None):
        return formatdate(time.time() + AHEAD, usegmt=True)

    def do_POST(self):
        global requests
        requests += 1
        text = self.body()
        form = peer.form(text)
        assert form["grant_type"] == "urn:ietf:params:oauth:grant-type:jwt-bearer"
        assert sorted(form) == ["assertion", "grant_type"]
        refused = refusal(form["assertion"], self.base)
        if refused:
            # Repeats what it was sent, which must not reach a log.
            answer = {"error": refused[0], "error_description": refused[1]}
            if refused[1] == "invalid assertion":
                answer["error_description"] += ": " + text.decode()
        else:
            answer = {
                "access_token": "001Dp00000JJkkH!secret.%d" % requests, "instance_url": self.base,
                "id": self.base + "/id/00DXX0000000001AAA/005xx0000012345AAA",
            }
        self.answer(answer, 400 if refused else 200)


peer.run(peer.serve_http(Handler))
