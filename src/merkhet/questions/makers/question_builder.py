"""The builder of the makers: a knowledge base's facts in words, as tables of an engine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from merkhet.core import SLOT
from merkhet.knowledge.engines.relational_engine import Tables, make_transitive_closure
from merkhet.questions.english import FORMS, format_number
from merkhet.questions.makers._template_sql import placeholder_forms, sql_literal, sql_literals
from merkhet.questions.schema import BenchmarkSchema, Relation
from merkhet.questions.splits import split_sql

_LISTS = ("answers", "choices", "facts", "entities")
QUESTION_COLUMNS = (
    *("task", "prompt", "answers", "target", "choices", "candidate_set", "facts", "qset", "domain", "rule", "template"),
    *("split", "entities"),
)
"""The columns of the questions made: texts, some of them lists."""
MANY_FACTS = 2_000_000
DEFAULT_ASKED_FACTS = 100_000
"""Of how many facts questions are made, where there are very many."""
MAX_POOL_FACTS = 200_000
"""Of about how many facts of a relation names are offered as wrong ones, where it has more."""


@dataclass(frozen=True)
class MakerOptions:
    """What the makers are told: the suite's name, the seed, the language, and how many of what.

    ``paraphrases`` is how many templates a fact gets at most for each place that is asked for (None: all);
    ``checks`` how many statements are checked, half of them false; ``rounds`` how often the members of a category
    or a number's subjects are grouped anew; ``shares`` how facts are split. ``asked`` is how many facts questions are
    made of, drawn by their ids (None: all, or 100,000 where there are more than two million); their answers are the
    candidates, and all the other facts still say what is right, what is unique and what is wrong.
    """

    suite: str
    seed: int = 0
    language: str = "en"
    paraphrases: int | None = None
    checks: int = 10_000
    rounds: int = 1
    shares: Mapping[str, float] | None = None
    asked: int | None = None


class QuestionBuilder:
    """Facts in words: ``worded`` has one row a fact and relation, with the names of its places and their forms.

    Every draw is by md5 of the seed and the content it is drawn for: nothing depends on the order of rows, and the
    same knowledge gives the same questions on every machine.
    """

    def __init__(self, tables: Tables, schema: BenchmarkSchema, options: MakerOptions) -> None:
        self.tables = tables
        self.schema = schema
        self.options = options
        self.relations = dict(schema.relations)
        self.numbers = {name: place for place, name in enumerate(self.relations)}
        self.facts = tables.count("facts")
        self._macros()
        self._names()
        self._words()
        self._truths()
        self._pool()
        present = {row[0] for row in self.rows("select distinct rel from worded")}
        self.present = tuple(one for name, one in self.relations.items() if self.numbers[name] in present)
        empty = ", ".join(
            f"cast(null as varchar{'[]' if name in _LISTS else ''}) as {name}" for name in QUESTION_COLUMNS
        )
        self.make("made", f"select {empty} where false")
        self.candidate_sets: dict[str, pa.Array] = {}
        self.sets_by_form: dict[tuple[str, str, str, bool], str] = {}

    def make(self, table: str, query: str, by: str | None = None) -> None:
        """Make a table of a query's rows, in place of one of that name; rows with the same ``by`` stand together."""
        self.tables.make(table, query, by)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """The rows of a query."""
        return self.tables.rows(query)

    @property
    def many(self) -> bool:
        """Whether there are so many facts that not all of them can be had in memory."""
        return self.facts > MANY_FACTS

    @property
    def asked(self) -> int:
        """Of about how many facts questions are made."""
        return min(self.facts, self.options.asked or (DEFAULT_ASKED_FACTS if self.many else self.facts))

    def is_asked(self, fact: str = "fact_id") -> str:
        """SQL for whether questions are made of a fact."""
        if self.asked == self.facts:
            return "true"
        return f"{self.draw(sql_literal('asked'), fact)} // 2048 < {self.asked * 2**53 // self.facts}"

    def draw(self, *parts: str) -> str:
        """SQL for a number in [0, 2^64) that belongs to the seed and these expressions."""
        return f"md5_number_lower(concat_ws(chr(31), {sql_literal(str(self.options.seed))}, {', '.join(parts)}))"

    def chosen(self, ask: str, number: int, count: int) -> str:
        """SQL for the facts that get a paraphrase by its number, if a fact gets only some of them."""
        wanted = self.options.paraphrases
        if wanted is None or wanted >= count:
            return "true"
        first = f"({self.draw(sql_literal('paraphrase ' + ask), 'fact_id')} % {count})::bigint"
        return f"(({number} - {first} + {count}) % {count}) < {wanted}"

    def relation_rows(self, relation: Relation) -> str:
        """SQL for the worded facts of a relation."""
        return f"(select * from worded where rel = {self.numbers[relation.name]})"

    def _macros(self) -> None:
        define = self.tables.define_function
        # Years as people say them: 1861 for 1861-03-04, 44 BC for -0044.
        define(
            "said_year",
            ["t"],
            r"""nullif(regexp_replace(ltrim(regexp_extract(t, '^[+-]?(\d+)', 1), '0'), '^$', '0'), '0')
            || case when starts_with(t, '-') then ' BC' else '' end""",
        )
        define("capital", ["t"], "upper(left(t, 1)) || substr(t, 2)")
        split = split_sql("a", "b", self.options.shares or {"test": 1.0}, self.options.seed)
        define("split_of", ["a", "b"], split)

    def _names(self) -> None:
        """Names of entities in the language; no name has a slot, a brace or a control character in it."""
        self.make(
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
            lambda piece: piece.append_column(
                "text", pa.array(map(format_number, piece["value"].to_pylist()), pa.string())
            ),
        )

    def _words(self) -> None:
        pairs = [
            (self.numbers[name], predicate) for name, one in self.relations.items() for predicate in one.predicates
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
        self.make(
            "worded_plain",
            f"""select * from (
                select r.rel, f.fact_id, f.object is null as numeric, f.rule,
                    r.present and f."end" is not null as over,
                    f.rule is null and not (r.present and f."end" is not null) as stated,
                    {self.is_asked("f.fact_id")} as asked,
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
        used = placeholder_forms(
            template
            for one in self.relations.values()
            for template in (*one.templates, *(text for scope in one.scopes for text in scope.templates))
        )
        self._forms = sorted(used)
        self._show_forms("select s as name from worded_plain union all select o as name from worded_plain")
        self.add_forms("worded_plain", "worded_formed")
        self.tables.drop("worded_plain")
        self.make("worded", "select *, split_of(s, o) as split from worded_formed", by="rel")
        self.tables.drop("worded_formed")

    def add_forms(self, table: str, into: str) -> None:
        """Make a table of one with names ``s`` and ``o``, and the forms of them that templates use.

        One join at a time: several at once would need memory for all of them.
        """
        for place, name in (("object", "o"), ("subject", "s")):
            forms = [form for where, form in self._forms if where == place]
            columns = "".join(f", f.shown_{form} as {name}_{form}" for form in forms)
            join = f"join forms f on f.name = w.{name}" if forms else ""
            self.make(into, f"select w.*{columns} from {table} w {join}")
            table = into

    def _show_forms(self, names: str) -> None:
        """Make a table of the names that a query finds, with a column for each form that templates use."""
        forms = sorted({form for _, form in self._forms})

        def shape(piece: pa.Table) -> pa.Table:
            given = piece["name"].to_pylist()
            for form in forms:
                piece = piece.append_column(f"shown_{form}", pa.array(map(FORMS[form], given), pa.string()))
            return piece

        self.tables.map_batches("forms", f"select distinct name from ({names}) n", shape)

    def show_names(self, names: str, form: str, into: str) -> None:
        """Make a table of the names that a query finds, each with its text in a form."""
        shape = FORMS[form]
        self.tables.map_batches(
            into,
            f"select distinct name from ({names}) n",
            lambda piece: piece.append_column("shown", pa.array(map(shape, piece["name"].to_pylist()), pa.string())),
        )

    def name_facts(self, predicates: Iterable[str], into: str) -> None:
        """Make a table of the facts of some predicates with the names of their subjects and objects; o may be null.

        One join at a time, as several at once would need memory for all of them; and of facts that were counted, so
        that an engine knows what is few.
        """
        of_predicates, subjects, objects = f"{into}_facts", f"{into}_subjects", f"{into}_objects"
        self.tables.define_view(
            of_predicates,
            f"""select fact_id, rule, domain, subject, object, value from facts
            where predicate in ({sql_literals(predicates)})""",
        )
        self.tables.define_view(
            subjects,
            f"""select f.fact_id, f.rule, f.domain, f.object, f.value, a.name as s
            from {of_predicates} f join named a on a.entity = f.subject""",
        )
        self.tables.define_view(
            objects,
            f"select b.entity, b.name from named b semi join {subjects} f on f.object = b.entity",
        )
        self.make(
            into,
            f"""select f.fact_id, f.rule, f.domain, f.object is null as numeric, f.s, coalesce(b.name, v.text) as o
            from {subjects} f left join {objects} b on b.entity = f.object
            left join value_texts v on v.value = f.value""",
        )
        for table in (of_predicates, subjects, objects):
            self.tables.drop(table)

    def _truths(self) -> None:
        """Whatever is so, by names: stated, inferred, or at the end of a chain of a transitive relation."""
        self.make("pairs", "select distinct rel, s, o from worded")
        for relation in self.relations.values():
            if relation.transitive:
                number = self.numbers[relation.name]
                make_transitive_closure(
                    self.tables, f"select s as low, o as high from pairs where rel = {number}", "reached"
                )
                self.make(
                    "further_pairs",
                    f"""select {number} as rel, r.low as s, r.high as o from reached r
                    anti join pairs p on p.rel = {number} and p.s = r.low and p.o = r.high where r.low != r.high""",
                )
                self.tables.add("pairs", "select rel, s, o from further_pairs")
        self.make(
            "truths",
            """select rel, 'object' as ask, s as said, o as name from pairs union all
            select rel, 'subject' as ask, o as said, s as name from pairs""",
        )
        predicates = sorted({one.kinship for one in self.relations.values() if one.kinship})
        if predicates:
            edges = f"""select x.name as low, y.name as high from facts f
                join named x on x.entity = f.subject join named y on y.entity = f.object
                where f.predicate in ({sql_literals(predicates)})"""
            make_transitive_closure(self.tables, edges, "related")
            self.make(
                "kin",
                "select low as a, high as b from related union select high as a, low as b from related",
            )
        else:
            self.make("kin", "select cast(null as varchar) as a, cast(null as varchar) as b where false")

    def _numbered(self, relations: Iterable[Relation]) -> str:
        """SQL for the numbers of some relations; a number that none has for none."""
        return ", ".join(str(self.numbers[one.name]) for one in relations) or "-1"

    def _pool(self) -> None:
        """The names of each relation and place, one row a fact, numbered in an order that depends on them alone.

        A name that is often right is often drawn as a wrong one too, so that frequency gives nothing away. Of a
        relation with very many facts some are drawn, by their names: their shares remain.
        """
        kept = self._thinned()
        self.make(
            "pool_names",
            f"""select *, md5(name || chr(31) || other) as key from (
                select distinct rel, 'object' as ask, o as name, s as other, domain from worded where {kept}
                union all
                select distinct rel, 'subject' as ask, s as name, o as other, domain from worded where {kept}
            ) n""",
        )
        self.tables.number_rows(
            "pool",
            "select rel, ask, key, name, other, domain from pool_names",
            ["rel", "ask", "key", "name", "other", "domain"],
            spread="lpad(rel::varchar, 6, '0') || ask || left(key, 2)",
        )
        self.tables.drop("pool_names")
        self.make("pool_sizes", "select rel, ask, count(*) as size, min(n) as first_one from pool group by rel, ask")

    def _thinned(self) -> str:
        """SQL for the facts whose names are offered as wrong ones: about so many of each relation at most."""
        sizes = self.rows(
            f"select rel, count(*) from worded group by rel having count(*) > {MAX_POOL_FACTS} order by rel"
        )
        if not sizes:
            return "true"
        shares = " ".join(f"when {rel} then {MAX_POOL_FACTS * 2**53 // size}" for rel, size in sizes)
        return f"{self.draw(sql_literal('pool'), 's', 'o')} // 2048 < case rel {shares} else {2**53} end"

    def wrong_names(self, asked: str, into: str, count: int, purpose: str, tries: int = 24) -> None:
        """Draw wrong names for rows of a table (id, rel, ask, said, domain): up to ``count`` for each, numbered.

        A wrong name stands in the same place of another fact of the relation; with what the sentence says it is
        neither stated nor inferred, it is no kin of a right answer, and the sentence does not say it already.
        Small pools are tried whole, of large ones some are drawn.
        """
        drawn = self.draw(sql_literal(purpose), "a.id", "k")
        order = self.draw(sql_literal(purpose + " order"), "t.id", "t.name")
        kinship = [str(self.numbers[one.name]) for one in self.present if one.kinship]
        near, far = (self._numbered(one for one in self.present if one.wrong == where) for where in ("near", "far"))
        self.make(
            "tried",
            f"""with places as (
                select distinct a.id, a.rel, a.ask, a.said, a.domain, z.size,
                    z.first_one + case when z.size <= {2 * tries} then k else ({drawn} % z.size)::bigint end as place
                from {asked} a join pool_sizes z on z.rel = a.rel and z.ask = a.ask
                cross join (select unnest(range({2 * tries})) as k) numbers
                where k < case when z.size <= {2 * tries} then z.size else {tries} end
            )
            select t.id, t.rel, t.ask, t.said, p.name, max(t.size) <= {2 * tries} as whole, count(*) as weight,
                case when t.rel in ({near}) then not bool_or(p.domain = t.domain)
                     when t.rel in ({far}) then bool_or(p.domain = t.domain) else false end as later
            from places t join pool p on p.n = t.place
            where p.name != t.said and not exists (
                select 1 from truths r where r.rel = t.rel and r.ask = t.ask and r.said = t.said and r.name = p.name)
            group by t.id, t.rel, t.ask, t.said, p.name""",
        )
        related = ""
        if kinship:
            self.make(
                "relatives",
                f"""select distinct t.id, t.name from tried t join kin on kin.b = t.name join truths r
                on r.rel = t.rel and r.ask = t.ask and r.said = t.said and r.name = kin.a
                where t.rel in ({", ".join(kinship)})""",
            )
            related = "anti join relatives r on r.id = t.id and r.name = t.name"
        # Where all names were tried, an exponential race draws them by their weights.
        self.make(
            into,
            f"""select * from (
                select t.id, t.name, row_number() over (partition by t.id order by coalesce(later, false),
                    -ln((({order} // 2048)::double + 1) / 9007199254740993.0) / case when whole then weight else 1 end,
                    t.name) as nth
                from tried t {related}
            ) n where nth <= {count}""",
        )

    def put(self, source: str, **columns: str) -> None:
        """Add a question for each row of a source, with SQL for each column that is not null or usual."""
        unknown = set(columns) - set(QUESTION_COLUMNS)
        if unknown:
            raise ValueError(f"no such columns: {sorted(unknown)}")
        columns = {"qset": "fact_id", "domain": "domain", "split": "split", **columns}
        chosen = [f"{columns.get(name, 'null')} as {name}" for name in QUESTION_COLUMNS]
        self.tables.add("made", f"select {', '.join(chosen)} from {source}")


def pick_sql(frames: Iterable[str], drawn: str) -> str:
    """SQL that takes one of some expressions by a drawn number."""
    options = list(frames)
    if len(options) == 1:
        return options[0]
    cases = " ".join(f"when {place} then {text}" for place, text in enumerate(options))
    return f"case {drawn} % {len(options)} {cases} end"
