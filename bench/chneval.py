"""ChnEval on a small Chinese model trained here: exactness against one question at a time, speed, and the whole run.

    python bench/chneval.py --data ../shared/data/chneval

A model of 4 layers × 256 with the vocabulary of the data is trained on text that holds none of the questions
(chinese_text.py; ``--text`` for another), or taken from ``--model``. Then, in one process: ranks over the vocabulary,
ranks among the class's answers and similarities of senses are compared with plain loops that read one sentence at a
time; both are timed in turn; and at last all questions go through ``merkhet run``.
"""

from __future__ import annotations

import random
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from chinese_text import write_text
from measuring import Table, arguments, child_environment, finish, interleave, median_with_spread, parse, run_child

from merkhet.core import SLOT
from merkhet.core.records import Question
from merkhet.models.loading import load_model
from merkhet.probes.compare import compare_senses
from merkhet.probes.fill import fill_slots
from merkhet.probes.rank import rank_candidates
from merkhet.suites.chneval.published import read_published
from merkhet.suites.chneval.questions.question_rows import make_question_set
from merkhet.training.pretraining import pretrain

CANDIDATES_OF = 20
"""For so many questions of a class the first candidates are scored one by one."""
SHAPE = {"num_hidden_layers": 4, "hidden_size": 256, "num_attention_heads": 4, "intermediate_size": 1024}


def main() -> int:
    parser = arguments(__doc__, repeats=3, peers=False)
    parser.add_argument("--data", type=Path, required=True, help="the folder of the published files")
    parser.add_argument("--text", type=Path, help="text to train on [fetched]")
    parser.add_argument("--model", type=Path, help="a folder with a trained model [trained here]")
    parser.add_argument("--steps", type=int, default=600, help="steps of training [600]")
    parser.add_argument("--rows", type=int, default=200, help="questions of each class that are checked [200]")
    parser.add_argument("--no-run", action="store_true", help="without the whole run")
    options = parse(parser)
    if options.quick:
        options.steps, options.rows = 20, 10
    options.results.mkdir(parents=True, exist_ok=True)
    folder = options.model or _trained(options)
    asked = make_question_set(read_published(options.data), seed=0).as_questions()
    chosen = _chosen(asked, options.rows)
    model = load_model(str(folder))
    plain = Plain(folder)
    differences = _differences(model, plain, chosen)
    timings, rates = _timed(model, plain, chosen, options.repeats)
    whole = None if options.no_run else _whole_run(options.data, folder, options.results)
    rows = [[name, f"{value:.1e}", f"{count:,}"] for name, (value, count) in differences.items()]
    ratios = {f"{name}: merkhet / one at a time": rate for name, (rate, _) in rates.items()}
    notes = [
        f"{name}: {fast} questions a second, one at a time {slow}; {rates[name][0]} times as fast"
        for name, (_, (fast, slow)) in rates.items()
    ]
    if whole is not None:
        notes.append(f"merkhet run chneval on all {len(asked):,} questions, all probes, all layers: {whole:.0f} s")
    table = Table(
        "ChnEval: the largest difference from one question at a time", ["what", "difference", "checked"], rows, notes
    )
    finish("chneval", options, table, timings, ratios, {"questions": len(asked), "run_seconds": whole})
    return 0 if all(value < 1e-4 for value, _ in differences.values()) else 1


def _trained(options: Any) -> Path:
    """A model with the vocabulary of the data, trained on text that does not hold the questions."""
    from transformers import BertConfig, BertForMaskedLM, BertTokenizerFast

    text = options.text
    if text is None:
        text = options.results / "chinese.txt"
        if not text.is_file():
            lines, left_out = write_text(text, options.data)
            print(f"{lines:,} lines of text; {left_out:,} sentences of the questions left out", flush=True)
    bare, folder = options.results / "chneval-bare", options.results / "chneval-model"
    torch.manual_seed(0)
    tokenizer = BertTokenizerFast(vocab=str(options.data / "vocab.txt"), model_max_length=512)
    tokenizer.save_pretrained(bare)
    BertForMaskedLM(BertConfig(vocab_size=len(tokenizer), max_position_embeddings=512, **SHAPE)).save_pretrained(bare)
    settings = {"steps": options.steps, "batch_size": 32, "max_length": 96, "learning_rate": 1e-3, "warmup": 0.1}
    started = time.perf_counter()
    learned = pretrain(load_model(str(bare)), text, folder, settings=settings, seed=0)
    print(f"trained in {time.perf_counter() - started:.0f} s: {learned.record['curve'][-1]}", flush=True)
    return folder


