"""The real program when the service fails: exit code, messages, state, and the next run.

    service_faults_proof.py --programs DIR --work DIR [--only NAME]

Each scenario has a simulator of its own, which fails on demand; events that cannot be decoded come
from other_service.py. After a failure the report and `status` tell the same exit code, the checkpoint
stands where the files end, and once the fault is gone a run completes the files: every event once, as
published. --only: one scenario, without its `try_`. Exits 1 when anything differs.
"""

import base64
import concurrent.futures
import glob
import json
import os
import signal
import sys
import time

import harness
import other_service_proof
import zstandard

TOPIC = "/data/OpportunityChangeEvent"
EVENTS = 400
# Stands for a fault that comes again and again.
ALWAYS = 1000


def lines(output, part=""):
    """All lines of the files whose names have this part, those in progress too."""
    found = []
    for directory, _, names in os.walk(output):
        for name in names:
            if part in name and ".ndjson.zst" in name:
                with open(os.path.join(directory, name), "rb") as file:
                    # A file in progress has no end of frame.
                    reader = zstandard.ZstdDecompressor().stream_reader(file)
                    data = b""
                    while chunk := reader.read(1 << 16):
                        data += chunk
                found += [json.loads(line) for line in data.splitlines()]
    return found


class Run(harness.Exporter):
    """A pipeline and its directory."""

    def __init__(self, proof, name, topic=TOPIC, service=None, **keys):
        self.proof, self.name, self.topic = proof, name, topic
        self.service = service or proof.simulator
        document = harness.pipeline(name, topic)
        for path, value in keys.items():
            part, key = path.split("__")
            document.setdefault(part, {})[key] = value
        document["commit"] = {"max_events": 20}
        super().__init__(
            proof.programs + "/pubsub-etl", "%s/%s.json" % (proof.work, name), self.service.environment)
        self.output = "%s/out/%s" % (proof.work, name)
        self.report_path = "%s/%s.report.json" % (proof.work, name)
        harness.write_json(self.path, document)

    def start(self, *options):
        return self.spawn("run", "--report", self.report_path, *options)

    def finish(self, process, code, reason, *words):
        """Waits for the end; `words` are said on standard error, and nothing is when all went well."""
        self.end(process, (code,))
        report = self.report()
        if (report["exit_code"], report["reason"]) != (code, reason):
            self.fail("the report says", report["exit_code"], report["reason"], "not", reason)
        self.says(*words)
        if code == 0 and not words and self.said():
            self.fail("is not silent")
        secrets = [self.service.environment["SF_CLIENT_SECRET"], "Bearer "]
        if any(secret in self.said() for secret in secrets):
            self.fail("tells a secret")
        return report

    def run(self, code, reason, *words, options=()):
        return self.finish(self.start(*options), code, reason, *words)

    def report(self):
        return harness.read_json(self.report_path)

    def checkpoint(self):
        path = "%s/state/%s.checkpoint.json" % (self.proof.work, self.name)
        return harness.read_json(path) if os.path.exists(path) else None

    def position(self):
        document = self.checkpoint()
        return document and document["topics"].get(self.topic)

    def check_status(self, code):
        self.call("status", codes=(code,))

    def check_state(self, at_least, less_than=None):
        """The checkpoint stands where the files end; returns how many events they hold."""
        position = self.position()
        ids = {line["_event_id"] for line in lines(self.output)}
        if position is None or position["next_ordinal"] != len(ids):
            self.fail("checkpoint", position, "but", len(ids), "events in the files")
        if len(ids) < at_least or (less_than is not None and len(ids) >= less_than):
            self.fail(len(ids), "events, not from", at_least, "to", less_than)
        return len(ids)

    def complete(self):
        """A healthy run: silent, 0, and the files hold the truth."""
        self.run(0, "caught_up")
        self.check_status(0)
        harness.compare(self.service, self.output, [self.topic])

    def complete_impatiently(self):
        """A healthy run of a pipeline that would wait for hours."""
        document = harness.read_json(self.path)
        document["run"]["quiet"] = "1s"
        document["source"]["num_requested"] = 100
        harness.write_json(self.path, document)
        self.complete()


