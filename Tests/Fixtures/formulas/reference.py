#!/usr/bin/env python3
"""Reference evaluator for Salesforce formula fields, written from public documentation.

    python3 reference.py            evaluate formulas.json, write expected.json
    python3 reference.py --check    run the hand-checked sanity tests only
    python3 reference.py --show F R print the result of formula F for record R, one line per policy

Arithmetic is decimal with 39 significant digits, half up. The clock is fixed in formulas.json and the time zone is
UTC. A point that documentation leaves open is a *policy*: a pair of readings, the more likely one first. A pair of
formula and record whose result depends on a policy is reported as open, with every reading's result.
"""
import calendar
import datetime as dt
import json
import os
import re
import sys
from decimal import (Context, Decimal, ROUND_HALF_UP, ROUND_CEILING, ROUND_FLOOR, ROUND_DOWN, InvalidOperation,
                     DivisionByZero, Overflow, Inexact)

HERE = os.path.dirname(os.path.abspath(__file__))

# name: (readings, reason). The first reading is the likely one.
POLICIES = {
    "nested_error": (["error", "blank"], "a formula that refers to a formula in error: error or blank input"),
    "nested_round": (["raw", "rounded"], "a formula that refers to a formula: unrounded value (open-source engine) or the value at the inner field's scale"),
    "addmonths": (["sticky", "clip"], "ADDMONTHS from the last day of a month: last day of the target month (editor tooltip, engine) or same day number (help page)"),
    "addmonths_null": (["null", "same"], "ADDMONTHS with blank months: blank (engine SQL) or the date itself (engine Java)"),
    "null_bool": (["unknown", "two"], "NOT of a comparison with a blank operand, or = and <> of two blanks: unknown, which IF, AND and OR treat as false (engine; documented for <> and NOT(CONTAINS)), or plain true/false"),
    "andor_lazy": (["lazy", "eager"], "an error in a later argument of AND/OR after the result is decided: no error (engine Java) or an error (engine SQL)"),
    "pick_case": (["exact", "any"], "a picklist value that differs in case only"),
    "left_negative": (["blank", "error"], "LEFT/RIGHT/MID with a negative count: blank (engine) or error (help page of CASE)"),
    "minmax_null": (["null", "ignore"], "MAX/MIN with a blank operand: blank (engine) or ignored"),
    "text_zero": (["keep", "drop"], "TEXT of a number between -1 and 1: help page says Lightning drops the leading zero, Classic keeps it; Trailhead shows 0.3"),
    "prec": ([39, 28], "digits of an inexact result: not documented (engine: 39)"),
    "trim": (["spaces_tabs", "spaces"], "TRIM and tab characters: help page says spaces and tabs, engine removes spaces only"),
    "units": (["codepoints", "utf16"], "characters outside the BMP: one position (engine SQL) or two (engine Java)"),
    "case_map": (["full", "simple"], "UPPER/LOWER of characters whose mapping changes the length"),
    "find_empty": (["zero", "start"], "FIND of a blank text: 0 (engine) or the start position"),
    "find_start": (["clamp", "zero"], "FIND with a start position below 1"),
    "begins_empty": ([True, False], "BEGINS with a blank second argument: true (engine, as documented for CONTAINS) or false"),
    "value_lax": (["lax", "strict"], "VALUE/ISNUMBER of text with a plus sign or a point without digits on both sides: a number (engine) or not (help page names point and minus only)"),
    "value_sci": (["value", "error"], "VALUE of text with an exponent (ISNUMBER is true for it)"),
    "value_blank": (["null", "error"], "VALUE of blank text inside a larger expression: a blank number (engine) or no result at all (the help page lists it next to invalid text)"),
    "dt_round": (["round", "trunc"], "date/time plus a number: nearest second (engine) or cut off"),
    "mod_zero": (["error", "dividend"], "MOD by zero: error (engine Java) or the dividend (Oracle MOD)"),
    "case_blank": (["match", "else"], "CASE on a blank picklist or text with a \"\" value: match (engine) or else result (help page)"),
    "null_dt_text": (["blank", "Z"], "TEXT of a blank date/time: blank (engine Java) or the letter Z (reported for orgs, engine SQL)"),
    "caret": (["standard", "engine"], "precedence of ^: standard (help page) or below * and / (grammar of the engine)"),
    "caret_assoc": (["left", "right"], "a ^ b ^ c: from the left (grammar of the engine) or from the right"),
    "neg_caret": (["loose", "tight"], "-a^b: minus applied last (standard) or first (grammar of the engine)"),
    "overflow": (["value", "error"], "results of more than 18 digits"),
    "pow_frac": (["value", "error"], "^ with an exponent that is not an integer: help page names an integer only"),
    "date_range": (["value", "error"], "dates outside the years 1700 to 4000"),
    "date_digits": (["lax", "strict"], "DATEVALUE/DATETIMEVALUE of text with one-digit parts: accepted (engine) or an error (help page: YYYY-MM-DD)"),
    "date_tail": (["strict", "lax"], "DATEVALUE/DATETIMEVALUE of text with something after the date: an error (engine SQL) or ignored (engine Java)"),
    "time_digits": (["strict", "lax"], "TIMEVALUE of text with one-digit parts: an error (engine SQL) or accepted (engine Java)"),
    "html": (["a", "b"], "the markup of HYPERLINK, IMAGE and BR is not documented"),
    "substitute_empty": (["blank", "same"], "SUBSTITUTE with a blank search text: blank (engine Java) or unchanged (Oracle REPLACE)"),
    "pad_empty": (["blank", "same"], "LPAD/RPAD with a blank pad text"),
    "initcap": (["a", "b"], "INITCAP: word boundaries are not documented in detail"),
}

class Refuse(Exception):
    """The formula cannot be saved: syntax, types, unknown field or function."""


class FErr(Exception):
    """#Error! at run time."""


