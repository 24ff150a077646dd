"""Runs the views of a files sink in DuckDB and prints what they give.

usage: query_views.py DIRECTORY VIEW
"""
import json
import sys

import duckdb

directory, view = sys.argv[1:]
connection = duckdb.connect()
connection.execute(open(directory + "/_views.sql", encoding="utf-8").read())
columns = connection.execute('DESCRIBE "%s"' % view).fetchall()
print(json.dumps([[column[0], column[1]] for column in columns], ensure_ascii=False))
# As text, since Python needs a module of its own for times with a zone.
texts = ", ".join('"%s"::VARCHAR' % column[0].replace('"', '""') for column in columns)
connection.execute("SET TimeZone = 'UTC'")
for row in connection.execute('SELECT %s FROM "%s" ORDER BY ALL' % (texts, view)).fetchall():
    print(json.dumps(row, ensure_ascii=False))
