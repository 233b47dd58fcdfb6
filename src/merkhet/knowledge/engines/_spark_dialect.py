"""DuckDB's SQL as Spark's, so that both engines give the same rows: what sqlglot does not know of merkhet's queries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import duckdb
import pyarrow as pa
import sqlglot
from sqlglot import exp

_KEPT = "kept_by_window"
_BYTES = "(..)" * 8
_BYTES_REVERSED = "".join(f"${place}" for place in range(8, 0, -1))


@dataclass(frozen=True)
class Macro:
    """An expression over parameters."""

    parameters: tuple[str, ...]
    body: Any


class Translator:
    """Queries translated one by one; macros are put in where they are called."""

    def __init__(self) -> None:
        self.macros: dict[str, Macro] = {}
        # A text alone is no JSON to Spark, and a list is; Java writes letters of escapes in capitals.
        escapes = [f"\\\\u00{code:02X}" for code in (0x0B, 0x0E, 0x0F, *range(0x1A, 0x20))]
        text = "substring(to_json(array(t)), 2, length(to_json(array(t))) - 2)"
        exact = text
        for escape in escapes:
            exact = f"replace({exact}, '{escape}', '{escape[:3] + escape[3:].lower()}')"
        plain = r"""t rlike '[\\x00-\\x1f"\\\\]'"""
        self.macros["json_text"] = Macro(
            ("t",), sqlglot.parse_one(f"if({plain}, {exact}, '\"' || t || '\"')", read="spark")
        )
        self.macros["json_list"] = Macro(("t",), sqlglot.parse_one("to_json(t)", read="spark"))

    def define(self, function: str, parameters: Sequence[str], body: str) -> None:
        """Remember a macro."""
        self.macros[function] = Macro(tuple(parameters), self._expanded(_parsed(body)))

    def query(self, text: str) -> str:
        """A query in Spark's SQL."""
        return str(_rewritten(self._expanded(_parsed(text)), _as_spark).sql("spark"))

    def _expanded(self, tree: Any) -> Any:
        return _rewritten(tree, self._put_in)

    def _put_in(self, node: Any) -> Any:
        macro = self.macros.get(str(node.this)) if isinstance(node, exp.Anonymous) else None
        if macro is None:
            return node
        given = dict(zip(macro.parameters, node.expressions, strict=True))
        return exp.paren(_rewritten(macro.body.copy(), lambda one: _argument(one, given)))


def _rewritten(tree: Any, change: Callable[[Any], Any]) -> Any:
    """A tree whose nodes were changed from the leaves upwards, so that a change sees its arguments changed."""
    for node in reversed(list(tree.bfs())):
        made = change(node)
        if made is node:
            continue
        if node is tree:
            tree = made
        else:
            node.replace(made)
    return tree


def _parsed(text: str) -> Any:
    return sqlglot.parse_one(text, read="duckdb")


def _argument(node: Any, given: Mapping[str, Any]) -> Any:
    if isinstance(node, exp.Column) and not node.table and node.name in given:
        return exp.paren(given[node.name].copy())
    return node


def _as_spark(node: Any) -> Any:
    for kind, change in _CHANGES.items():
        if isinstance(node, kind):
            return change(node)
    return node


def _ordered_list(node: exp.ArrayAgg) -> Any:
    """Lists in an order: Spark collects in none, so the keys are collected too and sorted by."""
    order = node.this
    if not isinstance(order, exp.Order):
        raise ValueError(f"a list without an order has one in no engine: {node.sql('duckdb')}")
    keys = [key.this for key in order.expressions]
    if any(key.args.get("desc") for key in order.expressions):
        raise ValueError(f"a list in descending order is not translated: {node.sql('duckdb')}")
    if isinstance(order.this, exp.Distinct):
        [value] = order.this.expressions
        if keys != [value]:
            raise ValueError(f"a list of distinct values has their own order: {node.sql('duckdb')}")
        return _call("array_sort", _call("collect_set", value))
    fields = [*(exp.alias_(key.copy(), f"k{place}") for place, key in enumerate(keys))]
    fields.append(exp.alias_(order.this.copy(), "v"))
    rows = _call("array_sort", _call("collect_list", exp.Struct(expressions=fields)))
    return exp.Dot(this=exp.paren(rows), expression=exp.to_identifier("v"))


