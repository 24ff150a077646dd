"""The org's allowance of delivered events: the reserve for others is kept.

    allowance_proof.py --programs DIR --work DIR [--seed S]

The org delivers 5,000 events a day and has 8,000 waiting.
- A run with a reserve stops in time (75) with everything delivered exported, and the reserve is there.
- The next run does not even subscribe (75). A reserve in events does the same.
- Without a reserve a run uses what is left; then the service refuses (75), and nothing is lost.
- An org that does not answer keeps no run beyond its time limit (75).
- An org that does not report its allowance stops no run, except one with a reserve (77).
When the allowance is renewed, another run completes the files.

Prints one JSON line; exits 1 on any difference.
"""

import json
import subprocess
import sys

import harness

TOPIC = "/data/OpportunityChangeEvent"
LIMIT = 5000


class Proof:
    def __init__(self, programs, work, simulator):
        self.programs, self.work, self.simulator = programs, work, simulator
        self.path, self.report = work + "/day.json", work + "/report.json"
        self.output = work + "/out/day"

    def run(self, code, reason, reserve=None, *options):
        document = harness.pipeline("day", [TOPIC])
        if reserve is not None:
            document["allowance"] = {"reserve": reserve}
        harness.write_json(self.path, document)
        before = self.simulator.get("delivered")["total"]
        command = [self.programs + "/pubsub-etl", "run", self.path, "--report", self.report]
        ended = subprocess.run(
            command + list(options), env=self.simulator.environment, stderr=subprocess.PIPE
        )
        report = harness.read_json(self.report)
        found = (ended.returncode, report["exit_code"], report["reason"])
        if found != (code, code, reason):
            sys.exit("expected %s, %s: %s %s" % (code, reason, found, ended.stderr.decode()))
        delivered = sum(topic["delivered"] for topic in report["topics"])
        exported = sum(topic["exported"] for topic in report["topics"])
        counted = self.simulator.get("delivered")["total"] - before
        if not delivered == exported == counted:
            sys.exit("delivered %d, exported %d, sent %d" % (delivered, exported, counted))
        return report, counted, ended.stderr.decode()


def expect(condition, message):
    if not condition:
        sys.exit(message)


def main():
    arguments = harness.arguments(seed="1")
    work = arguments.work
    state = ("--state-dir", work + "/org", "--events", "8000", "--topics", TOPIC, "--seed",
             arguments.seed, "--existing", "1")
    with harness.Simulator(arguments.programs, work, *state, "--delivery-limit", str(LIMIT)) as org:
        proof = Proof(arguments.programs, work, org)
        report, first, errors = proof.run(75, "allowance", "40%")
        expect(report["allowance"] == {"max": LIMIT, "remaining": LIMIT, "used": first}, report)
        expect(2800 <= first <= LIMIT * 6 // 10, "%d of %d were used" % (first, LIMIT))
        expect("allowance.reserve" in errors, errors)
        _, none, errors = proof.run(75, "allowance", 2500)
        expect(none == 0 and "%s of 5,000" % format(LIMIT - first, ",") in errors, errors)
        _, second, _ = proof.run(75, "subscription_limit_exceeded")
        expect(first + second == LIMIT, "%d and %d" % (first, second))
        check = subprocess.run(
            [arguments.programs + "/pubsub-etl", "check", "--connect", proof.path],
            env=org.environment, stdout=subprocess.PIPE,
        )
        line = b"allowance: attention: none of 5,000 delivered events left today"
        expect(line in check.stdout, check.stdout)
    # The next day.
    with harness.Simulator(
        arguments.programs, work, *state, "--fault",
        '{"method": "Limits", "action": "status", "status": 403, "error_code": '
        '"FUNCTIONALITY_NOT_ENABLED", "message": "no", "times": 9}',
    ) as org:
        proof.simulator = org
        _, none, errors = proof.run(77, "refused", "1%")
        expect(none == 0 and "View Setup and Configuration" in errors, errors)
        report, third, _ = proof.run(0, "caught_up")
        expect(report["allowance"] is None, report["allowance"])
        compared = harness.compare(org, proof.output, [TOPIC])
    slow = '{"method": "Limits", "action": "drip", "times": 9}'
    with harness.Simulator(arguments.programs, work, *state, "--fault", slow) as org:
        proof.simulator = org
        _, none, _ = proof.run(75, "max_duration", "1%", "--max-duration", "2s")
        expect(none == 0, none)
    print(json.dumps({"used": [first, second, third], **compared}))


if __name__ == "__main__":
    main()
