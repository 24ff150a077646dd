"""A second encoder of Avro data, for forms that fastavro never writes: arrays and maps in several blocks, blocks
with negative counts and their size in bytes, and integers spelled longer than needed.

fastavro stays the judge: `avro_pairs.py` makes it read what comes from here.
"""

import struct

PRIMITIVES = ["null", "boolean", "int", "long", "float", "double", "bytes", "string"]


class BlockEncoder:
    def __init__(self, rng, names):
        self.rng = rng
        self.names = names  # full name -> definition, full names inside

    def encode(self, schema, datum):
        if isinstance(schema, list):
            return self.union(schema, datum)
        if isinstance(schema, str):
            schema = self.names.get(schema, {"type": schema})
        kind = schema["type"]
        if kind == "null":
            return b""
        if kind == "boolean":
            return b"\1" if datum else b"\0"
        if kind in ("int", "long"):
            return self.integer(datum)
        if kind == "float":
            return struct.pack("<f", datum)
        if kind == "double":
            return struct.pack("<d", datum)
        if kind == "bytes":
            return self.integer(len(datum)) + datum
        if kind == "string":
            return self.text(datum)
        if kind == "fixed":
            return datum
        if kind == "enum":
            return self.integer(schema["symbols"].index(datum))
        if kind == "record":
            return b"".join(self.encode(f["type"], datum[f["name"]]) for f in schema["fields"])
        if kind == "array":
            return self.blocks([self.encode(schema["items"], item) for item in datum])
        return self.blocks(
            [self.text(key) + self.encode(schema["values"], item) for key, item in datum.items()]
        )

    def union(self, branches, datum):
        name, value = datum if isinstance(datum, tuple) else ("null", None)
        for index, branch in enumerate(branches):
            label = branch
            if isinstance(branch, dict):
                named = branch["type"] in ("record", "enum", "fixed")
                label = branch["name"] if named else branch["type"]
            if label == name:
                return self.integer(index) + self.encode(branch, value)
        raise ValueError("no branch " + name)

    def text(self, value):
        encoded = value.encode()
        return self.integer(len(encoded)) + encoded

    def integer(self, value):
        value = (value << 1) ^ (value >> 63)
        out = bytearray()
        while value > 127:
            out.append(value & 127 | 128)
            value >>= 7
        out.append(value)
        if len(out) < 9 and self.rng.random() < 0.05:
            out[-1] |= 128
            out.append(0)
        return bytes(out)

    def blocks(self, items):
        out = b""
        while items:
            count = self.rng.randint(1, len(items))
            block = b"".join(items[:count])
            items = items[count:]
            if self.rng.random() < 0.6:
                out += self.integer(-count) + self.integer(len(block)) + block
            else:
                out += self.integer(count) + block
        return out + self.integer(0)
