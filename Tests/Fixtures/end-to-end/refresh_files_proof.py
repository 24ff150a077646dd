"""Proves that fields which change without events are kept current in files by `source.refresh`.

    refresh_files_proof.py --programs DIR --work DIR [--seed S] [--existing N] [--rounds N] [--kills N]

The pipeline has one files sink with all records. Two fields are refreshed: a formula of the event schema, which an admin
edits, so that its value changes without an event and without a stamp; and a long text, whose edits come as diffs that
the files cannot use. Between the runs records change with events, and some runs are ended by SIGKILL. After a run that
nothing disturbs, the view "Opportunity_now" is compared with the simulator's state file, record by record and column by
column, and `verify --full` has to find every long text that a diff left unknown.

- A line of a refresh has the fields of the list and no others, and no line is there twice.
- An edit of the formula is in no view until the next refresh, and then in exactly the records that it changed.
  "Opportunity_changes" has the values before and after, and no user.
- Another list of fields is read at once, and keeps the values of the fields that are no longer listed.
- `_freshness` and `status` say as of when the values are. A refresh that is not due makes no call.
- Without records in the files there is nothing to refresh, and `check` says so.

Prints one JSON line of counts; exits 1 at the first difference.
"""

import collections
import json
import random
import sys

import compare_files
import harness

NAME, TOPIC, ENTITY = "refresh", "/data/OpportunityChangeEvent", "Opportunity"
FORMULA, TEXT = "Half__c", "Description"
LIMIT = 120


