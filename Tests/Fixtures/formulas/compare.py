#!/usr/bin/env python3
"""Compares a translator's results with expected.json.

    python3 compare.py results.json

results.json: {"formula name": {"record Id": value, ...} or {"refuse": "reason"}, ...}. Numbers may be JSON numbers or
text; date/times may end in Z, .000Z, +00:00 or .000+0000. Blank text and null are equal. Exit status 1 on a mismatch.
"""
import json
import os
import re
import sys
from decimal import Decimal, InvalidOperation

HERE = os.path.dirname(os.path.abspath(__file__))


def norm(v, typ):
    if v is None or v == "":
        return None
    if typ in ("Number", "Currency", "Percent"):
        try:
            return Decimal(str(v)).normalize() + 0
        except InvalidOperation:
            return v
    if typ == "DateTime":
        return re.sub(r"(\.0+)?(Z|\+00:?00|)$", "", str(v).replace(" ", "T"))
    if typ == "Time":
        return (str(v).rstrip("Z") + ("" if "." in str(v) else ".000"))[:12].ljust(12, "0")
    return v


def main():
    load = lambda p: json.load(open(p, encoding="utf-8"), parse_float=Decimal)
    data, want, got = load(os.path.join(HERE, "formulas.json")), load(os.path.join(HERE, "expected.json")), load(sys.argv[1])
    case = {r["Id"]: r["_case"] for r in data["records"]}
    n = dict(same=0, different=0, open_likely=0, open_other=0, open_outside=0, refused=0, refused_wrongly=0, not_refused=0, missing=0)
    for f in data["formulas"]:
        w, g, name = want[f["name"]], got.get(f["name"]), f["name"]
        if g is None:
            n["missing"] += 1
            print("missing", name)
        elif "refuse" in g:
            ok = f.get("refuse") or f.get("refusable")
            n["refused" if ok else "refused_wrongly"] += 1
            if not ok:
                print("refused wrongly", name, "|", f["formula"], "|", g["refuse"])
        elif f.get("refuse"):
            n["not_refused"] += 1
            print("not refused", name, "|", f["formula"])
        elif "refuse" not in w:
            for i, e in w.items():
                if i not in g:
                    n["missing"] += 1
                    print("missing", name, i)
                    continue
                v = norm(g[i], f["type"])
                if "open" in e:
                    if v == norm(e["likely"], f["type"]):
                        n["open_likely"] += 1
                    elif v in [norm(x, f["type"]) for x in e["readings"]]:
                        n["open_other"] += 1
                    else:
                        n["open_outside"] += 1
                        print("outside the readings", name, "|", case[i], "|", repr(g[i]), "not in", e["readings"], e["points"])
                elif v == norm(e.get("value"), f["type"]):
                    n["same"] += 1
                else:
                    n["different"] += 1
                    print("different", name, "|", case[i], "|", repr(g[i]), "expected", repr(e.get("value")),
                          "(error)" if e.get("error") else "", "|", f["formula"])
    print(n)
    return 1 if n["different"] or n["refused_wrongly"] or n["not_refused"] or n["missing"] or n["open_outside"] else 0


if __name__ == "__main__":
    sys.exit(main())
