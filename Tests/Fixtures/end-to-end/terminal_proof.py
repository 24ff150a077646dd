"""What the program says to people: nothing secret, nothing hostile, and enough.

    terminal_proof.py --programs DIR --work DIR

A login, a service and a database repeat what they were sent and try to steer the terminal, and secrets
stand in every place that may hold one: no command, report, record or log at any level holds a secret or
a control character. Failures to connect are told at once, and once; a followed run tells its steps; a
terminal shows why nothing comes and keeps what was done; a reset leaves a line in the journal. Prints one
JSON line; exits 1 at the first difference.
"""

import fcntl
import glob
import json
import os
import pty
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import termios

import grpc

import harness  # and where the module `peer` is
import peer

SECRET = "c4nary+Secret/1"
FILE_SECRET = "c4nary file secret 2"
TOKEN = "00D000000000001!c4nary.token.3"
PROXY_PASSWORD = "c4naryProxy4"
DATABASE_PASSWORD = "c4naryDb5"
# A password whose '@' was not written as %40, and what is left of it then.
BROKEN_URL = "postgresql://etl:top@c4naryBroken6@127.0.0.1:1/db"
STEERING = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e\r\nerror: forged line\x08\u2028"
# As bytes of UTF-8: escape, bell, backspace, return, C1, bidirectional override, line separator.
FORBIDDEN = ["\x1b", "\x07", "\x08", "\r", "\x9b", "\u202e", "\u2028"]
TOPIC = "/data/OpportunityChangeEvent"


class Login(peer.Handler):
    """Gives a token, or repeats the request in a refusal."""

    refuses = True

    def do_POST(self):
        body = self.body().decode()
        if Login.refuses:
            return self.answer({"error": "invalid_grant" + STEERING, "error_description": STEERING + body}, 400)
        self.answer({
            "access_token": TOKEN, "instance_url": self.base, "id": self.base + "/id/00D000000000001EAA/005000000000001AAA"})


class Service(grpc.GenericRpcHandler):
    """Refuses every call with what it was sent."""

    def service(self, call):
        def refuse(_, context):
            sent = " ".join("%s=%s" % pair for pair in context.invocation_metadata())
            # grpcio encodes what a header cannot hold; a peer may also send it as it is.
            context.abort(grpc.StatusCode.PERMISSION_DENIED, "no. " + STEERING + sent)

        if call.method.endswith("/Subscribe"):
            return grpc.stream_stream_rpc_method_handler(refuse)
        return grpc.unary_unary_rpc_method_handler(refuse)


def database(client):
    """Asks every client for its password and repeats it in each part of a refusal."""
    while True:
        (length,) = struct.unpack("!i", client.recv(4, socket.MSG_WAITALL))
        packet = client.recv(length - 4, socket.MSG_WAITALL)
        if packet[:4] not in (b"\x04\xd2\x16\x2f", b"\x04\xd2\x16\x30"):
            break
        client.sendall(b"N")
    client.sendall(b"R" + struct.pack("!ii", 8, 3))
    if client.recv(1) != b"p":
        return
    (length,) = struct.unpack("!i", client.recv(4, socket.MSG_WAITALL))
    password = client.recv(length - 4, socket.MSG_WAITALL).rstrip(b"\0")
    said = STEERING.encode() + b" password " + password + b" user c4naryRow7"
    fields = [b"SFATAL", b"VFATAL", b"C28P01", b"M" + STEERING.encode() + password,
              b"Drow is " + said + b"\nmore c4naryRow7", b"Htry " + said, b""]
    body = b"\0".join(fields) + b"\0"
    client.sendall(b"E" + struct.pack("!i", len(body) + 4) + body)


def require(condition, what):
    if not condition:
        sys.exit("not so: %s" % (what,))


class Screen:
    """What a terminal shows that obeys the few sequences which a run may use."""

    def __init__(self):
        self.lines, self.row, self.column, self.rest = [""], 0, 0, ""

    def show(self, part):
        text = self.rest + part.decode()
        self.rest = ""
        while text:
            piece = re.match("\r|\n|\x1b\\[K|\x1b\\[A|[^\r\n\x1b]+", text)
            if not piece:
                require(len(text) < 3, "the terminal gets %r" % text)
                self.rest = text
                return
            piece, text = piece[0], text[len(piece[0]):]
            line = self.lines[self.row]
            if piece == "\r":
                self.column = 0
            elif piece == "\n":
                self.row += 1
                if self.row == len(self.lines):
                    self.lines.append("")
            elif piece == "\x1b[K":
                self.lines[self.row] = line[:self.column]
            elif piece == "\x1b[A":
                self.row = max(0, self.row - 1)
            else:
                self.lines[self.row] = line[:self.column].ljust(self.column) + piece + line[self.column + len(piece):]
                self.column += len(piece)


