"""What surrounds the process: its arguments, standard error, signals of the terminal, the limit of threads.

    process_proof.py --programs DIR --work DIR

- arguments: they are read although a preloaded library calls setenv in its constructor; without /proc (as root) and
  with an empty argv, the programs end and say why.
- unread: a run with the most messages whose standard error nobody reads exports everything, obeys --max-duration and
  the first signal, and gives its lock back. So does one whose report nobody reads.
- hang-up: SIGHUP ends a run cleanly, and one that nohup started ignores it.
- threads: under each low limit of threads (as root, which starts another user), a run works, or ends with 75 and
  names the limit.
- syslog: a command of another user than root (as root, where nobody listens yet) writes nothing there.
Prints one JSON line: the cases that were tried.
"""

import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE + "/../end-to-end")
import harness  # noqa: E402

TOPICS = ["/data/OpportunityChangeEvent"]
PRELOADED = """
#include <stdlib.h>
__attribute__((constructor)) static void agent(void) { setenv("AGENT", "1", 1); }
"""
NAMELESS = """
#include <unistd.h>
int main(int count, char **arguments) { return execve(arguments[1], &arguments[count], (char *[]){0}); }
"""
NOBODY = 65534
tried = []


def require(what, found, wanted):
    if found != wanted:
        sys.exit("%s: %r, not %r" % (what, found, wanted))
    tried.append(what)


def arguments_are_found(programs, work):
    library = work + "/agent.so"
    with open(work + "/agent.c", "w", encoding="utf-8") as file:
        file.write(PRELOADED)
    with open(work + "/nameless.c", "w", encoding="utf-8") as file:
        file.write(NAMELESS)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, work + "/agent.c"], check=True)
    preloaded = dict(os.environ, LD_PRELOAD=library)
    for program in ("pubsub-etl", "pubsub-simulator"):
        found = subprocess.run([programs + "/" + program, "no-such-command"], env=preloaded, stderr=subprocess.DEVNULL, check=False)
        require("preloaded: %s reads its arguments" % program, found.returncode, 64)
    found = subprocess.run(
        [programs + "/pubsub-etl", "check", work + "/missing.json"], env=preloaded, capture_output=True, text=True,
        check=False)
    require("preloaded: check looks for its file", (found.returncode, "missing.json" in found.stderr), (78, True))
    # The pool behind Swift's tasks ends the process by a trap when it cannot read /proc.
    unmounted = ["unshare", "--mount", "sh", "-c", 'umount -l /proc && exec "$@"', "sh"]
    if os.getuid() == 0 and subprocess.run(
            [*unmounted, "true"], stderr=subprocess.DEVNULL, check=False).returncode == 0:
        for program in ("pubsub-etl", "pubsub-simulator"):
            found = subprocess.run(
                [*unmounted, programs + "/" + program, "status", "x"], capture_output=True, text=True, check=False)
            require("no /proc: %s" % program, (found.returncode, "mount -t proc" in found.stderr), (78, True))
    subprocess.run(["cc", "-o", work + "/nameless", work + "/nameless.c"], check=True)
    for program in ("pubsub-etl", "pubsub-simulator"):
        found = subprocess.run(
            [work + "/nameless", programs + "/" + program], capture_output=True, text=True, check=False)
        require("%s without arguments" % program, (found.returncode, "argv[0]" in found.stderr), (70, True))


def start(command, environment, **streams):
    """The process, with standard error into a full pipe that nobody reads, and the pipe."""
    output, errors = os.pipe()
    os.set_blocking(errors, False)
    try:
        while True:
            os.write(errors, b"x" * 4096)
    except BlockingIOError:
        pass
    os.set_blocking(errors, True)
    process = subprocess.Popen(command, env=environment, stderr=errors, **streams)
    os.close(errors)
    return process, output


