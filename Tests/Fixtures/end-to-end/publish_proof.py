"""`pubsub-etl publish` against the simulator, over TLS; a client on grpcio and fastavro reads what arrived.

    publish_proof.py --programs DIR --work DIR [--only NAME]...

Each scenario compares three things: the results on standard output, what the client decodes, and the
simulator's truth. Faults: lost answers, dropped connections, a service that is killed and comes back, expired
tokens, used-up allowances, another schema, wrong lines, signals, a reader that goes away. Exits 1 when anything
differs.
"""

import collections
import json
import os
import re
import signal
import socket
import sys
import threading
import time

import harness
from publish_other import OtherService
from publish_runs import Service, Session, TOPIC, events, expect_account, expect_equal, fail, text_of


def publishes(arguments, *options):
    with Service(arguments, "publishes" + "".join(options)) as service:
        lines = events(1300)
        results, errors = service.publish(text_of(lines), *options)
        if errors:
            fail("a success without a terminal prints nothing:", errors)
        expect_equal(lines, results, service.received(len(lines)))
        calls = service.stats()["calls"]
        if calls.get("PublishStream" if options else "Publish", 0) < 7:
            fail("too few requests:", calls)
        # A file as argument, a pipeline file for the org.
        pipeline, path = service.work + "/p.json", service.work + "/more.ndjson"
        document = harness.pipeline("p", [TOPIC])
        document["sinks"] = [{"type": "postgres", "name": "db", "url": "${NOT_SET}"}]
        harness.write_json(pipeline, document)
        more = events(3, seed=2)
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n  \n" + text_of(more).rstrip("\n"))
        results, _ = service.publish("", *options, path, org=pipeline)
        if [(r["line"], r["status"]) for r in results] != [(n, "published") for n in (3, 4, 5)]:
            fail("a file as argument:", results)
        results, _ = service.publish("", *options)
        if results:
            fail("an empty input has results:", results)


def publishes_by_stream(arguments):
    publishes(arguments, "--stream")


def wrong_lines(arguments):
    with Service(arguments, "wrong_lines") as service:
        good = '{"Order_Number__c": "x"}'
        cases = [
            (good, None), ("{", "column 2"), ('{"Citty__c": "x"}', "did you mean 'City__c'"),
            ('{"Amount__c": "many"}', "/Amount__c: expected"), ("[1]", "expected an object"),
            ('{"Order_Number__c": 5, "City__c": true}', "/Order_Number__c: expected"),
            ('{"EventUuid": ""}', "/EventUuid: expected the event's ID"),
            ('{"CreatedDate": null}', "/CreatedDate: expected"),
            ('{"City__c": "%s"}' % ("x" * 1_100_000), "the event has 1100"), (good, None),
            ('{"City__c": "%s"}' % ("x" * 5_000_000), "the line has more than"),
            ('{"City__c": "\\ud800"}', "column"), (b'{"City__c": "\xff"}', "UTF-8"),
            ('{"City__c": "a", "City__c": "b"}', "City__c"), (good, None),
        ]
        text = b"\n".join(line if isinstance(line, bytes) else line.encode() for line, _ in cases)
        for options in ([], ["--stream"]):
            results, errors = service.publish(text, *options, code=65)
            if [result["line"] for result in results] != list(range(1, len(cases) + 1)):
                fail("results:", results)
            for (_, expected), result in zip(cases, results):
                want = "published" if expected is None else "refused"
                if result["status"] != want or expected and expected not in result["error"]:
                    fail("expected", want, expected, "found", result)
            if "standard input:3: /Citty__c" not in errors or "3 events published, 12 lines refused" not in errors:
                fail("standard error:", errors)
            if "more lines were refused" not in errors:
                fail("all refusals are told:", errors)
        # 2 runs, 3 events each.
        if len(service.truth()) != 6:
            fail("the truth has", len(service.truth()), "events")
        results, errors = service.publish(text, "--dry-run", code=65)
        statuses = collections.Counter(result["status"] for result in results)
        if statuses != {"valid": 3, "refused": 12} or not results[0]["bytes"] > 20:
            fail("dry run:", statuses)
        results, errors = service.publish(good + "\n" + good, "--dry-run")
        if "2 events could be published" not in errors or len(service.truth()) != 6:
            fail("a dry run publishes nothing:", errors, len(service.truth()))
        for wrong, has_hint in (('[{"City__c": "x"}]', True), ('{"Citty__c": "x"}', False)):
            _, errors = service.publish(wrong, code=65)
            if ("no line is a JSON object" in errors) != has_hint:
                fail("the hint about the form:", errors)
        process = service.start("--show-schema")
        output, _ = process.communicate(timeout=60)
        if process.returncode or "City__c" not in [f["name"] for f in json.loads(output)["fields"]]:
            fail("--show-schema:", process.returncode, output)
        results, _ = service.publish('{"Key": "k-1"}\n{}', "--id-field", "Key", code=65)
        if [r["id"] for r in results] != ["k-1", None] or "--id-field" not in results[1]["error"]:
            fail("--id-field:", results)
        results, _ = service.publish("{}", "--created-by", "005000000000009")
        if service.truth()[-1]["fields"]["CreatedById"] != "005000000000009":
            fail("--created-by:", service.truth()[-1])


