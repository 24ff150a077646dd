"""All stages under kill -9, into files and tables of every mode, with records read: against a model in Python.

    stages_tables_proof.py --programs DIR --work DIR [--events N] [--existing N] [--kills N] [--seed S]

An org with existing records and events is exported twice. One pipeline, which nothing disturbs, writes
everything to files. The other has flatten, filter, set, mask, cast and route in front of files and three schemas of
a database (modes both, current and history), and is killed at random moments until it ends by itself. Its lines,
and its rows column by column, are to be what the model makes of the first pipeline's lines. An expression that
divides by zero makes dead letters; when the file is corrected, `dead-letters retry`, killed too, brings their
events to the files and the tables. A schema to which the route sends no row of an object has no table of it.
Prints one JSON line; exits 1 at the first difference.
"""

import collections
import datetime
import decimal
import hashlib
import hmac
import json
import random
import re
import subprocess
import time

import harness
import postgres
import stages_proof
from stages_proof import ABSENT, expect, lines_of

TOPICS = ["/data/OpportunityChangeEvent", "/data/AccountChangeEvent"]
KEY = "0123456789abcdef0123456789abcdef"
# Fails where the remainder is 0, for events alone: a record that was read has to have what its last event gave.
MENDED = "Amount == null || int(Amount) % 3 == 0 ? null : 100 / (int(Amount) % 3)"
RATIO = "_kind == 'change' && Amount != null ? 100 / (int(Amount) % 3) : (" + MENDED + ")"
STAGES = [
    {"type": "flatten", "naming": "path"},
    {"type": "filter", "where": "!_record_id.contains('7')"},
    {"type": "mask", "columns": ["Phone", "NextStep"], "with": "hash", "key": "${MASK_KEY}"},
    {"type": "cast", "columns": {"Probability": {"to": "text"}, "IsWon": "text"}},
    {"type": "route", "routes": [
        {"entity": "Account", "to": ["lines", "current", "history"]},
        {"where": "_entity == 'Opportunity'", "to": ["lines", "both", "history"]}],
     "default": []},
]
# Modes of the sinks, and the objects that the route sends there.
SINKS = {"both": ["Opportunity"], "current": ["Account"], "history": ["Account", "Opportunity"]}
VOLATILE = {"_epoch", "_ordinal", "_read_at", "_last_ordinal", "_read_epoch"}
CLOCK = re.compile(r"\d\d:\d\d:\d\d\.\d+")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)")


class Model(stages_proof.Model):
    """A line of the first pipeline behind the stages of the second."""

    def staged(self):
        """The line, or None for one that is left out."""
        whole = self.line["_kind"] in ("overflow", "wildcard")
        if not whole and "7" in self.line["_record_id"]:
            return None
        if not whole:
            amount = self.seen("Amount")
            if amount is ABSENT:
                self.put("Ratio", ABSENT)
            elif amount is None or int(amount) % 3 == 0:
                self.put("Ratio", None)
            else:
                rest = abs(int(amount)) % 3 * (1 if amount > 0 else -1)
                self.put("Ratio", int(100 / rest))
        for name in ("Phone", "NextStep"):
            if isinstance(self.line.get(name), str):
                self.line[name] = hmac.new(
                    KEY.encode(), self.line[name].encode(), hashlib.sha256).hexdigest()
        if self.line.get("Probability") is not None:
            value = decimal.Decimal(repr(self.line["Probability"]))
            self.line["Probability"] = self.decimal_text(value)
        if self.line.get("IsWon") is not None:
            self.line["IsWon"] = "true" if self.line["IsWon"] else "false"
        return self.line

    @staticmethod
    def decimal_text(value):
        """As a line has the number, always with a fraction."""
        text = format(value, "f")
        return text if "." in text else text + ".0"


def normal(line):
    line = {name: value for name, value in line.items() if name not in VOLATILE}
    # A field that is null in a full image may be left out.
    if line.get("_change_type") != "UPDATE":
        line = {name: value for name, value in line.items() if value is not None}
    if line["_kind"] == "snapshot":
        # What was read: listed only where the line lacks a column.
        expect("Ratio" in line or "Ratio" not in line.pop("_changed_fields", ()), "listed but not there:", line)
        # A snapshot that a kill has met before its first records begins again, with the next number.
        line["_event_id"] = re.sub(r"^snapshot:\d+:", "snapshot::", line["_event_id"])
    for listed in ("_changed_fields", "_nulled_fields"):
        if listed in line:
            line[listed] = sorted(line[listed])
    return json.dumps(line, sort_keys=True)


