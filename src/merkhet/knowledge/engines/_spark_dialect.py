"""Translation of DuckDB's SQL to Spark's SQL, beyond what sqlglot translates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import duckdb
import pyarrow as pa
import sqlglot
from sqlglot import exp

_WINDOW_FILTER = "kept_by_window"
_BYTES = "(..)" * 8
_BYTES_REVERSED = "".join(f"${group}" for group in range(8, 0, -1))


@dataclass(frozen=True)
class Macro:
    """An SQL macro: an expression over parameters."""

    parameters: tuple[str, ...]
    body: Any


class Translator:
    """A translator of queries, which also expands calls of macros."""

    def __init__(self) -> None:
        self.macros: dict[str, Macro] = {}
        # Spark's to_json needs a list, not a text; Java writes the hex digits of escapes in capitals.
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
        """Define a macro; ``body`` is an expression in DuckDB's SQL."""
        self.macros[function] = Macro(tuple(parameters), self._expand(_parse(body)))

    def query(self, text: str) -> str:
        """Translate a query from DuckDB's SQL to Spark's SQL."""
        return str(_rewrite(self._expand(_parse(text)), _to_spark).sql("spark"))

    def _expand(self, tree: Any) -> Any:
        return _rewrite(tree, self._expand_call)

    def _expand_call(self, node: Any) -> Any:
        macro = self.macros.get(str(node.this)) if isinstance(node, exp.Anonymous) else None
        if macro is None:
            return node
        arguments = dict(zip(macro.parameters, node.expressions, strict=True))
        return exp.paren(_rewrite(macro.body.copy(), lambda part: _substitute_argument(part, arguments)))


def _rewrite(tree: Any, change: Callable[[Any], Any]) -> Any:
    """Apply ``change`` to the nodes of a syntax tree from the leaves upwards: children before their parents."""
    for node in reversed(list(tree.bfs())):
        changed = change(node)
        if changed is node:
            continue
        if node is tree:
            tree = changed
        else:
            node.replace(changed)
    return tree


def _parse(text: str) -> Any:
    return sqlglot.parse_one(text, read="duckdb")


def _substitute_argument(node: Any, arguments: Mapping[str, Any]) -> Any:
    if isinstance(node, exp.Column) and not node.table and node.name in arguments:
        return exp.paren(arguments[node.name].copy())
    return node


def _to_spark(node: Any) -> Any:
    for kind, change in _TRANSLATIONS.items():
        if isinstance(node, kind):
            return change(node)
    return node


def _translate_ordered_list(node: exp.ArrayAgg) -> Any:
    """Collect the sort keys with the values and sort the list, because Spark collects lists in no order."""
    order = node.this
    if not isinstance(order, exp.Order):
        raise ValueError(f"a list needs an order: {node.sql('duckdb')}")
    keys = [key.this for key in order.expressions]
    if any(key.args.get("desc") for key in order.expressions):
        raise ValueError(f"a list in descending order cannot be translated: {node.sql('duckdb')}")
    if isinstance(order.this, exp.Distinct):
        [value] = order.this.expressions
        if keys != [value]:
            raise ValueError(f"a list of distinct values must be ordered by them: {node.sql('duckdb')}")
        return _call("array_sort", _call("collect_set", value))
    fields = [*(exp.alias_(key.copy(), f"k{index}") for index, key in enumerate(keys))]
    fields.append(exp.alias_(order.this.copy(), "v"))
    rows = _call("array_sort", _call("collect_list", exp.Struct(expressions=fields)))
    return exp.Dot(this=exp.paren(rows), expression=exp.to_identifier("v"))


def _translate_qualify(node: exp.Select) -> Any:
    """Replace QUALIFY by a subquery that adds the condition as a column, and an outer query that filters by it."""
    qualify = node.args.get("qualify")
    if qualify is None:
        return node
    inner = node.copy()
    inner.set("qualify", None)
    outer_parts = {name: inner.args.get(name) for name in ("with_", "order", "limit") if inner.args.get(name)}
    for name in outer_parts:
        inner.set(name, None)
    inner.append("expressions", exp.alias_(qualify.this.copy(), _WINDOW_FILTER))
    star = exp.Star(**{"except_": [exp.to_identifier(_WINDOW_FILTER)]})
    outer = exp.Select(expressions=[star]).from_(inner.subquery("qualified")).where(exp.column(_WINDOW_FILTER))
    for name, part in outer_parts.items():
        outer.set(name, part)
    return outer