def _chosen(questions: Sequence[Question], rows: int) -> dict[str, list[Question]]:
    """Some questions of each task and class."""
    by_class: dict[str, list[Question]] = defaultdict(list)
    for question in sorted(questions, key=lambda one: one.question_id):
        by_class[question.relation].append(question)
    return {name: random.Random(name).sample(own, min(rows, len(own))) for name, own in by_class.items()}


class Plain:
    """The plain way: one sentence, one pass, the whole output."""

    def __init__(self, folder: Path) -> None:
        from transformers import AutoModelForMaskedLM, AutoTokenizer

        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.model = AutoModelForMaskedLM.from_pretrained(folder).eval()
        self.special = self.tokenizer.all_special_ids

    def log_probabilities(self, question: Question) -> np.ndarray:
        """The whole vocabulary at the slot."""
        inputs = self.tokenizer(question.prompt, return_tensors="pt")
        place = (inputs["input_ids"][0] == self.tokenizer.mask_token_id).nonzero()[0, 0]
        with torch.inference_mode():
            return self.model(**inputs).logits[0, place].double().log_softmax(-1).numpy()

    def rank(self, question: Question) -> float | None:
        """Where the answer stands in the vocabulary, special tokens apart; None if it is no piece of it."""
        token = self.tokenizer.convert_tokens_to_ids(question.target.lower())
        if token in self.special:
            return None
        found = self.log_probabilities(question)
        found[self.special] = -np.inf
        return float((found > found[token]).sum() + ((found == found[token]).sum() + 1) / 2)

    def score(self, prompt: str, candidate: str) -> float:
        """The mean log-probability of a candidate's tokens, all of them masked in their sentence."""
        first = prompt.index(SLOT)
        inputs = self.tokenizer(prompt.replace(SLOT, candidate), return_tensors="pt", return_offsets_mapping=True)
        own = _touching(inputs.pop("offset_mapping")[0].tolist(), first, first + len(candidate))
        tokens = inputs["input_ids"][0, own].clone()
        inputs["input_ids"][0, own] = self.tokenizer.mask_token_id
        with torch.inference_mode():
            logits = self.model(**inputs).logits[0, own].double().log_softmax(-1)
        return float(logits.gather(1, tokens[:, None]).mean())

    def similarities(self, question: Question) -> np.ndarray:
        """Cosines of the word's last state in the prompt with its states in the choices."""
        states = []
        for text, start, stop in question.usages:
            inputs = self.tokenizer(text, return_tensors="pt", return_offsets_mapping=True)
            own = _touching(inputs.pop("offset_mapping")[0].tolist(), start, stop)
            with torch.inference_mode():
                states.append(self.model.base_model(**inputs).last_hidden_state[0, own].mean(0).double().numpy())
        base, *others = (state / np.linalg.norm(state) for state in states)
        return np.array([base @ other for other in others])


def _touching(offsets: Sequence[tuple[int, int]], first: int, last: int) -> list[int]:
    """The tokens that touch the characters from first to last."""
    return [place for place, (low, high) in enumerate(offsets) if low < last and high > first]


