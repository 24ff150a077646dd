"""Proves that a copy stays right while an admin changes the fields of its org between runs.

    administration_proof.py --programs DIR --work DIR [--seed S] [--actions N] [--existing N] [--every N]
        [--mode both|current]

A simulator whose objects have records from before, a PostgreSQL server, and a pipeline with a snapshot. Between
its runs fields are added (texts, numbers, dates, checkboxes that are false in every record, formulas), converted
(a number to a text keeps the data, other conversions lose it), renamed, hidden from the run-as user and shown, deleted
and restored; fields swap their names, and new fields get the names of deleted ones. Values of picklists are added,
renamed, relabelled, moved, deactivated and activated. A few records change, too, so that events bring the new schemas.
Of all these actions only a picklist value's new name moves a SystemModstamp.

After each few actions (--every), and runs until nothing is filling or stale, every value of every field that the
org has is compared with the table:

- A renamed field has one column, under its new name.
- No NULL where the org has a value, and no other value, unless `_columns` says of the column that it is not
  complete. Rows that are marked (`_stale`, `_partial`) are counted, and compared at the end.
- `_picklist` has the values, labels and order of every picklist that can be seen, and of no other field.
- `verify --full` never says "equal" while a value differs of a column that `_columns` calls complete or filling.

What no run can notice is repaired as the pages say. Events lack the values of fields that are hidden when they are
made; if a field is hidden and shown again between two runs, `verify --full --repair` has to find what changed. So it
has to when a picklist value got another name, which records then have without an event. An event with a date and time
whose field has become a date again is a dead letter: it is dropped, and the record is repaired.

At the end all fields are shown again. Then nothing may be excused or marked, no value may differ, and
`verify --full` has to say "equal".

Equal seeds give equal actions. Prints a JSON line of counts; exits 1 at the first difference, with the actions since
the comparison before. A dump of the tables is then in warehouse.sql in the work directory.
"""

import collections
import decimal
import json
import random
import shutil
import subprocess
import sys
import urllib.parse

import compare_state
import harness
import picklists
import postgres
import snapshot_proof

TOPICS = {"Account": "/data/AccountChangeEvent", "Station__c": "/data/Station__ChangeEvent"}
SCHEMA = snapshot_proof.SCHEMA
# Custom fields of the simulator's first schemas that take part, by type.
FIELDS = {
    "Account": {
        "number": ["Amount_Owed__c", "Number_of_Locations__c", "Renewal_Probability__c", "acme__Score__c"],
        "text": ["SLA_Serial_Number__c", "Internal_Code__c", "GUID__c"],
        "date": ["SLA_Expiration_Date__c"],
        "datetime": ["Last_Audit__c"],
        "picklist": ["SLA__c", "Regions__c"],
        "other": ["Support_Email__c", "Portal__c", "Is_Partner__c", "Active__c"],
    },
    "Station__c": {
        "number": ["Cost__c", "Reading__c", "Load__c"],
        "text": ["Serial__c"],
        "date": ["Installed_On__c"],
        "datetime": ["Last_Reading__c"],
        "picklist": ["Status__c", "Tags__c"],
        "other": ["Active__c", "Portal__c", "Hotline__c"],
    },
    "Contact": {"picklist": ["Level__c", "Languages__c"]},
    "Opportunity": {"picklist": ["DeliveryInstallationStatus__c", "MainCompetitors__c"]},
}
# What a field of a type can become.
CONVERSIONS = {"number": "text", "text": "number", "date": "datetime", "datetime": "date"}
ADDED = ["text", "number", "checkbox", "checkbox", "date", "datetime", "formula"]
# The types of values in events. A schema's ID has these and the names, not the IDs of fields, so a name is not used
# twice with the same type: nobody could tell the fields apart.
FORMS = {"text": "string", "number": "double", "checkbox": "boolean", "date": "long", "datetime": "long"}
CHECKBOXES = {"Is_Partner__c", "Active__c"}
# Kinds of actions and how often they are chosen.
WEIGHTS = {
    "add": 5, "convert": 4, "rename": 4, "swap": 2, "reuse": 3, "hide": 3, "show": 3, "delete": 3, "undelete": 2,
    "edit_picklist": 6}
