"""Ends or fails the real exporter at every system call on its files, and compares with the truth.

    fault_proof.py --programs DIR --work DIR [--modes crash,power,again,fail,disk] [--sample N]
        [--seed S] [--seeds N] [--events N] [--commit N] [--threads N] [--jobs N] [--only JSON]

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
truth. With --commit 600 --events 2500 --threads 2, lines are written by a thread of their own; in smaller commits
there is nothing for it to do. A point shows nothing when the run does not get to its call, as runs differ a little:
more than MISSED of a mode's points are a failure, with two threads more than half. --sample takes so many points of
each mode, spread by --seed. Prints one JSON line of outcomes;
at the first difference prints the point, to be repeated with --only, and exits 1.
"""

import collections
import concurrent.futures
import errno
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading

import exported  # and where the harness is
import harness
import power_cut

HERE = os.path.dirname(os.path.abspath(__file__))
TOPICS = ["/data/OpportunityChangeEvent", "/data/Sales__chn"]
# Calls that change something on the disk.
CHANGES = "OWSTRUM"
# What a run can do without: schemas that it keeps, and the note of what it waits for.
EXPENDABLE = (b"/state/schemas", b".waiting.json", b".runs.ndjson")
# Warnings of a run that succeeds: what it could not write is read by people only.
MEMORIES = ("the record of this run", "the ledger of runs")
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
MADE_ONCE = (
    "out", "out/_manifest.ndjson", "out/._views.sql.tmp", "out/Account/._columns.json.tmp",
    "out/.catalog.lock", "out/.faults.ndjson.zst.lock", "state", "state/dead", "state/faults.lock",
    "state/.faults.checkpoint.json.tmp",
)
OUTPUT_FAILED, BAD_DATA = 74, 65
# Share of a mode's points that may miss their call.
MISSED = 0.1


def pipeline(arguments):
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
        "sinks": [{"type": "files", "directory": "tree/out", "rotate": {"max_events": 3 * arguments.commit}}],
        "commit": {"max_events": arguments.commit},
        "checkpoint": {"type": "file", "directory": "tree/state"},
        "run": {"until": "caught_up", "quiet": "1s", "threads": arguments.threads},
    }


def is_about_memories(errors):
    return all(any(name in line for name in MEMORIES) for line in errors.splitlines())


def without_expendable(calls):
    """The calls but for those on files that a run can do without."""
    descriptors, own = set(), []
    for call in calls:
        kind, descriptor, _, result, content = call
        if kind in "OoRUM":
            is_expendable = any(name in content for name in EXPENDABLE)
            if kind in "Oo" and result >= 0:
                (descriptors.add if is_expendable else descriptors.discard)(result)
        else:
            is_expendable = descriptor in descriptors
        if not is_expendable:
            own.append(call)
    return own


