"""Parser of SELECT queries, and the page and count queries that are built from their clauses."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from merkhet.core.errors import InputError

COUNT = "merkhetCount"
"""The variable for the number of rows in a count query."""
_TOKEN = re.compile(
    r"""
    (?P<skip>\#[^\n\r]*)
  | (?P<text>\"{3}(?:\"{0,2}(?:[^\"\\]|\\.))*\"{3} | '{3}(?:'{0,2}(?:[^'\\]|\\.))*'{3}
            | "(?:[^"\\\n\r]|\\.)*" | '(?:[^'\\\n\r]|\\.)*' | @[A-Za-z]+(?:-[A-Za-z0-9]+)*)
  | (?P<iri><[^<>"{}|^`\\\x00-\x20]*> | (?:[^\W\d_][\w.-]*|_)?:(?:[\w.:-]|%[0-9A-Fa-f]{2}|\\.)*)
  | [?$](?P<variable>\w+)
  | (?P<word>[^\W\d]\w*)
  | (?P<number>\d+)
  | (?P<open>[{(\[])
  | (?P<close>[})\]])
  | (?P<star>\*)
  | .
    """,
    re.VERBOSE | re.DOTALL,
)
_OTHER_FORMS = ("CONSTRUCT", "ASK", "DESCRIBE", "INSERT", "DELETE", "LOAD", "CLEAR", "DROP", "CREATE", "WITH")
_MODIFIER = re.compile(r"SELECT(?:(?:\s|#[^\n\r]*)+(?:DISTINCT|REDUCED)\b)?", re.IGNORECASE)
# Before the second of two variables that are the same column: (?a AS ?b), ?a = ?b, sameTerm(?a, ?b) or ?a IN (?b).
_EQUATION = re.compile(r"(?:^| )\?(\w+) (?:AS|=|IN \()$|(?:^| )SAMETERM \( \?(\w+) ,$")
_TOKENS_BEFORE_EQUATED = 4


@dataclass(frozen=True)
class SelectParts:
    """The clauses of a SELECT query, from which page and count queries are built."""

    prologue: str
    head: str
    dataset: str
    group: str
    """The graph pattern after WHERE, in braces."""
    modifiers: str
    """GROUP BY and HAVING."""
    order: str
    """The query's own ORDER BY clause."""
    slice: str
    """The query's own LIMIT and OFFSET clauses."""
    values: str
    variables: tuple[str, ...]
    """The selected variables; for ``SELECT *``, all variables in the query."""
    repeated: frozenset[str]
    """Selected variables that may have the value of an earlier one, such as ``?b`` in ``SELECT ?a (?a AS ?b)``."""
    grouped: bool
    """Whether the query has GROUP BY."""
    limit: int | None
    """The query's own LIMIT."""
    offset: int
    """The query's own OFFSET; 0 if there is none."""
    sliced_subquery: bool
    """Whether a subquery has LIMIT or OFFSET."""

    @property
    def sliced(self) -> bool:
        """Whether the query has LIMIT or OFFSET."""
        return bool(self.slice)

    def page(self, limit: int, offset: int, nested: bool = False, by_hash: bool = False) -> str:
        """Return the query for one page of the distinct rows in a stable order.

        Args:
            limit: The number of rows of the page.
            offset: The number of rows before the page.
            nested: Whether to sort in a subquery and to apply LIMIT and OFFSET outside, because Virtuoso sorts at most
                10,000 rows in a query with LIMIT.
            by_hash: Whether to sort by hashes instead of columns. Virtuoso does not order literals of some 50
                characters or more consistently.
        """
        # The order of the query itself is left out: facts are a set, and Virtuoso pairs the columns of different rows
        # if a column is sorted by twice.
        slice_ = f"LIMIT {limit} OFFSET {offset}"
        if nested:
            rows = f"{self._distinct_rows(by_hash)}\n{self._order(by_hash)}"
            return f"{self.prologue}SELECT * {self.dataset}\nWHERE {{ {{\n{rows}\n}} }}\n{slice_}"
        return f"{self.prologue}{self._distinct_rows(by_hash, self.dataset)}\n{self._order(by_hash)}\n{slice_}"

    def next_row(self, offset: int) -> str:
        """Return a query for one row of a query with LIMIT or OFFSET: the row after its first ``offset`` rows."""
        body = f"{self.head} {self.dataset} {self._where_with_values}"
        return f"{self.prologue}{body}\n{self.order}\nLIMIT 1 OFFSET {self.offset + offset}"

    def count(self, blank_nodes: bool = True) -> str:
        """Return a query that counts the distinct rows; of a query with LIMIT or OFFSET, it counts all rows.

        Args:
            blank_nodes: Whether to count rows with blank nodes.
        """
        filters = "" if blank_nodes else "".join(f"\nFILTER(!BOUND(?{x}) || !isBlank(?{x}))" for x in self.variables)
        if self.sliced:
            rows = f"{self.head} {self._where_with_values}\n{self.order}\n{self.slice}"
        else:
            rows = self._distinct_rows()
        # FROM is not allowed in a subquery; in the outer query it applies to both.
        select = f"SELECT (COUNT(*) AS ?{COUNT}) {self.dataset}"
        return f"{self.prologue}{select}\nWHERE {{ {{\n{rows}\n}}{filters} }}"

    def _distinct_rows(self, wrapped: bool = False, dataset: str = "") -> str:
        """Return a query for the distinct rows, without prologue; ``wrapped`` makes the query a subquery."""
        # Virtuoso loses rows of a query with both DISTINCT and GROUP BY, and of one with GROUP BY that is no subquery.
        if wrapped or self.grouped:
            return f"SELECT DISTINCT * {dataset}\nWHERE {{ {{\n{self.head} {self._where_with_values}\n}} }}"
        return f"{self._distinct_head()} {dataset} {self._where_with_values}"

    @property
    def _where_with_values(self) -> str:
        """The WHERE clause with VALUES in its group, where Virtuoso applies it before LIMIT and in subqueries."""
        # After GROUP BY, VALUES means another join.
        if self.values and not self.grouped:
            return f"WHERE {{ {self.group}\n{self.values}\n}}"
        return f"WHERE {self.group}{self.modifiers}\n{self.values}".rstrip()

    def _distinct_head(self) -> str:
        match = _MODIFIER.match(self.head)
        assert match is not None  # The head begins with SELECT.
        return f"SELECT DISTINCT {self.head[match.end() :].lstrip()}"

    def _order(self, by_hash: bool = False) -> str:
        if by_hash:
            # Equal texts may differ in language or datatype.
            kinds = [f"{function}(?{name})" for name in self.variables for function in ("LANG", "DATATYPE")]
            keys = [*(f"MD5(STR(?{name}))" for name in self.variables), *kinds]
        else:
            keys = [f"STR(?{name})" if name in self.repeated else f"?{name}" for name in self.variables]
        return f"ORDER BY {' '.join(keys)}" if keys else ""


class _ClauseScanner:
    """A scanner of the tokens of a query, which finds where its clauses start; -1 stands for none."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._previous: list[str] = []
        self._in_select_clause = False
        self.depth = 0
        self.start = self.end = self.group_start = self.group_end = -1
        self.clause_starts: dict[str, int] = {}
        self.numbers: dict[str, int] = {}
        self.dataset: list[tuple[int, int]] = []
        self.selects_all = False
        self.sliced_subquery = False
        self.selected: list[str] = []
        self.all_variables: dict[str, None] = {}
        self.equated: list[tuple[str, str]] = []

    def read(self, token: re.Match[str]) -> None:
        """Take in the next token that is neither blank nor a comment."""
        kind, matched = token.lastgroup, token.group()
        word = matched.upper() if kind == "word" else ""
        if self.start < 0:
            if word in _OTHER_FORMS:
                raise InputError(f"{self._name} is a {word} query; merkhet reads SELECT queries only")
            if word == "SELECT":
                self.start, self._in_select_clause = token.start(), True
        elif kind == "open":
            self._in_select_clause = self._in_select_clause and matched != "{"
            if self.depth == 0 and matched == "{" and self.group_start < 0:
                self.group_start = token.start()
            self.depth += 1
        elif kind == "close":
            self.depth -= 1
            if self.depth == 0 and self.group_start >= 0 > self.group_end:
                self.group_end = token.end()
        elif kind == "variable":
            self._read_variable(token["variable"])
        elif self.depth == 0:
            self._read_clause(token, word)
        elif word in ("LIMIT", "OFFSET"):
            self.sliced_subquery = True
        name = f"?{token['variable']}" if kind == "variable" else word or matched
        self._previous = [*self._previous[1 - _TOKENS_BEFORE_EQUATED :], name]
        self.end = token.end()

    def _read_variable(self, variable: str) -> None:
        self.all_variables[variable] = None
        if self._in_select_clause and (self.depth == 0 or self._previous[-1:] == ["AS"]):
            self.selected.append(variable)
        # An equation too many only makes the sorting slower.
        if equation := _EQUATION.search(" ".join(self._previous)):
            self.equated.append((equation[1] or equation[2], variable))

    def _read_clause(self, token: re.Match[str], word: str) -> None:
        kind = token.lastgroup
        self.selects_all = self.selects_all or (self._in_select_clause and kind == "star")
        self._in_select_clause = self._in_select_clause and word not in ("FROM", "WHERE", "WITH")
        if kind == "iri" and self.dataset and self.dataset[-1][1] < 0:
            self.dataset[-1] = (self.dataset[-1][0], token.end())
        elif word == "FROM":
            self.dataset.append((token.start(), -1))
        elif word in ("WHERE", "GROUP", "ORDER", "LIMIT", "OFFSET", "VALUES"):
            self.clause_starts.setdefault(word, token.start())
        elif kind == "number" and self._previous[-1:] in (["LIMIT"], ["OFFSET"]):
            self.numbers.setdefault(self._previous[-1], int(token.group()))


def parse_select(text: str, name: str) -> SelectParts:
    """Split a SELECT query into its clauses; keywords in strings, comments, IRIs and nested braces are ignored.

    Raises:
        InputError: The text is not a complete SELECT query. ``name`` stands for the query in the message.
    """
    found = _ClauseScanner(name)
    for token in _TOKEN.finditer(text):
        if token.lastgroup != "skip" and not token.group().isspace():
            found.read(token)
    if found.start < 0 or found.depth != 0 or found.group_end < 0 or not found.all_variables:
        raise InputError(f"{name} is not a complete SELECT query; check its braces and its first word")
    starts = found.clause_starts
    variables = tuple(dict.fromkeys(found.all_variables if found.selects_all else found.selected))
    values_start = starts.get("VALUES", found.end)
    slice_start = min(starts.get(word, values_start) for word in ("LIMIT", "OFFSET"))
    order_start = starts.get("ORDER", slice_start)
    where_start = starts.get("WHERE", found.group_start)
    dataset_start, dataset_end = (found.dataset[0][0], found.dataset[-1][1]) if found.dataset else (where_start,) * 2
    return SelectParts(
        prologue=text[: found.start],
        head=text[found.start : dataset_start],
        dataset=text[dataset_start:dataset_end],
        group=text[found.group_start : found.group_end],
        modifiers=text[found.group_end : order_start],
        order=text[order_start:slice_start],
        slice=text[slice_start:values_start],
        values=text[values_start : found.end],
        variables=variables,
        repeated=_repeated(variables, found.equated),
        grouped="GROUP" in starts,
        limit=found.numbers.get("LIMIT"),
        offset=found.numbers.get("OFFSET", 0),
        sliced_subquery=found.sliced_subquery,
    )


def _repeated(variables: Sequence[str], equated: Sequence[tuple[str, str]]) -> frozenset[str]:
    """Return the variables that may have the value of an earlier variable."""
    group = {name: name for pair in equated for name in pair}
    for left, right in equated:
        old, new = group[left], group[right]
        group = {name: new if root == old else root for name, root in group.items()}
    seen: set[str] = set()
    repeated: set[str] = set()
    for name in variables:
        root = group.get(name)
        if root is not None:
            (repeated if root in seen else seen).add(name if root in seen else root)
    return frozenset(repeated)
