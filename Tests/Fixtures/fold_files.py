"""Folds the files of a directory by the query of README, "Current state from files", and prints the records.

usage: fold_files.py DIRECTORY ENTITY COLUMN ...

A JSON line for each record: its ID, whether it is partial, whether it is stale, and the columns.
"""
import json
import os
import re
import sys

import duckdb

directory, entity, *columns = sys.argv[1:]
readme = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../README.md")
with open(readme, encoding="utf-8") as file:
    section = file.read().split("## Current state from files\n", 1)[1].split("\n## ", 1)[0]
(query,) = re.findall(r"```sql\n(.*?)```", section, re.S)
connection = duckdb.connect()
connection.execute("SET TimeZone = 'UTC'")
with open(directory + "/_views.sql", encoding="utf-8") as file:
    connection.execute(file.read())
connection.execute(query.replace("opportunity_now", "folded").replace("Opportunity", entity))
names = ", ".join('"%s"' % name for name in ["_record_id", "_partial", "_stale", *columns])
for row in connection.execute("SELECT %s FROM folded ORDER BY _record_id" % names).fetchall():
    print(json.dumps(row))
