"""Compares the current tables of the Postgres sink with the simulator's state file: every record, every column.

The state file says what the org holds (`pubsub-simulator serve --state`, or POST /control/state). Shares
nothing with the exporter: rows come by `psql` and COPY, types from the catalog.

    compare_state.py --state FILE --url URL [--schema NAME] [--object NAME ...] [--tables CURRENT]
        [--columns lower|snake|as_is] [--hidden OBJECT.FIELD ...] [--visible FILE]

- Every record that is not deleted stands exactly once, whole: not `_deleted_at`, `_stale` or `_partial`.
- A deleted record is marked by `_deleted_at` or absent. If its row is whole, its columns are compared too. A
  record that has left the recycle bin has no line in the state file, and its row has to be marked.
- Every column of the table is a field of the state file, and every field has a column. The exceptions are
  known: parts of old geolocations, and the field of the newest schema in tables that have never seen it.
  Columns without a field are listed; of few records some fields may have no value, then they have to be null.
- --hidden: fields that the user may not read. Events say what they say, so the column is right or null.
- --visible: a file of record IDs, one a line; the user may read no others. Of the others only events tell: the
  row may be partial or absent, and each of its columns is right or null.

Values are compared in one form: numbers as decimals, dates and times as epoch milliseconds (printed in UTC),
line ends as LF, since REST has LF where events have CR LF, and U+0000 as U+FFFD, as the sink stores it.
A long text that is named in `_stale_fields` is a difference unless its line ends or U+0000 prevent that a diff
can be applied to what REST gave; those are counted.

Prints one JSON line of counts. On differences it prints the first ten on standard error and exits 1.
"""

import argparse
import collections
import datetime
import decimal
import json
import re
import sys

import postgres
import postgres_model as model

# The sink's own columns that are compared; the others say where a row came from.
MARKS = ("_deleted_at", "_stale", "_partial", "_stale_fields")
# Columns of which the state file, written by the newest schema, has no field.
WITHOUT_FIELD = ("localdegrees__c_xyzencoded", "depot__c_xyzencoded")
# The field that second versions of schemas have.
NEWEST_FIELD = "segment__c"
# With so many records every field has a value somewhere.
ENOUGH = 500
NUMBERS = ("numeric", "double precision", "real", "integer", "bigint")
TIMES = ("timestamp with time zone", "time without time zone", "date")
ESCAPE = re.compile(r"\\(.)")
ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
LINE_END = re.compile(r"\r*\n")
SHOWN = 10

Difference = collections.namedtuple("Difference", "object record column expected found")


def read_state(path, objects, style):
    """Lines of the state file by object and ID, with `cells`: SQL name to value."""
    records = {name: {} for name in objects}
    names = {}

    def name(path):
        if path not in names:
            names[path] = model.sql_name("_".join(path), style)
        return names[path]

    with open(path, encoding="utf-8") as file:
        for line in file:
            line = json.loads(line)
            if line["entity"] not in records:
                continue
            if line["id"] in records[line["entity"]]:
                sys.exit("the state file names %s twice" % line["id"])
            cells = line["cells"] = {}
            for field, value in line.pop("fields").items():
                if isinstance(value, dict):
                    cells.update((name((field, part)), inner) for part, inner in value.items())
                else:
                    cells[name((field,))] = value
            records[line["entity"]][line["id"]] = line
    return records


def expression(name, kind):
    """SQL that prints a column in the form of the state file, exactly."""
    column = model.quote(name)
    if kind == "date":
        return "(%s - date '1970-01-01')::bigint * 86400000" % column
    if kind in TIMES:
        return "round((extract(epoch from %s) * 1000)::numeric, 3)" % column
    if kind == "text[]":
        return "array_to_json(%s)" % column
    return column


def found_value(text, kind):
    """The value of a field of COPY."""
    if text == "\\N":
        return None
    if "\\" in text:
        text = ESCAPE.sub(lambda match: ESCAPES.get(match[1], match[1]), text)
    if kind in NUMBERS or kind in TIMES:
        return decimal.Decimal(text)
    if kind == "boolean":
        return text == "t"
    if kind == "text[]":
        text = ";".join(json.loads(text))
    return LINE_END.sub("\n", text)


