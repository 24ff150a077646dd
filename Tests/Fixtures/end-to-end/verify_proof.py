"""Proves that `verify` finds what differs between a copy and its org, all of it and nothing else.

    verify_proof.py --programs DIR --work DIR [--seed S] [--existing N] [--events N] [--differences N]
        [--live-runs N] [--live-rate EVENTS_PER_S] [--mode both|current] [--delete mark|remove]
        [--visibility-wait SECONDS] [--compounds] [--measure]

A simulator whose objects have records from before, and a PostgreSQL server. When the copy is complete, `verify`
has to call it equal. Then differences are planted by SQL, each in another row: a value in one column, over all
columns in turn; rows that are removed, wrongly deleted, wrongly undeleted, and invented; and besides them texts
with other line ends and lists in another order, which are no differences. `verify --full` has to end with 65 and
to name exactly the planted records and fields. `verify` alone has to find those that concern records. `verify
--full --repair` mends them: the next `verify --full` calls the copy equal.

Then records change without pause while the exporter follows, and `verify --full` has to call the copy equal as
often as --live-runs says.

- --compounds: names, addresses and locations are not flattened.
- --measure: instead of differences and changes, time, API calls and memory of `verify` and `verify --full`.

Prints a JSON line for each part; exits 1 on the first thing that is not as it has to be.
"""

import json
import random
import shutil
import signal
import sys
import threading
import time

import harness
import postgres
import snapshot_proof

TOPICS = snapshot_proof.TOPICS + ["/data/Station__ChangeEvent"]
OBJECTS = snapshot_proof.objects_of(TOPICS)
SCHEMA = snapshot_proof.SCHEMA
# How old a change has to be, in visibility waits.
MARGIN = 10
# Of the differences, those that are not values.
REMOVED, DELETED, UNDELETED, INVENTED = 0.1, 0.075, 0.075, 0.05
# Rows with values in another form.
HARMLESS = 40

CHANGES = {
    "text": "coalesce({0}, '') || 'x'",
    "text[]": "array_append({0}, 'planted')",
    "boolean": "NOT coalesce({0}, false)",
    "date": "coalesce({0}, '2001-02-03') + 1",
    "timestamp with time zone": "coalesce({0}, '2001-02-03') + interval '1 second'",
    "time without time zone": "coalesce({0}, '10:00') + interval '1 second'",
    "jsonb": """'{{"planted": true}}'""",
}
# Of numbers: one more to a large one is the same number.
CHANGED_NUMBER = "CASE WHEN abs({0}) < 1000000 THEN {0} + 1 ELSE 17 END"


def main():
    arguments = parse()
    work = arguments.work
    shutil.rmtree(work + "/state", ignore_errors=True)
    with harness.Simulator(
        arguments.programs, work, "--events", str(arguments.events), "--seed", str(arguments.seed),
        "--topics", ",".join(TOPICS), "--existing", str(arguments.existing),
        *slow_readers(arguments),
        *snapshot_proof.QUIET.split(),
    ) as simulator, postgres.Cluster() as cluster:
        Proof(arguments, work, simulator, cluster).prove()


def parse():
    return harness.arguments(
        seed=1, existing=1500, events=1500, differences=200, live_runs=3, live_rate=30.0, mode=("both", "current"),
        delete=("mark", "remove"), visibility_wait=1.0, compounds=False, measure=False)


def slow_readers(arguments):
    """Options of the simulator: REST shows changes late; Bulk jobs end before they are polled for the first time."""
    return [
        "--visibility-delay", "%d" % (arguments.visibility_wait * 300), "--bulk-queue-time", "100",
        "--bulk-rate", str(max(1000, 4 * arguments.existing))]


def quoted(name):
    return '"%s"' % name.replace('"', '""')


def say(part, **values):
    print(json.dumps({"part": part, **values}), flush=True)


