"""Proves that `source.subset` limits which records files have.

    subset_files_proof.py --programs DIR --work DIR [--seed S] [--existing N] [--rounds N] [--kills N]

The objects and conditions are those of subset_proof.py: two objects have a condition in SOQL, a third has none. The
pipeline has one files sink. Between and during its runs records are created, changed and deleted, some by gap events,
and runs are ended by SIGKILL, also while records are read by their IDs. The conditions are evaluated here, over the
simulator's state file.

- At the end the views "…_now" have exactly the records that meet the condition, with all their values. Records have
  entered and left, and those that left have a line that says so. `verify --full` agrees, and every file is as the
  manifest says.
- A `refresh` beside `subset` changes none of this, whether it reads some fields or all.
- Until it is known whether a changed record belongs to the copy, `_freshness` counts it.
- Then the conditions change, one to more records and one to fewer, and `snapshot` makes the views right again, although
  runs are killed. A copy whose list of changed records was lost is refused, and `snapshot --accept-missing` repairs it.

Prints one JSON line; exits 1 on any difference.
"""

import glob
import json
import os
import random
import sys

import compare_files
import harness
import subset_proof
from subset_proof import OBJECTS, OTHER_WHERE, TOPICS, WHERE

NAME = "subset"
LIMIT = 120


class Members(compare_files.Folded):
    """Of files that have some records."""

    def compare_row(self, entity, record, marks, values, data, unknown):
        line = self.records[entity].get(record)
        if line is not None and not line["is_deleted"] and record not in self.visible:
            return self.differ(entity, record, "-", "no row, since it does not meet the condition", "a row")
        super().compare_row(entity, record, marks, values, data, unknown)