def expected_value(value, kind):
    """The form of a value of the state file; a value that does not fit the column's type is unchanged."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, (int, float)):
        return decimal.Decimal(repr(value)) if kind in NUMBERS or kind in TIMES else value
    return LINE_END.sub("\n", value).replace("\0", "\ufffd")


def shown(value, kind):
    """A value for people."""
    if value is None:
        return "null"
    if kind not in TIMES or not isinstance(value, decimal.Decimal):
        return str(value)[:200]
    moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(milliseconds=float(value))
    form = {"date": "%Y-%m-%d", "time without time zone": "%H:%M:%S.%f"}
    return moment.strftime(form.get(kind, "%Y-%m-%dT%H:%M:%S.%fZ"))


class Comparison:
    """Of all objects.

    - hidden: (object, field) that the user may not read.
    - visible: IDs of the records that the user may read; None: all.
    - is_repaired: events have hidden what changed, and records were read again: of a record that was deleted
      meanwhile, what it last was is not known, and one that left no trace is stale, not deleted."""

    def __init__(self, url, state, objects, schema="salesforce", tables="{entity}", style="lower",
                 hidden=(), visible=None, is_repaired=False):
        self.url, self.schema, self.tables, self.style = url, schema, tables, style
        self.records = read_state(state, objects, style)
        self.hidden = {(entity, model.sql_name(field, style)) for entity, field in hidden}
        self.visible, self.is_repaired = visible, is_repaired
        self.differences = []
        self.difference_count = 0
        self.counts = collections.Counter()
        self.without_field = {}

    def run(self):
        for entity in self.records:
            self.compare(entity)
        return self.difference_count == 0

    def result(self):
        result = dict(self.counts, differences=self.difference_count)
        if self.without_field:
            result["columns_without_field"] = self.without_field
        return result

    def print_differences(self, to=sys.stderr):
        for difference in self.differences:
            print("%s %s, column %s: expected %s, found %s" % difference, file=to)
        if self.difference_count > len(self.differences):
            print("%d more differences" % (self.difference_count - len(self.differences)), file=to)

    def differ(self, *difference):
        self.difference_count += 1
        if len(self.differences) < SHOWN:
            self.differences.append(Difference(*difference))

    # Tables

    def compare(self, entity):
        table = self.tables.replace("{entity}", model.sql_name(entity, self.style))
        kinds = self.kinds(table)
        if not kinds:
            self.differ(entity, "-", "-", "a table " + table, "none")
            return
        data = {name: kind for name, kind in kinds.items() if name != "id" and not name.startswith("_")}
        unknown = self.check_columns(entity, data)
        seen = set()
        for record, marks, values in self.rows(table, data):
            self.counts["rows"] += 1
            if record in seen:
                self.differ(entity, record, "id", "once", "again")
            seen.add(record)
            self.compare_row(entity, record, marks, values, data, unknown)
        for record, line in self.records[entity].items():
            if record not in seen and not line["is_deleted"] and self.is_awaited(entity, record):
                self.differ(entity, record, "-", "a row", "none")

    def kinds(self, table):
        """Types of a table's columns, by name; empty without such a table."""
        rows = postgres.query(
            self.url,
            "SELECT attname, format_type(atttypid, NULL) FROM pg_attribute JOIN pg_class c ON c.oid = attrelid"
            " JOIN pg_namespace n ON n.oid = relnamespace WHERE nspname = '%s' AND relname = '%s'"
            " AND attnum > 0 AND NOT attisdropped ORDER BY attnum" % (self.schema, table),
        )
        return dict(rows)

    def check_columns(self, entity, data):
        """The columns that the state file lacks, which have to be null or known."""
        fields = {name for line in self.records[entity].values() for name in line["cells"]}
        for name in sorted(fields - set(data)):
            if name == NEWEST_FIELD:
                self.counts["fields_without_column"] += 1
            elif (entity, name) not in self.hidden:
                self.differ(entity, "-", name, "a column", "none")
        without = [name for name in data if name not in fields]
        if without:
            self.without_field[entity] = without
        for name in without:
            if name not in WITHOUT_FIELD and len(self.records[entity]) >= ENOUGH:
                self.differ(entity, "-", name, "no column", "a column without a field")
        return {name for name in without if name in WITHOUT_FIELD}

    def rows(self, table, data):
        """(ID, marks, values as COPY writes them) of every row."""
        marks = ["id", "_deleted_at", "_stale", "_partial", "array_to_json(_stale_fields)"]
        selected = marks + [expression(name, kind) for name, kind in data.items()]
        source = "%s.%s" % (model.quote(self.schema), model.quote(table))
        for line in postgres.copied(self.url, "(SELECT %s FROM %s)" % (", ".join(selected), source)):
            record, *rest = line.split("\t")
            kinds = ("timestamp", "boolean", "boolean", "text")
            found = [found_value(text, kind) for text, kind in zip(rest, kinds)]
            found[3] = json.loads(found[3]) if found[3] else []
            yield record, dict(zip(MARKS, found)), rest[4:]

    # Rows

    def is_awaited(self, entity, record):
        """Requires a row."""
        return self.may_read(record)

    def may_read(self, record):
        return self.visible is None or record in self.visible

    def compare_row(self, entity, record, marks, values, data, unknown):
        line = self.records[entity].get(record)
        if line is None or line["is_deleted"]:
            if line is None and self.is_repaired and marks["_stale"]:
                self.counts["without_trace"] += 1
                return
            if marks["_deleted_at"] is None:
                expected = "a time" if line else "a time, since the org has no such record"
                self.differ(entity, record, "_deleted_at", expected, "null")
            self.counts["deleted"] += 1
            if line is None or marks["_partial"] or marks["_stale"] or self.is_repaired:
                return
        elif marks["_deleted_at"] is not None:
            self.differ(entity, record, "_deleted_at", "null", marks["_deleted_at"])
        is_told = self.may_read(record)
        if not is_told:
            self.counts["not_visible"] += 1
        if self.is_repaired and marks["_stale"] and not is_told:
            # What a gap event hid nobody could tell: marked, and whatever it holds.
            self.counts["not_visible_stale"] += 1
            return
        # A row is whole when every field of it was read.
        has_hidden = any(name == entity for name, _ in self.hidden)
        for mark in ("_stale", "_partial"):
            if marks[mark] and (mark == "_stale" or is_told and not has_hidden):
                self.differ(entity, record, mark, "false", "true")
        self.counts["compared"] += 1
        self.compare_cells(entity, line, marks, values, data, unknown)

    def compare_cells(self, entity, line, marks, values, data, unknown):
        cells, record = line["cells"], line["id"]
        is_told = self.may_read(record)
        may_lack = marks["_partial"] and not is_told
        for (name, kind), text in zip(data.items(), values):
            if name in unknown:
                continue
            self.counts["cells"] += 1
            value = cells.get(name)
            if value is None and text == "\\N":
                continue
            expected, found = expected_value(value, kind), found_value(text, kind)
            is_hidden = (entity, name) in self.hidden
            if name in marks["_stale_fields"]:
                self.counts["stale_fields"] += 1
                if is_told and not is_hidden:
                    self.check_stale_field(entity, record, name, value)
            elif found is None and (may_lack or is_hidden):
                self.counts["not_readable"] += 1
            elif expected != found:
                self.differ(entity, record, name, shown(expected, kind), shown(found, kind))

    def check_stale_field(self, entity, record, name, value):
        """Diffs apply to texts in the form of events."""
        if not isinstance(value, str) or not ("\r" in value or "\0" in value):
            self.differ(entity, record, "_stale_fields", "not " + name, name)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--state", required=True)
    parser.add_argument("--url", required=True)
    parser.add_argument("--schema", default="salesforce")
    parser.add_argument("--object", action="append")
    parser.add_argument("--tables", default="{entity}", help="template of the current tables' names")
    parser.add_argument("--columns", default="lower", choices=["lower", "snake", "as_is"])
    parser.add_argument("--hidden", action="append", default=[])
    parser.add_argument("--visible")
    arguments = parser.parse_args()
    visible = None
    if arguments.visible:
        with open(arguments.visible, encoding="ascii") as file:
            visible = set(file.read().split())
    comparison = Comparison(
        arguments.url, arguments.state, arguments.object or ["Opportunity", "Account", "Contact"],
        arguments.schema, arguments.tables, arguments.columns,
        [tuple(name.split(".")) for name in arguments.hidden], visible,
    )
    is_equal = comparison.run()
    comparison.print_differences()
    print(json.dumps(comparison.result()))
    sys.exit(0 if is_equal else 1)


if __name__ == "__main__":
    main()
