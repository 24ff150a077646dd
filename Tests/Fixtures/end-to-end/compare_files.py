"""Compares the state that exported files give with the simulator's state file: every record, every column.

    compare_files.py --state FILE --files DIRECTORY [--object NAME ...] [--hidden OBJECT.FIELD ...]

The state is what the view "…_now" of `_views.sql` has in DuckDB, for each object
in turn; then the rules of compare_state.py. Besides:

- every file is whole (`zstd -t`) and as the manifest says, none is in progress, and the manifest has no other;
- of one request of a snapshot, no record has two lines.

Prints one JSON line of counts. On differences it prints the first ten on standard error and exits 1.
"""

import argparse
import collections
import hashlib
import json
import os
import re
import subprocess
import sys

import duckdb

import compare_state
import harness

# Types of `_columns.json`, as the comparison calls them.
KINDS = {
    "boolean": "boolean", "int": "integer", "long": "bigint", "float": "real", "double": "double precision",
    "date": "date", "timestamp-millis": "timestamp with time zone",
    "time-millis": "time without time zone", "array<string>": "text[]",
}
PASS = re.compile(r"-s[a-r]?(\d+)-r[a-r]?(\d+)-\d+[.]ndjson[.]zst$")
FILES_PAGE = harness.HERE + "/../../../Sources/Program/PubSubETL/PubSubETL.docc/Files.md"


def queries_of_the_page():
    """The SQL of the page about files, in its order."""
    with open(FILES_PAGE, encoding="utf-8") as file:
        return re.findall(r"```sql\n(.*?)```", file.read(), re.S)


def connection_to(output):
    """A connection that knows the views of a directory."""
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    with open(output + "/_views.sql", encoding="utf-8") as file:
        connection.execute(file.read())
    return connection


def lines_of(path):
    with subprocess.Popen(["zstd", "-dc", path], stdout=subprocess.PIPE) as process:
        yield from map(json.loads, process.stdout)


class Folded(compare_state.Comparison):
    """The state by the files in a directory."""

    def __init__(self, output, state, objects, **options):
        super().__init__("", state, objects, **options)
        self.output = output
        self.connection = connection_to(output)

    def kinds(self, table):
        """All columns except those that identify the record and the source of its state."""
        (entity,) = [name for name in self.records if name.lower() == table]
        columns = harness.read_json("%s/%s/_columns.json" % (self.output, entity))["columns"]
        self.names = {c["name"].lower(): c["name"] for c in columns if c["name"][0] != "_"}
        return {c["name"].lower(): KINDS.get(c["type"], "text") for c in columns if c["name"][0] != "_"}

    def rows(self, table, data):
        selected = ["_record_id", "_stale", "_partial"]
        for name, kind in data.items():
            column = '"%s"' % self.names[name]
            if name == "name" and "name_lastname" in data:
                # The view puts the names of people together.
                column = 'CASE WHEN "%s" IS NULL THEN %s END' % (self.names["name_lastname"], column)
            if kind == "text[]":
                column = "to_json(%s)" % column
            elif kind in compare_state.TIMES:
                column = "epoch_ms(%s)" % column
            selected.append(column)
        rows = self.connection.execute("SELECT %s FROM %s_now" % (", ".join(selected), table))
        while batch := rows.fetchmany(1000):
            for record, stale, partial, *values in batch:
                marks = {"_deleted_at": None, "_stale": stale, "_partial": partial, "_stale_fields": []}
                yield record, marks, [self.text(value) for value in values]

    @staticmethod
    def text(value):
        """As COPY writes it."""
        if value is None:
            return "\\N"
        if isinstance(value, bool):
            return "t" if value else "f"
        if isinstance(value, str):
            return value.replace("\\", "\\\\").replace("\0", "\ufffd")
        return repr(value)

    def check_files(self):
        """Exits at the first file that is not as the manifest says, or line that is there twice."""
        with open(self.output + "/_manifest.ndjson", encoding="utf-8") as file:
            manifest = {line["name"]: line for line in map(json.loads, file)}
        paths = harness.data_files(self.output)
        names = {os.path.relpath(path, self.output) for path in paths}
        if names != set(manifest):
            sys.exit("files and manifest differ: %s" % sorted(names ^ set(manifest))[:5])
        parts = [name for _, _, names in os.walk(self.output) for name in names if name.endswith(".part")]
        if parts:
            sys.exit("left in progress: %s" % parts)
        if subprocess.run(["zstd", "-tq", *paths]).returncode:
            sys.exit("zstd -t has failed")
        seen = collections.defaultdict(set)
        for path in sorted(paths):
            line = manifest[os.path.relpath(path, self.output)]
            with open(path, "rb") as file:
                if hashlib.sha256(file.read()).hexdigest() != line["sha256"]:
                    sys.exit("%s is not what the manifest says" % path)
            self.counts["files"] += 1
            found = PASS.search(path)
            if (found is None) != ("snapshot" not in line):
                sys.exit("%s: name and manifest differ about what it is" % path)
            if not found:
                continue
            self.counts["snapshot_files"] += 1
            count = 0
            for row in lines_of(path):
                count += 1
                if row["_kind"] != "snapshot" or row["_entity"] != line["entity"]:
                    sys.exit("%s has another line: %s" % (path, row["_event_id"]))
                key = (line["entity"],) + found.groups()
                if row["_record_id"] in seen[key]:
                    sys.exit("%s: %s is there twice" % (path, row["_event_id"]))
                seen[key].add(row["_record_id"])
            if count != line["lines"]:
                sys.exit("%s has %d lines, the manifest says %d" % (path, count, line["lines"]))
            self.counts["snapshot_lines"] += count


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--state", required=True)
    parser.add_argument("--files", required=True)
    parser.add_argument("--object", action="append")
    parser.add_argument("--hidden", action="append", default=[])
    arguments = parser.parse_args()
    comparison = Folded(
        arguments.files, arguments.state, arguments.object or ["Opportunity", "Account", "Contact"],
        hidden=[tuple(name.split(".")) for name in arguments.hidden])
    comparison.check_files()
    is_equal = comparison.run()
    comparison.print_differences()
    print(json.dumps(comparison.result()))
    sys.exit(0 if is_equal else 1)


if __name__ == "__main__":
    main()
