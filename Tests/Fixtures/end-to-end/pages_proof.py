"""Runs what the first pages show, as they show it, against the simulator's sales team.

    pages_proof.py --programs DIR --work DIR

- README: its pipeline file exports changes, and each line that it shows is among them; `…` stands for any text.
- GettingStarted.md: both pipelines copy the org into files and into PostgreSQL, every query of the page gives rows,
  and `verify --full` says that the copy is equal, or that changes are too recent.
- Files.md: every query of the page gives rows.

Prints one JSON line; exits 1 at the first difference.
"""

import argparse
import glob
import json
import os
import re
import shutil
import subprocess
import sys

import compare_files
import harness
import postgres

ROOT = os.path.abspath(harness.HERE + "/../../..")
BOOK = ROOT + "/Sources/PubSubETL/PubSubETL.docc/"
# The minute until every reader sees earlier commits, which the simulator does not need.
FAST = ["--set", "source.snapshot.visibility_wait=1s", "--set", "run.quiet=1s"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--programs", required=True)
    parser.add_argument("--work", required=True)
    arguments = parser.parse_args()
    work = os.path.abspath(arguments.work)
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(work)
    result = {}
    with harness.Simulator(
        arguments.programs, work, "--data", "sales", "--state-dir", work + "/simulator"
    ) as simulator, postgres.Cluster() as cluster:
        environment = dict(simulator.environment)
        cluster.make_database("sales")
        environment["DATABASE_URL"] = cluster.url("sales", user=postgres.ROLE)

        def call(*command, allowed=(0,)):
            done = subprocess.run(
                [arguments.programs + "/pubsub-etl", *command], env=environment,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            if done.returncode not in allowed:
                sys.exit("%s ended with %d: %s" % (command, done.returncode, done.stderr.decode()[-2000:]))
            return done.stdout.decode()

        result["readme_lines"] = prove_readme(work + "/readme", environment, call)
        shutil.copytree(ROOT + "/pipelines", work + "/start/pipelines")
        for name in ("sales", "sales-postgres"):
            call("run", work + "/start/pipelines/%s.json" % name, *FAST)
        connection = compare_files.connection_to(work + "/start/out/sales")
        queries = blocks(BOOK + "GettingStarted.md", "sql")
        result["queries"] = 0
        for query in queries[:2] + blocks(BOOK + "Files.md", "sql"):
            counted = "SELECT count(*) FROM (%s)" % query.rstrip().rstrip(";")
            if not connection.execute(counted).fetchone()[0]:
                sys.exit("no row: %s" % query)
            result["queries"] += 1
        for query in queries[2].split(";"):
            if query.strip():
                if not postgres.query(environment["DATABASE_URL"], query):
                    sys.exit("no row: %s" % query)
                result["queries"] += 1
        report = json.loads(
            call("verify", work + "/start/pipelines/sales.json", "--full", "--json"))
        if not report["equal"]:
            sys.exit("verify: %s" % report)
    print(json.dumps(result))


def blocks(path, language):
    with open(path, encoding="utf-8") as file:
        found = re.findall(r"^```(\w*)\n(.*?)^```", file.read(), re.S | re.M)
    return [text for name, text in found if name == language]


def prove_readme(work, environment, call):
    os.makedirs(work)
    readme = ROOT + "/README.md"
    pipeline = blocks(readme, "json")[0]
    json.loads(pipeline)
    with open(work + "/deals.json", "w", encoding="utf-8") as file:
        file.write(pipeline)
    call(
        "run", work + "/deals.json", "--set", "source.org.endpoint=" + environment["PUBSUB_ENDPOINT"],
        "--set", "source.org.tls.ca_file=" + environment["PUBSUB_CA_FILE"], "--set", "run.quiet=1s")
    (shown,) = [block for block in blocks(readme, "") if "zstdcat" in block]
    shown = [line for line in shown.splitlines() if line.startswith("{")]
    exported = [
        line
        for path in glob.glob(work + "/out/Opportunity/*/*.zst")
        for line in subprocess.run(
            ["zstdcat", path], stdout=subprocess.PIPE, check=True).stdout.decode().splitlines()
    ]
    for line in shown:
        pattern = re.compile(".*".join(map(re.escape, line.split("…"))))
        if not any(map(pattern.fullmatch, exported)):
            sys.exit("README shows a line that is not exported: %s" % line)
    return len(shown)


if __name__ == "__main__":
    main()
