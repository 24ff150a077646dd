"""Logs report what happens, without secrets and record values.

    log_proof.py --programs DIR --work DIR

An org with records from before, events, gap events and faults of every kind is exported into files and tables
at level trace, in each form of log lines, while a constraint of the database refuses some rows, whose values
PostgreSQL repeats in its errors. The lines must have each message that the table below expects, with the metadata
that belongs to it. No line, report, output of `status`, `verify`, `check` or `dead-letters list` holds a text that a
record has, a token or a secret. Prints one JSON line; exits 1 at the first difference.
"""

import json
import re

import harness
import postgres

TOPIC = "/data/OpportunityChangeEvent"
ENTITY = "Opportunity"
# Message, as a regular expression, and metadata that has to be there.
EXPECTED = [
    ("logged in", {"org", "instance"}),
    ("connected", {"endpoint"}),
    ("subscribed", {"topic", "from", "epoch"}),
    ("schema fetched", {"schema"}),
    ("token renewed", {"org"}),
    ("records will be read in .*", {"entity"}),
    ("reading records", {"entity", "job", "pass"}),
    ("snapshot of Opportunity complete: .*", set()),
    ("committed", {"events", "commits", "events_total"}),
    ("records read again", {"records", "not_found"}),
    ("file finished", {"file"}),
    ("caught up", {"topic", "rule"}),
    ("stopping", {"reason"}),
    ("finished", {"events", "reason"}),
    ("recovered after 2 failed attempts", set()),
    ("recovered after 1 failed attempt", {"topic"}),
    ("subscription sent", {"topic", "from", "num_requested"}),
    ("events requested", {"topic", "num_requested"}),
    ("response received", {"topic", "events", "pending_credit", "replay_id", "rpc_id"}),
    ("Subscribe to .* failed", {"status", "code", "rpc_id"}),
    ("POST http.*/services/oauth2/token", {"http_status", "bytes", "milliseconds"}),
    ("GET http.*/describe", {"http_status", "bytes", "milliseconds"}),
    ("POST http.*/jobs/query", {"http_status"}),
]
FAULTS = [
    # The first call is made before the stream.
    {"method": "GetSchema", "status": 14, "error_code": "schema.api.unavailable", "times": 2,
     "message": "Try later."},
    {"topic": TOPIC, "status": 16, "error_code": "service.auth.error",
     "message": "An authentication exception occurred."},
    {"topic": TOPIC, "status": 14, "error_code": "service.unavailable", "after_events": 100,
     "message": "The service is unavailable."},
    {"method": "Query", "status": 503, "error_code": "SERVER_UNAVAILABLE", "message": "Try later."},
]
# At most so many characters are of the program's own words.
SHORTEST = 9


class Proof(harness.Exporter):
    def __init__(self, arguments, simulator, url):
        self.arguments, self.simulator, self.url = arguments, simulator, url
        super().__init__(
            arguments.programs + "/pubsub-etl", arguments.work + "/logs.json",
            dict(simulator.environment, DATABASE_URL=url))
        self.texts = []  # what was said: (where, text)
        self.lines = []

    def write(self):
        document = harness.pipeline("logs", [TOPIC])
        document["source"]["snapshot"] = {"mode": "initial", "visibility_wait": "1s"}
        document["repair"] = {"mode": "auto"}
        document["dead_letter"] = {"max": 100000}
        document["sinks"].append({"type": "postgres", "name": "db", "url": "${DATABASE_URL}"})
        harness.write_json(self.path, document)

    def call(self, *words, codes=(0,)):
        done = super().call(*words, codes=codes)
        self.texts += [("%s, standard output" % (words,), done.stdout), ("%s, log" % (words,), done.stderr)]
        return done

    def run(self, form, codes):
        report = self.arguments.work + "/report.json"
        done = self.call(
            "run", "--log-level", "trace", "--log-format", form, "--report", report, codes=codes)
        self.texts.append(("report", harness.read_text(report)))
        for text in done.stderr.splitlines():
            if form == "json":
                self.lines.append(json.loads(text))
            elif form == "journald":
                if not re.match(r"<[2-7]>\S", text):
                    self.fail("a line without priority:", text)
            elif not re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (debug|info|notice|warning|error): \S", text):
                self.fail("a line of another form:", text)

    def refuse_rows(self):
        """Names end with digits: a third of the rows is refused, with all their values in the error."""
        postgres.query(
            self.url, "ALTER TABLE salesforce.opportunity_history ADD CONSTRAINT odd"
            " CHECK (_ordinal % 3 <> 1 OR _change_type = 'SNAPSHOT') NOT VALID")

    def prove(self):
        self.write()
        for fault in FAULTS:
            self.simulator.fault(**fault)
        self.run("json", (0, 75))
        self.run("json", (0, 75))
        self.refuse_rows()
        self.simulator.publish(300)
        for form in ("json", "text", "journald"):
            self.simulator.publish(60)
            self.run(form, (0, 65, 75))
        for words in [
            ("check", "--connect"), ("status",), ("status", "--json"), ("verify", "--full", "--json"),
            ("dead-letters", "list"), ("dead-letters", "list", "--json"), ("checkpoint", "show"),
        ]:
            if words[0] == "checkpoint":
                continue
            self.call(*words, codes=(0, 1, 65, 75))
        self.expect_messages()
        self.expect_refusals()
        return self.search()

    def expect_messages(self):
        for pattern, keys in EXPECTED:
            found = [line for line in self.lines if re.fullmatch(pattern, line["message"])]
            if not found:
                self.fail("no line", pattern, "among", sorted({line["message"] for line in self.lines}))
            if not any(keys <= set(line) for line in found):
                self.fail(pattern, "has only", found[0])

    def expect_refusals(self):
        """Otherwise nothing would have been repeated."""
        [[count]] = postgres.query(
            self.url, "SELECT count(*) FROM salesforce._etl_resync WHERE kind = 'dead_letter'")
        if int(count) < 20:
            self.fail("only", count, "rows were refused")

    def search(self):
        values = set()
        for [row] in postgres.query(self.url, "SELECT row_to_json(r) FROM salesforce.opportunity AS r"):
            for name, value in json.loads(row).items():
                # Metadata, IDs and values of picklists are no secrets.
                if not name.startswith("_") and isinstance(value, str) and name in ("name", "description", "nextstep"):
                    values |= {part for part in [value[:24].strip()] if len(part) >= SHORTEST}
        if len(values) < 50:
            self.fail("only", len(values), "texts to look for")
        secrets = {self.environment["SF_CLIENT_SECRET"]}
        for where, text in self.texts:
            for value in sorted(values | secrets):
                if value in text:
                    self.fail(where, "holds", repr(value))
            if re.search(r"00D\w{12,15}![\w.]", text):
                self.fail(where, "holds a token")
        return {"lines": len(self.lines), "texts": len(self.texts), "values": len(values)}


def main():
    arguments = harness.arguments()
    with postgres.Cluster() as cluster:
        url = cluster.make_database("logs")
        with harness.Simulator(
            arguments.programs, arguments.work, "--topics", TOPIC, "--existing", "150", "--events", "900", "--seed", "3",
            "--gaps", "0.03", "--visibility-delay", "100", "--exotic", "0", "--extremes", "0",
        ) as simulator:
            print(json.dumps(Proof(arguments, simulator, url).prove()))


if __name__ == "__main__":
    main()