class Subset(harness.Exporter):
    def __init__(self, arguments, simulator):
        super().__init__(
            arguments.programs + "/pubsub-etl", arguments.work + "/pipeline.json", dict(simulator.environment))
        self.work, self.simulator = arguments.work, simulator
        self.chance = random.Random("%d subset" % arguments.seed)
        self.output, self.state = self.work + "/out", self.work + "/state.ndjson"
        self.checkpoint = "%s/state/%s.checkpoint.json" % (self.work, NAME)
        self.counts = {"killed": 0, "killed_while_judging": 0, "entered": 0, "left": 0}
        self.document = harness.pipeline(NAME, TOPICS)
        self.document["source"]["snapshot"] = {
            "mode": "initial", "objects": OBJECTS, "concurrency": 1, "visibility_wait": "1s"}
        self.document["source"]["subset"] = dict(WHERE)
        self.document["repair"] = {"mode": "auto"}
        self.document["commit"] = {"max_events": 100}
        self.document["sinks"] = [{"type": "files", "name": "files", "directory": "out"}]
        self.write()

    def write(self):
        harness.write_json(self.path, self.document)

    def start(self, *words):
        return self.spawn(*(words or ("run",)), "--report", self.work + "/report.json")

    def run(self):
        self.end(self.start(), seconds=LIMIT)

    def stored(self):
        try:
            return harness.read_json(self.checkpoint)["sinks"]["files"]
        except (FileNotFoundError, KeyError):
            return {}

    def progress(self):
        """How far records have been read."""
        state = self.stored()
        return (
            [(found["entity"], found["part"], found["number"], found["rows"]) for found in state.get("passes", [])],
            {name: (list_["number"], list_["start"]) for name, list_ in state.get("changed_records", {}).items()})

    def kill(self, *words):
        """Whether a run was ended in the middle."""
        process = self.start(*words)
        before = self.progress()
        harness.eventually(lambda: self.progress() != before, None, LIMIT, process, pause=0.005)
        harness.ends_within(process, self.chance.uniform(0, 0.7))
        process.kill()
        if process.wait() >= 0:
            return False
        self.counts["killed"] += 1
        self.counts["killed_while_judging"] += self.progress()[1] != before[1] != {}
        return True

    def waiting(self):
        """Changed records that have not been read, by object."""
        return {
            name: (list_["length"] - list_["start"]) // 56 + bool(list_["review"])
            for name, list_ in self.stored()["changed_records"].items() if list_["length"] > list_["start"] or list_["review"]}

    def judge(self):
        """Runs until it is known of every changed record whether it is copied."""
        for _ in range(subset_proof.JUDGING_RUNS):
            self.run()
            if not self.waiting():
                return
        self.fail("some records are not judged:", self.waiting())

    def members(self, meets):
        self.simulator.write_state(self.state)
        return {
            line["id"] for line in harness.read_lines(self.state)
            if line["entity"] in OBJECTS and not line["is_deleted"] and meets(line["entity"], line["fields"])}

    def query(self, sql):
        with compare_files.connection_to(self.output) as connection:
            return connection.execute(sql).fetchall()

    def compare(self, meets=subset_proof.meets):
        members = self.members(meets)
        # Gap events of the other object leave values that nothing reads again.
        comparison = Members(self.output, self.state, list(WHERE), visible=members)
        comparison.check_files()
        if not comparison.run():
            comparison.print_differences()
            sys.exit("%s: the files differ: %s" % (self.path, json.dumps(comparison.result())))
        live = {record for entity in OBJECTS for (record,) in self.query(
            'SELECT _record_id FROM "%s_now"' % entity)}
        if live != members:
            self.fail("the views have other records:", len(live - members), len(members - live), sorted(live ^ members)[:5])
        doubled = [row for entity in OBJECTS for row in self.query(
            'SELECT _event_id FROM "%s" GROUP BY _event_id, _record_id HAVING count(*) > 1 LIMIT 3' % entity)]
        if doubled:
            self.fail("lines are there twice:", doubled)
        self.counts.update(members=len(members), cells=comparison.result()["cells"])

    def verify(self):
        self.simulator.advance("15m")
        self.judge()
        tables = json.loads(self.call("verify", "--full", "--json", codes=(0, 65, 75)).stdout)["tables"]
        for table in tables:
            if not table["equal"] and table["entity"] in WHERE:
                self.fail("verify finds differences:", table)
        self.counts["verified"] = {table["entity"]: table["records"]["equal"] for table in tables}

    def check_freshness(self):
        waiting = dict(self.query(
            "SELECT entity, waiting_for_repair FROM _freshness WHERE waiting_for_repair > 0 AND state = 'stale'"))
        stored = self.waiting()
        if not stored or any(waiting.get(name, 0) < count for name, count in stored.items()):
            self.fail("_freshness says", waiting, "and the checkpoint", stored)

    def check_refresh(self):
        """A refresh reads all records, and with a stage that reads columns their whole values: those outside stay so."""
        before = [dict(self.document["source"]), self.document["stages"]]
        self.document["source"]["refresh"] = {"fields": ["Opportunity.Description"], "every": "1s"}
        for stages in ([], [{"type": "filter", "where": "StageName != 'none'"}]):
            self.document["stages"] = before[1] + stages
            self.write()
            self.simulator.publish(20, *TOPICS)
            for _ in range(2):
                self.run()
            self.judge()
            self.compare()
        self.document["source"], self.document["stages"] = before
        self.write()
        inside = 'SELECT _record_id FROM "Opportunity_now"'
        (self.counts["refreshed_outside"], kinds), = self.query(
            "SELECT count(*), count(DISTINCT _changed_fields IS NULL) FROM \"Opportunity\" "
            "WHERE _change_type = 'SNAPSHOT_REFRESH' AND _record_id NOT IN (%s)" % inside)
        if kinds != 2:
            self.fail("no refresh has read records outside the copy with and without a list of fields:", kinds)
        shown, = self.query(
            "SELECT count(*) FROM \"Opportunity_changes\" WHERE source = 'refresh' AND id NOT IN "
            "(SELECT _record_id FROM \"Opportunity\" WHERE _change_type <> 'SNAPSHOT_REFRESH')")
        if shown[0]:
            self.fail("the view of changes has refreshes of records that were never copied:", shown)

    def check_lost(self):
        """Without the list of changed records it is not known what the files lack."""
        self.simulator.publish(40, *TOPICS)
        self.run()
        paths = glob.glob(self.output + "/.*changed*")
        if not paths or not self.waiting():
            self.fail("nothing waits", paths)
        for path in paths:
            os.remove(path)
        said = self.call("run", codes=(65,)).stderr
        if "so it is not known which changed records have not been read" not in said:
            self.fail("a run with a lost list says", said)
        self.end(self.start("snapshot", "--accept-missing"), seconds=LIMIT)
        self.judge()

    def prove(self, rounds, kills):
        first = self.members(subset_proof.meets)
        said = self.call("check", "--connect").stdout
        if "meet source.subset" not in said:
            self.fail("check does not count the records:", said)
        for _ in range(20):
            self.simulator.publish(10, *TOPICS)
            if self.counts["killed"] < kills:
                self.kill()
        entered, left = set(), set()
        for _ in range(rounds):
            self.run()
            before = self.members(subset_proof.meets)
            self.simulator.publish(40, *TOPICS)
            # While records are read by their IDs, too.
            if self.counts["killed"] < 2 * kills:
                self.kill()
            self.simulator.publish(10, *TOPICS)
            after = self.members(subset_proof.meets)
            entered |= after - before
            left |= before - after
        self.counts.update(entered=len(entered), left=len(left), first=len(first))
        if not entered or not left:
            self.fail("nothing has changed sides")
        self.simulator.publish(20, *TOPICS)
        self.run()
        self.check_freshness()
        self.judge()
        self.compare()
        self.verify()
        self.counts["marks"] = sum(self.query(
            "SELECT count(*) FROM \"%s\" WHERE _change_type = 'SNAPSHOT_DELETE'" % entity)[0][0] for entity in OBJECTS)
        self.check_refresh()
        self.document["source"]["subset"] = dict(OTHER_WHERE)
        self.write()
        for _ in range(2):
            self.simulator.publish(10, *TOPICS)
            self.kill("snapshot")
        self.end(self.start("snapshot"), seconds=LIMIT)
        self.simulator.publish(40, *TOPICS)
        self.judge()
        self.compare(subset_proof.meets_other)
        self.verify()
        self.check_lost()
        self.compare(subset_proof.meets_other)
        return self.counts


def main():
    arguments = harness.arguments(seed=1, existing=1500, rounds=4, kills=4)
    with harness.Simulator(
        arguments.programs, arguments.work, "--existing", str(arguments.existing), "--state",
        arguments.work + "/state.ndjson", "--seed", str(arguments.seed), "--topics", ",".join(TOPICS), "--events", "60",
        "--diffs", "0", "--gaps", "0.05", "--overflows", "0", "--wildcards", "0", "--bulk-queue-time", "100",
    ) as simulator:
        simulator.post("schemas")
        print(json.dumps(Subset(arguments, simulator).prove(arguments.rounds, arguments.kills)), flush=True)


if __name__ == "__main__":
    main()
