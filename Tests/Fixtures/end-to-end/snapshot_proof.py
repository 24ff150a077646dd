"""Proves that a pipeline with a snapshot makes a complete copy: tables and files equal to what the org holds.

    snapshot_proof.py --programs DIR --work DIR [--runs N] [--seed S] [--existing N] [--events N]
        [--rate EVENTS_PER_S] [--topics NAME,...] [--objects NAME,...] [--mode both|current]
        [--delete mark|remove] [--start earliest|latest|any] [--kills N] [--server-kills N]
        [--commit-events N] [--visibility-wait TIME] [--visibility-delay MS] [--bulk-queue-time MS]
        [--bulk-rate ROWS_PER_S] [--unshared SHARE] [--hidden-field OBJECT.FIELD ...] [--fault JSON ...]
        [--repair] [--later] [--follow] [--outage] [--files | --files-and-postgres] [--simulator-options "--diffs 0.1"]
        [--measure]

Each run has a seed, a simulator whose objects have records from before the first event, and a PostgreSQL server.
A quarter of the events is published before the exporter starts, the others follow at a steady rate: before,
during and after the snapshot. The exporter runs until it is caught up, again and again. When all events are
published and all disturbances have happened, one run that nothing disturbs has to end with 0. Then the tables are
compared with the simulator's state file by compare_state.py, record by record and column by column. In mode both,
`refold` of every record must change nothing.

- --existing: records of every object before the first event; 0: the pipeline has no snapshot, which proves the
  comparison itself.
- --topics: topics of one entity each, or a channel, whose objects are named in the pipeline file.
- --start: where the stream begins; any: the seed decides.
- --kills: the exporter is ended by SIGKILL that many times, soon after its start, in the middle of what it loads,
  or at any moment; --server-kills: the PostgreSQL server is, by an immediate stop, and is started again. A run
  that is disturbed may go on or end with 69, 74 or 75; so may all runs but the last with --fault.
- --commit-events: `commit.max_events`; without it few, if something disturbs.
- --bulk-rate: without it the jobs of the simulator take about two seconds.
- --unshared, --hidden-field: records and fields that the user may not read. What events tell of them must be
  right, and nothing else may be there.
- --repair: with gap, overflow and wildcard events, and lost differences, after which records are read again.
- --later: records are not read until the command `snapshot` does it, into tables that events have filled.
- --follow: with --repair, one run that follows repairs everything.
- --outage: with --repair, when all is published the exporter rests while more changes, for longer than events are
  kept: what the service no longer has is read.
- --files: into files, without a database; --files-and-postgres: into both. The views "…_now" of the
  files are compared by compare_files.py, which looks at each file and each line of a snapshot, too. The
  simulator sends no diffs of texts then, which files do not apply.
- --simulator-options: others of the simulator; without it there are no gap, overflow and wildcard events, after
  which a copy is not complete until it is repaired.
- --measure: instead, rows per second of the snapshot alone against `psql \\copy`; see snapshot_measure.py. With --files, its CPU time against that of
  `zstd -1`.

Prints one JSON line for each run; exits 1 on any difference or unexpected exit code, after the first ten
differences: record ID, column, expected, found.
"""

import argparse
import contextlib
import json
import os
import random
import re
import shlex
import signal
import shutil
import ssl
import subprocess
import sys
import time
import urllib.parse
import urllib.request

import compare_files
import compare_state
import compare_unmarked
import harness
import postgres
import postgres_proof

TOPICS = ["/data/OpportunityChangeEvent", "/data/AccountChangeEvent", "/data/ContactChangeEvent"]
CHANNELS = {
    "/data/ChangeEvents": ["Opportunity", "Account", "Contact", "Station__c"],
    "/data/Sales__chn": ["Opportunity", "Account"],
}
NAME = "copy"
SCHEMA = "salesforce"
# Of the events that are published before the exporter starts.
BEFORE = 0.25
# Nothing that only a repair puts right.
QUIET = "--gaps 0 --overflows 0 --wildcards 0"
# Runs by which everything is right again: events, all records of what overflowed, single records.
REPAIRS = 4
# Seconds of a run that follows: it looks once a minute.
FOLLOWED = 200
# Events are kept for 72 hours.
OUTAGE = "80h"
# Of each topic, of which nothing is left at the end of the outage.
OUTAGE_EVENTS = 200
# Seconds that the simulator's jobs take.
JOB_TIME = 2
LIMIT = 600


