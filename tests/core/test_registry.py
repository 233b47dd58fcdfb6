"""Parts are found by name: merkhet's own, other people's, added ones and those in a loose file."""

from __future__ import annotations

import os
import sys

import pytest
from all_cases import check_all

from merkhet.core.errors import InputError, did_you_mean
from merkhet.core.registry import PartType, Registry, code_digest, load_part, part_identity


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


def test_code_is_hashed_without_being_imported(registry, foreign, tmp_path):
    (tmp_path / "site" / "deep").mkdir()
    for place in ("deep/__init__.py", "deep/part.py", "loose.py"):
        (tmp_path / "site" / place).write_text("raise SystemExit('imported')\n")
    references = ["brass_gadgets:polish", "deep.part:f", "deep:f", f"{tmp_path}/site/loose.py:f"]
    before = {reference: code_digest(reference) for reference in references}
    assert len(set(before.values())) == len(references)
    assert before == {reference: code_digest(reference) for reference in references}
    (tmp_path / "site" / "deep" / "__init__.py").write_text("")
    changed = {reference for reference in references if code_digest(reference) != before[reference]}
    assert changed == {"deep.part:f", "deep:f"}
    assert "deep" not in sys.modules and "brass_gadgets" not in sys.modules
    for reference in ("deep.other:f", "deep.part.below:f", "nowhere:f", "nowhere.below:f"):
        assert "there is no module" in refusal(code_digest, reference)
    assert "there is no file" in refusal(code_digest, "nowhere.py:f", tmp_path)


def test_foreign_code_is_told_from_merkhets_own_without_an_import(registry, foreign):
    registry.add("own", object())
    told = {name: registry.foreign_reference(name) for name in ("digest", "own", "unknown", "a.b:c", "x.py:c", foreign)}
    assert told == {
        **{"digest": None, "own": None, "unknown": None, "a.b:c": "a.b:c", "x.py:c": "x.py:c"},
        foreign: "brass_gadgets:polish",
    }
    available = [name for name in told if registry.is_available(name)]
    assert available == ["digest", "own"] and "brass_gadgets" not in sys.modules
    registry.get(foreign)
    assert registry.is_available(foreign)


def test_pythons_own_functions_are_no_parts(registry, tmp_path, monkeypatch):
    """They are neither called nor, where the name tells it, imported."""
    called = []
    monkeypatch.setattr(os, "system", lambda *given: called.append(given))
    monkeypatch.delitem(sys.modules, "antigravity", raising=False)
    (tmp_path / "mine.py").write_text(
        "from functools import lru_cache, partial, wraps\nfrom os import popen\nfrom shutil import rmtree\n"
        "run = partial(partial(popen), buffering=1)\ncached = lru_cache(rmtree)\n"
    )

    def check(name):
        said = refusal(registry.get, name, tmp_path)
        assert "is not a gadget: it belongs to Python's standard library" in said and "file.py:name" in said

    names = ["os:system", "subprocess:call", "builtins:eval", "os.path:join", "posix:system", "antigravity:x"]
    check_all(check, [*names, "mine.py:popen", "mine.py:run", "mine.py:cached"])
    assert called == [] and "antigravity" not in sys.modules
    for name in names:
        assert "standard library" in refusal(registry.check, name)


def test_a_foreign_part_of_another_kind_is_refused_and_not_called(tmp_path):
    gadgets = Registry("gadget", {}, part_type=PartType("a function of a coin", (1,), lambda part: part == "coin"))
    (tmp_path / "mine.py").write_text(
        "def call(*given, **options):\n    raise SystemExit\n\n\ndef one(coin, more=()):\n    raise SystemExit\n\n\n"
        "def none():\n    raise SystemExit\n\n\ndef two(coin, other):\n    raise SystemExit\n\n\n"
        "def named(coin, *, other):\n    raise SystemExit\n\n\ncoin, number, text = 'coin', 3, 'text'\n\n\n"
        "class Coin:\n    def __call__(self, coin):\n        raise SystemExit\n\n\ninstance = Coin()\n"
    )
    for name in ("call", "one", "coin", "instance"):
        gadgets.get(f"mine.py:{name}", tmp_path)
    for name in ("none", "two", "named", "Coin"):
        said = refusal(gadgets.get, f"mine.py:{name}", tmp_path)
        assert said == f"mine.py:{name} takes other arguments; a gadget must be a function of a coin"
    for name, kind in (("number", "int"), ("text", "str")):
        said = refusal(gadgets.get, f"mine.py:{name}", tmp_path)
        assert said == f"mine.py:{name} is of the type {kind}; a gadget must be a function of a coin"
