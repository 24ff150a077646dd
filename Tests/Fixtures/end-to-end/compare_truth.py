"""Compares exported NDJSON files with the simulator's truth, event by event and field by field.

Shares nothing with the exporter: schemas come from the service by GetSchema over grpcio, expected
lines are built here from the values the simulator published.

    compare_truth.py --truth FILE --output DIR [--output DIR ...] [--topic NAME ...]
        [--skip LINES] [--schemas FILE] [--nested]

Reads PUBSUB_ENDPOINT and PUBSUB_CA_FILE (what `pubsub-simulator --env` writes), or the schemas from
a JSON file of texts by ID. Exits 0 and prints one JSON line of counts when every event stands exactly once, as it should, in order; else prints
the first differences and exits 1.
"""

import argparse
import datetime
import glob
import hashlib
import io
import json
import os
import sys

import grpc
import zstandard

EPOCH = datetime.datetime(1970, 1, 1)


def varint(number):
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def read_fields(data):
    """(number, value) of every length-delimited or varint field of a protobuf message."""
    at = 0

    def read_varint():
        nonlocal at
        shift = value = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        tag = read_varint()
        if tag & 7 == 0:
            yield tag >> 3, read_varint()
        else:
            size = read_varint()
            yield tag >> 3, data[at : at + size]
            at += size


def schemas(path=None):
    """From a JSON file of texts by ID, or from the service."""
    return WrittenSchemas(path) if path else Schemas()


