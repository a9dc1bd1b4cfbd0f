"""Wrong files are refused with the file, the line and the nearest valid word, all problems at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from lodestream.contracts import load_contract, parse_contract
from lodestream.errors import ContractError

HEAD = """apiVersion: v3.0.2
kind: DataContract
id: trips
version: 1.0.0
status: active
"""


def one(attributes: str) -> str:
    return table(f"      - {{name: a, {attributes}}}\n")


def about(name: str, value: str) -> str:
    return table(
        "      - {name: a, physicalType: int}\n", f"    customProperties: [{{property: {name}, value: {value}}}]\n"
    )


def read_as(kind: str, name: str, value: str) -> str:
    return one(f"physicalType: {kind}, customProperties: [{{property: {name}, value: {value}}}]")


def table(properties: str, more: str = "") -> str:
    return f"{HEAD}schema:\n  - name: trips\n{more}    properties:\n{properties}"


def refused(text: str) -> ContractError:
    with pytest.raises(ContractError) as caught:
        parse_contract(text, subject="trip.yaml")
    return caught.value


def test_every_problem_of_a_file_is_reported_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "trip.yaml"
    file.write_text(
        """apiVersion: v3.0.2
kind: DataContract
id: trips
version: 1.0
status: active
owner: mobility
schema:
  - name: trips
    properties:
      - name: fare
        physicalType: decmal(10,2)
        requried: true
      - name: seats
        logicalType: integr
        customProperties:
          - {property: lode.coerse, value: true}
