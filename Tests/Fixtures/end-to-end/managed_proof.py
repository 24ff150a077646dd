"""Runs the real exporter with `source.managed` against the simulator's ManagedSubscribe.

    managed_proof.py --programs DIR --work DIR [--sink files|postgres] [--kills N] [--seed S] [--only NAME,...]

Each part has a simulator and a managed subscription of its own. In the end of each, every event stands
exactly once in the output, and the service's position is the one that the program would resume from.

- batch: two runs; the call is closed cleanly, so that the second finds the subscription free.
- behind, lost: the service's position is moved back, or removed: events come again and are dropped.
- ahead: another client has committed: what lies between is read with Subscribe, and nothing is missing.
- refused: commits are refused; the export continues, and a later commit is confirmed.
- delayed: answers to commits come late, one for several.
- active: another run has the subscription; after its SIGTERM it is free at once. A dry run leaves it alone.
- following: new events, new schemas, an expired token and a broken stream while a run follows.
- kills: SIGKILL at random moments, each of which leaves the subscription taken for 15 minutes.
- held: after a SIGKILL, a run that gives up sooner tells when the subscription is free; one with the
  default waits for it.
- quiet: an hour and a half without an event, by the simulator's clock: the call is never ended for want
  of a commit.
- stalled: the Subscribe call that tells the next event answers nothing; a run does not end as caught up
  with an event that waits for it.
- record: a subscription that does not exist, is stopped, or is of another topic ends the run with what to
  do; check --connect finds the first two.

Prints a JSON line for each part; exits 1 on any difference.
"""

import contextlib
import json
import os
import random
import signal
import shutil

import harness
import postgres

TOPIC = "/data/OpportunityChangeEvent"
NAME = "Nightly_Export"


def main():
    arguments = harness.arguments(sink=("files", "postgres"), kills=4, seed=1, only=None)
    with postgres.Cluster() if arguments.sink == "postgres" else contextlib.nullcontext() as cluster:
        parts = (batch, behind, lost, ahead, unset, refused, delayed, active, following, kills, held, quiet, stalled, record)
        for part in parts:
            if arguments.only and part.__name__ not in arguments.only.split(","):
                continue
            options = ["--clock"] if part in (held, quiet, stalled) else []
            if part is record:
                options += ["--user-permission", "ViewSetup"]
            with Part(arguments, part.__name__, cluster, options) as run:
                print(json.dumps(dict(part=part.__name__, **part(run))), flush=True)


