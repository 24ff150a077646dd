"""Random Avro schemas and data, encoded by fastavro, with the expected JSON.

usage: avro_pairs.py SEED SCHEMAS DATA_PER_SCHEMA [--encode]

Writes frames as it goes: one byte that says what it is, four bytes of length (big-endian), content:
  S  a JSON object {"schema": text, "canonical": text, "crc": hex, "md5": hex, "sha256": hex}
  P  a payload of the schema before it
  J  the JSON text that the payload before it must come out as

One payload in four that has arrays or maps is encoded again by avro_blocks.py.

With --encode, the JSON is what an encoder is to be given, and the payload what it must write: values of
unions name their branch, NaN and infinity are texts, no payload has blocks, and every decimal is as short
as it can be.

The rendering below is written from the project's table of values, not from its decoder.
Floats are small multiples of 1/16, so that their text does not depend on their width.
"""

import base64
import datetime
import hashlib
import io
import json
import random
import struct
import sys
import uuid

import fastavro
from avro_blocks import BlockEncoder
from fastavro.schema import fingerprint, to_parsing_canonical_form

EPOCH = datetime.datetime(1970, 1, 1)
PRIMITIVES = ["null", "boolean", "int", "long", "float", "double", "bytes", "string"]


class Maker:
    def __init__(self, rng):
        self.rng = rng
        self.names = {}  # full name -> definition
        self.open = []  # names of the records that are being defined
        self.counter = 0
        self.budget = 30

    def name(self, namespace):
        self.counter += 1
        short = self.rng.choice(["Rec", "Ty", "_x", "N"]) + str(self.counter)
        kind = self.rng.random()
        if kind < 0.2:
            space = self.rng.choice(["a.b", "com.sforce.eventbus", "z"])
            return {"name": space + "." + short}, space, space + "." + short
        if kind < 0.4:
            space = self.rng.choice(["a.b", "q"])
            return {"name": short, "namespace": space}, space, space + "." + short
        full = namespace + "." + short if namespace else short
        return {"name": short}, namespace, full

    def type(self, depth, namespace, in_union=False):
        self.budget -= 1
        rng = self.rng
        roll = rng.random()
        if depth > 4 or self.budget < 0:
            return rng.choice(PRIMITIVES)
        if roll < 0.35:
            return rng.choice(PRIMITIVES)
        if roll < 0.45:
            return self.logical(namespace)
        if roll < 0.52 and self.names:
            full = rng.choice(list(self.names))
            if namespace and "." not in full:
                return rng.choice(PRIMITIVES)  # cannot be named from inside a namespace
            reference = self.reference(full, namespace)
            # A record inside itself must be able to end.
            if full in self.open and not in_union:
                return rng.choice(
                    [
                        ["null", reference],
                        [reference, "null"],
                        ["string", reference, "null", "bytes"],
                        {"type": "array", "items": reference},
                        {"type": "map", "values": reference},
                        {"type": "array", "items": ["null", reference]},
                    ]
                )
            return reference
        if roll < 0.64:
            return self.record(depth, namespace)
        if roll < 0.70:
            attributes, _, full = self.name(namespace)
            symbols = ["S%d" % i for i in range(rng.randint(1, 70))]
            schema = {"type": "enum", "symbols": symbols, **attributes}
            if rng.random() < 0.3:
                schema["default"] = symbols[0]
            if rng.random() < 0.3:
                schema["aliases"] = ["Old" + str(self.counter), "x.y.Old"]
            self.names[full] = schema
            return schema
        if roll < 0.75:
            attributes, _, full = self.name(namespace)
            schema = {"type": "fixed", "size": rng.choice([0, 1, 5, 16, 33]), **attributes}
            self.names[full] = schema
            return schema
        if roll < 0.82:
            return {"type": "array", "items": self.type(depth + 1, namespace)}
        if roll < 0.88:
            return {"type": "map", "values": self.type(depth + 1, namespace)}
        if in_union:
            return rng.choice(PRIMITIVES)
        return self.union(depth, namespace)

    def reference(self, full, namespace):
        space, _, short = full.rpartition(".")
        return short if space == namespace and self.rng.random() < 0.7 and space else full

    def logical(self, namespace):
        rng = self.rng
        kind = rng.randrange(9)
        if kind == 0:
            return {"type": "int", "logicalType": "date"}
        if kind == 1:
            return {"type": "int", "logicalType": "time-millis"}
        if kind == 2:
            return {"type": "long", "logicalType": "time-micros"}
        if kind == 3:
            name = rng.choice(["timestamp", "local-timestamp"]) + "-"
            return {"type": "long", "logicalType": name + rng.choice(["millis", "micros", "nanos"])}
        if kind == 4:
            precision = rng.randint(1, 30)
            return {
                "type": "bytes",
                "logicalType": "decimal",
                "precision": precision,
                "scale": rng.randint(0, precision),
            }
        if kind == 5:
            return {"type": "string", "logicalType": "uuid"}
        if kind == 6:
            attributes, _, full = self.name(namespace)
            which = rng.choice(["duration", "uuid", "decimal"])
            schema = {"type": "fixed", "logicalType": which, **attributes}
            schema["size"] = {"duration": 12, "uuid": 16, "decimal": 9}[which]
            if which == "decimal":
                schema.update(precision=20, scale=3)
            self.names[full] = schema
            return schema
        if kind == 7:
            return {"type": "bytes", "logicalType": "big-decimal"}
        # Broken or unknown: to be ignored.
        schema = rng.choice(
            [
                {"type": "string", "logicalType": "no-such"},
                {"type": "bytes", "logicalType": "decimal", "precision": 2, "scale": 3},
                {"type": "bytes", "logicalType": "decimal", "precision": 0},
                {"type": "bytes", "logicalType": "decimal"},
                {"type": "bytes", "logicalType": "uuid"},
                {"type": "string", "logicalType": "big-decimal"},
                {"type": "int", "logicalType": "timestamp-millis"},
                {"type": "int", "logicalType": "time-micros"},
                {"type": "long", "logicalType": "date"},
                {"type": "double", "logicalType": "timestamp-nanos"},
                {"type": "fixed", "size": 15, "logicalType": "uuid"},
                {"type": "fixed", "size": 13, "logicalType": "duration"},
                {"type": "fixed", "size": 9, "logicalType": "decimal", "precision": 22},
                {"type": "array", "items": "int", "logicalType": "date"},
                {"type": "map", "values": "int", "logicalType": 7},
            ]
        )
        if schema["type"] == "fixed":
            attributes, _, full = self.name(namespace)
            schema.update(attributes)
            self.names[full] = schema
        return schema

    def union(self, depth, namespace):
        rng = self.rng
        shape = rng.random()
        if shape < 0.4:
            branches = ["null", self.type(depth + 1, namespace, in_union=True)]
        elif shape < 0.5:
            branches = [self.type(depth + 1, namespace, in_union=True), "null"]
        elif shape < 0.7:
            branches = ["null", "string", self.record(depth, namespace)]
        else:
            branches = [
                self.type(depth + 1, namespace, in_union=True) for _ in range(rng.randint(1, 5))
            ]
        kept, labels = [], set()
        for branch in branches:
            label = self.label(branch, namespace)
            if label not in labels and not isinstance(branch, list):
                labels.add(label)
                kept.append(branch)
        return kept or ["null"]

    def label(self, schema, namespace):
        if isinstance(schema, list):
            return "union"
        if isinstance(schema, dict):
            if schema["type"] in ("record", "enum", "fixed"):
                return next(k for k, v in self.names.items() if v is schema)
            return schema["type"]
        if schema in PRIMITIVES or schema in self.names:
            return schema
        return namespace + "." + schema

    def record(self, depth, namespace):
        attributes, space, full = self.name(namespace)
        schema = {"type": "record", **attributes, "doc": 'quoted " and \u00fcber', "fields": []}
        self.names[full] = schema
        self.open.append(full)
        for index in range(self.rng.choice([0, 1, 2, 3, 4, 8, 12])):
            field = {"name": "f%d" % index, "type": self.type(depth + 1, space)}
            self.default(field)
            if self.rng.random() < 0.1:
                field["aliases"] = ["old%d" % index, "older%d" % index]
            if self.rng.random() < 0.3:
                field["doc"] = "Data:Text:00N000000000001"
            schema["fields"].append(field)
        self.open.pop()
        return schema


    def default(self, field):
        kind = field["type"]
        if isinstance(kind, list):
            if kind[0] == "null":
                field["default"] = None
            return
        if self.rng.random() < 0.6:
            return
        if isinstance(kind, dict):
            kind = kind["type"]
        values = {
            "null": None,
            "boolean": True,
            "int": -7,
            "long": 1 << 40,
            "float": 0.5,
            "double": 2.5,
            "bytes": "\u00ff\u0000",
            "string": "\u20ac",
            "array": [],
            "map": {},
        }
        if kind in values:
            field["default"] = values[kind]


