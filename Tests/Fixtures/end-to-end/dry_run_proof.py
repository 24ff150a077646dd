"""`run --dry-run` shows what a run would do, and changes nothing.

    dry_run_proof.py --programs DIR --work DIR

A pipeline with the stages filter, set, mask, cast and route writes files and tables, with stages of their own for
the files. A dry run before the first run, one behind the stored position, and one beside a running pipeline change
no file and no table, are delivered as many events as they show and no more than asked for, and show for each
event, per sink, the lines that the run afterwards writes. Values of masked fields are in nothing that they print,
unless it is asked for. Large and hostile events, events that cannot be decoded, failing expressions, refused
options and an org whose allowance is kept for others are tried as well. Prints one JSON line; exits 1 at the first
difference.
"""

import collections
import decimal
import hashlib
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys

import harness
import postgres
from mask_proof import lines_of

TOPICS = ["/data/ContactChangeEvent", "/data/AccountChangeEvent"]
KEY = "k" * 32
STAGES = [
    {"type": "flatten", "naming": "path"},
    {"type": "filter", "where": "_entity == 'Account' || !_event_id.matches('[0-3]$')"},
    {"type": "set", "columns": {
        "Channel": "has(row.LeadSource) ? row.LeadSource : 'none'", "Source": {"constant": "salesforce"}}},
    {"type": "mask", "columns": ["Email"], "with": "hash", "key": "${MASK_KEY}", "missing": "ignore"},
    {"type": "mask", "columns": ["*Phone", "Fax", "Name*"], "with": "redact", "missing": "ignore"},
    {"type": "drop", "columns": ["MailingAddress_*", "BillingAddress_*", "Description"], "missing": "ignore"},
    {"type": "cast", "columns": {"AnnualRevenue": "decimal(18,2)"}, "on_error": "null", "missing": "ignore"},
    {"type": "rename", "columns": {"LastModifiedById": "modified_by"}},
    {"type": "route", "routes": [{"entity": "Contact", "to": ["files", "db"]}], "default": ["db"]},
]
OWN = [{"type": "mask", "columns": ["AssistantName", "Title"], "with": "drop", "missing": "ignore"}]
MASKED = re.compile(
    r"Email|\w*Phone|Fax|Name(_\w+)?|(Mailing|Billing)Address_\w+|Description|AssistantName|Title")
# Columns of a history that no event tells beforehand.
UNKNOWN = {"_loaded_at"}


def expect(holds, *words):
    if not holds:
        sys.exit("not so: " + " ".join(str(word) for word in words)[:4000])


