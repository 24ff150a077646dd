"""Fields that the org classifies are masked, also one that is added and classified during a run.

    classification_proof.py --programs DIR --work DIR

In mid-stream: a run takes events of the old schema; then a field is classified, added, and has values, while the run
goes on. In copies: the steps of mask_proof.py (snapshot, repair, tables, sealed letters, verify) with a mask by
classification. None of the classified values is in a file, table, log, report or letter. A run whose user may not
read the classification, or whose mask names a classification that no field has, exports nothing; `plan`, `check` and
`permissions` say what is masked and what that needs. Prints one JSON line; exits 1 at the first difference.
"""

import json
import os
import subprocess
import sys

import harness
import mask_proof
import postgres
import zstandard

TOPIC = mask_proof.TOPIC
ORDERS = "/event/Order_Event__e"
CLASSIFIED = {
    "Email": "PII;GDPR/Confidential", "Name": "PII", "MailingAddress": "GDPR", "Description": "/Restricted",
    "Phone": "PII/Internal", "MobilePhone": "PII", "HomePhone": "PII", "OtherPhone": "PII", "AssistantPhone": "PII",
    "Fax": "PII", "AssistantName": "/Confidential", "Title": "/Public",
}
MASK = {
    "type": "mask", "classified": {"compliance": ["PII", "GDPR"], "sensitivity": ["Confidential", "Restricted"]},
    "with": "redact",
}
FLATTEN = {"type": "flatten", "naming": "path"}
OPTIONS = [option for name, value in CLASSIFIED.items() for option in ("--classify", "Contact.%s=%s" % (name, value))]
RIGHT = ["--user-permission", "ViewSetup"]


def fail(*words):
    sys.exit("not so: " + " ".join(str(word) for word in words))


class CopiesProof(mask_proof.Proof):
    def check_values(self):
        redacted = 0
        for line in mask_proof.lines_of(self.work + "/out/masked"):
            for name, value in line.items():
                if mask_proof.MASKED.fullmatch(name) and value not in (None, "***"):
                    fail("column", name, "of a line holds", value)
                redacted += value == "***"
        if redacted < 1000:
            fail("only", redacted, "values are redacted")
        return redacted


