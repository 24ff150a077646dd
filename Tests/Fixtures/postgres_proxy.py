"""A proxy in front of a PostgreSQL server, `postgres_proxy.py PORT`; prints its own port.

`SELECT 'arm KIND'` over any of its connections makes it cut once, at the next occasion: see
`commit_proxy`. Ends with its standard input.
"""

import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "end-to-end"))

import commit_proxy


class ArmedProxy(commit_proxy.Proxy):
    def cuts_question(self, kind, data, start, end):
        order = re.match(rb"SELECT 'arm (\w+)'", data[start:end].lstrip(b"\0"))
        if order:
            self.arm(order[1].decode(), 0)
            return False
        return super().cuts_question(kind, data, start, end)


print(ArmedProxy(int(sys.argv[1]), 0).port, flush=True)
sys.stdin.read()
