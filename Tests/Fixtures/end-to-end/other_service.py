"""Another implementation of the service: grpcio's C-core, fastavro, messages encoded by hand.

Written from the contract pages and with nothing of the simulator. What the pages leave to a server
it does in as many ways as there are: responses of any size, fields in any order, split and unknown
ones, replay IDs without an order, groups of equal IDs over several responses, streams that end,
schemas and topics that are not there for a moment, tokens that end, events sent again.

    other_service.py --seed N --events N --work DIR [--calm]

Publishes N events of each topic, writes truth.ndjson, schemas.json and env into DIR, then says
"ready". Ends with its standard input and prints what it has delivered. --calm: no failures.
"""

import argparse
import base64
import hashlib
import http.server
import io
import json
import os
import random
import sys
import threading
import time
import urllib.parse
import uuid
from concurrent import futures

import fastavro
import fastavro.schema
import grpc

TYPES = ["CREATE", "UPDATE", "DELETE", "UNDELETE", "GAP_CREATE", "GAP_UPDATE", "GAP_DELETE"]
TYPES += ["GAP_UNDELETE", "GAP_OVERFLOW"]
CODE = "sfdc.platform.eventbus.grpc."


# Messages, by hand.


class Encoder:
    """Fields of protobuf messages, in forms that a reader has to take."""

    def __init__(self, rng, odd):
        self.rng, self.odd = rng, odd

    def maybe(self, chance):
        return self.odd and self.rng.random() < chance

    def varint(self, number, padded=False):
        number &= (1 << 64) - 1
        out = bytearray()
        while number > 127:
            out.append(number & 127 | 128)
            number >>= 7
        out.append(number)
        if padded and len(out) < 5:
            out[-1] |= 128
            out += b"\x80" * (4 - len(out)) + b"\x00"
        return bytes(out)

    def bytes(self, number, value):
        if isinstance(value, str):
            value = value.encode()
        tag = self.varint(number << 3 | 2, self.maybe(0.02))
        return tag + self.varint(len(value), self.maybe(0.05)) + value

    def int(self, number, value):
        return self.varint(number << 3) + self.varint(value, self.maybe(0.1))

    def unknown(self):
        kind = self.rng.randrange(5)
        number = self.rng.choice([15, 16, 1000, 536870911])
        if kind == 0:
            return self.int(number, self.rng.getrandbits(63))
        if kind == 1:
            return self.bytes(number, self.rng.randbytes(self.rng.randrange(200)))
        if kind == 2:
            return self.varint(number << 3 | 5) + self.rng.randbytes(4)
        if kind == 3:
            return self.varint(number << 3 | 1) + self.rng.randbytes(8)
        inner = self.bytes(1, b"in a group") + self.int(2, 7)
        return self.varint(number << 3 | 3) + inner + self.varint(number << 3 | 4)

    def message(self, *parts):
        parts = [p for p in parts if p]
        if self.maybe(0.3):
            parts.append(self.unknown())
        if self.maybe(0.3):
            self.rng.shuffle(parts)
        return b"".join(parts)

    def event(self, event):
        head = self.bytes(1, event["id"]) + self.bytes(2, event["schema"])
        payload = self.bytes(3, event["payload"])
        if self.maybe(0.1):
            head += self.bytes(4, self.bytes(1, "key") + self.bytes(2, b"\x00\xff"))
        if self.maybe(0.1):
            head = self.bytes(2, "overwritten by the last") + head
        if self.maybe(0.1):  # a message that comes twice is merged
            whole = self.bytes(1, head) + self.bytes(1, payload)
        else:
            whole = self.bytes(1, self.message(head, payload))
        return self.message(whole, self.bytes(2, event["replay"]))

    def response(self, events, latest, pending):
        body = b"".join(self.bytes(1, self.event(e)) for e in events)
        credit = self.int(4, pending) if pending or self.maybe(0.5) else b""
        return self.message(body, self.bytes(2, latest), self.bytes(3, str(uuid.uuid4())), credit)