# The names of what an action has after its field.
WORDS = {"rename": ["to"], **{kind: ["value", "to"] for kind in picklists.EDITS}}
# Runs after which everything has been filled and repaired.
RUNS = 8
VISIBILITY_WAIT = 0.2
SHOWN = 10
# The states of `_columns` in which values are promised.
PROMISED = {"complete"}
COMPARED = {"complete", "filling"}


def main():
    arguments = parse()
    work = arguments.work
    for name in ("state", "out"):
        shutil.rmtree("%s/%s" % (work, name), ignore_errors=True)
    with harness.Simulator(
        arguments.programs, work, "--events", "100", "--seed", str(arguments.seed),
        "--topics", ",".join(TOPICS.values()), "--existing", str(arguments.existing), "--call-limit", "10000000",
        *snapshot_proof.QUIET.split(),
    ) as simulator, postgres.Cluster() as cluster:
        print(json.dumps(Proof(arguments, work, simulator, cluster).prove()), flush=True)


def parse():
    return harness.arguments(seed=1, actions=200, existing=150, every=5, mode=("both", "current"))


class Admin:
    """Chooses actions, and knows which fields there are."""

    def __init__(self, simulator, chance):
        self.simulator, self.chance = simulator, chance
        # By (object, field).
        self.types, self.forms, self.edits = {}, {}, {}
        # By name, also of fields that had it before.
        self.former_forms = collections.defaultdict(set)
        for entity in TOPICS:
            self.adopt(entity)
        # Names that fields had before they were renamed.
        self.left = set()
        # Names of deleted fields that other fields have had since. Columns may keep them.
        self.kept = set()
        self.deleted, self.hidden = set(), set()
        # Since the last comparison: dates and times that became dates, fields that were hidden, and those of
        # them that were shown again.
        self.became_dates, self.were_hidden, self.reappeared = set(), set(), set()
        # Picklists with a renamed value, since then too.
        self.revalued = set()
        # Fields that were hidden at some time, without a run that saw it.
        self.missed = set()
        # Fields that a formula uses are neither deleted nor converted.
        self.used = collections.defaultdict(set)
        self.added = 0

    def adopt(self, entity):
        """Begins to change the fields of an object."""
        values = picklists.described(self.simulator.environment, entity)
        for kind, names in FIELDS.get(entity, {}).items():
            for name in names:
                field, form = (entity, name), FORMS.get(kind, "boolean" if name in CHECKBOXES else "string")
                self.types[field], self.forms[field] = kind, form
                self.former_forms[field].add(form)
                if kind == "picklist":
                    self.edits[field] = picklists.Edits(values[name])

    def act(self):
        """Does one action; returns what it was."""
        while True:
            kind = self.chance.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
            found = getattr(self, kind)()
            if found:
                actions = found if isinstance(found, list) else [found]
                for action in actions:
                    words = dict(zip(WORDS.get(action[0], ["type"]), action[3:]))
                    self.simulator.post("fields?" + urllib.parse.urlencode(
                        {"change": action[0], "field": "%s.%s" % action[1:3], **words}, quote_via=urllib.parse.quote))
                return ", ".join(
                    " ".join((action[0], "%s.%s" % action[1:3]) + action[3:]) for action in actions)

    def edit_picklist(self):
        field = self.choose(field for field in self.alive() if self.types[field] == "picklist")
        edit = field and self.edits[field].choose(self.chance)
        if not edit:
            return None
        if edit[0] == "rename_value":
            self.revalued.add(field)
        return (edit[0], *field, *edit[1:])

    def choose(self, fields):
        fields = sorted(fields)
        return self.chance.choice(fields) if fields else None

    def alive(self):
        return set(self.types) - self.deleted

    def unused(self):
        """Fields that no formula uses, unless the formula is deleted: then it cannot come back."""
        return {field for field in self.alive() if not self.used[field]}

    def add(self):
        entity, kind = self.chance.choice(sorted(TOPICS)), self.chance.choice(ADDED)
        self.added += 1
        name = "Added_%d__c" % self.added
        if kind == "formula":
            source = self.choose(
                field for field in self.alive() if field[0] == entity and self.types[field] == "number")
            if source is None:
                return None
            self.used[source].add(name)
            kind = "formula:" + source[1]
        self.note(entity, name, kind)
        return "add", entity, name, kind

    def note(self, entity, name, kind):
        """A new field."""
        self.types[entity, name] = "other" if kind == "checkbox" or kind.startswith("formula") else kind
        self.forms[entity, name] = FORMS.get(kind, "double")
        self.former_forms[entity, name].add(self.forms[entity, name])

    def reuse(self):
        """A new field with the name of a deleted one."""
        field = self.choose(self.deleted)
        if field is None:
            return None
        kinds = [kind for kind, form in FORMS.items() if form not in self.former_forms[field]]
        if not kinds:
            return None
        kind = self.chance.choice(kinds)
        self.forget_field(field)
        self.note(*field, kind)
        return ("add", *field, kind)

    def rename(self):
        """Gives a field a new name, or that of a deleted one."""
        field = self.choose(self.alive())
        names = {
            other for other in self.deleted
            if other[0] == field[0] and self.forms[field] not in self.former_forms[other]}
        other = self.choose(names) if self.chance.random() < 0.4 else None
        if other is None:
            self.added += 1
            other = (field[0], "Renamed_%d__c" % self.added)
        else:
            self.forget_field(other)
        self.move(field, other)
        return ("rename", *field, other[1])

    def swap(self):
        """Two fields change names."""
        field = self.choose(self.alive())
        other = self.choose(other for other in self.alive() - {field} if other[0] == field[0])
        if other is None:
            return None
        self.added += 1
        between = (field[0], "Between_%d__c" % self.added)
        self.move(field, between)
        self.move(other, field)
        self.move(between, other)
        return [
            ("rename", *field, between[1]), ("rename", *other, field[1]), ("rename", *between, other[1])]

    def move(self, field, other):
        """A field has another name."""
        for known in (self.types, self.forms, self.used, self.edits):
            if field in known:
                known[other] = known.pop(field)
        for known in (self.hidden, self.were_hidden, self.reappeared, self.missed, self.revalued):
            if field in known:
                known.remove(field)
                known.add(other)
        if field in self.became_dates:
            # Its events may have either name.
            self.became_dates.add(other)
        self.former_forms[other].add(self.forms[other])
        self.left.add(field)

    def forget_field(self, field):
        """A deleted field that cannot come back, because another one has its name."""
        self.deleted.remove(field)
        self.kept.add(field)
        for known in (self.types, self.forms, self.used, self.edits):
            known.pop(field, None)
        for known in (self.were_hidden, self.reappeared, self.missed, self.revalued):
            known.discard(field)

    def convert(self):
        field = self.choose(field for field in self.unused() if self.types[field] in CONVERSIONS)
        if field is None:
            return None
        self.types[field] = CONVERSIONS[self.types[field]]
        self.forms[field] = FORMS[self.types[field]]
        self.former_forms[field].add(self.forms[field])
        if self.types[field] == "date":
            self.became_dates.add(field)
        return ("convert", *field, self.types[field])

    def hide(self):
        # The copy of an org of which everything is hidden proves nothing.
        field = self.choose(self.alive() - self.hidden) if len(self.hidden) < 6 else None
        if field:
            self.hidden.add(field)
            self.were_hidden.add(field)
            return ("hide", *field)
        return None

    def show(self):
        field = self.choose(self.hidden - self.deleted)
        if field:
            self.hidden.remove(field)
            if field in self.were_hidden:
                self.reappeared.add(field)
            return ("show", *field)
        return None

    def delete(self):
        field = self.choose(self.unused() - self.hidden)
        if field:
            self.deleted.add(field)
            return ("delete", *field)
        return None

    def undelete(self):
        field = self.choose(self.deleted)
        if field:
            self.deleted.remove(field)
            return ("undelete", *field)
        return None

    def forget(self):
        """After a comparison."""
        self.missed |= self.reappeared
        self.became_dates, self.were_hidden, self.reappeared, self.revalued = set(), set(), set(), set()


