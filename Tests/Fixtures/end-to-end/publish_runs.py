"""A simulator for `publish_proof.py`, runs of `pubsub-etl publish` against it, and what is expected of their results."""

import collections
import json
import os
import random
import re
import subprocess
import sys

import harness

TOPIC = "/event/Order_Event__e"
USER = re.compile(r"^005[0-9A-Za-z]{12}([0-9A-Za-z]{3})?$")


def fail(*words):
    raise AssertionError(" ".join(str(word) for word in words)[:4000])


def events(count, seed=1):
    """Lines of events; every second has an ID of its own."""
    rng = random.Random(seed)
    lines = []
    for index in range(count):
        event = {
            "Order_Number__c": "N-%d" % index,
            "City__c": rng.choice([None, "R\u00f6m", "\u5317\u4eac \U0001f600", "a\"b\\c\n"]),
            "Amount__c": rng.choice([None, 0, -1.5, 1e300, 12345678.25]),
        }
        if event["City__c"] is None and rng.random() < 0.5:
            del event["City__c"]
        if index % 2:
            event["EventUuid"] = "%08x-0000-4000-8000-%012x" % (seed, index)
        if index % 5 == 0:
            event["CreatedDate"] = "2026-02-17T04:03:15.%03dZ" % (index % 1000)
            event["CreatedById"] = "005000000000001AAA"
        lines.append(event)
    return lines


def text_of(lines):
    return "".join(json.dumps(line, ensure_ascii=index % 2 == 0) + "\n" for index, line in enumerate(lines))


class Service:
    """A simulator with TLS, and the org file for it."""

    def __init__(self, arguments, name, *options):
        self.arguments = arguments
        self.work = "%s/%s" % (arguments.work, name)
        os.mkdir(self.work)
        self.simulator = harness.Simulator(arguments.programs, self.work, "--topics", TOPIC, *options)
        self.org = self.work + "/org.json"
        harness.write_json(self.org, harness.pipeline("p", [TOPIC])["source"]["org"])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.simulator.__exit__()

    def command(self, *options, topic=TOPIC, org=None):
        program = self.arguments.programs + "/pubsub-etl"
        return [program, "publish", "--org", org or self.org, "--topic", topic, *options]

    def start(self, *options, stdout=subprocess.PIPE, **more):
        return subprocess.Popen(
            self.command(*options, **more), env=self.simulator.environment, stdin=subprocess.PIPE,
            stdout=stdout, stderr=subprocess.PIPE)

    def publish(self, text, *options, code=0, **more):
        """The results of a whole run, and its standard error."""
        process = self.start(*options, **more)
        data = text if isinstance(text, bytes) else text.encode()
        output, errors = process.communicate(data, timeout=300)
        errors = errors.decode()
        if process.returncode != code:
            fail("ended with", process.returncode, "not", code, ":", errors, output[-1000:].decode())
        return [json.loads(line) for line in output.splitlines()], errors

    def fault(self, **fault):
        self.simulator.fault(**fault)

    def stats(self):
        return self.simulator.get("stats")

    def truth(self):
        return harness.read_lines(self.simulator.truth)

    def received(self, count):
        """The first events of the topic, as the independent client decodes them."""
        code = (
            "import json, os, sys\nsys.path.insert(0, %r)\nfrom pubsub_peer import *\n"
            "client = connect()\ncount = int(sys.argv[1])\n"
            "for response in client.subscribe(%r):\n"
            "  for event in response.events:\n"
            "    print(json.dumps([event.event.id, event.replay_id.hex(), event.event.schema_id,"
            " client.decode(event.event)]))\n"
            "    count -= 1\n"
            "  if count <= 0: os._exit(0) if sys.stdout.flush() is None else 0\n"
        ) % (os.path.join(os.path.dirname(harness.HERE), "simulator"), TOPIC)
        done = subprocess.run(
            [sys.executable, "-c", code, str(count)], env=self.simulator.environment, timeout=120,
            stdout=subprocess.PIPE, check=True)
        return [json.loads(line) for line in done.stdout.splitlines()]


def expect_equal(lines, results, received):
    """Everything was published, once, in order, with the values of the lines."""
    if [result["line"] for result in results] != list(range(1, len(lines) + 1)):
        fail("results are not those of the lines, in order")
    if any(result["status"] != "published" for result in results):
        fail("not published:", [r for r in results if r["status"] != "published"][:3])
    if len(received) != len(lines):
        fail(len(received), "events received, not", len(lines))
    for line, result, (event_id, replay, _, record) in zip(lines, results, received):
        if (result["id"], result["replay_id"]) != (event_id, replay):
            fail("result", result, "of the event", event_id, replay)
        if line.get("EventUuid", event_id) != event_id:
            fail("event", event_id, "has another ID than its line", line)
        for name in ("Order_Number__c", "City__c", "Amount__c"):
            if record[name] != line.get(name):
                fail(name, "is", record[name], "not", line.get(name))
        if not USER.match(record["CreatedById"]):
            fail("CreatedById", record["CreatedById"])
        if "CreatedDate" in line:
            if record["CreatedDate"] % 1000 != int(line["CreatedDate"][20:23]):
                fail("CreatedDate", record["CreatedDate"], line["CreatedDate"])
        elif not 1_700_000_000_000 < record["CreatedDate"] < 10_000_000_000_000:
            fail("CreatedDate", record["CreatedDate"])
    ids = [result["id"] for result in results]
    if len(set(ids)) != len(ids):
        fail("an ID was given twice")


def expect_account(service, results, unknown=()):
    """By the truth: what is published is there once, what is refused or not sent is not there."""
    found = collections.Counter(line["event_id"] for line in service.truth())
    for result in results:
        count = found[result["id"]]
        allowed = {"published": (1,), "refused": (0,), "not_sent": (0,), "unknown": (0, 1)}[result["status"]]
        if count not in allowed:
            fail("event", result, "is in the truth", count, "times")
    if sum(found.values()) != sum(found[result["id"]] for result in results):
        fail("the truth has events that no result tells of")


class Session:
    """A run whose input comes bit by bit."""

    def __init__(self, service, *options, **more):
        self.service = service
        self.process = service.start(*options, **more)
        self.results = []

    def feed(self, lines):
        self.process.stdin.write(text_of(lines).encode())
        self.process.stdin.flush()

    def read(self, count):
        for _ in range(count):
            line = self.process.stdout.readline()
            if not line:
                fail("the results end:", self.process.stderr.read().decode())
            self.results.append(json.loads(line))
        return self.results[-count:]

    def finish(self, code=0):
        self.process.stdin.close()
        self.results += [json.loads(line) for line in self.process.stdout]
        errors = self.process.stderr.read().decode()
        if self.process.wait(120) != code:
            fail("ended with", self.process.returncode, "not", code, errors)
        return errors
