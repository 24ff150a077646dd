"""Random change event schemas and events, encoded by fastavro, with the expected rows.

usage: change_events.py SEED SCHEMAS EVENTS_PER_SCHEMA

Prints one JSON object per schema: {"schema": text, "events": [{"payload": hex, "rows": [{...}]}]}.
A row maps column names to text: values, "null" for explicit nulls, nothing for absent cells;
"X{}" is the presence of record X, "X.Y" a field in it. Written from the rules of ChangeEvents.md
and LinesAndColumns.md#presence, not from the decoder.
"""

import io
import json
import random
import sys

import fastavro

TYPES = ["CREATE", "UPDATE", "DELETE", "UNDELETE", "GAP_CREATE", "GAP_UPDATE", "GAP_DELETE"]
TYPES += ["GAP_UNDELETE", "GAP_OVERFLOW", "SNAPSHOT"]
STRINGS = {"type": "array", "items": "string"}
HEADER = {
    "type": "record",
    "name": "ChangeEventHeader",
    "fields": [
        {"name": "entityName", "type": "string"},
        {"name": "recordIds", "type": STRINGS},
        {"name": "changeType", "type": {"type": "enum", "name": "ChangeType", "symbols": TYPES}},
        {"name": "changeOrigin", "type": "string"},
        {"name": "transactionKey", "type": "string"},
        {"name": "sequenceNumber", "type": "int"},
        {"name": "commitTimestamp", "type": "long"},
        {"name": "commitNumber", "type": "long"},
        {"name": "commitUser", "type": "string"},
        {"name": "nulledFields", "type": STRINGS},
        {"name": "diffFields", "type": STRINGS},
        {"name": "changedFields", "type": STRINGS},
    ],
}
RECORDS = {
    "Address": [("Street", "string"), ("City", "string"), ("Latitude", "double")],
    "Location": [("Latitude", "double"), ("Longitude", "double")],
    "PersonName": [("Salutation", "string"), ("FirstName", "string"), ("LastName", "string")],
    "Switchable_PersonName": [("FirstName", "string"), ("LastName", "string")],
}
SCALARS = ["string", "double", "boolean", "int", "long"]


def make_schema(rng):
    """The schema, and per field after the header its kind: a scalar type or a record's name."""
    kinds, fields, defined = [], [{"name": "ChangeEventHeader", "type": HEADER}], set()
    for index in range(1, rng.randint(2, 150)):
        kind = rng.choice(SCALARS * 3 + list(RECORDS))
        kinds.append(kind)
        branch = kind
        if kind in RECORDS and kind not in defined:
            defined.add(kind)
            children = [{"name": n, "type": ["null", t], "default": None} for n, t in RECORDS[kind]]
            branch = {"type": "record", "name": kind, "fields": children}
        union = ["null", "string", branch] if kind.startswith("Switch") else ["null", branch]
        fields.append({"name": "F%d" % index, "type": union, "default": None})
    schema = {
        "type": "record",
        "name": "Thing__ChangeEvent",
        "namespace": "com.sforce.eventbus",
        "fields": fields,
    }
    return schema, kinds


