"""`pubsub-etl tail`: the newest changes of files and tables, and changes as they arrive.

    tail_proof.py --programs DIR --work DIR

`--last` shows what files and history tables hold, by commit time over all topics, and delivers nothing. A topic
without a pipeline file, and a pipeline file, show each new change once and the values before it; they cost what
they show, move no position and leave the next run everything. On a terminal, no text of an event controls it.
Prints one JSON line; exits 1 at the first difference.
"""

import json
import os
import pty
import re
import signal
import subprocess
import sys

import harness
import postgres

TOPICS = ["/data/OpportunityChangeEvent", "/data/AccountChangeEvent"]
EVENT = "/event/Order_Event__e"
HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e\r\nforged 00:00:00\x08\u2028"
COLORS = re.compile("\x1b\\[(?:3[123]|0)m")


def require(condition, *what):
    if not condition:
        sys.exit("not so: %s" % (what,))


def on_terminal(command, environment):
    """Exit code and standard output of a command, a terminal."""
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        command, env=dict(environment, TERM="xterm"), stdin=subprocess.DEVNULL, stdout=follower,
        stderr=subprocess.DEVNULL)
    os.close(follower)
    text = b""
    while True:
        try:
            part = os.read(leader, 4096)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        text += part
    os.close(leader)
    return harness.wait_for_end(process), text.decode().replace("\r\n", "\n")


def lines(text):
    return [json.loads(line) for line in text.split("\n") if line]


def exported(output):
    """The lines of all files."""
    found = []
    for path in harness.data_files(output):
        found += lines(subprocess.run(["zstd", "-dcq", path], stdout=subprocess.PIPE, check=True).stdout.decode())
    return found


def time_of(line):
    return line.get("_commit_timestamp") or line["CreatedDate"]


def key(line):
    return line["_event_id"], line.get("_record_id") or ""