class Part(harness.Exporter):
    def __init__(self, arguments, name, cluster, options):
        self.arguments, self.name, self.cluster = arguments, name, cluster
        self.work = "%s/%s" % (arguments.work, name)
        os.makedirs(self.work)
        self.simulator = harness.Simulator(
            arguments.programs, self.work, "--events", "400", "--seed", str(arguments.seed), "--topics", TOPIC,
            "--managed", "name=%s&topic=%s&default=earliest" % (NAME, TOPIC), *options)
        self.report_path = self.work + "/report.json"
        self.document = harness.pipeline(name, TOPIC)
        del self.document["source"]["start"]
        self.document["source"]["managed"] = NAME
        self.document["commit"] = {"max_events": 20, "max_delay": "100ms"}
        self.document["retry"] = {"give_up_after": "2s"}
        if cluster:
            self.url = cluster.make_database(name)
            self.simulator.environment["DATABASE_URL"] = cluster.url(name, None, postgres.ROLE)
            self.document["sinks"] = [
                {"type": "postgres", "name": "db", "url": "${DATABASE_URL}", "schema": "sf", "mode": "both"}
            ]
        super().__init__(
            self.simulator.exporter, "%s/%s.json" % (self.work, name), self.simulator.environment)
        self.write()

    def __enter__(self):
        self.simulator.__enter__()
        return self

    def __exit__(self, *fault):
        self.simulator.__exit__(*fault)

    def write(self):
        harness.write_json(self.path, self.document)

    def follow(self, *options):
        return self.spawn("run", "--report", self.report_path, "--follow", *options)

    def run(self, code=0, *options):
        """What a run says."""
        report = [] if "--dry-run" in options else ["--report", self.report_path]
        done = self.call("run", *report, *options, codes=(code,), timeout=120)
        return done.stdout + done.stderr

    def stop(self, process):
        process.send_signal(signal.SIGTERM)
        self.end(process)

    def report(self):
        return harness.read_json(self.report_path)

    def managed(self):
        return self.simulator.get("managed")[NAME]

    def change(self, query):
        self.simulator.post("managed?name=%s&%s" % (NAME, query))

    def publish(self, count):
        self.simulator.publish(count, TOPIC)

    def status(self):
        return json.loads(self.call("status", "--json", codes=None).stdout)

    def total(self):
        return self.simulator.get("stats")["topics"][TOPIC]["events"]

    def exported(self):
        """The place of the next event, by the position that is stored."""
        topic = self.status()["topics"]
        return topic[0]["position"]["next_ordinal"] if topic and topic[0]["position"] else 0

    def ask(self, code, words):
        """check --connect, which takes no subscription."""
        done = self.call("check", "--connect", codes=(code,))
        output = done.stdout + done.stderr
        if words not in output:
            self.fail("check --connect does not say '%s':" % words, output)

    def check(self, confirmed=True):
        """Everything stands exactly once, and both positions are one."""
        if self.cluster:
            counts = harness.compare_tables(self.simulator, self.url, "sf", [TOPIC])
        else:
            counts = harness.compare(self.simulator, "%s/out/%s" % (self.work, self.name), [TOPIC])
        managed, status = self.managed(), self.status()
        resume = status["topics"][0]["position"]["resume"]
        if confirmed and managed["position"] != resume:
            self.fail("the service stands at", managed["position"], "and the pipeline at", resume)
        if managed["active"]:
            self.fail("the subscription is still taken")
        return {"counts": counts, "commits": managed["commits"]}


def check_report(part, redelivered=None, detours=0, failed=0):
    """What the report of the last run says; redelivered: (least, most)."""
    report = part.report()
    topic, managed = report["topics"][0], report["managed_subscription"]
    if managed["name"] != NAME or managed["detours"] != detours:
        part.fail("the report has", managed)
    if (managed["commits_failed"] > 0) != (failed > 0):
        part.fail("failed commits:", managed)
    if topic["delivered"] != topic["exported"] + topic["redelivered"]:
        part.fail("delivered is not exported and redelivered:", topic)
    least, most = redelivered or (0, 1)
    if not least <= topic["redelivered"] <= most:
        part.fail("redelivered", topic["redelivered"], "expected", least, "to", most)
    return managed


def batch(part):
    part.run()
    # A first run has nothing to prove.
    managed = check_report(part, (0, 0))
    if managed["confirmed_replay_id"] != part.managed()["position"]:
        part.fail("the report names another position:", managed)
    if part.status()["last_run"]["managed_replay_id"] != managed["confirmed_replay_id"]:
        part.fail("status names another position")
    part.publish(300)
    part.run()
    # The event that proves where the stream goes on.
    check_report(part, (1, 1))
    part.run()
    check_report(part, (0, 0))
    return part.check()


def behind(part):
    part.run()
    part.change("position=-50")
    part.publish(100)
    part.run()
    check_report(part, (51, 51))
    part.change("position=-50")
    # Nothing new: what comes again does not go into the output, and the service learns our position.
    part.run()
    if part.report()["topics"][0]["events"]:
        part.fail("events were exported again")
    return part.check()


def lost(part):
    part.run()
    part.change("position=none")
    part.publish(100)
    part.run()
    check_report(part, (401, 401))
    return part.check()


