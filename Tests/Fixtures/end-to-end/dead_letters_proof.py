"""Dead letters are retried once their cause is gone, each event exactly once.

    dead_letters_proof.py --programs DIR --work DIR [--seed N] [--step N]

Undecodable: the service of other_service.py hands out schemas that cannot be parsed, between others
that can. Runs to files and tables leave their events in the dead letters. When the schemas are healed,
`retry` is killed at one call after another of those that write (every --step-th), and at last completes.
Then the files equal the truth, also in the order that `_epoch` and `_ordinal` and the files' names give,
history and current tables equal it, and a rebuild from the history changes nothing.

Refused: a constraint of the history refuses some events. The letters name the column's constraint and
the SQLSTATE, never the value; `retry` refuses them again while the constraint is there. Without it, they
come into the tables, and nothing comes into the files twice.

Without a file of letters, commands do their work with the others and end with 65, and `run --accept-missing`
counts its letters as dropped. Without a history, records are marked instead. `drop`, `list`, `show` and `export` besides. The views
`_freshness` of files and tables count the letters of each object until they are retried or dropped. Exits 1
when anything differs.
"""

import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys

import compare_files
import harness
import other_service_proof
import postgres
import zstandard

FAULTS = os.path.join(os.path.dirname(harness.HERE), "faults")
TOPICS = ["/data/ContactChangeEvent", "/event/Order_Event__e"]


def lines_of(path):
    with open(path, "rb") as file:
        data = zstandard.ZstdDecompressor().stream_reader(file).read()
    return [json.loads(line) for line in data.splitlines()]