def main():
    arguments = parse()
    work = os.path.abspath(arguments.work)
    os.makedirs(work, exist_ok=True)
    if arguments.measure:
        import snapshot_measure

        snapshot_measure.measure(arguments, work)
        return
    for seed in range(arguments.seed, arguments.seed + arguments.runs):
        directory = "%s/%d" % (work, seed)
        os.makedirs(directory, exist_ok=True)
        # Of an earlier proof, whose database is gone.
        for name in ("state", "out"):
            shutil.rmtree("%s/%s" % (directory, name), ignore_errors=True)
        print(json.dumps(prove(arguments, directory, seed)), flush=True)


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--programs", required=True)
    parser.add_argument("--work", required=True)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--existing", type=int, default=2000)
    parser.add_argument("--events", type=int, default=2000)
    parser.add_argument("--rate", type=float, default=100)
    parser.add_argument("--topics", default=",".join(TOPICS))
    parser.add_argument("--objects", help="default: those of the topics")
    parser.add_argument("--mode", default="both", choices=["both", "current"])
    parser.add_argument("--delete", default="mark", choices=["mark", "remove"])
    parser.add_argument("--start", default="any", choices=["earliest", "latest", "any"])
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--server-kills", type=int, default=0)
    parser.add_argument("--commit-events", type=int)
    parser.add_argument("--visibility-wait", default="1s")
    parser.add_argument("--visibility-delay", type=int, default=300)
    parser.add_argument("--bulk-queue-time", type=int, default=300)
    parser.add_argument("--bulk-rate", type=float)
    parser.add_argument("--unshared", type=float, default=0)
    parser.add_argument("--hidden-field", action="append", default=[])
    parser.add_argument("--fault", action="append", default=[])
    parser.add_argument("--simulator-options", default=QUIET)
    parser.add_argument("--repair", action="store_true")
    parser.add_argument("--later", action="store_true")
    parser.add_argument("--follow", action="store_true")
    parser.add_argument("--outage", action="store_true")
    parser.add_argument("--files", action="store_true")
    parser.add_argument("--files-and-postgres", action="store_true")
    parser.add_argument("--measure", action="store_true")
    arguments = parser.parse_args()
    if arguments.repair and arguments.simulator_options == QUIET:
        arguments.simulator_options = ""
    arguments.has_files = arguments.files or arguments.files_and_postgres
    arguments.has_tables = not arguments.files
    if arguments.has_files and (arguments.repair or arguments.outage or arguments.follow):
        parser.error("nothing is repaired in files")
    if arguments.files and arguments.server_kills:
        parser.error("files have no server")
    arguments.topics = arguments.topics.split(",")
    if arguments.objects:
        arguments.objects = arguments.objects.split(",")
    else:
        arguments.objects = objects_of(arguments.topics)
    if arguments.existing == 0 and (arguments.start == "latest" or arguments.unshared):
        parser.error("without records from before there is nothing to read")
    return arguments


def objects_of(topics):
    """API names of the objects whose changes the topics have."""
    objects = []
    for topic in topics:
        name = topic.removeprefix("/data/").removesuffix("ChangeEvent")
        objects += CHANNELS.get(topic) or [name + "c" if name.endswith("__") else name]
    return objects


def prove(arguments, work, seed):
    before = int(arguments.events * BEFORE)
    with harness.Simulator(
        arguments.programs, work, "--events", str(before), "--seed", str(seed),
        "--topics", ",".join(arguments.topics), "--keepalive-interval", "8",
        "--live-rate", str(arguments.rate), "--live-count", str(arguments.events - before),
        *simulator_options(arguments, work),
    ) as simulator, postgres.Cluster() if arguments.has_tables else contextlib.nullcontext() as cluster:
        # Events of the first versions of schemas are among those from before the start alone: what they leave
        # out of a record, only the snapshot tells.
        simulator.post("schemas")
        return Copy(arguments, work, simulator, cluster, seed).prove()


