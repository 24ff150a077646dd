"""Follows the page about warehouses: two orgs in one database, a replica, its promotion, and a restored back-up.

    warehouse_proof.py --programs DIR --work DIR [--events N]

The commands and statements are those of Sources/Connectors/PostgresSink/PostgresSink.docc/Warehouse.md. The views over
both orgs must have the rows of each, also after an admin added a field to one of them. A replica must have the rows
and the freshness of its primary. Then it is cut off, changes follow, the primary crashes, and the replica is
promoted: the next run must bring what it lacks. The same is done with a restored dump. Prints one JSON line; exits 1
if anything is not as the page says.
"""

import json
import os
import re
import shutil
import subprocess
import sys

import harness
import postgres

ROOT = os.path.normpath(os.path.dirname(os.path.abspath(__file__)) + "/../../..")
PAGE = ROOT + "/Sources/Connectors/PostgresSink/PostgresSink.docc/Warehouse.md"
TOPIC = "/data/OpportunityChangeEvent"
ORGS = ("emea", "us")
FAST = ["--set", "run.quiet=1s", "--set", "source.snapshot.visibility_wait=1s"]
LIVE = "SELECT id, stagename, amount, _change_type FROM %s.opportunity_live"


def blocks(language):
    with open(PAGE, encoding="utf-8") as file:
        found = re.findall(r"^```(\w*)\n(.*?)^```", file.read(), re.M | re.S)
    return [text for name, text in found if name == language]


class Warehouse:
    def __init__(self, arguments, simulators, cluster):
        self.arguments, self.simulators, self.cluster = arguments, simulators, cluster
        self.url = cluster.url("warehouse", user=postgres.ROLE)
        self.compared = 0
        self.lines = dict(zip(ORGS, blocks("")[0].splitlines()))

    def shell(self, line, url, environment=None, codes=(0,)):
        settings = dict(os.environ, **(environment or {}), DATABASE_URL=url)
        settings["PATH"] = "%s:%s:%s" % (self.arguments.programs, self.cluster.programs, os.environ["PATH"])
        ended = subprocess.run(
            line, shell=True, cwd=self.arguments.work, env=settings, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE)
        if ended.returncode not in codes:
            sys.exit("%s: %d\n%s%s" % (line, ended.returncode, ended.stderr, ended.stdout[-3000:]))
        return ended.stdout

    def run(self, url, orgs=ORGS, options=(), codes=(0,)):
        for org in orgs:
            line = " ".join([self.lines[org], *FAST, *options])
            self.shell(line, url, self.simulators[org].environment, codes)

    def change(self):
        for simulator in self.simulators.values():
            simulator.publish(self.arguments.events, TOPIC)

    def unite(self):
        self.shell(blocks("")[1], self.url)

    def check_union(self, url):
        for org in ORGS:
            own = sorted(postgres.query(url, LIVE % org))
            if not own or own != sorted(postgres.query(url, LIVE % "all_orgs" + " WHERE _org = '%s'" % org)):
                sys.exit("the view over both orgs has other rows of %s" % org)

    def check_truth(self, url):
        """`verify` compares every record with the org, after another run has read what the stream lacks, and once
        no record has just changed."""
        self.run(url)
        for org in ORGS:
            self.simulators[org].advance("1h")
            line = self.lines[org].replace("pubsub-etl run", "pubsub-etl verify --full")
            said = self.shell(line + " --json", url, self.simulators[org].environment)
            self.compared += sum(table["records"]["compared"] for table in json.loads(said)["tables"])


def attach_replica(cluster):
    """A streaming replica of the cluster: its directory, and its URL for the exporter."""
    replica = postgres.Cluster.__new__(postgres.Cluster)
    replica.__dict__.update(cluster.__dict__, pool=None, directory=cluster.directory + "-replica")
    replica.port = postgres.free_port()
    os.mkdir(replica.directory)
    if cluster.prefix:
        owner = os.stat(cluster.directory)
        os.chown(replica.directory, owner.st_uid, owner.st_gid)
    replica.call("pg_basebackup", "-R", "--checkpoint=fast", "-D", replica.directory + "/data", "-d", cluster.url())
    with open(replica.directory + "/data/postgresql.auto.conf", "a", encoding="utf-8") as file:
        file.write("port = %d\nunix_socket_directories = '%s'\n" % (replica.port, replica.directory))
    replica.supervisor = replica.attend(
        ["/bin/sh", "-c", postgres.SUPERVISION, "sh", replica.programs, replica.directory])
    return replica


def has_replayed(cluster, replica):
    [[place]] = postgres.query(cluster.url(), "SELECT pg_current_wal_flush_lsn()")
    return postgres.query(
        replica.url(), "SELECT pg_last_wal_replay_lsn() >= '%s'" % place) == [["t"]]