def refused_runs(arguments):
    with Service(arguments, "refused_runs") as service:
        line = '{"City__c": "x"}'
        cases = [
            (64, "Salesforce alone publishes change events", {"topic": "/data/OpportunityChangeEvent"}, []),
            (64, "--topic", {"topic": "Order_Event__e"}, []),
            (64, "--rate", {}, ["--rate", "0"]),
            (64, "cannot be read", {}, ["/no/such/file"]),
            (77, "topic.not.found", {"topic": "/event/No_Such__e"}, []),
        ]
        for code, words, more, options in cases:
            results, errors = service.publish(line, *options, code=code, **more)
            if results or words not in errors:
                fail("exit", code, results, errors)
        org = harness.pipeline("p", [TOPIC])["source"]["org"]
        path = service.work + "/other.json"
        for code, words, change in [
            (77, "invalid_client", {"client_secret": "wrong"}), (78, "NOT_SET", {"client_secret": "${NOT_SET}"}),
            (78, "unknown key", {"secret": "x"}),
        ]:
            harness.write_json(path, {**org, "auth": {**org["auth"], **change}})
            results, errors = service.publish(line, code=code, org=path)
            if results or words not in errors:
                fail("exit", code, results, errors)
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))
            harness.write_json(path, {**org, "endpoint": "https://127.0.0.1:%d" % closed.getsockname()[1]})
            _, errors = service.publish(line, "--give-up-after", "0s", code=69, org=path)
            if "cannot connect" not in errors:
                fail(errors)
        harness.write_json(path, {**org, "tls": {}})
        service.publish(line, code=78, org=path)
        if service.truth():
            fail("something was published")
    with harness.Simulator(arguments.programs, os.path.join(arguments.work, "refused_runs")) as simulator:
        service.simulator = simulator
        _, errors = service.publish(line, code=77, topic="/event/Orders__chn")
        if "can_publish is false" not in errors:
            fail(errors)


def lives_through_changes(arguments, *options):
    """Between lines the schema changes, tokens expire, and the service goes away in order."""
    with Service(arguments, "changes" + "".join(options)) as service:
        lines = events(90)
        session = Session(service, *options)
        session.feed(lines[:30])
        session.read(30)
        # An open stream goes on with a token that has expired; fetching the schema needs another.
        service.simulator.post("tokens/revoke")
        service.simulator.post("schemas")
        session.feed(lines[30:60])
        session.read(30)
        if not options:
            service.fault(method="Publish", what="service.auth.error")
        session.feed(lines[60:])
        session.read(30)
        session.finish()
        received = service.received(len(lines))
        expect_equal(lines, session.results, received)
        if [len(set(r[2] for r in received[:30])), len(set(r[2] for r in received[30:]))] != [1, 1]:
            fail("schema IDs")
        if received[0][2] == received[-1][2]:
            fail("the schema has not changed")
        if service.stats()["logins"] < 2:
            fail("nobody logged in again")


def lives_through_changes_by_stream(arguments):
    lives_through_changes(arguments, "--stream")


