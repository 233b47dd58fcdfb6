"""Composition of masked statements in SQL: their prompts, all right answers, and ids."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from merkhet.core import SLOT
from merkhet.core.errors import InputError, did_you_mean
from merkhet.core.recall_schemas import STATEMENTS
from merkhet.core.schemas import validate
from merkhet.questions.english import FORMS
from merkhet.questions.losses import Loss
from merkhet.suites.lama_tk.questions.temporal_facts import CLOSE, OPEN, TemporalFacts, open_workbench
from merkhet.suites.lama_tk.questions.wordings import TemporalWording, Wordings

ENTITIES = ("text", "symbols")
"""Notations of entities and times in a sentence: names, or bracketed symbols."""
COLUMNS = {"subject": "s", "object": "o", "start": "st", "end": "en", "time": "st"}
"""Column of the table ``worded`` with the text of each placeholder."""
MADE_COLUMNS = """task varchar, relation varchar, template varchar, mask varchar, prompt varchar, bare_prompt varchar,
    target varchar, fact_id varchar, asked boolean"""
_PLACEHOLDER = re.compile(r"\{(?:(\w+) )?(\w+)\}")
_IN_BEFORE_TIME = re.compile(r"\b([Ii])n (?=\{(?:start|end|time)\})")
_MARKS = {
    (form, place): chr(0xE000 + 16 * row + column)
    for row, form in enumerate(FORMS)
    for column, place in enumerate((*COLUMNS, "other"))
}
"""Private-use character that stands for each form and placeholder in a pattern; names do not contain any."""
_CHUNK_ROWS = 8192
"""Number of rows per chunk, small enough that their lists of answers fit into one Arrow array."""
_REMARKS, _LOSSES = b"merkhet.remarks", b"merkhet.losses"
_ORDER = "list_position(['subject', 'object', 'start', 'end', 'time'], mask)"


class Composer:
    """Database that composes statements.

    The table ``worded`` contains the facts with the texts of their names and times; ``made`` contains the statements
    made from them. A fact of a symmetric relation is in ``worded`` in both directions. The direction that is not stated
    is marked ``mirrored``: it adds right answers, but no statements. Likewise, rows of ``made`` that are not ``asked``
    only add right answers.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, facts: TemporalFacts, wordings: Wordings) -> None:
        self.connection = connection
        self.facts = facts
        relations_and_kinds = connection.sql("select distinct relation, point from facts order by all").fetchall()
        self.wordings: dict[tuple[str, bool], TemporalWording] = {
            (relation, point): wordings.wording_for(relation, facts.labels.get(relation, relation), point)
            for relation, point in relations_and_kinds
        }
        texts = [text for wording in self.wordings.values() for text in wording.sentences.values()]
        self.forms = sorted({(match[1] or "", match[2]) for text in texts for match in _PLACEHOLDER.finditer(text)})
        self.days = facts.table.num_rows > 0 and facts.table["start"][0].as_py().lstrip("-").count("-") == 2
        self.remarks: list[str] = []
        self.losses: list[Loss] = []
        """Facts without a statement; ``finish`` counts them."""

    def run(self, sql: str, values: Mapping[str, object] | None = None) -> None:
        """Execute an SQL statement, with ``values`` for its named parameters."""
        self.connection.execute(sql, dict(values)) if values else self.connection.execute(sql)

    def count(self, sql: str) -> int:
        """Execute an SQL query that returns one integer."""
        return int(self.connection.execute(sql).fetchall()[0][0])

    def create_patterns(
        self, table: str, task: str, masks_by_template: Mapping[str, Sequence[str]], bare: bool = False
    ) -> None:
        """Create a table of sentence patterns, with one row for each relation, template and mask.

        Args:
            bare: Also add the sentence whose only time is the masked one, as column ``bare``.
        """
        rows = []
        for (relation, point), wording in self.wordings.items():
            for template, masks in masks_by_template.items():
                text = wording.sentences.get(template, "")
                for mask in masks:
                    if any(match[2] == mask for match in _PLACEHOLDER.finditer(text)):
                        bare_text = wording.sentences.get(mask) if bare else None
                        rows.append(
                            {
                                **{"relation": relation, "point": point, "task": task, "template": template},
                                **{"mask": mask, "text": self._insert_marks(text, mask)},
                                "bare": self._insert_marks(bare_text, mask) if bare_text else None,
                            }
                        )
        texts = [(name, pa.string()) for name in ("relation", "task", "template", "mask", "text", "bare")]
        self.connection.register("given", pa.Table.from_pylist(rows, schema=pa.schema([*texts, ("point", pa.bool_())])))
        self.run(f"create or replace temp table {table} as select * from given")
        self.connection.unregister("given")

    def _insert_marks(self, text: str, mask: str) -> str:
        """Replace the masked placeholder by the slot, and the other placeholders by their private-use characters."""
        if self.days:
            text = _IN_BEFORE_TIME.sub(lambda match: "On " if match[1] == "I" else "on ", text)
        return _PLACEHOLDER.sub(lambda match: SLOT if match[2] == mask else _MARKS[match[1] or "", match[2]], text)

    def sentence_sql(self, text: str, columns: Mapping[str, str] = COLUMNS) -> str:
        """Return SQL for the sentence of a pattern, with its placeholders filled from ``columns``.

        The first letter is capitalized, except in names like "iPhone". After a name that ends in a full stop ("F.C."),
        no second full stop follows.
        """
        for form, placeholder in self.forms:
            if placeholder in columns:
                column = f"{columns[placeholder]}_{form}" if form else columns[placeholder]
                text = f"replace({text}, '{_MARKS[form, placeholder]}', {column})"
        return f"sentence({text})"

    def finish(
        self,
        template: str = "statement",
        *,
        otherwise: str = "the relation has no sentence",
        reasons: str = "select '' as fact_id, '' as reason where false",
    ) -> pa.Table:
        """Return the table of distinct statements with all right answers.

        Right answers are shared by all statements with the same prompt, because they may be about different facts.

        Args:
            template: Template whose sentences determine the cardinality of each fact (1-1, 1-N or N-M).
            otherwise: Reason why a fact has no statement, unless ``reasons`` gives another.
            reasons: SQL query for facts and the reasons why these have no statement, in the columns fact_id and reason.
        """
        self._create_cardinalities(template)
        parts = ", ',', ".join(f"to_json({name})::varchar" for name in ("task", "template", "mask", "prompt", "target"))
        self.run(
            """create temp table asked as select * exclude (asked) from made where asked
            qualify row_number() over (partition by task, template, mask, prompt, target order by fact_id) = 1"""
        )
        repeated = self.count("select (select count(*) from made where asked) - (select count(*) from asked)")
        if repeated:
            noun = "statement duplicates" if repeated == 1 else "statements duplicate"
            self.remarks.append(f"{repeated:,} {noun} another one; duplicates are asked once.")
        self._count_losses(reasons, otherwise)
        self.run(
            """create temp table questions as select prompt, row_number() over () - 1 as question,
                list_sort(list_distinct(list(target))) as answers from made group by prompt"""
        )
        rows = self.connection.sql(
            f"""select 's_' || left(sha256(concat('[', {parts}, ']')), 20) as statement_id, task, relation, template,
                mask, prompt, bare_prompt, target, question, cardinality, fact_id
            from asked join questions using (prompt) join cardinalities using (fact_id)
            order by fact_id, task, template, {_ORDER}, statement_id"""
        ).to_arrow_table()
        answers = self._answers(rows["question"].combine_chunks())
        conflict = pc.greater(pc.list_value_length(answers), 1)
        table = rows.drop_columns("question").append_column("answers", answers).append_column("conflict", conflict)
        return attach_remarks(validate(STATEMENTS, table), self.remarks, self.losses)

    def _count_losses(self, reasons: str, otherwise: str) -> None:
        rows = self.connection.execute(
            f"""with told as (select fact_id, min(reason) as reason from ({reasons}) group by fact_id)
            select relation, case when made.fact_id is not null then 'another fact gives the same statement'
                else coalesce(told.reason, $otherwise) end as why,
                count(*), min(subject_name || ' – ' || object_name), max(subject_name || ' – ' || object_name)
            from facts anti join asked using (fact_id) left join told using (fact_id)
            left join (select distinct fact_id from made where asked) made using (fact_id)
            group by relation, why order by all""",
            {"otherwise": otherwise},
        ).fetchall()
        self.losses = [
            Loss("", "facts", reason, relation, count, tuple(dict.fromkeys(examples)))
            for relation, reason, count, *examples in rows
        ]

    def _answers(self, questions: pa.Array) -> pa.ChunkedArray:
        """Return the list of answers for each question number.

        This is the last step, because the lists are long.
        """
        lists = self.connection.sql("select answers from questions order by question").to_arrow_table()["answers"]
        answer_lists = lists.cast(STATEMENTS.schema.field("answers").type).combine_chunks()
        parts = [
            answer_lists.take(questions.slice(start, _CHUNK_ROWS)) for start in range(0, len(questions), _CHUNK_ROWS)
        ]
        return pa.chunked_array(parts, answer_lists.type)

    def _create_cardinalities(self, template: str) -> None:
        self.create_patterns("both_ends", "", {template: ("subject", "object")})
        self.run(
            f"""create temp table cardinalities as
            with masked as (
                select fact_id, mask, mirrored, {self.sentence_sql("text")} as prompt,
                    case mask when 'subject' then subject else object end as target
                from worded join both_ends using (relation, point)
            ), sizes as (select prompt, count(distinct target) > 1 as several from masked group by prompt)
            select fact_id, ['1-1', '1-N', 'N-M'][1 + count(distinct mask) filter (several)] as cardinality
            from masked join sizes using (prompt) where not mirrored group by fact_id"""
        )


