"""Compares the views of changes with what the org did, and records as they were with what it held.

    changes_proof.py --programs DIR --work DIR [--events N] [--phases N] [--existing N] [--seed S] [--gaps SHARE]
        [--measure]

The views of changes are `opportunity_changes` in PostgreSQL and `"Opportunity_changes"` in DuckDB, of one pipeline. Where both
know a value, both have the same text.

The org has records from before the first event, which the first run reads. In each phase it publishes so many
events; then a run loads them, and another reads again what gap events hide. The truth is the simulator's: its state before each phase, and the
events since. Every row of a view has to be a change of the truth, and every change a row. A value before that
the view calls known has to be the truth's; it may be unknown where the org did not say, and for few others.

After the last phase, `opportunity_at` of the end of each phase is compared with the state of the org then: every
record that is not marked as stale, every field.

--measure: also the time that the server takes for some queries.

Prints one JSON line; exits 1 at a difference.
"""

import collections
import datetime
import decimal
import json
import os
import subprocess
import sys
import time

import duckdb

import compare_state
import harness
import postgres
import postgres_model as model

TOPIC = "/data/OpportunityChangeEvent"
ROOT = os.path.normpath(os.path.dirname(os.path.abspath(__file__)) + "/../../..")
UNKNOWN = object()
EPOCH = datetime.datetime(1970, 1, 1)
# Of the values before that the truth has, so many may be unknown to a view. Files have no repairs.
UNKNOWN_SHARE, UNKNOWN_IN_FILES = 0.1, 0.4
# Of the records as they were, at least so many are not marked as stale.
CERTAIN_SHARE = 0.5
COLUMNS = """id, field, old_value, new_value, round(extract(epoch FROM changed_at) * 1000), changed_by, change_type,
    transaction_key, old_is_known, new_is_known"""


