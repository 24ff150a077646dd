"""The commands beside `run` on pipelines that write to PostgreSQL: plan, refold, status, checkpoint.

    commands_proof.py --programs DIR --work DIR [--events N] [--seed S]

A database is made by what `plan` prints, as a role that owns its schema, and has nothing missing before
and after a run that must not change tables; rows that are damaged by hand are rebuilt by `refold`, which
changes nothing else; positions are shown, set in checkpoint and database together, and the topics read
again without a row twice; a lost checkpoint is made again beside a database that has its own. Prints
one JSON line; exits 1 at the first difference.
"""

import json
import os
import shutil
import subprocess
import sys

import harness
import postgres

TOPICS = ["/data/OpportunityChangeEvent", "/event/Order_Event__e"]
# All of a row that a rebuilt one must have as well.
ROWS = "SELECT md5(string_agg((to_jsonb(o) - '_updated_at')::text, ',' ORDER BY id)) FROM salesforce.opportunity AS o"
COUNTS = "SELECT count(*), count(DISTINCT (_event_id, _record_id)), max(_epoch) FROM salesforce.opportunity_history"


class Commands:
    def __init__(self, programs, file, environment):
        self.program = programs + "/pubsub-etl"
        self.file = file
        self.environment = environment

    def __call__(self, *words, code=0, file=None, url=None):
        """Standard output and standard error of a command. `url` is another database."""
        environment = dict(self.environment, **({"DATABASE_URL": url} if url else {}))
        leading = 2 if words[0] == "checkpoint" else 1
        command = [self.program, *words[:leading], file or self.file, *words[leading:]]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode != code:
            sys.exit("%s: exit code %d, not %d: %s" % (words, done.returncode, code, done.stderr))
        return done.stdout, done.stderr


def require(condition, what):
    if not condition:
        sys.exit("not so: %s" % (what,))


def main():
    arguments = harness.arguments(events=4000, seed=1)
    work = arguments.work
    with harness.Simulator(
        arguments.programs, work, "--events", str(arguments.events), "--seed", str(arguments.seed),
        "--gaps", "0.02", "--keepalive-interval", "5",
    ) as simulator, postgres.Cluster() as cluster:
        environment = dict(simulator.environment)
        environment["DATABASE_URL"] = cluster.url("warehouse", user=postgres.ROLE)
        url = cluster.make_database("warehouse")
        sink = {"type": "postgres", "name": "warehouse", "url": "${DATABASE_URL}", "contract": "freeze"}
        document = harness.pipeline("opps", TOPICS)
        document["sinks"] = [sink]
        harness.write_json(work + "/opps.json", document)
        document["name"] = "both"
        document["sinks"] = [{"type": "files", "directory": "out/both"}, dict(sink, schema="beside")]
        document["sinks"][1]["contract"] = "evolve"
        harness.write_json(work + "/both.json", document)
        call = Commands(arguments.programs, work + "/opps.json", environment)
        plan(call, url, environment["DATABASE_URL"])
        result = {"refolded": refold(call, url)}
        status(call, url)
        result["rows"] = positions(call, url)
        restore(call, url, work)
    print(json.dumps(result))


def plan(call, url, owner_url):
    text, consequences = call("plan")
    require("would end with 65" in consequences, "freeze is told")
    require(postgres.query(url, "SELECT to_regnamespace('salesforce')") == [[""]], "plan makes nothing")
    call("run", code=65)
    # As its owner, in one go. The run has made its own tables, and no more.
    text, _ = call("plan")
    require("CREATE SCHEMA" not in text and "CREATE TABLE" in text, "plan is what is missing")
    postgres.run(owner_url, "-1", "-f", "-", input=text.encode())
    for moment in ("before", "after"):
        text, consequences = call("plan")
        require(text == "-- sink 'warehouse': nothing is missing\n", moment)
        # Events of the schema before this field have filled rows without it.
        said = [line for line in consequences.splitlines() if "not read for all records yet: segment__c" not in line]
        require(not said, said)
        call("run")
    views = postgres.query(url, "SELECT viewname FROM pg_views WHERE schemaname = 'salesforce' ORDER BY 1")
    expected = ["_columns", "_freshness", "opportunity_changes", "opportunity_live", "opportunity_versions"]
    require(views == [[name] for name in expected], ("views", views))
    discard = ["--set", 'sinks.0.contract="discard"', "--set"]
    discard += ['stages=[{"type":"flatten"},{"type":"rename","columns":{"Amount":"Betrag"}}]']
    text, consequences = call("plan", *discard)
    require("left out for want of a column: Amount" in consequences and "betrag" not in text, "discard")
    _, consequences = call("plan", "--set", "source.topic=/data/ChangeEvents")
    require("/data/ChangeEvents: a channel" in consequences, "channels")


