"""A year of an org, in which the clock of everybody is moved: admins, people who are forgotten, back-ups.

    year_proof.py --programs DIR --work DIR [--seed S] [--actions N] [--fortnights N] [--existing N] [--dbt PATH]

The simulated org, PostgreSQL and the exporter live in the same time, which moves by two days between runs and skips the
waits of runs. Every two days records change, and an admin does some of the actions of administration_proof.py: fields
are added, renamed, converted, hidden, shown, deleted and restored, and values of picklists are edited. After each
fortnight the same is true as there: no NULL where the org has a value, and no other value, unless `_columns` says so of
the column, and `verify --full` never says "equal" wrongly.

Moreover:

- In the second quarter contacts join the pipeline, in the third opportunities and users.
- From then on, each quarter some contacts are erased. Their rows stay without values, whatever events come later.
- In the second and the last quarter the database is lost and restored from a dump: of two days before, whose events
  the org still has, and then of ten days before, whose events it no longer has. Erased records are erased again.
- The views of tables keep their columns, and no run warns of a view that somebody else made.
- At the end of each quarter everything is repaired; then `verify --full` says "equal", and so does
  `dbt build` of deploy/dbt in the quarters that have its objects.

Bulk jobs are counted: between two comparisons, at most one for each field that was added,
converted, renamed, shown or restored.
Prints a JSON line; exits 1 at the first difference.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile

import administration_proof as administration
import harness
import postgres
import snapshot_proof

ROOT = os.path.abspath(harness.HERE + "/../../..")
QUARTERS = 4
# Of a year of 26 fortnights, those after which the database is lost.
LOSSES = {9: 2, 23: 10}
STEP = 2 * 86400
JOINING = {2: ["Contact"], 3: ["Opportunity", "User"]}
ERASED_AT_ONCE = 3
# Actions after which a column has to be read.
FILLED = {"add", "convert", "rename", "show", "undelete"}
CERTAINTY = 5 * 60
# A run waits for the first position of a topic without events until the service says that there are none.
KEEPALIVE = "2"


class Clock:
    """Has commands and the database live in the org's time. Runs have it from the org, which skips their waits."""

    def __init__(self):
        # Others than root have to read these.
        self.directory = tempfile.mkdtemp(prefix="pubsub-etl-clock-", dir="/tmp")
        os.chmod(self.directory, 0o755)
        library = self.directory + "/shifted_clock.so"
        subprocess.run(
            ["cc", "-shared", "-fPIC", "-O1", "-o", library, harness.HERE + "/shifted_clock.c", "-ldl"], check=True)
        self.path = self.directory + "/milliseconds"
        self.environment = {"LD_PRELOAD": library, "SHIFTED_CLOCK_FILE": self.path}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.directory)


class Comparison(administration.Comparison):
    def __init__(self, *arguments, erased):
        super().__init__(*arguments)
        self.erased = erased

    def compare_row(self, entity, record, marks, values, data, unknown):
        if (entity, record) not in self.erased:
            super().compare_row(entity, record, marks, values, data, unknown)
            return
        self.counts["erased"] += 1
        left = [name for name, text in zip(data, values) if text != "\\N"]
        if left or marks["_deleted_at"] is None:
            self.differences.append("%s %s was erased, and has values of %s" % (entity, record, left))


