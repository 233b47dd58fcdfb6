"""Integrity checks: broken files, leftovers, and hashes of results without times."""

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
    """Yield the files with a final name, which must be complete at any moment."""
    for file in sorted(folder.rglob("*")):
        parts = file.relative_to(folder).parts
        if file.is_file() and not any(part.startswith(".") and part.endswith(UNFINISHED) for part in parts):
            yield file


def broken_files(folder: Path) -> list[str]:
    """Return the files with a final name that cannot be read to their end."""
    problems = []
    for file in final_files(folder):
        try:
            _read(file)
        except Exception as error:
            problems.append(f"{file.relative_to(folder)} is not whole ({str(error).splitlines()[0]})")
    return problems


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
        if (file.parent / "packed.json").is_file():  # Written last: the arrays are complete only then.
            np.load(file)
    elif file.suffix == ".safetensors":
        from safetensors import safe_open

        with safe_open(file, "np") as tensors:
            for name in tensors.keys():  # noqa: SIM118
                tensors.get_tensor(name)
    elif file.suffix == ".duckdb":
        store_content(file)


def leftovers(folder: Path) -> list[str]:
    """Return what a finished command should have removed."""
    problems = []
    for path in folder.rglob("*"):
        name = path.name
        unfinished = name.startswith(".") and name.endswith(UNFINISHED)
        if (
            unfinished
            or name.endswith(".wal")
            or (path.parent.name == ".merkhet" and name == "work" and any(file.is_file() for file in path.rglob("*")))
        ):
            problems.append(f"{path.relative_to(folder)} is left over")
    return problems


def content_hashes(folder: Path) -> dict[str, str]:
    """Return a hash of each file that a command made, without times and paths."""
    hashes = {}
    for file in final_files(folder):
        name = str(file.relative_to(folder))
        if file.name.startswith(".") or "/work/" in name or "/steps/" in name:
            continue
        try:
            if file.suffix == ".duckdb":
                hashes[name] = store_content(file)
            elif file.suffix == ".parquet":
                hashes[name] = _table_content(file)
            elif name.endswith(_SAME_BYTES):
                hashes[name] = hashlib.sha256(file.read_bytes()).hexdigest()
            elif file.suffix == ".html":
                hashes[name] = "there"
        except Exception as error:
            hashes[name] = f"cannot be read: {error}"
    return hashes


def _table_content(file: Path) -> str:
    table = pq.read_table(file)
    timed = [name for name in _TIMED if name in table.column_names]
    if not timed:
        return hashlib.sha256(file.read_bytes()).hexdigest()
    untimed = table.drop_columns(timed)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, untimed.schema) as writer:
        writer.write_table(untimed.combine_chunks())
    return hashlib.sha256(sink.getvalue()).hexdigest()


def store_content(file: Path) -> str:
    """Hash the sorted rows of a copy of a knowledge base: opening the original would repair what a kill left."""
    with tempfile.TemporaryDirectory() as folder:
        for path in (file, file.with_name(file.name + ".wal")):
            if path.is_file():
                shutil.copy(path, folder)
        state = hashlib.sha256()
        with duckdb.connect(str(Path(folder) / file.name)) as connection:
            for table in _STORED:
                columns = connection.execute(f"select * from {table} limit 0").description or []
                untimed = ", ".join(f'"{column[0]}"' for column in columns if column[0] != "done_at")
                rows = sorted(map(repr, connection.execute(f"select {untimed} from {table}").fetchall()))
                state.update("\n".join([table, *rows]).encode())
        return state.hexdigest()


def differences(expected: dict[str, str], actual: dict[str, str]) -> list[str]:
    """Compare the hashes of an output with those of the undisturbed one."""
    changed = sorted(name for name in expected.keys() | actual.keys() if expected.get(name) != actual.get(name))
    return [f"{', '.join(changed[:5])} differ from the undisturbed result"] if changed else []
