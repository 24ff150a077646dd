"""Compares the tables of the Postgres sink with the simulator's truth, row by row and column by column.

Shares nothing with the exporter: schemas come from the service by GetSchema over grpcio, rows by
`psql` and COPY, the current state from the short fold in postgres_model.py.

    compare_postgres.py --truth FILE --url URL [--schema NAME] [--topic NAME ...] [--after REPLAY_ID]
        [--mode both|history|current] [--delete mark|remove] [--columns lower|snake|as_is]
        [--tables CURRENT,HISTORY] [--schemas FILE] [--nested] [--rebuilt]

Reads PUBSUB_ENDPOINT and the login's variables (what `pubsub-simulator --env` writes). Exits 0 and
prints one JSON line of counts when every row stands exactly once, as it should, where it should in
the stream; else prints the first differences and exits 1. Topics of one call must not share entities:
their order among each other is not known.
"""

import argparse
import hashlib
import json
import sys

import compare_truth
import postgres
import postgres_model as model


class Table:
    """The data columns that an entity's tables have to have."""

    def __init__(self):
        self.columns = {}
        self.salesforce = {}


class Truth:
    """The expected tables."""

    def __init__(self, arguments):
        self.arguments = arguments
        self.style = arguments.columns
        self.expected = compare_truth.Expected(
            compare_truth.schemas(arguments.schemas), arguments.nested)
        self.names, self.layouts = {}, {}
        # Columns that came from each compound field, by entity.
        self.parts = {}
        self.tables, self.rows = {}, {}
        # Entities with change events, which have a current state.
        self.changing = set()
        self.events = self.rejected = 0
        for offset, event in self.read():
            self.add_columns(event)
        required = {
            entity: [name for name in map(self.name, model.NEVER_EMPTY) if name in table.columns]
            for entity, table in self.tables.items()
        }
        self.fold = model.Fold(arguments.delete, required, arguments.rebuilt)
        places = {}
        for offset, event in self.read():
            place = places[event["topic"]] = places.get(event["topic"], -1) + 1
            self.events += 1
            cells, lists = self.cells(event)
            try:
                for key, line in self.history(event, cells, lists):
                    if key in self.rows:
                        sys.exit("the truth names a row twice: %s" % event)
                    self.rows[key] = (digest(line), place, offset)
                is_rejected = False
            except model.Rejected:
                self.rejected += 1
                is_rejected = True
            self.fold.apply(event, place, cells, lists["diffFields"], is_rejected)

    def read(self):
        """(offset, event) of the lines that were asked for."""
        with open(self.arguments.truth, "rb") as file:
            offset = 0
            held = bool(self.arguments.after)
            for line in file:
                event = json.loads(line)
                if not self.arguments.topic or event["topic"] in self.arguments.topic:
                    if not held:
                        yield offset, event
                    held = held and event["replay_id"] != self.arguments.after
                offset += len(line)

    def at(self, offset):
        with open(self.arguments.truth, "rb") as file:
            file.seek(offset)
            return json.loads(file.readline())

    def name(self, name):
        if name not in self.names:
            self.names[name] = model.sql_name(name, self.style)
        return self.names[name]

    def add_columns(self, event):
        key = (event["entity"], event["schema_id"])
        if key in self.layouts:
            return
        table = self.tables.setdefault(event["entity"], Table())
        if event["header"] is not None:
            self.changing.add(event["entity"])
        for name, doc, scalar, children in self.expected.schemas.leaves(event["schema_id"]).fields:
            leaves = [] if scalar is None else [(name, scalar, doc)]
            leaves += [(name + "_" + child, avro, "") for child, avro in children or []]
            if self.arguments.nested and children:
                leaves = [(name, "record", doc)]
            elif children is not None:
                parts = self.parts.setdefault(event["entity"], {}).setdefault(name, {})
                parts.update(dict.fromkeys(leaf[0] for leaf in leaves))
            for column, avro, doc in leaves:
                column, kind = self.name(column), model.pg_type(avro, doc)
                if table.columns.setdefault(column, kind) != kind:
                    sys.exit("the type of %s changes; this comparison does not know how" % column)
                table.salesforce[column] = doc
        self.layouts[key] = True

    def cells(self, event):
        cells, lists = self.expected.cells(event)
        if event["header"] and event["header"]["changeType"] == "UPDATE":
            self.complete(event, cells, lists)
        return (
            {self.name(name): model.clean(plain(cell[0])) for name, cell in cells.items()},
            {key: [self.name(name) for name in names] for key, names in lists.items()},
        )

    def complete(self, event, cells, lists):
        """Columns that an update empties in addition to those of its schema: columns that earlier schemas have
        made of a compound field which it names as a whole, and the other branch of a field that is a scalar or a
        record."""
        for name, _, scalar, children in self.expected.schemas.leaves(event["schema_id"]).fields:
            if children is None or self.arguments.nested:
                continue
            columns = self.parts[event["entity"]][name]
            own = [name + "_" + child for child, _ in children] + ([name] if scalar else [])
            others = [column for column in columns if column not in own]
            for key in ("changedFields", "nulledFields"):
                if name in event["header"][key]:
                    lists[key] += others
                    for column in others:
                        cells.setdefault(column, (None,))
            filled = [column for column in columns if cells.get(column, (None,))[0] is not None]
            if name in filled:
                for column in columns:
                    cells.setdefault(column, (None,))
            elif filled and name in columns:
                cells.setdefault(name, (None,))

    def history(self, event, cells, lists):
        """(key, line) of the rows of an event, without epoch and ordinal."""
        table = self.tables[event["entity"]]
        header = event["header"] or {}
        values = {
            "_topic": event["topic"],
            "_replay_id": event["replay_id"],
            "_event_id": event["event_id"],
            "_schema_id": event["schema_id"],
            "_kind": event["kind"],
            "_entity": event["entity"],
            "_change_type": header.get("changeType"),
            "_commit_timestamp": header.get("commitTimestamp"),
            "_commit_number": header.get("commitNumber"),
            "_commit_user": header.get("commitUser"),
            "_transaction_key": header.get("transactionKey"),
            "_sequence_number": header.get("sequenceNumber"),
            "_change_origin": header.get("changeOrigin"),
            "_changed_fields": lists["changedFields"] if header else None,
            "_nulled_fields": lists["nulledFields"] if header else None,
            "_diff_fields": lists["diffFields"] if header else None,
        }
        body = "\t".join(data_fields(table, cells))
        for record_id in header.get("recordIds") or [None]:
            values["_record_id"] = record_id
            head = [model.encode(values[name], kind) for name, kind in list(model.HISTORY.items())[2:]]
            yield tuple(head[:4]), "\t".join(head + [body])

    def current(self, key):
        record, source = self.fold.records[key], self.fold.records[key].source
        values = {
            "id": key[1],
            "_event_id": source.event_id,
            "_change_type": source.change,
            "_commit_timestamp": source.commit_timestamp,
            "_commit_user": source.commit_user,
            "_deleted_at": record.deleted,
            "_stale": record.stale,
            "_partial": record.partial,
            "_stale_fields": sorted(record.stale_fields) or None,
        }
        head = [model.encode(values[name], kind) for name, kind in list(model.CURRENT.items())[2:]]
        return head + data_fields(self.tables[key[0]], record.cells)


