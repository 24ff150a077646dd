"""Values that the stage mask hides stay hidden, whatever their source and destination.

    mask_proof.py --programs DIR --work DIR

An org with contacts from before, events and gap events is exported twice: once as it is, which gives the values
to look for, and once with masks into files and tables, at level debug. A constraint of the database refuses some
rows, whose values PostgreSQL repeats in its errors; their letters are sealed. None of the values is in a file
below the directory of the masked pipeline (compressed or not), in a table, a log, a report, or in what the
commands print. Hashes are those of the values, `verify --full` finds the masked tables equal, letters cannot be
opened with another key, and are retried with their own, or with it as an old one. Prints one JSON line; exits 1
at the first difference.
"""

import glob
import hashlib
import hmac
import json
import os
import re
import subprocess
import sys

import harness
import postgres
import zstandard

TOPIC = "/data/ContactChangeEvent"
KEY, OLD, OTHER = "k" * 32, "ab" * 32, "cd" * 32
SHORTEST = 9
STAGES = [
    {"type": "flatten", "naming": "path"},
    {"type": "mask", "columns": ["Email"], "with": "hash", "key": "${MASK_KEY}"},
    {"type": "mask", "columns": ["*Phone", "Fax", "Name*"], "with": "redact"},
    {"type": "mask", "columns": ["MailingAddress_*", "Description"], "with": "drop"},
    {"type": "mask", "columns": ["Birthdate"], "with": "year"},
    {"type": "mask", "columns": ["AssistantName"], "with": "truncate", "length": 2},
]
MASKED = re.compile(r"Email|\w*Phone|Fax|Name(_\w+)?|MailingAddress_\w+|Description|AssistantName")


def lines_of(directory):
    for path in glob.glob(directory + "/**/*.ndjson.zst*", recursive=True):
        with open(path, "rb") as file:
            data = zstandard.ZstdDecompressor().stream_reader(file).read()
        for line in data.splitlines():
            yield json.loads(line)


