"""Measures pubsub-etl beside hand-written C++, a typical Python client, zstd and PostgreSQL.

Each program is timed from exec to exit. A figure is the slope between a short run and one four times as long, so that
start, login and end fall out. The programs take turns, and a table has the median of all rounds with the least and the
most. A run that other programs have disturbed is repeated; "!" marks one that stayed disturbed. Every line of every run
is compared with what was published.
"""

import argparse
import os

SECTIONS = {
    "files": "opportunity events to compressed files, beside C++, Python and zstd",
    "shapes": "the same with accounts, an object of 400 fields, and platform events",
    "memory": "the most memory of short and long runs, the last longer than 40 seconds",
    "topics": "200 topics beside one",
    "metrics": "files with metrics beside files without",
    "tables": "loads of PostgreSQL, beside COPY and SQL written by hand; with refused events",
    "snapshot": "first copies of records into PostgreSQL, beside COPY",
    "waits": "one topic at a round trip of 50 ms; one event on an idle topic; a run without events",
    "allocations": "heap allocations per event and response",
    "counts": "context switches per response and peak memory, with limits",
    "instructions": "instructions per event from its payload to its lines, with limits",
}


def parse():
    sections = "\n".join("  %-12s %s" % each for each in SECTIONS.items())
    parser = argparse.ArgumentParser(
        prog="scripts/bench", description=__doc__, epilog="sections:\n" + sections,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a minute: small runs, section files alone")
    parser.add_argument(
        "--section", action="append", choices=SECTIONS, metavar="NAME", help="only this one; repeatable")
    parser.add_argument("--programs", metavar="DIR", help="programs that exist already; default: a release build")
    parser.add_argument("--against", metavar="DIR", help="programs of another version, which take part in the turns")
    parser.add_argument("--rounds", type=int, metavar="N", help="default: 5, with --quick 3")
    parser.add_argument(
        "--events", type=int, metavar="N", help="events of short runs; default: 500000, with --quick 50000")
    parser.add_argument(
        "--most-others", type=float, default=10, metavar="PERCENT",
        help="CPU of other programs at which a run is repeated; default: 10")
    parser.add_argument(
        "--attempts", type=int, metavar="N",
        help="how often a disturbed run is made at most; default: 5, with --quick 1")
    parser.add_argument(
        "--limits", action="store_true",
        help="end with 1 if sections counts, instructions and memory find more than their limits")
    parser.add_argument("--json", metavar="FILE", help="where the figures go; default: .build-bench/figures.json")
    parser.add_argument("--tools", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--scratch", required=True, help=argparse.SUPPRESS)
    options = parser.parse_args()
    for name in ("programs", "against"):
        directory = getattr(options, name)
        if directory and not os.access(directory + "/pubsub-etl", os.X_OK):
            parser.error("--%s: there is no program pubsub-etl in %s" % (name, directory))
    return options


if __name__ == "__main__":
    options = parse()
    # After the options, because --help needs no environment.
    import sections

    sections.Bench(options, list(SECTIONS)).run()
