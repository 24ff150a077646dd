"""Proves that files have no null where the org has a value, unless the state of the column says so.

    new_fields_proof.py --programs DIR --work DIR [--seed S] [--events N] [--existing N]

An admin adds a checkbox, which is false in every record, before the first run: the events that are retained do not
have it, and among them are those that created records. The views "…_now" of the files have its
values nevertheless. Then:

- A checkbox that is added later is missing in records that were read before. `status` and `verify` name it and the
  remedy, and `verify` exits with 75, neither 65 nor 0.
- The field is hidden from the run-as user, all records are read again, and the field is shown: the same.
- All records are read again: nothing is missing, and `verify --full` says "equal".

Prints one JSON line of counts; exits 1 at the first difference.
"""

import collections
import json
import shutil
import sys

import compare_files
import harness
import snapshot_proof

TOPIC, ENTITY = "/data/AccountChangeEvent", "Account"
VISIBILITY_WAIT = 0.2


class Proof(harness.Exporter):
    def __init__(self, arguments, work, simulator):
        super().__init__(arguments.programs + "/pubsub-etl", work + "/pipeline.json", simulator.environment)
        self.work, self.simulator = work, simulator
        document = harness.pipeline("copy", [TOPIC])
        document["source"]["snapshot"] = {
            "mode": "initial", "visibility_wait": "%dms" % (VISIBILITY_WAIT * 1000)}
        self.output = work + "/out/copy"
        harness.write_json(self.path, document)
        self.counts = collections.Counter()

    def change(self, change, name, *kind):
        self.simulator.post("&".join(
            ["fields?change=%s&field=%s.%s" % (change, ENTITY, name)] + ["type=" + name for name in kind]))

    def compare(self, moment, *excused):
        """Compares every value, except those of the named columns."""
        path = self.work + "/state.ndjson"
        self.simulator.write_state(path)
        comparison = compare_files.Folded(
            self.output, path, [ENTITY], hidden=[(ENTITY, name) for name in excused])
        comparison.check_files()
        if not comparison.run():
            comparison.print_differences()
            sys.exit("%s: the files differ from the org" % moment)
        self.counts["compared"] += 1

    def incomplete(self, moment):
        """The columns that `status` and `verify` name; both have to name the same."""
        report = json.loads(self.call("status", "--json").stdout)
        (copy,) = report["sinks"][0]["snapshots"]
        named = set(copy["newer_columns"]) | set(copy["unread_columns"])
        text = self.call("status").stdout
        for name in named:
            if name not in text or "pubsub-etl snapshot" not in text:
                sys.exit("%s: status does not name %s and the remedy: %s" % (moment, name, text))
        if copy["newer_columns"] and "is not complete" not in text:
            sys.exit("%s: status says that all is well: %s" % (moment, text))
        return named

    def verify(self, moment, *names):
        """Verifies all values; the columns are missing in some records."""
        # Now changes are old enough to be judged.
        self.simulator.advance("%dms" % (VISIBILITY_WAIT * 10000 + 5000))
        self.call("run")
        report = json.loads(self.call("verify", "--full", "--json", codes=(75 if names else 0,)).stdout)
        (table,) = report["tables"]
        if report["verdict"] != ("incomplete" if names else "equal"):
            sys.exit("%s: verify says %s" % (moment, report["verdict"]))
        named = {
            entry["field"] for entry in table["not_comparable"] if "pubsub-etl snapshot" in entry["reason"]}
        if named != set(names):
            sys.exit("%s: verify names %s as not complete" % (moment, named))
        if table["records"]["equal"] == 0 or table["records"]["differing"]:
            sys.exit("%s: verify counts %s" % (moment, table["records"]))
        self.counts["verified"] += 1

    def prove(self):
        self.change("add", "Early__c", "checkbox")
        self.call("run")
        self.compare("a field from before the first run")
        self.verify("a field from before the first run")
        self.change("add", "Late__c", "checkbox")
        self.simulator.publish(20, TOPIC)
        self.call("run")
        self.compare("a later field", "Late__c")
        self.verify("a later field", "Late__c")
        if self.incomplete("a later field") != {"Late__c"}:
            sys.exit("status does not name the later field")
        self.change("hide", "Late__c")
        self.call("snapshot")
        self.change("show", "Late__c")
        self.verify("a field that could not be seen", "Late__c")
        if self.incomplete("a field that could not be seen") != {"Late__c"}:
            sys.exit("status does not name the field that could not be seen")
        self.call("snapshot")
        self.compare("all fields are read")
        self.verify("all fields are read")
        if self.incomplete("all fields are read"):
            sys.exit("status names fields that were read")
        return dict(self.counts)


def main():
    arguments = harness.arguments(seed=1, events=200, existing=50)
    work = arguments.work
    for name in ("state", "out"):
        shutil.rmtree("%s/%s" % (work, name), ignore_errors=True)
    with harness.Simulator(
        arguments.programs, work, "--events", str(arguments.events), "--seed", str(arguments.seed),
        "--topics", TOPIC, "--existing", str(arguments.existing), "--call-limit", "10000000",
        *snapshot_proof.QUIET.split(),
    ) as simulator:
        print(json.dumps(Proof(arguments, work, simulator).prove()), flush=True)


if __name__ == "__main__":
    main()
