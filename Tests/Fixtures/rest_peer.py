"""An org whose REST and Bulk answers are what no honest org sends.

Prints its loopback port, then serves plain HTTP until its input ends. The first part of a path names what is wrong:
`/short_job/services/data/v66.0/…`. `GET /<name>/requests` is how many requests there were under that name.
"""

import collections
import contextlib
import datetime
import re
import time

import peer

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


class Handler(peer.Handler):
    def do_POST(self):
        self.body()
        name = self.count()
        if name in PAGES:
            return self.answer([{"errorCode": "INVALIDENTITY", "message": "no Bulk"}], 400)
        self.answer({"id": JOB, "state": "UploadComplete"})

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
            return self.answer({"name": "Account", "keyPrefix": "001", "fields": fields})
        if "/results" in self.path:
            return self.results(name)
        if "/query" in self.path and name in PAGES:
            return self.page(name, *PAGES[name])
        if "COUNT" in self.path:
            return self.answer({"totalSize": 5, "done": True, "records": []})
        job = {"id": JOB, "state": "JobComplete", "numberRecordsProcessed": JOBS[name][0]}
        if JOBS[name][0] is None:
            del job["numberRecordsProcessed"]
        if name == "stuck_job":
            job["state"] = "InProgress"
        self.answer(job)

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
        headers = [("Sforce-NumberOfRecords", str(len(ids))), ("Content-Type", "text/csv")]
        if after:
            headers.append(("Sforce-Locator", after))
        if name == "slow_rows":
            return self.trickle("\n".join(lines) + "\n", headers)
        self.answer("\n".join(lines) + "\n", 200, headers)

    def trickle(self, body, headers):
        """Two bytes a second, until the client has enough of it."""
        self.head(200, [*headers, ("Content-Length", str(len(body)))])
        with contextlib.suppress(OSError):
            for byte in body.encode():
                self.wfile.write(bytes([byte]))
                time.sleep(0.5)  # two a second

    def page(self, name, total, ids, after):
        records = [{"Id": id, "SystemModstamp": STAMP, "Name": {"odd": 1}} for id in ids]
        if total != 1:
            records = [dict(record, Name="n", NumberOfEmployees=7) for record in records]
        if name == "page_circle":
            after %= COUNTS[name] % 2
        elif after and "%d" in after:
            after %= time.monotonic_ns()
        self.answer({"totalSize": total, "done": not after, "nextRecordsUrl": after, "records": records})


peer.run(peer.serve_http(Handler))
