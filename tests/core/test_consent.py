"""Consent is remembered for the same content, in a store that nobody else can have filled."""

from __future__ import annotations

import shutil
import stat
from pathlib import Path

import pytest

from merkhet.core.consent import ConsentError, Permission, require_consent
from merkhet.core.errors import MAX_FAULTS

CODE = Permission("runs their.py:f (metrics)", ("file", "their.py:f", "abc"))
KEY = Permission("sends the environment variable KEY to evil.example", ("key", "KEY", "https://evil.example"))


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MERKHET_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "consent"


def missing(*permissions: Permission, content: str = "text", where: str = "study.yaml") -> list[str]:
    try:
        require_consent(permissions, where, content, trust=False)
    except ConsentError as error:
        assert error.exit_code == 2 and error.remedy in str(error).splitlines()[-1]
        assert "--trust" in error.remedy and "trust=True" in error.remedy
        return list(error.faults)
    return []


def agree(*permissions: Permission, content: str = "text") -> None:
    require_consent(permissions, "study.yaml", content, trust=True)


def test_consent_is_for_each_permission_and_each_content(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    both = [f"study.yaml {CODE.action}", f"study.yaml {KEY.action}"]
    assert missing() == [] and missing(CODE, KEY, CODE) == both and not store.exists()
    agree(CODE)
    assert capsys.readouterr().err == f"merkhet: {both[0]}\n"
    assert missing(CODE) == [] and missing(CODE, KEY) == [both[1]]
    agree(CODE, KEY)
    assert capsys.readouterr().err.splitlines() == [f"merkhet: {line}" for line in both]
    assert missing(CODE, KEY) == [] and capsys.readouterr().err == ""
    assert missing(CODE, content="text, changed") == both[:1]
    assert missing(Permission(CODE.action, ("file", "their.py:f", "abd"))) == both[:1]


def test_an_error_leaves_out_no_permission(store: Path) -> None:
    many = [Permission(f"imports module_{number}:f", (str(number),)) for number in range(3 * MAX_FAULTS)]
    assert len(missing(*many)) == len(many)
    with pytest.raises(ConsentError) as refused:
        require_consent(many, "study.yaml", "text", trust=False)
    assert len(str(refused.value).splitlines()) == len(many) + 1


def test_an_announcement_is_one_line_without_control_characters(store: Path) -> None:
    (line,) = missing(Permission("imports a\n\x1b[2Kb:f", ("a",)), where="a\r\u202eb.yaml")
    assert line == "a �b.yaml imports a �[2Kb:f"


def test_only_the_user_can_read_and_write_the_store(store: Path) -> None:
    agree(CODE)
    assert stat.S_IMODE(store.stat().st_mode) == 0o700
    assert stat.S_IMODE((store / "key").stat().st_mode) == 0o600
    (store / "key").chmod(0o666)
    assert missing(CODE)
    agree(CODE)
    assert missing(CODE) == []


def test_a_store_that_came_with_the_study_is_not_believed(store: Path, tmp_path: Path, monkeypatch) -> None:
    """A stranger packs a store with his own consent where the user's cache is."""
    agree(CODE)
    shutil.copytree(tmp_path / "cache", tmp_path / "theirs" / "cache", copy_function=shutil.copy2)
    monkeypatch.setenv("MERKHET_CACHE", str(tmp_path / "theirs" / "cache"))
    assert missing(CODE)
    shutil.rmtree(tmp_path / "cache")
    shutil.copytree(tmp_path / "theirs" / "cache", tmp_path / "cache", copy_function=shutil.copy2)
    monkeypatch.setenv("MERKHET_CACHE", str(tmp_path / "cache"))
    assert missing(CODE)


def test_a_damaged_store_asks_again(store: Path) -> None:
    for name, content in (
        ("key", b"cut"),
        ("key", b"\xff" * 32),
        ("*.json", b""),
        ("*.json", b"\xff"),
        ("*.json", b"[]"),
    ):
        agree(CODE)
        assert missing(CODE) == []
        for file in store.glob(name):
            file.write_bytes(content)
        assert missing(CODE), (name, content)
    shutil.rmtree(store)
    assert missing(CODE)
    store.write_text("a file")
    assert missing(CODE)


def test_a_cache_that_cannot_be_written_to_still_lets_the_user_agree(store: Path, capsys) -> None:
    store.parent.mkdir()
    store.write_text("a file")
    agree(CODE)
    announced, remark = capsys.readouterr().err.splitlines()
    assert announced == f"merkhet: study.yaml {CODE.action}"
    assert remark.startswith("merkhet: the consent cannot be remembered") and missing(CODE)