def lost_answers(arguments, *options):
    """Events whose answer is lost are unknown; with --repeat-unknown they come twice, with one ID."""
    method = "PublishStream" if options else "Publish"
    with Service(arguments, "lost" + "".join(options)) as service:
        lines = events(900)
        service.fault(method=method, what="lost_answer", at={"call": 2})
        results, errors = service.publish(text_of(lines), *options, code=69)
        statuses = collections.Counter(result["status"] for result in results)
        if len(results) != 900 or set(statuses) != {"published", "unknown"}:
            fail("statuses:", statuses)
        if "but not answered" not in errors:
            fail(errors)
        expect_account(service, results)
        published = collections.Counter(line["event_id"] for line in service.truth())
        if not any(published[r["id"]] for r in results if r["status"] == "unknown"):
            fail("no unknown event was published, so the fault did not lose an answer")

        before = len(service.truth())
        more = events(900, seed=2)
        service.fault(method=method, what="lost_answer", at={"call": 2})
        results, _ = service.publish(text_of(more), *options, "--repeat-unknown")
        if any(result["status"] != "published" for result in results):
            fail("not published:", [r for r in results if r["status"] != "published"][:2])
        counts = collections.Counter(line["event_id"] for line in service.truth()[before:])
        if set(counts) != {result["id"] for result in results} or set(counts.values()) != {1, 2}:
            fail("repetitions:", collections.Counter(counts.values()))

        # Faults after which events were certainly not published, or are not known to be.
        before = len(service.truth())
        for seed, fault in enumerate([
            {"what": "reset", "http2_code": 7}, {"what": "goaway"}, {"what": "service.protection.triggered"},
            {"what": "drop"}, {"what": "no_trailers"}, {"what": "truncate"}, {"what": "reset", "http2_code": 2},
            {"what": "service.unavailable"},
        ], start=10):
            if fault["what"] == "service.protection.triggered":
                continue  # waits for 30 s
            certain = seed < 13
            service.fault(method=method, **fault)
            few = events(40, seed=seed)
            results, _ = service.publish(text_of(few), *options, code=0 if certain else 69)
            statuses = collections.Counter(result["status"] for result in results)
            if len(results) != 40 or statuses["published"] + statuses["unknown"] != 40:
                fail(fault, statuses)
            found = collections.Counter(line["event_id"] for line in service.truth()[before:])
            for result in results:
                if found[result["id"]] > 1 or result["status"] == "published" and not found[result["id"]]:
                    fail(fault, result, found[result["id"]])


def lost_answers_by_stream(arguments):
    lost_answers(arguments, "--stream")


def used_up(arguments, *options):
    with Service(arguments, "used_up" + "".join(options)) as service:
        method = "PublishStream" if options else "Publish"
        message = "LIMIT_EXCEEDED: hourly publishing limit"
        service.fault(method=method, what="status", status=8, message=message, at={"call": 3})
        lines = events(1000)
        results, errors = service.publish(text_of(lines), *options, code=75)
        statuses = collections.Counter(result["status"] for result in results)
        if not statuses["not_sent"] and not statuses["unknown"] or statuses["published"] < 200:
            fail(statuses)
        if not options and statuses["unknown"]:
            fail("a refused call published nothing:", statuses)
        expect_account(service, results)
        read = int(re.search(r"lines after (\d+) were not read", errors).group(1))
        if read != results[-1]["line"] or "LIMIT_EXCEEDED" not in errors:
            fail(errors, results[-1])


def used_up_by_stream(arguments):
    used_up(arguments, "--stream")


def killed_service(arguments, *options):
    """The service dies in mid-run and comes back with its state."""
    name = "killed" + "".join(options)
    with socket.socket() as one, socket.socket() as two:
        one.bind(("127.0.0.1", 0))
        two.bind(("127.0.0.1", 0))
        ports = ["--port", str(one.getsockname()[1]), "--login-port", str(two.getsockname()[1])]
    state = arguments.work + "/state-" + name
    os.mkdir(state)
    service = Service(arguments, name, "--state-dir", state, *ports)
    lines = events(6000)
    process = service.start(*options, "--rate", "4000", "--give-up-after", "120s")
    threading.Thread(
        target=lambda: (process.stdin.write(text_of(lines).encode()), process.stdin.close()), daemon=True).start()
    results = [json.loads(process.stdout.readline()) for _ in range(1500)]
    service.simulator.process.kill()
    service.simulator.process.wait()
    service.simulator = harness.Simulator(
        arguments.programs, service.work, "--topics", TOPIC, "--state-dir", state, *ports)
    with service:
        results += [json.loads(line) for line in process.stdout]
        errors = process.stderr.read().decode()
        code = process.wait(300)
        statuses = collections.Counter(result["status"] for result in results)
        if [result["line"] for result in results] != list(range(1, 6001)):
            fail("results are missing:", len(results), errors)
        if code != (69 if statuses["unknown"] else 0) or statuses["not_sent"] or statuses["refused"]:
            fail("ended with", code, statuses, errors)
        expect_account(service, results)
        print("  ", dict(statuses))


