"""Proves that `snapshot.where` limits what a first copy reads, and that `subset` limits what a copy has.

    subset_proof.py --programs DIR --work DIR [--seed S] [--existing N] [--rounds N] [--kills N]

Two objects have a condition in SOQL, a third has none. Between and during the runs of the pipeline records are
created, changed and deleted, some by gap events, and runs are ended by SIGKILL. The conditions are evaluated here, over
the simulator's state file, which shares nothing with the exporter.

- where: the first reads return the records that meet the condition, in the order of `snapshot.objects`. At the end
  every record that meets it is in the table with all its values, and so is every other one that has changed since; of
  those that have not, none is there. `verify --full` agrees, and finds a row that is removed. Files have the
  records of the first read.
- subset: at the end the live rows of the tables are exactly the records that meet the condition, with all their
  values. Records have entered and left, and those that left are marked as deleted or have no row, as `delete` says.
  Then the conditions change, one to more records and one to fewer, and `snapshot` makes the tables right again. In
  mode current with `remove`, and in mode both with `mark`.
- refused: mistakes in a condition are found before anything is read.

Prints one JSON line for each; exits 1 on any difference, after the first ten.
"""

import contextlib
import json
import os
import random
import sys

import compare_state
import harness
import postgres

NAME = "subset"
SCHEMA = "salesforce"
# Not in the order of the topics.
OBJECTS = ["Contact", "Opportunity", "Account"]
TOPICS = ["/data/%sChangeEvent" % name for name in sorted(OBJECTS)]
# Comparisons with null, texts in other letters than the org's, and every operator.
WHERE = {
    "Opportunity": "StageName IN ('gold', 'SILVER', 'Bronze') AND (Amount = null OR NOT (IsPrivate = true))",
    "Account": "Rating != 'hot' AND (AnnualRevenue > 1000 OR Type = 'WEB')",
}
# More accounts and fewer opportunities.
OTHER_WHERE = {"Opportunity": "StageName = 'GOLD'", "Account": "Rating != 'hot'"}
# Runs until it is known of every changed record whether it is copied.
JUDGING_RUNS = 15
LIMIT = 120


def main():
    arguments = harness.arguments(seed=1, existing=1500, rounds=4, kills=4)
    for prove in (prove_where, prove_current, prove_both, prove_refused):
        work = "%s/%s" % (arguments.work, prove.__name__)
        os.makedirs(work, exist_ok=True)
        print(json.dumps({"proof": prove.__name__, **prove(arguments, work)}), flush=True)


def meets_other(entity, fields):
    """The same for `OTHER_WHERE`."""
    field, value = {"Opportunity": ("StageName", "gold"), "Account": ("Rating", "hot")}.get(entity, (None, None))
    if field is None:
        return True
    return ((fields.get(field) or "").lower() == value) == (entity == "Opportunity")


def meets(entity, fields):
    """Whether a record meets the condition of its object: SOQL compares texts without case, null differs from all."""
    def text(name):
        return (fields.get(name) or "").lower()

    if entity == "Opportunity":
        return text("StageName") in ("gold", "silver", "bronze") and (
            fields.get("Amount") is None or fields.get("IsPrivate") is not True)
    if entity == "Account":
        revenue = fields.get("AnnualRevenue")
        return text("Rating") != "hot" and (
            revenue is not None and float(revenue) > 1000 or text("Type") == "web")
    return True


class Members(compare_state.Comparison):
    """Of tables that have some records. Others have left: they are marked as deleted, or have no row."""

    def compare_row(self, entity, record, marks, values, data, unknown):
        line = self.records[entity].get(record)
        if line is None or line["is_deleted"] or record in self.visible:
            super().compare_row(entity, record, marks, values, data, unknown)
        elif marks["_deleted_at"] is None:
            self.differ(entity, record, "-", "no row, since it does not meet the condition", "a row")
        else:
            self.counts["left"] += 1


