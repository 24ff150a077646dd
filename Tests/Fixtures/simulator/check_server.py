"""Runs the checks named on the command line against a running simulator; the environment is its --env file.

Prints "ok NAME" per check; ends with 1 at the first that fails.
"""

import json
import os
import sys
import threading
import urllib.error
import urllib.request

import grpc

from pubsub_peer import *

PREFIX = "sfdc.platform.eventbus.grpc."
ENV = environment()
CONTROL = os.environ["SIMULATOR_CONTROL_URL"]
SECRET = {"X-Simulator-Secret": os.environ["SIMULATOR_CONTROL_SECRET"]}
OPPORTUNITY = "/data/OpportunityChangeEvent"


def control(method, path, body=None):
    data = body.encode() if isinstance(body, str) else None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(CONTROL + path, data=data, method=method, headers=SECRET)
    with urllib.request.urlopen(request, timeout=120) as answer:
        return json.load(answer)


def expect(status, code, work):
    """The error that `work` must end with."""
    try:
        result = work()
        if hasattr(result, "__iter__") and not hasattr(result, "DESCRIPTOR"):
            list(result)
    except grpc.RpcError as error:
        trailers = dict(error.trailing_metadata() or ())
        assert error.code() == status, (error.code(), error.details())
        assert trailers.get("error-code") == (PREFIX + code if code else None), trailers
        assert "rpcId: " in error.details(), error.details()
        return error
    raise AssertionError("no error")


def truth_by_topic():
    lines = {}
    with open(os.environ["TRUTH"], encoding="utf-8") as file:
        for line in file:
            line = json.loads(line)
            lines.setdefault(line["topic"], []).append(line)
    return lines


def all_events_equal_truth():
    client = connect()
    total = 0
    for topic, lines in truth_by_topic().items():
        got = 0
        for response in client.subscribe(topic):
            assert len(response.events) <= 100
            for event in response.events:
                want = lines[got]
                got += 1
                record = client.decode(event.event)
                line = as_truth(topic, event, record, client.schema(event.event.schema_id)[1])
                for key in ("kind", "entity", "published_at"):
                    want.pop(key)
                assert line == want, (line, want)
            if response.events:
                assert response.latest_replay_id == response.events[-1].replay_id
            if got == len(lines):
                break
        total += got
    assert total > 0


def diffs_rebuild_to_their_hash():
    import hashlib
    texts, checked = {}, 0
    for line in truth_by_topic()[OPPORTUNITY]:
        header, fields = line["header"], line["fields"]
        key = (header["recordIds"][0], "Description")
        if header["changeType"] in ("DELETE", "GAP_DELETE"):
            continue
        if "Description" in header["diffFields"]:
            out, position = [], 0
            diff = fields["Description"].split("\n")
            assert diff[0] == "--- " and diff[1].startswith("+++ ") and len(diff[1]) == 68
            old = texts[key].split("\r\n")
            for index in range(2, len(diff), 3):
                at = int(diff[index].split("-")[1].split(",")[0]) - 1
                assert diff[index + 1] == "-" + old[at], (diff, old)
                old[at] = diff[index + 2][1:]
            new = "\r\n".join(old)
            assert hashlib.sha256(new.encode()).hexdigest() == diff[1][4:]
            assert len(new) >= 1000 and len(fields["Description"]) < len(new)
            texts[key] = new
            checked += 1
        elif "Description" in fields:
            for record in header["recordIds"]:
                texts[(record, "Description")] = fields["Description"]
    assert checked > 0


def topics_and_schemas():
    client = connect()
    info = client.get_topic(OPPORTUNITY)
    assert info.topic_name == OPPORTUNITY and info.can_subscribe and not info.can_publish
    assert info.tenant_guid.startswith("CORE/prod/00D") and info.rpc_id
    assert client.get_schema(info.schema_id).schema_id == info.schema_id
    assert client.get_topic("/data/ChangeEvents").schema_id == ""
    event = client.get_topic("/event/Order_Event__e")
    assert event.can_publish
    known = json.loads(client.get_schema("_CADE3qaegX3ECEW0rlbYA").schema_json)
    assert known["name"] == "Order_Event__e" and known["namespace"] == "com.sforce.eventbus"
    for name in ("/data/opportunityChangeEvent", "/data/Nothing__ChangeEvent"):
        expect(grpc.StatusCode.NOT_FOUND, "topic.not.found", lambda: client.get_topic(name))
        expect(grpc.StatusCode.NOT_FOUND, "topic.not.found", lambda: client.subscribe(name))
    expect(grpc.StatusCode.INVALID_ARGUMENT, "topic.validation.empty", lambda: client.get_topic(""))
    expect(grpc.StatusCode.INVALID_ARGUMENT, "schema.validation.failed", lambda: client.get_schema(""))
    expect(grpc.StatusCode.INVALID_ARGUMENT, "schema.validation.failed", lambda: client.get_schema("x"))