def bitmap(indexes):
    number = sum(1 << i for i in indexes)
    digits = "%X" % number
    return "0x" + digits.rjust((len(digits) + 1) // 2 * 2, "0")


def bitmaps(top, nested):
    result = [bitmap(top)] if top else []
    return result + ["%d-%s" % (p, bitmap(c)) for p, c in sorted(nested.items()) if c]


class Event:
    def __init__(self, rng, kinds):
        self.rng, self.kinds = rng, kinds
        self.type = rng.choice(TYPES + ["UPDATE"] * 12)
        self.ids = ["%018d" % rng.randrange(10**15) for _ in range(rng.choice([0, 1, 1, 1, 2, 5]))]
        self.number = rng.choice([rng.getrandbits(62), -5, 0])
        # Per list: top-level indexes, and child indexes by parent.
        self.lists = {name: (set(), {}) for name in ("changed", "nulled", "diff")}
        self.values = {}
        for index, kind in enumerate(kinds, 1):
            self.values[index] = self.field(index, kind)

    def scalar(self, kind):
        rng = self.rng
        if kind == "string":
            return rng.choice(["", "x", "Zo\u00eb", "a longer text of more than 8 bytes"])
        if kind == "double":
            return rng.randint(-9999, 9999) / 2
        if kind == "boolean":
            return rng.random() < 0.5
        return rng.randint(-(2**31), 2**31 - 1)

    def add(self, name, index, child=None):
        top, nested = self.lists[name]
        if child is None:
            top.add(index)
        else:
            nested.setdefault(index, set()).add(child)

    def field(self, index, kind):
        rng = self.rng
        full = self.type in ("CREATE", "UNDELETE")
        if not full and self.type != "UPDATE":
            return None
        change = self.type == "UPDATE" and rng.random() < 0.15
        present = rng.random() < (0.6 if full or change else 0.03)  # else: enriched
        if kind not in RECORDS:
            if change:
                self.add("changed", index)
                if not present:
                    self.add("nulled", index)
                elif kind == "string" and rng.random() < 0.2:
                    self.add("diff", index)
            return self.scalar(kind) if present else None
        children = RECORDS[kind]
        if kind.startswith("Switch") and rng.random() < 0.5:
            if change:
                self.add("changed", index)
                if not present:
                    self.add("nulled", index)
            return self.scalar("string") if present else None
        values = {n: self.scalar(t) if rng.random() < 0.5 else None for n, t in children}
        if change and rng.random() < 0.3:  # the compound as a whole
            self.add("changed", index)
            if not present:
                self.add("nulled", index)
            return values if present else None
        if change:
            for child, (name, _) in enumerate(children):
                if rng.random() < 0.5 or not present:
                    self.add("changed", index, child)
                    if not present or values[name] is None:
                        self.add("nulled", index, child)
        return values if present else None

    def datum(self):
        header = {
            "entityName": "Thing__c",
            "recordIds": self.ids,
            "changeType": self.type,
            "changeOrigin": "",
            "transactionKey": "key",
            "sequenceNumber": 3,
            "commitTimestamp": 1771300995000,
            "commitNumber": self.number,
            "commitUser": "005",
        }
        for name, (top, nested) in self.lists.items():
            header[name + "Fields"] = bitmaps(top, nested)
        return {"ChangeEventHeader": header, **{"F%d" % i: v for i, v in self.values.items()}}

    def names(self, list_name):
        top, nested = self.lists[list_name]
        first, then = [], []
        for index, kind in enumerate(self.kinds, 1):
            name, value = "F%d" % index, self.values[index]
            if kind not in RECORDS:
                first += [name] if index in top else []
                continue
            children = [name + "." + n for n, _ in RECORDS[kind]]
            if index in top:
                if kind.startswith("Switch") and not isinstance(value, dict):
                    first.append(name)
                if not isinstance(value, str):
                    then += children
            then += [c for i, c in enumerate(children) if i in nested.get(index, ())]
        return first + then

    def rows(self):
        row = {
            "_change_type": self.type,
            "_commit_number": str(self.number),
            "_changed_fields": " ".join(self.names("changed")),
            "_nulled_fields": " ".join(self.names("nulled")),
            "_diff_fields": " ".join(self.names("diff")),
        }
        listed = set(self.names("changed")) | set(self.names("nulled"))
        tops = self.lists["changed"][0] | self.lists["nulled"][0]
        for index, kind in enumerate(self.kinds, 1):
            name, value = "F%d" % index, self.values[index]
            if isinstance(value, dict):
                row[name + "{}"] = "value"
                for child, part in value.items():
                    path = name + "." + child
                    if part is not None:
                        row[path] = text(part)
                    elif path in listed:
                        row[path] = "null"
            elif value is not None:
                row[name] = text(value)
                if kind in RECORDS:
                    row[name + "{}"] = "value"
            else:
                if kind in RECORDS:
                    children = [c for c, _ in RECORDS[kind] if name + "." + c in listed]
                    row.update({name + "." + c: "null" for c in children})
                    if index in tops:
                        row[name + "{}"] = "null"
                    elif children:
                        row[name + "{}"] = "value"
                if name in listed:
                    row[name] = "null"
        kind = "change"
        if self.type.startswith("GAP_"):
            kind = "overflow" if self.type == "GAP_OVERFLOW" else "gap"
        row["_kind"] = kind
        return [{**row, "_record_id": i} for i in self.ids] or [row]


def text(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if isinstance(value, float) else str(value)


def main():
    seed, schemas, per_schema = (int(a) for a in sys.argv[1:4])
    rng = random.Random(seed)
    for _ in range(schemas):
        schema, kinds = make_schema(rng)
        parsed = fastavro.parse_schema(schema)
        events = []
        for _ in range(per_schema):
            event = Event(rng, kinds)
            buffer = io.BytesIO()
            fastavro.schemaless_writer(buffer, parsed, event.datum())
            events.append({"payload": buffer.getvalue().hex(), "rows": event.rows()})
        print(json.dumps({"schema": json.dumps(schema), "events": events}))


if __name__ == "__main__":
    main()