class Proof:
    def __init__(self, simulator, programs, work, url):
        self.simulator, self.work, self.url = simulator, work, url
        document = harness.pipeline("deals", [*TOPICS, EVENT])
        document["sinks"].append({"type": "postgres", "name": "warehouse", "url": "${DATABASE_URL}"})
        harness.write_json(work + "/deals.json", document)
        harness.write_json(work + "/org.json", document["source"]["org"])
        self.exporter = harness.Exporter(programs + "/pubsub-etl", work + "/deals.json", simulator.environment)

    def delivered(self):
        return self.simulator.get("delivered")["total"]

    def publish(self, *events):
        text = "".join(json.dumps(event) + "\n" for event in events)
        subprocess.run(
            [self.exporter.program, "publish", "--org", self.work + "/org.json", "--topic", EVENT],
            input=text.encode(), env=self.simulator.environment, stdout=subprocess.DEVNULL, check=True)

    # The copy

    def before_the_first_run(self):
        """Nothing was exported: nothing is shown."""
        require(self.exporter.call("tail", "--last", "5").stdout == "", "a copy without changes")
        done = self.exporter.call("tail", "--last", "5", "--sink", "warehouse", codes=(64,))
        require("has no history tables" in done.stderr, done.stderr)

    def recalls(self):
        before = self.delivered()
        found = sorted(exported(self.work + "/out/deals"), key=time_of)
        shown = lines(self.exporter.call("tail", "--last", "40").stdout)
        require(len({line["_topic"] for line in shown}) > 1, "changes of several topics", shown)
        require([time_of(line) for line in shown] == [time_of(line) for line in found[-40:]], "by time", shown)
        by_key = {key(line): line for line in found}
        require(all(by_key[key(line)] == line for line in shown), "lines of files, as they are")
        shown = lines(self.exporter.call("tail", "--last", "10000").stdout)
        require(sorted(map(key, shown)) == sorted(by_key), "all lines")

        rows = lines(self.exporter.call("tail", "--last", "10000", "--sink", "warehouse").stdout)
        require(sorted(map(key, rows)) == sorted(by_key), "all rows")
        few = lines(self.exporter.call("tail", "--last", "7", "--sink", "warehouse").stdout)
        require(few == rows[-7:], "the newest rows", few, rows[-7:])
        changes = [row for row in rows if row["_commit_timestamp"]]
        times = [by_key[key(row)]["_commit_timestamp"] for row in changes]
        require(times == sorted(times), "rows by commit time", times)
        require(self.delivered() == before, "what is recalled is not delivered")
        return len(shown)

    def blocks(self):
        """On a terminal: the value before a change, and nothing that controls the terminal."""
        for sink in ("files", "warehouse"):
            code, text = on_terminal(
                self.exporter.command("tail", "--last", "200", "--sink", sink), self.simulator.environment)
            require(code == 0 and "\x1b[33m" in text and "\x1b[32m" in text, text[:2000])
            plain = COLORS.sub("", text)
            for character in HOSTILE.replace("\n", ""):
                require(character.isprintable() or character not in plain, sink, ascii(character), ascii(plain))
            require("\nforged" not in plain and "forged 00:00:00" in plain, "the text itself is shown", plain)
            require(re.search(r'^  \w+ +\S.* → \S', plain, re.M), "old and new values", plain)
            headings = [line for line in plain.splitlines() if not line.startswith("  ")]
            require(all(re.match(r"(\S+ )?\d\d:\d\d:\d\d  \w+", line) for line in headings), headings)

    # As they arrive

    def follow(self, command, count, publish):
        """The lines of a tail that ends after so many events, of which one is published again and again until it
        is shown: nobody says when a subscription has begun."""
        path = self.work + "/shown"
        with open(path, "wb") as file, open(self.exporter.errors, "wb") as errors:
            process = subprocess.Popen(
                command, env=self.simulator.environment, stdin=subprocess.DEVNULL, stdout=file, stderr=errors)

        def is_over():
            if process.poll() is None:
                publish()
            return process.poll() is not None

        try:
            harness.eventually(is_over, "the end of a tail", fail=self.exporter.fail, pause=0.5)
        finally:
            process.kill()
            process.wait()
        require(process.returncode == 0, process.returncode, self.exporter.said())
        shown = harness.read_lines(path)
        require(len(shown) >= count, "events that were asked for", shown)
        return shown

    def live(self):
        before, positions = self.delivered(), self.positions()
        command = self.exporter.command("tail", "--max-events", "3")
        shown = self.follow(command, 3, lambda: self.simulator.publish(1, TOPICS[0]))
        cost = self.delivered() - before
        require(3 <= cost, "what is shown is delivered", cost)
        command = [self.exporter.program, "tail", EVENT, "--org", self.work + "/org.json", "--max-events", "2"]
        events = self.follow(command, 2, lambda: self.publish({"City__c": HOSTILE}))
        require({event["City__c"] for event in events} == {HOSTILE}, "JSON has the values", events)
        require(self.positions() == positions, "no position has moved")
        require(not os.path.exists(self.work + "/state/Order_Event__e.checkpoint.json"), "no state")
        return shown + events

    def positions(self):
        stored = postgres.query(self.url, "SELECT * FROM salesforce._etl_checkpoint")
        return harness.read_text(self.work + "/state/deals.checkpoint.json"), stored

    def stops(self):
        """A signal ends a tail cleanly, and the lock of a run is not needed."""
        follower = self.exporter.spawn("run", "--follow")
        self.exporter.wait(follower, lambda: "subscribed" in self.exporter.said(), "a follower")
        path = self.work + "/stopped"
        with open(path, "wb") as file:
            tail = subprocess.Popen(
                self.exporter.command("tail"), env=self.simulator.environment, stdin=subprocess.DEVNULL, stdout=file)

        def shows():
            self.simulator.publish(1, TOPICS[0])
            return os.path.getsize(path)

        harness.eventually(shows, "a change", process=tail, fail=self.exporter.fail, pause=0.5)
        tail.send_signal(signal.SIGINT)
        require(harness.wait_for_end(tail) == 0, "a tail that was stopped")
        follower.send_signal(signal.SIGTERM)
        self.exporter.end(follower)

    def refusals(self):
        for words, code, message in [
            (["--sink", "x"], 64, "the pipeline has no sink 'x'"),
            (["--last", "3", "--set", 'sinks=[{"type":"stdout"}]'], 64, "keeps no changes"),
            (["--last", "3", "--sink", "warehouse", "--set", 'sinks.1.mode="current"',
              "--set", 'sinks.1.schema="other"'], 64, "has no history tables"),
        ]:
            done = self.exporter.call("tail", *words, codes=(code,))
            require(message in done.stderr and done.stdout == "", words, done.stderr)


def main():
    arguments = harness.arguments()
    work = arguments.work
    with harness.Simulator(
        arguments.programs, work, "--events", "200", "--seed", "5", "--data", "sales",
        "--topics", *TOPICS, EVENT, "--keepalive-interval", "2",
    ) as simulator, postgres.Cluster() as cluster:
        url = cluster.make_database("deals")
        simulator.environment["DATABASE_URL"] = cluster.url("deals", user=postgres.ROLE)
        proof = Proof(simulator, arguments.programs, work, url)
        proof.before_the_first_run()
        proof.exporter.call("run")
        proof.publish({"City__c": HOSTILE, "Order_Number__c": "N-1"})
        proof.exporter.call("run")
        result = {"recalled": proof.recalls()}
        proof.blocks()
        result["live"] = len(proof.live())
        proof.stops()
        proof.refusals()
        proof.exporter.call("run")
        harness.compare(simulator, work + "/out/deals", [*TOPICS, EVENT])
        harness.compare_tables(simulator, url, "salesforce", [*TOPICS, EVENT])
    print(json.dumps(result))


if __name__ == "__main__":
    main()
