"""Runs whose event loops or threads the system refuses.

    refusal_proof.py --programs DIR --work DIR [--events N] [--verbose]

Under the shim `refusal_shim.c`, one call after the other of those that make event loops and threads
fails: as when descriptors or threads have run out, and as when the call is not allowed. A run that
cannot go on ends with 75 (try again) in the first case and 70 in the other, and names the call and its
errno on standard error; one that can make up for it, by logging in or connecting again, completes. A
run that nothing is refused to completes what the others began, and the files equal the truth. Prints one
JSON line: for each call, how many runs ended with which exit code.
"""

import collections
import errno
import json
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE + "/../end-to-end")
import harness  # noqa: E402

TOPICS = ["/data/OpportunityChangeEvent"]
# Call, errno, the exit code of a run that cannot go on, and how many of these calls are certain to
# end it: those for the loops of the pipeline, the connection and the signals, whose pipe is registered.
CASES = [
    ("epoll_create1", errno.EMFILE, 75, 3),
    ("eventfd", errno.ENFILE, 75, 3),
    ("pipe", errno.EMFILE, 75, 1),
    ("pthread_create", errno.EAGAIN, 75, 3),
    ("epoll_ctl", errno.ENOMEM, 75, 4),
    ("epoll_create1", errno.EPERM, 70, 3),
]

# Threads that the program starts and ends before anything else, to see that it may (RuntimeThreads.swift).
TRIED = min(14 + os.sysconf("SC_NPROCESSORS_ONLN"), 64)


def compiled(work):
    shim = work + "/refusal_shim.so"
    subprocess.run(
        [shutil.which("cc") or "clang", "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-o", shim,
         HERE + "/refusal_shim.c"],
        check=True,
    )
    return shim


def main():
    arguments = harness.arguments(events=500, verbose=False)
    work = arguments.work
    shim = compiled(work)
    result = []
    with harness.Simulator(arguments.programs, work, "--events", str(arguments.events)) as simulator:

        def run(**refusal):
            done = subprocess.run(
                [arguments.programs + "/pubsub-etl", "run", work + "/opps.json"],
                env=dict(simulator.environment, LD_PRELOAD=shim, **refusal),
                capture_output=True,
                text=True,
                check=False,
            )
            if arguments.verbose:
                print(refusal, done.returncode, done.stderr.strip(), file=sys.stderr)
            return done

        harness.write_json(work + "/opps.json", harness.pipeline("opps", TOPICS))
        for call, number, code, certain in CASES:
            text = "%s: %s (errno %d)" % (call, os.strerror(number), number)
            outcomes = collections.Counter()
            tried = TRIED if call == "pthread_create" else 0
            for at in range(tried + 1, tried + certain + 4):
                done = run(REFUSE_CALL=call, REFUSE_AT=str(at), REFUSE_ERRNO=str(number))
                outcomes[done.returncode] += 1
                if done.returncode not in (0, code) or done.returncode == code and text not in done.stderr:
                    sys.exit("%s, call %d: exit code %d: %s" % (text, at, done.returncode, done.stderr))
            if outcomes[code] < certain:
                sys.exit("%s: only %d runs ended with %d" % (text, outcomes[code], code))
            result.append({"call": call, "errno": number, "exit_codes": outcomes})
        done = run()
        if done.returncode != 0:
            sys.exit("the last run: exit code %d: %s" % (done.returncode, done.stderr))
        harness.compare(simulator, work + "/out/opps", TOPICS)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
