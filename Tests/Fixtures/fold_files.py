"""Prints the current records of a directory, as its view "ENTITY_now" has them.

usage: fold_files.py DIRECTORY ENTITY COLUMN ...

A JSON line for each record: its ID, whether it is partial, whether it is stale, and the columns.
"""
import json
import sys

import duckdb

directory, entity, *columns = sys.argv[1:]
connection = duckdb.connect()
connection.execute("SET TimeZone = 'UTC'")
with open(directory + "/_views.sql", encoding="utf-8") as file:
    connection.execute(file.read())
names = ", ".join('"%s"' % name for name in ["_record_id", "_partial", "_stale", *columns])
query = 'SELECT %s FROM "%s_now" ORDER BY _record_id' % (names, entity)
for row in connection.execute(query).fetchall():
    print(json.dumps(row))
