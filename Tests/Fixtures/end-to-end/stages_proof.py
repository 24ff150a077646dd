"""The stages filter, set and route under kill -9, against a model in Python.

    stages_proof.py --programs DIR --work DIR [--events N] [--kills N] [--seed S] [--measure]

One pipeline exports the events as they are; another has the stages and two sinks, is killed at random
moments and started again until it ends by itself. Its lines are to be what the model makes of the first
pipeline's: the rows that the condition keeps, in the sink that the route names, with the columns that were
set. An expression that divides by zero sends its events to the dead letters; when the pipeline file is
corrected, `dead-letters retry`, killed once, brings each of them once. Prints one JSON line.
"""

import collections
import glob
import json
import os
import random
import re
import resource
import signal
import subprocess
import sys
import time

import harness
import zstandard

TOPICS = ["/data/OpportunityChangeEvent", "/data/AccountChangeEvent"]
FILTER = "_entity == 'Account' || IsWon != true || Amount >= 500000.0"
REGION = "has(row.StageName) ? StageName : 'unknown'"
# Fails where the remainder is 0.
RATIO = "Amount == null ? null : 100 / (int(Amount) % 3)"
MENDED = "Amount == null || int(Amount) % 3 == 0 ? null : 100 / (int(Amount) % 3)"
BIG = "Amount >= 700000.0"
ABSENT = object()


def lines_of(directory):
    found = []
    for path in sorted(glob.glob(directory + "/**/*.zst", recursive=True)):
        if "/state/" in path:
            continue
        with open(path, "rb") as file:
            data = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True).read()
        found += [json.loads(line) for line in data.splitlines()]
    return found


class Model:
    """What the documentation says of one line."""

    def __init__(self, line):
        self.line = dict(line)
        self.is_update = line["_kind"] == "change" and line["_change_type"] == "UPDATE"
        self.is_partial = self.is_update or line["_kind"] in ("gap", "snapshot")
        self.is_account = line["_entity"] == "Account"

    def seen(self, name):
        if self.is_account and name in ("Amount", "IsWon", "StageName"):
            return ABSENT
        if name in self.line:
            return self.line[name]
        return ABSENT if self.is_partial else None

    def is_kept(self):
        if self.line["_kind"] in ("overflow", "wildcard") or self.is_account:
            return True
        won, amount = self.seen("IsWon"), self.seen("Amount")
        sides = [
            ABSENT if won is ABSENT else won is not True,
            ABSENT if amount is ABSENT else amount is not None and amount >= 500000.0,
        ]
        return True in sides or ABSENT in sides

    def fails(self):
        amount = self.seen("Amount")
        return amount is not ABSENT and amount is not None and int(amount) % 3 == 0

    def put(self, name, value):
        for listed in ("_changed_fields", "_nulled_fields"):
            if self.is_update and name in self.line[listed]:
                self.line[listed] = [other for other in self.line[listed] if other != name]
        if value is ABSENT:
            self.line.pop(name, None)
            return
        if value is None and not self.is_update:
            self.line.pop(name, None)
        else:
            self.line[name] = value
        if self.is_update:
            self.line["_changed_fields"] = self.line["_changed_fields"] + [name]
            if value is None:
                self.line["_nulled_fields"] = self.line["_nulled_fields"] + [name]

    def sinks(self):
        """Changes the line, and tells where it goes."""
        whole = self.line["_kind"] in ("overflow", "wildcard")
        stage, amount = self.seen("StageName"), self.seen("Amount")
        if not whole:
            self.put("Region", "unknown" if stage is ABSENT else stage)
            if amount is ABSENT:
                self.put("Ratio", ABSENT)
            elif amount is None or int(amount) % 3 == 0:
                self.put("Ratio", None)
            else:
                # CEL rounds toward zero.
                rest = abs(int(amount)) % 3 * (1 if amount > 0 else -1)
                self.put("Ratio", int(100 / rest))
        self.line["Source"] = "salesforce"
        # A line about a whole object goes wherever a row of the object may go.
        if whole:
            return ["big", "rest"]
        return ["big" if isinstance(amount, (int, float)) and amount >= 700000.0 else "rest"]


