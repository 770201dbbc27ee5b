"""`make fleet`: the SQL of docs/examples/fleet in DuckDB, ClickHouse and Spark, against what `why` says."""
