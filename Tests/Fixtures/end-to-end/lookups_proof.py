"""Proves that objects without a stream are kept current: tables and files equal to what the org holds.

    lookups_proof.py --programs DIR --work DIR [--seed S] [--existing N] [--rounds N] [--kills N]

The pipeline has the changes of one object from its topic, and reads others as lookups, into PostgreSQL and files at
once. Between its runs records are created, changed, deleted and purged, and some runs are ended by SIGKILL. Then a run
that nothing disturbs reads what has changed, and tables and files are compared with the simulator's state file, record
by record and column by column.

- random: objects with values of every type. Stamps move without an event, too, and records leave the recycle bin.
- fields: a field is added in the org, so all records are read again; another one is deleted.
- history: `opportunity_changes` has the changes from before the first event, from the lookup OpportunityFieldHistory,
  and those since, from events; each once. `"Opportunity_changes"` of the files has the same cells in each row. Only the
  value before an event's change may be known to one of the two alone.
- sales: the lookup User names those who changed an opportunity; a run that follows reads it again and again.

Prints one JSON line for each; exits 1 on any difference, after the first ten.
"""

import collections
import contextlib
import datetime
import json
import os
import random
import signal
import sys

import compare_files
import compare_state
import harness
import postgres
import postgres_model

NAME = "lookups"
SCHEMA = "salesforce"
TOPIC = "/data/OpportunityChangeEvent"
LOOKUPS = ["Account", "Contact", "Station__c"]
# So short that every run finds them due, but for the one right after a read.
EVERY = "1s"
EPOCH = datetime.datetime(1970, 1, 1)
LIMIT = 120


def main():
    arguments = harness.arguments(seed=1, existing=1500, rounds=4, kills=4)
    for prove in (prove_random, prove_fields, prove_history, prove_named_history, prove_sales):
        work = "%s/%s" % (arguments.work, prove.__name__)
        os.makedirs(work, exist_ok=True)
        print(json.dumps({"proof": prove.__name__, **prove(arguments, work)}), flush=True)


def topic_of(entity):
    return "/data/%sChangeEvent" % (entity[:-1] if entity.endswith("__c") else entity)


class Flat:
    """The records of a state file under the names of REST: `BillingCity` and not `BillingAddress.City`."""

    ignored = ()

    def check_columns(self, entity, data):
        return super().check_columns(entity, data) | set(self.ignored)

    def flatten(self, state, lookups):
        for line in harness.read_lines(state):
            if line["entity"] not in lookups:
                continue
            cells = {}
            for field, value in line["fields"].items():
                if isinstance(value, dict):
                    cells.update(flat_parts(field, value))
                elif field.endswith(("Address", "__c")) and value is None and field in self.compounds(line["entity"]):
                    continue
                else:
                    cells[field.lower()] = value
            self.records[line["entity"]][line["id"]]["cells"] = cells

    def compounds(self, entity):
        """Fields whose values are parts, in some record."""
        return self.known_compounds.setdefault(entity, {
            field for line in self.lines for field, value in line["fields"].items()
            if line["entity"] == entity and isinstance(value, dict)})

    def compare_row(self, entity, record, marks, values, data, unknown):
        if record not in self.records[entity]:
            # Purged before a read could see that it was deleted. Only a read of all records shows that it is gone.
            self.counts["without_trace"] += 1
            return
        super().compare_row(entity, record, marks, values, data, unknown)


def flat_parts(field, value):
    if field == "Name":
        names = [value.get("FirstName"), value.get("LastName")]
        full = " ".join(name for name in names if name) or None
        return {"name": full, **{part.lower(): inner for part, inner in value.items()}}
    if field.endswith("Address"):
        prefix = field[: -len("Address")]
        return {(prefix + part).lower(): inner for part, inner in value.items()}
    stem = field.removesuffix("__c")
    return {("%s__%s__s" % (stem, part)).lower(): inner for part, inner in value.items() if part != "XyzEncoded"}


def flat(base):
    class FlatComparison(Flat, base):
        def __init__(self, source, state, lookups, objects):
            super().__init__(source, state, objects)
            self.lines = harness.read_lines(state)
            self.known_compounds = {}
            self.flatten(state, lookups)

    return FlatComparison


