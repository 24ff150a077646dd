"""Runs the checks named on the command line against the REST API of a running simulator; the environment
is its --env file. The client is simple-salesforce, unchanged.

Prints "ok NAME" per check; ends with 1 at the first that fails.
"""

import csv
import io
import json
import os
import sys
import time
import urllib.request

os.environ["REQUESTS_CA_BUNDLE"] = os.environ["PUBSUB_CA_FILE"]

import requests
from simple_salesforce import Salesforce
from simple_salesforce.exceptions import (
    SalesforceError,
    SalesforceExpiredSession,
    SalesforceMalformedRequest,
    SalesforceResourceNotFound,
)

CONTROL = os.environ["SIMULATOR_CONTROL_URL"]
SECRET = {"X-Simulator-Secret": os.environ["SIMULATOR_CONTROL_SECRET"]}
COMPOUND = ("address", "location")


def control(method, path, body=None):
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(CONTROL + path, data=data, method=method, headers=SECRET)
    with urllib.request.urlopen(request, timeout=120) as answer:
        return json.load(answer)


def login():
    answer = requests.post(
        os.environ["SF_LOGIN_URL"] + "/services/oauth2/token",
        data={
            "grant_type": "client_credentials",
            "client_id": os.environ["SF_CLIENT_ID"],
            "client_secret": os.environ["SF_CLIENT_SECRET"],
        },
        timeout=60,
    ).json()
    return Salesforce(
        instance_url=answer["instance_url"], session_id=answer["access_token"], version="66.0"
    )


SF = login()


def expect(kind, code, work):
    """The error that `work` must end with."""
    try:
        work()
    except kind as error:
        content = error.content
        assert content[0]["errorCode"] == code, content
        return error
    raise AssertionError("no error")


def state():
    """What the org holds, by object and ID, flattened under the names of SOQL."""
    path = control("POST", "/control/state", b"records")["path"]
    records = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            line = json.loads(line)
            records.setdefault(line["entity"], {})[line["id"]] = line
    return records


def fields_of(name):
    return [f for f in getattr(SF, name).describe()["fields"]]


def bulk(name, fields, statement=None, **options):
    text = statement or f"SELECT {', '.join(fields)} FROM {name}"
    rows = []
    for page in getattr(SF.bulk2, name).query(text, **options):
        page_rows = list(csv.reader(io.StringIO(page, newline=""), strict=True))
        assert page_rows[0] == fields, page_rows[0]
        rows += page_rows[1:]
    return rows


def text_of(value, kind):
    """The text that a CSV has for a value of JSON."""
    if value is None:
        return ""
    if kind == "boolean":
        return "true" if value else "false"
    if kind == "datetime":
        assert value.endswith("+0000")
        return value[:-5] + "Z"
    if kind in ("double", "currency", "percent"):
        return float(value)
    # simple-salesforce takes U+0000 out of what Bulk gives.
    return str(value).replace("\0", "")


def query_and_bulk_agree():
    for name in ("Opportunity", "Account", "Contact", "Station__c"):
        fields = [f for f in fields_of(name) if f["type"] not in COMPOUND]
        names = [f["name"] for f in fields]
        kinds = [f["type"] for f in fields]
        rows = {row[0]: row for row in bulk(name, names, max_records=700)}
        assert rows, name
        by_query = list(SF.query_all_iter(f"SELECT {', '.join(names)} FROM {name}"))
        assert len(by_query) == len(rows), (len(by_query), len(rows))
        for record in by_query:
            row = rows[record["Id"]]
            for field, kind, cell in zip(names, kinds, row):
                number = kind in ("double", "currency", "percent") and cell
                assert text_of(record[field], kind) == (float(cell) if number else cell), (
                    name, field, record[field], cell)


def millis(text):
    from datetime import datetime, timezone

    moment = datetime.strptime(text[:23], "%Y-%m-%dT%H:%M:%S.%f").replace(tzinfo=timezone.utc)
    return round(moment.timestamp() * 1000)


