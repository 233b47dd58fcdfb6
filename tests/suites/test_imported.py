"""Questions that were made elsewhere: each suite asks them, and nothing describes them as the suite's own."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

import pytest
from small_packs import small_pack

import merkhet
from merkhet.cli.run_output import print_run
from merkhet.engine.question_origin import find_origin
from merkhet.engine.resolve_study import Request, resolve_study
from merkhet.engine.run_folder import Run, open_run
from merkhet.engine.study import make_study
from merkhet.suites import SUITES

SEAS = ["North Sea", "Black Sea", "Baltic Sea", "Adriatic Sea"]
STREAMS = ["Rhine", "Danube", "Elbe"]
QUESTIONS = [
    *(("mouths", f"The {river} flows into the [MASK].", sea, SEAS) for river, sea in zip(STREAMS, SEAS, strict=False)),
    *(
        ("cities", f"{city} lies on the [MASK].", river, STREAMS)
        for city, river in (("Cologne", "Rhine"), ("Vienna", "Danube"), ("Dresden", "Elbe"), ("Budapest", "Danube"))
    ),
]


def write_rivers(folder: Path, name: str = "my_rivers.jsonl", **columns: Any) -> Path:
    folder.mkdir(exist_ok=True)
    rows = [
        {"task": task, "prompt": prompt, "answers": [answer], "choices": choices, **columns}
        for task, prompt, answer, choices in QUESTIONS
    ]
    (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder / name


def run(suite: str, out: Path, *settings: str, data: Path | None = None, report: bool = False, **given: Any) -> Run:
    report_setting = [] if report else ["report=none"]
    return merkhet.run(suite, data=data, models=["random"], out=out, settings=[*settings, *report_setting], **given)


def page_text(page: Path) -> str:
    """The text of a report on one line, without figures, styles and scripts."""
    content = re.sub(r"(?s)<(style|script|svg)\b.*?</\1>", "", page.read_text())
    return " ".join(html.unescape(re.sub(r"<[^>]+>", "", content)).split())


def sentences_of(suite: Any) -> list[str]:
    texts = (suite.title, suite.about, suite.methods, suite.published_methods.replace("{methods}", ""))
    parts = [part.strip() for text in texts for part in re.split(r"(?<=[.;])\s", text)]
    return [part.replace("’", "'") for part in parts if len(part) > 20]


@pytest.fixture
def rivers(tmp_path: Path) -> Path:
    return write_rivers(tmp_path / "data")


def headline(run: Run) -> list[tuple[str, str]]:
    return [(entry["task"], entry["metric"]) for entry in run.record["card"]["headline"]]


def test_every_suite_asks_them_and_describes_them_as_what_they_are(
    rivers: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in SUITES:
        suite = SUITES.get(name)
        asked = run(name, tmp_path / name, data=rivers, report=True)
        assert asked.answers.num_rows == len(QUESTIONS), name
        assert [task for task, _ in headline(asked)] == ["mouths", "cities"], name
        print_run(asked, as_json=False)
        printed = capsys.readouterr().out
        assert "no scores yet" not in printed and re.search(r"mouths +\w+.* +cities ", " ".join(printed.split())), name
        page = page_text(asked.report)
        assert page.startswith("My rivers "), name
        assert "read from my_rivers.jsonl; merkhet did not make them." in page
        assert "Each of the 4 questions of cities shows 3 choices of its own, of which 1 is right." in page
        assert "No facts are named, so each question counts as its own fact" in page
        told = [page, printed, *((asked.folder / file).read_text() for file in ("run.json", "findings.json"))]
        told += [file.read_text() for file in asked.folder.glob("analyses.json")]
        for text in (" ".join(text.replace("’", "'").split()) for text in told):
            leaked = [sentence for sentence in sentences_of(suite) if sentence in text]
            assert not leaked, (name, leaked)
            entries = [citation.partition("\n")[0] for citation in suite.citations]
            assert not [entry for entry in entries if entry in text], name
        assert asked.study.knowledge == [], name


def test_titles_come_from_the_study_the_folder_or_the_file(tmp_path: Path) -> None:
    def title(data: Path, **study: Any) -> str:
        resolved = resolve_study(Request("quickstart", str(data), models=["random"], **study), SUITES)
        return resolved.study.title or resolved.origin.title

    file = write_rivers(tmp_path / "seas and-streams", "questions.jsonl")
    assert title(file) == "Questions" and title(file.parent) == "Seas and streams"
    assert title(file, settings=["title=Waters"]) == "Waters"
    (file.parent / "about.json").write_text(json.dumps({"title": "Rivers\nof Europe"}))
    assert title(file) == title(file.parent) == "Rivers of Europe"
    for broken in ({"origin": "kmir"}, {"origin": {"kind": "made"}}, {"title": ["x"]}):
        (file.parent / "about.json").write_text(json.dumps(broken))
        assert title(file.parent) == "Seas and streams", broken


def test_questions_made_here_keep_their_texts_wherever_they_are_asked(made_once: Any, tmp_path: Path) -> None:
    made = tmp_path / "made"
    merkhet.build("quickstart", knowledge=[str(small_pack(made_once))], limit=4, out=made)
    suite = SUITES.get("quickstart")
    for name in ("quickstart", "kmir"):
        asked = run(name, tmp_path / name, "options.split=null" if name == "kmir" else "seed=0", data=made, report=True)
        page = page_text(asked.report)
        assert page.startswith(suite.title) and suite.about in page, name
        assert suite.methods.replace("'", "’") in page.replace("'", "’"), name
        assert "did not make" not in page and "with the suite quickstart of merkhet" in page, name
    again = run("quickstart", tmp_path / "again", data=tmp_path / "kmir")
    assert again.record["card"]["origins"][0]["kind"] == "made"
    beside = write_rivers(made)
    foreign = run("quickstart", tmp_path / "foreign", data=beside)
    assert foreign.record["card"]["origins"][0]["kind"] == "imported", "the folder's record is not this file's"
    assert foreign.record["card"]["names"] == {} and set(foreign.questions.about) == {"origin"}


def test_a_card_says_who_made_the_questions(rivers: Path, tmp_path: Path) -> None:
    merkhet.build("kmir", data=rivers, out=tmp_path / "copy")
    card = (tmp_path / "copy" / "CARD.md").read_text()
    assert card.startswith(
        "# My rivers: data card\n\n7 questions, read from my_rivers.jsonl; merkhet did not make them."
    )
    assert "None" not in card
    asked = run("quickstart", tmp_path / "run", data=tmp_path / "copy")
    origin = asked.record["card"]["origins"][0]
    assert (origin["kind"], origin["source"]) == ("imported", "my_rivers.jsonl")


def test_published_files_are_named_and_cited(tmp_path: Path) -> None:
    files = {
        "kmir": "kmir_test_cloze.jsonl",
        "ontoprobe": "memorizing/type.jsonl",
        "chneval": "syntax/adverb.txt",
        "lama-tk": "positions.tsv",
    }
    for name, file in files.items():
        path = tmp_path / name / file
        path.parent.mkdir(parents=True)
        path.touch()
        suite = SUITES.get(name)
        study = make_study({"suite": name, "data": str(tmp_path / name)}, "study")
        origin = find_origin(suite, study, Path())
        assert (origin.kind, origin.source, origin.suite) == ("published", path.name, name)
        assert "published files" in origin.methods and "{" not in origin.methods
        assert origin.citations == suite.citations
    row = {"qid": 1, "query": "The capital of Spain is [MASK].", "answer": ["Madrid"], "relType": "Triple Completion"}
    (tmp_path / "kmir" / files["kmir"]).write_text(json.dumps(row))
    page = page_text(run("kmir", tmp_path / "run", data=tmp_path / "kmir", report=True).report)
    assert "The data were read from kmir_test_cloze.jsonl." in page and "(Gao et al., 2022)" in page
    assert "by paraphrased templates" not in page and "their splits are those of KMIR's published files" in page


def test_splits_apply_where_questions_name_them(tmp_path: Path) -> None:
    file = write_rivers(tmp_path / "data")
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    for number, line in enumerate(lines):
        line["split"] = "test" if number < 4 else "dev"
    split = tmp_path / "split.jsonl"
    split.write_text("".join(json.dumps(line) + "\n" for line in lines))
    for name in ("kmir", "ontoprobe"):
        assert run(name, tmp_path / f"{name}-all", data=file).answers.num_rows == 7, name
        assert run(name, tmp_path / f"{name}-test", data=split).answers.num_rows == 4, name
        with pytest.raises(merkhet.InputError, match="no questions of the split 'test'"):
            run(name, tmp_path / f"{name}-none", "options.split=test", data=file)


def test_facts_of_imported_questions_are_counted(tmp_path: Path) -> None:
    file = write_rivers(tmp_path / "data", facts=["a fact"], language="de", suite="elsewhere")
    page = page_text(run("quickstart", tmp_path / "run", data=file, report=True).report)
    assert "We asked 7 questions in German (mouths 3 and cities 4) about 1 fact with merkhet" in page
    assert "read from my_rivers.jsonl, which does not say how they were made." in page
    assert "treat questions about one fact as one observation; the questions name 1 fact." in page
    assert "were generated" not in page


def test_mixed_files_are_described_task_by_task(tmp_path: Path) -> None:
    rows = [
        {"task": "z", "prompt": "The capital of France is [MASK].", "answers": ["Paris"]},
        {"task": "z", "prompt": "A German city is [MASK].", "answers": ["Bonn", "Berlin"], "facts": ["a fact"]},
        {"task": "both", "prompt": "A [MASK].", "answers": ["a", "b"], "choices": ["a", "b", "c"]},
        {"task": "both", "prompt": "B [MASK].", "answers": ["b"]},
        {"task": "one", "prompt": "C [MASK].", "answers": ["c"], "choices": ["c", "d"]},
        {"task": "an", "prompt": "D [MASK].", "answers": ["c"], "choices": ["c", "d"]},
    ]
    (tmp_path / "mixed.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    asked = run("kmir", tmp_path / "run", data=tmp_path / "mixed.jsonl", report=True, limit=2)
    assert [task for task, _ in headline(asked)] == ["z", "both", "one", "an"], "in the order of the file"
    page = page_text(asked.report)
    assert "We asked 6 questions in English (z 2, both 2, one 1 and an 1) with merkhet" in page
    assert "The 2 questions of z share one list of 3 choices, of which 1 to 2 are right in each question." in page
    assert "have 2 to 3 choices, of which 1 to 2 are right: 1 question has choices of its own, the rest 1 list." in page
    assert "The question of one shows 2 choices of its own, of which 1 is right." in page
    assert "1 fact is named; 5 questions name none and count as facts of their own." in page


def test_named_tasks_and_merged_shards_keep_the_headline(rivers: Path, merkhet: Any, tmp_path: Path) -> None:
    given = ("run", "kmir", "--data", rivers, "--model", "random", "--quiet", "--set", "report=none")
    merkhet(*given, "--task", "cities", "--out", "cities", check=0)
    assert headline(open_run(tmp_path / "cities")) == [("cities", "accuracy")]
    for number in (1, 2):
        merkhet(*given, "--shard", f"{number}/2", "--out", f"shard{number}", check=0)
    merged = merkhet("merge", "shard1", "shard2", "--out", "merged", "--quiet", check=0)
    assert "mouths" in merged.stdout and "no scores yet" not in merged.stdout
    assert headline(open_run(tmp_path / "merged")) == [("mouths", "accuracy"), ("cities", "accuracy")]


def test_combined_runs_name_both_sources(made_once: Any, rivers: Path, merkhet: Any, tmp_path: Path) -> None:
    run("quickstart", tmp_path / "made", knowledge=[str(small_pack(made_once))], limit=4)
    run("quickstart", tmp_path / "own", data=rivers)
    merkhet("report", "made", "own", "--out", "both.html", check=0)
    page = page_text(tmp_path / "both.html")
    assert page.startswith(f"{SUITES.get('quickstart').title}; My rivers ")
    assert "Some of the questions were read from my_rivers.jsonl. The others were generated from" in page
    assert re.search(r"completion R@1.*distinction accuracy.*mouths accuracy.*cities accuracy", page)


OWN_SUITE = """
from merkhet.core.schemas import QUESTIONS, make_table
from merkhet.engine.suite import Suite
from merkhet.questions.question_files import QuestionSet


def build(study, home):
    rows = [
        {"task": task, "prompt": f"{n} [MASK]", "answers": ["a"], "target": "a", "choices": ["a", "b"]}
        for task in ("doubling", "halving") for n in range(2)
    ]
    return QuestionSet(make_table(QUESTIONS, rows))


def suite(**more):
    defaults = {"models": ["random"], "probes": ["rank"], "metrics": ["mrr", "accuracy"], "report": "none"}
    tasks = ("doubling", "halving")
    return Suite(name="own", title="Own", about="", build=build, tasks=tasks, defaults=defaults, **more)


NONE, OTHER, ONE = suite(headline=()), suite(headline=(("sums", "accuracy"),)), suite(headline=(("halving", "mrr"),))
"""


def test_an_own_suite_has_a_headline(tmp_path: Path, merkhet: Any) -> None:
    (tmp_path / "own.py").write_text(OWN_SUITE)
    both = [("doubling", "accuracy"), ("halving", "accuracy")]
    for name, expected in (("NONE", both), ("OTHER", both), ("ONE", [("halving", "mrr")])):
        done = merkhet("run", f"own.py:{name}", "--out", name, "--quiet", check=0)
        assert headline(open_run(tmp_path / name)) == expected and "no scores yet" not in done.stdout, name
