"""ManagedSubscribe of other_service.py, from the page about the service: the service keeps the position.

A managed subscription `All_<number>` is for the topic of that number. Commits are answered alone or with
events, one by one or several by one answer, and some are refused.
"""

import threading
import time

import grpc


class Managed:
    """One managed subscription."""

    # How long it stays taken after a client was lost; of the service itself 15 minutes.
    HOLD = 1

    def __init__(self, topic):
        self.topic, self.lock = topic, threading.Lock()
        self.committed, self.holder, self.free_at = None, None, 0
        # How far any stream has come.
        self.reached = 0

    def take(self, holder):
        with self.lock:
            if self.holder or time.monotonic() < self.free_at:
                return False
            self.holder = holder
            return True

    def release(self, holder, clean):
        with self.lock:
            if self.holder is holder:
                self.holder = None
                self.free_at = 0 if clean else time.monotonic() + self.HOLD


class Commits:
    """What a stream has been asked to store, until it is answered."""

    def __init__(self, managed, rng, calm):
        self.managed, self.rng, self.calm = managed, rng, calm
        self.answers = []

    def add(self, encoder, request, replay):
        if not self.calm and self.rng.random() < 0.2:
            error = encoder.message(encoder.int(1, 2), encoder.bytes(2, "not now"))
            self.answers.append((request, replay, error))
            return
        if replay not in self.managed.topic.places and replay != b"\xff" * 10:
            error = encoder.message(encoder.int(1, 2), encoder.bytes(2, "no such replay ID"))
            self.answers.append((request, replay, error))
            return
        self.managed.committed = replay
        # One answer does for those before it, but for those that failed.
        if self.answers and not self.answers[-1][2]:
            self.answers.pop()
        self.answers.append((request, replay, b""))

    def next(self, encoder):
        """The field of a response that answers a commit."""
        request, replay, error = self.answers.pop(0)
        parts = [encoder.bytes(1, request), encoder.bytes(2, replay), encoder.int(4, int(time.time() * 1000))]
        if error:
            parts.append(encoder.bytes(3, error))
        return encoder.bytes(5, encoder.message(*parts))


def fault(failure, status, code):
    return failure(status, "managed", "managed.subscription." + code)


def first_place(managed, service):
    if managed.committed is None:
        return 0
    return service.place(managed.topic, {2: 2, 3: managed.committed})


def serve(service, stream_type, failure, requests, context, read):
    """The RPC, as a generator of responses."""
    codes = grpc.StatusCode
    first = read(next(requests))
    name = first.get(2, b"").decode()
    if 5 in first:
        raise fault(failure, codes.INVALID_ARGUMENT, "fetch.request.commit.request.restricted")
    if name not in service.managed:
        raise fault(failure, codes.NOT_FOUND, "developer.name.not.found")
    managed, rng = service.managed[name], service.rng()
    holder = object()
    if not managed.take(holder):
        raise fault(failure, codes.ALREADY_EXISTS, "already.active")
    clean = True
    try:
        place = first_place(managed, service)
        with service.lock:
            service.streams += 1
            service.sent_again += max(0, managed.reached - place)
        stream = stream_type(service, managed, rng, place)
        yield from stream.serve({4: first.get(3, 0)}, requests, context)
        clean = stream.closed and context.is_active()
    except GeneratorExit:
        clean = False
        raise
    finally:
        managed.release(holder, clean)
