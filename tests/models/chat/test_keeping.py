"""Kept replies: a damaged file, a full disk and a place that cannot be written to are said in a line."""

import os

import pytest

from merkhet.core.errors import InputError
from merkhet.models.chat._reply_cache import KeptReplies

REQUEST = {"model": "m", "messages": []}


def test_a_full_disk_is_said_and_what_was_kept_stays(tmp_path):
    kept = KeptReplies(tmp_path / "replies.sqlite")
    kept.keep("first", "here", REQUEST, {"text": "yes"})
    # SQLite says the same of a file that may not grow as of a disk without room.
    [(pages,)] = kept.store.execute("pragma page_count")
    kept.store.execute(f"pragma max_page_count = {pages}")
    with pytest.raises(InputError, match=r"replies.sqlite: the disk is full.*MERKHET_CACHE"):
        kept.keep("second", "here", REQUEST, {"text": "long " * 10_000})
    assert kept.find(["first", "second"]) == {"first": {"text": "yes"}}
    kept.close()


def test_a_damaged_file_is_named(tmp_path):
    file = tmp_path / "replies.sqlite"
    file.write_bytes(os.urandom(20_000))
    with pytest.raises(InputError, match=r"replies.sqlite is damaged .* asked for anew"):
        KeptReplies(file)


def test_a_place_that_cannot_be_written_to_is_named(tmp_path):
    kept = KeptReplies(tmp_path / "replies.sqlite")
    kept.store.execute("pragma query_only = true")
    with pytest.raises(InputError, match=r"cannot be written to .* MERKHET_CACHE"):
        kept.keep("first", "here", REQUEST, {"text": "yes"})
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match=r"folder cannot be written to"):
        KeptReplies(tmp_path / "folder")
