"""Parts are found by name: merkhet's own, other people's, added ones and those in a loose file."""

from __future__ import annotations

import sys

import pytest
from all_cases import check_all

from merkhet.core.errors import InputError, did_you_mean
from merkhet.core.registry import Registry, load_part, part_identity


@pytest.fixture
def registry():
    return Registry("gadget", {"digest": ("merkhet.core.ids:digest", "a hash"), "broken": ("no.such:x", "")})


@pytest.fixture
def foreign(tmp_path, monkeypatch):
    """Another distribution, installed, with an entry point of the group ``merkhet.gadgets``."""
    site = tmp_path / "site"
    info = site / "brass_gadgets-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: brass-gadgets\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[merkhet.gadgets]\nbrass = brass_gadgets:polish\n")
    (site / "brass_gadgets.py").write_text("def polish():\n    return 'shining'\n")
    monkeypatch.syspath_prepend(str(site))
    yield "brass"
    sys.modules.pop("brass_gadgets", None)


def refusal(call, *given):
    with pytest.raises(InputError) as refused:
        call(*given)
    assert "\n" not in str(refused.value)
    assert refused.value.exit_code == 2
    return str(refused.value)


def test_an_own_part_is_loaded_when_it_is_asked_for(registry):
    from merkhet.core.ids import digest

    assert registry.get("digest") is digest
    assert registry.about("digest") == "a hash"
    assert list(registry) == ["digest", "broken"]
    assert "no module 'no.such'" in refusal(registry.get, "broken")


def test_an_unknown_name_gets_the_nearest_one(registry):
    for call in (registry.get, registry.check):
        assert refusal(call, "Digst") == "there is no gadget called 'Digst'; did you mean 'digest'?"
        assert refusal(call, "zzz") == "there is no gadget called 'zzz'; there are: broken, digest"


def test_a_part_of_another_distribution_is_found(registry, foreign):
    assert foreign in registry
    assert list(registry) == ["digest", "broken", "brass"]
    registry.check(foreign)
    assert registry.get(foreign)() == "shining"
    assert registry.about(foreign) == "from brass_gadgets"
    assert "did you mean 'brass'?" in refusal(registry.get, "bras")


def test_a_part_can_be_added_and_removed(registry):
    def part():
        return 1

    assert registry.add("own", part, "mine") is part
    assert registry.get("own") is part
    assert registry.about("own") == "mine"
    assert "already" in refusal(registry.add, "own", part)
    assert "already" in refusal(registry.add, "digest", part)
    registry.remove("own")
    assert "own" not in registry


def test_a_part_in_a_loose_file_is_read_relative_to_the_folder(registry, tmp_path):
    (tmp_path / "mine.py").write_text("def answer():\n    return 42\n")
    assert registry.get("mine.py:answer", tmp_path)() == 42
    assert registry.get(f"{tmp_path}/mine.py:answer")() == 42
    (tmp_path / "mine.py").write_text("def answer():\n    return 43\n")
    assert registry.get("mine.py:answer", tmp_path)() == 43


def test_a_loose_file_can_hold_dataclasses(tmp_path):
    text = "from __future__ import annotations\nfrom dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\n"
    (tmp_path / "classes.py").write_text(text)
    assert load_part("classes.py:P", tmp_path)(3).x == 3


def test_a_place_that_cannot_be_loaded_is_named_in_one_line(registry, tmp_path):
    (tmp_path / "mine.py").write_text("def answer():\n    return 42\n")
    (tmp_path / "wrong.py").write_text("def answer(:\n")
    (tmp_path / "failing.py").write_text("raise ValueError('two\\nlines')\n")

    def check(place, said):
        assert said in refusal(registry.get, place, tmp_path)

    cases = [
        ("mine.py:anser", "has no 'anser'; did you mean 'answer'?"),
        ("other.py:answer", "there is no file"),
        ("wrong.py:answer", "cannot be imported: SyntaxError"),
        ("failing.py:answer", "cannot be imported: ValueError: two lines"),
        ("merkhet.core.ids:digst", "did you mean 'digest'?"),
        ("merkhet.nowhere:x", "there is no module 'merkhet.nowhere'"),
        (":x", "names no module"),
        ("..up:x", "names no module"),
    ]
    check_all(check, cases)


def test_the_identity_of_a_loose_part_changes_with_its_file(tmp_path):
    (tmp_path / "mine.py").write_text("answer = 1\n")
    before = part_identity("mine.py:answer", tmp_path)
    (tmp_path / "mine.py").write_text("answer = 2\n")
    assert part_identity("mine.py:answer", tmp_path) != before
    assert part_identity("merkhet.core:digest") == "merkhet.core:digest"


def test_did_you_mean_names_what_there_is():
    assert did_you_mean("x", []) == "there are none"
    assert did_you_mean("CAPITLA", ["capital", "city"]) == "did you mean 'capital'?"
    many = [f"part-{number:02}" for number in range(20)]
    assert did_you_mean("zzz", many).endswith("part-11 and 8 more")
