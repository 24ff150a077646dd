"""A token endpoint on a loopback port that takes refresh tokens, and replaces them.

    refresh_peer.py TOKEN rotate|keep|incomplete [SECRET]

Each token works once with `rotate`: the answer has the next one, `next-1`, `next-2` and so on.
With `incomplete` likewise, and the first answer has nothing else of use.
"""

import sys
import threading

import peer

current = sys.argv[1]
ROTATES = sys.argv[2] != "keep"
INCOMPLETE = sys.argv[2] == "incomplete"
SECRET = sys.argv[3] if len(sys.argv) > 3 else None
lock = threading.Lock()
count = 0


class Handler(peer.Handler):
    def do_POST(self):
        global current, count
        form = peer.form(self.body())
        assert form.pop("grant_type") == "refresh_token" and form.pop("client_id") == "app"
        assert form.pop("client_secret", None) == SECRET
        token = form.pop("refresh_token")
        assert not form
        with lock:
            accepted = token == current
            count += accepted
            if accepted and ROTATES:
                current = "next-%d" % count
            answer = {"access_token": "001Dp00000JJkkH!secret.%d" % count, "instance_url": self.base}
            if ROTATES:
                answer["refresh_token"] = current
            if INCOMPLETE and count == 1:
                del answer["instance_url"]
        if not accepted:
            # Repeats what it was sent, which must not reach a log.
            answer = {
                "error": "invalid_grant", "error_description": "expired access/refresh token " + token,
            }
        self.answer(answer, 200 if accepted else 400)


peer.run(peer.serve_http(Handler))