@contextmanager
def open_composer(facts: TemporalFacts, wordings: Wordings, entities: str) -> Iterator[Composer]:
    """Open a composer for facts; ``entities`` selects names ("text") or bracketed symbols ("symbols")."""
    if entities not in ENTITIES:
        raise InputError(f"entities cannot be written as {entities!r}; {did_you_mean(entities, ENTITIES)}")
    with open_workbench(facts=facts.table, symbols=facts.symbols) as connection:
        composer = Composer(connection, facts, wordings)
        composer.run(
            r"""create temp macro sentence(t) as case when regexp_matches(t, '^\p{Ll}\p{Lu}') then left(t, 1)
            else upper(left(t, 1)) end || case when ends_with(t, '..') then substr(t, 2, length(t) - 2)
            else substr(t, 2) end"""
        )
        composer.run(f"create temp macro bracketed(t) as '{OPEN}' || t || '{CLOSE}'")
        if entities == "text":
            text_columns = "subject_name as s, object_name as o, a.name as st, b.name as en"
        else:
            text_columns = (
                "bracketed(subject) as s, bracketed(object) as o, bracketed(a.symbol) as st, bracketed(b.symbol) as en"
            )
        forms_sql = _name_forms_sql(composer, entities)
        composer.run(
            f"""create temp table worded as with stated as (
                select fact_id, relation, point, subject, object, "start", "end", time_key("start", 0) as starts,
                    time_key("end", 0) as ends, {text_columns}, false as mirrored
                from facts join symbols a on a.symbol = '@' || "start" join symbols b on b.symbol = '@' || "end"
            ), both_ways as (
                from stated union all
                select * replace (object as subject, subject as object, o as s, s as o, true as mirrored)
                from stated where list_contains($symmetric, relation)
            ) {forms_sql}""",
            {"symmetric": [name for (name, _), wording in composer.wordings.items() if wording.symmetric]},
        )
        composer.run(f"create temp table made ({MADE_COLUMNS})")
        yield composer


