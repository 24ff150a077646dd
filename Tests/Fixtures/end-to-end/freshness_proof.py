"""Proves that `_freshness` of the files and of the tables says the same, and what is so, at each stage of a copy.

    freshness_proof.py --programs DIR --work DIR [--seed S] [--existing N] [--events N]

One pipeline copies two objects to files and to PostgreSQL. Its first copy is killed in the middle, and resumed. Runs
follow without events, with gap events and deletions, with a snapshot, and with stages that leave out an object for a
while. After each, the rows of both views are compared with each other, with the records and with the stage. Repairs are off, so that gap events leave their marks.
Prints one JSON line; exits 1 at the first thing that is wrong.
"""

import json
import os
import shutil
import sys
import time

import duckdb

import harness
import postgres

TOPICS = ["/data/AccountChangeEvent", "/data/ContactChangeEvent"]
OBJECTS = ["Account", "Contact"]
FACTS = ["entity", "state", "complete_through", "snapshot_state", "snapshot_rows", "snapshot_at", "stale", "partial",
         "waiting_for_repair", "missing_ranges", "dead_letters", "holes", "last_change", "topics"]
TIMES = ["complete_through", "snapshot_at", "last_change"]
SCHEMA = "salesforce"
LEAVING_OUT = [
    {"type": "filter", "where": "_entity != 'Contact'"},
    {"type": "route", "routes": [{"entity": "Account", "to": ["files", "warehouse"]}], "default": []},
]


def fail(*words):
    sys.exit("not so: " + " ".join(str(word) for word in words))


def facts(columns):
    return ", ".join("extract(epoch FROM %s) AS %s" % (name, name) if name in TIMES else name for name in columns)


