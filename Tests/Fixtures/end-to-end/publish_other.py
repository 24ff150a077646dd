"""An independent service for `publish_proof.py`, with its own code on grpcio and fastavro."""

import collections
import json
import os
import random
import subprocess

import harness
from publish_runs import TOPIC, fail, text_of


def random_value(rng, kind):
    kind = next(k for k in kind if k != "null") if isinstance(kind, list) else kind
    return {
        "string": lambda: rng.choice(["", "a", "\u00e9\u20ac\U0001f600", "x" * rng.randrange(3000)]),
        "boolean": lambda: rng.random() < 0.5,
        "int": lambda: rng.randint(-2**31, 2**31 - 1),
        "long": lambda: rng.randint(-2**63, 2**63 - 1),
        "double": lambda: rng.choice([0.1, -1e-300, 3.0, rng.random()]),
        "float": lambda: rng.randint(-100, 100) / 16,
    }[kind]()


class OtherService:
    """A service that shares nothing with the simulator, and lines for it."""

    def __init__(self, arguments, name, seed, *options):
        self.programs, self.work = arguments.programs, "%s/%s" % (arguments.work, name)
        os.mkdir(self.work)
        self.process = harness.start_service(
            "other_publish_service.py", "--work", self.work, "--seed", str(seed), *options)
        self.environment = harness.read_environment(self.work + "/env")
        # Fields of the first version are in all.
        self.fields = harness.read_json(self.work + "/schemas.json")[0]["fields"][2:]
        self.rng = random.Random(seed)
        self.lines = [self.line(index) for index in range(2500)]

    def line(self, index):
        line = {"EventUuid": "e-%d" % index}
        for field in self.fields:
            if "null" not in field["type"] or self.rng.random() < 0.7:
                line[field["name"]] = random_value(self.rng, field["type"])
        return line

    def publish(self, *options):
        """Exit code, results and standard error of a run; ends the service, and reads what it has stored."""
        harness.write_json(self.work + "/org.json", harness.pipeline("p", [TOPIC])["source"]["org"])
        command = [self.programs + "/pubsub-etl", "publish", "--org", self.work + "/org.json"]
        done = subprocess.run(
            command + ["--topic", TOPIC, *options], env=self.environment,
            input=text_of(self.lines).encode(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=500)
        self.process.communicate(b"")
        self.stored = harness.read_json(self.work + "/stored.json")
        return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr.decode()

    def expect_account(self, results):
        found = collections.defaultdict(list)
        for entry in self.stored:
            found[entry[0]].append(entry)
        for line, result in zip(self.lines, results):
            entries = found[line["EventUuid"]]
            allowed = {"published": (1,), "unknown": (0, 1)}.get(result["status"], (0,))
            if result["id"] != line["EventUuid"] or len(entries) not in allowed:
                fail(result, "stored", len(entries), "times")
            for _, replay, _, values in entries:
                if result["status"] == "published" and result["replay_id"] != replay:
                    fail(result, "has the replay ID", replay)
                for field in self.fields:
                    if values[field["name"]] != line.get(field["name"]):
                        fail(field, values[field["name"]], line.get(field["name"]))