def simulator_options(arguments, work):
    rate = arguments.bulk_rate or max(100, arguments.existing / JOB_TIME)
    options = ["--existing", str(arguments.existing), "--state", work + "/state.ndjson"]
    options += ["--visibility-delay", str(arguments.visibility_delay)]
    options += ["--bulk-queue-time", str(arguments.bulk_queue_time), "--bulk-rate", str(rate)]
    options += ["--unshared", str(arguments.unshared)]
    for field in arguments.hidden_field:
        options += ["--hidden-field", field]
    for fault in arguments.fault:
        options += ["--fault", fault]
    if arguments.has_files:
        options += ["--diffs", "0"]
    return options + shlex.split(arguments.simulator_options)


def pipeline(arguments, name, topics, start, objects=None):
    """A pipeline file that copies the objects of some topics."""
    document = harness.pipeline(name, topics)
    document["source"]["start"] = start
    if arguments.existing:
        mode = "never" if arguments.later else "initial"
        snapshot = {"mode": mode, "visibility_wait": arguments.visibility_wait}
        if any(topic in CHANNELS for topic in topics):
            snapshot["objects"] = objects
        document["source"]["snapshot"] = snapshot
    if arguments.repair:
        document["repair"] = {"mode": "auto"}
    if arguments.outage:
        document["source"]["on_invalid_replay"] = "snapshot"
    sinks = [
        {
            "type": "postgres",
            "name": "warehouse",
            "url": "${DATABASE_URL}",
            "mode": arguments.mode,
            "delete": arguments.delete,
        }
    ]
    files = {"type": "files", "name": "files", "directory": "out/" + name, "rotate": {"max_events": 300}}
    document["sinks"] = [files] * arguments.has_files + sinks * arguments.has_tables
    return document


