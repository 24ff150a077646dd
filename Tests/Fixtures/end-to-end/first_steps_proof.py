"""What a new user does, with the programs as they are installed: topics, fields, init, check, doctor, the line
of the crontab, a run without a pipeline file.

    first_steps_proof.py --programs DIR --work DIR

`init` is called with options, at a terminal, and with neither; its files have to work in an environment that
has nothing but what they bring. No output may hold the secret of the login. Prints one JSON line; exits 1 at
the first difference.
"""

import json
import os
import pty
import signal
import socket
import stat
import subprocess
import sys

import harness

TOPIC = "/data/OpportunityChangeEvent"
EVENTS = 40


def require(condition, what):
    if not condition:
        sys.exit("not so: %s" % (what,))


class Caller:
    def __init__(self, program, directory, environment):
        self.program, self.directory, self.environment = program, directory, environment
        self.secret = environment["SF_CLIENT_SECRET"]

    def __call__(self, *words, code=0, environment=None, command=None):
        """Standard output and standard error of a command, or of a line for a shell."""
        done = subprocess.run(
            ["/bin/sh", "-c", command] if command else [self.program, *words], cwd=self.directory,
            env=self.environment if environment is None else environment, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, check=False)
        if done.returncode != code:
            sys.exit("%s: exit code %d, not %d: %s" % (command or words, done.returncode, code, done.stderr))
        require(self.secret not in done.stdout + done.stderr, "%s prints no secret" % (command or words,))
        return done.stdout, done.stderr


def at_terminal(caller, *words, answers):
    """Exit code and output of a command whose questions are answered in this order."""
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(caller.directory)
        os.execve(caller.program, ["pubsub-etl", *words], caller.environment)
    # A question that is not answered would wait for ever.
    signal.signal(signal.SIGALRM, lambda *_: sys.exit("no answer to: " + seen[-300:]))
    signal.alarm(120)
    seen, answered, answers = "", 0, list(answers)
    while True:
        try:
            chunk = os.read(terminal, 1 << 16)
        except OSError:  # the other end is closed
            break
        if not chunk:
            break
        seen += chunk.decode()
        if seen[answered:].endswith(": ") and answers:
            answered = len(seen)
            os.write(terminal, answers.pop(0).encode() + b"\n")
    signal.alarm(0)
    require(not answers, "every answer is asked for: %s" % seen)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), seen


def looks(call):
    """Topics and fields, which cost no delivery."""
    listed = json.loads(call("topics", "--json")[0])
    names = [topic["topic"] for topic in listed["topics"]]
    require(TOPIC in names and "/data/ChangeEvents" in names and "/event/Order_Event__e" in names, names)
    require("/data/Sales__chn" not in names and listed["remarks"], listed)
    text, errors = call("topics")
    require([line.split()[0] for line in text.splitlines()] == names, text)
    require("View Setup and Configuration" in errors, errors)
    fields = json.loads(call("fields", TOPIC, "--json")[0])["fields"]
    amount = [field for field in fields if field["name"] == "Amount"]
    require(amount and amount[0]["type"] == "double" and amount[0]["readable"] is True, fields)
    require([field["name"] for field in fields if field["blind"]] == ["Weighted_Amount__c"], fields)
    text, _ = call("fields", TOPIC)
    require([line.split()[0] for line in text.splitlines()][1:] == [field["name"] for field in fields], text)
    _, errors = call("topics", code=78, environment={"PATH": os.environ["PATH"]})
    require("SF_LOGIN_URL is not set" in errors and "--org" in errors, errors)
    call("fields", "/data/LeadChangeEvent", code=77)
    call("fields", "/data/ChangeEvents", code=64)
    return len(names)


