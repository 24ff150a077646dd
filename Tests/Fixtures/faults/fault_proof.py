"""Ends or fails the real exporter at every system call on its files, and compares with the truth.

    fault_proof.py --programs DIR --work DIR [--modes crash,power,again,fail,disk] [--sample N]
        [--seed S] [--seeds N] [--events N] [--jobs N] [--only JSON]

A small run against the real simulator, under the preloaded `fault_shim.c`, from a fresh directory for
every point:

crash   SIGKILL before and after each call on a file, in the middle of each write, and before and
        after each message to the network
power   SIGKILL, and what was not synchronised is lost in part (`power_cut.py`), --seeds times
again   the same two at random calls of one, two or three runs after each other
fail    a call fails: full disk, quota, I/O error, read-only, too many open files; once or from then on;
        a failed fsync loses its data. Also short writes and slow synchronisation, which are no failures
disk    the state directory goes away under the process and comes back, or does not; the output or
        the state is on a read-only file system

Then the program runs again without the shim and has to end with 0, in silence, with files that hold the
truth. --sample takes so many points of each mode, spread by --seed. Prints one JSON line of outcomes;
at the first difference prints the point, to be repeated with --only, and exits 1.
"""

import argparse
import collections
import concurrent.futures
import errno
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading

import exported
import power_cut

HERE = os.path.dirname(os.path.abspath(__file__))
TOPICS = ["/data/OpportunityChangeEvent", "/data/Sales__chn"]
# Calls that change something on the disk.
CHANGES = "OWSTRUM"
MODES = ("crash", "power", "again", "fail", "disk")
FAILURES = {
    "W": ("ENOSPC", "EDQUOT", "EIO", "EROFS"),
    "O": ("ENOSPC", "EMFILE", "EROFS"),
    "o": ("EMFILE", "EIO"),
    "S": ("EIO", "ENOSPC", "EDQUOT"),
    "T": ("EIO", "EROFS"),
    "R": ("ENOSPC", "EIO", "EDQUOT", "EROFS"),
    "M": ("ENOSPC", "EROFS"),
    "r": ("EIO",),
}
OUTPUT_FAILED, BAD_DATA = 74, 65


def pipeline():
    return {
        "version": 1,
        "name": "faults",
        "source": {
            "type": "salesforce",
            "topic": TOPICS,
            "start": "earliest",
            "org": {
                "endpoint": "${PUBSUB_ENDPOINT}",
                "tls": {"ca_file": "${PUBSUB_CA_FILE:-}"},
                "auth": {
                    "type": "client_credentials",
                    "login_url": "${SF_LOGIN_URL}",
                    "client_id": "${SF_CLIENT_ID}",
                    "client_secret": "${SF_CLIENT_SECRET}",
                },
            },
        },
        "stages": [{"type": "flatten", "naming": "path"}],
        "sinks": [{"type": "files", "directory": "tree/out", "rotate": {"max_events": 60}}],
        "commit": {"max_events": 20},
        "checkpoint": {"type": "file", "directory": "tree/state"},
        "run": {"until": "caught_up", "quiet": "1s"},
    }


