"""Reads a Parquet file with other implementations and compares every value.

usage: parquet_peers.py FILE.parquet EXPECTED.json [--spark]

A line of the second file is a row: integers and booleans as they are, floating-point numbers by the bits of
a double in hexadecimal, decimals without their point, everything else by its bytes in hexadecimal.
"""
import decimal
import json
import math
import struct
import sys

import duckdb
import polars
import pyarrow
import pyarrow.compute
import pyarrow.parquet

decimal.getcontext().prec = 60
path, expected_path = sys.argv[1:3]
expected = [json.loads(line) for line in open(expected_path)]


def number(value):
    return None if value is None else "nan" if math.isnan(value) else struct.pack(">d", value)


def digits(value, scale):
    return None if value is None else int(value.scaleb(scale))


def raw(value):
    return value.encode() if isinstance(value, str) else value


def wanted(column, type):
    """The expected values of a column, as Python has them."""
    def convert(value):
        if value is None:
            return None
        if type in ("FLOAT", "DOUBLE"):
            return number(struct.unpack(">d", bytes.fromhex(value.rjust(16, "0")))[0])
        if type == "DECIMAL":
            return int(value)
        if type == "LIST":
            return [bytes.fromhex(element) for element in value]
        return bytes.fromhex(value) if isinstance(value, str) else value
    return [convert(row[column]) for row in expected]


def compare(reader, name, found, values):
    assert len(found) == len(values), f"{reader}: {name}: {len(found)} rows instead of {len(values)}"
    for row, (left, right) in enumerate(zip(found, values)):
        assert left == right, f"{reader}: {name}, row {row}: {str(left)[:80]} instead of {str(right)[:80]}"


TYPES = {
    "flag": "BOOLEAN", "int": "INT", "long": "INT", "single": "FLOAT", "double": "DOUBLE", "date": "DATE",
    "time_ms": "TIME", "time_us": "TIME", "money": "DECIMAL", "amount": "DECIMAL", "huge": "DECIMAL",
    "whole": "DECIMAL", "list": "LIST",
}
SCALES = {"money": 2, "amount": 6, "huge": 10, "whole": 0}

file = pyarrow.parquet.ParquetFile(path, page_checksum_verification=True)
table = file.read()
names = table.column_names
values = {name: wanted(index, TYPES.get(name)) for index, name in enumerate(names)}


def read_pyarrow():
    for name in names:
        column = table[name]
        type = column.type
        if pyarrow.types.is_timestamp(type) or pyarrow.types.is_time64(type):
            found = column.cast(pyarrow.int64()).to_pylist()
        elif pyarrow.types.is_date(type) or pyarrow.types.is_time32(type):
            found = column.cast(pyarrow.int32()).to_pylist()
        elif isinstance(type, pyarrow.BaseExtensionType):
            storage = [chunk.storage for chunk in column.chunks]
            found = [raw(value) for chunk in storage for value in chunk.to_pylist()]
        elif name in ("single", "double"):
            found = [number(value) for value in column.to_pylist()]
        elif name in SCALES:
            assert type == pyarrow.decimal128(type.precision, SCALES[name]), (name, type)
            found = [digits(value, SCALES[name]) for value in column.to_pylist()]
        elif name == "list":
            found = [v if v is None else [raw(e) for e in v] for v in column.to_pylist()]
        else:
            found = [raw(value) for value in column.to_pylist()]
        compare("pyarrow", name, found, values[name])
    assert file.schema_arrow.metadata[b"key"].decode() == "värde", file.schema_arrow.metadata
    assert str(table["ts_ms"].type) == "timestamp[ms, tz=UTC]", table["ts_ms"].type
    assert str(table["local_us"].type) == "timestamp[us]", table["local_us"].type


def read_statistics():
    """Bounds hold for all values, and are exact where they say so."""
    row = 0
    for group in range(file.metadata.num_row_groups):
        metadata = file.metadata.row_group(group)
        rows = slice(row, row + metadata.num_rows)
        row += metadata.num_rows
        for index in range(metadata.num_columns):
            column = metadata.column(index)
            name = column.path_in_schema.split(".")[0]
            if name == "list":
                continue
            statistics = column.statistics
            present = [value for value in values[name][rows] if value is not None]
            assert statistics.null_count == metadata.num_rows - len(present), (name, statistics)
            if name in ("single", "double"):
                present = [struct.unpack(">d", value)[0] for value in present if value != "nan"]
            if not present:
                assert not statistics.has_min_max, (name, statistics)
                continue
            if not statistics.has_min_max:
                assert name in ("text",), (name, statistics)
                continue
            least, greatest = statistics.min_raw, statistics.max_raw
            if name in ("text", "json", "bytes", "uuid", "id"):
                least, greatest = raw(least), raw(greatest)
                assert len(least) <= 64 and len(greatest) <= 64, (name, statistics)
                assert least <= min(present) and greatest >= max(present), (name, statistics)
                assert len(min(present)) > 64 or least == min(present), (name, least)
                assert len(max(present)) > 64 or greatest == max(present), (name, greatest)
            elif name == "huge" or name == "whole":
                assert int.from_bytes(least, "big", signed=True) == min(present), (name, least)
                assert int.from_bytes(greatest, "big", signed=True) == max(present), (name, greatest)
            else:
                assert (least, greatest) == (min(present), max(present)), (name, statistics)
                if greatest == 0 and name == "double":
                    assert math.copysign(1, greatest) == 1
    return row