class Copy:
    """One run with its own seed."""

    def __init__(self, arguments, work, simulator, cluster, seed):
        self.arguments, self.work, self.simulator, self.cluster = arguments, work, simulator, cluster
        self.seed = seed
        self.chance = random.Random("%d copy" % seed)
        self.environment = dict(simulator.environment)
        if cluster:
            self.url = cluster.make_database("warehouse")
            self.environment["DATABASE_URL"] = cluster.url("warehouse", user=postgres.ROLE)
        self.output = work + "/out/" + NAME
        self.state, self.errors = work + "/state.ndjson", work + "/stderr"
        self.counts = {}
        self.command = "run"
        self.published = arguments.events
        self.is_clean = not (arguments.fault or arguments.repair or arguments.unshared or arguments.hidden_field)
        self.peak_kib = 0
        self.start = arguments.start
        if self.start == "any":
            self.start = self.chance.choice(["earliest", "latest"]) if arguments.existing else "earliest"
        self.disturbances = ["kill"] * arguments.kills + ["server_kill"] * arguments.server_kills
        self.chance.shuffle(self.disturbances)
        document = pipeline(arguments, NAME, arguments.topics, self.start, arguments.objects)
        usual = 20 if self.disturbances else 500
        document["commit"] = {"max_events": arguments.commit_events or usual}
        self.pipeline_file = work + "/pipeline.json"
        harness.write_json(self.pipeline_file, document)

    def count(self, what, number=1):
        self.counts[what] = self.counts.get(what, 0) + number

    def said(self):
        """Standard error of the last run."""
        with open(self.errors, encoding="utf-8", errors="replace") as file:
            return file.read()

    def fail(self, message):
        sys.exit("seed %d: %s: %s" % (self.seed, message, self.said()[-3000:]))

    def prove(self):
        began = time.monotonic()
        self.disturb_all()
        while not self.is_published():
            self.run(self.allowed())
        if self.arguments.outage:
            self.pause()
        self.calm_simulator()
        if self.arguments.follow:
            self.follow()
        for _ in range(REPAIRS if self.arguments.repair and not self.arguments.follow else 0):
            self.run((0,))
            time.sleep(1.5)
        if self.arguments.later:
            self.command = "snapshot"
            self.run((0,))
            self.command = "run"
        self.run((0,), is_last=True)
        stats = self.simulator.get("stats")
        result = {"seed": self.seed, "start": self.start, "events": stats["published"]}
        self.simulator.write_state(self.state)
        if self.arguments.has_files:
            result["files"] = self.compare_files()
        if self.arguments.has_tables:
            result.update(self.compare())
            if self.arguments.mode == "both":
                result["refolded"] = self.refold()
        result.update(self.counts)
        result["api_calls"], result["bulk_jobs"] = stats["api_calls"], stats["bulk_jobs"]
        result["delivered"] = stats["delivered"]
        result["peak_mib"] = round(self.peak_kib / 1024, 1)
        result["seconds"] = round(time.monotonic() - began, 1)
        return result

    def pause(self):
        """No run for longer than events are kept, in which much changes."""
        self.run(self.allowed())
        for topic in self.arguments.topics:
            self.simulator.post("publish?count=%d&topic=%s" % (OUTAGE_EVENTS, topic))
        self.simulator.post("clock?advance=%s" % OUTAGE)
        for topic in self.arguments.topics:
            self.simulator.post("publish?count=20&topic=%s" % topic)

    def is_published(self):
        return self.simulator.get("stats")["published"] >= self.published

    def calm_simulator(self):
        """The org shows all changes, and nothing goes wrong any more."""
        request = urllib.request.Request(self.simulator.control + "faults", method="DELETE")
        urllib.request.urlopen(request).read()
        time.sleep(self.arguments.visibility_delay / 1000)

    # Runs

    def allowed(self):
        return postgres_proof.DISTURBED if self.arguments.fault else (0,)

    def spawn(self, *options, takes_over=False):
        command = [self.arguments.programs + "/pubsub-etl", self.command, self.pipeline_file]
        command += ["--report", self.work + "/report.json", *options]
        if self.arguments.has_tables and (takes_over or self.counts.get("kill") or self.counts.get("server_kill")):
            # The lease of a run that has lost its life or its server may not have expired.
            command.append("--take-over")
        with open(self.errors, "wb") as errors:
            return subprocess.Popen(command, env=self.environment, stderr=errors)

    def wait(self, process):
        """The exit code; ends the proof if the run does not end."""
        deadline = time.monotonic() + LIMIT
        while process.poll() is None:
            self.peak_kib = max(self.peak_kib, postgres_proof.peak_kib(process.pid))
            if time.monotonic() > deadline:
                process.kill()
                self.fail("a run has not ended after %d s" % LIMIT)
            time.sleep(0.01)
        return process.returncode

    def run(self, allowed, is_last=False):
        """A run that we do not disturb."""
        code = self.wait(self.spawn())
        if code == 75 and "--take-over" in self.said():
            self.count("take_overs")
            code = self.wait(self.spawn(takes_over=True))
        if code not in allowed:
            self.fail("exit code %d" % code)
        if code == 0 and self.is_clean and self.said():
            self.fail("a successful run has said something")
        self.count("last_run" if is_last else "runs")

    def follow(self):
        """One run that goes on until it has looked twice for what is to be read again."""
        process = self.spawn("--follow")
        time.sleep(FOLLOWED)
        process.send_signal(signal.SIGINT)
        code = self.wait(process)
        if code != 0:
            self.fail("exit code %d" % code)

    def disturb_all(self):
        for _ in range(10 + 6 * len(self.disturbances)):
            if not self.disturbances:
                return
            if self.is_published():
                self.publish(20)
            if self.chance.random() < 0.2:
                self.run(self.allowed())
            elif self.disturb(self.disturbances[-1]):
                self.count(self.disturbances.pop())
        self.fail("these did not hit a run: %s" % self.disturbances)

    def publish(self, count):
        """Events beside those that come by themselves, so that the next run has something to do."""
        for topic in self.arguments.topics:
            self.simulator.post("publish?count=%d&topic=%s" % (count, topic))
        self.published += count * len(self.arguments.topics)

    def disturb(self, kind):
        """Whether the disturbance happened before the run's end."""
        moments = ["start", "load", "load", "any"] + ["read"] * 4 * self.arguments.has_files
        moment = self.chance.choice(moments)
        process = self.spawn()
        self.await_moment(process, moment)
        if process.poll() is not None:
            self.check_disturbed(process.returncode)
            return False
        if kind == "kill":
            process.kill()
            if process.wait() >= 0:
                return False
        else:
            self.cluster.crash()
            time.sleep(self.chance.choice([0, 0.2, 1.5]))
            self.cluster.start()
            self.check_disturbed(self.wait(process))
        self.count("disturbed_at_" + moment)
        if self.arguments.has_files and any(0 < rows for rows in FilesWatch(self.work).rows()):
            self.count("disturbed_in_pass")
        if kind == "kill" and self.arguments.has_tables:
            self.look_for_unmarked()
        return True

    def look_for_unmarked(self):
        """At a commit that chance has made the last one, no row may be wrong without a mark."""
        if not postgres.query(self.url, "SELECT 1 WHERE to_regclass('%s._freshness') IS NOT NULL" % SCHEMA):
            return
        self.simulator.write_state(self.state)
        pending = compare_unmarked.pending(self.url, self.simulator.truth, SCHEMA)
        comparison = compare_unmarked.Unmarked(
            self.url, self.state, self.arguments.objects, SCHEMA, pending, hidden=self.hidden(),
            visible=self.visible())
        if not comparison.run():
            comparison.print_differences()
            self.print_bookkeeping()
            sys.exit("seed %d: wrong without a mark: %s" % (self.seed, json.dumps(comparison.result())))
        self.count("unmarked_looked_for")
        for name in ("compared", "marked", "pending", "objects_marked"):
            self.count("unmarked_" + name, comparison.counts[name])

    def await_moment(self, process, moment):
        """Soon after the start, soon after rows are committed, while records are read into files, or whenever; or
        until the run's end."""
        if moment == "read":
            watch = FilesWatch(self.work)
            while process.poll() is None and not any(0 < rows for rows in watch.rows()):
                time.sleep(0.002)
        if moment == "load":
            # The checkpoint of files is durable first, the database's transaction next.
            watches_files = self.arguments.files or self.arguments.has_files and self.chance.random() < 0.5
            with FilesWatch(self.work) if watches_files else Watch(self.url) as watch:
                before = watch.progress()
                while process.poll() is None and watch.progress() == before:
                    time.sleep(0.005)
        longest = {"start": 0.6, "load": 1, "read": 0.3, "any": 5}[moment]
        deadline = time.monotonic() + self.chance.uniform(0.02, longest)
        while process.poll() is None and time.monotonic() < deadline:
            self.peak_kib = max(self.peak_kib, postgres_proof.peak_kib(process.pid))
            time.sleep(0.002)

    def check_disturbed(self, code):
        if code not in postgres_proof.DISTURBED:
            self.fail("a disturbed run ended with %d" % code)
        self.count("exit_%d" % code)

    # What is proved afterwards

    def compare_files(self):
        comparison = compare_files.Folded(
            self.output, self.state, self.arguments.objects, hidden=self.hidden(), visible=self.visible())
        comparison.check_files()
        if not comparison.run():
            comparison.print_differences()
            sys.exit("seed %d: the files differ: %s" % (self.seed, json.dumps(comparison.result())))
        result = comparison.result()
        if result.get("compared", 0) < self.arguments.existing:
            sys.exit("seed %d: only %s records were compared" % (self.seed, result))
        return result

    def compare(self):
        comparison = compare_state.Comparison(
            self.url, self.state, self.arguments.objects, SCHEMA, hidden=self.hidden(), visible=self.visible(),
            is_repaired=self.arguments.repair)
        if not comparison.run():
            comparison.print_differences()
            self.print_bookkeeping()
            sys.exit("seed %d: the tables differ: %s" % (self.seed, json.dumps(comparison.result())))
        result = comparison.result()
        if result.get("compared", 0) < self.arguments.existing:
            sys.exit("seed %d: only %s records were compared" % (self.seed, result))
        return result

    def hidden(self):
        """Pairs of object and field."""
        hidden = [tuple(name.split(".")) for name in self.arguments.hidden_field]
        if not self.arguments.existing:
            hidden += [(name, compare_state.NEWEST_FIELD) for name in self.arguments.objects]
        return hidden

    def print_bookkeeping(self):
        """What the database says of its reads, for whoever has to find out why tables differ."""
        for statement in (
            "SELECT * FROM %s._etl_snapshot ORDER BY entity",
            "SELECT entity, kind, done_at IS NULL, count(*), min(noted_at), max(noted_at)"
            " FROM %s._etl_resync GROUP BY 1, 2, 3 ORDER BY 1, 2, 3",
            "SELECT * FROM %s._etl_missing_range ORDER BY id",
        ):
            for row in postgres.query(self.url, statement % SCHEMA):
                print(*row, sep=" | ")

    def visible(self):
        """IDs of the records that the user may read; None: all of them."""
        if not self.arguments.unshared:
            return None
        found = set()
        for name in self.arguments.objects:
            path = "/services/data/v66.0/queryAll?q=" + urllib.parse.quote("SELECT Id FROM " + name)
            while path:
                page = self.rest(path)
                found.update(record["Id"] for record in page["records"])
                path = page.get("nextRecordsUrl")
        return found

    def rest(self, path):
        request = urllib.request.Request(
            self.environment["SF_INSTANCE_URL"] + path,
            headers={"Authorization": "Bearer " + self.environment["SF_ACCESS_TOKEN"]},
        )
        context = ssl.create_default_context(cafile=self.environment["PUBSUB_CA_FILE"])
        with urllib.request.urlopen(request, context=context) as answer:
            return json.load(answer)

    def refold(self):
        """Rebuilds the row of every record from its history, which must change none."""
        command = [self.arguments.programs + "/pubsub-etl", "refold", self.pipeline_file]
        done = subprocess.run(command, env=self.environment, stdout=subprocess.PIPE)
        text = done.stdout.decode()
        counts = re.findall(r"([\d,]+) records checked, ([\d,]+) changed", text)
        if done.returncode or not counts or any(changed != "0" for _, changed in counts):
            sys.exit("seed %d: refold ended with %d: %s" % (self.seed, done.returncode, text))
        return sum(int(checked.replace(",", "")) for checked, _ in counts)