def _translate_cte(node: exp.CTE) -> Any:
    """Drop the keyword ``materialized``; Spark itself decides whether to materialize a subquery."""
    node.set("materialized", None)
    return node


def _call(function: str, *arguments: Any) -> Any:
    return exp.Anonymous(this=function, expressions=[argument.copy() for argument in arguments])


def _translate_function(node: exp.Anonymous) -> Any:
    if str(node.this).lower() == "md5_number_lower":
        # The last eight bytes of the hash, in reverse order, as DuckDB reads them.
        text = "substring(md5(x), 17, 16)"
        number = f"conv(regexp_replace({text}, '{_BYTES}', '{_BYTES_REVERSED}'), 16, 10)"
        return _fill_template(f"cast({number} as decimal(20, 0))", x=node.expressions[0])
    return node


def _translate_cast(node: exp.Cast) -> Any:
    """Translate a cast of a hexadecimal text (``'0x' || …``) to a number."""
    text = node.this.unnest()
    if isinstance(text, exp.DPipe) and isinstance(text.this, exp.Literal) and text.this.this == "0x":
        return _fill_template("cast(conv(x, 16, 10) as bigint)", x=text.expression)
    return node


def _fill_template(text: str, **arguments: Any) -> Any:
    return _rewrite(sqlglot.parse_one(text, read="spark"), lambda part: _substitute_argument(part, arguments))


def _translate_case(name: str) -> Callable[[Any], Any]:
    """Return a translation of ``lower`` or ``upper`` that maps each character as DuckDB does.

    Spark's functions differ: Java maps some characters differently, or depending on their context.
    """

    def change(node: Any) -> Any:
        return exp.Anonymous(
            this="translate", expressions=[node.this.copy(), *(exp.Literal.string(text) for text in case_map(name))]
        )

    return change


@cache
def case_map(name: str) -> tuple[str, str]:
    """Return the characters that DuckDB's ``lower`` or ``upper`` changes, and their replacements in the same order."""
    rows = _query_characters(
        f"select letter, {name}(letter) from letters where {name}(letter) != letter order by letter"
    )
    return "".join(row[0] for row in rows), "".join(row[1] for row in rows)


@cache
def _trimmed_characters() -> str:
    """Return the characters that DuckDB's ``trim`` removes."""
    return "".join(
        row[0] for row in _query_characters("select letter from letters where trim(letter) = '' order by letter")
    )


def _query_characters(query: str) -> list[tuple[str, ...]]:
    """Run a query on the table ``letters``, whose column ``letter`` has all Unicode characters."""
    codes = (code for code in range(1, 0x110000) if not 0xD800 <= code <= 0xDFFF)
    with duckdb.connect() as connection:
        connection.register("letters", pa.table({"letter": [chr(code) for code in codes]}))
        rows: list[tuple[str, ...]] = connection.execute(query).fetchall()
    return rows


def _translate_trim(node: exp.Trim) -> Any:
    if node.expression or node.args.get("position"):
        return node
    return exp.Trim(this=node.this.copy(), expression=exp.Literal.string(_trimmed_characters()), position="BOTH")


_TRANSLATIONS: Mapping[Any, Callable[[Any], Any]] = {
    exp.CTE: _translate_cte,
    exp.Select: _translate_qualify,
    exp.ArrayAgg: _translate_ordered_list,
    exp.ArrayOverlaps: lambda node: _call("arrays_overlap", node.this, node.expression),
    exp.Anonymous: _translate_function,
    exp.Cast: _translate_cast,
    exp.Lower: _translate_case("lower"),
    exp.Upper: _translate_case("upper"),
    exp.Trim: _translate_trim,
}
