"""DuckDB tables of a run, with one row per question and its outcomes.

A question has an outcome for each way of asking, which is a combination of model, probe and method. Columns for lists,
filters and counts are in memory. Long lists (ranked candidates, choices) are read from the Parquet files when a
question is opened.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from merkhet.core import SLOT
from merkhet.core.errors import InputError, MerkhetError, first_line
from merkhet.core.schemas import ANSWERS, CANDIDATES, FACTS, PREMISES, QUESTIONS, TableKind
from merkhet.core.text import counted
from merkhet.metrics.text_overlap import exact_match
from merkhet.questions.sense_text import bracketed_words, fill_word

FACETS = ("task", "domain", "relation", "template", "rule", "split", "language")
"""Question columns that users can filter by; a missing value is the empty string."""
_FILES = (QUESTIONS, ANSWERS, CANDIDATES, FACTS, PREMISES)
_REQUIRED_FILES = (QUESTIONS, ANSWERS)
_LARGE_GROUP = 65_536
# As in Question.relation, the relation is the template's name without its number, or else the task.
_FACET_SQL = {name: f"coalesce({name}, '')" for name in FACETS} | {
    "relation": "case when template <> '' then split_part(template, '/', 1) else coalesce(task, '') end"
}
# DuckDB orders NaN after all numbers, so the minimum is NaN only if a list has no numbers.
_JUDGED_SQL = """
select *, case when isfinite(list_min(gold_ranks)) then list_min(gold_ranks) end as rank,
    unusable is not null or (rank is null and prediction is null) as is_unusable,
    not is_unusable and rank is null as is_written,
    len(gold_ranks) = len(gold_ties) and len(list_filter(
        list_zip(gold_ranks, gold_ties), lambda gold: gold[1] = rank and gold[2] > 1)) > 0 as tied
