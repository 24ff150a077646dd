"""Misspelt columns in stages and column_types never export a column that should be left out.

    columns_proof.py --programs DIR --work DIR

On topics of one object a run ends with 78 before anything is written, and so do `check --connect` and,
for a database, `plan`. On a channel the run goes through and warns. A name is right when one of several
topics has it. Prints one JSON line; exits 1 at the first difference.
"""

import json
import subprocess
import sys

import harness

OPPORTUNITY, ACCOUNT = "/data/OpportunityChangeEvent", "/data/AccountChangeEvent"
CHANNEL = "/data/ChangeEvents"
DROP = {"type": "drop", "columns": ["Amuont"]}
FLATTEN = {"type": "flatten"}


class Case:
    def __init__(self, programs, work, environment):
        self.programs, self.work, self.environment = programs, work, environment
        self.number = 0

    def __call__(self, what, topics, stages, code, *texts, command=("run",), sink=None):
        """Runs a command on its own pipeline; returns its exit code and output."""
        self.number += 1
        name = "case%d" % self.number
        document = harness.pipeline(name, topics)
        document["stages"] = stages
        if sink:
            document["sinks"] = [{**document["sinks"][0], **sink}] if "type" not in sink else [sink]
        path = "%s/%s.json" % (self.work, name)
        harness.write_json(path, document)
        program = [self.programs + "/pubsub-etl", command[0], path, *command[1:]]
        done = subprocess.run(program, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        said = done.stderr.decode()
        if done.returncode != code:
            sys.exit("%s: exit code %d, not %d: %s" % (what, done.returncode, code, said))
        for text in texts:
            if text not in said:
                sys.exit("%s: '%s' is not in: %s" % (what, text, said))
        if not texts and said:
            sys.exit("%s: nothing was to be said: %s" % (what, said))
        files = harness.data_files("%s/out/%s" % (self.work, name))
        wanted = command == ("run",) and code == 0
        if bool(files) != wanted:
            sys.exit("%s: %d files" % (what, len(files)))


def main():
    arguments = harness.arguments()
    work = arguments.work
    topics = ",".join([OPPORTUNITY, ACCOUNT, CHANNEL])
    with harness.Simulator(
        arguments.programs, work, "--events", "100", "--topics", topics
    ) as simulator:
        case = Case(arguments.programs, work, simulator.environment)
        message = "stage drop (stages[0]): 'Amuont' (nearest: Amount"
        case("a misspelt name", [OPPORTUNITY], [DROP], 78, message, "missing")
        case("the same of two topics", [ACCOUNT, OPPORTUNITY], [DROP], 78, message)
        case("check", [OPPORTUNITY], [DROP], 78, message, command=("check", "--connect"))
        database = {"type": "postgres", "url": "postgresql://127.0.0.1:1/x", "column_types": {"Amuont": "text"}}
        case("plan", [OPPORTUNITY], [], 78, "column_types: 'Amuont'", command=("plan",), sink=database)
        case("a sink's stage", [OPPORTUNITY], [], 78, "sink 'files', " + message, sink={"stages": [DROP]})
        case("before flatten", [ACCOUNT], [{"type": "drop", "columns": ["BillingAddress_City"]}, FLATTEN], 78,
             "'BillingAddress_City' (nearest: BillingAddress")
        case("a name of one topic", [ACCOUNT, OPPORTUNITY], [FLATTEN, {"type": "drop", "columns": ["StageName"]}], 0)
        case("ignored", [OPPORTUNITY], [{**DROP, "missing": "ignore"}], 0)
        case("a channel", [CHANNEL], [DROP], 0, "'Amuont'", "not in any schema of this run")
        print(json.dumps({"cases": case.number}))


if __name__ == "__main__":
    main()