def shown(value):
    """A value of the truth, or its text in the view, in one form."""
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    text = str(value).replace("\r\n", "\n").replace("\0", "\ufffd")
    for form in ("%Y-%m-%d", "%Y-%m-%dT%H:%M:%S.%fZ"):
        with contextlib.suppress(ValueError):
            return (datetime.datetime.strptime(text, form) - EPOCH) / datetime.timedelta(milliseconds=1)
    with contextlib.suppress(ValueError):
        return float(text)
    return text


class Lookups(harness.Exporter):
    """A pipeline with lookups."""

    def __init__(self, arguments, work, simulator, cluster, lookups, every=EVERY, full_every="7d"):
        super().__init__(
            arguments.programs + "/pubsub-etl", work + "/pipeline.json", dict(simulator.environment))
        self.work, self.simulator, self.lookups = work, simulator, lookups
        self.chance = random.Random("%d lookups" % arguments.seed)
        self.url = cluster.make_database("warehouse")
        self.environment["DATABASE_URL"] = cluster.url("warehouse", user=postgres.ROLE)
        self.output, self.state = work + "/out/" + NAME, work + "/state.ndjson"
        self.killed = 0
        document = harness.pipeline(NAME, TOPIC)
        document["source"]["snapshot"] = {"mode": "initial", "visibility_wait": "1s"}
        document["source"]["lookups"] = {"objects": lookups, "every": every, "full_every": full_every}
        document["repair"] = {"mode": "auto"}
        document["commit"] = {"max_events": 100}
        document["sinks"] = [
            {"type": "files", "name": "files", "directory": "out/" + NAME},
            {"type": "postgres", "name": "warehouse", "url": "${DATABASE_URL}"},
        ]
        harness.write_json(self.path, document)

    def start(self):
        options = ["--take-over"] if self.killed else []
        return self.spawn("run", "--report", self.work + "/report.json", *options)

    def run(self):
        process = self.start()
        self.end(process, seconds=LIMIT)

    def passes(self):
        """How far each pass is, as text."""
        if not postgres.query(self.url, "SELECT 1 WHERE to_regclass('%s._etl_snapshot') IS NOT NULL" % SCHEMA):
            return []
        return postgres.query(
            self.url, "SELECT entity, number, state, rows FROM %s._etl_snapshot ORDER BY entity" % SCHEMA)

    def kill(self):
        """Whether a run was ended in the middle of a pass, or soon after its progress."""
        process = self.start()
        before = self.passes()
        moved = harness.eventually(lambda: self.passes() != before, None, LIMIT, process, pause=0.005)
        harness.ends_within(process, self.chance.uniform(0, 0.3))
        process.kill()
        if process.wait() >= 0 or not moved:
            return False
        self.killed += 1
        return True

    def read_all(self):
        """Runs until every lookup has been read since now."""
        moment = postgres.query(self.url, "SELECT now()")[0][0]
        for _ in range(30):
            self.run()
            late = postgres.query(
                self.url, "SELECT entity FROM %s._freshness WHERE polled_every IS NOT NULL"
                " AND (complete_through > '%s') IS NOT TRUE" % (SCHEMA, moment))
            if not late:
                return
        self.fail("these are not read:", late)

    def is_read(self, entity, moment):
        return postgres.query(
            self.url, "SELECT 1 FROM %s._freshness WHERE entity = '%s' AND polled_every IS NOT NULL"
            " AND complete_through > '%s'" % (SCHEMA, entity, moment))

    def passes_of(self, entity):
        """The number of the last pass over all records."""
        return int(postgres.query(
            self.url, "SELECT number FROM %s._etl_snapshot WHERE entity = '%s'" % (SCHEMA, entity))[0][0])

    def columns(self, table):
        return {name for (name,) in postgres.query(
            self.url, "SELECT column_name FROM information_schema.columns"
            " WHERE table_schema = '%s' AND table_name = '%s'" % (SCHEMA, table))}

    def compare_names(self):
        """Changes of opportunities whose user has the right name."""
        names = {}
        for line in harness.read_lines(self.state):
            if line["entity"] == "User":
                names[line["id"]] = flat_parts("Name", line["fields"]["Name"])["name"]
        rows = postgres.query(
            self.url, "SELECT changed_by, changed_by_name FROM %s.opportunity_changes" % SCHEMA)
        wrong = [row for row in rows if row[1] != names.get(row[0])]
        if wrong or not rows:
            self.fail("changes by users without their names:", wrong[:5], len(rows))
        return len(rows)

    def compare(self, without=()):
        """Without columns whose fields are gone."""
        self.simulator.write_state(self.state)
        result = {}
        for what, base, source in (("tables", compare_state.Comparison, self.url),
                                   ("files", compare_files.Folded, self.output)):
            comparison = flat(base)(source, self.state, self.lookups, ["Opportunity", *self.lookups])
            comparison.ignored = without
            if base is compare_files.Folded:
                comparison.check_files()
            if not comparison.run():
                comparison.print_differences()
                sys.exit("%s differ: %s" % (what, json.dumps(comparison.result())))
            counts = comparison.result()
            if not counts.get("compared"):
                self.fail("nothing was compared")
            result[what] = {name: counts[name] for name in ("compared", "cells", "differences")}
            result[what]["without_trace"] = counts.get("without_trace", 0)
        return result

    def compare_descriptions(self, entities):
        """Fields and picklist values are the same in tables and files, and comments of columns have labels."""
        counts = {}
        for name, columns in (
                ("_fields", "field, label, type, coalesce(length, 0), coalesce(array_to_string(reference_to, ','), '')"),
                ("_picklist", "field, value, label, CASE WHEN is_active THEN 1 ELSE 0 END, position")):
            table = [tuple(row) for row in postgres.query(
                self.url, "SELECT entity, %s FROM %s.%s" % (columns, SCHEMA, name))]
            lines = [tuple(map(str, row)) for row in compare_files.connection_to(self.output).execute(
                "SELECT entity, %s FROM %s" % (columns, name)).fetchall()]
            if sorted(table) != sorted(lines):
                self.fail(name, "differs:", sorted(set(table) ^ set(lines))[:5])
            if {row[0] for row in lines} != set(entities):
                self.fail(name, "has other objects:", {row[0] for row in lines})
            counts[name] = len(lines)
        comment = postgres.query(
            self.url, "SELECT col_description(attrelid, attnum) FROM pg_attribute"
            " WHERE attrelid = '%s.opportunity_live'::regclass AND attname = 'accountid'" % SCHEMA)
        if comment != [["Account Id: refers to Account (table account) [ForeignKey:EntityId]"]]:
            self.fail("the comment is not right:", comment)
        return counts

    def compare_changes(self, events, published, counts):
        """Each change of a tracked field has one row: those of the first events from the field history.

        That has no row if the value stayed the same. Where the truth does not show the value before, there may be one.
        """
        tracked = {name for (name,) in postgres.query(
            self.url, "SELECT DISTINCT field FROM %s.opportunityfieldhistory" % SCHEMA)}
        required, possible, values, fields = collections.Counter(), collections.Counter(), {}, set()
        for number, event in enumerate(events):
            header = event["header"]
            source = "field history" if number < published else "event"
            for record in header["recordIds"]:
                if header["changeType"] != "UPDATE":
                    # All values, and none for those that are missing.
                    values[record] = collections.defaultdict(lambda: None, event["fields"])
                    continue
                known = values.setdefault(record, {})
                for name in {*header["changedFields"], *header["nulledFields"]}:
                    new = event["fields"].get(name)
                    is_new = known.get(name, self) != new if not isinstance(known, collections.defaultdict) \
                        else known[name] != new
                    is_sure = isinstance(known, collections.defaultdict) or name in known
                    known[name] = new
                    if name not in tracked and name.removesuffix("Id") not in tracked:
                        continue
                    fields.add(name.lower())
                    key = record, name.lower(), source, shown(new)
                    if source == "event" or is_sure and is_new:
                        required[key] += 1
                    elif not is_sure:
                        possible[key] += 1
        found = collections.Counter(
            (*row[:3], shown(None if row[3] == "-" else bytes.fromhex(row[3]).decode())) for row in postgres.query(
                self.url, "SELECT id, field, source, coalesce(encode(convert_to(new_value, 'UTF8'), 'hex'), '-')"
                " FROM %s.opportunity_changes WHERE change_type = 'UPDATE'" % SCHEMA) if row[1] in fields)
        if required - found or found - (required + possible):
            self.fail("changes differ: missing", list((required - found).items())[:5],
                      "more", list((found - required - possible).items())[:5])
        for (_, _, source, _), count in found.items():
            counts[source] += count
        counts["required"] += sum(required.values())

    def compare_views_of_changes(self, counts):
        """Cell by cell; a row of one view has to be in the other as often."""
        names = ("id", "field", "new_value", "changed_at", "changed_by", "changed_by_name", "change_type",
                 "transaction_key", "new_is_known", "source", "old_is_known", "old_value")
        columns = ", ".join(names).replace("changed_at", "%s")
        table = [
            tuple(json.loads(line.replace("\\\\", "\\"))) for line in postgres.copied(
                self.url, "(SELECT json_build_array(%s) FROM %s.opportunity_changes)" % (
                    columns % "round(extract(epoch FROM changed_at) * 1000)", SCHEMA))]
        files = compare_files.connection_to(self.output).execute(
            'SELECT %s FROM "Opportunity_changes"' % columns % "epoch_ms(changed_at)").fetchall()
        sides = []
        for rows in (table, files):
            sides.append(collections.defaultdict(list))
            for *cells, old_is_known, old in rows:
                cells[1] = cells[1] and postgres_model.sql_name(cells[1], "lower")
                # Reads have other line ends than events, and tables no U+0000.
                cells[2], old = (
                    text and text.replace("\r\n", "\n").replace("\0", "\ufffd") for text in (cells[2], old))
                is_of_event = cells[-1] == "event" and old_is_known is not None
                sides[-1][(*cells, *(() if is_of_event else (old_is_known, old)))].append(
                    (old_is_known, old) if is_of_event else ())
        for key in sides[0].keys() | sides[1].keys():
            ours, theirs = (sorted(side.get(key, []), key=str) for side in sides)
            unknown = (False, None) in ours + theirs
            if len(ours) != len(theirs) or not unknown and ours != theirs:
                self.fail("the views of changes differ:", key, ours, theirs)
            counts["rows of both"] += len(ours)
            counts["value before in both"] += len(ours) if key[-1] == "event" and not unknown else 0
            counts["named"] += len(ours) if key[5] else 0

    def freshness(self, entity):
        names = ("state", "polled_every", "polled_at", "complete_through", "topics", "snapshot_state", "pipeline")
        rows = postgres.query(
            self.url, "SELECT %s FROM %s._freshness WHERE entity = '%s'" % (", ".join(names), SCHEMA, entity))
        if len(rows) > 2:
            self.fail("_freshness has", len(rows), "rows of", entity)
        tables = [dict(zip(names, row)) for row in rows]
        files = compare_files.connection_to(self.output).execute(
            "SELECT %s FROM _freshness WHERE entity = '%s'"
            % (", ".join(name + "::VARCHAR" for name in names), entity)).fetchall()
        return tables, [dict(zip(names, row)) for row in files]