class Pipeline(harness.Exporter):
    def __init__(self, arguments, service, name, sinks, **dead_letter):
        self.arguments, self.service, self.name = arguments, service, name
        self.work = "%s/%s" % (arguments.work, name)
        os.mkdir(self.work)
        super().__init__(arguments.programs + "/pubsub-etl", self.work + "/p.json", service.environment)
        self.output = self.work + "/out"
        document = harness.pipeline(name, TOPICS)
        document["sinks"] = sinks
        document["dead_letter"] = dead_letter
        document["commit"] = {"max_events": 50}
        document["run"]["quiet"] = "2s"
        harness.write_json(self.path, document)

    def start(self, *words, environment=()):
        done = self.call(*words, codes=None, env={**self.environment, **dict(environment)})
        return done.returncode, done.stdout, done.stderr

    def expect(self, code, *words):
        """Standard output and standard error."""
        done = self.call(*words, codes=(code,))
        return done.stdout, done.stderr

    def run(self, code=0):
        return self.expect(code, "run", "--take-over")

    def letters(self, *options):
        return json.loads(self.expect(0, "dead-letters", "list", "--json", *options)[0])

    def expect_counts(self, waiting, retried, dropped=0):
        found = self.letters()
        counts = found["waiting"], found["retried"], found["dropped"]
        if counts != (waiting, retried, dropped):
            self.fail("list counts", counts, "not", (waiting, retried, dropped))
        status = json.loads(self.start("status", "--json")[1])["dead_letters"]
        counts = status["waiting"], status["retried"], status["dropped"]
        if counts != (waiting, retried, dropped):
            self.fail("status counts", counts, "not", (waiting, retried, dropped))

    def lacking(self, url=None):
        """The number of letters of each object, as `_freshness` of the files or of the tables has it."""
        if url is None:
            sql = "SELECT entity, dead_letters, state FROM _freshness"
            rows = compare_files.connection_to(self.output).execute(sql).fetchall()
        else:
            sql = "SELECT entity, dead_letters, state FROM %s._freshness WHERE table_name LIKE '%%_history'"
            rows = [line.split("|") for line in psql(url, sql % self.name).splitlines()]
        for entity, count, state in rows:
            if int(count) > 0 and state != "stale":
                self.fail(entity, "lacks", count, "letters and is", state)
        return {entity: int(count) for entity, count, _ in rows}

    def expect_lacking(self, url, letters):
        """Objects of which nothing was exported have no row."""
        for place in [None] + [url] * (url is not None):
            found = self.lacking(place)
            wanted = {entity: 0 for entity in found}
            for letter in letters:
                entity = letter["topic"].split("/")[-1].replace("ChangeEvent", "")
                if entity in wanted:
                    wanted[entity] += 1
            if found != wanted or not found:
                self.fail("_freshness of the", "tables" if place else "files", "says", found, "not", wanted)

    def compare_tables(self, url, mode="both"):
        sql = "SELECT count(*) FROM %s._etl_resync WHERE kind = 'dead_letter' AND done_at IS NULL"
        if psql(url, sql % self.name) != "0":
            self.fail("dead letters are still noted as open in the database")
        psql(url, "DELETE FROM %s._etl_resync WHERE kind = 'dead_letter'" % self.name)
        command = [sys.executable, harness.HERE + "/compare_postgres.py", "--url", url]
        command += ["--truth", self.service.truth, "--schemas", self.service.schemas]
        command += ["--schema", self.name]
        for topic in TOPICS:
            command += ["--topic", topic]
        done = subprocess.run(command, env=self.service.environment, stdout=subprocess.PIPE)
        if done.returncode:
            self.fail("tables differ from the truth:", done.stdout.decode())
        output = self.expect(0, "refold")[0]
        if not re.search(r"\b0 changed", output) or re.search(r"[1-9]\d* changed", output):
            self.fail("a refold changed rows:", output)

    def fold(self):
        """The current records of the files."""
        connection = compare_files.connection_to(self.output)
        columns = sorted(row[0] for row in connection.execute('DESCRIBE "Contact_now"').fetchall())
        listed = ", ".join('CAST("%s" AS VARCHAR)' % name for name in columns)
        return columns, connection.execute(
            'SELECT %s FROM "Contact_now" ORDER BY _record_id' % listed).fetchall()

    def check_fold(self):
        """It equals the state from files with all events in order."""
        sinks = [{"type": "files", "directory": "out"}]
        other = Pipeline(self.arguments, self.service, self.name + "_reference", sinks)
        other.run()
        columns, rows = self.fold()
        if (columns, rows) != other.fold() or len(rows) < 20:
            self.fail("the view gives another state than with all events in order")

    def check_order(self):
        """The stream of a topic, as the view puts it together from files and lines."""
        with open(self.service.truth, encoding="utf-8") as file:
            numbers = {json.loads(text)["event_id"]: n for n, text in enumerate(file)}
        for topic in TOPICS:
            stream = []
            for path in sorted(glob.glob(self.output + "/**/*.ndjson.zst", recursive=True)):
                name = os.path.basename(path)
                epoch, first = re.search(r"-e[a-r]?(\d+)-(\d+)\.ndjson\.zst$", name).groups()
                for place, line in enumerate(lines_of(path)):
                    if line["_topic"] == topic:
                        own = line.get("_epoch", int(epoch)), line.get("_ordinal", int(first))
                        stream.append((own, first, place, numbers[line["_event_id"]]))
            order = [number for *_, number in sorted(stream)]
            if order != sorted(order):
                self.fail("the lines of", topic, "are out of order")


def psql(url, sql):
    return postgres.run(url, "-c", sql, stdout=subprocess.PIPE).stdout.decode().strip()