def plain(value):
    """The parts of a compound as JSON."""
    if not isinstance(value, dict):
        return value
    return {
        name: None if part is None else compare_truth.convert(part, avro, doc)
        for name, (part, avro, doc) in value.items()
    }


def data_fields(table, cells):
    return [
        model.encode(cells[name], kind) if name in cells else model.NULL
        for name, kind in table.columns.items()
    ]


def digest(line):
    return hashlib.blake2b(line.encode(), digest_size=12).digest()


class Comparison:
    def __init__(self, arguments):
        self.arguments = arguments
        self.problems = 0
        self.offsets = {}
        [[version]] = self.query("SHOW server_version_num")
        model.server_version = int(version)
        self.truth = Truth(arguments)

    def problem(self, text):
        self.problems += 1
        if self.problems <= 5:
            print(text[:2000], file=sys.stderr)

    def rows(self, table, columns):
        """Fields of all rows as `model.encode` writes them."""
        selected = ", ".join(model.expression(name, kind) for name, kind in columns.items())
        source = "%s.%s" % (model.quote(self.arguments.schema), model.quote(table))
        return postgres.copied(self.arguments.url, "(SELECT %s FROM %s)" % (selected, source))

    def query(self, sql):
        return postgres.query(self.arguments.url, sql)

    def check_place(self, what, topic, epoch, ordinal, place):
        """Ordinals count the events of a topic within an epoch, none left out."""
        offset = self.offsets.setdefault((topic, epoch), int(ordinal) - place)
        if int(ordinal) - place != offset:
            self.problem(
                "%s: epoch %s, ordinal %s, expected %d" % (what, epoch, ordinal, place + offset)
            )

    def run(self):
        counts = {"events": self.truth.events, "history": 0, "current": 0, "names": 0, "tombstones": 0}
        wanted = {}
        current, history = self.arguments.tables.split(",")
        for entity in self.truth.tables:
            name = model.sql_name(entity, self.arguments.columns)
            if self.arguments.mode != "current":
                wanted[history.replace("{entity}", name)] = (entity, "history")
            if self.arguments.mode != "history" and entity in self.truth.changing:
                wanted[current.replace("{entity}", name)] = (entity, "current")
        self.check_tables(wanted)
        if not self.problems:
            seen = set()
            for table, (entity, kind) in wanted.items():
                self.check_columns(table, entity, kind)
                if self.problems:
                    break
                if kind == "history":
                    counts["history"] += self.check_history(table, entity, seen)
            self.check_missing(seen)
            for table, (entity, kind) in wanted.items():
                if kind == "current" and not self.problems:
                    counts["current"] += self.check_current(table, entity)
                    counts["names"] += self.check_names(table, entity)
            if self.arguments.mode != "history":
                counts["tombstones"] = self.check_tombstones()
            counts["resync"] = self.check_resync()
        counts["rejected"] = self.truth.rejected
        counts["stale"] = sum(r.stale for r in self.truth.fold.records.values())
        counts["partial"] = sum(r.partial for r in self.truth.fold.records.values())
        counts["deleted"] = sum(bool(r.deleted) for r in self.truth.fold.records.values())
        counts["stale_fields"] = sum(bool(r.stale_fields) for r in self.truth.fold.records.values())
        counts["patched"] = self.truth.fold.patched
        counts["problems"] = self.problems
        print(json.dumps(counts))
        return 1 if self.problems else 0

    def check_tables(self, wanted):
        found = self.query(
            "SELECT relname FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace"
            " WHERE nspname = '%s' AND relkind IN ('r', 'p')" % self.arguments.schema
        )
        found = {row[0] for row in found if not row[0].startswith("_etl_")}
        for name in sorted(found ^ set(wanted)):
            self.problem("table %s: %s" % (name, "missing" if name in wanted else "not expected"))

    def check_columns(self, table, entity, kind):
        place = "'%s.%s'::regclass" % (model.quote(self.arguments.schema), model.quote(table))
        rows = self.query(
            "SELECT attname, format_type(atttypid, atttypmod), attnotnull,"
            " coalesce(col_description(attrelid, attnum), '') FROM pg_attribute"
            " WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped" % place
        )
        found = {row[0]: row[1] for row in rows}
        comments = {row[0]: row[3] for row in rows}
        known = self.truth.tables[entity]
        metadata = model.HISTORY if kind == "history" else model.CURRENT
        last = "_loaded_at" if kind == "history" else "_updated_at"
        expected = {**metadata, last: "timestamp with time zone", **known.columns}
        # Tables of an earlier version lack them until records are read.
        if "_system_modstamp" in found:
            self.check_reads(table, expected)
        for name in list(expected) + [name for name in found if name not in expected]:
            if expected.get(name) != found.get(name):
                self.problem(
                    "%s.%s: expected type %s, got %s" % (table, name, expected.get(name), found.get(name))
                )
        for name, salesforce in known.salesforce.items():
            if salesforce not in comments.get(name, ""):
                self.problem("%s.%s: no Salesforce type %s in its comment" % (table, name, salesforce))
        indexes = [row[0] for row in self.query(
            "SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = " + place)]
        ends = {"current": ["(id)"], "history": ["(_record_id, _event_id)", "(_event_id)"]}[kind]
        if not any(index.endswith(end) for index in indexes for end in ends):
            self.problem("%s: no index %s" % (table, " or ".join(ends)))

    def check_reads(self, table, expected):
        """Only events have come; no records were read."""
        expected.update(_system_modstamp="timestamp with time zone", _read_at="timestamp with time zone")
        place = "%s.%s" % (model.quote(self.arguments.schema), model.quote(table))
        condition = "_system_modstamp IS NOT NULL OR _read_at IS NOT NULL"
        [[count]] = self.query("SELECT count(*) FROM %s WHERE %s" % (place, condition))
        if count != "0":
            self.problem("%s: %s rows of records that were read" % (table, count))

    def check_history(self, table, entity, seen):
        count = 0
        columns = {**model.HISTORY, **self.truth.tables[entity].columns}
        for line in self.rows(table, columns):
            count += 1
            epoch, ordinal, rest = line.split("\t", 2)
            key = tuple(rest.split("\t", 4)[:4])
            what = "%s: event %s of record %s" % (table, key[2], key[3])
            if key not in self.truth.rows:
                self.problem(what + " is not in the truth")
                continue
            if key in seen:
                self.problem(what + " occurs twice")
            seen.add(key)
            wanted, place, offset = self.truth.rows[key]
            if digest(rest) != wanted:
                self.explain_history(what, list(columns)[2:], key, rest, offset)
            self.check_place(what, key[0], epoch, ordinal, place)
        return count

    def explain_history(self, what, names, key, line, offset):
        event = self.truth.at(offset)
        cells, lists = self.truth.cells(event)
        for wanted, text in self.truth.history(event, cells, lists):
            if wanted == key:
                self.explain(what, names, text.split("\t"), line.split("\t"))

    def explain(self, what, names, expected, found):
        for name, left, right in zip(names, expected, found):
            if left != right:
                self.problem("%s: %s: expected %s, got %s" % (what, name, left[:300], right[:300]))

    def check_missing(self, seen):
        if self.arguments.mode == "current":
            return
        missing = [key for key in self.truth.rows if key not in seen]
        for topic, _, event, record in missing[:5]:
            self.problem("%s: event %s of record %s is missing in the history" % (topic, event, record))
        self.problems += len(missing[5:])

    def check_current(self, table, entity):
        seen = set()
        columns = {**model.CURRENT, **self.truth.tables[entity].columns}
        for line in self.rows(table, columns):
            epoch, ordinal, *found = line.split("\t")
            what = "%s: record %s" % (table, found[0])
            record = self.truth.fold.records.get((entity, found[0]))
            seen.add(found[0])
            if record is None:
                self.problem(what + " should not be there")
                continue
            at = list(model.CURRENT).index("_stale_fields") - 2
            if found[at] != model.NULL:
                found[at] = model.encode(sorted(json.loads(found[at])), "text[]")
            expected = self.truth.current((entity, found[0]))
            if found != expected:
                self.explain(what, list(columns)[2:], expected, found)
            self.check_place(what, record.source.topic, epoch, ordinal, record.source.place)
        for name, record in self.truth.fold.records:
            if name == entity and record not in seen:
                self.problem("%s: record %s is missing" % (table, record))
        return len(seen)

    def check_names(self, table, entity):
        """Full names of people, which only the live view has."""
        names = ("Name", "Name_FirstName", "Name_MiddleName", "Name_LastName", "Name_Suffix")
        plain, first, middle, last, suffix = (self.truth.name(name) for name in names)
        if last not in self.truth.tables[entity].columns:
            return 0
        count = 0
        for line in self.rows(table + "_live", {"id": "text", plain: "text"}):
            record_id, found = line.split("\t")
            cells = self.truth.fold.records[entity, record_id].cells
            name = cells.get(plain)
            if name is None:
                parts = (cells.get(part) for part in (first, middle, last, suffix))
                name = " ".join(part for part in parts if part) or None
            count += name is not None
            if found != model.encode(name, "text"):
                self.problem("%s: the name of record %s is another" % (table, record_id))
        return count

    def check_sources(self, table, columns, expected):
        """Rows that name an event: (key, source) by the columns after epoch and ordinal."""
        left = dict(expected)
        for line in self.rows(table, columns):
            epoch, ordinal, *found = line.split("\t")
            key = tuple(found)
            what = "%s: %s" % (table, ", ".join(key))
            if key not in left:
                self.problem(what + (" occurs twice" if key in expected else " is not expected"))
                continue
            source = left.pop(key)
            self.check_place(what, source.topic, epoch, ordinal, source.place)
        for key in left:
            self.problem("%s: %s is missing" % (table, ", ".join(key)))
        return len(expected)

    def check_tombstones(self):
        if self.arguments.delete == "mark":
            return 0
        columns = {"epoch": "integer", "ordinal": "bigint", "entity": "text", "id": "text"}
        columns["commit_timestamp"] = moment = "timestamp with time zone"
        expected = {
            (*key, model.encode(source.commit_timestamp, moment)): source
            for key, source in self.truth.fold.tombstones.items()
        }
        return self.check_sources("_etl_tombstone", columns, expected)

    def check_resync(self):
        columns = {"epoch": "integer", "ordinal": "bigint", "entity": "text", "kind": "text"}
        columns.update({"event_id": "text", "record_id": "text", "replay_id": "text"})
        columns["commit_timestamp"] = moment = "timestamp with time zone"
        expected = {}
        for (entity, kind, event, record), source in self.truth.fold.resync.items():
            key = (entity, kind, event, model.encode(record, "text"), source.replay_id)
            expected[key + (model.encode(source.commit_timestamp, moment),)] = source
        return self.check_sources("_etl_resync", columns, expected)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--truth", required=True)
    parser.add_argument("--url", required=True)
    parser.add_argument("--schema", default="salesforce")
    parser.add_argument("--topic", action="append")
    parser.add_argument("--after", help="replay ID at which the export of a single topic began")
    parser.add_argument("--mode", default="both", choices=["both", "history", "current"])
    parser.add_argument("--delete", default="mark", choices=["mark", "remove"])
    parser.add_argument("--columns", default="lower", choices=["lower", "snake", "as_is"])
    parser.add_argument("--tables", default="{entity},{entity}_history", help="templates: current,history")
    parser.add_argument("--schemas", help="instead of the service's: a JSON file of texts by ID")
    parser.add_argument("--doubles", action="store_true", help="tables of before numbers and percentages were numeric")
    parser.add_argument("--rebuilt", action="store_true", help="records with dead letters were rebuilt")
    parser.add_argument("--nested", action="store_true", help="exported without the stage flatten")
    arguments = parser.parse_args()
    if arguments.doubles:
        model.decimal_kinds = ("Currency",)
    sys.exit(Comparison(arguments).run())


if __name__ == "__main__":
    main()
