"""A gRPC server on the independent C-core implementation, for tests of the client transport.

Prints its port, then obeys lines on standard input: "stop SECONDS" ends gracefully; the end of the
input ends the process, so that none outlives its test. Messages are plain bytes.
"""

import argparse
import json
import sys
import threading

import grpc

import peer

sent = 0  # messages that Blast has handed to the library
cancelled = threading.Event()


def unary(request, context):
    echoed = [(k, v) for k, v in context.invocation_metadata() if k.startswith("x-")]
    context.send_initial_metadata(echoed)
    context.set_trailing_metadata((("x-trailer", "one"), ("x-trailer", "two"), ("x-raw-bin", b"\x00\xff,")))
    return request


def bidi(requests, context):
    yield from requests


def collect(requests, context):
    count = total = 0
    for request in requests:
        count += 1
        total += len(request)
    return json.dumps({"count": count, "total": total}).encode()


def blast(request, context):
    global sent
    order = json.loads(request)
    sent = 0
    message = bytes(order["size"])
    for index in range(order["count"]):
        yield index.to_bytes(4, "big") + message[4:]
        sent = index + 1


def progress(request, context):
    return json.dumps({"sent": sent, "cancelled": cancelled.is_set()}).encode()


def abort(request, context):
    order = json.loads(request)
    context.set_trailing_metadata((("x-reason", "because"), ("x-detail-bin", b"\x01\x02\x03")))
    code = next(c for c in grpc.StatusCode if c.value[0] == order["code"])
    context.abort(code, order["message"])


def abort_later(request, context):
    yield b"first"
    abort(request, context)


def wait(request, context):
    """Answers once, then does nothing until the client goes away."""
    done = threading.Event()
    context.add_callback(lambda: (cancelled.set(), done.set()))
    yield b"begun"
    done.wait()


def wait_cancelled(request, context):
    return b"yes" if cancelled.wait(10) else b"no"


def deadline(request, context):
    remaining = context.time_remaining()
    return json.dumps({"remaining": remaining}).encode()


HANDLERS = {
    "Unary": grpc.unary_unary_rpc_method_handler(unary),
    "Bidi": grpc.stream_stream_rpc_method_handler(bidi),
    "Collect": grpc.stream_unary_rpc_method_handler(collect),
    "Blast": grpc.unary_stream_rpc_method_handler(blast),
    "Progress": grpc.unary_unary_rpc_method_handler(progress),
    "Abort": grpc.unary_unary_rpc_method_handler(abort),
    "AbortLater": grpc.unary_stream_rpc_method_handler(abort_later),
    "Wait": grpc.unary_stream_rpc_method_handler(wait),
    "WaitCancelled": grpc.unary_unary_rpc_method_handler(wait_cancelled),
    "Deadline": grpc.unary_unary_rpc_method_handler(deadline),
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--certificate")
    parser.add_argument("--key")
    parser.add_argument("--client-authority", help="clients must show a certificate of it")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--max-streams", type=int)
    arguments = parser.parse_args()
    options = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
    if arguments.max_streams:
        options.append(("grpc.max_concurrent_streams", arguments.max_streams))
    server, port = peer.serve_grpc(
        grpc.method_handlers_generic_handler("test.Peer", HANDLERS), port=arguments.port,
        identity=arguments.certificate and (arguments.certificate, arguments.key),
        authority=arguments.client_authority, threads=64, options=options)
    print(port, flush=True)
    for line in sys.stdin:
        command = line.split()
        if command and command[0] == "stop":
            server.stop(float(command[1]))
            print("stopping", flush=True)
    server.stop(0)


main()
