"""Schemas that one run has fetched are not requested by later runs and commands.

    schema_cache_proof.py --programs DIR --work DIR

The simulator counts its GetSchema calls. A run of one pipeline fetches the schemas of two topics; after it
neither another run, nor a run of another pipeline with the same state directory, `check --connect`, `plan`
and `verify` ask for one. Files that are torn, of another schema, links or pipes are asked for again and
replaced, a directory that cannot be written stops nothing, and a letter is decoded by a schema that the
service does not give any more. A schema whose ID stays while a field turns from a date into a date and time or back
is asked for again by `dead-letters retry`, `verify` and runs. Where no database
is needed, waits are skipped (`pubsub-simulator --clock`). Prints one JSON line; exits 1 at the first thing that is
wrong.
"""

import glob
import json
import os
import shutil
import subprocess
import sys

import harness
import postgres

TOPICS = ["/data/OpportunityChangeEvent", "/event/Order_Event__e"]
STATION = "/data/Station__ChangeEvent"


class Proof:
    def __init__(self, arguments):
        self.programs = arguments.programs
        self.work = arguments.work
        self.cache = self.work + "/state/schemas"
        self.calls = 0
        self.figures = {}

    def pipeline(self, name, **members):
        document = harness.pipeline(name, TOPICS)
        # A stage that names a column has the schemas asked for before the streams are opened.
        document["stages"].append({"type": "drop", "columns": ["StageName"]})
        # Else the check says that dead letters hold what was dropped.
        document["dead_letter"] = {"payload": "none"}
        document.update(members)
        path = "%s/%s.json" % (self.work, name)
        harness.write_json(path, document)
        return path

    def call(self, *arguments, expected=0, quiet=True):
        done = subprocess.run(
            [self.simulator.exporter, *arguments], env=self.environment,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if done.returncode != expected or quiet and expected == 0 and done.stderr:
            sys.exit("%s: exit code %d: %s" % (arguments, done.returncode, done.stderr))
        return done.stdout + done.stderr

    def fetched(self):
        """GetSchema calls since the last question."""
        calls = self.simulator.get("stats")["calls"].get("GetSchema", 0)
        calls, self.calls = calls - self.calls, calls
        return calls

    def require(self, moment, expected):
        count = self.fetched()
        if count != expected:
            sys.exit("%s: %d schemas were asked for, not %d" % (moment, count, expected))
        self.figures[moment] = count

    def run(self, moment, path, expected, cached):
        report = self.work + "/report.json"
        self.call("run", path, "--report", report)
        self.require(moment, expected)
        schemas = harness.read_json(report)["schemas"]
        if schemas != {"fetched": expected, "from_cache": cached}:
            sys.exit("%s: the report says %s" % (moment, schemas))

    def files(self):
        return sorted(glob.glob(self.cache + "/*.schema.json"))

    def main(self):
        options = ["--events", "400", "--seed", "4", "--existing", "20", "--topics", ",".join(TOPICS)]
        with self.simulate(*options, "--keepalive-interval", "2", "--clock"):
            self.runs()
            self.hostile_files()
        with postgres.Cluster() as cluster, self.simulate(*options, "--keepalive-interval", "2"):
            url = self.connect(cluster)
            self.database()
            self.letters(url)
        with postgres.Cluster() as cluster, self.simulate(
            "--events", "10", "--seed", "4", "--existing", "20", "--topics", STATION, "--gaps", "0", "--overflows", "0",
            "--wildcards", "0",
        ):
            self.converted(self.connect(cluster))
        return self.figures

    def simulate(self, *options):
        self.simulator = harness.Simulator(self.programs, self.work, *options)
        self.environment, self.calls = self.simulator.environment, 0
        return self.simulator

    def connect(self, cluster):
        """A database of the proof's own; its URL as the superuser."""
        url = cluster.make_database("warehouse")
        self.environment["DATABASE_URL"] = cluster.url("warehouse", None, postgres.ROLE)
        return url

    def runs(self):
        first, second = self.pipeline("first"), self.pipeline("second")
        self.call("run", first)
        count = self.fetched()
        if count < len(TOPICS) or len(self.files()) != count:
            sys.exit("the first run asked for %d schemas, and kept %d" % (count, len(self.files())))
        self.figures["first run"] = count
        status = json.loads(self.call("status", first, "--json"))
        if status["last_run"]["schemas_fetched"] != count:
            sys.exit("status: %s" % status["last_run"])
        self.simulator.publish(50)
        self.run("second run", first, 0, 4)
        self.run("another pipeline", second, 0, count + 2)
        self.call("check", first, "--connect")
        self.require("check --connect", 0)

    def hostile_files(self):
        """Each file in turn is damaged; a run replaces it."""
        path = self.pipeline("hostile")
        whole = {name: open(name, "rb").read() for name in self.files()}
        # The newest of the order events.
        used = [name for name in whole if "Is_Express__c" in whole[name].decode()]
        if len(used) != 1:
            sys.exit("%d schemas are the newest of the order events" % len(used))
        name = used[0]
        other = next(content for key, content in whole.items() if key != name)

        def write(content):
            with open(name, "wb") as file:
                file.write(content)

        spoilers = {
            "torn": lambda: write(whole[name][:100]),
            "empty": lambda: write(b""),
            "other schema": lambda: write(other),
            "forged": lambda: write(whole[name].replace(b"City__c", b"City__d")),
            "link": lambda: os.symlink("/dev/zero", name),
            "pipe": lambda: os.mkfifo(name),
            "directory": lambda: os.mkdir(name),
        }
        for kind, spoil in spoilers.items():
            os.remove(name)
            spoil()
            self.simulator.publish(20)
            self.call("run", path)
            # Asked for before the streams are opened; what can be replaced is then there for them.
            if kind == "directory":
                if not self.fetched():
                    sys.exit("a directory was taken for a schema")
                os.rmdir(name)
                write(whole[name])
            else:
                self.require("file is " + kind, 1)
            self.simulator.publish(20)
            self.call("run", path)
            self.require("after " + kind, 0)
        shutil.rmtree(self.cache)
        with open(self.cache, "w", encoding="ascii"):
            pass
        self.call("run", path)
        if not self.fetched():
            sys.exit("a file stands where the cache was, and no schema was asked for")
        os.remove(self.cache)

    def database(self):
        path = self.pipeline(
            "warehouse",
            sinks=[{"type": "postgres", "name": "warehouse", "url": "${DATABASE_URL}",
                    "schema": "warehouse"}])
        document = harness.read_json(path)
        document["source"]["snapshot"] = {"mode": "initial", "visibility_wait": "1s"}
        document["source"]["topic"] = TOPICS[:1]
        harness.write_json(path, document)
        self.call("plan", path, quiet=False)
        # Nothing is kept by whoever only looks.
        self.require("plan before a run", 1)
        self.call("run", path, quiet=False)
        self.fetched()
        for command in (["plan", path], ["check", path, "--connect"], ["verify", path]):
            self.call(*command, quiet=False)
            self.require(command[0] + " of the database", 0)
        self.call("snapshot", path, quiet=False)
        self.require("snapshot", 0)

    def letters(self, url):
        """A day later the service does not know the schema of a letter any more."""
        path = self.work + "/warehouse.json"
        document = harness.read_json(path)
        document["dead_letter"] = {"max": 1000}
        harness.write_json(path, document)
        postgres.query(
            url, "ALTER TABLE warehouse.opportunity_history ADD CONSTRAINT refused CHECK (false) NOT VALID")
        self.simulator.publish(5, TOPICS[0])
        self.call("run", path, quiet=False)
        letters = json.loads(self.call("dead-letters", "list", path, "--json"))
        if letters["waiting"] != 5:
            sys.exit("%s letters wait, not 5" % letters["waiting"])
        self.fetched()
        library = self.work + "/shifted_clock.so"
        subprocess.run(
            [shutil.which("cc") or "clang", "-O1", "-shared", "-fPIC", "-o", library]
            + [harness.HERE + "/shifted_clock.c", "-ldl"], check=True)
        fault = {"method": "GetSchema", "action": "status", "status": 5, "times": 100,
                 "error_code": "sfdc.platform.eventbus.grpc.schema.not.found", "message": "unknown"}
        self.simulator.fault(**fault)
        self.environment.update(LD_PRELOAD=library, SHIFTED_CLOCK_SECONDS=str(25 * 3600))
        self.call("dead-letters", "retry", path, "--all", "--dry-run", quiet=False)
        if not self.fetched():
            sys.exit("a schema of yesterday was not asked for")
        before = self.files()
        for name in before:
            os.remove(name)
        self.call("dead-letters", "retry", path, "--all", "--dry-run", quiet=False, expected=65)
        self.figures["letters decoded by a forgotten schema"] = 5

    def converted(self, url):
        """A field becomes a date and time, and a date again; the schema's ID stays."""
        path = self.work + "/converted.json"
        document = harness.pipeline("converted", [STATION])
        document["source"]["snapshot"] = {"mode": "initial", "visibility_wait": "100ms"}
        document["repair"] = {"mode": "auto"}
        document["dead_letter"] = {"max": 1000}
        document["sinks"] = [{"type": "postgres", "name": "warehouse", "url": "${DATABASE_URL}"}]
        harness.write_json(path, document)

        def convert(kind):
            self.simulator.post("fields?change=convert&field=Station__c.Installed_On__c&type=" + kind)

        def values(column="installed_on__c"):
            # A deleted record keeps its last values.
            return int(postgres.query(
                url, "SELECT count(%s) FROM salesforce.station__c WHERE _deleted_at IS NULL" % column)[0][0])

        self.call("run", path, quiet=False)
        convert("datetime")
        self.simulator.publish(20, STATION)
        convert("date")
        self.call("run", path, quiet=False)
        letters = self.call("dead-letters", "export", path).splitlines()
        if not letters or not all("has a time of day" in letter for letter in letters):
            sys.exit("dead letters of a date and time that is a date: %s" % letters)
        self.call("dead-letters", "retry", path, "--all", quiet=False, expected=65)
        convert("datetime")
        self.fetched()
        self.call("dead-letters", "retry", path, "--all", quiet=False)
        self.require("dead-letters retry", 1)
        self.simulator.publish(20, STATION)
        for _ in range(2):
            self.call("run", path, quiet=False)
        if not values():
            sys.exit("a date and time has no value")
        # The stored schema says that it is a date and time.
        convert("date")
        self.simulator.advance("3s")
        self.fetched()
        self.call("verify", path, "--full", quiet=False, expected=65)
        self.require("verify of a converted field", 1)
        # The first takes the wildcard event, the second reads all records, others what is stale then.
        for number in range(5):
            self.call("run", path, quiet=False)
            if number > 0 and not values():
                break
        kind = postgres.query(
            url, "SELECT data_type FROM information_schema.columns WHERE table_schema = 'salesforce'"
            " AND table_name = 'station__c' AND column_name = 'installed_on__c'")
        if kind != [["date"]] or values():
            sys.exit("a date that was a date and time: %s with %d values" % (kind, values()))
        self.figures["letters of a converted field"] = len(letters)


def main():
    print(json.dumps(Proof(harness.arguments()).main()))


if __name__ == "__main__":
    main()