def read_duckdb():
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    source = f"read_parquet('{path}')"
    for name in names:
        unit = "epoch_ms" if name.endswith("_ms") else "epoch_us"
        expression = f'{unit}("{name}")' if "_" in name else f'"{name}"'
        if name == "date":
            expression = "\"date\" - DATE '1970-01-01'"
        found = [row[0] for row in connection.execute(f"SELECT {expression} FROM {source}").fetchall()]
        if name in ("single", "double"):
            found = [number(value) for value in found]
        elif name in SCALES:
            found = [digits(value, SCALES[name]) for value in found]
        elif name == "uuid":
            found = [value and value.bytes for value in found]
        elif name == "list":
            found = [v if v is None else [raw(e) for e in v] for v in found]
        else:
            found = [raw(value) for value in found]
        compare("DuckDB", name, found, values[name])
    # Row groups are left out by their statistics: every value must still be found.
    for name in ("int", "long", "text", "uuid", "huge", "money", "date", "ts_us", "id", "bytes", "double", "flag"):
        left = connection.execute(
            f'SELECT count(*) FROM {source} AS a WHERE "{name}" = '
            f'(SELECT max("{name}") FROM {source})').fetchone()[0]
        right = connection.execute(
            f'WITH all_rows AS MATERIALIZED (SELECT "{name}" AS v FROM {source}) '
            f'SELECT count(*) FROM all_rows WHERE v = (SELECT max(v) FROM all_rows)').fetchone()[0]
        assert left == right, f"DuckDB: {name}: {left} instead of {right} of the greatest value"
    for value in {value for value in values["text"] if value is not None and len(value) < 100 and b"\0" not in value}:
        count = connection.execute(f"SELECT count(*) FROM {source} WHERE text = ?", [value.decode()]).fetchone()[0]
        assert count == values["text"].count(value), f"DuckDB: text = {value}: {count}"


def read_polars():
    frame = polars.read_parquet(path)
    for name in names:
        column = frame[name]
        if column.dtype == polars.Time:
            unit = 1_000_000 if name == "time_ms" else 1000
            found = [value if value is None else value // unit for value in column.to_physical().to_list()]
        elif column.dtype == polars.Date or column.dtype == polars.Datetime:
            found = column.to_physical().to_list()
        elif name in ("single", "double"):
            found = [number(value) for value in column.to_list()]
        elif name in SCALES:
            found = [digits(value, SCALES[name]) for value in column.to_list()]
        elif name == "list":
            found = [v if v is None else [raw(e) for e in v] for v in column.to_list()]
        else:
            found = [raw(value) for value in column.to_list()]
        compare("polars", name, found, values[name])
    for value in ("a", "007", "é", "x" * 64, "x" * 65):
        count = polars.scan_parquet(path).filter(polars.col("text") == value).collect().height
        assert count == values["text"].count(value.encode()), f"polars: text = {value}: {count}"


def read_spark():
    """Spark 4.1 opens no file with a time of day or a UUID."""
    from pyspark.sql import SparkSession

    session = (SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
               .config("spark.sql.session.timeZone", "UTC").getOrCreate())
    session.read.parquet(path).createOrReplaceTempView("rows")
    for name in names:
        expression = f"`{name}`"
        if name == "date":
            expression = "unix_date(`date`)"
        elif name.startswith(("ts_", "local_")):
            unit = "unix_millis" if name.endswith("_ms") else "unix_micros"
            expression = f"{unit}(CAST(`{name}` AS TIMESTAMP))"
        found = [row[0] for row in session.sql(f"SELECT {expression} FROM rows").collect()]
        if name in ("single", "double"):
            found = [number(value) for value in found]
        elif name in SCALES:
            found = [digits(value, SCALES[name]) for value in found]
        elif name == "list":
            found = [v if v is None else [raw(e) for e in v] for v in found]
        else:
            found = [bytes(value) if isinstance(value, bytearray) else raw(value) for value in found]
        compare("Spark", name, found, values[name])
    for value in ("a", "007", "x" * 64, "x" * 65):
        count = session.sql(f"SELECT count(*) FROM rows WHERE text = '{value}'").collect()[0][0]
        assert count == values["text"].count(value.encode()), f"Spark: text = {value}: {count}"


if "--spark" in sys.argv:
    read_spark()
else:
    read_pyarrow()
    assert read_statistics() == len(expected)
    read_duckdb()
    read_polars()
print(f"{len(expected)} rows agree")