def wrong_credentials():
    client = connect()
    good = dict(client.metadata)
    for key, value in (("accesstoken", "00D!x"), ("tenantid", "00D000000000000AAA"), ("instanceurl", "nothing")):
        client.metadata = list({**good, key: value}.items())
        expect(grpc.StatusCode.UNAUTHENTICATED, "service.auth.error", lambda: client.get_topic(OPPORTUNITY))
        expect(grpc.StatusCode.UNAUTHENTICATED, "service.auth.error", lambda: client.subscribe(OPPORTUNITY))
    client.metadata = []
    expect(grpc.StatusCode.UNAUTHENTICATED, "service.auth.headers.invalid", lambda: client.get_topic(OPPORTUNITY))
    for tenant in (good["tenantid"][:15], "core/any/" + good["tenantid"]):
        client.metadata = list({**good, "tenantid": tenant}.items())
        client.get_topic(OPPORTUNITY)
    client.metadata = list(good.items())
    control("POST", "/control/tokens/revoke")
    expect(grpc.StatusCode.UNAUTHENTICATED, "service.auth.error", lambda: client.get_topic(OPPORTUNITY))
    connect().get_topic(OPPORTUNITY)


def logins():
    url, ca = ENV["SF_LOGIN_URL"], ENV["PUBSUB_CA_FILE"] or None
    client_id, secret = ENV["SF_CLIENT_ID"], ENV["SF_CLIENT_SECRET"]
    status, good = login(url, client_id, secret, ca)
    assert status == 200 and good["token_type"] == "Bearer" and int(good["issued_at"]) > 10**12
    assert good["access_token"].split("!")[0] == good["id"].split("/")[-2][:15] and "expires_in" not in good
    assert login(url, client_id, "x", ca) == (400, {"error": "invalid_client", "error_description": "invalid client credentials"})
    assert login(url, "x", secret, ca)[1]["error"] == "invalid_client_id"
    assert login(url, client_id, secret, ca, grant="x")[1]["error"] == "unsupported_grant_type"
    context = ssl.create_default_context(cafile=ca) if ca else None
    def user_info(headers):
        request = urllib.request.Request(url + "/services/oauth2/userinfo", headers=headers)
        try:
            with urllib.request.urlopen(request, context=context, timeout=20) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()
    status, body = user_info({"Authorization": "Bearer " + good["access_token"]})
    assert status == 200 and json.loads(body)["organization_id"] == good["id"].split("/")[-2]
    assert user_info({"Authorization": "Bearer x"}) == (403, b"Bad_OAuth_Token")
    assert user_info({}) == (403, b"Missing_OAuth_Token")
    control("POST", "/control/faults", {"method": "Login", "status": 400, "error_code": "invalid_grant", "message": "ip restricted"})
    assert login(url, client_id, secret, ca) == (400, {"error": "invalid_grant", "error_description": "ip restricted"})
    assert login(url, client_id, secret, ca)[0] == 200


def raw_subscribe(client, requests):
    """One call with exactly these requests; the request side stays open until the call has ended."""
    ended = threading.Event()
    def generate():
        yield from requests
        ended.wait(30)
    call = client.stub.Subscribe(generate(), metadata=client.metadata)
    return call, ended


def events_of(call, ended, count):
    got = []
    for response in call:
        got += response.events
        if len(got) >= count:
            break
    call.cancel()
    ended.set()
    return got


