"""Proves that the views of formulas have the org's values, without reading them from the org.

    formulas_proof.py --programs DIR --work DIR [--seed S] [--existing N] [--events N] [--rounds N]

Opportunities have seven formula fields, one of them of a related record and one with a function that is not
translated. The pipeline copies Opportunity and Account into PostgreSQL. After each of its runs, every value of
`opportunity_formulas` is compared with what the org computes, asked by SOQL; in between, records change.

- `_fields` says which formulas are translated and why another is not; so does the comment of the view.
- Rights and a view that somebody made stay.
- `verify --full` says "equal"; for a row that was changed by hand it names the formulas that are wrong, too.

Prints one JSON line of counts; exits 1 at the first difference.
"""

import collections
import json
import ssl
import sys
import urllib.parse
import urllib.request

import harness
import postgres
import snapshot_proof

TOPICS = ["/data/OpportunityChangeEvent", "/data/AccountChangeEvent"]
VISIBILITY_WAIT = 0.2
FORMULAS = {
    "Weighted_Amount__c": "number", "Deal_Size__c": "text", "Close_Quarter__c": "text", "Is_Open__c": "boolean",
    "Decision_Date__c": "text", "Account_Name__c": "text",
}
REFUSED = {"Link__c": "not translated: function HYPERLINK is not translated"}


class Org:
    """What the org says about records, by REST."""

    def __init__(self, environment):
        self.context = ssl.create_default_context(cafile=environment.get("PUBSUB_CA_FILE") or None)
        form = urllib.parse.urlencode({
            "grant_type": "client_credentials", "client_id": environment["SF_CLIENT_ID"],
            "client_secret": environment["SF_CLIENT_SECRET"]}).encode()
        login = self.open(environment["SF_LOGIN_URL"] + "/services/oauth2/token", form)
        self.address, self.token = login["instance_url"], login["access_token"]

    def open(self, request, data=None):
        with urllib.request.urlopen(request, data, context=self.context) as answer:
            return json.load(answer)

    def get(self, path):
        return self.open(urllib.request.Request(self.address + path, headers={"Authorization": "Bearer " + self.token}))

    def records(self, fields):
        path = "/services/data/v66.0/query?" + urllib.parse.urlencode(
            {"q": "SELECT Id, %s FROM Opportunity" % ", ".join(fields)})
        while path:
            page = self.get(path)
            yield from page["records"]
            path = page.get("nextRecordsUrl")


