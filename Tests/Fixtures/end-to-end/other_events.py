"""Events of other_service.py: the published payloads and their entries in the truth file."""

import hashlib
import io
import time
import uuid

import fastavro

TEXTS = ["", "x", "Zo\u00eb \U0001f98b", "a \"quoted\"\\\n\ttext", "\u2028\u0001\u007f", "0" * 3000]
TEXTS += ["null"]

# Of a text nobody has had.
DIFF = "--- \n+++ %s\n@@ -1 +1 @@\n-old\n+new"


class Values:
    def __init__(self, rng):
        self.rng = rng

    def scalar(self, avro, doc):
        rng = self.rng
        if avro == "string":
            return rng.choice(TEXTS[:5] * 4 + TEXTS)
        if avro == "double":
            drawn = [float(rng.getrandbits(53)), rng.uniform(-1e6, 1e6)]
            return rng.choice([0.0, -0.0, 0.1, 1e21, 5e-324, -1.5] + drawn)
        if avro == "boolean":
            return rng.random() < 0.5
        if avro == "int":
            return rng.choice([0, -(2**31), 2**31 - 1, rng.randint(-999, 999)])
        if doc in ("DateOnly", "Birthday"):
            return rng.randint(-25567, 40000) * 86_400_000
        if doc == "TimeOnly":
            return rng.randrange(86_400_000)
        if doc == "DateTime":
            return rng.choice([0, -1, 253402300799999, -62135596800000, rng.randint(0, 2**41)])
        return rng.getrandbits(62)


def bitmap(rng, indexes):
    number = sum(1 << i for i in indexes)
    digits = ("%X" if rng.random() < 0.8 else "%x") % number
    digits = digits.rjust((len(digits) + 1) // 2 * 2, "0")
    return "0x" + ("00" * rng.choice([0, 0, 0, 1, 9])) + digits


class Publisher:
    """Events of a schema with their entries in the truth file."""

    def __init__(self, rng):
        self.rng, self.values = rng, Values(rng)
        self.transaction, self.sequence, self.commits = str(uuid.UUID(int=1)), 0, 1709303151782928388
        # Half a second further with each event, and never as late as the run.
        self.clock = int(time.time() * 1000) - 60 * 3_600_000

    def platform_event(self, schema):
        fields = {}
        for index, each in enumerate(schema.document["fields"]):
            scalar, _, doc = schema.shape(index)
            if index < 2 or self.rng.random() < 0.7:
                fields[each["name"]] = self.values.scalar(scalar, doc)
        return None, fields, fields, "event"

    def change(self, schema):
        rng = self.rng
        entity = schema.document["name"].replace("__ChangeEvent", "__c").replace("ChangeEvent", "")
        symbols = schema.document["fields"][0]["type"]["fields"][2]["type"]["symbols"]
        kind = rng.choice(["UPDATE"] * 20 + ["CREATE"] * 5 + ["DELETE", "UNDELETE"] * 2 + symbols)
        if rng.random() < 0.3:
            self.transaction, self.sequence = str(uuid.UUID(int=rng.getrandbits(128))), 0
            self.clock += rng.choice([0, 0, 1000, 5000])
            self.commits += 1
        self.sequence += rng.choice([1, 1, 2])
        ids = ["%018d" % rng.randrange(300) for _ in range(rng.choice([1] * 20 + [2, 3, 20]))]
        ids = list(dict.fromkeys(ids))
        if kind == "GAP_OVERFLOW":
            ids = ["000000000000000AAA"]
        values, names, bits = {}, {}, {}
        for name in ("changedFields", "nulledFields", "diffFields"):
            names[name], bits[name] = ([], []), (set(), {})
        for index in range(1, len(schema.document["fields"])):
            self.one(schema, index, kind, values, names, bits)
        head = {
            "entityName": entity,
            "recordIds": ids,
            "changeType": kind,
            "changeOrigin": rng.choice(["", "com/salesforce/api/soap/62.0;client=SfdcInternalAPI/"]),
            "transactionKey": self.transaction,
            "sequenceNumber": self.sequence,
            "commitTimestamp": self.clock // 1000 * 1000,
            "commitNumber": self.commits,
            "commitUser": "005xx0000012345AAA",
        }
        said = dict(head)
        for name in ("nulledFields", "diffFields", "changedFields"):
            top, nested = bits[name]
            head[name] = [bitmap(rng, top)] if top else []
            head[name] += ["%d-%s" % (p, bitmap(rng, c)) for p, c in sorted(nested.items())]
            said[name] = names[name][0] + names[name][1]
        row = "change"
        if kind.startswith("GAP_"):
            row = "overflow" if kind == "GAP_OVERFLOW" else "gap"
        return said, {"ChangeEventHeader": head, **values}, values, row

    def note(self, names, bits, what, index, name, child=None, inner=None):
        if child is None:
            names[what][0].append(name)
            bits[what][0].add(index)
        else:
            names[what][1].append(name + "." + inner)
            bits[what][1].setdefault(index, set()).add(child)

    def one(self, schema, index, kind, values, names, bits):
        rng = self.rng
        name = schema.document["fields"][index]["name"]
        scalar, children, doc = schema.shape(index)
        if kind in ("CREATE", "UNDELETE"):
            changed, present = False, rng.random() < 0.5
        elif kind == "UPDATE":
            changed = rng.random() < 3 / len(schema.document["fields"]) + 0.02
            present = rng.random() < (0.7 if changed else 0.01)  # else an enriched field
        else:
            changed, present = False, kind == "DELETE" and rng.random() < 0.01
        if not changed and not present:
            return
        if children is None or (scalar and rng.random() < 0.5):
            if changed:
                self.note(names, bits, "changedFields", index, name)
            if present:
                values[name] = self.values.scalar(scalar, doc)
                if changed and doc == "StringPlusClob" and rng.random() < 0.3:
                    values[name] = DIFF % hashlib.sha256(values[name].encode()).hexdigest()
                    self.note(names, bits, "diffFields", index, name)
            elif changed:
                self.note(names, bits, "nulledFields", index, name)
            return
        body = {}
        for number, (inner, avro) in enumerate(children):
            here = rng.random() < 0.5
            if present and here:
                body[inner] = self.values.scalar(avro, "")
            if changed and (here or not present):
                self.note(names, bits, "changedFields", index, name, number, inner)
                if not present:
                    self.note(names, bits, "nulledFields", index, name, number, inner)
        if present:
            values[name] = body

    def encode(self, schema):
        said, datum, values, kind = (self.change if schema.is_change else self.platform_event)(schema)
        for each in schema.document["fields"]:
            name = each["name"]
            if isinstance(datum.get(name), dict) and name != "ChangeEventHeader":
                scalar, children, _ = schema.shape(schema.document["fields"].index(each))
                datum = {**datum, name: {c: datum[name].get(c) for c, _ in children}}
        out = io.BytesIO()
        fastavro.schemaless_writer(out, schema.parsed, datum)
        return said, values, kind, out.getvalue()