class Proof:
    def __init__(self, arguments, environment, shim, truth):
        self.arguments = arguments
        self.environment = environment
        self.shim = shim
        self.truth = truth
        self.outcomes = collections.defaultdict(collections.Counter)
        self.missed = collections.Counter()
        self.guard = threading.Lock()
        self.number = 0

    def directory(self):
        with self.guard:
            self.number += 1
            path = "%s/points/%d" % (self.arguments.work, self.number)
        os.makedirs(path + "/tree")
        with open(path + "/pipeline.json", "w", encoding="utf-8") as file:
            json.dump(pipeline(self.arguments), file)
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
        if meanwhile is not None:
            _, status = os.waitpid(process.pid, os.WUNTRACED)
            if not os.WIFSTOPPED(status):
                process.returncode = os.waitstatus_to_exitcode(status)
                return process.returncode, process.stderr.read().decode(), None
            meanwhile()
            os.kill(process.pid, signal.SIGCONT)
        try:
            _, errors = process.communicate(timeout=120)
        except subprocess.TimeoutExpired:
            stacks = self.stacks(process.pid)
            process.kill()
            process.communicate()
            raise exported.Difference("the run does not end:\n" + stacks)
        calls = power_cut.read_journal(journal) if fault is not None else []
        return process.returncode, errors.decode(), calls

    @staticmethod
    def stacks(number):
        if not shutil.which("gdb"):
            return "(with gdb installed, the stacks would stand here)"
        command = ["gdb", "-p", str(number), "-batch", "-ex", "thread apply all bt 16"]
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout.decode()

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

    def miss(self, point):
        with self.guard:
            self.missed[point["mode"]] += 1
        return "call not reached"

    def try_crash(self, point, path):
        reached = self.crash(path, point)
        self.finish(path, exported.whole_files(path + "/tree/out"))
        return "exact" if reached else self.miss(point)

    def try_power(self, point, path):
        reached = self.crash(path, point, point["seed"])
        self.finish(path, exported.whole_files(path + "/tree/out"))
        return "exact" if reached else self.miss(point)

    def try_again(self, point, path):
        reached = 0
        for fault in point["faults"]:
            reached += self.crash(path, fault, fault.get("seed"))
            before = exported.whole_files(path + "/tree/out")
        self.finish(path, before)
        # Of the second and third run there may be little left to do.
        if not reached:
            return self.miss(point)
        return "exact after %d of %d" % (reached, len(point["faults"]))

    def try_fail(self, point, path):
        tree = path + "/tree"
        if "first" in point:
            self.crash(path, point["first"], point["first"].get("seed"))
        before = exported.whole_files(tree + "/out")
        disk = power_cut.Disk(tree)
        status, errors, calls = self.run(path, point)
        # What is said about incidents, and the record for `status`, follow every run, a failed one too.
        ends = [i for i, call in enumerate(calls) if call[0] == "O"
                and (b".incidents." in call[4] or b".last-run." in call[4])]
        calls = calls[: ends[0]] if ends else calls
        if point["action"] in ("short", "slow"):
            if status != 0 or errors:
                raise exported.Difference("ended with %d: %s" % (status, errors))
            self.finish(path, exported.whole_files(tree + "/out"))
            return point["action"] + ": no failure, exact"
        number = int(point["action"])
        name = errno.errorcode[number]
        own = without_expendable(calls)
        failed = [index for index, call in enumerate(own) if call[3] == -number]
        if not failed and status == 0 and any(call[3] == -number for call in calls):
            # A schema that is not kept is fetched again.
            if not is_about_memories(errors):
                raise exported.Difference("a file that can be missing is told: %s" % errors)
            self.finish(path, exported.whole_files(tree + "/out"))
            return "%s in a file that can be missing: no failure, exact" % name
        if not failed and status == 0:
            return "call not reached" if "first" in point else self.miss(point)
        self.check_failure(status, errors, tree, number)
        later = [call for call in own[failed[0] + 1 :] if call[0] in CHANGES and call[3] >= 0]
        if self.arguments.threads > 1:
            # The other thread hears of the failure later, but before it commits.
            later = [call for call in later if call[0] == "R" and b".checkpoint.json" in call[4]]
        if later:
            raise exported.Difference("went on after a failure: %s" % later[0][0])
        if "seed" in point:
            disk.replay(calls, synchronization_loses=True)
            disk.cut(random.Random(point["seed"]))
        before.update(exported.whole_files(tree + "/out"))
        self.finish(path, before)
        return "%s: 74, then exact" % name

    @staticmethod
    def check_failure(status, errors, tree, number):
        """Exit code 74 and one line that names the file, the reason and what to do."""
        if status != OUTPUT_FAILED:
            raise exported.Difference("ended with %d, not 74: %s" % (status, errors))
        text = "%s (errno %d); " % (os.strerror(number), number)
        _, found, remedy = errors.partition(text)
        if errors.count("\n") != 1 or tree not in errors or not found or len(remedy) < 10:
            raise exported.Difference("the message does not say what to do: " + errors)

    def try_disk(self, point, path):
        tree, scene = path + "/tree", point["scene"]
        if scene == "read-only":
            if "first" in point:
                self.crash(path, point["first"])
            before = exported.whole_files(tree + "/out")
            status, errors, _ = self.run(path, point)
            self.check_failure(status, errors, tree, errno.EROFS)
            self.finish(path, before)
            return "read-only %s: 74, then exact" % point["under"]
        place = tree + "/" + scene
        away = path + "/away"
        status, errors, calls = self.run(path, point, lambda: os.rename(place, away))
        if calls is None:
            self.finish(path, exported.whole_files(tree + "/out"))
            return self.miss(point)
        if status == 0 and errors and is_about_memories(errors):
            # The last checkpoint had been stored, perhaps while another thread was held.
            os.rename(away, place)
            self.finish(path, exported.whole_files(tree + "/out"))
            return "state away after the last checkpoint: 0; back: exact"
        self.check_failure(status, errors, tree, errno.ENOENT)
        if point["comes_back"]:
            if os.path.exists(place):
                raise exported.Difference("made again: " + place)
            os.rename(away, place)
            self.finish(path, exported.whole_files(tree + "/out"))
            return "state away: 74; back: exact"
        before = exported.whole_files(tree + "/out")
        status, errors, _ = self.run(path)
        if not before:
            # No file was finished: beginning anew loses nothing.
            if status != 0:
                raise exported.Difference("ended with %d: %s" % (status, errors))
            self.finish(path, {})
            return "state lost before the first file: 74, then exact"
        if status != BAD_DATA or place not in errors and "_manifest.ndjson" not in errors:
            raise exported.Difference("lost state: ended with %d: %s" % (status, errors))
        shutil.rmtree(place)
        os.rename(away, place)
        self.finish(path, before)
        return "state lost: 74, 65; back: exact"


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
        # Killed when it had made a file that all later runs find; then the power is cut.
        for made in MADE_ONCE:
            for at in range(1, 61):
                first = {"kinds": "OM", "under": made, "at": 1, "action": "after"}
                second = {"kinds": CHANGES, "at": at, "action": "after"}
                add(faults=[first, dict(second, seed=chance.randrange(1 << 30))])
    elif mode == "fail":
        for kind, names in FAILURES.items():
            for at in range(1, counts[kind] + 1):
                for name in names:
                    point = {"kinds": kind, "at": at, "action": getattr(errno, name)}
                    if kind == "S":
                        point["seed"] = chance.randrange(1 << 30)
                    if name in ("ENOSPC", "EDQUOT", "EMFILE", "EROFS") and chance.random() < 0.5:
                        point["sticky"] = 1
                    add(**point)
        for _ in range(arguments.again):
            kind = chance.choice("OoWSTRUMr")
            point = {"kinds": kind, "at": chance.randint(1, 12)}
            point["action"] = getattr(errno, chance.choice(FAILURES.get(kind, ("EROFS",))))
            first = {"kinds": CHANGES, "at": chance.randint(1, changes), "action": "after"}
            add(first=first, **point)
        for at in range(1, counts["W"] + 1):
            add(kinds="W", at=at, action="short")
        add(kinds="W", at=1, action="short", sticky=1)
        for at in range(1, counts["S"] + 1, 10):
            add(kinds="S", at=at, action="slow")
        add(kinds="S", at=1, action="slow", sticky=1, under="state")
    elif mode == "disk":
        for under in ("out", "state"):
            read_only = {
                "scene": "read-only", "kinds": "OWTRUM", "at": 1, "action": errno.EROFS,
                "sticky": 1, "under": under,
            }
            add(**read_only)
            for _ in range(10):
                at = chance.randint(1, changes)
                add(first={"kinds": CHANGES, "at": at, "action": "after"}, **read_only)
        for comes_back in (True, False):
            # From the first checkpoint to the last: before it the directory does not exist, after it nothing needs it.
            for at in range(40, changes - 30, 3):
                add(
                    scene="state", comes_back=comes_back, kinds=CHANGES, at=at, action="stop")
    return points


