"""Runs the real exporter into a private PostgreSQL server and compares the tables with the truth.

    postgres_proof.py --programs DIR --work DIR [--events N] [--seed S] [--pipelines NAME,...]
        [--mode both|history|current] [--delete mark|remove] [--files] [--pgbouncer] [--pgserver]
        [--kills N] [--server-kills N] [--commit-lost N] [--commit-events N] [--reset] [--schema-change]
        [--second-owner] [--measure] [--simulator-options "--gaps 0.05"]

Four pipelines, each with a schema of its own: topics of one entity each, a channel with all entities,
an enriched channel with groups of equal replay IDs, and a start in the middle, where most updates are
of records never seen. The exporter logs in as a role that owns nothing but its schema.

- --kills: the exporter is ended by SIGKILL at random moments, that many times for each pipeline, and
  run again, with new events each time; --server-kills: the server is, by an immediate stop, and
  started again meanwhile; --commit-lost: a proxy cuts the connection that many times, when the answer
  to COMMIT comes, when COMMIT is sent, within a COPY. A run that is disturbed may go on or end with
  69, 74 or 75; the next continues.
- --commit-events: `commit.max_events`; without it few, so that there are many transactions to disturb.
- --pgbouncer: through PgBouncer in transaction mode, each transaction over another connection.
- --pgserver: against PostgreSQL 16, of the Python package of that name.
- --reset: the position is removed, and set to the earliest event: history repeats nothing, the
  current state stays.
- --schema-change: the service gets new schemas while the exporter follows.
- --second-owner: while one exporter follows, another with a state directory of its own has to end with
  75, and the first goes on.
- --measure: rows per second of history and of both against `psql \\copy` of the same rows into an
  empty table with the same index.

In mode both, `refold` of every record must change nothing at the end.

Prints one JSON line; exits 1 on any difference or unexpected exit code.
"""

import contextlib
import json
import os
import random
import re
import subprocess
import sys
import time

import commit_proxy
import harness
import postgres

PIPELINES = {
    "single": [
        "/data/OpportunityChangeEvent",
        "/data/AccountChangeEvent",
        "/data/ContactChangeEvent",
        "/data/Station__ChangeEvent",
        "/event/Order_Event__e",
    ],
    "channel": ["/data/ChangeEvents"],
    "enriched": ["/data/Sales__chn"],
    "middle": ["/data/AccountChangeEvent"],
}
DISTURBED = (0, 69, 74, 75)
HERE = os.path.dirname(os.path.abspath(__file__))


def main():
    arguments = harness.arguments(
        events=20000, seed=1, pipelines=",".join(PIPELINES), mode=("both", "history", "current"),
        delete=("mark", "remove"), files=False, pgbouncer=False, pgserver=False, kills=0, server_kills=0,
        commit_lost=0, commit_events=int, reset=False, schema_change=False, second_owner=False, measure=False,
        simulator_options="--gaps 0.01 --diffs 0.2")
    if arguments.reset and arguments.files:
        sys.exit("a reset repeats the lines of files, in a new epoch")
    work = arguments.work
    if arguments.measure:
        import postgres_measure

        postgres_measure.measure(arguments, work)
        return
    # Without events of its own the simulator begins with the first version of each schema.
    events = 0 if arguments.schema_change else arguments.events
    with harness.Simulator(
        arguments.programs, work, "--events", str(events), "--seed", str(arguments.seed),
        "--keepalive-interval", "8", *arguments.simulator_options.split(),
    ) as simulator, postgres.Cluster(
        pgbouncer=arguments.pgbouncer, packaged=arguments.pgserver
    ) as cluster:
        if arguments.schema_change:
            simulator.publish(arguments.events)
        database = "warehouse"
        cluster.make_database(database)
        if arguments.pgbouncer:
            cluster.fill_pool(database)
        results = {}
        for name in arguments.pipelines.split(","):
            with Load(arguments, work, simulator, cluster, name, database) as load:
                results[name] = load.prove()
        print(json.dumps(results))


