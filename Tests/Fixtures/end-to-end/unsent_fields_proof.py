"""Proves that `source.refresh` also brings fields that no event has.

    unsent_fields_proof.py --programs DIR --work DIR [--seed S] [--existing N] [--rounds N] [--kills N]

Opportunities have seven formulas that their event schema lacks: a number, texts, a checkbox, a date, and the name of
another record. Records change with events, and an admin edits a formula, which has no event. Each has a typed column in the tables of two sinks:
one has a history, the other has current rows alone. Some runs are ended by SIGKILL. After each refresh every value is
compared with what the org computes, asked by SOQL.

- The first copy has the values, and `_columns` says "without events" and as of when they are.
- An undeletion keeps them. `rebuild` makes the same rows. `opportunity_at`, `_versions` and `_changes` have them.
- A hidden formula keeps its values, also when all records are read again, and comes back when it is shown.
- A formula that events begin to have keeps its column, and one that they lose again does, too.
- A list names a field that is no formula. Columns that it does not name keep their values.
- `verify` calls the copy equal, and a misspelt name ends a run.

Prints one JSON line of counts; exits 1 at the first difference.
"""

import collections
import json
import random

import formulas_proof
import harness
import postgres
import snapshot_proof

TOPICS = ["/data/OpportunityChangeEvent", "/data/AccountChangeEvent"]
FULL, SLIM = "salesforce", "slim"
FORMULAS = {**formulas_proof.FORMULAS, "Link__c": "text"}
TYPES = {
    "weighted_amount__c": "numeric", "deal_size__c": "text", "close_quarter__c": "text", "is_open__c": "boolean",
    "decision_date__c": "date", "account_name__c": "text", "link__c": "text",
}
LIMIT = 120