"""
    )
    with pytest.raises(ContractError) as caught:
        load_contract(file)
    lines = [(problem.line, problem.fix) for problem in caught.value.problems]  # type: ignore[attr-defined]
    assert lines[0] == (4, 'write it in quotes: "1.0"')
    assert lines[1][0] == 6
    assert lines[2:] == [
        (11, "did you mean decimal(10,2)?"),
        (12, "did you mean required?"),
        (14, "did you mean integer?"),
        (16, "did you mean lode.coerce?"),
    ]
    assert str(caught.value).startswith(f"{file} has 6 errors\n    {file}:4: version must be text")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "trip.yaml:1: the file is empty"),
        ("a: [1, 2", "trip.yaml:1: not valid YAML"),
        ("- 1", "trip.yaml:1: the contract must be a mapping"),
        (HEAD, "the contract has no schema"),
        (HEAD + "schema: []\n", "each schema object needs a name"),
        (HEAD + "schema:\n  - name: a\n    properties: []\n", "a has no properties"),
        (HEAD + "id: twice\n", "the key id twice"),
        (HEAD.replace("v3.0.2", "v2.0.0"), "apiVersion cannot be v2.0.0"),
        (table("      - physicalType: int\n"), "a property has no name"),
        (table("      - name: a\n"), "property a has no type"),
        (one("physicalType: int}\n" + "      - {name: A, physicalType: int"), "the field A is there twice"),
        (table("      - {name: _lode, physicalType: int}\n"), "the name _lode is reserved"),
        (table("      - {name: 'a${b}', physicalType: int}\n"), "cannot be a column name"),
        (one("physicalType: 'decimal(39,2)'"), "precision is 1..38"),
        (one("physicalType: int, required: 'yes'"), "required of property a must be true or false"),
        (one("physicalType: string, logicalTypeOptions: {pattern: '['}"), "is not a regular expression"),
        (one("physicalType: string, logicalTypeOptions: {minimum: 3}"), "unknown key minimum"),
        (one("physicalType: date, logicalTypeOptions: {minimum: yesterday}"), "is not a date or time"),
        (read_as("int", "lode.rounding", "half_up"), "rounding is for decimals"),
        (read_as("int", "lode.masking", "hash"), "masking hash gives text"),
        (read_as("date", "lode.zone", "Mars/Base"), "Mars/Base is not a time zone"),
        (one("physicalType: 'array<int>', unique: true"), "unique on a array<int>"),
        (one("physicalType: struct, properties: [{name: b, physicalType: int, unique: true}]"), "unique inside a"),
        (read_as("string, unique: true", "lode.masking", "last 4"), "values equal, the field is unique"),
        (read_as("string, primaryKey: true", "lode.masking", "redact"), "makes different values equal, a is the key"),
        (about("lode.eventTime", "a"), "the event time a is a int"),
        (about("lode.eventTime", "aa"), "trip.yaml:8: the event time aa is no field\n  fix: did you mean a?"),
        (about("lode.lateness", "1 min"), "lateness needs an event time"),
        (about("lode.lateness", "soon"), "is not a duration"),
    ],
)  # fmt: skip
def test_a_wrong_file_says_what_is_wrong(text: str, message: str) -> None:
    assert message in str(refused(text))


def rule(expression: str, more: str = "") -> str:
    return table(
        "      - {name: fare, physicalType: double}\n      - {name: tags, physicalType: array<string>}\n",
        f"    quality:\n      - name: r\n        type: custom\n        engine: lodestream\n"
        f"        implementation:\n          expression: {expression}\n{more}",
    )


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("fair >= 0", "fair is no field of the contract"),
        ("fare >=", "is not Spark SQL"),
        ("fare > > 0", "is a number, not a condition"),
        ("sum(fare) > 0", "aggregates"),
        ("fare > (select 1)", "reads other rows"),
        ("exists (select 1 from other)", "reads other rows"),
        ("row_number() over (order by fare) = 1", "aggregates"),
        ("fare > 0; drop table x", "is not one condition"),
        ("fare > 0); drop table x; select (1", "is not Spark SQL"),
        ("fare > 0) from other where (true", "is not Spark SQL"),
        ("fare > 0, fare", "is not Spark SQL"),
        ("select true", "is not one condition"),
        ("drop table x", "is not one condition"),
        ("fare > 0 as x", "is not one condition"),
    ],
)
def test_a_rule_must_be_one_condition_on_one_row(expression: str, message: str) -> None:
    assert message in str(refused(rule(f'"{expression}"')))


@pytest.mark.parametrize(
    "expression",
    ["fare >= 0 -- comment", "exists(tags, t -> t = 'x')", "`fare` IN (1, 2)", "_lode.offset >= 0", "FARE is not null"],
)
def test_a_rule_may_use_what_spark_knows(expression: str) -> None:
    assert parse_contract(rule(f'"{expression}"')).rules[0].expression == expression


def test_wrong_actions_and_limits_of_a_rule_are_named() -> None:
    error = str(refused(rule("fare > 0", "          action: drop\n          threshold: a few\n")))
    assert 'action of quality check 1 of trips: "drop" is not an action' in error
    assert '"a few" is not a limit' in error
    error = str(refused(rule("fare > 0", "          action: fail above 5 % over 1 mn\n")))
    assert 'unknown unit "mn"' in error
    assert "use one of" not in error, "the action is right, its limit is not"


def test_a_rule_for_nearly_our_engine_is_not_passed_over() -> None:
    wrong = refused(rule("fare > 0").replace("engine: lodestream", "engine: Lodestraem"))
    assert "engine of quality check 1 of trips: Lodestraem would not be enforced here" in str(wrong)
    assert not parse_contract(rule("fare > 0").replace("engine: lodestream", "engine: soda")).rules


def test_the_standards_own_row_count_check_is_a_rule() -> None:
    text = table(
        "      - name: fare\n        physicalType: double\n        quality:\n"
        "          - name: paid\n            type: sql\n"
        "            query: SELECT COUNT(*) FROM {object} WHERE {property} < 0\n            mustBe: 0\n"
    )
    (found,) = parse_contract(text).rules
    assert (found.expression, found.column) == ("NOT coalesce((`fare` < 0), false)", "fare")


def test_nested_anchors_do_not_exhaust_memory() -> None:
    bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n"
    bomb += "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 10))
    assert "anchors" in str(refused(bomb))
    assert "anchors" in str(refused("a: &a [*a]"))


def test_a_file_that_is_not_there_or_not_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ContractError, match="cannot be read"):
        load_contract(tmp_path / "none.yaml")
    (tmp_path / "bytes.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ContractError, match="UTF-8"):
        load_contract(tmp_path / "bytes.yaml")


def test_a_changed_file_is_seen_and_an_equal_one_is_not_read_again(tmp_path: Path) -> None:
    taxi = Path(__file__).parents[3] / "examples" / "nyc_taxi" / "contracts" / "trip.yaml"
    file = tmp_path / "trip.yaml"
    file.write_text(text := taxi.read_text())
    first = load_contract(file)
    assert load_contract(file) is first
    file.write_text(text.replace(f"version: {first.version}", "version: 99.0.0"))
    assert load_contract(file).version == "99.0.0"


def test_one_of_several_schema_objects_is_chosen_by_name() -> None:
    text = (
        HEAD + "schema:\n" + "".join(f"  - name: {n}\n    properties: [{{name: x, physicalType: int}}]\n" for n in "ab")
    )
    assert parse_contract(text, "b").dataset == "b"
    assert "has 2 schema objects" in str(refused(text))


def test_an_action_may_say_its_limit() -> None:
    (short,) = parse_contract(rule("fare > 0", "          action: fail above 5 % over 1 min\n")).rules
    (long,) = parse_contract(rule("fare > 0", "          action: fail\n          threshold: 5 % over 1 min\n")).rules
    assert short == long
    assert (short.action, str(short.threshold)) == ("fail", "5 % over 1 min")
