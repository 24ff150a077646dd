"""Many small files of runs by cron, compacted, with a SIGKILL at random moments and a reader beside it.

    compact_proof.py --programs DIR --work DIR [--runs N] [--kills N] [--seed S]

Runs follow each other with events in between, over two days. Then the same directory is compacted again and again
from a copy, each time killed at another random moment. A reader lists the folders all the time and
reads what they have: the same lines each time. After each kill, `status --verify` and `verify --checksums` find nothing wrong
before anybody has repaired anything, and the next run or `compact` completes it. At the end,
after more runs and another compaction, files equal the truth, the manifest has each file once, and
DuckDB has the same current records as before.
Prints one JSON line; exits 1 at the first thing that is wrong.
"""

import collections
import hashlib
import io
import json
import os
import random
import shutil
import subprocess
import sys
import threading
import time

import duckdb
import zstandard

import harness

TOPICS = ["/data/OpportunityChangeEvent", "/data/AccountChangeEvent", "/event/Order_Event__e"]
OBJECTS = ["Opportunity", "Account"]


def folders(directory):
    """Folders that programs see."""
    with os.scandir(directory) as entries:
        return sorted(entry.path for entry in entries if entry.is_dir() and entry.name[0] not in "._")


def open_files(folder):
    """The finished files of a folder, open; None if one went away after the folder was listed."""
    names = [name for name in os.listdir(folder) if name.endswith(".ndjson.zst") and name[0] != "."]
    opened = []
    try:
        for name in names:
            opened.append(open(os.path.join(folder, name), "rb"))
    except FileNotFoundError:
        for file in opened:
            file.close()
        return None
    return opened


def read_lines(output, missed=lambda: None):
    """How often the files of a directory have each line."""
    found = collections.Counter()
    for entity in folders(output):
        for folder in folders(entity):
            while (files := open_files(folder)) is None:
                missed()
            for file in files:
                with file:
                    for line in io.BufferedReader(zstandard.ZstdDecompressor().stream_reader(file)):
                        found[hashlib.sha256(line).digest()] += 1
    return found


class Reader(threading.Thread):
    """Lists the folders and reads them, over and over."""

    def __init__(self, output, expected):
        super().__init__(daemon=True)
        self.output, self.expected = output, expected
        self.count = self.missed = 0
        self.fault = None
        self.ended = threading.Event()
        self.start()

    def run(self):
        while not self.ended.is_set() and self.fault is None:
            found = read_lines(self.output, self.miss)
            self.count += 1
            if found != self.expected:
                self.fault = "%d lines are missing, %d are there too often" % (
                    (self.expected - found).total(), (found - self.expected).total())

    def miss(self):
        self.missed += 1

    def end(self, moment):
        self.ended.set()
        self.join()
        if self.fault:
            sys.exit("%s: a reader found something else: %s" % (moment, self.fault))


