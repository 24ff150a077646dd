"""Builds the dbt project of deploy/dbt over tables and over files, and compares its marts with the org.

    dbt_proof.py --programs DIR --work DIR [--events N] [--seed S] [--dbt PATH]

The simulated sales team is copied into PostgreSQL and into files, with changes after the first copy. Then the page about
dbt is followed: its commands print what it shows, as the role that its statements create, and its queries have rows. On
both targets, every test of the project passes, source freshness is what `_freshness` says, the open pipeline is that of
the org, and the stages that deals were in are those of the published events. The views with the names of Fivetran's
connector have every record of the org, and a new field and one of another type with the next build. A second org sends
gap events: the present stage of each deal is still that of the org, also after a read has changed it. Prints one JSON
line; exits 1 at the first difference.
"""

import collections
import decimal
import json
import os
import re
import shutil
import subprocess
import sys

import harness
import postgres

ROOT = os.path.abspath(harness.HERE + "/../../..")
PAGE = ROOT + "/Sources/Program/PubSubETL/PubSubETL.docc/Dbt.md"
DEALS = "/data/OpportunityChangeEvent"
ENTITIES = ("Account", "Contact", "Opportunity", "User")
# Names that the package fivetran/salesforce reads, of fields that events have.
FIVETRAN = {
    "account": "account_number account_source annual_revenue billing_city billing_country billing_postal_code "
    "billing_state billing_state_code billing_street description id industry is_deleted name number_of_employees owner_id "
    "ownership parent_id rating record_type_id shipping_city shipping_country shipping_country_code "
    "shipping_postal_code shipping_state shipping_state_code shipping_street type website",
    "contact": "account_id department description email first_name home_phone id individual_id is_deleted "
    "last_curequest_date last_modified_by_id last_modified_date last_name lead_source mailing_city mailing_country "
    "mailing_country_code mailing_postal_code mailing_state mailing_state_code mailing_street mobile_phone name owner_id "
    "phone reports_to_id title",
    "opportunity": "account_id amount campaign_id close_date created_date description expected_revenue forecast_category "
    "forecast_category_name has_opportunity_line_item id is_closed is_deleted is_won lead_source name next_step owner_id "
    "pricebook_2_id probability stage_name type",
    "user": "alias city company_name country country_code department email first_name id is_active last_name manager_id "
    "name postal_code profile_id state state_code street title user_role_id user_type username",
}
# As a read does after a gap event: another stage for the deals that have changed theirs.
REVISE = """
UPDATE salesforce.opportunity SET stagename = 'Revised', laststagechangedate = '2100-01-01 00:00:00+00'
WHERE _deleted_at IS NULL
  AND id IN (SELECT opportunity_id FROM analytics.opportunity_stage_history WHERE left_at IS NOT NULL)
"""
# A project that reads the views, and fails if it cannot.
LEAVING = {
    "dbt_project.yml": """
name: leaving
version: "1.0.0"
profile: sales
on-run-start: "{{ fivetran_views() }}"

vars:
  salesforce_schema: salesforce_fivetran
  salesforce__user_role_enabled: false
  salesforce__lead_enabled: false
  salesforce__event_enabled: false
  salesforce__task_enabled: false
  salesforce__opportunity_line_item_enabled: false
  salesforce__order_enabled: false
  salesforce__product_2_enabled: false
""",
    "models/sources.yml": """
sources:
  - name: salesforce
    schema: "{{ var('salesforce_schema') }}"
    tables: [{name: opportunity}]
""",
    "models/deals.sql": "select * from {{ source('salesforce', 'opportunity') }}",
}


def fail(*words):
    sys.exit(" ".join(str(word) for word in words))