class Load:
    """One pipeline. A context manager."""

    def __init__(self, arguments, work, simulator, cluster, name, database):
        self.arguments, self.simulator, self.cluster = arguments, simulator, cluster
        self.name, self.topics = name, PIPELINES[name]
        if arguments.mode == "current":
            # Platform events have no current state; such a pipeline is refused.
            self.topics = [topic for topic in self.topics if not topic.startswith("/event/")]
        self.chance = random.Random("%d %s" % (arguments.seed, name))
        self.url = cluster.url(database)
        self.errors = "%s/%s.stderr" % (work, name)
        self.report = "%s/%s.report.json" % (work, name)
        self.output = "%s/out/%s" % (work, name)
        self.counts = {}
        port = cluster.pool_port if arguments.pgbouncer else cluster.port
        self.proxy = None
        if arguments.commit_lost:
            self.proxy = commit_proxy.Proxy(port, arguments.seed)
            port = self.proxy.port
        self.environment = dict(simulator.environment)
        self.environment["DATABASE_URL"] = cluster.url(database, port, postgres.ROLE)
        self.disturbances = ["kill"] * arguments.kills
        self.disturbances += ["server_kill"] * arguments.server_kills
        self.disturbances += ["commit_lost"] * arguments.commit_lost
        self.chance.shuffle(self.disturbances)
        self.start = None
        path = "%s/%s.json" % (work, name)
        harness.write_json(path, self.document())
        self.pipeline_file = path
        if name != "single":
            # A schema that the owner of the database has made.
            postgres.query(self.url, "CREATE SCHEMA %s AUTHORIZATION %s" % (name, postgres.ROLE))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.proxy:
            self.proxy.__exit__()

    def document(self):
        document = harness.pipeline(self.name, self.topics)
        if self.name == "middle":
            self.start = self.middle()
            document["source"]["start"] = {"replay_id": self.start}
        sink = {
            "type": "postgres",
            "name": "warehouse",
            "url": "${DATABASE_URL}",
            "schema": self.name,
            "mode": self.arguments.mode,
            "delete": self.arguments.delete,
        }
        files = [document["sinks"][0]] if self.arguments.files else []
        document["sinks"] = [sink] + files
        usual = 20 if self.disturbances else 500
        document["commit"] = {"max_events": self.arguments.commit_events or usual}
        return document

    def middle(self):
        """Replay ID of the middle event of the topic."""
        with open(self.simulator.truth, encoding="utf-8") as file:
            events = map(json.loads, file)
            found = [event["replay_id"] for event in events if event["topic"] == self.topics[0]]
        return found[len(found) // 2]

    def count(self, what, number=1):
        self.counts[what] = self.counts.get(what, 0) + number

    def refold(self):
        """Rebuilds the row of every record from its history, which must change none."""
        command = [self.arguments.programs + "/pubsub-etl", "refold", self.pipeline_file]
        done = subprocess.run(command, env=self.environment, stdout=subprocess.PIPE)
        text = done.stdout.decode()
        counts = re.findall(r"([\d,]+) records checked, ([\d,]+) changed", text)
        if done.returncode or not counts or any(changed != "0" for _, changed in counts):
            sys.exit("%s: refold ended with %d: %s" % (self.name, done.returncode, text))
        return sum(int(checked.replace(",", "")) for checked, _ in counts)

    def prove(self):
        for _ in range(4 * len(self.disturbances)):
            if not self.disturbances:
                break
            if self.disturb(self.disturbances[-1]):
                self.count(self.disturbances.pop())
            self.publish(200)
        if self.disturbances:
            sys.exit("%s: these did not hit a run: %s" % (self.name, self.disturbances))
        usage = self.run()
        peak = self.peak_kib / 1024
        result = self.compare("load")
        if self.arguments.schema_change:
            result = self.change_schemas()
        if self.arguments.second_owner:
            result = self.meet_second_owner()
        if self.arguments.reset:
            result = self.reset()
        if self.arguments.mode == "both":
            result["refolded"] = self.refold()
        result.update(self.counts)
        result["cpu_seconds_of_first_whole_run"] = round(usage.ru_utime + usage.ru_stime, 2)
        result["peak_mib_of_first_whole_run"] = round(peak, 1)
        return result

    def publish(self, count):
        self.simulator.publish(count, *self.topics)

    # Runs

    def spawn(self, *options):
        command = [self.arguments.programs + "/pubsub-etl", "run", self.pipeline_file]
        command += ["--report", self.report, *options]
        with open(self.errors, "wb") as errors:
            return subprocess.Popen(command, env=self.environment, stderr=errors)

    def wait(self, process):
        """(exit status, usage, standard error); ends the proof if the run does not end."""
        code, usage, self.peak_kib = harness.wait_with_peak(process, 300)
        return code, usage, harness.read_text(self.errors)

    def run(self, *options, expected=0):
        """An undisturbed run: quiet and successful."""
        code, usage, errors = self.wait(self.spawn(*options))
        if code == 75 and "--take-over" in errors and expected == 0:
            # A killed run's lease has not expired.
            self.count("take_overs")
            code, usage, errors = self.wait(self.spawn("--take-over", *options))
        if code != expected or (expected == 0 and errors):
            sys.exit("%s: exit code %d, not %d: %s" % (self.name, code, expected, errors))
        if expected != 0 and not errors:
            sys.exit("%s: exit code %d without a message" % (self.name, code))
        return usage

    def disturb(self, kind):
        """Whether the disturbance happened before the run's end."""
        options = []
        if self.counts.get("kill"):
            options = ["--take-over"]
        if kind == "commit_lost":
            return self.lose_commit(options)
        process = self.spawn(*options)
        # Half of the moments count from the start, half from the first commit.
        if self.chance.random() < 0.5:
            with Watch(self.url, self.name) as watch:
                before = watch.progress()
                harness.eventually(lambda: watch.progress() != before, None, process=process, pause=0.002)
        # A random moment.
        harness.ends_within(process, self.chance.uniform(0.02, 0.5))
        if process.poll() is not None:
            self.check_disturbed(process.returncode)
            return False
        if kind == "kill":
            process.kill()
            return process.wait() < 0
        self.cluster.crash()
        # The run may notice, or not.
        time.sleep(self.chance.choice([0, 0.2, 1.5]))
        self.cluster.start()
        self.check_disturbed(self.wait(process)[0])
        return True

    def lose_commit(self, options):
        kind = self.chance.choice(["answer", "answer", "request", "copy"])
        before = sum(self.proxy.cuts.values())
        self.proxy.arm(kind, self.chance.randint(0, 6))
        self.check_disturbed(self.wait(self.spawn(*options))[0])
        self.proxy.arm(None, 0)
        if sum(self.proxy.cuts.values()) == before:
            return False
        self.count("cut_" + kind)
        return True

    def check_disturbed(self, code):
        if code not in DISTURBED:
            with open(self.errors, encoding="utf-8", errors="replace") as file:
                sys.exit("%s: a disturbed run ended with %d: %s" % (self.name, code, file.read()))
        self.count("exit_%d" % code)

    # What is proved afterwards

    def compare(self, moment):
        command = [sys.executable, HERE + "/compare_postgres.py", "--truth", self.simulator.truth]
        command += ["--url", self.url, "--schema", self.name, "--mode", self.arguments.mode]
        command += ["--delete", self.arguments.delete]
        for topic in self.topics:
            command += ["--topic", topic]
        if self.start:
            command += ["--after", self.start]
        compared = subprocess.run(command, env=self.environment, stdout=subprocess.PIPE)
        if compared.returncode:
            sys.exit("%s, %s: the tables differ: %s" % (self.name, moment, compared.stdout.decode()))
        result = json.loads(compared.stdout)
        if not result["events"]:
            sys.exit("%s, %s: nothing was compared" % (self.name, moment))
        if self.arguments.files and not self.start:
            files = harness.compare(self.simulator, self.output, self.topics)
            result["lines_in_files"] = files["lines"]
        return result

    def snapshot(self):
        """All rows of all tables but the bookkeeping, without the times of loading."""
        tables = postgres.query(
            self.url,
            "SELECT c.oid::regclass FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace WHERE"
            " nspname = '%s' AND relkind = 'r' AND relname NOT LIKE '\\_etl\\_%%' ORDER BY 1" % self.name,
        )
        digests = {}
        for (table,) in tables:
            row = "(to_jsonb(t) - '_loaded_at' - '_updated_at')::text"
            sql = "SELECT count(*), md5(string_agg(md5(%s), '' ORDER BY md5(%s))) FROM %s t"
            digests[table] = postgres.query(self.url, sql % (row, row, table))
        return digests

    def reset(self):
        before = self.snapshot()
        postgres.query(self.url, "DELETE FROM %s._etl_checkpoint" % self.name)
        self.run(expected=65)
        self.run("--accept-reset")
        self.check_unchanged(before, "after its position was removed")
        command = [self.arguments.programs + "/pubsub-etl", "checkpoint", "set", self.pipeline_file]
        for topic in self.topics:
            options = ["--topic", topic, "--yes"]
            options += ["--replay-id", self.start] if self.start else ["--earliest"]
            subprocess.run(command + options, env=self.environment, check=True)
        self.run()
        self.check_unchanged(before, "after it was set to the earliest event")
        self.publish(100)
        self.run()
        return self.compare("after two resets and new events")

    def check_unchanged(self, before, moment):
        after = self.snapshot()
        for table in sorted(set(before) | set(after)):
            if before.get(table) != after.get(table):
                sys.exit("%s, %s: %s has changed" % (self.name, moment, table))

    def change_schemas(self):
        before = self.column_count()
        with self.following() as rest:
            self.publish(100)
            self.simulator.post("schemas")
            self.publish(200)
            rest()
        self.run()
        self.count("columns_added", self.column_count() - before)
        if not self.counts["columns_added"]:
            sys.exit("%s: no column was added" % self.name)
        return self.compare("after a change of the schemas")

    def meet_second_owner(self):
        other = os.path.dirname(self.pipeline_file) + "/second"
        with self.following() as rest:
            self.publish(100)
            rest()
            for _ in range(3):
                self.publish(50)
                command = [self.arguments.programs + "/pubsub-etl", "run", self.pipeline_file]
                second = subprocess.run(
                    command + ["--root", other], env=self.environment, stderr=subprocess.PIPE
                )
                if second.returncode != 75 or not second.stderr:
                    sys.exit("%s: a second owner ended with %d" % (self.name, second.returncode))
            rest()
        self.run()
        self.count("second_owners", 3)
        return self.compare("after second owners")

    @contextlib.contextmanager
    def following(self):
        """An exporter that follows; what is yielded waits until its positions stay for 5 s."""
        process = self.spawn("--follow")
        with Watch(self.url, self.name) as watch:

            def rest():
                # The last events are committed within the commit interval of 5 s.
                progress, since = watch.progress(), time.monotonic()

                def is_at_rest():
                    nonlocal progress, since
                    if watch.progress() != progress:
                        progress, since = watch.progress(), time.monotonic()
                    return time.monotonic() >= since + 5

                harness.eventually(is_at_rest, "following comes to rest", 300, process)

            try:
                yield rest
                process.terminate()
                code, _, errors = self.wait(process)
                if code != 0:
                    sys.exit("%s: following ended with %d: %s" % (self.name, code, errors))
            finally:
                if process.returncode is None:
                    process.kill()
                    process.wait()

    def column_count(self):
        sql = "SELECT count(*) FROM %s._etl_column" % self.name
        return int(postgres.query(self.url, sql)[0][0])


class Watch(contextlib.AbstractContextManager):
    """Sees commits of a pipeline by its rows: asks over one connection, often."""

    def __init__(self, url, schema):
        self.sql = "SELECT topics FROM %s._etl_checkpoint;\n\\echo end\n" % schema
        self.process = subprocess.Popen(
            ["psql", "-XAtq", "-d", url], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True,
        )

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()

    def progress(self):
        """The positions as text; nothing before the first run has made the table."""
        self.process.stdin.write(self.sql)
        self.process.stdin.flush()
        lines = []
        for line in self.process.stdout:
            if line == "end\n":
                return "".join(lines)
            lines.append(line)
        sys.exit("psql has ended")


if __name__ == "__main__":
    main()
