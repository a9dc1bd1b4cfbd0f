"""What is known about functions: which change by themselves, which multiply rows, which are safe row by row."""

from __future__ import annotations

from sqlglot import exp

_CHANGING_NODES = (
    exp.CurrentDate,
    exp.CurrentDatetime,
    exp.CurrentTime,
    exp.CurrentTimestamp,
    exp.CurrentUser,
    exp.Rand,
    exp.Randn,
    exp.Uuid,
)
_CHANGING_NAMES = frozenset(
    [
        "now",
        "curdate",
        "current_user",
        "user",
        "session_user",
        "current_timezone",
        "localtime",
        "localtimestamp",
        "systimestamp",
        "utc_date",
        "utc_time",
        "utc_timestamp",
        "random",
        "randstr",
        "uniform",
        "shuffle",
        "monotonically_increasing_id",
        "spark_partition_id",
        "input_file_name",
        "input_file_block_start",
        "input_file_block_length",
        "current_database",
        "current_catalog",
        "current_schema",
        "version",
    ]
)
# Spark functions that sqlglot has no class for and that give the same answer for the same row, always.
_STEADY_NAMES = frozenset(
    [
        "make_date",
        "make_timestamp",
        "make_timestamp_ntz",
        "date_part",
        "bround",
        "window",
        "weekday",
        "dayofyear",
        "weekofyear",
        "quarter",
        "dayname",
        "monthname",
        "last_day",
        "next_day",
        "named_struct",
        "nvl2",
        "zeroifnull",
        "nullifzero",
        "positive",
        "negative",
        "pmod",
        "unix_micros",
        "unix_millis",
        "unix_seconds",
        "timestamp_micros",
        "timestamp_millis",
        "timestamp_seconds",
        "date_from_unix_date",
        "to_timestamp_ntz",
        "to_number",
        "try_to_number",
        "elt",
        "locate",
        "instr",
        "luhn_check",
        "mask",
        "overlay",
        "printf",
        "format_string",
        "format_number",
        "soundex",
        "levenshtein",
        "startswith",
        "endswith",
        "contains",
        "hash",
        "xxhash64",
        "width_bucket",
        "try_add",
        "try_subtract",
        "try_multiply",
        "try_mod",
        "try_element_at",
        "map_contains_key",
        "get_json_object",
        "array_contains",
        "array_position",
        "cardinality",
        "size",
        "get",
    ]
)
_GENERATORS = (exp.Explode, exp.Posexplode, exp.Inline, exp.Unnest)

WINDOW = "window"
SESSION_WINDOW = "session_window"


def called(node: exp.Expr) -> str | None:
    """The name of a function that sqlglot does not know, in lower case."""
    return node.name.lower() if isinstance(node, exp.Anonymous) else None


def changing(node: exp.Expr) -> str | None:
    """The first function in a query whose answer changes though its rows do not."""
    for found in node.walk():
        if isinstance(found, _CHANGING_NODES) or not _CHANGING_NAMES.isdisjoint(_names(found)):
            return found.sql("spark").split("(")[0].lower()
    return None


def _names(node: exp.Expr) -> set[str]:
    """What a function is called: a later sqlglot may have a class for it."""
    if isinstance(node, exp.Anonymous):
        return {node.name.lower()}
    return {name.lower() for name in node.sql_names()} if isinstance(node, exp.Func) else set()


def unknown_function(node: exp.Expr) -> str | None:
    """The first function that may be anything: a user's own, or one this version has not heard of."""
    for found in node.find_all(exp.Anonymous):
        if called(found) not in _STEADY_NAMES:
            return str(found.name)
    return None


def aggregate(node: exp.Expr) -> bool:
    """An aggregate call, with its FILTER when it has one; `agg(...) OVER (...)` is a window function."""
    if isinstance(node, (exp.Filter, exp.IgnoreNulls, exp.RespectNulls, exp.WithinGroup)):
        return aggregate(node.this)
    return isinstance(node, (exp.AggFunc, exp.Any)) and not isinstance(node.parent, exp.Window)


def has_aggregate(node: exp.Expr) -> bool:
    return any(aggregate(found) for found in node.walk(prune=lambda n: isinstance(n, (exp.Window, exp.Query))))


def session_window(node: exp.Expr) -> bool:
    return any(called(found) == SESSION_WINDOW for found in node.find_all(exp.Anonymous))


def multiplies_rows(node: exp.Expr) -> bool:
    """True for generators and for windows: one row can fall into several hopping windows, or into none."""
    if any(called(found) in (WINDOW, SESSION_WINDOW) for found in node.find_all(exp.Anonymous)):
        return True
    return node.find(*_GENERATORS) is not None
