"""Rehearses every pipeline of the repository: `pubsub-simulator rehearse` has to find the output equal.

    rehearse_proof.py --programs DIR --work DIR [--days N] [--every DURATION] [--seed S] [--only NAME]...

Also shows that the clock serves right times, and is refused where it must be. Prints one JSON line per
pipeline; exits 1 at the first thing that is wrong.
"""

import datetime
import glob
import json
import os
import signal
import subprocess
import sys
import time

import harness
import postgres

PIPELINES = os.path.join(harness.HERE, "../../../pipelines")
TOPIC = "/data/OpportunityChangeEvent"


def rehearse(programs, path, url, arguments):
    command = [programs + "/pubsub-simulator", "rehearse", path, "--json"]
    command += ["--days", str(arguments.days), "--every", arguments.every, "--seed", str(arguments.seed)]
    if url:
        command += ["--database-url", url]
    started = time.monotonic()
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit("%s: exit code %d\n%s%s" % (path, done.returncode, done.stdout, done.stderr))
    account = json.loads(done.stdout)
    account["seconds"] = round(time.monotonic() - started, 1)
    expected = {"silence", "outage", "token expiry", "overlapping runs"}
    if url:
        expected.add("database restart")
    if set(account["incidents"]) != expected:
        sys.exit("%s: incidents: %s" % (path, account["incidents"]))
    if not account["outputs"] or any(not output["rows"] for output in account["outputs"]):
        sys.exit("%s: nothing was compared: %s" % (path, account["outputs"]))
    # A run waits for the service, or gives up when the outage lasts longer than retry.give_up_after.
    if not any("unavailable" in line for line in account["incidents"]["outage"]["said"]):
        sys.exit("%s: no run met the outage: %s" % (path, account["incidents"]["outage"]))
    again = account["redelivered"]
    if account["exported"] != account["published"] or account["delivered"] - again != account["exported"]:
        sys.exit("%s: delivered is not exported: %s" % (path, account))
    return account


def rehearse_route(programs, work, arguments):
    """A pipeline with a route: each sink has its part, and all of them what was published."""
    document = harness.pipeline("routed", [TOPIC, "/data/AccountChangeEvent"])
    document["stages"] += [{
        "type": "route", "default": ["others"],
        "routes": [{"entity": "Account", "to": ["accounts"]}, {"where": "Amount >= 5e5", "to": ["others", "big"]}]}]
    document["sinks"] = [
        {"type": "files", "name": name, "directory": "out/" + name} for name in ("accounts", "others", "big")]
    document["run"] = {}
    harness.write_json(work + "/routed.json", document)
    account = rehearse(programs, work + "/routed.json", None, arguments)
    rows = {output["sink"]: output["rows"] for output in account["outputs"]}
    parts = [rows["files of sink '%s'" % name] for name in ("accounts", "others", "big")]
    if rows["all sinks"] != parts[0] + parts[1] or parts[2] >= parts[1]:
        sys.exit("the sinks of a route have: %s" % rows)
    print(json.dumps({"routed": rows}), flush=True)


def check_signals(programs, work):
    """A signal leaves neither a process nor a directory."""
    directory = work + "/stopped"
    os.mkdir(directory)
    path = work + "/stopped.json"
    harness.write_json(path, harness.pipeline("stopped", [TOPIC]))
    for number in (signal.SIGINT, signal.SIGTERM):
        process = subprocess.Popen(
            [programs + "/pubsub-simulator", "rehearse", path, "--days", "3660"], stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, env=dict(os.environ, TMPDIR=directory))
        while not glob.glob(directory + "/*/runs/*.stderr"):
            if process.poll() is not None:
                sys.exit("the rehearsal has ended: %s" % process.stderr.read())
            time.sleep(0.01)
        process.send_signal(number)
        said = process.communicate()[1].decode()
        if process.returncode != 128 + number or "stopped by a signal" not in said:
            sys.exit("after signal %d: exit code %d, %r" % (number, process.returncode, said))
        if os.listdir(directory):
            sys.exit("signal %d left %s" % (number, os.listdir(directory)))
        for link in glob.glob("/proc/[0-9]*/cmdline"):
            try:
                with open(link, "rb") as file:
                    if directory.encode() in file.read():
                        sys.exit("signal %d left process %s" % (number, link))
            except OSError:
                pass