def ahead(part):
    part.run()
    part.publish(200)
    part.change("position=%2B100")
    errors = part.run()
    # The event that proves, the one that is ahead, and what both streams have brought after it.
    check_report(part, (2, 202), detours=1)
    if NAME not in errors or "nothing is missing" not in errors:
        part.fail("nothing tells of the detour:", errors)
    part.check(confirmed=False)
    # At the end of the topic: nothing comes, and Subscribe brings what does.
    part.publish(50)
    part.change("position=%2B1000")
    part.run()
    check_report(part, (1, 2), detours=1)
    part.publish(50)
    part.run()
    check_report(part, (1, 1))
    return part.check()


def unset(part):
    """Nothing is committed, and the subscription begins at the end of the topic."""
    part.change("position=none&default=latest")
    source = part.document["source"]
    del source["managed"]
    source["start"] = "earliest"
    part.write()
    part.run()
    del source["start"]
    source["managed"] = NAME
    part.write()
    part.publish(100)
    errors = part.run()
    check_report(part, (1, 2), detours=1)
    if "defaultReplay is LATEST" not in errors:
        part.fail("nothing tells why:", errors)
    # The run's last position was committed: from now on the subscription is where the pipeline is.
    part.check()
    part.publish(100)
    part.run()
    check_report(part, (1, 1))
    return part.check()


def refused(part):
    part.change("fail=1000")
    errors = part.run()
    if "did not store replay ID" not in errors:
        part.fail("no warning:", errors)
    check_report(part, (0, 0), failed=1)
    if part.managed()["position"]:
        part.fail("a refused commit was stored")
    part.change("fail=0")
    part.publish(100)
    part.run()
    check_report(part, (401, 401))
    return part.check()


def delayed(part):
    part.change("delay=300")
    part.run()
    check_report(part, (0, 0))
    return part.check()


def active(part):
    part.run()
    follower = part.follow()
    part.wait(follower, lambda: part.managed()["active"], "a following run")
    # Another pipeline, in another state directory.
    path, other = part.path, dict(part.document, name="other", checkpoint={"type": "file", "directory": "state2"})
    other["sinks"] = [{"type": "files", "directory": "out2"}]
    part.path = part.work + "/other.json"
    harness.write_json(part.path, other)
    errors = part.run(69)
    if "already.active" not in errors or "another client has the managed subscription" not in errors:
        part.fail("the message does not tell of the other client:", errors)
    part.path = path
    position = part.managed()["position"]
    part.run(0, "--dry-run", "--max-events", "5", "--from", "earliest")
    if part.managed()["position"] != position:
        part.fail("a dry run committed")
    part.publish(100)
    part.wait(follower, lambda: part.exported() == part.total(), "the export of 500 events")
    part.stop(follower)
    found = part.check()
    part.run()
    part.check()
    return found


def following(part):
    part.document["retry"] = {"give_up_after": "2m", "min_delay": "100ms"}
    part.write()
    # Each hits a call of its own.
    faults = [
        {"method": "ManagedSubscribe", "what": what, "after_events": events}
        for what, events in (("service.auth.error", 450), ("service.unavailable", 60), ("no_trailers", 70))
    ]
    part.simulator.post("faults", faults)
    follower = part.follow()
    part.wait(follower, lambda: part.exported() == 400, "the export of 400 events")
    for count in (100, 100, 100):
        part.simulator.post("schemas")
        part.publish(count)
        part.wait(follower, lambda: part.exported() == part.total(), "the export of what is new")
    if part.simulator.get("stats")["faults"]:
        part.fail("faults that did not happen:", part.simulator.get("stats"))
    part.stop(follower)
    if part.report()["retries"]["count"] < 3:
        part.fail("streams that did not break:", part.report()["retries"])
    return part.check()


