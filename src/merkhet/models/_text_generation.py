"""Generation of answers: a masked model fills masks in one pass, a causal model continues a text greedily."""

from __future__ import annotations

import inspect
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch

from merkhet.core.records import Question
from merkhet.models._slot_prompts import MaskPrompts, TextPrompts
from merkhet.models.protocol import IntArray, WrittenAnswer
from merkhet.models.row_scheduler import Row, read_positions
from merkhet.models.tokenize_candidates import UnusableError

if TYPE_CHECKING:
    from merkhet.models._network import Network

Prompt = tuple[Row, int, Any]
"""A prompt's tokens, the maximum number of new tokens, and a closing mark (answers) or letters (chat)."""
Result = TypeVar("Result")

MASKED_METHODS = ("masks",)
CAUSAL_METHODS = ("continue", "chat")

# A period after one of these abbreviations, or after an initial, does not end a sentence.
_ABBREVIATION = re.compile(
    r"\b(?:[Ss]t|[Mm]t|[Ff]t|Drs?|Mrs?|Ms|[JS]r|No|vs|Prof|Gen|Col|Lt|Sgt|Rev|Gov|Sen|Rep|Inc|Ltd|Co|Corp)$"
    r"|(?:^|\.|\b[A-Z]\w*\s)\s*[A-Z]$"
)
_SENTENCE_END = re.compile(r"[。！？]|[.!?]+(?=[\s\"'”’)]|$)")
_SPACED_PUNCTUATION = (
    (re.compile(r"(?<=\w) ?([-–/’']) ?(?=\w)"), r"\1"),
    (re.compile(r"(?<=\d) ?([.:]) ?(?=\d)"), r"\1"),
    (re.compile(r"(?<![\d,])(\d{1,3}) ?, ?(?=\d{3}(?!\d))"), r"\1,"),
    (re.compile(r"(?<=,\d{3}) ?, ?(?=\d{3}(?!\d))"), ","),
    (re.compile(r"\( | (?=\))"), lambda match: match[0].strip()),
    (re.compile(r"(?:\b\w ?\. ?){2,}$"), lambda match: match[0].replace(" ", "")),
)


class TokenDecoder:
    """Decoder of tokens into readable text.

    Some vocabularies, such as BERT's, do not record spaces next to punctuation, and their decoders add spaces. These
    are removed around hyphens, apostrophes and slashes between words, around periods and commas in numbers, and in
    abbreviations at the end of the text.
    """

    def __init__(self, tokenizer: Any, backend: Any) -> None:
        self.tokenizer = tokenizer
        self.special = frozenset(tokenizer.all_special_ids)
        samples = [backend.encode(text, add_special_tokens=False).ids for text in ("a-b", "a,b")]
        self.adds_spaces = any(" " in self._decode(tokens).strip() for tokens in samples)

    def decode(self, tokens: Sequence[int]) -> str:
        """Decode tokens into text without special tokens."""
        text = self._decode([token for token in tokens if token not in self.special])
        return rejoin_punctuation(text) if self.adds_spaces else text

    def _decode(self, tokens: Sequence[int]) -> str:
        return str(self.tokenizer.decode(list(tokens))).replace("\N{REPLACEMENT CHARACTER}", "")


def rejoin_punctuation(text: str) -> str:
    """Remove the spaces next to punctuation within a word or a number."""
    for pattern, replacement in _SPACED_PUNCTUATION:
        text = pattern.sub(replacement, text)
    return text


