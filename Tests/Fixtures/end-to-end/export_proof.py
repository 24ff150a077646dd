"""Runs the real exporter against the real simulator and compares the files with the truth.

    export_proof.py --programs DIR --work DIR [--events N] [--seed S]
        [--kills N [--kill-on random|rename|manifest|mixed]]
        [--measure] [--simulator-options "--large 0.001"]

Several topics, a channel with mixed schemas and one with groups of equal replay IDs are exported by
one pipeline each; with --measure one pipeline exports six topics with the default commits and
rotation instead. With --kills each exporter is ended by SIGKILL that many times and started again,
with new events each time: at random moments, when a file gets its final name, when the manifest
grows, or (mixed) a third by the latter two. After each kill no file under a final name may have been
changed or removed. Prints one JSON line with the CPU seconds and the peak memory of each exporter's
last run; exits 1 on any difference, torn file or wrong exit code.
"""

import json
import os
import random
import subprocess
import sys
import time

import harness
import zstandard

PIPELINES = {
    "single": ["/data/OpportunityChangeEvent", "/data/AccountChangeEvent", "/event/Order_Event__e"],
    "channel": ["/data/ChangeEvents"],
    "enriched": ["/data/Sales__chn"],
}
MEASURED = {
    "mixed": [
        "/data/OpportunityChangeEvent",
        "/data/AccountChangeEvent",
        "/data/ContactChangeEvent",
        "/data/Station__ChangeEvent",
        "/event/Order_Event__e",
        "/event/CM_Test_Event_Two__e",
    ]
}
# Columns that a second sink of each pipeline selects.
NARROW = ["Name", "Amount", "StageName"]
MIXED_KILLS = ["rename", "random", "random", "manifest", "random", "random"]


def main():
    arguments = harness.arguments(
        events=20000, kills=0, kill_on=("mixed", "random", "rename", "manifest"), seed=1, measure=False,
        simulator_options="--nonfinite 0.001")
    work = arguments.work
    with harness.Simulator(
        arguments.programs, work, "--events", str(arguments.events),
        "--seed", str(arguments.seed), *arguments.simulator_options.split(),
    ) as simulator:
        # An org whose clock is ahead of ours: only its own says what was committed after the start.
        simulator.post("clock?advance=1h")
        simulator.publish(50, "/data/OpportunityChangeEvent")
        results = {}
        for name, topics in (MEASURED if arguments.measure else PIPELINES).items():
            results[name] = Export(arguments, work, simulator, name, topics).prove()
        print(json.dumps(results))


