"""The demo in deploy/compose.

    compose_proof.py --programs DIR --work DIR

compose.yaml fits the specification of Compose without a field that this does not know. Its services have no root, fixed
versions, health checks, and ports of this machine only. Simulator and exporter run as the file says, with its files,
secrets and addresses, and a real PostgreSQL: they become healthy, and every event arrives in the tables. Prometheus, if
it is installed, finds no mistake in its configuration, reaches the exporter under the address that the file has, and
has data for the panels of the dashboard, which Grafana finds in its files. Prints one JSON line; exits 1 on any
difference.
"""

import collections
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import urllib.parse
import urllib.request

import compose_spec
import yaml

import harness
import postgres

DEPLOY = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(harness.HERE))), "deploy")
TOPICS = 4
# Before the start, as the simulator has them by default, and after it.
EVENTS, LIVE = 200, 10
# These are about runs that a timer starts, about failures, or change at most every few minutes.
EMPTY_PANELS = {
    "Time since the last success", "Retries and reconnects", "Rows that are not right",
    "Dead letters, gap events and unusable positions, one day",
}


def require(condition, *what):
    if not condition:
        sys.exit("not so: %s" % (what,))


def read():
    """The document, which fits the specification, with its anchors resolved."""
    document = yaml.safe_load(harness.read_text(DEPLOY + "/compose/compose.yaml"))
    parsed = compose_spec.PyCompose.from_json(json.dumps(document))
    parsed.validate()
    return document


def check_restrictions(services, secrets):
    for name, service in services.items():
        require(service["user"].partition(":")[0] not in ("root", "0"), name, "runs as root")
        require(service["cap_drop"] == ["ALL"] and not service.get("cap_add"), name, "has capabilities")
        require(service["security_opt"] == ["no-new-privileges:true"], name, "may get privileges")
        require(not service.get("privileged"), name, "is privileged")
        require(service["healthcheck"]["test"][0] == "CMD", name, "has no health check")
        require("build" in service or re.search(r":v?\d+\.\d+", service["image"]), name, "has no fixed version")
        for port in service.get("ports", []):
            require(port.startswith("127.0.0.1:"), name, port, "can be reached from elsewhere")
        for other, dependency in service.get("depends_on", {}).items():
            require(other in services and dependency == {"condition": "service_healthy"}, name, other)
    used = {secret for service in services.values() for secret in service.get("secrets", [])}
    require(used == set(secrets), "secrets", used)


class Container:
    """What a service finds in its container, below a directory of this machine."""

    def __init__(self, demo, name):
        self.demo, self.service = demo, demo.services[name]
        self.root = "%s/%s" % (demo.work, name)
        mode = self.service.get("network_mode", "service:" + name)
        self.network = mode.removeprefix("service:")
        require(self.network in demo.services, name, mode)
        # Files by their places in the container.
        self.files = {}
        for mount in self.service.get("volumes", []):
            source, target, mode = mount.split(":")
            require(mode == "ro", name, mount)
            self.files[target] = source
        for secret in self.service.get("secrets", []):
            self.files["/run/secrets/" + secret] = demo.document["secrets"][secret]["file"]

    def fill(self):
        """Writes the files, with places of this machine for those of the containers."""
        for directory in self.service.get("tmpfs", []):
            os.makedirs(self.root + directory)
        for target, source in self.files.items():
            path = self.root + target
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(self.replaced(harness.read_text("%s/compose/%s" % (DEPLOY, source))))
            os.chmod(path, 0o600)

    def replaced(self, text):
        # One pass, since the directory of this machine may begin like one of them.
        places = "|".join(re.escape(place) for place in (*self.files, *self.service.get("tmpfs", []))) or "(?!)"
        text = re.sub(r"(?<![\w.])(%s)(?![\w.-])" % places, lambda found: self.root + found[0], text)
        text = re.sub(r"(?<=port=)\d+", lambda found: str(self.demo.ports[self.network, found[0]]), text)
        return re.sub(
            r"\b(%s|127\.0\.0\.1|0\.0\.0\.0):(\d+)\b" % "|".join(self.demo.networks),
            lambda found: "127.0.0.1:%d" % self.demo.ports[self.demo.networks.get(found[1], self.network), found[2]],
            text)

    def environment(self, **others):
        own = {name: self.replaced(value) for name, value in self.service.get("environment", {}).items()}
        return {"PATH": self.demo.path, **own, **others}

    def spawn(self, *options):
        command = [self.replaced(word) for word in (*self.service["entrypoint"], *self.service["command"])]
        with open(self.root + "/said", "wb") as said:
            return subprocess.Popen(
                [*command, *options], env=self.environment(), stdin=subprocess.DEVNULL, stdout=said, stderr=said)

    def is_healthy(self, **environment):
        command = [self.replaced(word) for word in self.service["healthcheck"]["test"][1:]]
        done = subprocess.run(command, env=self.environment(**environment), capture_output=True)
        with open(self.root + "/health", "ab") as said:
            said.write(done.stdout + done.stderr)
        return done.returncode == 0

    def wait(self, process, condition, what):
        def fail(message):
            sys.exit("%s\n%s" % (message, "".join(
                harness.read_text(path)[-2000:] for path in (self.root + "/said", self.root + "/health")
                if os.path.exists(path))))

        # A check of health starts a program each time.
        return harness.eventually(condition, what, 90, process, fail, pause=0.2)


