"""The expected content of the Postgres sink's tables, from the truth: types, texts, the fold.

Written from the sink's documentation, shares nothing with it. Values are expected in the form in
which `expression` makes the server print them, which is exact: numbers of binary floating point,
dates and times as the hexadecimal digits of PostgreSQL's binary format, arrays as JSON.
"""

import collections
import decimal
import hashlib
import json
import re
import struct

# 2000-01-01 in days and microseconds since 1970-01-01.
DAYS = 10957
MICROSECONDS = DAYS * 86_400_000_000
NULL = "\\N"
ESCAPES = str.maketrans(
    {"\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}
)

HISTORY = {
    "_epoch": "integer",
    "_ordinal": "bigint",
    "_topic": "text",
    "_replay_id": "text",
    "_event_id": "text",
    "_record_id": "text",
    "_schema_id": "text",
    "_kind": "text",
    "_entity": "text",
    "_change_type": "text",
    "_commit_timestamp": "timestamp with time zone",
    "_commit_number": "bigint",
    "_commit_user": "text",
    "_transaction_key": "text",
    "_sequence_number": "integer",
    "_change_origin": "text",
    "_changed_fields": "text[]",
    "_nulled_fields": "text[]",
    "_diff_fields": "text[]",
}
CURRENT = {
    "_epoch": "integer",
    "_ordinal": "bigint",
    "id": "text",
    "_event_id": "text",
    "_change_type": "text",
    "_commit_timestamp": "timestamp with time zone",
    "_commit_user": "text",
    "_deleted_at": "timestamp with time zone",
    "_stale": "boolean",
    "_partial": "boolean",
    "_stale_fields": "text[]",
}
# Fields whose columns are numeric; in tables of earlier versions fewer are.
decimal_kinds = ("Currency", "Percent", "Double")
# Days since 1970: 24 November 4714 BC and the end of the year 5874897.
LEAST_DATE, GREATEST_DATE = -2440588, 2145031948
# The first version whose numeric has infinities.
INFINITE_NUMERIC = 140000
CHANGES = ("CREATE", "UPDATE", "DELETE", "UNDELETE")


# Of the server at hand.
server_version = INFINITE_NUMERIC


class Rejected(Exception):
    """A value that the column's type cannot hold."""


def pg_type(avro, doc):
    if avro == "record":
        return "jsonb"
    if avro == "long":
        return {
            "DateOnly": "date",
            "Birthday": "date",
            "DateTime": "timestamp with time zone",
            "TimeOnly": "time without time zone",
        }.get(doc, "bigint")
    if avro == "double":
        return "numeric" if doc in decimal_kinds else "double precision"
    if avro == "string":
        return "text[]" if doc == "MultiEnum" else "text"
    return {"float": "real", "int": "integer", "boolean": "boolean"}[avro]


def sql_name(name, style):
    if style == "as_is":
        return name
    if style == "snake":
        name = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name)
        name = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", name)
    return name.lower()


def quote(name):
    return '"' + name.replace('"', '""') + '"'


def expression(name, kind):
    """SQL that prints a column as `encode` does."""
    column = quote(name)
    send = {
        "double precision": "float8send",
        "real": "float4send",
        "date": "date_send",
        "timestamp with time zone": "timestamptz_send",
        "time without time zone": "time_send",
    }.get(kind)
    if kind in ("double precision", "real"):
        return "CASE WHEN %s = 'NaN' THEN 'NaN' ELSE encode(%s(%s), 'hex') END" % (column, send, column)
    if send:
        return "encode(%s(%s), 'hex')" % (send, column)
    if kind == "numeric":
        return (
            "CASE WHEN {0}::text LIKE '%.%' THEN rtrim(rtrim({0}::text, '0'), '.') ELSE {0}::text END"
        ).format(column)
    if kind == "text[]":
        return "array_to_json(%s)" % column
    return column


def jsonb(value):
    """JSON as the server prints it: keys by length, then bytes; numbers in full."""
    if isinstance(value, dict):
        members = sorted(value.items(), key=lambda member: (len(member[0].encode()), member[0].encode()))
        return "{%s}" % ", ".join("%s: %s" % (jsonb(name), jsonb(part)) for name, part in members)
    if isinstance(value, float):
        text = format(decimal.Decimal(repr(value)), "f")
        return text[1:] if value == 0 and text.startswith("-") else text
    return json.dumps(value, ensure_ascii=False)


def clean(value):
    if isinstance(value, dict):
        return {name: clean(part) for name, part in value.items()}
    return value.replace("\0", "\ufffd") if isinstance(value, str) else value


