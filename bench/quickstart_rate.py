"""Measures how fast the quickstart's questions are asked: merkhet's rank probe, the plain way, and lm-eval's scoring.

All ways score the same candidates of the same questions; the scores of merkhet and of the plain way must be equal.
"""

from __future__ import annotations

import gc
import json
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import plain
from counting import Counter
from material import MODELS, model_folder, quickstart_questions, read_questions, write_questions
from measuring import Ratio, Table, arguments, finish, interleave, median_with_spread, parse, ratio
from peers import Peers, find_peers, peer_environment, peer_versions
from worker import Worker

if TYPE_CHECKING:
    from merkhet.core.records import Question

SIZES = {"completion": 96, "checking": 48, "distinction": 48}
HEADLINE_MODELS = ("minilm-mlm",)
QUICK = {"completion": 12, "checking": 6, "distinction": 6}
TOLERANCE = 1e-3
MERKHET, PLAIN, PEER = "merkhet", "plain", "lm-eval"

Scores = list[list[float]]


@dataclass
class Outcome:
    """What was measured of one model: by each way its seconds and counts; the largest differences from merkhet."""

    name: str
    kind: str
    questions: int
    candidates: int
    unusable: int
    timings: dict[str, list[float]] = field(default_factory=dict)
    counts: dict[str, dict[str, int]] = field(default_factory=dict)
    differences: dict[str, float] = field(default_factory=dict)


class MerkhetWay:
    """merkhet's rank probe."""

    def __init__(self, name: str) -> None:
        from merkhet.models.loading import load_model

        self.model: Any = load_model(name)

    def ask(self, questions: Sequence[Question]) -> list[Any]:
        """An answer for each question."""
        from merkhet.probes.rank import rank_candidates

        return list(rank_candidates(self.model, questions))


@contextmanager
def peer_way(peers: Peers, kind: str, folder: Path, questions: Sequence[Question]) -> Iterator[Worker | None]:
    """lm-eval's loglikelihood for a causal model, in a process of its own, if it is installed."""
    if peers.python is None or kind != "causal":
        yield None
        return
    pairs = []
    for question in questions:
        before, after = question.prompt.split(plain.SLOT)
        pairs += [(before, candidate + after) for candidate in question.candidates]
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        (place / "pairs.json").write_text(json.dumps(pairs), encoding="utf-8")
        script = str(Path(__file__).with_name("lm_eval_worker.py"))
        command = [str(peers.python), script, str(folder), str(plain.BATCH), str(place / "pairs.json")]
        worker = Worker(PEER, command, peer_environment(), len(pairs), place)
        try:
            yield worker
        finally:
            worker.close()


def measure(name: str, questions: list[Question], peers: Peers, repeats: int) -> Outcome:
    """All the ways on one model: counted once, compared once, then timed in turn."""
    kind, folder = model_folder(name)
    own = MerkhetWay(name)
    usable = {answer.question_id for answer in own.ask(questions) if answer.unusable is None}
    asked = [question for question in questions if question.question_id in usable]
    given = [{"prompt": question.prompt, "candidates": list(question.candidates)} for question in asked]
    network, tokenizer = plain.load(folder, kind)
    candidates = sum(len(question.candidates) for question in asked)
    outcome = Outcome(name, kind, len(asked), candidates, len(questions) - len(asked))

    with peer_way(peers, kind, folder, asked) as peer:
        with Counter(own.model.model) as counter:
            scores = scores_of(own.ask(asked), asked)
        outcome.counts[MERKHET] = counter.counts()
        with Counter(network) as counter:
            expected = plain.score(network, tokenizer, kind, given)
        outcome.counts[PLAIN] = counter.counts()
        outcome.differences[PLAIN] = largest_difference(scores, expected)
        ways: dict[str, Any] = {
            MERKHET: lambda: own.ask(asked),
            PLAIN: lambda: plain.score(network, tokenizer, kind, given),
        }
        if peer is not None:
            answer = peer.ask(range(peer.count), count=True, scores=True)
            theirs = iter(answer["scores"])
            outcome.counts[PEER] = answer["counts"]
            regrouped = [[next(theirs) for _ in row] for row in scores]
            outcome.differences[PEER] = largest_difference(centred(scores), centred(regrouped))
            outcome.differences[f"{PEER}, raw"] = largest_difference(scores, regrouped)
            ways[PEER] = lambda: float(peer.ask(range(peer.count))["seconds"])
        outcome.timings = interleave(ways, repeats, warmups=0)  # Counting was the warm-up.
    return outcome