@contextlib.contextmanager
def org(arguments, work, *options):
    with harness.Simulator(
        arguments.programs, work, "--existing", str(arguments.existing), "--state", work + "/state.ndjson",
        "--seed", str(arguments.seed), "--diffs", "0", "--gaps", "0", "--overflows", "0", "--wildcards", "0", *options
    ) as simulator, postgres.Cluster() as cluster:
        yield simulator, cluster


def prove_random(arguments, work):
    topics = [TOPIC, *map(topic_of, LOOKUPS)]
    with org(arguments, work, "--topics", ",".join(topics), "--events", "400") as (simulator, cluster):
        simulator.post("schemas")
        pipeline = Lookups(arguments, work, simulator, cluster, LOOKUPS)
        for _ in range(arguments.rounds):
            simulator.publish(150, *topics)
            for _ in range(20):
                if pipeline.killed >= arguments.kills or pipeline.kill():
                    break
                # Another run finds something to read.
                simulator.publish(20, *topics)
        pipeline.read_all()
        result = pipeline.compare()
        # The tables that opportunities refer to exist now, so the next run names them.
        pipeline.run()
        result.update(pipeline.compare_descriptions(["Opportunity", *LOOKUPS]))
        # Runs that find little: the records that have changed, and no more.
        calls, rows = [], []
        for _ in range(3):
            simulator.publish(10, *topics)
            before = simulator.get("stats")["api_calls"]
            pipeline.read_all()
            calls.append(simulator.get("stats")["api_calls"] - before)
            rows.append(harness.read_json(work + "/report.json")["records"]["read"])
        result.update(pipeline.compare(), kills=pipeline.killed, calls=calls, rows=rows)
        tables, files = pipeline.freshness("Account")
        for found in tables + files:
            if found["state"] not in ("fresh", "stale") or str(found["polled_every"]) not in ("00:00:01", "0:00:01"):
                pipeline.fail("_freshness is not right:", found)
            if found["polled_at"] is None or found["complete_through"] is None:
                pipeline.fail("_freshness has no time:", found)
        return result


