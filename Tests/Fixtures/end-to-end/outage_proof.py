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

import json
import os
import signal
import subprocess
import time

import harness
import postgres

TOPICS = ["/data/OpportunityChangeEvent", "/data/AccountChangeEvent"]
NAME = "outage"


def main():
    arguments = harness.arguments(seed=1, outage=0.0)
    work = arguments.work
    with harness.Simulator(
        arguments.programs, work, "--events", "2000", "--seed", str(arguments.seed),
        "--keepalive-interval", "8",
    ) as simulator, postgres.Cluster() as first, postgres.Cluster() as second:
        print(json.dumps(Proof(arguments, work, simulator, first, second).prove()))


class Proof(harness.Exporter):
    def __init__(self, arguments, work, simulator, first, second):
        super().__init__(
            arguments.programs + "/pubsub-etl", work + "/" + NAME + ".json", dict(simulator.environment))
        self.outage, self.simulator = arguments.outage, simulator
        self.clusters = {"first": first, "second": second}
        self.output = work + "/out/" + NAME
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
        document["retry"] = {"give_up_after": "3s", "max_delay": "1s"}
        harness.write_json(self.path, document)

    def count(self, name):
        """The number of events in the database, according to its position."""
        text = postgres.query(
            self.urls[name],
            "SELECT coalesce(sum((t.value ->> 'next_ordinal')::bigint), 0)"
            " FROM %s._etl_checkpoint, jsonb_each(topics) AS t" % NAME,
        )
        return int(text[0][0])

    def wait_for_all(self, process):
        """Until both databases have all events."""
        total = self.total()
        for name in self.urls:
            self.wait(process, lambda: self.count(name) >= total, "all events in %s" % name, 120)

    def lease(self):
        """The end of the second database's lease, and how many seconds are left of it."""
        sql = "SELECT lease_until, round(extract(epoch FROM lease_until - now())) FROM %s._etl_checkpoint" % NAME
        until, left = postgres.query(self.urls["second"], sql)[0]
        return until, int(left)

    def total(self):
        return len(self.simulator.published(TOPICS))

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
            return self.end(self.spawn("run", "--take-over", "--max-duration", "1s"), (69,), 60)
        finally:
            holder.communicate(b"ROLLBACK;\n")

    def prove(self):
        result = {}
        run = self.spawn("run", "--follow")
        self.wait_for_all(run)

        self.clusters["first"].crash()
        self.simulator.publish(300, *TOPICS)
        # What renews the lease of the second database while the run waits for the first is not a commit.
        self.wait(run, lambda: "attempt=3" in self.said(), "the run waits for the first database")
        began, (known, _) = time.monotonic(), self.lease()
        self.wait(run, lambda: self.lease()[0] != known, "the lease of the second database is renewed", 60)
        result["lease_of_the_other_seconds"] = self.lease()[1]
        # For whoever wants an outage that is longer than the lease.
        self.wait(run, lambda: time.monotonic() >= began + self.outage, "the end of the outage", self.outage + 9)
        self.clusters["first"].start()
        self.wait_for_all(run)

        self.freeze(signal.SIGSTOP)
        try:
            self.simulator.publish(100, *TOPICS)
            total = self.total()
            self.wait(run, lambda: self.simulator.get("stats")["delivered"] >= total, "the delivery of all events")
            run.send_signal(signal.SIGTERM)
            result["end_when_frozen_seconds"] = self.end(run, (69,), 30)
        finally:
            self.freeze(signal.SIGCONT)

        result["end_when_out_of_time_seconds"] = self.meet_lock()
        self.clusters["first"].crash()
        result["end_when_stopped_seconds"] = self.end(self.spawn("run"), (69,), 90)
        self.clusters["first"].start()
        self.end(self.spawn("run", "--take-over"), (0,), 120)
        result["events"] = self.total()
        result["files"] = harness.compare(self.simulator, self.output, TOPICS)
        for name, url in self.urls.items():
            result[name] = harness.compare_tables(self.simulator, url, NAME, TOPICS)
        return result


if __name__ == "__main__":
    main()
