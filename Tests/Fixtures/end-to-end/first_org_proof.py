"""Runs scripts/first-org against the simulator: as a user at a terminal, and with a wrong secret.

    first_org_proof.py --programs DIR --work DIR

At the terminal the variables are asked for, and each "Press Enter" is answered after a change. The
transcripts may hold no secret, token or host of the org, no full ID of it and no value of a record.
"""

import json
import os
import pty
import re
import signal
import subprocess
import sys

import harness

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(harness.HERE)))
TOPIC = "/data/OpportunityChangeEvent"
# More than the ten events asked for, and enough that stages change and amounts are cleared.
TURNS = {"at least ten changes": 12, "clear the amount": 300}


def environment(arguments, simulator, **changes):
    return dict(
        simulator.environment, PUBSUB_ETL=arguments.programs + "/pubsub-etl", FIRST_ORG_QUIET="1s",
        **changes)


def at_terminal(arguments, simulator, directory):
    """Exit code and terminal output."""
    answers = {
        "Consumer secret": simulator.environment["SF_CLIENT_SECRET"],
        "Consumer key": simulator.environment["SF_CLIENT_ID"],
    }
    known = environment(arguments, simulator)
    for name in ("SF_CLIENT_SECRET", "SF_CLIENT_ID"):
        del known[name]
    process, terminal = pty.fork()
    if process == 0:
        os.execve(
            ROOT + "/scripts/first-org", ["first-org", "--directory", directory], known)
    # Nobody is at this terminal: a question that is not answered is a failure.
    signal.signal(signal.SIGALRM, lambda *_: sys.exit("no answer to: " + seen[-300:]))
    signal.alarm(240)
    seen, answered = "", 0
    while True:
        try:
            chunk = os.read(terminal, 1 << 16)
        except OSError:  # the other end is closed
            break
        if not chunk:
            break
        seen += chunk.decode()
        prompt = seen[answered:]
        if not re.search(r"(Press Enter when it is done\. |: )$", prompt):
            continue
        answer = [value for text, value in answers.items() if text in prompt]
        if "Press Enter" in prompt:
            count = [count for text, count in TURNS.items() if text in prompt]
            simulator.publish(count[0], TOPIC)
            answer = [""]
        if answer:
            answered = len(seen)
            os.write(terminal, answer[0].encode() + b"\n")
    signal.alarm(0)
    _, status = os.waitpid(process, 0)
    return os.waitstatus_to_exitcode(status), seen


def values(output):
    """Texts of records, and their IDs."""
    found = set()
    for path in harness.data_files(output):
        text = subprocess.run(["zstdcat", path], check=True, stdout=subprocess.PIPE).stdout
        for line in text.splitlines():
            row = json.loads(line)
            found |= {v for k, v in row.items() if not k.startswith("_") and isinstance(v, str)}
            found |= {row["_record_id"], row["_commit_user"]}
    # Shorter ones may be parts of words; times of changes are times of commits too, which may be told.
    time = re.compile(r"\d{4}-\d\d-\d\dT")
    return {value for value in found if value and len(value) >= 10 and not time.match(value)}


def check_transcript(directory, simulator, secret, *words):
    if os.path.exists(directory + "/raw.txt"):
        sys.exit("what is not redacted was kept")
    transcript = harness.read_text(directory + "/transcript.txt")
    for word in words:
        if word not in transcript:
            sys.exit("the transcript lacks %r:\n%s" % (word, transcript))
    known = simulator.environment
    private = {secret, known["SF_CLIENT_ID"], known["SF_ORG_ID"], known["SF_ORG_ID"][:15]}
    private |= {known["SF_ACCESS_TOKEN"], directory} | values(directory)
    for value in private:
        if value in transcript:
            sys.exit("the transcript tells %r:\n%s" % (value, transcript))
    return transcript


def main():
    arguments = harness.arguments()
    arguments.programs = os.path.abspath(arguments.programs)
    os.makedirs(arguments.work, exist_ok=True)
    with harness.Simulator(
        arguments.programs, arguments.work, "--topics", TOPIC, "--keepalive-interval", "1.2"
    ) as simulator:
        secret = simulator.environment["SF_CLIENT_SECRET"]
        directory = arguments.work + "/accepted"
        code, seen = at_terminal(arguments, simulator, directory)
        if code != 0:
            sys.exit("exit code %d:\n%s" % (code, seen))
        if secret in seen:
            sys.exit("the secret was shown on the terminal")
        transcript = check_transcript(directory, simulator, secret, "PASSED: status", ", 0 failed")
        if "FAILED" in transcript or transcript.count("PASSED") < 9:
            sys.exit("not all steps passed:\n" + transcript)

        directory = arguments.work + "/refused"
        done = subprocess.run(
            [ROOT + "/scripts/first-org", "--simulator", "--directory", directory],
            env=environment(arguments, simulator, SF_CLIENT_SECRET="n0t-the-secret"),
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode != 1:
            sys.exit("a refused login: exit code %d:\n%s" % (done.returncode, done.stdout.decode()))
        check_transcript(directory, simulator, "n0t-the-secret", "FAILED: check", "exit code 77")


if __name__ == "__main__":
    main()
