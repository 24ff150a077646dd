"""The memory of a pipeline: what `runs` and `report` show is what runs have reported.

    runs_proof.py --programs DIR --work DIR

- Runs succeed, are refused, are killed while they follow, and succeed again; `verify --checksums` compares the files.
  `runs --json` has each of them, with the figures of its report, and the one that was killed has no report. While the
  follower runs, it is listed as running.
- `runs` fits 80 columns. A line of the ledger that something else has written is skipped, and a message counts it.
- The page of `report` is well formed, loads and runs nothing, and has the sums in its tables. A topic of the pipeline
  has a hostile name, and so has an error that a service sends.
- With the ledger removed, runs continue.
- Under cron, an error is printed by the first run that has it, and the run that works again says so. Elsewhere each run
  prints it.

Prints one JSON line; exits 1 on any difference.
"""

import html.parser
import json
import os
import signal
import subprocess
import sys

import harness

TOPIC = "/data/OpportunityChangeEvent"
HOSTILE = "</title><script>alert(1)</script>\"'"
VOID = {"meta"}
# A process that is called cron and starts another one.
UNDER_CRON = """
import ctypes, subprocess, sys
ctypes.CDLL(None).prctl(15, b"cron", 0, 0, 0)
sys.exit(subprocess.run(sys.argv[1:]).returncode)
"""


class Page(html.parser.HTMLParser):
    """The elements of a page, and the cells of its tables by caption."""

    def __init__(self, exporter):
        super().__init__()
        self.exporter, self.open, self.elements = exporter, [], []
        self.tables, self.caption, self.text = {}, None, ""

    def handle_starttag(self, name, attributes):
        self.elements.append((name, dict(attributes)))
        self.text = ""
        if name not in VOID:
            self.open.append(name)
        if name == "tr":
            self.tables.setdefault(self.caption, []).append([])

    def handle_endtag(self, name):
        if not self.open or self.open.pop() != name:
            self.exporter.fail("the page has no beginning of", name)
        if name == "caption":
            self.caption = self.text
        if name in ("td", "th"):
            self.tables[self.caption][-1].append(self.text)

    def handle_data(self, data):
        self.text += data

    def check(self):
        if self.open:
            self.exporter.fail("the page does not end", self.open)
        for name, attributes in self.elements:
            if name in ("script", "img", "link", "iframe", "object", "base", "form"):
                self.exporter.fail("the page has a", name)
            for attribute, value in attributes.items():
                is_own = attribute != "href" or value.startswith("#")
                if attribute.startswith("on") or attribute in ("src", "style") or not is_own:
                    self.exporter.fail("the page has", name, attribute, value)


