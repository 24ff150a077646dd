"""Writes random CSV texts and the rows that Python's csv module reads from them.

csv_tables.py tables SEED COUNT FILE   tables written by csv.writer, which must come out again
csv_tables.py texts SEED COUNT FILE    random texts, most of them no CSV

FILE gets, per text: its bytes, then the rows as JSON with each value's bytes in hexadecimal, or
null where csv.reader refuses the text. Both parts are preceded by their length, four bytes, big-endian.
"""

import csv
import io
import json
import random
import struct
import sys

PIECES = [
    '"', '""', ',', '\n', '\r\n', '\r', '\0', ' ', '\t', ';', "'", '\\', '\ufeff', 'ä', '€', '😀',
    '\u2028', '\x0b', '\x85', 'NA', 'null', '1.25E7', 'a', 'line', 'x' * 70, 'y' * 300,
]
SHORT = ['"', '"', ',', '\n', '\r\n', 'a', '\0', 'é']


def value(random):
    if random.random() < 0.2:
        return ''
    return ''.join(random.choice(PIECES) for _ in range(random.choice([1, 2, 3, 5, 12])))


def table(random):
    columns = random.choice([1, 1, 2, 3, 5, 20])
    rows = [[value(random) for _ in range(columns)] for _ in range(random.choice([1, 2, 4, 12]))]
    if rows[0][0].startswith('\ufeff'):
        rows[0][0] = 'Id'
    text = io.StringIO(newline='')
    ending = random.choice(['\n', '\r\n'])
    quoting = random.choice([csv.QUOTE_ALL, csv.QUOTE_MINIMAL])
    if any('\r' in value for row in rows for value in row):
        # Python leaves a carriage return without quotes where rows end with LF (before 3.13).
        quoting = csv.QUOTE_ALL
    csv.writer(text, quoting=quoting, lineterminator=ending).writerows(rows)
    text = text.getvalue()
    if random.random() < 0.3:
        text = text[:-len(ending)]
    if random.random() < 0.2:
        text = '\ufeff' + text
    return text, rows


def text(random):
    pieces = random.choice([SHORT, PIECES])
    text = ''.join(random.choice(pieces) for _ in range(random.randrange(14)))
    try:
        plain = text.removeprefix('\ufeff')
        # A blank line has one value, which is empty.
        rows = [row or [''] for row in csv.reader(io.StringIO(plain, newline=''), strict=True)]
    except csv.Error:
        rows = None
    return text, rows


def main(kind, seed, count, path):
    generator = random.Random(int(seed))
    make = {"tables": table, "texts": text}[kind]
    with open(path, "wb") as file:
        for _ in range(int(count)):
            content, rows = make(generator)
            if rows is not None:
                rows = [[value.encode().hex() for value in row] for row in rows]
            for part in (content.encode(), json.dumps(rows).encode()):
                file.write(struct.pack(">I", len(part)) + part)


main(*sys.argv[1:])