def read(data):
    """Number and value of each field of a message."""
    stream = io.BytesIO(data)

    def varint():
        value = shift = 0
        while True:
            byte = stream.read(1)[0]
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    fields = {}
    while stream.tell() < len(data):
        tag = varint()
        fields[tag >> 3] = varint() if tag & 7 == 0 else stream.read(varint())
    return fields


# Schemas and events.


def field(name, avro, doc=None):
    whole = {"name": name, "type": ["null"] + (avro if isinstance(avro, list) else [avro])}
    whole["default"] = None
    if doc:
        whole["doc"] = doc
    return whole


def strings():
    return {"type": "array", "items": "string"}


def header(symbols):
    fields = [
        ("entityName", "string"),
        ("recordIds", strings()),
        ("changeType", {"type": "enum", "name": "ChangeType", "symbols": symbols}),
        ("changeOrigin", "string"),
        ("transactionKey", "string"),
        ("sequenceNumber", "int"),
        ("commitTimestamp", "long"),
        ("commitNumber", "long"),
        ("commitUser", "string"),
        ("nulledFields", strings()),
        ("diffFields", strings()),
        ("changedFields", strings()),
    ]
    record = {"type": "record", "name": "ChangeEventHeader"}
    record["fields"] = [{"name": n, "type": t} for n, t in fields]
    return {"name": "ChangeEventHeader", "type": record, "doc": "Data:ComplexValueType"}


def record(name, *children):
    whole = {"type": "record", "name": name}
    whole["fields"] = [field(n, t) for n, t in children]
    return whole


def address(extra):
    names = ["Street", "City", "State", "PostalCode", "Country", "StateCode", "CountryCode"]
    children = [(n, "string") for n in names] + [("Latitude", "double"), ("Longitude", "double")]
    children += [("Xyz", "string")] if extra else []
    return record("Address", *children, ("GeocodeAccuracy", "string"))


SCALARS = [
    ("string", "Data:Text:00NgL00000vXMFS"),
    ("string", "Data:StringPlusClob"),
    ("string", "Data:DynamicEnum"),
    ("string", "ForeignKey:EntityId"),
    ("double", "Data:Currency"),
    ("double", "Data:Percent"),
    ("double", "Data:Double:00NgL00000vXNVG"),
    ("boolean", "Data:Boolean"),
    ("int", "Data:Integer"),
    ("long", "Data:DateTime"),
    ("long", "Data:DateOnly"),
    ("long", "Data:TimeOnly"),
]


def contact(rng, version):
    name = record("PersonName", *((n, "string") for n in ["Salutation", "FirstName", "LastName"]))
    fields = [
        header(TYPES + ["SNAPSHOT"]),
        field("AccountId", "string", "ForeignKey:EntityId"),
        field("IsPersonAccount", "boolean", "Data:Boolean"),
        field("Name", name, "Data:PersonName"),
        field("OtherAddress", address(False), "Data:Address"),
        field("MailingAddress", "Address", "Data:Address"),
        field("Phone", "string", "Data:Phone"),
        field("Birthdate", "long", "Data:DateOnly"),
        field("CreatedDate", "long", "CreatedDate:DateTime"),
        field("LastModifiedDate", "long", "Data:DateTime"),
        field("BuyerAttributes", "string", "Data:MultiEnum"),
    ]
    fields += [field("Later%d__c" % i, *rng.choice(SCALARS)) for i in range(version * 3)]
    return change("ContactChangeEvent", fields)


def account(rng, version):
    names = ["Salutation", "FirstName", "LastName", "MiddleName", "InformalName", "Suffix"]
    name = record("Switchable_PersonName", *((n, "string") for n in names))
    fields = [
        header(TYPES),
        field("Name", ["string", name], "Data:Switchable_PersonName"),
        field("BillingAddress", address(True), "Data:Address"),
        field("ShippingAddress", "Address", "Data:Address"),
        field("AnnualRevenue", "double", "Data:Currency"),
        field("NumberOfEmployees", "int", "Data:Integer"),
        field("LastModifiedDate", "long", "Data:DateTime"),
    ]
    fields += [field("Custom%d__c" % i, *rng.choice(SCALARS)) for i in range(60 + version)]
    return change("AccountChangeEvent", fields)