class Proof(harness.Exporter):
    def __init__(self, arguments, simulator, cluster):
        super().__init__(
            arguments.programs + "/pubsub-etl", arguments.work + "/pipeline.json", dict(simulator.environment))
        self.work, self.simulator = arguments.work, simulator
        self.chance = random.Random("%d unsent" % arguments.seed)
        self.url = cluster.make_database("warehouse")
        self.environment["DATABASE_URL"] = cluster.url("warehouse", user=postgres.ROLE)
        self.org = formulas_proof.Org(simulator.environment)
        self.counts = collections.Counter(killed=0)
        self.configure("1s")

    def configure(self, every, fields="blind"):
        document = harness.pipeline("unsent", TOPICS[:1])
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
        return self.spawn("run", *(["--take-over"] if self.counts["killed"] else []))

    def run(self):
        self.end(self.start(), seconds=LIMIT)

    def progress(self):
        return self.query(" UNION ALL ".join(
            "SELECT '%s', entity, number, state, rows FROM %s._etl_snapshot WHERE entity LIKE '%% refresh:%%'"
            % (schema, schema) for schema in (FULL, SLIM)))

    def kill(self):
        """Ends a run in the middle of a refresh, or soon after its progress."""
        process = self.start()
        before = self.progress()
        moved = harness.eventually(lambda: self.progress() != before, None, LIMIT, process, pause=0.005)
        harness.ends_within(process, self.chance.uniform(0, 0.3))
        process.kill()
        if process.wait() >= 0 or not moved:
            return False
        self.counts["killed"] += 1
        return True

    def column(self, name, schema=FULL):
        """The state of a column, and as of when it is, in all tables of the schema."""
        rows = self.query(
            "SELECT DISTINCT state, refreshed_at FROM %s._columns WHERE entity = 'Opportunity' AND \"column\" = '%s'"
            % (schema, name.lower()))
        if len(rows) != 1:
            self.fail("column", name, "has", rows)
        return rows[0]

    def refresh(self, *fields):
        """Runs until the fields have been read since now."""
        [[moment]] = self.query("SELECT now()")
        for _ in range(20):
            self.run()
            known = [self.query(
                "SELECT 1 FROM %s._columns WHERE entity = 'Opportunity' AND lower(field) = lower('%s')"
                " AND refreshed_at > '%s' LIMIT 1" % (schema, field, moment))
                for field in fields or FORMULAS for schema in (FULL, SLIM)]
            if all(known):
                return
        self.fail("not all fields are read:", self.query(
            "SELECT table_name, field, state, since, refreshed_at FROM %s._columns WHERE entity = 'Opportunity'"
            " AND (refreshed_at IS NOT NULL OR state <> 'complete')" % FULL), "since", moment, dict(self.counts))

    def values(self, source, names):
        # As bytes, because psql and Python split lines at other characters.
        return {row[0]: [formulas_proof.text(cell) for cell in row[1:]] for row in self.query(
            "SELECT id, %s FROM %s" % (", ".join(
                "coalesce(encode(convert_to(to_jsonb(%s) #>> '{}', 'UTF8'), 'hex'), '-')" % name.lower()
                for name in names), source))}

    def compare(self, moment, fields=FORMULAS):
        names = list(fields)
        records = {record["Id"]: record for record in self.org.records(names)}
        for schema in (FULL, SLIM):
            rows = self.values(schema + ".opportunity_live", names)
            if rows.keys() != records.keys() or not rows:
                self.fail(moment, schema, "has", len(rows), "records and the org", len(records))
            for name, row in rows.items():
                for field, found in zip(names, row):
                    wanted = records[name][field]
                    if isinstance(wanted, str):
                        # PostgreSQL cannot store this character.
                        wanted = wanted.replace("\0", "\ufffd")
                    if not formulas_proof.same(found, wanted, fields[field]):
                        self.fail(moment, schema, field, "of", name, "is", found, "and the org has", wanted)
                    self.counts["values"] += 1
                    self.counts["nulls"] += wanted is None

    def check_columns(self, schema):
        found = dict(self.query(
            "SELECT a.attname, format_type(a.atttypid, NULL) FROM pg_attribute AS a"
            " WHERE a.attrelid = '%s.opportunity'::regclass AND a.attname IN (%s)"
            % (schema, ", ".join("'%s'" % name for name in TYPES))))
        if found != TYPES:
            self.fail("the columns of", schema, "are", found)
        for name in TYPES:
            state, time = self.column(name, schema)
            if state != "without events" or not time:
                self.fail(schema, name, "is", state, "as of", time)

    def check_history(self):
        for what, sql in {
            "a row twice": "SELECT _event_id FROM %s.opportunity_history GROUP BY _event_id, _record_id"
                           " HAVING count(*) > 1 LIMIT 3",
            # A checkbox is never empty, and an undeletion does not have it.
            "a lost value": "SELECT id FROM %s.opportunity AS c WHERE _change_type = 'UNDELETE' AND is_open__c IS NULL"
                            " AND EXISTS (SELECT FROM %s.opportunity_history AS h WHERE h._record_id = c.id"
                            " AND h.is_open__c IS NOT NULL) LIMIT 3",
        }.items():
            found = self.query(sql.replace("%s", FULL))
            if found:
                self.fail("the tables have", what, "of", found)
        self.counts["undeleted"] = int(self.query(
            "SELECT count(*) FROM %s.opportunity_history WHERE _change_type = 'UNDELETE'" % FULL)[0][0])
        self.counts["refreshed_rows"] = int(self.query(
            "SELECT count(*) FROM %s.opportunity_history WHERE _change_type = 'SNAPSHOT_REFRESH'" % FULL)[0][0])
        if not self.counts["undeleted"] or not self.counts["refreshed_rows"]:
            self.fail("too little has happened:", dict(self.counts))

    def check_past(self):
        """An admin edits a formula. What was true before is what the functions of that time say."""
        names = ["Weighted_Amount__c"]
        self.refresh()
        before = self.values(FULL + ".opportunity_live", names)
        [[moment]] = self.query("SELECT now()")
        self.simulator.post("fields?change=edit&field=Opportunity.Weighted_Amount__c")
        self.refresh()
        self.compare("after a formula was edited")
        after = self.values(FULL + ".opportunity_live", names)
        changed = {record for record in after if after[record] != before[record]}
        self.counts["changed_by_edit"] = len(changed)
        if len(changed) * 10 < len(after):
            self.fail("the edit has changed too little:", len(changed), "of", len(after))
        if self.values("%s.opportunity_at('%s')" % (FULL, moment), names) != before:
            self.fail("opportunity_at does not have the values of then")
        if self.values("%s.opportunity_at(now())" % FULL, names) != after:
            self.fail("opportunity_at does not have the values of now")
        versions = {record for (record,) in self.query(
            "SELECT id FROM %s.opportunity_versions WHERE _is_current AND _valid_from > '%s'" % (FULL, moment))}
        if versions != changed:
            self.fail("versions begin with the refresh for", len(versions), "records and not for", len(changed))
        listed = self.query(
            "SELECT id, old_value, new_value FROM %s.opportunity_changes WHERE field = 'weighted_amount__c'"
            " AND change_type = 'SNAPSHOT_REFRESH' AND changed_at > '%s' AND changed_by IS NULL AND old_is_known"
            % (FULL, moment))
        if {record: ([old], [new]) for record, old, new in listed} != {
                record: (before[record], after[record]) for record in changed}:
            self.fail("opportunity_changes has", len(listed), "rows, and", len(changed), "records have changed")

    def check_hidden(self):
        field = "Opportunity.Deal_Size__c"
        before = self.values(FULL + ".opportunity", ["Deal_Size__c"])
        self.simulator.post("fields?change=hide&field=" + field)
        self.run()
        self.run()
        for _ in range(2):
            if self.column("Deal_Size__c")[0] != "hidden":
                self.fail("a hidden formula is", self.column("Deal_Size__c"))
            if self.values(FULL + ".opportunity", ["Deal_Size__c"]) != before:
                self.fail("a hidden formula has lost its values")
            self.call("snapshot")
        self.call("rebuild")
        if self.values(FULL + ".opportunity", ["Deal_Size__c"]) != before:
            self.fail("a hidden formula has lost its values in a rebuild")
        self.simulator.post("fields?change=show&field=" + field)
        self.refresh()
        if self.column("Deal_Size__c")[0] != "without events":
            self.fail("a formula that is shown again is", self.column("Deal_Size__c"))
        self.compare("after a formula was shown again")

    def check_sent(self):
        """Events begin to have a field, and end to have it."""
        field = "Opportunity.Weighted_Amount__c"
        for change in ("add&type=formula:Amount", "delete"):
            self.simulator.post("fields?change=%s&field=%s" % (change, field))
            self.simulator.publish(40, TOPICS[0])
            self.run()
            self.refresh()
            self.compare("after " + change)
            if self.column("Weighted_Amount__c")[0] != "without events":
                self.fail("after", change, "the column is", self.column("Weighted_Amount__c"))
        names = self.query(
            "SELECT attname FROM pg_attribute WHERE attrelid = '%s.opportunity'::regclass"
            " AND attname LIKE 'weighted%%'" % FULL)
        if names != [["weighted_amount__c"]]:
            self.fail("the columns of", field, "are", names)

    def check_list(self):
        before = self.values(FULL + ".opportunity", FORMULAS)
        self.configure("24h", ["Opportunity.SystemModstamp", "Opportunity.Is_Open__c"])
        self.refresh("SystemModstamp")
        found = self.query("SELECT id, to_char(systemmodstamp AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS')"
                           " FROM %s.opportunity_live" % FULL)
        wanted = {record["Id"]: record["SystemModstamp"][:19] for record in self.org.records(["SystemModstamp"])}
        if dict(found) != wanted:
            self.fail("SystemModstamp is not that of the org")
        if self.column("SystemModstamp")[0] != "without events":
            self.fail("SystemModstamp is", self.column("SystemModstamp"))
        self.call("snapshot")
        self.call("rebuild")
        if self.values(FULL + ".opportunity", FORMULAS) != before:
            self.fail("columns that are not listed have lost their values")
        with_refresh = self.calls()
        self.configure(None)
        self.counts["calls_idle"] = self.calls()
        if with_refresh > self.counts["calls_idle"]:
            self.fail("runs without a due refresh make", with_refresh, "calls")

    def calls(self):
        """The API calls of a run that has nothing to read."""
        made = []
        for _ in range(3):
            before = self.simulator.get("stats")["api_calls"]
            self.run()
            made.append(self.simulator.get("stats")["api_calls"] - before)
        return min(made)

    def check_verify(self):
        self.simulator.advance("10s")
        self.run()
        report = json.loads(self.call("verify", "--full", "--json", codes=(0, 65)).stdout)
        [table] = [table for table in report["tables"] if table["sink"] == FULL]
        if not table["equal"] or table["records"]["compared"] == 0:
            self.fail("verify says", table)
        self.counts["verified"] = table["records"]["compared"]

    def check_mistake(self):
        """A misspelt name and a field that is hidden stop neither the other fields nor the events."""
        hidden = "Opportunity.Deal_Size__c"
        before = self.values(FULL + ".opportunity", ["Deal_Size__c"])
        self.simulator.post("fields?change=hide&field=" + hidden)
        self.simulator.publish(20, TOPICS[0])
        self.configure("24h", ["Opportunity.Haalf__c", hidden, "Opportunity.Is_Open__c"])
        wanted = "/source/refresh/fields: Opportunity.Deal_Size__c, Opportunity.Haalf__c cannot be refreshed"
        count = "SELECT count(*) FROM %s.opportunity_history WHERE _change_type NOT LIKE 'SNAPSHOT%%'" % FULL
        [[events]] = self.query(count)
        [[moment]] = self.query("SELECT now()")
        said = self.call("run").stderr
        if said.count(wanted) != 1:
            self.fail("a run does not warn once of unknown fields:", said)
        if self.query(count) == [[events]]:
            self.fail("a run with an unknown field has exported nothing")
        if not self.query("SELECT 1 WHERE '%s' > '%s'" % (self.column("Is_Open__c")[1], moment)):
            self.fail("the other field was not refreshed:", self.column("Is_Open__c"))
        self.run()
        if self.column("Deal_Size__c")[0] != "hidden":
            self.fail("a listed field that is hidden is", self.column("Deal_Size__c"))
        after = self.values(FULL + ".opportunity", ["Deal_Size__c"])
        if any(after.get(record) != value for record, value in before.items()):
            self.fail("a listed field that is hidden has lost its values")
        said = self.call("check", "--connect", codes=(78,)).stderr
        if wanted not in said:
            self.fail("check does not name unknown fields:", said)

    def prove(self, rounds, kills):
        self.run()
        for schema in (FULL, SLIM):
            self.check_columns(schema)
        self.compare("after the first copy")
        for _ in range(rounds):
            for topic in TOPICS:
                self.simulator.publish(150, topic)
            self.simulator.post("fields?change=edit&field=Opportunity.Weighted_Amount__c")
            for _ in range(20):
                if self.counts["killed"] >= kills or self.kill():
                    break
                self.simulator.publish(20, TOPICS[0])
        self.refresh()
        self.compare("after kills")
        self.check_history()
        self.call("rebuild")
        self.compare("after a rebuild")
        self.check_past()
        self.check_hidden()
        self.check_sent()
        self.check_verify()
        self.check_list()
        self.check_mistake()
        return dict(self.counts)


def main():
    arguments = harness.arguments(seed=1, existing=1500, rounds=4, kills=4)
    with harness.Simulator(
        arguments.programs, arguments.work, "--formulas", "--existing", str(arguments.existing),
        "--seed", str(arguments.seed), "--topics", ",".join(TOPICS), "--events", "300", "--call-limit", "10000000",
        # Salesforce shows no numbers of more than 18 digits, the simulator would.
        "--extremes", "0", *snapshot_proof.QUIET.split(),
    ) as simulator, postgres.Cluster() as cluster:
        print(json.dumps(Proof(arguments, simulator, cluster).prove(arguments.rounds, arguments.kills)), flush=True)


if __name__ == "__main__":
    main()
