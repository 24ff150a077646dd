"""Measures the views of changes, and records as they were, on a large history.

    changes_measure.py --programs DIR --work DIR [--events N] [--existing N] [--copies N] [--rounds N] [--seed S]

Random changes are loaded by the exporter. Then the rows are copied in the database under other IDs of records, so that
a history of 10^7 rows takes minutes. Times are those of the server, medians of the rounds, in milliseconds; the CPU time
is that of the process that serves the connection, without its parallel workers.

Prints one JSON line.
"""

import json
import os
import statistics
import subprocess

import harness
import postgres

TOPIC = "/data/OpportunityChangeEvent"
ROOT = os.path.normpath(os.path.dirname(os.path.abspath(__file__)) + "/../../..")
OTHER_ID = "left(t.%s, 3) || lpad(to_hex(k), 2, '0') || substr(t.%s, 6)"
# Each table's columns with other values in a copy.
REPLACED = {
    "opportunity": {"id": OTHER_ID % ("id", "id")},
    "opportunity_history": {
        "_record_id": OTHER_ID % ("_record_id", "_record_id"),
        "_ordinal": "CASE WHEN t._ordinal >= 0 THEN t._ordinal + k::bigint * 10000000 ELSE t._ordinal END"},
}


def main():
    arguments = harness.arguments(events=100_000, existing=5000, copies=80, rounds=3, seed=1)
    with harness.Simulator(
        arguments.programs, arguments.work, "--events", "0", "--seed", str(arguments.seed), "--existing",
        str(arguments.existing), "--extremes", "0",
    ) as simulator, postgres.Cluster() as cluster:
        url = cluster.make_database("warehouse")
        environment = dict(simulator.environment, DATABASE_URL=url)
        environment["PUBSUB_ETL_ROOT"] = arguments.work + "/pipelines"
        document = harness.read_json(ROOT + "/pipelines/opps-postgres.json")
        document["source"]["snapshot"] = {"mode": "initial", "visibility_wait": "1s"}
        path = arguments.work + "/changes.json"
        harness.write_json(path, document)
        command = [arguments.programs + "/pubsub-etl", "run", path, "--set", "run.quiet=2s"]
        subprocess.run(command, env=environment, check=True)
        for _ in range(10):
            simulator.publish(arguments.events // 10, TOPIC)
            simulator.advance("1h")
        subprocess.run(command, env=environment, check=True)
        for table, replaced in REPLACED.items():
            copy_rows(url, table, arguments.copies, replaced)
        postgres.query(url, "VACUUM ANALYZE")
        print(json.dumps(measure(url, arguments.rounds)))


def copy_rows(url, table, copies, replaced):
    columns = [name for (name,) in postgres.query(url, """
        SELECT quote_ident(attname) FROM pg_attribute WHERE attrelid = 'salesforce.%s'::regclass AND attnum > 0
        AND NOT attisdropped AND attgenerated = ''""" % table)]
    values = ", ".join(replaced.get(name, "t." + name) for name in columns)
    postgres.query(url, "CREATE TEMP TABLE t AS SELECT * FROM salesforce.%s; INSERT INTO salesforce.%s (%s)"
                   " SELECT %s FROM generate_series(1, %d) AS k, t" % (
                       table, table, ", ".join(columns), values, copies - 1))


def measure(url, rounds):
    [[rows, records]] = postgres.query(
        url, "SELECT count(*), (SELECT count(*) FROM salesforce.opportunity) FROM salesforce.opportunity_history")
    [[median]] = postgres.query(url, """
        SET datestyle = 'ISO'; SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY _commit_timestamp)
        FROM salesforce.opportunity_history TABLESAMPLE SYSTEM (10)""")
    ids = [name for (name,) in postgres.query(url, "SELECT id FROM salesforce.opportunity ORDER BY random() LIMIT 20")]
    sums = "SELECT stagename, count(*), sum(amount) FROM salesforce.opportunity_at('%s') GROUP BY 1"
    queries = {
        "newest 100 changes": ["SELECT * FROM salesforce.opportunity_changes ORDER BY changed_at DESC LIMIT 100"],
        "one record": ["SELECT * FROM salesforce.opportunity_at('%s', '%s')" % (median, name) for name in ids],
        "all records now": [sums % "infinity"],
        "all records at the median change": [sums % median],
    }
    result = {"rows": int(rows), "records": int(records)}
    for name, texts in queries.items():
        times = [run(url, text) for text in texts for _ in range(rounds)]
        for unit, place in (("ms", 0), ("CPU ms", 1)):
            result["%s (%s)" % (name, unit)] = round(statistics.median(time[place] for time in times), 1)
    return result


def run(url, query):
    """Milliseconds and those of the CPU."""
    # The server runs on this machine: it has used so many ticks.
    script = "\\! cut -d' ' -f14,15 /proc/$PID/stat\n"
    text = "SELECT pg_backend_pid() AS pid \\gset\n\\setenv PID :pid\n%sEXPLAIN (ANALYZE, TIMING OFF) %s;\n%s" % (
        script, query, script)
    lines = postgres.run(url, "-f", "-", input=text.encode(), stdout=subprocess.PIPE).stdout.decode().split("\n")
    ticks = [sum(map(int, line.split())) for line in lines if line.replace(" ", "").isdigit()]
    [time] = [float(line.split()[2]) for line in lines if line.startswith("Execution Time:")]
    return time, (ticks[1] - ticks[0]) * 1000 / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