def normal(line):
    """The order of members and of listed fields says nothing; nor does null in a full image."""
    line = {key: value for key, value in line.items() if key not in ("_epoch", "_ordinal")}
    for listed in ("_changed_fields", "_nulled_fields"):
        if listed in line:
            line[listed] = sorted(line[listed])
    return json.dumps(line, sort_keys=True)


def write_pipeline(work, ratio):
    pipeline = harness.pipeline("staged", TOPICS)
    pipeline["commit"] = {"max_events": 25}
    pipeline["dead_letter"] = {"max": 1000000}
    pipeline["stages"] += [
        {"type": "filter", "where": FILTER},
        {
            "type": "set",
            "columns": {"Region": REGION, "Ratio": ratio, "Source": {"constant": "salesforce"}},
        },
        {"type": "route", "routes": [{"where": BIG, "to": ["big"]}], "default": ["rest"]},
    ]
    pipeline["sinks"] = [
        {"type": "files", "name": name, "directory": "out/" + name} for name in ("big", "rest")]
    harness.write_json(work + "/staged.json", pipeline)


def run_killed(command, environment, kills, generator):
    """Runs the command until it ends by itself; returns its exit code and how often it was killed."""
    killed = 0
    while True:
        process = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE)
        if killed < kills:
            try:
                process.wait(timeout=generator.uniform(0.05, 1.2))
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                killed += 1
                process.communicate()
                continue
        error = process.communicate(timeout=300)[1].decode()
        return process.returncode, killed, error


def expect(holds, *words):
    if not holds:
        sys.exit(" ".join(str(word) for word in words)[:3000])


def refused_by_both(program, work, environment):
    """Events that the stages of two of three sinks refuse: a retry brings each to both, and to these only."""
    def write(ratio):
        pipeline = harness.pipeline("three", TOPICS[:1])
        pipeline["dead_letter"] = {"max": 1000000}
        own = [{"type": "set", "columns": {"Ratio": ratio}}]
        pipeline["sinks"] = [
            {"type": "files", "name": name, "directory": "out/" + name, "stages": own if name != "all" else []}
            for name in ("all", "one", "two")]
        harness.write_json(work + "/three.json", pipeline)

    def run(*words):
        return subprocess.run(
            [program, *words, work + "/three.json"], env=environment, stdin=subprocess.DEVNULL,
            capture_output=True)

    def events(name):
        return collections.Counter(
            (line["_event_id"], line.get("_record_id")) for line in lines_of(work + "/out/" + name))

    write(RATIO)
    done = run("run")
    expect(done.returncode == 0, "three sinks:", done.returncode, done.stderr.decode())
    lacking = events("all") - events("one")
    expect(lacking and events("two") == events("one"), "two sinks lack", lacking)
    write(MENDED)
    done = run("dead-letters", "retry", "--all")
    expect(done.returncode == 0, "retry for two sinks:", done.returncode, done.stderr.decode())
    for name in ("one", "two"):
        expect(events(name) == events("all"), name, "has", events(name) - events("all"), "too much, and lacks",
               events("all") - events(name))
    expect(max(events("all").values()) == 1, "an event is twice in the sink that had it")
    return sum(lacking.values())


