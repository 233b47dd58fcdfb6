"""DuckDB tables of a knowledge base, connections to it, and SQL for store, import and rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb

from merkhet.core.errors import InputError, first_line
from merkhet.core.files import disk_full_error
from merkhet.core.version import __version__
from merkhet.knowledge.memory_limit import open_duckdb

FORMAT = "1"
CONTENT_COLUMNS = 'subject, predicate, object, value, unit, "start", "end", domain, source, rule, premises'
FACT_COLUMNS = f"fact_id, {CONTENT_COLUMNS}"  # The columns of FACTS.
NAME_COLUMNS = "entity, language, label, aliases, kind"
"""The columns of ``NAMES``.

The table also has ``worth``: 0 for a label from a source, 1 for an id used as a label, 2 for an alias.
"""
DETAIL_COLUMNS = 'subject, predicate, object, value, unit, "start", "end", details.name, details.text'
"""The columns of ``DETAILS_SCHEMA``, selected from the join of details and facts."""
KEY_COLUMNS = ("subject", "predicate", "object", "value", "unit", '"start"', '"end"')
_ESCAPED_DIFFERENTLY = r"[\x0b\x0e\x0f\x1a-\x1f]"
_NEEDS_ESCAPING = r'[\x00-\x1f"\\]'
_QUOTED = "'\"' || {} || '\"'"
_VALUE_POSITION = 3  # Position in KEY_COLUMNS; a number needs no quotes.

TIME_KEY = r"""(case when t is null then null else
    regexp_extract(t, '^[+]?(-?\d{1,9})', 1)::bigint * 10000
    + coalesce(nullif(regexp_extract(t, '^[+-]?\d{1,9}-(\d\d)', 1), '')::bigint, missing) * 100
    + coalesce(nullif(regexp_extract(t, '^[+-]?\d{1,9}-\d\d-(\d\d)', 1), '')::bigint, missing) end)"""
"""SQL expression that turns a date ``t`` into a number; see :func:`define_macros`."""

LITERAL = r"""(left(t, 1) = '"' and regexp_extract(t, '(?s)^".*"(@[A-Za-z0-9-]+|\^\^[^"\s]+)?\z', 0) != '')"""
"""SQL expression that tells whether an object ``t`` is a literal; see :func:`define_macros`."""

TABLES = {
    "meta": "key varchar, value varchar",
    "facts": (
        # An id is random text: compressing it costs much and saves little.
        "fact_id varchar using compression uncompressed, subject varchar, predicate varchar, object varchar, "
        "value double, unit varchar, "
        '"start" varchar, "end" varchar, domain varchar, source varchar, rule varchar, premises varchar[]'
    ),
    "names": "entity varchar, language varchar, label varchar, aliases varchar[], kind varchar, worth tinyint",
    "predicates": 'name varchar, label varchar, functional boolean, "symmetric" boolean, complete varchar',
    "details": "fact_id varchar, name varchar, text varchar",
    "imports": (
        "import_id varchar, place varchar, source varchar, content varchar, options varchar, merkhet varchar, "
        "done_at varchar, facts bigint, added bigint, names bigint, bad bigint, left_out varchar"
    ),
    "inferences": "rules varchar, declared varchar, stated bigint, inferred bigint, rounds bigint, done_at varchar",
}


def fact_id_sql(*columns: str) -> str:
    """Return an SQL expression for the id of a fact.

    The id is a hash of the JSON list of the key columns; ``core.schemas.fact_id`` computes the same id in Python.

    Args:
        columns: SQL expressions for subject, predicate, object, value, unit, start and end.
    """
    texts = [column for position, column in enumerate(columns) if position != _VALUE_POSITION]

    def json_list(text: str) -> str:
        parts = [
            f"coalesce({column}::varchar, 'null')"
            if position == _VALUE_POSITION
            else f"coalesce({text.format(column)}, 'null')"
            for position, column in enumerate(columns)
        ]
        return "concat('[', " + ", ',', ".join(parts) + ", ']')"

    # Most texts need no escaping; texts that DuckDB and Python escape differently are the rarest.
    joined = f"concat({', '.join(texts)})"
    content = (
        f"case when not regexp_matches({joined}, '{_NEEDS_ESCAPING}') then {json_list(_QUOTED)} "
        f"when not regexp_matches({joined}, '{_ESCAPED_DIFFERENTLY}') then {json_list('to_json({})::varchar')} "
        f"else {json_list('json_text({})')} end"
    )
    return f"'f_' || left(sha256({content}), 20)"


def sql_literals(*texts: object) -> str:
    """Quote texts as SQL literals and join them with commas."""
    return ", ".join("'" + str(text).replace("'", "''") + "'" for text in texts)


def count_rows(connection: duckdb.DuckDBPyConnection, source: str, values: Mapping[str, Any] | None = None) -> int:
    """Count the rows of a table or of a query in parentheses; ``values`` are the query parameters."""
    return int(connection.execute(f"select count(*) from {source}", values or None).fetchall()[0][0])


def create_tables(connection: duckdb.DuckDBPyConnection) -> None:
    """Create the tables that do not exist yet."""
    for table, columns in TABLES.items():
        connection.execute(f"create table if not exists {table} ({columns})")
    if not count_rows(connection, "meta"):
        connection.execute("insert into meta values ('format', ?), ('merkhet', ?)", [FORMAT, __version__])


def define_macros(connection: duckdb.DuckDBPyConnection) -> None:
    """Define temporary SQL macros for texts and dates; temporary macros also work in a read-only database.

    ``is_literal`` tells whether an object is a literal: a text in quotes (``"10115"``), which may be followed by a
    language (``"chat"@fr``) or a datatype (``"1957"^^xsd:gYear``). Another text is a name, even if it starts with a
    quotation mark (``"Weird Al" Yankovic``).

    ``time_key`` turns a date into a number that sorts like the date. A missing month or day becomes ``missing``: 0 for
    a start date (1957-03 is 19570300), 99 for an end date (19570399).
    """
    # DuckDB writes \u001F where Python writes \u001f.
    connection.execute(
        f"""create or replace temp macro json_text(t) as
        case when t is null then null when not regexp_matches(t, '{_NEEDS_ESCAPING}') then '"' || t || '"'
             when not regexp_matches(t, '{_ESCAPED_DIFFERENTLY}') then to_json(t)::varchar
             else '"' || array_to_string(list_transform(string_split(t, ''), lambda c:
                case when regexp_matches(c, '{_ESCAPED_DIFFERENTLY}') then lower((to_json(c)::varchar)[2:-2])
                     else (to_json(c)::varchar)[2:-2] end), '') || '"' end"""
    )
    connection.execute("create or replace temp macro json_list(l) as to_json(l)::varchar")
    connection.execute(f"create or replace temp macro is_literal(t) as {LITERAL}")
    connection.execute(f"create or replace temp macro time_key(t, missing) as {TIME_KEY}")


@contextmanager
def open_database(path: Path, *, read_only: bool) -> Iterator[duckdb.DuckDBPyConnection]:
    """Connect to the file of a knowledge base for the duration of a ``with`` block.

    Raises:
        InputError: The file is missing, is not a knowledge base, or is in use.
    """
    _require_file(path)
    connection = connect(path, read_only=read_only)
    try:
        yield connection
    except duckdb.Error as error:
        raise explain_error(error, path) from error
    finally:
        connection.close()


def connect(path: Path, *, read_only: bool) -> duckdb.DuckDBPyConnection:
    """Connect to the file of a knowledge base; a missing file is created unless ``read_only`` is set."""
    if read_only:
        _require_file(path)
    try:
        connection = open_duckdb(path, read_only=read_only)
    except duckdb.Error as error:
        raise explain_error(error, path) from error
    try:
        _refuse_queries(connection, path)
        define_macros(connection)
        connection.execute("set preserve_insertion_order = false")  # Every query that needs an order states it.
        if not read_only and not count_rows(connection, "duckdb_tables()"):
            create_tables(connection)
        _require_format(connection, path)
        if not read_only:  # Knowledge bases of earlier versions lack the column.
            connection.execute("alter table predicates add column if not exists complete varchar")
    except BaseException:
        connection.close()
        raise
    return connection


def explain_error(error: duckdb.Error, path: Path) -> Exception:
    """Turn a database error that a user can fix into an InputError; return any other error unchanged."""
    text = str(error)
    if "Could not set lock" in text or "Conflicting lock" in text:
        return in_use_error(path)
    if isinstance(error, duckdb.OutOfMemoryException):
        return InputError(
            f"{path}: out of memory ({first_line(error)}). Raise the limit with --memory, or use --engine spark."
        )
    if "different configuration" in text:
        return InputError(f"{path} is open in this program already. Close it first.")
    if "not a valid DuckDB database" in text or isinstance(error, duckdb.SerializationException):
        return InputError(f"{path} is not a merkhet knowledge base ({first_line(error)})")
    if "WAL file" in text and ("Corrupt" in text or "Failure while replaying" in text):
        wal_path = path.with_name(f"{path.name}.wal")
        return InputError(
            f"{wal_path}, left by a stopped process, is damaged ({first_line(error)}). Remove it, and run the command "
            "of that process again."
        )
    if "Corrupt database file" in text:
        return InputError(f"{path} is damaged ({first_line(error)}). Remove it and import its sources again.")
    if "No space left" in text or "disk is full" in text.lower():
        return disk_full_error(path)
    if isinstance(error, duckdb.IOException):
        return InputError(f"{path} cannot be opened: {first_line(error)}")
    unchanged: Exception = error
    return unchanged


def in_use_error(path: Path) -> InputError:
    """Return the error for a knowledge base that another process reads or writes."""
    return InputError(f"{path} is in use by another process. Wait until it is done, or end it.")


def _require_file(path: Path) -> None:
    if not path.is_file():
        raise InputError(
            f"there is no knowledge base {path}; create one with: merkhet knowledge import PLACE --into {path}"
        )


def _refuse_queries(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    """Raise InputError if the file holds a view or a macro, which merkhet never writes.

    The file may be somebody else's: a view could read any file of the user, and a macro could replace a function of
    merkhet's queries. A macro of the file cannot replace the qualified functions here.
    """
    names = connection.execute(
        """select view_name from system.main.duckdb_views() where not internal
        union all select function_name from system.main.duckdb_functions() where not internal"""
    ).fetchall()
    if names:
        raise InputError(
            f"{path} holds a view or macro ({min(names)[0]!a}), which may read other files: "
            "merkhet has not made it. Import its sources again."
        )


def _require_format(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    try:
        formats = connection.execute("select value from meta where key = 'format'").fetchall()
    except duckdb.CatalogException:
        formats = []
    if not formats:
        raise InputError(f"{path} is a DuckDB file, but not a merkhet knowledge base. Choose another file.")
    if formats[0][0] != FORMAT:
        raise InputError(
            f"{path} has format {formats[0][0]}, and this merkhet reads format {FORMAT}. Import its sources again."
        )
