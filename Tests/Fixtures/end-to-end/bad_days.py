"""Twenty bad days of an org and its exporter, by name: after each, the copy is equal to the org.

    bad_days.py --programs DIR --work DIR [--seed S] [--days NAME,...]

Each day is a run of snapshot_proof.py. Prints its JSON line, with the name of the day, the API calls and the Bulk
jobs that it took; exits 1 when one of them failed, after all.
"""

import json
import subprocess
import sys

import harness

SMALL = "--existing 400 --events 1500 --rate 300"
QUIET = "--gaps 0 --overflows 0 --wildcards 0"

DAYS = {
    # Events that say less than they should.
    "gap_storm": [*SMALL.split(), "--repair", "--simulator-options", "--gaps 0.4"],
    "gap_storm_current": [*SMALL.split(), "--repair", "--mode", "current", "--simulator-options", "--gaps 0.4"],
    "gap_storm_with_kills": [*SMALL.split(), "--repair", "--kills", "4", "--simulator-options", "--gaps 0.2"],
    "overflow": [*SMALL.split(), "--repair", "--simulator-options", "--overflows 0.03"],
    "overflow_current": [*SMALL.split(), "--repair", "--mode", "current", "--simulator-options", "--overflows 0.03"],
    "wildcards": [*SMALL.split(), "--repair", "--simulator-options", "--wildcards 0.03"],
    "lost_diffs": [*SMALL.split(), "--repair", "--simulator-options", "--diffs 0.5 --gaps 0.1"],
    "lost_diffs_current": [
        *SMALL.split(), "--repair", "--mode", "current", "--simulator-options", "--diffs 0.5 --gaps 0.1"],
    "silent_changes": [*SMALL.split(), "--later", "--simulator-options", QUIET + " --silent 0.3"],
    # Events that are not there any more.
    "outage_beyond_retention": [*SMALL.split(), "--repair", "--outage", "--start", "earliest"],
    "outage_beyond_retention_current": [
        *SMALL.split(), "--repair", "--outage", "--start", "earliest", "--mode", "current"],
    "outage_and_kills": [*SMALL.split(), "--repair", "--outage", "--kills", "3", "--server-kills", "1"],
    # A database that has lost its server, and an exporter that has lost its life.
    "crash_loop": [*SMALL.split(), "--repair", "--kills", "8", "--server-kills", "3"],
    "crash_loop_current": [*SMALL.split(), "--repair", "--mode", "current", "--kills", "8", "--server-kills", "3"],
    # Reads that are late, hidden or refused.
    "slow_readers": [*SMALL.split(), "--visibility-delay", "4000", "--visibility-wait", "5s"],
    "slow_readers_current": [
        *SMALL.split(), "--visibility-delay", "4000", "--visibility-wait", "5s", "--mode", "current"],
    "hidden_records": [*SMALL.split(), "--repair", "--unshared", "0.1"],
    "hidden_field": [*SMALL.split(), "--hidden-field", "Account.Description"],
    "removed_when_deleted": [*SMALL.split(), "--repair", "--delete", "remove"],
    "late_copy": [*SMALL.split(), "--later", "--mode", "current", "--simulator-options", QUIET],
}


def main():
    arguments = harness.arguments(seed="1", days=",".join(DAYS))
    failed = []
    for name in arguments.days.split(","):
        command = [sys.executable, harness.HERE + "/snapshot_proof.py", "--programs", arguments.programs]
        command += ["--work", "%s/%s" % (arguments.work, name), "--seed", arguments.seed]
        done = subprocess.run(command + DAYS[name], capture_output=True, text=True)
        if done.returncode == 0:
            print(json.dumps({"day": name, **json.loads(done.stdout)}), flush=True)
        else:
            failed.append(name)
            print("%s: exit code %d\n%s" % (name, done.returncode, (done.stdout + done.stderr)[-3000:]), flush=True)
    if failed:
        sys.exit("%d of the days ended with differences: %s" % (len(failed), ", ".join(failed)))


if __name__ == "__main__":
    main()
