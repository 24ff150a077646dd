"""Loads of PostgreSQL: ours, COPY of the same rows, and SQL written by hand that makes the same tables."""

import os
import shutil
import subprocess
import sys

import contestants
import harness
import machine
import postgres
import postgres_measure
from corpus import HERE

TRANSACTION = 10_000  # events; the default of `commit.max_events` with a database
SCHEMA, CURRENT, HISTORY = "salesforce", "salesforce.opportunity", "salesforce.opportunity_history"
# When rows were written or read.
OWN = ("_loaded_at", "_updated_at", "_system_modstamp", "_read_at")
# Which SQL written by hand does not fill.
NOT_SHARED = (*OWN, "_stale", "_partial", "_stale_fields")


def cluster():
    return postgres.Cluster(durable=True, settings=["max_wal_size = 4GB"])


def server_of(server):
    """The process ID of the postmaster, which counts the time of its backends that have ended."""
    return int(harness.read_text(server.directory + "/data/postmaster.pid").split()[0])


def columns(url, table, leave_out=OWN):
    names = postgres.query(
        url, "SELECT attname FROM pg_attribute WHERE attrelid = '%s'::regclass AND attnum > 0 AND NOT attisdropped"
        " ORDER BY attnum" % table)
    return ['"%s"' % name for [name] in names if name not in leave_out]


def digest(url, table, names):
    """The number of rows and a sum over all of their values."""
    [found] = postgres.query(
        url, "SELECT count(*), sum(hashtextextended(ROW(%s)::text, 0)) FROM %s" % (", ".join(names), table))
    return found


class Load(contestants.Contestant):
    """The exporter. Its tables are compared with the truth column by column, and those of later rounds with these."""

    def __init__(self, name, mode, bench, service, corpus, server):
        super().__init__(name)
        self.mode, self.bench, self.service, self.corpus, self.server = mode, bench, service, corpus, server
        # Of the tables by number of events; `shared` is that of the columns that SQL written by hand fills, too.
        self.digests, self.shared = {}, {}
        # The database of the longest first run, for others to take rows from.
        self.kept = None

    def sample(self, work, events, servers):
        directory = work + "/run"
        shutil.rmtree(directory, ignore_errors=True)
        os.makedirs(directory)
        database = "load_%d" % (len(postgres.query(self.server.url(), "SELECT 1 FROM pg_database")))
        url = self.server.make_database(database)
        document = self.service.pipeline(self.corpus.topic, events, None, directory + "/state")
        document["sinks"] = [{"type": "postgres", "name": "warehouse", "url": "${DATABASE_URL}", "mode": self.mode}]
        document["dead_letter"] = {"max": events}
        harness.write_json(directory + "/pipeline.json", document)
        environment = {**os.environ, "DATABASE_URL": self.server.url(database, user=postgres.ROLE)}
        postgres_measure.settle(url)
        command = [self.bench.programs + "/pubsub-etl", "run", directory + "/pipeline.json"]
        sample = machine.run(command, servers, environment)
        found = [digest(url, HISTORY, columns(url, HISTORY))]
        if self.mode == "both":
            found.append(digest(url, CURRENT, columns(url, CURRENT)))
        sample.raw = int(found[0][0])
        if events not in self.digests:
            self.compare(work, url, events)
            self.digests[events] = found
            if self.mode == "both":
                self.shared[events] = digest(url, CURRENT, columns(url, CURRENT, NOT_SHARED))
        if found != self.digests[events]:
            sys.exit("%s: the tables differ from those of the first round" % self.name)
        if len(self.digests) == 2 and not self.kept:
            self.kept = url
        else:
            postgres.query(self.server.url(), 'DROP DATABASE "%s"' % database)
        return sample

    def compare(self, work, url, events):
        truth = work + "/truth.ndjson"
        self.corpus.write_truth(truth, events)
        compared = subprocess.run(
            [sys.executable, HERE + "/../Fixtures/end-to-end/compare_postgres.py", "--truth", truth, "--url", url,
             "--mode", self.mode, "--schemas", self.corpus.schemas, "--rebuilt"],
            stdout=subprocess.PIPE)
        os.remove(truth)
        if compared.returncode:
            sys.exit("%s: the tables differ from the truth: %s" % (self.name, compared.stdout.decode()))


