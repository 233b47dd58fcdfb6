"""Extraction of entity names from prompts, as the words that vary between prompts of one template."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from merkhet.analysis._corpus_index import split_words
from merkhet.core import SLOT

_GAP = ""
"""Placeholder of the slot or of a removed choice; no name extends across it."""
_ARTICLES = frozenset({"a", "an", "the"})
_WITHIN_NAMES = _ARTICLES | {"of", "and", "in", "or", "to", "for", "by", "with", "from", "on", "at"}
"""Words that may occur inside a name, but not as its first or last word."""
_COMMON_WORDS = """
    about after all also among any are as be because been before being between both but called can did do does done
    each every had has have he her his how if into is it its known like made make many may more most much named no nor
    not often one only other our out over she so some something such than that their them then there these they this
    those through under until up usually was we were what when where which who whom whose why will within would you
    your true false yes statement following choose belongs gap right answer outlier
"""
_COMMON = frozenset(_COMMON_WORDS.split())
_FRAME_SHARE = 0.08
"""Minimum share of prompts that contain a frame word, averaged over relations."""

Row = Mapping[str, Any]
Kind = tuple[str, bool]
"""Kind of question: its task, and whether its prompt shows the choices."""


def names_in_prompts(rows: Sequence[Row]) -> dict[str, tuple[str, ...]]:
    """Extract the names in each question's prompt, as phrases of normalized words.

    Words that occur in all prompts of a template, in any task, are not names. Neither are common prefixes and suffixes
    of prompts of one form, nor the frame words that a task puts around its sentences ("Is it true that …"). Runs of the
    remaining words are names.

    Choices in a prompt are removed first, and count as names only if no other name is found. The prompts of a template
    with a single fact cannot be compared, so all words except very common ones count as names.
    """
    tokens = {row["question_id"]: _prompt_words(row) for row in rows}
    showing_choices = {row["question_id"] for row in rows if _shows_choices(row, tokens[row["question_id"]])}
    tokens |= {row["question_id"]: _without_choices(row) for row in rows if row["question_id"] in showing_choices}
    kinds = {row["question_id"]: (str(row["task"]), row["question_id"] in showing_choices) for row in rows}
    frames = _frame_words(rows, tokens, kinds)
    templates: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        templates[row["template"] or ""].append(row)
    names_by_id = {}
    for template, members in templates.items():
        several = bool(template) and len({row.get("qset") or row["prompt"] for row in members}) > 1
        shared = _common_words(tokens[row["question_id"]] for row in members) if several else _WITHIN_NAMES
        forms: dict[tuple[Kind, frozenset[str]], list[Row]] = defaultdict(list)
        for row in members:
            kind = kinds[row["question_id"]]
            forms[kind, frozenset(frames[kind].intersection(tokens[row["question_id"]]))].append(row)
        for (kind, _), same_form in forms.items():
            word_lists = [tokens[row["question_id"]] for row in same_form]
            if several and len({row.get("qset") or row["prompt"] for row in same_form}) > 1:
                word_lists = _strip_common_ends(word_lists)
                separators = {_GAP, *frames[kind], *_common_words(word_lists)}
            else:
                separators = {_GAP, *frames[kind], *shared, *_COMMON}
            for row, word_list in zip(same_form, word_lists, strict=True):
                names = _join_names(word_list, separators)
                if row["question_id"] in showing_choices and not (several and names):
                    names = [plain_name(choice) for choice in row["choices"]]
                names_by_id[row["question_id"]] = tuple(dict.fromkeys(names))
    return names_by_id


def plain_name(text: str) -> str:
    """Normalize a name and drop its article: "an alkali metal" becomes ``alkali metal``."""
    return " ".join(_drop_article(split_words(text)))


def _drop_article(phrase_words: list[str]) -> list[str]:
    return phrase_words[1:] if len(phrase_words) > 1 and phrase_words[0] in _ARTICLES else phrase_words


def _frame_words(
    rows: Sequence[Row], tokens: Mapping[str, list[str]], kinds: Mapping[str, Kind]
) -> dict[Kind, set[str]]:
    """Find the frame words of each kind of question.

    Unlike names, frame words vary within the templates of many relations and are rare in questions of other kinds.
    """
    by_kind: dict[Kind, dict[str, dict[str, list[set[str]]]]] = defaultdict(
        lambda: defaultdict(lambda: defaultdict(list))
    )
    for row in rows:
        template = row["template"] or ""
        word_sets = by_kind[kinds[row["question_id"]]][template.partition("/")[0]][template]
        word_sets.append(set(tokens[row["question_id"]]))
    sizes = Counter(kinds.values())
    occurrences: dict[Kind, Counter[str]] = {kind: Counter() for kind in sizes}
    for row in rows:
        answers = {word for answer in row["answers"] for word in split_words(answer)}
        occurrences[kinds[row["question_id"]]].update(answers.union(tokens[row["question_id"]]))
    everywhere = sum(occurrences.values(), Counter[str]())
    frames: dict[Kind, set[str]] = {}
    for kind, relations in by_kind.items():
        elsewhere = len(rows) - sizes[kind]
        frames[kind] = {
            word
            for word, share in _varying_words(list(relations.values())).items()
            if share >= _FRAME_SHARE
            and word not in _WITHIN_NAMES
            and share * elsewhere > 2 * (everywhere[word] - occurrences[kind][word])
        }
    return frames


def _varying_words(relations: Sequence[Mapping[str, Sequence[set[str]]]]) -> dict[str, float]:
    """Compute the share of prompts that contain each varying word.

    A word varies if only some prompts of a template contain it. All relations have the same weight, and words that vary
    in fewer than three relations are skipped.
    """
    total: dict[str, float] = defaultdict(float)
    spread: Counter[str] = Counter()
    repeated = [[texts for texts in templates.values() if len(texts) > 1] for templates in relations]
    repeated = [templates for templates in repeated if templates]
    for templates in repeated:
        shares: dict[str, float] = defaultdict(float)
        for texts in templates:
            for word, count in Counter(word for text in texts for word in text).items():
                if count < len(texts):
                    shares[word] += count / len(texts) / len(templates)
        spread.update(shares.keys())
        for word, share in shares.items():
            total[word] += share / len(repeated)
    return {word: share for word, share in total.items() if spread[word] > 2}


def _common_words(texts: Iterable[Collection[str]]) -> set[str]:
    return set.intersection(*(set(text) for text in texts))


def _prompt_words(row: Row) -> list[str]:
    prefix, _, suffix = row["prompt"].partition(SLOT)
    return [*split_words(prefix), _GAP, *split_words(suffix)]


def _shows_choices(row: Row, prompt: Sequence[str]) -> bool:
    """Return whether the prompt contains all choices of the question."""
    return bool(row["choices"]) and all(
        _find_phrase(prompt, _drop_article(split_words(choice))) for choice in row["choices"]
    )


def _without_choices(row: Row) -> list[str]:
    tokens = _prompt_words(row)
    for choice in sorted((_drop_article(split_words(choice)) for choice in row["choices"]), key=len, reverse=True):
        for start in reversed(_find_phrase(tokens, choice)):
            tokens[start : start + len(choice)] = [_GAP]
    return [token for index, token in enumerate(tokens) if token or not index or tokens[index - 1]]


def _find_phrase(tokens: Sequence[str], phrase: Sequence[str]) -> list[int]:
    """Return the start indices of the non-overlapping occurrences of a phrase."""
    starts: list[int] = []
    size = len(phrase)
    for start in range(len(tokens) - size + 1) if phrase else ():
        if tokens[start : start + size] == phrase and (not starts or start >= starts[-1] + size):
            starts.append(start)
    return starts


def _strip_common_ends(texts: Sequence[list[str]]) -> list[list[str]]:
    """Strip the prefix and the suffix that all texts share."""
    shortest = min(len(tokens) for tokens in texts)
    first = next((i for i in range(shortest) if len({tokens[i] for tokens in texts}) > 1), shortest)
    rest = shortest - first
    last = next((i for i in range(rest) if len({tokens[-1 - i] for tokens in texts}) > 1), rest)
    return [tokens[first : len(tokens) - last] for tokens in texts]


def _join_names(tokens: Sequence[str], separators: Collection[str]) -> list[str]:
    """Join the words between separators to names; drop articles and prepositions at either end of a name."""
    runs: list[list[str]] = [[]]
    for token in tokens:
        if token in separators:
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
