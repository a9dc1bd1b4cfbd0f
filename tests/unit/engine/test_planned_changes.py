"""`lode plan` says which tables a change rebuilds and what that reads, from the stored tables alone."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog, load_catalog

from lodestream.cli.main import run_command
from lodestream.config import load_config
from lodestream.contracts import parse_contract
from lodestream.pipeline.definition import code_of, definition_parts, parts_note, read_parts
from lodestream.pipeline.gold.plan import InputInfo
from lodestream.planning.plan import make_plan
from lodestream.planning.project import open_project
from lodestream.planning.rebuilds import PlannedChange
from lodestream.tables.inspect import Inspector
from lodestream.tables.promised import promise

CONTRACT = """\
apiVersion: v3.0.2
kind: DataContract
id: order
name: order
version: {version}
status: active
schema:
  - name: order
    properties:
      - {{name: order_id, logicalType: integer, physicalType: bigint, required: true, primaryKey: true}}
      - {{name: region, logicalType: string, physicalType: string}}
      - {{name: qty, logicalType: integer, physicalType: {qty}}}
{more}"""
PIPELINE = """\
from lodestream import Json, Kafka, Pipeline

shop = Pipeline("shop")
shop.bronze("raw", Kafka("orders"))


@shop.silver(decode=Json(), contract="order.yaml")
def orders(raw):
    return raw.withColumn("region", "x")


shop.reference("zones", "zones.csv", schema="id int, name string", keys="id", owner="me")
shop.gold("daily", sql="daily.sql", owner="me")
shop.gold("all_of_it", sql="SELECT o.* FROM silver.orders o", owner="me")
shop.gold("top", sql="SELECT max(n) AS n FROM gold.daily", owner="me")
"""
DAILY = "SELECT region, sum(qty) AS n FROM silver.orders GROUP BY region"
ORDERS = pa.schema([("order_id", pa.int64()), ("region", pa.string()), ("qty", pa.int32())])


class Shop:
    """A project that has run once: its tables are real, and say what they were made by."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "pipeline.py").write_text(PIPELINE)
        (root / "daily.sql").write_text(DAILY)
        (root / "zones.csv").write_text("id,name\n1,a\n")
        self.contract()
        config = load_config(root)
        config.state_dir.mkdir()
        place = {"uri": config.catalog_uri().removeprefix("jdbc:"), "warehouse": config.warehouse()}
        self._catalog: Catalog = load_catalog(config.catalog.name, type="sql", **place)
        for tier in ("silver", "gold"):
            self._catalog.create_namespace(tier)
        self._run()

    def contract(self, version: str = "1.0.0", qty: str = "int", more: str = "") -> None:
        (self.root / "order.yaml").write_text(CONTRACT.format(version=version, qty=qty, more=more))

    def edit(self, file: str, old: str, new: str) -> None:
        text = (self.root / file).read_text()
        assert old in text
        (self.root / file).write_text(text.replace(old, new))

    def changes(self) -> dict[str, PlannedChange]:
        return {one.table: one for one in make_plan(open_project(load_config(self.root))).changes}

    def _run(self) -> None:
        project = open_project(load_config(self.root))
        graph = project.graph
        self._table("silver.orders", ORDERS, 5, code=code_of(graph["silver.orders"]))
        contract = parse_contract((self.root / "order.yaml").read_text())
        with self._catalog.load_table("silver.orders").transaction() as change:
            change.set_properties(promise(contract))
        zones = json.dumps({"file": {"file": "zones.csv", "sha256": _digest(self.root / "zones.csv")}})
        self._table("silver.zones", pa.schema([("id", pa.int32()), ("name", pa.string())]), 1, positions=zones)
        shapes = {"gold.daily": [("region", pa.string()), ("n", pa.int64())], "gold.top": [("n", pa.int64())]}
        for name, schema in {**shapes, "gold.all_of_it": list(ORDERS)}.items():
            if name == "gold.top":
                continue
            self._table(name, pa.schema(schema), 2, parts=self._note(project, name))
        self._table("gold.top", pa.schema(shapes["gold.top"]), 1, parts=self._note(project, "gold.top"))

    def _note(self, project: Any, name: str) -> str:
        inspector = Inspector(project.config)
        graph = project.graph
        infos = [
            InputInfo(one, inspector.look(one).columns(), lookup=one in graph.lookups(name))  # type: ignore[union-attr]
            for one in graph.inputs(name)
        ]
        return parts_note(definition_parts(graph[name], infos))

    def _table(self, name: str, schema: pa.Schema, rows: int, positions: str = "{}", **notes: str) -> None:
        made = self._catalog.create_table(name, schema)
        stamp = {"lode.flow": name, "lode.run": "r", "lode.batch": "1", "lode.positions": positions}
        empty = pa.table({one.name: pa.nulls(rows, one.type) for one in schema}, schema=schema)
        made.append(empty, {**stamp, **{f"lode.{key}": value for key, value in notes.items()}})


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


