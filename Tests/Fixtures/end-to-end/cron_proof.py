"""A month of cron in minutes: short runs of one pipeline against a simulator that publishes live.

    cron_proof.py --programs DIR --work DIR [--runs N] [--seed S]
        [--silent-steps N] [--silent-step-hours N] [--keep]

Between the runs and during them things happen as on a host nobody looks at: another start while a
run is going on (`if_running` fail, skip and wait), another working directory each time, clocks of
org and host that step, a SIGKILL now and then, five days of silence (retention: 72 h) with runs in
between, the state directory lost once and an old copy of it put back. Required after every run: the
documented exit code, nothing on standard error of a success, delivered = exported in the report and
in the counts of the simulator (on channels an event of an unfinished group may come again and is
dropped), and no file under a final name changed or removed. At the end the files equal the truth. With --keep, small files stay open from run to run (`rotate.min_bytes`),
and a last run without it finishes them.
Prints one JSON line; exits 1 at the first thing that is wrong.
"""

import collections
import json
import os
import random
import shutil
import subprocess
import sys
import threading
import time

import harness

TOPICS = [
    "/data/OpportunityChangeEvent",
    "/data/AccountChangeEvent",
    "/event/Order_Event__e",
    "/data/ChangeEvents",
]
EVENTS = 2000
# Every so many runs, the first time at the second number.
OVERLAPS, KILLS, CLOCK_STEPS = (12, 3), (20, 6), (5, 0)


def is_due(number, rhythm):
    every, first = rhythm
    return number % every == first


class Publisher(threading.Thread):
    """Publishes a few events at a time, as an org does, except while `turn` is held."""

    def __init__(self, simulator, chance):
        super().__init__(daemon=True)
        self.simulator, self.chance = simulator, chance
        self.turn = threading.Lock()
        self.published = 0
        self.start()

    def run(self):
        while True:
            with self.turn:
                count = self.chance.randint(1, 6)
                try:
                    self.simulator.publish(count)
                except OSError:
                    return
                self.published += count
            # As an org does, at random moments.
            time.sleep(self.chance.uniform(0.05, 0.6))