def main():
    arguments = harness.arguments(
        modes=",".join(MODES), sample=int, seed=1, seeds=3, again=400, events=250, commit=20, threads=1,
        jobs=48, only=json.loads)
    shutil.rmtree(arguments.work + "/points", ignore_errors=True)
    shim = arguments.work + "/fault_shim.so"
    subprocess.run(
        [shutil.which("cc") or "clang", "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-o", shim,
         HERE + "/fault_shim.c", "-ldl"],
        check=True,
    )
    with harness.Simulator(
        arguments.programs, arguments.work, "--events", str(arguments.events), "--seed", "1",
        # Thousands of points share this org.
        "--keepalive-interval", "1.2", "--delivery-limit", "1000000000",
    ) as simulator:
        os.environ.update(simulator.environment)
        proof = Proof(arguments, simulator.environment, shim, exported.Truth(simulator.truth, TOPICS))
        failed = prove(proof, arguments)
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
    if counts["X"]:
        # It happens in some of a thousand runs: SIGSEGV or SIGABRT at the end of a success.
        sys.exit("OpenSSL is freed at exit while threads that used it are ending")
    chance = random.Random(arguments.seed)
    points = []
    if arguments.only:
        points = arguments.only if isinstance(arguments.only, list) else [arguments.only]
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
    tried = collections.Counter(point["mode"] for point in points)
    # How often two threads call depends on how busy the machine is.
    most = MISSED if arguments.threads == 1 else 0.5
    for mode, count in proof.missed.items():
        if count > max(1, most * tried[mode]):
            print("%s: %d of %d points missed their call" % (mode, count, tried[mode]), file=sys.stderr)
            failed += 1
    return failed


if __name__ == "__main__":
    main()
