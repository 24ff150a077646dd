"""Proves that fields which change without events are kept current by `source.refresh`.

    refresh_proof.py --programs DIR --work DIR [--seed S] [--existing N] [--rounds N] [--kills N]

The event schema of opportunities has a formula. Between runs records change with events, and an admin edits the formula,
which changes its value in three of four records without an event and without a stamp. Some runs are ended by SIGKILL.
Then a run that nothing disturbs reads the formula, and the tables of two sinks are compared with the simulator's state
file, record by record and column by column: one has a history, the other has current rows alone.

- The history has a row for each value that a refresh has changed, and no row twice. `rebuild` makes the same rows of it.
- `opportunity_at` has the values of the time before a refresh, and `opportunity_versions` begins a version with it.
  `opportunity_changes` has the values before and after, and no user.
- A run that finds no refresh due makes no call for it. One that is due makes two calls per object: describe and a page.
- `_columns` and `_freshness` say as of when the values are. `verify` proposes the line that refreshes the formula.

Prints one JSON line of counts; exits 1 at the first difference.
"""

import collections
import decimal
import json
import random
import sys

import compare_state
import harness
import postgres

TOPIC, ENTITY = "/data/OpportunityChangeEvent", "Opportunity"
FORMULA, COLUMN = "Opportunity.Half__c", "half__c"
FULL, SLIM = "salesforce", "slim"
LIMIT = 120


class Comparison(compare_state.Comparison):
    def compare_cells(self, entity, line, marks, values, data, unknown):
        # The formula of a deleted record stays as it was last seen.
        super().compare_cells(
            entity, line, marks, values, data, unknown | {COLUMN} if line["is_deleted"] else unknown)


