"""Random expressions over random rows, with their values in two other implementations of CEL.

Prints a line of JSON per expression: the expression, the row, and what the implementation finds:
{"type": …, "value": …} as `pubsub-etl eval` prints it, or "error". Without type checking, so that
what is compared is the evaluation.

    cel_peers.py cel-expr-python|cel-python COUNT SEED

For cel-python the expressions leave out what it does otherwise than the specification; the page
Expressions lists that.
"""

import base64
import datetime
import json
import math
import random
import sys

import celpy

try:
    from cel_expr_python import cel as cpp
except ModuleNotFoundError:  # It is not built for Python 3.10.
    cpp = None

INTS = [0, 1, -1, 2, 3, 7, 10, 100, 1000, 2**31, 2**53, 2**53 + 1, 2**63 - 1, -(2**63) + 1]
DOUBLES = [0.0, -0.0, 0.5, 1.0, -1.5, 2.0, 3.25, 1000.0, 1e9, 9007199254740992.0, 1e19, 1e300]
STRINGS = ["", "a", "ab", "abc", "b", "Closed Won", "ÿ", "日本語", "😀a", "A", "10", "-5", "1.5",
           "true", "x y"]
TIMES = ["2026-02-17T04:03:15Z", "1969-12-31T23:59:59.999Z", "2024-02-29T12:00:00.25+02:00",
         "2000-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"]
DURATIONS = ["0s", "1s", "-1.5s", "90m", "1h2m3s", "100ms", "86400s", "-24h"]
ZONES = ["UTC", "+02:00", "-09:30", "Europe/Berlin", "America/New_York", "Asia/Kathmandu",
         "Australia/Sydney"]
PATTERNS = ["a", "^a", "b$", "[a-c]+", "^$", "\\\\d+", "(?i)closed", "a|b", "^.$", "a{2}"]


