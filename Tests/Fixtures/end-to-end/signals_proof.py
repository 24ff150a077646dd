"""SIGINT and SIGTERM, once and twice, while a run waits for another one, logs in, waits for a schema, or commits.

    signals_proof.py --programs DIR --work DIR

Signals during a backlog and while the database is away are cells of retry_proof.py. Each place has a simulator
of its own, and runs that end by themselves as well as runs that follow. The exit codes are those of ExitCodes.md: 75
or 0 after one signal, 130 or 143 after two. In the end a run completes the files and tables, each event once.

Prints a JSON line for each place; exits 1 on any difference.
"""

import functools
import glob
import itertools
import os
import signal
import socket
import subprocess

import harness
import postgres
import retry_proof

SIGNALS = ((signal.SIGINT, 130), (signal.SIGTERM, 143))


def at_each(cell, reach, leave, ends_at_once=False, is_silent=False):
    """Signals a run that has come to a place, in every way; `reach` waits for that, `leave` ends what holds it.

    A run that ends at once may have ended before the second signal."""
    runs = 0
    for options, (number, twice), is_second in itertools.product(((), ("--follow",)), SIGNALS, (False, True)):
        run = cell.start(*options)
        held = reach(run)
        if is_second:
            harness.send_twice(run, number)
        else:
            run.send_signal(number)
        if not is_second and held:
            leave(held)
        once = 0 if options else 75
        code = twice if is_second else once
        if is_second and ends_at_once:
            run.wait(40)
            code = once if run.returncode == once else twice
        cell.end(run, (code,), 40)
        if is_silent and "retrying" in cell.said():
            cell.fail("a request that the signal ended is reported as retried")
        if is_second and held:
            leave(held)
        runs += 1
    return runs


def login(arguments, simulator):
    cell = retry_proof.Cell(arguments, "login", simulator, retry={"give_up_after": "5m"})
    simulator.fault(times=retry_proof.ALWAYS, method="Login", status=503, message="Down for Maintenance")

    def reach(run):
        cell.wait(run, lambda: "HTTP 503" in cell.said(), "a login that fails")

    runs = at_each(cell, reach, None, ends_at_once=True)
    if cell.report()["reason"] != "signal":
        cell.fail("the report tells", cell.report()["reason"])
    simulator.forget_faults()
    cell.run(0)
    return dict(cell.compare(), runs=runs)


def silent_login(arguments, simulator):
    """A server that accepts connections and answers none."""
    cell = retry_proof.Cell(arguments, "silent_login", simulator)
    with socket.create_server(("127.0.0.1", 0)) as server:
        cell.environment["SF_LOGIN_URL"] = "http://127.0.0.1:%d" % server.getsockname()[1]
        server.settimeout(30)
        runs = at_each(cell, lambda run: server.accept()[0], lambda connection: connection.close(), ends_at_once=True)
    cell.environment["SF_LOGIN_URL"] = simulator.environment["SF_LOGIN_URL"]
    cell.run(0)
    return dict(cell.compare(), runs=runs)


def other_run(arguments, simulator):
    """Another run holds the lock, and the signal ends the one that waits for it."""
    cell = retry_proof.Cell(arguments, "other_run", simulator, run={"if_running": "wait"})
    holder = cell.start("--follow")
    cell.wait_for(holder, cell.total())
    last_run = cell.status()[1]["last_run"]

    def reach(run):
        # It tells nobody that it waits; from the start of this thread on there is nothing else it could do.
        cell.wait(run, lambda: "pipeline" in threads(run), "the lock is waited for")

    runs = at_each(cell, reach, None, ends_at_once=True)
    if cell.status()[1]["last_run"] != last_run:
        cell.fail("a run that never began counts as the last one")
    holder.send_signal(signal.SIGTERM)
    cell.end(holder)
    return dict(cell.compare(), runs=runs)


def schema(arguments, simulator):
    cell = retry_proof.Cell(arguments, "schema", simulator, source={"num_requested": 10})
    simulator.fault(times=retry_proof.ALWAYS, method="GetSchema", action="stall")

    def reach(run):
        known = simulator.get("stats")["calls"].get("GetSchema", 0)
        cell.wait(
            run, lambda: simulator.get("stats")["calls"].get("GetSchema", 0) > known, "a schema is asked for")

    runs = at_each(cell, reach, None, is_silent=True)
    simulator.forget_faults()
    cell.run(0)
    # What was delivered waits for its schema, and comes again.
    return dict(cell.compare(wasted=runs * 2 * 20), runs=runs)


def commit(arguments, simulator):
    """Another session has locked the table that the commit writes to."""
    with postgres.Cluster() as cluster:
        cell = retry_proof.Cell(arguments, "commit", simulator, cluster, retry={"give_up_after": "5m"})
        cell.run(0)

        def reach(run):
            command = ["psql", "-XAtq", "-d", cell.url]
            holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            holder.stdin.write(b"BEGIN; LOCK TABLE proof.opportunity_history; SELECT 1;\n")
            holder.stdin.flush()
            holder.stdout.readline()
            simulator.publish(100, retry_proof.FIRST)
            waits = "SELECT count(*) FROM pg_locks WHERE NOT granted"
            cell.wait(run, lambda: postgres.query(cluster.url(), waits) != [["0"]], "a commit waits for a lock")
            return holder

        runs = at_each(cell, reach, lambda holder: holder.communicate(b"ROLLBACK;\n"))
        cell.run(0)
        return dict(cell.compare(wasted=runs * 200), runs=runs)


def threads(run):
    names = set()
    for path in glob.glob("/proc/%d/task/*/comm" % run.pid):
        try:
            with open(path, encoding="ascii") as file:
                names.add(file.read().strip())
        except OSError:
            pass  # it has ended
    return names


def prove(place, arguments):
    work = "%s/%s" % (arguments.work, place.__name__)
    os.makedirs(work)
    with harness.Simulator(
        arguments.programs, work, "--events", "300", "--topics", ",".join(retry_proof.TOPICS),
        "--keepalive-interval", "2",
    ) as simulator:
        return {"place": place.__name__, **place(arguments, simulator)}


def main():
    arguments = harness.arguments()
    # They wait most of the time.
    places = (login, silent_login, other_run, schema, commit)
    harness.prove_side_by_side(3, [functools.partial(prove, place, arguments) for place in places])


if __name__ == "__main__":
    main()
