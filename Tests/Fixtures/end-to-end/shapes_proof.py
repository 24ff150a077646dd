"""Exports fields of every union shape, with and without the stage flatten, to files and tables.

    shapes_proof.py --programs DIR --work DIR [--seed N] [--events N]

A service on grpcio publishes change events that fastavro has encoded: unions of a scalar and a
record in every order, of several records and scalars, arrays and maps of unions, recursive records,
named references, NaN and infinities at every depth. Lines and rows are expected here from the data
that fastavro was given; nothing is shared with the exporter. Prints one JSON line of counts; exits 1
at the first difference.
"""

import io
import json
import math
import os
import random
import sys
import types

import fastavro
import zstandard

import harness
import other_schemas
import other_service
import postgres
import postgres_model

TOPIC, ENTITY = "/data/ShapeChangeEvent", "Shape"


def record(name, *fields):
    return {"type": "record", "name": name, "fields": [{"name": n, "type": t} for n, t in fields]}


def parts(name):
    return record(name, ("Text", ["null", "string"]), ("Number", ["null", "double"]))


# Name, type, and how a line has it: plain, parts (a compound), or json.
NODE = record("Node", ("Value", ["null", "double"]), ("Next", ["null", "Node"]))
OUTER = record("Outer", ("Inner", ["null", "string", parts("Part11")]), ("Scores", ["null", {"type": "array", "items": "double"}]))
FIELDS = [
    ("StringOrRecord", ["string", parts("Part1")], "parts"),
    ("NullStringRecord", ["null", "string", parts("Part2")], "parts"),
    ("NullRecord", ["null", parts("Part3")], "parts"),
    ("ByName", ["null", "Part3"], "parts"),
    ("StringOrNamed", ["null", "Part2", "string"], "parts"),
    ("RecordNull", [parts("Part4"), "null"], "parts"),
    ("DoubleOrRecord", [parts("Part5"), "null", "double"], "parts"),
    ("EnumOrRecord", ["null", {"type": "enum", "name": "Color", "symbols": ["RED", "BLUE"]}, parts("Part6")], "parts"),
    ("Outer", ["null", OUTER], "parts"),
    ("Several", ["null", "string", "double", parts("Part7")], "json"),
    ("TwoRecords", ["null", parts("Part8"), parts("Part9")], "json"),
    ("ArrayOrRecord", ["null", {"type": "array", "items": "string"}, parts("Part10")], "json"),
    ("ListOfUnions", ["null", {"type": "array", "items": ["null", "double", parts("Part12")]}], "json"),
    ("MapOfUnions", ["null", {"type": "map", "values": ["null", "double", "string"]}], "json"),
    ("Matrix", {"type": "array", "items": {"type": "array", "items": "double"}}, "json"),
    ("Tree", ["null", NODE], "json"),
    ("Plain", ["null", "double"], "plain"),
]