class Proof(harness.Exporter):
    def __init__(self, arguments, work, simulator, cluster):
        super().__init__(
            arguments.programs + "/pubsub-etl", work + "/pipeline.json", dict(simulator.environment))
        self.arguments, self.work, self.simulator = arguments, work, simulator
        self.chance = random.Random("%d administration" % arguments.seed)
        self.url = cluster.make_database("warehouse")
        self.environment["DATABASE_URL"] = cluster.url("warehouse", user=postgres.ROLE)
        document = harness.pipeline("copy", list(TOPICS.values()))
        document["source"]["snapshot"] = {
            "mode": "initial", "visibility_wait": "%dms" % (VISIBILITY_WAIT * 1000)}
        document["repair"] = {"mode": "auto"}
        document["sinks"] = [
            {"type": "postgres", "name": "warehouse", "url": "${DATABASE_URL}", "mode": arguments.mode}]
        harness.write_json(self.path, document)
        self.counts = collections.Counter()

    def drop_letters(self, admin):
        """Drops events with a date and time whose field has become a date again, as the pages say."""
        for line in self.call("dead-letters", "export").stdout.splitlines():
            letter = json.loads(line)
            entity = next(entity for entity, topic in TOPICS.items() if topic == letter["topic"])
            became_date = (entity, letter["field_path"]) in admin.became_dates
            if "the value has a time of day" not in letter["reason"] or not became_date:
                sys.exit("a dead letter of %s: %s" % (letter["field_path"], letter["reason"]))
            self.counts["letters"] += 1
        self.call("dead-letters", "drop", "--all", "--yes")

    def prove(self):
        admin = Admin(self.simulator, self.chance)
        self.settle(admin)
        self.compare(admin, [], is_last=False)
        left, number = self.arguments.actions, 0
        while left:
            actions = []
            for _ in range(min(left, self.chance.randint(1, 2 * self.arguments.every - 1))):
                left, number = left - 1, number + 1
                actions.append("%d: %s" % (number, admin.act()))
                if self.chance.random() < 0.5:
                    self.change_records()
            # Events bring the new schemas.
            for _ in range(3):
                self.change_records()
            self.settle(admin)
            self.compare(admin, actions, is_last=False)
            if admin.reappeared or admin.revalued:
                # No run saw these fields hidden, or their values renamed.
                self.repair(admin)
                admin.forget()
                self.compare(admin, actions + ["verify --repair"], is_last=False)
            admin.forget()
            print("%d actions: nothing differs" % number, file=sys.stderr, flush=True)
        for entity, name in sorted(admin.hidden - admin.deleted):
            self.simulator.post("fields?change=show&field=%s.%s" % (entity, name))
        admin.hidden &= admin.deleted
        for _ in range(5):
            self.change_records()
        self.age()
        self.settle(admin)
        self.compare(admin, ["the end: all fields are shown"], is_last=True)
        return dict(self.counts, actions=number, columns=len(self.states()))

    def change_records(self):
        for topic in TOPICS.values():
            self.simulator.publish(self.chance.randint(1, 4), topic)

    def settle(self, admin):
        """Until the copy is complete, also what dropped events have changed."""
        if self.fill(admin):
            self.repair(admin)

    def age(self):
        """Makes changes old enough for `verify` to judge them."""
        self.simulator.advance("%dms" % (VISIBILITY_WAIT * 10000 + 5000))

    def repair(self, admin):
        self.age()
        self.call("verify", "--full", "--repair", codes=(0, 65))
        self.fill(admin)

    def fill(self, admin):
        """Runs until nothing is filling or stale; returns whether events were dropped."""
        has_dropped = False
        for _ in range(RUNS):
            self.counts["runs"] += 1
            if self.call("run", codes=(0, 65)).returncode:
                self.drop_letters(admin)
                has_dropped = True
            waiting = any(state == "filling" for state in self.states().values())
            for entity in TOPICS:
                waiting = waiting or self.query(
                    "SELECT 1 FROM %s WHERE _stale LIMIT 1" % self.table(entity))
            # Events that could not be decoded name no record.
            resync = self.query(
                "SELECT 1 FROM %s._etl_resync WHERE done_at IS NULL"
                " AND NOT (kind = 'dead_letter' AND record_id IS NULL) LIMIT 1" % SCHEMA)
            if not waiting and not resync:
                return has_dropped
            self.simulator.advance("%dms" % (VISIBILITY_WAIT * 1000))
        sys.exit("not settled after %d runs: %s, %s" % (RUNS, self.states(), resync))

    def query(self, sql):
        return postgres.query(self.url, sql)

    @staticmethod
    def table(entity):
        return '%s."%s"' % (SCHEMA, entity.lower())

    def states(self):
        """State of each (table, column) as `_columns` has it; empty in versions without it."""
        names = [
            row[0] for row in self.query(
                "SELECT attname FROM pg_attribute JOIN pg_class c ON c.oid = attrelid JOIN pg_namespace n"
                " ON n.oid = relnamespace WHERE nspname = '%s' AND relname = '_columns' AND attnum > 0"
                " AND NOT attisdropped" % SCHEMA)
        ]
        if not names:
            return {}

        def named(*candidates):
            for name in candidates:
                if name in names:
                    return name
            sys.exit("_columns has none of %s, but %s" % (candidates, names))

        table, column = named("table_name", "table", "entity"), named("column_name", "column")
        rows = self.query(
            'SELECT "%s", "%s", "%s" FROM %s._columns' % (table, column, named("state"), SCHEMA))
        return {(row[0].lower(), row[1]): row[2] for row in rows}

    def compare(self, admin, actions, is_last):
        comparison, report = self.look(admin, is_last)
        if report["equal"] and comparison.unpromised:
            # Changes of a moment ago were not judged.
            self.age()
            self.fill(admin)
            comparison, report = self.look(admin, is_last)
        problems = comparison.differences + [
            "verify says equal, but %s" % text for text in comparison.unpromised if report["equal"]]
        if is_last and not report["equal"]:
            problems.append("verify says not equal: %s" % json.dumps(report)[:2000])
        unseen = admin.hidden | admin.deleted
        edits = {field: known for field, known in admin.edits.items() if field not in unseen}
        self.counts["picklists"] += len(edits)
        problems += picklists.differences(self.query, SCHEMA, edits, unseen)
        for entity, name in sorted(admin.left - admin.kept - set(admin.types)):
            if (entity.lower(), name.lower()) in self.states():
                problems.append("%s: the column of the renamed field %s is still there" % (entity, name))
        if problems:
            for text in problems[:SHOWN]:
                print(text, file=sys.stderr)
            subprocess.run(["pg_dump", "-f", self.work + "/warehouse.sql", self.url], check=True)
            sys.exit("%d problems after these actions: %s" % (len(problems), "; ".join(actions)))

    def comparison(self, path, admin, is_last):
        return Comparison(self.url, path, admin, self.states(), is_last)

    def look(self, admin, is_last):
        """What differs, and what `verify` says."""
        self.counts["comparisons"] += 1
        path = self.work + "/state.ndjson"
        self.simulator.write_state(path)
        comparison = self.comparison(path, admin, is_last)
        comparison.run()
        self.counts.update(comparison.counts)
        done = self.call("verify", "--full", "--json", codes=(0, 65))
        report = json.loads(done.stdout)
        if report["equal"] != (done.returncode == 0):
            sys.exit("verify: exit code %d, and equal is %s" % (done.returncode, report["equal"]))
        self.counts["verify_equal" if report["equal"] else "verify_unequal"] += 1
        return comparison, report