def inits(call, directory):
    _, errors = call("init", code=64)
    require("NAME, --topic, --sink: not given" in errors, errors)
    for name in ["../deals", ".deals", "a b", "x/y", "$(id)"]:
        call("init", name, "--topic", TOPIC, "--sink", "files", code=64)
    require(os.listdir(directory) == [], "nothing is written before all answers are there")
    words = ["init", "deals", "--topic", TOPIC, "--sink", "files"]
    text, errors = call(*words)
    require(errors == "", errors)
    require(sorted(os.listdir(directory)) == ["deals.env", "deals.json"], os.listdir(directory))
    require(stat.S_IMODE(os.stat(directory + "/deals.env").st_mode) == 0o600, "only the owner reads the variables")
    before = harness.read_text(directory + "/deals.json")
    _, errors = call(*words, code=74)
    require("is there already" in errors and harness.read_text(directory + "/deals.json") == before, errors)

    # In an environment that has nothing else, as cron's.
    bare = {"PATH": "/usr/bin:/bin", "HOME": directory}
    lines = text.splitlines()
    load = lines[lines.index("Next:") + 1].strip()
    _, errors = call(
        command="%s; exec %s check deals.json --connect" % (load, call.program), environment=bare)
    require(errors == "", errors)
    text, errors = call(
        command="%s; exec %s doctor deals.json" % (load, call.program), environment=bare)
    require(text.splitlines()[-1] == "a run can begin" and "failed" not in text, text)
    text, _ = call(
        command="%s; SF_CLIENT_SECRET=wrong; exec %s doctor deals.json --json" % (load, call.program),
        environment=bare, code=77)
    failed = [finding for finding in json.loads(text)["findings"] if finding["state"] == "failed"]
    require([finding["check"] for finding in failed] == ["login"], text)
    entry = lines[-1].strip()
    require(entry.startswith("*/10 * * * * "), entry)
    call(command=entry.split(" ", 5)[5].replace("\\%", "%"), environment=bare)
    return count(directory + "/out/deals")


def asks(call, directory):
    code, seen = at_terminal(call, "init", "shop", answers=["Opportunity", TOPIC, "kafka", "postgres"])
    require(code == 0, seen)
    require("expected a topic" in seen and "expected files or postgres" in seen, seen)
    document = harness.read_json(directory + "/shop.json")
    require(document["sinks"] == [{"type": "postgres", "url": "${DATABASE_URL}"}], document)
    require("DATABASE_URL=\n" in harness.read_text(directory + "/shop.env"), "what is not set is left empty")
    # The end of the input is no answer.
    code, seen = at_terminal(call, "init", answers=["\x04"])
    require(code == 64, seen)


def interrupts(call, directory):
    """Ctrl-C while a command waits for a login server that does not answer, or for an answer on the terminal."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(120)
        environment = dict(call.environment, SF_LOGIN_URL="http://127.0.0.1:%d" % server.getsockname()[1])
        for words in (("topics",), ("fields", TOPIC), ("doctor", "deals.json")):
            process = subprocess.Popen(
                [call.program, *words], cwd=directory, env=environment, stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            with server.accept()[0]:
                process.send_signal(signal.SIGINT)
                require(process.wait(120) == 130, "%s ends with 130 after SIGINT" % words[0])
    code, seen = at_terminal(call, "init", answers=["\x03"])
    require(code == 130, seen)


def count(directory):
    """Lines of the finished files."""
    manifest = harness.read_lines(directory + "/_manifest.ndjson")
    return sum(line["events"] for line in manifest)


def runs(call, directory):
    words = ["run", "--topic", TOPIC, "--to", "direct"]
    text, _ = call(*words, "--print")
    require(not os.path.exists(directory + "/direct"), "--print runs nothing")
    with open(directory + "/direct.json", "w", encoding="utf-8") as file:
        file.write(text)
    call(*words, "--set", "run.quiet=1s")
    call(*words, "--set", "run.quiet=1s")
    require(os.path.isdir(directory + "/direct.state"), "the state is beside the output")
    status = json.loads(call("status", "direct.json", "--json")[0])
    require(status["exit_code"] == 0, status)
    call("check", "direct.json", "--connect")
    return count(directory + "/direct")


def main():
    arguments = harness.arguments()
    directory = arguments.work + "/user"
    os.makedirs(directory)
    with harness.Simulator(
        arguments.programs, arguments.work, "--events", str(EVENTS), "--existing", "20",
        "--keepalive-interval", "2", "--topics", TOPIC, "/data/ChangeEvents", "/data/Sales__chn",
        "/event/Order_Event__e",
    ) as simulator:
        environment = dict(simulator.environment, PATH=os.environ["PATH"], HOME=directory)
        call = Caller(arguments.programs + "/pubsub-etl", directory, environment)
        result = {"topics": looks(call)}
        require(simulator.get("delivered")["total"] == 0, "looking costs no deliveries")
        result["exported"] = inits(call, directory)
        asks(call, directory)
        interrupts(call, directory)
        result["direct"] = runs(call, directory)
        require(0 < result["direct"] == result["exported"], result)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