class Year(administration.Proof):
    def __init__(self, arguments, work, simulator, cluster, clock):
        arguments.mode, arguments.every = "both", 1
        super().__init__(arguments, work, simulator, cluster)
        self.preloaded = list(clock.environment)
        self.environment.update(clock.environment)
        self.cluster = cluster
        self.document = harness.read_json(self.path)
        self.document["source"]["on_invalid_replay"] = "snapshot"
        harness.write_json(self.path, self.document)
        self.erased = set()
        self.databases = 1

    def pass_by(self, seconds):
        self.simulator.advance("%ds" % seconds)

    def age(self):
        self.pass_by(CERTAINTY)

    def command(self, *words):
        program = self.simulator.exporter if words[0] == "run" else self.program
        return [program, *super().command(*words)[1:]]

    def call(self, *words, **options):
        if words[0] == "run":
            # Runs have the time from the org itself.
            options["env"] = {name: self.environment[name] for name in set(self.environment) - set(self.preloaded)}
        done = super().call(*words, **options)
        if "somebody made a view" in done.stderr:
            sys.exit("%s does not know its views any more: %s" % (words[0], done.stderr[-3000:]))
        return done

    def compare(self, admin, actions, is_last):
        super().compare(admin, actions, is_last)
        lacking = self.query(
            "SELECT v.relname || '.' || a.attname FROM pg_class AS t JOIN pg_class AS v"
            " ON v.relnamespace = t.relnamespace AND v.relname IN (t.relname || '_live', t.relname || '_versions')"
            " JOIN pg_attribute AS a ON a.attrelid = t.oid AND a.attnum > 0 AND NOT a.attisdropped"
            " WHERE t.relnamespace = '%s'::regnamespace AND t.relkind = 'r' AND NOT starts_with(a.attname, '_')"
            " AND NOT EXISTS (SELECT FROM pg_attribute AS b WHERE b.attrelid = v.oid AND b.attname = a.attname)"
            % administration.SCHEMA)
        if lacking:
            sys.exit("columns that views lack, after %s: %s" % ("; ".join(actions), lacking))

    def comparison(self, path, admin, is_last):
        return Comparison(self.url, path, admin, self.states(), is_last, erased=self.erased)

    def jobs(self):
        return self.simulator.get("stats")["bulk_jobs"]

    def prove(self):
        admin = administration.Admin(self.simulator, self.chance)
        self.settle(admin)
        self.compare(admin, [], is_last=False)
        number, quarter, all_of_them = 0, 1, self.arguments.fortnights
        for fortnight in range(1, all_of_them + 1):
            actions, jobs = [], self.jobs()
            for step in range(1, 8):
                self.pass_by(STEP)
                while number < self.arguments.actions * (fortnight * 7 - 7 + step) // (all_of_them * 7):
                    number += 1
                    actions.append("%d: %s" % (number, admin.act()))
                self.change_records()
                self.fill(admin)
            self.check_jobs(self.jobs() - jobs, actions)
            self.settle(admin)
            self.compare(admin, actions, is_last=False)
            if admin.reappeared or admin.revalued:
                self.repair(admin)
                admin.forget()
                self.compare(admin, actions + ["verify --repair"], is_last=False)
            admin.forget()
            for place, days in LOSSES.items():
                if fortnight == place * all_of_them // 26:
                    self.lose(admin, days)
            print("fortnight %d, %d actions: nothing differs" % (fortnight, number), file=sys.stderr, flush=True)
            if fortnight * QUARTERS // all_of_them > (fortnight - 1) * QUARTERS // all_of_them:
                self.end_quarter(admin, quarter)
                quarter += 1
                self.join(JOINING.get(quarter, []), admin)
        return dict(self.counts, actions=number, jobs=self.jobs(), columns=len(self.states()))

    def check_jobs(self, jobs, actions):
        fields = sum(
            word in FILLED for action in actions for part in action.split(": ", 1)[1].split(", ")
            for word in part.split()[:1])
        self.counts.update({"jobs of fields": jobs, "fields filled": fields})
        if jobs > fields:
            sys.exit("%d Bulk jobs after these actions: %s" % (jobs, "; ".join(actions)))

    def end_quarter(self, admin, quarter):
        """Shows all fields, repairs and compares everything."""
        for entity, name in sorted(admin.hidden - admin.deleted):
            self.simulator.post("fields?change=show&field=%s.%s" % (entity, name))
        admin.hidden &= admin.deleted
        for _ in range(5):
            self.change_records()
        self.age()
        self.repair(admin)
        if admin.missed:
            # Only a copy brings a formula up to date that was hidden.
            self.call("snapshot")
        self.age()
        self.fill(admin)
        self.compare(admin, ["the end of quarter %d" % quarter], is_last=True)
        admin.forget()
        if quarter >= 3:
            self.build()
        if "Contact" in administration.TOPICS:
            self.erase(admin)

    def join(self, objects, admin):
        """Adds objects to the pipeline."""
        for entity in objects:
            administration.TOPICS[entity] = "/data/%sChangeEvent" % entity
            admin.adopt(entity)
            self.counts["objects"] += 1
        self.document["source"]["topic"] = list(administration.TOPICS.values())
        harness.write_json(self.path, self.document)
        if objects:
            self.settle(admin)

    def erase(self, admin):
        rows = self.query("SELECT id FROM %s WHERE _deleted_at IS NULL ORDER BY id" % self.table("Contact"))
        for row in self.chance.sample(rows, ERASED_AT_ONCE):
            self.erased.add(("Contact", row[0]))
        self.erase_again()
        self.fill(admin)
        self.compare(admin, ["an erasure"], is_last=False)

    def erase_again(self):
        if self.erased:
            words = [word for _, record in sorted(self.erased) for word in ("--record", record)]
            self.call("erase", "--entity", "Contact", *words, "--yes")

    def lose(self, admin, days):
        """The database is lost; a dump of some days ago is what there is."""
        dump = self.work + "/dump"
        subprocess.run(["pg_dump", "-Fc", "-f", dump, self.url], check=True)
        for _ in range(days // 2):
            self.pass_by(STEP)
            self.change_records()
            self.fill(admin)
        self.databases += 1
        name = "warehouse%d" % self.databases
        self.url = self.cluster.make_database(name)
        self.environment["DATABASE_URL"] = self.cluster.url(name, user=postgres.ROLE)
        subprocess.run(["pg_restore", "-d", self.url, dump], check=True)
        self.erase_again()
        self.settle(admin)
        self.repair(admin)
        self.compare(admin, ["a restored dump of %d days" % days], is_last=False)
        self.counts["restored"] += 1

    def build(self):
        """`dbt build` of the project in deploy."""
        program = self.arguments.dbt
        if not program:
            return
        project = self.work + "/dbt"
        shutil.rmtree(project, ignore_errors=True)
        shutil.copytree(ROOT + "/deploy/dbt", project)
        environment = dict(self.environment, PGUSER="postgres", PGHOST="127.0.0.1", PGPORT=str(self.cluster.port))
        environment.update(PGDATABASE=self.url.rsplit("/", 1)[1], PGPASSWORD="", DBT_PROFILES_DIR=project)
        for name in self.preloaded:
            del environment[name]
        done = subprocess.run(
            [program, "build"], cwd=project, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            sys.exit("dbt build ended with %d: %s" % (done.returncode, done.stdout[-3000:]))
        self.counts["dbt_builds"] += 1


def main():
    arguments = harness.arguments(seed=1, actions=200, fortnights=26, existing=150, dbt=None)
    work = arguments.work
    topics = [*administration.TOPICS.values(), *(
        "/data/%sChangeEvent" % entity for entities in JOINING.values() for entity in entities)]
    with Clock() as clock, harness.Simulator(
        arguments.programs, work, "--events", "100", "--seed", str(arguments.seed), "--topics", ",".join(topics),
        "--existing", str(arguments.existing), "--clock", "--clock-file", clock.path, "--keepalive-interval", KEEPALIVE,
        # The marts of dbt have amounts as orgs allow them.
        "--extremes", "0", "--call-limit", "10000000", *snapshot_proof.QUIET.split(),
    ) as simulator, postgres.Cluster(
        environment=["%s=%s" % pair for pair in clock.environment.items()]) as cluster:
        print(json.dumps(Year(arguments, work, simulator, cluster, clock).prove()), flush=True)


if __name__ == "__main__":
    main()