class Ambiguous(Exception):
    pass


class Data:
    """A random datum: what fastavro is given, and the JSON that must come out, or go in."""

    def __init__(self, rng, names, encodes=False):
        self.rng = rng
        self.names = names
        self.encodes = encodes

    def make(self, schema, depth):
        rng = self.rng
        if isinstance(schema, list):
            choices = list(schema)
            ends = [s for s in schema if s == "null"] or [
                s for s in schema if isinstance(s, str) and s in PRIMITIVES
            ]
            if (depth > 5 and ends) or ("null" in schema and rng.random() < 0.5):
                choices = ends
            if self.encodes:
                choices = self.unambiguous(schema, choices)
            branch = rng.choice(choices)
            datum, expected = self.make(branch, depth)
            if branch == "null":
                return datum, expected
            name = self.branch_name(branch)
            if self.encodes and name != "map":
                expected = {name: expected}
            return (name, datum), expected
        if isinstance(schema, str):
            schema = self.names.get(schema, {"type": schema})
        kind = schema["type"]
        return getattr(self, kind)(schema, depth)

    def unambiguous(self, schema, choices):
        """In a union with a map, an object is the map and cannot name a branch."""
        labels = [self.branch_name(branch) for branch in schema]
        if "map" not in labels:
            return choices
        has_record = any(self.names.get(label, {}).get("type") == "record" for label in labels)
        left = [b for b in schema if b == "null" or self.branch_name(b) == "map" and not has_record]
        if not left:
            raise Ambiguous
        return left

    def branch_name(self, branch):
        if isinstance(branch, str):
            return branch
        return branch["name"] if branch["type"] in ("record", "enum", "fixed") else branch["type"]

    def null(self, schema, depth):
        return None, None

    def boolean(self, schema, depth):
        value = self.rng.random() < 0.5
        return value, value

    def number(self, bits):
        width = self.rng.choice([1, 7, 8, 13, 14, bits - 1])
        value = self.rng.getrandbits(width)
        return self.rng.choice([value, -value, -value - 1])

    def int(self, schema, depth):
        logical = logical_type(schema)
        if logical == "time-millis":
            value = self.rng.randrange(86_400_000)
            return value, clock(value, 3)
        value = self.number(32)
        if logical == "date":
            value = self.rng.randint(-719162, 2932896)
            return value, (EPOCH.date() + datetime.timedelta(days=value)).isoformat()
        return value, value

    def long(self, schema, depth):
        logical = logical_type(schema)
        if logical == "time-micros":
            value = self.rng.randrange(86_400_000_000)
            return value, clock(value, 6)
        if logical:
            digits = {"millis": 3, "micros": 6, "nanos": 9}[logical.rpartition("-")[2]]
            span = 9_000_000_000_000_000_000 if digits == 9 else 62_000_000_000 * 10**digits
            value = self.rng.randint(-span, span)
            seconds, fraction = divmod(value, 10**digits)
            text = (EPOCH + datetime.timedelta(seconds=seconds)).isoformat()
            zone = "" if logical.startswith("local") else "Z"
            return value, "%s.%0*d%s" % (text, digits, fraction, zone)
        value = self.number(64)
        return value, value

    def float(self, schema, depth):
        value = self.rng.randint(-(2**12), 2**12) / 16
        return value, value

    def double(self, schema, depth):
        if self.rng.random() < 0.1:
            value, text = self.rng.choice(
                [(float("nan"), "NaN"), (float("-inf"), "-Infinity"), (-0.0, -0.0)])
            return value, text if self.encodes or value == 0 else None
        if self.rng.random() < 0.5:
            value = round(self.rng.uniform(-1e6, 1e6), 2)
            return value, value
        while True:
            value = struct.unpack("<d", self.rng.randbytes(8))[0]
            if value == value and abs(value) != float("inf"):
                return value, value

    def string(self, schema, depth):
        if logical_type(schema) == "uuid":
            value = str(uuid.UUID(bytes=self.rng.randbytes(16)))
            return value, value
        alphabet = self.rng.choice(["abc XYZ", 'q"\\\n\t\x01', "\u00e9\u20ac\U0001f600\u0000z"])
        value = "".join(self.rng.choices(alphabet, k=self.rng.choice([0, 1, 5, 8, 18, 90])))
        return value, value

    def number_of(self, precision):
        limit = 10**precision
        return self.rng.randint(-limit + 1, limit - 1)

    def bytes(self, schema, depth):
        logical = logical_type(schema)
        if logical == "decimal":
            number = self.number_of(schema["precision"])
            return octets(number), plain(number, schema["scale"])
        if logical == "big-decimal":
            number = self.number_of(self.rng.choice([0, 1, 5, 20, 200]))
            scale = self.rng.choice([0, 0, 2, 7, 60, -1, -12])
            if self.encodes:
                scale = abs(scale)
            digits = octets(number)
            integer = shortest if self.encodes else BlockEncoder(self.rng, {}).integer
            value = integer(len(digits)) + digits + integer(scale)
            return value, plain(number, scale) if scale >= 0 else str(number * 10**-scale)
        value = self.rng.randbytes(self.rng.choice([0, 1, 2, 3, 70]))
        return value, base64.b64encode(value).decode()

    def fixed(self, schema, depth):
        logical = logical_type(schema)
        value = self.rng.randbytes(schema["size"])
        if logical == "duration":
            months, days, milliseconds = struct.unpack("<III", value)
            return value, {"months": months, "days": days, "milliseconds": milliseconds}
        if logical == "uuid":
            return value, str(uuid.UUID(bytes=value))
        if logical == "decimal":
            number = self.number_of(schema["precision"])
            value = number.to_bytes(schema["size"], "big", signed=True)
            return value, plain(number, schema.get("scale", 0))
        return value, base64.b64encode(value).decode()

    def enum(self, schema, depth):
        value = self.rng.choice(schema["symbols"])
        return value, value

    def length(self, depth):
        return 0 if depth > 5 else self.rng.choice([0, 0, 0, 1, 1, 2, 2, 3, 3, 9])

    def array(self, schema, depth):
        pairs = [self.make(schema["items"], depth + 1) for _ in range(self.length(depth))]
        return [p[0] for p in pairs], [p[1] for p in pairs]

    def map(self, schema, depth):
        pairs = {
            "k%d\u00e9" % i: self.make(schema["values"], depth + 1)
            for i in range(self.length(depth))
        }
        return {k: p[0] for k, p in pairs.items()}, {k: p[1] for k, p in pairs.items()}

    def record(self, schema, depth):
        pairs = {f["name"]: self.make(f["type"], depth + 1) for f in schema["fields"]}
        return {k: p[0] for k, p in pairs.items()}, {k: p[1] for k, p in pairs.items()}