class Subset(harness.Exporter):
    """A pipeline whose copy is limited."""

    def __init__(self, arguments, work, simulator, cluster):
        super().__init__(
            arguments.programs + "/pubsub-etl", work + "/pipeline.json", dict(simulator.environment))
        self.work, self.simulator = work, simulator
        self.chance = random.Random("%d subset" % arguments.seed)
        self.url = cluster.make_database("warehouse")
        self.environment["DATABASE_URL"] = cluster.url("warehouse", user=postgres.ROLE)
        self.output, self.state = work + "/out/" + NAME, work + "/state.ndjson"
        self.killed = 0
        self.document = harness.pipeline(NAME, TOPICS)
        self.document["source"]["snapshot"] = {
            "mode": "initial", "objects": OBJECTS, "concurrency": 1, "where": dict(WHERE), "visibility_wait": "1s"}
        self.document["repair"] = {"mode": "auto"}
        self.document["commit"] = {"max_events": 100}
        self.document["sinks"] = [
            {"type": "files", "name": "files", "directory": "out/" + NAME},
            {"type": "postgres", "name": "warehouse", "url": "${DATABASE_URL}"},
        ]
        self.write()

    def write(self):
        harness.write_json(self.path, self.document)

    def start(self):
        return self.spawn("run", "--report", self.work + "/report.json", *["--take-over"] * (self.killed > 0))

    def run(self):
        self.end(self.start(), seconds=LIMIT)

    def progress(self):
        """How far each pass is, as text; nothing before the first."""
        if not postgres.query(self.url, "SELECT 1 WHERE to_regclass('%s._etl_snapshot') IS NOT NULL" % SCHEMA):
            return []
        return postgres.query(
            self.url, "SELECT entity, state, rows, finished_at FROM %s._etl_snapshot"
            " WHERE entity <> '*' ORDER BY entity" % SCHEMA)

    def kill(self):
        """Whether a run was ended in the middle."""
        process = self.start()
        before = self.progress()
        harness.eventually(lambda: self.progress() != before, None, LIMIT, process, pause=0.005)
        harness.ends_within(process, self.chance.uniform(0, 1))
        process.kill()
        if process.wait() >= 0:
            return False
        self.killed += 1
        return True

    def lines(self):
        """The records of the state file by object and ID, without deleted ones."""
        self.simulator.write_state(self.state)
        found = {name: {} for name in OBJECTS}
        for line in harness.read_lines(self.state):
            if line["entity"] in found and not line["is_deleted"]:
                found[line["entity"]][line["id"]] = line["fields"]
        return found

    def members(self, meets=meets):
        return {
            record for entity, lines in self.lines().items() for record, fields in lines.items()
            if meets(entity, fields)}

    def judge(self):
        """Runs until it is known of every changed record whether it is copied."""
        for _ in range(JUDGING_RUNS):
            self.run()
            # Records that are purged cannot be found.
            if not postgres.query(
                    self.url, "SELECT 1 FROM %s._etl_resync AS r WHERE done_at IS NULL AND kind = 'missing'"
                    " AND NOT EXISTS (SELECT FROM %s._etl_resync AS u"
                    " WHERE u.entity = r.entity AND u.record_id = r.record_id"
                    " AND u.kind = 'unseen') LIMIT 1" % (SCHEMA, SCHEMA)):
                return
        self.fail("some records are not judged:", postgres.query(
            self.url, "SELECT * FROM %s._etl_resync WHERE done_at IS NULL LIMIT 5" % SCHEMA))

    def compare_members(self, meets=meets):
        """The live rows are exactly the records that meet the condition, with all their values."""
        members = self.members(meets)
        comparison = Members(self.url, self.state, OBJECTS, SCHEMA, visible=members, is_repaired=True)
        if not comparison.run():
            comparison.print_differences()
            sys.exit("%s: the tables differ: %s" % (self.path, json.dumps(comparison.result())))
        live = set().union(*(self.rows(entity, "_deleted_at IS NULL AND NOT _stale") for entity in OBJECTS))
        if live != members:
            self.fail("live rows and records differ:", sorted(live ^ members)[:10])
        counts = comparison.result()
        return {"members": len(members), "left": counts.get("left", 0), "cells": counts["cells"],
                "differences": counts["differences"]}

    def rows(self, entity, condition="true"):
        return {record for (record,) in postgres.query(
            self.url, "SELECT id FROM %s.%s WHERE %s" % (SCHEMA, entity.lower(), condition))}

    def compare(self, changed):
        """Every record that meets the condition is there, and of the others those that have changed."""
        members = self.members()
        comparison = compare_state.Comparison(
            self.url, self.state, OBJECTS, SCHEMA, visible=members | changed, is_repaired=True)
        if not comparison.run():
            comparison.print_differences()
            sys.exit("the tables differ: %s" % json.dumps(comparison.result()))
        rows = set().union(*(self.rows(entity) for entity in OBJECTS))
        if rows - members - changed:
            self.fail("these do not meet the condition:", sorted(rows - members - changed)[:10])
        counts = comparison.result()
        return {"members": len(members), "others": len(rows - members), "cells": counts["cells"],
                "differences": counts["differences"]}

    def changed(self):
        """Records of which an event was published."""
        return {record for line in self.simulator.published() for record in line.get("header", {}).get("recordIds", [])}

    def verify(self, is_equal=True):
        """The tables of the database; files stay incomplete after a gap event."""
        report = json.loads(
            self.call("verify", "--full", "--json", codes=(0, 75) if is_equal else (65,)).stdout)
        for table in report["tables"]:
            if is_equal and table["sink"] == "warehouse" and not table["equal"]:
                self.fail("verify finds differences:", table)
        return {(table["sink"], table["entity"]): table for table in report["tables"]}


