"""Facts in words as tables of an engine, with the operations that all question makers share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from merkhet.core import SLOT
from merkhet.knowledge.engines.relational_engine import Tables, make_transitive_closure
from merkhet.questions.english import FORMS, format_number
from merkhet.questions.makers._template_sql import (
    case_sql,
    context_fields,
    context_sql,
    field_column,
    placeholder_forms,
    sql_literal,
    sql_literals,
)
from merkhet.questions.schema import Relation, Schema
from merkhet.questions.splits import split_sql
from merkhet.questions.templates import PLACEHOLDERS

_LISTS = ("answers", "choices", "facts", "entities")
QUESTION_COLUMNS = (
    *("task", "prompt", "answers", "target", "choices", "candidate_set", "facts", "qset", "domain", "rule", "template"),
    *("split", "entities"),
)
"""Columns of the questions made: texts, some of them lists."""
MANY_FACTS = 2_000_000
"""Above this number of facts, questions are made of a sample."""
DEFAULT_ASKED_FACTS = 100_000
"""Sample size where there are more than ``MANY_FACTS``."""
_SENTENCES_AT_ONCE = 64
"""Number of templates in one query."""
MAX_POOL_FACTS = 200_000
"""Approximate number of facts of a relation that supply distractors."""


@dataclass(frozen=True)
class MakerOptions:
    """Sizes, seed, language and splits of a benchmark."""

    suite: str
    seed: int = 0
    language: str = "en"
    paraphrases: int | None = None
    """Maximum number of templates per fact and asked field; None uses all."""
    checks: int = 10_000
    """Number of statements to check, half of them false."""
    rounds: int = 1
    """How often the members of a category, or the subjects of a number, are regrouped."""
    shares: Mapping[str, float] | None = None
    """Share of facts of each split."""
    asked: int | None = None
    """Number of facts to make questions of, sampled by id; None takes all, or 100,000 of more than two million. Their
    answers are the candidates; all other facts still decide what is right, unique and wrong."""
    choices: int | None = None
    """Number of candidates that a completion question offers; None offers all answers of the relation, and drops
    questions with several right answers."""
    limit: int | None = None
    """Maximum number of checks, distinctions and completions with choices, spread over relations and hierarchies."""
    distinct_names: bool = False
    """Skip facts one of whose names contains the other: "A rocking chair is a kind of chair" answers itself."""


class QuestionBuilder:
    """Facts in words, and the questions made of them.

    The table ``worded`` has one row per fact and relation, with the names of its fields and their forms. Every draw is
    the md5 of the seed and of content, so that nothing depends on the order of rows and the same knowledge gives the
    same questions on every machine.
    """

    def __init__(self, tables: Tables, schema: Schema, options: MakerOptions) -> None:
        self.tables = tables
        self.schema = schema
        self.options = options
        self.relations = dict(schema.relations)
        self.relation_numbers = {name: number for number, name in enumerate(self.relations)}
        self.fact_count = tables.count("facts")
        self._define_functions()
        self._create_names()
        self._create_worded()
        self._create_truths()
        self._create_pool()
        used = {row[0] for row in self.rows("select distinct rel from worded")}
        self.used_relations = tuple(
            relation for name, relation in self.relations.items() if self.relation_numbers[name] in used
        )
        empty = ", ".join(
            f"cast(null as varchar{'[]' if name in _LISTS else ''}) as {name}" for name in QUESTION_COLUMNS
        )
        self.create_table("made", f"select {empty} where false")
        self.candidate_sets: dict[str, pa.Array] = {}
        self.sets_by_form: dict[tuple[str, str, str, bool], str] = {}
        self.slots: set[tuple[str, str, str, bool]] = set()
        """Relation, asked field, form, and whether the slot begins the sentence, of all templates asked."""

    def create_table(self, table: str, query: str, by: str | None = None) -> None:
        """Create or replace a table with a query's rows; rows with the same ``by`` are stored together."""
        self.tables.make(table, query, by)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        return self.tables.rows(query)

    @property
    def is_large(self) -> bool:
        """Whether there are too many facts to hold in memory."""
        return self.fact_count > MANY_FACTS

    @property
    def asked_count(self) -> int:
        """Approximate number of facts that questions are made of."""
        return min(self.fact_count, self.options.asked or (DEFAULT_ASKED_FACTS if self.is_large else self.fact_count))

    def asked_sql(self, fact: str = "fact_id") -> str:
        """Return an SQL condition for facts that questions are made of."""
        if self.asked_count == self.fact_count:
            return "true"
        return f"{self.draw_sql(sql_literal('asked'), fact)} // 2048 < {self.asked_count * 2**53 // self.fact_count}"

    def draw_sql(self, *parts: str) -> str:
        """Return SQL for a number in [0, 2^64) derived from the seed and these expressions."""
        return f"md5_number_lower(concat_ws(chr(31), {sql_literal(str(self.options.seed))}, {', '.join(parts)}))"

    def paraphrase_sql(self, ask: str, number: int, count: int) -> str:
        """Return an SQL condition for the facts that get paraphrase ``number`` of ``count``."""
        limit = self.options.paraphrases
        if limit is None or limit >= count:
            return "true"
        first = f"({self.draw_sql(sql_literal('paraphrase ' + ask), 'fact_id')} % {count})::bigint"
        return f"(({number} - {first} + {count}) % {count}) < {limit}"

    def relation_rows(self, relation: Relation) -> str:
        """Return SQL for the worded facts of a relation."""
        return f"(select * from worded where rel = {self.relation_numbers[relation.name]})"

    def _define_functions(self) -> None:
        define = self.tables.define_function
        # Years as in a sentence: 1861 for 1861-03-04, 44 BC for -0044.
        define(
            "said_year",
            ["t"],
            r"""nullif(regexp_replace(ltrim(regexp_extract(t, '^[+-]?(\d+)', 1), '0'), '^$', '0'), '0')
            || case when starts_with(t, '-') then ' BC' else '' end""",
        )
        define("capital", ["t"], "upper(left(t, 1)) || substr(t, 2)")
        split = split_sql("a", "b", self.options.shares or {"test": 1.0}, self.options.seed)
        define("split_of", ["a", "b"], split)

    def _create_names(self) -> None:
        """Create the tables of entity names in the language, without slots or control characters, and of numbers."""
        self.create_table(
            "named",
            f"""select entity, min(trim(regexp_replace(label, '[\\x00-\\x20\\x7f]+', ' ', 'g'))) as name,
                min(kind) as kind
            from names where language = {sql_literal(self.options.language)}
              and label is not null and not contains(label, {sql_literal(SLOT)})
            group by entity having name != ''""",
        )
        self.tables.map_batches(
            "value_texts",
            "select distinct value from facts where value is not null",
            lambda batch: batch.append_column(
                "text", pa.array(map(format_number, batch["value"].to_pylist()), pa.string())
            ),
        )

    def _create_worded(self) -> None:
        pairs = [
            (self.relation_numbers[name], predicate)
            for name, relation in self.relations.items()
            for predicate in relation.predicates
        ]
        table = pa.table(
            {
                "rel": pa.array([rel for rel, _ in pairs], pa.int32()),
                "predicate": pa.array([predicate for _, predicate in pairs], pa.string()),
                "domain": pa.array([list(self.relations.values())[rel].domain for rel, _ in pairs], pa.string()),
                "present": pa.array([list(self.relations.values())[rel].present for rel, _ in pairs], pa.bool_()),
                "shorten": pa.array([list(self.relations.values())[rel].shorten for rel, _ in pairs], pa.string()),
            }
        )
        self.tables.load("given_relations", table)
        apart = "true"
        if self.options.distinct_names:
            overlaps = (
                "length(s) > 2 and contains(lower(o), lower(s))",
                "length(o) > 2 and contains(lower(s), lower(o))",
            )
            apart = f"not ({' or '.join(overlaps)})"
        self.create_table(
            "worded_plain",
            f"""select * exclude (drawn), drawn and {apart} as asked from (
                select r.rel, f.fact_id, f.object is null as numeric, f.rule,
                    r.present and f."end" is not null as over,
                    f.rule is null and not (r.present and f."end" is not null) as stated,
                    {self.asked_sql("f.fact_id")} as drawn,
                    case when r.shorten = 'subject' then regexp_extract(a.name, '\\S+\\z', 0) else a.name end as s,
                    case when f.object is null then v.text
                         when r.shorten = 'object' then regexp_extract(b.name, '\\S+\\z', 0) else b.name end as o,
                    a.kind as s_kind, b.kind as o_kind, said_year(f."start") as "start", said_year(f."end") as "end",
                    coalesce(r.domain, f.domain) as domain
                from facts f join given_relations r on r.predicate = f.predicate
                join named a on a.entity = f.subject
                left join named b on b.entity = f.object
                left join value_texts v on v.value = f.value
            ) w where o is not null and s != o""",
        )
        self.tables.drop("given_relations")
        self._forms = sorted(
            placeholder_forms(
                template
                for relation in self.relations.values()
                for template in (*relation.templates, *(text for scope in relation.scopes for text in scope.templates))
            )
        )
        self._create_forms("select s as name from worded_plain union all select o as name from worded_plain")
        self.add_forms("worded_plain", "worded_formed")
        self.tables.drop("worded_plain")
        self.create_table("worded", "select *, split_of(s, o) as split from worded_formed", by="rel")
        self.tables.drop("worded_formed")

    def add_forms(self, table: str, into: str) -> None:
        """Copy a table with names ``s`` and ``o`` and add the forms that templates use.

        One join at a time: several at once would need memory for all of them.
        """
        for field, name in (("object", "o"), ("subject", "s")):
            forms = [form for placeholder, form in self._forms if placeholder == field]
            columns = "".join(f", f.shown_{form} as {name}_{form}" for form in forms)
            join = f"join forms f on f.name = w.{name}" if forms else ""
            self.create_table(into, f"select w.*{columns} from {table} w {join}")
            table = into

    def _create_forms(self, names: str) -> None:
        """Create the table of the names that a query selects, with a column for each form that templates use."""
        forms = sorted({form for _, form in self._forms})

        def add_columns(batch: pa.Table) -> pa.Table:
            plain = batch["name"].to_pylist()
            for form in forms:
                batch = batch.append_column(f"shown_{form}", pa.array(map(FORMS[form], plain), pa.string()))
            return batch

        self.tables.map_batches("forms", f"select distinct name from ({names}) n", add_columns)

    def create_name_forms(self, names: str, into: str) -> None:
        """Create a table of the names and forms that a query selects, with the names in these forms."""

        def add_shown(batch: pa.Table) -> pa.Table:
            pairs = zip(batch["form"].to_pylist(), batch["name"].to_pylist(), strict=True)
            return batch.append_column("shown", pa.array((FORMS[form](name) for form, name in pairs), pa.string()))

        self.tables.map_batches(into, f"select distinct name, form from ({names}) n", add_shown)

    def _create_truths(self) -> None:
        """Create the tables of all true pairs by name: stated, inferred, or reached through a transitive relation."""
        self.create_table("pairs", "select distinct rel, s, o from worded")
        for relation in self.relations.values():
            if relation.transitive:
                number = self.relation_numbers[relation.name]
                make_transitive_closure(
                    self.tables, f"select s as low, o as high from pairs where rel = {number}", "reached"
                )
                self.create_table(
                    "further_pairs",
                    f"""select {number} as rel, r.low as s, r.high as o from reached r
                    anti join pairs p on p.rel = {number} and p.s = r.low and p.o = r.high where r.low != r.high""",
                )
                self.tables.add("pairs", "select rel, s, o from further_pairs")
        self.create_table("truths", " union all ".join(self._truth_queries()))
        predicates = sorted({relation.kinship for relation in self.relations.values() if relation.kinship})
        if predicates:
            edges = f"""select x.name as low, y.name as high from facts f
                join named x on x.entity = f.subject join named y on y.entity = f.object
                where f.predicate in ({sql_literals(predicates)})"""
            make_transitive_closure(self.tables, edges, "related")
            self.create_table(
                "kin",
                "select low as a, high as b from related union select high as a, low as b from related",
            )
        else:
            self.create_table("kin", "select cast(null as varchar) as a, cast(null as varchar) as b where false")

    def _truth_queries(self) -> Iterator[str]:
        """Yield queries for the right names of each field after what else a sentence says."""
        for ask, said, name in (("object", "s", "o"), ("subject", "o", "s")):
            timed = ", ".join(str(rel) for rel, _ in self._timed_contexts(ask)) or "-1"
            yield f"select rel, '{ask}' as ask, {said} as said, {name} as name from pairs where rel not in ({timed})"
        for ask in PLACEHOLDERS:
            for rel, context in self._timed_contexts(ask):
                name = field_column(ask)
                yield f"""select distinct rel, '{ask}' as ask, {context} as said, {name} as name from worded
                    where rel = {rel} and {name} is not null"""

    def _timed_contexts(self, ask: str) -> list[tuple[int, str]]:
        """Return the relations whose context is more than one name when choices are offered, with SQL for it."""
        if self.options.choices is None:
            return []
        return [
            (rel, context_sql(relation.templates, ask))
            for rel, relation in enumerate(self.relations.values())
            if (ask in relation.asks or ask in ("subject", "object"))
            and len(context_fields(relation.templates, ask)) > 1
        ]

    def said_sql(self, ask: str) -> str:
        """Return SQL for what a sentence says besides the asked name: the other name, and times that it names."""
        other = {"object": "s", "subject": "o"}.get(ask, "null")
        return case_sql(((f"rel = {rel}", context) for rel, context in self._timed_contexts(ask)), other)

    def _numbers_sql(self, relations: Iterable[Relation]) -> str:
        """Return SQL for the numbers of relations; an unused number if there are none."""
        return ", ".join(str(self.relation_numbers[relation.name]) for relation in relations) or "-1"

    def _create_pool(self) -> None:
        """Create the pool of distractors: names by relation and field, one row per fact, in a content-based order.

        A name that is often right is often drawn as a distractor too, so that frequency gives nothing away. Very large
        relations are sampled by name, which preserves the shares.
        """
        condition = self._pool_condition()
        times = "".join(
            f"""union all select distinct rel, '{ask}' as ask, "{ask}" as name, s as other, domain from worded
            where {condition} and "{ask}" is not null"""
            for ask in ("start", "end")
            if self.options.choices is not None and any(ask in relation.asks for relation in self.relations.values())
        )
        self.create_table(
            "pool_names",
            f"""select *, md5(name || chr(31) || other) as key from (
                select distinct rel, 'object' as ask, o as name, s as other, domain from worded where {condition}
                union all
                select distinct rel, 'subject' as ask, s as name, o as other, domain from worded where {condition}
                {times}
            ) n""",
        )
        self.tables.number_rows(
            "pool",
            "select rel, ask, key, name, other, domain from pool_names",
            ["rel", "ask", "key", "name", "other", "domain"],
            spread="lpad(rel::varchar, 6, '0') || ask || left(key, 2)",
        )
        self.tables.drop("pool_names")
        self.create_table(
            "pool_sizes", "select rel, ask, count(*) as size, min(n) as first_one from pool group by rel, ask"
        )

    def _pool_condition(self) -> str:
        """Return an SQL condition for the facts that supply distractors, at most ``MAX_POOL_FACTS`` per relation."""
        sizes = self.rows(
            f"select rel, count(*) from worded group by rel having count(*) > {MAX_POOL_FACTS} order by rel"
        )
        if not sizes:
            return "true"
        shares = " ".join(f"when {rel} then {MAX_POOL_FACTS * 2**53 // size}" for rel, size in sizes)
        return f"{self.draw_sql(sql_literal('pool'), 's', 'o')} // 2048 < case rel {shares} else {2**53} end"

    def draw_distractors(self, asked: str, into: str, count: int, purpose: str, tries: int = 24) -> None:
        """Draw distractors, numbered, into a new table.

        A distractor fills the same field of another fact of the relation. In this sentence it is neither stated nor
        inferred, is not related to a right answer by kinship, and does not occur already. Small pools are tried
        completely, large ones by sample.

        Args:
            asked: Table with the columns id, rel, ask, said (what else the sentence says) and domain.
            into: Name of the new table.
            count: Maximum number of distractors per row.
            purpose: Part of the seed.
            tries: Number of draws from a large pool.
        """
        draw = self.draw_sql(sql_literal(purpose), "a.id", "k")
        order = self.draw_sql(sql_literal(purpose + " order"), "t.id", "t.name")
        kinship = [str(self.relation_numbers[relation.name]) for relation in self.used_relations if relation.kinship]
        near, far = (
            self._numbers_sql(relation for relation in self.used_relations if relation.wrong == distance)
            for distance in ("near", "far")
        )
        contrasting = [relation for relation in self.used_relations if relation.contrast]
        unsaid, same_other, more_places = "p.name != t.said", "false", ""
        if contrasting:
            # A context may join several names.
            unsaid = "not list_contains(string_split(t.said, chr(31)), p.name)"
            same_other = "p.other = split_part(t.said, chr(31), 1)"
            contrasted = " or ".join(
                f"(t.rel = {self.relation_numbers[relation.name]} and t.ask != '{relation.contrast}')"
                for relation in contrasting
            )
            more_places = f"""union select t.id, t.rel, t.ask, t.said, t.domain, z.size, p.n as place
                from {asked} t join pool p on p.rel = t.rel and p.ask = t.ask and {same_other}
                join pool_sizes z on z.rel = t.rel and z.ask = t.ask where {contrasted}"""
        self.create_table(
            "tried",
            f"""with places as (
                select distinct a.id, a.rel, a.ask, a.said, a.domain, z.size,
                    z.first_one + case when z.size <= {2 * tries} then k else ({draw} % z.size)::bigint end as place
                from {asked} a join pool_sizes z on z.rel = a.rel and z.ask = a.ask
                cross join (select unnest(range({2 * tries})) as k) numbers
                where k < case when z.size <= {2 * tries} then z.size else {tries} end
                {more_places}
            )
            select t.id, t.rel, t.ask, t.said, p.name, max(t.size) <= {2 * tries} as whole, count(*) as weight,
                case when t.rel in ({near}) then not bool_or(p.domain = t.domain)
                     when t.rel in ({far}) then bool_or(p.domain = t.domain)
                     when t.rel in ({self._numbers_sql(contrasting)}) then not bool_or({same_other})
                     else false end as later
            from places t join pool p on p.n = t.place
            where {unsaid} and not exists (
                select 1 from truths r where r.rel = t.rel and r.ask = t.ask and r.said = t.said and r.name = p.name)
            group by t.id, t.rel, t.ask, t.said, p.name""",
        )
        related = ""
        if kinship:
            self.create_table(
                "relatives",
                f"""select distinct t.id, t.name from tried t join kin on kin.b = t.name join truths r
                on r.rel = t.rel and r.ask = t.ask and r.said = t.said and r.name = kin.a
                where t.rel in ({", ".join(kinship)})""",
            )
            related = "anti join relatives r on r.id = t.id and r.name = t.name"
        # Where all names were tried, an exponential race draws them by their weights.
        self.create_table(
            into,
            f"""select * from (
                select t.id, t.name, row_number() over (partition by t.id order by coalesce(later, false),
                    -ln((({order} // 2048)::double + 1) / 9007199254740993.0) / case when whole then weight else 1 end,
                    t.name) as nth
                from tried t {related}
            ) n where nth <= {count}""",
        )

    def add_sentences(self, source: str, sentences: Sequence[tuple[str, str, str]], **columns: str) -> None:
        """Add a question for each row of a source, worded by a template.

        Args:
            source: Table of the rows.
            sentences: SQL conditions on rows, SQL of their ``sentence``, and their templates' labels.
            columns: As for :meth:`add_questions`; they may use ``sentence``.
        """
        for first in range(0, len(sentences), _SENTENCES_AT_ONCE):
            batch = sentences[first : first + _SENTENCES_AT_ONCE]
            sentence = case_sql((condition, text) for condition, text, _ in batch)
            label = case_sql((condition, sql_literal(label)) for condition, _, label in batch)
            rows = f"(select *, {sentence} as sentence, {label} as label from {source}) w where sentence is not null"
            self.add_questions(rows, template="label", **columns)

    def add_questions(self, source: str, **columns: str) -> None:
        """Add a question for each row of a source.

        Args:
            source: SQL for the rows, as after ``from``.
            columns: SQL for each column that is neither null nor the default (fact_id as qset, domain, split).
        """
        unknown = set(columns) - set(QUESTION_COLUMNS)
        if unknown:
            raise ValueError(f"no such columns: {sorted(unknown)}")
        columns = {"qset": "fact_id", "domain": "domain", "split": "split", **columns}
        expressions = [f"{columns.get(name, 'null')} as {name}" for name in QUESTION_COLUMNS]
        self.tables.add("made", f"select {', '.join(expressions)} from {source}")


def pick_sql(expressions: Iterable[str], draw: str) -> str:
    """Return SQL that picks one of the expressions by a random number."""
    options = list(expressions)
    if len(options) == 1:
        return options[0]
    cases = " ".join(f"when {index} then {expression}" for index, expression in enumerate(options))
    return f"case {draw} % {len(options)} {cases} end"
