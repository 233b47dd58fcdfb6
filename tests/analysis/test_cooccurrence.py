from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from examined_runs import corpus_text, make_input
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from merkhet.analysis._corpus_index import CorpusIndex
from merkhet.analysis._prompt_names import names_in_prompts, plain_name
from merkhet.analysis.analysis_options import AnalysisOptions
from merkhet.analysis.cooccurrence import BUCKETS, bucket_index, cooccurrence, question_counts
from merkhet.metrics.text_overlap import word_f1


def asked(number, prompt, template="t/0", choices=None, task="completion"):
    row = {"question_id": f"q{number}", "task": task, "prompt": prompt, "template": template, "choices": choices}
    return row | {"answers": ["yes"]}


def names(*rows):
    return list(names_in_prompts(rows).values())


def test_what_changes_between_prompts_is_a_name():
    found = names(
        asked(1, "The capital of France is [MASK]."),
        asked(2, "The capital of the Isle of Man is [MASK]."),
        asked(3, "The capital of [MASK] is New York."),
    )
    assert found == [("france",), ("isle of man",), ("new york",)]


def test_two_names_are_parted_by_the_templates_words():
    frame = 'Is the statement "{}" true? [MASK].'
    found = names(
        asked(1, frame.format("Marie Curie was born in Warsaw."), choices=["yes", "no"]),
        asked(2, frame.format("Born Smith was born in New York in May."), choices=["yes", "no"]),
    )
    assert found == [("marie curie", "warsaw"), ("smith", "new york", "may")], "a template's word parts names"


def test_choices_in_the_prompt_are_names_only_where_nothing_else_is():
    four = ["the cat", "a dog", "an oak", "New York"]
    chosen = asked(1, "Choose one of the cat, a dog, an oak, New York: a whale is [MASK].", "is/0", four, "reasoning")
    other = asked(2, "Choose one of iron, tin, gold, lead: a spoon is [MASK].", "is/0", ["iron", "tin", "gold", "lead"])
    apart = asked(3, "Among iron, tin, gold, [MASK] is odd, or lead.", "o/0", ["iron", "tin", "gold", "lead"])
    assert names(chosen, other | {"task": "reasoning"}, apart) == [
        ("whale",),
        ("spoon",),
        ("iron", "tin", "gold", "lead"),
    ]
    alone = names(asked(1, "Among iron and tin, [MASK] is the odd.", "o/0", ["iron", "tin"]))
    assert alone == [("iron", "tin")]


FRAMES = ('Is the statement "{}" true? [MASK].', "{} Is this true? [MASK].", "Tell if this is true: {} [MASK].")
STATEMENTS = ("The capital of {} is {}.", "{} lies east of {}.", "From {} one sees {}.", "Between {} and {} is a wall.")
PAIRS = (("isle of man", "douglas"), ("peru", "new lima"), ("georgia", "tbilisi"), ("south korea", "peru"))


