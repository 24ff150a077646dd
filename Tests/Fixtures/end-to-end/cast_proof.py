"""Every target type of the stage cast, into files and tables, through changes of the schema.

    cast_proof.py --programs DIR --work DIR

A service on grpcio publishes change events that fastavro has encoded: each value of CASES as a create and as an
update, nulls, and a field whose type changes twice while its cast stays. What a line and a row have is written down
here by hand. Values that cannot be cast become dead letters that name the column and not the value, and nothing of
their events is in files or tables. Prints one JSON line; exits 1 at the first difference.
"""

import datetime
import decimal
import io
import json
import os
import sys
import types

import fastavro

import harness
import other_schemas
import other_service
import postgres
from shapes_proof import Topic, bitmap, lines_of, require

TOPIC, ENTITY = "/data/ShapeChangeEvent", "Shape"
FAILS = object()
# 2026-02-17T23:30:00Z, and milliseconds of a day.
LATE, DAY = 1771371000000, 86_400_000

# Name, type and doc of the field, its cast, the type of the column in PostgreSQL, and values with what becomes of
# them: as JSON has it.
CASES = [
    ("DoubleText", "double", None, "text", "text", [(0.1, "0.1"), (-2.5, "-2.5"), (1e21, "1e+21")]),
    ("LongText", "long", None, "text", "text", [(9007199254740993, "9007199254740993"), (-1, "-1")]),
    ("FlagText", "boolean", None, "text", "text", [(True, "true"), (False, "false")]),
    ("DateText", "long", "Data:DateOnly", "text", "text", [(0, "1970-01-01"), (20501 * DAY, "2026-02-17")]),
    ("Flag", "string", None, "boolean", "boolean",
     [("true", True), ("1", True), ("false", False), ("0", False), ("TRUE", FAILS), ("yes", FAILS), ("", FAILS)]),
    ("YesNo", "string", None, {"to": "boolean", "true": ["Y"], "false": ["N"]}, "boolean",
     [("Y", True), ("N", False), ("true", FAILS), ("y", FAILS)]),
    ("LongFlag", "long", None, "boolean", "boolean", [(1, True), (0, False), (2, FAILS)]),
    ("TextInteger", "string", None, "integer", "integer",
     [("42", 42), (" -7 ", -7), ("+3", 3), ("1e3", 1000), ("2147483647", 2147483647), ("2147483648", FAILS),
      ("-2147483648", -2147483648), ("-2147483649", FAILS), ("1.5", FAILS), ("1,000", FAILS), ("x", FAILS),
      ("", FAILS)]),
    ("DoubleInteger", "double", None, {"to": "integer", "rounding": "half_even"}, "integer",
     [(1.5, 2), (2.5, 2), (-2.5, -2), (3e9, FAILS), (float("nan"), FAILS)]),
    ("UpInteger", "double", None, {"to": "integer", "rounding": "half_up"}, "integer", [(2.5, 3), (-2.5, -3)]),
    ("TextBigint", "string", None, "bigint", "bigint",
     [("9223372036854775807", 9223372036854775807), ("9223372036854775808", FAILS),
      ("-9223372036854775808", -9223372036854775808)]),
    ("DoubleBigint", "double", None, "bigint", "bigint",
     [(4503599627370496.0, 4503599627370496), (12.5, FAILS), (1e19, FAILS)]),
    ("LongDouble", "long", None, "double", "double precision",
     [(5, 5.0), (9007199254740992, 9007199254740992.0), (9007199254740993, FAILS)]),
    ("TextDouble", "string", None, "double", "double precision", [("1e-3", 0.001), (" 2 ", 2.0), ("abc", FAILS)]),
    ("DoubleDecimal", "double", None, "decimal(6,2)", "numeric",
     [(0.1, "0.10"), (1.005, "1.00"), (1.015, "1.02"), (9999.99, "9999.99"), (10000.0, FAILS),
      (float("inf"), FAILS)]),
    ("TextDecimal", "string", None, "decimal(6,2)", "numeric",
     [("1.2", "1.20"), ("-0.5", "-0.50"), ("1.005", FAILS), ("12345", FAILS)]),
    ("UpDecimal", "string", None, {"to": "decimal(6,2)", "rounding": "half_up"}, "numeric",
     [("1.005", "1.01"), ("-1.005", "-1.01")]),
    ("Wide", "string", None, "decimal(38,10)", "numeric",
     [("1234567890123456789012345678.0123456789", "1234567890123456789012345678.0123456789"),
      ("12345678901234567890123456789", FAILS)]),
    ("IsoDate", "string", None, "date", "date",
     [("2026-02-17", "2026-02-17"), ("2026-02-30", FAILS), ("17.02.2026", FAILS)]),
    ("GermanDate", "string", None, {"to": "date", "format": "%d.%m.%Y"}, "date",
     [("17.02.2026", "2026-02-17"), ("31.02.2026", FAILS), ("2026-02-17", FAILS)]),
    ("ZonedDate", "long", "Data:DateTime", {"to": "date", "time_zone": "+01:00"}, "date", [(LATE, "2026-02-18")]),
    ("Moment", "string", None, "timestamp", "timestamp with time zone",
     [("2026-02-17T04:03:15Z", "2026-02-17T04:03:15Z"), ("2026-02-17T04:03:15.123456+02:00",
      "2026-02-17T02:03:15.123456Z"), ("2026-02-17T25:00:00Z", FAILS), ("2026-02-17T04:03:15.1234567Z", FAILS)]),
    ("LocalMoment", "string", None,
     {"to": "timestamp", "format": "%d/%m/%Y %I:%M %p", "time_zone": "-05:00"}, "timestamp with time zone",
     [("17/02/2026 11:03 PM", "2026-02-18T04:03:00Z"), ("17/02/2026 13:03 PM", FAILS)]),
    ("DateMoment", "long", "Data:DateOnly", {"to": "timestamp", "time_zone": "+01:00"}, "timestamp with time zone",
     [(20501 * DAY, "2026-02-16T23:00:00Z")]),
    # In a stage of its own, with "on_error": "null".
    ("OrNull", "string", None, "integer", "integer", [("7", 7), ("x", None)]),
]
# The types of a field, one schema after the other, and a value of each.
MOVING = [("double", 1.5, "1.50"), ("string", "2.25", "2.25"), ("long", 3, "3.00")]
LATER = ("Later", "string", "integer")
BAD = "canary"


