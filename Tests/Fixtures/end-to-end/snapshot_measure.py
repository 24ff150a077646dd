"""Rows per second of a snapshot against `psql \\copy` (see snapshot_proof.py --measure).

For each topic, on one server with its usual settings for safety: the exporter copies an object of --existing
records, without events, into a fresh database. The rows of the finished current table, as a CSV file, are loaded
by `psql \\copy` into an empty table with the same columns, primary key and defaults, long values compressed by the
exporter's method (LZ4, where the server knows it). The two take turns, each after a checkpoint, and the medians
count: a shared machine is faster in one minute than in the next. In mode both the exporter may write history
besides; psql loads the current table alone.

Two rates of the exporter are printed, each with its ratio to that of psql:
- `rows_per_second`: from its start to its last commit, login, the simulator's Bulk job and the wait for visibility
  included. psql's time is that of the whole command.
- `load`: of the rows that came after the first commit with rows, from that to the last; none if there was one
  commit only.

The first copy is compared with what the org holds.

With --files, without a database: CPU time of the exporter (user and system) and its peak memory, against the CPU
time of `zstd -1` for the lines of the snapshot; medians again.
"""

import json
import os
import shutil
import subprocess
import sys
import time

import compare_files
import compare_state
import harness
import postgres
import postgres_measure
import snapshot_proof

ROUNDS = 3
LIMIT = 3600
SETTINGS = ["track_commit_timestamp = on", "max_wal_size = 4GB"]


def measure(arguments, work):
    if arguments.files:
        return measure_files(arguments, work)
    results = {}
    # As fast as the simulator can.
    arguments.bulk_rate, arguments.bulk_queue_time, arguments.visibility_delay = 1e9, 0, 0
    with postgres.Cluster(durable=True, settings=SETTINGS) as cluster:
        for topic in arguments.topics:
            [entity] = snapshot_proof.objects_of([topic])
            # Without records there is no snapshot: the events are loaded, which tests the measurement.
            events = 0 if arguments.existing else arguments.events
            with harness.Simulator(
                arguments.programs, work, "--events", str(events), "--seed", str(arguments.seed),
                "--topics", topic, *snapshot_proof.simulator_options(arguments, work),
            ) as simulator:
                simulator.post("schemas")
                results[entity] = measure_object(arguments, work, simulator, cluster, topic, entity)
    print(json.dumps(results))


def measure_object(arguments, work, simulator, cluster, topic, entity):
    rounds = {"snapshot": [], "copy": []}
    copy = None
    for turn in range(ROUNDS):
        database = "%s_%d_%d" % (entity.lower(), os.getpid(), turn)
        url = cluster.make_database(database)
        rounds["snapshot"].append(load(arguments, work, simulator, cluster, database, topic, entity))
        if turn == 0:
            compare(simulator, url, work, entity, arguments)
            copy = Copy(url, work, entity)
        else:
            postgres.query(cluster.url(), "DROP DATABASE %s" % database)
        rounds["copy"].append(copy.run())
    result = {name: postgres_measure.median(found) for name, found in rounds.items()}
    compared_with(result["snapshot"], result["copy"])
    return result