class Proof(harness.Exporter):
    def __init__(self, arguments, simulator, cluster):
        super().__init__(
            arguments.programs + "/pubsub-etl", arguments.work + "/pipeline.json", dict(simulator.environment))
        self.work, self.simulator = arguments.work, simulator
        self.chance = random.Random("%d refresh" % arguments.seed)
        self.url = cluster.make_database("warehouse")
        self.environment["DATABASE_URL"] = cluster.url("warehouse", user=postgres.ROLE)
        self.state = self.work + "/state.ndjson"
        self.counts = collections.Counter(killed=0)
        self.configure("1s")

    def configure(self, every, fields="blind"):
        document = harness.pipeline("refresh", TOPIC)
        document["source"]["snapshot"] = {"mode": "initial", "visibility_wait": "200ms"}
        if every:
            document["source"]["refresh"] = {"fields": fields, "every": every}
        document["repair"] = {"mode": "auto"}
        document["commit"] = {"max_events": 100}
        document["sinks"] = [
            {"type": "postgres", "name": name, "schema": name, "url": "${DATABASE_URL}", "mode": mode}
            for name, mode in ((FULL, "both"), (SLIM, "current"))
        ]
        harness.write_json(self.path, document)

    def query(self, sql):
        return postgres.query(self.url, sql)

    def start(self):
        options = ["--take-over"] if self.counts["killed"] else []
        return self.spawn("run", "--report", self.work + "/report.json", *options)

    def run(self):
        self.end(self.start(), seconds=LIMIT)

    def passes(self):
        """How far the reads of the formula are, as text."""
        if not self.query("SELECT 1 WHERE to_regclass('%s._etl_snapshot') IS NOT NULL" % SLIM):
            return []
        return self.query(
            " UNION ALL ".join(
                "SELECT '%s', entity, number, state, rows FROM %s._etl_snapshot WHERE entity LIKE '%% refresh:%%'"
                % (schema, schema) for schema in (FULL, SLIM)))

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
        self.simulator.post("fields?change=edit&field=" + FORMULA)

    def now(self):
        return self.query("SELECT now()")[0][0]

    def refresh(self):
        """Runs until the formula has been read since now."""
        moment = self.now()
        for _ in range(30):
            self.run()
            if all(self.refreshed_at(schema, "> '%s'" % moment) for schema in (FULL, SLIM)):
                return
        self.fail("the formula is not read")

    def refreshed_at(self, schema, condition="IS NOT NULL"):
        """What both views say."""
        columns = self.query(
            "SELECT refreshed_at FROM %s._columns WHERE table_name = 'opportunity' AND \"column\" = '%s'"
            " AND state = 'without events' AND refreshed_at %s" % (schema, COLUMN, condition))
        tables = self.query(
            "SELECT refreshed_at FROM %s._freshness WHERE table_name = 'opportunity' AND refreshed_at %s"
            % (schema, condition))
        if columns != tables:
            self.fail("_columns says", columns, "and _freshness", tables)
        return columns

    def compare(self, moment):
        self.simulator.write_state(self.state)
        for schema in (FULL, SLIM):
            comparison = Comparison(self.url, self.state, [ENTITY], schema=schema)
            if not comparison.run():
                comparison.print_differences()
                sys.exit("%s: schema %s differs from the org" % (moment, schema))
            if not comparison.result()["compared"]:
                self.fail("nothing was compared")
        self.counts["compared"] += 1

    def refreshes(self):
        return int(self.query(
            "SELECT count(*) FROM %s.opportunity_history WHERE _change_type = 'SNAPSHOT_REFRESH'" % FULL)[0][0])

    def check_history(self):
        doubled = self.query(
            "SELECT _event_id FROM %s.opportunity_history GROUP BY _event_id, _record_id"
            " HAVING count(*) > 1 LIMIT 3" % FULL)
        if doubled:
            self.fail("rows of the history are there twice:", doubled)
        idle = self.query(
            "SELECT _record_id, was, %s FROM (SELECT _record_id, %s, _change_type, lag(%s) OVER record AS was,"
            " lag(_change_type) OVER record AS before FROM %s.opportunity_history"
            " WINDOW record AS (PARTITION BY _record_id ORDER BY coalesce(_read_at, _loaded_at))) AS h"
            " WHERE _change_type = 'SNAPSHOT_REFRESH' AND before = _change_type AND %s IS NOT DISTINCT FROM was LIMIT 3"
            % (COLUMN, COLUMN, COLUMN, FULL, COLUMN))
        if idle:
            self.fail("refreshes changed nothing and have rows:", idle)

    def values(self, source):
        """The formula's value of each record that is not deleted."""
        return {record: None if value in (None, "") else decimal.Decimal(value) for record, value in self.query(
            "SELECT id, %s FROM %s" % (COLUMN, source))}

    def check_past(self):
        """What was true before the last edit is what the functions of that time say."""
        before, moment = self.values(FULL + ".opportunity_live"), self.now()
        self.edit()
        self.refresh()
        self.compare("after an edit")
        after = self.values(FULL + ".opportunity_live")
        changed = [record for record in after if after[record] != before[record]]
        self.counts["changed_by_edit"] = len(changed)
        if len(changed) * 5 < len(after):
            self.fail("the edit has changed too little:", len(changed), "of", len(after))
        if self.values("%s.opportunity_at('%s')" % (FULL, moment)) != before:
            self.fail("opportunity_at does not have the values of then")
        if self.values("%s.opportunity_at('%s')" % (FULL, self.now())) != after:
            self.fail("opportunity_at does not have the values of now")
        versions = self.query(
            "SELECT v.id FROM %s.opportunity_versions AS v WHERE _is_current AND _valid_from > '%s' ORDER BY id"
            % (FULL, moment))
        if [record for (record,) in versions] != sorted(changed):
            self.fail("versions begin with the refresh for", len(versions), "records and not for", len(changed))

        listed = self.query(
            "SELECT id, old_value, new_value FROM %s.opportunity_changes WHERE field = '%s'"
            " AND change_type = 'SNAPSHOT_REFRESH' AND changed_at > '%s' AND changed_by IS NULL AND old_is_known"
            " AND new_is_known" % (FULL, COLUMN, moment))
        told = {record: (decimal.Decimal(old), decimal.Decimal(new)) for record, old, new in listed}
        if len(told) != len(listed) or told != {record: (before[record], after[record]) for record in changed}:
            self.fail("opportunity_changes has", len(listed), "rows that are not those of", len(changed), "records")

    def check_verify(self):
        """Proposes the line for the pipeline file, until the file has it."""
        wanted = {"fields": [FORMULA], "every": "1d"}
        for every, expected in ((None, wanted), ("24h", None)):
            self.configure(every)
            done = self.call("verify", "--json", codes=(0, 65, 75))
            found = json.loads(done.stdout)["proposed_refresh"]
            if found != expected:
                self.fail("verify proposes", found, "and not", expected)

    def calls_of(self, step):
        before = self.simulator.get("stats")["api_calls"]
        step()
        return self.simulator.get("stats")["api_calls"] - before

    def check_calls(self):
        self.configure("24h")
        self.run()
        idle = [self.calls_of(self.run) for _ in range(3)]
        # Another list is read at once, and then not again.
        self.configure("24h", [FORMULA])
        due = self.calls_of(self.run)
        self.counts["calls_idle"], self.counts["calls_due"] = max(idle), due
        if due - max(idle) > 2 or due <= min(idle):
            self.fail("calls without a refresh:", idle, "and with one:", due)
        if self.calls_of(self.run) > max(idle):
            self.fail("a refresh that is not due makes calls")

    def check_mistake(self):
        self.configure("24h", ["Opportunity.Haalf__c"])
        said = self.call("run").stderr
        if "/source/refresh/fields: Opportunity.Haalf__c cannot be refreshed" not in said:
            self.fail("an unknown field is not named:", said)
        said = self.call("check", "--connect", codes=(78,)).stderr
        if "Opportunity.Haalf__c" not in said:
            self.fail("check does not name an unknown field:", said)

    def prove(self, rounds, kills):
        self.simulator.post("fields?change=add&field=%s&type=formula:Amount" % FORMULA)
        self.run()
        # Events from before the formula do not have it.
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
        self.check_history()
        if not self.refreshes():
            self.fail("no refresh has a row")
        self.check_past()
        self.check_history()
        self.counts["history_rows"] = self.refreshes()
        self.call("rebuild")
        self.compare("after a rebuild")
        self.check_calls()
        self.compare("after a list of fields")
        self.check_mistake()
        self.check_verify()
        return dict(self.counts)


def main():
    arguments = harness.arguments(seed=1, existing=1500, rounds=4, kills=4)
    with harness.Simulator(
        arguments.programs, arguments.work, "--existing", str(arguments.existing),
        "--state", arguments.work + "/state.ndjson", "--seed", str(arguments.seed), "--topics", TOPIC,
        "--events", "300", "--call-limit", "10000000", "--diffs", "0", "--gaps", "0", "--overflows", "0",
        # unsent_fields_proof.py is about the formulas that no event has.
        "--wildcards", "0", "--hidden-field", "Opportunity.Weighted_Amount__c",
    ) as simulator, postgres.Cluster() as cluster:
        print(json.dumps(Proof(arguments, simulator, cluster).prove(arguments.rounds, arguments.kills)), flush=True)


if __name__ == "__main__":
    main()
