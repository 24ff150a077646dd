"""Recorded events of one shape: what the service of benchmarks sends again and again, and what it should become."""

import io
import json
import os
import random
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
FIXTURES = os.path.join(HERE, "..", "Fixtures")
sys.path[:0] = [os.path.join(FIXTURES, "end-to-end"), FIXTURES, os.path.join(FIXTURES, "simulator")]

import fastavro
import numpy

import compare_truth
import harness
import other_events
import other_schemas
import pubsub_peer

TOPICS = {
    "opportunity": "/data/OpportunityChangeEvent",
    "account": "/data/AccountChangeEvent",
    "wide": "/data/ns__Wide__ChangeEvent",
    "platform": "/event/Order_Event__e",
}
EVENTS = 20000
# The service's; see service.cc.
FIRST_REPLAY = 0x5A9001


class Corpus:
    """The events, their schema, and the lines that they become, in the files of a directory.

    - options: of the simulator.
    - refused: the share of updates that no database can store."""

    def __init__(self, programs, work, shape, options=(), refused=0):
        self.shape, self.topic = shape, TOPICS[shape]
        self.events, self.schema = "%s/%s.events" % (work, shape), "%s/%s.schema.json" % (work, shape)
        payloads = []
        if shape == "wide":
            self.generate(payloads)
        else:
            self.record(programs, work, payloads, options)
        if refused:
            self.spoil(payloads, refused)
        with open(self.events, "wb") as file:
            for payload in payloads:
                file.write(len(payload).to_bytes(4, "little") + payload)
        self.payload_bytes = sum(map(len, payloads)) / EVENTS
        with open(self.schema, "w", encoding="utf-8") as file:
            file.write(self.schema_text)
        self.schemas = "%s/%s.schemas.json" % (work, shape)
        harness.write_json(self.schemas, {self.schema_id: self.schema_text})
        self.expected = compare_truth.Expected(compare_truth.schemas(self.schemas))

    def record(self, programs, work, payloads, more):
        """From the simulator, which publishes events of one schema without gaps."""
        options = ["--data", "random", "--extremes", "0", "--seed", "1", "--topics", self.topic]
        options += ["--gaps", "0", "--overflows", "0", "--wildcards", "0", "--subscribe-delay", "0", *more]
        with harness.Simulator(programs, work, *options) as simulator:
            simulator.post("schemas")
            simulator.publish(EVENTS, self.topic)
            client = pubsub_peer.connect(simulator.environment)
            for response in client.subscribe(self.topic):
                payloads += [each.event.payload for each in response.events]
                if len(payloads) == EVENTS:
                    break
            self.schema_id = response.events[-1].event.schema_id
            self.schema_text = client.get_schema(self.schema_id).schema_json
            self.truth = simulator.published()

    def generate(self, payloads):
        """An object of 400 fields, which no simulator has."""
        rng = random.Random(1)
        schema = other_schemas.Schema(other_schemas.wide(rng, 0), rng)
        self.schema_id, self.schema_text = schema.id, json.dumps(schema.document)
        publisher = other_events.Publisher(rng)
        # Noon: all files have one date.
        publisher.clock -= publisher.clock % 86_400_000 - 43_200_000
        self.truth = []
        while len(payloads) < EVENTS:
            header, values, kind, payload = publisher.encode(schema)
            # The bound knows changes only.
            if kind != "change" or header["changeType"].startswith("GAP"):
                continue
            payloads.append(payload)
            line = {"topic": self.topic, "schema_id": schema.id, "kind": kind, "entity": header["entityName"]}
            self.truth.append({**line, "header": header, "fields": values})

    def spoil(self, payloads, share):
        """Gives some updates a date in the year 9,136,000, which no database can store."""
        schema = fastavro.parse_schema(json.loads(self.schema_text))
        updates = [index for index, event in enumerate(self.truth) if event["header"]["changeType"] == "UPDATE"]
        for index in random.Random(1).sample(updates, round(share * EVENTS)):
            record = fastavro.schemaless_reader(io.BytesIO(payloads[index]), schema)
            record["CloseDate"] = self.truth[index]["fields"]["CloseDate"] = 2**58 // 86_400_000 * 86_400_000
            out = io.BytesIO()
            fastavro.schemaless_writer(out, schema, record)
            payloads[index] = out.getvalue()

    def write_truth(self, path, count):
        """So many events of the service in the form of the simulator's truth file."""
        with open(path, "w", encoding="utf-8") as file:
            for index, (replay, event) in enumerate(zip(replay_ids(0, count), event_ids(0, count))):
                line = {**self.truth[index % EVENTS], "replay_id": replay.decode(), "event_id": event.decode()}
                file.write(json.dumps(line) + "\n")

    def lines(self, index):
        """The lines of an event, without its own IDs."""
        event = {**self.truth[index], "replay_id": "", "event_id": ""}
        return self.expected.lines(event)


def replay_ids(first, count):
    """Of so many events of the service, as 20 hexadecimal digits each."""
    numbers = numpy.arange(FIRST_REPLAY + first, FIRST_REPLAY + first + count, dtype=">u8")
    digits = numbers.tobytes().hex()
    return [(digits[at : at + 16] + "0000").encode() for at in range(0, 16 * count, 16)]


def event_ids(first, count):
    """The UUIDs that the service computes from the positions."""
    with numpy.errstate(over="ignore"):
        value = numpy.arange(2 * first, 2 * (first + count), dtype=numpy.uint64)
        value += numpy.uint64(0x9E3779B97F4A7C15)
        value = (value ^ value >> numpy.uint64(30)) * numpy.uint64(0xBF58476D1CE4E5B9)
        value = (value ^ value >> numpy.uint64(27)) * numpy.uint64(0x94D049BB133111EB)
        value ^= value >> numpy.uint64(31)
    digits = value.astype(">u8").tobytes().hex()
    for at in range(0, 32 * count, 32):
        yield "-".join(
            digits[at + start : at + end] for start, end in ((0, 8), (8, 12), (12, 16), (16, 20), (20, 32))).encode()