def refold(call, url):
    [[before]] = postgres.query(url, ROWS)
    [[records, one]] = postgres.query(url, "SELECT count(*), min(id) FROM salesforce.opportunity")
    text, _ = call("rebuild")
    require("Opportunity: " in text and " 0 changed" in text, text)
    postgres.query(url, "UPDATE salesforce.opportunity SET amount = -1, stagename = 'damaged'")
    text, _ = call("rebuild", "--entity", "Opportunity", "--record", one)
    require("1 record checked, 1 changed" in text, text)
    damaged = "SELECT count(*) FROM salesforce.opportunity WHERE stagename = 'damaged'"
    require(postgres.query(url, damaged) == [[str(int(records) - 1)]], "one record rebuilt")
    text, _ = call("rebuild", "--sink", "warehouse")
    require(postgres.query(url, ROWS) == [[before]], "all rows are as they were")
    _, said = call("rebuild", "--record", "006000000000000AAA")
    require("1 of 1 records have no history" in said, said)
    for wrong in (["--sink", "x"], ["--entity", "x"], ["--set", 'sinks.0.mode="current"']):
        call("rebuild", *wrong, code=64)
    return int(records)


def status(call, url):
    [found] = json.loads(call("status", "--json")[0])["sinks"]
    stale, partial = (
        int(value)
        for value in postgres.query(
            url, "SELECT stale, partial FROM salesforce._freshness WHERE table_name = 'opportunity'"
        )[0]
    )
    [table] = [table for table in found["tables"] if table["table"] == "opportunity"]
    require((table["stale"], table["partial"]) == (stale, partial) and stale, table)
    require(found["leased"] is False and found["error"] is None and found["fence"] > 1, found)
    text, _ = call("status")
    require("opportunity: %d records stale" % stale in text and "lease %d, of " % found["fence"] in text, text)
    unreachable = "postgresql://x@127.0.0.1:1/x"
    text, _ = call("status", code=69, url=unreachable)
    require("database_unavailable" in text, text)
    text, said = call("checkpoint", "show", code=69, url=unreachable)
    require("resumes after" in text and "warehouse" in said, said)


def epochs(url, schema="salesforce"):
    [[topics]] = postgres.query(url, "SELECT topics FROM %s._etl_checkpoint" % schema)
    return {topic: position["epoch"] for topic, position in json.loads(topics).items()}


def positions(call, url):
    [before, rows] = postgres.query(url, COUNTS)[0], postgres.query(url, ROWS)
    require(before[0] == before[1] and before[2] == "1", before)
    stored = json.loads(call("checkpoint", "show", "--json")[0])
    require(stored["topics"] == stored["databases"]["warehouse"]["topics"], "one position")
    call("checkpoint", "set", "--topic", TOPICS[0], "--earliest", code=64)
    # A lease of another host, and what it leaves when it has ended.
    lease = "UPDATE salesforce._etl_checkpoint SET owner = 'elsewhere /state pid 1', lease_until = now() + interval '%s'"
    postgres.query(url, lease % "60 seconds")
    _, said = call("checkpoint", "set", "--topic", TOPICS[0], "--earliest", "--yes", code=75)
    require("elsewhere" in said and epochs(url)[TOPICS[0]] == 1, said)
    postgres.query(url, lease % "-1 seconds")
    call("checkpoint", "set", "--topic", TOPICS[0], "--earliest", "--yes")
    require(epochs(url) == {TOPICS[0]: 2, TOPICS[1]: 1}, epochs(url))
    journal = "SELECT count(*) FROM salesforce._etl_journal WHERE action = 'set_position'"
    require(postgres.query(url, journal) == [["1"]], "the journal of the database")
    call("run")
    require(postgres.query(url, ROWS) == rows, "the current rows are as they were")
    require(postgres.query(url, COUNTS)[0][:2] == before[:2], "no row twice")
    # On another host, or after the loss of the directory, the database has it all.
    state = os.path.dirname(call.file) + "/state"
    shutil.rmtree(state)
    require(json.loads(call("status", "--json")[0])["healthy"], "the database is enough")
    call("checkpoint", "show")
    _, said = call("checkpoint", "restore", "--from-manifest", "--yes", code=65)
    require("nothing to restore" in said, said)
    call("checkpoint", "set", "--topic", TOPICS[0], "--earliest", "--yes")
    require(epochs(url)[TOPICS[0]] == 3, epochs(url))
    call("run")
    require(postgres.query(url, COUNTS)[0][:2] == before[:2], "no row twice after that")
    return int(before[0])


def restore(call, url, work):
    file = work + "/both.json"
    call("run", file=file)
    count = "SELECT count(*), count(DISTINCT (_event_id, _record_id)) FROM beside.opportunity_history"
    before = postgres.query(url, count)
    os.remove(work + "/state/both.checkpoint.json")
    status_text, _ = call("status", code=65, file=file)
    require("lost_state" in status_text, status_text)
    text, _ = call("checkpoint", "restore", "--from-manifest", "--yes", file=file)
    require("warehouse: keeps its position" in text, text)
    call("run", file=file)
    require(postgres.query(url, count) == before, "nothing twice beside a restored checkpoint")
    # Files in progress are gone with the checkpoint: a new epoch, in the database too.
    manifest = work + "/out/both/_manifest.ndjson"
    with open(manifest, encoding="utf-8") as lines:
        listed = [json.loads(line) for line in lines]
    require({line["epoch"] for line in listed} == {1}, "one epoch")
    call("checkpoint", "set", "--topic", TOPICS[0], "--latest", "--yes", file=file)
    require(epochs(url, "beside") == {TOPICS[0]: 2, TOPICS[1]: 1}, epochs(url, "beside"))


if __name__ == "__main__":
    main()
