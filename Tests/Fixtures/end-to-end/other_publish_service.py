"""Publish and PublishStream of the other service: grpcio's C-core, fastavro, messages encoded by hand.

    other_publish_service.py --seed N --work DIR [--calm] [--allowance N]

Takes events of /event/Order_Event__e in the topic's current schema, of which there are three, one after the
other. Writes DIR/schemas.json and DIR/env, then says "ready"; ends with its standard input, and writes
DIR/stored.json: ID, replay ID, schema ID and values of each event that it has published, in order. Without
--calm it refuses events, and fails calls before and after it has published their events. Beyond the
allowance it refuses every event.
"""

import argparse
import io
import random
import threading

import fastavro
import grpc

import harness
from other_messages import Encoder, read
from other_schemas import Schema, order
from other_service import Failure, Service, serve

TOPIC = "/event/Order_Event__e"


def fields_of(data):
    """(number, value) of each field of a message whose fields are all bytes."""
    stream = io.BytesIO(data)

    def varint():
        value = shift = 0
        while True:
            byte = stream.read(1)[0]
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while stream.tell() < len(data):
        tag = varint()
        assert tag & 7 == 2, "only strings, bytes and messages are in a request to publish"
        yield tag >> 3, stream.read(varint())


class PublishService(Service):
    def __init__(self, versions, seed, calm, allowance):
        super().__init__({}, {schema.id: schema for schema in versions}, seed, calm)
        self.allowance = allowance
        self.versions, self.stored, self.replay = versions, [], 41
        self.publishing = threading.Lock()

    @property
    def current(self):
        return self.versions[min(len(self.versions) - 1, len(self.stored) // 700)]

    def get_topic(self, request, context):
        try:
            self.admit(context)
            if read(request)[1].decode() != TOPIC:
                raise Failure(grpc.StatusCode.NOT_FOUND, "no such topic", "topic.not.found")
        except Failure as failure:
            self.fail(context, failure)
        encoder = Encoder(self.rng(), True)
        return encoder.message(
            encoder.bytes(1, TOPIC), encoder.int(3, 1), encoder.int(4, 1),
            encoder.bytes(5, self.current.id), encoder.bytes(6, "r"))

    def store(self, event, rng):
        """The replay ID, or why the event is refused."""
        if len(self.stored) >= self.allowance:
            return None, "LIMIT_EXCEEDED: the hourly allowance is used up"
        if event[2].decode() != self.current.id:
            return None, "INVALID_SCHEMA: the event was not written with the current schema"
        if not self.calm and rng.random() < 0.01:
            return None, "FIELD_INTEGRITY_EXCEPTION: no"
        stream = io.BytesIO(event[3])
        values = fastavro.schemaless_reader(stream, self.current.parsed)
        assert stream.tell() == len(event[3]), "bytes are left after the record"
        self.replay += rng.choice([1, 1, 7])
        replay = self.replay.to_bytes(8, "big") + b"\0\0"
        self.stored.append([event[1].decode(), replay.hex(), self.current.id, values])
        return replay, None

    def answer(self, request, rng):
        """Publishes the events of a request; the response."""
        parts = list(fields_of(request))
        events = [{1: b"", **dict(fields_of(value))} for number, value in parts if number == 2]
        topic = [value.decode() for number, value in parts if number == 1]
        if topic not in ([TOPIC], []):
            raise Failure(grpc.StatusCode.NOT_FOUND, "no such topic", "topic.not.found")
        if not events or len(events) > 200 or len(request) > 3 << 20:
            code = "publish.event.count.invalid"
            raise Failure(grpc.StatusCode.INVALID_ARGUMENT, "%d events" % len(events), code)
        encoder = Encoder(rng, True)
        results = b""
        with self.publishing:
            for event in events:
                replay, problem = self.store(event, rng)
                error = encoder.bytes(2, encoder.message(encoder.int(1, 1), encoder.bytes(2, problem or "")))
                results += encoder.bytes(1, encoder.message(
                    encoder.bytes(1, replay) if replay else error, encoder.bytes(3, event[1])))
            schema = encoder.bytes(2, self.current.id) if rng.random() < 0.7 else b""
        return encoder.message(results, schema, encoder.bytes(3, "r"))

    def misfortune(self, rng, chance):
        """Fails a call, or not."""
        codes = grpc.StatusCode
        if self.calm or rng.random() > chance:
            return
        raise rng.choice([
            Failure(codes.UNAVAILABLE, "RST_STREAM closed stream"),
            Failure(codes.UNAVAILABLE, "Try again later", "service.unavailable"),
            Failure(codes.INTERNAL, "Received RST_STREAM with code 0"),
            Failure(codes.UNKNOWN, "who knows"),
            Failure(codes.CANCELLED, "by the server"),
        ])

    def publish(self, request, context):
        try:
            self.admit(context)
            rng = self.rng()
            self.misfortune(rng, 0.1)
            response = self.answer(request, rng)
            self.misfortune(rng, 0.1)
            return response
        except Failure as failure:
            self.fail(context, failure)

    def publish_stream(self, requests, context):
        try:
            self.admit(context)
            rng = self.rng()
            left = 10**9 if self.calm else rng.choice([0, 1, 2, 5, 20])
            for request in requests:
                if left == 0 and rng.random() < 0.3:
                    return  # status OK, without an answer
                response = self.answer(request, rng)
                if left <= 0:
                    self.misfortune(rng, 1)
                left -= 1
                yield response
        except Failure as failure:
            self.fail(context, failure)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--work", required=True)
    parser.add_argument("--calm", action="store_true")
    parser.add_argument("--allowance", type=int, default=10**9)
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    versions = [Schema(order(random.Random(arguments.seed), version), rng) for version in range(3)]
    service = PublishService(versions, arguments.seed, arguments.calm, arguments.allowance)
    harness.write_json(arguments.work + "/schemas.json", [schema.document for schema in versions])
    serve(service, grpc.method_handlers_generic_handler("eventbus.v1.PubSub", {
        "GetTopic": grpc.unary_unary_rpc_method_handler(service.get_topic),
        "GetSchema": grpc.unary_unary_rpc_method_handler(service.get_schema),
        "Publish": grpc.unary_unary_rpc_method_handler(service.publish),
        "PublishStream": grpc.stream_stream_rpc_method_handler(service.publish_stream),
    }), arguments.work)
    harness.write_json(arguments.work + "/stored.json", service.stored)


if __name__ == "__main__":
    main()