def scores_of(answers: Sequence[Any], questions: Sequence[Question]) -> Scores:
    """The scores in the order of the candidates; an answer keeps them ranked."""
    ranked = {answer.question_id: dict(answer.ranked) for answer in answers}
    return [[ranked[question.question_id][text] for text in question.candidates] for question in questions]


def largest_difference(some: Scores, others: Scores) -> float:
    """The largest difference between two scores of the same candidate."""
    pairs = zip(some, others, strict=True)
    return max(abs(a - b) for row, other in pairs for a, b in zip(row, other, strict=True))


def centred(scores: Scores) -> Scores:
    """Scores less the mean of their question, which is all that ranks depend on."""
    return [[value - statistics.fmean(row) for value in row] for row in scores]


def table_rows(outcome: Outcome, ratios: dict[str, Ratio]) -> list[list[str]]:
    rows = []
    for way, seconds in outcome.timings.items():
        middle = statistics.median(seconds)
        counts = outcome.counts[way]
        rows.append(
            [
                f"{outcome.name}: {way}",
                median_with_spread(seconds, 2),
                f"{outcome.questions / middle:.1f}",
                f"{outcome.candidates / middle:.0f}",
                *(f"{counts[key]:,}" for key in ("rows", "tokens", "head_positions")),
                f"{outcome.differences[way]:.1e}" if way != MERKHET else "–",
                str(ratios[f"{outcome.name}: {way} / {MERKHET}"]) if way != MERKHET else "1",
            ]
        )
    return rows


def main() -> int:
    parser = arguments(__doc__, repeats=3, models=MODELS)
    parser.add_argument("--questions", type=Path, help="ask the questions of this JSON file, not newly made ones")
    parser.add_argument("--write-questions", type=Path, help="write the questions to this file for --questions")
    options = parse(parser)
    peers = find_peers(not options.no_peers)
    questions = (
        read_questions(options.questions)
        if options.questions
        else quickstart_questions(QUICK if options.quick else SIZES)
    )
    if options.write_questions:
        write_questions(questions, options.write_questions)
    outcomes, rows = [], []
    ratios: dict[str, Ratio] = {}
    timings: dict[str, list[float]] = {}
    for name in options.models if not options.headline else HEADLINE_MODELS:
        outcome = measure(name, questions, peers, options.repeats)
        gc.collect()
        outcomes.append(outcome)
        for way, seconds in outcome.timings.items():
            timings[f"{name}: {way}"] = seconds
            if way != MERKHET:
                ratios[f"{name}: {way} / {MERKHET}"] = ratio(seconds, outcome.timings[MERKHET])
        rows += table_rows(outcome, ratios)
        if outcome.kind == "causal" and peers.python is None:
            rows.append([f"{name}: {PEER}", f"peer not installed: {peers.reason}", *["–"] * 7])
    unequal = [one.name for one in outcomes if not one.differences[PLAIN] <= TOLERANCE]
    notes = [
        f"{one.name}: {one.questions} questions with {one.candidates:,} candidates; {one.unusable} cannot be asked"
        for one in outcomes
    ]
    notes.append("Tokens include padding. Median (smallest–largest); ratios of medians (smallest–largest of a round).")
    if any(PEER in one.differences for one in outcomes):
        notes.append(
            "lm-eval counts a lone space before the slot (as before numbers) with the answer, the same for all "
            "candidates of a question: its difference is taken after subtracting each question's mean."
        )
    notes += [f"UNEQUAL SCORES: {name} differs from the plain way by more than {TOLERANCE}" for name in unequal]
    table = Table(
        f"Asking the quickstart's questions, {options.repeats} rounds",
        (
            "way",
            "seconds",
            "questions/s",
            "candidates/s",
            "rows",
            "tokens",
            "at the head",
            "difference",
            "× merkhet's time",
        ),
        rows,
        notes,
    )
    details = {
        "models": {one.name: asdict(one) for one in outcomes},
        "equal": not unequal,
        "tolerance": TOLERANCE,
        "batch": plain.BATCH,
        "peers": peer_versions(peers),
        "peers_reason": peers.reason,
    }
    finish("quickstart_rate", options, table, timings, ratios, details)
    return 1 if unequal else 0


if __name__ == "__main__":
    sys.exit(main())
