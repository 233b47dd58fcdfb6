"""Studies in which models memorize: what is stored and asked, what a run leaves, and that it goes on after a kill."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml
from killed_runs import run_killed

import merkhet
from merkhet.core.errors import InputError
from merkhet.core.recall_schemas import STATEMENTS
from merkhet.core.schemas import ANSWERS, read_table
from merkhet.engine.combine_runs import combine_runs
from merkhet.engine.executor import execute
from merkhet.engine.plan import NOTHING, Nothing, Plan, Step, StepContext
from merkhet.engine.run_folder import open_run
from merkhet.questions.statements import statement_question_ids
from merkhet.suites.lama_tk.memory_sets import COUNTED, Design, make_design, remaining_conditions, set_file
from merkhet.suites.lama_tk.options import LamaTkOptions

SETTINGS = {"epochs": 4, "batch_size": 32, "learning_rate": 0.003, "evaluate_every": 2, "vocabulary": 400}


def study(folder: Path, settings: dict | None = None, report: str = "none", **options: object) -> Path:
    """A study file of a very small model on the embedded pack."""
    content = {
        "suite": "lama-tk",
        "models": [{"model": "random:1x32", "label": "small"}],
        "learning": {"learner": "memorize", "settings": {**SETTINGS, **(settings or {})}},
        "options": {"experiment": "storage", "sizes": [40], "conflict": ["with"], **options},
        "report": report,
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "study.yaml").write_text(yaml.safe_dump(content))
    return folder / "study.yaml"


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> merkhet.Run:
    """A finished run of two sizes, with and without conflict."""
    folder = tmp_path_factory.mktemp("storage")
    file = study(folder, report="html", sizes=[40, 200], conflict=["with", "without"])
    return merkhet.run(str(file), out=folder / "run")


def first_right(answers: list[dict]) -> np.ndarray:
    """Whether a right answer comes first, where no symbols are tied."""
    assert all(tie == 1 for row in answers for tie in row["gold_ties"])
    return np.array([min(row["gold_ranks"]) == 1.0 for row in answers])


def overall(run: merkhet.Run) -> dict[tuple[str, str, str], dict]:
    """The scores over all statements of a task."""
    groups = ("mask", "relation", "conflict", "cardinality", "template")
    rows = [row for row in run.scores.to_pylist() if not any(row[group] for group in groups)]
    return {(row["model"], row["task"], row["metric"]): row for row in rows}


def test_a_storage_run_scores_everything_that_was_asked(stored: merkhet.Run) -> None:
    scores = overall(stored)
    names = ["40 facts", "200 facts", "200 facts without conflict"]  # 40 facts have nothing in conflict.
    assert {model for model, _, _ in scores} == {f"{who}, {name}" for who in ("small", "frequency") for name in names}
    assert {task for _, task, _ in scores} == {"statement", "unseen"}
    statements = read_table(STATEMENTS, stored.folder / set_file("200-facts"))
    asked = set(statement_question_ids(statements).to_pylist())
    answers = [row for row in stored.answers.to_pylist() if row["model"] == "small, 200 facts"]
    answers = [row for row in answers if row["question_id"] in asked]
    assert len(answers) == len(asked) == statements.num_rows
    row = scores["small, 200 facts", "statement", "acc@1"]
    assert row["n"] == statements.num_rows > 600
    assert row["value"] == pytest.approx(first_right(answers).mean())
    assert row["low"] <= row["value"] <= row["high"] and row["chance"] < 0.01
    assert json.loads((stored.folder / "scores.json").read_text())[0]["model"] == "small, 40 facts"


def test_unseen_facts_are_not_stored_and_read_like_nothing_stored(stored: merkhet.Run) -> None:
    known = read_table(STATEMENTS, stored.folder / set_file("40-facts"))
    unseen = read_table(STATEMENTS, stored.folder / set_file("40-facts-unseen"))
    assert set(unseen["task"].to_pylist()) == {"unseen"}
    assert not set(known["fact_id"].to_pylist()) & set(unseen["fact_id"].to_pylist())
    assert not set(known["prompt"].to_pylist()) & set(unseen["prompt"].to_pylist())
    assert len(set(unseen["fact_id"].to_pylist())) == 40


def test_smaller_sets_are_within_larger_ones(stored: merkhet.Run) -> None:
    small, large = (read_table(STATEMENTS, stored.folder / set_file(name)) for name in ("40-facts", "200-facts"))
    assert set(small["fact_id"].to_pylist()) < set(large["fact_id"].to_pylist())
    alone = read_table(STATEMENTS, stored.folder / set_file("200-facts-without-conflict"))
    assert not any(alone["conflict"].to_pylist())
    assert set(alone["statement_id"].to_pylist()) < set(large["statement_id"].to_pylist())


def test_questions_and_answers_are_all_that_was_asked_with_names(stored: merkhet.Run) -> None:
    asked = {
        (row["task"], row["statement_id"])
        for file in (stored.folder / ".merkhet" / "sets").glob("*.parquet")
        if file.stem != COUNTED
        for row in read_table(STATEMENTS, file).to_pylist()
    }
    assert stored.record["questions"]["count"] == len(asked) and "sampled" not in stored.record
    names = dict(
        zip(
            *(pq.read_table(stored.folder / "symbols.parquet")[key].to_pylist() for key in ("symbol", "name")),
            strict=True,
        )
    )
    by_id = {row["question_id"]: row for row in stored.questions.questions.to_pylist()}
    counts: dict[tuple[str, str], int] = {}
    for answer in stored.answers.to_pylist():
        question = by_id[answer["question_id"]]
        counts[answer["model"], question["task"]] = counts.get((answer["model"], question["task"]), 0) + 1
        assert question["target"] in question["answers"] and question["target"] in answer["golds"]
        assert answer["among"] == len(names) and len(answer["ranked"]) == 10
        assert {entry["candidate"] for entry in answer["ranked"]} <= set(names.values())
        first = answer["ranked"][0]["candidate"] in question["answers"]
        assert first == (min(answer["gold_ranks"]) < 2) or answer["model"].startswith("frequency")
    sets = {name: read_table(STATEMENTS, stored.folder / set_file(name)).num_rows for name in ("40-facts", "200-facts")}
    for who in ("small", "frequency"):
        assert counts[f"{who}, 200 facts", "statement"] == sets["200-facts"]
        assert counts[f"{who}, 40 facts", "statement"] == sets["40-facts"]
    assert "⟦" not in "".join(row["prompt"] for row in by_id.values())


def test_the_baseline_counts_only_facts_that_no_statement_asks_about(stored: merkhet.Run) -> None:
    counted = read_table(STATEMENTS, stored.folder / set_file(COUNTED))
    asked = {fact for facts in stored.questions.questions["facts"].to_pylist() for fact in facts}
    known = {row["fact_id"]: frozenset((row["subject"], row["object"])) for row in stored.questions.facts.to_pylist()}
    other = set(counted["fact_id"].to_pylist())
    assert other and not other & asked
    assert not {known[fact] for fact in other} & {known[fact] for fact in asked}


def test_without_other_facts_there_is_no_baseline(tmp_path: Path) -> None:
    done = merkhet.run(str(study(tmp_path, {"epochs": 1}, report="html", sizes=["all"])), out=tmp_path / "run")
    assert not any("frequency" in model for model, _, _ in overall(done))
    [told] = [sentence for sentence in done.findings["sentences"] if "left out" in sentence]
    assert told.startswith("The baseline frequency is left out: it counts answers in facts that no statement asks")
    columns = [column for found in done.analyses for table in found["tables"] for column in table["columns"]]
    assert columns and not any("frequency" in str(column) for column in columns)


def test_the_report_counts_what_was_asked(stored: merkhet.Run) -> None:
    page = (stored.folder / "report.html").read_text()
    count = f"{stored.record['questions']['count']:,}"
    assert f"<b>{count}</b><span>questions</span>" in page
    assert len(page) < 3_000_000
    assert "Storage capacity" in page and "small, 200 facts without conflict" in page
    for number, what in ((1, "model"), (3, "conditions"), (1, "baseline")):
        assert f"<b>{number}</b><span>{what}</span>" in page
    assert str(stored.folder) not in page


def test_comparisons_are_over_all_shared_statements(stored: merkhet.Run) -> None:
    found = {(one["task"], *sorted((one["model"], one["other"]))): one for one in stored.findings["comparisons"]}
    sizes = found["statement", "small, 200 facts", "small, 40 facts"]
    assert sizes["n"] == pq.read_metadata(stored.folder / set_file("40-facts")).num_rows
    kinds = found["statement", "small, 200 facts", "small, 200 facts without conflict"]
    assert kinds["n"] == pq.read_metadata(stored.folder / set_file("200-facts-without-conflict")).num_rows
    assert not any("frequency" in name for _, *names in found for name in names)
    combined = combine_runs([open_run(stored.folder)])
    assert combined.findings["comparisons"] == stored.findings["comparisons"]
    assert [one["name"] for one in combined.analyses] == [one["name"] for one in stored.analyses]


@pytest.mark.slow
def test_runs_that_memorize_can_be_compared(stored: merkhet.Run, tmp_path: Path) -> None:
    other = merkhet.run(str(study(tmp_path, {"epochs": 1}, sizes=[40])), out=tmp_path / "other")
    combined = combine_runs([open_run(stored.folder), other])
    names = {"small, 40 facts (run)", "small, 40 facts (other)"}
    assert [one for one in combined.findings["comparisons"] if {one["model"], one["other"]} == names]
    asked = stored.answers.num_rows + other.answers.num_rows
    assert combined.answers.num_rows == asked


def test_what_has_not_changed_is_reused(tmp_path: Path) -> None:
    def begun() -> list[str]:
        log = (tmp_path / "run" / "log.txt").read_text()
        return [
            line.split("merkhet.engine: ")[1].removesuffix(": begins") for line in log.splitlines() if "begins" in line
        ]

    done = merkhet.run(str(study(tmp_path)), out=tmp_path / "run")
    first = begun()
    assert [step for step in first if step.startswith("memorize")] == ["memorize small, 40 facts"]
    before = (done.folder / "scores.json").read_bytes()
    merkhet.run(str(study(tmp_path)), out=tmp_path / "run")
    assert begun() == first and (done.folder / "scores.json").read_bytes() == before
    merkhet.run(str(study(tmp_path, sizes=[40, 60])), out=tmp_path / "run")
    more = begun()[len(first) :]
    assert [step for step in more if step.startswith("memorize")] == ["memorize small, 60 facts"]
    merkhet.run(str(study(tmp_path, {"epochs": 2})), out=tmp_path / "run")
    again = merkhet.open_run(tmp_path / "run")
    assert set(again.answers["model"].to_pylist()) == {"small, 40 facts", "frequency"}
    assert "memorize small, 40 facts" in begun()[len(first) + len(more) :]


def test_boundary_asks_starts_and_ends_in_other_words(tmp_path: Path) -> None:
    options = {"experiment": "boundary", "facts": 40, "dynamic": [0, 100]}
    done = merkhet.run(str(study(tmp_path, {"epochs": 2}, **options)), out=tmp_path / "run")
    scores = overall(done)
    assert {model for model, _, _ in scores} == {"small, times left out 0%", "small, times left out 100%", "frequency"}
    assert {task for _, task, _ in scores} == {"statement", "boundary"}
    known = read_table(STATEMENTS, done.folder / set_file("stored"))
    assert set(known["mask"].to_pylist()) == {"start", "end"} and known["bare_prompt"].null_count == 0
    records = sorted(done.folder.glob(".merkhet/learned/*/learned.json"))
    assert sorted(json.loads(file.read_text())["settings"]["dynamic"] for file in records) == [0, 100]
    assert [one["name"] for one in done.analyses]


def test_implicit_asks_for_years_between_and_for_order(tmp_path: Path) -> None:
    options = {"experiment": "implicit", "facts": 60}
    done = merkhet.run(str(study(tmp_path, {"epochs": 2}, **options)), out=tmp_path / "run")
    scores = overall(done)
    assert {model for model, _, _ in scores} == {"small, stored", "frequency"}
    tasks = {task for _, task, _ in scores}
    assert tasks >= {"statement", "implicit"} and tasks <= {"statement", "implicit", "order"}
    asked = read_table(STATEMENTS, done.folder / set_file("implicit"))
    assert set(asked["template"].to_pylist()) == {"within", "paraphrase"}


def test_symbols_in_sentences_are_shown_by_name(tmp_path: Path) -> None:
    done = merkhet.run(str(study(tmp_path, {"epochs": 1}, entities="symbols")), out=tmp_path / "run")
    prompts = read_table(STATEMENTS, done.folder / set_file("40-facts"))["prompt"].to_pylist()
    assert all("⟦" in prompt for prompt in prompts)
    assert not any("⟦" in row["prompt"] for row in done.questions.questions.to_pylist())


@pytest.mark.slow
def test_killed_while_it_learns_it_goes_on(tmp_path: Path) -> None:
    """The process kills itself as soon as there is a checkpoint."""
    file = study(tmp_path, {"epochs": 8, "until": 0.0, "checkpoint_seconds": 0.0})
    expected = merkhet.run(str(file), out=tmp_path / "undisturbed")
    work = tmp_path / "run" / ".merkhet" / "work"
    killed = {"label": "small, 40 facts", "after": 1, "wait": "run/.merkhet/work/*/*/checkpoint.pt"}
    run_killed(str(file), killed, tmp_path, out=str(tmp_path / "run"))
    assert list(work.glob("*/*/checkpoint.pt"))
    done = merkhet.run(str(file), out=tmp_path / "run")
    assert "resuming after step" in (tmp_path / "run" / "log.txt").read_text()
    assert (done.folder / "scores.json").read_bytes() == (expected.folder / "scores.json").read_bytes()
    assert not list((tmp_path / "run").rglob("*.tmp")) and not list(work.glob("*"))


def test_a_masked_model_goes_on_from_its_weights(model_folders: dict[str, Path], tmp_path: Path) -> None:
    file = study(tmp_path, {"epochs": 1})
    content = yaml.safe_load(file.read_text())
    content["models"] = [{"model": str(model_folders["roberta"]), "label": "tiny"}]
    file.write_text(yaml.safe_dump(content))
    done = merkhet.run(str(file), out=tmp_path / "run")
    assert ("tiny, 40 facts", "statement", "acc@1") in overall(done)
    assert str(model_folders["roberta"].parent) not in (done.folder / "run.json").read_text()


ABOUT = {
    "facts": 100,
    "controlled": 30,
    "relations": {
        "award": {"intervals": 0, "points": 60},
        "office": {"intervals": 25, "points": 0},
        "team": {"intervals": 10, "points": 5},
    },
}
OPTIONS = LamaTkOptions(sizes=(None,), conflict=("with",), dynamic=(0,))


def designed(experiment: str, **options: object) -> Design:
    return make_design(OPTIONS.model_copy(update={"experiment": experiment, **options}), ABOUT)


def test_sizes_that_become_the_same_are_stored_once() -> None:
    made = designed("storage", sizes=(50, 500, None), static=True)
    labels = [one.label for one in made.conditions]
    assert labels == ["50 facts", "50 facts, static", "100 facts", "100 facts, static"]
    assert made.remarks == ("There are 100 facts, so that 500 cannot be stored: all are.",)
    asked = {one.label: one.asked for one in made.conditions}
    assert asked["50 facts"] == ("50-facts", "50-facts-unseen") and asked["100 facts"] == ("100-facts",)
    assert made.recipes["50-facts-unseen"].unseen_facts == 50


def test_without_conflict_is_left_out_where_there_is_none() -> None:
    made = designed("storage", sizes=(50,), conflict=("with", "without"))
    sizes = dict.fromkeys(made.recipes, 200)
    assert [one.label for one in remaining_conditions(made, sizes)] == ["50 facts"]
    sizes["50-facts-without-conflict"] = 180
    assert [one.label for one in remaining_conditions(made, sizes)] == ["50 facts", "50 facts without conflict"]
    alone = designed("storage", sizes=(50,), conflict=("without",))
    assert [one.label for one in remaining_conditions(alone, dict.fromkeys(alone.recipes, 200))] == [
        "50 facts without conflict"
    ]
    nothing = {**dict.fromkeys(alone.recipes, 200), "50-facts-without-conflict-unseen": 0}
    assert remaining_conditions(alone, nothing)[0].asked == ("50-facts-without-conflict",)


def test_boundaries_are_of_a_relation_that_lasts() -> None:
    assert designed("boundary").conditions[0].attributes == {"facts": 25, "dynamic": 0, "relation": "office"}
    assert designed("boundary", relation="team", facts=4).recipes["stored"].facts == 4
    assert "so that 40 cannot be stored" in designed("boundary", facts=40).remarks[0]
    with pytest.raises(InputError, match=r"no fact has the relation 'ofice' .*did you mean 'office'"):
        designed("boundary", relation="ofice")
    with pytest.raises(InputError, match=r"facts of 'award' .* are points in time"):
        designed("boundary", relation="award")
    with pytest.raises(InputError, match="no fact has a start and an end"):
        make_design(
            OPTIONS.model_copy(update={"experiment": "boundary"}),
            {**ABOUT, "relations": {"award": {"intervals": 0, "points": 60}}},
        )


def test_a_plan_may_hang_on_what_its_first_steps_found(tmp_path: Path) -> None:
    first = Step("first", "build", write, Text("two"), NOTHING, (), ("a.txt",))

    def rest(folder: Path) -> Plan:
        text = Text((folder / "a.txt").read_text())
        return Plan((Step("second", "build", write, text, NOTHING, ("a.txt",), ("b.txt",)),))

    progress = merkhet.core.progress.SilentProgress()
    assert execute(Plan((first,), rest), tmp_path / "run", tmp_path, progress).done == ("first", "second")
    assert (tmp_path / "run" / "b.txt").read_text() == "two"
    assert execute(Plan((first,), rest), tmp_path / "run", tmp_path, progress).reused == ("first", "second")


@dataclass(frozen=True)
class Text:
    text: str


def write(context: StepContext[Text, Nothing]) -> None:
    """The function of the steps above."""
    (context.folder / context.step.outputs[0]).write_text(context.params.text)


@pytest.mark.slow
def test_several_trainings_have_seeds_of_their_own_and_are_told_together(tmp_path: Path) -> None:
    run = merkhet.run(str(study(tmp_path, trainings=3)), out=tmp_path / "run")
    once = merkhet.run(str(study(tmp_path / "one")), out=tmp_path / "one" / "run")
    assert run.scores.equals(once.scores)  # Scores are of the first training, which has the study's seed.
    (found,) = [one for one in run.analyses if one["name"] == "trainings"]
    rows = {(row[1], row[2]): row for row in found["tables"][0]["rows"]}
    files = sorted((run.folder / ".merkhet" / "answers").glob("00-small-40-facts*.parquet"))
    assert len(files) == 3
    tables = [
        [row for row in read_table(ANSWERS, file).to_pylist() if "-statement~" in row["question_id"]] for file in files
    ]
    values = sorted(first_right(table).mean() for table in tables)
    row = rows["statement", "Acc@1"]
    assert row[3] == 3 and len(set(values)) > 1
    assert (row[6], row[7]) == pytest.approx((values[0], values[-1]))
    assert row[4]["value"] == pytest.approx(sum(values) / 3)
    assert not any("was trained once" in sentence for sentence in run.findings["sentences"])
    assert any("was trained 3 times" in sentence for sentence in run.findings["sentences"])
    assert any("was trained once" in sentence for sentence in once.findings["sentences"])
    assert "trainings" not in {one["name"] for one in once.analyses}


def test_a_wrong_number_of_trainings_is_refused(tmp_path: Path) -> None:
    for wrong in (0, "three", 1.5, True):
        with pytest.raises(InputError, match=f"options.trainings must be an integer from 1 to 100, got {wrong!r}"):
            merkhet.run(str(study(tmp_path, trainings=wrong)), out=tmp_path / "run")
