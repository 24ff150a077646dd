"""Metrics of a follower that is scraped while it runs, and of the runs of a crontab.

    metrics_proof.py --programs DIR --work DIR [--runs N]

- A follower is scraped in both formats, which a strict parser reads. Its counters reach those of the truth, also
  after its connection has broken. It is ready while the streams are open.
- Meanwhile hostile clients hold more connections than it takes: silent ones, ones with endless headers, ones that do
  not read, and some that send nonsense. Every scrape is answered, all events are exported, and its memory does not
  grow with their number.
- After N runs of another pipeline, some of which fail, the counters of the textfile equal the sums of the reports,
  and `promtool check metrics` has nothing to say, if there is one.

Prints one JSON line; exits 1 on any difference.
"""

import json
import re
import shutil
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request

from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_metrics
from prometheus_client.parser import text_string_to_metric_families as prometheus

import harness

TOPICS = ["/data/OpportunityChangeEvent", "/data/AccountChangeEvent"]
OPEN = "application/openmetrics-text; version=1.0.0"
# More than the endpoint takes at a time.
HOSTILE = 40


def values(text, parse=prometheus):
    """Every sample by its name and labels, without the pipeline's."""
    found = {}
    for family in parse(text):
        if not family.documentation:
            sys.exit("%s has no help" % family.name)
        for sample in family.samples:
            labels = {name: value for name, value in sample.labels.items() if name != "pipeline"}
            key = (sample.name.removeprefix("pubsub_etl_"), *sorted(labels.items()))
            if key in found:
                sys.exit("%s is there twice" % (key,))
            found[key] = sample.value
    return found


def total(found, name, **labels):
    return sum(
        value for key, value in found.items()
        if key[0] == name and all(pair in key[1:] for pair in labels.items()))


class Follower:
    def __init__(self, proof):
        self.proof, self.simulator = proof, proof.simulator
        path = proof.work + "/follower.json"
        document = harness.pipeline("follower", TOPICS)
        document["metrics"] = {"listen": "0", "textfile": "follower.prom"}
        harness.write_json(path, document)
        self.exporter = harness.Exporter(proof.programs + "/pubsub-etl", path, self.simulator.environment)
        self.scrapes = 0

    def get(self, path, accept="*/*"):
        request = urllib.request.Request(self.address + path, headers={"Accept": accept})
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, answer.headers["Content-Type"], answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.headers["Content-Type"], error.read().decode()

    def scrape(self, parse=open_metrics, accept=OPEN):
        status, kind, text = self.get("/metrics", accept)
        if status != 200 or not kind.startswith(accept.split(";")[0]):
            self.exporter.fail("a scrape got", status, kind)
        self.scrapes += 1
        return values(text, parse)

    def start(self):
        self.process = self.exporter.spawn("run", "--follow", "--log-level", "info")

        def address():
            found = re.search(r"serving metrics.*address=([0-9.:]+)", self.exporter.said())
            return found and "http://" + found[1]

        self.address = self.exporter.wait(self.process, address, "an address")

    def wait(self, condition, what):
        return self.exporter.wait(self.process, condition, what)

    def reach(self, moment):
        """Waits until the counters are those of the truth."""
        published = self.simulator.published(TOPICS)
        expected = {topic: sum(line["topic"] == topic for line in published) for topic in TOPICS}

        def has_reached():
            found = self.scrape()
            counts = {topic: total(found, "events_total", topic=topic) for topic in TOPICS}
            return found if counts == expected else None

        found = self.wait(has_reached, moment + ": all events in the counters")
        for topic in TOPICS:
            for name in ("lag_seconds_count", "processing_seconds_count", "delivered_events_total"):
                if total(found, name, topic=topic) != expected[topic]:
                    self.exporter.fail(moment, name, topic, total(found, name, topic=topic), expected[topic])
        return found

    def ready(self):
        self.wait(lambda: self.get("/readyz")[0] == 200, "a follower that is ready")

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        self.exporter.end(self.process)


def hostile_clients(address):
    """Connections that stay, of each kind."""
    host, port = address.removeprefix("http://").split(":")
    texts = [
        b"", b"GET /metrics HTTP/1.1\r\n", b"GET / HTTP/1.1\r\nX: " + b"a" * 100_000,
        b"GET /metrics HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"]
    clients = []
    for number in range(HOSTILE):
        client = socket.create_connection((host, int(port)))
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.setblocking(False)
        try:
            client.send(texts[number % len(texts)])
        except OSError:
            pass  # it was closed to make room
        clients.append(client)
    return clients


