"""The common parts of the proofs: the simulator, the pipeline file, the inventory of files."""

import concurrent.futures
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
# A shell lets its background jobs ignore SIGINT, and programs inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)


class ControlSecrets(urllib.request.BaseHandler):
    """Requests to the control interface of a simulator carry its secret."""

    secrets = {}  # by the beginning of the URL

    def http_request(self, request):
        for control, secret in self.secrets.items():
            if request.full_url.startswith(control):
                request.add_header("X-Simulator-Secret", secret)
        return request


urllib.request.install_opener(urllib.request.build_opener(ControlSecrets))


class Simulator:
    """A simulator that is ready, and the environment that pipelines need. A context manager."""

    schemas = None  # they come from the service

    def __init__(self, programs, work, *options):
        self.truth = work + "/truth.ndjson"
        # Waits are skipped only for the exporter of rehearsals.
        self.exporter = programs + ("/pubsub-etl-rehearsal" if "--clock" in options else "/pubsub-etl")
        path = work + "/env"
        command = [programs + "/pubsub-simulator", "--truth", self.truth, "--env", path]
        # Proofs need values of every shape, unless the options say otherwise.
        if "--data" not in options:
            command += ["--data", "random"]
        # The largest and smallest numbers too, unless the options say otherwise.
        if "--extremes" not in options:
            command += ["--extremes", "0.01"]
        self.process = subprocess.Popen(command + list(options), stdout=subprocess.PIPE)
        if not self.process.stdout.readline().startswith(b"ready"):
            sys.exit("the simulator did not become ready")
        with open(path, encoding="utf-8") as file:
            self.environment = dict(os.environ)
            self.environment.update(re.findall(r"^export (\w+)='(.*)'$", file.read(), re.M))
        self.control = self.environment["SIMULATOR_CONTROL_URL"] + "/control/"
        self.control_secret = self.environment["SIMULATOR_CONTROL_SECRET"]
        ControlSecrets.secrets[self.control] = self.control_secret

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()

    def post(self, request, document=None):
        body = None if document is None else json.dumps(document).encode()
        urllib.request.urlopen(urllib.request.Request(self.control + request, body, method="POST")).read()

    def get(self, request):
        with urllib.request.urlopen(self.control + request) as answer:
            return json.load(answer)

    def write_state(self, path):
        """Writes what the org holds into a file."""
        name = os.path.basename(path).encode()
        with urllib.request.urlopen(
            urllib.request.Request(self.control + "state", data=name, method="POST")) as answer:
            shutil.copyfile(json.load(answer)["path"], path)


def pipeline(name, topics):
    return {
        "version": 1,
        "name": name,
        "source": {
            "type": "salesforce",
            "topic": topics,
            "start": "earliest",
            # Orgs without records of before answer no REST.
            "snapshot": {"mode": "never"},
            "org": {
                "endpoint": "${PUBSUB_ENDPOINT}",
                "tls": {"ca_file": "${PUBSUB_CA_FILE:-}"},
                "auth": {
                    "type": "client_credentials",
                    "login_url": "${SF_LOGIN_URL}",
                    "client_id": "${SF_CLIENT_ID}",
                    "client_secret": "${SF_CLIENT_SECRET}",
                },
            },
        },
        "stages": [{"type": "flatten", "naming": "path"}],
        "sinks": [{"type": "files", "directory": "out/" + name}],
        "checkpoint": {"type": "file", "directory": "state"},
        "run": {"until": "caught_up", "quiet": "1s"},
        "repair": {"mode": "off"},
    }


def write_json(path, document):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(document, file, indent=1)


def side_by_side(count, functions):
    """Results of functions in their order, called so many at a time; raises what the first of them raised."""
    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        calls = [pool.submit(function) for function in functions]
        try:
            return [call.result() for call in calls]
        finally:
            pool.shutdown(cancel_futures=True)


def data_files(output):
    """Paths of the files under their final names."""
    return [
        os.path.join(directory, name)
        for directory, _, names in os.walk(output)
        for name in names
        if name.endswith(".ndjson.zst") and not name.startswith(".")
    ]


class Inventory:
    """Remembers every file under its final name and the manifest, and exits when one of the files
    was changed, replaced or removed, or the manifest anything but extended by whole lines."""

    def __init__(self, output):
        self.output = output
        self.files = {}
        self.manifest = b""

    def check(self, moment):
        found = {path: self.describe(path) for path in data_files(self.output)}
        for path, known in self.files.items():
            if path not in found:
                sys.exit("%s: %s was removed" % (moment, path))
            if found[path] != known:
                sys.exit("%s: %s was changed: %s, now %s" % (moment, path, known, found[path]))
        self.files = found
        path = self.output + "/_manifest.ndjson"
        if os.path.exists(path):
            with open(path, "rb") as file:
                manifest = file.read()
            # What a kill has torn is a last line without its end; the next run mends it.
            whole = manifest[: manifest.rfind(b"\n") + 1]
            if not whole.startswith(self.manifest):
                sys.exit(moment + ": lines of the manifest were changed or removed")
            self.manifest = whole

    @staticmethod
    def describe(path):
        with open(path, "rb") as file:
            status = os.fstat(file.fileno())
            digest = hashlib.sha256(file.read()).hexdigest()
        return digest, status.st_mtime_ns, status.st_ino, status.st_size

    def check_manifest(self):
        """After a whole run: a line for each file, with its size and digest."""
        listed = {}
        for text in self.manifest.splitlines():
            line = json.loads(text)
            if line["name"] in listed:
                sys.exit("%s is listed twice in the manifest" % line["name"])
            listed[line["name"]] = (line["sha256"], line["bytes"])
        found = {
            os.path.relpath(path, self.output): (known[0], known[3])
            for path, known in self.files.items()
        }
        if listed != found:
            wrong = sorted(set(listed.items()) ^ set(found.items()))[:3]
            sys.exit("the manifest and the files differ: %s" % wrong)


def compare_tables(simulator, url, schema, topics):
    """Ends with an error unless history and current tables equal the truth; returns the counts."""
    command = [sys.executable, HERE + "/compare_postgres.py", "--truth", simulator.truth]
    command += ["--url", url, "--schema", schema, "--mode", "both", "--delete", "mark"]
    for topic in topics:
        command += ["--topic", topic]
    compared = subprocess.run(command, env=simulator.environment, stdout=subprocess.PIPE)
    if compared.returncode:
        sys.exit("%s differs from the truth: %s" % (url, compared.stdout.decode()))
    return json.loads(compared.stdout)


def compare(simulator, output, topics, *options):
    """Ends with an error unless the files equal the truth; returns the counts."""
    files = data_files(output)
    for start in range(0, len(files), 1000):
        subprocess.run(["zstd", "-tq"] + files[start : start + 1000], check=True)
    command = [sys.executable, HERE + "/compare_truth.py"]
    command += ["--truth", simulator.truth, "--output", output]
    for topic in topics:
        command += ["--topic", topic]
    if simulator.schemas:
        command += ["--schemas", simulator.schemas]
    command += options
    compared = subprocess.run(command, env=simulator.environment, stdout=subprocess.PIPE)
    if compared.returncode:
        sys.exit("%s differs from the truth: %s" % (output, compared.stdout.decode()))
    return json.loads(compared.stdout)
