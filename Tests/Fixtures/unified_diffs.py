"""Prints random texts and their unified diffs without context, as the service sends them.

A line per case: previous value, diff, new value, each in hexadecimal.
"""

import difflib
import hashlib
import random
import sys

WORDS = ["alpha", "beta", "-gamma", "+delta", "@@ -1 +1 @@", "", " ", "\\ x", "größe", "\u2028", "--- ", "tab\t"]


def lines(rng):
    return [" ".join(rng.choice(WORDS) for _ in range(rng.randint(0, 4))) for _ in range(rng.randint(1, 30))]


def changed(rng, old):
    new = list(old)
    for _ in range(rng.randint(0, 5)):
        where = rng.randint(0, len(new))
        kind = rng.choice("ird")
        if kind == "i":
            new[where:where] = lines(rng)[:2]
        elif where < len(new) and (kind == "r" or len(new) > 1):
            new[where : where + 1] = ["changed %d" % rng.randint(0, 9)] if kind == "r" else []
    return new


def main():
    rng = random.Random(7)
    for _ in range(int(sys.argv[1])):
        old = lines(rng)
        new = changed(rng, old)
        end = rng.choice(["\n", "\r\n"])
        old_text, new_text = end.join(old), rng.choice([end, end, "\n"]).join(new)
        digest = hashlib.sha256(new_text.encode()).hexdigest()
        body = list(difflib.unified_diff(old, new, n=0, lineterm=""))[2:]
        diff = "\n".join(["--- ", "+++ " + digest] + body)
        print(*(text.encode().hex() for text in (old_text, diff, new_text)))


main()