from answers_file
"""


@dataclass(frozen=True)
class Way:
    """A way of asking: combination of model, probe and method."""

    model: str
    probe: str
    method: str
    label: str
    """Short label that is unique among the ways of asking."""


@dataclass(frozen=True)
class RunTables:
    """Tables of a loaded run; several threads can read them at once.

    Each way of asking (model, probe and method) with index ``n`` has three columns in the table ``questions``:
    ``verdict_n`` is 1 (right), 0 (wrong), -1 (unusable) or null (not asked). ``rank_n`` is the rank of the best-ranked
    right answer, or null if no candidates were ranked. ``tied_n`` says whether that right answer ties with other
    candidates. If a question was asked repeatedly, it is right if more than half of the usable answers are right, and
    its rank is the mean of the ranks.
    """

    folder: Path
    ways: tuple[Way, ...]
    facets: Mapping[str, frozenset[str]]
    """All values of each facet."""
    question_count: int
    answer_count: int
    has_facts: bool
    notes: Sequence[str]
    """Notes about the run that the page shows."""
    _database: duckdb.DuckDBPyConnection
    """Connection to the tables in memory, without access to files."""
    _files: duckdb.DuckDBPyConnection
    """Connection to views of the run's Parquet files, without access to other files."""
    _file_states: Mapping[str, Any]

    def query(self, sql: str, parameters: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
        """Query the tables in memory. Pass values from requests as ``parameters``, never in ``sql``."""
        return _query(self._database, sql, parameters)

    def read_file(
        self, kind: TableKind, columns: Sequence[str], condition: str, parameters: Mapping[str, Any]
    ) -> list[dict[str, Any]]:
        """Read rows of a Parquet file of the run; the additional column ``number`` is the row number.

        Raises:
            MerkhetError: If the file has changed since the run was loaded.
        """
        path = self.folder / f"{kind.name}.parquet"
        if _file_state(path) != self._file_states[kind.name]:
            raise MerkhetError(
                f"{path.name} of this run changed or was removed after the explorer started; start it again"
            )
        names = ", ".join(f'"{name}"' for name in columns)
        return _query(self._files, f"select {names} from {kind.name}_file where {condition}", parameters)


def load_tables(folder: Path) -> RunTables:
    """Load the tables of a finished run.

    Raises:
        InputError: If the file of questions or answers is missing, or a file is broken.
    """
    states = {kind.name: _file_state(folder / f"{kind.name}.parquet") for kind in _FILES}
    database, files = duckdb.connect(), duckdb.connect()
    for connection in (database, files):
        for kind in _FILES:
            _create_file_view(connection, kind, folder / f"{kind.name}.parquet")
    with _naming(folder / "facts.parquet"):
        database.execute("create table facts as select * exclude number from facts_file")
        database.execute("create index facts_by_id on facts (fact_id)")
    with _naming(folder / "questions.parquet"):
        facets = {name: _create_facet(database, name) for name in FACETS}
        _create_sense_texts(database)
    with _naming(folder / "answers.parquet"):
        ways = _create_ways(database)
        _create_answers(database)
    with _naming(folder / "questions.parquet"):
        _create_questions(database, len(ways))
    question_count, answer_count, matched, repeated, fact_count = _row(
        database,
        "select (select count(*) from questions), (select count(*) from answers_file), (select count(*) from answers), "
        "exists (select 1 from answers group by question, way having count(*) > 1), (select count(*) from facts)",
    )
    notes = []
    if matched < answer_count:
        unknown = answer_count - matched
        notes.append(
            f"{counted(unknown, 'answer belongs', 'answers belong')} to questions that are not in this run; "
            f"{'it is' if unknown == 1 else 'they are'} left out."
        )
    if repeated:
        notes.append(
            "Some questions were asked several times in one way: they count as right where more than half of their "
            "answers are right, and their rank is the mean."
        )
    paths = [f"{folder / kind.name}.parquet" for kind in _REQUIRED_FILES]
    if (_row(database, "select max(row_group_num_rows) from parquet_metadata($1)", [paths])[0] or 0) > _LARGE_GROUP:
        notes.append("An older version wrote this run’s tables in large row groups: questions open slowly.")
    allowed = ", ".join(_quoted(folder / f"{kind.name}.parquet") for kind in _FILES)
    files.execute(f"set allowed_paths = [{allowed}]")
    for connection in (database, files):
        connection.execute("set enable_external_access = false")
        connection.execute("set lock_configuration = true")
    return RunTables(folder, ways, facets, question_count, answer_count, fact_count > 0, notes, database, files, states)


def way_columns(ways: Sequence[Way]) -> list[str]:
    """Return the names of the verdict, rank and tie columns of all ``ways`` in the table ``questions``."""
    return [f"{name}_{number}" for number in range(len(ways)) for name in ("verdict", "rank", "tied")]


def read_senses(row: Mapping[str, Any]) -> dict[str, str]:
    """Return the bracketed word of each text in a question that compares word senses.

    The mapping is empty if the words do not fit the texts.
    """
    try:
        return bracketed_words(row)
    except ValueError:
        return {}


def _create_file_view(connection: duckdb.DuckDBPyConnection, kind: TableKind, path: Path) -> None:
    """Create a view of a Parquet file; missing columns are null, and a missing optional file has no rows."""
    declared = connection.from_arrow(kind.schema.empty_table())
    types = dict(zip(declared.columns, declared.types, strict=True))
    if path.is_file():
        source = f"read_parquet({_quoted(path)}, file_row_number = true)"
    elif kind in _REQUIRED_FILES:
        raise InputError(f"there is no file {path} with the table of {kind.name}; name the folder of a finished run")
    else:
        source = "(select 0 as file_row_number where false)"
    with _naming(path):
        existing = connection.sql(f"from {source}").columns
        quoted = {name: f'"{name}"' if name in existing else "null" for name in kind.schema.names}
        columns = [f'{value}::{types[name]} as "{name}"' for name, value in quoted.items()]
        connection.execute(
            f"create view {kind.name}_file as select {', '.join(columns)}, file_row_number as number from {source}"
        )


def _create_facet(database: duckdb.DuckDBPyConnection, name: str) -> frozenset[str]:
    """Create an enumeration type for a facet and return its values; DuckDB counts enumerations faster than text."""
    database.execute(f"create type facet_{name} as enum (select distinct {_FACET_SQL[name]} from questions_file)")
    return frozenset(_row(database, f"select enum_range(null::facet_{name})")[0])


def _create_sense_texts(database: duckdb.DuckDBPyConnection) -> None:
    """Create the table ``sense_texts``: words and filled-in right answers of questions that compare word senses."""
    rows = _query(
        database, "select number, prompt, choices, words, answers from questions_file where words is not null"
    )
    texts = []
    for row in rows:
        senses = read_senses(row)
        golds = [fill_word(text, senses) for text in row["answers"] or ()]
        texts.append({"number": row["number"], "word": senses.get(row["prompt"]), "golds": golds})
    schema = pa.schema([("number", pa.int64()), ("word", pa.string()), ("golds", pa.list_(pa.string()))])
    _create_table(database, "sense_texts", pa.Table.from_pylist(texts, schema))


def _create_ways(database: duckdb.DuckDBPyConnection) -> tuple[Way, ...]:
    """Create the table ``ways``, which numbers combinations of model, probe and method by first occurrence."""
    database.execute(
        "create table ways as select model, probe, method, row_number() over (order by min(number)) - 1 as way "
        "from answers_file group by all"
    )
    keys = database.execute("select model, probe, method from ways order by way").fetchall()
    return tuple(
        Way(model, probe, method, label) for (model, probe, method), label in zip(keys, _labels(keys), strict=True)
    )


def _labels(ways: Sequence[tuple[str, str, str]]) -> list[str]:
    """Label each combination of model, probe and method by its model.

    The method is added if the model has several combinations, and the probe if the method is ambiguous.
    """
    models, methods = Counter(way[0] for way in ways), Counter((way[0], way[2]) for way in ways)
    labels = []
    for model, probe, method in ways:
        parts = f"{probe}, {method}" if methods[model, method] > 1 else method
        labels.append(f"{model} ({parts})" if models[model] > 1 else model)
    occurrences = Counter(labels)
    return [
        label if occurrences[label] == 1 else f"{label} #{number}"  # A model's name may equal another label.
        for number, label in enumerate(labels, 1)
    ]


def _create_answers(database: duckdb.DuckDBPyConnection) -> None:
    """Create the table ``answers`` with verdicts as in the report (:mod:`merkhet.reports._answer_outcomes`)."""
    pairs = database.sql(
        f"select distinct prediction, answers from ({_JUDGED_SQL}) join questions_file using (question_id) "
        "where is_written"
    ).to_arrow_table()
    matches = [bool(exact_match(pair["prediction"], pair["answers"] or ())) for pair in pairs.to_pylist()]
    _create_table(database, "matches", pairs.append_column("matches", pa.array(matches, pa.bool_())))
    database.execute(
        f"""
        create table answers as
        select q.number::integer as question, a.number as row, way::integer as way, rank, tied,
            case when is_unusable then -1 when is_written then matches::tinyint else (rank <= 1)::tinyint end as verdict
        from ({_JUDGED_SQL}) a join (select number, question_id, answers from questions_file) q using (question_id)
        join ways using (model, probe, method)
        left join matches m on is_written and a.prediction = m.prediction and q.answers = m.answers
        """
    )


def _create_questions(database: duckdb.DuckDBPyConnection, way_count: int) -> None:
    """Create the table ``questions`` with facets, search text and outcomes, in the order of the file."""
    outcomes = []
    for way in range(way_count):
        chosen = f"filter (where way = {way})"
        share = f"avg(nullif(verdict, -1)) {chosen}"
        outcomes += [
            f"case when {share} > 0.5 then 1 when {share} >= 0 then 0 else max(verdict) {chosen} end::tinyint "
            f"as verdict_{way}",
            f"avg(rank) {chosen} as rank_{way}",
            f"coalesce(bool_or(tied) {chosen}, false) as tied_{way}",
        ]
    facets = ", ".join(f"({_FACET_SQL[name]})::facet_{name} as {name}" for name in FACETS)
    database.execute(
        f"""
        create table questions as
        select number::integer as number, question_id, prompt, word, coalesce(golds, answers) as answers, qset,
            {facets}, lower(nfc_normalize(case when word is null then prompt else replace(prompt, '{SLOT}', word) end
                || chr(10) || coalesce(array_to_string(coalesce(golds, answers), chr(10)), ''))) as text,
            (row_number() over (order by prompt, number))::integer as text_order, o.* exclude question
        from questions_file left join sense_texts using (number)
        left join (select {", ".join(["question", *outcomes])} from answers group by question) o on question = number
        order by number
        """
    )


def _create_table(database: duckdb.DuckDBPyConnection, name: str, rows: pa.Table) -> None:
    database.register("rows", rows)
    database.execute(f"create table {name} as from rows")
    database.unregister("rows")


def _query(
    connection: duckdb.DuckDBPyConnection, sql: str, parameters: Mapping[str, Any] | None = None
) -> list[dict[str, Any]]:
    with connection.cursor() as cursor:
        rows = cursor.execute(sql, dict(parameters or {})).fetchall()
        names = [column[0] for column in cursor.description or ()]
    return [dict(zip(names, row, strict=True)) for row in rows]


def _row(connection: duckdb.DuckDBPyConnection, sql: str, parameters: Sequence[Any] = ()) -> tuple[Any, ...]:
    (row,) = connection.execute(sql, list(parameters)).fetchall()
    return tuple(row)


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Convert DuckDB errors into input errors that name the file ``path``."""
    try:
        yield
    except duckdb.Error as error:
        reason = first_line(error).rstrip(".")
        raise InputError(f"{path} is not a complete Parquet file ({reason}). Create or download it again.") from error


def _quoted(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"


def _file_state(path: Path) -> tuple[int, int, int] | None:
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_ino, stat.st_size, stat.st_mtime_ns