class Proof(harness.Exporter):
    def __init__(self, arguments, simulator, url):
        self.simulator, self.url = simulator, url
        self.work = arguments.work
        self.output = self.work + "/out"
        super().__init__(
            arguments.programs + "/pubsub-etl", self.work + "/copy.json", dict(simulator.environment, DATABASE_URL=url))
        document = harness.pipeline("copy", TOPICS)
        document["source"]["snapshot"] = {"mode": "initial", "visibility_wait": "1s"}
        document["sinks"] = [
            {"type": "files", "directory": self.output},
            {"type": "postgres", "name": "warehouse", "url": "${DATABASE_URL}", "schema": SCHEMA},
        ]
        document["checkpoint"]["directory"] = self.work + "/state"
        self.document = document
        harness.write_json(self.path, document)

    def files(self, setting="SELECT 1"):
        """The rows of the view of files, by object."""
        connection = self.connect()
        connection.execute(setting)
        rows = connection.execute("SELECT %s FROM _freshness" % facts(FACTS)).fetchall()
        return {row[0]: dict(zip(FACTS, row)) for row in rows}

    def connect(self):
        connection = duckdb.connect()
        connection.execute(harness.read_text(self.output + "/_views.sql"))
        return connection

    def count_files(self, what, entity):
        return self.connect().execute('SELECT %s FROM "%s_now"' % (what, entity)).fetchone()[0]

    def tables(self, setting="SELECT 1"):
        rows = postgres.query(
            self.url, "%s; SELECT row_to_json(v) FROM (SELECT %s FROM %s._freshness WHERE table_name NOT LIKE '%%_history') "
            "AS v" % (setting, facts(FACTS), SCHEMA))
        values = [json.loads(row[0]) for row in rows if row and row[0].startswith("{")]
        return {row["entity"]: row for row in values}

    def count_tables(self, what, entity):
        return int(postgres.query(self.url, "SELECT %s FROM %s.%s_live" % (what, SCHEMA, entity.lower()))[0][0])

    def expect(self, state, entities=OBJECTS, **wanted):
        """Both views, which have to agree."""
        files, tables = self.files(), self.tables()
        for entity in entities:
            ours, theirs = files[entity], tables[entity]
            for name in ["state", "snapshot_state", "holes", "missing_ranges", "topics"]:
                if ours[name] != theirs[name]:
                    fail(entity, name, "in files", ours, "in tables", theirs)
            for name, value in dict(wanted, state=state).items():
                if ours[name] != value:
                    fail(entity, name, "is", ours[name], "and not", value, ours)
            for where in (ours, theirs):
                through = where["complete_through"]
                if (through is None) != (state == "copying"):
                    fail(entity, "complete through", through, "when", state)
                # The end of the run was a moment ago.
                if through is not None and not time.time() - 120 < through < time.time():
                    fail(entity, "is complete through", through, "at", time.time())
            if state == "copying":
                continue
            if self.count_files("count(*)", entity) != self.count_tables("count(*)", entity):
                fail("records of", entity)
            for mark in ("stale", "partial"):
                counts = {ours[mark], self.count_files("count(*) FILTER (_%s)" % mark, entity),
                          self.count_tables("count(*) FILTER (WHERE _%s)" % mark, entity)}
                if len(counts) > 1:
                    fail(entity, mark, counts)
            if ours["last_change"] != theirs["last_change"]:
                fail(entity, "last change", ours["last_change"], theirs["last_change"])
        return files

    def kill_in_the_middle(self):
        # Its jobs are not ready while it lives.
        self.simulator.fault(
            method="BulkStatus", status=503, error_code="SERVER_UNAVAILABLE", message="Later.", times=100000)
        process = self.spawn("run")
        self.wait(process, self.is_reading, "a copy that can be killed", 300)
        process.kill()
        process.wait()
        self.simulator.forget_faults()
        files, tables = self.files(), self.tables()
        if list(files) != OBJECTS:
            fail("views of", list(files))
        # Tables are created with their first rows.
        for row in list(files.values()) + list(tables.values()):
            if row["state"] != "copying" or row["complete_through"]:
                fail("in the middle of a copy:", row)

    def is_reading(self):
        try:
            states = [row["snapshot_state"] for row in self.files().values()]
        # The views do not exist yet, or are being made.
        except (FileNotFoundError, duckdb.Error):
            return False
        return states == ["reading"] * len(OBJECTS)

    def leave_out(self, stage, events):
        """What a sink does not get makes its copy stale until the records are read again."""
        harness.write_json(self.path, dict(self.document, stages=[stage]))
        for _ in range(2):
            self.simulator.publish(events)
            self.call("run")
            self.expect("stale", ["Contact"], missing_ranges=1)
        harness.write_json(self.path, self.document)
        self.call("run")
        self.expect("stale", ["Contact"], missing_ranges=1)
        self.call("snapshot")
        # Records that were purged meanwhile wait in the tables, since repairs are off.
        for rows in (self.files(), self.tables()):
            if rows["Contact"]["missing_ranges"] != 0:
                fail("after a snapshot:", rows["Contact"])

    def prove(self, arguments):
        self.kill_in_the_middle()
        # The lease of the killed run has not expired.
        self.call("run", "--take-over")
        first = self.expect("fresh", stale=0, partial=0, waiting_for_repair=0)
        self.call("run")
        second = self.expect("fresh", stale=0)
        for entity in OBJECTS:
            if second[entity]["complete_through"] <= first[entity]["complete_through"]:
                fail(entity, "is not complete to a later time after a run without events")
            if second[entity]["snapshot_at"] != first[entity]["snapshot_at"]:
                fail(entity, "was read again")
        for name, rows in (("files", self.files("SET VARIABLE late_after = INTERVAL 0 SECONDS")),
                           ("tables", self.tables("SET pubsub_etl.late_after = '0 s'"))):
            if {row["state"] for row in rows.values()} != {"late"}:
                fail(name, "are not late after no time", rows)
        self.simulator.publish(arguments.events)
        self.call("run")
        marked = self.expect("stale")
        for entity in OBJECTS:
            if not marked[entity]["stale"]:
                fail("no gap event for", entity)
        self.call("snapshot")
        self.expect("fresh", stale=0, waiting_for_repair=0)
        for stage in LEAVING_OUT:
            self.leave_out(stage, arguments.events)
        # A view of one object must not depend on the files of another, or on a description.
        shutil.rmtree(self.output + "/Account")
        self.files()
        os.remove(self.output + "/_freshness.ndjson")
        connection = duckdb.connect()
        try:
            connection.execute(harness.read_text(self.output + "/_views.sql"))
            fail("a missing file went unnoticed")
        except duckdb.Error as error:
            if "_freshness.ndjson" not in str(error):
                raise
        connection.execute('SELECT count(*) FROM "Contact_now"')
        print(json.dumps({"objects": len(OBJECTS), "stale": {name: marked[name]["stale"] for name in OBJECTS}}))


def main():
    arguments = harness.arguments(seed=1, existing=1500, events=400)
    work = arguments.work
    for name in ("state", "out"):
        shutil.rmtree(work + "/" + name, ignore_errors=True)
    with harness.Simulator(
        arguments.programs, work, "--seed", str(arguments.seed), "--events", "0", "--topics", ",".join(TOPICS),
        "--existing", str(arguments.existing), "--gaps", "0.1", "--overflows", "0", "--wildcards",
        # Topics without an event have a first position with the first keepalive.
        "0", "--keepalive-interval", "1",
    ) as simulator, postgres.Cluster() as cluster:
        cluster.make_database("warehouse")
        Proof(arguments, simulator, cluster.url("warehouse", user=postgres.ROLE)).prove(arguments)


if __name__ == "__main__":
    main()
