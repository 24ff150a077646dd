"""An object store that misbehaves, on a loopback port. Signatures are not checked. The first part of a key, or of the
prefix of a listing, says how:

error/STATUS/CODE[/WHAT]  that error; WHAT adds a header or an element, see ERRORS
lost/…                    PUT: stores the object and closes the connection without an answer, the first time
busy/COUNT/…              503 for the first COUNT calls, the second one with Retry-After
other/…                   PUT: 412; HEAD: an object of another writer
gone/…                    PUT: 412; HEAD: 404
early/…                   PUT: 403 and the end of the connection before the body is read
silent/…                  PUT: reads the body and never answers
cut/…                     GET: fewer bytes than announced
changed/…                 GET: other bytes than those of the digest
endless/…                 GET: no length, then bytes until the client is gone
range/…                   GET: the complete object, whatever the range
completion/WHAT           POST: 200 with error InternalError, NoSuchUpload, nothing, or half a document
renewal/…                 GET: only the access key NEW has not expired
list: html, cut, huge, deep, entities, loop, foreign, earlier, endless

/credentials              of containers: 401 unless the header Authorization is "container-token"
/sts                      of web identities: for the token "web-token" only
/calls                    how many calls each key had, as JSON
"""

import hashlib
import json
import sys
import time
import urllib.parse

import peer

objects, calls = {}, {}
credentials = []

ERRORS = {
    "region": ({"x-amz-bucket-region": "eu-west-1"}, ""),
    "body-region": ({}, "<Region>eu-west-3</Region>"),
    "endpoint": ({}, "<Endpoint>exports.s3-us-west-2.amazonaws.com</Endpoint>"),
    "pause": ({"Retry-After": "7"}, ""),
    "skew": ({"Date": "Mon, 01 Jan 2024 00:00:00 GMT"}, ""),
}


def expiration(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + seconds))


