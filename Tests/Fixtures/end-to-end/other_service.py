"""Another implementation of the service: grpcio's C-core, fastavro, messages encoded by hand.

Written from the pages about the service (TheService.md) and with nothing of the simulator. What the pages leave to a server
it does in as many ways as there are: responses of any size, fields in any order, split and unknown
ones, replay IDs without an order, groups of equal IDs over several responses, streams that end,
schemas and topics that are not there for a moment, tokens that end, events sent again.

    other_service.py --seed N --events N --work DIR [--calm] [--poison N] [--spoil]

Publishes N events of each topic, writes truth.ndjson, schemas.json and env into DIR, then says
"ready". Ends with its standard input and prints what it has delivered. --calm: no failures.
--spoil: until there is a file DIR/healed, the second schema of each family is no Avro schema.
--poison: of each topic so many more events, whose payloads end in the middle; poison.json has them.
"""

import argparse
import base64
import contextlib
import hashlib
import json
import os
import random
import sys
import threading
import time
import uuid

import grpc

import harness  # and where the module `peer` is
import other_managed
import peer
from other_events import Publisher
from other_messages import Encoder, read
from other_schemas import Schema, account, contact, order, wide

CODE = "sfdc.platform.eventbus.grpc."


class Topic:
    def __init__(self, name, schemas, groups, rng):
        self.name, self.schemas, self.groups, self.rng = name, schemas, groups, rng
        self.events, self.places, self.next = [], {}, rng.randrange(10**9)
        self.ordered = rng.random() < 0.5
        # How far the latest stream has come.
        self.reached = 0

    def open_group(self):
        """The number of last delivered events whose replay ID may continue."""
        if not self.groups or not self.reached:
            return 0
        replay, count = self.events[self.reached - 1]["replay"], 0
        while count < self.reached and self.events[self.reached - 1 - count]["replay"] == replay:
            count += 1
        return count

    def replay_id(self):
        self.next += self.rng.choice([1, 1, 1, 50])
        if self.ordered:
            return self.next.to_bytes(8, "big") + b"\0\0"
        return hashlib.md5(b"%d" % self.next).digest()[: self.rng.choice([8, 10, 16])]

    def publish(self, count, publisher, truth, poison=0):
        """Writes what was published to `truth`; returns the `poison` events among it that cannot be
        decoded."""
        replay, told = None, []
        for number in range(count):
            if len(told) < poison and number == count * (len(told) + 1) // (poison + 1):
                told.append(self.publish_poison(publisher))
                replay = None
            # Newer schemas come later, and old events keep theirs.
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
        return told

    def publish_poison(self, publisher):
        schema = self.schemas[0][0]
        *_, payload = publisher.encode(schema)
        event = {"id": str(uuid.UUID(int=self.rng.getrandbits(128))), "schema": schema.id}
        event.update(payload=payload[: len(payload) // 2], replay=self.replay_id())
        self.places[event["replay"]] = len(self.events)
        self.events.append(event)
        told = {"topic": self.name, "replay_id": event["replay"].hex(), "event_id": event["id"]}
        told.update(schema_id=schema.id, payload=base64.b64encode(event["payload"]).decode())
        return told


class Failure(Exception):
    def __init__(self, status, text, code=None):
        super().__init__(text)
        self.status, self.text, self.code = status, text, code


class Service:
    """The RPCs, with tokens that expire and failures."""

    def __init__(self, topics, schemas, seed, calm):
        self.topics, self.schemas, self.calm = topics, schemas, calm
        # IDs of schemas that cannot be parsed, and the file that ends that.
        self.spoilt, self.healed = set(), ""
        self.seed, self.calls, self.lock = seed, 0, threading.Lock()
        self.tokens, self.logins, self.failed_logins, self.login_failed = {}, 0, 0, False
        # Events delivered; of these, what the service sent again of its own accord; the sizes of the
        # groups that were open when a channel was subscribed to again, which a resume begins with.
        self.delivered, self.sent_again, self.open_groups, self.streams = 0, 0, 0, 0
        self.managed = {
            "All_%d" % number: other_managed.Managed(topic) for number, topic in enumerate(topics.values())}

    def login(self):
        with self.lock:
            self.logins += 1
            token = "00DXX!%d.%s" % (self.logins, uuid.uuid4().hex)
            self.tokens[token] = 10**9 if self.calm else random.Random(self.logins).randint(5, 60)
        return token

    def fails_login(self):
        """Never twice in a row, as each retry waits longer than the one before."""
        with self.lock:
            chance = random.Random("login %d %d" % (self.seed, self.logins + self.failed_logins))
            self.login_failed = (
                not self.calm and not self.login_failed and chance.random() < 0.4)
            self.failed_logins += self.login_failed
            return self.login_failed

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
            self.calls += 1
            return random.Random(self.seed * 1_000_003 + self.calls)

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
        parts = [encoder.bytes(1, name), encoder.bytes(2, "CORE/prod/00DXX0000000001")]
        parts.append(encoder.int(4, 1))
        if len(topic.schemas) == 1:
            parts.append(encoder.bytes(5, topic.schemas[0][-1].id))
        return encoder.message(*parts, encoder.bytes(6, "r"))

    def get_schema(self, request, context):
        try:
            self.admit(context)
            rng = self.rng()
            schema_id = read(request).get(1, b"").decode()
            if schema_id not in self.schemas:
                code = "schema.validation.failed"
                raise Failure(grpc.StatusCode.INVALID_ARGUMENT, "no such schema", code)
            if not self.calm and rng.random() < 0.3:
                raise Failure(grpc.StatusCode.UNAVAILABLE, "later", "schema.api.unavailable")
        except Failure as failure:
            self.fail(context, failure)
        encoder = Encoder(rng, True)
        text = self.schemas[schema_id].text
        if schema_id in self.spoilt and not os.path.exists(self.healed):
            text = text.replace('"type"', '"typo"')
        text = encoder.bytes(1, text)
        return encoder.message(text, encoder.bytes(2, schema_id), encoder.bytes(3, "r"))

    def subscribe(self, requests, context):
        try:
            self.admit(context)
            first = read(next(requests))
            topic = self.topic(first.get(1, b"").decode())
            rng = self.rng()
            place = self.place(topic, first)
            with self.lock:
                self.streams += 1
                self.open_groups += topic.open_group()
                if not self.calm and place and rng.random() < 0.3:
                    before = max(0, place - rng.randint(1, 5))  # what it has had already
                    self.sent_again += place - before
                    place = before
            yield from Stream(self, topic, rng, place).serve(first, requests, context)
        except Failure as failure:
            self.fail(context, failure)

    def managed_subscribe(self, requests, context):
        try:
            self.admit(context)
            yield from other_managed.serve(self, ManagedStream, Failure, requests, context, read)
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
                    yield from self.extras(encoder)
                    if self.credit and self.at == len(events) and time.monotonic() > quiet:
                        quiet = time.monotonic() + 0.6
                        latest = events[-1]["replay"] if rng.random() < 0.5 else b"\xff" * 10
                        yield encoder.response([], latest, self.credit)
                    continue
                count = min(self.credit, len(events) - self.at, rng.choice([1, 2, 7, 25, 100]))
                chunk = events[self.at : self.at + count]
                self.credit -= count
                self.at += count
                self.topic.reached = self.at
                pending = self.credit
            self.count(count)
            yield from self.respond(encoder, chunk, pending)
            quiet = time.monotonic() + 0.6
            left -= count
            if left <= 0:
                self.end()
                return
            if rng.random() < 0.02:
                time.sleep(0.05)  # services pause

    def count(self, events):
        self.service.delivered += events
        # The first event after a client's position, by which it finds its place in a managed stream.
        if any(managed.topic is self.topic and managed.holder for managed in self.service.managed.values()):
            self.service.sent_again += events

    def respond(self, encoder, chunk, pending):
        yield encoder.response(chunk, chunk[-1]["replay"], pending)

    def extras(self, encoder):
        return ()

    def end(self):
        codes = grpc.StatusCode
        failure = self.rng.choice([
            None,
            Failure(codes.UNAVAILABLE, "RST_STREAM closed stream"),
            Failure(codes.UNAVAILABLE, "Try again later", "service.unavailable"),
            Failure(codes.INTERNAL, "Received RST_STREAM with code 0"),
            Failure(codes.INTERNAL, "it", "subscription.internal.error"),
            Failure(codes.UNAUTHENTICATED, "An authentication exception", "service.auth.error"),
            Failure(codes.CANCELLED, "by the server"),
        ])
        if failure:
            raise failure


class ManagedStream(Stream):
    """A stream that stores positions."""

    def __init__(self, service, managed, rng, place):
        super().__init__(service, managed.topic, rng, place)
        self.managed, self.commits = managed, other_managed.Commits(managed, rng, service.calm)

    def grant(self, fields):
        credit = fields.get(3, fields.get(4, 0))
        if credit:
            super().grant({4: credit})
        if 5 in fields:
            commit = read(fields[5])
            with self.changed:
                self.commits.add(Encoder(self.rng, False), commit[1].decode(), commit[2])
                self.changed.notify()

    def count(self, events):
        self.service.delivered += events
        self.managed.reached = max(self.managed.reached, self.at)

    def respond(self, encoder, chunk, pending):
        response = encoder.response(chunk, chunk[-1]["replay"], pending)
        if self.commits.answers and self.rng.random() < 0.5:
            response += self.commits.next(encoder)
        yield response
        yield from self.extras(encoder)

    def extras(self, encoder):
        while self.commits.answers:
            yield encoder.message(self.commits.next(encoder), encoder.bytes(3, str(uuid.uuid4())))


def handlers(service):
    kinds = {
        "GetTopic": grpc.unary_unary_rpc_method_handler(service.get_topic),
        "GetSchema": grpc.unary_unary_rpc_method_handler(service.get_schema),
        "ManagedSubscribe": grpc.stream_stream_rpc_method_handler(service.managed_subscribe),
        "Subscribe": grpc.stream_stream_rpc_method_handler(service.subscribe),
    }
    return grpc.method_handlers_generic_handler("eventbus.v1.PubSub", kinds)


def login_handler(service):
    class Handler(peer.Handler):
        def send_failure(self):
            """A transient failure: maintenance, too many requests, or no answer at all."""
            kind = service.rng().choice(["maintenance", "limit", "nothing"])
            if kind == "nothing":
                self.close_connection = True
                return
            if kind == "limit":
                return self.answer({"error": "rate_limit_exceeded", "error_description": "later"}, 400)
            self.answer("<html><body>Down for Maintenance</body></html>", 503)

        def do_POST(self):
            form = peer.form(self.body())
            if service.fails_login():
                return self.send_failure()
            if form["client_id"] != "app" or form["client_secret"] != "s3cret":
                return self.answer({"error": "invalid_client"}, 400)
            self.answer({
                "access_token": service.login(), "instance_url": self.base, "token_type": "Bearer",
                "id": self.base + "/id/00DXX0000000001AAA/005xx0000012345AAA"})

    return Handler


@contextlib.contextmanager
def serving(service, handlers):
    """Serves until the end of the context; what pipelines need in their environment."""
    server, port = peer.serve_grpc(handlers, threads=64)
    logins = peer.serve_http(login_handler(service))
    try:
        yield {
            "PUBSUB_ENDPOINT": "http://127.0.0.1:%d" % port, "PUBSUB_CA_FILE": "",
            "SF_LOGIN_URL": "http://127.0.0.1:%d" % logins.server_port,
            "SF_CLIENT_ID": "app", "SF_CLIENT_SECRET": "s3cret"}
    finally:
        server.stop(0).wait()
        logins.shutdown()


def serve(service, handlers, work):
    """The life of a service that is a program: writes the environment, says so, and serves until its input ends."""
    with serving(service, handlers) as environment:
        with open(work + "/env", "w", encoding="utf-8") as file:
            file.writelines("export %s='%s'\n" % variable for variable in environment.items())
        print("ready", flush=True)
        sys.stdin.read()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--events", type=int, default=5000)
    parser.add_argument("--work", required=True)
    parser.add_argument("--calm", action="store_true")
    parser.add_argument("--poison", type=int, default=0)
    parser.add_argument("--spoil", action="store_true")
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
    poison = []
    with open(arguments.work + "/truth.ndjson", "w", encoding="utf-8") as truth:
        for topic in topics.values():
            poison += topic.publish(arguments.events, Publisher(rng), truth, arguments.poison)
    harness.write_json(arguments.work + "/poison.json", poison)
    schemas = {s.id: s for family in families for s in family}
    harness.write_json(arguments.work + "/schemas.json", {name: schema.text for name, schema in schemas.items()})
    service = Service(topics, schemas, arguments.seed, arguments.calm)
    service.healed = arguments.work + "/healed"
    if arguments.spoil:
        service.spoilt = {family[1].id for family in families}
    serve(service, handlers(service), arguments.work)
    counts = {"delivered": service.delivered, "calls": service.calls, "logins": service.logins}
    counts.update(failed_logins=service.failed_logins, streams=service.streams)
    counts.update(sent_again=service.sent_again, open_groups=service.open_groups)
    print(json.dumps(counts))


if __name__ == "__main__":
    main()