def credit_rules():
    client = connect()
    F = pb2.FetchRequest
    for bad in (0, -5):
        expect(grpc.StatusCode.INVALID_ARGUMENT, "subscription.fetch.requested.events.invalid",
               lambda: client.subscribe(OPPORTUNITY, num_requested=bad))
    # more than 100 is 100, and nothing comes without credit
    call, ended = raw_subscribe(client, [F(topic_name=OPPORTUNITY, replay_preset=1, num_requested=5000)])
    pending, count = None, 0
    for response in call:
        count += len(response.events)
        assert response.pending_num_requested == 100 - count
        if count == 100:
            break
    # 60 s without credit end the call
    control("POST", "/control/clock?advance=61s")
    assert list(call) == [] and call.code() == grpc.StatusCode.OK
    ended.set()
    # additive
    call, ended = raw_subscribe(client, [
        F(topic_name=OPPORTUNITY, replay_preset=1, num_requested=3), F(num_requested=4), F(topic_name=OPPORTUNITY, num_requested=5)])
    assert len(events_of(call, ended, 12)) == 12
    # another topic
    call, ended = raw_subscribe(client, [F(topic_name=OPPORTUNITY, replay_preset=1, num_requested=3), F(topic_name="/data/ChangeEvents", num_requested=1)])
    expect(grpc.StatusCode.INVALID_ARGUMENT, "subscription.fetch.topic.mismatch", lambda: call)
    ended.set()
    # half-close
    responses = list(client.stub.Subscribe(
        iter([F(topic_name=OPPORTUNITY, replay_preset=1, num_requested=3)]), metadata=client.metadata))
    assert sum(len(response.events) for response in responses) == 0


def positions():
    client = connect()
    F = pb2.FetchRequest
    def read(preset, count, replay_id=b""):
        call, ended = raw_subscribe(client, [F(topic_name=OPPORTUNITY, replay_preset=preset, replay_id=replay_id, num_requested=count)])
        return events_of(call, ended, count)
    ids = [event.replay_id for event in read(1, 50)]
    assert len(set(ids)) == 50 and all(len(item) == 10 and item[8:] == b"\0\0" for item in ids) and ids == sorted(ids)
    assert [event.replay_id for event in read(2, 20, ids[9])] == ids[10:30]
    assert [event.replay_id for event in read(2, 20, ids[9][:8])] == ids[10:30]
    corrupted = "subscription.fetch.replayid.corrupted"
    gap = (int.from_bytes(ids[0][:8], "big") - 1).to_bytes(8, "big") + b"\0\0"
    for bad in (b"x", b"\xff" * 10, b"\0" * 10, gap):
        expect(grpc.StatusCode.INVALID_ARGUMENT, corrupted, lambda: client.subscribe(OPPORTUNITY, "CUSTOM", bad))
    expect(grpc.StatusCode.INVALID_ARGUMENT, "subscription.fetch.replayid.validation.failed",
           lambda: client.subscribe(OPPORTUNITY, "CUSTOM", b""))
    # LATEST sees what comes later
    call, ended = raw_subscribe(client, [F(topic_name=OPPORTUNITY, num_requested=7)])
    call.initial_metadata()
    control("POST", "/control/publish?count=7&topic=" + OPPORTUNITY)
    assert len(events_of(call, ended, 7)) == 7


def keepalives_and_retention():
    client = connect()
    F = pb2.FetchRequest
    call, ended = raw_subscribe(client, [F(topic_name=OPPORTUNITY, num_requested=9)])
    call.initial_metadata()
    control("POST", "/control/clock?advance=271s")
    alive = next(call)
    assert not alive.events and alive.pending_num_requested == 9 and len(alive.latest_replay_id) == 10
    call.cancel()
    ended.set()
    # its position is valid and lies behind everything
    control("POST", "/control/publish?count=3&topic=" + OPPORTUNITY)
    call, ended = raw_subscribe(client, [F(topic_name=OPPORTUNITY, replay_preset=2, replay_id=alive.latest_replay_id, num_requested=3)])
    new = events_of(call, ended, 3)
    assert len(new) == 3
    control("POST", "/control/clock?advance=73h")
    client = connect()
    for old in (new[0].replay_id, alive.latest_replay_id):
        expect(grpc.StatusCode.INVALID_ARGUMENT, "subscription.fetch.replayid.corrupted",
               lambda: client.subscribe(OPPORTUNITY, "CUSTOM", old))
    control("POST", "/control/publish?count=2&topic=" + OPPORTUNITY)
    call, ended = raw_subscribe(client, [F(topic_name=OPPORTUNITY, replay_preset=1, num_requested=2)])
    assert len(events_of(call, ended, 2)) == 2


