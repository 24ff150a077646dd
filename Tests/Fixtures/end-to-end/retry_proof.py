"""Runs wait for transient failures of the service, a database or a topic, as `retry` says.

    retry_proof.py --programs DIR --work DIR [--seed S] [--outage SECONDS] [--events N] [--only NAME]

Each cell has a simulator of its own, and a PostgreSQL server where it needs one. Whatever fails, files and
tables equal what was published in the end, exit codes are as documented, calls and deliveries are bounded.
- The service is away: a run that ends by itself gives up in time (69); one that follows goes on.
- The database is stopped, or read-only, or lost within COMMIT: a run that follows waits (until its streams are
  closed, and at least --outage seconds, with its memory as it was), a batch run waits in its time, and else ends with 69.
- A topic is refused: the others are exported, and it decides the exit code (77); a run that follows asks again.
- SIGINT and SIGTERM, once and twice, in both kinds of runs, during a backlog and while the database is away.

Prints a JSON line for each cell; exits 1 on any difference.
"""

import functools
import json
import os
import random
import signal
import threading
import time

import commit_proxy
import harness
import postgres

TOPICS = ["/data/OpportunityChangeEvent", "/data/AccountChangeEvent"]
FIRST, SECOND = TOPICS
QUICK = {"give_up_after": "3s", "min_delay": "200ms", "max_delay": "1s", "refused_delay": "1s"}
UNAVAILABLE = {"status": 14, "error_code": "service.unavailable", "message": "Try again later."}
REFUSED = {"status": 7, "error_code": "subscription.topic.cannot.subscribe", "message": "No."}
# Stands for a fault that comes again and again.
ALWAYS = 100000


class Cell(harness.Exporter):
    """A simulator, a pipeline into files and perhaps a database, and its runs."""

    def __init__(self, arguments, name, simulator, cluster=None, port=None, **keys):
        self.arguments, self.name, self.simulator = arguments, name, simulator
        self.work = "%s/%s" % (arguments.work, name)
        super().__init__(arguments.programs + "/pubsub-etl", self.work + "/pipeline.json", dict(simulator.environment))
        document = harness.pipeline(name, TOPICS)
        document["commit"] = {"max_events": 50}
        document["retry"] = dict(QUICK)
        self.url = None
        if cluster:
            self.url = cluster.make_database("warehouse")
            self.environment["DATABASE_URL"] = cluster.url("warehouse", port, postgres.ROLE)
            document["sinks"].append(
                {"type": "postgres", "name": "db", "url": "${DATABASE_URL}", "schema": "proof"})
        for key, value in keys.items():
            document[key].update(value)
        self.output = "%s/out/%s" % (self.work, name)
        self.report_path = self.work + "/report.json"
        harness.write_json(self.path, document)

    def start(self, *options):
        return self.spawn("run", "--report", self.report_path, *options)

    def run(self, code, *options, limit=60):
        self.end(self.start(*options), (code,), limit)
        return self.report()

    def report(self):
        return harness.read_json(self.report_path)

    def total(self):
        return len(self.simulator.published(TOPICS))

    def committed(self):
        """Events whose position is stored, by topic: in the database if there is one."""
        if self.url:
            rows = postgres.query(
                self.url,
                "SELECT t.key, t.value ->> 'next_ordinal' FROM proof._etl_checkpoint, jsonb_each(topics) AS t")
            return {topic: int(count) for topic, count in rows}
        try:
            checkpoint = harness.read_json("%s/state/%s.checkpoint.json" % (self.work, self.name))
        except FileNotFoundError:
            return {}
        return {topic: position["next_ordinal"] for topic, position in checkpoint["topics"].items()}

    def attempts(self):
        """What a run waits for, with the most attempts."""
        return max((wait["attempts"] for wait in self.status()[1]["waiting"]), default=0)

    def wait_for(self, process, count):
        self.wait(process, lambda: sum(self.committed().values()) >= count, "%d events" % count)

    def status(self):
        done = self.call("status", "--json", codes=None)
        return done.returncode, json.loads(done.stdout)

    def compare(self, wasted=0):
        """Files and tables equal the truth; no more than `wasted` events were delivered twice."""
        files = harness.compare(self.simulator, self.output, TOPICS)
        if self.url:
            harness.compare_tables(self.simulator, self.url, "proof", TOPICS)
        total, delivered = self.total(), self.simulator.get("stats")["delivered"]
        if delivered > total + wasted:
            self.fail(delivered, "events were delivered,", total, "published")
        return {"events": total, "delivered": delivered, "files": files}