def prove_fields(arguments, work):
    topics = [TOPIC, topic_of("Contact")]
    arguments.existing = min(arguments.existing, 300)
    with org(arguments, work, "--topics", ",".join(topics), "--events", "100", "--silent", "0") as (simulator, cluster):
        simulator.post("schemas")
        pipeline = Lookups(arguments, work, simulator, cluster, ["Contact"])
        pipeline.read_all()
        before = pipeline.passes_of("Contact")
        simulator.post("fields?change=add&field=Contact.Score__c&type=number")
        simulator.publish(20, *topics)
        pipeline.read_all()
        if pipeline.passes_of("Contact") != before or "score__c" in pipeline.columns("contact"):
            pipeline.fail("the object was described again too early")
        # What is known of the object is a day old.
        path = work + "/state/%s.lookups.json" % NAME
        known = harness.read_json(path)
        for entry in known["objects"]:
            entry["described_at_ms"] -= 25 * 3600 * 1000
        harness.write_json(path, known)
        pipeline.read_all()
        if pipeline.passes_of("Contact") == before or "score__c" not in pipeline.columns("contact"):
            pipeline.fail("the records were not read again with their new field")
        result = pipeline.compare()
        # A field that is gone: the org refuses the query, and is asked for the fields at once.
        simulator.post("fields?change=delete&field=Contact.Score__c")
        simulator.publish(20, *topics)
        pipeline.read_all()
        # The next run knows, and reads all records without the field.
        before = pipeline.passes_of("Contact")
        pipeline.read_all()
        if pipeline.passes_of("Contact") == before:
            pipeline.fail("the records were not read again without the field")
        result["after_deletion"] = pipeline.compare(without={"score__c"})["tables"]["differences"]
        return result


