"""Every login exports the same events over TLS, with tokens that expire in mid-stream.

    logins_proof.py --programs DIR --work DIR

For each login there is a simulator whose access tokens live for a few seconds, and which ends the streams
of two topics with an authentication error again and again. Files must equal the truth, and there must
not have been more logins than such errors. `check --connect` must name a right of the user that is too
wide. Then the service refuses each token for good, and after that
each login: both runs must end with 77, after three logins at most, with the service's words and no
secret. A hanging CLI ends with a run that is killed.

Prints one JSON line; exits 1 on any difference.
"""

import json
import os
import select
import signal
import stat
import subprocess
import threading

import harness  # and where the module `peer` is
import peer

ERRORS = 4  # of each stream
TOPICS = ["/data/OpportunityChangeEvent", "/data/AccountChangeEvent"]
SF = """#!/usr/bin/env python3
import json, os, ssl, sys, urllib.parse, urllib.request
form = {"grant_type": "client_credentials", "client_id": os.environ["SF_CLIENT_ID"],
        "client_secret": os.environ["SF_CLIENT_SECRET"]}
context = ssl.create_default_context(cafile=os.environ["PUBSUB_CA_FILE"])
url = os.environ["SF_LOGIN_URL"] + "/services/oauth2/token"
assert sys.argv[-2:] == ["--target-org", "prod"] and "--json" in sys.argv, sys.argv
try:
    with urllib.request.urlopen(url, urllib.parse.urlencode(form).encode(), context=context) as answer:
        token = json.load(answer)
except urllib.error.HTTPError as error:
    said = json.load(error)["error_description"]
    print(json.dumps({"status": 1, "name": "RefreshTokenAuthError", "message": said}))
    sys.exit(1)
if sys.argv[1:3] == ["org", "display"]:
    result = {"id": os.environ["SF_ORG_ID"], "instanceUrl": token["instance_url"],
              "accessToken": "[REDACTED] Use 'sf org auth show-access-token' to view"}
else:
    result = {"accessToken": token["access_token"]}
print(json.dumps({"status": 0, "result": result, "warnings": []}))
"""


def main():
    arguments = harness.arguments()
    work = arguments.work
    key = work + "/key.pem"
    subprocess.run(["openssl", "genpkey", "-quiet", "-algorithm", "RSA", "-out", key], check=True)
    os.chmod(key, 0o600)
    subprocess.run(
        ["openssl", "req", "-x509", "-new", "-key", key, "-out", work + "/key.crt", "-days", "2",
         "-subj", "/CN=pubsub-etl"], check=True)
    result = {}
    for name in ("client_credentials", "jwt_bearer", "refresh_token", "sf_cli"):
        result[name] = Proof(arguments.programs, work, name, key).prove()
    print(json.dumps(result))


