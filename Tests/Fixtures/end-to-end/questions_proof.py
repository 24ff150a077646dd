"""Asks the queries of the page about tables about two weeks of a sales team, and answers them itself.

    questions_proof.py --programs DIR --work DIR [--seed S] [--days N] [--changes N] [--show]

The sales team's records are copied with pipelines/sales-postgres.json. For so many days, so many changes of deals a day are
published (the org's clock moves; waits are skipped), and a run follows every second day. The queries are those of
Sources/Connectors/PostgresSink/PostgresSink.docc/Tables.md, each of at most ten lines; `now()` and `current_date` become the org's time.
The answers are computed here from the simulator's own records and events.

--show: also prints each question with the first rows of its answer.

Prints one JSON line; exits 1 if an answer differs.
"""

import collections
import datetime
import decimal
import json
import os
import re
import statistics
import subprocess
import sys
import time
import zoneinfo

import harness
import postgres

ROOT = os.path.abspath(harness.HERE + "/../../..")
PAGE = ROOT + "/Sources/Connectors/PostgresSink/PostgresSink.docc/Tables.md"
DEALS = "/data/OpportunityChangeEvent"
TOPICS = ["/data/AccountChangeEvent", "/data/ContactChangeEvent", DEALS, "/data/UserChangeEvent"]
UTC = datetime.timezone.utc
DAY = datetime.timedelta(days=1)
MOST_LINES = 10
SHOWN = 6


def moment(milliseconds):
    return datetime.datetime.fromtimestamp(0, UTC) + datetime.timedelta(milliseconds=milliseconds)


def statements():
    with open(PAGE, encoding="utf-8") as file:
        return re.findall(r"^```sql\n(.*?)^```", file.read(), re.M | re.S)


def state_of(path):
    """The records by object and ID; deals have their names in lower case."""
    records = collections.defaultdict(dict)
    for record in harness.read_lines(path):
        fields = {name.lower(): value for name, value in record["fields"].items()}
        records[record["entity"]][record["id"]] = dict(fields, id=record["id"], is_deleted=record["is_deleted"])
    return records


class Org:
    """What the org holds, did, and held at the beginning of each day."""

    def __init__(self, first, last, events, now):
        self.now = now
        self.records = last
        self.deals = [deal for deal in last["Opportunity"].values() if not deal["is_deleted"]]
        self.names = {}
        for name, user in last["User"].items():
            parts = user["name"]
            self.names[name] = " ".join(
                parts[part] for part in ("FirstName", "MiddleName", "LastName", "Suffix") if parts.get(part))
        self.events = [event for event in events if event["entity"] == "Opportunity"]
        self.first = first["Opportunity"]
        # (deal, field, before, after, time, user), and (deal, type, time) of other changes.
        self.changes, self.others = [], []
        states = {name: dict(deal) for name, deal in self.first.items()}
        for event in self.events:
            self.apply(event, states, self.changes, self.others)

    @staticmethod
    def apply(event, states, changes, others):
        header = event["header"]
        values = {name.lower(): value for name, value in event["fields"].items()}
        at = moment(header["commitTimestamp"])
        for record in header["recordIds"]:
            state = states.setdefault(record, {"id": record})
            if header["changeType"] == "UPDATE":
                for name in header["changedFields"] + header["nulledFields"]:
                    field = name.lower()
                    changes.append((record, field, state.get(field), values.get(field), at, header["commitUser"]))
                    state[field] = values.get(field)
            else:
                others.append((record, header["changeType"], at))
                state.update(values)
                state["is_deleted"] = header["changeType"] == "DELETE"

    def at(self, time):
        """The deals that were there, as they were."""
        states = {name: dict(deal) for name, deal in self.first.items()}
        for event in self.events:
            if moment(event["header"]["commitTimestamp"]) <= time:
                self.apply(event, states, [], [])
        return [deal for deal in states.values() if not deal.get("is_deleted")]

    def open(self):
        return [deal for deal in self.deals if not deal["isclosed"]]

    def name(self, deal):
        return self.records["Opportunity"][deal]["name"]


def number(value):
    return None if value is None else decimal.Decimal(repr(value)).normalize()


def total(deals, field="amount"):
    values = [decimal.Decimal(repr(deal[field])) for deal in deals if deal.get(field) is not None]
    return sum(values).normalize() if values else None


def grouped(deals, key):
    groups = collections.defaultdict(list)
    for deal in deals:
        groups[key(deal)].append(deal)
    return groups


def by_stage(org):
    return [
        (stage, len(deals), total(deals), round(sum(
            decimal.Decimal(repr(deal["amount"])) * decimal.Decimal(repr(deal["probability"])) / 100
            for deal in deals if deal["amount"] is not None and deal["probability"] is not None), 2).normalize())
        for stage, deals in grouped(org.open(), lambda deal: deal["stagename"]).items()]