class CopyProof(harness.Exporter):
    """What the proofs of tables and of files have in common."""

    def __init__(self, arguments, work, simulator):
        super().__init__(
            arguments.programs + "/pubsub-etl", work + "/pipeline.json", dict(simulator.environment))
        self.arguments, self.work, self.simulator = arguments, work, simulator
        self.chance = random.Random("%d verify" % arguments.seed)
        self.peak_kib = 0

    def write(self, *sinks, **members):
        document = harness.pipeline("copy", TOPICS)
        document["source"]["snapshot"] = {
            "mode": "initial", "visibility_wait": "%dms" % (self.arguments.visibility_wait * 1000)}
        harness.write_json(self.path, {**document, "sinks": list(sinks), **members})

    def run(self, *arguments, allowed=(0,)):
        """Standard output of a command."""
        with open(self.work + "/stdout", "wb") as output:
            process = self.spawn(*arguments, stdout=output)
        code, _, self.peak_kib = harness.wait_with_peak(process, 600, self.fail)
        output = harness.read_text(self.work + "/stdout")
        if code not in allowed:
            self.fail(arguments, "ended with", code, output[-6000:])
        return output

    def age(self):
        """Makes all changes so far old enough to be judged: what clocks may differ by comes on top."""
        self.simulator.advance("%dms" % ((self.arguments.visibility_wait * MARGIN + 5) * 1000))

    @staticmethod
    def check_same(what, found, wanted):
        if found != wanted:
            sys.exit("%s: not planted: %s; not found: %s" % (
                what, sorted(found - wanted)[:10], sorted(wanted - found)[:10]))

    def check_whole(self, tables):
        for name in OBJECTS:
            counts = tables[name]["records"]
            if counts["compared"] < self.arguments.existing or counts["equal"] != counts["compared"]:
                sys.exit("%s: not all was compared: %s" % (name, counts))
            if tables[name]["not_comparable"]:
                sys.exit("%s: not comparable: %s" % (name, tables[name]["not_comparable"]))
        if "Weighted_Amount__c" not in tables["Opportunity"]["blind"]["calculated"]:
            sys.exit("the formula is not named: %s" % tables["Opportunity"]["blind"])

    @staticmethod
    def invented(record, number):
        """An ID that no record has, with its checksum."""
        short = record[:5] + "zzzz" + "%06d" % number
        checksum = ""
        for start in (0, 5, 10):
            bits = sum(1 << place for place in range(5) if short[start + place].isupper())
            checksum += "ABCDEFGHIJKLMNOPQRSTUVWXYZ012345"[bits]
        return short + checksum

    def check_live(self):
        """Changes go on: a change that is on its way does not count as drift."""
        ended = threading.Event()

        def change():
            while not ended.wait(len(TOPICS) / self.arguments.live_rate):
                self.simulator.publish(1, *TOPICS)

        changes = threading.Thread(target=change)
        changes.start()
        before = self.simulator.get("stats")["delivered"]
        process = self.spawn("run", "--follow")
        self.wait(process, lambda: self.simulator.get("stats")["delivered"] > before, "events are delivered")
        try:
            young, compared = 0, 0
            for _ in range(self.arguments.live_runs):
                tables, _ = self.verify("--full")
                young += sum(table["records"]["too_young"] for table in tables.values())
                compared += sum(table["records"]["compared"] for table in tables.values())
        finally:
            ended.set()
            changes.join()
            process.send_signal(signal.SIGINT)
            self.end(process)
        if not young:
            sys.exit("nothing changed while verify ran")
        say("live", runs=self.arguments.live_runs, compared=compared, too_young=young,
            published=self.simulator.get("stats")["published"])

    def measure(self):
        for options in ((), ("--full",)):
            began = time.monotonic()
            tables, report = self.verify(*options)
            say("measure", options=options, seconds=round(time.monotonic() - began, 1),
                api_calls=report["api_calls"], peak_mib=round(self.peak_kib / 1024, 1),
                compared=sum(table["records"]["compared"] for table in tables.values()))


