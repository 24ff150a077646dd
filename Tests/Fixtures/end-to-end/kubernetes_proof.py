"""The manifests in deploy/kubernetes.

    kubernetes_proof.py --programs DIR --work DIR

They fit the schemas of Kubernetes without a field that these do not know, and what they refer to is there. The
pipeline file of the ConfigMap is accepted; with the addresses of a simulator, the command of the CronJob exports
what is new, and that of the Deployment follows, answers the probes, and ends cleanly. Prints one JSON line; exits
1 on any difference.
"""

import glob
import json
import os
import signal
import sys
import urllib.error
import urllib.request

import kubernetes_validate
import yaml

import harness
import postgres

MANIFESTS = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(harness.HERE))), "deploy/kubernetes")
TOPIC = "/data/OpportunityChangeEvent"
EVENTS = 40


def require(condition, *what):
    if not condition:
        sys.exit("not so: %s" % (what,))


def manifests():
    """Documents by kind; all have been compared with the schemas."""
    found = {}
    for path in glob.glob(MANIFESTS + "/*.yaml"):
        for document in yaml.safe_load_all(harness.read_text(path)):
            # The schemas do not know what an operator adds.
            if document["apiVersion"].startswith("monitoring.coreos.com/"):
                require(document["spec"].keys() == {"jobLabel", "selector", "podMetricsEndpoints"}, path)
            else:
                kubernetes_validate.validate(document, kubernetes_validate.latest_version(), strict=True)
            require(document["kind"] not in found, path, document["kind"])
            found[document["kind"]] = document
    return found


def refers_to_what_is_there(pod, found):
    """The container of a pod, whose volumes exist and are used."""
    [container] = pod["containers"]
    names = {mount["name"] for mount in container["volumeMounts"]}
    require(names == {volume["name"] for volume in pod["volumes"]}, names)
    for volume in pod["volumes"]:
        for member, kind, key in [
            ("configMap", "ConfigMap", "name"), ("secret", "Secret", "secretName"),
            ("persistentVolumeClaim", "PersistentVolumeClaim", "claimName"),
        ]:
            if member in volume:
                require(volume[member][key] == found[kind]["metadata"]["name"], volume)
    ports = {port["name"] for port in container.get("ports", [])}
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        if probe in container:
            require(container[probe]["httpGet"]["port"] in ports, container[probe])
    return container


def is_scraped(deployment, monitor):
    """The monitor finds the pods and their port, and gives the job the name that the alert looks for."""
    pod = deployment["spec"]["template"]
    labels, wanted = pod["metadata"]["labels"], monitor["spec"]["selector"]["matchLabels"]
    require(wanted.items() <= labels.items(), wanted, labels)
    [endpoint], [port] = monitor["spec"]["podMetricsEndpoints"], pod["spec"]["containers"][0]["ports"]
    require(endpoint["port"] == port["name"], endpoint, port)
    rules = harness.read_text(os.path.join(MANIFESTS, "../prometheus/pubsub-etl.rules.yml"))
    require('up{job="%s"}' % labels[monitor["spec"]["jobLabel"]] in rules, monitor)


class Host:
    """Directories in place of the volumes, and a simulator in place of Salesforce."""

    def __init__(self, simulator, program, work, found):
        self.work, self.port = work, postgres.free_port()
        self.environment = {"PATH": os.environ["PATH"]}
        environment = simulator.environment
        self.values = {
            "https://api.pubsub.salesforce.com:7443": environment["PUBSUB_ENDPOINT"],
            "https://YOURDOMAIN.my.salesforce.com": environment["SF_LOGIN_URL"],
            "/secrets/": work + "/secrets/", "0.0.0.0:9464": "127.0.0.1:%d" % self.port,
        }
        for name, files in (("pipelines", found["ConfigMap"]["data"]), ("secrets", found["Secret"]["stringData"])):
            os.mkdir("%s/%s" % (work, name))
            for file, text in files.items():
                if name == "secrets":
                    require(text == "REPLACE", file)
                    text = environment["SF_" + file.upper()]
                path = "%s/%s/%s" % (work, name, file)
                with open(path, "w", encoding="utf-8") as output:
                    output.write(self.replaced(text))
                os.chmod(path, 0o440)
        os.mkdir(work + "/data")
        # The certificate of a simulator is its own.
        self.options = ["--set", "source.org.tls.ca_file=" + environment.get("PUBSUB_CA_FILE", "")]
        self.program = program

    def replaced(self, text):
        for value, replacement in self.values.items():
            text = text.replace(value, replacement)
        return text

    def exporter(self, container):
        """The program as the container starts it."""
        command, path, *words = [
            self.work + word if word.startswith(("/pipelines/", "/data")) else word for word in container["args"]]
        return harness.Exporter(self.program, path, self.environment, self.work + "/stderr"), [command, *words]

    def status(self, path):
        try:
            with urllib.request.urlopen("http://127.0.0.1:%d%s" % (self.port, path), timeout=60) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            return None

    def exported(self):
        [manifest] = glob.glob(self.work + "/data/**/_manifest.ndjson", recursive=True)
        return sum(line["events"] for line in harness.read_lines(manifest))


def main():
    arguments = harness.arguments()
    found = manifests()
    job = found["CronJob"]["spec"]
    pods = [job["jobTemplate"]["spec"]["template"]["spec"], found["Deployment"]["spec"]["template"]["spec"]]
    scheduled, following = [refers_to_what_is_there(pod, found) for pod in pods]
    is_scraped(found["Deployment"], found["PodMonitor"])
    with harness.Simulator(
        arguments.programs, arguments.work, "--events", str(EVENTS), "--topics", TOPIC, "--keepalive-interval", "1",
    ) as simulator:
        host = Host(simulator, arguments.programs + "/pubsub-etl", arguments.work, found)
        exporter, words = host.exporter(scheduled)
        exporter.call("check", *host.options)
        exporter.call(*words, *host.options)
        require(host.exported() == EVENTS, "the first run exports everything", host.exported())

        exporter, words = host.exporter(following)
        process = exporter.spawn(*words, *host.options)
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            path = following[probe]["httpGet"]["path"]
            exporter.wait(process, lambda path=path: host.status(path) == 200, probe)
        simulator.publish(5, TOPIC)
        exporter.wait(process, lambda: '"committed"' in exporter.said(), "a commit")
        process.send_signal(signal.SIGTERM)
        exporter.end(process)
        require(host.exported() == EVENTS + 5, "the follower exports the rest", host.exported())
    print(json.dumps({"manifests": len(found), "exported": EVENTS + 5}))


if __name__ == "__main__":
    main()
