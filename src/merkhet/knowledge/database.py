"""The tables of a knowledge base in DuckDB, and the SQL that the store, the import and the rules share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

from merkhet.core.errors import InputError, first_line
from merkhet.core.files import disk_full_error
from merkhet.core.version import __version__

FORMAT = "1"
CONTENT_COLUMNS = 'subject, predicate, object, value, unit, "start", "end", domain, source, rule, premises'
FACT_COLUMNS = f"fact_id, {CONTENT_COLUMNS}"  # As FACTS.
NAME_COLUMNS = "entity, language, label, aliases, kind"
"""As NAMES. Besides, ``worth`` is 0 for a label that a source gave, 1 for an id taken as a name, 2 for an alias."""
KEY_COLUMNS = ("subject", "predicate", "object", "value", "unit", '"start"', '"end"')
_ESCAPED = r"[\x0b\x0e\x0f\x1a-\x1f]"
_SPECIAL = r'[\x00-\x1f"\\]'
_QUOTED = "'\"' || {} || '\"'"
_VALUE = 3  # A number needs no quotes.

TIME_KEY = r"""(case when t is null then null else
    regexp_extract(t, '^[+]?(-?\d{1,9})', 1)::bigint * 10000
    + coalesce(nullif(regexp_extract(t, '^[+-]?\d{1,9}-(\d\d)', 1), '')::bigint, missing) * 100
    + coalesce(nullif(regexp_extract(t, '^[+-]?\d{1,9}-\d\d-(\d\d)', 1), '')::bigint, missing) end)"""
"""A number of a year, a month or a day; see :func:`define_macros`."""

TABLES = {
    "meta": "key varchar, value varchar",
    "facts": (
        # An id is random text: compressing it costs much and saves little.
        "fact_id varchar using compression uncompressed, subject varchar, predicate varchar, object varchar, "
        "value double, unit varchar, "
        '"start" varchar, "end" varchar, domain varchar, source varchar, rule varchar, premises varchar[]'
    ),
    "names": "entity varchar, language varchar, label varchar, aliases varchar[], kind varchar, worth tinyint",
    "predicates": 'name varchar, label varchar, functional boolean, "symmetric" boolean',
    "details": "fact_id varchar, name varchar, text varchar",
    "imports": (
        "import_id varchar, place varchar, source varchar, content varchar, options varchar, merkhet varchar, "
        "done_at varchar, facts bigint, added bigint, names bigint, bad bigint, left_out varchar"
    ),
    "inferences": "rules varchar, declared varchar, stated bigint, inferred bigint, rounds bigint, done_at varchar",
}


def fact_id_sql(*columns: str) -> str:
    """SQL for a fact's id from expressions for subject, predicate, object, value, unit, start and end.

    It is ``foundation.tables.fact_id`` to the letter: the hash of the JSON list of these.
    """
    texts = [column for place, column in enumerate(columns) if place != _VALUE]

    def json_list(text: str) -> str:
        parts = [
            f"coalesce({column}::varchar, 'null')" if place == _VALUE else f"coalesce({text.format(column)}, 'null')"
            for place, column in enumerate(columns)
        ]
        return "concat('[', " + ", ',', ".join(parts) + ", ']')"

    # Most texts need no escaping, and those that DuckDB and Python escape differently are rarer still.
    together = f"concat({', '.join(texts)})"
    content = (
        f"case when not regexp_matches({together}, '{_SPECIAL}') then {json_list(_QUOTED)} "
        f"when not regexp_matches({together}, '{_ESCAPED}') then {json_list('to_json({})::varchar')} "
        f"else {json_list('json_text({})')} end"
    )
    return f"'f_' || left(sha256({content}), 20)"


def prepare(connection: duckdb.DuckDBPyConnection) -> None:
    """Make the tables that are not there yet."""
    for table, columns in TABLES.items():
        connection.execute(f"create table if not exists {table} ({columns})")
    if not connection.execute("select count(*) from meta").fetchall()[0][0]:
        connection.execute("insert into meta values ('format', ?), ('merkhet', ?)", [FORMAT, __version__])


def define_macros(connection: duckdb.DuckDBPyConnection) -> None:
    """What SQL needs to know of merkhet's texts and times; temporary, so that read-only stores can have it too.

    ``time_key`` makes a number of a year, a month or a day (1957-03 is 19570300) with a filling for what is not
    said: 0 for a start and 99 for an end, so that numbers compare as times do. ``time_text`` is the way back.
    """
    # DuckDB writes \u001F where Python writes \u001f.
    connection.execute(
        f"""create or replace temp macro json_text(t) as
        case when t is null then null when not regexp_matches(t, '{_SPECIAL}') then '"' || t || '"'
             when not regexp_matches(t, '{_ESCAPED}') then to_json(t)::varchar
             else '"' || array_to_string(list_transform(string_split(t, ''), lambda c:
                case when regexp_matches(c, '{_ESCAPED}') then lower((to_json(c)::varchar)[2:-2])
                     else (to_json(c)::varchar)[2:-2] end), '') || '"' end"""
    )
    connection.execute("create or replace temp macro json_list(l) as to_json(l)::varchar")
    connection.execute(
        r"""create or replace temp macro is_time(t) as
        regexp_full_match(t, '[+-]?\d{1,9}(-(0[1-9]|1[0-2])(-(0[1-9]|[12]\d|3[01]))?)?')"""
    )
    connection.execute(f"create or replace temp macro time_key(t, missing) as {TIME_KEY}")


@contextmanager
def open_database(path: Path, *, read_only: bool) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection to a knowledge base's file, closed at the end; refuses what is not there, is none, or is in use."""
    _refuse_absent(path)
    connection = connect(path, read_only=read_only)
    try:
        yield connection
    except duckdb.Error as error:
        raise explain_error(error, path) from error
    finally:
        connection.close()