def compare(name, record, truth, kinds):
    """One record of SOQL with its line of the state file."""
    fields = truth["fields"]
    assert millis(record["SystemModstamp"]) == truth["system_modstamp"], (record, truth)
    for key, value in fields.items():
        if isinstance(value, dict):
            continue
        got = record[key]
        kind = kinds[key]
        if kind == "datetime":
            got = millis(got)
        elif kind == "date":
            got = millis(got + "T00:00:00.000")
        elif kind == "time":
            hours, minutes, seconds = got[:-1].split(":")
            got = round((int(hours) * 3600 + int(minutes) * 60 + float(seconds)) * 1000)
        elif isinstance(value, str):
            value = value.replace("\r\n", "\n")
        assert got == value, (name, record["Id"], key, got, value)
    for key, kind in kinds.items():
        if key in fields or key in ("Id", "IsDeleted", "SystemModstamp") or kind == "part":
            continue
        assert record[key] is None, (name, record["Id"], key, record[key])


def api_equals_state():
    """Every record and column by REST against the file that the org writes by other code."""
    truth = state()
    for name in ("Opportunity", "Account", "Contact", "Station__c"):
        described = [f for f in fields_of(name) if f["type"] not in COMPOUND]
        kinds = {
            f["name"]: "part" if f["compoundFieldName"] or f["calculated"] else f["type"]
            for f in described
        }
        statement = f"SELECT {', '.join(kinds)} FROM {name}"
        records = {r["Id"]: r for r in SF.query_all_iter(statement)}
        live = {k: v for k, v in truth[name].items() if not v["is_deleted"]}
        assert records.keys() == live.keys(), (name, len(records), len(live))
        for key, record in records.items():
            compare(name, record, live[key], kinds)
        everything = SF.query_all(f"SELECT Id FROM {name}", include_deleted=True)
        assert everything["totalSize"] == len(truth[name])


def components_are_parts():
    truth = state()["Contact"]
    for record in SF.query_all_iter(
        "SELECT Id, Name, FirstName, LastName, MailingAddress, MailingStreet, MailingCity,"
        " MailingLatitude FROM Contact LIMIT 500"
    ):
        fields = truth[record["Id"]]["fields"]
        name = fields.get("Name", {})
        assert record["LastName"] == name.get("LastName")
        parts = [name[k] for k in ("FirstName", "LastName") if k in name]
        assert record["Name"] == (" ".join(parts) or None), (record, name)
        address = fields.get("MailingAddress", {})
        assert record["MailingCity"] == address.get("City")
        assert record["MailingLatitude"] == address.get("Latitude")
        compound = record["MailingAddress"]
        assert (compound or {}).get("city") == address.get("City")


