# Queries of Parquet files in the current folder, which standard input has as a list: DuckDB and DataFusion have to answer alike. Writes
# the answers as JSON.

import json
import sys

import datafusion
import duckdb


def rows(table):
    return [list(row.values()) for row in table.to_pylist()]


database = duckdb.connect()
context = datafusion.SessionContext().enable_url_table()
answers = []
for query in json.load(sys.stdin):
    answer = rows(database.sql(query).to_arrow_table())
    other = rows(context.sql(query).to_arrow_table())
    # DuckDB's sums are decimals.
    answer = json.loads(json.dumps(answer, default=int))
    assert answer == json.loads(json.dumps(other, default=int)), f"{query}\n{answer}\n{other}"
    answers.append(answer)
json.dump(answers, sys.stdout)
