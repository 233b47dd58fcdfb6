"""Kept replies: a damaged file, a full disk and a place that cannot be written to are said in a line."""

import os

import pytest

from merkhet.core.errors import InputError
from merkhet.core.redaction import register_secret
from merkhet.models.chat._reply_cache import ReplyCache

REQUEST = {"model": "m", "messages": []}


def test_a_full_disk_is_said_and_what_was_kept_stays(tmp_path):
    cache = ReplyCache(tmp_path / "replies.sqlite")
    cache.store("first", "here", REQUEST, {"text": "yes"})
    # SQLite says the same of a file that may not grow as of a disk without room.
    [(pages,)] = cache.database.execute("pragma page_count")
    cache.database.execute(f"pragma max_page_count = {pages}")
    with pytest.raises(InputError, match=r"replies.sqlite: the disk is full.*MERKHET_CACHE"):
        cache.store("second", "here", REQUEST, {"text": "long " * 10_000})
    assert cache.find(["first", "second"]) == {"first": {"text": "yes"}}
    cache.close()


def test_a_damaged_file_is_named(tmp_path):
    file = tmp_path / "replies.sqlite"
    file.write_bytes(os.urandom(20_000))
    with pytest.raises(InputError, match=r"replies.sqlite is damaged .* requested again"):
        ReplyCache(file)


def test_a_place_that_cannot_be_written_to_is_named(tmp_path):
    cache = ReplyCache(tmp_path / "replies.sqlite")
    cache.database.execute("pragma query_only = true")
    with pytest.raises(InputError, match=r"cannot be written to .* MERKHET_CACHE"):
        cache.store("first", "here", REQUEST, {"text": "yes"})
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match=r"folder cannot be written to"):
        ReplyCache(tmp_path / "folder")


def test_no_key_is_kept_in_requests_and_replies_nor_read_from_an_older_cache(tmp_path):
    key = "sk-Zq8-not-to-be-kept"
    cache = ReplyCache(tmp_path / "replies.sqlite")
    cache.store("older", "here", REQUEST, {"text": f"it is {key}"})
    register_secret(key)
    assert cache.find(["older"]) == {"older": {"text": "it is (the key)"}}
    cache.store("newer", f"http://h/{key}", {"model": key, "messages": [key]}, {"text": key.upper()})
    [row] = cache.database.execute("select endpoint, model, request, reply from replies where key = 'newer'").fetchall()
    assert key not in str(row).lower()
    cache.close()
