"""The example packages, run against independent servers.

    examples_proof.py --programs DIR --examples DIR --work DIR

`subscribe` reads from the simulator, whose connection breaks and whose tokens stop working in between; what it
prints is compared with what was published. `avro-decode` decodes what fastavro has encoded. `grpc-over-tls` talks to
grpcio (C-core). Each program is built from at most 40 lines. Prints one JSON line; exits 1 at the first thing that
is wrong.
"""

import glob
import io
import json
import os
import subprocess
import sys

import fastavro

import harness

MAX_LINES = 40
ORDERS = "/event/Order_Event__e"
ACCOUNTS = "/data/AccountChangeEvent"
EVENTS = 300  # most of them are changes to accounts
FAULTS = [
    {"at": {"event": 40}, "what": "drop", "topic": ACCOUNTS},
    {"at": {"event": 80}, "what": "reset", "http2_code": 2, "topic": ACCOUNTS},
    {"at": {"event": 100}, "what": "service.auth.error", "times": 2, "topic": ACCOUNTS},
    {"at": {"call": 1}, "what": "service.unavailable", "method": "GetSchema"},
]

SCHEMA = {
    "type": "record",
    "name": "Reading",
    "fields": [
        {"name": "station", "type": "string"},
        {"name": "level", "type": ["null", "double"]},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "limits", "type": {"type": "map", "values": "long"}},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["DRY", "WET"]}},
        {"name": "previous", "type": ["null", "Reading"]},
    ],
}
READING = {
    "station": "Fluß „5“ \\ \u0007",
    "level": -0.125,
    "tags": ["a", ""],
    "limits": {"high": 2**62},
    "state": "WET",
    "previous": {
        "station": "", "level": None, "tags": [], "limits": {}, "state": "DRY", "previous": None},
}


def run(command, environment=None, given=b""):
    done = subprocess.run(
        command, env=environment, input=given, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def require(what, actual, expected):
    if actual != expected:
        sys.exit("%s: %r, expected %r" % (what, actual, expected))


def published(value):
    """What JSON has of published fields: neither nulls nor numbers that are not finite."""
    if isinstance(value, dict):
        kept = {key: published(item) for key, item in value.items()}
        return {key: item for key, item in kept.items() if item is not None}
    return None if value in ("NaN", "Infinity", "-Infinity") else value


class Proof:
    def __init__(self, arguments):
        self.programs = arguments.programs
        self.examples = arguments.examples
        self.work = arguments.work

    def lines(self):
        here = os.path.dirname(os.path.abspath(__file__))
        sources = glob.glob(here + "/../../Examples/*/Sources/*/*.swift")
        require("examples", len(sources), 3)
        for path in sources:
            with open(path, encoding="utf-8") as file:
                count = len(file.readlines())
            if count > MAX_LINES:
                sys.exit("%s has %d lines; at most %d are allowed" % (path, count, MAX_LINES))

    def subscribe(self):
        options = ["--events", str(EVENTS), "--topics", ORDERS + "," + ACCOUNTS, "--seed", "7"]
        with harness.Simulator(self.programs, self.work, *options) as simulator:
            environment = dict(simulator.environment, SCHEMA_DIRECTORY=self.work + "/schemas")
            for fault in FAULTS:
                self.post(simulator, fault)
            self.compare(simulator, environment, ORDERS)
            self.compare(simulator, environment, ACCOUNTS)
            asked = simulator.get("stats")["calls"]
            if asked["Subscribe"] < 6:
                sys.exit("the subscription was not interrupted: %r" % asked)
            simulator.post("tokens/revoke")
            self.compare(simulator, environment, ORDERS)
            require(
                "schemas that are in the directory, asked for again",
                simulator.get("stats")["calls"]["GetSchema"], asked["GetSchema"])
            environment["PUBSUB_CA_FILE"] = self.certificate()[0]
            code, output, errors = run(
                [self.examples + "/subscribe", ORDERS, "1"], environment)
            require("a server that is not trusted", (code, output), (69, ""))
            if "certificate" not in errors:
                sys.exit("a server that is not trusted: %r" % errors)

    def post(self, simulator, fault):
        subprocess.run(
            ["curl", "-sS", "--fail-with-body", "-X", "POST", "--data", json.dumps(fault),
             "-H", "X-Simulator-Secret: " + simulator.control_secret, simulator.control + "faults"],
            check=True, stdout=subprocess.DEVNULL)

    def compare(self, simulator, environment, topic):
        events = harness.read_lines(simulator.truth)
        expected = [published(event["fields"]) for event in events if event["topic"] == topic]
        code, output, errors = run(
            [self.examples + "/subscribe", topic, str(len(expected))], environment)
        require(topic, (code, errors), (0, ""))
        actual = [published(json.loads(line)) for line in output.split("\n")[:-1]]
        for event in actual:
            event.pop("ChangeEventHeader", None)
        require(topic + ": events", len(actual), len(expected))
        for index, (one, other) in enumerate(zip(actual, expected)):
            require("%s: event %d" % (topic, index), one, other)

    def decode(self):
        path = self.work + "/reading.avsc"
        harness.write_json(path, SCHEMA)
        datum = io.BytesIO()
        fastavro.schemaless_writer(datum, SCHEMA, READING)
        command = [self.examples + "/avro-decode", path]
        code, output, errors = run(command, given=datum.getvalue())
        require("avro-decode", (code, errors, json.loads(output)), (0, "", READING))
        code, output, errors = run(command, given=datum.getvalue()[:-1])
        require("avro-decode of a datum that is cut", (code, output), (65, ""))

    def certificate(self, name="server"):
        certificate, key = "%s/%s.pem" % (self.work, name), "%s/%s.key" % (self.work, name)
        if not os.path.exists(certificate):
            subprocess.run(
                ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
                 "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
                 "-keyout", key, "-out", certificate],
                check=True, stderr=subprocess.DEVNULL)
        return certificate, key

    def call(self):
        certificate, key = self.certificate()
        here = os.path.dirname(os.path.abspath(__file__))
        with subprocess.Popen(
                [sys.executable, here + "/../grpcio_peer.py", "--certificate", certificate,
                 "--key", key], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as peer:
            port = peer.stdout.readline().decode().strip()
            texts = ["one", "zwei ü", "x" * 100_000]
            command = [self.examples + "/grpc-over-tls", "localhost", port]
            code, output, errors = run(command + [certificate] + texts)
            require("grpc-over-tls", (code, output.splitlines(), errors), (0, texts, ""))
            code, output, errors = run(command + [self.certificate("other")[0], "one"])
            require("a server that is not trusted", (code, output), (69, ""))
            peer.stdin.close()


def main():
    proof = Proof(harness.arguments(examples=None))
    proof.lines()
    proof.decode()
    proof.call()
    proof.subscribe()
    print(json.dumps({"examples": 3, "events": EVENTS}))


main()
