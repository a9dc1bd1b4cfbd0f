"""A catalog that lies: triggers in the SQLite file itself, so that every client meets them and none is told."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Literal

Kind = Literal["yes", "no"]
# "yes", success without a commit: the row is put back before the client hears that one row was updated.
# "no", a commit reported as a failure: `FAIL` keeps what the statement has done and reports an error.
_ACTS: dict[Kind, str] = {
    "yes": "UPDATE iceberg_tables SET metadata_location = OLD.metadata_location, "
    "previous_metadata_location = OLD.previous_metadata_location "
    "WHERE table_namespace = OLD.table_namespace AND table_name = OLD.table_name AND {due};",
    "no": "SELECT CASE WHEN {due} THEN RAISE(FAIL, 'the connection was closed') END;",
}


# A number that wanders, so that lies do not keep step with the commits of a batch that is made again.
_WANDER = "number = (number * 1103515245 + 12345) % 2147483648"


class LyingCatalog:
    """Lies about one of so many commits to the tables whose names match, until `end`; the seed says about which."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def lie(self, kind: Kind, *, one_of: int, tables: str = "%", seed: int = 1) -> None:
        due = f"(SELECT (number / 65536) % {one_of} FROM lies WHERE kind = '{kind}') = 0"
        act = _ACTS[kind].format(due=due)
        self._run("CREATE TABLE IF NOT EXISTS lies (kind TEXT PRIMARY KEY, number INTEGER, told INTEGER)")
        self._run(f"INSERT OR REPLACE INTO lies VALUES ('{kind}', {seed}, 0)")
        self._run(
            f"CREATE TRIGGER lie_{kind} AFTER UPDATE OF metadata_location ON iceberg_tables "
            f"WHEN NEW.table_namespace || '.' || NEW.table_name LIKE '{tables}' BEGIN "
            f"UPDATE lies SET {_WANDER} WHERE kind = '{kind}'; "
            f"UPDATE lies SET told = told + ({due}) WHERE kind = '{kind}'; {act} END"
        )

    def told(self, kind: Kind) -> int:
        """How many lies of this kind were told."""
        ((told,),) = self._run(f"SELECT told FROM lies WHERE kind = '{kind}'")
        return int(told)

    def end(self) -> None:
        for kind in _ACTS:
            self._run(f"DROP TRIGGER IF EXISTS lie_{kind}")

    def _run(self, statement: str) -> list[tuple[int]]:
        connection = sqlite3.connect(self._file, timeout=30, isolation_level=None)
        try:
            return connection.execute(statement).fetchall()
        finally:
            connection.close()