class Proof(harness.Exporter):
    def __init__(self, arguments, simulator):
        super().__init__(
            arguments.programs + "/pubsub-etl", arguments.work + "/pipeline.json", dict(simulator.environment))
        self.work, self.simulator = arguments.work, simulator
        self.chance = random.Random("%d refresh" % arguments.seed)
        self.state, self.output = self.work + "/state.ndjson", self.work + "/out"
        self.checkpoint = "%s/state/%s.checkpoint.json" % (self.work, NAME)
        self.counts = collections.Counter(killed=0)
        self.configure("1s")

    def configure(self, every, fields=(FORMULA, TEXT), mode="initial"):
        document = harness.pipeline(NAME, TOPIC)
        document["source"]["snapshot"] = {"mode": mode, "visibility_wait": "200ms"}
        if every:
            document["source"]["refresh"] = {"fields": ["%s.%s" % (ENTITY, name) for name in fields], "every": every}
        document["commit"] = {"max_events": 100}
        document["sinks"] = [{"type": "files", "name": "files", "directory": "out"}]
        harness.write_json(self.path, document)

    def start(self):
        return self.spawn("run", "--report", self.work + "/report.json")

    def run(self):
        self.end(self.start(), seconds=LIMIT)

    def passes(self):
        """How far the reads of the fields are, by the checkpoint."""
        try:
            document = harness.read_json(self.checkpoint)
        except FileNotFoundError:
            return []
        return [
            (found["number"], found["state"], found["rows"])
            for found in document["sinks"]["files"].get("passes", []) if found.get("part")]

    def kill(self):
        """Ends a run in the middle of a refresh, or soon after its progress."""
        process = self.start()
        before = self.passes()
        moved = harness.eventually(lambda: self.passes() != before, None, LIMIT, process, pause=0.005)
        harness.ends_within(process, self.chance.uniform(0, 0.3))
        process.kill()
        if process.wait() >= 0 or not moved:
            return False
        self.counts["killed"] += 1
        return True

    def edit(self):
        self.simulator.post("fields?change=edit&field=%s.%s" % (ENTITY, FORMULA))

    def query(self, sql):
        with compare_files.connection_to(self.output) as connection:
            return connection.execute(sql).fetchall()

    def refreshed_at(self):
        ((time,),) = self.query("SELECT refreshed_at::VARCHAR FROM _freshness WHERE entity = '%s'" % ENTITY)
        return time

    def refresh(self):
        """Runs until the fields have been read since now."""
        before = self.refreshed_at()
        for _ in range(30):
            self.run()
            if self.refreshed_at() not in (None, before):
                return
        self.fail("the fields are not read")

    def compare(self, moment):
        self.simulator.write_state(self.state)
        comparison = compare_files.Folded(self.output, self.state, [ENTITY])
        comparison.check_files()
        if not comparison.run():
            comparison.print_differences()
            sys.exit("%s: the files differ from the org" % moment)
        if not comparison.result()["compared"]:
            self.fail("nothing was compared")
        self.counts["compared"] += 1

    def verify(self):
        """What `verify --full` says of the object, once what is compared is old enough."""
        self.simulator.advance("15m")
        self.run()
        (table,) = json.loads(self.call("verify", "--full", "--json", codes=(0, 65, 75)).stdout)["tables"]
        return table

    def check_verify(self):
        """Long texts of which a diff came are unknown until they are read."""
        self.configure("1d")
        self.simulator.publish(200, TOPIC)
        before = self.verify()
        if not before["records"]["marked"] or before["missing"] or before["differing"]:
            self.fail("verify finds", before["records"])
        self.counts["unknown_texts"] = before["records"]["marked"]
        self.configure("1s")
        self.refresh()
        self.compare("after diffs")
        self.configure("1d")
        after = self.verify()
        if not after["equal"] or after["records"]["marked"]:
            self.fail("verify finds", after)
        self.counts["verified"] = after["records"]["equal"]

    def check_lines(self):
        wrong = self.query(
            "SELECT _event_id, _changed_fields FROM \"%s\" WHERE _change_type = 'SNAPSHOT_REFRESH'"
            " AND list_sort(_changed_fields) <> ['%s', '%s'] LIMIT 3" % (ENTITY, TEXT, FORMULA))
        if wrong:
            self.fail("lines of a refresh name other fields:", wrong)
        other = self.query(
            "SELECT count(*) FROM \"%s\" WHERE _change_type = 'SNAPSHOT_REFRESH'"
            " AND (Name IS NOT NULL OR StageName IS NOT NULL)" % ENTITY)
        if other != [(0,)]:
            self.fail("lines of a refresh have other fields")
        doubled = self.query(
            "SELECT _event_id FROM \"%s\" GROUP BY _event_id, _record_id HAVING count(*) > 1 LIMIT 3" % ENTITY)
        if doubled:
            self.fail("lines are there twice:", doubled)
        ((self.counts["lines"],),) = self.query(
            "SELECT count(*) FROM \"%s\" WHERE _change_type = 'SNAPSHOT_REFRESH'" % ENTITY)

    def values(self, field=FORMULA):
        return dict(self.query('SELECT _record_id, "%s" FROM "%s_now"' % (field, ENTITY)))

    def check_edit(self):
        """What an edit changes is in the view after the next refresh."""
        before, moment = self.values(), self.refreshed_at()
        self.edit()
        self.configure("1d")
        self.run()
        if self.values() != before:
            self.fail("values have changed without a refresh")
        self.configure("1s")
        self.refresh()
        self.compare("after an edit")
        after = self.values()
        changed = [record for record in after if before[record] != after[record]]
        self.counts["changed_by_edit"] = len(changed)
        if len(changed) * 5 < len(before):
            self.fail("the edit has changed too little:", len(changed), "of", len(before))
        told = {record: values for record, *values in self.query(
            "SELECT id, old_value::DOUBLE, new_value::DOUBLE FROM \"%s_changes\" WHERE field = '%s'"
            " AND change_type = 'SNAPSHOT_REFRESH' AND changed_at > '%s' AND changed_by IS NULL AND old_is_known"
            " AND new_is_known" % (ENTITY, FORMULA, moment))}
        if told != {record: [before[record], after[record]] for record in changed}:
            self.fail("the view of changes has", len(told), "records and not", len(changed))

    def calls_of(self, step):
        before = self.simulator.get("stats")["api_calls"]
        step()
        return self.simulator.get("stats")["api_calls"] - before

    def check_calls(self):
        self.configure("24h")
        self.run()
        idle = [self.calls_of(self.run) for _ in range(3)]
        # Another list is read at once, and then not again.
        texts = self.values(TEXT)
        self.configure("24h", [FORMULA])
        due = self.calls_of(self.run)
        self.counts["calls_idle"], self.counts["calls_due"] = max(idle), due
        if due - max(idle) > 2 or due <= min(idle):
            self.fail("calls without a refresh:", idle, "and with one:", due)
        if self.calls_of(self.run) > max(idle):
            self.fail("a refresh that is not due makes calls")
        if self.values(TEXT) != texts:
            self.fail("values of a field that is no longer listed are lost")
        self.compare("after another list")

    def check_said(self):
        said = self.call("status", codes=(0, 65)).stdout
        if "fields without events as of" not in said:
            self.fail("status says", said)
        self.configure("24h", mode="never")
        said = self.call("check", codes=(78,))
        if "fields can be refreshed in current tables" not in said.stdout + said.stderr:
            self.fail("check says", said.stdout, said.stderr)

    def prove(self, rounds, kills):
        self.simulator.post("fields?change=add&field=%s.%s&type=formula:Amount" % (ENTITY, FORMULA))
        self.run()
        self.refresh()
        self.compare("the first runs")
        for _ in range(rounds):
            self.simulator.publish(150, TOPIC)
            self.edit()
            for _ in range(20):
                if self.counts["killed"] >= kills or self.kill():
                    break
                self.simulator.publish(20, TOPIC)
        self.refresh()
        self.compare("after kills")
        self.check_lines()
        self.check_edit()
        self.check_verify()
        self.check_lines()
        self.check_calls()
        self.check_said()
        return dict(self.counts)


def main():
    arguments = harness.arguments(seed=1, existing=1500, rounds=4, kills=4)
    with harness.Simulator(
        arguments.programs, arguments.work, "--existing", str(arguments.existing),
        "--state", arguments.work + "/state.ndjson", "--seed", str(arguments.seed), "--topics", TOPIC,
        "--events", "300", "--call-limit", "10000000", "--diffs", "0.2", "--gaps", "0", "--overflows", "0",
        "--wildcards", "0",
    ) as simulator:
        print(json.dumps(Proof(arguments, simulator).prove(arguments.rounds, arguments.kills)), flush=True)


if __name__ == "__main__":
    main()
