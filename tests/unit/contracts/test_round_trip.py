"""YAML, values and Python classes say the same: nothing is lost on the way between them."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

from hypothesis import given
from hypothesis import strategies as st

from lodestream.contracts import (
    Contract,
    Field,
    Limits,
    Masking,
    Reading,
    Rule,
    Threshold,
    contract_yaml,
    load_contract,
    parse_contract,
    python_source,
    write_contract,
)
from lodestream.contracts.check import check
from lodestream.contracts.types import canonical
from lodestream.names import reserved

CONTRACTS = Path(__file__).parents[3] / "examples" / "nyc_taxi" / "contracts"

texts = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), min_size=1, max_size=20)
words = texts.map(str.strip).filter(bool)
names = words.filter(lambda name: "${" not in name and not reserved(name))
plain = st.none() | st.booleans() | st.integers(-(2**40), 2**40) | texts
loose = st.dictionaries(texts, plain | st.lists(plain, max_size=2), max_size=2)
seconds = st.integers(1, 10**7).map(float) | st.sampled_from([0.2, 0.001, 1.5, 86400.0, 3.7])
thresholds = st.builds(Threshold, st.sampled_from([0.0, 0.1, 5.0, 12.5, 100.0]), st.none() | seconds)
scalars = st.sampled_from(
    [
        "string",
        "int",
        "bigint",
        "smallint",
        "double",
        "float",
        "decimal(10,2)",
        "boolean",
        "binary",
        "date",
        "timestamp",
        "timestamp_ntz",
    ]
)
zones = st.none() | st.sampled_from(["UTC", "Europe/Paris", "America/New_York", "+02:00"])


def limits(kind: str) -> st.SearchStrategy[Limits]:
    lengths = st.none() | st.integers(0, 50)
    if kind == "string":
        listed = st.lists(texts, max_size=3, unique=True).map(tuple)
        patterns = st.sampled_from([None, "^[A-Z]{2}$", r"\d+\.\d", "it's ${x}"])
        return st.builds(Limits, values=listed, min_length=lengths, max_length=lengths, pattern=patterns)
    if kind in ("int", "bigint", "double", "decimal(10,2)"):
        bounds = st.none() | st.integers(-1000, 1000) | st.sampled_from([0.5, -2.25, 1e-7, 1e20])
        return st.builds(
            Limits,
            minimum=bounds,
            exclusive_maximum=st.booleans(),
            maximum=bounds,
            multiple_of=st.none() | st.integers(1, 9),
        )
    if kind in ("date", "timestamp", "timestamp_ntz"):
        return st.builds(Limits, minimum=st.none() | st.just("2024-01-31"), exclusive_minimum=st.booleans())
    return st.just(Limits())


def readings(kind: str) -> st.SearchStrategy[Reading]:
    temporal = kind in ("date", "timestamp", "timestamp_ntz")
    return st.builds(
        Reading,
        coerce=st.booleans(),
        rounding=st.sampled_from([None, "half_up"]) if kind.startswith("decimal") else st.none(),
        epoch=st.sampled_from([None, "s", "ms", "us"]) if temporal else st.none(),
        format=st.sampled_from([None, "dd/MM/yyyy HH:mm"]) if temporal else st.none(),
        zone=zones,
        any_case=st.booleans(),
        non_finite=st.booleans(),
    )


@st.composite
def fields(draw: st.DrawFn, name: str, depth: int = 0) -> Field:
    inner: tuple[Field, ...] = ()
    item: Field | None = None
    shape = draw(st.sampled_from(["plain", "plain", "struct", "array", "typed"])) if depth < 2 else "plain"
    kind = draw(scalars)
    if shape == "struct":
        inner_names = draw(st.lists(names, min_size=1, max_size=2, unique_by=str.lower))
        inner = tuple(draw(fields(inner_name, depth + 1)) for inner_name in inner_names)
        kind = "struct<" + ",".join(f"`{one.name.replace('`', '``')}`:{one.type}" for one in inner) + ">"
    elif shape == "array":
        item = draw(fields("element", depth + 1))
        kind = f"array<{item.type}>"
    elif shape == "typed":
        kind = draw(st.sampled_from(["map<string,int>", "struct<a:int,`b c`:array<string>>", "array<double>"]))
    masking = draw(st.sampled_from([None, Masking("hash"), Masking("redact"), Masking("last", 4)]))
    tells_apart = kind != "string" or masking in (None, Masking("hash"))
    return Field(
        name=name,
        type=canonical(kind),
        required=draw(st.booleans()),
        unique=depth == 0 and shape == "plain" and tells_apart and draw(st.booleans()),
        description=draw(st.none() | texts),
        source=draw(st.none() | texts),
        aliases=tuple(draw(st.lists(texts, max_size=2, unique=True))),
        classification=draw(st.none() | texts),
        masking=masking if kind == "string" else None,
        limits=draw(limits(kind)),
        reading=draw(readings(kind)),
        examples=tuple(draw(st.lists(plain, max_size=2))),
        fields=inner,
        items=item,
        extras=draw(st.fixed_dictionaries({}, optional={"businessName": texts, "tags": st.lists(texts, max_size=2)})),
    )


@st.composite
def contracts(draw: st.DrawFn) -> Contract:
    columns = draw(st.lists(names, min_size=1, max_size=4, unique_by=str.lower))
    made = tuple(draw(fields(column)) for column in columns)
    keyable = [one.name for one in made if "<" not in one.type and one.masking in (None, Masking("hash"))]
    moments = [one.name for one in made if one.type in ("date", "timestamp", "timestamp_ntz")]
    event_time = draw(st.none() | st.sampled_from(moments)) if moments else None
    rule_names = draw(st.lists(words, max_size=3, unique=True))
    rules = tuple(
        Rule(
            name,
            draw(st.sampled_from(["1 = 1", "true -- sure", "'it''s' <> '$'", "length('\\n') > 0"])),
            draw(st.sampled_from(["warn", "quarantine", "fail"])),
            draw(st.none() | thresholds),
            draw(st.none() | texts),
            draw(st.none() | st.sampled_from(columns)),
            draw(st.fixed_dictionaries({}, optional={"severity": texts})),
        )
        for name in rule_names
    )
    return Contract(
        name=draw(words),
        version=draw(st.sampled_from(["1.0.0", "2.1.0", "1.0", "7"])),
        fields=made,
        id=draw(words),
        dataset=draw(words),
        status=draw(words),
        owner=draw(st.none() | words),
        description=draw(st.none() | texts),
        rules=rules,
        keys=tuple(draw(st.lists(st.sampled_from(keyable), unique=True, max_size=2))) if keyable else (),
        event_time=event_time,
        lateness=draw(st.none() | seconds) if event_time else None,
        freshness=draw(st.none() | seconds),
        limit=draw(st.none() | thresholds),
        extras=draw(
            st.fixed_dictionaries(
                {},
                optional={
                    "domain": texts,
                    "tags": st.lists(texts, max_size=2),
                    "servers": st.lists(loose, min_size=1, max_size=2),
                },
            )
        ),
    )


def from_python(contract: Contract) -> Contract:
    module = ModuleType("stated")
    sys.modules["stated"] = module
    exec(python_source(contract, "Stated"), vars(module))
    made: Contract = module.Stated.contract()
    return made


@given(contracts())
def test_every_contract_survives_yaml_and_python(contract: Contract) -> None:
    assert check(contract) == []
    written = contract_yaml(contract)
    assert parse_contract(written) == contract
    assert from_python(contract) == contract
    assert contract_yaml(from_python(parse_contract(written))) == written


def test_the_taxi_contracts_survive_every_form(tmp_path: Path) -> None:
    for file in CONTRACTS.glob("*.yaml"):
        contract = load_contract(file)
        write_contract(contract, tmp_path / file.name)
        assert load_contract(tmp_path / file.name) == contract
        assert from_python(contract) == contract


def test_what_we_do_not_model_is_kept() -> None:
    text = """