class Generator:
    """Expressions that are mostly well typed."""

    def __init__(self, random_source, restricted):
        self.random = random_source
        # Without what cel-python does otherwise.
        self.restricted = restricted
        self.variables = []
        self.division = [] if restricted else ["/"]

    def one_of(self, *choices):
        return self.random.choice(choices)

    def row(self):
        pick = self.random.choice
        return {
            "i": pick(INTS), "j": self.random.randint(-20, 20), "d": pick(DOUBLES),
            "e": round(self.random.uniform(-50, 50), 2), "s": pick(STRINGS), "t": pick(STRINGS),
            "b": pick([True, False]), "n": None,
            "l": [self.random.randint(-3, 3) for _ in range(self.random.randint(0, 4))],
            "m": {key: self.random.randint(0, 5)
                  for key in self.random.sample(["a", "b", "c", "x y"], 2)},
        }

    def make(self, kind, depth):
        if depth > 1 and self.random.random() < 0.1:
            return f"({self.make('bool', depth - 1)} ? {self.make(kind, depth - 1)}" \
                   f" : {self.make(kind, depth - 1)})"
        return getattr(self, kind)(depth - 1)

    def bool(self, depth):
        if depth <= 0:
            return self.one_of("true", "false", "b", "has(m.a)", "n == null", "s == t")
        make = lambda kind: self.make(kind, depth)
        number = lambda: make(self.one_of("int", "uint", "double"))
        operator = self.one_of("==", "!=", "<", "<=", ">", ">=")
        kind = self.one_of("int", "uint", "double")
        mixed = [] if self.restricted else [
            lambda: f"({number()} {operator} {number()})",
            lambda: f"({number()} in {make('list')})",
            lambda: f"(n {operator} {number()})",
            lambda: f"(dyn({number()}) == dyn({make('string')}))",
        ]
        return self.one_of(
            *mixed,
            lambda: f"({make('bool')} && {make('bool')})",
            lambda: f"({make('bool')} || {make('bool')})",
            lambda: f"!({make('bool')})",
            lambda: f"({make(kind)} {operator} {make(kind)})",
            lambda: f"({make('string')} {operator} {make('string')})",
            lambda: f"({make('bytes')} {operator} {make('bytes')})",
            lambda: f"({make('timestamp')} {operator} {make('timestamp')})",
            lambda: f"({make('duration')} {operator} {make('duration')})",
            lambda: f"({make('list')} {self.one_of('==', '!=')} {make('list')})",
            lambda: f"({make('int')} in {make('list')})",
            lambda: f"({make('string')} in m)",
            lambda: f"{self.string(0) if self.restricted else make('string')}"
                    f".{self.one_of('contains', 'startsWith', 'endsWith')}({make('string')})",
            lambda: f"{self.string(0) if self.restricted else make('string')}"
                    f".matches('{self.random.choice(PATTERNS)}')",
            lambda: self.macro(self.one_of("all", "exists", "exists_one"), depth),
        )()

    def macro(self, name, depth):
        variable = f"v{len(self.variables)}"
        source = self.make("list", depth)
        self.variables.append(variable)
        if name == "map" and self.restricted:
            body = f"{variable} % 7"
        else:
            body = self.make("int" if name == "map" else "bool", depth)
        self.variables.pop()
        return f"{source}.{name}({variable}, {body})"

    def int(self, depth):
        if depth <= 0:
            return self.one_of("i", "j", "j", str(self.random.randint(0, 12)), "m.a",
                               *self.variables)
        make = lambda kind: self.make(kind, depth)
        part = self.one_of("getFullYear", "getMonth", "getDate", "getDayOfMonth", "getDayOfWeek",
                           "getDayOfYear", "getHours", "getMinutes", "getSeconds",
                           "getMilliseconds")
        zone = self.one_of("", f"'{self.random.choice(ZONES)}'")
        return self.one_of(
            lambda: f"({make('int')} {self.one_of('+', '-', '*', '/', '%')} {make('int')})",
            lambda: f"-({make('int')})",
            lambda: f"size({make(self.one_of('string', 'bytes', 'list'))})",
            lambda: f"[{make('int')}][0]" if self.restricted else
                    f"{make('list')}[{make('int')}]",
            lambda: f"int({make('uint')})" if self.restricted else
                    f"int({make(self.one_of('uint', 'double', 'string', 'timestamp'))})",
            lambda: f"{make('timestamp')}.{part}({zone})",
            lambda: f"m[{make('string')}]",
        )()

    def uint(self, depth):
        if depth <= 0:
            return f"{self.random.randint(0, 12)}u"
        make = lambda kind: self.make(kind, depth)
        return self.one_of(
            lambda: f"({make('uint')} {self.one_of('+', '-', '*', '/', '%')} {make('uint')})",
            lambda: f"uint({make('int' if self.restricted else self.one_of('int', 'double'))})",
        )()

    def double(self, depth):
        if depth <= 0:
            return self.one_of("d", "e", "e", repr(self.random.choice([0.5, 2.25, 1e3, 0.0])))
        make = lambda kind: self.make(kind, depth)
        return self.one_of(
            lambda: f"({make('double')} {self.one_of('+', '-', '*', *self.division)}"
                    f" {make('double')})",
            lambda: f"-({make('double')})",
            lambda: f"double({make(self.one_of('int', 'uint'))})",
        )()

    def string(self, depth):
        if depth <= 0:
            return self.one_of("s", "t", json.dumps(self.random.choice(STRINGS),
                                                    ensure_ascii=False))
        make = lambda kind: self.make(kind, depth)
        return self.one_of(
            lambda: f"({make('string')} + {make('string')})",
            lambda: f"string({make(self.one_of('int', 'uint'))})",
            lambda: make("string") if self.restricted else
                    f"string({make(self.one_of('bool', 'bytes'))})",
        )()

    def bytes(self, depth):
        if depth <= 0:
            return self.one_of("b''", "b'a'", "b'\\xff\\x00'", "b'ÿ'")
        return self.one_of(
            lambda: f"bytes({self.make('string', depth)})",
            lambda: f"({self.make('bytes', depth)} + {self.make('bytes', depth)})",
        )()

    def timestamp(self, depth):
        if depth <= 0:
            return f"timestamp('{self.random.choice(TIMES[:4] if self.restricted else TIMES)}')"
        return self.one_of(
            lambda: f"({self.make('timestamp', depth)} {self.one_of('+', '-')}"
                    f" {self.make('duration', depth)})",
            lambda: self.timestamp(0) if self.restricted else
                    f"timestamp({self.random.randint(-10**9, 10**10)})",
        )()

    def duration(self, depth):
        if depth <= 0:
            return f"duration('{self.random.choice(DURATIONS)}')"
        return self.one_of(
            lambda: f"({self.make('duration', depth)} {self.one_of('+', '-')}"
                    f" {self.make('duration', depth)})",
            lambda: self.duration(0) if self.restricted else
                    f"({self.make('timestamp', depth)} - {self.make('timestamp', depth)})",
        )()

    def list(self, depth):
        if depth <= 0:
            return self.one_of("l", "[]", "[1, 2, 3]", "[0]")
        make = lambda kind: self.make(kind, depth)
        return self.one_of(
            lambda: "[" + ", ".join(make("int") for _ in range(self.random.randint(0, 3))) + "]",
            lambda: f"({make('list')} + {make('list')})",
            lambda: self.macro("filter", depth),
            lambda: self.macro("map", depth),
        )()