def killed_service_by_stream(arguments):
    killed_service(arguments, "--stream")


def gone_service(arguments):
    """The service dies and does not come back: what was read has a result."""
    service = Service(arguments, "gone")
    session = Session(service, "--give-up-after", "2s")
    session.feed(events(50))
    session.read(50)
    service.simulator.process.kill()
    service.simulator.process.wait()
    session.feed(events(50, seed=2))
    errors = session.finish(69)
    statuses = collections.Counter(result["status"] for result in session.results[50:])
    if sum(statuses.values()) == 0 or set(statuses) - {"unknown", "not_sent"}:
        fail(statuses, errors)
    if "were not read" not in errors or "trying again, for up to --give-up-after" not in errors:
        fail(errors)


def rates(arguments):
    with Service(arguments, "rates") as service:
        for options in ([], ["--stream"]):
            start = time.monotonic()
            results, _ = service.publish(text_of(events(60)), "--rate", "40", *options)
            # Requests of four: the last goes out 56 / 40 s after the first, on a busy machine even later.
            took = time.monotonic() - start
            if len(results) != 60 or took < 56 / 40:
                fail("60 events at 40 per second took", took, "s")


def stops(arguments):
    """Signals end a run in order; so does a reader that goes away."""
    with Service(arguments, "stops") as service:
        for number, options in [(signal.SIGINT, []), (signal.SIGTERM, ["--stream"])]:
            session = Session(service, *options)
            session.feed(events(30, seed=int(number)))
            session.read(30)
            session.process.send_signal(number)
            # Standard input stays open.
            if session.process.wait(60) != 75:
                fail("a signal ends with", session.process.returncode)
            if "stopped by a signal" not in session.process.stderr.read().decode():
                fail("standard error after a signal")
            expect_account_of(service, session.results)
        # While events wait for their time.
        session = Session(service, "--rate", "0.5", "--stream")
        session.feed(events(10, seed=77))
        session.read(1)
        session.process.send_signal(signal.SIGTERM)
        session.finish(75)
        statuses = collections.Counter(result["status"] for result in session.results)
        if statuses["not_sent"] < 1 or statuses["published"] + statuses["not_sent"] > 10:
            fail(statuses)
        expect_account_of(service, session.results)
        # While the service does not answer the login.
        process = service.start("--stream")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
        if process.returncode not in (75, -signal.SIGTERM):
            fail("a signal at the start:", process.returncode)

        read, write = os.pipe()
        os.close(read)
        process = service.start(stdout=write)
        os.close(write)
        _, errors = process.communicate(text_of(events(700, seed=78)).encode(), timeout=60)
        if process.returncode != 74 or b"results cannot be written" not in errors:
            fail("standard output closed:", process.returncode, errors)
        if b"results were written up to line 0" not in errors:
            fail(errors)
        # A slow reader of a pipe that does not block.
        read, write = os.pipe()
        os.set_blocking(write, False)
        process = service.start(stdout=write)
        os.close(write)
        process.stdin.write(text_of(events(3000, seed=80)).encode())
        process.stdin.close()
        text = b""
        while part := os.read(read, 20000):
            text += part
            # The reader is slow.
            time.sleep(0.01)
        os.close(read)
        results = [json.loads(line) for line in text.splitlines()]
        if process.wait(60) != 0 or len(results) != 3000:
            fail("standard output that does not block:", process.returncode, len(results))
        full = open("/dev/full", "wb")
        process = service.start("--stream", stdout=full)
        _, errors = process.communicate(text_of(events(700, seed=79)).encode(), timeout=60)
        if process.returncode != 74:
            fail("a full disk:", process.returncode, errors)