class Proof(harness.Exporter):
    def __init__(self, programs, work, name, key):
        self.programs, self.name, self.key = programs, name, key
        self.work = work + "/" + name
        os.makedirs(self.work)
        self.certificate = work + "/key.crt"
        self.token = self.work + "/refresh-token"

    def auth(self):
        login = {"type": self.name, "login_url": "${SF_LOGIN_URL}", "client_id": "${SF_CLIENT_ID}"}
        if self.name == "client_credentials":
            return dict(login, client_secret="${SF_CLIENT_SECRET}")
        if self.name == "jwt_bearer":
            return dict(login, username="${SF_USERNAME}", private_key_file=self.key)
        if self.name == "refresh_token":
            return dict(
                login, client_secret="${SF_CLIENT_SECRET}", refresh_token_file=self.token)
        return {"type": "sf_cli", "target_org": "prod", "program": self.work + "/sf"}

    def prove(self):
        with harness.Simulator(
            self.programs, self.work, "--events", "1500", "--live-rate", "60", "--live-count", "1200",
            "--token-lifetime", "4", "--jwt-certificate", self.certificate, "--rotate-refresh-tokens",
            "--refresh-token", "quietquiet.first", "--existing", "20",
            "--user-permission", "ModifyAllData", "--topics", *TOPICS,
        ) as simulator:
            with open(self.token, "w", encoding="ascii") as file:
                file.write("quietquiet.first\n")
            os.chmod(self.token, 0o600)
            with open(self.work + "/sf", "w", encoding="ascii") as file:
                file.write(SF)
            os.chmod(self.work + "/sf", 0o700)
            document = harness.pipeline(self.name, TOPICS)
            document["source"]["org"]["auth"] = self.auth()
            super().__init__(self.programs + "/pubsub-etl", self.work + "/pipeline.json", simulator.environment)
            harness.write_json(self.path, document)
            return self.with_simulator(simulator)

    def with_simulator(self, simulator):
        for topic in TOPICS:
            simulator.fault(
                method="Subscribe", topic=topic, status=16, times=ERRORS, after_events=100,
                error_code="sfdc.platform.eventbus.grpc.service.auth.error",
                message="An authentication exception occurred.")
        with_total = self.spawn("run", "--follow")
        total = self.wait(
            with_total, lambda: simulator.get("stats")["published"] >= 2700 and simulator.get("stats")["published"],
            "the publishing of all events")
        with_total.send_signal(signal.SIGTERM)
        self.end(with_total, seconds=60)
        renewals = self.said().count("token renewed")
        self.end(self.spawn("run"))
        stats = simulator.get("stats")
        counts = harness.compare(simulator, self.work + "/out/" + self.name, TOPICS)
        # One is the token in the environment, and one the last run's. Streams share the others, so there
        # can be fewer than errors.
        per_login = 2 if self.name == "sf_cli" else 1
        logins = (stats["logins"] - 2) // per_login
        if not 1 <= renewals <= logins <= 2 * ERRORS + 1 or stats["faults"]:
            self.fail(
                "%d renewals, %d logins, %d errors left" % (renewals, logins, stats["faults"]))
        if self.name == "refresh_token":
            mode = stat.S_IMODE(os.stat(self.token).st_mode)
            with open(self.token, encoding="ascii") as file:
                if mode != 0o600 or not file.read().endswith(".rotated\n"):
                    self.fail("the token's file has mode %o" % mode)
        self.check()
        if self.name == "refresh_token":
            for number in (signal.SIGINT, signal.SIGTERM):
                self.interrupt_renewal(simulator, number)
        if self.name == "sf_cli":
            self.orphans()
        self.refuse(simulator)
        return {"events": total, "renewals": renewals, "logins": logins, "compared": counts}

    def interrupt_renewal(self, simulator, number):
        """A signal while the login service replaces the refresh token: it ends the command when the new one is
        stored, since nobody could log in with the old one."""
        asked, may_answer = threading.Event(), threading.Event()
        with open(self.token, encoding="ascii") as file:
            old = file.read().strip()

        class Handler(peer.Handler):
            def do_POST(self):
                self.body()
                asked.set()
                may_answer.wait(30)
                self.answer({"access_token": "001Dp00000JJkkH!x", "refresh_token": "quietquiet.replaced"})

        server = peer.serve_http(Handler)
        environment = dict(simulator.environment, SF_LOGIN_URL="http://127.0.0.1:%d" % server.server_port)
        check = self.spawn("check", "--connect", env=environment)
        if not asked.wait(30):
            self.fail("no login")
        check.send_signal(number)
        may_answer.set()
        self.end(check, (-number,), 30)
        server.shutdown()
        with open(self.token, "r+", encoding="ascii") as file:
            if file.read() != "quietquiet.replaced\n":
                self.fail("the new refresh token is lost")
            file.seek(0)
            file.truncate()
            file.write(old + "\n")

    def orphans(self):
        """The CLI hangs, and the run ends: the CLI ends with it, and so does what it has started."""
        fifo, program = self.work + "/started", self.work + "/sf"
        with open(program, encoding="ascii") as file:
            text = file.read()
        os.mkfifo(fifo)
        with open(program, "w", encoding="ascii") as file:
            file.write("#!/bin/sh\ntrap '' TERM HUP INT\nsleep 1000 &\necho $$ $! > '%s'\nwait\n" % fifo)
        for number in (signal.SIGKILL, signal.SIGTERM):
            run = self.spawn("run")
            with open(fifo, encoding="ascii") as file:
                watched = [os.pidfd_open(int(word)) for word in file.read().split()]
            run.send_signal(number)
            run.wait(60)
            for descriptor in watched:
                # Readable when the process has ended.
                if not select.select([descriptor], [], [], 60)[0]:
                    self.fail("the CLI is left after signal %d" % number)
                os.close(descriptor)
        with open(program, "w", encoding="ascii") as file:
            file.write(text)

    def check(self):
        said = self.call("check", "--connect").stdout
        if "rights: attention: the user has Modify All Data, which" not in said:
            self.fail("check says", said)

    def refuse(self, simulator):
        """The service refuses every token, and then every login."""
        for method, status, code, words in (
            ("Subscribe", 16, "sfdc.platform.eventbus.grpc.service.auth.error", "no such session"),
            ("Login", 400, "invalid_grant", "user is on holiday and inactive"),
        ):
            before = simulator.get("stats")["logins"]
            simulator.fault(
                method=method, status=status, error_code=code, message=words, times=1000)
            ended = harness.wait_for_end(self.spawn("run"))
            logins = simulator.get("stats")["logins"] - before
            simulator.forget_faults()
            said = self.said()
            secrets = [word for word in ("quietquiet", "simulator-secret", "!") if word in said]
            if ended != 77 or words not in said or secrets or logins > 6:
                self.fail("%s refused: ended with %d, %d logins" % (method, ended, logins))


main()