def test_the_frames_of_a_task_are_no_names():
    """The same four names in every relation come and go like frames, but they are in other tasks too."""
    rows, expected = [], {}
    for relation, statement in enumerate(STATEMENTS):
        for place, (first, second) in enumerate(PAIRS * 3):
            prompt = FRAMES[(place + place // 4) % 3].format(statement.format(first, second))
            framed = asked(f"{relation}-{place}", prompt, f"r{relation}/0", ["yes", "no"], "checking")
            rows.append(framed)
            expected[framed["question_id"]] = [first, second]
        for place, (first, second) in enumerate(PAIRS):
            opened = asked(f"{relation}+{place}", statement.format(first, "[MASK]"), f"r{relation}/0")
            rows.append(opened | {"answers": [second]})
            expected[opened["question_id"]] = [first]
    for name, found in names_in_prompts(rows).items():
        wanted = " ".join(expected[name])
        assert " ".join(found) in {wanted, wanted.replace(" of ", " ")}, name


def test_a_single_prompt_is_read_without_its_common_words():
    assert names(asked(1, "The capital of the Czech Republic is [MASK].")) == [("capital", "czech republic")]
    assert names(asked(1, "The [MASK] is in it.")) == [()]
    same = [asked(n, "Bern is in [MASK].") for n in (1, 2)]
    assert names(*same) == [("bern",), ("bern",)], "the same prompt twice tells nothing"
    assert names(*(row | {"template": None} for row in (asked(1, "Bern: [MASK]"), asked(2, "Rome: [MASK]")))) == [
        ("bern",),
        ("rome",),
    ]


@given(st.lists(st.text("abcde ", min_size=1).filter(str.strip), min_size=2, max_size=5, unique_by=plain_name))
def test_names_come_back_where_the_template_has_other_words(drawn):
    texts = [f"x{text.strip()}x" for text in drawn]
    rows = [asked(n, f"Zur Frage: [MASK] und {text} gut.") for n, text in enumerate(texts)]
    shared = set.intersection(*(set(plain_name(text).split()) for text in texts))
    for text, found in zip(texts, names(*rows), strict=True):
        if not shared:
            assert found == (plain_name(text),)
        assert set(" ".join(found).split()) <= set(plain_name(text).split())


def test_buckets_hold_what_they_say():
    assert BUCKETS == ("0", "1–2", "3–9", "10–29", "30–99", "100–299", "300–999", "1,000+")
    for count in (0, 1, 2, 3, 9, 10, 29, 30, 99, 100, 299, 300, 999, 1000, 10**6):
        first, _, last = BUCKETS[bucket_index(count)].replace(",", "").rstrip("+").partition("–")
        assert int(first) <= count <= (int(last) if last else (count if count >= 1000 else int(first)))


@pytest.fixture
def run(tmp_path, monkeypatch):
    pytest.importorskip("tantivy")
    monkeypatch.setenv("MERKHET_CACHE", str(tmp_path / "cache"))
    given = make_input(facts=24)
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_text(corpus_text(given, times=1), encoding="utf-8")
    return replace(given, options=AnalysisOptions(corpus=tmp_path / "texts"))


def test_questions_are_counted_by_their_facts(run):
    counts = question_counts(run, CorpusIndex(run.options.corpus))
    for row in run.questions:
        number = int(row["qset"][1:])
        assert counts[row["question_id"]] == (0 if row["task"] == "distinction" else number), row["prompt"]


def test_names_that_the_suite_has_written_down_are_taken(run):
    row = run.questions[-1]
    named = replace(run, entities={row["question_id"]: ("nobody at all",)})
    index = CorpusIndex(run.options.corpus)
    assert question_counts(run, index)[row["question_id"]] == 23
    assert question_counts(named, index)[row["question_id"]] == 0
    unnamed = question_counts(replace(run, entities={row["question_id"]: ()}), index)
    assert row["question_id"] not in unnamed and len(unnamed) == len(run.questions) - 1


def test_means_by_bucket_and_correlations_are_as_by_hand(run):
    found = cooccurrence(run)
    names_of_groups = ["completion", "distinction", "checking", "reasoning"]
    names_of_groups += ["reasoning, TransitiveOP", "reasoning, SubOP(OPChain)"]
    correlations, *tables = found.tables
    assert [table.caption.partition(":")[0] for table in tables] == names_of_groups
    expected = {}
    for answer in run.answers:
        if answer["model"] == "distilbert-base-cased" and answer["unusable"] is None:
            question = run.questions_by_id[answer["question_id"]]
            tops = [one["candidate"] for one in answer["ranked"] if one["score"] == answer["ranked"][0]["score"]]
            value = float(np.mean([word_f1(text, question.answers) for text in tops]))
            expected[answer["question_id"]] = value
    rows = {row["question_id"]: row for row in run.questions}
    kept = [
        (int(rows[name]["qset"][1:]), value)
        for name, value in expected.items()
        if rows[name]["task"] == "reasoning" and rows[name]["rule"] == "TransitiveOP"
    ]
    column = [one.name for one in tables[4].columns].index("distilbert-base-cased")
    for row in tables[4].rows:
        inside = [value for count, value in kept if BUCKETS[bucket_index(count)] == row[0]]
        assert row[column].n == len(inside) and row[column].value == pytest.approx(np.mean(inside))
    rho = next(row for row in correlations.rows if row[:2] == ("distilbert-base-cased", "reasoning, TransitiveOP"))
    assert rho[2] == len(kept)
    assert rho[3].value == pytest.approx(spearmanr(*zip(*kept, strict=True)).statistic)
    assert rho[3].low <= rho[3].value <= rho[3].high
    figure = found.figures[4]
    assert figure.kind == "lines" and {row["line"] for row in figure.rows} == set(run.labels.values())
    assert found.sentences == ("The corpus has 276 paragraphs; 144 questions were looked up in it.",)


def test_without_a_corpus_there_is_nothing_to_say():
    assert cooccurrence(make_input()) is None
