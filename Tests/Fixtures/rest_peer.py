"""An org whose REST and Bulk answers are what no honest org sends.

Prints its loopback port, then serves plain HTTP until its input ends. The first part of a path names what is wrong:
`/short_job/services/data/v66.0/…`. `GET /<name>/requests` is how many requests there were under that name.
"""

import collections
import contextlib
import datetime
import http.server
import json
import re
import sys
import threading
import time

JOB = "750000000000001AAA"
GOOD, SECOND, FOREIGN, CROOKED = "001000000000001AAA", "001000000000002AAA", "003000000000001AAA", "001000000000001AAB"
STAMP = "2026-02-17T04:03:15.000Z"
FIELDS = ["Id", "SystemModstamp", "Name", "NumberOfEmployees"]
COUNTS = collections.Counter()

# Rows that a job says it has; IDs, stamps and numbers of employees in its pages; the locator after each.
JOBS = {
    "short_job": (3, [([GOOD, SECOND], "null")]),
    "short_job_without_locator": (3, [([GOOD, SECOND], None)]),
    "long_job": (1, [([GOOD, SECOND], "null")]),
    "same_locator": (9, [([GOOD], "MTA")]),
    # A, B, A, under a total that is never reached.
    "circle": (10**9, [([GOOD], "MTA"), ([SECOND], "MTB"), ([GOOD], "MTA")]),
    "empty_pages": (9, [([], "MTA"), ([], "MTB"), ([], "MTC")]),
    "huge_count": (2**63 - 1, [([GOOD], "null")]),
    "odd_rows": (4, [([GOOD, FOREIGN, CROOKED, SECOND], "null")]),
    "future": (1, [([GOOD], "null")]),
    "ahead": (1, [([GOOD], "null")]),
    "stuck_job": (0, []),
    "slow_rows": (1, [([GOOD], "null")]),
    "no_count": (None, []),
    "text_count": ("3", []),
    "no_rows": (0, []),
}
# By pages: records of each, and whether there is another.
PAGES = {
    "page_circle": (10**9, [GOOD], "/services/data/v66.0/query/01g-%d"),
    "same_page": (9, [GOOD], "/services/data/v66.0/query/01g-1"),
    "empty_query": (9, [], "/services/data/v66.0/query/01g-%d"),
    "huge_total": (2**63 - 1, [GOOD], None),
    "lacking_fields": (1, [GOOD], None),
    "more_than_all": (2, [GOOD, SECOND], "/services/data/v66.0/query/01g-%d"),
}


class Peer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, body, status=200, **headers):
        body = body.encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        name = self.count()
        if name in PAGES:
            return self.answer(json.dumps([{"errorCode": "INVALIDENTITY", "message": "no Bulk"}]), 400)
        self.answer(json.dumps({"id": JOB, "state": "UploadComplete"}))

    def count(self):
        name = self.path.split("/")[1]
        COUNTS[name] += 1
        return name

    def do_GET(self):
        if self.path.endswith("/requests"):
            return self.answer(str(COUNTS[self.path.split("/")[1]]))
        name = self.count()
        if self.path.endswith("/describe"):
            fields = [{"name": field, "type": "string"} for field in FIELDS]
            return self.answer(json.dumps({"name": "Account", "keyPrefix": "001", "fields": fields}))
        if "/results" in self.path:
            return self.results(name)
        if "/query" in self.path and name in PAGES:
            return self.page(name, *PAGES[name])
        if "COUNT" in self.path:
            return self.answer(json.dumps({"totalSize": 5, "done": True, "records": []}))
        job = {"id": JOB, "state": "JobComplete", "numberRecordsProcessed": JOBS[name][0]}
        if JOBS[name][0] is None:
            del job["numberRecordsProcessed"]
        if name == "stuck_job":
            job["state"] = "InProgress"
        self.answer(json.dumps(job))

    def results(self, name):
        _, pages = JOBS[name]
        locator = re.search("locator=(MT.)", self.path)
        names = [None] + [after for _, after in pages]
        ids, after = pages[min(names.index(locator[1] if locator else None), len(pages) - 1)]
        stamp = "2040-01-01T00:00:00.000Z" if name == "future" else STAMP
        if name == "ahead":
            ahead = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(minutes=20)
            stamp = ahead.strftime("%Y-%m-%dT%H:%M:%S.000Z")
        lines = [",".join('"%s"' % value for value in row) for row in [FIELDS] + [(id, stamp, "n", "7") for id in ids]]
        headers = {"Sforce_NumberOfRecords": str(len(ids)), "Content_Type": "text/csv"}
        if after:
            headers["Sforce_Locator"] = after
        if name == "slow_rows":
            return self.trickle("\n".join(lines) + "\n", **headers)
        self.answer("\n".join(lines) + "\n", **headers)

    def trickle(self, body, **headers):
        """Two bytes a second, until the peer has enough of it."""
        self.send_response(200)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        with contextlib.suppress(OSError):
            for byte in body.encode():
                self.wfile.write(bytes([byte]))
                time.sleep(0.5)

    def page(self, name, total, ids, after):
        records = [{"Id": id, "SystemModstamp": STAMP, "Name": {"odd": 1}} for id in ids]
        if total != 1:
            records = [dict(record, Name="n", NumberOfEmployees=7) for record in records]
        if name == "page_circle":
            after %= COUNTS[name] % 2
        elif after and "%d" in after:
            after %= time.monotonic_ns()
        self.answer(json.dumps({"totalSize": total, "done": not after, "nextRecordsUrl": after, "records": records}))


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Peer)
print(server.server_address[1], flush=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.stdin.read()