def publishing():
    client = connect()
    topic = "/event/Order_Event__e"
    info = client.get_topic(topic)
    parsed, _ = client.schema(info.schema_id)
    def event(record, id=""):
        out = io.BytesIO()
        fastavro.schemaless_writer(out, parsed, record)
        return pb2.ProducerEvent(id=id, schema_id=info.schema_id, payload=out.getvalue())
    record = {"CreatedDate": 1700000000000, "CreatedById": "005000000000000AAA", "Order_Number__c": "ü\0🚀", "Amount__c": -0.5}
    F = pb2.FetchRequest
    call, ended = raw_subscribe(client, [F(topic_name=topic, num_requested=3)])
    call.initial_metadata()
    good, bad = event(record, "k1"), pb2.ProducerEvent(id="k2", schema_id=info.schema_id, payload=b"\1")
    answer = client.stub.Publish(pb2.PublishRequest(topic_name=topic, events=[good, bad, event(record)]), metadata=client.metadata)
    assert [result.correlation_key for result in answer.results][:2] == ["k1", "k2"]
    assert answer.results[0].replay_id and answer.results[1].error.code == pb2.PUBLISH and answer.results[2].correlation_key
    stream = client.stub.PublishStream(
        iter([pb2.PublishRequest(topic_name=topic, events=[event(record, "k3")])]), metadata=client.metadata)
    streamed = list(stream)
    assert len(streamed) == 1 and streamed[0].results[0].correlation_key == "k3"
    got = events_of(call, ended, 3)
    assert [item.event.id for item in got] == ["k1", answer.results[2].correlation_key, "k3"]
    assert got[0].replay_id == answer.results[0].replay_id
    decoded = client.decode(got[0].event)
    assert {key: decoded[key] for key in record} == record
    last = truth_by_topic()[topic][-1]
    assert last["event_id"] == "k3" and last["fields"] == record
    def publish(**fields):
        return lambda: client.stub.Publish(pb2.PublishRequest(**fields), metadata=client.metadata)
    expect(grpc.StatusCode.INVALID_ARGUMENT, "publish.event.count.invalid", publish(topic_name=topic))
    expect(grpc.StatusCode.INVALID_ARGUMENT, "publish.topic.validation.empty", publish())
    expect(grpc.StatusCode.PERMISSION_DENIED, "topic.meta.permission", publish(topic_name=OPPORTUNITY, events=[good]))
    mixed = iter([pb2.PublishRequest(topic_name=topic, events=[good]), pb2.PublishRequest(topic_name="/event/CM_Test_Event_Two__e", events=[good])])
    expect(grpc.StatusCode.INVALID_ARGUMENT, "publish.topic.mismatch",
           lambda: client.stub.PublishStream(mixed, metadata=client.metadata))
    expect(grpc.StatusCode.NOT_FOUND, "managed.subscription.developer.name.not.found", lambda: client.stub.ManagedSubscribe(
        iter([pb2.ManagedFetchRequest(developer_name="x", num_requested=1)]), metadata=client.metadata))


def faults():
    client = connect()
    def read():
        got = 0
        for response in client.subscribe(OPPORTUNITY):
            got += len(response.events)
            if got >= 300:
                return got
        return got
    def fault(**body):
        control("POST", "/control/faults", {"after_events": 5, **body})
    fault(status=8, error_code="subscription.limit.exceeded", message="über")
    error = expect(grpc.StatusCode.RESOURCE_EXHAUSTED, "subscription.limit.exceeded", read)
    assert error.details().startswith("über rpcId: ")
    for action, statuses in (("reset", {"INTERNAL", "UNAVAILABLE"}), ("drop", {"UNAVAILABLE"}),
                             ("no_trailers", {"UNKNOWN", "INTERNAL", "UNAVAILABLE"}), ("truncate", {"UNKNOWN", "INTERNAL", "UNAVAILABLE"})):
        fault(action=action)
        try:
            read()
        except grpc.RpcError as error:
            assert error.code().name in statuses, (action, error.code())
        else:
            raise AssertionError(f"{action} had no effect")
    fault(action="goaway")
    assert read() >= 300
    control("POST", "/control/faults", [{"method": "GetSchema", "status": 14, "error_code": "schema.api.unavailable"}])
    expect(grpc.StatusCode.UNAVAILABLE, "schema.api.unavailable", lambda: client.get_schema("_CADE3qaegX3ECEW0rlbYA"))
    client.get_schema("_CADE3qaegX3ECEW0rlbYA")
    assert control("GET", "/control/stats")["faults"] == 0