def won_this_quarter(org):
    def quarter(day):
        return day.year, (day.month - 1) // 3

    won = [
        deal for deal in org.deals if deal["iswon"]
        and quarter(moment(deal["closedate"])) == quarter(org.now)]
    return [(len(won), total(won))]


def biggest(org):
    rows = []
    for owner, deals in grouped(org.open(), lambda deal: deal["ownerid"]).items():
        amounts = sorted((deal["amount"] for deal in deals if deal["amount"] is not None), reverse=True)[:3]
        rows += [(org.names[owner], number(amount)) for amount in amounts]
    return rows


def win_rate(org):
    accounts = org.records["Account"]
    closed = [deal for deal in org.deals if deal["isclosed"]]
    return [
        (industry, len(deals), round(
            decimal.Decimal(100 * sum(deal["iswon"] for deal in deals)) / len(deals) + decimal.Decimal("1e-9"), 1).normalize())
        for industry, deals in grouped(
            closed, lambda deal: accounts.get(deal["accountid"], {}).get("industry")).items()]


def untouched(org):
    return [
        (deal["name"], deal["stagename"], org.names[deal["ownerid"]], moment(deal["lastmodifieddate"]))
        for deal in org.open() if moment(deal["lastmodifieddate"]) < org.now - 7 * DAY]