class StreamProof:
    def __init__(self, arguments):
        self.programs = arguments.programs
        self.work = arguments.work + "/stream"
        self.masked = self.work + "/masked"
        os.makedirs(self.masked, exist_ok=True)

    def call(self, simulator, words, code=0):
        done = subprocess.run(
            [self.programs + "/pubsub-etl", *words], env=simulator.environment, capture_output=True, timeout=300,
            stdin=subprocess.DEVNULL)
        if done.returncode != code:
            fail(words, "ended with", done.returncode, done.stdout[-2000:], done.stderr[-3000:])
        return done.stdout.decode() + done.stderr.decode()

    def write(self, name, stages, **more):
        document = harness.pipeline(name, [TOPIC, ORDERS])
        document["stages"] = stages
        document["dead_letter"] = {"payload": "none"}
        document.update(more)
        path = self.masked + "/%s.json" % name
        harness.write_json(path, document)
        return path

    def wait_for(self, simulator, count, run):
        harness.eventually(
            lambda: simulator.get("delivered")["total"] >= count, "the run takes %d events" % count, process=run)

    def prove(self):
        with harness.Simulator(
            self.programs, self.work, "--topics", TOPIC, ORDERS, "--events", "0", "--seed", "6", "--exotic", "0",
            "--extremes", "0", *OPTIONS, *RIGHT,
        ) as simulator:
            simulator.publish(200)
            path = self.write("stream", [FLATTEN, MASK], run={"until": {"events": 1000}, "quiet": "1s"})
            log, report = self.masked + "/log", self.masked + "/report.json"
            with open(log, "wb") as file:
                run = subprocess.Popen(
                    [self.programs + "/pubsub-etl", "run", path, "--log-level", "debug", "--report", report],
                    env=simulator.environment, stderr=file, stdin=subprocess.DEVNULL)
                self.wait_for(simulator, 200, run)
                simulator.post("classify?field=Contact.Segment__c&compliance=PII")
                simulator.post("classify?field=Order_Event__e.Note__c&sensitivity=Restricted")
                simulator.post("schemas")
                simulator.publish(800)
                if run.wait(120) != 0:
                    with open(log, encoding="utf-8") as text:
                        fail("the run ended with", run.returncode, text.read()[-3000:])
            shown = self.call(simulator, ["plan", path])
            self.refused(simulator, path)
            # The values, from a second pipeline without masks.
            plain = harness.pipeline("plain", [TOPIC, ORDERS])
            harness.write_json(self.work + "/plain.json", plain)
            self.call(simulator, ["run", self.work + "/plain.json"])
        for line in (
            "-- mask: Contact.Email: redact by stages[1], classified compliance PII, compliance GDPR, sensitivity",
            "-- mask: Contact.Name_LastName: redact by stages[1], classified compliance PII",
            "-- mask: Contact.Segment__c: redact by stages[1], classified compliance PII",
            "-- mask: Order_Event__e.Note__c: redact by stages[1], classified sensitivity Restricted",
        ):
            if line not in shown:
                fail("plan does not say", line, "but", shown)
        if "Contact.Title" in shown:
            fail("plan masks a field of another level", shown)
        return self.compare(shown)

    def refused(self, simulator, path):
        shown = self.call(simulator, ["check", path])
        if "redact what the org classifies as compliance PII, GDPR; sensitivity Confidential, Restricted" not in shown:
            fail("check says", shown)
        if "columns: every name was found" not in self.call(simulator, ["check", "--connect", path]):
            fail("check --connect does not name the columns")
        self.call(simulator, ["permissions", path, "--output", self.masked + "/salesforce"])
        permissions = "".join(
            open(os.path.join(directory, name), encoding="utf-8").read()
            for directory, _, names in os.walk(self.masked + "/salesforce") for name in names)
        if "<name>ViewSetup</name>" not in permissions:
            fail("the permission set lacks ViewSetup", permissions)
        typo = self.write(
            "typo", [FLATTEN, dict(MASK, classified={"sensitivity": ["Confidental"]})])
        said = self.call(simulator, ["run", typo], code=78)
        if "sensitivity 'Confidental' (nearest: Confidential)" not in said or os.path.exists(self.masked + "/out/typo"):
            fail("a misspelt level: the run says", said)

    def compare(self, shown):
        masked = {tuple(line.split(": ")[1].split(".")) for line in shown.splitlines() if line.startswith("-- mask: ")}
        added = {("Contact", "Segment__c"), ("Order_Event__e", "Note__c")}
        lines = {}
        for line in mask_proof.lines_of(self.masked + "/out/stream"):
            lines[line["_event_id"], line.get("_record_id")] = line
        values, new, others, counts = set(), set(), set(), dict.fromkeys(added, 0)
        for line in mask_proof.lines_of(self.work + "/out/plain"):
            found = lines[line["_event_id"], line.get("_record_id")]
            for name, value in line.items():
                column = (line["_entity"], name)
                if column not in masked:
                    others.add(str(value))
                    continue
                if value is not None and found[name] != "***":
                    fail("column", column, "of a line holds", found[name])
                if column in counts:
                    counts[column] += value is not None
                if isinstance(value, str) and len(value) >= mask_proof.SHORTEST:
                    values.add(value)
                    if column in added:
                        new.add(value)
        # What is in a column that stays says nothing.
        rest = "\n".join(others)
        values, new = ({value for value in part if value not in rest} for part in (values, new))
        if len(values) < 100 or len(new) < 10 or min(counts.values()) < 10:
            fail("only", len(values), "values to look for,", len(new), "of new fields,", counts)
        outputs = 0
        for directory, _, files in os.walk(self.masked):
            for name in files:
                with open(os.path.join(directory, name), "rb") as file:
                    content = file.read()
                if ".zst" in name:
                    content = zstandard.ZstdDecompressor().stream_reader(content).read()
                outputs += 1
                for value in values:
                    if value.encode() in content or json.dumps(value)[1:-1].encode() in content:
                        fail(os.path.join(directory, name), "holds", value)
        return {"lines": len(lines), "values": len(values), "new": len(new), "outputs": outputs}


def prove_right(arguments):
    """Without the right to read the classification nothing is exported."""
    proof = StreamProof(arguments)
    with harness.Simulator(
        arguments.programs, proof.work, "--topics", TOPIC, ORDERS, "--events", "20", *OPTIONS
    ) as simulator:
        path = proof.write("right", [FLATTEN, MASK])
        said = proof.call(simulator, ["run", path], code=77)
        if "View Setup and Configuration" not in said or os.path.exists(proof.masked + "/out/right"):
            fail("without the right the run says", said)
        if simulator.get("delivered")["total"]:
            fail("events were delivered to a run that may not export them")


def main():
    arguments = harness.arguments()
    found = {"stream": StreamProof(arguments).prove()}
    prove_right(arguments)
    mask_proof.STAGES = [FLATTEN, MASK]
    with postgres.Cluster() as cluster:
        url = cluster.make_database("classified")
        with harness.Simulator(
            arguments.programs, arguments.work, "--topics", TOPIC, "--existing", "100", "--events", "600",
            "--seed", "5", "--gaps", "0.03", "--visibility-delay", "100", "--exotic", "0", "--extremes", "0",
            *OPTIONS, *RIGHT,
        ) as simulator:
            found["copies"] = CopiesProof(arguments, simulator, url).prove()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