apiVersion: v3.1.0
kind: DataContract
id: "53581432"
name: payments
version: 1.1.0
status: active
domain: seller
tenant: Climate
description: {purpose: Views, limitations: No buyers, usage: Predict}
servers:
  - {server: pg, type: postgres, host: localhost, port: 5432}
team:
  - {username: anna, role: Data Scientist, dateIn: 2022-08-02}
  - {username: ben, role: Owner}
roles: [{role: reader, access: read}]
slaProperties:
  - {property: latency, value: 4, unit: d, element: tbl.day}
  - {property: latency, value: 2, unit: min}
schema:
  - name: tbl
    physicalName: tbl_1
    dataGranularityDescription: by day
    quality:
      - {type: library, metric: rowCount, mustBeGreaterThan: 5}
    customProperties: [{property: clusterName, value: [a, b]}]
    properties:
      - name: day
        logicalType: timestamp
        physicalType: timestamp
        partitioned: true
        partitionKeyPosition: 1
        transformSourceObjects: [t1, t2]
        quality: [{metric: nullValues, mustBe: 0, type: library}]
      - name: code
        logicalType: string
        physicalType: varchar(2)
        logicalTypeOptions: {format: email}
        quality: [{metric: invalidValues, mustBe: 0, arguments: {validValues: [NL, BE]}}]
"""
    contract = parse_contract(text)
    assert contract.owner == "ben"
    assert contract.freshness == 120
    assert contract["code"].type == "string"
    assert contract["code"].limits == Limits(values=("NL", "BE"), max_length=2)
    again = parse_contract(contract_yaml(contract))
    assert again == contract == from_python(contract)
    for kept in (
        "tenant",
        "servers",
        "roles",
        "rowCount",
        "clusterName",
        "nullValues",
        "partitionKeyPosition",
        "anna",
        "tbl.day",
        "limitations",
        "email",
        "dataGranularityDescription",
    ):
        assert kept in contract_yaml(contract)
    assert contract_yaml(contract).startswith("apiVersion: v3.1.0")


def test_a_change_anywhere_is_seen_by_comparison() -> None:
    contract = load_contract(CONTRACTS / "trip.yaml")
    changed = replace(contract, fields=(*contract.fields[:-1], replace(contract.fields[-1], required=True)))
    assert parse_contract(contract_yaml(changed)) != contract


def test_yaml_is_plain_json_data() -> None:
    """Other ODCS tools read it: no Python tags, no dates, no anchors."""
    import yaml

    written = contract_yaml(load_contract(CONTRACTS / "trip.yaml"))
    assert json.loads(json.dumps(yaml.safe_load(written))) == yaml.safe_load(written)
    assert "&id" not in written