def _differences(model: Any, plain: Plain, chosen: dict[str, list[Question]]) -> dict[str, tuple[float, int]]:
    """The largest differences from the plain way: log-probabilities of what stands first, scores, similarities.

    A rank that differs must belong to a word whose neighbours in the ranking are as near as the numbers.
    """
    largest = {"log-probability over the vocabulary": 0.0, "score among the class's answers": 0.0, "similarity": 0.0}
    counts = dict.fromkeys(largest, 0)
    ranks = [0, 0]
    for own in chosen.values():
        by_id = {question.question_id: question for question in own}
        if own[0].words:
            for answer in compare_senses(model, own):
                expected = plain.similarities(by_id[answer.question_id])
                given = dict(answer.ranked)
                found = np.array([given[text] for text in by_id[answer.question_id].candidates])
                _keep(largest, counts, "similarity", np.abs(found - expected).max())
            continue
        for answer in fill_slots(model, own):
            question = by_id[answer.question_id]
            rank = plain.rank(question)
            if rank is None or answer.unusable:
                assert rank is None and answer.unusable, (question, answer)
                continue
            expected = plain.log_probabilities(question)
            tokens = plain.tokenizer.convert_tokens_to_ids([text for text, _ in answer.ranked])
            known = [(i, token) for i, token in enumerate(tokens) if token != plain.tokenizer.unk_token_id]
            gaps = [abs(answer.ranked[i][1] - expected[token]) for i, token in known]
            _keep(largest, counts, "log-probability over the vocabulary", max(gaps))
            ranks[0] += 1
            ranks[1] += answer.gold_ranks[0] != rank
        for answer in rank_candidates(model, own[:CANDIDATES_OF]):
            if not answer.unusable:
                expected = [plain.score(by_id[answer.question_id].prompt, text) for text, _ in answer.ranked]
                gaps = [abs(score - other) for (_, score), other in zip(answer.ranked, expected, strict=True)]
                _keep(largest, counts, "score among the class's answers", max(gaps))
    print(f"{ranks[1]} of {ranks[0]} ranks differ from those of the plain way", flush=True)
    return {name: (float(value), counts[name]) for name, value in largest.items()}


def _keep(largest: dict[str, float], counts: dict[str, int], name: str, gap: float) -> None:
    largest[name] = max(largest[name], gap)
    counts[name] += 1


def _timed(model: Any, plain: Plain, chosen: dict[str, list[Question]], repeats: int) -> tuple[Any, Any]:
    """Seconds a question by merkhet and by the plain way, in turn, on the same questions."""
    clozes = [question for own in chosen.values() for question in own if not question.words]
    senses = [question for own in chosen.values() for question in own if question.words]
    ways = {
        "clozes, merkhet": lambda: _seconds(lambda: list(fill_slots(model, clozes)), len(clozes)),
        "clozes, plain": lambda: _seconds(lambda: [plain.rank(one) for one in clozes], len(clozes)),
        "senses, merkhet": lambda: _seconds(lambda: list(compare_senses(model, senses)), len(senses)),
        "senses, plain": lambda: _seconds(lambda: [plain.similarities(one) for one in senses], len(senses)),
    }
    timings = interleave(ways, repeats)
    from measuring import ratio

    rates = {}
    for name in ("clozes", "senses"):
        fast, slow = ([1 / one for one in timings[f"{name}, {way}"]] for way in ("merkhet", "plain"))
        shown = median_with_spread(fast, 0), median_with_spread(slow, 0)
        rates[name] = ratio(timings[f"{name}, plain"], timings[f"{name}, merkhet"]), shown
    return timings, rates


def _seconds(work: Any, count: int) -> float:
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) / count


def _whole_run(data: Path, folder: Path, results: Path) -> float:
    """Seconds of the command that a user gives, from start to report."""
    import shutil

    out = results / "chneval-run"
    shutil.rmtree(out, ignore_errors=True)
    command = [
        "-m",
        "merkhet",
        "run",
        "chneval",
        "--data",
        str(data),
        "--model",
        str(folder),
        "--out",
        str(out),
        "--quiet",
    ]
    return run_child([sys.executable, *command], child_environment()).seconds


if __name__ == "__main__":
    sys.exit(main())
