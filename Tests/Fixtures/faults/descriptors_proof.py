"""Commands under every low limit of open files.

    descriptors_proof.py --programs DIR --work DIR [--limits N...]

The loader of shared libraries needs 4. Under each limit from 4 on, `run`, `check --connect` and `publish` either succeed,
or end with 75 and name the limit; none is ended by a signal, and none hangs. A last run without a limit
completes the files, which equal the truth. Prints one JSON line: how many runs ended with which exit code.
"""

import collections
import json
import os
import resource
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE + "/../end-to-end")
import harness  # noqa: E402

TOPICS = ["/data/OpportunityChangeEvent"]
PUBLISHED = "/event/Order_Event__e"


def main():
    arguments = harness.arguments(limits="4,5,6,7,16,34,35,36,64", verbose=False)
    work, limits = arguments.work, [int(limit) for limit in arguments.limits.split(",")]
    program = arguments.programs + "/pubsub-etl"
    outcomes, failures = collections.defaultdict(collections.Counter), []
    with harness.Simulator(
        arguments.programs, work, "--events", "200", "--topics", ",".join(TOPICS + [PUBLISHED])
    ) as simulator:
        file, org = work + "/opps.json", work + "/org.json"
        document = harness.pipeline("opps", TOPICS)
        document["retry"] = {"give_up_after": "1s", "min_delay": "100ms"}
        harness.write_json(file, document)
        harness.write_json(org, document["source"]["org"])
        commands = {
            "run": ["run", file],
            "check": ["check", "--connect", file],
            "publish": ["publish", "--org", org, "--topic", PUBLISHED, "--give-up-after", "1s"],
            "publish --stream": ["publish", "--org", org, "--topic", PUBLISHED, "--stream", "--give-up-after", "1s"],
        }

        def run(name, limit):
            def limited():
                resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))

            done = subprocess.run(
                [program, *commands[name]], env=simulator.environment, input='{"City__c": "x"}\n' * 30, text=True,
                capture_output=True, timeout=120, check=False, preexec_fn=limited if limit else None)
            outcomes[name][done.returncode] += 1
            if arguments.verbose:
                print(name, limit, done.returncode, done.stderr.strip()[-300:], file=sys.stderr)
            if done.returncode not in (0, 75) or done.returncode and "ulimit -n" not in done.stderr:
                failures.append(
                    "%s with %s descriptors: exit code %d: %s" % (name, limit, done.returncode, done.stderr[-1000:]))
            if name.startswith("publish") and done.returncode == 0 and done.stdout.count("published") != 30:
                failures.append("%s with %s descriptors: %s" % (name, limit, done.stdout[-1000:]))

        for limit in limits:
            for name in commands:
                run(name, limit)
        run("run", None)
        for name, found in outcomes.items():
            if set(found) == {0} or 0 not in found:
                failures.append("%s: no limit is low enough, or none high enough: %s" % (name, dict(found)))
        if failures:
            sys.exit("\n".join(failures))
        harness.compare(simulator, work + "/out/opps", TOPICS)
    print(json.dumps(outcomes))


if __name__ == "__main__":
    main()
