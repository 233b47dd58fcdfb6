"""The names in a prompt, found without knowing them: what changes from prompt to prompt of one template."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from merkhet.analysis._corpus_index import split_words
from merkhet.core import SLOT

_BREAK = ""
"""Stands where the slot or a choice was: no name runs over it."""
_ARTICLES = frozenset({"a", "an", "the"})
_WITHIN_NAMES = _ARTICLES | {"of", "and", "in", "or", "to", "for", "by", "with", "from", "on", "at"}
"""Words that names have within them, but neither begin nor end with."""
_COMMON_WORDS = """
    about after all also among any are as be because been before being between both but called can did do does done
    each every had has have he her his how if into is it its known like made make many may more most much named no nor
    not often one only other our out over she so some something such than that their them then there these they this
    those through under until up usually was we were what when where which who whom whose why will within would you
    your true false yes statement following choose belongs gap right answer outlier
"""
_COMMON = frozenset(_COMMON_WORDS.split())
_FRAME = 0.08
"""The least share of a kind's prompts, all its relations weighing the same, that have a word of a frame."""

Row = Mapping[str, Any]
Kind = tuple[str, bool]
"""A task, and whether the choices stand in the prompt."""


def names_in_prompts(rows: Sequence[Row]) -> dict[str, tuple[str, ...]]:
    """The names that each question's prompt holds, as phrases of normalised words.

    A word that occurs in all prompts of a template, whatever the task, is the template's; so is what all prompts of one
    form begin and end with, and so are the words of the frames that a task puts around its sentences ("Is it true
    that …"). What is left is names, adjacent words being one. Choices that stand in a prompt are taken out before; they
    are the names only if nothing else is. Of a template with a single fact there is nothing to learn: there, all but
    very common words count as names.
    """
    tokens = {row["question_id"]: _prompt(row) for row in rows}
    offering = {row["question_id"] for row in rows if _offers(row, tokens[row["question_id"]])}
    tokens |= {row["question_id"]: _without_choices(row) for row in rows if row["question_id"] in offering}
    kinds = {row["question_id"]: (str(row["task"]), row["question_id"] in offering) for row in rows}
    frames = _frame_words(rows, tokens, kinds)
    templates: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        templates[row["template"] or ""].append(row)
    found = {}
    for template, members in templates.items():
        several = bool(template) and len({row.get("qset") or row["prompt"] for row in members}) > 1
        shared = _shared(tokens[row["question_id"]] for row in members) if several else _WITHIN_NAMES
        forms: dict[tuple[Kind, frozenset[str]], list[Row]] = defaultdict(list)
        for row in members:
            kind = kinds[row["question_id"]]
            forms[kind, frozenset(frames[kind].intersection(tokens[row["question_id"]]))].append(row)
        for (kind, _), alike in forms.items():
            texts = [tokens[row["question_id"]] for row in alike]
            if several and len({row.get("qset") or row["prompt"] for row in alike}) > 1:
                texts = _middles(texts)
                apart = {_BREAK, *frames[kind], *_shared(texts)}
            else:
                apart = {_BREAK, *frames[kind], *shared, *_COMMON}
            for row, text in zip(alike, texts, strict=True):
                names = _runs(text, apart)
                if row["question_id"] in offering and not (several and names):
                    names = [plain_name(choice) for choice in row["choices"]]
                found[row["question_id"]] = tuple(dict.fromkeys(names))
    return found


def plain_name(text: str) -> str:
    """A name's normalised words without the article before them: ``alkali metal`` for "an alkali metal"."""
    return " ".join(_bare(split_words(text)))


def _bare(found: list[str]) -> list[str]:
    return found[1:] if len(found) > 1 and found[0] in _ARTICLES else found