def routed(program, work, environment):
    """What a route sends elsewhere leaves nothing in a directory, and reports count what came; `run.fail_on` says
    why it fails; letters in the clear are not taken by a pipeline that seals them."""
    path = work + "/routed.json"

    def write(ratio, letters):
        pipeline = harness.pipeline("routed", TOPICS)
        pipeline["stages"] += [
            {"type": "set", "columns": {"Ratio": ratio}},
            {"type": "route", "routes": [{"where": "_entity == 'Account'", "to": ["accounts"]}], "default": ["rest"]}]
        pipeline["sinks"] = [
            {"type": "files", "name": name, "directory": "out/routed/" + name} for name in ("accounts", "rest")]
        pipeline["dead_letter"] = {"max": 1000000, **letters}
        pipeline["run"]["fail_on"] = ["dead_letters"]
        harness.write_json(path, pipeline)

    def run(*words):
        return subprocess.run(
            [program, *words, path], env=dict(environment, LETTER_KEY="ab" * 32), stdin=subprocess.DEVNULL,
            capture_output=True)

    write(RATIO, {})
    report = work + "/routed.report.json"
    done = run("run", "--report", report)
    said = done.stderr.decode()
    expect(done.returncode == 65 and 'run.fail_on has "dead_letters"' in said and "dead-letters retry" in said,
           "run.fail_on:", done.returncode, said)
    rows = {sink["name"]: sink["rows"] for sink in harness.read_json(report)["sinks"]}
    for name, entity in (("accounts", "Account"), ("rest", "Opportunity")):
        directory = work + "/out/routed/" + name
        lines = lines_of(directory)
        expect({line["_entity"] for line in lines} == {entity}, name, "has other objects")
        expect(rows[name] == len(lines) > 0, name, "has", len(lines), "lines, and the report says", rows)
        with open(directory + "/_views.sql", encoding="utf-8") as file:
            other = {"Account", "Opportunity"} - {entity}
            views = re.findall(r'VIEW "(\w+)"', file.read())
        wanted = [entity, entity + "_now", entity + "_changes", "_freshness", "_fields", "_picklist"]
        expect(views == wanted, name, "has the views", views)
        expect(not os.path.exists(directory + "/" + other.pop()), "a directory of what never came")
    done = run("status")
    expect(done.returncode == 65 and b"waiting ('pubsub-etl dead-letters list " in done.stdout, "status:", done.stdout.decode())
    write(MENDED, {"payload": "sealed", "key": "${LETTER_KEY}"})
    done = run("dead-letters", "retry", "--all")
    expect(done.returncode == 65 and b"--accept-unsealed" in done.stderr, "unsealed:", done.stderr.decode())
    done = run("dead-letters", "retry", "--all", "--accept-unsealed")
    expect(done.returncode == 0, "--accept-unsealed:", done.stderr.decode())
    return rows


MEASURED = {
    "none": [],
    "five": [
        {"type": "flatten", "naming": "path"},
        {"type": "filter", "where": "StageName != 'None' && (Amount == null || Amount > -1.0e12)"},
        {"type": "set", "columns": {"Region": "has(row.Type) ? Type : 'unknown'", "Won": "IsWon == true"}},
        {"type": "mask", "columns": ["NextStep"], "with": "hash", "key_file": "mask.key"},
        {"type": "cast", "columns": {"Amount": "decimal(18,2)"}, "on_error": "null"},
    ],
    # Keeps about one event in a hundred.
    "rare": [{"type": "filter", "where": "_commit_number.endsWith('77')", "absent": "drop"}],
}


