"""Exports from another implementation of the service, which fails in every permitted way.

    other_service_proof.py --programs DIR --work DIR [--seed N] [--events N] [--kills N] [--calm]
        [--postgres] [--nested] [--managed]

Runs killed (-9) at random moments, then one to the caught-up point: the files must equal what that
service published, event by event and field by field, and no file may have changed. --calm: without
failures of the service. Undisturbed, every event is delivered once, but for the open group that a
channel's next stream begins with, and a stream that breaks changes nothing about that; a kill costs no
more deliveries than two batches and what was asked for. Runs that end
after a few events ask for those only. --postgres: into tables too, two schemas of a private server,
where a refold must change nothing. --nested: pipelines without the stage flatten. --managed: also by
ManagedSubscribe, each object and the channel with a managed subscription of its own.
"""

import json
import random
import re
import subprocess
import sys

import harness
import postgres

OBJECTS = ["/data/ContactChangeEvent", "/data/AccountChangeEvent", "/event/Order_Event__e"]
CHANNEL = ["/data/All__chn"]
# In the order of the managed subscriptions.
MANAGED = ["/data/ContactChangeEvent", "/data/AccountChangeEvent", "/data/All__chn", "/event/Order_Event__e"]
BATCH = 300
# Per topic: a response beyond the read-ahead, and the window. A batch may be twice as long when its
# transaction is.
KILL = 3 * BATCH + 200 * len(OBJECTS + CHANNEL)


class OtherService:
    """A context manager with the ready service, for pipelines and the comparison."""

    def __init__(self, work, *options):
        self.truth, self.schemas = work + "/truth.ndjson", work + "/schemas.json"
        self.process = harness.start_service("other_service.py", "--work", work, *options)
        self.environment = harness.read_environment(work + "/env")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.returncode is None:
            self.end()

    def end(self):
        return json.loads(self.process.communicate(b"")[0])


class Export:
    """A pipeline and its expected output."""

    def __init__(self, arguments, service, name, topics, url=None, managed=None):
        self.arguments, self.service, self.name, self.topics = arguments, service, name, topics
        self.url = url
        # Events of the runs that were not killed that had been exported before.
        self.repeated = 0
        self.output = arguments.work + "/out/" + name
        self.path = "%s/%s.json" % (arguments.work, name)
        document = harness.pipeline(name, topics)
        document["run"]["quiet"] = "2s"
        document["commit"] = {"max_events": BATCH}
        if arguments.nested:
            document["stages"] = []
        if managed:
            del document["source"]["start"]
            document["source"].update(managed=managed, topic=topics[0])
            document["retry"] = {"min_delay": "200ms"}
        self.nesting = ["--nested"] if arguments.nested else []
        self.report = "%s/%s.report.json" % (arguments.work, name)
        self.options = ["--report", self.report]
        if url:
            document["sinks"] = [{"type": "postgres", "url": url, "schema": name}]
            # A killed run's lease has not expired.
            self.options += ["--take-over"]
        harness.write_json(self.path, document)

    def program(self, command, *options):
        return [self.arguments.programs + "/pubsub-etl", command, self.path, *options]

    def run(self):
        """Kills that hit, and the counts of the comparison."""
        self.begin()
        chance = random.Random("%d %s" % (self.arguments.seed, self.name))
        inventory = harness.Inventory(self.output)
        kills = 0
        for _ in range(self.arguments.kills):
            process = subprocess.Popen(
                self.program("run", *self.options), env=self.service.environment)
            try:
                if process.wait(chance.uniform(0.05, 3)):
                    sys.exit("%s: a run ended with %d" % (self.name, process.returncode))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                kills += 1
            inventory.check("kill %d" % kills)
        self.whole_run()
        inventory.check("the whole run")
        if self.url:
            counts = self.compare_tables()
        else:
            inventory.check_manifest()
            counts = harness.compare(self.service, self.output, self.topics, *self.nesting)
        return {"kills": kills, "repeated": self.repeated, **counts}

    def begin(self):
        """Runs that end after a few events and request no more."""
        for _ in range(3):
            exported = self.whole_run("--max-events", "3")
            if not 3 <= exported <= 3 * len(self.topics):
                sys.exit("%s: %d events of at most 3 per topic" % (self.name, exported))

    def whole_run(self, *options):
        """Events exported."""
        self.expect(self.program("run", *self.options, *options))
        topics = harness.read_json(self.report)["topics"]
        self.repeated += sum(topic["delivered"] - topic["exported"] for topic in topics)
        return sum(topic["exported"] for topic in topics)

    def expect(self, command):
        """Standard output of a command that has to succeed."""
        done = subprocess.run(
            command, env=self.service.environment, stdout=subprocess.PIPE, timeout=300)
        if done.returncode:
            sys.exit("%s: exit code %d of %s: %s" % (self.name, done.returncode, command, done.stdout))
        return done.stdout.decode()

    def compare_tables(self):
        command = [sys.executable, harness.HERE + "/compare_postgres.py", "--url", self.url]
        command += ["--truth", self.service.truth, "--schemas", self.service.schemas]
        command += ["--schema", self.name, *self.nesting]
        for topic in self.topics:
            command += ["--topic", topic]
        counts = json.loads(self.expect(command))
        refolded = self.expect(self.program("refold"))
        if re.search(r" [1-9][\d,]* changed", refolded) or " 0 changed" not in refolded:
            sys.exit("%s: refold: %s" % (self.name, refolded))
        return counts


def main():
    arguments = harness.arguments(
        seed=1, events=2000, kills=0, calm=False, postgres=False, nested=False, managed=False)
    options = ["--seed", str(arguments.seed), "--events", str(arguments.events)]
    options += ["--calm"] if arguments.calm else []
    with OtherService(arguments.work, *options) as service:
        results = {}
        if not arguments.managed:
            results["files"] = Export(arguments, service, "files", OBJECTS + CHANNEL).run()
        for number, topic in enumerate(MANAGED if arguments.managed else []):
            name = "All_%d" % number
            results[name] = Export(arguments, service, name, [topic], None, name).run()
        if arguments.postgres:
            with postgres.Cluster() as cluster:
                url = cluster.make_database("warehouse")
                for name, topics in (("objects", OBJECTS), ("channel", CHANNEL)):
                    results[name] = Export(arguments, service, name, topics, url).run()
        served = service.end()
        published = sum(result["events"] for result in results.values())
        allowed = sum(KILL * r["kills"] for r in results.values())
        # A stream that breaks costs nothing else: the next begins after the last event received.
        allowed += served["sent_again"] + served["open_groups"]
        if not 0 <= served["delivered"] - published <= allowed:
            text = "%d events were delivered, %d published; %d more are what kills may cost"
            sys.exit(text % (served["delivered"], published, allowed))
        if not arguments.calm and not arguments.managed and not served["failed_logins"]:
            sys.exit("no login has failed")
        if arguments.calm and not arguments.kills and results.get("objects", {}).get("repeated"):
            sys.exit("events of objects were delivered again: %s" % results["objects"])
        print(json.dumps({**served, **results}))


if __name__ == "__main__":
    main()
