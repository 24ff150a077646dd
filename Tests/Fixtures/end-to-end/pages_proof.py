"""Runs every example of README and of the manual's task pages, against the simulator's sales team.

    pages_proof.py --programs DIR --work DIR

- Parts of pipeline files are put into a complete one, and `check` accepts it.
- Queries run in DuckDB or PostgreSQL, on copies that the pipelines of GettingStarted.md made, and give rows.
- Shell blocks run in the order of the pages and end with 0. FILE is a pipeline file. Output that a page shows is
  compared; `…` stands for any text.
- The view of old and new values in Tables.md has every update of a stage, and every field that an update cleared.
- Every `pubsub-etl` command line, in a block or a sentence, is parsed by the program.
- README's lines are among those that its pipeline exports.

NOT_RUN lists the blocks that are left out, with the reason. An entry that fits no block fails. Prints one JSON line;
exits 1 with all differences.
"""

import concurrent.futures
import glob
import itertools
import json
import os
import re
import shlex
import shutil
import subprocess
import sys

import compare_files
import harness
import postgres

ROOT = os.path.abspath(harness.HERE + "/../../..")
BOOK = "Sources/Program/PubSubETL/PubSubETL.docc/"
STAGES = "Sources/Pipeline/Pipeline/Pipeline.docc/"
LOGINS = "Sources/Salesforce/SalesforceAuth/SalesforceAuth.docc/"
# In the order in which they are run: later pages use what earlier ones have exported.
PAGES = [
    "README.md", BOOK + "GettingStarted.md", BOOK + "Installing.md", BOOK + "Files.md", BOOK + "Dbt.md",
    BOOK + "ACompleteCopy.md",
    "Sources/Connectors/PostgresSink/PostgresSink.docc/Tables.md", BOOK + "IsTheCopyRight.md", BOOK + "Stages.md",
    STAGES + "Filter.md", STAGES + "Set.md", STAGES + "Route.md", STAGES + "Mask.md", STAGES + "Cast.md",
    "Sources/Pipeline/CEL/CEL.docc/Expressions.md", LOGINS + "Logins.md", LOGINS + "LoginClientCredentials.md",
    LOGINS + "LoginJWTBearer.md", LOGINS + "LoginRefreshToken.md", LOGINS + "LoginSalesforceCLI.md",
    BOOK + "Running.md", BOOK + "Alerts.md", BOOK + "Operating.md", BOOK + "ForgettingAPerson.md",
    BOOK + "ChangingTheOrg.md",
    BOOK + "WhenSomethingIsWrong.md", BOOK + "DeadLetters.md", BOOK + "Publishing.md",
    BOOK + "TestingAPipeline.md", BOOK + "PipelineReference.md",
]
# The beginning of a block: why it is not run.
NOT_RUN = {
    "cp -r /usr/local/share": "the proof starts the simulator itself",
    "duckdb -init out/sales": "the queries that follow run in DuckDB's Python package",
    "duckdb -init out/opps": "the same",
    "$ pubsub-etl compact": "its output is that of another directory; the compact proof runs it",
    "$ pubsub-etl erase": "it needs a record of the reader's org; the erase proof runs it",
    "CREATE ROLE dbt": "the dbt proof follows the page",
    "export PGHOST": "the same",
    "$ dbt": "the same",
    "SELECT stage_name": "the same",
    "export SALESFORCE_VIEWS": "the same",
    "on-run-start": "the same",
    "30 2 * * *  . \"$HOME/.pubsub-etl.env\"; pubsub-etl compact": "the same",
    "┌───": "each simulated org has other numbers",
    "createdb sales": "the proof makes the database, and runs this pipeline",
    "export DATABASE_URL=postgresql:///sales": "the same",
    "export DATABASE_URL=postgresql://etl@": "a server of an example",
    '"source": { …, "subset"': "it needs tables, or files with all records; the subset proofs run it",
    "ALTER DATABASE warehouse": "a database of an example",
    "scripts/install": "InstallTests does",
    "scripts/package": "InstallTests does",
    "sudo apt install": "needs a bare system; bare_system_proof.sh has one",
    "sudo tar": "the same",
    "podman": "needs podman",
    "sudo useradd": "changes this machine; package_proof.py checks the units",
    "sudo systemd-run": "needs systemd",
    "salesforce.opportunity  ": "columns, not a command",
    "began (UTC)": "a table that is printed; runs_proof.py",
    "pubsub-etl tail": "it does not end by itself; tail_proof.py",
    "14:03:15  Opp": "what tail shows",
    "kubectl": "needs a cluster; kubernetes_proof.py",
    "OpportunityChangeEvent  12,345": "what a terminal shows",
    "health  ": "a line of status; it needs a backlog of hours",
    "#!/": "a script that sends a mail",
    "SELECT at, table_name, action": "has rows only after a change of schema",
    "pubsub-etl rebuild": "commands_proof.py does; the record is an example",
    "npm install": "needs the Salesforce CLI",
    "sf org login": "needs the Salesforce CLI",
    "(umask 077; cat >": "writes outside of the proof's directory",
    "$ pubsub-etl run deals.json": "prove_readme does",
    "{ cat \"$HOME/out/sales/_views.sql\"": "needs the program duckdb",
    "began (UTC)": "output with times and numbers of an example",
    "mv restored/state/NAME": "the copy that the page makes is not older; DoctorTests and commands_proof.py have such states",
    "SF_LOGIN_URL=https://YOURDOMAIN": "variables of an example org; run_from_cron writes such a file",
    "$ cat ~/.pubsub-etl.env": "variables of an example org; cron_proof.py runs with such a file",
    "pubsub-etl dead-letters": "dead_letters_proof.py runs these commands on dead letters",
    "pubsub-etl checkpoint": "they ask for confirmation; terminal_proof.py and commands_proof.py run them",
    '{ "type": "record"': "PipelineTestTests runs the example of this page",
    '{\n  "schema": "Opp': "the same",
    '"classification"': "the same",
    "$ pubsub-etl test": "the same",
}
# Queries that may have no rows, because nothing is wrong or nothing has happened.
MAY_BE_EMPTY = ("state <> 'complete'", "done_at IS NULL", "_stale OR _partial", "interval '7 days'", "date_trunc('week'")


