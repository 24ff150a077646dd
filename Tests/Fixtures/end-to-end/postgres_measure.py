"""Rows per second of the Postgres sink against `psql \\copy` (see postgres_proof.py --measure).

For each entity, on one server with its usual settings for safety: the exporter loads all events of
a simulator into a fresh database, `history` and `both`; the rows of the history table, as a file,
are copied into an empty table with the same columns, index and defaults, long values compressed by
the exporter's method (LZ4, where the server knows it). The three take turns, each after a
checkpoint, and the medians count: a shared machine is faster in one minute than in the next. The
exporter's time is from its start, login and decoding included, to its last commit;
psql's that of the whole command, in the better of the binary and the text format.
"""

import json
import os
import subprocess
import sys
import time

import harness
import postgres

ENTITIES = {"Opportunity": "/data/OpportunityChangeEvent", "Account": "/data/AccountChangeEvent"}

ROUNDS = 3

COMPRESSION = """
SELECT set_config(name, 'lz4', false) FROM pg_settings
WHERE name = 'default_toast_compression' AND 'lz4' = ANY (enumvals)
"""


def measure(arguments, work):
    results = {}
    settings = ["track_commit_timestamp = on", "max_wal_size = 4GB"]
    with postgres.Cluster(durable=True, settings=settings) as cluster:
        for entity, topic in ENTITIES.items():
            with harness.Simulator(
                arguments.programs, work, "--events", str(arguments.events), "--topics", topic,
                "--seed", str(arguments.seed), *arguments.simulator_options.split(),
            ) as simulator:
                results[entity] = measure_entity(arguments, work, simulator, cluster, entity, topic)
    print(json.dumps(results))


def measure_entity(arguments, work, simulator, cluster, entity, topic):
    table = entity.lower() + "_history"
    rounds = {"history": [], "both": [], "binary": [], "text": []}
    copy = None
    for turn in range(ROUNDS):
        for mode in ("history", "both"):
            database = "%s_%s_%d" % (entity.lower(), mode, turn)
            url = cluster.make_database(database)
            rounds[mode].append(load(arguments, work, simulator, cluster, database, topic, mode))
            if turn == 0:
                compare(simulator, url, topic, mode)
                copy = copy or Copy(url, work, table)
            else:
                postgres.query(cluster.url("postgres"), "DROP DATABASE " + database)
        for form in ("binary", "text"):
            rounds[form].append(copy.run(form))
    result = {mode: median(rounds[mode]) for mode in ("history", "both")}
    result["copy"] = max((median(rounds[form]) for form in ("binary", "text")), key=rate)
    for mode in ("history", "both"):
        result[mode]["of_copy"] = round(rate(result[mode]) / rate(result["copy"]), 2)
        result[mode]["events_of_copy"] = round(
            result[mode]["events_per_second"] / rate(result["copy"]), 2)
    return result


def rate(result):
    return result["rows_per_second"]


def median(results):
    return sorted(results, key=rate)[len(results) // 2]


def load(arguments, work, simulator, cluster, database, topic, mode):
    url = cluster.url(database)
    document = harness.pipeline(database, topic)
    document["checkpoint"]["directory"] = "state-" + database
    document["sinks"] = [{"type": "postgres", "name": "warehouse", "url": "${DATABASE_URL}", "mode": mode}]
    # Ends with the last event, so that the last commit's time does not include waiting for more.
    document["run"] = {"until": {"events": arguments.events}}
    path = "%s/%s.json" % (work, database)
    harness.write_json(path, document)
    environment = dict(simulator.environment)
    environment["DATABASE_URL"] = cluster.url(database, user=postgres.ROLE)
    settle(url)
    started = time.time()
    process = subprocess.Popen([arguments.programs + "/pubsub-etl", "run", path], env=environment)
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit("%s: wait status %d" % (database, status))
    table = "salesforce.%s_history" % database.split("_")[0]
    [[rows, events, records, ended]] = postgres.query(
        url,
        "SELECT count(*), count(DISTINCT _ordinal), count(DISTINCT _record_id),"
        " extract(epoch FROM max(pg_xact_commit_timestamp(xmin))) FROM " + table,
    )
    seconds = float(ended) - started
    return {
        "rows": int(rows),
        "events": int(events),
        "records": int(records),
        "seconds": round(seconds, 2),
        "rows_per_second": round(int(rows) / seconds),
        "events_per_second": round(int(events) / seconds),
        "cpu_seconds": round(usage.ru_utime + usage.ru_stime, 2),
        "peak_mib": round(usage.ru_maxrss / 1024, 1),
    }


def settle(url):
    """Earlier data is written first, so that the measurement does not include it."""
    postgres.query(url, "CHECKPOINT")
    os.sync()


def compare(simulator, url, topic, mode):
    compared = subprocess.run(
        [sys.executable, os.path.dirname(os.path.abspath(__file__)) + "/compare_postgres.py"]
        + ["--truth", simulator.truth, "--url", url, "--mode", mode, "--topic", topic],
        env=simulator.environment, stdout=subprocess.PIPE,
    )
    if compared.returncode:
        sys.exit("%s: the tables differ: %s" % (url, compared.stdout.decode()))


class Copy:
    """The rows of a history table, as files for `psql \\copy`."""

    def __init__(self, url, work, table):
        self.url = url
        self.table = "salesforce." + table
        self.path = work + "/rows."
        names = postgres.query(
            url,
            "SELECT quote_ident(attname) FROM pg_attribute WHERE attrelid = '%s'::regclass"
            " AND attnum > 0 AND NOT attisdropped AND attname NOT IN"
            " ('_loaded_at', '_system_modstamp', '_read_at') ORDER BY attnum" % self.table,
        )
        self.column_count = len(names)
        self.columns = ", ".join(name for [name] in names)
        [[rows]] = postgres.query(url, "SELECT count(*) FROM " + self.table)
        self.row_count = int(rows)
        for form in ("binary", "text"):
            source = "(SELECT %s FROM %s ORDER BY _epoch, _ordinal)" % (self.columns, self.table)
            postgres.run(url, "-c", "\\copy %s TO '%s' (FORMAT %s)" % (source, self.path + form, form))

    def run(self, form):
        like = self.table + " INCLUDING INDEXES INCLUDING DEFAULTS"
        postgres.query(self.url, "CREATE TABLE public.copied (LIKE %s)" % like)
        settle(self.url)
        command = "\\copy public.copied (%s) FROM '%s' (FORMAT %s)" % (self.columns, self.path + form, form)
        started = time.monotonic()
        postgres.run(self.url, "-c", COMPRESSION, "-c", command, stdout=subprocess.DEVNULL)
        seconds = time.monotonic() - started
        postgres.query(self.url, "DROP TABLE public.copied")
        return {
            "columns": self.column_count,
            "format": form,
            "seconds": round(seconds, 2),
            "rows_per_second": round(self.row_count / seconds),
        }