class Handler(peer.Handler):
    def send_response(self, status, message=None):
        # Without a Date of its own, so that a test may choose one.
        self.send_response_only(status, message)

    def parsed(self):
        url = urllib.parse.urlsplit(self.path)
        self.query = dict(urllib.parse.parse_qsl(url.query, keep_blank_values=True))
        parts = urllib.parse.unquote(url.path).split("/", 2)
        self.key = parts[2] if len(parts) > 2 else ""
        calls[self.key] = calls.get(self.key, 0) + 1
        return self.key.split("/")

    def is_busy(self, parts):
        if parts[0] != "busy" or calls[self.key] > int(parts[1]):
            return False
        self.error(503, "SlowDown", [("Retry-After", "7")] if calls[self.key] == 2 else [])
        return True

    def close(self):
        self.close_connection = True

    def error(self, status, code, headers=(), more="", message="some text"):
        body = "<Error><Code>%s</Code><Message>%s</Message>%s</Error>" % (code, message, more)
        self.answer(body if self.command != "HEAD" else "", status, list(headers))

    def listed_error(self, parts):
        headers, more = ERRORS.get("".join(parts[3:4]), ({}, ""))
        # What a store should not repeat.
        message = "token %s" % self.headers.get("x-amz-security-token", "none")
        self.error(int(parts[1]), parts[2], headers.items(), more, message)

    def do_PUT(self):
        parts = self.parsed()
        if parts[0] == "early":
            self.error(403, "AccessDenied", [("Connection", "close")])
            return self.close()
        body = self.body()
        if self.is_busy(parts):
            return
        if parts[0] == "error":
            return self.listed_error(parts)
        if parts[0] == "silent":
            import threading
            threading.Event().wait()
        if parts[0] in ("other", "gone") or self.key in objects:
            return self.error(412, "PreconditionFailed")
        objects[self.key] = body, self.headers.get("x-amz-meta-sha256", "")
        if parts[0] == "lost":
            return self.close()
        self.answer("", 200, [("ETag", '"tag"')])

    def do_HEAD(self):
        parts = self.parsed()
        if self.is_busy(parts):
            return
        if parts[0] == "error":
            return self.listed_error(parts)
        if parts[0] == "other":
            objects[self.key] = b"other", hashlib.sha256(b"other").hexdigest()
        if self.key not in objects:
            return self.head(404, [("Content-Length", "0")])
        body, digest = objects[self.key]
        self.head(200, [("Content-Length", str(len(body))), ("x-amz-meta-sha256", digest)])

    def do_DELETE(self):
        parts = self.parsed()
        self.listed_error(parts) if parts[0] == "error" else self.answer("", 204)

    def do_POST(self):
        if self.path.startswith("/sts"):
            return self.sts(peer.form(self.body()))
        parts = self.parsed()
        self.body()
        if parts[0] == "completion":
            bodies = {
                "InternalError": "<Error><Code>InternalError</Code><Message>try again</Message></Error>",
                "NoSuchUpload": "<Error><Code>NoSuchUpload</Code><Message>gone</Message></Error>",
                "nothing": "   ",
                "half": "<?xml version='1.0'?><CompleteMultipartUploadResult><Key>x</Key>",
            }
            return self.answer(bodies[parts[1]])
        self.listed_error(parts)

    def do_GET(self):
        if self.path == "/calls":
            return self.answer(calls)
        if self.path == "/credentials":
            return self.container()
        parts = self.parsed()
        if not self.key:
            return self.listing(self.query["prefix"].split("/")[0])
        body = b"0123456789"
        digest = ("x-amz-meta-sha256", hashlib.sha256(body).hexdigest())
        if parts[0] == "error":
            self.listed_error(parts)
        elif parts[0] == "cut":
            self.head(200, [("Content-Length", "20"), digest])
            self.wfile.write(body)
            self.close()
        elif parts[0] == "changed":
            self.answer(b"0123456780", 200, [digest])
        elif parts[0] == "range":
            self.answer(body, 200, [digest])
        elif parts[0] == "endless":
            self.head(200, [("Content-Length", str(1 << 40))])
            try:
                while True:
                    self.wfile.write(b"x" * 65536)
            except OSError:
                self.close()
        elif parts[0] == "renewal":
            if "Credential=NEW/" in self.headers["Authorization"]:
                self.answer(body, 200, [digest])
            else:
                self.error(400, "ExpiredToken")
        else:
            self.error(404, "NoSuchKey")

    def listing(self, how):
        def page(contents, more=""):
            return "<ListBucketResult>%s%s</ListBucketResult>" % (contents, more)

        def entry(key):
            return "<Contents><Key>%s</Key><Size>1</Size></Contents>" % key

        truncated = "<IsTruncated>true</IsTruncated>"
        answers = {
            "html": lambda: "<html><body>Maintenance</body></html>",
            "cut": lambda: page(entry("cut/1"))[:-10],
            "huge": lambda: page(entry("huge/1") * 300_000),
            "deep": lambda: "<a>" * 10_000 + "</a>" * 10_000,
            "entities": lambda: '<!DOCTYPE x [<!ENTITY a "b">]>' + page(entry("entities/&a;")),
            "loop": lambda: page(entry("loop/1"), truncated + "<NextContinuationToken>same</NextContinuationToken>"),
            "endless": lambda: page(entry("endless/1"), truncated),
            "foreign": lambda: page(entry("elsewhere/1")),
            "earlier": lambda: page(entry("earlier/1")),
        }
        self.answer(answers[how]())

    def container(self):
        if self.headers.get("Authorization") != "container-token":
            return self.answer({"Code": "Denied", "Message": "not " + self.headers.get("Authorization", "")}, 401)
        credentials.append(self.path)
        self.answer({
            "AccessKeyId": "CONTAINER%d" % len(credentials), "SecretAccessKey": "secret", "Token": "token",
            "Expiration": expiration(120 if len(credentials) == 1 else 3600)})

    def sts(self, form):
        if form["WebIdentityToken"] != "web-token":
            error = "<Error><Type>Sender</Type><Code>ExpiredTokenException</Code><Message>%s</Message></Error>"
            return self.answer("<ErrorResponse>%s</ErrorResponse>" % (error % form["WebIdentityToken"]), 400)
        values = {"AccessKeyId": "WEB-" + form["RoleSessionName"], "SecretAccessKey": "secret", "SessionToken": "session",
                  "Expiration": expiration(3600)}
        text = "".join("<%s>%s</%s>" % (name, value, name) for name, value in values.items())
        name = "AssumeRoleWithWebIdentity"
        self.answer('<{0}Response xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><{0}Result><Credentials>{1}'
                    "</Credentials></{0}Result></{0}Response>".format(name, text))


peer.run(peer.serve_http(Handler))
