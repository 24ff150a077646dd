"""The common parts of the proofs: arguments, waits, the simulator, the exporter and its pipeline file, the inventory
of files."""

import argparse
import concurrent.futures
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
# For the module `peer`, which tests start from its own directory.
sys.path.append(os.path.dirname(HERE))
# A shell lets its background jobs ignore SIGINT, and programs inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)


def arguments(**options):
    """Those of a proof: --programs, --work (a directory that is there afterwards), and an option for each keyword.
    Its value is the default, a type of what has none, or a tuple of all choices, the default first. False makes a
    flag, a list an option that may be repeated."""
    parser = argparse.ArgumentParser(
        description=sys.modules["__main__"].__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", required=True)
    parser.add_argument("--work", required=True)
    for name, value in options.items():
        if value is False:
            kind = {"action": "store_true"}
        elif isinstance(value, list):
            kind = {"action": "append", "default": value}
        elif isinstance(value, tuple):
            kind = {"choices": value, "default": value[0]}
        elif callable(value):
            kind = {"type": value}
        else:
            kind = {"default": value, "type": str if value is None else type(value)}
        parser.add_argument("--" + name.replace("_", "-"), **kind)
    parsed = parser.parse_args()
    parsed.programs, parsed.work = os.path.abspath(parsed.programs), os.path.realpath(parsed.work)
    os.makedirs(parsed.work, exist_ok=True)
    return parsed


def eventually(condition, what, seconds=60, process=None, fail=sys.exit, pause=0.02):
    """Waits until a condition is true, which may need a file or a database that is not there yet, and returns what
    it gave. Fails after so many seconds, and when the process ends before; without `what`, returns None then."""
    deadline = time.monotonic() + seconds
    while True:
        # A process that ends may be what makes the condition true.
        ended = process is not None and process.poll() is not None
        asked = time.monotonic()
        try:
            found = condition()
        except (subprocess.CalledProcessError, FileNotFoundError):
            found = None
        if found:
            return found
        if ended and not what:
            return None
        if ended:
            fail("ended with %d before: %s" % (process.returncode, what))
        now = time.monotonic()
        if now > deadline:
            if process is not None:
                process.kill()
            fail("did not come about in %g s: %s" % (seconds, what))
        # A condition that starts programs leaves time to what it waits for.
        time.sleep(max(pause, now - asked))


def wait_for_end(process, what="a run", seconds=120, fail=sys.exit):
    """The exit code of a process that has to end."""
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        fail("%s has not ended after %g s" % (what, seconds))


def send_twice(process, *numbers):
    """Sends two signals, the second when the first is taken: it would be lost while one of its kind is pending."""
    process.send_signal(numbers[0])

    def is_taken():
        status = read_text("/proc/%d/status" % process.pid)
        return not any(int(mask, 16) for mask in re.findall(r"^S(?:ig|hd)Pnd:\s*(\w+)", status, re.M))

    eventually(lambda: process.poll() is not None or is_taken(), "a signal is taken", pause=0)
    process.send_signal(numbers[-1])


def peak_kib(pid):
    """The most memory a process has held so far, 0 when it has ended. `ru_maxrss` would count this
    process too, which every child is for a moment."""
    try:
        found = re.search(r"^VmHWM:\s*(\d+)", read_text("/proc/%d/status" % pid), re.M)
    except (FileNotFoundError, ProcessLookupError):
        found = None
    return int(found[1]) if found else 0


def wait_with_peak(process, seconds, fail=sys.exit):
    """The exit code, the use of resources and the most memory in KiB of a process that has to end."""
    peak = 0

    def is_over():
        nonlocal peak
        peak = max(peak, peak_kib(process.pid))
        found, status, usage = os.wait4(process.pid, os.WNOHANG)
        if not found:
            return None
        process.returncode = os.waitstatus_to_exitcode(status)
        return process.returncode, usage, peak

    def give_up(message):
        process.kill()
        process.wait()
        fail(message)

    return eventually(is_over, "the end of a run", seconds, fail=give_up, pause=0.01)


def ends_within(process, seconds):
    """Whether a process ends before so many seconds have passed: for proofs that need a random moment of a run."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def read_text(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def read_json(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def read_lines(path):
    """Documents of a file that has one in each line."""
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def read_environment(path):
    """The variables that a file for shells exports, and those of this process."""
    return {**os.environ, **dict(re.findall(r"^export (\w+)='(.*)'$", read_text(path), re.M))}


class ControlSecrets(urllib.request.BaseHandler):
    """Requests to the control interface of a simulator carry its secret."""

    secrets = {}  # by the beginning of the URL

    def http_request(self, request):
        # Other threads start simulators meanwhile.
        for control, secret in list(self.secrets.items()):
            if request.full_url.startswith(control):
                request.add_header("X-Simulator-Secret", secret)
        return request


urllib.request.install_opener(urllib.request.build_opener(ControlSecrets))


def start_service(script, *options):
    """A service in Python, as a process that says when it is ready."""
    process = subprocess.Popen(
        [sys.executable, "%s/%s" % (HERE, script), *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    if process.stdout.readline() != b"ready\n":
        sys.exit("%s did not become ready" % script)
    return process


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
        self.environment = read_environment(path)
        self.control = self.environment["SIMULATOR_CONTROL_URL"] + "/control/"
        self.control_secret = self.environment["SIMULATOR_CONTROL_SECRET"]
        ControlSecrets.secrets[self.control] = self.control_secret

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()

    def post(self, request, document=None, method="POST"):
        body = None if document is None else json.dumps(document).encode()
        urllib.request.urlopen(urllib.request.Request(self.control + request, body, method=method)).read()

    def get(self, request):
        with urllib.request.urlopen(self.control + request) as answer:
            return json.load(answer)

    def publish(self, count, *topics):
        """So many events of each topic, or of all topics together if none is named."""
        for topic in topics:
            self.post("publish?count=%d&topic=%s" % (count, topic))
        if not topics:
            self.post("publish?count=%d" % count)

    def advance(self, time):
        """Moves the org's clock: for whatever waits until something is old, without a wait."""
        self.post("clock?advance=" + time)

    def fault(self, **fault):
        self.post("faults", fault)

    def forget_faults(self):
        self.post("faults", method="DELETE")

    def published(self, topics=None):
        """The events of the topics, or of all, as the truth has them."""
        return [line for line in read_lines(self.truth) if topics is None or line["topic"] in topics]

    def write_state(self, path):
        """Writes what the org holds into a file."""
        name = os.path.basename(path).encode()
        with urllib.request.urlopen(
            urllib.request.Request(self.control + "state", data=name, method="POST")) as answer:
            shutil.copyfile(json.load(answer)["path"], path)


class Exporter:
    """The program with one pipeline file. What it says goes into a file, so that no pipe can be full."""

    def __init__(self, program, path, environment, errors=None):
        self.program, self.path, self.environment = program, path, environment
        self.errors = errors or path + ".stderr"

    def command(self, *words):
        """The path of the pipeline file stands after the one or two words of the command."""
        place = 2 if words[0] in ("checkpoint", "dead-letters") else 1
        return [self.program, *words[:place], self.path, *words[place:]]

    def spawn(self, *words, **options):
        """A process that runs. Give `stdout` to read what it prints."""
        options = {"env": self.environment, "stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, **options}
        with open(self.errors, "wb") as errors:
            return subprocess.Popen(self.command(*words), stderr=errors, **options)

    def call(self, *words, codes=(0,), timeout=300, **options):
        """What a command printed on both streams; it has to end with one of the codes."""
        options = {"env": self.environment, "stdin": subprocess.DEVNULL, **options}
        done = subprocess.run(self.command(*words), capture_output=True, timeout=timeout, **options)
        # Every character as it was.
        done.stdout, done.stderr = (
            text.decode("utf-8", "surrogateescape") for text in (done.stdout, done.stderr))
        if codes is not None and done.returncode not in codes:
            self.fail(words, "ended with", done.returncode, done.stdout[-3000:], done.stderr[-4000:])
        return done

    def end(self, process, codes=(0,), seconds=120):
        """Waits for a spawned process, which has to end with one of the codes; returns how long that took."""
        began = time.monotonic()
        code = wait_for_end(process, seconds=seconds, fail=self.fail)
        if code not in codes:
            self.fail("a run ended with", code, "and not with", *codes)
        return round(time.monotonic() - began, 1)

    def wait(self, process, condition, what, seconds=90):
        return eventually(condition, what, seconds, process, self.fail)

    def said(self):
        """What the latest spawned process has said so far."""
        return read_text(self.errors)

    def says(self, *words):
        for word in words:
            if word not in self.said():
                self.fail("does not say", repr(word))

    def fail(self, *words):
        said = "\n" + self.said()[-3000:] if os.path.exists(self.errors) else ""
        sys.exit("%s: %s%s" % (self.path, " ".join(str(word) for word in words), said))


# `run.threads` of pipelines, for proofs with both.
THREADS = int(os.environ.get("PUBSUB_TEST_THREADS", "2"))


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
        "run": {"until": "caught_up", "quiet": "1s", "threads": THREADS},
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


def prove_side_by_side(count, functions):
    """Runs proofs, so many at a time; prints a JSON line for each, and ends with 1 if one of them has failed."""
    failed = False
    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        for future in concurrent.futures.as_completed([pool.submit(function) for function in functions]):
            try:
                print(json.dumps(future.result()), flush=True)
            except SystemExit as problem:
                print(problem, file=sys.stderr, flush=True)
                failed = True
    sys.exit(1 if failed else 0)


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