class Data:
    """Random data of a type: what fastavro is given, and what JSON is to have."""

    def __init__(self, rng):
        self.rng = rng
        self.names = {}
        for _, avro, _ in FIELDS:
            self.learn(avro)

    def learn(self, avro):
        if isinstance(avro, list):
            for branch in avro:
                self.learn(branch)
        elif isinstance(avro, dict):
            if "name" in avro:
                self.names[avro["name"]] = avro
            self.learn(avro.get("items") or avro.get("values"))
            for field in avro.get("fields", []):
                self.learn(field["type"])

    def make(self, avro, depth=0):
        rng = self.rng
        avro = self.names.get(avro, avro) if isinstance(avro, str) else avro
        if isinstance(avro, list):
            branch = rng.choice(avro if depth < 4 or "null" not in avro else ["null"])
            if branch == "null":
                return None, None
            datum, text = self.make(branch, depth + 1)
            name = branch if isinstance(branch, str) else branch.get("name", branch["type"])
            return (name, datum), text
        if avro == "string":
            value = rng.choice(["", "x", "Zo\u00eb \U0001f98b", 'a "q"\\\n', "]},{["])
            return value, value
        if avro == "double":
            value = rng.choice([0.5, -2.0, 1e21, math.nan, math.inf, -math.inf])
            return value, value
        if avro["type"] == "enum":
            value = rng.choice(avro["symbols"])
            return value, value
        if avro["type"] == "array":
            made = [self.make(avro["items"], depth + 1) for _ in range(rng.choice([0, 1, 3]))]
            return [m[0] for m in made], [m[1] for m in made]
        if avro["type"] == "map":
            keys = rng.sample(["a", "EUR", 'q"', "x.y"], rng.choice([0, 1, 3]))
            made = {key: self.make(avro["values"], depth + 1) for key in keys}
            return {k: m[0] for k, m in made.items()}, {k: m[1] for k, m in made.items()}
        made = {f["name"]: self.make(f["type"], depth + 1) for f in avro["fields"]}
        return {k: m[0] for k, m in made.items()}, {k: m[1] for k, m in made.items()}


class Events:
    """Events of the topic, and the lines they are to give without flatten."""

    def __init__(self, rng, count):
        header = other_schemas.header(other_schemas.TYPES)
        fields = [header] + [{"name": n, "type": t} for n, t, _ in FIELDS]
        document = {"type": "record", "name": ENTITY + "ChangeEvent", "fields": fields}
        self.schema = types.SimpleNamespace(
            document=document, id="shapes", text=json.dumps(document),
            parsed=fastavro.parse_schema(json.loads(json.dumps(document))))
        self.data, self.rng = Data(rng), rng
        self.events, self.lines, self.places = [], [], {}
        for number in range(count):
            self.add(number)

    def add(self, number):
        rng = self.rng
        kind = rng.choice(["CREATE", "UPDATE", "UPDATE", "UPDATE"])
        datum, body = {}, {}
        top = {"changedFields": set(), "nulledFields": set()}
        nested = {"changedFields": {}, "nulledFields": {}}
        for index, (name, avro, form) in enumerate(FIELDS, 1):
            datum[name], value = self.data.make(avro)
            touched = kind == "UPDATE" and rng.random() < 0.5
            if kind == "UPDATE" and not touched and isinstance(avro, list) and "null" in avro:
                datum[name] = value = None
            if form != "parts" or not isinstance(value, dict):
                whole = not (form == "parts" and touched and value is None and rng.random() < 0.5)
                if touched and whole:
                    top["changedFields"].add(index)
                    top["nulledFields"].update([index] if value is None else [])
                if value is not None or touched and whole:
                    body[name] = value
                if touched and not whole:  # all parts of a record that was not sent are null
                    children = self.children(avro)
                    chosen = [i for i in range(len(children)) if rng.random() < 0.7] or [0]
                    nested["changedFields"][index] = nested["nulledFields"][index] = set(chosen)
                    body[name] = {children[i]: None for i in chosen}
                continue
            # A compound: parts that are not touched are null in the payload, and absent.
            children = list(value)
            chosen = [i for i in range(len(children)) if rng.random() < 0.6] if touched else []
            for i, child in enumerate(children):
                if i in chosen:
                    nested["changedFields"].setdefault(index, set()).add(i)
                    if value[child] is None:
                        nested["nulledFields"].setdefault(index, set()).add(i)
            body[name] = {
                c: self.present(v, i in chosen)
                for i, (c, v) in enumerate(value.items()) if v is not None or i in chosen
            }
        lists = {}
        for key in top:
            lists[key] = [bitmap(top[key])] if top[key] else []
            lists[key] += ["%d-%s" % (p, bitmap(c)) for p, c in sorted(nested[key].items())]
        names = {
            key: [n for i, (n, _, _) in enumerate(FIELDS, 1) if i in top[key]]
            + [n for i, (n, _, _) in enumerate(FIELDS, 1) if i in nested[key]]
            for key in top
        }
        head = {
            "entityName": ENTITY, "recordIds": ["%018d" % rng.randrange(20)], "changeType": kind,
            "changeOrigin": "", "transactionKey": "t%d" % number, "sequenceNumber": 1,
            "commitTimestamp": 1771300995000 + number * 1000, "commitNumber": number,
            "commitUser": "005", "diffFields": [], **lists,
        }
        out = io.BytesIO()
        fastavro.schemaless_writer(out, self.schema.parsed, {"ChangeEventHeader": head, **datum})
        event_id, replay = "event-%d" % number, (number + 1).to_bytes(8, "big")
        self.places[replay] = number
        self.events.append(
            {"id": event_id, "schema": self.schema.id, "payload": out.getvalue(), "replay": replay})
        self.lines.append(
            {"event": event_id, "record": head["recordIds"][0], "type": kind, "names": names, "body": body})

    @staticmethod
    def present(value, touched):
        """A nested record: complete if it changed; otherwise missing parts are absent."""
        if not isinstance(value, dict) or touched:
            return value
        return {name: part for name, part in value.items() if part is not None}

    @staticmethod
    def children(avro):
        data = Data(random.Random(0))
        for branch in avro:
            found = data.names.get(branch) if isinstance(branch, str) else branch
            if found and found.get("type") == "record":
                return [field["name"] for field in found["fields"]]
        return []