def test_an_unchanged_project_rebuilds_nothing(shop: Shop) -> None:
    assert shop.changes() == {}


def test_a_changed_query_rebuilds_its_table_alone_and_says_what_it_reads(shop: Shop, capfd: Any) -> None:
    shop.edit("daily.sql", "sum(qty)", "max(qty)")
    (change,) = shop.changes().values()
    assert (change.table, change.effect, change.why) == ("gold.daily", "rebuild", "its query or function changed")
    (read,) = change.reads
    assert (read.name, read.rows, read.bytes is not None and read.bytes > 0) == ("silver.orders", 5, True)
    assert change.then == ("gold.top",)
    assert run_command(["--project", str(shop.root), "plan"]) == 0
    assert (
        "gold.daily will be rebuilt: its query or function changed\n  reads: silver.orders (5 rows, "
        in capfd.readouterr().out
    )
    run_command(["--project", str(shop.root), "plan", "--json"])
    shown = json.loads(capfd.readouterr().out)["changes"]
    assert [(one["table"], one["effect"], one["reads"][0]["rows"]) for one in shown] == [("gold.daily", "rebuild", 5)]


def test_a_widened_column_rebuilds_the_tables_that_read_it(shop: Shop) -> None:
    shop.contract("1.1.0", qty="bigint")
    found = shop.changes()
    assert found["silver.orders"].effect == "alter"
    assert "widen qty to bigint; the 5 stored rows stay" in found["silver.orders"].why
    assert found["gold.daily"].why == "columns of silver.orders that it reads changed"
    assert set(found) == {"silver.orders", "gold.daily", "gold.all_of_it"}


def test_a_new_column_rebuilds_only_what_reads_all_columns(shop: Shop) -> None:
    shop.contract("1.1.0", more="      - {name: note, logicalType: string, physicalType: string}\n")
    found = shop.changes()
    assert {name: one.effect for name, one in found.items()} == {"silver.orders": "alter", "gold.all_of_it": "rebuild"}
    assert "add note string" in found["silver.orders"].why


def test_a_changed_function_of_silver_applies_to_new_rows(shop: Shop) -> None:
    shop.edit("pipeline.py", '"region", "x"', '"region", "y"')
    (change,) = shop.changes().values()
    assert (change.table, change.effect) == ("silver.orders", "new rows")
    assert change.why == "its code changed; the 5 stored rows stay as the old code made them"


def test_a_rule_that_changed_judges_new_rows(shop: Shop) -> None:
    text = (shop.root / "order.yaml").read_text()
    (shop.root / "order.yaml").write_text(text.replace("name: region,", "name: region, required: true,"))
    found = shop.changes()["silver.orders"]
    assert (found.effect, "region" in found.why, found.reads) == ("new rows", True, ())


def test_a_changed_reference_file_is_read_again(shop: Shop) -> None:
    (shop.root / "zones.csv").write_text("id,name\n1,a\n2,b\n")
    (change,) = shop.changes().values()
    assert (change.table, change.effect, change.reads[0].bytes) == ("silver.zones", "rebuild", 16)


def test_a_new_gold_table_is_built_from_what_is_stored(shop: Shop) -> None:
    shop.edit(
        "pipeline.py",
        'shop.gold("top"',
        'shop.gold("more", sql="SELECT count(*) AS n FROM silver.orders", owner="me")\nshop.gold("top"',
    )
    (change,) = shop.changes().values()
    assert (change.table, change.effect, change.reads[0].rows) == ("gold.more", "build", 5)


def test_a_table_of_an_earlier_version_says_nothing(shop: Shop) -> None:
    assert read_parts(None) is None
    assert read_parts("0123456789abcdef") is None
    assert read_parts('{"query":"x"}') == {"query": "x"}