def _qualified(node: exp.Select) -> Any:
    """Rows kept by a window: it is a column of an inner query, of which the outer one asks."""
    qualify = node.args.get("qualify")
    if qualify is None:
        return node
    inner = node.copy()
    inner.set("qualify", None)
    outer_parts = {name: inner.args.get(name) for name in ("with_", "order", "limit") if inner.args.get(name)}
    for name in outer_parts:
        inner.set(name, None)
    inner.append("expressions", exp.alias_(qualify.this.copy(), _KEPT))
    star = exp.Star(**{"except_": [exp.to_identifier(_KEPT)]})
    outer = exp.Select(expressions=[star]).from_(inner.subquery("qualified")).where(exp.column(_KEPT))
    for name, part in outer_parts.items():
        outer.set(name, part)
    return outer


def _named_query(node: exp.CTE) -> Any:
    """Spark plans a named query by itself."""
    node.set("materialized", None)
    return node


def _call(function: str, *arguments: Any) -> Any:
    return exp.Anonymous(this=function, expressions=[one.copy() for one in arguments])


def _function(node: exp.Anonymous) -> Any:
    if str(node.this).lower() == "md5_number_lower":
        # The last eight bytes of the hash, the last one first, as DuckDB reads them.
        text = "substring(md5(x), 17, 16)"
        number = f"conv(regexp_replace({text}, '{_BYTES}', '{_BYTES_REVERSED}'), 16, 10)"
        return _template(f"cast({number} as decimal(20, 0))", x=node.expressions[0])
    return node


def _cast(node: exp.Cast) -> Any:
    """A hexadecimal text as a number."""
    text = node.this.unnest()
    if isinstance(text, exp.DPipe) and isinstance(text.this, exp.Literal) and text.this.this == "0x":
        return _template("cast(conv(x, 16, 10) as bigint)", x=text.expression)
    return node


def _template(text: str, **given: Any) -> Any:
    return _rewritten(sqlglot.parse_one(text, read="spark"), lambda one: _argument(one, given))


def _case(name: str) -> Callable[[Any], Any]:
    """Letters of another case: Java knows other ones than DuckDB, and changes some by what stands beside them."""

    def change(node: Any) -> Any:
        return exp.Anonymous(
            this="translate", expressions=[node.this.copy(), *(exp.Literal.string(text) for text in case_map(name))]
        )

    return change


@cache
def case_map(name: str) -> tuple[str, str]:
    """The letters that DuckDB's lower or upper changes, and what into: one for one, whatever stands beside them."""
    rows = _letters(f"select letter, {name}(letter) from letters where {name}(letter) != letter order by letter")
    return "".join(row[0] for row in rows), "".join(row[1] for row in rows)


@cache
def _spaces() -> str:
    """What DuckDB trims."""
    return "".join(row[0] for row in _letters("select letter from letters where trim(letter) = '' order by letter"))


def _letters(query: str) -> list[tuple[str, ...]]:
    """The rows of a query over all letters there are."""
    codes = (code for code in range(1, 0x110000) if not 0xD800 <= code <= 0xDFFF)
    with duckdb.connect() as connection:
        connection.register("letters", pa.table({"letter": [chr(code) for code in codes]}))
        found: list[tuple[str, ...]] = connection.execute(query).fetchall()
    return found


def _trim(node: exp.Trim) -> Any:
    if node.expression or node.args.get("position"):
        return node
    return exp.Trim(this=node.this.copy(), expression=exp.Literal.string(_spaces()), position="BOTH")


_CHANGES: Mapping[Any, Callable[[Any], Any]] = {
    exp.CTE: _named_query,
    exp.Select: _qualified,
    exp.ArrayAgg: _ordered_list,
    exp.Anonymous: _function,
    exp.Cast: _cast,
    exp.Lower: _case("lower"),
    exp.Upper: _case("upper"),
    exp.Trim: _trim,
}