class WrittenSchemas:
    """Writer schemas by ID, from a file."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            self.known = {name: Layout(json.loads(text)) for name, text in json.load(file).items()}

    def leaves(self, schema_id):
        return self.known[schema_id]


class Schemas:
    """Writer schemas by ID, fetched once, as the list of leaves in order."""

    def __init__(self):
        endpoint = os.environ["PUBSUB_ENDPOINT"]
        target = endpoint.split("://", 1)[1]
        if endpoint.startswith("http://"):
            channel = grpc.insecure_channel(target)
        else:
            with open(os.environ["PUBSUB_CA_FILE"], "rb") as file:
                channel = grpc.secure_channel(
                    target, grpc.ssl_channel_credentials(file.read())
                )
        self.call = channel.unary_unary(
            "/eventbus.v1.PubSub/GetSchema",
            request_serializer=lambda value: value,
            response_deserializer=lambda value: value,
        )
        self.metadata = login_metadata()
        self.known = {}

    def leaves(self, schema_id):
        if schema_id not in self.known:
            request = b"\x0a" + varint(len(schema_id)) + schema_id.encode()
            answer = dict(read_fields(self.call(request, metadata=self.metadata)))
            self.known[schema_id] = Layout(json.loads(answer[1]))
        return self.known[schema_id]


def login_metadata():
    import ssl
    import urllib.parse
    import urllib.request

    context = ssl.create_default_context(cafile=os.environ.get("PUBSUB_CA_FILE") or None)
    form = urllib.parse.urlencode(
        {
            "grant_type": "client_credentials",
            "client_id": os.environ["SF_CLIENT_ID"],
            "client_secret": os.environ["SF_CLIENT_SECRET"],
        }
    ).encode()
    url = os.environ["SF_LOGIN_URL"] + "/services/oauth2/token"
    secure = context if url.startswith("https") else None
    with urllib.request.urlopen(url, form, context=secure) as answer:
        token = json.load(answer)
    return (
        ("accesstoken", token["access_token"]),
        ("instanceurl", token["instance_url"]),
        ("tenantid", token["id"].split("/")[-2]),
    )


class Layout:
    """Fields of a schema: (name, salesforce type, avro type, children or None, has scalar)."""

    def __init__(self, schema):
        self.named = {}
        self.fields = []
        for field in schema["fields"]:
            if field["name"] != "ChangeEventHeader":
                self.fields.append(self.field(field))

    def field(self, field):
        branches = field["type"] if isinstance(field["type"], list) else [field["type"]]
        branches = [b for b in branches if b != "null"]
        parts = (field.get("doc") or "").split(":")
        doc = parts[1] if len(parts) > 1 else ""
        children = None
        scalar = None
        for branch in branches:
            if isinstance(branch, dict) and branch["type"] == "record":
                self.named[branch["name"]] = branch
            record = branch if isinstance(branch, dict) else self.named.get(branch)
            if record is not None and record["type"] == "record":
                children = [
                    (child["name"], [t for t in child["type"] if t != "null"][0])
                    for child in record["fields"]
                ]
            else:
                scalar = branch
        return field["name"], doc, scalar, children


def moment(milliseconds):
    at = EPOCH + datetime.timedelta(milliseconds=milliseconds)
    return at.isoformat(timespec="milliseconds") + "Z"


def convert(value, avro, doc):
    if avro == "double":
        return float(value)
    if avro == "long" and doc == "DateTime":
        return moment(value)
    if avro == "long" and doc in ("DateOnly", "Birthday"):
        return (EPOCH + datetime.timedelta(milliseconds=value)).date().isoformat()
    if avro == "long" and doc == "TimeOnly":
        seconds, rest = divmod(value, 1000)
        return "%02d:%02d:%02d.%03d" % (seconds // 3600, seconds // 60 % 60, seconds % 60, rest)
    return value


LISTS = {
    "changedFields": "_changed_fields",
    "nulledFields": "_nulled_fields",
    "diffFields": "_diff_fields",
}


class Expected:
    """The expected lines of a truth event."""

    def __init__(self, schemas, nested=False):
        """- nested: the pipeline has no stage `flatten`."""
        self.schemas = schemas
        self.nested = nested

    def cells(self, event):
        """Columns that are present, in order: name to (value or None, Avro type, Salesforce type),
        and the three lists of the header as names of columns."""
        header = event["header"]
        cells = {}
        touched = set()
        if header and header["changeType"] == "UPDATE":
            touched = set(header["changedFields"]) | set(header["nulledFields"])
        names = {key: [] for key in LISTS}
        nested = {key: [] for key in LISTS}
        joint = "." if self.nested else "_"
        for name, doc, scalar, children in self.schemas.leaves(event["schema_id"]).fields:
            value = event["fields"].get(name)
            listed = [key for key in LISTS if header and name in header[key]]
            if children is None:
                if value is not None or name in touched:
                    cells[name] = (value, scalar, doc)
                for key in listed:
                    names[key].append(name)
                continue
            is_record = isinstance(value, dict)
            if scalar is not None and not is_record:
                if value is not None or name in touched:
                    cells[name] = (value, scalar, doc)
                for key in listed:
                    names[key].append(name)
            for child, avro in children:
                column = name + joint + child
                path = name + "." + child
                inner = value.get(child) if is_record else None
                whole = value is None or is_record
                if inner is not None or path in touched or (name in touched and whole):
                    cells[column] = (inner, avro, "")
                if header:
                    for key in LISTS:
                        if path in header[key] or (key in listed and whole):
                            nested[key].append(column)
        lists = {key: names[key] + nested[key] for key in LISTS}
        return self.unflattened(event, cells, lists) if self.nested else (cells, lists)

    def unflattened(self, event, cells, lists):
        """The expected line with the parts of a compound in one object, which the lists name once."""
        header = event["header"]
        made = {}
        for name, cell in cells.items():
            compound, _, child = name.partition(".")
            if not child:
                made[name] = cell
            elif compound in made:
                # A union of a string and a record that is null is one null.
                if made[compound][0] is not None:
                    made[compound][0][child] = cell
            elif event["fields"].get(compound) is None and header and compound in (
                header["changedFields"] + header["nulledFields"]
            ):
                made[compound] = (None, "record", "")
            else:
                made[compound] = ({child: cell}, "record", "")
        for name, _, _, children in self.schemas.leaves(event["schema_id"]).fields:
            if children and event["fields"].get(name) == {}:
                made.setdefault(name, ({}, "record", ""))
        order = [field[0] for field in self.schemas.leaves(event["schema_id"]).fields]
        made = {name: made[name] for name in order if name in made}
        short = {
            key: list(dict.fromkeys(name.partition(".")[0] for name in names))
            for key, names in lists.items()
        }
        return made, short

    def lines(self, event):
        header = event["header"]
        cells, lists = self.cells(event)
        body = {}
        nonfinite = {}
        for name, (value, avro, doc) in cells.items():
            if isinstance(value, dict):
                body[name] = {
                    child: None if part is None else convert(part, avro, doc)
                    for child, (part, avro, doc) in value.items()
                }
            elif isinstance(value, str) and avro in ("double", "float"):
                nonfinite[name] = value
                body[name] = None
            else:
                body[name] = None if value is None else convert(value, avro, doc)
        if nonfinite:
            body["_nonfinite"] = nonfinite
        head = {
            "_topic": event["topic"],
            "_replay_id": event["replay_id"],
            "_event_id": event["event_id"],
            "_schema_id": event["schema_id"],
            "_kind": event["kind"],
            "_entity": event["entity"],
        }
        if header is None:
            return [{**head, **body}]
        out = []
        for record in header["recordIds"] or [None]:
            line = dict(head)
            line["_change_type"] = header["changeType"]
            if record is not None:
                line["_record_id"] = record
            line["_commit_timestamp"] = moment(header["commitTimestamp"])
            line["_commit_number"] = str(header["commitNumber"])
            line["_commit_user"] = header["commitUser"]
            line["_transaction_key"] = header["transactionKey"]
            line["_sequence_number"] = header["sequenceNumber"]
            line["_change_origin"] = header["changeOrigin"]
            for key, column in LISTS.items():
                line[column] = lists[key]
            out.append({**line, **body})
        return out


def digest(line):
    return hashlib.blake2b(json.dumps(line).encode(), digest_size=12).digest()


def key_of(line):
    name = "\0".join(
        (line["_topic"], line["_replay_id"], line["_event_id"], line.get("_record_id") or "")
    )
    return hashlib.blake2b(name.encode(), digest_size=12).digest()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--truth", required=True)
    parser.add_argument("--output", action="append", required=True)
    parser.add_argument("--topic", action="append")
    parser.add_argument("--skip", type=int, default=0, help="truth lines before the first export")
    parser.add_argument("--schemas", help="instead of the service's: a JSON file of texts by ID")
    parser.add_argument("--nested", action="store_true", help="exported without the stage flatten")
    arguments = parser.parse_args()
    expected = Expected(schemas(arguments.schemas), arguments.nested)
    problems = []

    def problem(text):
        problems.append(text)
        if len(problems) <= 10:
            print(text, file=sys.stderr)

    truth = {}
    events = 0
    with open(arguments.truth, encoding="utf-8") as file:
        for number, text in enumerate(file):
            event = json.loads(text)
            if number < arguments.skip or (
                arguments.topic and event["topic"] not in arguments.topic
            ):
                continue
            events += 1
            for line in expected.lines(event):
                key = key_of(line)
                if key in truth:
                    problem("the truth names a row twice: %s" % line)
                truth[key] = (digest(line), number)
    files = lines = 0
    seen = set()
    for root in arguments.output:
        names = sorted(glob.glob(root + "/**/*.ndjson.zst", recursive=True))
        last = {}
        placed = {}
        for name in names:
            files += 1
            with open(name, "rb") as raw:
                reader = zstandard.ZstdDecompressor().stream_reader(raw)
                for text in io.TextIOWrapper(reader, encoding="utf-8", newline="\n"):
                    lines += 1
                    line = json.loads(text)
                    # Events behind a dead letter, and those that came from one, tell their places.
                    own = line.pop("_epoch", None), line.pop("_ordinal", None)
                    key = key_of(line)
                    if key not in truth:
                        problem("not in the truth: %s: %s" % (name, text[:500]))
                        continue
                    if key in seen:
                        problem("twice: %s: %s" % (name, text[:300]))
                    seen.add(key)
                    want, number = truth[key]
                    if digest(line) != want:
                        explain(arguments.truth, number, expected, line, problem)
                    # Within a directory, files by name and lines by place follow the stream.
                    place = (os.path.dirname(name), line["_topic"])
                    if own[1] is not None:
                        placed.setdefault(place, []).append((own, number))
                        continue
                    if number < last.get(place, -1):
                        problem("out of order: %s: %s" % (name, text[:300]))
                    last[place] = number
        for place, found in placed.items():
            numbers = [number for _, number in sorted(found)]
            if numbers != sorted(numbers):
                problem("lines with places are out of order in %s" % place[0])
    missing = len(truth) - len(seen)
    if missing:
        problem("%d rows of the truth are missing" % missing)
        for key, (_, number) in truth.items():
            if key not in seen:
                problem("first missing: truth line %d" % (number + 1))
                break
    leftovers = [
        path
        for root in arguments.output
        for path in glob.glob(root + "/**/.*.part", recursive=True)
    ]
    print(
        json.dumps(
            {
                "events": events,
                "rows": len(truth),
                "lines": lines,
                "files": files,
                "part_files": len(leftovers),
                "problems": len(problems),
            }
        )
    )
    sys.exit(1 if problems else 0)


def explain(path, number, expected, line, problem):
    with open(path, encoding="utf-8") as file:
        for index, text in enumerate(file):
            if index == number:
                break
    for want in expected.lines(json.loads(text)):
        if key_of(want) == key_of(line):
            for name in list(want) + [n for n in line if n not in want]:
                left = json.dumps(want.get(name, "<absent>"))
                right = json.dumps(line.get(name, "<absent>"))
                if left != right:
                    problem("%s of %s: expected %s, got %s" % (name, line["_event_id"], left, right))
            if list(want) != list(line):
                problem("order of keys of %s: %s" % (line["_event_id"], list(line)))


if __name__ == "__main__":
    main()
