"""From facts and sentences with places to statements with one mask, in SQL: prompts, all their answers, ids."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from merkhet.core import SLOT
from merkhet.core.errors import InputError, did_you_mean
from merkhet.core.recall_schemas import STATEMENTS
from merkhet.core.schemas import validate
from merkhet.questions.english import FORMS
from merkhet.suites.lama_tk.questions.temporal_facts import CLOSE, OPEN, TemporalFacts, workbench
from merkhet.suites.lama_tk.questions.wordings import TemporalWording, Wordings

ENTITIES = ("text", "symbols")
"""How entities and times stand in a sentence: by their names, or as symbols."""
COLUMNS = {"subject": "s", "object": "o", "start": "st", "end": "en", "time": "st"}
"""The columns of ``worded`` that hold the texts of places."""
MADE = """task varchar, relation varchar, template varchar, mask varchar, prompt varchar, bare_prompt varchar,
    target varchar, fact_id varchar, asked boolean"""
_PLACE = re.compile(r"\{(?:(\w+) )?(\w+)\}")
_IN_A_DAY = re.compile(r"\b([Ii])n (?=\{(?:start|end|time)\})")
_MARKS = {
    (form, place): chr(0xE000 + 16 * row + column)
    for row, form in enumerate(FORMS)
    for column, place in enumerate((*COLUMNS, "other"))
}
"""A private character for each form and place, where its text is put in; no name has one in it."""
_ROWS = 8192  # Of so many rows the answers fit into one array, however many each has.
_REMARKS = b"merkhet.remarks"
_ORDER = "list_position(['subject', 'object', 'start', 'end', 'time'], mask)"


class Composer:
    """A database with facts in words (``worded``), to which questions are added (``made``), and what these become.

    A fact of a symmetric relation stands in ``worded`` both ways round; the way that is not stated is ``mirrored``: it
    makes answers right, but is not asked about. So do rows of ``made`` that are not ``asked``.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, facts: TemporalFacts, wordings: Wordings) -> None:
        self.connection = connection
        self.facts = facts
        given = connection.sql("select distinct relation, point from facts order by all").fetchall()
        self.wordings: dict[tuple[str, bool], TemporalWording] = {
            (relation, point): wordings.of(relation, facts.labels.get(relation, relation), point)
            for relation, point in given
        }
        texts = [text for one in self.wordings.values() for text in one.sentences.values()]
        self.forms = sorted({(found[1] or "", found[2]) for text in texts for found in _PLACE.finditer(text)})
        self.days = facts.table.num_rows > 0 and facts.table["start"][0].as_py().lstrip("-").count("-") == 2
        self.remarks: list[str] = []

    def run(self, sql: str, values: Mapping[str, object] | None = None) -> None:
        """Execute a statement."""
        self.connection.execute(sql, dict(values)) if values else self.connection.execute(sql)

    def count(self, sql: str) -> int:
        """The one number that a query finds."""
        return int(self.connection.execute(sql).fetchall()[0][0])

    def put_patterns(self, table: str, task: str, asked: Mapping[str, Sequence[str]], bare: bool = False) -> None:
        """Make a table of the sentences that the relations have of these templates, one a place that is asked for.

        ``bare`` adds the sentence without the other time.
        """
        rows = []
        for (relation, point), wording in self.wordings.items():
            for template, masks in asked.items():
                text = wording.sentences.get(template, "")
                for mask in masks:
                    if any(found[2] == mask for found in _PLACE.finditer(text)):
                        short = wording.sentences.get(mask) if bare else None
                        rows.append(
                            {
                                **{"relation": relation, "point": point, "task": task, "template": template},
                                **{"mask": mask, "text": self._marked(text, mask)},
                                "bare": self._marked(short, mask) if short else None,
                            }
                        )
        texts = [(name, pa.string()) for name in ("relation", "task", "template", "mask", "text", "bare")]
        self.connection.register("given", pa.Table.from_pylist(rows, schema=pa.schema([*texts, ("point", pa.bool_())])))
        self.run(f"create or replace temp table {table} as select * from given")
        self.connection.unregister("given")

    def _marked(self, text: str, mask: str) -> str:
        """A sentence with the slot in the place that is asked for, and marks in the others."""
        if self.days:
            text = _IN_A_DAY.sub(lambda found: "On " if found[1] == "I" else "on ", text)
        return _PLACE.sub(lambda found: SLOT if found[2] == mask else _MARKS[found[1] or "", found[2]], text)

    def said(self, text: str, columns: Mapping[str, str] = COLUMNS) -> str:
        """SQL for the sentence of a pattern, with these columns in its places.

        Its first letter is upper case (but "iPhone"), and a name that ends in a full stop ("F.C.") ends it.
        """
        for form, place in self.forms:
            if place in columns:
                column = f"{columns[place]}_{form}" if form else columns[place]
                text = f"replace({text}, '{_MARKS[form, place]}', {column})"
        return f"sentence({text})"

    def finish(self, template: str = "statement") -> pa.Table:
        """The statements that were made, each once, with all right answers; ``template`` says what cardinality is of.

        What is asked in the same words is one question: its answers are those of all facts that it may be about.
        """
        self._cardinalities(template)
        parts = ", ',', ".join(f"to_json({name})::varchar" for name in ("task", "template", "mask", "prompt", "target"))
        self.run(
            """create temp table asked as select * exclude (asked) from made where asked
            qualify row_number() over (partition by task, template, mask, prompt, target order by fact_id) = 1"""
        )
        again = self.count("select (select count(*) from made where asked) - (select count(*) from asked)")
        if again:
            what = "statement says" if again == 1 else "statements say"
            self.remarks.append(f"{again:,} {what} what another one says in the same words: asked once.")
        self.run(
            """create temp table questions as select prompt, row_number() over () - 1 as question,
                list_sort(list_distinct(list(target))) as answers from made group by prompt"""
        )
        found = self.connection.sql(
            f"""select 's_' || left(sha256(concat('[', {parts}, ']')), 20) as statement_id, task, relation, template,
                mask, prompt, bare_prompt, target, question, cardinality, fact_id
            from asked join questions using (prompt) join cardinalities using (fact_id)
            order by fact_id, task, template, {_ORDER}, statement_id"""
        ).to_arrow_table()
        answers = self._answers(found["question"].combine_chunks())
        conflict = pc.greater(pc.list_value_length(answers), 1)
        table = found.drop_columns("question").append_column("answers", answers).append_column("conflict", conflict)
        return with_remarks(validate(STATEMENTS, table), self.remarks)

    def _answers(self, questions: pa.Array) -> pa.ChunkedArray:
        """The answers of rows by the numbers of their questions; lists are long, so that rows get theirs last."""
        lists = self.connection.sql("select answers from questions order by question").to_arrow_table()["answers"]
        kept = lists.cast(STATEMENTS.schema.field("answers").type).combine_chunks()
        parts = [kept.take(questions.slice(start, _ROWS)) for start in range(0, len(questions), _ROWS)]
        return pa.chunked_array(parts, kept.type)

    def _cardinalities(self, template: str) -> None:
        self.put_patterns("both_ends", "", {template: ("subject", "object")})
        self.run(
            f"""create temp table cardinalities as
            with masked as (
                select fact_id, mask, mirrored, {self.said("text")} as prompt,
                    case mask when 'subject' then subject else object end as target
                from worded join both_ends using (relation, point)
            ), sizes as (select prompt, count(distinct target) > 1 as several from masked group by prompt)
            select fact_id, ['1-1', '1-N', 'N-M'][1 + count(distinct mask) filter (several)] as cardinality
            from masked join sizes using (prompt) where not mirrored group by fact_id"""
        )


