"""The suite kmir as its users meet it: on the embedded packs, with learning, and with input that is wrong."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from stated_losses import accounts_of, asked_facts

import merkhet
from merkhet.core.errors import InputError
from merkhet.core.files import file_digest
from merkhet.engine.planning import make_standard_plan
from merkhet.engine.resolve_study import Request, resolve_study
from merkhet.knowledge.store import KnowledgeBase
from merkhet.questions.english import FORMS, capitalize
from merkhet.questions.question_files import QuestionSet, read_questions
from merkhet.questions.splits import check_splits
from merkhet.suites import SUITES
from merkhet.suites.kmir.suite import PACKS

AXIOMS = {"SymmetricOP", "TransitiveOP", "EquivalentOP", "InverseOP", "Sub-relation", "SubOP(OPChain)", "comparison"}
COUNTRIES = ["countries", "medicine"]
TASKS = {"completion", "distinction", "checking", "reasoning"}


@pytest.fixture(scope="module")
def packs(made_once: Any) -> tuple[Path, QuestionSet]:
    """Questions of all packs."""
    folder = made_once("kmir-questions", lambda folder: merkhet.build("kmir", out=folder / "made")) / "made"
    return folder, read_questions(folder)


def check_a_benchmark(folder: Path, questions: QuestionSet) -> list[dict[str, Any]]:
    """Check what holds of any benchmark, and return its questions."""
    rows = questions.questions.to_pylist()
    assert {row["task"] for row in rows} == TASKS
    assert {row["split"] for row in rows} == {"train", "dev", "test"}
    check_splits(questions.questions, questions.facts)
    card = json.loads((folder / "card.json").read_text())
    assert sum(card["by_task"].values()) == card["questions"] == len(rows)
    filters = {"sensitive", "length", "self-answering", "duplicates"}
    assert {count["filter"] for count in card["filters"]} >= filters
    assert all(count["after"] <= count["before"] for count in card["filters"])
    assert "## Filters" in (folder / "CARD.md").read_text()
    truth = Counter(row["target"].lower() for row in rows if row["task"] == "checking")
    assert truth["yes"] == truth["no"] > len(rows) / 25
    return rows


def other_spellings(names: list[dict[str, Any]], fact: dict[str, Any], row: dict[str, Any]) -> list[str]:
    """The aliases of the entity of a fact that is asked for: its label, in some form, is the target."""
    for entity in (fact["object"], fact["subject"]):
        for name in names:
            forms = [form(name["label"]) for form in FORMS.values()] if name["entity"] == entity else []
            if row["target"] in (*forms, *map(capitalize, forms)):
                return list(name["aliases"] or ())
    return []


def check_first_aliases(folder: Path, questions: QuestionSet, packs: list[str], tmp_path: Path) -> None:
    """Predict the pack's first alias wherever the answer has one: all are right, and none is a candidate."""
    with KnowledgeBase.load(packs) as knowledge:
        by_entity: dict[str, list[dict[str, Any]]] = {}
        for name in knowledge.names().to_pylist():
            by_entity.setdefault(name["entity"], []).append(name)
    facts = {row["fact_id"]: row for row in questions.facts.to_pylist()}
    sets = questions.candidate_sets()
    aliased = 0
    with open(tmp_path / "aliases.csv", "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "ret"])
        for row in questions.questions.to_pylist():
            ends = [facts[row["facts"][0]][end] for end in ("subject", "object")] if row["facts"] else []
            names = [name for end in ends for name in by_entity.get(end, []) if name["language"] == "en"]
            fact = dict(zip(("subject", "object"), ends, strict=True))
            is_asked = row["task"] == "completion" or (row["task"] == "reasoning" and row["rule"] != "comparison")
            aliases = other_spellings(names, fact, row) if is_asked else []
            offered = {text.lower() for text in row["choices"] or sets[row["candidate_set"]]} - {row["target"].lower()}
            assert not offered & {form(alias).lower() for alias in aliases for form in FORMS.values()}, row
            writer.writerow([row["question_id"], json.dumps([aliases[0] if aliases else row["target"]])])
            aliased += bool(aliases)
    assert aliased > questions.questions.num_rows / 20
    settings = ["probes=[write]", "metrics=[f1, exact]", "options.split=null", "report=none", "limit=null"]
    model = str(tmp_path / "aliases.csv")
    run = merkhet.run("kmir", data=folder, models=[model], settings=settings, out=tmp_path / "run")
    whole = [row for row in run.scores.to_pylist() if not (row.get("relation") or row.get("domain") or row.get("rule"))]
    assert {row["task"] for row in whole} == TASKS
    assert all(row["value"] >= 0.99 for row in whole), whole


def test_first_aliases_of_a_pack_are_right(made_once: Any, tmp_path: Path) -> None:
    folder = made_once("kmir-countries", lambda folder: merkhet.build("kmir", out=folder / "made", knowledge=COUNTRIES))
    check_first_aliases(folder / "made", read_questions(folder / "made"), COUNTRIES, tmp_path)


@pytest.mark.slow
def test_first_aliases_of_all_packs_are_right(packs: tuple[Path, QuestionSet], tmp_path: Path) -> None:
    check_first_aliases(*packs, PACKS, tmp_path)


def test_a_pack_gives_a_benchmark(kmir_few: Path) -> None:
    rows = check_a_benchmark(kmir_few, read_questions(kmir_few))
    for task, account in accounts_of(read_questions(kmir_few)).items():
        assert account.askable == len(asked_facts(read_questions(kmir_few), task)), task
    assert len(rows) > 500 and {row["rule"] for row in rows if row["rule"]} <= AXIOMS


@pytest.mark.slow
def test_the_packs_give_a_whole_benchmark(packs: tuple[Path, QuestionSet]) -> None:
    rows = check_a_benchmark(*packs)
    assert len(rows) >= 10_000
    assert {task: account.askable for task, account in accounts_of(packs[1]).items()} == {
        task: len(asked_facts(packs[1], task)) for task in TASKS
    }
    domains = Counter(row["domain"] for row in rows)
    assert len(domains) >= 6 and {"physics", "chemistry", "biology", "history", "commonsense"} <= set(domains)
    assert {row["rule"] for row in rows if row["rule"]} == AXIOMS
    assert sum(row["task"] == "checking" for row in rows) > 2000
    distinctions = [row for row in rows if row["task"] == "distinction"]
    places = Counter(row["choices"].index(row["target"]) for row in distinctions)
    assert max(places.values()) - min(places.values()) < 0.2 * max(places.values())


@pytest.mark.slow
def test_what_was_built_twice_is_the_same(kmir_few: Path, tmp_path: Path) -> None:
    merkhet.build("kmir", out=tmp_path / "again", knowledge=["medicine"])
    for name in ("questions", "candidates", "entities"):
        assert file_digest(tmp_path / "again" / f"{name}.parquet") == file_digest(kmir_few / f"{name}.parquet")


def test_a_limit_takes_whole_q_sets(tmp_path: Path) -> None:
    given = {"knowledge": ["elements"], "tasks": ["completion"]}
    some = merkhet.build("kmir", out=tmp_path / "some", limit=60, **given).questions.to_pylist()
    sets = Counter(row["qset"] for row in some)
    every = Counter(merkhet.build("kmir", out=tmp_path / "all", **given).questions["qset"].to_pylist())
    assert len(sets) == 60 and all(every[qset] == count for qset, count in sets.items())
    assert sum(count > 1 for count in sets.values()) > len(sets) / 2


def test_a_domain_without_facts_is_named_and_has_a_dash(kmir_few: Path, tmp_path: Path) -> None:
    run = merkhet.run("kmir", data=kmir_few, models=["random"], limit=20, out=tmp_path / "run")
    about = run.questions.about
    assert {"physics", "law", "music"} <= set(about["empty_domains"])
    assert "medicine" not in about["empty_domains"]
    [domains] = [one for one in run.analyses if one["name"] == "domains"]
    assert "music" in json.dumps(domains)
    page = run.report.read_text(encoding="utf-8")
    assert "music" in page and "–" in page


def test_a_run_asks_the_test_split_and_baselines_once(kmir_few: Path, tmp_path: Path) -> None:
    given = {"models": ["random", "frequency"], "limit": 30, "settings": ["report=none"]}
    run = merkhet.run("kmir", data=kmir_few, out=tmp_path / "run", **given)
    assert set(run.questions.questions["split"].to_pylist()) == {"test"}
    lines = {(row["model"], row["probe"]) for row in run.scores.to_pylist()}
    assert lines == {("random", "rank"), ("frequency", "rank")}
    assert {one["name"] for one in run.analyses} >= {"consistency", "domains", "distribution"}


def test_another_split_may_be_asked_and_one_that_is_not_there_is_refused(kmir_few: Path, tmp_path: Path) -> None:
    settings = ["options.split=dev", "report=none"]
    run = merkhet.run("kmir", data=kmir_few, models=["random"], limit=5, settings=settings, out=tmp_path / "dev")
    assert set(run.questions.questions["split"].to_pylist()) == {"dev"}
    with pytest.raises(
        InputError, match=r"no questions of the split 'final' \(options.split\), only of dev, test, train"
    ):
        merkhet.run("kmir", data=kmir_few, models=["random"], settings=["options.split=final"], out=tmp_path / "final")


def test_models_learn_each_task_by_itself_and_are_asked_again(
    kmir_few: Path, writer_folders: dict[str, Path], tmp_path: Path
) -> None:
    folder = writer_folders["bert"]
    settings = ["learning.limit=12", "learning.settings.epochs=1", "probes=[write]", "report=none"]
    run = merkhet.run(
        "kmir",
        data=kmir_few,
        models=[str(folder), "random"],
        tasks=["completion", "checking"],
        limit=6,
        settings=settings,
        out=tmp_path / "run",
    )
    scores = run.scores.to_pylist()
    tuned = {(row["model"], row["task"]) for row in scores if row["model"].endswith(", tuned")}
    assert tuned == {(f"{folder.name}, tuned", "completion"), (f"{folder.name}, tuned", "checking")}
    assert {row["model"] for row in scores} == {folder.name, f"{folder.name}, tuned", "random"}
    training = read_questions(tmp_path / "run" / "training.parquet").questions
    assert set(training["split"].to_pylist()) == {"train", "dev"}
    asked = {fact for facts in run.questions.questions["facts"].to_pylist() for fact in facts}
    assert not asked & {fact for facts in training["facts"].to_pylist() for fact in facts}


def test_learning_from_splits_that_leak_is_refused(writer_folders: dict[str, Path], tmp_path: Path) -> None:
    rows = [
        {"prompt": "The capital of France is [MASK].", "answers": ["Paris"], "split": "train", "facts": ["f_1"]},
        {"prompt": "Paris is the capital of [MASK].", "answers": ["France"], "split": "test", "facts": ["f_1"]},
        {"prompt": "The capital of Chad is [MASK].", "answers": ["N'Djamena"], "split": "dev", "facts": ["f_2"]},
    ]
    file = tmp_path / "questions.jsonl"
    file.write_text("".join(json.dumps({**row, "choices": [row["answers"][0], "Rome"]}) + "\n" for row in rows))
    asked: dict[str, Any] = {"data": file, "models": [str(writer_folders["bert"])], "tasks": ["completion"]}
    settings = ["learning.settings.epochs=1", "probes=[write]", "report=none"]
    with pytest.raises(InputError, match="Paris is the capital") as error:
        merkhet.run("kmir", **asked, settings=settings, out=tmp_path / "run")
    assert "train" in str(error.value) and "test" in str(error.value)
    run = merkhet.run("kmir", **asked, settings=[*settings, "options.leaks=true"], out=tmp_path / "run")
    assert run.questions.questions.num_rows == 1


def test_a_plan_with_learning_reads_what_an_earlier_step_has_written() -> None:
    resolved = resolve_study(Request("kmir", models=["minilm-mlm", "random"], settings=["learning=cloze"]), SUITES)
    written: set[str] = set()
    kinds = Counter()
    for step in make_standard_plan(resolved, "test").steps:
        assert set(step.inputs) <= written
        written |= set(step.outputs)
        kinds[step.kind] += 1
    assert kinds["learn"] == 4
    # The model and its four trainings are asked by two probes, also with the subject hidden, and have one association.
    assert kinds["ask"] == 2 * (2 + 4 * 2) + (1 + 4) + 1


def test_own_facts_need_own_words(tmp_path: Path) -> None:
    rivers = {
        "Rhine": "North Sea",
        "Elbe": "North Sea",
        "Weser": "North Sea",
        "Danube": "Black Sea",
        "Don": "Sea of Azov",
    }
    rows = [f"{river},flows into,{sea}" for river, sea in rivers.items()]
    (tmp_path / "rivers.csv").write_text("\n".join(["subject,predicate,object", *rows]) + "\n")
    schema = {
        "relations": {"flow": {"predicate": "flows into", "templates": ["The {subject} flows into the {object}."]}},
        "hierarchies": {"sea": {"predicate": "flows into", "aspect": "sea"}},
        "frames": {"distinction": ["Of {members}, [MASK] is the outlier by {aspect}."]},
    }
    (tmp_path / "schema.yaml").write_text(json.dumps(schema))
    knowledge = [str(tmp_path / "rivers.csv")]
    with pytest.raises(InputError, match=r"the predicate 'flows into' has no templates.*options\.schema"):
        merkhet.build("kmir", out=tmp_path / "none", knowledge=knowledge)
    settings = [f"options.schema={tmp_path / 'schema.yaml'}", "options.splits={test: 1.0}"]
    made = merkhet.build("kmir", out=tmp_path / "some", knowledge=knowledge, settings=settings)
    rows_made = made.questions.to_pylist()
    assert made.facts.num_rows == len(rivers)
    assert {row["target"]: row["answers"] for row in rows_made if row["task"] == "completion"} == {
        sea: [sea] for sea in rivers.values()
    }
    [odd] = [row for row in rows_made if row["task"] == "distinction"]
    assert {"Rhine", "Elbe", "Weser"} < set(odd["choices"]) and rivers[odd["target"]] != "North Sea"


def test_wrong_options_are_refused_in_one_line(tmp_path: Path) -> None:
    for setting, words in (
        ("options.checks=0", "options.checks must be an integer ≥ 1, got 0 (suite kmir)"),
        ("options.paraphrases=many", "options.paraphrases must be an integer ≥ 1 or null, got 'many'"),
        (
            "options.splits={train: 0.5, test: 0.2}",
            "the shares of splits must be above 0 and add up to 1, got train 0.5, test 0.2",
        ),
        ("options.splits=half", "options.splits must be a mapping of names to numbers, got 'half'"),
        ("options.schema=absent.yaml", "there is no file"),
        ("options.rules=absent.yaml", "there is no file"),
        ("options.chekcs=3", "kmir has no option 'chekcs'; did you mean 'checks'?"),
        ("learning=kloze", "there is no learner called 'kloze'"),
    ):
        with pytest.raises(InputError) as error:
            merkhet.build("kmir", out=tmp_path / "out", knowledge=["elements"], settings=[setting])
        assert words in str(error.value) and "\n" not in str(error.value)
        assert not (tmp_path / "out").exists()


def test_reasoning_is_asked_with_closed_or_open_book_or_both(tmp_path: Path) -> None:
    given: dict[str, Any] = {"knowledge": ["countries"], "tasks": ["reasoning"]}
    made = {
        books: merkhet.build("kmir", out=tmp_path / books, settings=[f"options.books=[{books}]"], **given)
        for books in ("closed", "open", "closed, open")
    }
    counts = {books: Counter(one.questions["task"].to_pylist()) for books, one in made.items()}
    assert counts["closed"].keys() == {"reasoning"} and counts["open"].keys() == {"open-book"}
    assert counts["closed, open"] == counts["closed"] + counts["open"]
    named = merkhet.build("kmir", out=tmp_path / "named", knowledge=["countries"], tasks=["open-book"])
    assert named.questions.equals(made["open"].questions)
    for one in made.values():
        check_splits(one.questions, one.facts, premises=True)
        rules = {row["question_id"] for row in one.questions.to_pylist() if row["rule"]}
        assert rules == set(one.premises["question_id"].to_pylist())
    assert "whose premises are in several splits" in (tmp_path / "closed" / "CARD.md").read_text()


def test_a_limited_run_asks_for_the_premises_of_its_conclusions_if_told(tmp_path: Path) -> None:
    merkhet.build("kmir", out=tmp_path / "made", knowledge=["countries"], settings=["options.books=[closed,open]"])

    def asked(*settings: str) -> Any:
        tasks = ["completion", "reasoning", "open-book"]
        given: dict[str, Any] = {"data": tmp_path / "made", "models": ["random"], "tasks": tasks, "limit": 12}
        return merkhet.run("kmir", **given, settings=[*settings], out=tmp_path / f"run{len(settings)}")

    plain, more = asked(), asked("options.premise_questions=true")
    facts = {row["facts"][0] for row in more.questions.questions.to_pylist() if row["task"] == "completion"}
    rows = plain.questions.questions.to_pylist()
    assert {row["question_id"] for row in rows} < set(more.questions.questions["question_id"].to_pylist())
    drawn = {row["question_id"] for row in rows if row["rule"]}
    below = {row["fact_id"] for row in more.questions.premises.to_pylist() if row["question_id"] in drawn}
    assert below & facts and len(below & facts) > 0.4 * len(below)
    assert {row["task"] for row in more.scores.to_pylist()} == {"completion", "reasoning", "open-book"}
    page = more.report.read_text(encoding="utf-8")
    assert "Follows from:" in page and "closed book and open book" in page
