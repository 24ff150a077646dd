"""Copies the simulated sales team with pipelines/sales.json, and asks scripts/sales-report about it.

    sales_proof.py --programs DIR --work DIR [--seed S]

The end of scripts/quickstart, with its numbers checked: the copy equals the org (`verify --full`), the pipeline by
stage is that of the org (the simulator's state file), and the second run brought what was published.
Waits are skipped (`pubsub-simulator --clock`). Prints one JSON line; exits 1 at the first thing that is wrong.
"""

import collections
import json
import os
import subprocess
import sys

import harness

ROOT = os.path.abspath(harness.HERE + "/../../..")
DEALS = "/data/OpportunityChangeEvent"
TOPICS = ["/data/AccountChangeEvent", "/data/ContactChangeEvent", DEALS, "/data/UserChangeEvent"]
EVENTS, LATER = 200, 20


def run(command, environment):
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit("%s: exit code %d\n%s%s" % (command, done.returncode, done.stdout, done.stderr))
    return done.stdout


def check_report(text, deals, user_names):
    """The numbers of the report, against those of the org."""
    counts, sums = collections.Counter(), collections.Counter()
    for fields in deals:
        counts[fields["StageName"]] += 1
        sums[fields["StageName"]] += fields["Amount"]
    stages, changes, brought = [part.split("\n\n", 1)[1] for part in text.split("\n-- ")[1:]]
    for stage in counts:
        wanted = "%-24s %6d %14s" % (stage, counts[stage], "{:,.0f}".format(sums[stage]))
        if wanted not in stages.splitlines():
            sys.exit("the report lacks %r:\n%s" % (wanted, text))
    heads = [line for line in changes.splitlines() if line and not line.startswith(" ")]
    if len(heads) != 5 or not all(line.rsplit(", by ", 1)[1] in user_names for line in heads):
        sys.exit("these are not five changes by users:\n" + changes)
    total, *parts = [int(row.split()[0]) for row in brought.splitlines() if row]
    if total != LATER or total != sum(parts):
        sys.exit("the second run did not bring %d changes:\n%s" % (LATER, brought))
    return changes.count(" -> ")


def main():
    arguments = harness.arguments(seed=1)
    work = arguments.work
    pipeline = ROOT + "/pipelines/sales.json"
    output = work + "/out/sales"
    with harness.Simulator(
        arguments.programs, work, "--data", "sales", "--clock", "--seed", str(arguments.seed), "--events", str(EVENTS),
        "--topics", ",".join(TOPICS),
    ) as simulator:
        export = [simulator.exporter, "run", pipeline, "--root", work + "/pipelines"]
        run(export, simulator.environment)
        with open(work + "/known", "w", encoding="utf-8") as file:
            file.write("\n".join(harness.data_files(output)))
        for _ in range(4):
            simulator.post("clock?advance=5h")
            simulator.publish(LATER // 4, DEALS)
        run(export, simulator.environment)
        run([simulator.exporter, "verify", pipeline, "--full", "--root", work + "/pipelines"], simulator.environment)
        simulator.write_state(work + "/state.ndjson")
    records = harness.read_lines(work + "/state.ndjson")
    living = [record for record in records if not record["is_deleted"]]
    users = [record["fields"]["Name"] for record in living if record["entity"] == "User"]
    report = run([sys.executable, ROOT + "/scripts/sales-report", output, "--known", work + "/known"], None)
    old_values = check_report(
        report, [record["fields"] for record in living if record["entity"] == "Opportunity"],
        {"%s %s" % (name["FirstName"], name["LastName"]) for name in users})
    print(json.dumps({"records": len(living), "users": len(users), "old_values": old_values}))


if __name__ == "__main__":
    main()
