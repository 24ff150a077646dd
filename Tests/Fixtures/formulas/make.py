#!/usr/bin/env python3
"""Writes formulas.json from corpus_records.py and corpus_formulas.txt."""
import json
import os
import re

import corpus_records as c

HERE = os.path.dirname(os.path.abspath(__file__))
TYPES = {"N": "Number", "C": "Currency", "P": "Percent", "T": "Text", "D": "Date", "DT": "DateTime", "TM": "Time", "B": "Checkbox"}


def formulas():
    for line in open(os.path.join(HERE, "corpus_formulas.txt"), encoding="utf-8"):
        line = line.rstrip("\n")
        if not line or line.startswith("#"):
            continue
        head, rest = line.split("|", 4)[:4], line.split("|", 4)[4]
        name, typ, blank, source = head
        flag = None
        if source.startswith("precedence of && and \\"):      # the source text itself contains the separator
            source, rest = "precedence of && and ||", line.split("||", 1)[1]
            rest = rest[1:] if rest.startswith("|") else rest
        m = re.search(r"\|(refuse|refusable)$", rest)
        if m:
            flag, rest = m.group(1), rest[:m.start()]
        if name == "Mix_Newlines":
            rest = rest.replace("\\n", "\n").replace("\\t", "\t")
        m = re.match(r"(DT|TM|[NCPTDB])(\d*)$", typ)
        bare = re.sub(r"/\*.*?\*/|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'", " ", rest, flags=re.S)
        f = {"name": name + "__c", "formula": rest, "type": TYPES[m.group(1)]}
        if m.group(2):
            f["scale"] = int(m.group(2))
        f["blank"] = {"z": "zero", "b": "blank"}[blank]
        f["source"] = source
        f["features"] = sorted({x.upper() for x in re.findall(r"([A-Za-z]+)\s*\(", bare)}
                               | set(re.findall(r"&&|\|\||[<>!=]=|<>|[-+*/^&=<>]", bare)))
        if flag:
            f[flag] = True
        yield f


def main():
    fs = list(formulas())
    names = [f["name"].lower() for f in fs]
    assert len(set(names)) == len(names), [n for n in names if names.count(n) > 1]
    rows = lambda xs: "[\n" + ",\n".join(json.dumps(x, ensure_ascii=False) for x in xs) + "\n]"
    with open(os.path.join(HERE, "formulas.json"), "w", encoding="utf-8") as o:
        o.write('{"now": "2024-02-29T23:30:15Z", "timezone": "UTC",\n"fields": %s,\n"records": %s,\n"formulas": %s}\n'
                % (rows(c.FIELDS), rows(c.RECORDS), rows(fs)))
    print(len(fs), "formulas,", len(c.RECORDS), "records")


if __name__ == "__main__":
    main()
