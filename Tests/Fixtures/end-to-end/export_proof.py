"""Runs the real exporter against the real simulator and compares the files with the truth.

    export_proof.py --programs DIR --work DIR [--events N] [--kills N] [--seed S]
        [--measure] [--simulator-options "--large 0.001"]

With --kills the exporter is ended by SIGKILL that many times at random moments and started again.
Several topics, a channel with mixed schemas and one with groups of equal replay IDs are exported by
one pipeline each; with --measure one pipeline exports six topics with the default commits and
rotation instead. Prints one JSON line with the CPU seconds and the peak memory of each exporter's
last run; exits 1 on any difference, torn file or wrong exit code.
"""

import argparse
import glob
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
import urllib.request

import zstandard

HERE = os.path.dirname(os.path.abspath(__file__))

PIPELINES = {
    "single": ["/data/OpportunityChangeEvent", "/data/AccountChangeEvent", "/event/Order_Event__e"],
    "channel": ["/data/ChangeEvents"],
    "enriched": ["/data/Sales__chn"],
}
MEASURED = {
    "mixed": [
        "/data/OpportunityChangeEvent",
        "/data/AccountChangeEvent",
        "/data/ContactChangeEvent",
        "/data/Station__ChangeEvent",
        "/event/Order_Event__e",
        "/event/CM_Test_Event_Two__e",
    ]
}


# Columns that a second sink of each pipeline selects.
NARROW = ["Name", "Amount", "StageName"]


def pipeline(name, topics, measure):
    sink = {"type": "files", "directory": "out/" + name}
    document = {
        "version": 1,
        "name": name,
        "source": {
            "type": "salesforce",
            "topic": topics,
            "start": "earliest",
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
        "sinks": [sink],
        "checkpoint": {"type": "file", "directory": "state"},
        "run": {"until": "caught_up", "quiet": "1s"},
    }
    if not measure:
        sink["rotate"] = {"max_events": 3000}
        document["commit"] = {"max_events": 200}
        narrow = dict(sink, name="narrow", directory="out-narrow/" + name)
        narrow["stages"] = [{"type": "select", "columns": NARROW}]
        document["sinks"].append(narrow)
    return document


def lines_by_file_order(directory):
    """(topic, event ID, record ID) in the order of each topic and entity, and all column names."""
    keys, columns = {}, set()
    for path in sorted(glob.glob(directory + "/**/*.zst", recursive=True)):
        with open(path, "rb") as file:
            text = zstandard.ZstdDecompressor().stream_reader(file).read().decode()
        for line in text.rstrip("\n").split("\n"):
            row = json.loads(line)
            columns.update(row)
            keys.setdefault((row["_topic"], row["_entity"]), []).append(
                (row["_event_id"], row.get("_record_id"))
            )
    return keys, {name for name in columns if not name.startswith("_")}


def compare_narrow(full, narrow):
    full_keys, _ = lines_by_file_order(full)
    narrow_keys, columns = lines_by_file_order(narrow)
    if full_keys != narrow_keys:
        sys.exit("%s does not hold the rows of %s" % (narrow, full))
    if not columns <= set(NARROW):
        sys.exit("%s has columns that were not selected: %s" % (narrow, columns))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--programs", required=True)
    parser.add_argument("--work", required=True)
    parser.add_argument("--events", type=int, default=20000)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--measure", action="store_true")
    parser.add_argument("--simulator-options", default="--nonfinite 0.001")
    arguments = parser.parse_args()
    work = os.path.abspath(arguments.work)
    os.makedirs(work, exist_ok=True)
    chance = random.Random(arguments.seed)
    truth, env_file = work + "/truth.ndjson", work + "/env"
    simulator = subprocess.Popen(
        [
            arguments.programs + "/pubsub-simulator",
            "--events", str(arguments.events), "--seed", str(arguments.seed),
            "--truth", truth, "--env", env_file,
        ]
        + arguments.simulator_options.split(),
        stdout=subprocess.PIPE,
    )
    try:
        if not simulator.stdout.readline().startswith(b"ready"):
            sys.exit("the simulator did not become ready")
        with open(env_file, encoding="utf-8") as file:
            environment = dict(os.environ)
            environment.update(re.findall(r"^export (\w+)='(.*)'$", file.read(), re.M))
        # An org whose clock is ahead of ours: only its own says what was committed after the start.
        for request in ("clock?advance=1h", "publish?count=50&topic=/data/OpportunityChangeEvent"):
            url = environment["SIMULATOR_CONTROL_URL"] + "/control/" + request
            urllib.request.urlopen(urllib.request.Request(url, method="POST")).read()
        results = {}
        for name, topics in (MEASURED if arguments.measure else PIPELINES).items():
            results[name] = export(arguments, work, environment, chance, name, topics, truth)
        print(json.dumps(results))
    finally:
        simulator.send_signal(signal.SIGTERM)
        simulator.wait()


def export(arguments, work, environment, chance, name, topics, truth):
    path = "%s/%s.json" % (work, name)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(pipeline(name, topics, arguments.measure), file)
    report = "%s/%s.report.json" % (work, name)
    command = [arguments.programs + "/pubsub-etl", "run", path, "--report", report]
    kills = 0
    for _ in range(arguments.kills):
        process = subprocess.Popen(command, env=environment)
        try:
            process.wait(timeout=chance.uniform(0.03, 0.5))
        except subprocess.TimeoutExpired:
            process.kill()
            kills += 1
        process.wait()
    started = time.monotonic()
    with open(work + "/stderr", "wb") as errors:
        process = subprocess.Popen(command, env=environment, stderr=errors)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.monotonic() - started
    with open(work + "/stderr", encoding="utf-8") as file:
        errors = file.read()
    if status != 0 or errors:
        sys.exit("%s: wait status %d: %s" % (name, status, errors))
    output = "%s/out/%s" % (work, name)
    files = subprocess.run(
        ["find", output, "-name", "*.zst", "-print0"], stdout=subprocess.PIPE, check=True
    ).stdout.split(b"\0")[:-1]
    subprocess.run(["zstd", "-tq"] + files, check=True)
    if not arguments.measure:
        compare_narrow(output, "%s/out-narrow/%s" % (work, name))
    compare = [sys.executable, HERE + "/compare_truth.py", "--truth", truth, "--output", output]
    for topic in topics:
        compare += ["--topic", topic]
    compared = subprocess.run(compare, env=environment, stdout=subprocess.PIPE)
    result = json.loads(compared.stdout)
    result["kills"] = kills
    result["seconds_of_last_run"] = round(seconds, 1)
    result["cpu_seconds_of_last_run"] = round(usage.ru_utime + usage.ru_stime, 2)
    result["peak_mib_of_last_run"] = round(usage.ru_maxrss / 1024, 1)
    with open(report, encoding="utf-8") as file:
        written = json.load(file)
    if any(topic["delivered"] != topic["exported"] for topic in written["topics"]) and not kills:
        sys.exit("%s: delivered and exported differ" % name)
    if written["start_clock"] != "service" or any(
        topic["caught_up_by"] == "committed_after_start" for topic in written["topics"]
    ):
        sys.exit("%s: nothing was committed after the start" % name)
    if compared.returncode:
        print(json.dumps(result))
        sys.exit(name + ": the export differs from the truth")
    return result


if __name__ == "__main__":
    main()
