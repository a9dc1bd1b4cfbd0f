"""Commands that read what a run left, ready to be pasted."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from lodestream.cli.screen import short_path
from lodestream.runtime.catalogs import catalog_file

if TYPE_CHECKING:
    from lodestream.planning.project import Project

_PYICEBERG = (
    "from pyiceberg.catalog import load_catalog as c; "
    'print(*c("lode", type="sql", uri="{uri}").load_table("{table}")'
    '.scan(selected_fields=({columns})).to_arrow().to_pylist(), sep="\\n")'
)
# The extensions are loaded from their wheels, so this works offline too.
_DUCKDB = (
    "import duckdb as d, site; "
    'x = site.getsitepackages()[0] + "/duckdb_extension_{{0}}/extensions/v%s/{{0}}.duckdb_extension" % d.__version__; '
    '[d.load_extension(x.format(e)) for e in ("avro", "httpfs", "iceberg")]; '
    "d.sql(\"select {columns} from iceberg_scan('{metadata}') order by 1 desc limit 5\").show()"
)


def look_around(project: Project, table: str, columns: Sequence[str]) -> list[Text]:
    """How to see the tables: with lode, PyIceberg and DuckDB."""
    folder = shlex.quote(short_path(project.config.root))
    python = shlex.quote(_shown(Path(sys.executable)))
    lines = [("lode", f"{lode_command()} --project {folder} status")]
    if catalog_file(project.config):
        uri = project.config.catalog_uri()
        names = ", ".join(f'"{name}"' for name in columns)
        code = _PYICEBERG.format(uri=uri, table=table, columns=names)
        lines.append(("PyIceberg", f"{python} -c {shlex.quote(code)}"))
        if metadata := _metadata(project, table):
            code = _DUCKDB.format(metadata=metadata, columns=", ".join(columns))
            lines.append(("DuckDB", f"{python} -c {shlex.quote(code)}"))
    shown = [Text(f"The tables are in {short_path(project.config.root)}. Look around:")]
    for title, command in lines:
        shown += [Text(f"\n# {title}", style="dim"), Text(command, no_wrap=True, overflow="ignore")]
    return shown


def lode_command() -> str:
    """`lode` as it can be typed in this shell."""
    beside = Path(sys.executable).parent / "lode"
    found = shutil.which("lode")
    if found and os.path.realpath(found) == os.path.realpath(beside):
        return "lode"
    return (
        shlex.quote(_shown(beside))
        if beside.exists()
        else f"{shlex.quote(_shown(Path(sys.executable)))} -m lodestream.cli"
    )


def _shown(program: Path) -> str:
    short = short_path(program)
    return short if "/" in short else f"./{short}"


def _metadata(project: Project, table: str) -> str | None:
    from lodestream.tables.inspect import Inspector

    view = Inspector(project.config).look(table)
    return str(view.table.metadata_location).removeprefix("file:") if view else None