def read_remarks(statements: pa.Table) -> tuple[str, ...]:
    """Return the remarks attached to a table of statements, such as numbers of skipped facts and reasons."""
    encoded = (statements.schema.metadata or {}).get(_REMARKS)
    return tuple(json.loads(encoded)) if encoded else ()


def read_losses(statements: pa.Table, task: str) -> list[Loss]:
    """Return the losses attached to a table of statements: the facts that have no statement in this task."""
    entries = json.loads((statements.schema.metadata or {}).get(_LOSSES, b"[]"))
    return [Loss(**{**entry, "task": task, "examples": tuple(entry["examples"])}) for entry in entries]


def attach_remarks(statements: pa.Table, remarks: Sequence[str], losses: Sequence[Loss] = ()) -> pa.Table:
    """Attach remarks and losses to a table in memory; they are not kept when the table is written to a file."""
    content = {_REMARKS: list(remarks), _LOSSES: [asdict(loss) for loss in losses]}
    metadata = {key: json.dumps(entries).encode() for key, entries in content.items() if entries}
    return statements.replace_schema_metadata(metadata or None)


def _name_forms_sql(composer: Composer, entities: str) -> str:
    """Return SQL that adds columns with the forms of names that sentences use ("the Netherlands").

    Symbols are the same in every form.
    """
    columns_by_placeholder = {"subject": "s", "object": "o", "other": "s"}
    used = sorted(
        {
            (form, columns_by_placeholder[placeholder])
            for form, placeholder in composer.forms
            if form and placeholder in columns_by_placeholder
        }
    )
    if entities == "symbols":
        return "select *" + "".join(f", {end} as {end}_{form}" for form, end in used) + " from both_ways"
    for form in {form for form, _ in used}:
        names = composer.connection.sql(
            "select subject_name as name from facts union select object_name from facts"
        ).to_arrow_table()
        formed_names = pa.array([FORMS[form](name) for name in names["name"].to_pylist()], pa.string())
        composer.connection.register(f"form_{form}", names.append_column("shown", formed_names))
    columns = "".join(f", {end}_{form}.shown as {end}_{form}" for form, end in used)
    joins = " ".join(f"join form_{form} as {end}_{form} on {end}_{form}.name = w.{end}" for form, end in used)
    return f"select w.*{columns} from both_ways w {joins}"
