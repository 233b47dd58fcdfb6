"""What the questions are about: how many of each type, domain and kind of knowledge."""

from __future__ import annotations

from collections import Counter

from merkhet.analysis.types import NO_DOMAIN, Analysis, AnalysisInput, Column, Figure, Row, Table, TableRow

_EXPLANATION = (
    "How many questions of each type there are in each domain and for each kind of knowledge. Scores over all "
    "questions lean towards what is asked most."
)


def distribution(given: AnalysisInput) -> Analysis | None:
    """Questions by type and domain, and by type and kind of knowledge, as tables and stacked bars."""
    if not given.questions:
        return None
    counts = Counter((row["task"], row["domain"] or NO_DOMAIN) for row in given.questions)
    tables = [_table("Questions by domain and type.", "Domain", list(given.domains), given.tasks, counts)]
    figures = [Figure("stack", "Questions by type and domain", _bars(given.tasks, list(given.domains), counts))]
    kinds = list(dict.fromkeys(kind for kind in given.domains.values() if kind))
    if kinds:
        other = "other"
        of_kind: Counter[tuple[str, str]] = Counter()
        for (task, domain), count in counts.items():
            of_kind[task, given.domains[domain] or other] += count
        kinds += [other] if any(kind == other for _, kind in of_kind) and other not in kinds else []
        tables.append(_table("Questions by kind of knowledge and type.", "Knowledge", kinds, given.tasks, of_kind))
        figures.append(Figure("stack", "Questions by type and kind of knowledge", _bars(given.tasks, kinds, of_kind)))
    return Analysis(
        "distribution", "What the questions are about", _EXPLANATION, tuple(tables), tuple(figures), _sentences(given)
    )


def _table(caption: str, head: str, names: list[str], tasks: list[str], counts: Counter[tuple[str, str]]) -> Table:
    columns = (Column(head), *(Column(task, "count") for task in tasks), Column("all", "count"))
    rows: list[TableRow] = [
        (name, *(counts[task, name] for task in tasks), sum(counts[task, name] for task in tasks)) for name in names
    ]
    totals = [sum(counts[task, name] for name in names) for task in tasks]
    return Table(caption, columns, (*rows, ("all", *totals, sum(totals))))


def _bars(tasks: list[str], names: list[str], counts: Counter[tuple[str, str]]) -> tuple[Row, ...]:
    return tuple(
        {"bar": task, "part": name, "count": counts[task, name]}
        for task in tasks
        for name in names
        if any(counts[other, name] for other in tasks)
    )


def _sentences(given: AnalysisInput) -> tuple[str, ...]:
    facts = len({fact for row in given.questions for fact in row["facts"] or []})
    sets = Counter(row["qset"] for row in given.questions if row["qset"] is not None)
    several = sum(count > 1 for count in sets.values())
    about = f" about {facts:,} facts" if facts else ""
    in_sets = f"; {several:,} Q-sets hold more than one of them" if several else ""
    return (f"There are {len(given.questions):,} questions{about}{in_sets}.",)