class Proof(harness.Exporter):
    def __init__(self, arguments, work, simulator, cluster):
        super().__init__(arguments.programs + "/pubsub-etl", work + "/pipeline.json", simulator.environment)
        self.arguments, self.simulator = arguments, simulator
        self.url = cluster.make_database("warehouse")
        self.environment["DATABASE_URL"] = cluster.url("warehouse", user=postgres.ROLE)
        document = harness.pipeline("formulas", TOPICS)
        document["source"]["snapshot"] = {
            "mode": "initial", "visibility_wait": "%dms" % (VISIBILITY_WAIT * 1000)}
        document["sinks"] = [{"type": "postgres", "name": "warehouse", "url": "${DATABASE_URL}"}]
        document["repair"] = {"mode": "auto"}
        harness.write_json(self.path, document)
        self.org = Org(simulator.environment)
        self.counts = collections.Counter()

    def query(self, sql):
        return postgres.query(self.url, sql)

    def compare(self, moment):
        names = list(FORMULAS)
        # As bytes, because psql and Python split lines at other characters.
        rows = {row[0]: [text(cell) for cell in row[1:]] for row in self.query(
            "SELECT id, %s FROM salesforce.opportunity_formulas" % ", ".join(
                "coalesce(encode(convert_to(to_jsonb(%s) #>> '{}', 'UTF8'), 'hex'), '-')" % name.lower()
                for name in names))}
        records = {record["Id"]: record for record in self.org.records(names)}
        if rows.keys() != records.keys() or not rows:
            sys.exit("%s: the view has %d records and the org %d" % (moment, len(rows), len(records)))
        for name, row in rows.items():
            for field, found in zip(names, row):
                wanted = records[name][field]
                if not same(found, wanted, FORMULAS[field]):
                    sys.exit("%s: %s of %s is %r, and the org has %r" % (moment, field, name, found, wanted))
                self.counts["values"] += 1
                self.counts["nulls"] += wanted is None

    def check_names(self):
        found = dict(self.query("SELECT field, formula_state FROM salesforce._fields WHERE formula IS NOT NULL"))
        wanted = {**{name: "translated" for name in FORMULAS}, **REFUSED}
        if found != wanted:
            sys.exit("_fields says %s" % found)
        [[comment]] = self.query("SELECT obj_description('salesforce.opportunity_formulas'::regclass)")
        if "Link__c: function HYPERLINK is not translated" not in comment:
            sys.exit("the comment of the view is %r" % comment)

    def verify(self, moment, code=0):
        """Changes are old enough to be judged now."""
        self.simulator.advance("%dms" % (VISIBILITY_WAIT * 10000 + 5000))
        self.call("run")
        if code:
            self.query("UPDATE salesforce.opportunity SET amount = 100000 "
                       "WHERE id = (SELECT id FROM salesforce.opportunity_live WHERE amount < 1000 AND "
                       "probability > 0 ORDER BY id LIMIT 1)")
        report = json.loads(self.call("verify", "--full", "--json", codes=(code,)).stdout)
        table = next(table for table in report["tables"] if table["entity"] == "Opportunity")
        formulas = table["formulas"]
        if set(formulas["compared"]) != set(FORMULAS) or formulas["records"] == 0:
            sys.exit("%s: verify compares %s" % (moment, formulas))
        if {field["field"] for field in formulas["not_compared"]} != set(REFUSED):
            sys.exit("%s: verify does not name what is not translated: %s" % (moment, formulas))
        self.counts["verified"] += formulas["records"]
        return {field["field"]: field["count"] for field in formulas["differing"]}

    def prove(self):
        self.call("run")
        self.check_names()
        self.compare("after the first run")
        self.query("CREATE ROLE analyst; GRANT SELECT ON salesforce.opportunity_formulas TO analyst; "
                   "CREATE VIEW salesforce.quarters AS SELECT close_quarter__c, count(*) "
                   "FROM salesforce.opportunity_formulas GROUP BY 1")
        for number in range(self.arguments.rounds):
            self.simulator.publish(self.arguments.events, *TOPICS)
            self.call("run")
            self.compare("round %d" % number)
        if self.query("SELECT has_table_privilege('analyst', 'salesforce.opportunity_formulas', 'SELECT')") != [["t"]]:
            sys.exit("the right to read the view is lost")
        if not self.query("SELECT * FROM salesforce.quarters"):
            sys.exit("the view of somebody else is empty")
        if self.verify("after all rounds"):
            sys.exit("verify calls right formulas wrong")
        wrong = self.verify("after a change by hand", 65)
        if wrong != {"Weighted_Amount__c": 1, "Deal_Size__c": 1}:
            sys.exit("verify calls %s wrong" % wrong)
        return dict(self.counts)


def text(cell):
    return None if cell == "-" else bytes.fromhex(cell).decode()


def same(found, wanted, kind):
    if found is None or wanted is None:
        return found is wanted
    if kind == "number":
        return abs(float(found) - wanted) <= 1e-12 * max(1, abs(wanted))
    return found == ({True: "true", False: "false"}[wanted] if kind == "boolean" else wanted)


def main():
    arguments = harness.arguments(seed=1, existing=1000, events=200, rounds=3)
    with harness.Simulator(
        arguments.programs, arguments.work, "--formulas", "--seed", str(arguments.seed), "--events",
        str(arguments.events), "--topics", ",".join(TOPICS), "--existing", str(arguments.existing),
        # Salesforce shows no numbers of more than 18 digits, the simulator would.
        "--extremes", "0", *snapshot_proof.QUIET.split(),
    ) as simulator, postgres.Cluster() as cluster:
        print(json.dumps(Proof(arguments, arguments.work, simulator, cluster).prove()))


if __name__ == "__main__":
    main()
