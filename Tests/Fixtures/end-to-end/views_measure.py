"""Measures the views of `_views.sql` in DuckDB, over an object with many lines.

    views_measure.py --programs DIR --work DIR [--existing N] [--events N] [--rounds N] [--threads N]

The sales team's opportunities are copied with their changes. Each query runs in a process of its own, in turns; the
median time and the peak memory of each count. Prints one JSON line.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time

import duckdb

import harness

TOPIC = "/data/OpportunityChangeEvent"
QUERIES = {
    "lines": 'SELECT count(*) FROM "Opportunity"',
    "stages": 'SELECT StageName, count(*), sum(Amount) FROM "Opportunity_now" WHERE IsClosed IS NOT TRUE GROUP BY ALL',
    "records": 'CREATE TEMP TABLE records AS FROM "Opportunity_now"',
    "freshness": "CREATE TEMP TABLE freshness AS FROM _freshness",
}


def measure(output, name, threads):
    connection = duckdb.connect()
    with open(output + "/_views.sql", encoding="utf-8") as file:
        connection.execute(file.read())
    connection.execute("SET threads = %d" % threads)
    start = time.monotonic()
    rows = connection.execute(QUERIES[name]).fetchall()
    print(json.dumps({
        "seconds": round(time.monotonic() - start, 2),
        "mebibytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10,
        "count": rows[0][0] if len(rows) == 1 else len(rows),
    }))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--programs")
    parser.add_argument("--work", required=True)
    parser.add_argument("--existing", type=int, default=330_000)
    parser.add_argument("--events", type=int, default=770_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--query", choices=QUERIES, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    work = os.path.abspath(arguments.work)
    output = work + "/out"
    if arguments.query:
        return measure(output, arguments.query, arguments.threads)
    if not os.path.exists(output):
        export(arguments, work, output)
    found = {name: [] for name in QUERIES}
    for _ in range(arguments.rounds):
        for name, results in found.items():
            text = subprocess.run(
                [sys.executable, __file__, "--work", work, "--threads", str(arguments.threads), "--query", name],
                check=True, stdout=subprocess.PIPE).stdout
            results.append(json.loads(text))
    print(json.dumps({
        name: {
            "seconds": statistics.median(result["seconds"] for result in results),
            "mebibytes": max(result["mebibytes"] for result in results),
            "count": results[0]["count"],
        }
        for name, results in found.items()
    }))


def export(arguments, work, output):
    document = harness.pipeline("measured", [TOPIC])
    document["source"]["snapshot"] = {"mode": "initial"}
    document["sinks"][0]["directory"] = output
    document["checkpoint"]["directory"] = work + "/state"
    document["stages"] = [{"type": "flatten", "naming": "sobject"}]
    harness.write_json(work + "/measured.json", document)
    with harness.Simulator(
        arguments.programs, work, "--data", "sales", "--clock", "--events", str(arguments.events), "--existing",
        str(arguments.existing), "--bulk-rate", "1e9",
    ) as simulator:
        subprocess.run(
            [simulator.exporter, "run", work + "/measured.json"], env=simulator.environment, check=True,
            stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
