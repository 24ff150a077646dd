"""One of two databases goes away while the exporter follows: the run goes on, and ends when it is told.

    outage_proof.py --programs DIR --work DIR [--seed S] [--outage SECONDS]

A pipeline feeds files and two PostgreSQL servers.
- The first server is stopped at once for some seconds, while new events come. The run goes on, the
  second database's lease is renewed, and when the server is back everything arrives.
- The first server is frozen, as by a machine that hangs: it answers nothing and breaks no connection. The
  run is asked to stop with SIGTERM, and has to end within half a minute, with 69.
- A table is locked by another session: a run with --max-duration ends ten seconds after that.
- The server is stopped, and a run that has nobody to ask ends with 69 by itself.
The last run, with both servers there, has to complete files and tables.

Prints one JSON line; exits 1 on any difference.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time

import harness
import postgres

TOPICS = ["/data/OpportunityChangeEvent", "/data/AccountChangeEvent"]
NAME = "outage"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--programs", required=True)
    parser.add_argument("--work", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--outage", type=float, default=23)
    arguments = parser.parse_args()
    work = os.path.abspath(arguments.work)
    os.makedirs(work, exist_ok=True)
    with harness.Simulator(
        arguments.programs, work, "--events", "2000", "--seed", str(arguments.seed),
        "--keepalive-interval", "8",
    ) as simulator, postgres.Cluster() as first, postgres.Cluster() as second:
        print(json.dumps(Proof(arguments, work, simulator, first, second).prove()))


class Proof:
    def __init__(self, arguments, work, simulator, first, second):
        self.programs, self.outage, self.simulator = arguments.programs, arguments.outage, simulator
        self.clusters = {"first": first, "second": second}
        self.errors = work + "/stderr"
        self.output = work + "/out/" + NAME
        self.environment = dict(simulator.environment)
        self.urls = {}
        sinks = harness.pipeline(NAME, TOPICS)["sinks"]
        for name, cluster in self.clusters.items():
            self.urls[name] = cluster.make_database("warehouse")
            variable = "%s_URL" % name.upper()
            self.environment[variable] = cluster.url("warehouse", None, postgres.ROLE)
            sinks.append(
                {"type": "postgres", "name": name, "url": "${%s}" % variable, "schema": NAME}
            )
        document = harness.pipeline(NAME, TOPICS)
        document["sinks"] = sinks
        document["commit"] = {"max_events": 50}
        document["retry"] = {"give_up_after": "20s"}
        self.path = work + "/" + NAME + ".json"
        harness.write_json(self.path, document)

    def spawn(self, *options):
        command = [self.programs + "/pubsub-etl", "run", self.path, *options]
        with open(self.errors, "wb") as errors:
            return subprocess.Popen(command, env=self.environment, stderr=errors)

    def fail(self, message):
        with open(self.errors, encoding="utf-8", errors="replace") as file:
            sys.exit("%s: %s" % (message, file.read()[-2000:]))

    def count(self, name):
        """The number of events in the database, according to its position."""
        text = postgres.query(
            self.urls[name],
            "SELECT coalesce(sum((t.value ->> 'next_ordinal')::bigint), 0)"
            " FROM %s._etl_checkpoint, jsonb_each(topics) AS t" % NAME,
        )
        return int(text[0][0])

    def wait(self, process, name, count, limit=120):
        """Until the database has so many events."""
        deadline = time.monotonic() + limit
        while True:
            if process.poll() is not None:
                self.fail("the run ended with %d" % process.returncode)
            try:
                if self.count(name) >= count:
                    return
            except subprocess.CalledProcessError:
                pass  # not there yet
            if time.monotonic() > deadline:
                self.fail("%s has not got %d events" % (name, count))
            time.sleep(0.1)

    def total(self):
        with open(self.simulator.truth, encoding="utf-8") as file:
            return sum(json.loads(line)["topic"] in TOPICS for line in file)

    def publish(self, count):
        for topic in TOPICS:
            self.simulator.post("publish?count=%d&topic=%s" % (count, topic))

    def end(self, process, expected, limit):
        began = time.monotonic()
        try:
            process.wait(limit)
        except subprocess.TimeoutExpired:
            process.kill()
            self.fail("the run has not ended after %d s" % limit)
        if process.returncode not in expected:
            self.fail("the run ended with %d" % process.returncode)
        return round(time.monotonic() - began, 1)

    def freeze(self, sends):
        """Stops the processes of the first server, or continues them."""
        with open(self.clusters["first"].directory + "/data/postmaster.pid", encoding="ascii") as file:
            postmaster = file.readline().strip()
        children = subprocess.run(["pgrep", "-P", postmaster], stdout=subprocess.PIPE, check=True)
        for pid in [postmaster] + children.stdout.decode().split():
            os.kill(int(pid), sends)

    def meet_lock(self):
        """A table is locked for longer than a run may take."""
        command = ["psql", "-XAtq", "-d", self.urls["first"]]
        holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        holder.stdin.write(b"BEGIN; LOCK TABLE %s.opportunity_history; SELECT 1;\n" % NAME.encode())
        holder.stdin.flush()
        holder.stdout.readline()
        try:
            return self.end(self.spawn("--take-over", "--max-duration", "3s"), (69,), 60)
        finally:
            holder.communicate(b"ROLLBACK;\n")

    def prove(self):
        result = {}
        run = self.spawn("--follow")
        for name in self.urls:
            self.wait(run, name, self.total())

        self.clusters["first"].crash()
        self.publish(300)
        deadline = time.monotonic() + self.outage
        while time.monotonic() < deadline:
            if run.poll() is not None:
                self.fail("the run ended with %d" % run.returncode)
            time.sleep(0.1)
        lease = postgres.query(
            self.urls["second"],
            "SELECT extract(epoch FROM lease_until - now()) FROM %s._etl_checkpoint" % NAME,
        )
        result["lease_of_the_other_seconds"] = round(float(lease[0][0]))
        if self.outage >= 22 and float(lease[0][0]) < 61 - self.outage + 15:
            self.fail("the lease of the second database has not been renewed: %s s are left" % lease)
        self.clusters["first"].start()
        for name in self.urls:
            self.wait(run, name, self.total())

        self.freeze(signal.SIGSTOP)
        try:
            self.publish(100)
            time.sleep(3)
            run.send_signal(signal.SIGTERM)
            result["end_when_frozen_seconds"] = self.end(run, (69,), 30)
        finally:
            self.freeze(signal.SIGCONT)

        result["end_when_out_of_time_seconds"] = self.meet_lock()
        self.clusters["first"].crash()
        result["end_when_stopped_seconds"] = self.end(self.spawn(), (69,), 90)
        self.clusters["first"].start()
        self.end(self.spawn("--take-over"), (0,), 120)
        result["events"] = self.total()
        result["files"] = harness.compare(self.simulator, self.output, TOPICS)
        for name, url in self.urls.items():
            result[name] = harness.compare_tables(self.simulator, url, NAME, TOPICS)
        return result


if __name__ == "__main__":
    main()
