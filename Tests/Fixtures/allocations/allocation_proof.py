"""Counts the exporter's allocations per event in the steady state.

    allocation_proof.py --programs DIR --work DIR [--events N] [--seed S]

A run costs allocations when it starts and ends, with each response and with each event. Four runs
over one topic, with the allocations counted by a preloaded library, tell the last two apart: a short
one and one longer by N events, with a window of 100 events and with one of 10. Each run commits once,
at its end, and before the newer schemas of its topic begin, in the middle of what is published: a schema
costs some 11,000 allocations. Prints one JSON line; exits 1 when an event costs more than 0.5 allocations.
What a response costs differs a little with its size, and sizes with the speed of both ends: sixteen
measurements, half of them on a busy machine, lay between -0.04 and 0.3. An event that allocates costs
at least 1, in every measurement, so one above the limit is repeated, twice at most.
"""

import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "end-to-end"))

import harness

TOPICS = ["/data/OpportunityChangeEvent", "/data/AccountChangeEvent", "/data/ChangeEvents"]
LIMIT = 0.5
ATTEMPTS = 3


def delivered(simulator):
    """Events and responses sent until now."""
    clients = simulator.get("delivered")["clients"]
    return (
        sum(client["events"] for client in clients),
        sum(client["responses"] for client in clients),
    )


def counted_run(simulator, programs, work, topic, window, events, attempt):
    """Allocations, events and responses of a run of at least so many events."""
    name = "%s-%d-%d-%d" % (topic.split("/")[-1], window, events, attempt)
    document = harness.pipeline(name, [topic])
    document["source"]["num_requested"] = window
    document["commit"] = {"max_events": 10**6, "max_bytes": "1GiB", "max_delay": "10m"}
    document["run"] = {"until": {"events": events}}
    path = work + "/" + name + ".json"
    harness.write_json(path, document)
    counts = work + "/" + name + ".allocations"
    environment = dict(simulator.environment)
    environment["LD_PRELOAD"] = work + "/count_allocations.so"
    environment["ALLOCATIONS_FILE"] = counts
    before = delivered(simulator)
    subprocess.run([programs + "/pubsub-etl", "run", path], env=environment, check=True, timeout=120)
    after = delivered(simulator)
    with open(counts, encoding="ascii") as file:
        return int(file.read()), after[0] - before[0], after[1] - before[1]


def slope(simulator, arguments, topic, window, attempt):
    """Allocations and responses per event of the longer run's additional events."""
    runs = [
        counted_run(simulator, arguments.programs, arguments.work, topic, window, number, attempt)
        for number in (arguments.events, 2 * arguments.events)
    ]
    allocations, events, responses = (second - first for first, second in zip(*runs))
    return allocations / events, responses / events


def cost(simulator, arguments, topic, attempt):
    """Allocations per response and per event."""
    wide, wide_responses = slope(simulator, arguments, topic, 100, attempt)
    narrow, narrow_responses = slope(simulator, arguments, topic, 10, attempt)
    per_response = (narrow - wide) / (narrow_responses - wide_responses)
    return {
        "per_response": round(per_response, 1),
        "per_event": round(wide - per_response * wide_responses, 4),
        "events_per_response": [round(1 / wide_responses), round(1 / narrow_responses)],
    }


def main():
    arguments = harness.arguments(events=20000, seed=1)
    work = arguments.work
    library = work + "/count_allocations.so"
    source = HERE + "/count_allocations.c"
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, source], check=True)
    result = {}
    options = ["--events", str(24 * arguments.events), "--seed", str(arguments.seed)]
    for topic in TOPICS:
        options += ["--topics", topic]
    with harness.Simulator(arguments.programs, work, *options) as simulator:
        for topic in TOPICS:
            for attempt in range(ATTEMPTS):
                result[topic] = cost(simulator, arguments, topic, attempt)
                if result[topic]["per_event"] <= LIMIT:
                    break
    print(json.dumps(result))
    sys.exit(any(counts["per_event"] > LIMIT for counts in result.values()))


if __name__ == "__main__":
    main()
