"""Counts the exporter's allocations per event in the steady state.

    allocation_proof.py --programs DIR --work DIR [--events N] [--seed S]

A run costs allocations when it starts and ends, with each commit, each response and each event. Six
runs over one topic, with the allocations counted by a preloaded library, tell the last three apart: a
short one and one longer by N events, with a window of 100 events, with one of 10, and with small
commits. They end before the newer schemas of the topic begin, in the middle of what is published: a schema
costs some 11,000 allocations. Prints one JSON line; exits 1 when an event costs more than 0.5 allocations.
What a response costs differs a little with its size, and sizes with the speed of both ends. An event that
allocates costs at least 1, in every measurement, so one above the limit is repeated, twice at most.
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
# Events of a request, and of a commit at most.
KINDS = {"wide": (100, 10**6), "narrow": (10, 10**6), "often": (100, 200)}


def delivered(simulator):
    """Events and responses sent until now."""
    clients = simulator.get("delivered")["clients"]
    return (
        sum(client["events"] for client in clients),
        sum(client["responses"] for client in clients),
    )


def counted_run(simulator, programs, work, topic, kind, events, attempt):
    """Allocations, commits, responses and events of a run of at least so many events."""
    name = "%s-%s-%d-%d" % (topic.split("/")[-1], kind, events, attempt)
    window, commit_events = KINDS[kind]
    document = harness.pipeline(name, [topic])
    document["source"]["num_requested"] = window
    document["commit"] = {"max_events": commit_events}
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
        allocations, syncs = map(int, file.read().split())
    return allocations, syncs, after[1] - before[1], after[0] - before[0]


def slope(simulator, arguments, topic, kind, attempt):
    """Allocations, commits and responses per event of the longer run's additional events."""
    runs = [
        counted_run(simulator, arguments.programs, arguments.work, topic, kind, number, attempt)
        for number in (arguments.events, 2 * arguments.events)
    ]
    allocations, commits, responses, events = (second - first for first, second in zip(*runs))
    return allocations / events, commits / events, responses / events


def cost(simulator, arguments, topic, attempt):
    """Allocations per commit, per response and per event."""
    wide, narrow, often = (slope(simulator, arguments, topic, kind, attempt) for kind in KINDS)
    per_commit = (often[0] - wide[0]) / (often[1] - wide[1])
    wide, narrow = ((run[0] - per_commit * run[1], run[2]) for run in (wide, narrow))
    per_response = (narrow[0] - wide[0]) / (narrow[1] - wide[1])
    return {
        "per_commit": round(per_commit, 1),
        "per_response": round(per_response, 1),
        "per_event": round(wide[0] - per_response * wide[1], 4),
        "events_per_response": [round(1 / wide[1]), round(1 / narrow[1])],
    }


def main():
    arguments = harness.arguments(events=20000, seed=1)
    work = arguments.work
    library = work + "/count_allocations.so"
    source = HERE + "/count_allocations.c"
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    result = {}
    options = ["--events", str(36 * arguments.events), "--seed", str(arguments.seed)]
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