class Proof:
    def __init__(self, arguments, simulator):
        self.programs, self.work, self.simulator = arguments.programs, arguments.work, simulator
        self.runs = arguments.runs

    def follow(self):
        follower = Follower(self)
        # The connection breaks before the tenth event.
        self.simulator.fault(topic=TOPICS[0], at={"event": 10}, what="drop")
        follower.start()
        try:
            return self.watch(follower)
        finally:
            # Nothing if it has ended.
            follower.process.kill()

    def watch(self, follower):
        if follower.get("/healthz")[::2] != (200, "ok\n"):
            follower.exporter.fail("it is not healthy")
        if follower.get("/nothing")[0] != 404:
            follower.exporter.fail("there is a page that is not there")
        follower.ready()
        found = follower.reach("at first")
        if not total(found, "reconnects_total"):
            follower.exporter.fail("no reconnect was counted")
        plain = follower.scrape(prometheus, "text/plain")
        counters = [{key for key in samples if key[0].endswith("_total")} for samples in (plain, found)]
        if counters[0] != counters[1]:
            follower.exporter.fail("the formats differ in", counters[0] ^ counters[1])
        follower.wait(lambda: total(follower.scrape(), "keepalives_total"), "a keepalive")

        before = harness.peak_kib(follower.process.pid)
        clients = hostile_clients(follower.address)
        for _ in range(20):
            self.simulator.publish(20, *TOPICS)
            follower.scrape()
            clients += hostile_clients(follower.address)
            if len(clients) > 4 * HOSTILE:
                for client in clients[:HOSTILE]:
                    client.close()
                del clients[:HOSTILE]
        found = follower.reach("among hostile clients")
        grown = harness.peak_kib(follower.process.pid) - before
        if grown > 32_768:
            follower.exporter.fail("memory has grown by", grown, "KiB")
        for client in clients:
            client.close()

        follower.ready()
        follower.end()
        last = values(harness.read_text(self.work + "/follower.prom"))
        for topic in TOPICS:
            if total(last, "events_total", topic=topic) != total(found, "events_total", topic=topic):
                follower.exporter.fail("the textfile has other counts for", topic)
        return {"scrapes": follower.scrapes, "hostile_kib": grown}

    def cron(self):
        path, report, textfile = (self.work + name for name in ("/cron.json", "/report.json", "/cron.prom"))
        document = harness.pipeline("cron", TOPICS)
        document["metrics"] = {"textfile": textfile}
        document["run"]["quiet"] = "1s"
        document["dead_letter"] = {"max": 1000}
        harness.write_json(path, document)
        exporter = harness.Exporter(self.programs + "/pubsub-etl", path, self.simulator.environment)
        sums = {}
        codes = {}

        def add(name, value, **labels):
            key = (name, *sorted(labels.items()))
            sums[key] = sums.get(key, 0) + value

        for number in range(self.runs):
            self.simulator.publish(7 + number, *TOPICS)
            if number == 1:
                self.simulator.fault(what="undecodable", after_events=1)
            if number % 4 == 2:
                # The login is refused.
                wrong = {**self.simulator.environment, "SF_CLIENT_SECRET": "wrong"}
                exporter.call("run", "--report", report, codes=(77,), env=wrong)
            else:
                options = ["--max-events", str(10 + number)] if number % 4 == 3 else []
                exporter.call("run", "--report", report, *options)
            found = harness.read_json(report)
            codes[found["exit_code"]] = codes.get(found["exit_code"], 0) + 1
            for topic in found["topics"]:
                for name, member in (
                        ("events", "exported"), ("delivered_events", "delivered"), ("rows", "rows"),
                        ("repeated_events", "redelivered"), ("rows_left_out", "rows_left_out")):
                    add(name + "_total", topic[member], topic=topic["topic"])
                for name in ("lag_seconds_count", "processing_seconds_count"):
                    add(name, topic["exported"])
            for sink in found["sinks"]:
                for name in ("rows", "bytes", "files"):
                    add("sink_%s_total" % name, sink[name], sink=sink["name"])
            add("dead_letters_total", found["dead_letters"]["count"])
            add("gap_events_total", found["gaps"])
            add("schema_fetches_total", found["schemas"]["fetched"])
            add("schema_cache_hits_total", found["schemas"]["from_cache"])
            add("retries_total", found["retries"]["count"])
        text = harness.read_text(textfile)
        last = values(text)
        # A dead letter has no commit time.
        letters = sums[("dead_letters_total",)]
        sums[("lag_seconds_count",)] -= letters
        if letters != 1:
            exporter.fail(letters, "dead letters")
        for (name, *labels), expected in sums.items():
            if total(last, name, **dict(labels)) != expected:
                exporter.fail(name, labels, total(last, name, **dict(labels)), "is not", expected)
        for code, count in codes.items():
            if total(last, "runs_total", exit_code=str(code)) != count:
                exporter.fail("runs with", code, total(last, "runs_total", exit_code=str(code)), count)
        if total(last, "last_success_timestamp_seconds") > total(last, "last_run_timestamp_seconds"):
            exporter.fail("the last success is later than the last run")
        promtool = shutil.which("promtool")
        if promtool:
            done = subprocess.run([promtool, "check", "metrics"], input=text, text=True, capture_output=True)
            if done.returncode or done.stdout or done.stderr:
                exporter.fail("promtool:", done.stdout, done.stderr)
        return {"runs": self.runs, "events": total(last, "events_total"), "promtool": bool(promtool)}


def main():
    arguments = harness.arguments(runs=100)
    options = ["--events", "60", "--topics", ",".join(TOPICS), "--keepalive-interval", "0.5", "--seed", "7"]
    with harness.Simulator(arguments.programs, arguments.work, *options) as simulator:
        proof = Proof(arguments, simulator)
        print(json.dumps({**proof.follow(), **proof.cron()}))


main()
