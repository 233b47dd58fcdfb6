"""The workshop of the makers: a knowledge base's facts in words, as tables of its own database."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa

from gnomon.foundation import SLOT
from gnomon.knowledge import KnowledgeBase
from gnomon.questions.grammar import FORMS, number
from gnomon.questions.relational.wording import forms_of, listed, quoted
from gnomon.questions.schema import BenchmarkSchema, Relation
from gnomon.questions.splits import split_sql

MADE = """task varchar, prompt varchar, answers varchar[], target varchar, choices varchar[], candidate_set varchar,
    facts varchar[], qset varchar, domain varchar, rule varchar, template varchar, split varchar, entities varchar[]"""


@dataclass(frozen=True)
class MakingOptions:
    """What the makers are told: the suite's name, the seed, the language, and how many of what.

    ``paraphrases`` is how many templates a fact gets at most for each place that is asked for (None: all);
    ``checks`` how many statements are checked, half of them false; ``rounds`` how often the members of a category
    or a number's subjects are grouped anew; ``shares`` how facts are split.
    """

    suite: str
    seed: int = 0
    language: str = "en"
    paraphrases: int | None = None
    checks: int = 10_000
    rounds: int = 1
    shares: Mapping[str, float] | None = None


class Workshop:
    """Facts in words: ``worded`` has one row a fact and relation, with the names of its places and their forms.

    Every draw is by md5 of the seed and the content it is drawn for: nothing depends on the order of rows, and the
    same knowledge gives the same questions on every machine.
    """

    def __init__(self, knowledge: KnowledgeBase, schema: BenchmarkSchema, options: MakingOptions) -> None:
        self.knowledge = knowledge
        self.schema = schema
        self.options = options
        self.connection = knowledge.connection
        self.relations = dict(schema.relations)
        self.numbers = {name: place for place, name in enumerate(self.relations)}
        self._macros()
        self._names()
        self._words()
        self._truths()
        self._pool()
        present = {row[0] for row in self.rows("select distinct rel from worded")}
        self.present = tuple(one for name, one in self.relations.items() if self.numbers[name] in present)
        self.run(f"create or replace temp table made ({MADE})")
        self.candidate_sets: dict[str, tuple[str, ...]] = {}
        self.sets_by_form: dict[tuple[str, str, str, bool], str] = {}

    def run(self, sql: str, values: list[Any] | None = None) -> duckdb.DuckDBPyConnection:
        """Execute a statement."""
        return self.connection.execute(sql, values) if values else self.connection.execute(sql)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of a query."""
        found: list[tuple[Any, ...]] = self.connection.execute(sql).fetchall()
        return found

    def draw(self, *parts: str) -> str:
        """SQL for a number in [0, 2^64) that belongs to the seed and these expressions."""
        return f"md5_number_lower(concat_ws(chr(31), {quoted(str(self.options.seed))}, {', '.join(parts)}))"

    def chosen(self, ask: str, number: int, count: int) -> str:
        """SQL for the facts that get a paraphrase by its number, if a fact gets only some of them."""
        wanted = self.options.paraphrases
        if wanted is None or wanted >= count:
            return "true"
        first = f"({self.draw(quoted('paraphrase ' + ask), 'fact_id')} % {count})::bigint"
        return f"(({number} - {first} + {count}) % {count}) < {wanted}"

    def relation_rows(self, relation: Relation) -> str:
        """SQL for the worded facts of a relation."""
        return f"(select * from worded where rel = {self.numbers[relation.name]})"

    def _macros(self) -> None:
        # Years as people say them: 1861 for 1861-03-04, 44 BC for -0044.
        self.run(
            r"""create or replace temp macro said_year(t) as
            nullif(regexp_replace(ltrim(regexp_extract(t, '^[+-]?(\d+)', 1), '0'), '^$', '0'), '0')
            || case when starts_with(t, '-') then ' BC' else '' end"""
        )
        self.run("create or replace temp macro capital(t) as upper(left(t, 1)) || substr(t, 2)")
        split = split_sql("a", "b", self.options.shares or {"test": 1.0}, self.options.seed)
        self.run(f"create or replace temp macro split_of(a, b) as {split}")

    def _names(self) -> None:
        """Names of entities in the language; no name has a slot, a brace or a control character in it."""
        self.run(
            f"""create or replace temp table named as
            select entity, min(trim(regexp_replace(label, '[\\x00-\\x20\\x7f]+', ' ', 'g'))) as name, min(kind) as kind
            from names where language = {quoted(self.options.language)}
              and label is not null and not contains(label, {quoted(SLOT)})
            group by entity having name != ''"""
        )
        values = self.rows("select distinct value from facts where value is not null order by value")
        texts = pa.table(
            {
                "value": pa.array([value for (value,) in values], pa.float64()),
                "text": pa.array([number(value) for (value,) in values], pa.string()),
            }
        )
        self.connection.register("given_values", texts)
        self.run("create or replace temp table value_texts as select * from given_values")
        self.connection.unregister("given_values")

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
        self.connection.register("given_relations", table)
        self.run(
            """create or replace temp table worded_plain as
            select r.rel, f.fact_id, f.subject, f.object, f.rule, f.premises,
                r.present and f."end" is not null as over, f.rule is null and not over as stated,
                case when r.shorten = 'subject' then regexp_extract(a.name, '\\S+$') else a.name end as s,
                case when f.object is null then v.text
                     when r.shorten = 'object' then regexp_extract(b.name, '\\S+$') else b.name end as o,
                a.kind as s_kind, b.kind as o_kind, said_year(f."start") as "start", said_year(f."end") as "end",
                coalesce(r.domain, f.domain) as domain
            from facts f join given_relations r using (predicate)
            join named a on a.entity = f.subject
            left join named b on b.entity = f.object
            left join value_texts v on v.value = f.value
            where o is not null and s != o"""
        )
        self.connection.unregister("given_relations")
        used = forms_of(
            template
            for one in self.relations.values()
            for template in (*one.templates, *(text for scope in one.scopes for text in scope.templates))
        )
        for form in sorted({form for _, form in used}):
            self.show_names(
                "select s as name from worded_plain union all select o from worded_plain", form, f"form_{form}"
            )
        self._forms = sorted(used)
        self.run(
            "create or replace temp table worded as "
            f"select *, split_of(s, o) as split from {self.formed('worded_plain')}"
        )
        self.run("drop table worded_plain")

    def formed(self, table: str) -> str:
        """SQL for a table with names ``s`` and ``o``, joined with the forms of them that templates use."""
        joins, columns = [], []
        for place, form in self._forms:
            name = {"subject": "s", "object": "o"}.get(place)
            if name:
                joins.append(f"join form_{form} as f_{name}_{form} on f_{name}_{form}.name = w.{name}")
                columns.append(f", f_{name}_{form}.shown as {name}_{form}")
        return f"(select w.*{''.join(columns)} from {table} w {' '.join(joins)})"

    def show_names(self, names: str, form: str, into: str) -> None:
        """Make a table of the names that a query finds, each with its text in a form."""
        found = self.connection.sql(f"select distinct name from ({names}) order by name").to_arrow_table()
        shape = FORMS[form]
        shown = pa.array([shape(name) for name in found["name"].to_pylist()], pa.string())
        self.connection.register("given_forms", found.append_column("shown", shown))
        self.run(f"create or replace temp table {into} as select * from given_forms")
        self.connection.unregister("given_forms")

    def _truths(self) -> None:
        """Whatever is so, by names: stated, inferred, or at the end of a chain of a transitive relation."""
        self.run("create or replace temp table pairs as select distinct rel, s, o from worded")
        for relation in self.relations.values():
            if relation.transitive:
                number = self.numbers[relation.name]
                self.run(
                    f"""insert into pairs
                    with recursive above(s, o) as (
                        select s, o from pairs where rel = {number}
                        union
                        select above.s, t.o from above join pairs t on t.rel = {number} and t.s = above.o
                    ) select {number}, s, o from above where s != o
                    except select rel, s, o from pairs"""
                )
        self.run(
            """create or replace temp table truths as
            select rel, 'object' as ask, s as said, o as name from pairs union all
            select rel, 'subject', o, s from pairs"""
        )
        predicates = sorted({one.kinship for one in self.relations.values() if one.kinship})
        self.run("create or replace temp table kin (a varchar, b varchar)")
        if predicates:
            self.run(
                f"""insert into kin
                with recursive edges as (
                    select distinct x.name as low, y.name as high from facts f
                    join named x on x.entity = f.subject join named y on y.entity = f.object
                    where f.predicate in ({listed(predicates)})
                ), above(low, high) as (
                    select low, high from edges
                    union
                    select above.low, edges.high from above join edges on edges.low = above.high
                ) select low, high from above union select high, low from above"""
            )

    def _numbered(self, relations: Iterable[Relation]) -> str:
        """SQL for the numbers of some relations; a number that none has for none."""
        return ", ".join(str(self.numbers[one.name]) for one in relations) or "-1"

    def _pool(self) -> None:
        """The names of each relation and place, one row a fact, numbered in an order that depends on them alone.

        A name that is often right is often drawn as a wrong one too, so that frequency gives nothing away.
        """
        self.run(
            """create or replace temp table pool as
            with names as (
                select distinct rel, 'object' as ask, o as name, s as other, domain from worded
                union all
                select distinct rel, 'subject', s, o, domain from worded
            ) select *, count(*) over (partition by rel, ask) as size,
                row_number() over (
                    partition by rel, ask order by md5(name || chr(31) || other), name, other) - 1 as place
            from names"""
        )

    def wrong_names(self, asked: str, into: str, count: int, purpose: str, tries: int = 24) -> None:
        """Draw wrong names for rows of a table (id, rel, ask, said, domain): up to ``count`` for each, numbered.

        A wrong name stands in the same place of another fact of the relation; with what the sentence says it is
        neither stated nor inferred, it is no kin of a right answer, and the sentence does not say it already.
        Small pools are tried whole, of large ones some are drawn.
        """
        drawn = self.draw(quoted(purpose), "a.id", "k")
        order = self.draw(quoted(purpose + " order"), "id", "name")
        kinship = self._numbered(one for one in self.present if one.kinship)
        near, far = (self._numbered(one for one in self.present if one.wrong == where) for where in ("near", "far"))
        self.run(
            f"""create or replace temp table tried as
            with sizes as (select rel, ask, any_value(size) as size from pool group by all),
            places as (
                select distinct a.id, a.rel, a.ask, a.said, a.domain, z.size,
                    case when z.size <= {2 * tries} then k else ({drawn} % z.size)::bigint end as place
                from {asked} a join sizes z using (rel, ask)
                cross join range({2 * tries}) as numbers(k)
                where k < case when z.size <= {2 * tries} then z.size else {tries} end
            )
            select t.id, t.rel, t.ask, t.said, p.name, any_value(t.size) <= {2 * tries} as whole, count(*) as weight,
                case when t.rel in ({near}) then not bool_or(p.domain = t.domain)
                     when t.rel in ({far}) then bool_or(p.domain = t.domain) else false end as later
            from places t join pool p using (rel, ask, place)
            where p.name != t.said and not exists (
                select 1 from truths r where r.rel = t.rel and r.ask = t.ask and r.said = t.said and r.name = p.name)
            group by t.id, t.rel, t.ask, t.said, p.name"""
        )
        # Where all names were tried, an exponential race draws them by their weights.
        self.run(
            f"""create or replace temp table {into} as
            select id, name, row_number() over (partition by id order by coalesce(later, false),
                -ln((({order} // 2048)::double + 1) / 9007199254740993.0) / case when whole then weight else 1 end,
                name) as nth
            from tried t where (t.id, t.name) not in (
                select t.id, t.name from tried t join kin on kin.b = t.name join truths r
                on r.rel = t.rel and r.ask = t.ask and r.said = t.said and r.name = kin.a where t.rel in ({kinship}))
            qualify nth <= {count}"""
        )

    def put(self, **columns: str) -> str:
        """The head of an insert into the questions made, with SQL for each column that is not null or usual."""
        names = [part.split()[0] for part in MADE.replace("\n", " ").split(",")]
        unknown = set(columns) - set(names)
        if unknown:
            raise ValueError(f"no such columns: {sorted(unknown)}")
        columns = {"qset": "fact_id", "domain": "domain", "split": "split", **columns}
        chosen = [f"{columns.get(name, 'null')} as {name}" for name in names]
        return f"insert into made select {', '.join(chosen)} from "


def balanced(frames: Iterable[str], drawn: str) -> str:
    """SQL that takes one of some expressions by a drawn number."""
    options = list(frames)
    if len(options) == 1:
        return options[0]
    cases = " ".join(f"when {place} then {text}" for place, text in enumerate(options))
    return f"case {drawn} % {len(options)} {cases} end"
