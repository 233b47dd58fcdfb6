"""Numbers of questions by type, domain and kind of knowledge."""

from __future__ import annotations

from collections import Counter

from merkhet.analysis.types import NO_DOMAIN, Analysis, AnalysisInput, Column, Figure, Row, Table, TableRow
from merkhet.core.text import counted

_EXPLANATION = (
    "How many questions of each type there are in each domain and for each kind of knowledge. Scores over all "
    "questions are dominated by the most frequent ones."
)


def distribution(inputs: AnalysisInput) -> Analysis | None:
    """Count questions by type and domain, and by type and kind of knowledge; None without questions or domains."""
    if not inputs.questions or not inputs.has_domains:
        return None
    counts = Counter((row["task"], row["domain"] or NO_DOMAIN) for row in inputs.questions)
    tables = [_table("Questions by domain and type.", "Domain", list(inputs.domains), inputs.tasks, counts)]
    figures = [Figure("stack", "Questions by type and domain", _bars(inputs.tasks, list(inputs.domains), counts))]
    types = list(dict.fromkeys(type_name for type_name in inputs.domains.values() if type_name))
    if types:
        other_type = "other"
        by_type: Counter[tuple[str, str]] = Counter()
        for (task, domain), count in counts.items():
            by_type[task, inputs.domains[domain] or other_type] += count
        types += (
            [other_type] if any(type_name == other_type for _, type_name in by_type) and other_type not in types else []
        )
        tables.append(_table("Questions by kind of knowledge and type.", "Knowledge", types, inputs.tasks, by_type))
        figures.append(Figure("stack", "Questions by type and kind of knowledge", _bars(inputs.tasks, types, by_type)))
    return Analysis(
        "distribution", "What the questions are about", _EXPLANATION, tuple(tables), tuple(figures), _sentences(inputs)
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
        if any(counts[any_task, name] for any_task in tasks)
    )


def _sentences(inputs: AnalysisInput) -> tuple[str, ...]:
    facts = len({fact for row in inputs.questions for fact in row["facts"] or []})
    sets = Counter(row["qset"] for row in inputs.questions if row["qset"] is not None)
    several = sum(count > 1 for count in sets.values())
    about = f" about {counted(facts, 'fact')}" if facts else ""
    in_sets = f"; {counted(several, 'Q-set holds', 'Q-sets hold')} more than one of them" if several else ""
    there_are = "There is" if len(inputs.questions) == 1 else "There are"
    return (f"{there_are} {counted(len(inputs.questions), 'question')}{about}{in_sets}.",)
