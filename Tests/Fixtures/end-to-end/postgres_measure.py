"""Rows per second of the Postgres sink against `psql \\copy` (see postgres_proof.py --measure).

For each entity, in a fresh database of one server with its usual settings for safety, on the same
machine at the same time of day: the exporter loads all events of a simulator, `history` and `both`;
then the rows of the history table, as a file, are copied into an empty table with the same columns,
index and defaults. The exporter's time is from its start, login and decoding included, to its last
commit; psql's that of the whole command, the better of the binary and the text format, and the
median of three.
"""

import json
import os
import statistics
import subprocess
import sys
import time

import harness
import postgres

ENTITIES = {"Opportunity": "/data/OpportunityChangeEvent", "Account": "/data/AccountChangeEvent"}


def measure(arguments, work):
    results = {}
    settings = ["track_commit_timestamp = on", "max_wal_size = 4GB"]
    with postgres.Cluster(durable=True, settings=settings) as cluster:
        for entity, topic in ENTITIES.items():
            with harness.Simulator(
                arguments.programs, work, "--events", str(arguments.events), "--topics", topic,
                "--seed", str(arguments.seed), *arguments.simulator_options.split(),
            ) as simulator:
                result = results[entity] = {}
                for mode in ("history", "both"):
                    database = "%s_%s" % (entity.lower(), mode)
                    result[mode] = load(arguments, work, simulator, cluster, database, topic, mode)
                result["copy"] = copy(cluster.url(database), work, entity.lower() + "_history")
                for mode in ("history", "both"):
                    share = result[mode]["rows_per_second"] / result["copy"]["rows_per_second"]
                    result[mode]["of_copy"] = round(share, 2)
    print(json.dumps(results))


def load(arguments, work, simulator, cluster, database, topic, mode):
    url = cluster.make_database(database)
    document = harness.pipeline(database, topic)
    document["checkpoint"]["directory"] = "state-" + database
    document["sinks"] = [{"type": "postgres", "name": "warehouse", "url": "${DATABASE_URL}", "mode": mode}]
    # Ends with the last event, so that waiting for more is no part of the last commit's time.
    document["run"] = {"until": {"events": arguments.events}}
    path = "%s/%s.json" % (work, database)
    harness.write_json(path, document)
    environment = dict(simulator.environment)
    environment["DATABASE_URL"] = cluster.url(database, user=postgres.ROLE)
    started = time.time()
    process = subprocess.Popen([arguments.programs + "/pubsub-etl", "run", path], env=environment)
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit("%s: wait status %d" % (database, status))
    table = "salesforce.%s_history" % database.removesuffix("_" + mode)
    [[rows, events, records, ended]] = postgres.query(
        url,
        "SELECT count(*), count(DISTINCT _ordinal), count(DISTINCT _record_id),"
        " extract(epoch FROM max(pg_xact_commit_timestamp(xmin))) FROM " + table,
    )
    compared = subprocess.run(
        [sys.executable, os.path.dirname(os.path.abspath(__file__)) + "/compare_postgres.py"]
        + ["--truth", simulator.truth, "--url", url, "--mode", mode, "--topic", topic],
        env=simulator.environment, stdout=subprocess.PIPE,
    )
    if compared.returncode:
        sys.exit("%s: the tables differ: %s" % (database, compared.stdout.decode()))
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


def copy(url, work, table):
    names = [
        name
        for [name] in postgres.query(
            url,
            "SELECT quote_ident(attname) FROM pg_attribute WHERE attrelid = 'salesforce.%s'::regclass"
            " AND attnum > 0 AND NOT attisdropped AND attname <> '_loaded_at' ORDER BY attnum" % table,
        )
    ]
    columns = ", ".join(names)
    [[rows]] = postgres.query(url, "SELECT count(*) FROM salesforce." + table)
    best = {}
    for form in ("binary", "text"):
        path = "%s/rows.%s" % (work, form)
        order = "ORDER BY _epoch, _ordinal"
        source = "(SELECT %s FROM salesforce.%s %s)" % (columns, table, order)
        postgres.run(url, "-c", "\\copy %s TO '%s' (FORMAT %s)" % (source, path, form))
        times = []
        for _ in range(3):
            like = "salesforce.%s INCLUDING INDEXES INCLUDING DEFAULTS" % table
            postgres.query(url, "CREATE TABLE public.copied (LIKE %s)" % like)
            postgres.query(url, "CHECKPOINT")
            started = time.monotonic()
            postgres.run(url, "-c", "\\copy public.copied (%s) FROM '%s' (FORMAT %s)" % (columns, path, form))
            times.append(time.monotonic() - started)
            postgres.query(url, "DROP TABLE public.copied")
        os.remove(path)
        best[form] = statistics.median(times)
    form = min(best, key=best.get)
    return {
        "columns": len(names),
        "format": form,
        "seconds": round(best[form], 2),
        "rows_per_second": round(int(rows) / best[form]),
    }