def stalls(arguments):
    """A signal while the service does not answer: the answer is awaited for 30 s, and is unknown then."""
    with Service(arguments, "stalls") as service:
        sessions = []
        for seed, options in enumerate([[], ["--stream"]]):
            method = "PublishStream" if options else "Publish"
            service.fault(method=method, what="stall", at={"call": 2})
            session = Session(service, *options)
            session.feed(events(20, seed=seed))
            session.read(20)
            session.feed(events(20, seed=seed + 10))
            sessions.append((session, method))
        for session, method in sessions:
            while service.stats()["calls"].get(method, 0) < 2:
                pass  # until the request that is not answered has arrived
            session.process.send_signal(signal.SIGTERM)
        for session, _ in sessions:
            errors = session.finish(75)
            statuses = collections.Counter(result["status"] for result in session.results)
            if statuses != {"published": 20, "unknown": 20} or "no answer" not in session.results[-1]["error"]:
                fail(statuses, errors)
            expect_account_of(service, session.results)


def expect_account_of(service, results):
    found = collections.Counter(line["event_id"] for line in service.truth())
    for result in results:
        if found[result["id"]] != (result["status"] == "published"):
            fail(result, found[result["id"]])


def much(arguments):
    """40,000 lines in bounded memory."""
    with Service(arguments, "much") as service:
        text = text_of(events(1000)) * 40
        text = re.sub(r', "EventUuid": "[^"]*"', "", text)
        process = service.start("--stream")
        peak = []

        def watch():
            try:
                with open("/proc/%d/status" % process.pid, encoding="ascii") as file:
                    peak.append(int(re.search(r"VmHWM:\s+(\d+)", file.read()).group(1)))
            except (OSError, AttributeError):
                pass

        threading.Thread(
            target=lambda: (process.stdin.write(text.encode()), process.stdin.close()), daemon=True).start()
        count = 0
        for line in process.stdout:
            count += b'"published"' in line
            if count % 10000 == 0:
                watch()
        if process.wait(300) or count != 40000:
            fail("published", count, process.stderr.read())
        print("   peak memory %d MB" % (peak[-1] // 1024))
        if peak[-1] > 200 * 1024:
            fail("memory grew to", peak[-1], "KB")


def other_service(arguments, *options):
    """A service that decodes by fastavro, changes its schema, and fails at random."""
    for seed, how in [(1, ["--calm"]), (2, []), (3, [])]:
        service = OtherService(arguments, "other%s%d" % ("".join(options), seed), seed, *how)
        code, results, errors = service.publish(*options)
        statuses = collections.Counter(result["status"] for result in results)
        if len(results) != len(service.lines) or statuses["not_sent"]:
            fail(statuses, errors)
        if code != (69 if statuses["unknown"] else 65 if statuses["refused"] else 0):
            fail("ended with", code, statuses, errors)
        if how and set(statuses) != {"published"}:
            fail(statuses, errors)
        service.expect_account(results)
        # Where calls fail, events of which nobody knows may be most of them, and the schema may change less.
        if how == ["--calm"] and len(set(entry[2] for entry in service.stored)) != 3:
            fail("the schema has not changed twice")
        print("  ", dict(statuses))
    # Single events are refused because the allowance is used up.
    service = OtherService(arguments, "allowance" + "".join(options), 4, "--calm", "--allowance", "650")
    code, results, errors = service.publish(*options)
    statuses = collections.Counter(result["status"] for result in results)
    if code != 75 or statuses["published"] != 650 or set(statuses) != {"published", "not_sent"}:
        fail("ended with", code, statuses, errors)
    service.expect_account(results)
    if not all("LIMIT_EXCEEDED" in r["error"] for r in results if r["status"] == "not_sent"):
        fail([r for r in results if r["status"] == "not_sent"][:2])
    print("  ", dict(statuses))


def other_service_by_stream(arguments):
    other_service(arguments, "--stream")


SCENARIOS = [
    publishes, publishes_by_stream, wrong_lines, refused_runs, lives_through_changes,
    lives_through_changes_by_stream, lost_answers, lost_answers_by_stream, used_up, used_up_by_stream,
    killed_service, killed_service_by_stream, gone_service, rates, stops, stalls, much, other_service,
    other_service_by_stream,
]


def main():
    arguments = harness.arguments(only=[])
    failed = False
    for scenario in SCENARIOS:
        if arguments.only and scenario.__name__ not in arguments.only:
            continue
        try:
            scenario(arguments)
            print("ok", scenario.__name__, flush=True)
        except AssertionError as error:
            failed = True
            print("FAILED %s: %s" % (scenario.__name__, error), flush=True)
    if failed:
        sys.exit(1)


if __name__ == "__main__":
    main()