class Proof:
    def __init__(self, arguments, cluster):
        self.arguments, self.cluster = arguments, cluster
        self.kills = 0
        self.shim = arguments.work + "/fault_shim.so"
        subprocess.run(
            [shutil.which("cc") or "clang", "-shared", "-fPIC", "-O1", "-o", self.shim,
             FAULTS + "/fault_shim.c", "-ldl"], check=True)

    def service(self, name, *options):
        work = "%s/service-%s" % (self.arguments.work, name)
        os.mkdir(work)
        return other_service_proof.OtherService(
            work, "--calm", "--events", "400", "--seed", str(self.arguments.seed), *options)

    def killed(self, pipeline, kinds, at):
        """Whether the kill at that call happened; false if the command had ended before."""
        fault = {
            "LD_PRELOAD": self.shim, "FAULT_TREE": pipeline.work, "FAULT_KINDS": kinds,
            "FAULT_JOURNAL": self.arguments.work + "/journal", "FAULT_AT": str(at),
            "FAULT_ACTION": "before",
        }
        code, output, errors = pipeline.start("dead-letters", "retry", "--all", environment=fault)
        if code not in (0, -9):
            # Another process's lease, until it has expired, is in the way of nobody but ourselves.
            pipeline.fail("retry ended with", code, output, errors)
        self.kills += code == -9
        return code == -9

    def prove_undecodable(self, name, with_database, kinds):
        with self.service(name, "--spoil") as service:
            sinks = [{"type": "files", "directory": "out"}]
            url = None
            if with_database:
                url = self.cluster.make_database(name)
                sinks.append({"type": "postgres", "url": url, "schema": name})
            pipeline = Pipeline(self.arguments, service, name, sinks, max=1_000_000)
            pipeline.run()
            found = pipeline.letters()
            count = found["waiting"]
            if count < 50 or {letter["kind"] for letter in found["letters"]} != {"undecodable"}:
                pipeline.fail("only", count, "letters, or of another kind")
            pipeline.expect_counts(count, 0)
            pipeline.expect_lacking(url, found["letters"])
            # The cause is still there.
            _, errors = pipeline.expect(65, "dead-letters", "retry", "--all")
            if "%d letters cannot be decoded. If this stays so, drop each" % count not in errors:
                pipeline.fail("retry says", errors[-1000:])
            pipeline.expect_counts(count, 0)
            with open(service.truth.replace("truth.ndjson", "healed"), "w", encoding="utf-8"):
                pass
            before = harness.Inventory(pipeline.output)
            before.check("before")
            # Some alone, whose files then stand beside those of the others.
            some = [letter["id"] for letter in found["letters"][3:60:7]]
            pipeline.expect(0, "dead-letters", "retry", *some)
            pipeline.expect_counts(count - len(some), len(some))
            pipeline.expect_lacking(url, [letter for letter in found["letters"] if letter["id"] not in some])
            pipeline.expect(64, "dead-letters", "retry", some[0])
            before.check("some")
            at = 1
            while self.killed(pipeline, kinds, at):
                before.check("kill at %d" % at)
                at += self.arguments.step
            pipeline.expect(0, "dead-letters", "retry", "--all")
            _, output, _ = pipeline.start("status")
            if "killed:" in output:
                pipeline.fail("status takes the retry for a run that was killed:", output)
            pipeline.expect_counts(0, count)
            before.check("the whole retry")
            before.check_manifest()
            self.prove_lost_ledger(pipeline)
            pipeline.run()
            pipeline.expect_lacking(url, [])
            pipeline.expect(0, "status", "--verify")
            harness.compare(service, pipeline.output, TOPICS)
            pipeline.check_order()
            pipeline.check_fold()
            if with_database:
                pipeline.compare_tables(url)
            return count

    def prove_lost_ledger(self, pipeline):
        """Without the ledger nothing is retried a second time, whatever letters are chosen."""
        [ledger] = glob.glob(pipeline.work + "/**/_ledger-*.ndjson", recursive=True)
        os.rename(ledger, ledger + ".away")
        letters = pipeline.letters()["letters"]
        files = harness.Inventory(pipeline.output)
        files.check("before the ledger was lost")
        for choice in (["--all"], [letters[1]["id"]]):
            _, errors = pipeline.expect(65, "dead-letters", "retry", *choice)
            if "is missing or incomplete" not in errors:
                pipeline.fail("retry without a ledger says", errors)
        files.check("without the ledger")
        os.rename(ledger + ".away", ledger)

    def prove_refused(self):
        name = "refused"
        with self.service(name) as service:
            url = self.cluster.make_database(name)
            sinks = [
                {"type": "files", "directory": "out"},
                {"type": "postgres", "name": "warehouse", "url": url, "schema": name},
            ]
            pipeline = Pipeline(self.arguments, service, name, sinks, max=1_000_000)
            # The tables are made by the first events.
            pipeline.expect(0, "run", "--take-over", "--max-events", "20")
            psql(url, "ALTER TABLE refused.contact_history ADD CONSTRAINT odd "
                 "CHECK (_ordinal % 3 <> 1) NOT VALID")
            pipeline.run()
            letters = pipeline.letters("--entity", "Contact")["letters"]
            if not letters or pipeline.letters("--entity", "Account")["letters"]:
                pipeline.fail("no letters of Contact, or some of Account")
            for letter in letters:
                said = letter["kind"], letter["sink"], letter["sqlstate"]
                if said != ("refused", "warehouse", "23514"):
                    pipeline.fail("the letter says", letter)
                if "refused by the database" not in letter["reason"] or "odd" not in letter["reason"]:
                    pipeline.fail("the reason is", letter["reason"])
            harness.compare(service, pipeline.output, TOPICS)
            pipeline.expect(65, "dead-letters", "retry", "--all")
            pipeline.expect_counts(len(letters), 0)
            psql(url, "ALTER TABLE refused.contact_history DROP CONSTRAINT odd")
            files = harness.Inventory(pipeline.output)
            files.check("before")
            count = len(files.files)
            at = 1
            while self.killed(pipeline, "NWSR", at):
                at += self.arguments.step
            pipeline.expect(0, "dead-letters", "retry", "--all")
            pipeline.expect_counts(0, len(letters))
            files.check("after")
            if len(files.files) != count:
                pipeline.fail("events that only the database refused came into the files again")
            pipeline.compare_tables(url)
            return len(letters)

    def prove_without_history(self):
        name = "plain"
        with self.service(name, "--spoil") as service:
            url = self.cluster.make_database(name)
            sinks = [{"type": "postgres", "url": url, "schema": name, "mode": "current"}]
            document = Pipeline(self.arguments, service, name, sinks, max=1_000_000)
            pipeline = harness.read_json(document.path)
            pipeline["source"]["topic"] = TOPICS[:1]
            harness.write_json(document.path, pipeline)
            document.run()
            count = document.letters()["waiting"]
            with open(service.truth.replace("truth.ndjson", "healed"), "w", encoding="utf-8"):
                pass
            output, _ = document.expect(0, "dead-letters", "retry", "--all")
            if "repair" not in output:
                document.fail("retry does not say that records are to be repaired:", output)
            document.expect_counts(0, count)
            sql = """SELECT count(*) FROM plain._etl_resync AS r WHERE kind = 'dead_letter' AND record_id
                IS NOT NULL AND record_id !~ '^0{15}AAA$|[*]$' AND NOT EXISTS (SELECT FROM plain.contact AS c WHERE c.id = r.record_id
                AND (c._stale OR c._deleted_at IS NOT NULL))"""
            if psql(url, sql) != "0":
                document.fail("records of letters are neither marked nor deleted")
            sql = "SELECT count(*) FROM plain._etl_resync WHERE record_id IS NULL AND done_at IS NULL"
            if psql(url, sql) != "0":
                document.fail("letters without known records are still open")
            return count

    def prove_drop(self):
        """A drop needs the database, and is repeated after a failure."""
        name = "dropped"
        with self.service(name, "--spoil") as service:
            url = self.cluster.make_database(name)
            sinks = [
                {"type": "files", "directory": "out"},
                {"type": "postgres", "url": "${DATABASE_URL}", "schema": name},
            ]
            pipeline = Pipeline(self.arguments, service, name, sinks, max=1_000_000)
            service.environment["DATABASE_URL"] = url
            pipeline.run()
            letters = pipeline.letters()["letters"]
            pipeline.expect_lacking(url, letters)
            command = ["dead-letters", "drop", "--all", "--yes"]
            for code, other in (69, "postgresql://localhost:1/none"), (77, url.replace("postgres@", "nobody@")):
                got, output, errors = pipeline.start(*command, environment={"DATABASE_URL": other})
                if got != code:
                    pipeline.fail("drop without the database ended with", got, output, errors)
                pipeline.expect_counts(len(letters), 0)
            pipeline.expect(0, "dead-letters", "drop", letters[0]["id"], "--yes")
            pipeline.run()
            pipeline.expect_lacking(url, letters[1:])
            pipeline.expect(0, *command)
            pipeline.run()
            pipeline.expect_lacking(url, [])
            return len(letters)

    def prove_lost(self):
        """Without a file of letters, commands do the rest and end with 65; a loss that is accepted is a drop."""
        name = "lost"
        with self.service(name, "--spoil") as service:
            url = self.cluster.make_database(name)
            sinks = [
                {"type": "files", "directory": "out"},
                {"type": "postgres", "url": url, "schema": name},
            ]
            pipeline = Pipeline(self.arguments, service, name, sinks, max=1_000_000)
            pipeline.run()
            letters = pipeline.letters()["letters"]
            pipeline.expect_lacking(url, letters)
            path = sorted(glob.glob(pipeline.work + "/**/*.dead.ndjson.zst", recursive=True))[0]
            places = {(line["topic"], line["epoch"], line["ordinal"]) for line in lines_of(path)}
            left = [each for each in letters if (each["topic"], each["epoch"], each["ordinal"]) not in places]
            if not left or len(left) == len(letters):
                pipeline.fail("the file has", len(places), "of", len(letters), "letters")
            with open(path, "rb") as file:
                content = file.read()
            for damage in (None, content[:-1], bytes([content[0] ^ 1]) + content[1:]):
                if damage is None:
                    os.remove(path)
                else:
                    with open(path, "wb") as file:
                        file.write(damage)
                self.check_lost(pipeline, path, left)
            os.remove(path)
            pipeline.run(65)
            pipeline.expect(0, "run", "--take-over", "--accept-missing")
            pipeline.expect_counts(len(left), 0, len(places))
            pipeline.expect_lacking(url, left)
            with open(path, "wb") as file:
                file.write(content)
            pipeline.expect_counts(len(letters), 0)
            return len(places)

    def check_lost(self, pipeline, path, left):
        for words in (["list", "--json"], ["export"], ["drop", "nobody-e1-1", "--yes"], ["retry", "--all"]):
            output, errors = pipeline.expect(65, "dead-letters", *words)
            if path not in errors or "put back a copy of the file; or give up the letters" not in errors:
                pipeline.fail(words, "says", errors)
            if words[0] == "list" and json.loads(output)["waiting"] != len(left):
                pipeline.fail("list has", output)
            if words[0] == "export" and len(output.splitlines()) != len(left):
                pipeline.fail("export has", len(output.splitlines()), "lines")

    def prove_lock(self, pipeline, letter):
        """During a run, letters can be listed but neither retried nor dropped."""
        command = [self.arguments.programs + "/pubsub-etl", "run", pipeline.path, "--follow"]
        run = subprocess.Popen(
            command, env=pipeline.service.environment, stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL)
        # From then on it has the lock.
        while b"subscribed" not in run.stderr.readline():
            if run.poll() is not None:
                pipeline.fail("the run that follows has ended with", run.returncode)
        pipeline.expect(75, "dead-letters", "retry", letter)
        pipeline.expect(75, "dead-letters", "drop", letter, "--yes")
        pipeline.expect(0, "dead-letters", "export")
        pipeline.expect(0, "dead-letters", "list")
        run.send_signal(signal.SIGTERM)
        run.communicate(timeout=60)

    def prove_rest(self):
        """Drop, show, export, a ratio, and letters without payload."""
        name = "rest"
        with self.service(name, "--spoil") as service:
            sinks = [{"type": "files", "directory": "out"}]
            pipeline = Pipeline(self.arguments, service, name, sinks, max=1_000_000)
            pipeline.run()
            letters = pipeline.letters()["letters"]
            first = letters[0]["id"]
            pipeline.expect(64, "dead-letters", "drop", first)
            pipeline.expect(64, "dead-letters", "drop", "nobody-e1-1", "--yes")
            pipeline.expect(0, "dead-letters", "drop", first, "--yes")
            pipeline.expect_counts(len(letters) - 1, 0, 1)
            pipeline.expect(64, "dead-letters", "retry", first)
            shown = json.loads(pipeline.expect(0, "dead-letters", "show", first)[0])
            if shown["state"] != "dropped" or "payload" in shown:
                pipeline.fail("show says", shown)
            with open(pipeline.work + "/state/rest.journal.ndjson", encoding="utf-8") as file:
                if json.loads(file.readlines()[-1])["old"] != [first]:
                    pipeline.fail("the journal does not name what was dropped")
            exported = pipeline.expect(0, "dead-letters", "export")[0].splitlines()
            if len(exported) != len(letters) - 1 or not json.loads(exported[0])["payload"]:
                pipeline.fail("export wrote", len(exported), "lines")
            for option in (["--since", "1h"], ["--since", "2026-01-01"], ["--reason", "undecodable"]):
                if len(pipeline.letters(*option)["letters"]) != len(letters) - 1:
                    pipeline.fail("list with", option, "does not list all")
            for option in (["--since", "2100-01-01"], ["--reason", "refused"], ["--entity", "Nobody"]):
                for words in (["list", "--json"], ["export"]):
                    output, errors = pipeline.expect(0, "dead-letters", *words, *option)
                    if '"id"' in output or "of the kinds undecodable, the newest of 20" not in errors:
                        pipeline.fail(words, option, "found letters, or does not say which there are:", errors)
            self.prove_lock(pipeline, letters[1]["id"])
            pipeline.expect(65, "dead-letters", "retry", "--all", "--dry-run")
            with open(service.truth.replace("truth.ndjson", "healed"), "w", encoding="utf-8"):
                pass
            pipeline.expect(0, "dead-letters", "retry", "--all", "--dry-run")
            pipeline.expect_counts(len(letters) - 1, 0, 1)
            second = letters[1]["id"]
            output = pipeline.expect(0, "dead-letters", "show", second, "--payload")[0]
            if '"_ordinal":%d' % letters[1]["ordinal"] not in output.splitlines()[-1]:
                pipeline.fail("show --payload says", output)
        with self.service(name + "2", "--spoil") as service:
            few = Pipeline(self.arguments, service, "few", sinks, max_ratio=0.01, payload="none")
            _, errors = few.run(65)
            if "max_ratio" not in errors:
                few.fail("a run with too many dead letters says", errors)
            letters = few.letters()["letters"]
            if not letters or any(letter["payload_bytes"] is not None for letter in letters):
                few.fail("letters keep payloads that they were not to keep")
            with open(service.truth.replace("truth.ndjson", "healed"), "w", encoding="utf-8"):
                pass
            few.expect(65, "dead-letters", "retry", "--all")
            _, errors = few.expect(65, "dead-letters", "show", letters[0]["id"], "--payload")
            if "has no payload to show" not in errors:
                few.fail("show --payload says", errors)


def main():
    arguments = harness.arguments(seed=1, step=1, only=None)
    counts = {}
    with postgres.Cluster() as cluster:
        proof = Proof(arguments, cluster)
        scenarios = {
            "files": lambda: proof.prove_undecodable("files", False, "WSRUT"),
            "all": lambda: proof.prove_undecodable("everywhere", True, "NWSR"),
            "refused": proof.prove_refused,
            "plain": proof.prove_without_history,
            "dropped": proof.prove_drop,
            "lost": proof.prove_lost,
            "rest": proof.prove_rest,
        }
        for name, prove in scenarios.items():
            if arguments.only in (None, name):
                counts[name] = prove()
                print(name, counts[name], flush=True)
    print(json.dumps({"letters": counts, "kills": proof.kills}))


if __name__ == "__main__":
    main()
