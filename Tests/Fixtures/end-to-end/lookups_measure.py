"""Measures lookups: calls of an hour, rows a second, and memory.

    lookups_measure.py --programs DIR --work DIR [--lookups N] [--existing N] [--hours N] [--seed S]

The org has so many objects with so many records each. The first run reads them all, into files and, in a pipeline of
its own, into PostgreSQL. Each later run is that of another hour: some records of each object have changed, and each
object is due. Calls are those that the simulator counts; the tables have as many rows as the org.

Prints one JSON line; exits 1 if a run leaves records out.
"""

import json
import subprocess
import sys
import time

import harness
import postgres

TOPIC = "/data/OpportunityChangeEvent"
LIMIT = 3600
SINKS = {
    "files": {"type": "files", "name": "files", "directory": "out"},
    "postgres": {"type": "postgres", "name": "warehouse", "url": "${DATABASE_URL}"},
}


def main():
    arguments = harness.arguments(lookups=20, existing=10_000, hours=3, seed=1)
    objects = ["Station%d__c" % number for number in range(1, arguments.lookups + 1)]
    topics = ["/data/%sChangeEvent" % name.removesuffix("c") for name in objects]
    result = {"lookups": len(objects), "records": len(objects) * arguments.existing}
    with postgres.Cluster(durable=True) as cluster:
        url = cluster.make_database("warehouse")
        for kind in SINKS:
            with harness.Simulator(
                arguments.programs, arguments.work, "--events", "0", "--seed", str(arguments.seed), "--existing",
                str(arguments.existing), "--topics", ",".join([TOPIC, *topics]), "--keepalive-interval", "1",
            ) as simulator:
                environment = dict(simulator.environment, DATABASE_URL=cluster.url("warehouse", user=postgres.ROLE))
                result[kind] = measure(arguments, kind, objects, topics, simulator, environment)
        for name in objects:
            [[count]] = postgres.query(url, "SELECT count(*) FROM salesforce.%s" % name.lower())
            if int(count) < arguments.existing:
                sys.exit("%s has %s rows" % (name, count))
    print(json.dumps(result))


def measure(arguments, kind, objects, topics, simulator, environment):
    work = "%s/%s" % (arguments.work, kind)
    path = work + ".json"
    document = harness.pipeline(kind, TOPIC)
    # Each run finds every object due, and the changes before it settled.
    document["source"]["snapshot"]["visibility_wait"] = "0s"
    document["source"]["lookups"] = {"objects": objects, "every": "1s"}
    document["sinks"] = [SINKS[kind]]
    document["checkpoint"]["directory"] = "state-" + kind
    harness.write_json(path, document)

    def run():
        before = simulator.get("stats")["api_calls"]
        started = time.monotonic()
        command = [arguments.programs + "/pubsub-etl", "run", path, "--report", work + ".report"]
        code, usage, peak = harness.wait_with_peak(subprocess.Popen(command, env=environment), LIMIT)
        if code:
            sys.exit("a run ended with %d" % code)
        seconds = time.monotonic() - started
        read = harness.read_json(work + ".report")["records"]["read"]
        return {
            "rows": read, "calls": simulator.get("stats")["api_calls"] - before, "seconds": round(seconds, 1),
            "cpu_seconds": round(usage.ru_utime + usage.ru_stime, 1), "rows_per_second": round(read / seconds),
            "rows_per_cpu_second": round(read / (usage.ru_utime + usage.ru_stime)), "peak_mib": round(peak / 1024, 1)}

    first = run()
    if first["rows"] < len(objects) * arguments.existing:
        sys.exit("only %d records were read" % first["rows"])
    hours = []
    for _ in range(arguments.hours):
        simulator.publish(10, *topics)
        simulator.advance("30s")
        hours.append(run())
    names = ("calls", "rows", "peak_mib")
    return {"first": first, "hours": {name: [hour[name] for hour in hours] for name in names}}


if __name__ == "__main__":
    main()
