"""Reads exported files with DuckDB, pandas and polars and compares what they say with the truth.

    readers_proof.py --programs DIR --work DIR [--events N] [--seed S]

The files are read with the types that stand beside them: DuckDB by `_views.sql`, pandas and polars by
`_columns.json`. Required: equal counts per entity and change type, sums of amounts and distinct record
IDs; and the query of the page Files.md, run as it is, gives the moves to stages that the truth gives, and the
view "Opportunity_now" its records, of the topic of the object and of a channel
of all objects alike. Then the same view of an org that has records from before, into two directories of several
objects, with changes before, during and after two snapshots, gap events among them: it is what the org holds.
Prints one JSON line; exits 1 at the first difference.
"""

import collections
import datetime
import io
import json
import math
import os
import subprocess
import sys

import duckdb
import pandas
import polars
import zstandard

import compare_files
import compare_truth
import harness

TOPICS = {
    "Opportunity": "/data/OpportunityChangeEvent",
    "Account": "/data/AccountChangeEvent",
    "Order_Event__e": "/event/Order_Event__e",
}
CHANNEL = "/data/ChangeEvents"
AMOUNTS = {"Opportunity": "Amount", "Account": "AnnualRevenue"}


def main():
    arguments = harness.arguments(events=50000, seed=3)
    work = arguments.work
    document = harness.pipeline("opps", list(TOPICS.values()))
    document["sinks"][0]["rotate"] = {"max_events": 700}
    harness.write_json(work + "/opps.json", document)
    document = harness.pipeline("changes", CHANNEL)
    document["sinks"][0]["rotate"] = {"max_events": 700}
    harness.write_json(work + "/changes.json", document)
    # Sums are to be compared, so no amounts that drown the others.
    with harness.Simulator(
        arguments.programs, work, "--events", str(arguments.events), "--extremes", "0",
        "--seed", str(arguments.seed), "--topics", ",".join([*TOPICS.values(), CHANNEL]),
    ) as simulator:
        # Several runs and schemas, so that a record's changes lie in many files.
        for publishes in (True, True, False):
            for name in ("opps", "changes"):
                subprocess.run(
                    [arguments.programs + "/pubsub-etl", "run", "%s/%s.json" % (work, name)],
                    env=simulator.environment, check=True,
                )
            if publishes:
                simulator.publish(arguments.events // 20)
        os.environ.update(simulator.environment)
        truth = truth_lines(simulator.truth)
    output = work + "/out/opps"
    expected = {entity: facts_of_lines(lines, entity) for entity, lines in truth.items()}
    result = {"files": len(harness.data_files(output))}
    result["lines"] = {entity: len(lines) for entity, lines in truth.items()}
    for reader in (DuckDB(output), Pandas(output), Polars(output)):
        for entity, facts in expected.items():
            require(reader.facts(entity), facts, "%s, %s" % (type(reader).__name__, entity))
        result[type(reader).__name__] = "equal"
    columns = columns_of(output, "Opportunity")
    state = fold(truth["Opportunity"], columns)
    moves = moves_to_stages(truth["Opportunity"])
    for place in (output, work + "/out/changes"):
        compare_states(state_by_view(place, columns), state)
        if moves_by_page(place) != moves:
            sys.exit("%s: moves %.500s, the truth says %.500s" % (place, moves_by_page(place), moves))
    result["moves"] = sum(moves.values())
    result["records"] = len(expected["Opportunity"]["ids"])
    result["records_now"] = len(state)
    result["snapshots"] = prove_snapshots(arguments, work + "/snapshots")
    print(json.dumps(result))


def require(got, wanted, what):
    for name in wanted:
        if name == "sum" and got[name] is not None and wanted[name] is not None:
            if math.isclose(got[name], wanted[name], rel_tol=1e-9):
                continue
        elif got[name] == wanted[name]:
            continue
        sys.exit("%s: %s: %.500s, the truth says %.500s" % (what, name, got[name], wanted[name]))


# The truth


def truth_lines(path):
    """Lines that the truth asks for, in the order of the stream, by entity."""
    expected = compare_truth.Expected(compare_truth.Schemas())
    lines = collections.defaultdict(list)
    with open(path, encoding="utf-8") as file:
        for text in file:
            event = json.loads(text)
            if event["topic"] == CHANNEL:
                continue  # The same events once more.
            lines[event["entity"]] += expected.lines(event)
    return {entity: lines[entity] for entity in TOPICS}


def facts_of_lines(lines, entity):
    amounts = [line.get(AMOUNTS.get(entity)) for line in lines]
    amounts = [amount for amount in amounts if amount is not None]
    return {
        "counts": dict(collections.Counter(line.get("_change_type") for line in lines)),
        "ids": {line["_record_id"] for line in lines if "_record_id" in line},
        "sum": math.fsum(amounts) if entity in AMOUNTS else None,
        "amounts": len(amounts),
    }


# Readers


def columns_of(output, entity):
    """Column name to type name, from `_columns.json`."""
    columns = harness.read_json("%s/%s/_columns.json" % (output, entity))["columns"]
    return {column["name"]: column["type"] for column in columns}


def files_of(output, entity):
    return sorted(harness.data_files("%s/%s" % (output, entity)))


class DuckDB:
    def __init__(self, output):
        self.connection = duckdb.connect()
        with open(output + "/_views.sql", encoding="utf-8") as file:
            self.connection.execute(file.read())

    def facts(self, entity):
        def rows(select):
            return self.connection.execute('%s FROM "%s"' % (select, entity)).fetchall()

        if entity not in AMOUNTS:
            counts, ids, amounts = {None: rows("SELECT count(*)")[0][0]}, set(), (None, 0)
        else:
            query = 'SELECT _change_type, count(*) FROM "%s" GROUP BY 1' % entity
            counts = dict(self.connection.execute(query).fetchall())
            ids = {row[0] for row in rows("SELECT DISTINCT _record_id")} - {None}
            amounts = rows("SELECT sum({0}), count({0})".format(AMOUNTS[entity]))[0]
        return {"counts": counts, "ids": ids, "sum": amounts[0], "amounts": amounts[1]}


class Pandas:
    TYPES = {
        "boolean": "boolean", "int": "Int32", "long": "Int64", "double": "Float64",
        "float": "Float32", "array<string>": "object", "json": "object",
    }
    TIMES = ("date", "timestamp-millis")

    def __init__(self, output):
        self.output = output

    def facts(self, entity):
        columns = columns_of(self.output, entity)
        types = {name: self.TYPES.get(kind, "string") for name, kind in columns.items()}
        frame = pandas.concat(
            [
                pandas.read_json(path, lines=True, compression="zstd", dtype=types)
                for path in files_of(self.output, entity)
            ],
            ignore_index=True,
        )
        for name in frame.columns:
            if columns.get(name) in self.TIMES:
                frame[name] = pandas.to_datetime(frame[name], utc=True, format="ISO8601")
            elif name in columns and str(frame[name].dtype) != types[name]:
                frame[name] = frame[name].astype(types[name])
        if entity not in AMOUNTS:
            return {"counts": {None: len(frame)}, "ids": set(), "sum": None, "amounts": 0}
        amount = frame[AMOUNTS[entity]]
        if str(amount.dtype) != "Float64":
            sys.exit("pandas made %s of the amounts" % amount.dtype)
        return {
            "counts": frame.groupby("_change_type").size().to_dict(),
            "ids": set(frame["_record_id"].dropna().unique()),
            "sum": float(amount.sum()),
            "amounts": int(amount.count()),
        }


class Polars:
    TYPES = {
        "boolean": polars.Boolean, "int": polars.Int32, "long": polars.Int64,
        "double": polars.Float64, "float": polars.Float32,
        "array<string>": polars.List(polars.String), "date": polars.String,
    }

    def __init__(self, output):
        self.output = output

    def facts(self, entity):
        columns = columns_of(self.output, entity)
        schema = {name: self.TYPES.get(kind, polars.String) for name, kind in columns.items()}
        frames = []
        for path in files_of(self.output, entity):
            with open(path, "rb") as file:
                text = zstandard.ZstdDecompressor().stream_reader(file).read()
            frames.append(polars.read_ndjson(io.BytesIO(text), schema=schema))
        frame = polars.concat(frames)
        # Every time has to be one for polars too.
        times = [name for name, kind in columns.items() if kind == "timestamp-millis"]
        frame.with_columns(
            polars.col(times).str.to_datetime("%Y-%m-%dT%H:%M:%S%.fZ", strict=True),
            polars.col([n for n, k in columns.items() if k == "date"]).str.to_date(strict=True),
        )
        if entity not in AMOUNTS:
            return {"counts": {None: frame.height}, "ids": set(), "sum": None, "amounts": 0}
        amount = frame[AMOUNTS[entity]]
        return {
            "counts": dict(frame.group_by("_change_type").len().rows()),
            "ids": set(frame["_record_id"].drop_nulls().unique()),
            "sum": amount.sum(),
            "amounts": amount.count(),
        }


# Current state


def fold(lines, columns):
    """The state of each record after all its changes, computed simply."""
    state, deleted = {}, set()
    for line in lines:
        if line["_kind"] not in ("change", "gap"):
            continue
        record, body = line["_record_id"], {n: v for n, v in line.items() if n[0] != "_"}
        if line["_change_type"] in ("DELETE", "GAP_DELETE"):
            deleted.add(record)
        elif line["_change_type"] not in ("UPDATE", "GAP_UPDATE"):
            deleted.discard(record)
        # A gap event can bring a deleted record back, with the values that it had.
        if line["_kind"] == "gap" or line["_change_type"] == "DELETE":
            state.setdefault(record, {})
        elif line["_change_type"] == "UPDATE":
            touched = set(line["_changed_fields"] + line["_nulled_fields"])
            for name in touched - set(line["_diff_fields"]):
                state.setdefault(record, {})[name] = body[name]
            state.setdefault(record, {})
        else:
            state[record] = body
    return {
        record: {
            name: typed(value, columns[name]) for name, value in body.items() if value is not None
        }
        for record, body in state.items()
        if record not in deleted
    }


def typed(value, kind):
    if kind == "timestamp-millis":
        moment = datetime.datetime.strptime(value, "%Y-%m-%dT%H:%M:%S.%fZ")
        return (moment - compare_truth.EPOCH) // datetime.timedelta(milliseconds=1)
    if kind == "date":
        return datetime.date.fromisoformat(value)
    return value


def moves_to_stages(lines):
    """How often a record came to a stage, by day and stage."""
    moves = collections.Counter()
    for line in lines:
        if line["_kind"] == "change" and (
            line["_change_type"] == "CREATE" or "StageName" in line["_changed_fields"]
        ):
            day = datetime.date.fromisoformat(line["_commit_timestamp"][:10])
            moves[day, line.get("StageName")] += 1
    return dict(moves)


def moves_by_page(output):
    connection = DuckDB(output).connection
    connection.execute("SET TimeZone = 'UTC'")
    rows = connection.execute(compare_files.queries_of_the_page()[0]).fetchall()
    return {(day, stage): count for day, stage, count in rows}


def state_by_view(output, columns):
    rows = DuckDB(output).connection.execute(
        'SELECT _record_id, %s FROM "Opportunity_now"'
        % ", ".join(
            ("epoch_ms(%s)" if kind == "timestamp-millis" else "%s") % ('"%s"' % name)
            for name, kind in columns.items()
            if name[0] != "_"
        )
    ).fetchall()
    names = [name for name in columns if name[0] != "_"]
    return {
        row[0]: {name: value for name, value in zip(names, row[1:]) if value is not None}
        for row in rows
    }


# Snapshots

SNAPSHOT_OBJECTS = ["Opportunity", "Account"]


def prove_snapshots(arguments, work):
    """Folds the output of two pipelines for an org with existing records that keeps changing."""
    os.makedirs(work, exist_ok=True)
    topics = [TOPICS[name] for name in SNAPSHOT_OBJECTS]
    state = work + "/state.ndjson"
    for name, topic in (("opps", topics), ("changes", CHANNEL)):
        document = harness.pipeline(name, topic)
        document["source"]["snapshot"] = {
            "mode": "initial", "visibility_wait": "1s", "objects": SNAPSHOT_OBJECTS}
        document["sinks"][0]["rotate"] = {"max_events": 300}
        document["sinks"][0]["name"] = "full"
        some = {"type": "drop", "columns": ["Amount"], "missing": "ignore"}
        document["sinks"].append(
            {"type": "files", "name": "some", "directory": "out/some-" + name, "stages": [some]})
        harness.write_json("%s/%s.json" % (work, name), document)
    with harness.Simulator(
        arguments.programs, work, "--existing", "800", "--state", state, "--events", "600", "--live-rate", "100",
        "--live-count", "600", "--seed", str(arguments.seed), "--topics", ",".join([*topics, CHANNEL]),
        "--overflows", "0", "--wildcards", "0", "--gaps", "0.05", "--diffs", "0", "--bulk-rate", "400",
    ) as simulator:
        def run(name, command="run"):
            subprocess.run(
                [arguments.programs + "/pubsub-etl", command, "%s/%s.json" % (work, name)],
                env=simulator.environment, check=True, stderr=subprocess.DEVNULL)

        for name in ("opps", "changes"):
            run(name)
        simulator.publish(300)
        # All events of --live-rate, and those above.
        harness.eventually(lambda: simulator.get("stats")["published"] >= 600 + 600 + 300, "live events")
        for name in ("opps", "changes"):
            run(name)
            # What gap events have hidden is in the second read of each record.
            run(name, "snapshot")
    result = {}
    for output in ("opps", "changes", "some-opps", "some-changes"):
        hidden = [(name, "amount") for name in SNAPSHOT_OBJECTS] if output.startswith("some") else []
        folded = compare_files.Folded("%s/out/%s" % (work, output), state, SNAPSHOT_OBJECTS, hidden=hidden)
        folded.check_files()
        if not folded.run():
            folded.print_differences()
            sys.exit("%s: not what the org holds" % output)
        result[output] = folded.result()["compared"]
    return result


def compare_states(got, wanted):
    if set(got) != set(wanted):
        differing = sorted(set(got) ^ set(wanted))
        sys.exit("current state: %d records differ, %s" % (len(differing), differing[:3]))
    for record, state in wanted.items():
        for name in set(state) | set(got[record]):
            if state.get(name) != got[record].get(name):
                values = (record, name, got[record].get(name), state.get(name))
                sys.exit("current state: %s.%s is %r, should be %r" % values)


if __name__ == "__main__":
    main()