def days_in_stage(org):
    return [
        (stage, len(deals), number(int(
            sum((org.now - moment(deal["laststagechangedate"])).total_seconds() for deal in deals)
            / len(deals) + 0.5) // 86400))
        for stage, deals in grouped(org.open(), lambda deal: deal["stagename"]).items()]


def text(field, value):
    if value is None:
        return None
    if field == "closedate":
        return moment(value).date().isoformat()
    return number(value) if field == "amount" else value


def who_changed_what(org):
    start = org.now.replace(hour=0, minute=0, second=0, microsecond=0) - DAY
    return [
        (at, org.names[user], org.name(deal), field, text(field, before), text(field, after))
        for deal, field, before, after, at, user in org.changes
        if field in ("stagename", "amount", "closedate") and at >= start]


def slipped(org):
    moves = collections.defaultdict(list)
    living = {deal["id"]: deal for deal in org.open()}
    for deal, field, before, after, _, _ in org.changes:
        if field == "closedate" and deal in living and before is not None and after is not None and after > before:
            moves[deal].append((moment(after) - moment(before)).days)
    return [
        (living[deal]["name"], moment(living[deal]["closedate"]).date(), len(days), sum(days))
        for deal, days in moves.items()]


def durations(org):
    steps = collections.defaultdict(list)
    since = {}
    found = [(at, 0, deal, None) for deal, kind, at in org.others if kind in ("CREATE", "UNDELETE")]
    found += [(at, 1, deal, before) for deal, field, before, _, at, _ in org.changes if field == "stagename"]
    for at, kind, deal, stage in sorted(found, key=lambda step: step[:2]):
        if kind and deal in since:
            steps[stage].append((at - since[deal]).total_seconds())
        since[deal] = at
    return [
        (stage, len(times), int(statistics.fmean(times) + 0.5), int(statistics.median(times) + 0.5))
        for stage, times in steps.items()]


def last_monday(org):
    berlin = org.now.astimezone(zoneinfo.ZoneInfo("Europe/Berlin"))
    monday = (berlin - berlin.weekday() * DAY).replace(hour=0, minute=0, second=0, microsecond=0)
    deals = [deal for deal in org.at(monday) if not deal["isclosed"]]
    return [
        (stage, len(some), total(some))
        for stage, some in grouped(deals, lambda deal: deal["stagename"]).items()]


def since_monday(org):
    monday = (org.now - org.now.weekday() * DAY).replace(hour=0, minute=0, second=0, microsecond=0)
    before = {deal["id"]: deal for deal in org.at(monday) if not deal["isclosed"]}
    now = {deal["id"]: deal for deal in org.deals}

    def what(deal):
        old, new = before.get(deal), now.get(deal)
        if old is None:
            return "new or reopened"
        if new is None:
            return "deleted"
        if new["isclosed"]:
            return "won" if new["iswon"] else "lost"
        return "as before" if new["amount"] == old["amount"] else "another amount"

    return [
        (kind, len(deals), total(before[deal] for deal in deals if deal in before),
         total(now[deal] for deal in deals if deal in now))
        for kind, deals in grouped(
            before.keys() | {deal["id"] for deal in org.open()}, what).items()]


def seconds(column):
    return "round(extract(epoch FROM %s))::bigint" % column


# A part that only this statement of the page has, how its answer is found, and its columns.
QUESTIONS = [
    ("The open pipeline by stage", "AS expected", by_stage, "stagename, deals, amount, expected", "tnnn"),
    ("Won this quarter", "iswon AND closedate", won_this_quarter, "deals, amount", "nn"),
    ("The three biggest deals of each owner", "row_number()", biggest, "owner, amount", "tn"),
    ("The win rate by industry", "win_rate", win_rate, "industry, closed, win_rate", "tnn"),
    ("Deals that nobody touched for a week", "interval '7 days'", untouched,
     "deal, stagename, owner, %s" % seconds("lastmodifieddate"), "ttts"),
    ("How long open deals have been in their stage", "laststagechangedate", days_in_stage,
     "stagename, deals, days", "tnn"),
    ("Who changed what since yesterday", "'(not known)'", who_changed_what,
     "%s, changed_by_name, deal, field, old_value, new_value" % seconds("changed_at"), "sttttt"),
    ("Which close dates slipped", "AS times,\n  sum(", slipped, "deal, to_char(closedate, 'YYYY-MM-DD'), times, days", "tdnn"),
    ("How long a stage takes", "duration IS NOT NULL", durations,
     "stage, times, %s, %s" % (seconds("average"), seconds("median")), "tnnn"),
    ("The pipeline last Monday", "Europe/Berlin", last_monday, "stagename, opportunities, amount", "tnn"),
    ("What happened since Monday", "amount_then", since_monday, "what, deals, amount_then, amount_now", "tnnn"),
]


def value_of(text, kind):
    """A cell as the answers have it: text, a number, a time in seconds or a date."""
    if text == "":
        return None
    if kind == "n":
        return decimal.Decimal(text).normalize()
    if kind == "s":
        return moment(int(text) * 1000)
    return datetime.date.fromisoformat(text) if kind == "d" else text


def plain(row):
    """Numbers in texts are compared as numbers."""
    return tuple(
        str(decimal.Decimal(cell).normalize()) if isinstance(cell, decimal.Decimal)
        or isinstance(cell, (int, float)) or isinstance(cell, str) and re.fullmatch(r"\d+(\.\d+)?", cell)
        else str(cell) for cell in row)


def main():
    arguments = harness.arguments(seed=1, days=14, changes=60, show=False)
    work = arguments.work
    with harness.Simulator(
        arguments.programs, work, "--data", "sales", "--clock", "--seed", str(arguments.seed), "--events", "0",
        "--topics", ",".join(TOPICS),
    ) as simulator, postgres.Cluster() as cluster:
        url = cluster.make_database("sales")
        environment = dict(simulator.environment, DATABASE_URL=url)
        options = ["run", ROOT + "/pipelines/sales-postgres.json", "--root", work + "/pipelines"]
        # The views compare the time of a read with that at which the database got an event, which is not the org's.
        first = [arguments.programs + "/pubsub-etl", *options, "--set", "run.quiet=1s"]
        first += ["--set", "source.snapshot.visibility_wait=1s"]
        subprocess.run(first, env=environment, check=True, stdout=subprocess.DEVNULL)
        command = [simulator.exporter, *options]
        simulator.write_state(work + "/first.ndjson")
        now = time.time()
        for day in range(arguments.days):
            for _ in range(4):
                simulator.advance("6h")
                now += 6 * 3600
                simulator.publish(arguments.changes // 4, DEALS)
            if day % 2 or day == arguments.days - 1:
                subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
        simulator.write_state(work + "/last.ndjson")
        # Some minutes after the last change, in the org's time.
        now = datetime.datetime.fromtimestamp(int(now) + 600, UTC)
        org = Org(state_of(work + "/first.ndjson"), state_of(work + "/last.ndjson"), simulator.published(), now)
        counts, wrong = {}, []
        for question, part, answer, columns, kinds in QUESTIONS:
            [statement] = [text for text in statements() if part in text]
            if len(statement.splitlines()) > MOST_LINES:
                wrong.append("%s: %d lines" % (question, len(statement.splitlines())))
            asked = statement.strip().rstrip(";").replace("now()", "'%s'::timestamptz" % now.isoformat())
            asked = asked.replace("current_date", "'%s'::date" % now.date())
            found = [
                tuple(value_of(cell, kind) for cell, kind in zip(row, kinds))
                for row in postgres.query(url, "SELECT %s FROM (%s) AS answer" % (columns, asked))]
            given, expected = (sorted(map(plain, rows)) for rows in (found, answer(org)))
            counts[question] = len(found)
            if given != expected:
                lacking = [row for row in expected if row not in given][:5]
                wrong.append("%s: %d rows, not %d: %s instead of %s" % (
                    question, len(given), len(expected), [row for row in given if row not in expected][:5], lacking))
            if arguments.show:
                print("\n%s\n%s" % (question, statement), file=sys.stderr)
                postgres.run(url, "-q", "-P", "footer=off", "-P", "format=aligned", "-P", "tuples_only=off", "-c",
                             "SELECT * FROM (%s) AS answer LIMIT %d" % (asked, SHOWN), stdout=sys.stderr)
    print(json.dumps({"events": len(org.events), "changes": len(org.changes), "rows": counts, "wrong": len(wrong)}))
    for line in wrong:
        print(line, file=sys.stderr)
    if wrong or not all(counts.values()):
        sys.exit(1)


if __name__ == "__main__":
    main()