class Proof:
    def __init__(self, programs, work, simulator):
        self.programs, self.work, self.simulator = programs, work, simulator

    def fault(self, **fault):
        self.simulator.fault(**({"topic": TOPIC} if "method" not in fault else {}), **fault)

    def status_fault(self, name, code, reason, *words, exported=0, **fault):
        """A call that fails for good: the exit code, what was exported before, the next run."""
        run = Run(self, name)
        self.fault(times=ALWAYS, **fault)
        run.run(code, reason, *words)
        self.simulator.forget_faults()
        run.check_status(code)
        if exported:
            run.check_state(exported, EVENTS)
        elif lines(run.output):
            run.fail("exported before the fault")
        run.complete()

    # Scenarios. Exported before a fault is what one response more may add to.

    def try_quota(self):
        self.status_fault(
            "quota", 75, "subscription_limit_exceeded", "allowance", TOPIC, status=8,
            error_code="subscription.limit.exceeded", message="You have exceeded the limit.",
            after_events=50, exported=50)

    def try_refused_topic(self):
        self.status_fault(
            "refused", 77, "subscription_topic_cannot_subscribe", "View All", TOPIC, status=7,
            error_code="subscription.topic.cannot.subscribe", message="No.", after_events=50,
            exported=50)

    def try_refused_schema(self):
        self.status_fault(
            "schema", 77, "schema_meta_permission", status=7, method="GetSchema",
            error_code="schema.meta.permission", message="No.")

    def try_refused_login(self):
        self.status_fault(
            "login", 77, "login", "inactive user", status=400, method="Login",
            error_code="inactive_user", message="inactive user")

    def try_refused_tokens(self):
        """Each token is refused, at once or after events: a few logins, then no more.

        A schema that comes in between shows that its token was good, so there may be five."""
        for name, events, most in (("at_once", 0, 3), ("after_events", 30, 5)):
            run = Run(self, "refused_" + name)
            before = self.simulator.get("stats").get("logins")
            self.fault(
                times=ALWAYS, after_events=events, status=16, error_code="service.auth.error",
                message="An authentication exception occurred.")
            run.run(77, "service_auth_error", "new tokens are refused, too", TOPIC)
            logins = self.simulator.get("stats").get("logins") - before
            if not 3 <= logins <= most:
                run.fail(logins, "logins")
            run.check_status(77)
            if events:
                run.check_state(events, EVENTS)
            self.simulator.forget_faults()
            run.complete()

    def try_unknown_topic(self):
        run = Run(self, "unknown", topic="/data/MissingChangeEvent")
        run.run(77, "topic_not_found", "/data/MissingChangeEvent", "case sensitive")
        run.check_status(77)

    def try_passing_faults(self):
        """Faults that pass are retried. The first of a place, before anything has worked, is told; the others are not.

        A connection that is lost before its first schema has come has not worked yet.
        """
        # Longer than a busy machine keeps an open stream silent.
        run = Run(self, "passing", run__quiet="3s")
        self.fault(method="Login", status=503, message="Down for Maintenance")
        for fault in (
            {"action": "drop"}, {"action": "truncate"}, {"action": "no_trailers"},
            {"status": 16, "error_code": "service.auth.error", "message": "An exception occurred"},
            {"action": "reset"}, {"action": "goaway"},
        ):
            self.fault(after_events=40, **fault)
        run.run(0, "caught_up", "HTTP 503")
        told = run.said().splitlines()
        first_of_connection = len(told) == 2 and "attempt=1," in told[1] and TOPIC in told[1]
        if len(told) != 1 and not first_of_connection:
            run.fail("says more than the first failures")
        harness.compare(self.simulator, run.output, [TOPIC])
        waiting = self.simulator.get("stats").get("faults_waiting")
        if waiting:
            run.fail(waiting, "faults were not met")

    def try_unusable_position(self):
        """The default stops at a position that is refused, without moving it; again and again."""
        run = Run(self, "unusable")
        run.run(0, "events_reached", options=["--max-events", "100"])
        before = run.position()
        self.fault(
            times=ALWAYS, status=3, error_code="subscription.fetch.replayid.corrupted",
            message="The Replay ID validation failed.")
        for _ in range(2):
            run.run(65, "subscription_fetch_replayid_corrupted", "on_invalid_replay", TOPIC)
            run.check_status(65)
            if run.position() != before:
                run.fail("the position was changed:", before, run.position())
        self.simulator.forget_faults()
        run.complete()

    def try_max_duration(self):
        run = Run(self, "duration", run__quiet="1h")
        self.fault(action="stall", after_events=60, times=ALWAYS)
        run.run(75, "max_duration", "time limit", options=["--max-duration", "1s"])
        # It has made progress.
        run.check_status(0)
        run.check_state(60, EVENTS)
        self.simulator.forget_faults()
        run.complete_impatiently()

    def try_max_duration_at_login(self):
        run = Run(self, "login_duration")
        self.fault(method="Login", status=503, message="Down for Maintenance", times=ALWAYS)
        run.run(75, "max_duration", "time limit", "HTTP 503", options=["--max-duration", "2s"])
        self.simulator.forget_faults()
        run.complete()

    def stalled(self, name, *options):
        """A run that has committed something and waits for more, for ever."""
        run = Run(self, name, run__quiet="1h")
        self.fault(action="stall", after_events=60, times=ALWAYS)
        process = run.start(*options)
        self.wait_for_commit(run, process, 60)
        return run, process

    @staticmethod
    def wait_for_commit(run, process, events):
        run.wait(process, lambda: (run.position() or {"next_ordinal": 0})["next_ordinal"] >= events, "a commit")

    def try_first_signal(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            run, process = self.stalled("batch-%d" % number)
            process.send_signal(number)
            run.finish(process, 75, "signal", "stopped by a signal")
            run.check_status(75)
            run.check_state(60, EVENTS)
            self.simulator.forget_faults()
            run.complete_impatiently()

    def try_first_signal_following(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            run, process = self.stalled("follow-%d" % number, "--follow", "--log-level", "error")
            process.send_signal(number)
            run.finish(process, 0, "signal")
            run.check_status(0)
            run.check_state(60, EVENTS)
            self.simulator.forget_faults()
            run.complete_impatiently()

    def try_second_signal(self):
        for first, second, code in (
            (signal.SIGINT, signal.SIGINT, 130), (signal.SIGTERM, signal.SIGTERM, 143),
            (signal.SIGTERM, signal.SIGINT, 130),
        ):
            run, process = self.stalled("second-%d-%d" % (first, second))
            harness.send_twice(process, first, second)
            run.end(process, (code,))
            self.simulator.forget_faults()
            run.complete_impatiently()

    def try_interrupted_batch(self):
        """A run stopped while events arrive exports all requested events, and no line is torn."""
        run = Run(self, "interrupted", source__num_requested=1)
        process = run.start()
        self.wait_for_commit(run, process, 1)
        process.send_signal(signal.SIGTERM)
        report = run.finish(process, 75, "signal")
        exported = run.check_state(1, EVENTS)
        topic = report["topics"][0]
        if topic["delivered"] != exported or topic["exported"] != exported:
            run.fail(exported, "events in the files, the report says", topic)
        run.complete_impatiently()

    def try_expired_position(self):
        """A position older than the service's events: 65 by default, or a new epoch if configured."""
        work = self.work + "/expired"
        os.mkdir(work)
        with harness.Simulator(
            self.programs, work, "--events", "100", "--topics", TOPIC, "--keepalive-interval", "1"
        ) as simulator:
            run = Run(self, "expired", service=simulator)
            run.run(0, "caught_up")
            simulator.publish(30, TOPIC)
            simulator.post("clock?advance=100h")
            simulator.publish(20, TOPIC)
            before = run.position()
            run.run(65, "subscription_fetch_replayid_corrupted", "72 h", "on_invalid_replay")
            if run.position() != before:
                run.fail("the position was changed:", before, run.position())
            report = run.run(
                0, "caught_up", options=["--set", "source.on_invalid_replay=earliest"])
            kinds = [attention["kind"] for attention in report["attention"]]
            if "holes" not in kinds:
                run.fail("the report does not tell of the hole:", kinds)
            with open(simulator.truth, encoding="utf-8") as file:
                published = [json.loads(line)["event_id"] for line in file]
            exported = {line["_event_id"]: line["_replay_id"] for line in lines(run.output)}
            if set(exported) != set(published[:100] + published[130:]):
                run.fail(len(exported), "events exported, not the first 100 and the last 20")
            if run.position()["epoch"] != 2:
                run.fail("not in the second epoch:", run.position())
            run.run(0, "caught_up")

    def try_undecodable(self):
        """An event that cannot be decoded is stored whole, and stops the run unless allowed."""
        work = self.work + "/undecodable"
        os.mkdir(work)
        topic = "/data/ContactChangeEvent"
        with other_service_proof.OtherService(
            work, "--seed", "3", "--events", "1000", "--calm", "--poison", "2"
        ) as service:
            strict = Run(self, "strict", topic=topic, service=service)
            tolerant = Run(self, "tolerant", topic=topic, service=service, dead_letter__max=2)
            poison = {p["event_id"]: p for p in harness.read_json(work + "/poison.json") if p["topic"] == topic}
            # They are further apart than what has been asked for when the first is met.
            for number in (1, 2):
                strict.run(65, "dead_letter_limit", "dead_letter.max", topic)
                self.check_dead_letters(strict, poison, number)
                strict.check_status(65)
            strict.run(0, "caught_up")
            harness.compare(service, strict.output, [topic])
            report = tolerant.run(0, "caught_up")
            self.check_dead_letters(tolerant, poison, 2)
            if report["dead_letters"]["count"] != 2:
                tolerant.fail("the report counts", report["dead_letters"])
            if "dead_letters" not in [attention["kind"] for attention in report["attention"]]:
                tolerant.fail("the report has no attention for them:", report["attention"])
            harness.compare(service, tolerant.output, [topic])

    def check_dead_letters(self, run, poison, count):
        found = []
        for path in glob.glob("%s/state/dead/**/*.zst" % self.work, recursive=True):
            if os.path.basename(path).lstrip(".").startswith(run.name + "-"):
                with open(path, "rb") as file:
                    reader = zstandard.ZstdDecompressor().stream_reader(file)
                    found += [json.loads(line) for line in reader.read().splitlines()]
        if len(found) != count or len({letter["event_id"] for letter in found}) != count:
            run.fail(len(found), "dead letters, not", count)
        for letter in found:
            published = poison[letter["event_id"]]
            for key in ("topic", "replay_id", "schema_id", "payload"):
                if letter[key] != published[key]:
                    run.fail("dead letter of another", key, ":", letter)
            if not letter["reason"] or not base64.b64decode(letter["payload"]):
                run.fail("dead letter without reason or payload")


def main():
    arguments = harness.arguments(only=None)
    work = arguments.work
    names = [name for name in dir(Proof) if name.startswith("try_")]
    if arguments.only:
        names = ["try_" + arguments.only]
    failed = False
    # They wait most of the time: for silence to be long enough, and for streams to end.
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        running = {
            pool.submit(scenario, name, arguments.programs, "%s/%s" % (work, name[4:])): name
            for name in names
        }
        for future in concurrent.futures.as_completed(running):
            try:
                print("%s: %.1f s" % (running[future][4:], future.result()), file=sys.stderr)
            except SystemExit as problem:
                print("%s: %s" % (running[future][4:], problem), file=sys.stderr)
                failed = True
    sys.exit(1 if failed else 0)


def scenario(name, programs, work):
    """With a simulator of its own; returns the seconds that it takes."""
    os.makedirs(work)
    started = time.monotonic()
    # Responses of few events, so that faults come between them; keepalives that end a run at once.
    with harness.Simulator(
        programs, work, "--events", str(EVENTS), "--topics", TOPIC, "--keepalive-interval", "1.2",
        "--max-response-events", "10",
    ) as simulator:
        getattr(Proof(programs, work, simulator), name)()
    return time.monotonic() - started


if __name__ == "__main__":
    main()
