"""`make fleet`: the SQL of docs/examples/fleet in DuckDB, ClickHouse and Spark, compared with `why`."""
