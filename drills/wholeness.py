"""Whether files are whole, whether anything is left over, and what a result is, apart from times."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

UNFINISHED = (".tmp", ".part", ".importing")
_SAME_BYTES = (".parquet", ".safetensors", "scores.json", "study.yaml", "tokenizer.json", "about.json", "card.json")
_TIMED = ("seconds",)
_STORED = ("facts", "names", "predicates", "details", "imports", "inferences")


def final_files(folder: Path) -> Iterator[Path]:
    """The files that have their final name, and so must be whole at any moment."""
    for file in sorted(folder.rglob("*")):
        parts = file.relative_to(folder).parts
        if file.is_file() and not any(part.startswith(".") and part.endswith(UNFINISHED) for part in parts):
            yield file


def broken(folder: Path) -> list[str]:
    """The files with a final name that cannot be read to their end."""
    found = []
    for file in final_files(folder):
        try:
            _read(file)
        except Exception as error:
            found.append(f"{file.relative_to(folder)} is not whole ({str(error).splitlines()[0]})")
    return found


def _read(file: Path) -> None:
    if file.suffix == ".parquet":
        pq.read_table(file)
    elif file.suffix == ".json":
        json.loads(file.read_text(encoding="utf-8"))
    elif file.suffix == ".yaml":
        assert yaml.safe_load(file.read_text(encoding="utf-8")), "it is empty"
    elif file.suffix == ".html":
        assert file.read_text(encoding="utf-8").rstrip().endswith("</html>"), "the end is missing"
    elif file.suffix == ".pt":
        with zipfile.ZipFile(file) as archive:
            assert archive.testzip() is None, "a part is damaged"
    elif file.suffix == ".npy":
        if (file.parent / "packed.json").is_file():  # Written last: only then are the arrays taken for whole.
            np.load(file)
    elif file.suffix == ".safetensors":
        from safetensors import safe_open

        with safe_open(file, "np") as tensors:
            for name in tensors.keys():  # noqa: SIM118
                tensors.get_tensor(name)
    elif file.suffix == ".duckdb":
        store_content(file)


def leftovers(folder: Path) -> list[str]:
    """What a finished command should have cleared away."""
    found = []
    for path in folder.rglob("*"):
        name = path.name
        unfinished = name.startswith(".") and name.endswith(UNFINISHED)
        if (
            unfinished
            or name.endswith(".wal")
            or (path.parent.name == ".merkhet" and name == "work" and any(one.is_file() for one in path.rglob("*")))
        ):
            found.append(f"{path.relative_to(folder)} is left over")
    return found


def contents(folder: Path) -> dict[str, str]:
    """What a command has made, file by file as a hash, without what tells of times and places."""
    found = {}
    for file in final_files(folder):
        name = str(file.relative_to(folder))
        if file.name.startswith(".") or "/work/" in name or "/steps/" in name:
            continue
        try:
            if file.suffix == ".duckdb":
                found[name] = store_content(file)
            elif file.suffix == ".parquet":
                found[name] = _table_content(file)
            elif name.endswith(_SAME_BYTES):
                found[name] = hashlib.sha256(file.read_bytes()).hexdigest()
            elif file.suffix == ".html":
                found[name] = "there"
        except Exception as error:
            found[name] = f"cannot be read: {error}"
    return found


def _table_content(file: Path) -> str:
    table = pq.read_table(file)
    timed = [name for name in _TIMED if name in table.column_names]
    if not timed:
        return hashlib.sha256(file.read_bytes()).hexdigest()
    kept = table.drop_columns(timed)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, kept.schema) as writer:
        writer.write_table(kept.combine_chunks())
    return hashlib.sha256(sink.getvalue()).hexdigest()


def store_content(file: Path) -> str:
    """A hash of the sorted rows of a knowledge base, of a copy: reading must not mend what a kill has left."""
    with tempfile.TemporaryDirectory() as place:
        for one in (file, file.with_name(file.name + ".wal")):
            if one.is_file():
                shutil.copy(one, place)
        state = hashlib.sha256()
        with duckdb.connect(str(Path(place) / file.name)) as connection:
            for table in _STORED:
                columns = connection.execute(f"select * from {table} limit 0").description or []
                kept = ", ".join(f'"{one[0]}"' for one in columns if one[0] != "done_at")
                rows = sorted(map(repr, connection.execute(f"select {kept} from {table}").fetchall()))
                state.update("\n".join([table, *rows]).encode())
        return state.hexdigest()


def differences(expected: dict[str, str], found: dict[str, str]) -> list[str]:
    """What is not as an undisturbed command has made it."""
    other = sorted(name for name in expected.keys() | found.keys() if expected.get(name) != found.get(name))
    return [f"{', '.join(other[:5])} differ from the undisturbed result"] if other else []