def found_value(text, kind):
    """The value of a text of the view."""
    if text is None:
        return None
    if kind in compare_state.NUMBERS:
        return decimal.Decimal(text)
    if kind == "timestamp with time zone":
        return decimal.Decimal(milliseconds(datetime.datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ")))
    if kind == "date":
        return decimal.Decimal(milliseconds(datetime.datetime.strptime(text, "%Y-%m-%d")))
    if kind == "boolean":
        return {"true": True, "false": False}[text]
    return compare_state.expected_value(text, kind)


def milliseconds(moment):
    return (moment - EPOCH) // datetime.timedelta(milliseconds=1)


def flat(fields):
    """Column and value of each field."""
    for name, value in fields.items():
        if isinstance(value, dict):
            for part, inner in value.items():
                yield model.sql_name("%s_%s" % (name, part), "lower"), inner
        else:
            yield model.sql_name(name, "lower"), value


def column(name):
    return model.sql_name(name.replace(".", "_"), "lower")


class Truth:
    """Every change with its values: (ID, field, transaction, time, user, type) to values before and after."""

    def __init__(self, kinds):
        self.kinds = kinds
        self.states = {}
        self.changes = collections.defaultdict(list)

    def value(self, field, value):
        return compare_state.expected_value(value, self.kinds[field])

    def start(self, path):
        """What the org holds now, whatever events have said."""
        for name, record in compare_state.read_state(path, ["Opportunity"], "lower")["Opportunity"].items():
            self.states[name] = {
                field: self.value(field, record["cells"].get(field)) for field in self.kinds}

    def alive(self, path):
        """The records that the org holds and that are not deleted."""
        return {
            name: {field: self.value(field, record["cells"].get(field)) for field in self.kinds}
            for name, record in compare_state.read_state(path, ["Opportunity"], "lower")["Opportunity"].items()
            if not record["is_deleted"]}

    def take(self, event):
        header = event["header"]
        kind = header["changeType"]
        if event["kind"] not in ("change", "gap"):
            # Any record may have changed.
            self.states.clear()
            return
        for record in header["recordIds"]:
            state = self.states.setdefault(record, collections.defaultdict(lambda: UNKNOWN))
            key = header["transactionKey"], header["commitTimestamp"], header["commitUser"], kind
            if kind == "UPDATE":
                values = dict(flat(event["fields"]))
                names = {column(name) for name in header["changedFields"] + header["nulledFields"]}
                diffs = {column(name) for name in header["diffFields"]}
                for name in sorted(names & self.kinds.keys()):
                    new = UNKNOWN if name in diffs else self.value(name, values.get(name))
                    self.changes[(record, name, *key)].append((state.get(name, UNKNOWN), new))
                    state[name] = new
                continue
            self.changes[(record, None, *key)].append((None, None))
            if kind in ("CREATE", "UNDELETE"):
                values = dict(flat(event["fields"]))
                self.states[record] = {
                    name: self.value(name, values.get(name)) for name in self.kinds}
            elif kind not in ("DELETE", "GAP_DELETE"):
                self.states[record] = collections.defaultdict(lambda: UNKNOWN)


def compare(truth, rows):
    """Counts, the differences, and the values before that only the truth knows."""
    counts, differences, unknown = collections.Counter(), [], []
    found = collections.defaultdict(list)
    for row in rows:
        record, field, old, new, at, by, kind, transaction, old_is_known, new_is_known = row
        kind_of = truth.kinds.get(field)
        found[(record, field, transaction, int(at), by, kind)].append((
            found_value(old, kind_of) if old_is_known == "t" or field is None else UNKNOWN,
            found_value(new, kind_of) if new_is_known == "t" or field is None else UNKNOWN))
    for key in truth.changes.keys() | found.keys():
        expected, given = truth.changes.get(key, []), found.get(key, [])
        if len(expected) != len(given):
            differences.append((key, expected, given))
            continue
        # Changes of one second and transaction have no order in the view.
        rest = list(given)
        for old, new in expected:
            match = next((
                pair for pair in rest
                if (pair[0] is UNKNOWN or pair[0] == old) and (pair[1] is UNKNOWN or pair[1] == new)), None)
            if match is None:
                differences.append((key, expected, given))
                break
            rest.remove(match)
            counts["changes"] += 1
            if key[1] is not None:
                counts["fields"] += 1
                counts["unknown to both"] += match[0] is UNKNOWN and old is UNKNOWN
                if match[0] is UNKNOWN and old is not UNKNOWN:
                    unknown.append((key, old))
    counts["unknown to the view"] = len(unknown)
    return counts, differences, unknown


def main():
    arguments = harness.arguments(
        events=2500, phases=3, existing=300, seed=1, gaps=0.02, diffs=0.01, measure=False)
    with harness.Simulator(
        arguments.programs, arguments.work, "--events", "0", "--seed", str(arguments.seed), "--gaps",
        str(arguments.gaps), "--diffs", str(arguments.diffs), "--existing", str(arguments.existing),
        "--extremes", "0",
    ) as simulator, postgres.Cluster() as cluster:
        url = cluster.make_database("warehouse")
        environment = dict(simulator.environment, DATABASE_URL=url)
        environment["PUBSUB_ETL_ROOT"] = arguments.work + "/pipelines"
        document = harness.read_json(ROOT + "/pipelines/opps-postgres.json")
        document["source"]["snapshot"] = {"mode": "initial", "visibility_wait": "1s"}
        document["sinks"].append({"type": "files", "name": "files", "directory": "out"})
        path = arguments.work + "/changes.json"
        harness.write_json(path, document)
        command = [arguments.programs + "/pubsub-etl", "run", path]
        command += ["--set", "run.quiet=2s"]
        taken, truth = 0, None
        subprocess.run(command, env=environment, check=True)
        moments = []
        for phase in range(arguments.phases):
            # Reads of the last phase are older than the changes of this one.
            simulator.advance("60s")
            state = "%s/state-%d.ndjson" % (arguments.work, phase)
            simulator.write_state(state)
            if phase:
                newest = max(event["header"]["commitTimestamp"] for event in events)
                moments.append((newest + 30_000, state))
            simulator.publish(arguments.events, TOPIC)
            subprocess.run(command, env=environment, check=True)
            if truth is None:
                truth = Truth(dict(postgres.query(url, """
                    SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute
                    WHERE attrelid = 'salesforce.opportunity_history'::regclass AND attnum > 0
                    AND left(attname, 1) <> '_'""")))
            truth.start(state)
            events = simulator.published([TOPIC])
            for event in events[taken:]:
                truth.take(event)
            taken = len(events)
            # What gap events hid is read a second after their arrival.
            time.sleep(1.5)
            subprocess.run(command, env=environment, check=True)
        rows = [
            [None if cell == "\\N" else unescaped(cell) for cell in line.split("\t")]
            for line in postgres.copied(url, "(SELECT %s FROM salesforce.opportunity_changes)" % COLUMNS)]
        counts, differences, unknown = compare(truth, rows)
        others = file_rows(arguments.work + "/pipelines/out")
        file_counts, file_differences, file_unknown = compare(truth, others)
        texts = different_texts(rows, others)
        past = collections.Counter()
        for moment, state in moments:
            differences += past_differences(url, truth, moment, truth.alive(state), past)
        figures = measure(url) if arguments.measure else {}
    print(json.dumps({
        **counts, "differences": len(differences), "files": {**file_counts, "differences": len(file_differences)},
        "different texts": len(texts), "moments": len(moments), **past, **figures}))
    for name, found, missing in (("table", differences, unknown), ("files", file_differences, file_unknown)):
        for difference in found[:10]:
            print("different:", name, *difference, file=sys.stderr)
        for change in missing[:10]:
            print("unknown to the view:", name, *change, file=sys.stderr)
    for difference in texts[:10]:
        print("texts:", *difference, file=sys.stderr)
    if differences or file_differences or texts:
        sys.exit(1)
    if past["certain"] < CERTAIN_SHARE * past["records"]:
        sys.exit("too many records as they were are marked")
    if (len(unknown) > UNKNOWN_SHARE * counts["fields"]
            or len(file_unknown) > UNKNOWN_IN_FILES * file_counts["fields"]):
        sys.exit("too many values before are unknown")


def past_differences(url, truth, moment, expected, counts):
    """Records at a moment that differ from those that the org held."""
    fields = sorted(truth.kinds)
    query = "SELECT id, _stale, %s FROM salesforce.opportunity_at(to_timestamp(%d / 1000.0))" % (
        ", ".join(compare_state.expression(field, truth.kinds[field]) for field in fields), moment)
    differences, found = [], set()
    for line in postgres.copied(url, "(%s)" % query):
        record, stale, *cells = line.split("\t")
        found.add(record)
        counts["records"] += 1
        if stale == "t":
            continue
        counts["certain"] += 1
        values = {
            field: compare_state.found_value(cell, truth.kinds[field]) for field, cell in zip(fields, cells)}
        if record not in expected:
            differences.append(((record, "at", moment), "deleted", "found"))
        elif values != expected[record]:
            differences.append(((record, "at", moment), *zip(*(
                ((field, expected[record][field]), (field, values[field]))
                for field in fields if values[field] != expected[record][field]))))
    differences += [((record, "at", moment), "found", "missing") for record in expected.keys() - found]
    return differences


def file_rows(directory):
    """Rows of the view in DuckDB, in the form of the others."""
    with duckdb.connect() as connection:
        connection.execute(harness.read_text(directory + "/_views.sql"))
        columns = COLUMNS.replace("round(extract(epoch FROM changed_at) * 1000)", "epoch_ms(changed_at)")
        rows = connection.execute('SELECT %s FROM "Opportunity_changes"' % columns).fetchall()
    flags = {True: "t", False: "f", None: None}
    return [
        [row[0], row[1] and column(row[1]), *row[2:4], str(row[4]), *row[5:8], flags[row[8]], flags[row[9]]]
        for row in rows]


def different_texts(rows, others):
    """Values that both views know, and that are not the same text."""
    def same(text):
        """Reads have other line ends than events, and tables no U+0000."""
        return compare_state.expected_value(text, "text")

    found = []
    sides = [{}, {}]
    for side, given in zip(sides, (rows, others)):
        for row in given:
            side.setdefault((row[0], row[1], row[7], row[4]), []).append(row)
    for key, given in sides[0].items():
        other = sides[1].get(key, [])
        if len(given) != 1 or len(other) != 1:
            continue
        for value, flag in ((2, 8), (3, 9)):
            if given[0][flag] == other[0][flag] == "t" and same(given[0][value]) != same(other[0][value]):
                found.append((key, given[0][value], other[0][value]))
    return found


def unescaped(text):
    return compare_state.ESCAPE.sub(lambda match: compare_state.ESCAPES.get(match[1], match[1]), text)


def measure(url):
    """Milliseconds of one query each, the best of three."""
    figures = {}
    [[record]] = postgres.query(url, """
        SELECT _record_id FROM salesforce.opportunity_history GROUP BY 1 ORDER BY count(*) DESC LIMIT 1""")
    for name, query in (
        ("newest 100", "opportunity_changes ORDER BY changed_at DESC LIMIT 100"),
        ("changes of one record", "opportunity_changes WHERE id = '%s'" % record),
        ("versions of one record", "opportunity_versions WHERE id = '%s'" % record),
        ("one record at a moment", "opportunity_at(now(), '%s')" % record),
        ("all records now", "opportunity_at(now())"),
        ("all records at the median change", """opportunity_at((SELECT percentile_disc(0.5) WITHIN GROUP
            (ORDER BY _commit_timestamp) FROM salesforce.opportunity_history))"""),
    ):
        times = []
        for _ in range(3):
            plan = postgres.query(
                url, "EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) SELECT * FROM salesforce." + query)
            times.append(json.loads("\n".join(row[0] for row in plan))[0]["Execution Time"])
        figures[name + " (ms)"] = min(times)
    return figures


if __name__ == "__main__":
    main()
