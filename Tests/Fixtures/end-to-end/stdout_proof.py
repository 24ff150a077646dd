"""Lines on standard output: the same as in files, each event at least once whatever happens to the pipe.

    stdout_proof.py --programs DIR --work DIR

- A pipeline with both sinks writes the same lines to both.
- A reader that closes the pipe ends the run with 74, the next run writes what no checkpoint counted.
- The run is killed again and again: every event has come, and repeated lines are equal.
- A report on standard output, a second such sink, a full disk and a closed descriptor are refused.

Prints one JSON line; exits 1 on any difference.
"""

import json
import random
import subprocess
import sys

import harness

TOPIC = "/data/OpportunityChangeEvent"


def main():
    arguments = harness.arguments(kills=6)
    work = arguments.work
    options = ["--events", "5000", "--seed", "3", "--topics", TOPIC]
    with harness.Simulator(arguments.programs, work, *options) as simulator:
        print(json.dumps(Proof(arguments.programs, work, simulator).prove(arguments.kills)))


class Proof:
    def __init__(self, programs, work, simulator):
        self.programs, self.work, self.simulator = programs, work, simulator

    def pipeline(self, name, *sinks):
        document = harness.pipeline(name, TOPIC)
        document["sinks"] = [
            {"type": "stdout", "name": sink} if sink != "files" else document["sinks"][0]
            for sink in sinks
        ]
        document["commit"] = {"max_events": 100}
        path = "%s/%s.json" % (self.work, name)
        harness.write_json(path, document)
        return path

    def spawn(self, path, *options, stdout=subprocess.PIPE):
        command = [self.programs + "/pubsub-etl", "run", path, *options]
        return subprocess.Popen(
            command, env=self.simulator.environment, stdout=stdout, stderr=subprocess.PIPE
        )

    def run(self, expected, path, *options, stdout=subprocess.PIPE):
        process = self.spawn(path, *options, stdout=stdout)
        output, errors = process.communicate()
        if process.returncode != expected or (expected == 0) != (errors == b""):
            sys.exit("%s: %d, not %d: %s" % (path, process.returncode, expected, errors.decode()))
        return output

    def finished_lines(self):
        lines = []
        for path in harness.data_files(self.work + "/out/both"):
            text = subprocess.run(["zstd", "-dcq", path], stdout=subprocess.PIPE, check=True).stdout
            lines += text.splitlines()
        return lines

    def prove(self, kills):
        lines = self.run(0, self.pipeline("both", "files", "stdout")).splitlines()
        if sorted(lines) != sorted(self.finished_lines()):
            sys.exit("standard output differs from the files")
        truth = set(lines)
        if len(truth) != len(lines):
            sys.exit("lines of one run are repeated")

        path = self.pipeline("closed", "stdout")
        process = self.spawn(path)
        first = process.stdout.read(300_000)
        process.stdout.close()
        if process.wait() != 74:
            sys.exit("a closed pipe ended the run with %d" % process.returncode)
        process.stderr.close()
        got = set(first[: first.rfind(b"\n")].splitlines())
        rest = self.run(0, path).splitlines()
        if got | set(rest) != truth:
            sys.exit("events are missing after a closed pipe")

        path, got, count = self.pipeline("killed", "stdout"), set(), 0
        chance = random.Random(1)
        for _ in range(kills):
            process = self.spawn(path)
            text = process.stdout.read(chance.randint(1, 700_000))
            process.kill()
            text += process.stdout.read()
            process.communicate()
            whole = text[: text.rfind(b"\n") + 1].splitlines()
            got.update(whole)
            count += len(whole)
        whole = self.run(0, path).splitlines()
        got.update(whole)
        count += len(whole)
        if got != truth:
            sys.exit("%d lines after kills, not %d" % (len(got), len(truth)))

        self.run(64, self.pipeline("report", "stdout"), "--report", "-")
        self.run(78, self.pipeline("two", "stdout", "other"))
        for name, mode in (("/dev/full", "wb"), ("/dev/null", "rb")):
            with open(name, mode) as file:
                self.run(74, self.pipeline("refused" + mode, "stdout"), stdout=file)
        whole = self.pipeline("whole", "stdout")
        for arguments in (
            ["--version"], ["--help"], ["check", whole], ["status", whole], ["runs", whole], ["doctor", whole],
            ["pipeline-schema"],
        ):
            with open("/dev/full", "wb") as file:
                done = subprocess.run(
                    [self.programs + "/pubsub-etl", *arguments], env=self.simulator.environment, stdout=file,
                    stderr=subprocess.PIPE)
            message = b"standard output cannot be written: No space left on device\n"
            if done.returncode != 74 or not done.stderr.endswith(message):
                sys.exit("%s on a full disk: %d: %s" % (arguments, done.returncode, done.stderr.decode()))
        # Nothing else may get the number of a closed stream.
        command = 'exec "$0" run "$1" >&-'
        program, path = self.programs + "/pubsub-etl", self.pipeline("absent", "stdout")
        done = subprocess.run(
            ["sh", "-c", command, program, path], env=self.simulator.environment, stderr=subprocess.PIPE
        )
        if done.returncode != 74 or b"Bad file descriptor" not in done.stderr:
            sys.exit("without standard output: %d: %s" % (done.returncode, done.stderr.decode()))
        return {"lines": len(lines), "again_after_close": len(rest), "with_kills": count}


if __name__ == "__main__":
    main()