def main():
    arguments = harness.arguments()
    work, path, report = (arguments.work + name for name in ("", "/memory.json", "/report.json"))
    options = ["--events", "40", "--topics", TOPIC, "--keepalive-interval", "0.5", "--seed", "7"]
    with harness.Simulator(arguments.programs, work, *options) as simulator:
        document = harness.pipeline("memory", [TOPIC])
        document["run"]["quiet"] = "1s"
        harness.write_json(path, document)
        exporter = harness.Exporter(arguments.programs + "/pubsub-etl", path, simulator.environment)

        def runs():
            return json.loads(exporter.call("runs", "--json", "--last", "1000").stdout)

        if runs()["runs"]:
            exporter.fail("there are runs before the first one")
        reports = []

        def run(*words, codes=(0,), **options):
            exporter.call("run", "--report", report, *words, codes=codes, **options)
            reports.append(harness.read_json(report))

        run("--max-events", "25")
        run(codes=(77,), env={**simulator.environment, "SF_CLIENT_SECRET": HOSTILE})

        process = exporter.spawn("run", "--follow")
        exporter.wait(process, lambda: runs()["runs"][-1]["kind"] == "running", "a run in progress")
        if runs()["runs"][-1]["pid"] != process.pid:
            exporter.fail("another process is listed as running")
        process.send_signal(signal.SIGKILL)
        process.wait()

        # A service repeats what it was sent; here it sends what it likes.
        simulator.publish(10, TOPIC)
        run()
        exporter.call("verify", "--checksums")

        listed = runs()
        kinds = [line["kind"] for line in listed["runs"]]
        if kinds != ["run", "run", "no_report", "run", "verify"] or listed["damaged_lines"]:
            exporter.fail("the ledger has", kinds, listed["damaged_lines"])
        ended = [line for line in listed["runs"] if line["kind"] == "run"]
        for line, found in zip(ended, reports):
            expected = {
                "run_id": found["run_id"], "exit_code": found["exit_code"], "reason": found["reason"],
                "began": found["started_at"], "ended": found["finished_at"], "commits": found["commits"],
                "events": sum(topic["events"] for topic in found["topics"]),
                "rows": sum(topic["rows"] for topic in found["topics"]),
                "bytes": sum(sink["bytes"] for sink in found["sinks"]),
                "files": sum(sink["files"] for sink in found["sinks"])}
            for name, value in expected.items():
                if line[name] != value:
                    exporter.fail(name, line[name], "is not", value)
        if listed["runs"][-1]["verdict"] != "equal":
            exporter.fail("the verdict is", listed["runs"][-1]["verdict"])

        ledger = work + "/" + document["checkpoint"]["directory"] + "/memory.runs.ndjson"
        hostile = dict(ended[0], reason=HOSTILE, message=HOSTILE * 100, exit_code=1, run_id="0" * 16)
        hostile["topics"] = [dict(ended[0]["topics"][0], topic=HOSTILE)]
        with open(ledger, "a", encoding="utf-8") as file:
            file.write('{"kind": "run"}\n%s\n{"torn' % json.dumps(hostile))
        done = exporter.call("runs")
        if "2 lines of" not in done.stderr or max(len(line) for line in done.stdout.splitlines()) > 80:
            exporter.fail("the table is", done.stdout, done.stderr)

        page = work + "/page.html"
        exporter.call("report", "--html", page)
        exporter.call("report", "--html", page)
        exporter.call("report", "--html", path, codes=(64,))
        parsed = Page(exporter)
        parsed.feed(harness.read_text(page))
        parsed.check()
        rows = {row[0]: row for row in parsed.tables["Topics of the recorded runs"]}
        events = sum(line["events"] for line in ended)
        if rows[TOPIC][2] != str(events) or HOSTILE not in rows:
            exporter.fail("the page has the topics", rows)
        counted = {row[0]: row for row in parsed.tables["Why runs ended without success"]}
        if HOSTILE not in counted or counted["no report"][4] != "1":
            exporter.fail("the page has the failures", counted)

        os.remove(ledger)
        simulator.publish(5, TOPIC)
        run()
        if [line["run_id"] for line in runs()["runs"]] != [reports[-1]["run_id"]]:
            exporter.fail("a new ledger does not begin with the next run")

        def said(*words, codes):
            command = [sys.executable, "-c", UNDER_CRON, *exporter.command("run", *words)]
            done = subprocess.run(
                command, env=simulator.environment, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            if done.returncode not in codes:
                exporter.fail(words, "under cron ended with", done.returncode, done.stderr)
            return done.stderr

        missing = ("--set", "source.org.tls.ca_file=missing.pem")
        first, second, loud = (said(*missing, *more, codes=(78,)) for more in ((), (), ("--log-level", "warning")))
        over, quiet = said(codes=(0,)), said(codes=(0,))
        here = [exporter.call("run", *missing, codes=(78,)).stderr for _ in range(2)]
        for text in (first, loud, *here):
            if "missing.pem" not in text:
                exporter.fail("does not say what is wrong:", text)
        if second or quiet or over.count("\n") != 1 or "works again after" not in over:
            exporter.fail("cron would mail", [second, over, quiet])
        print(json.dumps({"runs": len(reports), "events": events}))


main()