class Proof:
    def __init__(self, arguments, environment, shim, truth):
        self.arguments = arguments
        self.environment = environment
        self.shim = shim
        self.truth = truth
        self.outcomes = collections.defaultdict(collections.Counter)
        self.guard = threading.Lock()
        self.number = 0

    def directory(self):
        with self.guard:
            self.number += 1
            path = "%s/p%d" % (self.arguments.work, self.number)
        os.makedirs(path + "/tree")
        with open(path + "/pipeline.json", "w", encoding="utf-8") as file:
            json.dump(pipeline(), file)
        return path

    def run(self, path, fault=None, meanwhile=None):
        """(exit status, standard error, calls) of a run; `fault` puts it under the shim."""
        environment = dict(self.environment)
        journal = path + "/journal"
        if fault is not None:
            if os.path.exists(journal):
                os.remove(journal)
            environment.update(LD_PRELOAD=self.shim, FAULT_TREE=path + "/tree", FAULT_JOURNAL=journal)
            for name in ("kinds", "at", "action", "sticky", "under"):
                if name in fault:
                    value = fault[name]
                    value = path + "/tree/" + value if name == "under" else str(value)
                    environment["FAULT_" + name.upper()] = value
        process = subprocess.Popen(
            [self.arguments.programs + "/pubsub-etl", "run", path + "/pipeline.json"],
            env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        try:
            if meanwhile is not None:
                _, status = os.waitpid(process.pid, os.WUNTRACED)
                if not os.WIFSTOPPED(status):
                    raise exported.Difference("the process ended before it was stopped")
                try:
                    meanwhile()
                finally:
                    os.kill(process.pid, signal.SIGCONT)
            _, errors = process.communicate(timeout=120)
        except subprocess.TimeoutExpired:
            raise exported.Difference("the run does not end")
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        calls = power_cut.read_journal(journal) if fault is not None else []
        return process.returncode, errors.decode(), calls

    def try_point(self, point):
        path = self.directory()
        try:
            outcome = getattr(self, "try_" + point["mode"])(point, path)
        except exported.Difference as difference:
            return point, "%s (%s)" % (difference, path)
        with self.guard:
            self.outcomes[point["mode"]][outcome] += 1
        shutil.rmtree(path)
        return point, None

    def finish(self, path, before):
        """A healthy run: ends with 0, in silence, and the files hold the truth."""
        status, errors, _ = self.run(path)
        if status != 0 or errors:
            raise exported.Difference("the next run ended with %d: %s" % (status, errors))
        self.truth.check(path + "/tree/out")
        exported.check_surroundings(path + "/tree/out", path + "/tree/state", before)

    def crash(self, path, fault, seed=None):
        """Kills at a call; with a seed, cuts the power. False when the run did not get there."""
        tree = path + "/tree"
        disk = power_cut.Disk(tree) if seed is not None else None
        status, errors, calls = self.run(path, fault)
        if status == 0:
            return False
        if status != -signal.SIGKILL:
            raise exported.Difference("ended with %d: %s" % (status, errors))
        if disk is not None:
            disk.replay(calls)
            difference = disk.difference()
            if difference:
                raise exported.Difference("the journal is not what happened: " + difference)
            disk.cut(random.Random(seed))
        return True

    def try_crash(self, point, path):
        reached = self.crash(path, point)
        self.finish(path, exported.whole_files(path + "/tree/out"))
        return "exact" if reached else "exact, call not reached"

    def try_power(self, point, path):
        reached = self.crash(path, point, point["seed"])
        self.finish(path, exported.whole_files(path + "/tree/out"))
        return "exact" if reached else "exact, call not reached"

    def try_again(self, point, path):
        reached = 0
        for fault in point["faults"]:
            reached += self.crash(path, fault, fault.get("seed"))
            before = exported.whole_files(path + "/tree/out")
        self.finish(path, before)
        return "exact after %d of %d" % (reached, len(point["faults"]))


def points_of(mode, counts, arguments, chance):
    changes = sum(counts[kind] for kind in CHANGES)
    points = []

    def add(**point):
        points.append(dict(point, mode=mode))

    if mode == "crash":
        for action, kinds in (
            ("before", CHANGES), ("after", CHANGES), ("half", "W"), ("before", "N"), ("after", "N"),
        ):
            for at in range(1, sum(counts[kind] for kind in kinds) + 1):
                add(kinds=kinds, at=at, action=action)
    elif mode == "power":
        for at in range(1, changes + 1):
            for _ in range(arguments.seeds):
                add(kinds=CHANGES, at=at, action="after", seed=chance.randrange(1 << 30))
    elif mode == "again":
        for _ in range(arguments.again):
            faults = []
            for _ in range(chance.choice((2, 2, 3))):
                # Recovery is at the beginning of a run.
                last = chance.choice((12, 40, changes))
                fault = {"kinds": CHANGES, "at": chance.randint(1, last), "action": "after"}
                if chance.random() < 0.6:
                    fault["seed"] = chance.randrange(1 << 30)
                faults.append(fault)
            faults[0]["at"] = chance.randint(1, changes)
            add(faults=faults)
    return points


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--programs", required=True)
    parser.add_argument("--work", required=True)
    parser.add_argument("--modes", default=",".join(MODES))
    parser.add_argument("--sample", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--again", type=int, default=400)
    parser.add_argument("--events", type=int, default=250)
    parser.add_argument("--jobs", type=int, default=48)
    parser.add_argument("--only", type=json.loads)
    arguments = parser.parse_args()
    arguments.work = os.path.realpath(arguments.work)
    os.makedirs(arguments.work, exist_ok=True)
    shim = arguments.work + "/fault_shim.so"
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-o", shim,
         HERE + "/fault_shim.c", "-ldl"],
        check=True,
    )
    truth, env_file = arguments.work + "/truth.ndjson", arguments.work + "/env"
    simulator = subprocess.Popen(
        [arguments.programs + "/pubsub-simulator", "--events", str(arguments.events),
         "--seed", "1", "--keepalive-interval", "1.2", "--truth", truth, "--env", env_file],
        stdout=subprocess.PIPE,
    )
    try:
        if not simulator.stdout.readline().startswith(b"ready"):
            sys.exit("the simulator did not become ready")
        with open(env_file, encoding="utf-8") as file:
            os.environ.update(re.findall(r"^export (\w+)='(.*)'$", file.read(), re.M))
        proof = Proof(arguments, dict(os.environ), shim, exported.Truth(truth, TOPICS))
        failed = prove(proof, arguments)
    finally:
        simulator.send_signal(signal.SIGTERM)
        simulator.wait()
    sys.exit(1 if failed else 0)


def prove(proof, arguments):
    path = proof.directory()
    disk = power_cut.Disk(path + "/tree")
    status, errors, calls = proof.run(path, {})
    if status != 0 or errors:
        sys.exit("the run without faults ended with %d: %s" % (status, errors))
    disk.replay(calls)
    if disk.difference():
        sys.exit("the journal is not what happened: " + disk.difference())
    proof.truth.check(path + "/tree/out")
    exported.check_surroundings(path + "/tree/out", path + "/tree/state", {})
    counts = collections.Counter(call[0] for call in calls)
    chance = random.Random(arguments.seed)
    points = []
    if arguments.only:
        points = [arguments.only]
    else:
        for mode in arguments.modes.split(","):
            of_mode = points_of(mode, counts, arguments, chance)
            if arguments.sample and len(of_mode) > arguments.sample:
                of_mode = chance.sample(of_mode, arguments.sample)
            points += of_mode
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        running = [pool.submit(proof.try_point, point) for point in points]
        for future in concurrent.futures.as_completed(running):
            point, difference = future.result() if not future.cancelled() else (None, None)
            if difference:
                print("--only '%s'\n%s" % (json.dumps(point), difference), file=sys.stderr)
                failed += 1
                for other in running:
                    other.cancel()
    print(json.dumps({"calls": counts, "points": len(points), "outcomes": proof.outcomes}))
    return failed


if __name__ == "__main__":
    main()
