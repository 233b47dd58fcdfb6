"""Unfinished work that a power cut has damaged is named and done again."""

from __future__ import annotations

import logging
import resource
import signal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from merkhet.core.errors import InputError
from merkhet.core.schemas import ANSWERS, make_table, write_table

torch = pytest.importorskip("torch")


def flip(file: Path, place: int) -> None:
    content = bytearray(file.read_bytes())
    content[place] ^= 4
    file.write_bytes(content)


def checkpoint(folder: Path) -> Path:
    from merkhet.training._checkpoints import write_checkpoint

    file = folder / "checkpoint.pt"
    write_checkpoint(file, "this", {"weights": torch.arange(4096.0), "epoch": 3})
    return file


def test_a_checkpoint_that_finds_no_room_says_so(tmp_path: Path) -> None:
    """A file may have no more than so many bytes here, which is what a full disk looks like."""
    from merkhet.training._checkpoints import write_checkpoint

    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        with pytest.raises(InputError, match=r"checkpoint\.pt: the disk is full"):
            write_checkpoint(tmp_path / "checkpoint.pt", "this", {"weights": torch.zeros(100_000)})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, before)
    assert not list(tmp_path.iterdir())


def test_a_checkpoint_that_was_cut_off_is_named_and_not_gone_on_from(tmp_path: Path, caplog) -> None:
    from merkhet.training._checkpoints import read_checkpoint

    file = checkpoint(tmp_path)
    assert read_checkpoint(file, "this", "model") is not None
    whole = file.read_bytes()
    for share in (0.0, 0.001, 0.3, 0.5, 0.7, 0.999):
        caplog.clear()
        file.write_bytes(whole[: int(share * len(whole))])
        with caplog.at_level(logging.WARNING):
            assert read_checkpoint(file, "this", "model") is None, share
        assert "checkpoint.pt" in caplog.text, share


def test_wrong_weights_in_a_checkpoint_are_noticed(tmp_path: Path, caplog) -> None:
    from merkhet.training._checkpoints import read_checkpoint

    file = checkpoint(tmp_path)
    flip(file, file.read_bytes().index(torch.arange(4096.0).numpy().tobytes()[400:800]))
    with caplog.at_level(logging.WARNING):
        assert read_checkpoint(file, "this", "model") is None
    assert "checkpoint.pt" in caplog.text


def test_wrong_bytes_in_packed_statements_are_noticed(tmp_path: Path, caplog) -> None:
    from merkhet.core.files import file_digest, write_json
    from merkhet.training.memorizing._statement_arrays import _FILES, _METADATA, _open_arrays

    for name in _FILES:
        np.save(tmp_path / f"{name}.npy", np.arange(64, dtype=np.int32))
    contents = {name: file_digest(tmp_path / f"{name}.npy") for name in _FILES}
    write_json(tmp_path / _METADATA, {"identity": "this", "unreadable": 0, "contents": contents})
    assert _open_arrays(tmp_path, "this") is not None
    assert _open_arrays(tmp_path, "another") is None
    assert not caplog.records
    flip(tmp_path / "targets.npy", -20)
    assert _open_arrays(tmp_path, "this") is None
    assert "targets.npy" in caplog.text


def test_answers_that_are_damaged_are_asked_for_again(tmp_path: Path, caplog) -> None:
    from merkhet.engine._ask_step import _is_readable

    part = tmp_path / "00003.parquet"
    assert not _is_readable(part)
    row = {"question_id": "q", "model": "m", "probe": "rank", "method": "pll"}
    rows = [{**row, "question_id": f"q{number}"} for number in range(200)]
    write_table(ANSWERS, _filled(make_table, rows), part)
    assert _is_readable(part) and not caplog.records
    whole = part.read_bytes()
    data_end = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    places = [0, 30, data_end // 2, len(whole) - 1]
    for cut, place in [(True, place) for place in places] + [(False, place) for place in (*places[1:], 60)]:
        caplog.clear()
        part.write_bytes(whole)
        if cut:
            part.write_bytes(whole[:place])
        else:
            flip(part, place)
        assert not _is_readable(part), (cut, place)
        assert "00003.parquet" in caplog.text, (cut, place)


def _filled(make, rows) -> pa.Table:
    """Answers with a value in every column that must have one."""
    schema = ANSWERS.schema
    values = {pa.float64(): 0.5, pa.string(): "x", pa.bool_(): False, pa.int64(): 1}
    missing = {name: values.get(schema.field(name).type) for name in ANSWERS.required if name not in rows[0]}
    return make(
        ANSWERS, [{**row, **{name: value for name, value in missing.items() if value is not None}} for row in rows]
    )
