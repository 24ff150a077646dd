"""Follows the page about tables with two roles and changes of every kind, from an empty database to its last query.

    reporting_proof.py --programs DIR --work DIR [--events N] [--seed S]

The statements are those of Sources/Connectors/PostgresSink/PostgresSink.docc/Tables.md that need only opportunities (pages_proof.py
runs all of them): the first makes roles and the schema, then pipelines/opps-postgres.json is run, then once more for as many
events, without repairs, so that records stay stale. Every query is then run as a member of the role
that reports. A last run repairs: then nothing is stale and nothing waits, and the present state of every
record in the views that look back is that of the current table. Prints one JSON line; exits 1
if anything is not as the page says.
"""

import json
import os
import re
import subprocess
import sys

import harness
import postgres

ROOT = os.path.normpath(os.path.dirname(os.path.abspath(__file__)) + "/../../..")
PAGE = ROOT + "/Sources/Connectors/PostgresSink/PostgresSink.docc/Tables.md"
TOPIC = "/data/OpportunityChangeEvent"
# Of statements about other objects, or tables of an earlier version.
ELSEWHERE = ("user_live", "account_live", "contact_live", "'contact'", "DROP VIEW")
# Records whose state, put together from the history, differs from their current row.
DIFFERENCE = """
SELECT count(*), count(*) FILTER (WHERE
  (v.stagename, v.amount, v.isclosed) IS DISTINCT FROM (o.stagename, o.amount, o.isclosed)
  OR (v.stagename, v.amount, v.isclosed) IS DISTINCT FROM (a.stagename, a.amount, a.isclosed)
  OR v.id IS NULL OR o.id IS NULL OR a.id IS NULL OR v._stale OR a._stale)
FROM (SELECT * FROM salesforce.opportunity_versions WHERE _is_current) AS v
FULL JOIN salesforce.opportunity_live AS o ON o.id = v.id
FULL JOIN salesforce.opportunity_at('infinity') AS a ON a.id = o.id
"""


def main():
    arguments = harness.arguments(events=5000, seed=1)
    with open(PAGE, encoding="utf-8") as file:
        statements = [
            statement for statement in re.findall(r"^```sql\n(.*?)^```", file.read(), re.M | re.S)
            if not any(part in statement for part in ELSEWHERE)]
    statements.sort(key=lambda statement: "CREATE ROLE" not in statement)
    with harness.Simulator(
        arguments.programs, arguments.work, "--events", str(arguments.events), "--seed",
        str(arguments.seed), "--gaps", "0.02", "--existing", "300",
    ) as simulator, postgres.Cluster() as cluster:
        url = cluster.make_database("warehouse")
        postgres.query(url, statements[0])
        postgres.query(url, "CREATE ROLE anna LOGIN; GRANT reporting TO anna")
        environment = dict(simulator.environment)
        environment["DATABASE_URL"] = cluster.url("warehouse", user="etl")
        environment["PUBSUB_ETL_ROOT"] = arguments.work + "/pipelines"
        command = [arguments.programs + "/pubsub-etl", "run", ROOT + "/pipelines/opps-postgres.json"]
        command += ["--set", "run.quiet=1s", "--set", "source.snapshot.visibility_wait=1s"]
        subprocess.run(command, env=environment, check=True)
        simulator.publish(arguments.events, TOPIC)
        subprocess.run([*command, "--set", "repair.mode=off"], env=environment, check=True)
        reader = cluster.url("warehouse", user="anna")
        queries = [statement for statement in statements[1:] if not statement.startswith("CREATE")]
        counts = [len(postgres.query(reader, statement)) for statement in queries]
        subprocess.run(command, env=environment, check=True)
        repaired = [
            len(postgres.query(reader, statement)) for statement in queries
            if "done_at IS NULL" in statement or "_stale OR" in statement]
        # These are the owner's, and each a transaction of its own.
        for statement in set(statements[1:]) - set(queries):
            for line in statement.splitlines():
                postgres.query(environment["DATABASE_URL"], line)
        [[compared, different]] = postgres.query(reader, DIFFERENCE)
    print(json.dumps({
        "rows": counts, "repaired": repaired, "records": int(compared), "different": int(different)}))
    if int(different) or not int(compared):
        sys.exit("the present state of records is not the current one")
    # Everything but the journal's and the look at Monday has rows by construction.
    if sum(count > 0 for count in counts) < len(counts) - 2:
        sys.exit("queries of the page gave no rows")
    if repaired != [0, 0]:
        sys.exit("what the repairs left is still stale or waiting")


if __name__ == "__main__":
    main()
