"""Compares NDJSON lines with the raw cells they were made from.

usage: check_ndjson_lines.py CELLS LINES

CELLS: one row a line, JSON: [[name, type, presence, hex, extra], ...] in the order of columns;
hex is the cell as 8 big-endian bytes, or the bytes of a range. Every value is worked out here from
these bytes with Python's own modules; nothing is shared with the encoder.
"""
import base64
import datetime
import decimal
import json
import math
import struct
import sys

decimal.getcontext().prec = 500
EPOCH = datetime.datetime(1970, 1, 1)


class Real(str):
    """The text of a number with a point or an exponent."""


def timestamp(value, digits, zone):
    seconds, fraction = divmod(value, 10**digits)
    moment = EPOCH + datetime.timedelta(seconds=seconds)
    return moment.isoformat(timespec="seconds") + ".%0*d" % (digits, fraction) + zone


def time(value, digits):
    seconds, fraction = divmod(value, 10**digits)
    return "%02d:%02d:%02d.%0*d" % (seconds // 3600, seconds // 60 % 60, seconds % 60, digits, fraction)


def expected(kind, raw, extra):
    number = int.from_bytes(raw, "big", signed=True) if len(raw) == 8 else None
    if kind == "boolean":
        return number == 1
    if kind in ("int32", "int64"):
        return number
    if kind in ("float", "double"):
        value = struct.unpack(">f", raw[4:])[0] if kind == "float" else struct.unpack(">d", raw)[0]
        return value
    if kind in ("string", "uuid"):
        return raw.decode()
    if kind == "enumeration":
        return extra[number]
    if kind == "bytes":
        return base64.b64encode(raw).decode()
    if kind == "decimal":
        unscaled = int.from_bytes(raw, "big", signed=True)
        value = decimal.Decimal(unscaled).scaleb(-extra)
        return "{:f}".format(value.quantize(decimal.Decimal(1).scaleb(-extra)))
    if kind == "date.days":
        return (EPOCH + datetime.timedelta(days=number)).date().isoformat()
    if kind == "date.milliseconds":
        return (EPOCH + datetime.timedelta(days=number // 86400000)).date().isoformat()
    if kind.startswith("time."):
        return time(number, int(kind[5:]))
    if kind.startswith("timestamp."):
        return timestamp(number, int(kind[10:]), "Z")
    if kind.startswith("local."):
        return timestamp(number, int(kind[6:]), "")
    if kind == "duration":
        return list(zip(("months", "days", "milliseconds"), struct.unpack("<III", raw)))
    if kind == "json":
        return json.loads(raw.decode(), object_pairs_hook=list, parse_float=Real)
    raise SystemExit("unknown type " + kind)


def same(kind, value, found):
    if kind in ("float", "double"):
        if not math.isfinite(value):
            return found is None
        if not isinstance(found, Real):
            return False
        back = float(found)
        if kind == "float":
            back = struct.unpack(">f", struct.pack(">f", back))[0]
        return back == value and math.copysign(1, back) == math.copysign(1, value)
    return type(value) is type(found) and value == found


cells = open(sys.argv[1], encoding="utf-8").read().split("\n")[:-1]
lines = open(sys.argv[2], encoding="utf-8", newline="").read().split("\n")[:-1]
assert len(cells) == len(lines), "%d rows, %d lines" % (len(cells), len(lines))
count = 0
for number, (row, line) in enumerate(zip(cells, lines)):
    found = json.loads(line, object_pairs_hook=list, parse_float=Real)
    wanted = [cell for cell in json.loads(row) if cell[2] != 0]
    lost = []
    for name, kind, presence, raw, extra in wanted:
        if kind in ("float", "double") and presence == 2:
            value = expected(kind, bytes.fromhex(raw), extra)
            if not math.isfinite(value):
                word = "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
                lost.append((name, word))
    names = [cell[0] for cell in wanted] + (["_nonfinite"] if lost else [])
    assert [name for name, _ in found] == names, "row %d: keys" % number
    for (name, kind, presence, raw, extra), (_, value) in zip(wanted, found):
        if presence == 1:
            assert value is None, "row %d, %s: null" % (number, name)
        else:
            want = expected(kind, bytes.fromhex(raw), extra)
            assert same(kind, want, value), "row %d, %s: %r, not %r" % (number, name, value, want)
        count += 1
    if lost:
        assert found[-1][1] == lost, "row %d: _nonfinite" % number
print(count)