class TimeV:
    """A time of day in milliseconds."""
    __slots__ = ("ms",)

    def __init__(self, ms):
        self.ms = ms % 86400000

    def __eq__(self, o):
        return isinstance(o, TimeV) and o.ms == self.ms

    def __lt__(self, o):
        return self.ms < o.ms

    def __le__(self, o):
        return self.ms <= o.ms

    def __hash__(self):
        return hash(self.ms)

    def text(self):
        s, ms = divmod(self.ms, 1000)
        return "%02d:%02d:%02d.%03d" % (s // 3600, s // 60 % 60, s % 60, ms)


# ---------------------------------------------------------------- parsing

TOKEN = re.compile(r"""
    (?P<ws>\s+) | (?P<comment>/\*.*?\*/) | (?P<num>\d+(\.\d+)?) |
    (?P<str>"(?:\\[nrtNRT"'\\]|[^"\\])*"|'(?:\\[nrtNRT"'\\]|[^'\\])*') |
    (?P<id>[A-Za-z$][A-Za-z0-9$_:.\#]*) |
    (?P<op><=|>=|<>|!=|==|&&|\|\||[-+*/^&=<>!(),])
""", re.X | re.S)
ESC = {"n": "\n", "r": "\r", "t": "\t", "N": "\n", "R": "\r", "T": "\t", '"': '"', "'": "'", "\\": "\\"}


def tokenize(text):
    out, i = [], 0
    while i < len(text):
        m = TOKEN.match(text, i)
        if not m:
            raise Refuse("syntax error at %d: %r" % (i, text[i:i + 10]))
        i = m.end()
        k = m.lastgroup if m.lastgroup in ("ws", "comment", "str", "id", "op") else "num"
        v = m.group()
        if k in ("ws", "comment"):
            continue
        if k == "str":
            v = re.sub(r"\\(.)", lambda e: ESC[e.group(1)], v[1:-1])
        out.append((k, v))
    out.append(("end", ""))
    return out


class Parser:
    """caret 'standard': ^ above * and /. 'engine': below them, as in the grammar that Salesforce published."""

    def __init__(self, text, caret="standard", neg="loose", assoc="left"):
        self.t, self.i, self.caret, self.neg, self.assoc = tokenize(text), 0, caret, neg, assoc

    def peek(self):
        return self.t[self.i]

    def next(self):
        self.i += 1
        return self.t[self.i - 1]

    def op(self, *ops):
        k, v = self.peek()
        if k == "op" and v in ops:
            self.i += 1
            return v
        return None

    def need(self, o):
        if not self.op(o):
            raise Refuse("syntax error: expected %r, found %r" % (o, self.peek()[1] or "end"))

    def parse(self):
        n = self.chain(0)
        if self.peek()[0] != "end":
            raise Refuse("syntax error: extra %r" % self.peek()[1])
        return n

    def levels(self):
        mul = [("*", "/"), ("^",)] if self.caret == "standard" else [("^",), ("*", "/")]
        return [("||",), ("&&",), ("=", "==", "<>", "!="), ("<", ">", "<=", ">="), ("+", "-", "&")] + mul

    def chain(self, level):
        ls = self.levels()
        if level == len(ls):
            return self.unary()
        n = self.chain(level + 1)
        while True:
            o = self.op(*ls[level])
            if not o:
                return n
            o = {"==": "=", "!=": "<>"}.get(o, o)
            right = self.chain(level if o == "^" and self.assoc == "right" else level + 1)
            n = ("bin", o, n, right)

    def unary(self):
        k, v = self.peek()
        if k == "op" and v in "-+!":
            self.i += 1
            if v == "-" and self.caret == "standard" and self.neg == "loose":
                n = self.chain(len(self.levels()) - 1)
            else:
                n = self.unary()
            return ({"-": "neg", "+": "pos", "!": "not"}[v], n)
        if k == "id" and v.upper() == "NOT":
            self.i += 1
            return ("not", self.unary())
        return self.primary()

    def primary(self):
        k, v = self.next()
        if k == "num":
            return ("num", Decimal(v))
        if k == "str":
            return ("str", v)
        if k == "op" and v == "(":
            n = self.chain(0)
            self.need(")")
            return n
        if k == "id":
            u = v.upper()
            if self.op("("):
                args = []
                if not self.op(")"):
                    args.append(self.chain(0))
                    while self.op(","):
                        args.append(self.chain(0))
                    self.need(")")
                return ("call", u, args)
            if u in ("TRUE", "FALSE"):
                return ("bool", u == "TRUE")
            if u == "NULL":
                return ("null",)
            return ("ref", v)
        raise Refuse("syntax error at %r" % (v or "end"))


# ---------------------------------------------------------------- types

FIELD_TYPES = {
    "Text": "text", "TextArea": "text", "Email": "text", "Phone": "text", "Url": "text", "Id": "text",
    "Reference": "text", "AutoNumber": "text", "Number": "number", "Currency": "number", "Percent": "number",
    "Date": "date", "DateTime": "datetime", "Time": "time", "Checkbox": "bool", "Picklist": "picklist",
    "MultiselectPicklist": "multi",
}
N, T, B, D, DT, TM, PK, MS, NU = "number", "text", "bool", "date", "datetime", "time", "picklist", "multi", "null"
# argument types (a tuple is a choice; a trailing '?' marks optional), result type
SIG = {
    "ABS": ([N], N), "CEILING": ([N], N), "EXP": ([N], N), "FLOOR": ([N], N), "LN": ([N], N), "LOG": ([N], N),
    "MCEILING": ([N], N), "MFLOOR": ([N], N), "MOD": ([N, N], N), "ROUND": ([N, N], N), "SQRT": ([N], N),
    "TRUNC": ([N, "N?"], N), "BEGINS": ([T, T], B), "CONTAINS": ([T, T], B), "FIND": ([T, T, "N?"], N),
    "LEFT": ([T, N], T), "RIGHT": ([T, N], T), "MID": ([T, N, N], T), "LEN": ([T], N), "LOWER": ([T], T),
    "UPPER": ([T], T), "LPAD": ([T, N, "T?"], T), "RPAD": ([T, N, "T?"], T), "SUBSTITUTE": ([T, T, T], T),
    "TRIM": ([T], T), "VALUE": ([T], N), "ISNUMBER": ([T], B), "TEXT": ([(N, D, DT, TM, PK)], T),
    "ISPICKVAL": ([PK, "literal"], B), "INCLUDES": ([MS, "literal"], B), "DATE": ([N, N, N], D),
    "DATEVALUE": ([(T, DT)], D), "DATETIMEVALUE": ([(T, DT, D)], DT), "TIMEVALUE": ([(T, DT, TM)], TM),
    "DAY": ([D], N), "MONTH": ([D], N), "YEAR": ([D], N), "WEEKDAY": ([D], N), "HOUR": ([TM], N),
    "MINUTE": ([TM], N), "SECOND": ([TM], N), "MILLISECOND": ([TM], N), "TODAY": ([], D), "NOW": ([], DT),
    "TIMENOW": ([], TM), "HYPERLINK": ([T, T, "T?"], T), "IMAGE": ([T, T, "N?", "N?"], T), "BR": ([], T),
    "DAYOFYEAR": ([D], N), "ISOWEEK": ([D], N), "ISOYEAR": ([D], N), "UNIXTIMESTAMP": ([(D, DT)], N),
    "FROMUNIXTIME": ([N], DT), "REVERSE": ([T], T), "INITCAP": ([T], T), "ASCII": ([T], N), "CHR": ([N], T),
    "PICKLISTCOUNT": ([MS], N), "CASESAFEID": ([T], T), "PI": ([], N),
}


class Model:
    def __init__(self, data):
        self.data = data
        self.fields = {f["name"].lower(): f for f in data["fields"]}
        self.formulas = {f["name"].lower(): f for f in data["formulas"]}
        self.now = dt.datetime.strptime(data["now"], "%Y-%m-%dT%H:%M:%SZ")
        self.cache = {}

    def tree(self, f, caret="standard", neg="loose", assoc="left"):
        key = (f["name"], caret, neg, assoc)
        if key not in self.cache:
            self.cache[key] = Parser(f["formula"], caret, neg, assoc).parse()
        return self.cache[key]

    def ref_type(self, name):
        low = name.lower()
        if low in self.fields:
            return FIELD_TYPES[self.fields[low]["type"]]
        if low in self.formulas:
            return FIELD_TYPES[self.formulas[low]["type"]]
        raise Refuse("unknown field %s" % name)

    def type(self, n):
        k = n[0]
        if k == "num":
            return N
        if k == "str":
            return T
        if k == "bool":
            return B
        if k == "null":
            return NU
        if k == "ref":
            return self.ref_type(n[1])
        if k in ("neg", "pos"):
            self.want(n[1], N)
            return N
        if k == "not":
            self.want(n[1], B)
            return B
        if k == "bin":
            return self.bin_type(n)
        return self.call_type(n)

    def want(self, n, *types):
        t = self.type(n)
        if t != NU and t not in types:
            raise Refuse("wrong type: %s, expected %s" % (t, "/".join(types)))
        return t

    def join(self, a, b):
        if a == NU:
            return b
        if b == NU or a == b:
            return a
        raise Refuse("types differ: %s and %s" % (a, b))

    def bin_type(self, n):
        _, o, l, r = n
        a, b = self.type(l), self.type(r)
        if PK in (a, b) or MS in (a, b):
            raise Refuse("picklist used with operator %s" % o)
        if o in ("||", "&&"):
            self.want(l, B), self.want(r, B)
            return B
        if o in ("=", "<>"):
            self.join(a, b)
            return B
        if o in ("<", ">", "<=", ">="):
            if self.join(a, b) == B:
                raise Refuse("order of checkboxes")
            return B
        if o == "&":
            self.want(l, T), self.want(r, T)
            return T
        if o in ("*", "/", "^"):
            self.want(l, N), self.want(r, N)
            return N
        if NU in (a, b):
            return a if b == NU else b
        ok = {("+", N, N): N, ("+", T, T): T, ("+", D, N): D, ("+", N, D): D, ("+", DT, N): DT, ("+", N, DT): DT,
              ("+", TM, N): TM, ("-", N, N): N, ("-", D, N): D, ("-", D, D): N, ("-", DT, N): DT, ("-", DT, DT): N,
              ("-", TM, N): TM, ("-", TM, TM): N}
        if (o, a, b) not in ok:
            raise Refuse("wrong types for %s: %s and %s" % (o, a, b))
        return ok[o, a, b]

    def call_type(self, n):
        _, f, a = n
        if f in ("AND", "OR"):
            if not a:
                raise Refuse("%s without arguments" % f)
            for x in a:
                self.want(x, B)
            return B
        if f == "IF":
            if len(a) != 3:
                raise Refuse("IF takes 3 arguments")
            if self.type(a[0]) != B:
                raise Refuse("IF needs a true/false condition")
            t = self.join(self.type(a[1]), self.type(a[2]))
            if t in (PK, MS):
                raise Refuse("picklist as result of IF")
            return t
        if f == "CASE":
            if len(a) < 4 or len(a) % 2:
                raise Refuse("wrong number of arguments for CASE")
            e, res = self.type(a[0]), NU
            if e in (B, MS):
                raise Refuse("CASE on %s" % e)
            for i in range(1, len(a) - 1, 2):
                v = self.type(a[i])
                if v == B:
                    raise Refuse("CASE value of type true/false")
                if e == PK:
                    if a[i][0] != "str":
                        raise Refuse("CASE on a picklist needs literals")
                else:
                    self.join(e, v)
                res = self.join(res, self.type(a[i + 1]))
            res = self.join(res, self.type(a[-1]))
            if res in (B, PK, MS):
                raise Refuse("CASE result of type %s" % res)
            return res
        if f in ("ISBLANK", "ISNULL"):
            if len(a) != 1:
                raise Refuse("%s takes 1 argument" % f)
            if self.type(a[0]) in (B, PK):
                raise Refuse("%s of %s" % (f, self.type(a[0])))
            return B
        if f in ("BLANKVALUE", "NULLVALUE"):
            if len(a) != 2:
                raise Refuse("%s takes 2 arguments" % f)
            t = self.join(self.type(a[0]), self.type(a[1]))
            if t in (B, PK, MS):
                raise Refuse("%s of %s" % (f, t))
            return t
        if f in ("MAX", "MIN"):
            if not a:
                raise Refuse("%s without arguments" % f)
            for x in a:
                self.want(x, N)
            return N
        if f not in SIG:
            raise Refuse("unknown function %s" % f)
        want, res = SIG[f]
        low = sum(1 for w in want if not (isinstance(w, str) and w.endswith("?")))
        if not low <= len(a) <= len(want):
            raise Refuse("wrong number of arguments for %s" % f)
        for x, w in zip(a, want):
            if w == "literal":
                if x[0] != "str":
                    raise Refuse("%s needs a text literal" % f)
                if f == "INCLUDES" and not x[1].strip():
                    raise Refuse("INCLUDES needs a value")
            else:
                self.want(x, *(w if isinstance(w, tuple) else ({"N?": N, "T?": T}.get(w, w),)))
        return res

    def check(self, f, stack=()):
        """Raises Refuse when the formula, or one that it refers to, cannot be saved."""
        if f["name"] in stack:
            raise Refuse("circular reference")
        tree = self.tree(f)
        t = self.type(tree)
        if t != NU and t != FIELD_TYPES[f["type"]]:
            raise Refuse("result is %s, field is %s" % (t, f["type"]))
        for name in refs(tree):
            inner = self.formulas.get(name.lower())
            if inner:
                self.check(inner, stack + (f["name"],))


def refs(n):
    if n[0] == "ref":
        yield n[1]
    for x in n[1:]:
        if isinstance(x, tuple):
            yield from refs(x)
        elif isinstance(x, list):
            for y in x:
                yield from refs(y)


# ---------------------------------------------------------------- evaluation

def plain(d):
    if d == 0:
        return "0"
    s = format(d, "f")
    if "." in s:
        s = s.rstrip("0").rstrip(".")
    return s


def half_up(d, scale):
    return d.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, Context(prec=200))