def prove_history(arguments, work, *options):
    """The topic is read from the end of what was published before the first run."""
    arguments.existing = min(arguments.existing, 300)
    topics = "%s,%s" % (TOPIC, topic_of("User"))
    with org(arguments, work, "--topics", topics, "--events", "2000", "--silent", "0", "--extremes", "0",
             "--field-history", "--keepalive-interval", "1", *options) as (simulator, cluster):
        pipeline = Lookups(arguments, work, simulator, cluster, ["OpportunityFieldHistory", "User"])
        document = harness.read_json(pipeline.path)
        document["source"]["start"] = "latest"
        harness.write_json(pipeline.path, document)
        published = len(simulator.published([TOPIC]))
        pipeline.run()
        # Records change on both sides of the seam, some within its seconds.
        counts = collections.Counter()
        for number in range(3):
            simulator.publish(80, TOPIC)
            pipeline.read_all()
            pipeline.compare_changes(simulator.published([TOPIC]), published, counts)
            pipeline.compare_views_of_changes(counts)
            if number == 0:
                simulator.advance("60s")
        if not counts["event"] or not counts["field history"]:
            pipeline.fail("a source has no changes:", counts)
        return dict(counts)


def prove_named_history(arguments, work):
    """Users have names, which the views show."""
    counts = prove_history(arguments, work, "--data", "sales")
    if counts["named"] != counts["rows of both"]:
        sys.exit("some rows of the views of changes have no user's name: %s" % counts)
    return counts


def prove_sales(arguments, work):
    topics = [TOPIC, topic_of("User")]
    with org(arguments, work, "--topics", ",".join(topics), "--events", "200", "--data", "sales") as (
            simulator, cluster):
        pipeline = Lookups(arguments, work, simulator, cluster, ["User"])
        pipeline.read_all()
        simulator.publish(30, *topics)
        pipeline.read_all()
        result = pipeline.compare()
        result["named"] = pipeline.compare_names()
        # A run that follows reads again and again, also after a kill.
        for last in (False, True):
            process = pipeline.spawn("run", "--follow", *["--take-over"] * (pipeline.killed > 0))
            for _ in range(3):
                simulator.publish(10, topic_of("User"))
                moment = postgres.query(pipeline.url, "SELECT now()")[0][0]
                pipeline.wait(process, lambda: pipeline.is_read("User", moment), "a read after a change")
            if last:
                process.send_signal(signal.SIGINT)
                pipeline.end(process)
            else:
                process.kill()
                process.wait()
                pipeline.killed += 1
        result.update(pipeline.compare())
        return result


if __name__ == "__main__":
    main()