class Topic:
    """The interface that `other_service.Service` requires."""

    def __init__(self, events):
        self.name, self.schemas = TOPIC, [[events.schema]]
        self.events, self.places = events.events, events.places
        self.reached = 0

    def open_group(self):
        return 0


def bitmap(indexes):
    digits = "%X" % sum(1 << i for i in indexes)
    return "0x" + digits.rjust((len(digits) + 1) // 2 * 2, "0")


def without_nonfinite(value, path, lost):
    """The value as a line has it; `lost` takes the places of NaN and infinities."""
    if isinstance(value, dict):
        return {k: without_nonfinite(v, path + "." + k, lost) for k, v in value.items()}
    if isinstance(value, list):
        return [without_nonfinite(v, "%s[%d]" % (path, i), lost) for i, v in enumerate(value)]
    if isinstance(value, float) and not math.isfinite(value):
        lost[path] = word(value)
        return None
    return value


def word(value):
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def flattened(body):
    """The columns after flatten of a line's fields."""
    made = {}
    for name, avro, form in FIELDS:
        if name not in body:
            continue
        value = body[name]
        if form == "parts" and isinstance(value, dict):
            for child, part in value.items():
                if isinstance(part, dict):  # Outer.Inner
                    made.update({"%s_%s_%s" % (name, child, c): p for c, p in part.items()})
                else:
                    made["%s_%s" % (name, child)] = part
        else:
            made[name] = value
    return made


def expected_line(line, flat):
    body = flattened(line["body"]) if flat else line["body"]
    lost = {}
    made = {name: without_nonfinite(value, name, lost) for name, value in body.items()}
    if lost:
        made["_nonfinite"] = lost
    return made


def lines_of(directory):
    found = []
    for path in sorted(harness.data_files(directory)):
        with open(path, "rb") as file:
            text = zstandard.ZstdDecompressor().stream_reader(file).read().decode()
        found += [json.loads(line) for line in text.splitlines()]
    return found


def require(got, wanted, what):
    if got != wanted:
        sys.exit("%s: %.900s, should be %.900s" % (what, got, wanted))


def compare_files(events, directory, flat):
    found = {line["_event_id"]: line for line in lines_of(directory)}
    require(len(found), len(events.lines), "lines")
    for line in events.lines:
        got = found[line["event"]]
        body = {n: v for n, v in got.items() if n == "_nonfinite" or n[0] != "_"}
        wanted = expected_line(line, flat)
        if flat:
            # A null compound is null in all its columns: those are compared without the nulls.
            body = {n: v for n, v in body.items() if v is not None or n in wanted}
            wanted = {n: v for n, v in wanted.items() if v is not None or n in body}
        require(json.dumps(body, sort_keys=True), json.dumps(wanted, sort_keys=True), "%s %s" % (line["event"], flat))
        if not flat:
            for key, column in (("changedFields", "_changed_fields"), ("nulledFields", "_nulled_fields")):
                require(sorted(got[column]), sorted(line["names"][key]), "%s %s" % (line["event"], column))


def compare_tables(events, url, schema):
    def stored(value):
        if isinstance(value, dict):
            return {k: stored(v) for k, v in value.items()}
        if isinstance(value, list):
            return [stored(v) for v in value]
        if isinstance(value, float) and not math.isfinite(value):
            return word(value)
        return value

    names = [name for name, _, form in FIELDS if form != "plain"]
    columns = ", ".join('"%s"::text' % name.lower() for name in names)

    def rows(table, key):
        found = postgres.query(url, "SELECT %s, %s FROM %s.%s" % (key, columns, schema, table))
        return {row[0]: dict(zip(names, row[1:])) for row in found}

    def check(found, wanted, what):
        require(set(found), set(wanted), what)
        for key, body in wanted.items():
            for name in names:
                value = stored(body.get(name))
                text = "" if value is None else json_text(value)
                require(found[key][name], text, "%s %s %s" % (what, key, name))

    check(rows("shape_history", "_event_id"), {l["event"]: l["body"] for l in events.lines}, "history")
    current = {}
    forms = {name: form for name, _, form in FIELDS}
    for line in events.lines:
        state = {} if line["type"] == "CREATE" else current.setdefault(line["record"], {})
        for name, value in line["body"].items():
            old = state.get(name)
            if forms[name] == "parts" and isinstance(value, dict) and isinstance(old, dict):
                value = {**old, **value}
            state[name] = value
        current[line["record"]] = state
    check(rows("shape", "id"), current, "current")
    return len(current)


def json_text(value):
    if isinstance(value, list):
        return "[%s]" % ", ".join(json_text(item) for item in value)
    if isinstance(value, dict):
        members = sorted(value.items(), key=lambda m: (len(m[0].encode()), m[0].encode()))
        return "{%s}" % ", ".join("%s: %s" % (json.dumps(k), json_text(v)) for k, v in members)
    return postgres_model.jsonb(value)


def main():
    arguments = harness.arguments(seed=1, events=400)
    events = Events(random.Random(arguments.seed), arguments.events)
    service = other_service.Service(
        {TOPIC: Topic(events)}, {events.schema.id: events.schema}, arguments.seed, True)
    with other_service.serving(service, other_service.handlers(service)) as variables:
        print(json.dumps(prove(arguments, events, {**os.environ, **variables})))


def prove(arguments, events, environment):
    work = arguments.work

    def run(command, name, stages, url=None):
        document = harness.pipeline(name, [TOPIC])
        document["stages"] = stages
        document["commit"] = {"max_events": 70}
        if url:
            document["sinks"] = [{"type": "postgres", "url": url, "schema": name}]
        path = "%s/%s.json" % (work, name)
        harness.write_json(path, document)
        return harness.Exporter(arguments.programs + "/pubsub-etl", path, environment).call(command).stdout

    result = {"events": len(events.lines), "fields": len(FIELDS)}
    for name, stages in (("nested", []), ("flat", [{"type": "flatten"}])):
        run("run", name, stages)
        compare_files(events, work + "/out/" + name, bool(stages))
        result[name] = "equal"
    with postgres.Cluster() as cluster:
        url = cluster.make_database("warehouse")
        run("run", "tables", [], url)
        result["records"] = compare_tables(events, url, "tables")
        require(" 0 changed" in run("refold", "tables", [], url), True, "refold changes nothing")
    return result


if __name__ == "__main__":
    main()