def are_one_number(expected, found):
    """Whether a text and a number are the same."""
    try:
        return decimal.Decimal(str(expected)) == decimal.Decimal(str(found))
    except decimal.InvalidOperation:
        return False


class Comparison(compare_state.Comparison):
    """Of all values; what is not right is a text."""

    def __init__(self, url, path, admin, states, is_last):
        super().__init__(url, path, list(TOPICS))
        self.admin, self.states, self.is_last = admin, states, is_last
        self.gone = {(entity, name.lower()) for entity, name in admin.deleted}
        self.reappeared = {(entity, name.lower()) for entity, name in admin.reappeared}
        self.missed = self.reappeared | {(entity, name.lower()) for entity, name in admin.missed}
        self.revalued = {(entity, name.lower()) for entity, name in admin.revalued}
        # Differences that `verify` has to find: of columns that are said to be filling, of fields that were hidden
        # while no run saw it, and of picklists with renamed values.
        self.unpromised = []

    def differ(self, entity, record, column, expected, found):
        text = "%s %s, column %s: expected %s, found %s" % (entity, record, column, expected, found)
        state = self.states.get((entity.lower(), column), "complete")
        if state == "without events" and (entity, column) in self.missed:
            # Only `snapshot` brings such a formula up to date.
            self.counts["formulas"] += 1
        elif state in COMPARED and (entity, column) in self.reappeared | self.revalued:
            self.unpromised.append(text)
            self.counts["unnoticed"] += 1
        elif state in PROMISED:
            self.differences.append(text)
        elif self.is_last:
            self.differences.append("%s, and it is %s" % (text, state))
        elif state in COMPARED:
            self.unpromised.append(text)
        if state not in PROMISED:
            self.counts["excused"] += 1

    def check_columns(self, entity, data):
        for name in {name for line in self.records[entity].values() for name in line["cells"]} - set(data):
            self.differ(entity, "-", name, "a column", "none")
        if self.is_last:
            for (table, column), state in sorted(self.states.items()):
                field = (entity, column)
                if table == entity.lower() and state == "filling" and field not in self.gone:
                    self.differences.append("%s, column %s is %s at the end" % (entity, column, state))
        return set(compare_state.WITHOUT_FIELD)

    def compare_row(self, entity, record, marks, values, data, unknown):
        line = self.records[entity].get(record)
        is_deleted = line is None or line["is_deleted"]
        if is_deleted != (marks["_deleted_at"] is not None):
            self.differences.append("%s %s: deleted is not %s" % (entity, record, is_deleted))
        if is_deleted:
            self.counts["deleted"] += 1
            return
        if marks["_stale"] or marks["_partial"] or marks["_stale_fields"]:
            self.counts["marked"] += 1
            if self.is_last:
                self.differences.append("%s %s is marked at the end: %s" % (entity, record, marks))
            return
        self.counts["compared"] += 1
        for (name, kind), text in zip(data.items(), values):
            # What becomes of a column whose field is gone is not the org's to say.
            if name in unknown or (entity, name) in self.gone or self.is_former(entity, name):
                continue
            self.counts["values"] += 1
            value = line["cells"].get(name)
            if value is None and text == "\\N":
                continue
            expected = compare_state.expected_value(value, kind)
            found = compare_state.found_value(text, kind)
            # A column keeps its type until an event has the schema with the field's new one.
            if expected != found and not are_one_number(expected, found):
                self.differ(entity, record, name, compare_state.shown(expected, kind),
                            compare_state.shown(found, kind))

    def is_former(self, entity, name):
        """Columns of earlier types are kept under other names, which no field has."""
        if not hasattr(self, "names"):
            self.names = {
                entity: {name for line in lines.values() for name in line["cells"]}
                | {field.lower() for owner, field in self.admin.types if owner == entity}
                for entity, lines in self.records.items()
            }
        return name not in self.names[entity]


if __name__ == "__main__":
    main()
