"""Models write what stands in a slot: masks filled in one pass, or text gone on with, greedily."""

from __future__ import annotations

import inspect
import re
from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch

from merkhet.core.records import Question
from merkhet.models._slot_framing import MaskFrame, TextFrame
from merkhet.models.batching import run_batches
from merkhet.models.protocol import IntArray, WrittenAnswer
from merkhet.models.row_scheduler import Row, read_positions
from merkhet.models.tokenize_candidates import CandidateTokenizer, UnusableError

MASKED_METHODS = ("masks",)
CAUSAL_METHODS = ("continue", "chat")

# A full stop after such a word, or after the initial of a name, ends no sentence.
_SHORTENED = re.compile(
    r"\b(?:[Ss]t|[Mm]t|[Ff]t|Drs?|Mrs?|Ms|[JS]r|No|vs|Prof|Gen|Col|Lt|Sgt|Rev|Gov|Sen|Rep|Inc|Ltd|Co|Corp)$"
    r"|(?:^|\.|\b[A-Z]\w*\s)\s*[A-Z]$"
)
_SENTENCE_END = re.compile(r"[。！？]|[.!?]+(?=[\s\"'”’)]|$)")
_LOST_BLANKS = (
    (re.compile(r"(?<=\w) ?([-–/’']) ?(?=\w)"), r"\1"),
    (re.compile(r"(?<=\d) ?([.:]) ?(?=\d)"), r"\1"),
    (re.compile(r"(?<![\d,])(\d{1,3}) ?, ?(?=\d{3}(?!\d))"), r"\1,"),
    (re.compile(r"(?<=,\d{3}) ?, ?(?=\d{3}(?!\d))"), ","),
    (re.compile(r"\( | (?=\))"), lambda found: found[0].strip()),
    (re.compile(r"(?:\b\w ?\. ?){2,}$"), lambda found: found[0].replace(" ", "")),
)