class Events:
    """The published events, and by event ID their outcome: a record's values, or a column that cannot be cast."""

    def __init__(self):
        self.schemas = [self.schema(version) for version in range(3)]
        self.events, self.places = [], {}
        self.lines, self.letters, self.records = {}, {}, {}
        for number, (name, _, _, _, _, values) in enumerate(CASES):
            for index, (value, expected) in enumerate(values):
                record = "%03d%03d" % (number, index)
                # Values that fail must not appear in messages about them.
                self.add("CREATE", record, {name: value}, {name: expected})
                self.add("UPDATE", record + "u", {name: value}, {name: expected})
                self.add("UPDATE", record, {name: None}, {name: None})
        for turn in (0, 1, 0, 2, 1):
            _, value, expected = MOVING[turn]
            later = {LATER[0]: "5"} if turn else {}
            self.add(
                "UPDATE", "moving", {"Moving": value, **later}, {"Moving": expected, **({"Later": 5} if turn else {})},
                turn)
        self.add("UPDATE", "moving", {"Moving": BAD}, {"Moving": FAILS}, 1)
        self.add("UPDATE", "moving", {"Later": BAD}, {"Later": FAILS}, 2)

    @staticmethod
    def schema(version):
        def field(name, avro, doc):
            return {"name": name, "type": ["null", avro], "default": None, **({"doc": doc} if doc else {})}

        fields = [other_schemas.header(other_schemas.TYPES)]
        fields += [field(name, avro, doc) for name, avro, doc, *_ in CASES]
        fields += [field("Moving", MOVING[version][0], None)] + [field(LATER[0], LATER[1], None)] * (version > 0)
        document = {"type": "record", "name": ENTITY + "ChangeEvent", "fields": fields}
        return types.SimpleNamespace(
            document=document, id="cast%d" % version, text=json.dumps(document),
            parsed=fastavro.parse_schema(json.loads(json.dumps(document))))

    def add(self, kind, record, values, expected, version=0):
        number, schema = len(self.events), self.schemas[version]
        names = [field["name"] for field in schema.document["fields"]]
        def bits(chosen):
            return [bitmap({names.index(name) for name in chosen})] if kind == "UPDATE" and chosen else []

        head = {
            "entityName": ENTITY, "recordIds": [record.rjust(18, "0")], "changeType": kind, "changeOrigin": "",
            "transactionKey": "t%d" % number, "sequenceNumber": 1, "commitTimestamp": 1771300995000 + number * 1000,
            "commitNumber": number, "commitUser": "005", "diffFields": [], "changedFields": bits(values),
            "nulledFields": bits({name for name, value in values.items() if value is None}),
        }
        out = io.BytesIO()
        datum = {field["name"]: None for field in schema.document["fields"][1:]}
        fastavro.schemaless_writer(out, schema.parsed, {"ChangeEventHeader": head, **datum, **values})
        event, replay = "event-%d" % number, (number + 1).to_bytes(8, "big")
        self.places[replay] = number
        self.events.append({"id": event, "schema": schema.id, "payload": out.getvalue(), "replay": replay})
        failed = [name for name, value in expected.items() if value is FAILS]
        if failed:
            self.letters[event] = failed[0]
            return
        self.lines[event] = (kind, expected)
        state = self.records.setdefault(head["recordIds"][0], {})
        if kind == "CREATE":
            state.clear()
        state.update(expected)