def conditions():
    for name in ("Opportunity", "Account"):
        records = list(SF.query_all_iter(f"SELECT Id, IsDeleted, SystemModstamp FROM {name}"))
        count = SF.query(f"SELECT COUNT() FROM {name}")["totalSize"]
        assert count == len(records)
        newest = max(r["SystemModstamp"] for r in records)
        row = SF.query(f"SELECT COUNT(Id) c, MAX(SystemModstamp) m FROM {name}")["records"][0]
        assert (row["c"], row["m"]) == (count, newest)
        middle = sorted(r["SystemModstamp"] for r in records)[len(records) // 2]
        moment = middle[:19] + "Z"
        later = SF.query_all(f"SELECT Id FROM {name} WHERE SystemModstamp > {moment}")
        earlier = SF.query_all(
            f"SELECT Id FROM {name} WHERE NOT (SystemModstamp > {moment}) AND Id != null")
        assert len(later["records"]) + len(earlier["records"]) == count
        assert 0 < len(later["records"]) < count
        ids = sorted(r["Id"] for r in records)
        some = ids[10:20]
        listed = ", ".join(f"'{i}'" for i in some)
        found = SF.query(f"SELECT Id FROM {name} WHERE Id IN ({listed}) ORDER BY Id")
        assert [r["Id"] for r in found["records"]] == some
        beyond = SF.query(
            f"SELECT Id FROM {name} WHERE Id > '{ids[4]}' AND Id <= '{ids[9]}' ORDER BY Id LIMIT 3")
        assert [r["Id"] for r in beyond["records"]] == ids[5:8]
        end = SF.query(f"SELECT Id FROM {name} ORDER BY Id DESC LIMIT 1 OFFSET 2")
        assert end["records"][0]["Id"] == ids[-3]


def refusals():
    for code, statement in [
        ("INVALID_FIELD", "SELECT Nope FROM Account"),
        ("INVALID_TYPE", "SELECT Id FROM Nope"),
        ("MALFORMED_QUERY", "SELECT Id FROM Account WHERE"),
        ("MALFORMED_QUERY", "SELECT Id FROM Account WHERE CreatedDate > 2026-02-17T04:03:15 00:00"),
        ("INVALID_FIELD", "SELECT Id FROM Account WHERE Description = 'x'"),
        ("INVALID_FIELD", "SELECT Id FROM Account WHERE AnnualRevenue = 'x'"),
        ("NUMBER_OUTSIDE_VALID_RANGE", "SELECT Id FROM Account ORDER BY Id LIMIT 1 OFFSET 2001"),
    ]:
        expect(SalesforceMalformedRequest, code, lambda: SF.query(statement))
    expect(
        SalesforceMalformedRequest, "INVALID_QUERY_LOCATOR",
        lambda: SF.query_more("01g000000000000AAA-2000"))
    expect(SalesforceResourceNotFound, "NOT_FOUND", lambda: SF.Nope.describe())
    wrong = Salesforce(instance_url=SF.sf_instance, session_id="wrong", version="66.0")
    wrong.base_url = SF.base_url
    expect(SalesforceExpiredSession, "INVALID_SESSION_ID", lambda: wrong.limits())
    for statement in ["SELECT COUNT() FROM Account", "SELECT BillingAddress FROM Account"]:
        answer = post("jobs/query", {"operation": "query", "query": statement})
        assert answer.status_code == 400, answer.text
    answer = post("jobs/query", {"operation": "insert", "query": "SELECT Id FROM Account"})
    assert answer.status_code == 400


def post(path, body):
    return requests.post(SF.base_url + path, headers=SF.headers, json=body, timeout=60)


def get(path, **params):
    return requests.get(SF.base_url + path, headers=SF.headers, params=params, timeout=60)


def retrieval():
    ids = [r["Id"] for r in SF.query("SELECT Id FROM Account LIMIT 30")["records"]]
    wanted = ids[::-1] + ["001000000000000AAA"] + [ids[0][:15]]
    answer = post("composite/sobjects/Account", {"ids": wanted, "fields": ["Id", "Name"]})
    found = [r and r["Id"] for r in answer.json()]
    assert found == ids[::-1] + [None, ids[0]], found
    answer = post("composite/sobjects/Account", {"ids": ids, "fields": ["Id", "Nope"]})
    assert (answer.status_code, answer.json()[0]["errorCode"]) == (400, "INVALID_FIELD")
    answer = post("composite/sobjects/Account", {"ids": ids[:1] * 2001, "fields": ["Id"]})
    assert answer.status_code == 400


def complete_job(fault=None):
    if fault:
        control("POST", "/control/faults", {"method": "BulkCreate"} | fault)
    job = post("jobs/query", {"operation": "query", "query": "SELECT Id, Name FROM Account"}).json()
    deadline = time.monotonic() + 60
    while job["state"] in ("UploadComplete", "InProgress"):
        assert time.monotonic() < deadline, job
        time.sleep(0.05)  # as clients of Bulk ask again and again
        job = get(f"jobs/query/{job['id']}").json()
    return job


def jobs():
    job = complete_job()
    assert job["state"] == "JobComplete"
    path = f"jobs/query/{job['id']}/results"
    first = get(path, maxRecords=1000)
    again = get(path, maxRecords=1000)
    assert first.content == again.content
    assert first.headers["Sforce-NumberOfRecords"] == "1000"
    assert "api-usage=" in first.headers["Sforce-Limit-Info"]
    total, locator = 1000, first.headers["Sforce-Locator"]
    while locator != "null":
        page = get(path, maxRecords=1000, locator=locator)
        total += int(page.headers["Sforce-NumberOfRecords"])
        locator = page.headers["Sforce-Locator"]
    assert total == job["numberRecordsProcessed"], (total, job)
    assert get(path, locator="nonsense").status_code == 400
    job_url = f"{SF.base_url}jobs/query/{job['id']}"
    aborted = requests.patch(job_url, headers=SF.headers, json={"state": "Aborted"}, timeout=60)
    assert aborted.status_code == 400
    assert requests.delete(job_url, headers=SF.headers, timeout=60).status_code == 204
    assert get(f"jobs/query/{job['id']}").status_code == 404
    windows = bulk("Account", ["Id", "Name"], line_ending="CRLF", column_delimiter="COMMA")
    assert len(windows) == total


def faults():
    assert complete_job({"action": "job_failed", "message": "boom"})["errorMessage"] == "boom"
    assert complete_job({"action": "job_aborted"})["state"] == "Aborted"
    vanished = complete_job({"action": "job_vanished", "after_events": 1})
    path = f"jobs/query/{vanished['id']}/results"
    page = get(path, maxRecords=100)
    assert page.status_code == 200
    assert get(path, maxRecords=100, locator=page.headers["Sforce-Locator"]).status_code == 404
    job = complete_job()
    path = f"jobs/query/{job['id']}/results"
    whole = get(path, maxRecords=500)

    def fault(action, **more):
        control("POST", "/control/faults", {"method": "BulkResults", "action": action} | more)

    fault("cut")
    cut = get(path, maxRecords=500)
    assert cut.status_code == 200 and whole.content.startswith(cut.content)
    assert len(cut.content) < len(whole.content)
    fault("row_count")
    assert get(path, maxRecords=500).headers["Sforce-NumberOfRecords"] == "501"
    fault("html", status=502)
    assert get(path, maxRecords=500).status_code == 502
    fault("drop")
    try:
        get(path, maxRecords=500)
        raise AssertionError("the connection was not closed")
    except requests.exceptions.ChunkedEncodingError:
        pass
    fault("drip")
    with requests.get(
        SF.base_url + path, headers=SF.headers, params={"maxRecords": 500}, stream=True, timeout=60
    ) as slow:
        assert slow.raw.read(3) == whole.content[:3]
    fault("status", status=403, error_code="REQUEST_LIMIT_EXCEEDED")
    assert get(path, maxRecords=500).json()[0]["errorCode"] == "REQUEST_LIMIT_EXCEEDED"
    assert get(path, maxRecords=500).content == whole.content


def limits():
    before = SF.limits()["DailyApiRequests"]["Remaining"]
    SF.query("SELECT COUNT() FROM Account")
    assert SF.limits()["DailyApiRequests"]["Remaining"] == before - 2
    usage = SF.api_usage["api-usage"]
    assert usage.total - usage.used == before - 2


def hidden():
    names = [f["name"] for f in fields_of("Opportunity")]
    assert "NextStep" not in names and "Amount" in names
    expect(
        SalesforceMalformedRequest, "INVALID_FIELD",
        lambda: SF.query("SELECT NextStep FROM Opportunity"))
    shown = SF.query("SELECT COUNT() FROM Opportunity")["totalSize"]
    live = [r for r in state()["Opportunity"].values() if not r["is_deleted"]]
    assert 0.5 * len(live) < shown < 0.9 * len(live), (shown, len(live))


def later():
    """Changes are shown after the delay."""
    before = SF.query("SELECT MAX(SystemModstamp) m FROM Opportunity")["records"][0]["m"]
    control("POST", "/control/publish?count=400")
    for _ in range(3):
        now = SF.query("SELECT MAX(SystemModstamp) m FROM Opportunity")["records"][0]["m"]
        assert now == before
    control("POST", "/control/clock?advance=100s")
    now = SF.query("SELECT MAX(SystemModstamp) m FROM Opportunity")["records"][0]["m"]
    assert now > before


for name in sys.argv[1:]:
    globals()[name]()
    print("ok", name, flush=True)