def seconds(delta):
    """A duration as `3.5s`, by integers."""
    total = delta // datetime.timedelta(microseconds=1)
    whole, rest = divmod(abs(total), 10**6)
    fraction = f".{rest:06d}".rstrip("0") if rest else ""
    return f"{'-' if total < 0 else ''}{whole}{fraction}s"


def instant(time):
    time = time.astimezone(datetime.timezone.utc)
    text = f"{time.year:04d}-{time:%m-%dT%H:%M:%S}"
    return text + (f".{time.microsecond:06d}".rstrip("0") if time.microsecond else "") + "Z"


def number(value):
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def plain(value):
    """A value of cel-expr-python or cel-python as JSON has it."""
    if hasattr(value, "value") and hasattr(value, "type") and callable(value.value):
        value = value.value()
    if value is None:
        return None
    if isinstance(value, (bool, celpy.celtypes.BoolType)):
        return bool(value)
    if isinstance(value, float):
        return number(float(value))
    if isinstance(value, int):
        return int(value)
    if isinstance(value, str):
        return str(value)
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(bytes(value)).decode()
    if isinstance(value, datetime.datetime):
        return instant(value)
    if isinstance(value, datetime.timedelta):
        return seconds(value)
    if isinstance(value, (list, tuple)):
        return [plain(element) for element in value]
    if isinstance(value, dict):
        return {str(key): plain(element) for key, element in value.items()}
    # Unsigned integers of cel-expr-python.
    return int(value)


class CPlusPlus:
    name = "cel-expr-python"

    def __init__(self, columns):
        self.environment = cpp.NewEnv(variables={name: cpp.Type.DYN for name in columns})

    def outcome(self, expression, row):
        try:
            program = self.environment.compile(expression, disable_check=True)
        except RuntimeError:
            return "refused"
        result = program.eval(data=row)
        kind = str(result.type()).split("<")[0].lower()
        if kind == "error":
            return "error"
        return {"type": kind, "value": plain(result)}


class PurePython:
    name = "cel-python"
    kinds = {
        "BoolType": "bool", "IntType": "int", "UintType": "uint", "DoubleType": "double",
        "StringType": "string", "BytesType": "bytes", "TimestampType": "timestamp",
        "DurationType": "duration", "ListType": "list", "MapType": "map", "NoneType": "null",
        # What its operators return is often of Python's own types.
        "bool": "bool", "float": "double", "str": "string", "bytes": "bytes", "list": "list",
        "timedelta": "duration", "datetime": "timestamp",
    }

    def __init__(self, columns):
        self.environment = celpy.Environment()

    def outcome(self, expression, row):
        try:
            program = self.environment.program(self.environment.compile(expression))
            result = program.evaluate(celpy.json_to_cel(row))
        except Exception:  # It has no class of its own for what evaluations raise.
            return "error"
        return {"type": self.kinds.get(type(result).__name__, "?"), "value": plain(result)}


def main():
    name, count, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    kind = {peer.name: peer for peer in (CPlusPlus, PurePython)}[name]
    generator = Generator(random.Random(seed), restricted=kind is PurePython)
    peer = kind(generator.row())
    for _ in range(count):
        row = generator.row()
        result = generator.one_of("bool", "bool", "bool", "int", "uint", "double", "string",
                                  "bytes", "timestamp", "duration", "list")
        expression = generator.make(result, generator.random.randint(2, 5))
        outcome = peer.outcome(expression, row)
        line = {"expression": expression, "row": row, "outcome": outcome}
        print(json.dumps(line, ensure_ascii=False))


main()