class Copy:
    """The pipelines of the sales team, without the pauses that the simulator does not need."""

    def __init__(self, exporter, work, environment, names, repair):
        self.exporter, self.work, self.environment, self.names = exporter, work, environment, names
        shutil.copytree(ROOT + "/pipelines", work + "/pipelines")
        for name in names:
            path = "%s/pipelines/%s.json" % (work, name)
            document = harness.read_json(path)
            document["source"]["snapshot"]["visibility_wait"] = "1s"
            document.setdefault("run", {})["quiet"] = "1s"
            document["repair"] = {"mode": repair}
            harness.write_json(path, document)

    def run(self):
        harness.side_by_side(2, [lambda name=name: self.run_pipeline(name) for name in self.names])

    def run_pipeline(self, name):
        done = subprocess.run(
            [self.exporter, "run", "pipelines/%s.json" % name], cwd=self.work, env=self.environment,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            fail(name, "ended with", done.returncode, done.stdout[-3000:])


class Project:
    """A dbt project, and what its last command has done."""

    def __init__(self, program, directory, environment):
        self.program, self.directory, self.environment = program, directory, environment

    def call(self, *words):
        done = subprocess.run(
            [self.program, *words], cwd=self.directory, env=self.environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            fail("dbt", *words, "ended with", done.returncode, done.stdout[-4000:])
        return done.stdout

    def results(self, name="run_results"):
        return harness.read_json("%s/target/%s.json" % (self.directory, name))["results"]

    def build(self, *words, good=("success", "pass")):
        """The number of results of a build, all of which have to be good."""
        self.call("build", *words)
        results = self.results()
        bad = [(result["unique_id"], result["status"]) for result in results if result["status"] not in good]
        if bad or not results:
            fail("not every result is good:", bad)
        return len(results)


class Tables:
    """The marts in PostgreSQL."""

    words = ()

    def __init__(self, url):
        self.url = url

    def rows(self, select):
        return [tuple(row) for row in postgres.query(self.url, select)]


class Files:
    """The marts in the file of DuckDB, read with the DuckDB that has written it."""

    words = ("--target", "duckdb")
    READER = """
import duckdb, json, sys
connection = duckdb.connect(sys.argv[1])
connection.execute("SET TimeZone = 'UTC'")
for row in connection.execute(sys.argv[2]).fetchall():
    print(json.dumps(["" if value is None else str(value) for value in row]))
"""

    def __init__(self, project):
        self.path = project.environment["DUCKDB_FILE"]
        self.python = os.path.dirname(project.program) + "/python3"

    def rows(self, select):
        done = subprocess.run(
            [self.python, "-c", self.READER, self.path, select], check=True, stdout=subprocess.PIPE, text=True)
        return [tuple(json.loads(line)) for line in done.stdout.splitlines()]


def living(simulator, work):
    """The records of the org that are not deleted, by object and ID; and the IDs of all."""
    simulator.write_state(work + "/state.ndjson")
    records = collections.defaultdict(dict)
    for line in harness.read_lines(work + "/state.ndjson"):
        records[line["entity"]][line["id"]] = None if line["is_deleted"] else line["fields"]
    return records


def open_pipeline(deals):
    """The mart, as the org has it: number and amount by stage, owner and account."""
    found = collections.defaultdict(lambda: [0, decimal.Decimal(0), decimal.Decimal(0)])
    for fields in deals:
        if not fields["IsClosed"]:
            row = found[fields["StageName"], fields["OwnerId"], fields["AccountId"]]
            amount, probability = (decimal.Decimal(str(fields[name] or 0)) for name in ("Amount", "Probability"))
            row[0] += 1
            row[1] += amount
            row[2] += amount * probability / 100
    return {(*key, str(row[0]), *("%.2f" % value for value in row[1:])) for key, row in found.items()}


def visits(simulator, deals):
    """The stages that living deals have entered and left, with the seconds: those that events say."""
    steps = collections.defaultdict(list)
    for event in simulator.published([DEALS]):
        header, fields = event["header"], event["fields"] or {}
        if header["changeType"] in ("CREATE", "UPDATE") and "StageName" in fields:
            for record in header["recordIds"]:
                steps[record].append((fields["StageName"], header["commitTimestamp"] // 1000))
    return collections.Counter(
        (record, stage, str(entered), str(left))
        for record, found in steps.items() if record in deals
        for (stage, entered), (_, left) in zip(found, found[1:]))


def prove_marts(project, target, state, expected):
    """Builds the project, and compares its marts with the org."""
    name = type(target).__name__
    built = project.build(*target.words)
    project.call("source", "freshness", *target.words)
    fresh = {(result["unique_id"].split(".")[-1], result["status"]) for result in project.results("sources")}
    sources = ("accounts", "contacts", "opportunities", "opportunity_changes", "opportunity_events", "users")
    if fresh != {(source, "pass") for source in sources}:
        fail(name, "freshness:", fresh)
    deals = {record: fields for record, fields in state["Opportunity"].items() if fields}
    found = set(target.rows(
        "SELECT stage_name, owner_id, account_id, deals, round(amount, 2), round(expected_amount, 2) "
        "FROM analytics.open_pipeline"))
    wanted = open_pipeline(deals.values())
    if found != wanted:
        fail(name, "open_pipeline:", sorted(found ^ wanted)[:4])
    found = collections.Counter(target.rows(
        "SELECT opportunity_id, stage_name, CAST(extract(epoch FROM entered_at) AS bigint), "
        "CAST(extract(epoch FROM left_at) AS bigint) FROM analytics.opportunity_stage_history "
        "WHERE NOT is_current AND entered_at IS NOT NULL"))
    if not found or found != expected:
        fail(name, "stages that were left:", sorted((found - expected) + (expected - found))[:4])
    prove_stages(target, deals)
    return built, len(wanted), found.total()


def prove_stages(target, deals):
    """Every deal has one present stage, which is that of the org."""
    found = target.rows("SELECT opportunity_id, stage_name FROM analytics.opportunity_stage_history WHERE is_current")
    wanted = {(record, fields["StageName"]) for record, fields in deals.items()}
    if len(found) != len(wanted) or set(found) != wanted:
        fail("present stages:", sorted(set(found) ^ wanted)[:4])


def follow_page(project, administrator, reader):
    """Runs the statements and commands of the page."""
    with open(PAGE, encoding="utf-8") as file:
        blocks = re.findall(r"^```(\w*)\n(.*?)^```", file.read(), re.S | re.M)
    counts = collections.Counter()
    for language, text in blocks:
        if language == "sql" and "CREATE ROLE" in text:
            postgres.query(administrator, text)
        elif language == "sql":
            if not reader.rows(text):
                fail("no row:", text)
        elif text.startswith("$ dbt"):
            for command, shown in re.findall(r"^\$ dbt (.*)\n((?:(?!\$ ).*\n)*)", text, re.M):
                printed = project.call(*command.split())
                if not re.fullmatch(".*".join(map(re.escape, shown.rstrip().split("…"))), printed.rstrip(), re.S):
                    fail("dbt", command, "prints:", printed)
        elif language == "yaml":
            if text not in LEAVING["dbt_project.yml"]:
                fail("the page configures another project than this proof:", text)
        counts[language or "text"] += 1
    if counts["sql"] < 2 or not counts["text"]:
        fail("the page has other blocks:", counts)


def prove_fivetran(copy, project, simulator, url, state):
    """The views have all records under the names that the package reads, and follow the org's fields."""
    for name, text in LEAVING.items():
        os.makedirs(os.path.dirname("%s/%s" % (project.directory, name)), exist_ok=True)
        with open("%s/%s" % (project.directory, name), "w", encoding="utf-8") as file:
            file.write(text)
    os.makedirs(project.directory + "/macros")
    shutil.copy(ROOT + "/deploy/dbt/macros/fivetran_views.sql", project.directory + "/macros")
    shutil.copy(ROOT + "/deploy/dbt/profiles.yml", project.directory)

    def columns():
        return {tuple(row) for row in postgres.query(
            url, "SELECT table_name, column_name, data_type FROM information_schema.columns "
            "WHERE table_schema = 'salesforce_fivetran'")}

    simulator.post("fields?change=add&field=Opportunity.Score2__c&type=number")
    copy.run()
    project.build()
    names = {row[:2] for row in columns()}
    lacking = {(table, name) for table, text in FIVETRAN.items() for name in text.split()} - names
    if lacking:
        fail("the views lack", sorted(lacking))
    for entity in ENTITIES:
        found = {tuple(row) for row in postgres.query(
            url, 'SELECT id, name, is_deleted FROM salesforce_fivetran."%s"' % entity.lower())}
        wanted = {(record, fields["Name"] if isinstance(fields["Name"], str) else "%s %s" % (
            fields["Name"]["FirstName"], fields["Name"]["LastName"]), "f")
            for record, fields in state[entity].items() if fields}
        if {row for row in found if row[2] == "f"} != wanted:
            fail("salesforce_fivetran.", entity, sorted({row for row in found if row[2] == "f"} ^ wanted)[:4])
    simulator.post("fields?change=add&field=Opportunity.Late__c&type=checkbox")
    simulator.post("fields?change=convert&field=Opportunity.Score2__c&type=text")
    simulator.publish(20, DEALS)
    copy.run()
    project.build()
    wanted = {("opportunity", "late_c", "boolean"), ("opportunity", "score_2_c", "text")}
    if wanted - columns() or wanted - {("opportunity", *row) for row in map(tuple, postgres.query(
            url, "SELECT column_name, data_type FROM information_schema.columns "
            "WHERE table_schema = 'analytics' AND table_name = 'deals'"))}:
        fail("the views have not followed the fields of the org:", sorted(columns())[:3])
    return len(names)


def prove_gaps(arguments, work, cluster, environment):
    """Repaired records whose stage changed without values."""
    os.makedirs(work)
    with harness.Simulator(
        arguments.programs, work, "--seed", str(arguments.seed), "--events", "0", "--existing", "60", "--gaps", "0.1",
        "--clock", "--overflows", "0", "--wildcards", "0", "--extremes", "0", "--topics", ",".join(
            "/data/%sChangeEvent" % entity for entity in ENTITIES),
    ) as simulator:
        cluster.make_database("gaps")
        url = cluster.url("gaps")
        copy = Copy(
            simulator.exporter, work, dict(simulator.environment, DATABASE_URL=cluster.url("gaps", user=postgres.ROLE)),
            ["sales-postgres"], "auto")
        copy.run()
        simulator.publish(2 * arguments.events, DEALS)
        copy.run()
        # What changed minutes ago is read again.
        for _ in range(10):
            [[stale]] = postgres.query(url, "SELECT count(*) FROM salesforce.opportunity_live WHERE _stale")
            if stale == "0":
                break
            simulator.advance("2m")
            copy.run()
        state = living(simulator, work)
        project = Project(arguments.dbt, work + "/dbt", dict(environment, PGDATABASE="gaps", PGUSER="postgres"))
        shutil.copytree(ROOT + "/deploy/dbt", project.directory)
        # Random deals have owners that do not exist.
        project.build(good=("success", "pass", "warn"))
        [[gaps]] = postgres.query(
            url, "SELECT count(*) FROM salesforce.opportunity_history WHERE _change_type LIKE 'GAP%'")
        if stale != "0" or not int(gaps):
            fail("gap events:", gaps, "deals that are stale:", stale)
        tables = Tables(url)
        deals = {record: fields for record, fields in state["Opportunity"].items() if fields}
        prove_stages(tables, deals)
        [[before]] = tables.rows("SELECT count(*) FROM analytics.opportunity_stage_history")
        tables.rows(REVISE)
        project.build(good=("success", "pass", "warn"))
        [[revised]] = tables.rows("SELECT count(*) FROM analytics.opportunity_stage_history WHERE is_current "
                                  "AND stage_name = 'Revised' AND entered_at = '2100-01-01 00:00:00+00'")
        [[after]] = tables.rows("SELECT count(*) FROM analytics.opportunity_stage_history")
        if not int(revised) or int(after) != int(before) + int(revised):
            fail("stages that reads have changed:", before, revised, after)
        return int(gaps), int(revised)


def main():
    arguments = harness.arguments(events=500, seed=1, dbt=ROOT + "/.build-dbt/bin/dbt")
    if not os.access(arguments.dbt, os.X_OK):
        fail(arguments.dbt, "is missing: scripts/python-peers installs it")
    work = arguments.work
    with harness.Simulator(
        arguments.programs, work, "--data", "sales", "--clock", "--seed", str(arguments.seed),
    ) as simulator, postgres.Cluster() as cluster:
        cluster.make_database("sales")
        copy = Copy(
            simulator.exporter, work, dict(simulator.environment, DATABASE_URL=cluster.url("sales", user=postgres.ROLE)),
            ["sales", "sales-postgres"], "off")
        copy.run()
        # Deals change their stage after days.
        for _ in range(6):
            simulator.advance("48h")
            simulator.publish(arguments.events // 6, DEALS)
            copy.run()
        state = living(simulator, work)
        deals = {record for record, fields in state["Opportunity"].items() if fields}
        expected = visits(simulator, deals)
        environment = dict(
            os.environ, HOME=work, DBT_SEND_ANONYMOUS_USAGE_STATS="false", DBT_USE_COLORS="false", PGHOST="127.0.0.1",
            PGPORT=str(cluster.port), PGUSER="dbt", PGDATABASE="sales", DUCKDB_FILE=work + "/sales.duckdb",
            SALESFORCE_VIEWS=work + "/out/sales/_views.sql")
        project = Project(arguments.dbt, work + "/dbt", environment)
        shutil.copytree(ROOT + "/deploy/dbt", project.directory)
        tables, files = Tables(cluster.url("sales")), Files(project)
        administrator = cluster.url("sales")
        postgres.query(administrator, "CREATE ROLE reporting; GRANT USAGE ON SCHEMA salesforce TO reporting; "
                       "GRANT SELECT ON ALL TABLES IN SCHEMA salesforce TO reporting")
        follow_page(project, administrator, tables)
        counts = {
            type(target).__name__.lower(): prove_marts(project, target, state, expected) for target in (tables, files)}
        postgres.query(administrator, "CREATE SCHEMA salesforce_fivetran AUTHORIZATION dbt")
        leaving = Project(arguments.dbt, work + "/leaving", environment)
        columns = prove_fivetran(copy, leaving, simulator, administrator, state)
        gaps = prove_gaps(arguments, work + "/gaps", cluster, environment)
    print(json.dumps({**counts, "fivetran_columns": columns, "gaps": gaps}))


if __name__ == "__main__":
    main()