def memory(process):
    """Resident memory in KiB."""
    with open("/proc/%d/status" % process.pid, encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS:"))


def attempts(report):
    return report["retries"]["count"]


# Cells: each with its own simulator. They end with what they have measured.


def service_away(arguments, simulator):
    """Gives up in time; a run that follows does not, and has everything at the end."""
    cell = Cell(arguments, "service_away", simulator)
    simulator.fault(times=ALWAYS, **UNAVAILABLE)
    began = time.monotonic()
    report = cell.run(69)
    seconds = time.monotonic() - began
    cell.says("gave up after", "retry.give_up_after")
    # Two topics: pauses of 0.2, 0.4, 0.8 and then about 1 s in 3 s.
    if not 4 <= attempts(report) <= 16 or seconds > 20:
        cell.fail(attempts(report), "attempts in", seconds, "s")
    if len(report["retries"]["errors"]) != 2:
        cell.fail("equal errors are not one:", report["retries"]["errors"])
    run = cell.start("--follow")
    # By when a run that ends by itself would have ended.
    cell.wait(run, lambda: cell.attempts() > 6, "status shows the attempts")
    simulator.forget_faults()
    cell.wait_for(run, cell.total())
    cell.wait(run, lambda: not cell.status()[1]["waiting"], "status tells that nothing is waited for")
    run.send_signal(signal.SIGTERM)
    cell.end(run, (0,))
    return dict(cell.compare(), attempts=attempts(report), seconds=round(seconds, 1))


def login_away(arguments, simulator):
    """The login follows the same policy."""
    cell = Cell(arguments, "login_away", simulator)
    simulator.fault(times=ALWAYS, method="Login", status=503, message="Down for Maintenance")
    report = cell.run(69)
    cell.says("gave up after")
    if not 4 <= attempts(report) <= 8:
        cell.fail(attempts(report), "logins")
    run = cell.start("--follow")
    cell.wait(run, lambda: cell.attempts() > 6, "status shows the attempts")
    simulator.forget_faults()
    cell.wait_for(run, cell.total())
    run.send_signal(signal.SIGINT)
    cell.end(run, (0,))
    return dict(cell.compare(), attempts=attempts(report))


def database_follow(arguments, simulator):
    """Stopped in mid-backlog for longer than a stream may be without credit."""
    with postgres.Cluster() as cluster:
        cell = Cell(arguments, "database_follow", simulator, cluster)
        run = cell.start("--follow")
        cell.wait_for(run, 200)
        known = sum(cell.committed().values())
        cluster.crash()
        simulator.publish(arguments.events, *TOPICS)
        cell.wait(run, lambda: cell.attempts() > 2, "it waits for the database")
        before = most = memory(run)
        began = time.monotonic()

        def is_over():
            nonlocal most
            most = max(most, memory(run))
            return time.monotonic() > began + arguments.outage and not simulator.get("stats")["streams"]

        cell.wait(run, is_over, "the outage ends with closed streams", arguments.outage + 90)
        code, status = cell.status()
        if [wait["kind"] for wait in status["waiting"]] != ["sink"]:
            cell.fail("status tells that it waits for", status["waiting"])
        if most > before + 32 * 1024:
            cell.fail("memory has grown from", before, "to", most, "KiB")
        # As much as a run without its database has in hand (see below), and what it had committed before the crash.
        more = simulator.get("stats")["delivered"] - known
        if more > 800:
            cell.fail(more, "events were delivered while nobody took them")
        cluster.start()
        cell.wait_for(run, cell.total())
        run.send_signal(signal.SIGTERM)
        cell.end(run, (0,))
        # What was in the transport when its stream was closed comes again: a window of each topic at most.
        # Two streams, each with a window of events and what the next request brings.
        return dict(cell.compare(wasted=400), memory_kib=[before, most], attempts=attempts(cell.report()))


def database_batch(arguments, simulator):
    """Within its time a batch run waits, at its beginning as well; beyond it ends with 69."""
    with postgres.Cluster() as cluster:
        cell = Cell(arguments, "database_batch", simulator, cluster, retry={"give_up_after": "60s"})
        cluster.crash()
        threading.Timer(2, cluster.start).start()
        cell.run(0, limit=90)
        cell.compare()
        cluster.crash()
        began = time.monotonic()
        report = cell.run(69, "--set", "retry.give_up_after=2s")
        seconds = time.monotonic() - began
        cell.says("gave up after")
        if seconds > 20:
            cell.fail("gave up after", seconds, "s")
        cluster.start()
        simulator.publish(arguments.events, *TOPICS)
        run = cell.start()
        cell.wait_for(run, cell.total() - arguments.events)
        cluster.crash()
        cell.wait(run, lambda: cell.attempts() > 1, "it waits for the database")
        cluster.start()
        cell.end(run, (0,), 90)
        return dict(cell.compare(), attempts=attempts(report), seconds=round(seconds, 1))


def database_fails_over(arguments, simulator):
    """Read-only for a while, as a primary that has become a standby; then the answer to COMMIT is lost
    together with the server."""
    chance = random.Random(arguments.seed)
    with postgres.Cluster() as cluster, commit_proxy.Proxy(cluster.port, arguments.seed) as proxy:
        cell = Cell(
            arguments, "database_fails_over", simulator, cluster, proxy.port, retry={"give_up_after": "60s"})
        run = cell.start("--follow")
        cell.wait_for(run, 200)

        def read_only(is_on):
            # A setting of the role or the database would end the run.
            postgres.query(cluster.url(), "ALTER SYSTEM SET default_transaction_read_only = %s" % is_on)
            postgres.query(cluster.url(), "SELECT pg_reload_conf()")
            postgres.query(
                cluster.url(),
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = '%s'"
                % postgres.ROLE)

        read_only("on")
        simulator.publish(arguments.events, *TOPICS)
        cell.wait(run, lambda: cell.attempts() > 2, "it waits for the database")
        read_only("off")
        for _ in range(arguments.rounds):
            for kind in ("answer", "request", "copy"):
                before = proxy.cuts[kind]
                proxy.arm(kind, chance.randrange(2))
                simulator.publish(200, *TOPICS)
                cell.wait(run, lambda: proxy.cuts[kind] > before, "a connection is cut: " + kind)
                cluster.crash()
                # A random moment of a run that may or may not have noticed.
                time.sleep(chance.random())
                cluster.start()
                cell.wait_for(run, cell.total())
        run.send_signal(signal.SIGTERM)
        cell.end(run, (0,))
        return dict(cell.compare(), cuts=proxy.cuts)


def topic_refused(arguments, simulator):
    """The other topics are exported first, then 77; a run that follows asks again at the configured pace."""
    cell = Cell(arguments, "topic_refused", simulator)
    simulator.fault(times=ALWAYS, topic=SECOND, **REFUSED)
    report = cell.run(77)
    cell.says("the other topics are exported first", "View All", SECOND)
    topics = {topic["topic"]: topic for topic in report["topics"]}
    published = cell.total()
    exported = topics[FIRST]["exported"]
    if not topics[SECOND]["refused"] or topics[FIRST]["refused"] or not 0 < exported < published:
        cell.fail("the report says", topics)
    if cell.status()[0] != 77:
        cell.fail("status ends with", cell.status()[0])
    run = cell.start("--follow")
    cell.wait(run, lambda: cell.status()[1]["waiting"], "status tells of the topic")
    code, status = cell.status()
    if code != 77 or [problem["kind"] for problem in status["problems"]] != ["topic_refused"]:
        cell.fail("status ends with", code, status["problems"])
    run.send_signal(signal.SIGTERM)
    cell.end(run, (77,))
    run = cell.start("--follow")
    cell.wait(run, lambda: cell.attempts() > 2, "three attempts")
    simulator.forget_faults()
    cell.wait_for(run, published)
    cell.wait(run, lambda: cell.status()[0] == 0, "all is well")
    run.send_signal(signal.SIGTERM)
    cell.end(run, (0,))
    return dict(cell.compare(), attempts=attempts(cell.report()))


def signals_in_backlog(arguments, simulator):
    """Everything received is committed, whatever the signal; a second one ends the run at once."""
    cell = Cell(arguments, "signals_in_backlog", simulator, source={"num_requested": 10})
    for options, first in (((), 75), (("--follow", "--log-level", "error"), 0)):
        for number, second in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            # A run may export all there is before it hears the signal.
            simulator.publish(300, FIRST)
            known = sum(cell.committed().values())
            run = cell.start(*options)
            cell.wait_for(run, known + 1)
            run.send_signal(number)
            cell.end(run, (first,))
            for topic in cell.report()["topics"]:
                if topic["delivered"] != topic["exported"] + topic["redelivered"]:
                    cell.fail("not everything received was committed:", topic)
            simulator.publish(300, FIRST)
            known = sum(cell.committed().values())
            run = cell.start(*options)
            cell.wait_for(run, known + 1)
            harness.send_twice(run, number)
            cell.end(run, (second,))
    cell.run(0)
    return cell.compare(wasted=800)


def signals_in_outage(arguments, simulator):
    """A run that waits for its database obeys signals: 69 after ten seconds, or at once on the second."""
    with postgres.Cluster() as cluster:
        cell = Cell(arguments, "signals_in_outage", simulator, cluster, retry={"give_up_after": "5m"})
        runs = 0
        cluster.crash()
        for options in ((), ("--follow",)):
            run = cell.start(*options)
            cell.wait(run, lambda: cell.status()[1]["waiting"], "it waits for the database")
            run.send_signal(signal.SIGTERM)
            cell.end(run, (69,), 30)
            cell.says("sink 'db': postgres: cannot connect", "a signal stopped the run while it waited")
        cluster.start()
        for options in ((), ("--follow",)):
            for number, second in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
                run = cell.start(*options)
                simulator.publish(300, FIRST)
                known = sum(cell.committed().values()) if runs else 0
                cell.wait_for(run, known + 1)
                cluster.crash()
                simulator.publish(300, FIRST)
                cell.wait(run, lambda: cell.status()[1]["waiting"], "it waits for the database")
                if number == signal.SIGTERM:
                    run.send_signal(number)
                    cell.end(run, (69,), 30)
                else:
                    harness.send_twice(run, number)
                    cell.end(run, (second,))
                cluster.start()
                runs += 1
        cell.run(0)
        # A run that ends without its database has up to two commits, the read-ahead and two windows in hand.
        return cell.compare(wasted=600 * runs)


CELLS = [
    database_follow, signals_in_outage, database_fails_over, database_batch, topic_refused, service_away,
    login_away, signals_in_backlog,
]


def prove(cell, arguments):
    os.makedirs("%s/%s" % (arguments.work, cell.__name__))
    began = time.monotonic()
    with harness.Simulator(
        arguments.programs, "%s/%s" % (arguments.work, cell.__name__), "--events", str(arguments.events),
        "--seed", str(arguments.seed), "--topics", ",".join(TOPICS), "--keepalive-interval", "2",
    ) as simulator:
        result = cell(arguments, simulator)
    return {"cell": cell.__name__, **result, "took_seconds": round(time.monotonic() - began, 1)}


def main():
    arguments = harness.arguments(seed=1, outage=0.0, events=1000, rounds=1, only=None)
    cells = [cell for cell in CELLS if arguments.only in (None, cell.__name__)]
    # They wait most of the time.
    harness.prove_side_by_side(len(CELLS), [functools.partial(prove, cell, arguments) for cell in cells])


if __name__ == "__main__":
    main()
