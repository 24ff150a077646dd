"""Records are erased from files, tables and dead letters, with a SIGKILL at random moments, and stay erased.

    erase_proof.py --programs DIR --work DIR [--kills N] [--seed S]

A pipeline with a files sink, whose files stay open between runs, and a postgres sink reads the records of an org
and takes events; some become dead letters. Some records are erased, again and again from a copy of everything,
each time killed at another random moment; then the command is repeated, or a run comes first. After that, no text
of the records is in any file (decompressed), table (pg_dump), payload of a dead letter, or in the state directory,
and every line and row of other records is as before.

Then later events of the records, a snapshot, a rebuild, and a retry of the letters bring nothing back, and `verify`
finds no difference. A second pipeline, from which nothing is erased, has the same rows of all other records.
Prints one JSON line; exits 1 at the first thing that is wrong.
"""

import base64
import collections
import fcntl
import glob
import json
import os
import random
import shutil
import subprocess
import sys
import time

import duckdb
import zstandard

import compare_state
import harness
import postgres

TOPICS = ["/data/ContactChangeEvent", "/data/OpportunityChangeEvent"]
ENTITY = "Contact"
DATABASE, ORIGINAL = "warehouse", "warehouse_original"
# A refused event becomes a dead letter.
CONSTRAINT = "ADD CONSTRAINT refuses CHECK (_kind = 'snapshot' OR _ordinal %% %d <> %d) NOT VALID"