class Demo:
    def __init__(self, document, programs, work):
        self.document, self.work, self.services = document, work, document["services"]
        self.path = programs + ":" + os.environ["PATH"]
        # By network and port in it.
        self.ports = collections.defaultdict(postgres.free_port)
        containers = {name: Container(self, name) for name in self.services}
        # Names by which services find each other.
        self.networks = {name: name for name, container in containers.items() if container.network == name}
        for name, service in self.services.items():
            for alias in service.get("networks", {}).get("default", {}).get("aliases", []):
                self.networks[alias] = name
        self.containers = containers

    def fill(self):
        for container in self.containers.values():
            container.fill()


def prepare(cluster, container):
    """Makes of a server what the image makes of its variables; returns the URL of the superuser."""
    environment = container.environment()
    user, secret = environment["POSTGRES_USER"], environment["POSTGRES_PASSWORD_FILE"]
    password = harness.read_text(secret).strip()
    postgres.query(cluster.url(), "CREATE ROLE %s SUPERUSER LOGIN PASSWORD '%s'" % (user, password))
    postgres.query(cluster.url(), "CREATE DATABASE %s OWNER %s" % (environment.get("POSTGRES_DB", user), user))
    # The password counts.
    path = cluster.directory + "/data/pg_hba.conf"
    rules = harness.read_text(path)
    with open(path, "w", encoding="utf-8") as file:
        file.write("host all %s all scram-sha-256\n%s" % (user, rules))
    postgres.query(cluster.url(), "SELECT pg_reload_conf()")
    return cluster.url(environment.get("POSTGRES_DB", user))


def events_of_tables(url):
    tables = postgres.query(
        url, "SELECT table_name FROM information_schema.columns WHERE table_schema = 'salesforce'"
        " AND column_name = '_event_id' AND table_name LIKE '%\\_history'")
    if len(tables) < TOPICS:
        return set()
    union = " UNION ".join('SELECT _event_id FROM salesforce."%s"' % table for table, in tables)
    return {event for event, in postgres.query(url, union) if event}