class Speller:
    """Turns tokens into the text that a reader sees.

    Vocabularies of words do not say where there was no blank beside a mark. There a hyphen, an apostrophe or a slash
    joins two words, a point or a comma the digits of a number, and letters with points at the end are a short form.
    """

    def __init__(self, tokenizer: Any, backend: Any) -> None:
        self.tokenizer = tokenizer
        self.special = frozenset(tokenizer.all_special_ids)
        tried = [backend.encode(text, add_special_tokens=False).ids for text in ("a-b", "a,b")]
        self.loses_blanks = any(" " in self._decode(tokens).strip() for tokens in tried)

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of tokens, special ones left out."""
        text = self._decode([token for token in tokens if token not in self.special])
        return rejoined(text) if self.loses_blanks else text

    def _decode(self, tokens: Sequence[int]) -> str:
        return str(self.tokenizer.decode(list(tokens))).replace("\N{REPLACEMENT CHARACTER}", "")


def rejoined(text: str) -> str:
    """A text whose marks stand alone, with those joined that stand within a word or a number."""
    for pattern, joined in _LOST_BLANKS:
        text = pattern.sub(joined, text)
    return text


class MaskWriter:
    """Writes with a masked model: masks in the slot, the likeliest token at each, all in one pass."""

    def __init__(self, model: Any, tokenizer: Any, candidate_tokenizer: CandidateTokenizer, early: Any = None) -> None:
        self.model = model
        self.early = early
        self.prompts = MaskFrame(tokenizer, candidate_tokenizer)
        self.pad = int(tokenizer.pad_token_id or 0)
        self.decoder = Speller(tokenizer, candidate_tokenizer.backend)

    def write(self, questions: Sequence[Question], length: int, budget: int) -> tuple[list[WrittenAnswer], int]:
        """What stands in each slot, and the budget that was found. Equal rows are computed once."""
        method = MASKED_METHODS[0]
        written: list[WrittenAnswer] = []
        asked: dict[Row, list[int]] = defaultdict(list)
        columns: dict[Row, int] = {}
        for index, question in enumerate(questions):
            try:
                row, first = self.prompts.mask_slot(question.prompt, length)
                columns[row] = first
                asked[row].append(index)
            except UnusableError as reason:
                written.append(WrittenAnswer(index, method, unusable=str(reason)))
        rows = list(asked)
        tokens = np.empty(len(rows) * length, dtype=np.int64)
        scores = np.empty(len(rows) * length)

        def take(some: IntArray, logits: torch.Tensor) -> None:
            best = logits.max(dim=1)
            tokens[some] = best.indices.cpu().numpy()
            scores[some] = (best.values - torch.logsumexp(logits, dim=1)).double().cpu().numpy()

        if rows:
            numbers = np.repeat(np.arange(len(rows)), length)
            places = np.concatenate([columns[row] + np.arange(length) for row in rows])
            budget = read_positions(self.model, rows, numbers, places, self.pad, budget, take, self.early)
        for number, row in enumerate(rows):
            own = slice(number * length, (number + 1) * length)
            text, score = self.decoder.decode(tokens[own].tolist()).strip(), float(scores[own].mean())
            written += [WrittenAnswer(index, method, text, score) for index in asked[row]]
        return sorted(written, key=lambda one: one.index), budget


class TextWriter:
    """Writes with a causal model: greedily on from a text, until the answer ends.

    Prompts of different lengths go together, the shorter ones padded on the left, if the model was seen to say the
    same with padding as without; else only prompts of equal length do.
    """

    def __init__(self, model: Any, tokenizer: Any, candidate_tokenizer: CandidateTokenizer, beginning: int) -> None:
        self.model = model
        self.prompts = TextFrame(tokenizer, candidate_tokenizer, beginning)
        self.decoder = Speller(tokenizer, candidate_tokenizer.backend)
        taken = inspect.signature(model.forward).parameters
        self.last_only = "logits_to_keep" in taken
        self.takes_positions = "position_ids" in taken
        self.padding = beginning

    def write(
        self, questions: Sequence[Question], method: str, length: int, budget: int
    ) -> tuple[list[WrittenAnswer], int]:
        """What stands in each slot by a method, and the budget that was found. Equal prompts are computed once."""
        written: list[WrittenAnswer] = []
        asked: dict[tuple[Row, str], list[int]] = defaultdict(list)
        for index, question in enumerate(questions):
            try:
                prompt = self.prompts.prompt_tokens(question, method, length)
                asked[prompt, self.prompts.cut_at(question, method)].append(index)
            except UnusableError as reason:
                written.append(WrittenAnswer(index, method, unusable=str(reason)))
        groups: dict[int, list[tuple[Row, str]]] = defaultdict(list)
        for prompt, mark in sorted(asked, key=lambda one: (-len(one[0]), one)):
            groups[0 if self.pads_alike else len(prompt)].append((prompt, mark))
        for some in groups.values():
            found: dict[int, tuple[str, float]] = {}

            def forward(batch: list[int], some: Any = some, found: Any = found) -> None:
                found.update(zip(batch, self._go_on([some[i] for i in batch], length), strict=True))

            budget = run_batches([len(prompt) + length for prompt, _ in some], budget, forward)
            for number, one in enumerate(some):
                written += [WrittenAnswer(index, method, *found[number]) for index in asked[one]]
        return sorted(written, key=lambda one: one.index), budget

    @cached_property
    def pads_alike(self) -> bool:
        """Whether a short prompt is gone on with alike beside a long one, tried on two of them for two tokens."""
        spread = np.linspace(0, self.model.config.get_text_config().vocab_size - 1, 11).astype(int).tolist()
        short, long = tuple(spread[:3]), tuple(spread[3:])
        try:
            with torch.inference_mode():
                alone, together = (self._two_steps(rows) for rows in ([short], [long, short]))
        except Exception:  # Whatever a strange architecture says of padding: then it goes without.
            return False
        return bool(torch.allclose(alone[-1], together[-1], rtol=1e-3, atol=1e-3))

    def _two_steps(self, rows: Sequence[Row]) -> torch.Tensor:
        """The logits after each row, and after one more token that is the same for all."""
        text = PaddedTexts(self, rows)
        first = text.step()
        text.add(torch.full((len(rows), 1), rows[-1][0], device=self.model.device))
        return torch.cat([first, text.step()], dim=1)

    def _go_on(self, some: Sequence[tuple[Row, str]], length: int) -> list[tuple[str, float]]:
        """The answer after each prompt, and the mean log-probability of its tokens.

        The token that ends an answer counts among them: where to stop is part of what is said.
        """
        tokens: list[list[int]] = [[] for _ in some]
        scores: list[list[float]] = [[] for _ in some]
        ended = [False] * len(some)
        with torch.inference_mode():
            text = PaddedTexts(self, [prompt for prompt, _ in some])
            for _ in range(length):
                logits = text.step()
                best = logits.max(dim=1)
                values = (best.values - torch.logsumexp(logits, dim=1)).double().tolist()
                text.add(best.indices[:, None])
                for line, token in enumerate(best.indices.tolist()):
                    if ended[line]:
                        continue
                    scores[line].append(values[line])
                    if token in self.decoder.special:
                        ended[line] = True
                        continue
                    tokens[line].append(token)
                    ended[line] = cut_answer(self.decoder.decode(tokens[line]), some[line][1], False)[1]
                if all(ended):
                    break
        texts = [
            cut_answer(self.decoder.decode(own), mark, True)[0] for own, (_, mark) in zip(tokens, some, strict=True)
        ]
        return [(text, float(np.mean(own))) for text, own in zip(texts, scores, strict=True)]


class PaddedTexts:
    """Texts that grow token by token, padded on the left to one length, with what the model keeps of them."""

    def __init__(self, writer: TextWriter, rows: Sequence[Row]) -> None:
        self.writer = writer
        longest = max(len(row) for row in rows)
        device = writer.model.device
        self.ids = torch.tensor([[writer.padding] * (longest - len(row)) + list(row) for row in rows], device=device)
        self.seen = torch.tensor([[0] * (longest - len(row)) + [1] * len(row) for row in rows], device=device)
        self.padded = any(len(row) < longest for row in rows)
        self.past: Any = None

    def step(self) -> torch.Tensor:
        """The logits of what follows each text."""
        new = self.ids if self.past is None else self.ids[:, -1:]
        options: dict[str, Any] = {"logits_to_keep": 1} if self.writer.last_only else {}
        if self.padded:
            options["attention_mask"] = self.seen
            if self.writer.takes_positions:
                options["position_ids"] = (self.seen.cumsum(1) - 1).clamp(min=0)[:, -new.shape[1] :]
        if self.past is not None:
            options["past_key_values"] = self.past
        output = self.writer.model(input_ids=new, use_cache=True, **options)
        self.past = getattr(output, "past_key_values", None)
        logits: torch.Tensor = output.logits[:, -1].float()
        return logits

    def add(self, tokens: torch.Tensor) -> None:
        """One more token for each text."""
        self.ids = torch.cat([self.ids, tokens], dim=1)
        self.seen = torch.cat([self.seen, torch.ones_like(tokens)], dim=1)


def cut_answer(text: str, mark: str, whole: bool) -> tuple[str, bool]:
    """The answer at the beginning of a text, and whether it is sure to end there.

    It ends at a new line, at the given mark, or where a sentence ends; a stop at the very end of a text ends it only
    if the text is ``whole``, for "1." may go on with "5".
    """
    text = text.lstrip()
    ends = [text.index(one) for one in ("\n", mark) if one and one in text]
    for found in _SENTENCE_END.finditer(text):
        stop = found.start()
        goes_on = not whole or found.end() < len(text.rstrip())
        if text[stop] == "." and goes_on and _SHORTENED.search(text[:stop]):
            continue
        if found.end() < len(text) or text[stop] in "。！？" or whole:
            ends.append(stop)
            break
    answer = text[: min(ends, default=len(text))].strip()
    # A mark before the first word (an opening quote, a line of dashes) ends nothing.
    if ends and not any(letter.isalnum() for letter in answer):
        return cut_answer(text[min(ends) + 1 :], mark, whole)
    return answer, bool(ends)