class Difference(Exception):
    pass


class Block:
    def __init__(self, page, language, text):
        self.page, self.language, self.text = page, language, text

    def fail(self, reason):
        raise Difference("%s: %s\n%s" % (self.page, reason, self.text))


def blocks(page):
    with open(ROOT + "/" + page, encoding="utf-8") as file:
        found = re.findall(r"^```(\w*)\n(.*?)^```", file.read(), re.S | re.M)
    return [Block(page, language, text) for language, text in found]


def matches(shown, actual):
    return re.fullmatch(".*".join(map(re.escape, shown.rstrip().split("…"))), actual.rstrip(), re.S)


class Proof:
    def __init__(self, programs, work, environment):
        self.programs = programs
        self.work = work
        self.counts = {"json": 0, "sql": 0, "shell": 0, "commands": 0}
        self.environment = dict(
            environment, HOME=work, PATH=programs + ":" + os.environ["PATH"], MASK_KEY="0123456789abcdef",
            ALERT_WEBHOOK="http://127.0.0.1:9/alerts", ALERT_TOKEN="of-an-example",
            LETTER_KEY="00" * 32)
        shutil.copytree(ROOT + "/pipelines", work + "/pipelines")
        self.hasten("sales")
        self.hasten("sales-postgres")
        self.hasten("opps")
        self.connection = None
        self.differences = []
        with open(self.work + "/refresh-token", "w", encoding="utf-8") as file:
            file.write("token")

    def hasten(self, name):
        """The pipeline without the pauses that the simulator does not need, and without repairs, which wait too."""
        path = "%s/pipelines/%s.json" % (self.work, name)
        document = self.document(name)
        document["source"].setdefault("snapshot", {})["visibility_wait"] = "1s"
        document.setdefault("run", {})["quiet"] = "1s"
        document["repair"] = {"mode": "off"}
        harness.write_json(path, document)

    def document(self, name):
        return harness.read_json("%s/pipelines/%s.json" % (self.work, name))

    def call(self, *command):
        done = subprocess.run(
            command, cwd=self.work, env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT)
        return done.returncode, done.stdout.decode()

    def run_pipelines(self):
        """Both at once, since each waits a little for the end of the stream."""
        with concurrent.futures.ThreadPoolExecutor() as pool:
            for code, output in pool.map(
                lambda name: self.call("pubsub-etl", "run", "pipelines/%s.json" % name), ("sales", "sales-postgres")):
                if code:
                    sys.exit("run: %s" % output)
        self.connection = compare_files.connection_to(self.work + "/out/sales")

    def prove(self, page):
        for block in blocks(page):
            self.attempt(self.prove_block, block)
        with open(ROOT + "/" + page, encoding="utf-8") as file:
            prose = re.sub(r"^```.*?^```", "", file.read(), flags=re.S | re.M)
        for command in re.findall(r"`(pubsub-etl [^`]+)`", prose):
            self.attempt(self.parse_commands, Block(page, "", command), command)

    def attempt(self, function, *arguments):
        try:
            function(*arguments)
        except Difference as difference:
            self.differences.append(str(difference))

    def prove_block(self, block):
        if any(block.text.startswith(start) for start in NOT_RUN):
            self.parse_commands(block, block.text)
        elif block.language == "json" or block.text.startswith('{ "type": "'):
            self.prove_json(block)
        elif block.language == "sql":
            self.prove_sql(block)
        elif block.language == "":
            self.prove_shell(block)
        elif block.language == "python":
            code, output = self.call(sys.executable, "-c", block.text.replace("out/opps", "out/sales"))
            if code:
                block.fail("Python ends with %d: %s" % (code, output))
        elif block.language == "sh":
            self.parse_commands(block, block.text)
            with open(self.work + "/check-copy", "w", encoding="utf-8") as file:
                file.write(block.text.replace("/usr/local/bin", self.programs))
            self.run_from_cron(block, "/bin/sh $HOME/check-copy")
        else:
            block.fail("is neither run nor listed in NOT_RUN")

    def prove_json(self, block):
        """Checks a part of a pipeline file in its place in pipelines/sales.json."""
        text = block.text.replace("…, ", "").strip()
        text = re.sub(r"/(etc|var/lib)/pubsub-etl/", self.work + "/", text)
        if block.page.startswith(STAGES) and not re.search(r'"(type|stages)":', text):
            return  # lines before and after a stage; StagePageTests compares them
        if block.page.endswith("Publishing.md"):
            return  # prove_publishing uses them
        # Without a snapshot of its own, a part needs tables to be refreshed.
        document = self.document("sales-postgres" if '"refresh"' in text else "sales")
        document.update(name="part", dead_letter={"payload": "none"})
        # A copy of a part of the records needs repairs.
        document.pop("repair", None)
        part = json.loads("{%s}" % text if text.startswith('"') else text)
        if "version" in part:
            document = part
        elif "type" in part:
            document["stages"] = [{"type": "flatten"}, part]
            # A stage as an example names columns of its own.
            names = {name for route in part.get("routes", []) for name in route["to"]}
            if names:
                document["sinks"] = [{"type": "files", "name": name, "directory": name} for name in sorted(names)]
        elif "auth" in part:
            # Another host than the simulator's; every other reader has to wait there.
            document["source"].update(org=part, snapshot={})
        else:
            for key, value in part.items():
                if isinstance(document.get(key), dict):
                    document[key].update(value)
                else:
                    document[key] = value
        path = self.work + "/pipelines/part.json"
        harness.write_json(path, document)
        code, output = self.call("pubsub-etl", "check", path)
        if code:
            block.fail("check ends with %d: %s" % (code, output))
        self.counts["json"] += 1

    def prove_sql(self, block):
        for query in re.split(r";\n", block.text):
            if not query.strip():
                continue
            if "salesforce." in query or "ROLE" in query or "SCHEMA" in query:
                rows = self.query_tables(block, query)
            elif query.startswith("SET VARIABLE"):
                rows = self.connection.execute(query).fetchall()
            else:
                rows = self.connection.execute("SELECT 1 FROM (%s) LIMIT 1" % query.strip()).fetchall()
            if not rows and query.lstrip().startswith(("SELECT", "WITH")):
                if not any(part in query for part in MAY_BE_EMPTY):
                    block.fail("no row")
            self.counts["sql"] += 1

    def query_tables(self, block, query):
        url = self.environment["DATABASE_URL"]
        # What an administrator does once is done by one; the schema exists by then.
        if "ROLE" in query or "GRANT" in query or "CREATE SCHEMA" in query:
            url = self.administrator
            query = query.replace("CREATE SCHEMA salesforce", "CREATE SCHEMA IF NOT EXISTS salesforce")
        try:
            return postgres.query(url, query)
        except subprocess.CalledProcessError:
            block.fail("PostgreSQL refuses the statement")

    def prove_shell(self, block):
        self.parse_commands(block, block.text)
        file = "pipelines/sales.json"
        if "tables only" in block.text and "snapshot" in block.text:
            file = "pipelines/sales-postgres.json"
        scheduled = re.findall(r"^(?:[\d*/,-]+ ){5}(.*)", block.text, re.M)
        if scheduled:
            for command in scheduled:
                self.run_from_cron(block, command)
        elif block.text.startswith("$ "):
            for command, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block.text, re.M):
                _, output = self.call("bash", "-c", command)
                if not matches(shown, output):
                    block.fail("the program prints: %s" % output)
                self.counts["shell"] += 1
        elif "jq " in block.text and not shutil.which("jq"):
            pass
        else:
            for line in block.text.replace("\\\n", "").splitlines():
                # A repair works on tables, and so does a condition.
                used = "pipelines/sales-postgres.json" if "--repair" in line else file
                code, output = self.call("bash", "-c", "set -o pipefail; " + re.sub(r"\bFILE\b", used, line))
                if code:
                    block.fail("%s ends with %d: %s" % (line, code, output))
                self.counts["shell"] += 1

    def run_from_cron(self, block, command):
        with open(self.work + "/.pubsub-etl.env", "w", encoding="utf-8") as file:
            for name in ("PUBSUB_ENDPOINT", "PUBSUB_CA_FILE", "SF_LOGIN_URL", "SF_CLIENT_ID", "SF_CLIENT_SECRET",
                         "DATABASE_URL"):
                file.write("%s=%s\n" % (name, shlex.quote(self.environment[name])))
        done = subprocess.run(
            ["env", "-i", "HOME=" + self.work, "PATH=/usr/bin:/bin", "/bin/sh", "-c",
             command.replace("/usr/local/bin", self.programs)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode or done.stdout:
            block.fail("from cron it ends with %d: %s" % (done.returncode, done.stdout.decode()))
        self.counts["shell"] += 1

    def parse_commands(self, block, text):
        """Gives each command line to the program, with a pipeline file that does not exist: it parses the line, and
        ends before it does anything."""
        text = text.replace("\\\n", " ").replace(" 2>&1", "")
        for command in re.findall(r"(?:^|[ /])pubsub-etl ((?!\(open).*)", text, re.M):
            lexer = shlex.shlex(command.replace("…", ""), posix=True, punctuation_chars=True)
            lexer.whitespace_split = True
            try:
                words = list(itertools.takewhile(lambda word: word.strip("();<>|&"), lexer))
            except ValueError:
                block.fail("the shell cannot read: %s" % command)
            words = [re.sub(r"^(FILE|.*\.json)$", "/nonexistent.json", word) for word in words]
            if not words or words[0] in ("eval", "test", "tail") or len(words) == 1:
                continue  # eval and test read no pipeline file, or need other files; a topic has no end
            code, output = self.call("pubsub-etl", *words)
            missing = "/nonexistent.json" not in words and (
                "Missing expected argument" in output or "expected a pipeline file" in output)
            if code == 64 and not missing:
                block.fail("pubsub-etl %s: %s" % (command, output))
            self.counts["commands"] += 1

    def prove_changes(self, truth):
        """The view of the page has every update of a stage, with the values that the org had, and every cleared field,
        also one whose value before is not known."""
        stages, expected, cleared = {}, set(), set()
        events = harness.read_lines(truth)
        for event in events:
            if event["topic"] != "/data/OpportunityChangeEvent":
                continue
            header = event["header"]
            if header["changeType"] == "UPDATE":
                cleared |= set(itertools.product(header["recordIds"], map(str.lower, header["nulledFields"])))
            if "StageName" not in (event["fields"] or {}):
                continue
            for record in event["header"]["recordIds"]:
                stage = event["fields"]["StageName"]
                if event["header"]["changeType"] == "UPDATE":
                    # The value before the first event is known from the read only, if at all.
                    expected.add((record, stages.get(record), stage))
                stages[record] = stage
        actual = {tuple(row) for row in postgres.query(
            self.environment["DATABASE_URL"],
            "SELECT id, old_value, new_value FROM salesforce.opportunity_changes WHERE field = 'stagename'")}
        actual |= {(record, None, new) for record, _, new in actual}
        if not expected or expected - actual:
            self.differences.append("salesforce.opportunity_changes lacks %s" % list(expected - actual)[:3])
        shown = {tuple(row) for row in postgres.query(
            self.environment["DATABASE_URL"],
            "SELECT id, field FROM salesforce.opportunity_changes WHERE new_value IS NULL")}
        if not cleared or cleared - shown:
            self.differences.append("salesforce.opportunity_changes lacks cleared %s" % list(cleared - shown)[:3])

    def prove_publishing(self):
        """Prepares what the page assumes; afterwards, the results are those that it shows."""
        page = BOOK + "Publishing.md"
        events, shown = [block for block in blocks(page) if block.language == "json"][:2]
        with open(self.work + "/events.ndjson", "w", encoding="utf-8") as file:
            file.write(events.text)
        command = blocks(page)[0].text.splitlines()[0]
        self.call("bash", "-c", command)
        with open(self.work + "/results.ndjson", encoding="utf-8") as file:
            for line, actual in zip(shown.text.splitlines(), file.read().splitlines(), strict=True):
                if not matches(line, actual):
                    shown.fail("the program prints: %s" % actual)
        # From here on without the mistake.
        with open(self.work + "/events.ndjson", "w", encoding="utf-8") as file:
            file.write(events.text.splitlines()[0] + "\n")
        document = self.document("opps")
        document.update(name="orders", sinks=[{"type": "files", "directory": "out"}], stages=[])
        document["source"].update(topic="/event/Order_Event__e", org="pipelines/org.json")
        document["checkpoint"]["directory"] = "state"
        harness.write_json(self.work + "/orders.json", document)


def prove_readme(work, environment, programs):
    os.makedirs(work)
    found = blocks("README.md")
    pipeline = [block for block in found if block.language == "json"][0]
    with open(work + "/deals.json", "w", encoding="utf-8") as file:
        file.write(pipeline.text)
    shutil.copytree(ROOT + "/pipelines", work + "/pipelines")
    subprocess.run(
        [programs + "/pubsub-etl", "run", work + "/deals.json", "--set", "source.org=pipelines/org.json", "--set",
         "run.quiet=1s"],
        env=environment, check=True, stderr=subprocess.DEVNULL)
    (shown,) = [block for block in found if "zstdcat" in block.text]
    lines = [line for line in shown.text.splitlines() if line.startswith("{")]
    exported = [
        line
        for path in glob.glob(work + "/out/Opportunity/*/*.zst")
        for line in subprocess.run(
            ["zstdcat", path], stdout=subprocess.PIPE, check=True).stdout.decode().splitlines()
    ]
    for line in lines:
        if not any(matches(line, candidate) for candidate in exported):
            shown.fail("this line is not exported: %s" % line)
    return len(lines)


def main():
    arguments = harness.arguments()
    work = arguments.work
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(work)
    programs = os.path.abspath(arguments.programs)
    every = [block for page in PAGES for block in blocks(page)]
    for start in NOT_RUN:
        if not any(block.text.startswith(start) for block in every):
            sys.exit("NOT_RUN: no block begins with %r" % start)
    with harness.Simulator(
        programs, work, "--data", "sales", "--state-dir", work + "/simulator", "--keepalive-interval", "1",
    ) as simulator, postgres.Cluster() as cluster:
        environment = dict(simulator.environment)
        cluster.make_database("sales")
        environment["DATABASE_URL"] = cluster.url("sales", user=postgres.ROLE)
        lines = prove_readme(work + "/readme", environment, programs)
        proof = Proof(programs, work + "/start", environment)
        proof.administrator = cluster.url("sales")
        proof.run_pipelines()
        # Changes of records that the copies have.
        simulator.publish(500, "/data/OpportunityChangeEvent")
        proof.run_pipelines()
        for page in PAGES:
            if page.endswith("Publishing.md"):
                proof.prove_publishing()
            proof.prove(page)
            if page.endswith("Tables.md"):
                proof.prove_changes(simulator.truth)
                # The page drops a view. The next run creates it again, and says so.
                proof.call("pubsub-etl", "run", "pipelines/sales-postgres.json")
    if proof.differences:
        sys.exit("\n".join(proof.differences))
    print(json.dumps({"pages": len(PAGES), "blocks": len(every), "readme_lines": lines, **proof.counts}))


if __name__ == "__main__":
    main()