def _frame_words(
    rows: Sequence[Row], tokens: Mapping[str, list[str]], kinds: Mapping[str, Kind]
) -> dict[Kind, set[str]]:
    """For each kind of question the words that come and go within the templates of many relations, and that are rare
    in questions of other kinds: names are there too, frames are not."""
    by_kind: dict[Kind, dict[str, dict[str, list[set[str]]]]] = defaultdict(
        lambda: defaultdict(lambda: defaultdict(list))
    )
    for row in rows:
        template = row["template"] or ""
        texts = by_kind[kinds[row["question_id"]]][template.partition("/")[0]][template]
        texts.append(set(tokens[row["question_id"]]))
    sizes = Counter(kinds.values())
    seen: dict[Kind, Counter[str]] = {kind: Counter() for kind in sizes}
    for row in rows:
        answers = {word for answer in row["answers"] for word in split_words(answer)}
        seen[kinds[row["question_id"]]].update(answers.union(tokens[row["question_id"]]))
    everywhere = sum(seen.values(), Counter[str]())
    found: dict[Kind, set[str]] = {}
    for kind, relations in by_kind.items():
        elsewhere = len(rows) - sizes[kind]
        found[kind] = {
            word
            for word, share in _coming_and_going(list(relations.values())).items()
            if share >= _FRAME
            and word not in _WITHIN_NAMES
            and share * elsewhere > 2 * (everywhere[word] - seen[kind][word])
        }
    return found


def _coming_and_going(relations: Sequence[Mapping[str, Sequence[set[str]]]]) -> dict[str, float]:
    """The share of prompts with a word that only some prompts of a template have, all relations weighing the same.

    Words that do so in fewer than three relations are left out.
    """
    total: dict[str, float] = defaultdict(float)
    spread: Counter[str] = Counter()
    repeated = [[texts for texts in one.values() if len(texts) > 1] for one in relations]
    repeated = [templates for templates in repeated if templates]
    for templates in repeated:
        here: dict[str, float] = defaultdict(float)
        for texts in templates:
            for word, count in Counter(word for text in texts for word in text).items():
                if count < len(texts):
                    here[word] += count / len(texts) / len(templates)
        spread.update(here.keys())
        for word, share in here.items():
            total[word] += share / len(repeated)
    return {word: share for word, share in total.items() if spread[word] > 2}


def _shared(texts: Iterable[Collection[str]]) -> set[str]:
    return set.intersection(*(set(text) for text in texts))


def _prompt(row: Row) -> list[str]:
    before, _, after = row["prompt"].partition(SLOT)
    return [*split_words(before), _BREAK, *split_words(after)]


def _offers(row: Row, prompt: Sequence[str]) -> bool:
    """Whether all choices stand in the prompt."""
    return bool(row["choices"]) and all(_places(prompt, _bare(split_words(choice))) for choice in row["choices"])


def _without_choices(row: Row) -> list[str]:
    tokens = _prompt(row)
    for choice in sorted((_bare(split_words(choice)) for choice in row["choices"]), key=len, reverse=True):
        for start in reversed(_places(tokens, choice)):
            tokens[start : start + len(choice)] = [_BREAK]
    return [token for place, token in enumerate(tokens) if token or not place or tokens[place - 1]]


def _places(tokens: Sequence[str], phrase: Sequence[str]) -> list[int]:
    """Where a phrase begins, places that overlap left out."""
    found: list[int] = []
    size = len(phrase)
    for start in range(len(tokens) - size + 1) if phrase else ():
        if tokens[start : start + size] == phrase and (not found or start >= found[-1] + size):
            found.append(start)
    return found


def _middles(texts: Sequence[list[str]]) -> list[list[str]]:
    """Each text without what all begin with and what all end with."""
    shortest = min(len(tokens) for tokens in texts)
    first = next((i for i in range(shortest) if len({tokens[i] for tokens in texts}) > 1), shortest)
    rest = shortest - first
    last = next((i for i in range(rest) if len({tokens[-1 - i] for tokens in texts}) > 1), rest)
    return [tokens[first : len(tokens) - last] for tokens in texts]


def _runs(tokens: Sequence[str], apart: Collection[str]) -> list[str]:
    """Adjacent words that are not ``apart``, joined; small words at either end are dropped."""
    runs: list[list[str]] = [[]]
    for token in tokens:
        if token in apart:
            runs.append([])
        else:
            runs[-1].append(token)
    names = []
    for run in runs:
        while run and run[0] in _WITHIN_NAMES:
            run = run[1:]
        while run and run[-1] in _WITHIN_NAMES:
            run = run[:-1]
        names += [" ".join(run)] if run else []
    return list(dict.fromkeys(names))