def check_refusals(programs, work):
    """A foreign clock is refused with 64, and so is any clock for an org on another machine."""
    document = harness.pipeline("refused", TOPIC)
    document["source"]["org"]["endpoint"] = "https://api.pubsub.salesforce.com:7443"
    harness.write_json(work + "/remote.json", document)
    harness.write_json(work + "/local.json", harness.pipeline("refused", TOPIC))
    environment = dict(
        os.environ, PUBSUB_ENDPOINT="http://127.0.0.1:9", SF_LOGIN_URL="http://127.0.0.1:9",
        SF_CLIENT_ID="id", SF_CLIENT_SECRET="secret")
    for name, clock, words in (
        ("remote", "127.0.0.1:9", "source.org.endpoint"), ("local", "10.0.0.1:9", "127.0.0.1:PORT"),
        ("local", "127.0.0.1:9", "clock at 127.0.0.1:9"),
    ):
        done = subprocess.run(
            [programs + "/pubsub-etl-rehearsal", "run", "%s/%s.json" % (work, name)],
            env=dict(environment, PUBSUB_ETL_CLOCK=clock), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if done.returncode != 64 or words not in done.stderr:
            sys.exit("clock %s for %s: %d %s" % (clock, name, done.returncode, done.stderr))


def check_product(programs, work):
    """The exporter that users install obeys no served clock, and has none of its code."""
    done = subprocess.run(
        [programs + "/pubsub-etl", "run", work + "/local.json", "--max-duration", "1s"],
        env=dict(
            os.environ, PUBSUB_ENDPOINT="http://127.0.0.1:9", SF_LOGIN_URL="http://127.0.0.1:9", SF_CLIENT_ID="id",
            SF_CLIENT_SECRET="secret", PUBSUB_ETL_CLOCK="10.0.0.1:9"),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode == 64 or "PUBSUB_ETL_CLOCK" in done.stderr:
        sys.exit("pubsub-etl reads PUBSUB_ETL_CLOCK: %d %s" % (done.returncode, done.stderr))
    # The pool of the Swift runtime looks after its own threads in /proc/self/task.
    for word in (b"PUBSUB_ETL_CLOCK", b"nonvoluntary_ctxt_switches", b"ServedClock"):
        for name, expected in (("pubsub-etl", False), ("pubsub-etl-rehearsal", True)):
            with open("%s/%s" % (programs, name), "rb") as file:
                if (word in file.read()) != expected:
                    sys.exit("%s: %s is %sexpected" % (name, word.decode(), "" if expected else "not "))


def check_times(programs, work):
    """A run with 15 s of quiet, and one that waits for a keepalive after 200 s, in much less."""
    directory = work + "/times"
    os.mkdir(directory)
    document = harness.pipeline("times", TOPIC)
    document["run"]["quiet"] = "15s"
    document["checkpoint"]["renew_after"] = "1h"
    harness.write_json(directory + "/times.json", document)
    spent = []
    with harness.Simulator(
        programs, directory, "--clock", "--events", "50", "--topics", TOPIC, "--keepalive-interval", "200",
    ) as simulator:
        for hours, least, most in ((0, 15, 30), (3, 200, 330)):
            if hours:
                # Only the org moves on: the position of the run before has become old.
                simulator.post("clock?advance=%dh" % hours)
            started = time.monotonic()
            done = subprocess.run(
                [simulator.exporter, "run", directory + "/times.json", "--report", directory + "/report.json"],
                env=simulator.environment, stderr=subprocess.PIPE, text=True)
            real = time.monotonic() - started
            if done.returncode or done.stderr:
                sys.exit("times: exit code %d: %s" % (done.returncode, done.stderr))
            report = harness.read_json(directory + "/report.json")
            times = [datetime.datetime.fromisoformat(report[key].replace("Z", "+00:00"))
                     for key in ("started_at", "finished_at")]
            served = (times[1] - times[0]).total_seconds()
            now = simulator.get("stats")["now"] / 1000
            if not least <= served <= most:
                sys.exit("the report says %.1f s, not %d to %d" % (served, least, most))
            if abs(now - times[1].timestamp()) > 5:
                sys.exit("the run ended at %s, the org is at %.1f" % (report["finished_at"], now))
            if real > served / 3:
                sys.exit("%.1f s took %.1f s" % (served, real))
            spent.append({"served": round(served, 1), "real": round(real, 2)})
    print(json.dumps({"times": spent}))


def main():
    arguments = harness.arguments(days=1, every="4h", seed=1, only=[])
    work = arguments.work
    check_signals(arguments.programs, work)
    check_refusals(arguments.programs, work)
    check_product(arguments.programs, work)
    check_times(arguments.programs, work)
    if not arguments.only:
        rehearse_route(arguments.programs, work, arguments)
    with postgres.Cluster() as cluster:
        for path in sorted(glob.glob(PIPELINES + "/*.json")):
            name = os.path.basename(path)[:-5]
            if name.endswith(".test") or name in ("org", "pipeline.schema"):
                continue
            if arguments.only and name not in arguments.only:
                continue
            sinks = harness.read_json(path)["sinks"]
            url = None
            if any(sink["type"] == "postgres" for sink in sinks):
                url = cluster.make_database("rehearse_" + name)
            account = rehearse(arguments.programs, path, url, arguments)
            for key in ("notes", "every", "seed"):
                del account[key]
            print(json.dumps(account), flush=True)


if __name__ == "__main__":
    main()