def normal(value):
    """Compares numbers and times by value, because a table and a line write them differently."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, (int, float, decimal.Decimal)):
        return decimal.Decimal(str(value)).normalize()
    if isinstance(value, str):
        if re.fullmatch(r"(\d{4}-\d\d-\d\dT)?\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)?", value):
            value = re.sub(r"(Z|\+00:00)$", "", value)
            return re.sub(r"\.?0+$", "", value) if "." in value else value
        if re.fullmatch(r"-?\d+(\.\d+)?", value):
            return decimal.Decimal(value).normalize()
        return value
    if isinstance(value, list):
        return [normal(element) for element in value]
    return {name: normal(element) for name, element in value.items()}


class Proof:
    def __init__(self, arguments, simulator, url):
        self.arguments, self.simulator, self.url = arguments, simulator, url
        self.work = arguments.work + "/dry"
        os.makedirs(self.work, exist_ok=True)
        self.environment = dict(simulator.environment, DATABASE_URL=url, MASK_KEY=KEY)
        self.program = arguments.programs + "/pubsub-etl"
        self.path = self.work + "/dry.json"
        self.texts = []
        self.write(STAGES)
        harness.write_json(arguments.work + "/plain.json", harness.pipeline("plain", TOPICS))

    def write(self, stages, **members):
        document = harness.pipeline("dry", TOPICS)
        document["stages"] = stages
        document["dead_letter"] = {"max": 100000, "payload": "none"}
        document["sinks"] = [
            {"type": "files", "name": "files", "directory": "out/dry", "stages": OWN},
            {"type": "postgres", "name": "db", "url": "${DATABASE_URL}"}]
        document.update(members)
        harness.write_json(self.path, document)

    def call(self, *words, code=0, path=None, **environment):
        done = subprocess.run(
            [self.program, *words, path or self.path], env=dict(self.environment, **environment),
            stdin=subprocess.DEVNULL, capture_output=True, timeout=300)
        expect(done.returncode == code, words, "ended with", done.returncode, done.stdout[-1500:], done.stderr[-2500:])
        return done

    # What there is

    def state(self):
        """Every file, and every row of every table."""
        found = {}
        for directory, names, files in os.walk(self.work):
            for name in names + files:
                path = os.path.join(directory, name)
                status = os.lstat(path)
                content = b""
                if name in files:
                    with open(path, "rb") as file:
                        content = file.read()
                found[path] = (status.st_mtime_ns, status.st_ino, hashlib.sha256(content).hexdigest())
        tables = postgres.query(
            self.url, "SELECT table_schema, table_name FROM information_schema.tables WHERE table_type = 'BASE TABLE'"
            " AND table_schema NOT IN ('pg_catalog', 'information_schema') ORDER BY 1, 2")
        for schema, table in tables:
            found[schema + "." + table] = sorted(
                row[0] for row in postgres.query(
                    self.url, "SELECT md5(t::text) || xmin || ctid FROM \"%s\".\"%s\" AS t" % (schema, table)))
        return found

    def delivered(self):
        return self.simulator.get("delivered")["total"]

    def dry(self, *words, code=0, limit=20, unchanged=True, **options):
        """A dry run; returns its events and its summary."""
        before, delivered = unchanged and self.state(), self.delivered()
        done = self.call("run", "--dry-run", *words, code=code, **options)
        if unchanged:
            after = self.state()
            changed = [name for name in set(before) | set(after) if before.get(name) != after.get(name)]
            expect(not changed, "a dry run has changed", changed)
            delivered = self.delivered() - delivered
        shown = [json.loads(line) for line in done.stdout.splitlines()]
        events, summary = shown[:-1], shown[-1]
        expect(summary["type"] == "summary" and all(event["type"] == "event" for event in events), shown[-1])
        expect([event["number"] for event in events] == list(range(1, len(events) + 1)), "the numbers are odd")
        if unchanged:
            expect(
                delivered == summary["delivered"] == summary["events"] == len(events) <= limit, delivered, "delivered",
                len(events), "shown", summary)
        if "--show-masked" not in words:
            self.texts += [("%s, output" % (words,), done.stdout), ("%s, log" % (words,), done.stderr)]
        return events, summary

    def run(self, path=None):
        self.call("run", path=path)

    # What a run writes

    def compare(self, events):
        """The lines of a dry run are those of the run."""
        written = collections.defaultdict(list)
        for line in lines_of(self.work + "/out/dry"):
            written["files", line["_event_id"]].append(list(line.items()))
        for (text,) in postgres.query(
            self.url, "SELECT to_jsonb(t) FROM salesforce.contact_history t UNION ALL"
            " SELECT to_jsonb(t) FROM salesforce.account_history t"):
            row = json.loads(text, parse_float=decimal.Decimal)
            written["db", row["_event_id"]].append(row)
        counts = collections.Counter()
        for event in events:
            for sink, outcome in event["sinks"].items():
                lines, found = outcome["lines"], written[sink, event["event_id"]]
                expect(len(lines) == len(found), sink, "has", len(found), "lines of", event, "in", found)
                counts[sink] += len(lines)
                if sink == "files":
                    expect([list(line.items()) for line in lines] == found, lines, "is not", found)
                    continue
                by_record = {row["_record_id"]: row for row in found}
                for line in lines:
                    row = by_record[line["_record_id"]]
                    names = set(line) | {name for name, value in row.items() if value is not None}
                    for name in names - UNKNOWN:
                        expect(
                            normal(line.get(name)) == normal(row.get(name)), sink, name, ":", line.get(name), "is not",
                            row.get(name))
        expect(counts["files"] and counts["db"], "nothing was compared:", counts)
        return counts

    # The parts of the proof

    def prove(self):
        counts = collections.Counter()
        self.refused_options()
        # Nothing has run.
        events, summary = self.dry()
        expect(len(events) == 20 and summary["ended_by"] == "events_reached", summary)
        expect(summary["allowance"] and summary["allowance"]["remaining_before"] > 0, summary)
        kept, left_out = self.stages(events)
        expect(not os.path.exists(self.work + "/state") and not os.path.exists(self.work + "/out"), "it has stored")
        colored = self.terminal()
        revealed = self.revealed()
        self.run()
        counts += self.compare(events)
        # Behind the stored position.
        self.simulator.publish(40)
        more, summary = self.dry("--max-events", "7")
        expect(len(more) == 7, summary)
        seen = {event["event_id"] for event in events}
        expect(not any(event["event_id"] in seen for event in more), "events from before the position are shown")
        again, _ = self.dry("--max-events", "7", "--from", "earliest")
        expect({event["event_id"] for event in again} <= seen, "--from earliest shows others")
        third = again[2]["replay_id"]
        own = ("--set", "source.topic=" + again[2]["topic"], "--max-events", "3", "--from", third)
        after, _ = self.dry(*own)
        expect(third not in [event["replay_id"] for event in after], "the replay ID itself is shown")
        self.run()
        counts += self.compare(more)
        beside = self.beside()
        quiet, summary = self.dry()
        expect(not quiet and summary["ended_by"] == "caught_up", summary)
        refused = self.failing()
        self.undecodable()
        self.reserve()
        return {
            "compared": counts, "kept": kept, "left_out": left_out, "terminal_bytes": colored, "revealed": revealed,
            "beside": beside, "refused": refused, **self.search()}

    def refused_options(self):
        for words in (
            ["--dry-run", "--follow"], ["--dry-run", "--report", self.work + "/r.json"], ["--dry-run", "--accept-reset"],
            ["--dry-run", "--accept-missing"], ["--dry-run", "--take-over"], ["--dry-run", "--max-events", "1001"],
            ["--dry-run", "--max-events", "0"], ["--dry-run", "--from", "yesterday"], ["--from", "earliest"],
            ["--show-masked"], ["--json"], ["--dry-run", "--max-events", "1"], ["--dry-run", "--from", "0011"],
        ):
            before = self.delivered()
            said = self.call("run", *words, code=64)
            expect(said.stderr and self.delivered() == before, words, "is not refused well", said)
        # A name of the mask that no schema has would show the field it was meant for.
        self.write(STAGES[:1] + [{"type": "mask", "columns": ["Emial"], "with": "redact"}] + STAGES[1:])
        said = self.call("run", "--dry-run", code=78)
        expect(b"Emial" in said.stderr and not said.stdout, said)
        self.write(STAGES)

    def stages(self, events):
        """Checks what the objects report about the stages."""
        kept = left_out = 0
        for event in events:
            kinds = [step["stage"] for step in event["stages"]]
            expect(kinds == [stage["type"] for stage in STAGES], kinds)
            steps = dict(zip(kinds, event["stages"]))
            expect([step["place"] for step in event["stages"]] == list(range(len(STAGES))), event["stages"])
            if steps["filter"].get("left_out"):
                left_out += 1
                expect(not any(sink["lines"] for sink in event["sinks"].values()), event)
                continue
            kept += 1
            is_contact = event["before"][0]["_entity"] == "Contact"
            expect(steps["route"]["rows_to"] == {"files": len(event["before"]) if is_contact else 0,
                                                "db": len(event["before"])}, steps["route"])
            if event["before"][0]["_kind"] == "change":
                expect(steps["set"]["rows"][0]["Source"] == "salesforce", steps["set"])
            for name, value in event["before"][0].items():
                expect(not MASKED.fullmatch(name) or value == "<hidden>", name, "is shown:", value)
        expect(kept > 5 and left_out > 0, kept, left_out)
        return kept, left_out

    def on_terminal(self, *words, code=0):
        main, terminal = pty.openpty()
        process = subprocess.Popen(
            [self.program, "run", "--dry-run", *words, self.path], env=self.environment, stdin=subprocess.DEVNULL,
            stdout=terminal, stderr=subprocess.PIPE)
        os.close(terminal)
        output = b""
        while True:
            ready, _, _ = select.select([main], [], [], 120)
            expect(ready, "the terminal stays silent after", output[-500:])
            try:
                piece = os.read(main, 65536)
            except OSError:
                break
            if not piece:
                break
            output += piece
        errors = process.communicate(timeout=60)[1]
        os.close(main)
        expect(process.returncode == code, "on a terminal:", process.returncode, output[-2000:], errors)
        return output.decode().replace("\r\n", "\n")

    def terminal(self):
        text = self.on_terminal()
        self.texts.append(("terminal", text.encode()))
        bare = re.sub("\x1b\\[(3[123]|0)m", "", text)
        expect(bare != text, "nothing is coloured")
        odd = re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u2028\u2029\ufeff]", bare)
        expect(not odd, "a terminal would obey", odd)
        for words in (
            "nothing is written", "from earliest", "event 20: /data/", "filter (stages[1]): 1 of 1 row left out",
            "mask (stages[3]):", "→", "<hidden>", "LastModifiedById is now modified_by", "+ Source: \"salesforce\"",
            "row to 'db'", "nothing to 'files'", "sink 'files': 1 line",
            "sink 'files': nothing", "20 delivered events of this dry run count against the org's daily allowance",
        ):
            expect(words in bare, repr(words), "is not in", bare[:6000])
        lines = self.on_terminal("--json", "--max-events", "2").splitlines()
        expect(len(lines) == 3 and json.loads(lines[0])["type"] == "event", lines)
        return len(text)

    def revealed(self):
        """Hidden values are shown only on request."""
        events, _ = self.dry("--show-masked", "--from", "earliest")
        found = [value for event in events for row in event["before"] for name, value in row.items()
                 if name in ("Email", "Name", "Phone", "Title") and value]
        expect(found and "<hidden>" not in found, found)
        return len(found)

    def beside(self):
        """A running pipeline is not disturbed and exports everything."""
        report = self.work + "/report.json"
        running = subprocess.Popen(
            [self.program, "run", self.path, "--follow", "--report", report, "--log-format", "json"],
            env=self.environment, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
        for line in running.stderr:
            if b'"subscribed"' in line or b"subscribed" in line:
                break
        delivered = self.delivered()
        self.simulator.publish(60)
        shown = 0
        for words in (["--from", "earliest"], [], ["--max-events", "5"]):
            events, _ = self.dry(*words, unchanged=False)
            shown += len(events)
        while self.delivered() - delivered < 60 + shown:
            select.select([], [], [], 0.05)
        running.send_signal(signal.SIGTERM)
        errors = running.communicate(timeout=60)[1]
        expect(running.returncode == 0, "the running pipeline ended with", running.returncode, errors)
        said = harness.read_json(report)
        counts = [sum(topic[name] for topic in said["topics"]) for name in ("delivered", "exported", "redelivered")]
        expect(counts == [60, 60, 0] and said["dead_letters"]["count"] == 0, counts, said)
        self.run()
        self.run(self.arguments.work + "/plain.json")
        rows = {line["_event_id"] for line in lines_of(self.arguments.work + "/out/plain")
                if line["_entity"] == "Contact"
                and (line["_event_id"][-1] not in "0123" or line["_kind"] in ("overflow", "wildcard"))}
        kept = {line["_event_id"] for line in lines_of(self.work + "/out/dry")}
        expect(rows == kept, "files lack", len(rows - kept), "and have too many:", len(kept - rows))
        return shown

    def failing(self):
        """Events that a stage cannot process, for all sinks or for one."""
        self.simulator.publish(30)
        divided = {"Half": "100 / (int(_sequence_number) - int(_sequence_number))"}
        self.write(STAGES[:2] + [{"type": "set", "columns": divided}] + STAGES[3:])
        events, summary = self.dry("--max-events", "6", code=65)
        refused = [event for event in events if "dead_letter" in event]
        expect(refused and summary["dead_letters"] == len(refused), summary)
        for event in refused:
            expect("stage set (stages[2]): column 'Half'" in event["dead_letter"], event["dead_letter"])
            expect("refused" in event["stages"][2] and len(event["stages"]) == 3, event["stages"])
            expect(not any(sink["lines"] for sink in event["sinks"].values()), event["sinks"])
        text = self.on_terminal("--max-events", "6", code=65)
        self.texts.append(("refusals on a terminal", text.encode()))
        expect("would be a dead letter: stage set (stages[2])" in text, text[:3000])
        self.write(STAGES)
        return len(refused)

    def undecodable(self):
        self.simulator.publish(10)
        self.simulator.fault(what="undecodable", after_events=1)
        events, summary = self.dry("--max-events", "6", code=65)
        [bad] = [event for event in events if "dead_letter" in event]
        expect("before" not in bad and not bad["stages"] and "payload" not in bad, bad)
        self.simulator.publish(2)

    def reserve(self):
        """The allowance that is kept for others is not touched."""
        self.write(STAGES, allowance={"reserve": "100%"})
        before = self.delivered()
        said = self.call("run", "--dry-run", code=75)
        expect(b"allowance.reserve" in said.stderr and self.delivered() == before, said)
        # Hardly more than is asked for may be spent.
        left = json.loads(self.call("run", "--dry-run", "--set", "allowance.reserve=1", "--max-events", "2").stdout
                          .splitlines()[-1])["allowance"]["remaining_before"] - 2
        events, summary = self.dry("--set", "allowance.reserve=%d" % (left - 8), "--from", "earliest", "--max-events", "7")
        expect(len(events) == 7 and summary["allowance"]["remaining_before"] == left, summary)
        self.write(STAGES)

    def search(self):
        """Values of masked fields, in anything that was printed."""
        masked, others = set(), set()
        for line in lines_of(self.arguments.work + "/out/plain"):
            for name, value in line.items():
                if isinstance(value, str) and name not in line.get("_diff_fields", ()):
                    if MASKED.fullmatch(name):
                        masked |= {part for part in re.split(r"[\r\n]+", value[:60]) if len(part) >= 9}
                    else:
                        others.add(value)
        # The tables have what the files alone mask: it is in their rows.
        in_tables = {value for line in lines_of(self.arguments.work + "/out/plain")
                     for name, value in line.items() if name in ("AssistantName", "Title") and isinstance(value, str)}
        rest = "\n".join(others | in_tables)
        values = {value for value in masked if value not in rest}
        expect(len(values) > 100, "only", len(values), "values to look for")
        forms = values | {json.dumps(value)[1:-1] for value in values}
        pattern = re.compile(b"|".join(re.escape(form.encode()) for form in sorted(forms)))
        for where, content in self.texts:
            found = pattern.search(content)
            expect(not found, where, "holds", found and found.group())
            expect(KEY.encode() not in content, where, "holds the key")
        return {"values": len(values), "outputs": len(self.texts)}


def large(arguments):
    """Events of nearly 1 MB for 200 records are shown in part, in little memory."""
    work = arguments.work + "/large"
    os.makedirs(work, exist_ok=True)
    with harness.Simulator(
        arguments.programs, work, "--events", "12", "--topics", TOPICS[0], "--large", "0.5", "--existing", "200",
        "--exotic", "0.5", "--nonfinite", "0.3", "--seed", "7",
    ) as simulator:
        document = harness.pipeline("large", TOPICS[0])
        document["stages"] += [{"type": "mask", "columns": ["Title"], "with": "redact"}]
        document["dead_letter"] = {"payload": "none"}
        harness.write_json(work + "/large.json", document)
        with open(work + "/shown", "wb") as output:
            process = subprocess.Popen(
                [arguments.programs + "/pubsub-etl", "run", "--dry-run", work + "/large.json"],
                env=simulator.environment, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.PIPE)
            errors = process.stderr.read()
            _, status, usage = os.wait4(process.pid, 0)
        expect(status == 0, status, errors)
        with open(work + "/shown", "rb") as file:
            events = [json.loads(line) for line in file][:-1]
        cut = [event for event in events if event.get("rows_not_shown")]
        expect(len(events) == 12 and cut, len(events), "events,", len(cut), "in part")
        for event in cut:
            expect(event["sinks"]["files"]["lines_not_shown"] == event["rows_not_shown"], event["rows_not_shown"])
        expect(usage.ru_maxrss < 400_000, usage.ru_maxrss, "KiB of memory")
        return {"large": len(cut), "mib": usage.ru_maxrss // 1024}


def main():
    arguments = harness.arguments()
    shown = large(arguments)
    with postgres.Cluster() as cluster:
        url = cluster.make_database("dry")
        with harness.Simulator(
            arguments.programs, arguments.work, "--topics", ",".join(TOPICS), "--existing", "1", "--events", "300",
            "--seed", "5", "--exotic", "0.2", "--extremes", "0", "--keepalive-interval", "1.2",
        ) as simulator:
            print(json.dumps({**Proof(arguments, simulator, url).prove(), **shown}))


if __name__ == "__main__":
    main()
