"""`lode dead list` and `show` on real Iceberg tables, without a JVM."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog, load_catalog

from lodestream.clock import utc
from lodestream.config import load_config
from lodestream.observe import EventLog, FlowEnded, events_folder
from lodestream.recovery.choice import parse_moment
from lodestream.starter import write_project

NOON = datetime(2024, 1, 31, 12, tzinfo=UTC)
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
SCHEMA = pa.schema(
    [
        ("letter", pa.string()), ("key", pa.binary()), ("value", pa.binary()), ("headers", HEADERS),
        ("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", "UTC")), ("file", pa.string()), ("row", pa.int64()),
        ("reasons", pa.list_(pa.string())), ("contract", pa.string()), ("run", pa.string()), ("batch", pa.int64()),
        ("attempt", pa.string()), ("dead_at", pa.timestamp("us", "UTC")), ("state", pa.string()),
    ]
)  # fmt: skip


def stamp(batch: int, **notes: str) -> dict[str, str]:
    own = {f"lode.{key}": value for key, value in notes.items()}
    return {"lode.flow": "silver.orders", "lode.run": "r1", "lode.batch": str(batch), "lode.positions": "{}", **own}


def letter(name: str, batch: int, reason: str, **more: Any) -> dict[str, Any]:
    made = {
        "letter": name * 8,
        "state": "open",
        "batch": batch,
        "attempt": f"a{batch}",
        "reasons": [reason],
        "run": "r1",
    }
    place = {"topic": "orders", "partition": 0, "offset": ord(name), "contract": "orders 1.0.0"}
    return {**made, **place, "dead_at": NOON + timedelta(minutes=batch), "value": b'{"id":1}', **more}


class Shop:
    def __init__(self, folder: Path) -> None:
        write_project(folder)
        self.folder = folder
        config = load_config(folder)
        config.state_dir.mkdir()
        place = {"uri": config.catalog_uri().removeprefix("jdbc:"), "warehouse": config.warehouse()}
        self._catalog: Catalog = load_catalog(config.catalog.name, type="sql", **place)
        self._catalog.create_namespace("silver")
        self.main = self._catalog.create_table("silver.orders", pa.schema([("order_id", pa.string())]))
        self.dead = self._catalog.create_table("silver.orders__dead", SCHEMA)
        self._publish({})

    def _publish(self, properties: dict[str, str]) -> None:
        self.main.append(pa.table({"order_id": ["x"]}), properties)

    def refuse(
        self, batch: int, *letters: dict[str, Any], published: bool = True, base: str | None = None, **more: str
    ) -> None:
        """A batch with its letters first, as the protocol has it."""
        head = self.main.metadata.snapshot_log[-1]
        notes = {"attempt": f"a{batch}", "base": base or f"{head.snapshot_id}@{head.timestamp_ms}", **more}
        self.dead.append(pa.Table.from_pylist(list(letters), SCHEMA), stamp(batch, **notes))
        if published:
            self._publish(stamp(batch, dead=f"a{batch}"))


@pytest.fixture
def shop(folder: Path) -> Shop:
    return filled(folder)


@pytest.fixture(scope="module")
def seen_shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    """For tests that only look: a shop takes a while to fill."""
    return filled(tmp_path_factory.mktemp("my tests äöü"))


def filled(folder: Path) -> Shop:
    made = Shop(folder / "shop")
    made.refuse(1, letter("a", 1, "rule: amount is positive: -3"), letter("b", 1, "json: malformed at byte 2"))
    made.refuse(2, letter("c", 2, "amount is null", value=b"\xff\x00"))
    decided = letter("a", 2, "", state="replayed", value=None, reasons=None)
    made.refuse(3, decided | {"attempt": "a3", "batch": 3}, guest="replay")
    return made


def listed(lode: Any, shop: Shop, *options: str) -> list[tuple[str, str]]:
    shown = lode("--project", shop.folder, "dead", "list", "silver.orders", "--json", *options).json
    return [(one["letter"][0], one["state"]) for table in shown["tables"] for one in table["found"]]


def test_open_letters_are_listed_and_filters_narrow_them(lode, seen_shop):
    assert listed(lode, seen_shop) == [("b", "open"), ("c", "open")]
    assert listed(lode, seen_shop, "--state", "all") == [("a", "replayed"), ("b", "open"), ("c", "open")]
    assert listed(lode, seen_shop, "--state", "replayed", "--rule", "amount is positive") == [("a", "replayed")]
    assert listed(lode, seen_shop, "--reason", "MALFORMED") == [("b", "open")]
    assert listed(lode, seen_shop, "--since", "2024-01-31T12:02:00Z") == [("c", "open")]
    assert listed(lode, seen_shop, "--until", "2024-01-31T12:02:00Z") == [("b", "open")]
    assert listed(lode, seen_shop, "--batch", "1") == [("a", "replayed"), ("b", "open")]
    assert listed(lode, seen_shop, "--limit", "1") == [("c", "open")], "the newest"


@pytest.fixture
def in_new_york(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as standing:
        standing.setenv("TZ", "America/New_York")
        time.tzset()
        yield
    time.tzset()


def test_every_command_reads_a_time_without_a_zone_as_utc(lode, seen_shop, in_new_york):
    assert listed(lode, seen_shop, "--since", "2024-01-31T12:02:00") == [("c", "open")]
    assert listed(lode, seen_shop, "--since", "2024-01-31T07:02:00-05:00") == [("c", "open")]

    def changed(since: datetime) -> int:
        text = f"{since:%Y-%m-%dT%H:%M:%S}"
        shown = lode("--project", seen_shop.folder, "changes", "silver.orders", "--since", text, "--json")
        return len(shown.json["changes"])

    now = datetime.now(UTC)
    assert changed(now - timedelta(minutes=30)) == 4
    assert changed(now + timedelta(minutes=30)) == 0
    for words in (("dead", "list"), ("changes",)):
        assert "UTC unless it names a zone" in " ".join(lode(*words, "--help").out.split())


def test_every_time_that_is_shown_is_utc_says_so_and_is_read_as_the_same(lode, shop, in_new_york):
    log = EventLog(events_folder(shop.folder / ".lode"), "r1")
    moment = log.emit(FlowEnded("silver.orders", reason="caught up", batches=1, rows=1)).time
    log.close()
    begins = {words: lode("--project", shop.folder, *words).out.splitlines() for words in (
        ("events",), ("changes", "silver.orders"), ("status",), ("dead", "list"), ("dead", "show", "orders", "cccc"),
    )}  # fmt: skip
    shown = {words: re.findall(r"\S+ \d\d:\d\d:\d\d\S*", "\n".join(lines)) for words, lines in begins.items()}
    for words, times in shown.items():
        assert times, f"lode {' '.join(words)} shows no time"
        assert [one for one in times if not re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ", one)] == [], words
    assert shown["events",] == [utc(moment)]
    assert abs(parse_moment(shown["events",][0]).timestamp() - moment) < 1
    assert parse_moment(shown["dead", "show", "orders", "cccc"][0]) == NOON + timedelta(minutes=2)


def test_letters_of_a_batch_that_is_not_published_are_pending_or_void(lode, shop):
    shop.refuse(4, letter("d", 4, "late"), published=False)
    shop.refuse(5, letter("e", 5, "late"), published=False, base="7@7")
    assert listed(lode, shop) == [("b", "open"), ("c", "open")]
    assert listed(lode, shop, "--state", "pending") == [("d", "pending")]


def test_the_list_reads_like_a_table(lode, seen_shop):
    ended = lode("--project", seen_shop.folder, "dead", "list")
    assert "silver.orders: 2 open" in ended.out
    assert "orders/0@98" in ended.out
    assert "json: malformed at byte 2" in ended.out


def test_letters_are_grouped_by_what_is_wrong_with_them(lode, shop):
    more = [letter(name, 4, f"rule: amount is positive: -{n}") for n, name in enumerate("defg")]
    more += [letter(name, 4, f"json: malformed at byte {n}") for n, name in enumerate("hi")]
    shop.refuse(4, *more, letter("j", 4, "amount is null", reasons=["amount is null", "region is null"]))
    lines = lode("--project", shop.folder, "dead", "list").out.splitlines()
    heads = [line for line in lines if not line.startswith(" ")]
    assert heads == [
        "silver.orders: 9 open",
        "4: rule: amount is positive",
        "3: json: malformed at byte #",
        "1: amount is null",
        "1: amount is null; region is null",
    ]
    assert lines[2].startswith("  dddddddd ")
    assert lines[2].endswith(" batch 4 orders/0@100 open -0")
    few = lode("--project", shop.folder, "dead", "list", "--limit", "2").out
    assert "4: rule: amount is positive" in few, "the groups are those of all letters"
    assert "the newest 2 of 9; --limit shows more" in few
    groups = lode("--project", shop.folder, "dead", "list", "--json").json["tables"][0]["groups"]
    assert groups["rule: amount is positive"] == 4


def test_the_list_fits_any_terminal(shop):
    from rich.console import Console

    from lodestream.cli.dead_screen import letters_text
    from lodestream.engine import dead_letters
    from lodestream.planning.project import open_project
    from lodestream.recovery.choice import Choice

    shop.refuse(4, letter("d", 4, "rule: " + "a_long_name_without_any_space_in_it" * 3))
    (found,) = dead_letters(open_project(load_config(shop.folder)), "silver.orders", Choice(limit=50))
    for width in (20, 40, 80, 200):
        with (console := Console(width=width, force_terminal=True, color_system=None)).capture() as captured:
            console.print(letters_text(found))
        lines = captured.get().splitlines()
        assert max(map(len, lines)) <= width
        assert "".join("".join(lines).split()).count("a_long_name_without_any_space_in_it") == 3


def test_reasons_are_listed_however_long_the_way_to_the_file_is(lode, shop):
    way = f"/data/{'far/' * 20}orders.json"
    shop.refuse(4, letter("d", 4, "region is null", topic=None, partition=None, offset=None, file=way, row=7))
    listed = lode("--project", shop.folder, "dead", "list", "--batch", "4").out
    assert "region is null" in listed
    assert "far/orders.json:7" in listed


def test_a_rule_is_chosen_by_its_whole_name(lode, shop):
    shop.refuse(
        4, letter("d", 4, "rule: paid"), letter("e", 4, "rule: paid in time: 3"), letter("f", 4, "expect: paid")
    )
    listed = lode("--project", shop.folder, "dead", "list", "--rule", "Paid", "--json").json["tables"][0]["found"]
    assert {one["letter"][0] for one in listed} == {"d", "f"}
    ended = lode("--project", shop.folder, "dead", "show", "orders", "--rule", "payed")
    assert "no such dead letters; rules that were broken: amount is positive, paid, paid in time" in ended.err


def test_a_letter_is_shown_whole_by_the_beginning_of_its_id(lode, seen_shop):
    shown = lode("--project", seen_shop.folder, "dead", "show", "orders", "cccc").out
    assert "letter cccccccc open" in shown
    assert "reason: amount is null" in shown
    assert r"value: b'\xff\x00'" in shown
    (one,) = lode("--project", seen_shop.folder, "dead", "show", "orders", "cccc", "--json").json["letters"]
    assert one["value"] == {"base64": "/wA="}
    (one,) = lode("--project", seen_shop.folder, "dead", "show", "orders", "aaaa", "--json").json["letters"]
    assert (one["state"], one["decided_by"], one["value"]) == ("replayed", 3, '{"id":1}')


def test_status_counts_the_letters_that_are_open(lode, seen_shop):
    tables = lode("--project", seen_shop.folder, "status", "--json").json["tables"]
    assert {table["name"]: table["dead"] for table in tables}["silver.orders"] == 2


def test_open_letters_are_counted_once_for_each_decision(lode, shop, monkeypatch):
    def dead() -> int:
        tables = lode("--project", shop.folder, "status", "--json").json["tables"]
        return {table["name"]: table["dead"] for table in tables}["silver.orders"]

    assert dead() == 2
    # The number is known for that snapshot: from here on no letter is read, until somebody decides again.
    monkeypatch.setattr("lodestream.recovery.open_count._counted", lambda *_: pytest.fail("letters were read"))
    shop.refuse(4, letter("d", 4, "late"), letter("e", 4, "late"))
    assert dead() == 4
    monkeypatch.undo()
    shop.refuse(5, letter("d", 5, "", state="discarded", attempt=None), guest="discard")
    assert dead() == 3
    fresh = Shop(shop.folder.parent / "fresh")
    fresh.refuse(1, letter("a", 1, "late"))
    monkeypatch.setattr("lodestream.recovery.open_count._counted", lambda *_: pytest.fail("letters were read"))
    shop.folder = fresh.folder
    assert dead() == 1, "nobody has decided: all of them are open"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("list", "silver.oders"), "did you mean silver.orders"),
        (("show", "silver.orders", "xyz"), "no id of a dead letter"),
        (("list", "--since", "yesterday"), "is no time"),
        (("list", "--rule", "a", "--reason", "b"), "give one of them"),
        (("discard", "silver.orders"), "say --all"),
    ],
)
def test_wrong_words_are_explained(lode, folder, words, said):
    write_project(folder / "new")
    ended = lode("--project", folder / "new", "dead", *words)
    assert ended.code == 2
    assert said in ended.err


def test_a_replay_of_nothing_starts_no_spark_and_says_what_waits(lode, folder):
    shop = Shop(folder / "shop")
    shop.refuse(1, letter("a", 1, "rule: paid"), published=False)
    ended = lode("--project", shop.folder, "dead", "replay", "silver.orders", "--json")
    assert (ended.code, ended.json["chosen"], ended.json["replayed"]) == (0, 0, 0)
    assert "no open dead letters; 1 letter is pending, of a batch that is not published" in ended.err
    assert "Starting Spark" not in ended.err


def test_no_letters_is_no_error(lode, folder):
    write_project(folder / "new")
    ended = lode("--project", folder / "new", "dead", "list")
    assert ended.code == 0
    assert "no such dead letters" in ended.err