class Eval:
    def __init__(self, model, record, policy=None):
        self.m, self.r, self.p, self.used = model, record, policy or {}, set()
        self.ctx = self.context()

    def context(self):
        c = Context(prec=self.p.get("prec", 39), rounding=ROUND_HALF_UP, Emax=999999, Emin=-999999,
                    traps=[InvalidOperation, DivisionByZero, Overflow])
        return c

    def pol(self, name):
        self.used.add(name)
        return self.p.get(name, POLICIES[name][0][0])

    # numbers
    def num(self, fn, *a):
        try:
            self.ctx.clear_flags()
            v = fn(*a)
            if self.ctx.flags[Inexact]:
                self.used.add("prec")
            return v
        except (InvalidOperation, DivisionByZero, Overflow):
            raise FErr("arithmetic")

    def fudge(self, x):
        # Six guard digits: FLOOR(1/3*3) is 1 and whole hours stay whole (comment in Salesforce's engine).
        return Context(prec=self.p.get("prec", 39) - 6, rounding=ROUND_HALF_UP).plus(x)

    def integral(self, x, mode):
        return self.fudge(x).to_integral_value(mode)

    # entry
    def formula(self, f):
        """The value of a formula before it is stored: unrounded, percent as a fraction."""
        syntax = [self.pol(x) for x in ("caret", "neg_caret", "caret_assoc")] if "^" in f["formula"] else []
        saved = getattr(self, "f", None)
        self.f = f
        try:
            tree = self.m.tree(f, *syntax)
            v = self.ev(tree)
        finally:
            self.f = saved
        return v

    def result(self, f):
        v = self.formula(f)
        t = f["type"]
        if t == "Checkbox":
            return bool(v)
        if v is None or v == "":
            return None
        if FIELD_TYPES[t] == N:
            if t == "Percent":
                v = Context(prec=200).multiply(v, Decimal(100))
            v = half_up(v, f["scale"])
            if v != 0 and v.adjusted() + 1 + f["scale"] > 18 and self.pol("overflow") == "error":
                raise FErr("more than 18 digits")
            return plain(v)
        if t == "Date":
            return self.checked_year(v).isoformat()
        if t == "DateTime":
            return self.checked_year(v).strftime("%Y-%m-%dT%H:%M:%SZ").rjust(20, "0")
        if t == "Time":
            return v.text()
        return v

    def checked_year(self, v):
        if not 1700 <= v.year <= 4000 and self.pol("date_range") == "error":
            raise FErr("date out of range")
        return v

    def field(self, name):
        low = name.lower()
        inner = self.m.formulas.get(low)
        zero = self.f["blank"] == "zero"
        if inner:
            try:
                v = self.formula(inner)
                if v is not None and FIELD_TYPES[inner["type"]] == N and self.pol("nested_round") == "rounded":
                    v = half_up(v, inner["scale"] + (2 if inner["type"] == "Percent" else 0))
                if inner["type"] == "Checkbox":
                    v = bool(v)
            except FErr:
                if self.pol("nested_error") == "error":
                    raise
                v = False if inner["type"] == "Checkbox" else None
            if v is None and zero and FIELD_TYPES[inner["type"]] == N:
                return Decimal(0)
            return v
        f = self.m.fields[low]
        v = self.r.get(f["name"])
        t = FIELD_TYPES[f["type"]]
        if t == B:
            return bool(v)
        if v is None or v == "":
            return Decimal(0) if t == N and zero else ([] if t == MS else None)
        if t == N:
            return Decimal(v) / 100 if f["type"] == "Percent" else Decimal(v)
        if t == D:
            return dt.date.fromisoformat(v)
        if t == DT:
            return dt.datetime.strptime(v, "%Y-%m-%dT%H:%M:%SZ")
        if t == TM:
            return parse_time(v)
        if t == MS:
            return v.split(";")
        return v

    def ev(self, n):
        k = n[0]
        if k == "num" or k == "bool":
            return n[1]
        if k == "str":
            return n[1] or None
        if k == "null":
            return None
        if k == "ref":
            return self.field(n[1])
        if k == "neg":
            v = self.ev(n[1])
            return None if v is None else -v
        if k == "pos":
            return self.ev(n[1])
        if k == "not":
            return self.negate(self.ev(n[1]))
        if k == "bin":
            return self.binary(n)
        return self.call(n)

    # A blank truth value stays unknown: NOT(unknown) is unknown, and IF takes the else branch.
    def negate(self, v):
        return None if v is None else not v

    def logic(self, args, stop):
        for i, a in enumerate(args):
            if bool(self.ev(a)) is stop:          # unknown is treated as false
                if args[i + 1:] and self.pol("andor_lazy") == "eager":
                    for b in args[i + 1:]:
                        self.ev(b)
                return stop
        return not stop

    def unknown(self, two):
        """The result of a test with a blank operand."""
        return two if self.pol("null_bool") == "two" else None

    def compare(self, o, l, r, text):
        if o in ("=", "<>"):
            if text:
                return ((l or "") == (r or "")) == (o == "=")
            if l is None and r is None:
                return self.unknown(o == "=")
            if l is None or r is None:      # documented for <>: ISNULL help page, OR(ISNULL(f), f <> 1)
                return None if o == "<>" else self.unknown(False)
            return (l == r) == (o == "=")
        if l is None or r is None:
            return self.unknown(False)
        return {"<": l < r, ">": r < l, "<=": l <= r, ">=": r <= l}[o]

    def binary(self, n):
        _, o, l, r = n
        if o == "||":
            return self.logic([l, r], True)
        if o == "&&":
            return self.logic([l, r], False)
        ta, tb = self.m.type(l), self.m.type(r)
        a, b = self.ev(l), self.ev(r)
        if o in ("=", "<>", "<", ">", "<=", ">="):
            return self.compare(o, a, b, T in (ta, tb))
        if o == "&" or o == "+" and T in (ta, tb):
            return ((a or "") + (b or "")) or None
        if a is None or b is None:
            return None
        if o == "+":
            return self.plus(a, b, 1) if not isinstance(a, Decimal) else self.plus(b, a, 1)
        if o == "-":
            return self.minus(a, b)
        if o == "*":
            return self.num(self.ctx.multiply, a, b)
        if o == "/":
            if b == 0:
                raise FErr("division by zero")
            return self.num(self.ctx.divide, a, b)
        return self.power(a, b)

    def power(self, a, b):
        if b != b.to_integral_value():
            if self.pol("pow_frac") == "error":
                raise FErr("exponent")
            self.used.add("prec")
        if a == 0 and b < 0:
            raise FErr("zero to a negative power")
        if a == 0 and b == 0:
            return Decimal(1)
        if a != 0 and abs(a.adjusted() * b) > 64:
            raise FErr("power out of range")
        return self.num(self.ctx.power, a, b)

    def plus(self, a, b, sign):
        if isinstance(a, Decimal):
            return self.num(self.ctx.add, a, b * sign)
        b = b * sign
        try:
            if isinstance(a, dt.datetime):
                s = Context(prec=60).multiply(b, Decimal(86400))
                if s != s.to_integral_value():
                    mode = ROUND_HALF_UP if self.pol("dt_round") == "round" else ROUND_DOWN
                    near = Context(prec=max(1, s.adjusted() + 16), rounding=ROUND_HALF_UP).plus(s)
                    s = (near if near == near.to_integral_value() else s).to_integral_value(mode)
                return a + dt.timedelta(seconds=int(s))
            if isinstance(a, dt.date):
                return a + dt.timedelta(days=int(b))        # fractions are cut off, towards zero
            return TimeV(a.ms + int(b))
        except OverflowError:
            raise FErr("date out of range")

    def minus(self, a, b):
        if isinstance(b, Decimal):
            return self.plus(a, b, -1)
        if isinstance(a, TimeV):
            return Decimal((a.ms - b.ms) % 86400000)
        if isinstance(a, dt.datetime):
            return self.num(self.ctx.divide, Decimal(int((a - b).total_seconds())), Decimal(86400))
        return Decimal((a - b).days)

    # text positions
    def chars(self, s):
        if all(ord(c) < 0x10000 for c in s):
            return s
        if self.pol("units") == "codepoints":
            return s
        b = s.encode("utf-16-be")
        return [b[i:i + 2] for i in range(0, len(b), 2)]

    def unchars(self, c):
        if isinstance(c, str):
            return c or None
        return b"".join(c).decode("utf-16-be", "replace") or None

    def call(self, n):
        _, f, a = n
        if f == "IF":
            return self.ev(a[1] if self.ev(a[0]) else a[2])
        if f == "AND":
            return self.logic(a, False)
        if f == "OR":
            return self.logic(a, True)
        if f == "CASE":
            return self.case(a)
        vs = [self.ev(x) for x in a]
        if f in ("ISBLANK", "ISNULL"):
            if f == "ISNULL" and self.m.type(a[0]) == T:
                return False
            return vs[0] is None or vs[0] == []
        if f in ("BLANKVALUE", "NULLVALUE"):
            if f == "NULLVALUE" and T in (self.m.type(a[0]), self.m.type(a[1])):
                return vs[0]
            return vs[1] if vs[0] is None else vs[0]
        if f in ("MAX", "MIN"):
            if any(v is None for v in vs):
                vs = [v for v in vs if v is not None]
                if self.pol("minmax_null") == "null" or not vs:
                    return None
            return (max if f == "MAX" else min)(vs)
        return getattr(self, "f_" + f)(n, *vs)

    def case(self, a):
        kind = self.m.type(a[0])
        vs = [self.ev(x) for x in a]                 # documented: an error in any argument is an error of CASE
        e = vs[0]
        for i in range(1, len(vs) - 1, 2):
            if e is None and vs[i] is None and kind in (T, PK) and a[i][0] != "null":
                if self.pol("case_blank") == "match":
                    return vs[i + 1]
                return vs[-1]
            if e is not None and vs[i] is not None and (self.pick(e, vs[i]) if kind == PK else e == vs[i]):
                return vs[i + 1]
        return vs[-1]

    # --- math
    def f_ABS(self, n, x):
        return None if x is None else abs(x)

    def f_CEILING(self, n, x):
        return None if x is None else self.integral(x, ROUND_FLOOR if x < 0 else ROUND_CEILING)

    def f_FLOOR(self, n, x):
        return None if x is None else self.integral(x, ROUND_CEILING if x < 0 else ROUND_FLOOR)

    def f_MCEILING(self, n, x):
        return None if x is None else self.integral(x, ROUND_CEILING)

    def f_MFLOOR(self, n, x):
        return None if x is None else self.integral(x, ROUND_FLOOR)

    def f_EXP(self, n, x):
        if x is None:
            return None
        if x > 140:
            raise FErr("overflow")
        self.used.add("prec")
        return self.num(self.ctx.exp, x)

    def f_LN(self, n, x):
        if x is None:
            return None
        if x <= 0:
            raise FErr("logarithm")
        return self.num(self.ctx.ln, x)

    def f_LOG(self, n, x):
        if x is None:
            return None
        if x <= 0:
            raise FErr("logarithm")
        return self.num(self.ctx.log10, x)

    def f_SQRT(self, n, x):
        if x is None:
            return None
        if x < 0:
            raise FErr("root of a negative number")
        return self.num(self.ctx.sqrt, x)

    def f_MOD(self, n, x, y):
        if x is None or y is None:
            return None
        if y == 0:
            if self.pol("mod_zero") == "error":
                raise FErr("MOD by zero")
            return x
        return Context(prec=200).remainder(x, y)      # the sign of the first argument

    def f_ROUND(self, n, x, d):
        return None if x is None or d is None else half_up(x, int(d)) if int(d) > -60 else Decimal(0)

    def f_TRUNC(self, n, x, d=Decimal(0)):
        if x is None or d is None:
            return None
        return x.quantize(Decimal(1).scaleb(-int(d)), ROUND_DOWN, Context(prec=200))

    def f_PI(self, n):
        self.used.add("prec")
        return Decimal("3.14159265358979323846264338327950288419")

    # --- text
    def f_BEGINS(self, n, s, w):
        if w is None:
            return self.pol("begins_empty")
        return self.unknown(False) if s is None else s.startswith(w)

    def f_CONTAINS(self, n, s, w):
        # Help article 000385300: a blank second argument is contained; NOT(CONTAINS()) does not see a blank field.
        return True if w is None else None if s is None else w in s

    def f_FIND(self, n, w, s, start=Decimal(1)):
        if s is None:
            return Decimal(0)
        if start is None:
            start = Decimal(1)
        start = int(start)
        if start < 1:
            if self.pol("find_start") == "zero":
                return Decimal(0)
            start = 1
        if w is None:
            return Decimal(0) if self.pol("find_empty") == "zero" else Decimal(start)
        cs, cw = self.chars(s), self.chars(w)
        if isinstance(cs, str) != isinstance(cw, str):
            cs, cw = (list(x.encode("utf-16-be")[i:i + 2] for i in range(0, len(x.encode("utf-16-be")), 2))
                      if isinstance(x, str) else x for x in (cs, cw))
        for i in range(start - 1, len(cs) - len(cw) + 1):
            if cs[i:i + len(cw)] == cw:
                return Decimal(i + 1)
        return Decimal(0)

    def cut(self, s, start, count):
        if count is None or start is None:
            return None
        if count < 0 and self.pol("left_negative") == "error":
            raise FErr("negative count")
        if s is None or count <= 0:
            return None
        c = self.chars(s)
        i = max(int(start), 1) - 1
        return self.unchars(c[i:i + int(count)])

    def f_LEFT(self, n, s, count):
        return self.cut(s, Decimal(1), count)

    def f_MID(self, n, s, start, count):
        return self.cut(s, start, count)

    def f_RIGHT(self, n, s, count):
        if count is None:
            return None
        if count < 0 and self.pol("left_negative") == "error":
            raise FErr("negative count")
        if s is None or int(count) <= 0:
            return None
        c = self.chars(s)
        return self.unchars(c[max(0, len(c) - int(count)):])

    def f_LEN(self, n, s):
        return Decimal(len(self.chars(s)) if s else 0)

    def f_LOWER(self, n, s):
        return s and self.map_case(s, str.lower)

    def f_UPPER(self, n, s):
        return s and self.map_case(s, str.upper)

    def map_case(self, s, fn):
        if any(len(fn(c)) != 1 for c in s) or fn(s) != "".join(fn(c) for c in s):
            if self.pol("case_map") == "simple":
                return "".join(fn(c) if len(fn(c)) == 1 else c for c in s)
        return fn(s)

    def pad(self, s, count, fill, left):
        if s is None or count is None:
            return None
        count = int(count)
        if count <= 0:
            if count < 0 and self.pol("left_negative") == "error":
                raise FErr("negative length")
            return None
        c = self.chars(s)
        if len(c) >= count:
            return self.unchars(c[:count])
        if not fill:
            return None if self.pol("pad_empty") == "blank" else s
        f = self.chars(fill)
        if isinstance(f, str) != isinstance(c, str):
            b = lambda x: [x.encode("utf-16-be")[i:i + 2] for i in range(0, len(x.encode("utf-16-be")), 2)]
            f, c = (b(f) if isinstance(f, str) else f), (b(c) if isinstance(c, str) else c)
        need = count - len(c)
        filler = (f * (need // len(f) + 1))[:need]
        return self.unchars(filler + c if left else c + filler)

    def f_LPAD(self, n, s, count, fill=" "):
        return self.pad(s, count, fill, True)

    def f_RPAD(self, n, s, count, fill=" "):
        return self.pad(s, count, fill, False)

    def f_SUBSTITUTE(self, n, s, old, new):
        if s is None:
            return None
        if old is None:
            return None if self.pol("substitute_empty") == "blank" else s
        return s.replace(old, new or "") or None

    def f_TRIM(self, n, s):
        if s is None:
            return None
        spaces = s.strip(" ")
        both = s.strip(" \t")
        if spaces != both and self.pol("trim") == "spaces":
            return spaces or None
        return both or None

    STRICT = re.compile(r"-?\d+(\.\d+)?\Z", re.A)
    EXPONENT = re.compile(r"-?\d+(\.\d+)?[eE]-?\d{1,2}\Z", re.A)
    LAX = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d{1,2})?\Z", re.A)

    def number_of(self, s):
        if self.STRICT.match(s) or self.EXPONENT.match(s):
            return Decimal(s)
        if self.LAX.match(s) and self.pol("value_lax") == "lax":
            return Decimal(s)
        return None

    def f_VALUE(self, n, s):
        if s is None:
            if self.pol("value_blank") == "error":
                raise FErr("VALUE of blank")
            return None
        v = self.number_of(s)
        if v is None or self.EXPONENT.match(s) and self.pol("value_sci") == "error":
            raise FErr("not a number")
        return v

    def f_ISNUMBER(self, n, s):
        return s is not None and self.number_of(s) is not None

    def f_TEXT(self, n, v):
        if v is None:
            if self.m.type(n[2][0]) == DT and self.pol("null_dt_text") == "Z":
                return "Z"
            return None
        if isinstance(v, Decimal):
            s = plain(v)
            if v != 0 and abs(v) < 1 and self.pol("text_zero") == "drop":
                s = s.replace("0.", ".", 1)
            return s
        if isinstance(v, dt.datetime):
            return v.strftime("%Y-%m-%d %H:%M:%SZ").rjust(20, "0")
        if isinstance(v, dt.date):
            return v.isoformat()
        return v.text() if isinstance(v, TimeV) else v

    def f_ISPICKVAL(self, n, v, w):
        return self.pick(v, w)

    def pick(self, v, w):
        v, w = v or "", w or ""
        if v != w and v.lower() == w.lower():
            return self.pol("pick_case") == "any"
        return v == w

    def f_INCLUDES(self, n, v, w):
        return any(self.pick(x, w) for x in v)

    def f_PICKLISTCOUNT(self, n, v):
        return Decimal(len(v))

    def f_HYPERLINK(self, n, url, label, target=None):
        t = target or "_blank"
        if self.pol("html") == "a":
            return '<a href="%s" target="%s">%s</a>' % (url or "", t, label or "")
        return label or ""

    def f_IMAGE(self, n, url, alt, h=None, w=None):
        size = ' style="height:%spx; width:%spx;"' % (plain(h), plain(w)) if h is not None and w is not None else ""
        if self.pol("html") == "a":
            return '<img src="%s" alt="%s"%s border="0"/>' % (url or "", alt or "", size)
        return alt or ""

    def f_BR(self, n):
        return "<br>" if self.pol("html") == "a" else "_BR_ENCODED_"

    def f_REVERSE(self, n, s):
        return s and self.unchars(self.chars(s)[::-1])

    def f_INITCAP(self, n, s):
        if s is None:
            return None
        a = re.sub(r"[^\W_]+", lambda m: m.group()[0].upper() + m.group()[1:].lower(), s)
        b = " ".join(w[:1].upper() + w[1:].lower() for w in s.split(" "))
        return a if a == b or self.pol("initcap") == "a" else b

    def f_ASCII(self, n, s):
        if s is None:
            return None
        return Decimal(ord(s[0]) if ord(s[0]) < 0x10000 or self.pol("units") == "codepoints"
                       else int.from_bytes(s[0].encode("utf-16-be")[:2], "big"))

    def f_CHR(self, n, v):
        return None if v is None else chr(int(v))

    def f_CASESAFEID(self, n, s):
        if s is None or len(s) != 15:
            return s
        abc = "ABCDEFGHIJKLMNOPQRSTUVWXYZ012345"
        return s + "".join(abc[sum(1 << j for j in range(5) if s[i + j].isascii() and s[i + j].isupper())]
                           for i in (0, 5, 10))

    # --- dates
    def f_TODAY(self, n):
        return self.m.now.date()

    def f_NOW(self, n):
        return self.m.now

    def f_TIMENOW(self, n):
        t = self.m.now
        return TimeV((t.hour * 3600 + t.minute * 60 + t.second) * 1000)

    def f_DATE(self, n, y, m, d):
        if y is None or m is None or d is None:
            return None
        try:
            return dt.date(int(y), int(m), int(d))
        except (ValueError, OverflowError):
            raise FErr("DATE")

    def parse_date(self, v, strict, loose, make):
        m = re.match(strict + r"\Z", v, re.A)
        if not m:
            m = re.match(loose + r"\Z", v, re.A)
            if m:
                if self.pol("date_digits") == "strict":
                    raise FErr("date text")
            else:
                m = re.match(loose, v, re.A)
                if not m or self.pol("date_tail") == "strict":
                    raise FErr("date text")
        try:
            return make(*map(int, m.groups()))
        except ValueError:
            raise FErr("date text")

    def f_DATEVALUE(self, n, v):
        if v is None:
            return None
        if isinstance(v, dt.datetime):
            return v.date()
        return self.parse_date(v, r"(\d{4})-(\d\d)-(\d\d)", r"(\d{4})-(\d\d?)-(\d\d?)", dt.date)

    def f_DATETIMEVALUE(self, n, v):
        if v is None or isinstance(v, dt.datetime):
            return v
        if isinstance(v, dt.date):
            return dt.datetime(v.year, v.month, v.day)
        return self.parse_date(v, r"(\d{4})-(\d\d)-(\d\d) (\d\d):(\d\d):(\d\d)",
                               r"(\d{4})-(\d\d?)-(\d\d?) (\d\d?):(\d\d?):(\d\d?)", dt.datetime)

    def f_TIMEVALUE(self, n, v):
        if v is None or isinstance(v, TimeV):
            return v
        if isinstance(v, dt.datetime):
            return TimeV((v.hour * 3600 + v.minute * 60 + v.second) * 1000)
        if not re.match(r"\d\d:\d\d:\d\d\.\d{3}\Z", v, re.A):
            if not re.match(r"\d\d?:\d\d?:\d\d?\.\d{3}\Z", v, re.A) or self.pol("time_digits") == "strict":
                raise FErr("TIMEVALUE")
        t = parse_time(v)
        if t is None:
            raise FErr("TIMEVALUE")
        return t

    def f_DAY(self, n, d):
        return None if d is None else Decimal(d.day)

    def f_MONTH(self, n, d):
        return None if d is None else Decimal(d.month)

    def f_YEAR(self, n, d):
        return None if d is None else Decimal(d.year)

    def f_WEEKDAY(self, n, d):
        return None if d is None else Decimal(d.isoweekday() % 7 + 1)

    def f_DAYOFYEAR(self, n, d):
        return None if d is None else Decimal(d.timetuple().tm_yday)

    def f_ISOWEEK(self, n, d):
        return None if d is None else Decimal(d.isocalendar()[1])

    def f_ISOYEAR(self, n, d):
        return None if d is None else Decimal(d.isocalendar()[0])

    def f_UNIXTIMESTAMP(self, n, d):
        if d is None:
            return None
        if not isinstance(d, dt.datetime):
            d = dt.datetime(d.year, d.month, d.day)
        return Decimal(int((d - dt.datetime(1970, 1, 1)).total_seconds()))

    def f_FROMUNIXTIME(self, n, v):
        return None if v is None else dt.datetime(1970, 1, 1) + dt.timedelta(seconds=int(v))

    def f_HOUR(self, n, t):
        return None if t is None else Decimal(t.ms // 3600000)

    def f_MINUTE(self, n, t):
        return None if t is None else Decimal(t.ms // 60000 % 60)

    def f_SECOND(self, n, t):
        return None if t is None else Decimal(t.ms // 1000 % 60)

    def f_MILLISECOND(self, n, t):
        return None if t is None else Decimal(t.ms % 1000)


def parse_time(v):
    m = re.match(r"(\d+):(\d+):(\d+)(?:\.(\d+))?Z?\Z", v)
    h, mi, s = (int(x) for x in m.groups()[:3])
    if h > 23 or mi > 59 or s > 59:
        return None
    return TimeV((h * 3600 + mi * 60 + s) * 1000 + int(m.group(4) or 0))


def add_months(self, n, d, months):
    if d is None:
        return None
    if months is None:
        return d if self.pol("addmonths_null") == "same" else None
    k = d.year * 12 + d.month - 1 + int(months)
    y, m = divmod(k, 12)
    m += 1
    if not 1 <= y <= 9999:
        raise FErr("date out of range")
    last = calendar.monthrange(y, m)[1]
    day = min(d.day, last)
    if d.day == calendar.monthrange(d.year, d.month)[1] and day != last and self.pol("addmonths") == "sticky":
        day = last
    return d.replace(year=y, month=m, day=day)


SIG["ADDMONTHS"] = ([(D, DT), N], D)
Eval.f_ADDMONTHS = add_months
_call_type = Model.call_type


def call_type(self, n):
    t = _call_type(self, n)
    return self.type(n[2][0]) if n[1] == "ADDMONTHS" else t


Model.call_type = call_type


# ---------------------------------------------------------------- corpus

def run(model, f, record, policy=None):
    e = Eval(model, record, policy)
    try:
        return {"value": e.result(f)}, e.used
    except FErr as x:
        return {"error": True}, e.used


def sql(res):
    """What SQL shows: an error is null."""
    return json.dumps(None if res.get("error") else res["value"])


def expect(model, f, record):
    base, used = run(model, f, record)
    readings, reasons, seen, todo = {sql(base): base}, [], set(), sorted(used)
    while todo:
        name = todo.pop()
        if name in seen:
            continue
        seen.add(name)
        for alt in POLICIES[name][0][1:]:
            other, more = run(model, f, record, {name: alt})
            if sql(other) not in readings or sql(other) != sql(base):
                readings.setdefault(sql(other), other)
                if name not in reasons:
                    reasons.append(name)
    if not reasons:
        return base
    return {"open": "; ".join(POLICIES[r][1] for r in sorted(reasons)), "points": sorted(reasons),
            "likely": None if base.get("error") else base["value"],
            "readings": sorted((None if v.get("error") else v["value"] for v in readings.values()), key=repr)}


def main():
    data = json.load(open(os.path.join(HERE, "formulas.json"), encoding="utf-8"))
    m = Model(data)
    if sys.argv[1:2] == ["--show"]:
        f = m.formulas[sys.argv[2].lower()]
        r = next(r for r in data["records"] if r["Id"] == sys.argv[3] or r["_case"] == sys.argv[3])
        base, used = run(m, f, r)
        print(f["formula"], base)
        for u in sorted(used):
            for alt in POLICIES[u][0][1:]:
                print(" ", u, alt, run(m, f, r, {u: alt})[0])
        return
    out, counts = {}, {"value": 0, "error": 0, "open": 0, "refused": 0}
    points = {}
    for f in data["formulas"]:
        try:
            m.check(f)
        except Refuse as x:
            if not f.get("refuse") and not f.get("refusable"):
                print("REFUSED by mistake:", f["name"], x)
            out[f["name"]] = {"refuse": str(x)}
            counts["refused"] += 1
            continue
        assert not f.get("refuse"), f["name"]
        rows = {}
        for r in data["records"]:
            e = expect(m, f, r)
            rows[r["Id"]] = e
            counts["open" if "open" in e else "error" if "error" in e else "value"] += 1
            for p in e.get("points", ()):
                points[p] = points.get(p, 0) + 1
        out[f["name"]] = rows
    with open(os.path.join(HERE, "expected.json"), "w", encoding="utf-8") as o:
        o.write("{\n" + ",\n".join("%s: %s" % (json.dumps(k), json.dumps(v, ensure_ascii=False)) for k, v in out.items()) + "\n}\n")
    print(len(data["formulas"]), "formulas", len(data["records"]), "records", counts)
    print("open points:", dict(sorted(points.items(), key=lambda x: -x[1])))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--check"]:
        import sanity
        sanity.main()
    else:
        main()
