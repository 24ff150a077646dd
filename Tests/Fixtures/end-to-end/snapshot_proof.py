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

import contextlib
import json
import os
import random
import re
import shlex
import signal
import shutil
import ssl
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
    work = arguments.work
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
    arguments = harness.arguments(
        runs=1, seed=1, existing=2000, events=2000, rate=100.0, topics=",".join(TOPICS), objects=None,
        mode=("both", "current"), delete=("mark", "remove"), start=("any", "earliest", "latest"), kills=0,
        server_kills=0, commit_events=int, visibility_wait="1s", visibility_delay=300, bulk_queue_time=300,
        bulk_rate=float, unshared=0.0, hidden_field=[], fault=[], simulator_options=QUIET, repair=False, later=False,
        follow=False, outage=False, files=False, files_and_postgres=False, measure=False)
    if arguments.repair and arguments.simulator_options == QUIET:
        arguments.simulator_options = ""
    arguments.has_files = arguments.files or arguments.files_and_postgres
    arguments.has_tables = not arguments.files
    if arguments.has_files and (arguments.repair or arguments.outage or arguments.follow):
        sys.exit("nothing is repaired in files")
    if arguments.files and arguments.server_kills:
        sys.exit("files have no server")
    arguments.topics = arguments.topics.split(",")
    if arguments.objects:
        arguments.objects = arguments.objects.split(",")
    else:
        arguments.objects = objects_of(arguments.topics)
    if arguments.existing == 0 and (arguments.start == "latest" or arguments.unshared):
        sys.exit("without records from before there is nothing to read")
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


class Copy(harness.Exporter):
    """One run with its own seed."""

    def __init__(self, arguments, work, simulator, cluster, seed):
        super().__init__(
            arguments.programs + "/pubsub-etl", work + "/pipeline.json", dict(simulator.environment))
        self.arguments, self.work, self.simulator, self.cluster = arguments, work, simulator, cluster
        self.seed = seed
        self.chance = random.Random("%d copy" % seed)
        if cluster:
            self.url = cluster.make_database("warehouse")
            self.environment["DATABASE_URL"] = cluster.url("warehouse", user=postgres.ROLE)
        self.output = work + "/out/" + NAME
        self.state = work + "/state.ndjson"
        self.counts = {}
        self.verb = "run"
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
        harness.write_json(self.path, document)

    def count(self, what, number=1):
        self.counts[what] = self.counts.get(what, 0) + number

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
            # What that run has read late is old enough for the next one.
            self.simulator.advance("2s")
        if self.arguments.later:
            self.verb = "snapshot"
            self.run((0,))
            self.verb = "run"
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
        self.simulator.publish(OUTAGE_EVENTS, *self.arguments.topics)
        self.simulator.advance(OUTAGE)
        self.simulator.publish(20, *self.arguments.topics)

    def is_published(self):
        return self.simulator.get("stats")["published"] >= self.published

    def calm_simulator(self):
        """The org shows all changes, and nothing goes wrong any more."""
        self.simulator.forget_faults()
        self.simulator.advance("%dms" % self.arguments.visibility_delay)

    # Runs

    def allowed(self):
        return postgres_proof.DISTURBED if self.arguments.fault else (0,)

    def start_run(self, *options, takes_over=False):
        options = [self.verb, "--report", self.work + "/report.json", *options]
        if self.arguments.has_tables and (takes_over or self.counts.get("kill") or self.counts.get("server_kill")):
            # The lease of a run that has lost its life or its server may not have expired.
            options.append("--take-over")
        return self.spawn(*options)

    def finish(self, process):
        """The exit code; ends the proof if the run does not end."""
        code, _, peak = harness.wait_with_peak(process, LIMIT, self.fail)
        self.peak_kib = max(self.peak_kib, peak)
        return code

    def run(self, allowed, is_last=False):
        """A run that we do not disturb."""
        code = self.finish(self.start_run())
        if code == 75 and "--take-over" in self.said():
            self.count("take_overs")
            code = self.finish(self.start_run(takes_over=True))
        if code not in allowed:
            self.fail("exit code %d" % code)
        if code == 0 and self.is_clean and self.said():
            self.fail("a successful run has said something")
        self.count("last_run" if is_last else "runs")

    def follow(self):
        """One run that goes on until it has looked twice for what is to be read again."""
        process = self.start_run("--follow")
        # Time is the subject: it looks once a minute.
        time.sleep(FOLLOWED)
        process.send_signal(signal.SIGINT)
        self.end(process)

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
        self.simulator.publish(count, *self.arguments.topics)
        self.published += count * len(self.arguments.topics)

    def disturb(self, kind):
        """Whether the disturbance happened before the run's end."""
        moments = ["start", "load", "load", "any"] + ["read"] * 4 * self.arguments.has_files
        moment = self.chance.choice(moments)
        process = self.start_run()
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
            # The run may notice, or not.
            time.sleep(self.chance.choice([0, 0.2, 1.5]))
            self.cluster.start()
            self.check_disturbed(self.finish(process))
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
            harness.eventually(
                lambda: any(0 < rows for rows in watch.rows()), None, LIMIT, process, pause=0.002)
        if moment == "load":
            # The checkpoint of files is durable first, the database's transaction next.
            watches_files = self.arguments.files or self.arguments.has_files and self.chance.random() < 0.5
            with FilesWatch(self.work) if watches_files else Watch(self.url) as watch:
                before = watch.progress()
                harness.eventually(lambda: watch.progress() != before, None, LIMIT, process, pause=0.005)
        longest = {"start": 0.6, "load": 1, "read": 0.3, "any": 5}[moment]
        harness.ends_within(process, self.chance.uniform(0.02, longest))
        self.peak_kib = max(self.peak_kib, harness.peak_kib(process.pid))

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
        text = self.call("refold").stdout
        counts = re.findall(r"([\d,]+) records checked, ([\d,]+) changed", text)
        if not counts or any(changed != "0" for _, changed in counts):
            sys.exit("seed %d: refold says %s" % (self.seed, text))
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
            sinks = harness.read_json(self.path)["sinks"]
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
