"""A pipeline that meets another org, or another stream of the same org, stops until it is accepted.

    org_proof.py --programs DIR --work DIR

Other org: files and tables of one simulator, then the login of another one. The run ends with 65 and changes
nothing; so does the first run of another pipeline on the same tables, and one whose state directory is lost.
`checkpoint accept-org --snapshot` is killed (SIGKILL) before one call after another of those that write files
or send to a socket; after each kill the next run stops as before, until the command has come to its end.
Then files of the new epoch and the history equal the truth of the new org, `verify` finds its records in the
tables, and files have every record that was read.

Other stream: the simulator begins anew with equal replay IDs and commit times of the day before. 65, nothing
written; accept-org; the new epoch equals the truth. Prints one JSON line; exits 1 at the first thing that is
wrong.
"""

import glob
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time

import harness
import postgres
import zstandard

TOPIC = "/data/OpportunityChangeEvent"
FAULTS = os.path.join(os.path.dirname(harness.HERE), "faults")


def lines_of(path):
    with open(path, "rb") as file:
        data = zstandard.ZstdDecompressor().stream_reader(file).read()
    return [json.loads(line) for line in data.splitlines()]


class Proof:
    def __init__(self, arguments):
        self.programs = arguments.programs
        self.work = arguments.work
        self.shim = self.work + "/fault_shim.so"
        subprocess.run(
            [shutil.which("cc") or "clang", "-O1", "-shared", "-fPIC", "-o", self.shim,
             FAULTS + "/fault_shim.c", "-ldl"], check=True)
        self.figures = {}

    def pipeline(self, name, schema=None, files=True):
        document = harness.pipeline(name, TOPIC)
        document["source"]["snapshot"] = {"mode": "initial", "visibility_wait": "1s"}
        document["checkpoint"]["directory"] = "state-" + name
        document["sinks"] = document["sinks"] if files else []
        if schema:
            document["sinks"].append(
                {"type": "postgres", "name": "warehouse", "url": "${DATABASE_URL}", "schema": schema})
        path = "%s/%s.json" % (self.work, name)
        harness.write_json(path, document)
        return path

    def simulator(self, name, *options):
        work = "%s/%s" % (self.work, name)
        os.makedirs(work, exist_ok=True)
        return harness.Simulator(
            self.programs, work, "--existing", "30", "--topics", TOPIC, "--keepalive-interval", "2",
            *options)

    def call(self, simulator, expected, *arguments, said="", environment=()):
        variables = dict(simulator.environment, DATABASE_URL=self.url)
        variables.update(environment)
        done = subprocess.run(
            [self.programs + "/pubsub-etl", *arguments], env=variables, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300)
        if expected is not None and done.returncode != expected:
            sys.exit("%s: exit code %d: %s" % (arguments, done.returncode, done.stderr))
        if expected is not None and said not in done.stderr:
            sys.exit("%s: standard error lacks %r: %s" % (arguments, said, done.stderr))
        return done

    def refused(self, simulator, path, said):
        """A run that stops, changes neither files nor rows, and fetches no events."""
        before = self.fingerprint()
        self.call(simulator, 65, "run", path, said=said)
        if self.fingerprint() != before:
            sys.exit("a refused run has changed something")

    def fingerprint(self):
        files = {}
        for name in glob.glob(self.work + "/out/**", recursive=True):
            # Views, columns and `_freshness.ndjson` describe what the run was about to read.
            if os.path.isfile(name) and not os.path.basename(name).startswith("_"):
                with open(name, "rb") as file:
                    files[name] = hashlib.sha256(file.read()).hexdigest()
        rows = postgres.query(
            self.admin,
            "SELECT table_schema, table_name, query_to_xml(format('SELECT count(*) FROM %I.%I', "
            "table_schema, table_name), false, true, '')::text FROM information_schema.tables "
            "WHERE table_name LIKE 'opportunity%' AND table_type = 'BASE TABLE' ORDER BY 1, 2")
        return files, rows

    def epoch_lines(self, output, epoch):
        """Lines of events and of records that were read, in files of an epoch."""
        events = []
        for name in harness.data_files(output):
            if "-e%d-" % epoch in os.path.basename(name):
                events += lines_of(name)
        return [line for line in events if line["_change_type"] != "SNAPSHOT"], [
            line for line in events if line["_change_type"] == "SNAPSHOT"]

    def truth(self, simulator):
        return harness.read_lines(simulator.truth)

    def main(self):
        with postgres.Cluster() as cluster:
            self.admin = cluster.make_database("warehouse")
            self.url = cluster.url("warehouse", None, postgres.ROLE)
            self.other_org()
            self.other_stream()
        return self.figures

    # Another org

    def other_org(self):
        path = self.pipeline("opps", "sales")
        with self.simulator("old", "--events", "200", "--seed", "1") as old:
            self.call(old, 0, "run", path)
            self.call(old, 0, "verify", path)
            self.old_rows = len(harness.data_files(self.work + "/out/opps"))
        with self.simulator("new", "--events", "150", "--seed", "2") as new:
            self.refused(new, path, "accept-org")
            self.first_runs(new)
            self.call(new, 64, "checkpoint", "accept-org", path, "--snapshot", said="--yes")
            self.refused(new, path, "accept-org")
            self.kills(new, path, ["--snapshot"], "accept-org")
            self.go_on(new, path)

    def first_runs(self, new):
        fresh = self.pipeline("fresh", "sales", files=False)
        self.refused(new, fresh, "accept-org")
        # The state directory of files alone is gone.
        with self.simulator("old2", "--events", "50", "--seed", "1") as old:
            lost = self.pipeline("lost")
            self.call(old, 0, "run", lost)
        shutil.rmtree(self.work + "/state-lost")
        self.refused(new, lost, "accept-org")
        self.call(new, 0, "checkpoint", "accept-org", lost, "--yes")
        self.call(new, 0, "run", lost)
        events, _ = self.epoch_lines(self.work + "/out/lost", 2)
        if not events:
            sys.exit("nothing was exported after the state was lost")
        # The positions are gone, and the tables still know their org.
        postgres.query(self.admin, "CREATE TABLE kept AS TABLE sales._etl_checkpoint")
        postgres.query(self.admin, "DELETE FROM sales._etl_checkpoint")
        self.refused(new, fresh, "accept-org")
        postgres.query(self.admin, "INSERT INTO sales._etl_checkpoint TABLE kept")
        # Nothing to accept where nothing is.
        empty = self.pipeline("empty")
        self.call(new, 65, "checkpoint", "accept-org", empty, "--yes", said="never")
        if os.path.exists(self.work + "/state-empty"):
            sys.exit("a state directory was made")

    def kills(self, simulator, path, options, said):
        """accept-org, killed before each of its calls."""
        hits, at = 0, 0
        command = ["checkpoint", "accept-org", path, "--yes", *options]
        while True:
            at += 1
            fault = {"LD_PRELOAD": self.shim, "FAULT_TREE": self.work, "FAULT_KINDS": "OWSRUMN",
                     "FAULT_JOURNAL": self.work + ".journal", "FAULT_AT": str(at),
                     "FAULT_ACTION": "before"}
            old = self.places(simulator, path)
            done = self.call(simulator, None, *command, environment=fault)
            if done.returncode >= 0:
                if done.returncode:
                    sys.exit("%s: %s" % (command, done.stderr))
                break
            hits += 1
            before = self.fingerprint()
            new = self.places(simulator, path)
            again = self.call(simulator, None, "run", path)
            if again.returncode != 65 or said not in again.stderr:
                # The last calls come when everything is stored: the lease and the lock are given back.
                org = simulator.environment["SF_ORG_ID"]
                if again.returncode == 0 and all(
                    place[0] == org and place[1] > was[1] for place, was in zip(new, old)
                ):
                    break
                sys.exit("after a kill at call %d: %d: %s" % (at, again.returncode, again.stderr))
            if self.fingerprint() != before:
                sys.exit("after a kill at call %d the run wrote" % at)
        os.remove(self.work + ".journal")
        if hits < 20:
            sys.exit("only %d kills hit" % hits)
        self.figures["kills of accept-org " + " ".join(options)] = hits

    def places(self, simulator, path):
        """Org and epoch of the checkpoint and of the database."""
        shown = self.position(simulator, path)
        return [(place["org"], place["topics"][TOPIC]["epoch"])
                for place in (shown, shown["databases"]["warehouse"])]

    def position(self, simulator, path):
        return json.loads(self.call(simulator, 0, "checkpoint", "show", path, "--json").stdout)

    def go_on(self, new, path):
        self.call(new, 0, "run", path)
        shown = self.position(new, path)
        org = new.environment["SF_ORG_ID"]
        if {shown["org"], shown["databases"]["warehouse"]["org"]} != {org}:
            sys.exit("the positions are of %s, not of %s" % (shown["org"], org))
        position = shown["topics"][TOPIC]
        stored = shown["databases"]["warehouse"]["topics"][TOPIC]
        if not position.get("newest_commit_ms") or (
            position["newest_commit_ms"] != stored["newest_commit_ms"]
        ):
            sys.exit("the newest commit time is not stored: %s, %s" % (position, stored))
        epoch = position["epoch"]
        events, records = self.epoch_lines(self.work + "/out/opps", epoch)
        truth = {line["event_id"] for line in self.truth(new)}
        found = {line["_event_id"] for line in events}
        if found != truth:
            sys.exit("files have %d events, the truth %d" % (len(found), len(truth)))
        rows = postgres.query(
            self.admin, "SELECT DISTINCT _event_id FROM sales.opportunity_history "
            "WHERE _epoch = %d AND _change_type <> 'SNAPSHOT'" % epoch)
        if {row[0] for row in rows} != truth:
            sys.exit("the history has %d events, the truth %d" % (len(rows), len(truth)))
        if not records:
            sys.exit("no records were read into files")
        missing = postgres.query(
            self.admin, "SELECT count(*) FROM sales._etl_missing_range WHERE repaired_at IS NULL")
        if missing != [["0"]]:
            sys.exit("%s missing ranges are not repaired" % missing)
        self.verify(new, path)
        self.figures.update({"events of the new org": len(truth), "records read": len(records)})
        # A second run has nothing to stop for, and reads no record again.
        new.publish(10)
        self.call(new, 0, "run", path)
        # A sink of its own has the new org alone.
        document = harness.read_json(path)
        document["sinks"][1].update(name="clean", schema="clean", start="now")
        harness.write_json(path, document)
        self.call(new, 0, "run", path)
        self.verify(new, path)

    def verify(self, new, path):
        """Every record of the new org is in the copies. Records of both orgs have equal IDs here: in tables that
        held the old org the row with the later change wins."""
        counts = json.loads(self.call(new, None, "verify", path, "--json").stdout)["tables"]
        for table in counts:
            found = table["records"]
            differs = found["differing"] and table["sink"] != "warehouse"
            if found["missing"] or differs or not found["equal"]:
                sys.exit("the copy of the new org differs: %s" % table)
            self.figures["verify " + table["sink"]] = {k: v for k, v in found.items() if v}

    # Another stream of the same org

    def other_stream(self):
        shutil.rmtree(self.work + "/out")
        path = self.pipeline("again", "again")
        now = int(time.time() * 1000)
        with self.simulator(
            "before", "--events", "200", "--seed", "3", "--epoch", str(now)
        ) as before:
            self.call(before, 0, "run", path, "--max-events", "150")
            org = before.environment["SF_ORG_ID"]
        with self.simulator(
            "after", "--events", "400", "--seed", "3", "--epoch", str(now - 30 * 3_600_000)
        ) as after:
            if after.environment["SF_ORG_ID"] != org:
                sys.exit("the org is another")
            self.refused(after, path, "another stream")
            # The database alone knows it, too.
            os.rename(self.work + "/state-again", self.work + "/state-kept")
            self.refused(after, self.pipeline("again", "again", files=False), "another stream")
            shutil.rmtree(self.work + "/state-again")
            os.rename(self.work + "/state-kept", self.work + "/state-again")
            self.pipeline("again", "again")
            self.kills(after, path, [], "another stream")
            self.call(after, 0, "run", path)
            epoch = self.position(after, path)["topics"][TOPIC]["epoch"]
            events, _ = self.epoch_lines(self.work + "/out/again", epoch)
            truth = {line["event_id"] for line in self.truth(after)}
            if {line["_event_id"] for line in events} != truth:
                sys.exit("files of the other stream differ from the truth")
            self.figures["events of the other stream"] = len(truth)
        self.figures["epoch of the other stream"] = epoch


def main():
    print(json.dumps(Proof(harness.arguments()).main()))


if __name__ == "__main__":
    main()