@contextlib.contextmanager
def org(arguments, work, *options):
    with harness.Simulator(
        arguments.programs, work, "--existing", str(arguments.existing), "--state", work + "/state.ndjson",
        "--seed", str(arguments.seed), "--topics", ",".join(TOPICS), "--events", "60", "--diffs", "0", "--gaps", "0.05",
        "--overflows", "0", "--wildcards", "0", "--bulk-queue-time", "100", *options
    ) as simulator, postgres.Cluster() as cluster:
        simulator.post("schemas")
        yield simulator, cluster


def prove_where(arguments, work):
    with org(arguments, work) as (simulator, cluster):
        pipeline = Subset(arguments, work, simulator, cluster)
        first = {entity: sum(meets(entity, fields) for fields in lines.values())
                 for entity, lines in pipeline.lines().items()}
        total = {entity: len(lines) for entity, lines in pipeline.lines().items()}
        said = pipeline.call("check", "--connect").stdout
        for entity in WHERE:
            words = "records: %s, %d records meet source.snapshot.where" % (entity, first[entity])
            if words not in said or not 0 < first[entity] < total[entity]:
                pipeline.fail("check does not say", words, said)
        for _ in range(20):
            if pipeline.killed < arguments.kills:
                pipeline.kill()
            simulator.publish(10, *TOPICS)
        while not all(row[1] == "complete" for row in pipeline.progress()) or not pipeline.progress():
            pipeline.run()
        for _ in range(arguments.rounds):
            simulator.publish(30, *TOPICS)
            pipeline.run()
        simulator.advance("2s")
        pipeline.run()
        pipeline.run()
        result = pipeline.compare(pipeline.changed())
        if not result["others"]:
            pipeline.fail("no record has come into the copy by a change alone")
        # What is compared has to be old enough.
        simulator.advance("15m")
        pipeline.run()
        tables = pipeline.verify()
        limited = tables["warehouse", "Opportunity"]
        if limited["where"] != WHERE["Opportunity"] or tables["warehouse", "Contact"]["where"] is not None:
            pipeline.fail("verify does not say what it compared")
        result["verified"] = {entity: tables["warehouse", entity]["records"]["equal"] for entity in OBJECTS}
        lost = sorted(pipeline.rows("Opportunity", "_deleted_at IS NULL") & pipeline.members())[0]
        postgres.query(pipeline.url, "DELETE FROM %s.opportunity WHERE id = '%s'" % (SCHEMA, lost))
        missing = pipeline.verify(is_equal=False)["warehouse", "Opportunity"]["missing"]
        if missing != [lost]:
            pipeline.fail("verify finds", missing, "and not", lost)
        # A kill may let the next object overtake one that has to wait again.
        pipeline.call("snapshot")
        finished = [row[0] for row in sorted(pipeline.progress(), key=lambda row: row[3])]
        if finished != OBJECTS:
            pipeline.fail("the order was", finished)
        return {**result, "kills": pipeline.killed, "first": first, "of": total}