class Proof:
    def __init__(self, arguments):
        self.arguments = arguments
        self.chance = random.Random(arguments.seed)
        self.work = arguments.work
        os.makedirs(self.work + "/elsewhere", exist_ok=True)
        self.path = self.work + "/nightly.json"
        document = harness.pipeline("nightly", TOPICS)
        document["sinks"][0]["rotate"] = {"max_events": 40}
        if arguments.keep:
            document["sinks"][0]["rotate"]["min_bytes"] = "16MiB"
        document["commit"] = {"max_events": 10}
        harness.write_json(self.path, document)
        self.output = self.work + "/out/nightly"
        self.state = self.work + "/state"
        self.report = self.work + "/report.json"
        self.inventory = harness.Inventory(self.output)
        self.clock = self.work + "/shifted_clock.so"
        subprocess.run(
            [shutil.which("cc") or "clang", "-O1", "-shared", "-fPIC", "-o", self.clock]
            + [harness.HERE + "/shifted_clock.c", "-ldl"],
            check=True,
        )
        # By which host and org have moved on since the start.
        self.hours = 0
        self.after_kill = False
        self.figures = collections.Counter()
        self.exit_codes = collections.Counter()

    # One run

    def start(self, *options, off=None):
        directory = self.chance.choice([self.work, "/", self.work + "/elsewhere", "/proc"])
        path = os.path.relpath(self.path, directory) if self.chance.random() < 0.5 else self.path
        environment = dict(self.simulator.environment)
        environment["LD_PRELOAD"] = self.clock
        off = self.chance.randint(-900, 900) if off is None else off
        environment["SHIFTED_CLOCK_SECONDS"] = str(self.hours * 3600 + off)
        return subprocess.Popen(
            [self.arguments.programs + "/pubsub-etl", "run", path] + list(options),
            cwd=directory, env=environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )

    def finish(self, process, moment, expected=0, said="", stepped=False):
        output, errors = process.communicate(timeout=400)
        if stepped:
            # A run keeps the clock that the service had when it began.
            lines = errors.splitlines(keepends=True)
            errors = "".join(line for line in lines if "committed in the future" not in line)
        self.figures["runs"] += 1
        self.exit_codes[process.returncode] += 1
        if process.returncode != expected:
            sys.exit("%s: exit code %d: %s" % (moment, process.returncode, errors))
        if output or (expected == 0 and errors):
            sys.exit("%s: a quiet run said: %s%s" % (moment, output, errors))
        if said not in errors:
            sys.exit("%s: standard error lacks %r: %s" % (moment, said, errors))
        self.inventory.check(moment)

    def run(self, moment, *options, off=None, during=None):
        """A run that has to succeed and whose report has to be right."""
        before = self.delivered()
        process = self.start("--report", self.report, *options, off=off)
        if during:
            during()
        self.finish(process, moment, stepped=during == self.step_clock)
        report = harness.read_json(self.report)
        for topic in report["topics"]:
            name = topic["topic"]
            sent = self.delivered()[name] - before[name]
            unsent = topic["delivered"] - topic["exported"]
            is_channel = name == "/data/ChangeEvents"
            if unsent and not is_channel and not self.after_kill:
                sys.exit("%s: %s: exported is not delivered: %s" % (moment, name, topic))
            # A response on its way while the stream is closed is counted by the service alone.
            self.figures["delivered"] += topic["delivered"]
            self.figures["exported"] += topic["exported"]
            self.figures["repeated_on_channel"] += unsent if is_channel else 0
            self.figures["delivered_by_service"] += sent
            self.figures["lost_on_the_way"] += sent - topic["delivered"]
        self.after_kill = False

    def delivered(self):
        counts = collections.Counter()
        for client in self.simulator.get("delivered")["clients"]:
            counts[client["topic"]] += client["events"]
        return counts

    # What happens on the host

    def await_lock(self, process):
        """Waits until the process holds the pipeline's lock."""
        def is_locked():
            lock = ":%d " % os.stat(self.state + "/nightly.lock").st_ino
            return lock in harness.read_text("/proc/locks")

        harness.eventually(is_locked, "the lock of a run", process=process, pause=0.002)

    def overlap(self, number):
        first = self.start()
        self.await_lock(first)
        kind = ["fail", "skip", "wait"][number // OVERLAPS[0] % 3]
        options = [] if kind == "fail" else ["--set", "run.if_running=" + kind]
        second = self.start(*options)
        if kind == "wait":
            self.finish(first, "overlapped run %d" % number)
            self.finish(second, "waiting run %d" % number)
        else:
            code = 75 if kind == "fail" else 0
            said = "is locked" if kind == "fail" else ""
            self.finish(second, "%s beside run %d" % (kind, number), code, said)
            if first.poll() is not None:
                sys.exit("run %d ended before its overlap" % number)
            self.finish(first, "overlapped run %d" % number)
        self.figures["overlaps"] += 1

    def kill(self):
        process = self.start()
        try:
            process.wait(timeout=self.chance.uniform(0.05, 2.5))
        except subprocess.TimeoutExpired:
            process.kill()
            self.figures["kills"] += 1
        process.communicate()
        self.figures["runs"] += 1
        self.after_kill = True
        self.inventory.check("after a kill")

    def step_clock(self):
        """Moves the org's clock at a random moment of a run."""
        time.sleep(self.chance.uniform(0, 1))
        self.simulator.advance("%ds" % self.chance.choice([1, 30, 61, 300, 5400]))
        self.figures["clock_steps"] += 1

    def lose_state(self, old):
        """The state directory is removed, then an old copy is restored, then the newest one."""
        newest = self.work + "/state.newest"
        os.rename(self.state, newest)
        self.refused("without state")
        shutil.rmtree(self.state, ignore_errors=True)
        # Files that an old checkpoint knows as open may still be, and are then continued from there.
        if not self.arguments.keep:
            shutil.copytree(old, self.state)
            self.refused("with old state")
            shutil.rmtree(self.state)
        os.rename(newest, self.state)
        self.run("with the newest state put back")
        self.figures["state_lost"] += 1

    def refused(self, moment):
        self.finish(self.start("--report", self.report), moment, 65, "checkpoint")
        reason = harness.read_json(self.report)["reason"]
        if reason != "lost_state":
            sys.exit("%s: the reason is %s" % (moment, reason))

    def be_silent(self):
        """Days without an event, longer than retention, with a run every few hours."""
        # A host whose clock was wrong for one run must not think its positions fresh for a year.
        self.run("with the clock a year ahead", off=300 * 86400)
        for step in range(self.arguments.silent_steps):
            self.simulator.advance("%dh" % self.arguments.silent_step_hours)
            self.hours += self.arguments.silent_step_hours
            self.run("silent step %d" % step, off=0)
            self.figures["silent_hours"] += self.arguments.silent_step_hours

    def wait_for_live(self, count):
        """Waits until --live-rate has published its events, too."""
        harness.eventually(lambda: self.simulator.get("stats")["published"] >= count, "live events", 600)

    def main(self):
        known = EVENTS + 8 * self.arguments.runs
        with harness.Simulator(
            self.arguments.programs, self.work, "--events", str(EVENTS), "--seed",
            str(self.arguments.seed), "--topics", ",".join(TOPICS), "--keepalive-interval", "6",
            "--live-rate", "8", "--live-count", str(8 * self.arguments.runs),
        ) as self.simulator:
            publisher = Publisher(self.simulator, random.Random(self.arguments.seed))
            old, runs = self.work + "/state.old", self.arguments.runs
            silence, loss = runs // 2, max(4, runs // 4)
            number = 0
            while self.figures["runs"] < runs:
                number += 1
                if number == loss // 2:
                    shutil.copytree(self.state, old)
                if number == loss:
                    self.lose_state(old)
                elif is_due(number, KILLS):
                    self.kill()
                elif is_due(number, OVERLAPS):
                    self.overlap(number)
                else:
                    during = self.step_clock if is_due(number, CLOCK_STEPS) else None
                    self.run("run %d" % number, during=during)
                if silence and self.figures["runs"] >= silence:
                    silence = None
                    with publisher.turn:
                        self.wait_for_live(known + publisher.published)
                        self.be_silent()
            # One more, with nobody publishing, takes what was left.
            with publisher.turn:
                self.wait_for_live(known + publisher.published)
                self.run("last run")
                if self.arguments.keep:
                    self.run("run that finishes files", "--set", "sinks.0.rotate={}")
                parts = [name for _, _, names in os.walk(self.output) for name in names if name.endswith(".part")]
                if parts:
                    sys.exit("files in progress are left: %s" % parts)
                self.inventory.check_manifest()
                result = harness.compare(self.simulator, self.output, TOPICS)
        result.update(self.figures)
        result["exit_codes"] = dict(self.exit_codes)
        result["files"] = len(self.inventory.files)
        result["manifest_lines"] = self.inventory.manifest.count(b"\n")
        return result


def main():
    arguments = harness.arguments(runs=300, seed=1, silent_steps=12, silent_step_hours=10, keep=False)
    print(json.dumps(Proof(arguments).main()))


if __name__ == "__main__":
    main()
