"""One cell of the matrix: a simulator, a pipeline and its runs. See fault_matrix_proof.py."""

import hashlib
import json
import re
import signal
import subprocess

import fault_matrix
import harness
import postgres

TOPICS = ["/data/OpportunityChangeEvent", "/data/AccountChangeEvent"]
FIRST, SECOND = TOPICS
EVENTS = 240
# Credit of a stream; with what the next request brings it is all that can be on its way when a stream breaks.
WINDOW = 20
# Waits are skipped (--clock), so these cost nothing: about nine attempts until a run gives up.
RETRY = {"give_up_after": "60s", "min_delay": "1s", "max_delay": "10s", "refused_delay": "60s"}
# Attempts of one thing in one run: the pauses of RETRY with their jitter, and first ones without a pause.
MOST_ATTEMPTS = 16
# Bytes that a run with a fault may need beyond one without, in KiB.
MORE_MEMORY = 32 * 1024


def entity(topic):
    return topic.removeprefix("/data/").removesuffix("ChangeEvent")


class Cell(harness.Exporter):
    def __init__(self, arguments, name, simulator, url=None, has_files=True, admin_url=None):
        self.programs, self.name, self.simulator = arguments.programs, name, simulator
        self.work = simulator.work
        super().__init__(simulator.exporter, self.work + "/cell.json", dict(simulator.environment))
        document = harness.pipeline("cell", TOPICS)
        document["source"]["num_requested"] = WINDOW
        document["commit"] = {"max_events": 20}
        document["retry"] = dict(RETRY)
        # As the exporter, and as the superuser.
        self.url, self.admin_url = url, admin_url
        # Names of cells are longer than identifiers may be.
        self.schema = "cell_" + hashlib.sha256(name.encode()).hexdigest()[:16]
        if url:
            self.environment["DATABASE_URL"] = url
            sink = {"type": "postgres", "name": "db", "url": "${DATABASE_URL}", "schema": self.schema}
            document["sinks"] = document["sinks"] * has_files + [sink]
        self.output = self.work + "/out/cell" if has_files else None
        self.report_path = self.work + "/report.json"
        harness.write_json(self.path, document)
        self.has_table = False
        self.runs = 0
        self.most_kib = 0

    def start(self, *options):
        self.runs += 1
        return self.spawn("run", "--report", self.report_path, *options)

    def finish(self, process, code):
        """Waits for the expected end, which the report has to confirm."""
        ended, usage, _ = harness.wait_with_peak(process, 180, self.fail)
        self.most_kib = max(self.most_kib, usage.ru_maxrss)
        if ended != code:
            self.fail("exit code", ended, "instead of", code)
        report = harness.read_json(self.report_path)
        if report["exit_code"] != code:
            self.fail("the report tells exit code", report["exit_code"], "instead of", code)
        if self.environment["SF_CLIENT_SECRET"] in self.said():
            self.fail("tells a secret")
        return report

    def run(self, code, *options):
        return self.finish(self.start(*options), code)

    def published(self):
        return len(self.simulator.published())

    def committed(self):
        """Events whose position is stored, by topic."""
        if self.url:
            table = self.schema + "._etl_checkpoint"
            if not self.has_table:
                self.has_table = postgres.query(self.url, "SELECT to_regclass('%s')" % table) != [[""]]
                if not self.has_table:
                    return {}
            sql = "SELECT t.key, t.value ->> 'next_ordinal' FROM %s, jsonb_each(topics) AS t"
            return {topic: int(count) for topic, count in postgres.query(self.url, sql % table)}
        try:
            topics = harness.read_json(self.work + "/state/cell.checkpoint.json")["topics"]
        except FileNotFoundError:
            return {}
        return {topic: at["next_ordinal"] for topic, at in topics.items()}

    def calls(self):
        """Subscriptions, requests for schemas and logins so far, and the simulated time in seconds."""
        stats = self.simulator.get("stats")
        calls = stats["calls"]
        return {
            "Subscribe": calls.get("Subscribe", 0), "GetSchema": calls.get("GetSchema", 0),
            "Login": stats["logins"] + stats["refused_logins"], "now": stats["now"] / 1000,
        }

    def check_calls(self, before, is_following):
        """No more calls than the schedule of retries allows in the time that has passed."""
        after = self.calls()
        passed = after["now"] - before["now"]
        for method in ("Subscribe", "GetSchema", "Login"):
            # Pauses are at least four fifths of max_delay after the first few.
            most = MOST_ATTEMPTS + (passed / 8 if is_following else 0)
            count = after[method] - before[method]
            if count > most * len(TOPICS):
                self.fail(count, "calls of", method, "in", round(passed), "s")

    def compare(self, damaged=()):
        """Files and tables equal the truth, each event once; returns how many were delivered but not exported."""
        stats = self.simulator.get("stats")
        if stats["most_streams"] > len(TOPICS) + 1:
            self.fail(stats["most_streams"], "streams were open at once")
        if stats["streams"]:
            self.fail(stats["streams"], "streams are open after the last run")
        published = self.published()
        wasted = stats["delivered"] - published
        # Each stream that breaks loses what is on its way, and the last event of a run may come again.
        if wasted > (WINDOW + 10) * len(TOPICS) * (self.runs + 2):
            self.fail(stats["delivered"], "events were delivered,", published, "published")
        truth = self.simulator.truth
        if damaged:
            with open(truth, encoding="utf-8") as file:
                lines = [line for line in file if json.loads(line)["event_id"] not in damaged]
            self.simulator.truth = self.work + "/decodable.ndjson"
            with open(self.simulator.truth, "w", encoding="utf-8") as file:
                file.writelines(lines)
        if self.output:
            harness.compare(self.simulator, self.output, TOPICS)
        if self.url and damaged:
            # A letter has an ordinal, which the comparison does not know of.
            self.compare_events(published - len(damaged))
        elif self.url:
            harness.compare_tables(self.simulator, self.url, self.schema, TOPICS)
        self.simulator.truth = truth
        return max(wasted, 0)

    def compare_events(self, expected):
        """The histories have so many events, none of them twice."""
        sql = "SELECT count(*), count(DISTINCT (_event_id, _record_id)), count(DISTINCT _event_id) FROM %s.%s_history"
        events = 0
        for topic in TOPICS:
            table = (self.schema, entity(topic).lower())
            rows, distinct, count = map(int, postgres.query(self.url, sql % table)[0])
            if rows != distinct:
                self.fail(rows - distinct, "rows of the history are there twice")
            events += count
        if events != expected:
            self.fail(events, "events are in the histories, not", expected)

    # What cells do.

    def meet(self, fault, stays, is_following):
        """Runs that meet a fault, and those after it; returns a cell's figures."""
        kind = fault_matrix.KINDS[fault.kind]
        if fault.kind == "topic" and fault.method == "GetSchema" and stays:
            # Every topic lacks its schema: none is left, and a run that follows ends, too.
            kind = fault_matrix.KINDS["stop"]
        description = dict(fault.what, method=fault.method)
        if fault.method == "Subscribe":
            description["topic"] = SECOND
        if stays or fault.kind == "replay":
            # A position is stored, which must not be lost.
            if fault.method != "GetSchema":
                self.run(0, "--max-events", "40")
            description["times"] = fault_matrix.ALWAYS
        elif fault.method == "Subscribe":
            description["after_events"] = 40
        self.simulator.fault(**description)
        before = self.calls()
        code = 0 if kind.passes and not stays else kind.follow if is_following else kind.batch
        goes_on = is_following and (code is None or code == 0)
        process = self.start(*(["--follow"] if is_following else []))
        if goes_on:
            self.follow(process, kind, stays)
        else:
            self.finish(process, code)
        self.check_calls(before, is_following)
        if kind is fault_matrix.KINDS["topic"] and fault.method == "Subscribe" and not is_following:
            self.check_others()
        self.simulator.forget_faults()
        damaged = self.dead_letters() if fault.kind == "letter" else ()
        self.run(0)
        self.run(0)
        if self.said():
            self.fail("a run without a fault is not silent")
        return self.compare(damaged)

    def follow(self, process, kind, stays):
        """The fault ends while the run waits; then it exports everything, later events included."""
        if stays and kind.batch:
            # Equal errors are warned of once, and each attempt is logged.
            self.wait(process, lambda: self.said().count("; retrying in ") >= 3, "three attempts")
            self.simulator.forget_faults()
        elif stays and kind is fault_matrix.KINDS["silent"]:
            # Silence is no error: the stream has to be given up and opened again.
            self.wait(process, lambda: self.calls()["Subscribe"] > len(TOPICS), "another subscription")
            self.simulator.forget_faults()
        self.wait(process, lambda: sum(self.committed().values()) >= self.published(), "all events")
        self.simulator.publish(30, FIRST)
        self.wait(process, lambda: sum(self.committed().values()) >= self.published(), "new events")
        process.send_signal(signal.SIGTERM)
        self.finish(process, 0)

    def check_others(self):
        published = sum(event["topic"] == FIRST for event in self.simulator.published())
        if self.committed().get(FIRST) != published:
            self.fail("of the other topic", self.committed().get(FIRST), "events were exported")

    def dead_letters(self):
        command = [self.simulator.exporter, "dead-letters", "list", self.path, "--json"]
        listed = subprocess.run(command, env=self.environment, stdout=subprocess.PIPE, check=False)
        found = re.findall(rb'"event_id": *"([^"]+)"', listed.stdout)
        if not found:
            self.fail("no dead letter is listed:", listed.stdout.decode()[:500])
        return {event.decode() for event in found}