def measure_files(arguments, work):
    results = {}
    for topic in arguments.topics:
        [entity] = snapshot_proof.objects_of([topic])
        document = snapshot_proof.pipeline(arguments, snapshot_proof.NAME, [topic], "earliest")
        document["sinks"][0].pop("rotate")
        harness.write_json(work + "/pipeline.json", document)
        rounds = []
        with harness.Simulator(
            arguments.programs, work, "--events", "20", "--seed",
            str(arguments.seed), "--topics", topic, *snapshot_proof.simulator_options(arguments, work),
        ) as simulator:
            for _ in range(ROUNDS):
                for name in ("state", "out"):
                    shutil.rmtree("%s/%s" % (work, name), ignore_errors=True)
                command = [arguments.programs + "/pubsub-etl", "run", work + "/pipeline.json"]
                cpu, peak = cpu_of(command, env=simulator.environment)
                paths = [
                    path for path in harness.data_files(work + "/out") if compare_files.PASS.search(path)]
                with open(work + "/lines", "wb") as lines:
                    subprocess.run(["zstd", "-dcq", *sorted(paths)], stdout=lines, check=True)
                zstd, _ = cpu_of(["zstd", "-1qf", "--single-thread", work + "/lines", "-o", work + "/lines.zst"])
                rounds.append((cpu, zstd, peak, os.path.getsize(work + "/lines")))
        cpu, zstd, peak, size = [sorted(column)[ROUNDS // 2] for column in zip(*rounds)]
        results[entity] = {
            "records": arguments.existing, "mib": round(size / 2**20, 1), "cpu_s": round(cpu, 2),
            "zstd_cpu_s": round(zstd, 2), "of_zstd": round(cpu / zstd, 2), "peak_mib": round(peak / 1024, 1)}
    print(json.dumps(results))


def cpu_of(command, **options):
    """CPU seconds of a program that has to succeed, and its peak memory in KiB."""
    process = subprocess.Popen(command, **options)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit("%s ended with %d" % (command[0], process.returncode))
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss


def compared_with(snapshot, copy):
    """Adds the ratios."""
    rate = postgres_measure.rate
    snapshot["of_copy"] = round(rate(snapshot) / rate(copy), 2)
    if snapshot["load"]:
        snapshot["load"]["of_copy"] = round(rate(snapshot["load"]) / rate(copy), 2)


def load(arguments, work, simulator, cluster, database, topic, entity):
    url = cluster.url(database)
    document = snapshot_proof.pipeline(arguments, database, [topic], "earliest", [entity])
    document["checkpoint"]["directory"] = "state-" + database
    if arguments.commit_events:
        document["commit"] = {"max_events": arguments.commit_events}
    path = "%s/%s.json" % (work, database)
    harness.write_json(path, document)
    environment = dict(simulator.environment)
    environment["DATABASE_URL"] = cluster.url(database, user=postgres.ROLE)
    postgres_measure.settle(url)
    started = time.time()
    usage, peak = run([arguments.programs + "/pubsub-etl", "run", path], environment)
    return {
        **rates(url, entity, started),
        "cpu_seconds": round(usage.ru_utime + usage.ru_stime, 2),
        "peak_mib": round(peak / 1024, 1),
    }


def run(command, environment):
    """Usage and the most memory, in KiB, of a run that must end with 0."""
    code, usage, peak = harness.wait_with_peak(subprocess.Popen(command, env=environment), LIMIT)
    if code:
        sys.exit("%s ended with %d" % (command, code))
    return usage, peak


def rates(url, entity, started):
    """Of the current table's rows, by the times of the commits that wrote them."""
    commits = postgres.query(
        url,
        "SELECT extract(epoch FROM pg_xact_commit_timestamp(xmin)), count(*) FROM %s.%s"
        " GROUP BY 1 ORDER BY 1" % (snapshot_proof.SCHEMA, entity.lower()),
    )
    if not commits:
        sys.exit("%s: no rows" % entity)
    times = [float(moment) for moment, _ in commits]
    counts = [int(count) for _, count in commits]
    seconds = times[-1] - started
    rest = None
    if len(commits) > 1:
        rest = {
            "rows": sum(counts[1:]),
            "seconds": round(times[-1] - times[0], 2),
            "rows_per_second": round(sum(counts[1:]) / (times[-1] - times[0])),
        }
    return {
        "rows": sum(counts),
        "commits": len(commits),
        "seconds": round(seconds, 2),
        "rows_per_second": round(sum(counts) / seconds),
        "load": rest,
    }


def compare(simulator, url, work, entity, arguments):
    state = work + "/state.ndjson"
    simulator.write_state(state)
    hidden = [] if arguments.existing else [(entity, compare_state.NEWEST_FIELD)]
    comparison = compare_state.Comparison(url, state, [entity], snapshot_proof.SCHEMA, hidden=hidden)
    if not comparison.run():
        comparison.print_differences()
        sys.exit("%s: the tables differ: %s" % (entity, json.dumps(comparison.result())))


class Copy:
    """The rows of a current table, as a CSV file for `psql \\copy`."""

    def __init__(self, url, work, entity):
        self.url = url
        self.table = "%s.%s" % (snapshot_proof.SCHEMA, entity.lower())
        self.path = work + "/rows.csv"
        names = postgres.query(
            url,
            "SELECT quote_ident(attname) FROM pg_attribute WHERE attrelid = '%s'::regclass"
            " AND attnum > 0 AND NOT attisdropped AND attname <> '_updated_at' ORDER BY attnum" % self.table,
        )
        self.column_count = len(names)
        self.columns = ", ".join(name for [name] in names)
        [[rows]] = postgres.query(url, "SELECT count(*) FROM " + self.table)
        self.row_count = int(rows)
        source = "(SELECT %s FROM %s)" % (self.columns, self.table)
        postgres.run(url, "-c", "\\copy %s TO '%s' (FORMAT csv)" % (source, self.path))

    def run(self):
        like = self.table + " INCLUDING INDEXES INCLUDING DEFAULTS"
        postgres.query(self.url, "CREATE TABLE public.copied (LIKE %s)" % like)
        postgres_measure.settle(self.url)
        command = "\\copy public.copied (%s) FROM '%s' (FORMAT csv)" % (self.columns, self.path)
        started = time.monotonic()
        postgres.run(
            self.url, "-c", postgres_measure.COMPRESSION, "-c", command, stdout=subprocess.DEVNULL)
        seconds = time.monotonic() - started
        [[rows]] = postgres.query(self.url, "SELECT count(*) FROM public.copied")
        if int(rows) != self.row_count:
            sys.exit("%s rows were copied, not %d" % (rows, self.row_count))
        postgres.query(self.url, "DROP TABLE public.copied")
        return {
            "columns": self.column_count,
            "mib": round(os.path.getsize(self.path) / 2**20, 1),
            "seconds": round(seconds, 2),
            "rows_per_second": round(self.row_count / seconds),
        }