class Proof:
    def __init__(self, arguments):
        self.arguments = arguments
        self.chance = random.Random(arguments.seed)
        self.work = arguments.work
        self.path = self.work + "/hourly.json"
        harness.write_json(self.path, harness.pipeline("hourly", TOPICS))
        self.output, self.state = self.work + "/out/hourly", self.work + "/state"
        self.clock = self.work + "/shifted_clock.so"
        compiler = [shutil.which("cc") or "clang", "-O1", "-shared", "-fPIC", "-o", self.clock]
        subprocess.run(compiler + [harness.HERE + "/shifted_clock.c", "-ldl"], check=True)
        self.hours = 0
        self.figures = collections.Counter()

    def exporter(self):
        environment = dict(self.simulator.environment)
        environment["LD_PRELOAD"] = self.clock
        environment["SHIFTED_CLOCK_SECONDS"] = str(self.hours * 3600)
        return harness.Exporter(self.arguments.programs + "/pubsub-etl", self.path, environment)

    def run(self):
        self.simulator.publish(self.chance.randint(5, 30), *TOPICS)
        self.exporter().call("run")
        self.figures["runs"] += 1
        self.simulator.advance("2h")
        self.hours += 2

    def files(self):
        return harness.data_files(self.output)

    def records(self):
        """The current records of each object, as DuckDB has them."""
        connection = duckdb.connect()
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute(harness.read_text(self.output + "/_views.sql"))
        records = {}
        for name in OBJECTS:
            # As text, because times need another package in Python.
            rows = connection.execute('SELECT COLUMNS(*)::VARCHAR FROM "%s_now"' % name).fetchall()
            count = connection.execute('SELECT count(*) FROM "%s"' % name).fetchone()[0]
            records[name] = (count, sorted(map(repr, rows)))
        return records

    def check_manifest(self):
        """Each file is listed once and as it is; what was replaced is gone."""
        listed = {}
        for line in harness.read_lines(self.output + "/_manifest.ndjson"):
            for name in line["replaces"]:
                if listed.pop(name, None) is None:
                    sys.exit("%s replaces %s, which is not in the manifest" % (line["name"], name))
            if line["name"] in listed:
                sys.exit("%s is listed twice" % line["name"])
            listed[line["name"]] = line["sha256"]
        found = {}
        for path in self.files():
            with open(path, "rb") as file:
                digest = hashlib.sha256(file.read()).hexdigest()
            found[os.path.relpath(path, self.output)] = digest
        if found != listed:
            sys.exit("manifest and files differ: %s" % sorted(set(found.items()) ^ set(listed.items()))[:3])

    def is_sound(self, moment):
        for words in (["status", "--verify"], ["verify", "--checksums"]):
            done = self.exporter().call(*words, codes=None)
            if done.returncode:
                sys.exit("%s: %s: %s%s" % (moment, " ".join(words), done.stdout, done.stderr))

    def hidden(self):
        return [
            os.path.join(directory, name)
            for directory, folders, names in os.walk(self.output)
            for name in folders + names
            if ".compact" in name
        ]

    def kill(self, number, longest):
        """A compaction of the small files that ends at a random moment."""
        for path in [self.output, self.state]:
            shutil.rmtree(path)
            shutil.copytree(path + ".small", path, symlinks=True)
        moment = "kill %d" % number
        reader = Reader(self.output, self.expected)
        process = self.exporter().spawn("compact")
        if not harness.ends_within(process, self.chance.uniform(0, longest)):
            process.kill()
            process.wait()
            self.figures["kills"] += 1
        elif process.returncode:
            sys.exit("%s: compact ended with %d" % (moment, process.returncode))
        self.figures["killed_with_hidden_folders"] += bool(self.hidden())
        self.figures["killed_in_exchange"] += os.path.exists(self.output + "/.hourly.compact.json")
        self.figures["killed_after_exchange"] += any("-s0-r" in path for path in self.files())
        self.is_sound(moment)
        if number % 2:
            self.exporter().call("run")
            if self.hidden():
                sys.exit("%s: the next run left %s" % (moment, self.hidden()))
        self.exporter().call("compact")
        reader.end(moment)
        self.figures["readings"] += reader.count
        self.figures["readings_begun_again"] += reader.missed
        self.is_sound(moment)
        self.check_manifest()
        if self.hidden():
            sys.exit("%s: compact left %s" % (moment, self.hidden()))
        if sorted(map(os.path.basename, self.files())) != self.compacted:
            sys.exit("%s: other files than without a kill" % moment)

    def interrupt(self):
        """Ctrl-C ends the command between two folders, and the next one completes it."""
        for path in [self.output, self.state]:
            shutil.rmtree(path)
            shutil.copytree(path + ".small", path, symlinks=True)
        process = self.exporter().spawn("compact")
        harness.eventually(lambda: self.hidden() or process.poll() is not None, "the first folder", pause=0.001)
        process.send_signal(2)
        code = harness.wait_for_end(process)
        if code not in (0, 75):
            sys.exit("compact ended with %d after a signal" % code)
        self.figures["stopped"] += code == 75
        if self.hidden():
            sys.exit("compact left %s after a signal" % self.hidden())
        self.is_sound("after a signal")

    def main(self):
        with harness.Simulator(
            self.arguments.programs, self.work, "--events", "200", "--seed", str(self.arguments.seed),
            "--topics", ",".join(TOPICS),
        ) as self.simulator:
            for _ in range(self.arguments.runs):
                self.run()
            # The last run finds nothing, as later ones do.
            self.exporter().call("run")
            self.figures["files_before"] = len(self.files())
            self.expected = read_lines(self.output)
            before = self.records()
            for path in [self.output, self.state]:
                shutil.copytree(path, path + ".small", symlinks=True)
            planned = json.loads(self.exporter().call("compact", "--dry-run", "--json").stdout)
            began = time.monotonic()
            done = json.loads(self.exporter().call("compact", "--json").stdout)
            # Without the moment for which old folders stay.
            longest = time.monotonic() - began - 0.8
            self.compacted = sorted(map(os.path.basename, self.files()))
            self.figures["files_after"] = len(self.compacted)
            for one, other in zip(planned["sinks"][0]["objects"], done["sinks"][0]["objects"]):
                if one["files_after"] != other["files_after"]:
                    sys.exit("--dry-run says something else: %s, %s" % (one, other))
            total = sum(entry["files_after"] for entry in done["sinks"][0]["objects"])
            if total != len(self.compacted) or total * 3 > self.figures["files_before"]:
                sys.exit("%s, and %d files" % (done, len(self.compacted)))
            if read_lines(self.output) != self.expected:
                sys.exit("compact changed lines")
            if self.records() != before:
                sys.exit("DuckDB has other records after compact")
            self.check_manifest()
            self.is_sound("after compact")
            self.interrupt()
            for number in range(self.arguments.kills):
                self.kill(number, longest)
            # The pipeline continues, and its files are compacted again.
            for _ in range(4):
                self.run()
            self.exporter().call("run")
            before = self.records()
            self.exporter().call("compact")
            if self.records() != before:
                sys.exit("DuckDB has other records after the last compact")
            self.check_manifest()
            self.is_sound("in the end")
            result = harness.compare(self.simulator, self.output, TOPICS)
        result.update(self.figures)
        return result


def main():
    arguments = harness.arguments(runs=24, kills=40, seed=1)
    print(json.dumps(Proof(arguments).main()))


if __name__ == "__main__":
    main()
