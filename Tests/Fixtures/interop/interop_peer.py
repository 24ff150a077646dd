"""The server of the gRPC interoperability tests on the independent C-core implementation.

Prints its port; ends with the end of its standard input. With --certificate and --key over TLS.
"""

import argparse
import asyncio
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]

import grpc

import peer

messages, services = grpc.protos_and_services("interop.proto")
INITIAL, TRAILING = "x-grpc-test-echo-initial", "x-grpc-test-echo-trailing-bin"


def echo_metadata(context):
    initial = [(k, v) for k, v in context.invocation_metadata() if k == INITIAL]
    context.set_trailing_metadata(
        tuple((k, v) for k, v in context.invocation_metadata() if k == TRAILING))
    return initial


async def echo_status(request, context):
    if request.HasField("response_status"):
        code = next(c for c in grpc.StatusCode if c.value[0] == request.response_status.code)
        await context.abort(code, request.response_status.message)


def payload(size):
    return messages.Payload(body=bytes(size))


class TestService(services.TestServiceServicer):
    async def EmptyCall(self, request, context):
        return messages.Empty()

    async def UnaryCall(self, request, context):
        await context.send_initial_metadata(echo_metadata(context))
        await echo_status(request, context)
        return messages.SimpleResponse(payload=payload(request.response_size))

    async def StreamingOutputCall(self, request, context):
        async for response in self.answers(request, context):
            yield response

    async def StreamingInputCall(self, requests, context):
        total = 0
        async for request in requests:
            total += len(request.payload.body)
        return messages.StreamingInputCallResponse(aggregated_payload_size=total)

    async def FullDuplexCall(self, requests, context):
        await context.send_initial_metadata(echo_metadata(context))
        async for request in requests:
            async for response in self.answers(request, context):
                yield response

    async def HalfDuplexCall(self, requests, context):
        for request in [request async for request in requests]:
            async for response in self.answers(request, context):
                yield response

    async def answers(self, request, context):
        await echo_status(request, context)
        for wanted in request.response_parameters:
            if wanted.interval_us:
                await asyncio.sleep(wanted.interval_us / 1e6)  # as the request says
            if wanted.HasField("compressed") and not wanted.compressed.value:
                context.disable_next_message_compression()
            yield messages.StreamingOutputCallResponse(payload=payload(wanted.size))


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--certificate")
    parser.add_argument("--key")
    parser.add_argument("--compression", choices=["gzip", "deflate"])
    arguments = parser.parse_args()
    compression = {"gzip": grpc.Compression.Gzip, "deflate": grpc.Compression.Deflate}.get(
        arguments.compression, grpc.Compression.NoCompression)
    server = grpc.aio.server(compression=compression)
    services.add_TestServiceServicer_to_server(TestService(), server)
    if arguments.certificate:
        port = server.add_secure_port("127.0.0.1:0", peer.credentials(arguments.certificate, arguments.key))
    else:
        port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    peer.start(peer.announce, port)
    await server.wait_for_termination()


asyncio.run(main())