def texts_of(value):
    """The texts in a value that a search finds whatever the notation."""
    if isinstance(value, dict):
        for inner in value.values():
            yield from texts_of(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from texts_of(inner)
    elif isinstance(value, str) and len(value) >= 8 and value.isascii() and value.isprintable():
        if '"' not in value and "\\" not in value:
            yield value


def content(path):
    with open(path, "rb") as file:
        if not path.endswith((".zst", ".part")):
            return file.read()
        # A file in progress has no end.
        text, reader = b"", zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
        while True:
            try:
                piece = reader.read(1 << 20)
            except zstandard.ZstdError:
                return text
            if not piece:
                return text
            text += piece


class Proof:
    def __init__(self, arguments):
        self.arguments = arguments
        self.chance = random.Random(arguments.seed)
        self.work = arguments.work
        self.figures = collections.Counter()

    # What there is

    def pipeline(self, name):
        document = harness.pipeline(name, TOPICS)
        document["source"]["snapshot"] = {"mode": "initial", "visibility_wait": "1s"}
        document["sinks"] = [
            {"type": "files", "name": "files", "directory": name + "/out", "rotate": {"min_bytes": "8MiB"}},
            {"type": "postgres", "name": "warehouse", "url": "${DATABASE_URL}", "schema": "crm"},
        ]
        document["dead_letter"] = {"directory": name + "/dead", "max": 100000}
        document["checkpoint"]["directory"] = name + "/state"
        document["commit"] = {"max_events": 50}
        document["repair"] = {"mode": "auto"}
        document["run"]["quiet"] = "2s"
        harness.write_json("%s/%s.json" % (self.work, name), document)
        os.makedirs("%s/%s" % (self.work, name))
        return harness.Exporter(
            self.arguments.programs + "/pubsub-etl", "%s/%s.json" % (self.work, name),
            dict(self.simulator.environment, DATABASE_URL=self.cluster.url(
                DATABASE if name == "crm" else name)))

    def url(self):
        return self.cluster.url(DATABASE)

    def both(self, *words, codes=(0,)):
        for exporter in (self.exporter, self.control):
            exporter.call(*words, codes=codes)

    def events(self, count):
        """Published in several runs, so that there are many files and some are open."""
        for _ in range(3):
            self.simulator.publish(count // 3, *TOPICS)
            self.both("run")

    # What is looked for

    def values(self):
        """Texts of the victims that no other record has."""
        own, others = set(), []
        for event in self.simulator.published(TOPICS):
            mine = set(event["header"]["recordIds"]) <= set(self.victims)
            if mine:
                own.update(texts_of(event["fields"]))
            else:
                others.append(json.dumps(event["fields"], ensure_ascii=False))
        path = self.work + "/now.ndjson"
        self.simulator.write_state(path)
        for line in harness.read_lines(path) + self.state:
            if line["id"] in self.victims:
                own.update(texts_of(line["fields"]))
            else:
                others.append(json.dumps(line["fields"], ensure_ascii=False))
        # A text may be a part of another record's.
        others = "\n".join(others)
        found = {value for value in own if value not in others and not value.startswith("00")}
        if len(found) < 3 * len(self.victims):
            sys.exit("only %d texts to look for" % len(found))
        return sorted(found)

    def remains(self, values):
        """Where a value is still to be found."""
        needles = [value.encode() for value in values]
        found = []

        def search(place, text):
            value = next((value for value in needles if value in text), None)
            if value:
                found.append((place, value.decode()))

        for directory, _, names in os.walk(self.work + "/crm"):
            for name in names:
                path = os.path.join(directory, name)
                text = content(path)
                search(path, text)
                if "/dead/" in path and ".zst" in name:
                    for line in text.splitlines():
                        payload = json.loads(line)["payload"] if line.endswith(b"}") else None
                        search(path + " payload", base64.b64decode(payload or ""))
        dump = subprocess.run(
            [postgres.programs() + "/pg_dump", "--data-only", self.url()], check=True, stdout=subprocess.PIPE)
        search("pg_dump", dump.stdout)
        return found

    def others(self):
        """All lines and rows of other records, and the letters that wait."""
        lines = collections.Counter()
        for path in glob.glob(self.work + "/crm/out/*/*/*.ndjson.zst"):
            for line in content(path).splitlines():
                if json.loads(line).get("_record_id") not in self.victims:
                    lines[line] += 1
        names = ", ".join("'%s'" % name for name in self.victims)
        rows = {}
        for table in ("contact", "contact_history", "opportunity", "opportunity_history"):
            key = "_record_id" if table.endswith("history") else "id"
            rows[table] = sorted(postgres.copied(
                self.url(), "(SELECT * FROM crm.%s WHERE %s NOT IN (%s))" % (table, key, names)))
        return lines, rows

    def views(self, values):
        """No view shows a value either."""
        connection = duckdb.connect()
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute(harness.read_text(self.work + "/crm/out/_views.sql"))
        names = [name for name, in connection.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall()]
        for name in names:
            rows = repr(connection.execute('SELECT COLUMNS(*)::VARCHAR FROM "%s"' % name).fetchall())
            if any(value in rows for value in values):
                sys.exit("DuckDB's view %s shows an erased value" % name)
        for view in ("contact_live", "contact_changes", "contact_versions", "contact_at(now())"):
            rows = "\n".join(postgres.copied(self.url(), "(SELECT * FROM crm.%s)" % view))
            if any(value in rows for value in values):
                sys.exit("%s shows an erased value" % view)
        return len(names)

    # Erasing

    def words(self):
        return ["erase", "--entity", ENTITY, *(word for name in self.victims for word in ("--record", name)), "--yes"]

    def keep(self):
        shutil.copytree(self.work + "/crm", self.work + "/original", symlinks=True)
        postgres.query(self.cluster.url(), "CREATE DATABASE %s TEMPLATE %s" % (ORIGINAL, DATABASE))

    def restore(self):
        shutil.rmtree(self.work + "/crm")
        shutil.copytree(self.work + "/original", self.work + "/crm", symlinks=True)
        postgres.query(self.cluster.url(), "DROP DATABASE %s WITH (FORCE)" % DATABASE)
        postgres.query(self.cluster.url(), "CREATE DATABASE %s TEMPLATE %s" % (DATABASE, ORIGINAL))

    def check(self, moment, values, expected):
        found = self.remains(values)
        if found:
            sys.exit("%s: still there: %s" % (moment, found[:3]))
        lines, rows = self.others()
        if lines != expected[0]:
            sys.exit("%s: other lines: %d missing, %d more" % (
                moment, (expected[0] - lines).total(), (lines - expected[0]).total()))
        for table, old in expected[1].items():
            if rows[table] != old:
                sys.exit("%s: other rows of %s differ: %s" % (
                    moment, table, sorted(set(old) ^ set(rows[table]))[:2]))
        checked = self.exporter.call("verify", "--checksums", codes=None)
        if checked.returncode:
            sys.exit("%s: verify --checksums: %s%s" % (moment, checked.stdout, checked.stderr))

    def kill(self, number, longest, values, expected):
        self.restore()
        moment = "kill %d" % number
        process = self.exporter.spawn(*self.words())
        if not harness.ends_within(process, self.chance.uniform(0, longest)):
            process.kill()
            process.wait()
            self.figures["kills"] += 1
        elif process.returncode:
            self.exporter.fail(moment, "erase ended with", process.returncode)
        done = not self.remains(values)
        self.figures["killed before the end"] += not done
        self.figures["killed in the exchange"] += bool(glob.glob(self.work + "/crm/*/.crm*.compact.json"))
        if number % 2:
            # Its position is the newest, so nothing comes; repairs would change rows of others.
            self.exporter.call("run", "--set", "repair.mode=off")
            self.figures["runs in between"] += 1
        if number % 3 == 0:
            process = self.exporter.spawn(*self.words())
            if not harness.ends_within(process, self.chance.uniform(0, longest)):
                process.kill()
                process.wait()
                self.figures["second kills"] += 1
        self.exporter.call(*self.words())
        self.check(moment, values, expected)

    def is_locked(self):
        with open(self.work + "/crm/state/crm.lock", "rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False

    def refusals(self):
        """Mistakes change nothing and say what is wrong."""
        for code, words, text in [
            (64, ["--entity", ENTITY, "--record", "003", "--yes"], "15 or 18 characters"),
            (64, ["--entity", "Contcat", "--record", self.victims[0], "--yes"], "has no object 'Contcat'; it has:"),
            (64, ["--entity", "Opportunity", "--record", self.victims[0], "--yes"], "begin with 006"),
            (64, ["--entity", ENTITY, "--record", self.victims[0]], "add --yes"),
        ]:
            done = self.exporter.call("erase", *words, codes=(code,))
            if text not in done.stderr:
                self.exporter.fail(words, "does not say", repr(text), done.stderr)
        process = self.exporter.spawn("run", "--follow")
        self.exporter.wait(process, self.is_locked, "the lock of the run")
        self.exporter.call(*self.words(), codes=(75,))
        process.terminate()
        process.wait()
        away = dict(self.exporter.environment, DATABASE_URL="postgresql://postgres@127.0.0.1:1/nowhere")
        done = self.exporter.call(*self.words(), codes=(69,), env=away)
        if "sink 'warehouse'" not in done.stderr:
            self.exporter.fail("no sink in", done.stderr)

    # The proof

    def choose(self):
        """A record with a dead letter, one with many events, and one that was only read."""
        path = self.work + "/state.ndjson"
        self.simulator.write_state(path)
        self.state = harness.read_lines(path)
        events = collections.Counter(
            name for event in self.simulator.published([TOPICS[0]]) for name in event["header"]["recordIds"])
        letters = json.loads(self.exporter.call("dead-letters", "list", "--json").stdout)["letters"]
        waiting = {letter["event_id"] for letter in letters if letter["topic"] == TOPICS[0]}
        with_letter = [
            name for event in self.simulator.published([TOPICS[0]]) if event["event_id"] in waiting
            for name in event["header"]["recordIds"]]
        ids = [line["id"] for line in self.state if line["entity"] == ENTITY]
        quiet = [name for name in ids if not events[name]]
        self.victims = [with_letter[0]]
        self.victims.append(next(name for name, _ in events.most_common() if name not in self.victims))
        self.victims += quiet[:1]
        self.figures["events of the erased"] = sum(events[name] for name in self.victims)

    def main(self):
        with harness.Simulator(
            self.arguments.programs, self.work, "--events", "20", "--seed", str(self.arguments.seed),
            "--topics", ",".join(TOPICS), "--existing", "40", "--gaps", "0", "--overflows", "0", "--wildcards",
            "0", "--silent", "0", "--merged", "0", "--exotic", "0", "--extremes", "0",
        ) as self.simulator, postgres.Cluster() as self.cluster:
            for name in (DATABASE, "control"):
                self.cluster.make_database(name)
            self.exporter, self.control = self.pipeline("crm"), self.pipeline("control")
            self.both("run")
            for name in (DATABASE, "control"):
                postgres.query(
                    self.cluster.url(name), "ALTER TABLE crm.contact_history " + CONSTRAINT % (7, 3))
            self.events(150)
            self.choose()
            values = self.values()
            expected = self.others()
            if not glob.glob(self.work + "/crm/out/*/*/.*.part"):
                sys.exit("no file is open")
            if not self.remains(values):
                sys.exit("the values are nowhere")
            # Lines of open files are in finished ones afterwards, so they count.
            self.keep()
            self.refusals()
            self.restore()
            planned = json.loads(self.exporter.call(*self.words(), "--dry-run", "--json").stdout)
            began = time.monotonic()
            done = json.loads(self.exporter.call(*self.words(), "--json").stdout)
            longest = time.monotonic() - began
            counts = [
                [sum(part["count"] for part in sink["cleared"]) for sink in report["sinks"]]
                + [report["dead_letters"]["cleared"]] for report in (planned, done)]
            if counts[0] != counts[1] or not all(counts[0]):
                sys.exit("--dry-run says %s, and erase %s" % tuple(counts))
            self.figures["lines"], self.figures["rows"], self.figures["payloads"] = counts[1]
            expected = self.others()[0], expected[1]
            self.check("erase", values, expected)
            for number in range(self.arguments.kills):
                self.kill(number, longest, values, expected)
            if "nothing to clear" not in self.exporter.call(*self.words()).stdout:
                sys.exit("the second time is not idle")
            self.later()
        return self.figures

    def later(self):
        """Whatever comes later brings nothing back."""
        before = {event["event_id"] for event in self.simulator.published(TOPICS)}
        for _ in range(3):
            self.events(150)
        later = [
            event for event in self.simulator.published(TOPICS)
            if event["event_id"] not in before and set(event["header"]["recordIds"]) & set(self.victims)]
        self.figures["later events of the erased"] = len(later)
        if not later:
            sys.exit("no later event of an erased record")
        for name in (DATABASE, "control"):
            postgres.query(
                self.cluster.url(name), "ALTER TABLE crm.contact_history DROP CONSTRAINT refuses")
        self.both("dead-letters", "retry", "--all")
        self.simulator.advance("10m")
        self.both("snapshot")
        self.both("rebuild")
        self.simulator.advance("10m")
        self.both("run")
        # Others may have got a text of the erased since then.
        values = self.values()
        found = self.remains(values)
        if found:
            sys.exit("later: back again: %s" % found[:3])
        self.figures["texts looked for"] = len(values)
        self.figures["DuckDB views"] = self.views(values)
        self.both("verify", "--full")
        self.compare_with_control()

    def compare_with_control(self):
        names = ", ".join("'%s'" % name for name in self.victims)
        columns = postgres.query(self.url(), """
            SELECT table_name, string_agg(quote_ident(column_name), ', ' ORDER BY column_name)
            FROM information_schema.columns WHERE table_schema = 'crm' AND table_name IN ('contact',
            'contact_history', 'opportunity', 'opportunity_history') AND left(column_name, 1) <> '_'
            GROUP BY 1""")
        for table, names_of_columns in columns:
            is_history = table.endswith("history")
            key = "_record_id" if is_history else "id"
            source = "(SELECT %s, %s FROM crm.%s WHERE %s NOT IN (%s)%s)" % (
                key, names_of_columns, table, key, names, " AND _kind <> 'snapshot'" if is_history else "")
            own, other = (sorted(postgres.copied(self.cluster.url(name), source)) for name in (DATABASE, "control"))
            if own != other:
                sys.exit("%s: %d rows, and %d without an erasure" % (table, len(own), len(other)))
            self.figures["rows of others"] += len(own)


def main():
    print(json.dumps(Proof(harness.arguments(kills=30, seed=1)).main()))


if __name__ == "__main__":
    main()