class Export:
    def __init__(self, arguments, work, simulator, name, topics):
        self.arguments, self.simulator = arguments, simulator
        self.name, self.topics = name, topics
        self.chance = random.Random("%d %s" % (arguments.seed, name))
        self.output = "%s/out/%s" % (work, name)
        self.narrow = "%s/out-narrow/%s" % (work, name)
        self.checkpoint = "%s/state/%s.checkpoint.json" % (work, name)
        self.errors = work + "/stderr"
        self.report = "%s/%s.report.json" % (work, name)
        document = harness.pipeline(name, topics)
        if not arguments.measure:
            document["sinks"][0]["rotate"] = {"max_events": 60 if arguments.kills else 3000}
            narrow = dict(document["sinks"][0], name="narrow", directory="out-narrow/" + name)
            narrow["stages"] = [{"type": "select", "columns": NARROW}]
            document["sinks"].append(narrow)
            document["commit"] = {"max_events": 20 if arguments.kills else 200}
        path = "%s/%s.json" % (work, name)
        harness.write_json(path, document)
        self.command = [arguments.programs + "/pubsub-etl", "run", path, "--report", self.report]
        self.inventory = harness.Inventory(self.output)
        self.kills = dict.fromkeys(["random", "rename", "manifest"], 0)

    def prove(self):
        for number in range(3 * self.arguments.kills):
            if sum(self.kills.values()) == self.arguments.kills:
                break
            kind = self.arguments.kill_on
            self.kill(MIXED_KILLS[sum(self.kills.values()) % 6] if kind == "mixed" else kind)
            self.inventory.check("%s, start %d" % (self.name, number))
            self.simulator.publish(200, *self.topics)
        if sum(self.kills.values()) < self.arguments.kills:
            sys.exit("%s: only %s kills" % (self.name, self.kills))
        files = len(self.inventory.files)
        seconds, usage = self.run()
        self.inventory.check(self.name + ", last run")
        self.inventory.check_manifest()
        self.check_report()
        if not self.arguments.measure:
            compare_narrow(self.output, self.narrow)
        result = harness.compare(self.simulator, self.output, self.topics)
        self.check_other_topic()
        result["kills"] = self.kills
        result["files_before_last_run"] = files
        result["seconds_of_last_run"] = round(seconds, 1)
        result["cpu_seconds_of_last_run"] = round(usage.ru_utime + usage.ru_stime, 2)
        result["peak_mib_of_last_run"] = round(usage.ru_maxrss / 1024, 1)
        return result

    def kill(self, kind):
        """Starts the exporter and kills it at its moment, unless it has ended before."""
        progress = self.manifest_size
        if kind == "rename":
            progress = lambda: len(harness.data_files(self.output))
        before = progress()
        # The first files or lines of a run may be those that recovery finishes.
        left = self.chance.randint(1, 6)
        # Half of the random moments count from the start, half from the first file.
        moment = None
        wait = self.chance.uniform(0.03, 0.6)
        process = subprocess.Popen(self.command, env=self.simulator.environment)
        if kind == "random" and self.chance.random() < 0.5:
            moment = time.monotonic() + wait

        def is_its_moment():
            nonlocal before, left, moment
            now = progress()
            if now != before:
                before, left = now, left - 1
                if kind == "random":
                    moment = moment or time.monotonic() + wait
            return time.monotonic() >= moment if moment else kind != "random" and left <= 0

        if harness.eventually(is_its_moment, None, process=process, pause=0.001):
            process.kill()
            self.kills[kind] += process.wait() < 0

    def manifest_size(self):
        try:
            return os.stat(self.output + "/_manifest.ndjson").st_size
        except FileNotFoundError:
            return 0

    def run(self):
        started = time.monotonic()
        with open(self.errors, "wb") as errors:
            # Nothing runs after it, so a busy machine must not make the stream look quiet.
            process = subprocess.Popen(
                self.command + ["--set", "run.quiet=5s"], env=self.simulator.environment, stderr=errors)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.monotonic() - started
        errors = harness.read_text(self.errors)
        if status != 0 or errors:
            sys.exit("%s: wait status %d: %s" % (self.name, status, errors))
        return seconds, usage

    def check_other_topic(self):
        """A run with another topic, as after a slip in the file, keeps the positions of the rest."""
        before = harness.read_json(self.checkpoint)["topics"]
        other = "/data/ContactChangeEvent"
        command = self.command[:3] + ["--set", "source.topic=" + other]
        subprocess.run(command, env=self.simulator.environment, check=True)
        after = harness.read_json(self.checkpoint)["topics"]
        for topic, position in before.items():
            if topic != other and after.get(topic) != position:
                sys.exit("%s: the position of %s was not kept" % (self.name, topic))

    def check_report(self):
        report = harness.read_json(self.report)
        for topic in report["topics"]:
            if topic["delivered"] != topic["exported"] and not self.arguments.kills:
                sys.exit("%s: delivered and exported differ: %s" % (self.name, topic))
            if topic["caught_up_by"] == "committed_after_start":
                sys.exit("%s: nothing was committed after the start" % self.name)
        if report["start_clock"] != "service":
            sys.exit("%s: the service's clock was not used" % self.name)


def keys_and_columns(directory):
    """(event ID, record ID) of each topic and entity, and the names of all columns."""
    keys, columns = {}, set()
    for path in sorted(harness.data_files(directory)):
        with open(path, "rb") as file:
            text = zstandard.ZstdDecompressor().stream_reader(file).read().decode()
        for line in text.rstrip("\n").split("\n"):
            row = json.loads(line)
            columns.update(row)
            keys.setdefault((row["_topic"], row["_entity"]), []).append(
                (row["_event_id"], row.get("_record_id"))
            )
    return keys, {name for name in columns if not name.startswith("_")}


def compare_narrow(full, narrow):
    full_keys, _ = keys_and_columns(full)
    narrow_keys, columns = keys_and_columns(narrow)
    if {key: sorted(rows) for key, rows in full_keys.items()} != {
        key: sorted(rows) for key, rows in narrow_keys.items()
    }:
        sys.exit("%s does not hold the rows of %s" % (narrow, full))
    if not columns <= set(NARROW):
        sys.exit("%s has columns that were not selected: %s" % (narrow, columns))


if __name__ == "__main__":
    main()
