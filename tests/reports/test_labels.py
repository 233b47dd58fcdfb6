"""Short labels of one figure or table: within the width, distinct, with the part in which they differ."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st
from report_runs import CHINESE
from rich.cells import cell_len

from merkhet.reports._labels import shorten_labels
from merkhet.reports._text_width import fit_labels, text_width

LETTERS = "ab01 -/中é"
STEPS = [f"lab/pythia-1.4b-deduped-on-everything-step{step}" for step in (1000, 2000, 143000)]
TRAININGS = [
    f"minilm-mlm after memorizing {size} facts of politics, seed {seed}" for size in (200, 400) for seed in (0, 1)
]
RELATIONS = [f"is the {part} of the government of" for part in ("first head", "present head", "seat", "members")]
CHINESE_NAMES = [f"{CHINESE}是{city}" for city in ("北京", "上海", "南京")]


@st.composite
def similar_labels(draw):
    """Labels with a common start and a common end, and some of any kind."""
    start, end = (draw(st.text(LETTERS, max_size=40)) for _ in range(2))
    middles = draw(st.lists(st.text(LETTERS, max_size=8), min_size=1, max_size=12))
    return [f"{start}{middle}{end}" for middle in middles] + draw(st.lists(st.text(max_size=60), max_size=3))


@given(similar_labels(), st.integers(min_value=8, max_value=40))
@example(["a" * 50, "a" * 51, "a" * 52], 8)
@example([f"{'x' * 40}{number}" for number in range(120)], 8)
def test_distinct_labels_stay_distinct_within_the_width(labels, width):
    short = shorten_labels(labels, width)
    assert short.keys() == set(labels) and len(set(short.values())) == len(set(labels))
    assert all(cell_len(text) <= width for text in short.values())
    assert all(short[label] == label for label in labels if cell_len(label) <= width)


@given(similar_labels(), st.integers(min_value=70, max_value=200))
def test_labels_of_figures_are_distinct_within_the_pixels(labels, width):
    texts = fit_labels(labels, 12, width)
    assert len(set(texts)) == len(set(labels)) and all(text_width(text, 12) <= width for text in texts)


def test_the_part_in_which_labels_differ_is_kept_at_every_width():
    for labels, parts in (
        (STEPS, ("1000", "2000", "143000")),
        (TRAININGS, (("200", "0"), ("200", "1"), ("400", "0"), ("400", "1"))),
        (RELATIONS, ("first", "present", "seat", "members")),
        (CHINESE_NAMES, ("北京", "上海", "南京")),
        (["random", *STEPS[:2]], ("random", "1000", "2000")),
    ):
        for width in range(14, max(map(len, labels))):
            short = list(shorten_labels(labels, width).values())
            for text, kept in zip(short, parts, strict=True):
                assert all(part in text for part in ((kept,) if isinstance(kept, str) else kept)), (width, short)
                assert "#" not in text, (width, short)


def test_the_common_part_is_replaced_by_an_ellipsis():
    assert list(shorten_labels(STEPS[:2], 20).values()) == ["lab/pythia…-step1000", "lab/pythia…-step2000"]