def wide(rng, version):
    where = record("Location", ("Latitude", "double"), ("Longitude", "double"))
    fields = [header(TYPES + ["SNAPSHOT", "GAP_RENAME"]), field("Where__c", where, "Data:Location:00N000000000001")]
    fields += [field("Also__c", "Location", "Data:Location:00N000000000002")]
    fields += [field("F%03d__c" % i, *rng.choice(SCALARS)) for i in range(400 + version * 8)]
    return change("ns__Wide__ChangeEvent", fields)


def change(name, fields):
    whole = {"type": "record", "name": name, "namespace": "com.sforce.eventbus"}
    whole["fields"] = fields
    return whole


def order(rng, version):
    fields = [
        {"name": "CreatedDate", "type": "long", "doc": "CreatedDate:DateTime"},
        {"name": "CreatedById", "type": "string", "doc": "CreatedBy:EntityId"},
    ]
    fields += [field("F%d__c" % i, *rng.choice(SCALARS)) for i in range(3 + version)]
    return change("Order_Event__e", fields)


class Schema:
    def __init__(self, document, rng):
        self.document = document
        spaces = rng.choice([None, 1])  # the service's are on one line; a reader must not care
        self.text = json.dumps(document, indent=spaces)
        canonical = fastavro.schema.to_parsing_canonical_form(document)
        digest = hashlib.md5(canonical.encode()).digest()
        self.id = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        self.parsed = fastavro.parse_schema(json.loads(self.text))
        self.records = {}
        for each in document["fields"]:
            for branch in each["type"] if isinstance(each["type"], list) else []:
                if isinstance(branch, dict):
                    self.records[branch["name"]] = branch
        self.is_change = document["fields"][0]["name"] == "ChangeEventHeader"

    def shape(self, index):
        """Scalar type or nil, children or nil, and the Salesforce type of a field."""
        each = self.document["fields"][index]
        branches = each["type"] if isinstance(each["type"], list) else [each["type"]]
        scalar = children = None
        for branch in branches:
            name = branch["name"] if isinstance(branch, dict) else branch
            if name in self.records:
                children = [(c["name"], c["type"][1]) for c in self.records[name]["fields"]]
            elif name != "null":
                scalar = name
        return scalar, children, each.get("doc", ":").split(":")[1]


TEXTS = ["", "x", "Zo\u00eb \U0001f98b", "a \"quoted\"\\\n\ttext", "\u2028\u0001\u007f", "0" * 3000, "null"]

# Of a text nobody has had.
DIFF = "--- \n+++ %s\n@@ -1 +1 @@\n-old\n+new"


class Values:
    def __init__(self, rng):
        self.rng = rng

    def scalar(self, avro, doc):
        rng = self.rng
        if avro == "string":
            return rng.choice(TEXTS[:5] * 4 + TEXTS)
        if avro == "double":
            return rng.choice([0.0, -0.0, 0.1, 1e21, 5e-324, -1.5, float(rng.getrandbits(53)), rng.uniform(-1e6, 1e6)])
        if avro == "boolean":
            return rng.random() < 0.5
        if avro == "int":
            return rng.choice([0, -(2**31), 2**31 - 1, rng.randint(-999, 999)])
        if doc in ("DateOnly", "Birthday"):
            return rng.randint(-25567, 40000) * 86_400_000
        if doc == "TimeOnly":
            return rng.randrange(86_400_000)
        if doc == "DateTime":
            return rng.choice([0, -1, 253402300799999, -62135596800000, rng.randint(0, 2**41)])
        return rng.getrandbits(62)


