# A Parquet file, read by pyarrow, DuckDB and DataFusion, which have to agree; what it tells of its row groups is checked against the
# rows. Writes them as JSON, with what is told of the recording.

import json
import sys

import datafusion
import duckdb
import pyarrow
import pyarrow.compute
import pyarrow.parquet

path = sys.argv[1]
file = pyarrow.parquet.ParquetFile(path)
columns = file.schema_arrow.names


def plain(value):
    return {key: text for key, text in value} if isinstance(value, list) else value


def rows_of(table):
    """Times as nanoseconds, maps as dictionaries."""
    for at, field in enumerate(table.schema):
        if pyarrow.types.is_timestamp(field.type):
            nanoseconds = table.column(at).cast(pyarrow.timestamp("ns", field.type.tz)).cast(pyarrow.int64())
            table = table.set_column(at, field.name, nanoseconds)
    return [{key: plain(value) for key, value in row.items()} for row in table.to_pylist()]


def check_groups():
    metadata = file.metadata
    counted = 0
    for at in range(metadata.num_row_groups):
        group = metadata.row_group(at)
        read = file.read_row_group(at)
        assert group.num_rows == read.num_rows > 0
        assert len(set(read.column("record").to_pylist())) == 1, "records of several kinds in a group"
        counted += group.num_rows
        for leaf in range(group.num_columns):
            chunk = group.column(leaf)
            assert chunk.compression == "GZIP"
            statistics = chunk.statistics
            if "." in chunk.path_in_schema:
                continue
            values = read.column(chunk.path_in_schema)
            assert statistics.null_count == values.null_count, chunk.path_in_schema
            if not statistics.has_min_max:
                assert values.null_count == len(values), chunk.path_in_schema
                continue
            if pyarrow.types.is_timestamp(values.type):
                values = values.cast(pyarrow.int64())
                told = [statistics.min_raw, statistics.max_raw]
            else:
                told = [statistics.min, statistics.max]
            bounds = pyarrow.compute.min_max(values)
            bounds = [bounds["min"].as_py(), bounds["max"].as_py()]
            if all(len(str(bound).encode()) <= 64 for bound in bounds):
                assert told == bounds, chunk.path_in_schema
            else:
                # Of a long text something short that is before it, or behind.
                least, most = (text.encode() for text in told)
                assert least <= bounds[0].encode() and most >= bounds[1].encode(), chunk.path_in_schema
                assert max(len(least), len(most)) <= 64, chunk.path_in_schema
    assert counted == metadata.num_rows == file.read().num_rows


check_groups()
rows = rows_of(file.read())

by_duckdb = duckdb.connect().sql(f"SELECT * FROM '{path}'").to_arrow_table()
assert by_duckdb.schema.names == columns
assert rows_of(by_duckdb) == rows

context = datafusion.SessionContext()
context.register_parquet("recording", path)
by_datafusion = context.sql("SELECT * FROM recording").to_arrow_table()
key = lambda row: json.dumps(row, sort_keys=True)
assert sorted(map(key, rows_of(by_datafusion))) == sorted(map(key, rows))

facts = {key.decode(): value.decode() for key, value in (file.metadata.metadata or {}).items()}
told = [{key: value for key, value in row.items() if value is not None} for row in rows]
json.dump({"facts": facts, "rows": told, "schema": [f"{field.name} {field.type}" for field in file.schema_arrow]}, sys.stdout)
