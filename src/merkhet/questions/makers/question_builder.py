"""Tables of facts with names in place of ids, and operations that all question makers share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from merkhet.core import SLOT
from merkhet.core.dates import say_date
from merkhet.knowledge.engines.relational_engine import Tables
from merkhet.questions.english import FORMS, format_number
from merkhet.questions.makers._template_sql import case_sql, placeholder_forms, sql_literal
from merkhet.questions.makers.evidence import EvidenceRules, create_disjoint_classes
from merkhet.questions.makers.name_aliases import (
    CLEAN_NAME,
    alias_names_sql,
    create_aliases,
    create_field_aliases,
    create_shown_aliases,
)
from merkhet.questions.schema import Relation, Schema
from merkhet.questions.splits import pair_sql, split_of_pair_sql

_LISTS = ("answers", "choices", "facts", "entities")
QUESTION_COLUMNS = (
    *("task", "prompt", "answers", "target", "choices", "candidate_set", "facts", "qset", "domain", "rule", "template"),
    *("split", "nearness", "evidence", "entities"),
)
"""Columns of the table ``made`` of questions, which contain texts or lists of texts."""
MAX_ASKED_FACTS = 100_000
"""Number of facts that questions are made from by default; of more facts, as many are sampled."""
_ENDINGS = "ermen|erman|ings?|ians?|eses?|ers?|ors?|ies|es|s|e|y"
"""Endings that are cut off before the stems of words are compared."""
_BETWEEN_WORDS = "[^0-9a-z\u00df-\u024f]+((and|for|from|of|on|the|with)[^0-9a-z\u00df-\u024f]+)*"
_STEM_LENGTH = 5
_SENTENCES_AT_ONCE = 64
"""Maximum number of templates in one SQL query."""


@dataclass(frozen=True)
class MakerOptions:
    """Options of a benchmark: sizes, seed, language and splits."""

    suite: str
    seed: int = 0
    language: str = "en"
    paraphrases: int | None = None
    """Maximum number of templates per fact and asked field; None uses all."""
    checks: int = 10_000
    """Number of statements to check, half of them false."""
    rounds: int = 1
    """Number of random groupings of the members of a category, or of the subjects of a comparison."""
    shares: Mapping[str, float] | None = None
    """Share of the facts in each split; None puts all facts into the split ``test``."""
    split_by: str = "premise"
    """``premise`` keeps conclusions and their premises in one split; ``fact`` splits every fact by itself."""
    asked: int | None = None
    """Number of facts to make questions from, sampled by id; None means ``MAX_ASKED_FACTS``.

    Candidates come from the sampled facts only. All facts determine which answers are right and unique."""
    choices: int | None = None
    """Number of candidates of a completion question.

    None offers all answers of the relation and drops questions with several right answers."""
    limit: int | None = None
    """Maximum number of facts with completions with choices, of checks and of distinctions.

    They are spread over relations and hierarchies."""
    evidence: str | None = None
    """Evidence that distractors are wrong: ``declared`` or ``assumed``.

    None asks the questions with declared evidence, or those with assumed evidence if there are no others."""
    complete: Mapping[str, str] = field(default_factory=dict)
    """Predicates that the knowledge declares complete, with the field (``object``, ``subject`` or ``both``)."""
    near: Sequence[str] = ()
    """Predicates whose facts show which names are near each other; empty for all."""
    distinct_names: bool = False
    """Whether to skip facts whose names tell one another.

    One contains the other ("A rocking chair is a kind of chair"), or they share a word or its stem ("The official
    language of Poland is Polish")."""


class QuestionBuilder:
    """Builder of questions, with the tables of an engine that question makers read and write.

    The table ``worded`` has one row per fact and relation, with the names of its subject and object and their inflected
    forms. Random draws use the md5 hash of the seed and the content of rows, not their order. Therefore, the same
    knowledge gives the same questions on every machine.
    """

    def __init__(self, tables: Tables, schema: Schema, options: MakerOptions, *, inflected: bool = True) -> None:
        """Create the table ``worded`` and the tables of names.

        Args:
            inflected: Whether ``worded`` has columns for inflected names. If not, makers add them to sampled facts.
        """
        self.tables = tables
        self.schema = schema
        self.options = options
        self._inflected = inflected
        self._created: set[str] = set()
        self.relations = dict(schema.relations)
        self.relation_numbers = {name: number for number, name in enumerate(self.relations)}
        self.fact_count = tables.count("facts")
        self._define_functions()
        self._create_names()
        self._load_relations()
        create_aliases(self)
        create_field_aliases(self)
        self._create_worded()
        self.alias_fields: dict[str, set[tuple[int, str]]] = {}
        """Relation numbers and asked fields with names in the tables ``shown_aliases`` and ``shown_alike``."""
        if inflected:
            create_shown_aliases(self)
        used = {row[0] for row in self.rows("select distinct rel from worded")}
        self.used_relations = tuple(
            relation for name, relation in self.relations.items() if self.relation_numbers[name] in used
        )
        stated = [row[0] for row in self.rows("select distinct predicate from facts where rule is null")]
        self.evidence = EvidenceRules(schema, options.complete, stated, options.evidence)
        create_disjoint_classes(self)
        empty = ", ".join(
            f"cast(null as varchar{'[]' if name in _LISTS else ''}) as {name}" for name in QUESTION_COLUMNS
        )
        self.create_table("made", f"select {empty} where false")
        self.candidate_sets: dict[str, pa.Array] = {}
        self.sets_by_form: dict[tuple[tuple[str, str, str, bool], frozenset[str]], str] = {}
        """Ids of candidate sets by slot and the candidates that are left out."""
        self.slots: set[tuple[str, str, str, bool]] = set()
        """Relation, asked field, form, and whether the slot begins the sentence, for all templates in use."""

    def create_table(self, table: str, query: str, by: str | None = None) -> None:
        """Create or replace a table from a query; rows with the same value of column ``by`` are stored together."""
        self.tables.make(table, query, by)
        self._created.add(table)

    def has_table(self, table: str) -> bool:
        """Return whether :meth:`create_table` has created a table."""
        return table in self._created

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Return the rows of an SQL query."""
        return self.tables.rows(query)

    @property
    def is_large(self) -> bool:
        """Whether there are more facts than questions are made from by default."""
        return self.fact_count > MAX_ASKED_FACTS

    @property
    def asked_count(self) -> int:
        """Approximate number of facts that questions are made from."""
        return min(self.fact_count, self.options.asked or MAX_ASKED_FACTS)

    def asked_sql(self, fact: str = "fact_id") -> str:
        """Return an SQL condition for the facts that questions are made from."""
        if self.asked_count == self.fact_count:
            return "true"
        return f"{self.draw_sql(sql_literal('asked'), fact)} // 2048 < {self.asked_count * 2**53 // self.fact_count}"

    def draw_sql(self, *parts: str) -> str:
        """Return SQL for a pseudorandom number in [0, 2^64) that depends on the seed and the expressions ``parts``."""
        return f"md5_number_lower(concat_ws(chr(31), {sql_literal(str(self.options.seed))}, {', '.join(parts)}))"

    def paraphrase_sql(self, ask: str, number: int, count: int) -> str:
        """Return an SQL condition for the facts that are asked with template ``number`` of ``count`` paraphrases."""
        limit = self.options.paraphrases
        if limit is None or limit >= count:
            return "true"
        first = f"({self.draw_sql(sql_literal('paraphrase ' + ask), 'fact_id')} % {count})::bigint"
        return f"(({number} - {first} + {count}) % {count}) < {limit}"

    def relation_rows(self, relation: Relation) -> str:
        """Return SQL for the rows of ``worded`` that belong to a relation."""
        return f"(select * from worded where rel = {self.relation_numbers[relation.name]})"

    def _define_functions(self) -> None:
        define = self.tables.define_function
        # The year as written in a sentence: 1861 for 1861-03-04, 44 BC for -0044.
        define(
            "said_year",
            ["t"],
            r"""nullif(regexp_replace(ltrim(regexp_extract(t, '^[+-]?(\d+)', 1), '0'), '^$', '0'), '0')
            || case when starts_with(t, '-') then ' BC' else '' end""",
        )
        define("capital", ["t"], "upper(left(t, 1)) || substr(t, 2)")
        shares = self.options.shares or {"test": 1.0}
        define("pair_of", ["a", "b"], pair_sql("a", "b"))
        define("split_of_pair", ["p"], split_of_pair_sql("p", shares, self.options.seed))
        define("split_of", ["a", "b"], split_of_pair_sql(f"({pair_sql('a', 'b')})", shares, self.options.seed))
        # Stems of the words of a name; words without meaning and short ones have none.
        define(
            "name_stems",
            ["t"],
            f"""regexp_extract_all(
                regexp_replace(lower(t), '({_ENDINGS})?({_BETWEEN_WORDS}|$)', ' ', 'g'),
                '(?:^| )([^ ]{{3,{_STEM_LENGTH}}})', 1)""",
        )

    def _create_names(self) -> None:
        """Create the tables ``named`` (names of entities in the language) and ``value_texts`` (numbers as texts).

        Names that contain a slot are left out; control characters are replaced by blanks.
        """
        self.create_table(
            "named",
            f"""select entity, min({CLEAN_NAME.format("label")}) as name,
                min(kind) as kind
            from names where language = {sql_literal(self.options.language)}
              and label is not null and not contains(label, {sql_literal(SLOT)})
            group by entity having name != ''""",
        )
        self._say_dates()
        self.tables.map_batches(
            "value_texts",
            "select distinct value from facts where value is not null",
            lambda batch: batch.append_column(
                "text", pa.array(map(format_number, batch["value"].to_pylist()), pa.string())
            ),
        )

    def _say_dates(self) -> None:
        """Say dates in words: names such as 1969-07-20, literals such as "1969-07-20", and the times of facts.

        Creates the table ``time_texts`` of the times that have a day or a month.
        """
        date, year_bc = r"[+-]?\d{1,9}-\d\d(?:-\d\d)?", r"-\d{1,9}"
        dated = rf"^(?:{date}(?:T00:00:00(?:\.0+)?Z?)?|{year_bc})$"
        literal = rf"""regexp_extract(object, '^"({date})"$', 1)"""

        def add_said(batch: pa.Table) -> pa.Table:
            said = pa.array([say_date(text) for text in batch["date"].to_pylist()], pa.string())
            return batch.append_column("said", said)

        self.tables.map_batches(
            "date_names",
            f"""select entity, name as date, kind from named where regexp_extract(name, '{dated}', 0) != ''
            union all select distinct object as entity, {literal} as date, 'date' as kind
            from facts where object is not null and {literal} != ''""",
            add_said,
        )
        if self.tables.count("date_names"):
            self.create_table(
                "named",
                """select n.* from named n anti join date_names d on d.entity = n.entity
                union all select entity, coalesce(said, date) as name, min(kind) as kind
                from date_names group by entity, coalesce(said, date)""",
            )
        self.tables.map_batches(
            "time_texts",
            """select distinct date from (
                select "start" as date from facts union all select "end" as date from facts
            ) times where contains(substr(date, 2), '-')""",
            add_said,
        )

    def _load_relations(self) -> None:
        """Create the table ``schema_relations`` with a row for each relation and predicate."""
        rows = [
            {"rel": rel, "predicate": predicate, "domain": r.domain, "present": r.present, "shorten": r.shorten}
            for rel, r in enumerate(self.relations.values())
            for predicate in r.predicates
        ]
        columns = [("rel", pa.int32()), ("predicate", pa.string()), ("domain", pa.string())]
        columns += [("present", pa.bool_()), ("shorten", pa.string())]
        self.tables.load("schema_relations", pa.Table.from_pylist(rows, pa.schema(columns)))

    def _create_worded(self) -> None:
        apart = "true"
        if self.options.distinct_names:
            overlaps = (
                "length(s) > 2 and contains(lower(o), lower(s))",
                "length(o) > 2 and contains(lower(s), lower(o))",
            )
            apart = f"not ({' or '.join(overlaps)} or coalesce(list_has_any(name_stems(s), name_stems(o)), false))"
        self.create_table(
            "worded_plain" if self._inflected else "worded",
            f"""select * exclude (drawn), drawn and {apart} as asked, split_of(s, o) as split from (
                select r.rel, f.fact_id, f.object is null as numeric, f.rule,
                    r.present and f."end" is not null as over,
                    f.rule is null and not (r.present and f."end" is not null) as stated,
                    {self.asked_sql("f.fact_id")} as drawn,
                    case when r.shorten = 'subject' then regexp_extract(a.name, '\\S+\\z', 0) else a.name end as s,
                    case when f.object is null then v.text
                         when r.shorten = 'object' then regexp_extract(b.name, '\\S+\\z', 0) else b.name end as o,
                    a.kind as s_kind, b.kind as o_kind, said_year(f."start") as "start", said_year(f."end") as "end",
                    coalesce(ds.said, said_year(f."start")) as start_date,
                    coalesce(de.said, said_year(f."end")) as end_date,
                    coalesce(r.domain, f.domain) as domain
                from facts f join schema_relations r on r.predicate = f.predicate
                join named a on a.entity = f.subject
                left join named b on b.entity = f.object
                left join value_texts v on v.value = f.value
                left join time_texts ds on ds.date = f."start" left join time_texts de on de.date = f."end"
            ) w where o is not null and s != o""",
        )
        if self._inflected:
            self._create_forms("worded_plain")
            self.add_forms("worded_plain", "worded", by="rel")
            self.tables.drop("worded_plain")
        else:
            self._create_forms("worded")

    def _create_forms(self, table: str) -> None:
        """Create the table ``forms`` of the names in ``table``, with a column for each form that templates use."""
        relations_by_form: dict[tuple[str, str], list[str]] = {}
        for relation in self.relations.values():
            scoped = (template for scope in relation.scopes for template in scope.templates)
            for name, form in placeholder_forms((*relation.templates, *scoped)):
                if name in ("subject", "object"):
                    numbers = relations_by_form.setdefault((name, form), [])
                    numbers.append(str(self.relation_numbers[relation.name]))
        self._forms = sorted(relations_by_form)
        forms = sorted({form for _, form in self._forms})
        aliases = "".join(
            f" union all {alias_names_sql(field, numbers)}" for (field, _), numbers in relations_by_form.items()
        )
        # A name of one relation may be a distractor of another.
        names = f"select s as name from {table} union all select o as name from {table}{aliases}"

        def add_columns(batch: pa.Table) -> pa.Table:
            plain = batch["name"].to_pylist()
            for form in forms:
                batch = batch.append_column(f"shown_{form}", pa.array(map(FORMS[form], plain), pa.string()))
            return batch

        query = (
            f"select distinct name from ({names}) n" if forms else "select cast(null as varchar) as name where false"
        )
        self.tables.map_batches("forms", query, add_columns)

    def add_forms(self, table: str, into: str, by: str | None = None) -> None:
        """Copy a table with the names ``s`` and ``o``, and add columns with the forms that templates use.

        The joins run one after the other to limit memory.
        """
        forms_by_field = {
            name: [form for placeholder, form in self._forms if placeholder == field]
            for field, name in (("object", "o"), ("subject", "s"))
        }
        joins = [
            (
                "".join(f", f.shown_{form} as {name}_{form}" for form in forms),
                f"left join forms f on f.name = w.{name}",
            )
            for name, forms in forms_by_field.items()
            if forms
        ] or [("", "")]
        for position, (columns, join) in enumerate(joins, 1):
            order = by if position == len(joins) else None
            self.create_table(into, f"select w.*{columns} from {table} w {join}", order)
            table = into

    def create_name_forms(self, names: str, into: str) -> None:
        """Create a table of inflected names.

        Args:
            names: SQL query that selects the columns ``name`` and ``form``.
            into: Name of the new table; its column ``shown`` is the name in that form.
        """

        def add_shown(batch: pa.Table) -> pa.Table:
            pairs = zip(batch["form"].to_pylist(), batch["name"].to_pylist(), strict=True)
            return batch.append_column("shown", pa.array((FORMS[form](name) for form, name in pairs), pa.string()))

        self.tables.map_batches(into, f"select distinct name, form from ({names}) n", add_shown)

    def add_sentences(self, source: str, sentences: Sequence[tuple[str, str, str]], **columns: str) -> None:
        """Add a question for each row of a table, with the sentence of the first template whose condition holds.

        Args:
            source: Name of the table.
            sentences: For each template: SQL condition on rows, SQL for the sentence, and label of the template.
            columns: SQL for columns as in :meth:`add_questions`; it may refer to ``sentence``.
        """
        for first in range(0, len(sentences), _SENTENCES_AT_ONCE):
            batch = sentences[first : first + _SENTENCES_AT_ONCE]
            sentence = case_sql((condition, text) for condition, text, _ in batch)
            label = case_sql((condition, sql_literal(label)) for condition, _, label in batch)
            rows = f"(select *, {sentence} as sentence, {label} as label from {source}) w where sentence is not null"
            self.add_questions(rows, template="label", **columns)

    def add_questions(self, source: str, **columns: str) -> None:
        """Add a question for each row of ``source``.

        Args:
            source: SQL for the rows, as written after ``from``.
            columns: SQL for the columns of questions. By default, ``qset`` is the fact_id, ``domain`` and ``split`` are
                copied from the row, and other columns are null.
        """
        unknown = set(columns) - set(QUESTION_COLUMNS)
        if unknown:
            raise ValueError(f"no such columns: {sorted(unknown)}")
        evidence = sql_literal(self.evidence.mode)
        columns = {"qset": "fact_id", "domain": "domain", "split": "split", "evidence": evidence, **columns}
        expressions = [f"{columns.get(name, 'null')} as {name}" for name in QUESTION_COLUMNS]
        self.tables.add("made", f"select {', '.join(expressions)} from {source}")


def pick_sql(expressions: Iterable[str], draw: str) -> str:
    """Return SQL that selects one of the SQL expressions by the random number ``draw``."""
    options = list(expressions)
    if len(options) == 1:
        return options[0]
    cases = " ".join(f"when {index} then {expression}" for index, expression in enumerate(options))
    return f"case {draw} % {len(options)} {cases} end"