def logical_type(schema):
    """The logical type of a definition, None when a rule is broken (Avro 1.12, "Logical Types")."""
    name, kind = schema.get("logicalType"), schema["type"]
    if name == "decimal" and kind in ("bytes", "fixed"):
        precision, scale = schema.get("precision", 0), schema.get("scale", 0)
        most = precision if kind == "bytes" else len(str(2 ** (8 * schema["size"] - 1) - 1)) - 1
        return name if 0 < precision <= most and 0 <= scale <= precision else None
    if kind == "fixed":
        return name if (name, schema["size"]) in (("uuid", 16), ("duration", 12)) else None
    bases = {
        "big-decimal": "bytes",
        "uuid": "string",
        "date": "int",
        "time-millis": "int",
        "time-micros": "long",
    }
    for prefix in ("timestamp-", "local-timestamp-"):
        for unit in ("millis", "micros", "nanos"):
            bases[prefix + unit] = "long"
    return name if bases.get(name) == kind else None


def shortest(number):
    """An int of at least 0 as fastavro writes it."""
    buffer = io.BytesIO()
    fastavro.schemaless_writer(buffer, "long", number)
    return buffer.getvalue()


def octets(number):
    length = (number if number >= 0 else number + 1).bit_length() // 8 + 1
    return number.to_bytes(length, "big", signed=True)