class Script(contestants.Contestant):
    """psql with a script over the rows that a load has written, in its transactions."""

    def __init__(self, name, load, server, work):
        super().__init__(name)
        self.load, self.server, self.work = load, server, work

    def parts(self, events):
        """Files of rows in binary form, one for each transaction."""
        names = columns(self.load.kept, HISTORY)
        paths = []
        for first in range(0, events, TRANSACTION):
            paths.append("%s/%s-%d" % (self.work, self.load.mode, first))
            if os.path.exists(paths[-1]):
                continue
            rows = "SELECT {0} FROM {1} WHERE _ordinal - (SELECT min(_ordinal) FROM {1}) BETWEEN {2} AND {3}".format(
                ", ".join(names), HISTORY, first, min(events, first + TRANSACTION) - 1)
            postgres.run(
                self.load.kept, "-c", "\\copy (%s ORDER BY _ordinal) TO '%s' (FORMAT binary)" % (rows, paths[-1]))
        return paths

    def events(self, count):
        """Whole transactions, so that those of the short run are among those of the long one."""
        return max(TRANSACTION, count // TRANSACTION * TRANSACTION)

    def script(self, url, paths):
        raise NotImplementedError

    def verify(self, url, events):
        """Ends with an error unless the tables are those of the exporter."""
        names = columns(url, HISTORY)
        if digest(url, HISTORY, names) != digest(self.load.kept, self.rows_of(events), names):
            sys.exit("%s: other rows than those of the exporter" % self.name)

    def rows_of(self, events):
        first = "(SELECT min(_ordinal) FROM %s)" % HISTORY
        return "(SELECT * FROM %s WHERE _ordinal < %s + %d) AS rows" % (HISTORY, first, events)

    def sample(self, work, events, servers):
        paths = self.parts(events)
        postgres.run(self.server.url(), "-c", "SET client_min_messages = error", "-c", "DROP DATABASE IF EXISTS script")
        url = self.server.make_database("script")
        self.copy_tables(url)
        path = work + "/script.sql"
        with open(path, "w", encoding="utf-8") as file:
            file.write(postgres_measure.COMPRESSION.strip() + ";\n" + self.script(url, paths))
        postgres_measure.settle(url)
        psql = postgres.psql(url, "-f", path)
        sample = machine.run(psql["args"], servers, psql["env"])
        self.verify(url, events)
        [[rows]] = postgres.query(url, "SELECT count(*) FROM " + HISTORY)
        sample.raw = int(rows)
        return sample

    def copy_tables(self, url):
        """Empty tables with the columns, defaults and indexes of the exporter's."""
        dump = [self.server.programs + "/pg_dump", "--schema-only", "--no-owner", "--no-acl", "-d", self.load.kept]
        tables = subprocess.run(
            [*dump, "-t", HISTORY, *(["-t", CURRENT] if self.load.mode == "both" else [])], check=True,
            stdout=subprocess.PIPE)
        made = b"CREATE SCHEMA %s;\n" % SCHEMA.encode() + tables.stdout
        subprocess.run(**postgres.psql(url), input=made, check=True, stdout=subprocess.DEVNULL)


class Copy(Script):
    """`\\copy` into the history."""

    def script(self, url, paths):
        names = ", ".join(columns(url, HISTORY))
        return "".join("\\copy %s (%s) FROM '%s' (FORMAT binary)\n" % (HISTORY, names, path) for path in paths)


class HandWritten(Script):
    """History and current table, by SQL as people write it: rows into a temporary table, from there into the history,
    and then, change by change of each record, an UPDATE with a CASE for each column and an INSERT of new records."""

    def script(self, url, paths):
        names, metadata = columns(url, HISTORY), columns(url, CURRENT)
        data = [name for name in metadata if name in names and not name.startswith('"_')]
        shared = [name for name in metadata if name in names and name.startswith('"_')]
        touched = "r._change_type IN ('CREATE', 'UNDELETE') OR r.{0} IS NOT NULL OR '{1}' = ANY (r.touched)"
        sets = ["{0} = CASE WHEN {1} THEN r.{0} ELSE c.{0} END".format(
            name, touched.format(name, name.strip('"'))) for name in data]
        sets += ["{0} = r.{0}".format(name) for name in shared]
        deleted = "CASE r._change_type WHEN 'DELETE' THEN r._commit_timestamp WHEN 'UPDATE' THEN {0} END"
        sets.append("_deleted_at = " + deleted.format("c._deleted_at"))
        inserted = ", ".join(["id", *data, *shared, "_deleted_at"])
        selected = ", ".join(["r._record_id", *("r." + name for name in data + shared), deleted.format("NULL")])
        text = "CREATE TEMPORARY TABLE incoming (LIKE %s INCLUDING DEFAULTS);\n" % HISTORY
        for path in paths:
            text += """
BEGIN;
TRUNCATE incoming;
\\copy incoming (%(names)s) FROM '%(path)s' (FORMAT binary)
INSERT INTO %(history)s (%(names)s) SELECT %(names)s FROM incoming;
CREATE TEMPORARY TABLE ranked ON COMMIT DROP AS
SELECT *, _changed_fields || _nulled_fields AS touched,
  row_number() OVER (PARTITION BY _record_id ORDER BY _ordinal) AS rank FROM incoming;
CREATE INDEX ON ranked (rank);
ANALYZE ranked (rank, _record_id);
DO $$
BEGIN
  FOR turn IN 1 .. (SELECT max(rank) FROM ranked) LOOP
    UPDATE %(current)s c SET %(sets)s FROM ranked r WHERE r.rank = turn AND c.id = r._record_id;
    INSERT INTO %(current)s (%(inserted)s)
    SELECT %(selected)s FROM ranked r
    WHERE r.rank = turn AND NOT EXISTS (SELECT FROM %(current)s c WHERE c.id = r._record_id);
  END LOOP;
END $$;
COMMIT;
""" % {"names": ", ".join(names), "path": path, "history": HISTORY, "current": CURRENT, "sets": ", ".join(sets),
       "inserted": inserted, "selected": selected}
        return text

    def verify(self, url, events):
        super().verify(url, events)
        if digest(url, CURRENT, columns(url, CURRENT, NOT_SHARED)) != self.load.shared[events]:
            sys.exit("%s: other current rows than those of the exporter" % self.name)