def same(found, expected):
    """Whether a value of a line or row is the listed one."""
    if isinstance(expected, str) and expected.endswith("Z") and isinstance(found, str):
        return datetime.datetime.fromisoformat(found.replace("Z", "+00:00")) == datetime.datetime.fromisoformat(
            expected.replace("Z", "+00:00"))
    return found == expected and type(found) is type(expected)


def compare_files(events, directory):
    names = {name for name, *_ in CASES} | {"Moving", LATER[0]}
    found = {line["_event_id"]: line for line in lines_of(directory)}
    require(set(found), set(events.lines), "events in files")
    for event, (kind, expected) in events.lines.items():
        line = found[event]
        # A value that was made null is there in a create, too.
        if kind == "UPDATE":
            require(sorted(line["_changed_fields"]), sorted(expected), event + " changed")
            require(
                sorted(line["_nulled_fields"]), sorted(name for name in expected if expected[name] is None),
                event + " nulled")
        values = {name: line[name] for name in names if name in line}
        require(set(values), set(expected), event)
        for name, value in expected.items():
            if not same(values[name], value):
                sys.exit("%s: %s is %r and not %r" % (event, name, values[name], value))


def compare_tables(events, url, schema):
    def rows(table, key):
        found = postgres.query(url, "SELECT to_jsonb(t) FROM %s.%s AS t" % (schema, table))
        found = [json.loads(row[0], parse_float=decimal.Decimal) for row in found]
        return {row[key]: row for row in found}

    kinds = {name.lower(): kind for name, _, _, _, kind, _ in CASES}
    kinds.update({"moving": "numeric", "later": "integer"})

    def check(table, key, wanted):
        found = rows(table, key)
        require(set(found), set(wanted), table)
        for row, values in wanted.items():
            for name, kind in kinds.items():
                value = {each.lower(): value for each, value in values.items()}.get(name)
                if kind.startswith(("numeric", "double")) and value is not None:
                    # A number, with the scale that it was given.
                    value, other = decimal.Decimal(str(value)), decimal.Decimal(found[row][name])
                    require(other, value, "%s %s %s" % (table, row, name))
                elif not same(found[row][name], value):
                    sys.exit("%s %s: %s is %r and not %r" % (table, row, name, found[row][name], value))

    check("shape_history", "_event_id", {event: values for event, (_, values) in events.lines.items()})
    check("shape", "id", events.records)
    for table in ("shape", "shape_history"):
        types_found = postgres.query(
            url, "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid ="
            " '%s.%s'::regclass AND attnum > 0 AND NOT attisdropped" % (schema, table))
        types_found = {name: kind for name, kind in types_found if name in kinds}
        require(types_found, kinds, "types of " + table)


def compare_letters(events, listed):
    found = {letter["event_id"]: letter for letter in listed["letters"]}
    require(set(found), set(events.letters), "dead letters")
    for event, name in events.letters.items():
        reason = found[event]["reason"]
        if "column '%s'" % name not in reason or found[event]["kind"] != "unprocessable" or BAD in reason:
            sys.exit("%s: the letter says %s" % (event, found[event]))


def main():
    arguments = harness.arguments()
    work = arguments.work
    events = Events()
    service = other_service.Service(
        {TOPIC: Topic(types.SimpleNamespace(
            schema=events.schemas[-1], events=events.events, places=events.places))}, {schema.id: schema for schema in events.schemas}, 1, True)
    with other_service.serving(
        service, other_service.handlers(service)
    ) as variables, postgres.Cluster() as cluster:
        url = cluster.make_database("warehouse")
        environment = {**os.environ, **variables, "DATABASE_URL": url}
        columns = {name: cast for name, _, _, cast, _, _ in CASES}
        lenient = {"OrNull": columns.pop("OrNull")}
        columns.update({"Moving": "decimal(18,2)", LATER[0]: LATER[2]})
        document = harness.pipeline("cast", [TOPIC])
        document["stages"] += [
            {"type": "cast", "columns": columns}, {"type": "cast", "columns": lenient, "on_error": "null"}]
        document["commit"] = {"max_events": 30}
        document["dead_letter"] = {"max": 100000}
        document["sinks"].append({"type": "postgres", "url": "${DATABASE_URL}", "schema": "cast_types"})
        path = work + "/cast.json"
        harness.write_json(path, document)
        exporter = harness.Exporter(arguments.programs + "/pubsub-etl", path, environment)
        exporter.call("run")
        compare_files(events, work + "/out/cast")
        compare_tables(events, url, "cast_types")
        compare_letters(events, json.loads(exporter.call("dead-letters", "list", "--json").stdout))
    print(json.dumps({
        "casts": len(CASES), "values": sum(len(values) for *_, values in CASES), "lines": len(events.lines),
        "records": len(events.records), "letters": len(events.letters), "schemas": len(events.schemas)}))


if __name__ == "__main__":
    main()
