"""Calibration cards: which one speaks for a probe, and when none does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from merkhet import __version__
from merkhet.calibration.calibration_cards import EMBEDDED, card_file, find_cards, save_cards
from merkhet.probes import PROBES

KINDS = {"rank": ["masked", "causal"], "fill": ["masked"], "write": ["masked", "causal"]}
KINDS["compare"] = ["masked", "causal", "encoder"]


def card(probe: str, kind: str, version: str = __version__, **more) -> dict:
    return {"probe": probe, "kind": kind, "passed": True, "rows": [], "made": {"merkhet": version}, **more}


@pytest.fixture
def own(tmp_path: Path) -> Path:
    file = tmp_path / "study" / "mine.py"
    file.parent.mkdir()
    file.write_text("def ask(model, questions, methods=()):\n    return []\n", encoding="utf-8")
    return file


def test_every_probe_of_merkhet_comes_with_cards_that_it_passed() -> None:
    cards = {probe: find_cards([probe]) for probe in KINDS}
    assert {probe: [one["kind"] for one in found] for probe, found in cards.items()} == KINDS
    for probe, one in ((probe, one) for probe, found in cards.items() for one in found):
        assert one["passed"] is True and one["probe"] == probe and one["trainings"] == 3 and one["seed"] == 0
        assert all(row["passed"] is not False for row in one["rows"]) and len(one["rows"]) == 9
        assert one["made"]["command"] == f"merkhet calibrate {probe}"


def test_every_embedded_card_is_of_a_probe_that_there_is() -> None:
    assert {file.stem for file in EMBEDDED.glob("*.json")} == set(KINDS) <= set(PROBES)


def test_embedded_cards_name_no_place_of_the_machine_that_made_them() -> None:
    texts = {file.stem: file.read_text(encoding="utf-8") for file in EMBEDDED.glob("*.json")}
    assert [name for name, text in texts.items() if "/" in text or "\\\\" in text] == [], "no path stands in a card"


def test_a_card_made_here_takes_the_place_of_the_embedded_one_for_its_kind() -> None:
    save_cards("rank", [card("rank", "causal", mark="here")])
    masked, causal = find_cards(["rank"])
    assert masked["kind"] == "masked" and "mark" not in masked
    assert causal["kind"] == "causal" and causal["mark"] == "here"


def test_a_card_made_by_another_version_does_not() -> None:
    save_cards("rank", [card("rank", "causal", version="0.0.1", mark="old")])
    assert all("mark" not in one for one in find_cards(["rank"]))


def test_cards_of_other_kinds_are_kept() -> None:
    save_cards("rank", [card("rank", "masked", mark="first")])
    save_cards("rank", [card("rank", "causal", mark="second")])
    assert [one["mark"] for one in find_cards(["rank"])] == ["first", "second"]


def test_an_own_probe_has_a_card_until_its_file_changes(own: Path) -> None:
    assert find_cards(["mine.py:ask"], own.parent) == []
    save_cards("mine.py:ask", [card("mine", "masked")], own.parent)
    assert [one["probe"] for one in find_cards(["mine.py:ask"], own.parent)] == ["mine"]
    assert find_cards([f"{own}:ask"]), "the same file, named from another folder"
    assert find_cards(["mine.py:other"], own.parent) == []
    before = own.read_text(encoding="utf-8")
    own.write_text(f"{before}\n# changed\n", encoding="utf-8")
    assert find_cards(["mine.py:ask"], own.parent) == []
    own.write_text(before, encoding="utf-8")
    assert find_cards(["mine.py:ask"], own.parent)


def test_probes_that_were_never_calibrated_have_no_card(own: Path) -> None:
    assert find_cards(["recall", "missing.py:ask", "some.module:ask"], own.parent) == []


def test_probes_named_twice_have_their_cards_once() -> None:
    assert len(find_cards(["rank", "rank", "fill"])) == 3


def test_a_damaged_file_of_cards_is_as_none() -> None:
    file = card_file("rank")
    file.parent.mkdir(parents=True)
    for text in ("", "{", "7", "{}", "null", '["a", {"passed": true}]'):
        file.write_text(text, encoding="utf-8")
        assert [one["kind"] for one in find_cards(["rank"])] == KINDS["rank"], text
        save_cards("rank", [card("rank", "causal", mark="new")])
        assert json.loads(file.read_text(encoding="utf-8"))[-1]["mark"] == "new", text
