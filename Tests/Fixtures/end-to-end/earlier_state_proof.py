"""Resumes the state of an earlier version: checkpoint, finished files, files in progress, database.

    earlier_state_proof.py --programs DIR --work DIR
    earlier_state_proof.py --programs DIR --work DIR --make ARCHIVE

The archive `../earlier-state/resume.tar.xz` was made with the second form, the exporter of commit 766df2a
and a simulator that makes the events of today's (when its events change, so must the archive): an enriched channel with groups of equal replay IDs went to files and PostgreSQL, in commits of 20
events, one run ended and the next was killed in its midst. The archive has its state directory, output,
a dump of the schema, and the log of the simulator, which begins again with the same events. The first form
sets the clock of simulator and exporter back to that day, runs the programs of today, with new events, and
compares files and tables with the truth.

Prints one JSON line; exits 1 on any difference.
"""

import json
import os
import subprocess
import sys
import tarfile
import time

import harness
import postgres

HERE = os.path.dirname(os.path.abspath(__file__))
ARCHIVE = HERE + "/../earlier-state/resume.tar.xz"
TOPICS = ["/data/Sales__chn"]
NAME = "earlier"
# Stands for the working directory in the archive.
PLACE = "/@work@"


def main():
    arguments = harness.arguments(make=None)
    work = arguments.work
    if arguments.make:
        make(arguments.programs, work, arguments.make)
    else:
        print(json.dumps(prove(arguments.programs, work)))


def simulate(programs, work):
    return harness.Simulator(
        programs, work, "--events", "600", "--seed", "3", "--keepalive-interval", "8",
        "--gaps", "0.01", "--diffs", "0.2", "--state-dir", work + "/simulator",
    )


def environment(simulator, cluster):
    return dict(simulator.environment, DATABASE_URL=cluster.url("warehouse", None, postgres.ROLE))


def make(programs, work, archive):
    with simulate(programs, work) as simulator, postgres.Cluster() as cluster:
        url = cluster.make_database("warehouse")
        document = harness.pipeline(NAME, TOPICS)
        document["sinks"].append(
            {"type": "postgres", "name": "warehouse", "url": "${DATABASE_URL}", "schema": NAME}
        )
        document["commit"] = {"max_events": 20}
        harness.write_json(work + "/pipeline.json", document)
        command = [programs + "/pubsub-etl", "run", work + "/pipeline.json"]
        variables = environment(simulator, cluster)
        subprocess.run(command + ["--max-events", "200"], env=variables, check=True)
        checkpoint = "%s/state/%s.checkpoint.json" % (work, NAME)
        before = os.stat(checkpoint).st_mtime_ns
        run = subprocess.Popen(command, env=variables)
        harness.eventually(
            lambda: os.stat(checkpoint).st_mtime_ns != before, "a commit", process=run, pause=0.001)
        # Somewhere in the next commit, without an event to wait for.
        time.sleep(0.02)
        run.kill()
        if run.wait() >= 0:
            sys.exit("the run ended before it was killed")
        dump = subprocess.run(["pg_dump", "-d", url, "-n", NAME], stdout=subprocess.PIPE, check=True)
        with open(work + "/warehouse.sql", "wb") as file:
            file.write(dump.stdout)
    exchange(work, work, PLACE)
    with tarfile.open(archive, "w:xz") as tar:
        for name in ("pipeline.json", "state", "out", "warehouse.sql"):
            tar.add("%s/%s" % (work, name), name)
        # Its keys are made anew.
        for name in ("epoch", "journal"):
            tar.add("%s/simulator/%s" % (work, name), "simulator/" + name)


def exchange(work, old, new):
    """Replaces a path in the texts that name it."""
    names = ["state/%s.checkpoint.json", "state/%s.last-run.json", "out/%s/_views.sql"]
    for path in ["%s/%s" % (work, name % NAME) for name in names]:
        text = harness.read_text(path)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.replace(old + "/", new + "/"))


def prove(programs, work):
    with tarfile.open(ARCHIVE) as tar:
        tar.extractall(work, filter="data")
    exchange(work, PLACE, work)
    clock = work + "/shifted_clock.so"
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-O1", "-o", clock, HERE + "/shifted_clock.c", "-ldl"], check=True
    )
    with open(work + "/simulator/epoch", encoding="ascii") as file:
        day = int(file.read()) // 1000
    os.environ["SHIFTED_CLOCK_SECONDS"] = str(day + 300 - int(time.time()))
    os.environ["LD_PRELOAD"] = clock
    with simulate(programs, work) as simulator:
        del os.environ["LD_PRELOAD"]
        with postgres.Cluster() as cluster:
            return go_on(programs, work, simulator, cluster)


def go_on(programs, work, simulator, cluster):
    url = cluster.make_database("warehouse")
    with open(work + "/warehouse.sql", "rb") as file:
        postgres.run(url, stdin=file, stdout=subprocess.DEVNULL)
    variables = environment(simulator, cluster)

    def call(*arguments):
        command = [programs + "/pubsub-etl", *arguments]
        done = subprocess.run(command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if done.returncode or done.stderr:
            sys.exit("%s ended with %d: %s" % (arguments, done.returncode, done.stderr.decode()))
        return done.stdout.decode()

    pipeline = work + "/pipeline.json"
    before = int(postgres.query(url, "SELECT count(*) FROM %s.opportunity_history" % NAME)[0][0])
    if not before:
        sys.exit("the dump has no rows")
    # The lease of the killed run has not expired on the day the archive is made.
    call("run", pipeline, "--take-over")
    simulator.publish(200, TOPICS[0])
    call("run", pipeline)
    call("status", pipeline)
    refolded = call("refold", pipeline)
    if ", 0 changed" not in refolded:
        sys.exit("refold changed rows: " + refolded)
    result = {"rows_before": before}
    result["files"] = harness.compare(simulator, "%s/out/%s" % (work, NAME), TOPICS)
    command = [sys.executable, HERE + "/compare_postgres.py", "--truth", simulator.truth, "--url", url]
    command += ["--schema", NAME, "--mode", "both", "--delete", "mark", "--topic", TOPICS[0]]
    command += ["--doubles"]
    compared = subprocess.run(command, env=variables, stdout=subprocess.PIPE)
    if compared.returncode:
        sys.exit("the tables differ: " + compared.stdout.decode())
    result["tables"] = json.loads(compared.stdout)
    return result


if __name__ == "__main__":
    main()