def plain(value):
    """A value in a form that lines and rows share."""
    if isinstance(value, str) and TIME.fullmatch(value):
        value = datetime.datetime.fromisoformat(value.replace("Z", "+00:00")).timestamp()
    if isinstance(value, str) and CLOCK.fullmatch(value):
        return value.rstrip("0").rstrip(".")
    if isinstance(value, (int, float, decimal.Decimal)) and not isinstance(value, bool):
        return decimal.Decimal(str(value)).normalize()
    if isinstance(value, list):
        return sorted(map(str, value))
    # What Bulk reads has the line ends of its CSV, and not those of the event before it.
    return value.replace("\r\n", "\n") if isinstance(value, str) else value


def rows_of(url, schema, table):
    found = postgres.query(url, 'SELECT to_jsonb(t) FROM "%s"."%s" AS t' % (schema, table))
    return [json.loads(row[0], parse_float=decimal.Decimal) for row in found]


def tables_of(url, schema):
    found = postgres.query(
        url, "SELECT table_name FROM information_schema.tables WHERE table_schema = '%s' AND table_type ="
        " 'BASE TABLE' AND table_name NOT LIKE '\\_%%'" % schema)
    return sorted(row[0] for row in found)


class Proof:
    def __init__(self, arguments, simulator, url):
        self.arguments, self.simulator, self.url = arguments, simulator, url
        self.work, self.program = arguments.work, arguments.programs + "/pubsub-etl"
        self.environment = dict(simulator.environment, DATABASE_URL=url, MASK_KEY=KEY)
        self.generator = random.Random(arguments.seed)
        self.kills = 0

    def write(self, ratio, payload):
        first, staged = (harness.pipeline(name, TOPICS) for name in ("plain", "staged"))
        for document in (first, staged):
            document["source"]["snapshot"] = {"mode": "initial", "visibility_wait": "1s"}
            document["repair"] = {"mode": "auto"}
        staged["commit"] = {"max_events": 25}
        staged["dead_letter"] = {"max": 1000000, **payload}
        staged["stages"] = STAGES[:2] + [{"type": "set", "columns": {"Ratio": ratio}}] + STAGES[2:]
        staged["sinks"] = [{"type": "files", "name": "lines", "directory": "out/lines"}] + [
            {"type": "postgres", "name": mode, "url": "${DATABASE_URL}", "schema": "schema_" + mode, "mode": mode,
             "columns": "as_is"} for mode in SINKS]
        harness.write_json(self.work + "/plain.json", first)
        harness.write_json(self.work + "/staged.json", staged)

    def call(self, *words, codes=(0,)):
        done = subprocess.run(
            [self.program, *words], env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=300)
        expect(done.returncode in codes, words, "ended with", done.returncode, done.stderr.decode())
        return done

    def killed(self, kills, *words):
        # Another owner of a schema, which was killed a moment ago, has its lease for a while.
        for _ in range(10):
            code, killed, error = stages_proof.run_killed(
                [self.program, *words], self.environment, kills, self.generator)
            self.kills += killed
            kills = 0
            if code != 75:
                break
        expect(code == 0, words, "ended with", code, error)

    def lines(self):
        """What the model makes of the first pipeline's lines: those that pass, and those that fail at first."""
        passing, failing = [], []
        for line in lines_of(self.work + "/out/plain"):
            model = Model(line)
            fails = line["_kind"] == "change" and model.fails()
            staged = model.staged()
            if staged is not None:
                (failing if fails else passing).append(staged)
        return passing, failing

    def compare_lines(self, expected):
        found = collections.Counter(normal(line) for line in lines_of(self.work + "/out/lines"))
        wanted = collections.Counter(normal(line) for line in expected)
        for text in found - wanted:
            line = json.loads(text)
            near = [other for other in map(json.loads, wanted - found)
                    if (other["_event_id"], other["_record_id"]) == (line["_event_id"], line["_record_id"])]
            expect(near, "files have too much:", text)
            names = [name for name in {**line, **near[0]} if line.get(name) != near[0].get(name)]
            expect(False, "of", line["_event_id"], line["_record_id"], line["_kind"], "files have",
                   {name: line.get(name) for name in names}, "and not", {name: near[0].get(name) for name in names})
        expect(found == wanted, "files lack", list((wanted - found).items())[:3])

    def compare_row(self, what, row, expected):
        names = {name: plain(value) for name, value in row.items() if value is not None}
        for name, value in expected.items():
            if name in VOLATILE or name in ("_topic", "_diff_fields"):
                continue
            name = "id" if name == "_record_id" and "id" in row else name
            if name in row:
                if isinstance(row[name], list) and isinstance(value, str):
                    value = value.split(";")
                if name == "_commit_number":
                    value = int(value)
                expect(names.get(name) == (None if value is None else plain(value)), what, name, "is",
                       repr(names.get(name)), "and not", repr(value), "in", row)
            else:
                expect(value is None or name.startswith("_"), what, "has no column", name)
        for name in names:
            expect(name in expected or name == "id" or name.startswith("_"), what, name, "is", names[name])

    def compare_history(self, schema, entity, expected):
        rows = {(row["_event_id"], row["_record_id"]): row
                for row in rows_of(self.url, schema, entity + "_history")}
        lines = {(line.get("_event_id"), line["_record_id"]): line for line in expected
                 if line["_entity"] == entity and line["_kind"] == "change"}
        events = {key: row for key, row in rows.items() if row["_kind"] == "change"}
        expect(events.keys() == lines.keys(), schema, entity, "lacks", list(lines.keys() - events.keys())[:3],
               "and has", list(events.keys() - lines.keys())[:3])
        for key, line in lines.items():
            self.compare_row((schema, key), events[key], line)
        return len(events)

    def compare_current(self, schema, entity, expected):
        """Records that were read have the values of the end; others those of their last full event."""
        wanted = {}
        for line in expected:
            if line["_entity"] == entity and line["_kind"] == "snapshot":
                wanted[line["_record_id"]] = {
                    name: value for name, value in line.items() if not name.startswith("_")}
        rows = {row["id"]: row for row in rows_of(self.url, schema, entity) if row["_deleted_at"] is None}
        expect(rows.keys() == wanted.keys(), schema, entity, "lacks", list(wanted.keys() - rows.keys())[:3],
               "and has", list(rows.keys() - wanted.keys())[:3])
        for key, values in wanted.items():
            self.compare_row((schema, key), rows[key], values)
        return len(rows)

    def compare_tables(self, expected):
        counts = {}
        for mode, entities in SINKS.items():
            schema, wanted = "schema_" + mode, []
            for entity in entities:
                if mode != "history":
                    wanted.append(entity)
                    counts[mode + " " + entity] = self.compare_current(schema, entity, expected)
                if mode != "current":
                    wanted.append(entity + "_history")
                    counts["history in %s of %s" % (mode, entity)] = self.compare_history(schema, entity, expected)
            found = tables_of(self.url, schema)
            expect(found == sorted(wanted), schema, "has the tables", found, "and not", wanted)
        return counts

    def prove(self):
        self.write(RATIO, {"payload": "none"})
        self.call("run", self.work + "/plain.json")
        self.write(RATIO, {"payload": "sealed", "key": "${LETTER_KEY}"})
        self.environment["LETTER_KEY"] = "ab" * 32
        self.killed(self.arguments.kills, "run", self.work + "/staged.json")
        passing, failing = self.lines()
        events = {line["_event_id"] for line in failing}
        expect(len(events) > 3, "only", len(events), "events have failed")
        self.compare_lines(passing)
        [views] = [open(self.work + "/out/lines/_views.sql", encoding="utf-8").read()]
        expect('"Account"' in views and '"Opportunity"' in views, views)
        listed = json.loads(self.call("dead-letters", "list", self.work + "/staged.json", "--json").stdout)
        letters = [letter for letter in listed["letters"] if letter["kind"] == "unprocessable"]
        expect(len(letters) == listed["waiting"] == len(events), len(letters), "unprocessable letters of",
               listed["waiting"], "for", len(events), "events")
        status = self.call("status", self.work + "/staged.json")
        expect(b"dead letters are waiting" in status.stdout, status.stdout.decode())
        self.write(MENDED, {"payload": "sealed", "key": "${LETTER_KEY}"})
        self.killed(2, "dead-letters", "retry", self.work + "/staged.json", "--all")
        self.killed(1, "run", self.work + "/staged.json")
        self.compare_lines(passing + failing)
        tables = self.compare_tables(passing + failing)
        verified = json.loads(self.call("verify", self.work + "/staged.json", "--json").stdout)
        for mode, entity in (("both", "Account"), ("current", "Opportunity")):
            words = "%s in sink '%s': the stages send no row there" % (entity, mode)
            expect(words in verified["sinks_not_compared"], words, verified)
        return {"lines": len(passing), "letters": len(letters), "kills": self.kills, **tables}


def main():
    arguments = harness.arguments(events=300, existing=60, kills=6, seed=1)
    started = time.monotonic()
    with postgres.Cluster() as cluster, harness.Simulator(
        arguments.programs, arguments.work, "--events", str(arguments.events), "--existing", str(arguments.existing),
        "--seed", str(arguments.seed), "--topics", ",".join(TOPICS), "--keepalive-interval", "1.2",
        "--max-response-events", "10", "--gaps", "0", "--overflows", "0", "--wildcards", "0", "--diffs", "0",
        "--exotic", "0", "--extremes", "0", "--silent", "0",
    ) as simulator:
        result = Proof(arguments, simulator, cluster.make_database("staged")).prove()
        print(json.dumps({**result, "seconds": round(time.monotonic() - started, 1)}))


if __name__ == "__main__":
    main()
