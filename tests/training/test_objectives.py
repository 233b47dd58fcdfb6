"""Examples are what their objective says, drawn by the step alone; losses are what slow, plain sums of them are."""

from __future__ import annotations

import math
import re
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_models import CHINESE_SENTENCES, SENTENCES, byte_level, unigram_albert, wordpiece
from tokenizers import processors

from merkhet.core.errors import InputError
from merkhet.models.loading import load_model
from merkhet.training._pretraining_examples import (
    NO_LABEL,
    Example,
    Examples,
    SequenceTemplate,
    Vocabulary,
    sequence_template,
)
from merkhet.training._pretraining_objectives import BoundaryHead, Objective, SegmentHead
from merkhet.training.pretraining_settings import OBJECTIVES, PretrainSettings
from merkhet.training.text_corpus import read_corpus

PAIRS = ("mlm+nsp", "mlm+sop")


@pytest.fixture(scope="module")
def tokenizer():
    return wordpiece((*CHINESE_SENTENCES, *SENTENCES), True)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve documents of one to seven sentences, no two of which are the same."""
    texts = [
        "".join(
            f"{'法德意北东纽金这国首都京'[number]}{CHINESE_SENTENCES[(number + i) % 8]}" for i in range(1 + number % 7)
        )
        for number in range(12)
    ]
    file = tmp_path_factory.mktemp("corpus") / "corpus.txt"
    file.write_text("\n\n".join(texts), encoding="utf-8")
    return file


def made(place: Path, tokenizer, objective: str = "mlm", seed: int = 3, **settings) -> Examples:
    backend = tokenizer.backend_tokenizer
    chosen = PretrainSettings(objective, **{"batch_size": 8, "max_length": 48, **settings})
    vocabulary = Vocabulary.of(tokenizer, len(tokenizer))
    return Examples(read_corpus(place, backend), sequence_template(backend), vocabulary, chosen, seed)


def whole(one: Example) -> list[int]:
    """The row as it was before some of its tokens were masked."""
    row = one.ids.copy()
    row[one.columns] = one.targets
    return row.tolist()


def segments_of(one: Example, template: SequenceTemplate) -> list[tuple[int, ...]]:
    """The segments of an example, without special tokens; checks that these stand where they should."""
    row = whole(one)
    if one.label == NO_LABEL:
        assert (
            tuple(row[: len(template.prefix)]) == template.prefix
            and tuple(row[len(row) - len(template.suffix) :]) == template.suffix
        )
        assert not one.segments.any()
        return [tuple(row[len(template.prefix) : len(row) - len(template.suffix)])]
    start = int(np.argmax(one.segments))
    assert one.segments.tolist() == [0] * start + [1] * (len(row) - start)
    assert tuple(row[: len(template.pair_prefix)]) == template.pair_prefix
    assert tuple(row[len(row) - len(template.pair_suffix) :]) == template.pair_suffix
    assert tuple(row[start - len(template.separator) : start]) == template.separator
    return [
        tuple(row[len(template.pair_prefix) : start - len(template.separator)]),
        tuple(row[start : len(row) - len(template.pair_suffix)]),
    ]


def sentences_of(examples: Examples) -> list[list[tuple[int, ...]]]:
    corpus, found = examples.corpus, []
    for first, last in pairwise(corpus.documents):
        bounds = corpus.sentences[first : last + 1]
        found.append([tuple(corpus.tokens[a:b].tolist()) for a, b in pairwise(bounds)])
    return found


def drawn(examples: Examples, steps: int) -> list[Example]:
    return [one for step in range(steps) for one in examples.batch(step)]


def test_frames_are_those_of_the_family(tokenizer) -> None:
    names = {name: tokenizer.convert_tokens_to_ids(name) for name in ("[CLS]", "[SEP]")}
    cls, sep = names.values()
    assert sequence_template(tokenizer.backend_tokenizer) == SequenceTemplate((cls,), (sep,), (cls,), (sep,), (sep,))
    own = wordpiece((*CHINESE_SENTENCES, *SENTENCES), True).backend_tokenizer
    own.post_processor = processors.TemplateProcessing(
        "[CLS] $A [SEP]", "[CLS] $A [SEP] [SEP] $B:1 [SEP] [CLS]", list(names.items())
    )
    assert sequence_template(own) == SequenceTemplate((cls,), (sep,), (cls,), (sep, sep), (sep, cls))
    assert sequence_template(byte_level(SENTENCES, True).backend_tokenizer) == SequenceTemplate(
        (0,), (2,), (0,), (2, 2), (2,)
    )
    assert sequence_template(unigram_albert(SENTENCES).backend_tokenizer) == SequenceTemplate(
        (2,), (3,), (2,), (3,), (3,)
    )


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_step_depends_on_nothing_but_its_number_and_the_seed(place: Path, tokenizer, objective: str) -> None:
    one, other = made(place, tokenizer, objective), made(place, tokenizer, objective)
    forward = [one.batch(step) for step in range(6)]
    backward = [other.batch(step) for step in reversed(range(6))][::-1]
    for left, right in zip(forward, backward, strict=True):
        for a, b in zip(left, right, strict=True):
            for name in ("ids", "segments", "columns", "targets"):
                assert getattr(a, name).tolist() == getattr(b, name).tolist()
            assert (a.slot, a.label) == (b.slot, b.label)
    another = made(place, tokenizer, objective, seed=4)
    assert [one.ids.tolist() for one in forward[0]] != [one.ids.tolist() for one in another.batch(0)]
    assert [one.slot for one in forward[0]] == list(range(8))


def test_every_sentence_is_seen_once_a_round_in_its_document(place: Path, tokenizer) -> None:
    examples = made(place, tokenizer, batch_size=1)
    count = len(examples.chunks)
    rounds = [
        [segments_of(one, examples.template)[0] for step in range(first, first + count) for one in examples.batch(step)]
        for first in (0, count)
    ]
    assert Counter(rounds[0]) == Counter(rounds[1]) and rounds[0] != rounds[1]
    # Chunks of a document follow one another; each is as long as can be, and of whole sentences.
    expected = []
    for sentences in sentences_of(examples):
        chunk: tuple[int, ...] = ()
        for sentence in sentences:
            if chunk and len(chunk) + len(sentence) > 48 - 3:
                expected.append(chunk)
                chunk = ()
            chunk += sentence
        expected.append(chunk)
    assert Counter(rounds[0]) == Counter(expected) and len(expected) > 14


def test_a_sentence_that_is_too_long_is_cut_into_pieces(tmp_path: Path, tokenizer) -> None:
    (tmp_path / "a.txt").write_text("北京" * 30 + "。纽约是美国的一座城市。金属和气体是元素。")
    examples = made(tmp_path / "a.txt", tokenizer, max_length=28)
    tokens = examples.corpus.tokens.tolist()
    shown = [segments_of(one, examples.template)[0] for one in examples.batch(0)[: len(examples.chunks)]]
    # 61 characters in pieces of 25, a sentence beside the last, and one alone.
    cuts = (0, 25, 50, 72, 81)
    assert len(tokens) == 81
    assert sorted(shown) == sorted(tuple(tokens[start:stop]) for start, stop in pairwise(cuts))


@pytest.mark.parametrize("objective", PAIRS)
def test_pairs_are_as_their_labels_say(place: Path, tokenizer, objective: str) -> None:
    """Oracle: look up, among all documents, where the sentences of each segment stand."""
    examples = made(place, tokenizer, objective)
    documents = sentences_of(examples)
    texts = [sum(sentences, ()) for sentences in documents]
    ends = [set(np.cumsum([0, *map(len, sentences)]).tolist()) for sentences in documents]

    def found(segment: tuple[int, ...]) -> list[tuple[int, int]]:
        size = len(segment)
        return [(n, i) for n, text in enumerate(texts) for i in ends[n] if text[i : i + size] == segment]

    labels = Counter()
    for one in drawn(examples, 120):
        labels[one.label] += 1
        assert len(one.ids) <= 48
        places = [found(segment) for segment in segments_of(one, examples.template)]
        assert all(places)
        if one.label == NO_LABEL:
            continue
        size = [len(segment) for segment in segments_of(one, examples.template)]
        (first, second) = places
        follows = any(n == m and i + size[0] == j for n, i in first for m, j in second)
        before = any(n == m and j + size[1] == i for n, i in first for m, j in second)
        if one.label == 0:
            assert follows
        elif objective == "mlm+sop":
            assert before and not follows
        else:
            assert all(n != m for n, _ in first for m, _ in second)
    pairs = labels[0] + labels[1]
    assert abs(labels[1] / pairs - 0.5) < 4 * math.sqrt(0.25 / pairs)
    lone = (np.diff(examples.chunks, axis=1) == 1).mean()
    assert labels[NO_LABEL] / 960 == pytest.approx(lone, abs=0.05) and lone > 0


def test_texts_of_other_documents_come_from_all_of_them(place: Path, tokenizer) -> None:
    examples = made(place, tokenizer, "mlm+nsp")
    owners = Counter()
    for one in drawn(examples, 150):
        if one.label == 1:
            second = segments_of(one, examples.template)[1]
            owners[second[0]] += 1  # The first character of a sentence names its document.
    assert len(owners) == 12


def test_all_objectives_see_the_same_documents_in_the_same_order(place: Path, tokenizer) -> None:
    shown = {name: drawn(made(place, tokenizer, name), 10) for name in OBJECTIVES}
    for one, other in zip(shown["mlm"], shown["mlm+sbo"], strict=True):
        assert one.ids.tolist() == other.ids.tolist() and one.targets.tolist() == other.targets.tolist()
    template = made(place, tokenizer).template
    for one, sop, nsp in zip(shown["mlm"], shown["mlm+sop"], shown["mlm+nsp"], strict=True):
        text = segments_of(one, template)[0]
        ordered = segments_of(sop, template)
        assert sum(ordered[::-1] if sop.label == 1 else ordered, ()) == text
        assert text[: len(segments_of(nsp, template)[0])] == segments_of(nsp, template)[0]


@pytest.mark.parametrize("objective", ["mlm", "mlm+nsp"])
def test_masks_are_bert_s(place: Path, tokenizer, objective: str) -> None:
    examples = made(place, tokenizer, objective)
    special, mask = set(tokenizer.all_special_ids), tokenizer.mask_token_id
    ways, others = Counter(), Counter()
    for one in drawn(examples, 250):
        assert len(set(one.columns.tolist())) == len(one.columns) == len(one.targets)
        assert not special & set(one.targets.tolist())
        usual = [token for token in whole(one) if token not in special]
        assert len(one.columns) == max(1, round(0.15 * len(usual)))
        untouched = np.delete(one.ids, one.columns)
        assert mask not in untouched
        for shown, right in zip(one.ids[one.columns].tolist(), one.targets.tolist(), strict=True):
            ways["mask" if shown == mask else "same" if shown == right else "other"] += 1
            if shown not in (mask, right):
                others[shown] += 1
    total = ways.total()
    assert total > 5000
    for way, share in (("mask", 0.8), ("other", 0.1), ("same", 0.1)):
        assert abs(ways[way] / total - share) < 4 * math.sqrt(share * (1 - share) / total) + 0.001, (way, ways)
    assert not special & set(others) and len(others) > 100


def test_unknown_and_special_tokens_in_the_text_stay(tmp_path: Path, tokenizer) -> None:
    (tmp_path / "a.txt").write_text("北[MASK]龘龘龘[SEP]龘。\n\n龘龘\n\n纽约")
    examples = made(tmp_path / "a.txt", tokenizer)
    unknown = tokenizer.unk_token_id
    assert len(examples.chunks) == 2  # A document of unknown characters has nothing to be masked.
    for one in drawn(examples, 20):
        assert len(one.columns) == 1
        assert unknown not in one.targets and tokenizer.mask_token_id not in one.targets
    (tmp_path / "b.txt").write_text("龘龘")
    with pytest.raises(InputError, match="has no word that the model knows"):
        made(tmp_path / "b.txt", tokenizer)


def test_too_little_for_an_objective_is_said(tmp_path: Path, tokenizer) -> None:
    (tmp_path / "lines.txt").write_text("\n".join(CHINESE_SENTENCES))
    for objective in PAIRS:
        with pytest.raises(InputError, match=f"{re.escape(objective)} needs documents of two sentences"):
            made(tmp_path / "lines.txt", tokenizer, objective)
    made(tmp_path / "lines.txt", tokenizer, "mlm+sbo")
    (tmp_path / "one.txt").write_text("".join(CHINESE_SENTENCES))
    with pytest.raises(InputError, match=r"mlm\+nsp needs two documents"):
        made(tmp_path / "one.txt", tokenizer, "mlm+nsp")
    made(tmp_path / "one.txt", tokenizer, "mlm+sop")
    with pytest.raises(InputError, match="max_length must be ≥ 5, as 3 tokens are special, got 4"):
        made(tmp_path / "one.txt", tokenizer, max_length=4)


@pytest.mark.parametrize("family", ["bert-chinese", "roberta", "albert", "xlm-roberta"])
def test_losses_are_plain_sums(model_folders: dict[str, Path], place: Path, tmp_path: Path, family) -> None:
    model = load_model(str(model_folders[family]))
    english = tmp_path / "english.txt"
    english.write_text("\n\n".join(" ".join(SENTENCES[i : i + 3]) for i in range(8)))
    for objective in OBJECTIVES:
        examples = made(place if family == "bert-chinese" else english, model.tokenizer, objective)
        check_losses(model, examples, objective)


def check_losses(model, examples: Examples, objective: str) -> None:
    """Oracle: every example alone and unpadded, the whole network with all its logits, the head written out."""
    network = model.model
    torch.manual_seed(1)
    told = Objective(network, objective, model.pad)
    batch = examples.batch(0)
    with torch.no_grad():
        losses = told.losses(batch)
        mlm = extra = 0.0
        for one in batch:
            kinds = {"token_type_ids": torch.tensor(one.segments)[None]} if told.segmented else {}
            found = network(input_ids=torch.tensor(one.ids)[None], output_hidden_states=True, **kinds)
            logs = found.logits[0].log_softmax(-1)
            states = found.hidden_states[-1][0]
            for column, target in zip(one.columns.tolist(), one.targets.tolist(), strict=True):
                mlm -= float(logs[column, target])
                if isinstance(told.head, BoundaryHead):
                    pair = torch.cat([states[column - 1], states[column + 1], told.head.position.weight[0]])
                    logits = told.head.layers(pair) @ network.get_input_embeddings().weight.T + told.head.bias
                    extra -= float(logits.log_softmax(-1)[target])
            if isinstance(told.head, SegmentHead) and one.label != NO_LABEL:
                pooled = torch.tanh(states[0] @ told.head.pooler.weight.T + told.head.pooler.bias)
                logits = pooled @ told.head.classes.weight.T + told.head.classes.bias
                extra -= float(logits.log_softmax(-1)[one.label])
    assert float(losses.mlm) == pytest.approx(mlm, rel=1e-4)
    assert (losses.extra is None) == (objective == "mlm")
    if losses.extra is not None:
        assert float(losses.extra) == pytest.approx(extra, rel=1e-4) and extra > 0
    masked = sum(len(one.columns) for one in batch)
    pairs = sum(one.label != NO_LABEL for one in batch)
    assert told.counts(batch) == (masked, {"mlm": 0, "mlm+sbo": masked}.get(objective, pairs))


def test_segments_are_given_where_a_model_has_them(model_folders: dict[str, Path], writer_folders) -> None:
    bert, distilbert = load_model(str(model_folders["bert-chinese"])), load_model(str(writer_folders["distilbert"]))
    assert Objective(bert.model, "mlm+nsp", 0).segmented
    assert not Objective(distilbert.model, "mlm+nsp", 0).segmented
    bert.model.config.type_vocab_size = 1
    assert not Objective(bert.model, "mlm+nsp", 0).segmented