def clock(value, digits):
    seconds, fraction = divmod(value, 10**digits)
    return "%02d:%02d:%02d.%0*d" % (seconds // 3600, seconds // 60 % 60, seconds % 60, digits, fraction)


def plain(number, scale):
    text = str(abs(number)).rjust(scale + 1, "0")
    if scale:
        text = text[:-scale] + "." + text[-scale:]
    return ("-" if number < 0 else "") + text


def strip_logical(schema):
    """Gives fastavro encoded forms, because its own conversions are not under test."""
    if isinstance(schema, list):
        return [strip_logical(s) for s in schema]
    if isinstance(schema, dict):
        return {
            k: strip_logical(v) if k in ("type", "items", "values", "fields") else v
            for k, v in schema.items()
            if k != "logicalType"
        }
    return schema


def resolve(schema, namespace, names):
    """The schema with full names, as fastavro's parser would see it, for `Data`."""
    if isinstance(schema, list):
        return [resolve(s, namespace, names) for s in schema]
    if isinstance(schema, str):
        if schema in PRIMITIVES or "." in schema or not namespace:
            return schema
        full = namespace + "." + schema
        return full if full in names else schema
    result = dict(schema)
    if schema["type"] in ("record", "enum", "fixed"):
        full = schema["name"]
        if "." not in full:
            space = schema.get("namespace", namespace)
            full = space + "." + full if space else full
        result["name"] = full
        names[full] = result
        if schema["type"] == "record":
            space = full.rpartition(".")[0]
            result["fields"] = [
                {**f, "type": resolve(f["type"], space, names)} for f in schema["fields"]
            ]
    elif schema["type"] == "array":
        result["items"] = resolve(schema["items"], namespace, names)
    elif schema["type"] == "map":
        result["values"] = resolve(schema["values"], namespace, names)
    return result


def main():
    seed, schemas, per_schema = (int(a) for a in sys.argv[1:4])
    encodes = sys.argv[4:] == ["--encode"]
    rng = random.Random(seed)
    out = sys.stdout.buffer
    made = 0
    while made < schemas:
        maker = Maker(rng)
        schema = maker.record(0, "")
        names = {}
        resolved = resolve(schema, "", names)
        try:
            parsed = fastavro.parse_schema(strip_logical(schema))
        except fastavro.schema.UnknownType:
            continue  # the definition was in a branch that `union` did not keep
        canonical = to_parsing_canonical_form(strip_logical(schema))
        try:
            pairs = [Data(rng, names, encodes).make(resolved, 0) for _ in range(per_schema)]
        except (RecursionError, Ambiguous):
            continue  # a record inside itself that has no way to end; a union that JSON cannot tell
        made += 1
        has_blocks = '"items"' in canonical or '"values"' in canonical
        description = {
            "schema": json.dumps(schema),
            "canonical": canonical,
            "crc": fingerprint(canonical, "CRC-64-AVRO"),
            "md5": hashlib.md5(canonical.encode()).hexdigest(),
            "sha256": fingerprint(canonical, "SHA-256"),
        }
        frame(out, b"S", json.dumps(description).encode())
        for datum, expected in pairs:
            buffer = io.BytesIO()
            fastavro.schemaless_writer(buffer, parsed, datum)
            payload = buffer.getvalue()
            if has_blocks and not encodes and rng.random() < 0.25:
                other = BlockEncoder(rng, names).encode(resolved, datum)
                # By their text: a NaN is not equal to itself.
                assert repr(read(other, parsed)) == repr(read(payload, parsed))
                payload = other
            text = json.dumps(expected, ensure_ascii=False, separators=(",", ":"))
            frame(out, b"P", payload)
            frame(out, b"J", text.encode())
    out.flush()


def frame(out, kind, content):
    out.write(kind + struct.pack(">I", len(content)) + content)


def read(payload, parsed):
    buffer = io.BytesIO(payload)
    value = fastavro.schemaless_reader(buffer, parsed, None)
    assert not buffer.read()
    return value


if __name__ == "__main__":
    main()