class FilesWatch(contextlib.AbstractContextManager):
    """Sees commits of files by the checkpoint, which each replaces."""

    def __init__(self, work):
        self.path = "%s/state/%s.checkpoint.json" % (work, NAME)

    def __exit__(self, *_):
        pass

    def progress(self):
        """Another value for each checkpoint."""
        try:
            found = os.stat(self.path)
        except FileNotFoundError:
            return None
        return found.st_ino, found.st_mtime_ns

    def rows(self):
        """Records of each pass that is not complete."""
        try:
            with open(self.path, encoding="utf-8") as file:
                sinks = json.load(file)["sinks"]
        except FileNotFoundError:
            return []
        passes = sinks.get("files", {}).get("passes", [])
        return [entry["rows"] for entry in passes if entry["state"] != "complete"]


class Watch(postgres_proof.Watch):
    """Sees commits of events and of records that were read, by the bookkeeping of both."""

    def __init__(self, url):
        super().__init__(url, SCHEMA)
        self.sql = (
            "SELECT format('SELECT t::text FROM %%s t', c.oid::regclass) FROM pg_class c"
            " JOIN pg_namespace n ON n.oid = relnamespace WHERE nspname = '%s' AND relkind = 'r'"
            " AND relname IN ('_etl_checkpoint', '_etl_snapshot') ORDER BY 1\n\\gexec\n\\echo end\n" % SCHEMA
        )


if __name__ == "__main__":
    main()
