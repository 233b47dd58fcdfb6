"""Quality filters for questions, with counts of the questions that each filter removes."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from merkhet.core import SLOT
from merkhet.core.errors import FaultList, InputError, did_you_mean
from merkhet.core.files import read_yaml
from merkhet.knowledge.memory_limit import open_in_memory
from merkhet.knowledge.store import KnowledgeBase

MAX_ANSWER_TOKENS = 8

_DEFAULT_WORDS = Path(__file__).parent / "sensitive.yaml"
_WORD_CHARACTERS = r"\p{L}\p{N}\p{M}"
_TOKEN = rf"\p{{Han}}|[{_WORD_CHARACTERS}]+|[^{_WORD_CHARACTERS}\s]"
_PHRASES_PER_PATTERN = 400


@dataclass(frozen=True)
class Filter:
    """Quality filter for questions."""

    name: str
    about: str
    """One-line description."""
    keep: Callable[[pa.Table], pa.Array]
    """Function that returns a Boolean mask of the questions to keep."""


def quality_filters(
    *,
    words: Mapping[str, Sequence[str]] | None = None,
    names: Collection[str] = (),
    facts: Collection[str] = (),
    tasks: Sequence[str] = (),
    longest: int = MAX_ANSWER_TOKENS,
    revealing: Sequence[str] = (),
) -> tuple[Filter, ...]:
    """Return the quality filters in their order of application: sensitive, length, self-answering, duplicates.

    Args:
        words: Sensitive words by reason; by default those of :func:`sensitive_words`.
        names: Names of excluded entities, matched like sensitive words.
        facts: Ids of facts about excluded entities; questions from these facts are removed.
        tasks: Tasks in order of priority: a prompt that occurs in several tasks is kept in the first.
        longest: Maximum number of tokens in the target answer.
        revealing: Tasks whose prompts may contain the answer.
    """
    by_reason = sensitive_words() if words is None else words
    phrases = sorted({*(phrase for group in by_reason.values() for phrase in group), *names})
    return (
        Filter(
            "sensitive",
            "no sensitive word in the prompt, an answer or a choice, and no entity of a class that is left out",
            lambda table: pc.invert(pc.or_(_mentions(table, phrases), _uses_facts(table, facts))),
        ),
        Filter(
            "length",
            f"the answer asked for has at most {longest} words and punctuation marks",
            lambda table: pc.less_equal(pc.count_substring_regex(_combined(table["target"]), _TOKEN), longest),
        ),
        Filter(
            "self-answering",
            "no right answer of an open question occurs in its prompt",
            lambda table: pc.or_(_hides_answer(table), pc.is_in(table["task"], pa.array(revealing, pa.string()))),
        ),
        Filter(
            "duplicates",
            "a prompt is asked once, in the first of its tasks; where its answers differ, it is not asked at all",
            lambda table: _is_first_of_prompt(table, tasks),
        ),
    )


def apply_filters(
    table: pa.Table, filters: Sequence[Filter], on_removed: Callable[[str, pa.Table], None] | None = None
) -> tuple[pa.Table, list[dict[str, Any]]]:
    """Apply filters one after the other.

    Args:
        on_removed: Function that receives the name of each filter and the questions that it removes.

    Returns:
        The remaining questions, which do not depend on the order of the input, and a count for each filter and task
        with the keys filter, task, before and after.
    """
    counts: list[dict[str, Any]] = []
    tasks = sorted(pc.unique(table["task"]).to_pylist())
    for quality_filter in filters:
        mask = quality_filter.keep(table)
        remaining = table.filter(mask)
        if on_removed:
            on_removed(quality_filter.name, table.filter(pc.invert(mask)))
        counts += filter_counts(quality_filter.name, table, remaining, tasks)
        table = remaining
    return table, counts


def filter_counts(
    name: str, table: pa.Table, remaining: pa.Table, tasks: Sequence[str] | None = None
) -> list[dict[str, Any]]:
    """Count the questions of each task before and after a filter, for the data card."""
    before, after = (count_values(questions["task"]) for questions in (table, remaining))
    return [
        {"filter": name, "task": task, "before": before.get(task, 0), "after": after.get(task, 0)}
        for task in (sorted(before) if tasks is None else tasks)
    ]


def count_values(column: pa.ChunkedArray) -> dict[str, int]:
    """Count how often each value of a column occurs."""
    counts = pc.value_counts(column)
    return dict(zip(counts.field("values").to_pylist(), counts.field("counts").to_pylist(), strict=True))


def facts_about_classes(knowledge: KnowledgeBase, classes: Collection[str]) -> list[str]:
    """Return the ids of facts about entities of ``classes`` or their subclasses.

    A class is given by its id or label, or as the kind of its entities.
    """
    table = knowledge.query(
        """with recursive chosen as (
            select entity from names
            where list_contains($classes, lower(label)) or list_contains($classes, lower(entity))
        ), below(entity) as (
            select entity from chosen
            union
            select f.subject from below join facts f on f.object = below.entity
            where f.predicate in ('rdf:type', 'rdfs:subClassOf', 'P31', 'P279', 'is-a', 'IsA')
        ), concerned as (
            select entity from below union select entity from names where list_contains($classes, lower(kind))
        ) select fact_id from facts where subject in (from concerned) or object in (from concerned) order by fact_id""",
        {"classes": [name.lower() for name in classes]},
    )
    facts: list[str] = table["fact_id"].to_pylist()
    return facts


def sensitive_words(path: Path | None = None) -> dict[str, tuple[str, ...]]:
    """Return the built-in sensitive words by reason, extended or replaced by those of a file.

    Args:
        path: A YAML file with lists of words or phrases by reason under ``words``; ``replace: true`` drops the
            built-in words.

    Raises:
        InputError: The file has an unknown key, or anything but lists of texts.
    """
    if path is None:
        return _read_words(_DEFAULT_WORDS)[0]
    added, replaces = _read_words(path)
    known = {} if replaces else sensitive_words()
    return known | {reason: (*known.get(reason, ()), *words) for reason, words in added.items()}


def _read_words(path: Path) -> tuple[dict[str, tuple[str, ...]], bool]:
    content = read_yaml(path, "sensitive words")
    if not isinstance(content, dict) or not isinstance(content.get("words"), dict):
        raise InputError(f"{path}: 'words' must map each reason to a list of sensitive words")
    faults = FaultList()
    for key in content:
        if key not in ("words", "replace"):
            faults.add(f"{path}: unknown key {key!r}; {did_you_mean(str(key), ('words', 'replace'))}")
    replaces = content.get("replace", False)
    if not isinstance(replaces, bool):
        faults.add(f"{path}: replace must be true or false, got {replaces!r}")
    by_reason = {}
    for reason, words in content["words"].items():
        if not isinstance(words, list):
            faults.add(f"{path}: {reason!r} must be a list of words, got {words!r}")
            continue
        for word in words:
            if not isinstance(word, str) or not _split_words(word):
                faults.add(f"{path}: {word!r} under {reason!r} is not a word or phrase; write it in quotes")
        by_reason[str(reason)] = tuple(words)
    faults.refuse()
    return by_reason, replaces


def _mentions(table: pa.Table, phrases: Sequence[str]) -> pa.Array:
    """Return a mask of the questions that contain a phrase, as whole words, in the prompt, an answer or a choice."""
    # Only distinct answers and choices are searched, because most of them occur many times.
    mentioned = _has_phrase(_combined(table["prompt"]), phrases)
    for column in ("answers", "choices"):
        lists = _combined(table[column])
        texts = pc.list_flatten(lists).dictionary_encode()
        hit = pc.take(_has_phrase(texts.dictionary, phrases), texts.indices)
        rows = pc.list_parent_indices(lists).filter(hit)
        mentioned = pc.or_(mentioned, _mask(table.num_rows, rows))
    return mentioned


def _has_phrase(texts: pa.Array, phrases: Sequence[str]) -> pa.Array:
    matches = pa.array(np.zeros(len(texts), dtype=np.bool_))
    patterns = [pattern for phrase in phrases if (pattern := _pattern(phrase))]
    for start in range(0, len(patterns), _PHRASES_PER_PATTERN):
        alternatives = "|".join(patterns[start : start + _PHRASES_PER_PATTERN])
        pattern = rf"(?i)(?:^|[^{_WORD_CHARACTERS}])(?:{alternatives})(?:[^{_WORD_CHARACTERS}]|$)"
        matches = pc.or_(matches, pc.match_substring_regex(texts, pattern))
    return matches


def _split_words(phrase: str) -> list[str]:
    return re.split(r"[\s\-‐‑]+", phrase.strip(" \t\n-")) if phrase.strip(" \t\n-") else []


def _pattern(phrase: str) -> str:
    """Return a regular expression for a phrase: its words, separated by white space or a hyphen."""
    return r"[\s\-‐‑]+".join(re.sub(r"([^\w])", r"\\\1", word) for word in _split_words(phrase))


def _uses_facts(table: pa.Table, facts: Collection[str]) -> pa.Array:
    """Return a mask of the questions that are made from one of the facts."""
    lists = _combined(table["facts"])
    hit = pc.is_in(pc.list_flatten(lists), pa.array(sorted(facts), pa.string()))
    return _mask(table.num_rows, pc.list_parent_indices(lists).filter(hit))


def _hides_answer(table: pa.Table) -> pa.Array:
    """Return a mask of the questions whose prompt contains no right answer; questions with choices are all kept.

    Answers are matched as whole words without a leading article. Answers of one or two letters are ignored, because
    "a", "in" and "as" are symbols of elements, but also frequent words in prompts.
    """
    head, tail = _normalized_sql("split_part(prompt, $slot, 1)"), _normalized_sql("split_part(prompt, $slot, 2)")
    query = rf"""
        SELECT DISTINCT row FROM (
            SELECT row, {head} || '|' || {tail} AS said,
                regexp_replace({_normalized_sql("answer")}, '^ (?:a|an|the) (.+)$', ' \1') AS answer
            FROM (SELECT row, prompt, unnest(answers) AS answer FROM questions WHERE choices IS NULL)
        ) WHERE (length(answer) > 4 OR regexp_matches(answer, '^ \d+ $')) AND contains(said, answer)
    """
    revealed = _select_rows(table, ["prompt", "answers", "choices"], query, {"slot": SLOT})
    return pc.invert(_mask(table.num_rows, revealed))


def _normalized_sql(text: str) -> str:
    """Return SQL that lower-cases a text and separates and surrounds its words by single blanks."""
    return rf"regexp_replace(' ' || lower({text}) || ' ', '[^{_WORD_CHARACTERS}]+', ' ', 'g')"


def _is_first_of_prompt(table: pa.Table, tasks: Sequence[str]) -> pa.Array:
    """Return a mask that keeps one question per prompt, and none if questions with this prompt have different answers.

    The question of the first task in ``tasks`` is kept; ties are broken by task name and id. Case is ignored, because
    many models ignore it: "The symbol of [MASK] is t" is dropped if the prompt with "T" has another answer.
    """
    query = r"""
        SELECT row FROM (
            SELECT row, min(answers) OVER same AS least, max(answers) OVER same AS most,
                row_number() OVER (same ORDER BY place, task, question_id) AS number
            FROM (
                SELECT row, task, question_id,
                    coalesce(list_position($tasks, task), 1000000) AS place,
                    trim(regexp_replace(lower(prompt), '\s+', ' ', 'g')) AS prompt,
                    list_sort(list_distinct(list_transform(answers, lambda answer: lower(answer)))) AS answers
                FROM questions
            ) WINDOW same AS (PARTITION BY prompt)
        ) WHERE number = 1 AND least = most
    """
    first_rows = _select_rows(table, ["task", "question_id", "prompt", "answers"], query, {"tasks": list(tasks)})
    return _mask(table.num_rows, first_rows)


def _select_rows(table: pa.Table, columns: list[str], query: str, parameters: Mapping[str, Any]) -> pa.Array:
    """Return the row numbers that an SQL query over the table ``questions`` selects."""
    numbered = table.select(columns).append_column("row", pa.array(np.arange(table.num_rows)))
    with open_in_memory() as connection:
        connection.register("questions", numbered)
        return _combined(connection.sql(query, params=dict(parameters)).to_arrow_table()["row"])


def _mask(count: int, rows: pa.Array) -> pa.Array:
    """Return a Boolean mask of length ``count`` that is true at the row numbers ``rows``."""
    return pc.is_in(pa.array(np.arange(count)), pc.cast(rows, pa.int64()))


def _combined(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