def measure(arguments):
    """CPU seconds of runs over the same events with different stages, three of each in turn."""
    work, topic = arguments.work, TOPICS[:1]
    with open(work + "/mask.key", "w", encoding="ascii") as file:
        file.write("0123456789abcdef0123456789abcdef")
    os.chmod(work + "/mask.key", 0o600)
    seconds = collections.defaultdict(list)
    with harness.Simulator(
        arguments.programs, work, "--events", str(arguments.events), "--seed", str(arguments.seed),
        "--topics", topic[0], "--keepalive-interval", "1.2",
    ) as simulator:
        for turn in range(3):
            for name, stages in MEASURED.items():
                pipeline = harness.pipeline("%s%d" % (name, turn), topic)
                pipeline["stages"] = stages
                pipeline["dead_letter"] = {"payload": "none"}
                harness.write_json("%s/%s%d.json" % (work, name, turn), pipeline)
                before = resource.getrusage(resource.RUSAGE_CHILDREN)
                done = subprocess.run(
                    [arguments.programs + "/pubsub-etl", "run", "%s/%s%d.json" % (work, name, turn)],
                    env=simulator.environment, stdin=subprocess.DEVNULL, capture_output=True)
                expect(done.returncode == 0, name, done.returncode, done.stderr.decode())
                after = resource.getrusage(resource.RUSAGE_CHILDREN)
                seconds[name].append(
                    after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    medians = {name: sorted(values)[1] for name, values in seconds.items()}
    print(json.dumps({
        "events": arguments.events, "cpu_seconds": {name: round(value, 2) for name, value in medians.items()},
        "speed_with_five_stages": round(medians["none"] / medians["five"], 2),
        "cost_with_rare_filter": round(medians["rare"] / medians["none"], 2),
    }))


def main():
    arguments = harness.arguments(events=600, kills=6, seed=1, measure=False)
    if arguments.measure:
        measure(arguments)
        return
    work, program = arguments.work, arguments.programs + "/pubsub-etl"
    generator = random.Random(arguments.seed)
    plain = harness.pipeline("plain", TOPICS)
    harness.write_json(work + "/plain.json", plain)
    write_pipeline(work, RATIO)
    started = time.monotonic()
    with harness.Simulator(
        arguments.programs, work, "--events", str(arguments.events), "--seed", str(arguments.seed),
        "--topics", ",".join(TOPICS), "--keepalive-interval", "1.2", "--max-response-events", "10",
    ) as simulator:
        environment = simulator.environment
        done = subprocess.run(
            [program, "run", work + "/plain.json"], env=environment, stdin=subprocess.DEVNULL,
            capture_output=True)
        expect(done.returncode == 0, "plain run:", done.returncode, done.stderr.decode())
        code, killed, error = run_killed(
            [program, "run", work + "/staged.json"], environment, arguments.kills, generator)
        expect(code == 0, "staged run:", code, error)

        expected, failing = ({sink: collections.Counter() for sink in ("big", "rest")} for _ in range(2))
        left_out = 0
        for line in lines_of(work + "/out/plain"):
            model = Model(line)
            if not model.is_kept():
                left_out += 1
                continue
            failed = model.fails()
            for sink in model.sinks():
                (failing if failed else expected)[sink][normal(model.line)] += 1
        counts = {}
        for sink in ("big", "rest"):
            lines = collections.Counter(normal(line) for line in lines_of(work + "/out/" + sink))
            expect(
                lines == expected[sink], sink, "has too much:", lines - expected[sink], "and lacks",
                expected[sink] - lines)
            counts[sink] = sum(lines.values())
        refused = sum(sum(lines.values()) for lines in failing.values())
        listed = subprocess.run(
            [program, "dead-letters", "list", work + "/staged.json", "--json"], env=environment,
            stdin=subprocess.DEVNULL, capture_output=True)
        expect(listed.returncode == 0, listed.stderr.decode())
        letters = json.loads(listed.stdout)["letters"]
        expect(refused > 0, "no expression has failed")
        expect(len(letters) == refused, len(letters), "dead letters for", refused, "events")
        for letter in letters:
            expect("stage set (stages[2]): column 'Ratio'" in letter["reason"], letter)
            expect(letter["kind"] == "unprocessable", letter)

        # With the mistake still there, they stay.
        retry = [program, "dead-letters", "retry", "--all", work + "/staged.json"]
        again = subprocess.run(retry, env=environment, stdin=subprocess.DEVNULL, capture_output=True)
        expect(again.returncode != 0, "a retry that changes nothing exits 0")
        write_pipeline(work, MENDED)
        code, _, error = run_killed(retry, environment, 1, generator)
        expect(code == 0, "retry:", code, error)
        for sink in ("big", "rest"):
            lines = collections.Counter(normal(line) for line in lines_of(work + "/out/" + sink))
            whole = expected[sink] + failing[sink]
            expect(
                lines == whole, "after the retry", sink, "has too much:", lines - whole, "and lacks",
                whole - lines)
        both = refused_by_both(program, work, environment)
        rows = routed(program, work, environment)
    print(json.dumps({
        "refused_by_two_sinks": both, "routed": rows, "lines": counts, "left_out": left_out, "refused": refused, "kills": killed,
        "seconds": round(time.monotonic() - started, 1),
    }))


if __name__ == "__main__":
    main()