class MaskWriter:
    """Writer of answers with a masked model: one pass fills each mask of a slot with its likeliest token."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.prompts = MaskPrompts(network.tokenizer, network.candidate_tokenizer)
        self.decoder = TokenDecoder(network.tokenizer, network.candidate_tokenizer.backend)

    def write(self, questions: Sequence[Question], length: int) -> list[WrittenAnswer]:
        """Write an answer of ``length`` tokens for each question; equal prompts are computed once."""
        method = MASKED_METHODS[0]
        written: list[WrittenAnswer] = []
        questions_of: dict[Row, list[int]] = defaultdict(list)
        columns_of: dict[Row, int] = {}
        for index, question in enumerate(questions):
            try:
                row, column = self.prompts.mask_slot(question.prompt, length)
                columns_of[row] = column
                questions_of[row].append(index)
            except UnusableError as reason:
                written.append(WrittenAnswer(index, method, unusable=str(reason)))
        rows = list(questions_of)
        tokens = np.empty(len(rows) * length, dtype=np.int64)
        scores = np.empty(len(rows) * length)

        def store(positions: IntArray, logits: torch.Tensor) -> None:
            best = logits.max(dim=1)
            tokens[positions] = best.indices.cpu().numpy()
            scores[positions] = (best.values - torch.logsumexp(logits, dim=1)).double().cpu().numpy()

        if rows:
            row_indices = np.repeat(np.arange(len(rows)), length)
            columns = np.concatenate([columns_of[row] + np.arange(length) for row in rows])
            read_positions(self.network, rows, row_indices, columns, store)
        for row_index, row in enumerate(rows):
            masks = slice(row_index * length, (row_index + 1) * length)
            text, score = self.decoder.decode(tokens[masks].tolist()).strip(), float(scores[masks].mean())
            written += [WrittenAnswer(index, method, text, score) for index in questions_of[row]]
        return sorted(written, key=lambda answer: answer.index)


class TextWriter:
    """Writer of answers with a causal model, which continues a prompt greedily until the answer ends.

    Prompts in a batch are padded on the left. If padding would change the model's output, a batch only has prompts of
    equal length.
    """

    def __init__(self, network: Network, start_token: int) -> None:
        self.network, self.model = network, network.model
        self.prompts = TextPrompts(network.tokenizer, network.candidate_tokenizer, start_token)
        self.decoder = TokenDecoder(network.tokenizer, network.candidate_tokenizer.backend)
        parameters = inspect.signature(self.model.forward).parameters
        self.takes_logits_to_keep = "logits_to_keep" in parameters
        self.takes_positions = "position_ids" in parameters
        self.pad = start_token

    def write(self, questions: Sequence[Question], method: str, length: int) -> list[WrittenAnswer]:
        """Write an answer of at most ``length`` tokens for each question; equal prompts are computed once."""
        written: list[WrittenAnswer] = []
        questions_of: dict[Prompt, list[int]] = defaultdict(list)
        for index, question in enumerate(questions):
            try:
                row = self.prompts.prompt_tokens(question, method, length)
                questions_of[row, length, self.prompts.closing_mark(question, method)].append(index)
            except UnusableError as reason:
                written.append(WrittenAnswer(index, method, unusable=str(reason)))
        for prompt, answer in self.run_prompts(questions_of, self._generate):
            written += [WrittenAnswer(index, method, *answer) for index in questions_of[prompt]]
        return sorted(written, key=lambda answer: answer.index)

    def run_prompts(
        self, prompts: Iterable[Prompt], generate: Callable[[Sequence[Prompt], int], Sequence[Result]]
    ) -> Iterator[tuple[Prompt, Result]]:
        """Yield each prompt with its result.

        ``generate`` takes a batch of prompts and the maximum number of new tokens, and returns one result per prompt.
        """
        groups: dict[tuple[int, int], list[Prompt]] = defaultdict(list)
        for prompt in sorted(prompts, key=lambda prompt: (-len(prompt[0]), prompt)):
            groups[prompt[1], 0 if self.padding_is_exact else len(prompt[0])].append(prompt)
        for (length, _), group in groups.items():
            results: dict[int, Result] = {}

            def forward(batch: list[int], group: Any = group, length: int = length, results: Any = results) -> None:
                results.update(zip(batch, generate([group[i] for i in batch], length), strict=True))

            self.network.run_batches([len(row) + length for row, _, _ in group], forward)
            yield from ((prompt, results[number]) for number, prompt in enumerate(group))

    @cached_property
    def padding_is_exact(self) -> bool:
        """Whether padding leaves logits unchanged, tested with a short prompt alone and next to a longer prompt."""
        spread = np.linspace(0, self.model.config.get_text_config().vocab_size - 1, 11).astype(int).tolist()
        short, long = tuple(spread[:3]), tuple(spread[3:])
        try:
            with torch.inference_mode():
                alone, together = (self._two_steps(rows) for rows in ([short], [long, short]))
        except Exception:  # Architectures that reject padding may raise any exception.
            return False
        return bool(torch.allclose(alone[-1], together[-1], rtol=1e-3, atol=1e-3))

    def _two_steps(self, rows: Sequence[Row]) -> torch.Tensor:
        """Return the logits after each row, and after one more token, which is equal for all rows."""
        batch = GenerationBatch(self, rows)
        first = batch.step()
        batch.append(torch.full((len(rows), 1), rows[-1][0], device=self.model.device))
        return torch.cat([first, batch.step()], dim=1)

    def _generate(self, prompts: Sequence[Prompt], length: int) -> list[tuple[str, float]]:
        """Return the answer to each prompt, and the mean log-probability of the answer's tokens.

        The mean includes the token that ends the answer.
        """
        decode, marks = self.decoder.decode, [mark for _, _, mark in prompts]
        continuations, _ = self.continue_rows(
            [row for row, _, _ in prompts],
            length,
            self.decoder.special,
            lambda line, tokens: cut_answer(decode(tokens), marks[line], False)[1],
        )
        return [
            (cut_answer(decode(continuation.tokens), mark, True)[0], float(np.mean(continuation.scores)))
            for continuation, mark in zip(continuations, marks, strict=True)
        ]

    def continue_rows(
        self,
        rows: Sequence[Row],
        length: int,
        end_tokens: frozenset[int],
        is_complete: Callable[[int, list[int]], bool],
    ) -> tuple[list[Continuation], torch.Tensor]:
        """Continue token rows greedily by at most ``length`` tokens.

        A row ends before one of ``end_tokens``, or when ``is_complete`` is true for its index and its new tokens.

        Returns:
            The continuation of each row, and the logits of each row's first new token.
        """
        continuations = [Continuation() for _ in rows]
        with torch.inference_mode():
            batch = GenerationBatch(self, rows)
            first_logits = batch.step()
            for step in range(length):
                logits = batch.step() if step else first_logits
                best = logits.max(dim=1)
                scores = (best.values - torch.logsumexp(logits, dim=1)).double().tolist()
                batch.append(best.indices[:, None])
                for line, token in enumerate(best.indices.tolist()):
                    row = continuations[line]
                    if row.ended:
                        continue
                    row.scores.append(scores[line])
                    row.ended = token in end_tokens
                    if not row.ended:
                        row.tokens.append(token)
                        row.ended = is_complete(line, row.tokens)
                if all(row.ended for row in continuations):
                    break
        return continuations, first_logits


@dataclass
class Continuation:
    """The new tokens of one continued row."""

    tokens: list[int] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    """The log-probability of each new token, including an end token."""
    ended: bool = False


class GenerationBatch:
    """A batch of token rows that grow token by token, with left padding and the model's key-value cache."""

    def __init__(self, writer: TextWriter, rows: Sequence[Row]) -> None:
        self.writer = writer
        longest = max(len(row) for row in rows)
        device = writer.model.device
        self.ids = torch.tensor([[writer.pad] * (longest - len(row)) + list(row) for row in rows], device=device)
        self.attention_mask = torch.tensor([[0] * (longest - len(row)) + [1] * len(row) for row in rows], device=device)
        self.padded = any(len(row) < longest for row in rows)
        self.past: Any = None

    def step(self) -> torch.Tensor:
        """Return the logits of the next token of each row."""
        new = self.ids if self.past is None else self.ids[:, -1:]
        options: dict[str, Any] = {"logits_to_keep": 1} if self.writer.takes_logits_to_keep else {}
        if self.padded:
            options["attention_mask"] = self.attention_mask
            if self.writer.takes_positions:
                options["position_ids"] = (self.attention_mask.cumsum(1) - 1).clamp(min=0)[:, -new.shape[1] :]
        if self.past is not None:
            options["past_key_values"] = self.past
        output = self.writer.model(input_ids=new, use_cache=True, **options)
        self.past = getattr(output, "past_key_values", None)
        logits: torch.Tensor = output.logits[:, -1].float()
        return logits

    def append(self, tokens: torch.Tensor) -> None:
        """Append one token to each row."""
        self.ids = torch.cat([self.ids, tokens], dim=1)
        self.attention_mask = torch.cat([self.attention_mask, torch.ones_like(tokens)], dim=1)


def cut_answer(text: str, mark: str, complete: bool) -> tuple[str, bool]:
    """Return the answer at the beginning of a text, and whether the answer ends within the text.

    An answer ends at a line break, at ``mark`` (a punctuation mark, or empty), or at the end of a sentence. Unless the
    text is ``complete``, a period at its very end does not end the answer, because "1." may continue with "5".
    """
    text = text.lstrip()
    ends = [text.index(delimiter) for delimiter in ("\n", mark) if delimiter and delimiter in text]
    for match in _SENTENCE_END.finditer(text):
        stop = match.start()
        continues = not complete or match.end() < len(text.rstrip())
        if text[stop] == "." and continues and _ABBREVIATION.search(text[:stop]):
            continue
        if match.end() < len(text) or text[stop] in "。！？" or complete:
            ends.append(stop)
            break
    answer = text[: min(ends, default=len(text))].strip()
    # A mark before the first word (an opening quote, a line of dashes) does not end the answer.
    if ends and not any(character.isalnum() for character in answer):
        return cut_answer(text[min(ends) + 1 :], mark, complete)
    return answer, bool(ends)