def main():
    arguments = harness.arguments(events=400)
    shutil.copytree(ROOT + "/pipelines", arguments.work + "/pipelines")
    directories = {org: arguments.work + "/" + org for org in ORGS}
    for directory in directories.values():
        os.makedirs(directory)
    options = ("--events", str(arguments.events), "--existing", "200")
    with harness.Simulator(arguments.programs, directories["emea"], *options, "--seed", "1") as emea, \
            harness.Simulator(arguments.programs, directories["us"], *options, "--seed", "2") as us, \
            postgres.Cluster() as cluster:
        cluster.make_database("warehouse")
        warehouse = Warehouse(arguments, {"emea": emea, "us": us}, cluster)
        script, question = blocks("sql")
        with open(arguments.work + "/all-orgs.sql", "w", encoding="utf-8") as file:
            file.write(script)
        warehouse.run(warehouse.url)
        warehouse.unite()
        warehouse.check_union(warehouse.url)
        found = {row[0] for row in postgres.query(warehouse.url, question)}
        if found != set(ORGS):
            sys.exit("the query of the page has rows of %s" % found)
        # A view of the user's over the views of the script.
        postgres.query(warehouse.url, "CREATE SCHEMA mine")
        postgres.query(warehouse.url, "CREATE VIEW mine.deals AS SELECT _org, amount FROM all_orgs.opportunity_live")
        us.post("fields?change=add&field=Opportunity.Score__c&type=checkbox")
        warehouse.change()
        warehouse.run(warehouse.url)
        warehouse.unite()
        warehouse.check_union(warehouse.url)
        scores = postgres.query(
            warehouse.url, "SELECT _org, bool_and(score__c IS NULL) FROM all_orgs.opportunity_live GROUP BY 1 ORDER BY 1")
        if scores != [["emea", "t"], ["us", "f"]]:
            sys.exit("the added field: %s" % scores)
        columns = postgres.query(
            warehouse.url, "SELECT _org, count(*) FILTER (WHERE \"column\" = 'score__c') FROM all_orgs._columns"
            " WHERE table_name = 'opportunity' GROUP BY 1 ORDER BY 1")
        if columns != [["emea", "0"], ["us", "1"]]:
            sys.exit("the states of the added field: %s" % columns)

        replica = attach_replica(cluster)
        with replica:
            behind = replica.url("warehouse", user=postgres.ROLE)
            either = "postgresql://%s@127.0.0.1:%d,127.0.0.1:%d/warehouse?target_session_attrs=read-write" % (
                postgres.ROLE, replica.port, cluster.port)
            warehouse.change()
            warehouse.run(either)
            harness.eventually(lambda: has_replayed(cluster, replica), "the replica")
            warehouse.check_union(behind)
            freshness = "SELECT _org, table_name, complete_through, state FROM all_orgs._freshness ORDER BY 1, 2"
            if postgres.query(behind, freshness) != postgres.query(warehouse.url, freshness):
                sys.exit("the freshness of the replica differs")
            warehouse.run(behind, options=["--set", "retry.give_up_after=2s"], codes=(69,))

            dump, restore = blocks("")[2:4]
            warehouse.shell(dump, warehouse.url)
            # Cut off, the replica lacks what follows.
            postgres.query(replica.url(), "ALTER SYSTEM SET primary_conninfo = ''")
            postgres.query(replica.url(), "SELECT pg_reload_conf()")
            harness.eventually(
                lambda: not postgres.query(replica.url(), "SELECT pid FROM pg_stat_wal_receiver"), "the cut")
            warehouse.change()
            warehouse.run(warehouse.url)
            warehouse.check_truth(warehouse.url)

            # The first two lines: this server has another role and address than those of the page.
            superuser = {"PGHOST": "127.0.0.1", "PGPORT": str(cluster.port), "PGUSER": "postgres"}
            for line in restore.splitlines()[:2]:
                warehouse.shell(line, warehouse.url, superuser)
            restored = cluster.url("restored", user=postgres.ROLE)
            lacking = postgres.query(restored, LIVE % "us")
            warehouse.run(restored)
            warehouse.check_truth(restored)
            warehouse.check_union(restored)
            lacking = len(set(map(tuple, postgres.query(restored, LIVE % "us"))) - set(map(tuple, lacking)))

            cluster.crash()
            replica.control("promote")
            warehouse.run(either)
            warehouse.check_truth(behind)
            warehouse.check_union(behind)
            [[records]] = postgres.query(behind, "SELECT count(*) FROM all_orgs.opportunity_live")
    print(json.dumps({
        "records": int(records), "brought after the back-up": lacking, "compared": warehouse.compared}))
    if not lacking or warehouse.compared < 2 * int(records):
        sys.exit("too little was compared")


if __name__ == "__main__":
    main()