def encode(value, kind):
    """A field of `COPY … TO STDOUT` of `expression`."""
    if value is None:
        return NULL
    if kind == "jsonb":
        return jsonb(value).translate(ESCAPES)
    if kind == "text":
        return value.translate(ESCAPES)
    if kind == "text[]":
        if isinstance(value, str):
            value = value.split(";") if value else []
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).translate(ESCAPES)
    if kind == "boolean":
        return "t" if value else "f"
    if kind in ("double precision", "real"):
        number = float(value)
        if number != number:
            return "NaN"
        return struct.pack(">d" if kind == "double precision" else ">f", number).hex()
    if kind == "numeric":
        number = decimal.Decimal(repr(float(value)))
        if number.is_nan():
            return "NaN"
        if number.is_infinite():
            if server_version < INFINITE_NUMERIC:
                raise Rejected()
            return str(number)
        text = format(number, "f")
        text = text.rstrip("0").rstrip(".") if "." in text else text
        return "0" if text == "-0" else text
    if kind == "date":
        if not LEAST_DATE <= value // 86_400_000 <= GREATEST_DATE:
            raise Rejected()
        return struct.pack(">i", value // 86_400_000 - DAYS).hex()
    if kind == "timestamp with time zone":
        return struct.pack(">q", value * 1000 - MICROSECONDS).hex()
    if kind == "time without time zone":
        return struct.pack(">q", value * 1000).hex()
    return str(value)


def patched(old, diff):
    """The text that a unified diff without context makes of `old`, None if its SHA-256 is another."""
    lines = diff.split("\n")
    wanted = lines[1].removeprefix("+++ ")
    for separator in ("\r\n", "\n", "\r"):
        rest = old.split(separator)
        made, at = [], 0
        for line in lines[2:]:
            if line.startswith("@@"):
                start, count = re.match(r"@@ -(\d+)(?:,(\d+))?", line).groups(default="1")
                first = int(start) if count == "0" else int(start) - 1
                made += rest[at:first]
                at = first
            elif line.startswith("-"):
                at += 1
            elif line.startswith("+"):
                made.append(line[1:])
        text = separator.join(made + rest[at:])
        if hashlib.sha256(text.encode()).hexdigest() == wanted:
            return text
    return None


# Fields that every record of Salesforce has. A creation without one is no complete image.
NEVER_EMPTY = ["CreatedDate", "CreatedById", "LastModifiedDate", "LastModifiedById", "OwnerId"]

# What is kept of an event: its place in the truth of its topic, and what rows repeat.
Source = collections.namedtuple(
    "Source", "topic place event_id replay_id change commit_timestamp commit_user"
)


class Record:
    __slots__ = ("cells", "source", "deleted", "stale", "partial", "stale_fields")

    def __init__(self):
        self.cells = {}
        self.deleted = None
        self.stale = self.partial = False
        self.stale_fields = set()


class Fold:
    """The current rows of all tables, after the events given to `apply` in stream order.

    - required: by entity, the columns of NEVER_EMPTY that its table has.
    - rebuilt: rows of records with dead letters were made from the history, which knows nothing of these letters but
      where they are."""

    def __init__(self, delete, required, rebuilt=False):
        self.delete, self.required, self.rebuilt = delete, required, rebuilt
        self.patched = 0
        self.records = {}
        self.tombstones = {}
        self.resync = {}

    def apply(self, event, place, cells, diffs, is_rejected):
        """- place: of the event in its topic.
        - cells: SQL name to value or None, of the columns that are present.
        - diffs: those whose value is a diff."""
        header = event["header"]
        if header is None:
            return
        is_unknown = is_rejected and self.rebuilt
        source = Source(
            event["topic"], place, event["event_id"], event["replay_id"],
            None if is_unknown else header["changeType"], header["commitTimestamp"],
            None if is_unknown else header["commitUser"],
        )
        kind = "dead_letter" if is_rejected else event["kind"]
        if kind == "change" and header["changeType"] not in CHANGES:
            kind = "gap"
        change = "GAP_UPDATE" if is_rejected else header["changeType"]
        for record_id in header["recordIds"] or [None]:
            if kind != "change":
                self.resync[event["entity"], kind, event["event_id"], record_id] = source
            if kind not in ("overflow", "wildcard") and record_id is not None:
                self.change((event["entity"], record_id), change, source, cells, diffs)

    def change(self, key, change, source, cells, diffs):
        record = self.records.get(key)
        if self.delete == "remove":
            if change in ("DELETE", "GAP_DELETE"):
                self.records.pop(key, None)
                self.tombstones[key] = source
                return
            if key in self.tombstones:
                if change not in ("CREATE", "UNDELETE", "GAP_CREATE", "GAP_UNDELETE"):
                    return
                del self.tombstones[key]
        if record is None:
            record = self.records[key] = Record()
            record.partial = True
        record.source = source
        if change in ("CREATE", "UNDELETE"):
            record.cells = dict(cells)
            record.deleted, record.stale = None, False
            record.partial = any(cells.get(name) is None for name in self.required.get(key[0], ()))
            record.stale_fields = set()
        elif change == "UPDATE":
            self.update(record, cells, diffs)
        elif change in ("DELETE", "GAP_DELETE"):
            record.deleted = source.commit_timestamp
        else:
            record.stale = True
            if change in ("GAP_CREATE", "GAP_UNDELETE"):
                record.deleted = None

    def update(self, record, cells, diffs):
        for name, value in cells.items():
            if name in diffs and value is not None:
                old = record.cells.get(name)
                value = None if old is None else patched(old, value)
                if value is None:
                    record.stale_fields.add(name)
                    continue
                self.patched += 1
            if isinstance(value, dict) and isinstance(record.cells.get(name), dict):
                value = {**record.cells[name], **value}
            record.cells[name] = value
            record.stale_fields.discard(name)