def connect(path: Path, *, read_only: bool) -> duckdb.DuckDBPyConnection:
    """Open a knowledge base's file; for writing, it is made if it is not there."""
    if read_only:
        _refuse_absent(path)
    try:
        connection = duckdb.connect(str(path), read_only=read_only)
    except duckdb.Error as error:
        raise explain_error(error, path) from error
    try:
        define_macros(connection)
        connection.execute("set preserve_insertion_order = false")  # Nothing is asked for without an order.
        if not read_only and not connection.execute("select count(*) from duckdb_tables()").fetchall()[0][0]:
            prepare(connection)
        _refuse_other_formats(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def explain_error(error: duckdb.Error, path: Path) -> Exception:
    """What a user can do about a database's error; errors that are nobody's fault but ours stay as they are."""
    text = str(error)
    if "Could not set lock" in text or "Conflicting lock" in text:
        return in_use_error(path)
    if isinstance(error, duckdb.OutOfMemoryException):
        return InputError(
            f"{path}: this needs more memory than it may use ({first_line(error)}). Give it more with --memory, or use "
            "--engine spark."
        )
    if "different configuration" in text:
        return InputError(f"{path} is open in this program already. Close it first.")
    if "not a valid DuckDB database" in text or isinstance(error, duckdb.SerializationException):
        return InputError(f"{path} is no knowledge base of merkhet ({first_line(error)})")
    if "WAL file" in text and ("Corrupt" in text or "Failure while replaying" in text):
        log = path.with_name(f"{path.name}.wal")
        return InputError(
            f"{log}, which a process that was stopped has left, is damaged ({first_line(error)}). Remove it: what that "
            "process was about to add is lost, and the same command adds it again."
        )
    if "Corrupt database file" in text:
        return InputError(f"{path} is damaged ({first_line(error)}). Remove it, and import its sources anew.")
    if "No space left" in text or "disk is full" in text.lower():
        return disk_full_error(path)
    if isinstance(error, duckdb.IOException):
        return InputError(f"{path} cannot be opened: {first_line(error)}")
    own: Exception = error
    return own


def in_use_error(path: Path) -> InputError:
    """The error for a knowledge base that somebody else reads or writes."""
    return InputError(f"{path} is in use by another process. Wait until it is done, or end it.")


def _refuse_absent(path: Path) -> None:
    if not path.is_file():
        raise InputError(
            f"there is no knowledge base {path}; make one with: merkhet knowledge import PLACE --into {path}"
        )


def _refuse_other_formats(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    try:
        found = connection.execute("select value from meta where key = 'format'").fetchall()
    except duckdb.CatalogException:
        found = []
    if not found:
        raise InputError(f"{path} is a DuckDB file, but no knowledge base of merkhet")
    if found[0][0] != FORMAT:
        raise InputError(f"{path} has the format {found[0][0]}, and this merkhet reads {FORMAT}. Import it anew.")