def counts():
    before = control("GET", "/control/delivered")["total"]
    call, ended = raw_subscribe(connect(), [pb2.FetchRequest(topic_name=OPPORTUNITY, replay_preset=1, num_requested=40)])
    assert len(events_of(call, ended, 40)) == 40
    after = control("GET", "/control/delivered")
    assert after["total"] == before + 40 == sum(row["events"] for row in after["clients"])
    stats = control("GET", "/control/stats")
    assert stats["delivered"] == after["total"] and stats["topics"][OPPORTUNITY]["events"] > 0


def control_is_guarded():
    """Other users, web pages and names that lead to 127.0.0.1 are refused; files stay in the simulator's folder."""

    def status(headers, path="/control/stats", data=None, method="GET"):
        request = urllib.request.Request(CONTROL + path, data=data, method=method, headers=headers)
        try:
            return urllib.request.urlopen(request, timeout=60).status
        except urllib.error.HTTPError as error:
            assert "error" in json.load(error)
            return error.code

    assert status(SECRET) == 200
    assert status({}) == status({"X-Simulator-Secret": "0" * 32}) == status({"X-Simulator-Secret": ""}) == 403
    assert status(SECRET | {"Origin": "http://localhost"}) == status(SECRET | {"Origin": "null"}) == 403
    assert status(SECRET | {"Host": "rebound.example"}) == status(SECRET | {"Host": "localhost.example:80"}) == 403
    before = control("GET", "/control/stats")["published"]
    assert status({}, "/control/publish?count=1", b"", "POST") == 403
    assert control("GET", "/control/stats")["published"] == before
    for name in ("", ".", "..", "/tmp/x", "../x", "a/b", ".x", "a\0b"):
        assert status(SECRET, "/control/state", name.encode(), "POST") == 400, name
    path = control("POST", "/control/state", "state.ndjson")["path"]
    assert os.stat(os.path.dirname(path)).st_mode & 0o777 == 0o700, path


def large_responses():
    """Every event has nearly 1 MB: responses are split at 3 MB."""
    client = connect()
    count = 0
    for response in client.subscribe("/data/ContactChangeEvent"):
        assert response.ByteSize() <= 3_000_100, response.ByteSize()
        assert len(response.events) <= 3 or response.ByteSize() < 3_000_000
        count += sum(len(event.event.payload) > 1_000_000 for event in response.events)
        if count >= 20:
            return
    raise AssertionError("no large events")


def noise_is_survived():
    """Bytes that are not HTTP/2, broken frames, clients that vanish: the server goes on and forgets them."""
    import random
    import socket
    import struct
    port = int(ENV["PUBSUB_ENDPOINT"].split(":")[-1])
    # clients of earlier checks may still be connected
    before = control("GET", "/control/stats")["connections"]
    numbers = random.Random(1)
    for round in range(60):
        peer = socket.create_connection(("127.0.0.1", port), timeout=5)
        try:
            if round % 3 == 0:
                peer.sendall(numbers.randbytes(200))
            else:
                peer.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0")
                for _ in range(5):
                    count = numbers.randrange(60)
                    kind, flags, stream = numbers.randrange(12), numbers.randrange(256), numbers.randrange(9)
                    peer.sendall(struct.pack(">I", count)[1:] + bytes([kind, flags]) + struct.pack(">I", stream)
                                 + numbers.randbytes(count))
            if round % 2:
                peer.shutdown(socket.SHUT_WR)
                while peer.recv(65536):
                    pass
        except OSError:
            pass
        peer.close()
    if not ENV["PUBSUB_CA_FILE"]:
        peer = socket.create_connection(("127.0.0.1", port), timeout=5)
        peer.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert peer.recv(100).startswith(b"HTTP/1.1 415 ")
        peer.close()
    for _ in range(2000):
        if control("GET", "/control/stats")["connections"] <= before:
            return
    raise AssertionError("connections are left")


for name in sys.argv[1:]:
    globals()[name]()
    print("ok", name, flush=True)