def prove_current(arguments, work):
    return prove_subset(arguments, work, "current", "remove")


def prove_both(arguments, work):
    return prove_subset(arguments, work, "both", "mark")


def prove_subset(arguments, work, mode, delete):
    with org(arguments, work) as (simulator, cluster):
        pipeline = Subset(arguments, work, simulator, cluster)
        source = pipeline.document["source"]
        source["subset"] = source["snapshot"].pop("where")
        pipeline.document["sinks"] = [dict(pipeline.document["sinks"][1], mode=mode, delete=delete)]
        pipeline.write()
        first = pipeline.members()
        said = pipeline.call("check", "--connect").stdout
        if "meet source.subset" not in said:
            pipeline.fail("check does not count the records:", said)
        for _ in range(20):
            simulator.publish(10, *TOPICS)
            if pipeline.killed < arguments.kills:
                pipeline.kill()
        entered, left = set(), set()
        for _ in range(arguments.rounds):
            pipeline.run()
            before = pipeline.members()
            simulator.publish(40, *TOPICS)
            # While records are read by their IDs, too.
            if pipeline.killed < 2 * arguments.kills:
                pipeline.kill()
            simulator.publish(10, *TOPICS)
            after = pipeline.members()
            entered |= after - before
            left |= before - after
        pipeline.judge()
        result = pipeline.compare_members()
        back = len(entered & left)
        if not entered - first or not left:
            pipeline.fail("too little happens:", len(entered), "have entered,", len(left), "have left")
        simulator.advance("15m")
        pipeline.judge()
        tables = pipeline.verify()
        result["verified"] = {entity: tables["warehouse", entity]["records"]["equal"] for entity in OBJECTS}
        source["subset"] = OTHER_WHERE
        pipeline.write()
        pipeline.call("snapshot", *["--take-over"] * (pipeline.killed > 0))
        pipeline.judge()
        result["changed"] = pipeline.compare_members(meets_other)
        return {**result, "mode": mode, "delete": delete, "kills": pipeline.killed, "entered": len(entered),
                "gone": len(left), "both_ways": back, "api_calls": simulator.get("stats")["api_calls"]}


def prove_refused(arguments, work):
    arguments.existing = 50
    with org(arguments, work) as (simulator, cluster):
        pipeline = Subset(arguments, work, simulator, cluster)
        where = pipeline.document["source"]["snapshot"]["where"]
        count = 0
        for condition, words in (
            ("Amount > 1) ORDER BY Id (", "found ')' without '('"),
            ("(Amount > 1", "found '(' without ')'"),
            ("Name = 'O", "without its closing quote"),
            ("  ", "expected a condition in SOQL"),
        ):
            where["Opportunity"] = condition
            pipeline.write()
            done = pipeline.call("check", codes=(78,))
            said = done.stdout + done.stderr
            if words not in said or "/source/snapshot/where/Opportunity" not in said:
                pipeline.fail("check says of", condition, done.stdout, done.stderr)
            count += 1
        where.update(Opportunity="Amount > 1", Opportunitty="Amount > 1")
        pipeline.write()
        done = pipeline.call("check", codes=(78,))
        if "did you mean 'Opportunity'?" not in done.stdout + done.stderr:
            pipeline.fail("check says", done.stdout, done.stderr)
        del where["Opportunitty"]
        where["Opportunity"] = "Amount > 1 LIMIT 5"
        pipeline.write()
        for words in (("check", "--connect"), ("run",)):
            done = pipeline.call(*words, codes=(64,))
            if "the org refuses source.snapshot.where" not in done.stdout + done.stderr:
                pipeline.fail(words, "says", done.stdout, done.stderr)
            count += 1
        if any(row[1] != "awaited" for row in pipeline.progress()):
            pipeline.fail("something was read", pipeline.progress())
        return {"refused": count + 1}


if __name__ == "__main__":
    main()