def kills(part):
    chance = random.Random(part.arguments.seed)
    part.document["commit"] = {"max_events": 7, "max_delay": "50ms"}
    part.write()
    killed = 0
    # The lease of a killed run has not expired.
    takes_over = ["--take-over"] if part.cluster else []
    for _ in range(part.arguments.kills):
        run = part.follow(*takes_over)
        # At a random moment.
        harness.ends_within(run, chance.uniform(0.2, 1.5))
        run.kill()
        run.wait()
        killed += 1
        # The service keeps the subscription for a client that it has lost.
        part.simulator.advance("16m")
        part.publish(chance.randrange(50, 300))
    part.run(0, *takes_over)
    return dict(part.check(), kills=killed)


def held(part):
    part.run()
    follower = part.follow()
    part.wait(follower, lambda: part.managed()["active"], "a following run")
    follower.kill()
    follower.wait()
    part.publish(100)
    part.document["retry"] = {"give_up_after": "5m"}
    part.write()
    errors = part.run(69)
    if "the service frees it in 10 minutes at the latest: run again then" not in errors:
        part.fail("the message does not tell when:", errors)
    errors = part.run(75, "--max-duration", "2m")
    if "another client has the managed subscription" not in errors:
        part.fail("the message does not tell what the run waited for:", errors)
    del part.document["retry"]
    part.write()
    part.run()
    waits = part.report()["retries"]["count"]
    if not waits:
        part.fail("the subscription was free")
    # Only the event that proves where the stream goes on: a refusal costs none.
    check_report(part, (1, 1))
    return dict(part.check(), waits=waits)


def quiet(part):
    part.document["run"] = {"until": {"duration": "90m"}}
    part.write()
    before = part.managed()["commits"]
    part.run()
    report = part.report()
    if report["retries"]["count"]:
        part.fail("the call was ended:", report["retries"])
    commits = part.managed()["commits"] - before
    if commits < 9:
        part.fail("only", commits, "commits in 90 minutes")
    return part.check()


def stalled(part):
    part.run()
    part.document["retry"] = {"give_up_after": "10m"}
    part.write()
    part.publish(100)
    part.simulator.post("faults", {"what": "stall"})
    part.run()
    report = part.report()
    if report["topics"][0]["events"] != 100:
        part.fail("a run ended as", report["reason"], "with", report["topics"][0])
    # Those that waited, one more every 45 s, and the one that proves where the stream resumes afterwards.
    check_report(part, (2, 20))
    if report["retries"]["count"] != 1:
        part.fail("one silent call:", report["retries"])
    return part.check()


def record(part):
    part.ask(0, "Nightly_Export is for this topic and in the state RUN (defaultReplay EARLIEST")
    part.document["source"]["managed"] = "Missing"
    part.write()
    part.ask(77, "the org has no ManagedEventSubscription Missing")
    errors = part.run(77)
    if "developer.name.not.found" not in errors or "ManagedEventSubscription" not in errors:
        part.fail("unhelpful:", errors)
    part.document["source"]["managed"] = NAME
    part.write()
    part.change("state=STOP")
    part.ask(77, "Nightly_Export is in the state STOP; set it to RUN")
    errors = part.run(77)
    if "config.stopped" not in errors or "RUN" not in errors:
        part.fail("unhelpful:", errors)
    part.change("state=RUN")
    # The record is one of another topic than the pipeline's.
    part.document["source"]["topic"] = "/event/Order_Event__e"
    part.write()
    errors = part.run(78)
    if "brings events of 'Opportunity', not of 'Order_Event__e'" not in errors or part.managed()["position"]:
        part.fail("another topic's events:", errors, part.managed())
    part.document["source"]["topic"] = TOPIC
    part.write()
    shutil.rmtree(part.work + "/state", ignore_errors=True)
    part.run()
    # By its record ID as well.
    part.document["source"]["managed"] = part.managed()["id"]
    part.write()
    part.publish(10)
    part.run()
    if part.report()["managed_subscription"]["name"] != part.managed()["id"]:
        part.fail("the report has", part.report()["managed_subscription"])
    return part.check()


if __name__ == "__main__":
    main()
