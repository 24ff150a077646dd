"""Random storms of faults, as files for `pubsub-simulator --faults`.

    storm.py SEED EVENTS TOPIC [TOPIC ...]

Equal seeds give equal storms. A storm ends: every fault has a number of `times`, so that a run that goes on
finds a healthy service after it. What would end a run for good by design (a refused topic, a refused user) is
left out.
"""

import json
import random
import sys

# Errors after which the exporter is to try again by itself or in its next run.
PASSING = [
    "service.unavailable",
    "service.auth.error",
    "service.auth.refresh.invalid",
    "topic.api.unavailable",
    "subscription.internal.error",
    "subscription.fetch.replay.repeated",
    "subscription.fetch.overflow",
    "subscription.limit.exceeded",
    "concurrent.client.limit.exceeded",
]
EFFECTS = ["reset", "goaway", "drop", "no_trailers", "truncate"]


def moment(chance, events):
    kind = chance.choice(["event", "event", "event", "call", "probability"])
    if kind == "event":
        return {"event": chance.randint(1, events)}
    if kind == "call":
        return {"call": chance.randint(1, 4)}
    return {"probability": round(chance.uniform(0.05, 0.5), 3), "seed": chance.randint(0, 10**9)}


def storm(seed, events, topics):
    """The file, and by topic the numbers of the events that it makes undecodable."""
    chance = random.Random(seed)
    faults = []
    for _ in range(chance.randint(3, 9)):
        fault = {"at": moment(chance, events), "what": chance.choice(PASSING + EFFECTS * 2)}
        if chance.random() < 0.5:
            fault["topic"] = chance.choice(topics)
        if fault["what"] == "reset":
            fault["http2_code"] = chance.choice([0, 2, 7, 8, 11])
        if "event" not in fault["at"]:
            fault["times"] = chance.randint(1, 2)
            if chance.random() < 0.5:
                fault["after_events"] = chance.randint(0, 60)
        faults.append(fault)
    for _ in range(chance.randint(0, 2)):
        faults.append({
            "at": {"call": chance.randint(1, 3)},
            "method": "GetSchema", "what": "schema.api.unavailable",
        })
    for _ in range(chance.randint(0, 2)):
        faults.append({"at": {"call": chance.randint(1, 3)}, "method": "Login", "status": 503})
    damaged = {topic: set() for topic in topics}
    for _ in range(chance.choice([0, 0, 1, 2])):
        topic, number = chance.choice(topics), chance.randint(1, events)
        if number not in damaged[topic]:
            damaged[topic].add(number)
            faults.append({"at": {"event": number}, "what": "undecodable", "topic": topic})
    chance.shuffle(faults)
    return {"version": 1, "seed": seed, "faults": faults}, damaged


if __name__ == "__main__":
    document, _ = storm(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
    print(json.dumps(document, indent=1))