@contextmanager
def composer(facts: TemporalFacts, wordings: Wordings, entities: str) -> Iterator[Composer]:
    """A composer of these facts, whose entities and times stand in sentences as text or as symbols."""
    if entities not in ENTITIES:
        raise InputError(f"entities cannot stand in sentences as {entities!r}; {did_you_mean(entities, ENTITIES)}")
    with workbench(facts=facts.table, symbols=facts.symbols) as connection:
        one = Composer(connection, facts, wordings)
        one.run(
            r"""create temp macro sentence(t) as case when regexp_matches(t, '^\p{Ll}\p{Lu}') then left(t, 1)
            else upper(left(t, 1)) end || case when ends_with(t, '..') then substr(t, 2, length(t) - 2)
            else substr(t, 2) end"""
        )
        one.run(f"create temp macro bracketed(t) as '{OPEN}' || t || '{CLOSE}'")
        if entities == "text":
            shown = "subject_name as s, object_name as o, a.name as st, b.name as en"
        else:
            shown = (
                "bracketed(subject) as s, bracketed(object) as o, bracketed(a.symbol) as st, bracketed(b.symbol) as en"
            )
        formed = _formed(one, entities)
        one.run(
            f"""create temp table worded as with stated as (
                select fact_id, relation, point, subject, object, "start", "end", time_key("start", 0) as starts,
                    time_key("end", 0) as ends, {shown}, false as mirrored
                from facts join symbols a on a.symbol = '@' || "start" join symbols b on b.symbol = '@' || "end"
            ), both_ways as (
                from stated union all
                select * replace (object as subject, subject as object, o as s, s as o, true as mirrored)
                from stated where list_contains($symmetric, relation)
            ) {formed}""",
            {"symmetric": [name for (name, _), wording in one.wordings.items() if wording.symmetric]},
        )
        one.run(f"create temp table made ({MADE})")
        yield one


def remarks_of(statements: pa.Table) -> tuple[str, ...]:
    """What there is to remark of statements that were just made: what was not asked, and why."""
    kept = (statements.schema.metadata or {}).get(_REMARKS)
    return tuple(json.loads(kept)) if kept else ()


def with_remarks(statements: pa.Table, remarks: Sequence[str]) -> pa.Table:
    """The statements with these remarks; they do not travel further than the table in memory."""
    return statements.replace_schema_metadata({_REMARKS: json.dumps(list(remarks)).encode()} if remarks else None)


def _formed(one: Composer, entities: str) -> str:
    """SQL for facts with the forms of their names that sentences use ("the Netherlands"); a symbol has none."""
    ends = {"subject": "s", "object": "o", "other": "s"}
    used = sorted({(form, ends[place]) for form, place in one.forms if form and place in ends})
    if entities == "symbols":
        return "select *" + "".join(f", {end} as {end}_{form}" for form, end in used) + " from both_ways"
    for form in {form for form, _ in used}:
        names = one.connection.sql(
            "select subject_name as name from facts union select object_name from facts"
        ).to_arrow_table()
        shown = pa.array([FORMS[form](name) for name in names["name"].to_pylist()], pa.string())
        one.connection.register(f"form_{form}", names.append_column("shown", shown))
    columns = "".join(f", {end}_{form}.shown as {end}_{form}" for form, end in used)
    joins = " ".join(f"join form_{form} as {end}_{form} on {end}_{form}.name = w.{end}" for form, end in used)
    return f"select w.*{columns} from both_ways w {joins}"