class Proof:
    def __init__(self, arguments, simulator, url):
        self.arguments, self.simulator, self.url = arguments, simulator, url
        self.environment = dict(
            simulator.environment, DATABASE_URL=url, MASK_KEY=KEY, LETTER_KEY=OLD)
        self.texts = []  # (where, bytes)
        self.work = arguments.work + "/masked"
        os.makedirs(self.work, exist_ok=True)

    def fail(self, *words):
        sys.exit("not so: " + " ".join(str(word) for word in words))

    def write(self):
        plain = harness.pipeline("plain", [TOPIC])
        masked = harness.pipeline("masked", [TOPIC])
        for document in (plain, masked):
            document["source"]["snapshot"] = {"mode": "initial", "visibility_wait": "1s"}
            document["repair"] = {"mode": "auto"}
        masked["stages"] = STAGES
        masked["dead_letter"] = {"max": 100000, "payload": "sealed", "key": "${LETTER_KEY}"}
        masked["sinks"].append({"type": "postgres", "name": "db", "url": "${DATABASE_URL}"})
        self.plain, self.path = self.arguments.work + "/plain.json", self.work + "/masked.json"
        harness.write_json(self.plain, plain)
        harness.write_json(self.path, masked)
        self.document = masked

    def call(self, words, path=None, codes=(0,), search=True, **environment):
        place = 2 if words[0] == "dead-letters" else 1
        command = [self.arguments.programs + "/pubsub-etl", *words[:place], path or self.path, *words[place:]]
        done = subprocess.run(
            command, env=dict(self.environment, **environment), capture_output=True, timeout=300,
            stdin=subprocess.DEVNULL)
        if done.returncode not in codes:
            self.fail(words, "ended with", done.returncode, done.stdout[-2000:], done.stderr[-4000:])
        if search:
            self.texts += [("%s, output" % (words,), done.stdout), ("%s, log" % (words,), done.stderr)]
        return done

    def run(self, codes=(0, 75)):
        self.call(["run"], self.plain, search=False, codes=codes)
        report = self.work + "/report.json"
        self.call(["run", "--log-level", "debug", "--log-format", "json", "--report", report], codes=codes)

    def prove(self):
        self.write()
        self.run()
        self.run()
        constraint = "ALTER TABLE salesforce.contact_history "
        postgres.query(
            self.url, constraint + "ADD CONSTRAINT odd CHECK (_ordinal % 3 <> 1 OR _change_type = 'SNAPSHOT') NOT VALID")
        self.simulator.publish(300)
        self.run()
        listed = json.loads(self.call(["dead-letters", "list", "--json"]).stdout)
        if listed["waiting"] < 20:
            self.fail("only", listed["waiting"], "letters")
        letter = listed["letters"][0]
        if not letter["payload_bytes"] or "payload" in letter or "sealed" in letter:
            self.fail("the list says", letter)
        for words in (
            ["check", "--connect"], ["plan"], ["status"], ["status", "--json"], ["dead-letters", "list"],
            ["dead-letters", "show", letter["id"]], ["dead-letters", "show", letter["id"], "--payload"],
        ):
            self.call(words, codes=(0, 65))
        self.prove_keys(letter)
        self.search()
        postgres.query(self.url, constraint + "DROP CONSTRAINT odd")
        self.retry(listed["waiting"])
        self.run()
        self.verify()
        hashes = self.check_values()
        found = self.search()
        return {"letters": listed["waiting"], "hashes": hashes, **found}

    def verify(self):
        """Tables only; gap events leave differences in files that only a snapshot repairs."""
        said = json.loads(self.call(["verify", "--full", "--json"], codes=(0, 65)).stdout)
        [tables] = [copy for part in said.values() if isinstance(part, list) for copy in part
                    if isinstance(copy, dict) and copy.get("sink") == "db"]
        if not tables["equal"] or tables["records"]["compared"] < 50:
            self.fail("verify says", tables)

    def prove_keys(self, letter):
        """Another key opens nothing, and the message names the required one."""
        for words in (["dead-letters", "export"], ["dead-letters", "retry", letter["id"]],
                      ["dead-letters", "show", letter["id"], "--payload"]):
            said = self.call(words, codes=(65,), LETTER_KEY=OTHER).stderr.decode()
            if letter["key_id"] not in said or "old_keys" not in said:
                self.fail(words, "with another key says", said)
        exported = self.call(["dead-letters", "export"], search=False).stdout.splitlines()
        if not all(json.loads(line)["payload"] for line in exported):
            self.fail("export does not open the letters")

    def retry(self, count):
        """With the key as an old one."""
        self.document["dead_letter"].update({"key": "${NEW_KEY}", "old_keys": ["${LETTER_KEY}"]})
        harness.write_json(self.path, self.document)
        self.environment["NEW_KEY"] = OTHER
        self.call(["dead-letters", "retry", "--all"])
        listed = json.loads(self.call(["dead-letters", "list", "--json"]).stdout)
        if (listed["waiting"], listed["retried"]) != (0, count):
            self.fail("after the retry", listed["waiting"], listed["retried"])

    def values(self):
        """Texts of masked fields that are nowhere else."""
        masked, others = set(), set()
        for line in lines_of(self.arguments.work + "/out/plain"):
            for name, value in line.items():
                if not isinstance(value, str) or name in line.get("_diff_fields", ()):
                    continue
                if MASKED.fullmatch(name):
                    masked |= {part for part in re.split(r"[\r\n]+", value[:60]) if len(part) >= SHORTEST}
                else:
                    others.add(value)
        rest = "\n".join(others)
        found = {value for value in masked if value not in rest}
        if len(found) < 200:
            self.fail("only", len(found), "values to look for")
        return found

    def check_values(self):
        emails = {line["Email"] for line in lines_of(self.arguments.work + "/out/plain") if line.get("Email")}
        known = {hmac.new(KEY.encode(), value.encode(), hashlib.sha256).hexdigest() for value in emails}
        hashes = set()
        for line in lines_of(self.work + "/out/masked"):
            if line.get("Email"):
                hashes.add(line["Email"])
            if not 1000 < (line.get("Birthdate") or 2000) < 9999 or len(line.get("AssistantName") or "") > 2:
                self.fail("a line has", line.get("Birthdate"), line.get("AssistantName"))
            if "Description" in line or line.get("Phone", "***") not in (None, "***"):
                self.fail("a line has a description, or a phone number", line.get("Phone"))
        if not hashes <= known or len(hashes) < 50:
            self.fail(len(hashes), "hashes, of which", len(hashes - known), "are of no value")
        [[kind]] = postgres.query(
            self.url, "SELECT string_agg(column_name || ' ' || data_type, ', ' ORDER BY column_name) FROM"
            " information_schema.columns WHERE table_schema = 'salesforce' AND table_name = 'contact'"
            " AND column_name IN ('birthdate', 'email', 'phone', 'description')")
        if kind != "birthdate integer, email text, phone text":
            self.fail("the columns are", kind)
        return len(hashes)

    def outputs(self):
        yield from self.texts
        for directory, _, names in os.walk(self.work):
            for name in names:
                path = os.path.join(directory, name)
                with open(path, "rb") as file:
                    yield path, file.read()
                if ".zst" in name:
                    with open(path, "rb") as file:
                        yield path, zstandard.ZstdDecompressor().stream_reader(file).read()
        tables = postgres.query(
            self.url, "SELECT table_schema, table_name FROM information_schema.tables WHERE table_schema NOT IN"
            " ('pg_catalog', 'information_schema')")
        for schema, table in tables:
            rows = postgres.query(self.url, 'SELECT t::text FROM "%s"."%s" AS t' % (schema, table))
            yield table, "\n".join(str(row[0]) for row in rows).encode()

    def search(self):
        # One pattern, which is a hundred times as fast as one search per value.
        values = self.values()
        forms = values | {json.dumps(value)[1:-1] for value in values}
        pattern = re.compile(b"|".join(re.escape(form.encode()) for form in sorted(forms)))
        count = 0
        for where, content in self.outputs():
            count += 1
            found = pattern.search(content)
            if found:
                self.fail(where, "holds", found.group(), "in", content[max(0, found.start() - 80):found.end()])
        for where, content in self.texts:
            if any(key.encode() in content for key in (KEY, OLD, OTHER)):
                self.fail(where, "holds a key")
        return {"values": len(values), "outputs": count}


def main():
    arguments = harness.arguments()
    with postgres.Cluster() as cluster:
        url = cluster.make_database("masked")
        with harness.Simulator(
            arguments.programs, arguments.work, "--topics", TOPIC, "--existing", "100", "--events", "600",
            "--seed", "5", "--gaps", "0.03", "--visibility-delay", "100", "--exotic", "0", "--extremes", "0",
        ) as simulator:
            print(json.dumps(Proof(arguments, simulator, url).prove()))


if __name__ == "__main__":
    main()
