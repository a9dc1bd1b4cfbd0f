"""A table reaches its contract by steps that Iceberg can make without touching data."""

from __future__ import annotations

from lodestream.contracts import Contract, Field
from lodestream.contracts.evolution import Step, evolve

TABLE = (
    "struct<id:string,seats:int,fare:decimal(10,2),ratio:float,place:struct<lat:double>,tags:array<struct<k:string>>>"
)


def contract(*fields: Field) -> Contract:
    return Contract("trips", "1.0.0", fields)


SAME = (
    Field("id", "string"),
    Field("seats", "int"),
    Field("fare", "decimal(10,2)"),
    Field("ratio", "float"),
    Field("place", "struct<lat:double>"),
    Field("tags", "array<struct<k:string>>"),
)


def test_an_equal_table_needs_nothing() -> None:
    found = evolve(TABLE, contract(*SAME))
    assert (found.steps, found.obstacles, found.kept) == ((), (), ())


def test_a_smallint_is_already_stored_as_int() -> None:
    assert evolve("struct<seats:int>", contract(Field("seats", "smallint"))).steps == ()


def test_wider_types_new_columns_and_new_nested_fields_are_steps() -> None:
    found = evolve(
        TABLE,
        contract(
            Field("id", "string"),
            Field("seats", "bigint"),
            Field("fare", "decimal(12,2)"),
            Field("ratio", "double"),
            Field("place", "struct<lat:double,lon:double>"),
            Field("tags", "array<struct<k:string,v:string>>"),
            Field("tip", "decimal(10,2)", description="Card tips."),
        ),
    )
    assert found.obstacles == ()
    assert found.steps == (
        Step("widen", ("seats",), type="bigint"),
        Step("widen", ("fare",), type="decimal(12,2)"),
        Step("widen", ("ratio",), type="double"),
        Step("add", ("place", "lon"), type="double"),
        Step("add", ("tags", "element", "v"), type="string"),
        Step("add", ("tip",), type="decimal(10,2)", comment="Card tips."),
    )


def test_an_alias_renames_and_other_changes_name_the_column_as_it_is() -> None:
    found = evolve("struct<seats:int>", contract(Field("passengers", "bigint", aliases=("seats",))))
    assert found.steps == (
        Step("rename", ("seats",), name="passengers"),
        Step("widen", ("seats",), type="bigint"),
    )


def test_while_both_names_are_there_nothing_is_renamed() -> None:
    both = contract(Field("seats", "int"), Field("passengers", "int", aliases=("seats",)))
    assert evolve("struct<seats:int>", both).steps == (Step("add", ("passengers",), type="int"),)
    assert evolve("struct<seats:int,passengers:int>", both).steps == ()


def test_a_column_the_contract_forgot_stays_and_may_be_null() -> None:
    found = evolve("struct<id:string,old:int>", contract(Field("id", "string", required=True)), required=["id", "old"])
    assert found.kept == (("old",),)
    assert found.steps == (Step("relax", ("old",)),)


def test_a_required_column_stays_required_under_its_new_name() -> None:
    renamed = contract(Field("key", "string", required=True, aliases=("id",)))
    assert evolve("struct<id:string>", renamed, required=["id"]).steps == (Step("rename", ("id",), name="key"),)


def test_narrowing_is_an_obstacle_with_a_way_out() -> None:
    (found,) = evolve("struct<seats:bigint>", contract(Field("seats", "int"))).obstacles
    assert found.path == ("seats",)
    assert found.why == "bigint cannot become int in place"
    assert "fill both" in found.fix


def test_a_name_that_differs_only_in_case_is_an_obstacle() -> None:
    """Spark would take both for one column and fail on the next write."""
    (found,) = evolve("struct<VendorID:int>", contract(Field("vendorid", "int"))).obstacles
    assert "differs only in case" in found.why


def test_map_values_widen_and_map_keys_do_not() -> None:
    assert evolve("struct<m:map<string,int>>", contract(Field("m", "map<string,bigint>"))).steps == (
        Step("widen", ("m", "value"), type="bigint"),
    )
    assert len(evolve("struct<m:map<int,int>>", contract(Field("m", "map<bigint,int>"))).obstacles) == 1


def test_a_column_that_never_is_null_stays_so_by_whatever_name_it_has() -> None:
    """Keys as well: rows without theirs could not be told apart."""
    wanted = Contract("trips", "1.0.0", (Field("key", "string", aliases=("id",)), *SAME[1:]), keys=("key",))
    found = evolve(TABLE, wanted, required=("id", "seats"))
    assert found.steps == (Step("rename", ("id",), name="key"), Step("relax", ("seats",)))
    assert wanted.never_null == {"key"}
    assert wanted.ddl(constraints=True).startswith("`key` string NOT NULL, `seats` int, ")