class Proof(CopyProof):
    def __init__(self, arguments, work, simulator, cluster):
        super().__init__(arguments, work, simulator)
        self.url = cluster.make_database("warehouse")
        self.environment["DATABASE_URL"] = cluster.url("warehouse", user=postgres.ROLE)
        self.write(
            {"type": "postgres", "name": "warehouse", "url": "${DATABASE_URL}", "mode": arguments.mode,
             "delete": arguments.delete},
            **({"stages": []} if arguments.compounds else {}))

    def verify(self, *arguments, code=0):
        """Tables by object."""
        report = json.loads(self.run("verify", "--json", *arguments, allowed=(code,)))
        if report["equal"] != (code == 0):
            sys.exit("exit code %d, and equal is %s" % (code, report["equal"]))
        return {table["entity"]: table for table in report["tables"]}, report

    # The proof

    def prove(self):
        self.run("run")
        self.age()
        self.run("run")
        if self.arguments.measure:
            return self.measure()
        tables, report = self.verify("--full")
        self.check_whole(tables)
        say("equal", records={name: table["records"] for name, table in tables.items()},
            api_calls=report["api_calls"])
        planted = self.plant()
        self.check_planted(planted)
        self.check_refusals()
        self.check_repair()
        if self.arguments.live_runs:
            self.check_live()

    def query(self, sql):
        return postgres.query(self.url, sql)

    def table(self, name):
        return "%s.%s" % (SCHEMA, quoted(name.lower()))

    def columns(self, name):
        """Column, type and path of each field."""
        return self.query(
            "SELECT column_name, pg_type, path FROM %s._etl_column WHERE table_name = '%s' ORDER BY ordinal"
            % (SCHEMA, name.lower()))

    def ids(self, name, condition):
        """In the order of chance."""
        rows = self.query(
            "SELECT id FROM %s WHERE NOT _stale AND NOT _partial AND _stale_fields IS NULL AND %s ORDER BY id"
            % (self.table(name), condition))
        ids = [row[0] for row in rows]
        self.chance.shuffle(ids)
        return ids

    def plant(self):
        """What has to be found, by object."""
        planted = {}
        share = self.arguments.differences // len(OBJECTS)
        extra = self.arguments.differences - share * len(OBJECTS)
        for name in OBJECTS:
            planted[name] = self.plant_into(name, share + extra)
            extra = 0
        return planted

    def plant_into(self, name, count):
        table = self.table(name)
        columns = self.columns(name)
        alive, dead = self.ids(name, "_deleted_at IS NULL"), self.ids(name, "_deleted_at IS NOT NULL")
        found = {"missing": set(), "extra": set(), "not_found": set(), "fields": {}}
        statements = []

        def each(share, pool):
            return [pool.pop() for _ in range(min(int(count * share) or 1, len(pool)))]

        for record in each(REMOVED, alive):
            statements.append("DELETE FROM %s WHERE id = '%s'" % (table, record))
            found["missing"].add(record)
        if self.arguments.delete == "mark":
            for record in each(DELETED, alive):
                statements.append("UPDATE %s SET _deleted_at = '2020-01-01' WHERE id = '%s'" % (table, record))
                found["missing"].add(record)
            for record in each(UNDELETED, dead):
                statements.append("UPDATE %s SET _deleted_at = NULL WHERE id = '%s'" % (table, record))
                found["extra"].add(record)
        for number, record in enumerate(each(INVENTED, list(alive))):
            invented = self.invented(record, number)
            names = ", ".join(
                quoted(row[0]) for row in self.query(
                    "SELECT attname FROM pg_attribute WHERE attrelid = '%s'::regclass AND attnum > 0"
                    " AND NOT attisdropped AND attname <> 'id'" % table))
            statements.append(
                "INSERT INTO %s (id, %s) SELECT '%s', %s FROM %s WHERE id = '%s'"
                % (table, names, invented, names, table, record))
            found["not_found"].add(invented)
        rest = count - sum(len(found[kind]) for kind in ("missing", "extra", "not_found"))
        for place in range(rest):
            column, kind, path = columns[place % len(columns)]
            record = alive.pop()
            change = CHANGES.get(kind, CHANGED_NUMBER).format(quoted(column))
            statements.append("UPDATE %s SET %s = %s WHERE id = '%s'" % (table, quoted(column), change, record))
            found["fields"].setdefault(path, set()).add(record)
        statements += self.harmless(table, columns, alive)
        path = "%s/%s.sql" % (self.work, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(";\n".join(statements) + ";\n")
        postgres.run(self.url, "-1", "-f", path)
        return found

    def harmless(self, table, columns, alive):
        """Statements that change the form of values, but not the values."""
        statements = []
        for record in [alive.pop() for _ in range(HARMLESS)]:
            for column, kind, _ in columns:
                name = quoted(column)
                if kind == "text":
                    change = "replace(%s, E'\\n', E'\\r\\n')" % name
                    condition = "%s LIKE E'%%\\n%%' AND %s NOT LIKE E'%%\\r%%'" % (name, name)
                elif kind == "text[]":
                    change = "ARRAY(SELECT e FROM unnest(%s) e ORDER BY e DESC)" % name
                    condition = name + " IS NOT NULL"
                else:
                    continue
                statements.append(
                    "UPDATE %s SET %s = %s WHERE id = '%s' AND %s" % (table, name, change, record, condition))
        return statements

    def check_planted(self, planted):
        tables, report = self.verify("--full", code=65)
        if self.arguments.visibility_wait >= 1:
            remarks = self.said()
            if remarks.count("differ; reading them again in ") != 1 or " of Account, " not in remarks:
                sys.exit("all objects wait together, once, and it is said: %s" % remarks)
        total = 0
        for name, wanted in planted.items():
            table = tables[name]
            for kind in ("missing", "extra", "not_found"):
                self.check_same("%s %s" % (name, kind), set(table[kind]), wanted[kind])
                total += len(wanted[kind])
            fields = {field["field"]: set(field["records"]) for field in table["fields"]}
            self.check_same("%s fields" % name, set(fields), set(wanted["fields"]))
            for field, records in wanted["fields"].items():
                self.check_same("%s.%s" % (name, field), fields[field], records)
                total += len(records)
        if total != self.arguments.differences:
            sys.exit("%d differences were planted" % total)
        kinds = {kind for name in OBJECTS for _, kind, path in self.columns(name) if path in planted[name]["fields"]}
        say("planted", found=total, types=sorted(kinds), api_calls=report["api_calls"])
        tables, report = self.verify(code=65)
        for name, wanted in planted.items():
            for kind in ("missing", "extra", "not_found"):
                self.check_same("%s %s" % (name, kind), set(tables[name][kind]), wanted[kind])
            if {field["field"] for field in tables[name]["fields"]} - {"LastModifiedDate"}:
                sys.exit("values were compared: %s" % tables[name]["fields"])
        say("records", api_calls=report["api_calls"])
        tables, _ = self.verify("--sample", "300", "--entity", "Account", code=65)
        found = {field["field"]: set(field["records"]) for field in tables["Account"]["fields"]}
        if set(tables) != {"Account"} or tables["Account"]["records"]["sampled"] != 300 or any(
            records - planted["Account"]["fields"].get(field, set()) for field, records in found.items()
        ):
            sys.exit("the sample is wrong: %s" % tables)
        say("sample", found=sum(len(records) for records in found.values()))

    def check_refusals(self):
        """While a run holds the database, nothing is repaired."""
        process = self.spawn("run", "--follow")
        lease = "SELECT 1 FROM %s._etl_checkpoint WHERE lease_until > now()" % SCHEMA
        self.wait(process, lambda: self.query(lease), "a lease")
        self.run("verify", "--repair", allowed=(75,))
        process.send_signal(signal.SIGINT)
        self.end(process)
        self.run("verify", "--entity", "Nothing", allowed=(64,))
        database = self.url.rsplit("/", 1)[1].split("?")[0]
        self.query('REVOKE TEMPORARY ON DATABASE "%s" FROM PUBLIC, %s' % (database, postgres.ROLE))
        owned = self.query("SELECT pg_has_role('%s', datdba, 'USAGE') OR rolsuper FROM pg_database, pg_roles"
                           " WHERE datname = current_database() AND rolname = '%s'" % (postgres.ROLE, postgres.ROLE))
        if owned[0][0] != "t":
            self.run("verify", allowed=(77,))
            self.says("GRANT TEMPORARY")
        self.query('GRANT TEMPORARY ON DATABASE "%s" TO PUBLIC' % database)
        changes = [
            option for value in ("name=changes", "sinks.0.schema=changes", "source.snapshot.mode=never")
            for option in ("--set", value)
        ]
        self.run("run", *changes)
        self.run("verify", *changes, allowed=(75,))
        self.says("the records were never read")
        say("refusals", checks_grant=owned[0][0] != "t")

    def check_repair(self):
        self.run("verify", "--full", "--repair", "--json", allowed=(65,))
        for _ in range(3):
            self.age()
            self.run("repair")
        tables, _ = self.verify("--full")
        say("repaired", marked={name: table["records"]["marked"] for name, table in tables.items()})


if __name__ == "__main__":
    main()