class Prometheus:
    """The server with the configuration of the container."""

    def __init__(self, container):
        self.container = container
        self.configuration = container.root + "/etc/prometheus/prometheus.yml"
        self.address = "127.0.0.1:%d" % container.demo.ports["prometheus", "9090"]

    def check(self):
        done = subprocess.run(["promtool", "check", "config", self.configuration], capture_output=True)
        require(done.returncode == 0 and not done.stderr, "promtool", done.stdout, done.stderr)

    def get(self, path, **query):
        url = "http://%s/api/v1/%s?%s" % (self.address, path, urllib.parse.urlencode(query))
        with urllib.request.urlopen(url, timeout=60) as answer:
            return json.load(answer)["data"]

    def is_ready(self):
        # Images have wget; this machine need not.
        url = self.container.replaced(self.container.service["healthcheck"]["test"][-1])
        try:
            with urllib.request.urlopen(url, timeout=60):
                return True
        except OSError:
            return False

    def is_reached(self):
        targets = self.get("targets")["activeTargets"]
        return targets and all(target["health"] == "up" for target in targets)

    def panels(self):
        """Titles of the dashboard's panels that have data."""
        with open(DEPLOY + "/grafana/pubsub-etl.json", encoding="utf-8") as file:
            panels = json.load(file)["panels"]
        found = set()
        for panel in panels:
            for target in panel["targets"]:
                expression = target["expr"].replace("$pipeline", ".*").replace("$__rate_interval", "1m")
                if self.get("query", query=expression)["result"]:
                    found.add(panel["title"])
        require(EMPTY_PANELS < {panel["title"] for panel in panels}, "the panels of the dashboard")
        return found if found | EMPTY_PANELS == {panel["title"] for panel in panels} else None

    def watch(self):
        container = self.container
        command = ["prometheus", "--config.file=" + self.configuration, "--web.listen-address=" + self.address]
        command.append("--storage.tsdb.path=%s/prometheus" % container.root)
        with open(container.root + "/said", "wb") as said:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=said, stderr=said)
        try:
            container.wait(process, self.is_ready, "Prometheus is healthy")
            container.wait(process, self.is_reached, "Prometheus reaches the exporter")
            container.wait(process, self.panels, "the dashboard has data")
            rules = [rule for group in self.get("rules")["groups"] for rule in group["rules"]]
            firing = [rule["name"] for rule in rules if rule["health"] != "ok" or rule["state"] == "firing"]
            require(rules and not firing, "alerts", firing)
        finally:
            process.terminate()
            process.wait()


def check_grafana(container):
    """Grafana's files name Prometheus and the directory of the dashboard."""
    provisioning = container.root + "/etc/grafana/provisioning"
    [source] = yaml.safe_load(harness.read_text(provisioning + "/datasources/prometheus.yml"))["datasources"]
    address = "http://127.0.0.1:%d" % container.demo.ports["prometheus", "9090"]
    require(source["url"] == address and source["isDefault"], "Grafana's source of data", source)
    [provider] = yaml.safe_load(harness.read_text(provisioning + "/dashboards/pubsub-etl.yml"))["providers"]
    dashboards = [name for name in os.listdir(container.root + "/etc/dashboards") if name.endswith(".json")]
    require(provider["options"]["path"] == "/etc/dashboards" and len(dashboards) == 1, "dashboards", dashboards)
    [variable] = [
        variable for variable in harness.read_json(DEPLOY + "/grafana/pubsub-etl.json")["templating"]["list"]
        if variable["type"] == "datasource"]
    require(variable["query"] == source["type"], "the dashboard's source of data", variable)


def run(demo, cluster):
    simulator, exporter = demo.containers["simulator"], demo.containers["exporter"]
    url = prepare(cluster, demo.containers["postgres"])
    healthy = demo.containers["postgres"].is_healthy(PGPORT=str(cluster.port), PATH=cluster.programs)
    require(healthy, "PostgreSQL is healthy")
    truth = demo.work + "/truth.ndjson"
    org = simulator.spawn("--truth=" + truth, "--live-count=%d" % LIVE)
    process = None
    try:
        simulator.wait(org, simulator.is_healthy, "the simulator is healthy")
        process = exporter.spawn()
        exporter.wait(process, exporter.is_healthy, "the exporter is healthy")

        def published():
            return {line["event_id"] for line in harness.read_lines(truth)}

        exporter.wait(
            process, lambda: len(published()) == EVENTS + LIVE and events_of_tables(url) == published(),
            "every event is in the tables")
        prometheus = Prometheus(demo.containers["prometheus"])
        if shutil.which("promtool"):
            prometheus.check()
        if shutil.which("prometheus"):
            prometheus.watch()
        else:
            print("not tried: prometheus is not installed")
        process.send_signal(signal.SIGTERM)
        code = harness.wait_for_end(process)
        require(code == 0, "the exporter ended with", code, harness.read_text(exporter.root + "/said"))
    finally:
        for started in (process, org):
            if started:
                started.terminate()
                started.wait()


def main():
    arguments = harness.arguments()
    document = read()
    check_restrictions(document["services"], document["secrets"])
    with postgres.Cluster() as cluster:
        demo = Demo(document, arguments.programs, arguments.work)
        demo.ports["postgres", "5432"] = cluster.port
        demo.fill()
        check_grafana(demo.containers["grafana"])
        run(demo, cluster)
    print(json.dumps({"services": len(demo.services), "events": EVENTS + LIVE}))


if __name__ == "__main__":
    main()