class Proof:
    def __init__(self, programs, work):
        self.program, self.simulator = programs + "/pubsub-etl", programs + "/pubsub-simulator"
        self.work = work
        self.checked = 0

    def check(self, what, text):
        self.checked += 1
        for secret in ["c4nary", TOKEN]:
            position = text.find(secret)
            require(position < 0, "%s holds a secret: %r" % (what, text[max(0, position - 200):position + 60]))
        for character in FORBIDDEN:
            require(character not in text, "%s holds %r: %r" % (what, character, text[:2000]))
        require("\nerror: forged" not in text, "%s holds a forged line: %r" % (what, text))

    def call(self, environment, *words, codes=None):
        done = subprocess.run(
            [self.program, *words], env=environment, capture_output=True, timeout=120, stdin=subprocess.DEVNULL)
        output = done.stdout.decode("utf-8", "surrogateescape")
        errors = done.stderr.decode("utf-8", "surrogateescape")
        self.check("%s, standard output" % (words,), output)
        self.check("%s, standard error" % (words,), errors)
        if codes:
            require(done.returncode in codes, "%s ends with %d: %s%s" % (words, done.returncode, output, errors))
        return output, errors

    # Secrets and steering

    def hostile(self):
        login = peer.serve_http(Login)
        service, port = peer.serve_grpc(Service())
        database_port = peer.serve_sockets(database)
        environment = dict(os.environ)
        for name in ["no_proxy", "NO_PROXY"]:
            environment.pop(name, None)
        environment.update(
            SF_LOGIN_URL="http://127.0.0.1:%d" % login.server_port,
            PUBSUB_ENDPOINT="http://127.0.0.1:%d" % port, SF_CLIENT_ID="id", SF_CLIENT_SECRET=SECRET,
            DATABASE_URL="postgresql://etl:%s@127.0.0.1:%d/db" % (DATABASE_PASSWORD, database_port),
            https_proxy="http://me:%s@127.0.0.1:9" % PROXY_PASSWORD, BROKEN=BROKEN_URL, C="c4nary-in-variable")
        with open(self.work + "/secret", "w", encoding="utf-8") as file:
            file.write(FILE_SECRET + "\n")
        for index, (document, codes) in enumerate(self.documents()):
            path = "%s/hostile%d.json" % (self.work, index)
            harness.write_json(path, document)
            for refuses in ([True, False] if codes is None else [True]):
                Login.refuses = refuses
                self.every_command(environment, path, codes)
        for argument in [BROKEN_URL, "source.org.proxy=" + BROKEN_URL, "sinks.0.url=" + BROKEN_URL]:
            self.call(environment, "check", self.work + "/hostile0.json", "--set", argument, codes=[64])
        login.shutdown()
        service.stop(0)

    def documents(self):
        """Pipelines, with the exit codes of those whose file is refused."""
        def document(change=lambda _: None):
            result = harness.pipeline("hostile", [TOPIC])
            result["sinks"].append({"type": "postgres", "name": "db", "url": "${DATABASE_URL}"})
            change(result)
            return result

        def org(result):
            return result["source"]["org"]

        def file_secret(result):
            org(result)["auth"]["client_secret"] = "${file:secret}"

        def only_files(result):
            result["sinks"] = result["sinks"][:1]

        def only_database(result):
            result["sinks"] = result["sinks"][1:]

        def proxy(result):
            # The service is not on loopback by that name, so the proxy is asked.
            org(result)["proxy"] = {"url": "http://me:%s@127.0.0.1:9" % PROXY_PASSWORD}
            org(result)["endpoint"] = "https://pubsub.invalid:1"

        yield document(), None
        yield document(file_secret), None
        yield document(only_files), None
        yield document(only_database), None
        yield document(proxy), None
        for change in [
            lambda result: org(result).update(proxy="http://me:c4nary@proxy:1"),
            lambda result: org(result).update(proxy="${C}"),
            lambda result: org(result).update(endpoint="https://me:c4nary@host"),
            lambda result: org(result)["auth"].update(type="${C}"),
            lambda result: org(result)["auth"].update(login_url="https://me:c4nary@host"),
            lambda result: org(result)["auth"].update(client_secret="a${c4nary}b"),
            lambda result: result["sinks"][0].update(type="${C}"),
            lambda result: result["sinks"][1].update(url="${BROKEN}"),
            lambda result: result["sinks"][1].update(url=BROKEN_URL),
            lambda result: result["run"].update(until="${C}", fail_on=["${C}"]),
        ]:
            yield document(change), [78]

    def every_command(self, environment, path, codes):
        report = self.work + "/report.json"
        words = [
            ["check"], ["check", "--connect"], ["plan"], ["status"], ["status", "--json"],
            ["checkpoint", "show"], ["checkpoint", "show", "--json"],
            ["checkpoint", "set", "--topic", TOPIC, "--earliest", "--yes"],
            ["checkpoint", "restore", "--from-manifest", "--yes"], ["refold"],
            ["run", "--log-level", "trace", "--max-duration", "3s", "--report", report],
            ["run", "--log-level", "trace", "--log-format", "json", "--max-duration", "3s", "--report", "-"],
            ["status"], ["tail", "--last", "3"], ["tail", "--last", "3", "--sink", "db"],
        ]
        # What is refused for the file is refused by all alike.
        for command in words if codes is None else [words[0], words[10]]:
            leading = 2 if command[0] == "checkpoint" else 1
            self.call(environment, *command[:leading], path, *command[leading:], codes=codes)
        for file in [report, *glob.glob(self.work + "/state/*"), *glob.glob(self.work + "/state/.*")]:
            if os.path.isfile(file):
                with open(file, encoding="utf-8", errors="surrogateescape") as content:
                    self.check(file, content.read())

    # What is said

    def write(self, name, **changes):
        path = "%s/%s.json" % (self.work, name)
        harness.write_json(path, dict(harness.pipeline(name, [TOPIC]), **changes))
        return path

    def unreachable(self, environment):
        """One warning for a service, and for a login, that refuses connections; then silence."""
        path = self.write("unreachable")
        for variable, address in [
            ("PUBSUB_ENDPOINT", "http://127.0.0.1:1"), ("SF_LOGIN_URL", "http://127.0.0.1:1"),
        ]:
            process = subprocess.Popen(
                [self.program, "run", path, "--max-duration", "8s"], stderr=subprocess.PIPE, text=True,
                env=dict(environment, **{variable: address}))
            first = process.stderr.readline()
            require(process.poll() is None, "told before the end: " + first)
            require("warning: " in first and "127.0.0.1" in first, first)
            require(re.search(r"retrying in (1 s|\d{3} ms)", first), first)
            require("pipeline=unreachable" in first, first)
            if variable == "PUBSUB_ENDPOINT":
                rest = process.stderr.read()
                require(process.wait() == 75, rest)
                require("warning" not in rest and rest.count("\n") == 1, rest)
            else:
                process.terminate()
                require("warning" not in process.communicate()[1], "a second warning")

    def followed(self, environment):
        path = self.write("followed")
        process = subprocess.Popen(
            [self.program, "run", path, "--follow", "--log-format", "json"], stderr=subprocess.PIPE, text=True,
            env=environment)
        lines = []
        while not lines or lines[-1]["message"] != "committed":
            text = process.stderr.readline()
            require(text, "ended after %s" % lines)
            lines.append(json.loads(text))
        process.send_signal(signal.SIGTERM)
        lines += [json.loads(text) for text in process.stderr.read().splitlines()]
        require(process.wait() == 0, lines)
        said = [line["message"] for line in lines]
        for message in ["logged in", "connected", "subscribed", "committed", "stopping", "file finished", "finished"]:
            require(message in said, "%s in %s" % (message, said))
        for line in lines:
            require(line["pipeline"] == "followed" and line["level"] == "info", line)
        [subscribed] = [line for line in lines if line["message"] == "subscribed"]
        require((subscribed["topic"], subscribed["from"]) == (TOPIC, "earliest"), subscribed)
        debug = subprocess.run(
            [self.program, "run", path, "--log-level", "debug", "--log-format", "json"], env=environment,
            stderr=subprocess.PIPE, text=True, check=True).stderr.splitlines()
        debug = [json.loads(line) for line in debug]
        require([line["rule"] for line in debug if line["message"] == "caught up"], debug)
        [received] = [line for line in debug if line["message"] == "received"]
        require(int(received["responses_total"]) >= 0 and "pending_credit" in received, received)

    def on_terminal(self, environment, *words):
        """Exit code and all that standard error got, a terminal."""
        leader, follower = pty.openpty()
        process = subprocess.Popen([self.program, "run", *words], stderr=follower, env=environment)
        os.close(follower)
        text = b""
        while part := self.read(leader, text):
            text += part
        os.close(leader)
        return process.wait(), text.decode()

    def terminal(self, environment):
        environment = dict(environment, TERM="xterm")
        path = self.write("terminal")
        code, text = self.on_terminal(environment, path)
        last = text.replace("\r\n", "\n").split("\x1b[K")[-1]
        form = r"[\d,]+ events, \d+ files?, [\d.]+ [KMG]?i?B in [\d\w ]+; newest change .*\d\d:\d\d:\d\d\n"
        require(code == 0 and re.fullmatch(form, last), "%d: %r" % (code, last))
        require("lag" not in text and "logging in at" in text, text)
        code, text = self.on_terminal(environment, path)
        last = text.replace("\r\n", "\n").split("\x1b[K")[-1]
        require(code == 0 and re.fullmatch(r"no new events in [\d\w ]+\n", last), last)
        environment["PUBSUB_ENDPOINT"] = "http://127.0.0.1:1"
        code, text = self.on_terminal(environment, path, "--max-duration", "5s")
        require(code == 75 and re.search(r"cannot .*Connection refused; attempt 1, (next in 1 s|trying again)", text), text)
        require(re.search(r"attempt [23], next in ", text) and "0 events" not in text, text)
        require("warning" not in text, text)

    def interrupted(self, environment, columns):
        """The lines of a run, then, after Ctrl-C, nothing but the summary and the reason."""
        document = harness.pipeline("interrupted%d" % columns, [TOPIC])
        document["run"]["quiet"] = "5m"
        path = "%s/interrupted%d.json" % (self.work, columns)
        harness.write_json(path, document)
        leader, follower = pty.openpty()
        fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        process = subprocess.Popen(
            [self.program, "run", path], stderr=follower, env=dict(environment, TERM="xterm"))
        os.close(follower)
        screen, shown = Screen(), None
        awaited = "waiting for silence: 2 s of " if columns >= 80 else "2,000 events"
        try:
            while part := self.read(leader, screen.lines):
                screen.show(part)
                # What is read may be a part of what is drawn.
                topic, sink = (screen.lines + [""])[:2]
                if shown is None and awaited in topic and sink.endswith(" in progress" if columns >= 80 else "KiB"):
                    shown = list(screen.lines)
                    process.send_signal(signal.SIGINT)
            require(process.wait() == 75, screen.lines)
        finally:
            # It would wait for minutes, and whoever reads this proof's output for it.
            process.kill()
            process.wait()
            os.close(leader)
        require(shown and len(shown) == 2 and max(map(len, shown)) < columns, shown)
        require(shown[0].startswith("OpportunityChangeEvent  2,000 events"), shown)
        # Some events change several records.
        require(re.match(r"files                   2,\d{3} rows  [\d.]+ KiB", shown[1]), shown)
        summary, reason = screen.lines[:2]
        require(re.match(r"2,000 events, \d files?, [\d.]+ KiB in [\w ]+; newest change ", summary), screen.lines)
        require("stopped by a signal" in reason and not "".join(screen.lines[2:]), screen.lines)

    def status(self, environment):
        """The verdict has a color on a terminal that shows colors; --watch shows the status again until Ctrl-C."""
        path = self.write("status")
        self.call(environment, "run", path, codes=[0])

        def start(*words, **variables):
            leader, follower = pty.openpty()
            process = subprocess.Popen(
                [self.program, "status", path, *words], stdout=follower, env=dict(environment, **variables))
            os.close(follower)
            return process, leader

        def shown(**variables):
            process, leader = start(**variables)
            text = b""
            while part := self.read(leader, text):
                text += part
            os.close(leader)
            require(process.wait() == 0, text)
            return text.decode()

        colored = shown(TERM="xterm")
        green = "\x1b[32m"
        require(green in colored.split("\r\n")[0], colored)
        plain = re.sub("\x1b\\[[0-9]*m", "", colored)
        for variables in [{"TERM": "xterm", "NO_COLOR": "1"}, {"TERM": "dumb"}]:
            text = shown(**variables)
            require("\x1b" not in text and text.split("\r\n")[0] == plain.split("\r\n")[0], text)
        process, leader = start("--watch=1", TERM="xterm")
        text = b""
        try:
            while text.count(b"\x1b[H\x1b[J") < 3:
                text += self.read(leader, text)
            process.send_signal(signal.SIGINT)
            require(process.wait() == 130, text)
        finally:
            process.kill()
            process.wait()
            os.close(leader)
        [start_of_all, first, second] = text.decode().split("\x1b[H\x1b[J")[:3]
        require(not start_of_all and first.split("\r\n")[0] == second.split("\r\n")[0], text)
        _, errors = self.call(environment, "status", path, "--watch", codes=[64])
        require("--watch needs a terminal" in errors, errors)

    @staticmethod
    def read(leader, seen):
        """What has come to a terminal; nothing when its process has ended."""
        ready, _, _ = select.select([leader], [], [], 60)
        require(ready, "silent for a minute: %r" % (seen,))
        try:
            return os.read(leader, 4096)
        except OSError:
            return b""

    def reset(self, environment):
        path = self.write("reset")
        self.call(environment, "run", path, codes=[0])
        os.remove(self.work + "/state/reset.checkpoint.json")
        _, errors = self.call(environment, "run", path, codes=[65])
        require("--accept-reset" in errors, errors)
        journal = self.work + "/state/reset.journal.ndjson"
        require(not os.path.exists(journal), "nothing was changed by hand")
        self.call(environment, "run", path, "--accept-reset", codes=[0])
        with open(journal, encoding="utf-8") as lines:
            [line] = [json.loads(text) for text in lines]
        require((line["command"], line["topic"]) == ("run --accept-reset", TOPIC), line)
        require(line["old"] is None and line["new"]["epoch"] == 2, line)
        self.call(environment, "run", path, "--accept-reset", codes=[0])
        with open(journal, encoding="utf-8") as lines:
            require(len(list(lines)) == 1, "a needless --accept-reset is no change")

    def report(self, environment):
        path = self.write("report")
        link = self.work + "/link.json"
        os.symlink(self.work + "/victim", link)
        _, errors = self.call(environment, "run", path, "--report", link, codes=[74])
        require("symbolic link" in errors and not os.path.exists(self.work + "/victim"), errors)
        require(not os.path.exists(self.work + "/out/report"), "known before anything is exported")
        output, _ = self.call(environment, "run", path, "--report", "/dev/stdout", codes=[0])
        require(json.loads(output)["reason"] == "caught_up", output)
        require(os.path.exists("/dev/null") and not os.path.isfile("/dev/null"), "/dev/null")

    def simulator_files(self):
        """The simulator, too, follows no link and leaves special files in place."""
        victim, link = self.work + "/victim.env", self.work + "/link.env"
        os.symlink(victim, link)
        simulator = subprocess.run(
            [self.simulator, "--env", link], stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=60)
        require(simulator.returncode and "symbolic link" in simulator.stderr, simulator.stderr)
        require(not os.path.exists(victim) and os.path.islink(link), "the link was followed")
        os.remove(link)
        simulator = subprocess.Popen(
            [self.simulator, "--env", link, "--delivered", "/dev/stdout"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        require(simulator.stdout.readline().startswith(b"ready"), "the simulator is not ready")
        require(os.path.isfile(link), "the file was not written")
        simulator.send_signal(signal.SIGTERM)
        json.loads(simulator.communicate(timeout=60)[0])
        require(not glob.glob(link + ".*"), "a temporary file is left")


def main():
    arguments = harness.arguments()
    proof = Proof(arguments.programs, arguments.work)
    proof.hostile()
    proof.simulator_files()
    checked = proof.checked
    with harness.Simulator(arguments.programs, proof.work, "--events", "2000", "--topics", TOPIC) as simulator:
        environment = simulator.environment
        proof.report(environment)
        proof.reset(environment)
        proof.unreachable(environment)
        proof.followed(environment)
        proof.terminal(environment)
        proof.status(environment)
        for columns in [60, 80, 120]:
            proof.interrupted(environment, columns)
    print(json.dumps({"outputs_checked": checked}))


if __name__ == "__main__":
    main()