def nobody_reads(programs, work, simulator):
    program = programs + "/pubsub-etl"

    def files(name, **run):
        document = harness.pipeline(name, TOPICS)
        document["run"].update(run)
        harness.write_json(work + "/%s.json" % name, document)
        return work + "/%s.json" % name

    path = files("unread")
    process, pipe = start([program, "run", path, "--log-level", "trace"], simulator.environment)
    require("unread: the run ends", process.wait(120), 0)
    harness.compare(simulator, work + "/out/unread", TOPICS)
    os.close(pipe)
    process, pipe = start(
        [program, "run", files("limited"), "--follow", "--max-duration", "3s", "--log-level", "trace"],
        simulator.environment)
    require("unread: --max-duration holds", process.wait(120) in (0, 75), True)
    os.close(pipe)
    report = work + "/followed.report.json"
    process, pipe = start(
        [program, "run", files("followed"), "--follow", "--report", report, "--log-level", "trace"],
        simulator.environment)
    wait_for(work + "/out/followed", process)
    process.send_signal(signal.SIGTERM)
    require("unread: the first SIGTERM is obeyed", process.wait(120), 0)
    require("unread: the report says why", harness.read_json(report)["reason"], "signal")
    os.close(pipe)


def wait_for(output, process):
    harness.eventually(
        lambda: any(names for _, _, names in os.walk(output)), "the run writes something", process=process)


def hang_up(programs, work, simulator):
    program = programs + "/pubsub-etl"
    for name, prefix in (("terminal", []), ("nohup", ["nohup"])):
        path = work + "/%s.json" % name
        harness.write_json(path, harness.pipeline(name, TOPICS))
        process = subprocess.Popen(
            [*prefix, program, "run", path, "--follow"], env=simulator.environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            # The tests themselves may run under nohup.
            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL))
        wait_for(work + "/out/" + name, process)
        process.send_signal(signal.SIGHUP)
        if prefix:
            # Signals that are pending are delivered in the order of their numbers.
            process.send_signal(signal.SIGTERM)
        require("SIGHUP: %s" % name, process.wait(120), 0)


def threads(programs, work, simulator):
    if os.getuid() != 0:
        return
    folder = work + "/nobody"
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    os.chmod(work, 0o755)
    os.chown(folder, NOBODY, NOBODY)
    harness.write_json(folder + "/opps.json", harness.pipeline("opps", TOPICS))
    harness.write_json(folder + "/org.json", harness.pipeline("opps", TOPICS)["source"]["org"])
    ends = set()
    for limit in (1, 2, 3, 4, 8, 16, 17, 80):

        def limited():
            resource.setrlimit(resource.RLIMIT_NPROC, (limit, limit))
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)

        done = subprocess.run(
            [programs + "/pubsub-etl", "run", folder + "/opps.json", "--max-duration", "60s"],
            env=simulator.environment, capture_output=True, text=True, timeout=120, check=False, preexec_fn=limited)
        ends.add(done.returncode)
        if done.returncode not in (0, 75) or done.returncode and "ulimit -u" not in done.stderr:
            sys.exit("%d threads: exit code %d: %s" % (limit, done.returncode, done.stderr[-1000:]))
    require("threads: some limits are too low, others are not", ends, {0, 75})


def syslog(programs, work):
    """The runtime may not raise the priority of its threads, and must not tell syslog in each run."""
    address = "/dev/log"
    if os.getuid() != 0 or os.path.lexists(address):
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(address)
        try:
            os.chmod(address, 0o666)
            listener.setblocking(False)
            found = subprocess.run(
                [programs + "/pubsub-etl", "check", work + "/missing.json"], user=NOBODY, group=NOBODY, extra_groups=[],
                stderr=subprocess.DEVNULL, check=False)
            require("syslog: check looks for its file", found.returncode, 78)
            try:
                sys.exit("syslog got %r" % listener.recv(4096))
            except BlockingIOError:
                tried.append("syslog: nothing")
        finally:
            os.unlink(address)


def main():
    arguments = harness.arguments()
    work = arguments.work
    arguments_are_found(arguments.programs, work)
    syslog(arguments.programs, work)
    with harness.Simulator(
        arguments.programs, work, "--events", "2000", "--topics", ",".join(TOPICS), "--state-dir", work + "/simulator"
    ) as simulator:
        nobody_reads(arguments.programs, work, simulator)
        hang_up(arguments.programs, work, simulator)
        threads(arguments.programs, work, simulator)
    print(json.dumps(tried))


if __name__ == "__main__":
    main()
