"""The fault matrix: every fault that the service can have, with the real programs.

    fault_matrix_proof.py --programs DIR --work DIR [--only REGEX] [--sample N] [--seed S] [--jobs N]

A cell is a fault (fault_matrix.py), met once or staying, with files or PostgreSQL, in a run that ends by itself
or follows: `Subscribe/service.unavailable/stays/postgres/follow`. In each, exit codes are as documented,
calls and deliveries are bounded, never more streams are open than topics and one, memory stays within
32 MiB of a run without a fault, and when the fault is gone the next runs leave files and tables
equal to what was published. Waits are skipped (`pubsub-simulator --clock`).

--only: cells whose name matches; --sample: so many of them, by the seed. Prints one JSON line with the number of
cells; exits 1 if any failed, each named on standard error.
"""

import concurrent.futures
import contextlib
import itertools
import json
import os
import random
import re
import sys
import time

import fault_matrix
import fault_matrix_cell
import fault_matrix_ways
import harness
import postgres

STORES = ("files", "postgres")
MODES = ("batch", "follow")


def cells():
    """Their names, with what `prove` needs."""
    for fault, stays, store, mode in itertools.product(fault_matrix.FAULTS, (False, True), STORES, MODES):
        if fault.method == "Database" and store == "files":
            continue
        moment = "stays" if stays else "once"
        yield "%s/%s/%s/%s/%s" % (fault.method, fault.name, moment, store, mode), (fault, stays, store, mode)


@contextlib.contextmanager
def cell(arguments, name, store, url, admin_url=None, options=()):
    work = "%s/%s" % (arguments.work, name)
    os.makedirs(work)
    with harness.Simulator(
        arguments.programs, work, "--clock", "--events", str(fault_matrix_cell.EVENTS), "--seed",
        str(arguments.seed), "--topics", ",".join(fault_matrix_cell.TOPICS), "--keepalive-interval", "60",
        "--max-response-events", "10", *options,
    ) as simulator:
        simulator.work = work
        yield fault_matrix_cell.Cell(
            arguments, name, simulator, url if store == "postgres" else None, store == "files", admin_url)


def prove(arguments, name, urls, fault, stays, store, mode):
    # Only an org with records has a REST API.
    options = ("--existing", "1") if fault.method == "Limits" else ()
    with cell(arguments, name, store, *urls, options) as proof:
        wasted = fault_matrix_ways.meet(proof, fault, stays, mode == "follow")
        return {"wasted": wasted, "kib": proof.most_kib, "runs": proof.runs, "store": store}


def undisturbed(arguments, url):
    """Memory that runs need without a fault, by store, in KiB."""
    most = {}
    for store in STORES:
        with cell(arguments, "undisturbed/" + store, store, url) as proof:
            proof.run(0)
            process = proof.start("--follow")
            proof.follow(process, fault_matrix.KINDS["harmless"], False)
            proof.compare()
            most[store] = proof.most_kib
    return most


def main():
    arguments = harness.arguments(only="", sample=int, seed=1, jobs=2)
    chosen = [found for found in cells() if re.search(arguments.only, found[0])]
    if arguments.sample is not None and arguments.sample < len(chosen):
        chosen = random.Random(arguments.seed).sample(chosen, arguments.sample)
    began = time.monotonic()
    figures = {"cells": 0, "failed": 0, "runs": 0, "most_wasted": 0, "most_mib": 0}
    with postgres.Cluster() as cluster, concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        cluster.make_database("warehouse")
        url = cluster.url("warehouse", None, postgres.ROLE)
        usual = undisturbed(arguments, url)
        running = {
            pool.submit(prove, arguments, name, (url, cluster.url("warehouse")), *what): name for name, what in chosen
        }
        for future in concurrent.futures.as_completed(running):
            figures["cells"] += 1
            try:
                result = future.result()
                if result["kib"] > usual[result["store"]] + fault_matrix_cell.MORE_MEMORY:
                    sys.exit("%s: %d KiB of memory, %d without a fault" % (
                        running[future], result["kib"], usual[result["store"]]))
            except (SystemExit, Exception) as problem:  # a cell that breaks must not hide the others
                text = str(problem)
                if not isinstance(problem, SystemExit):
                    text = "%s: %r" % (running[future], problem)
                print(text, file=sys.stderr, flush=True)
                figures["failed"] += 1
                continue
            figures["runs"] += result["runs"]
            figures["most_wasted"] = max(figures["most_wasted"], result["wasted"])
            figures["most_mib"] = max(figures["most_mib"], round(result["kib"] / 1024, 1))
    figures["seconds"] = round(time.monotonic() - began)
    print(json.dumps(figures))
    sys.exit(1 if figures["failed"] or not figures["cells"] else 0)


if __name__ == "__main__":
    main()
