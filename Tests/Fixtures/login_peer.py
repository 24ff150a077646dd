"""A token endpoint on a loopback port.

It knows the client `app` with the secret given as first argument. The path before
/services/oauth2/token chooses the answer: none for tokens (each login counts one up in its token),
/answer/<status>/-<percent-encoded body> for any other.
"""

import itertools
import sys
from urllib.parse import unquote

import peer

SECRET = sys.argv[1]
ENDPOINT = "/services/oauth2/token"
logins = itertools.count(1)


class Handler(peer.Handler):
    def date_time_string(self, timestamp=None):
        return "Sun, 06 Nov 1994 08:49:37 GMT"

    def do_POST(self):
        text = self.body()
        assert self.path.endswith(ENDPOINT)
        prefix = self.path[: -len(ENDPOINT)]
        if prefix:
            _, _, status, body = prefix.split("/", 3)
            return self.answer(unquote(body[1:]), int(status))
        form = peer.form(text)
        if form["grant_type"] != "client_credentials":
            return self.answer({"error": "unsupported_grant_type"}, 400)
        if form["client_id"] != "app" or form["client_secret"] != SECRET:
            # Repeats what it was sent, which must not reach a log.
            refusal = {"error": "invalid_client", "error_description": "not known: " + text.decode()}
            return self.answer(refusal, 400)
        self.answer({
            "access_token": "001Dp00000JJkkH!secret.%d_x" % next(logins),
            "instance_url": self.base,
            "id": "https://login.salesforce.com/id/00DXX0000000001AAA/005xx0000012345AAA",
            "token_type": "Bearer", "issued_at": "1700000000000", "signature": "c2ln"})


peer.run(peer.serve_http(Handler))
