"""DuckDB, ClickHouse and Spark in this process, with the views of docs/examples/fleet."""

import importlib
import json
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from typing import Any, ClassVar, Final

EXAMPLES: Final = Path(__file__).parents[2] / "docs" / "examples" / "fleet"

Rows = list[tuple[Any, ...]]


def read_statements(*names: str) -> Iterator[str]:
    """Yield the statements of some files."""
    for name in names:
        lines = (EXAMPLES / f"{name}.sql").read_text().splitlines()
        text = "\n".join(line for line in lines if not line.startswith("--"))
        yield from (one for one in text.split(";") if one.strip())


class Engine(ABC):
    """An engine with the views over the logs in `FOLDER/audit`."""

    package: ClassVar[str]

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def query(self, query: str) -> Rows:
        """Return the rows of a query."""
        with chdir(self._folder):
            return self._query(query)

    @abstractmethod
    def _query(self, query: str) -> Rows: ...


class DuckDb(Engine):
    """DuckDB."""

    package = "duckdb"

    def _query(self, query: str) -> Rows:
        with importlib.import_module("duckdb").connect() as connection:
            for statement in read_statements("duckdb", "views"):
                connection.execute(statement)
            rows: Rows = connection.execute(query).fetchall()
            return rows


class ClickHouse(Engine):
    """ClickHouse, as chdb."""

    package = "chdb"

    def _query(self, query: str) -> Rows:
        session = importlib.import_module("chdb.session").Session()
        try:
            for statement in read_statements("clickhouse", "views"):
                session.query(statement)
            lines = str(session.query(query, "JSONCompactEachRow")).splitlines()
        finally:
            session.close()
        return [tuple(_parse_number(value) for value in json.loads(line)) for line in lines]


def _parse_number(value: Any) -> Any:
    """Return a number; ClickHouse writes integers of 64 bits as text."""
    return int(value) if isinstance(value, str) and value.isdecimal() and len(value) < 20 else value


class Spark(Engine):
    """Spark on this machine."""

    package = "pyspark"

    def _query(self, query: str) -> Rows:
        session = importlib.import_module("pyspark.sql").SparkSession
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        builder = session.builder.master("local[2]").config("spark.sql.session.timeZone", "UTC")
        spark = builder.config("spark.ui.enabled", "false").config("spark.log.level", "ERROR").getOrCreate()
        try:
            for statement in read_statements("spark", "views"):
                # The JVM stays in the directory in which it was started first.
                spark.sql(statement.replace("'audit/", f"'{self._folder}/audit/"))
            return [tuple(row) for row in spark.sql(query).collect()]
        finally:
            spark.stop()


ENGINES: Final[dict[str, type[Engine]]] = {"duckdb": DuckDb, "clickhouse": ClickHouse, "spark": Spark}