def bitmap(rng, indexes):
    number = sum(1 << i for i in indexes)
    digits = ("%X" if rng.random() < 0.8 else "%x") % number
    digits = digits.rjust((len(digits) + 1) // 2 * 2, "0")
    return "0x" + ("00" * rng.choice([0, 0, 0, 1, 9])) + digits


class Publisher:
    """Events of a schema with what the truth file says of them."""

    def __init__(self, rng):
        self.rng, self.values = rng, Values(rng)
        self.transaction, self.sequence, self.commits = str(uuid.UUID(int=1)), 0, 1709303151782928388
        # Half a second further with each event, and never as late as the run.
        self.clock = int(time.time() * 1000) - 60 * 3_600_000

    def platform_event(self, schema):
        fields = {}
        for index, each in enumerate(schema.document["fields"]):
            scalar, _, doc = schema.shape(index)
            if index < 2 or self.rng.random() < 0.7:
                fields[each["name"]] = self.values.scalar(scalar, doc)
        return None, fields, fields, "event"

    def change(self, schema):
        rng = self.rng
        entity = schema.document["name"].replace("__ChangeEvent", "__c").replace("ChangeEvent", "")
        symbols = schema.document["fields"][0]["type"]["fields"][2]["type"]["symbols"]
        kind = rng.choice(["UPDATE"] * 20 + ["CREATE"] * 5 + ["DELETE", "UNDELETE"] * 2 + symbols)
        if rng.random() < 0.3:
            self.transaction, self.sequence = str(uuid.UUID(int=rng.getrandbits(128))), 0
            self.clock += rng.choice([0, 0, 1000, 5000])
            self.commits += 1
        self.sequence += rng.choice([1, 1, 2])
        ids = ["%018d" % rng.randrange(300) for _ in range(rng.choice([1] * 20 + [2, 3, 20]))]
        ids = list(dict.fromkeys(ids))
        if kind == "GAP_OVERFLOW":
            ids = ["000000000000000AAA"]
        values, names, bits = {}, {}, {}
        for name in ("changedFields", "nulledFields", "diffFields"):
            names[name], bits[name] = ([], []), (set(), {})
        for index in range(1, len(schema.document["fields"])):
            self.one(schema, index, kind, values, names, bits)
        head = {
            "entityName": entity,
            "recordIds": ids,
            "changeType": kind,
            "changeOrigin": rng.choice(["", "com/salesforce/api/soap/62.0;client=SfdcInternalAPI/"]),
            "transactionKey": self.transaction,
            "sequenceNumber": self.sequence,
            "commitTimestamp": self.clock // 1000 * 1000,
            "commitNumber": self.commits,
            "commitUser": "005xx0000012345AAA",
        }
        said = dict(head)
        for name in ("nulledFields", "diffFields", "changedFields"):
            top, nested = bits[name]
            head[name] = [bitmap(rng, top)] if top else []
            head[name] += ["%d-%s" % (p, bitmap(rng, c)) for p, c in sorted(nested.items())]
            said[name] = names[name][0] + names[name][1]
        row = "change"
        if kind.startswith("GAP_"):
            row = "overflow" if kind == "GAP_OVERFLOW" else "gap"
        return said, {"ChangeEventHeader": head, **values}, values, row

    def note(self, names, bits, what, index, name, child=None, inner=None):
        if child is None:
            names[what][0].append(name)
            bits[what][0].add(index)
        else:
            names[what][1].append(name + "." + inner)
            bits[what][1].setdefault(index, set()).add(child)

    def one(self, schema, index, kind, values, names, bits):
        rng = self.rng
        name = schema.document["fields"][index]["name"]
        scalar, children, doc = schema.shape(index)
        if kind in ("CREATE", "UNDELETE"):
            changed, present = False, rng.random() < 0.5
        elif kind == "UPDATE":
            changed = rng.random() < 3 / len(schema.document["fields"]) + 0.02
            present = rng.random() < (0.7 if changed else 0.01)  # else an enriched field
        else:
            changed, present = False, kind == "DELETE" and rng.random() < 0.01
        if not changed and not present:
            return
        if children is None or (scalar and rng.random() < 0.5):
            if changed:
                self.note(names, bits, "changedFields", index, name)
            if present:
                values[name] = self.values.scalar(scalar, doc)
                if changed and doc == "StringPlusClob" and rng.random() < 0.3:
                    values[name] = DIFF % hashlib.sha256(values[name].encode()).hexdigest()
                    self.note(names, bits, "diffFields", index, name)
            elif changed:
                self.note(names, bits, "nulledFields", index, name)
            return
        body = {}
        for number, (inner, avro) in enumerate(children):
            here = rng.random() < 0.5
            if present and here:
                body[inner] = self.values.scalar(avro, "")
            if changed and (here or not present):
                self.note(names, bits, "changedFields", index, name, number, inner)
                if not present:
                    self.note(names, bits, "nulledFields", index, name, number, inner)
        if present:
            values[name] = body

    def encode(self, schema):
        said, datum, values, kind = (self.change if schema.is_change else self.platform_event)(schema)
        for each in schema.document["fields"]:
            name = each["name"]
            if isinstance(datum.get(name), dict) and name != "ChangeEventHeader":
                scalar, children, _ = schema.shape(schema.document["fields"].index(each))
                datum = {**datum, name: {c: datum[name].get(c) for c, _ in children}}
        out = io.BytesIO()
        fastavro.schemaless_writer(out, schema.parsed, datum)
        return said, values, kind, out.getvalue()


class Topic:
    def __init__(self, name, schemas, groups, rng):
        self.name, self.schemas, self.groups, self.rng = name, schemas, groups, rng
        self.events, self.places, self.next = [], {}, rng.randrange(10**9)
        self.ordered = rng.random() < 0.5

    def replay_id(self):
        self.next += self.rng.choice([1, 1, 1, 50])
        if self.ordered:
            return self.next.to_bytes(8, "big") + b"\0\0"
        return hashlib.md5(b"%d" % self.next).digest()[: self.rng.choice([8, 10, 16])]

    def publish(self, count, publisher, truth):
        replay = None
        for number in range(count):
            # Newer schemas come later, and old events keep theirs.
            span = len(self.schemas)
            versions = self.rng.choice(self.schemas)
            schema = versions[min(len(versions) - 1, number * len(versions) // count)]
            if replay is None or not self.groups or self.rng.random() < 0.8:
                replay = self.replay_id()
            said, values, kind, payload = publisher.encode(schema)
            event = {"id": str(uuid.UUID(int=self.rng.getrandbits(128))), "schema": schema.id}
            event.update(payload=payload, replay=replay)
            self.places[replay] = len(self.events)  # the last of its group
            self.events.append(event)
            entity = said["entityName"] if said else schema.document["name"]
            line = {"topic": self.name, "replay_id": replay.hex(), "event_id": event["id"]}
            line.update(schema_id=schema.id, kind=kind, entity=entity, header=said, fields=values)
            truth.write(json.dumps(line) + "\n")


class Failure(Exception):
    def __init__(self, status, text, code=None):
        super().__init__(text)
        self.status, self.text, self.code = status, text, code


class Service:
    """The RPCs. Tokens, and how often it fails, are what the run is made hard with."""

    def __init__(self, topics, schemas, seed, calm):
        self.topics, self.schemas, self.calm = topics, schemas, calm
        self.seed, self.streams, self.lock = seed, 0, threading.Lock()
        self.tokens, self.logins = {}, 0
        self.delivered = 0

    def login(self):
        with self.lock:
            self.logins += 1
            token = "00DXX!%d.%s" % (self.logins, uuid.uuid4().hex)
            self.tokens[token] = 10**9 if self.calm else random.Random(self.logins).randint(5, 60)
        return token

    def fail(self, context, failure):
        trailers = [("rpc-id", str(uuid.uuid4()))]
        if failure.code:
            trailers.append(("error-code", CODE + failure.code))
        context.set_trailing_metadata(trailers)
        context.abort(failure.status, failure.text + " rpcId: " + str(uuid.uuid4()))

    def admit(self, context):
        metadata = dict(context.invocation_metadata())
        token = metadata.get("accesstoken")
        if not metadata.get("instanceurl") or not metadata.get("tenantid"):
            raise Failure(grpc.StatusCode.UNAUTHENTICATED, "headers", "service.auth.headers.invalid")
        with self.lock:
            if self.tokens.get(token, 0) <= 0:
                text = "An authentication exception occurred. rpcId"
                raise Failure(grpc.StatusCode.UNAUTHENTICATED, text, "service.auth.error")
            self.tokens[token] -= 1

    def topic(self, name):
        if name not in self.topics:
            raise Failure(grpc.StatusCode.NOT_FOUND, "no such topic", "topic.not.found")
        return self.topics[name]

    def rng(self):
        with self.lock:
            self.streams += 1
            return random.Random(self.seed * 1_000_003 + self.streams)

    def get_topic(self, request, context):
        try:
            self.admit(context)
            rng = self.rng()
            name = read(request)[1].decode()
            topic = self.topic(name)
            if not self.calm and rng.random() < 0.2:
                raise Failure(grpc.StatusCode.UNAVAILABLE, "later", "topic.api.unavailable")
        except Failure as failure:
            self.fail(context, failure)
        encoder = Encoder(rng, True)
        parts = [encoder.bytes(1, name), encoder.bytes(2, "CORE/prod/00DXX0000000001"), encoder.int(4, 1)]
        if len(topic.schemas) == 1:
            parts.append(encoder.bytes(5, topic.schemas[0][-1].id))
        return encoder.message(*parts, encoder.bytes(6, "r"))

    def get_schema(self, request, context):
        try:
            self.admit(context)
            rng = self.rng()
            schema_id = read(request).get(1, b"").decode()
            if schema_id not in self.schemas:
                raise Failure(grpc.StatusCode.INVALID_ARGUMENT, "no such schema", "schema.validation.failed")
            if not self.calm and rng.random() < 0.3:
                raise Failure(grpc.StatusCode.UNAVAILABLE, "later", "schema.api.unavailable")
        except Failure as failure:
            self.fail(context, failure)
        encoder = Encoder(rng, True)
        return encoder.message(
            encoder.bytes(1, self.schemas[schema_id].text), encoder.bytes(2, schema_id), encoder.bytes(3, "r"))

    def subscribe(self, requests, context):
        try:
            self.admit(context)
            first = read(next(requests))
            topic = self.topic(first.get(1, b"").decode())
            rng = self.rng()
            place = self.place(topic, first)
            if not self.calm and place and rng.random() < 0.3:
                place = max(0, place - rng.randint(1, 5))  # what it has had already
            yield from Stream(self, topic, rng, place).serve(first, requests, context)
        except Failure as failure:
            self.fail(context, failure)

    def place(self, topic, first):
        preset, replay = first.get(2, 0), first.get(3, b"")
        if preset == 1:
            return 0
        if preset == 0:
            return len(topic.events)
        if replay not in topic.places and replay != b"\xff" * 10:
            code = "subscription.fetch.replayid.corrupted"
            raise Failure(grpc.StatusCode.INVALID_ARGUMENT, "The Replay ID validation failed.", code)
        return topic.places.get(replay, len(topic.events) - 1) + 1


class Stream:
    def __init__(self, service, topic, rng, place):
        self.service, self.topic, self.rng, self.at = service, topic, rng, place
        self.credit, self.changed, self.closed = 0, threading.Condition(), False
        self.problem = None

    def grant(self, fields):
        count = fields.get(4, 0)
        with self.changed:
            if not 0 < count < 2**31:
                code = "subscription.fetch.requested.events.invalid"
                self.problem = Failure(grpc.StatusCode.INVALID_ARGUMENT, "greater than zero", code)
            elif fields.get(1, self.topic.name.encode()).decode() != self.topic.name:
                code = "subscription.fetch.topic.mismatch"
                self.problem = Failure(grpc.StatusCode.INVALID_ARGUMENT, "another topic", code)
            else:
                self.credit = min(100, self.credit + count)
            self.changed.notify()

    def read_requests(self, requests):
        try:
            for request in requests:
                self.grant(read(request))
        except Exception:  # the call is over
            pass
        with self.changed:
            self.closed = True
            self.changed.notify()

    def serve(self, first, requests, context):
        self.grant(first)
        threading.Thread(target=self.read_requests, args=(requests,), daemon=True).start()
        rng, encoder = self.rng, Encoder(self.rng, self.rng.random() < 0.7)
        left = 10**12 if self.service.calm else rng.choice([0, 1, 30, 300, 3000, 10**9])
        quiet = time.monotonic() + 0.6
        while not self.closed:
            with self.changed:
                events = self.topic.events
                if self.problem:
                    raise self.problem
                if self.credit == 0 or self.at == len(events):
                    self.changed.wait(0.05)
                    if self.credit and self.at == len(events) and time.monotonic() > quiet:
                        quiet = time.monotonic() + 0.6
                        latest = events[-1]["replay"] if rng.random() < 0.5 else b"\xff" * 10
                        yield encoder.response([], latest, self.credit)
                    continue
                count = min(self.credit, len(events) - self.at, rng.choice([1, 2, 7, 25, 100]))
                chunk = events[self.at : self.at + count]
                self.credit -= count
                self.at += count
                pending = self.credit
            self.service.delivered += count
            yield encoder.response(chunk, chunk[-1]["replay"], pending)
            quiet = time.monotonic() + 0.6
            left -= count
            if left <= 0:
                self.end()
                return
            if rng.random() < 0.02:
                time.sleep(0.05)

    def end(self):
        codes = grpc.StatusCode
        failure = self.rng.choice([
            None,
            Failure(codes.UNAVAILABLE, "RST_STREAM closed stream"),
            Failure(codes.UNAVAILABLE, "The service is unavailable. Try again later", "service.unavailable"),
            Failure(codes.INTERNAL, "Received RST_STREAM with code 0"),
            Failure(codes.INTERNAL, "it", "subscription.internal.error"),
            Failure(codes.UNAUTHENTICATED, "An authentication exception occurred.", "service.auth.error"),
            Failure(codes.CANCELLED, "by the server"),
        ])
        if failure:
            raise failure


def handlers(service):
    kinds = {
        "GetTopic": grpc.unary_unary_rpc_method_handler(service.get_topic),
        "GetSchema": grpc.unary_unary_rpc_method_handler(service.get_schema),
        "Subscribe": grpc.stream_stream_rpc_method_handler(service.subscribe),
    }
    return grpc.method_handlers_generic_handler("eventbus.v1.PubSub", kinds)


def serve_logins(service):
    class Handler(http.server.BaseHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            form = urllib.parse.parse_qs(body)
            known = form["client_id"] == ["app"] and form["client_secret"] == ["s3cret"]
            host = "http://127.0.0.1:%d" % server.server_address[1]
            answer = {"error": "invalid_client"}
            if known:
                answer = {"access_token": service.login(), "instance_url": host, "token_type": "Bearer"}
                answer["id"] = host + "/id/00DXX0000000001AAA/005xx0000012345AAA"
            text = json.dumps(answer).encode()
            self.send_response(200 if known else 400)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--events", type=int, default=5000)
    parser.add_argument("--work", required=True)
    parser.add_argument("--calm", action="store_true")
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    families = []
    for make in (contact, account, wide, order):
        families.append([Schema(make(random.Random(arguments.seed), v), rng) for v in range(3)])
    contacts, accounts, wides, orders = families
    topics = {}
    for name, members, groups in [
        ("/data/ContactChangeEvent", [contacts], False),
        ("/data/AccountChangeEvent", [accounts], False),
        ("/data/All__chn", [contacts, accounts, wides], True),
        ("/event/Order_Event__e", [orders], False),
    ]:
        topics[name] = Topic(name, members, groups, rng)
    with open(arguments.work + "/truth.ndjson", "w", encoding="utf-8") as truth:
        for topic in topics.values():
            topic.publish(arguments.events, Publisher(rng), truth)
    schemas = {s.id: s for family in families for s in family}
    with open(arguments.work + "/schemas.json", "w", encoding="utf-8") as file:
        json.dump({name: schema.text for name, schema in schemas.items()}, file)
    service = Service(topics, schemas, arguments.seed, arguments.calm)
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=64))
    server.add_generic_rpc_handlers((handlers(service),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    login = serve_logins(service)
    with open(arguments.work + "/env", "w", encoding="utf-8") as file:
        file.write("export PUBSUB_ENDPOINT='http://127.0.0.1:%d'\n" % port)
        file.write("export PUBSUB_CA_FILE=''\n")
        file.write("export SF_LOGIN_URL='http://127.0.0.1:%d'\n" % login)
        file.write("export SF_CLIENT_ID='app'\nexport SF_CLIENT_SECRET='s3cret'\n")
    print("ready", flush=True)
    sys.stdin.read()
    print(json.dumps({"delivered": service.delivered, "streams": service.streams, "logins": service.logins}))
    os._exit(0)


if __name__ == "__main__":
    main()
