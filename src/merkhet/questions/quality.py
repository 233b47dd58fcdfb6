"""Quality control: filters that leave out questions by what they say, with counts of what each has left out."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from merkhet.core import SLOT
from merkhet.core.errors import InputError, did_you_mean
from merkhet.core.files import read_yaml
from merkhet.knowledge.store import KnowledgeBase

MAX_ANSWER_TOKENS = 8
"""Tokens of the longest answer that is asked for."""

_OWN_WORDS = Path(__file__).parent / "sensitive.yaml"
_WORDY = r"\p{L}\p{N}\p{M}"
_TOKEN = rf"\p{{Han}}|[{_WORDY}]+|[^{_WORDY}\s]"
_PHRASES_AT_ONCE = 400


@dataclass(frozen=True)
class Filter:
    """A filter: its name, a line about it, and which rows of a table of questions it keeps."""

    name: str
    about: str
    keep: Callable[[pa.Table], pa.Array]


def quality_filters(
    *,
    words: Mapping[str, Sequence[str]] | None = None,
    names: Collection[str] = (),
    facts: Collection[str] = (),
    tasks: Sequence[str] = (),
    longest: int = MAX_ANSWER_TOKENS,
) -> tuple[Filter, ...]:
    """The filters in the order in which they are applied: sensitive, length, self-answering, duplicates.

    ``words`` are sensitive words by reason (:func:`sensitive_words`, which is the default). ``names`` are names of
    entities of classes that are left out, matched like words; ``facts`` the ids of facts about them, which is exact and
    quick for any number of them. ``tasks`` is the order in which a prompt that stands in several tasks is kept.
    """
    by_reason = sensitive_words() if words is None else words
    phrases = sorted({*(phrase for group in by_reason.values() for phrase in group), *names})
    return (
        Filter(
            "sensitive",
            "no sensitive word in the prompt, an answer or a choice, and no entity of a class that is left out",
            lambda table: pc.invert(pc.or_(_mentions(table, phrases), _uses(table, facts))),
        ),
        Filter(
            "length",
            f"the answer asked for has at most {longest} words and punctuation marks",
            lambda table: pc.less_equal(pc.count_substring_regex(_whole(table["target"]), _TOKEN), longest),
        ),
        Filter(
            "self-answering",
            "no right answer of an open question stands in its prompt",
            _keeps_its_answer_back,
        ),
        Filter(
            "duplicates",
            "a prompt is asked once, in the first of its tasks; where its answers differ, it is not asked at all",
            lambda table: _first_of_its_prompt(table, tasks),
        ),
    )


def apply_filters(table: pa.Table, filters: Sequence[Filter]) -> tuple[pa.Table, list[dict[str, Any]]]:
    """The questions that all the filters keep, in the order given, and for every filter and task how many there were.

    The counts are rows of (filter, task, before, after) in the order of the filters; each filter sees what those
    before it have kept. Which questions are kept does not depend on their order.
    """
    tasks = sorted(pc.unique(table["task"]).to_pylist())
    counts = []
    before = _by_task(table)
    for one in filters:
        table = table.filter(one.keep(table))
        after = _by_task(table)
        for task in tasks:
            counts.append(
                {"filter": one.name, "task": task, "before": before.get(task, 0), "after": after.get(task, 0)}
            )
        before = after
    return table, counts


def facts_about_classes(knowledge: KnowledgeBase, classes: Collection[str]) -> list[str]:
    """The facts about entities of some classes, named by id, label or kind, however far below them they stand."""
    found = knowledge.query(
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
    facts: list[str] = found["fact_id"].to_pylist()
    return facts


def sensitive_words(own: Path | None = None) -> dict[str, tuple[str, ...]]:
    """Sensitive words by reason: merkhet's own, and those of a file of the same form, which adds or replaces.

    The file is YAML: under ``words`` a reason with its list of words or phrases; ``replace: true`` leaves merkhet's own
    out. Refuses unknown keys and what is no list of texts.
    """
    if own is None:
        return _read_words(_OWN_WORDS)[0]
    given, replaces = _read_words(own)
    known = {} if replaces else sensitive_words()
    return known | {reason: (*known.get(reason, ()), *words) for reason, words in given.items()}


def _read_words(path: Path) -> tuple[dict[str, tuple[str, ...]], bool]:
    content = read_yaml(path, "sensitive words")
    if not isinstance(content, dict) or not isinstance(content.get("words"), dict):
        raise InputError(f"{path}: sensitive words stand under 'words', each list of them under its reason")
    for key in content:
        if key not in ("words", "replace"):
            raise InputError(f"{path}: unknown key {key!r}; {did_you_mean(str(key), ('words', 'replace'))}")
    replaces = content.get("replace", False)
    if not isinstance(replaces, bool):
        raise InputError(f"{path}: replace is {replaces!r}, and should be true or false")
    found = {}
    for reason, words in content["words"].items():
        if not isinstance(words, list):
            raise InputError(f"{path}: under {reason!r} stands {words!r}, and should be a list of words")
        for word in words:
            if not isinstance(word, str) or not _parts(word):
                raise InputError(f"{path}: {word!r} under {reason!r} is no word or phrase; write it in quotes")
        found[str(reason)] = tuple(words)
    return found, replaces


def _mentions(table: pa.Table, phrases: Sequence[str]) -> pa.Array:
    """Which rows have one of the phrases as whole words in the prompt, an answer or a choice."""
    # Choices mostly stand in the prompt too; they are few beside prompts, and distinct texts are fewer still.
    found = _has_phrase(_whole(table["prompt"]), phrases)
    for column in ("answers", "choices"):
        lists = _whole(table[column])
        texts = pc.list_flatten(lists).dictionary_encode()
        hit = pc.take(_has_phrase(texts.dictionary, phrases), texts.indices)
        rows = pc.list_parent_indices(lists).filter(hit)
        found = pc.or_(found, _marked(table.num_rows, rows))
    return found


def _has_phrase(texts: pa.Array, phrases: Sequence[str]) -> pa.Array:
    found = pa.array(np.zeros(len(texts), dtype=np.bool_))
    written = [pattern for phrase in phrases if (pattern := _pattern(phrase))]
    for start in range(0, len(written), _PHRASES_AT_ONCE):
        either = "|".join(written[start : start + _PHRASES_AT_ONCE])
        pattern = rf"(?i)(?:^|[^{_WORDY}])(?:{either})(?:[^{_WORDY}]|$)"
        found = pc.or_(found, pc.match_substring_regex(texts, pattern))
    return found


def _parts(phrase: str) -> list[str]:
    return re.split(r"[\s\-‐‑]+", phrase.strip(" \t\n-")) if phrase.strip(" \t\n-") else []


def _pattern(phrase: str) -> str:
    """A phrase as a regular expression: its words one after the other, with white space or a hyphen between them."""
    return r"[\s\-‐‑]+".join(re.sub(r"([^\w])", r"\\\1", word) for word in _parts(phrase))


def _uses(table: pa.Table, facts: Collection[str]) -> pa.Array:
    """Which rows come from one of the facts."""
    lists = _whole(table["facts"])
    hit = pc.is_in(pc.list_flatten(lists), pa.array(sorted(facts), pa.string()))
    return _marked(table.num_rows, pc.list_parent_indices(lists).filter(hit))


def _keeps_its_answer_back(table: pa.Table) -> pa.Array:
    """Which rows have choices, or no answer that stands in the prompt as whole words (its article aside).

    Answers of one or two letters are let be: "a", "in" and "as" are symbols and words of every prompt.
    """
    before, after = _plain("split_part(prompt, $slot, 1)"), _plain("split_part(prompt, $slot, 2)")
    query = rf"""
        SELECT DISTINCT row FROM (
            SELECT row, {before} || '|' || {after} AS said,
                regexp_replace({_plain("answer")}, '^ (?:a|an|the) (.+)$', ' \1') AS answer
            FROM (SELECT row, prompt, unnest(answers) AS answer FROM questions WHERE choices IS NULL)
        ) WHERE (length(answer) > 4 OR regexp_matches(answer, '^ \d+ $')) AND contains(said, answer)
    """
    given_away = _rows(table, ["prompt", "answers", "choices"], query, {"slot": SLOT})
    return pc.invert(_marked(table.num_rows, given_away))


def _plain(text: str) -> str:
    """SQL for a text as its words in lower case, one blank before, between and after them."""
    return rf"regexp_replace(' ' || lower({text}) || ' ', '[^{_WORDY}]+', ' ', 'g')"


def _first_of_its_prompt(table: pa.Table, tasks: Sequence[str]) -> pa.Array:
    """Which rows are the first with their prompt, by task and id, and have the same answers as all others with it.

    Prompts that differ in case alone are the same, as they are to many models: "The symbol of [MASK] is t" is not asked
    where there is one for "T" with another answer.
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
    kept = _rows(table, ["task", "question_id", "prompt", "answers"], query, {"tasks": list(tasks)})
    return _marked(table.num_rows, kept)


def _rows(table: pa.Table, columns: list[str], query: str, parameters: Mapping[str, Any]) -> pa.Array:
    """The numbers of the rows that a query over ``questions`` selects."""
    numbered = table.select(columns).append_column("row", pa.array(np.arange(table.num_rows)))
    with duckdb.connect() as connection:
        connection.register("questions", numbered)
        return _whole(connection.sql(query, params=dict(parameters)).to_arrow_table()["row"])


def _marked(count: int, rows: pa.Array) -> pa.Array:
    """A mask that is true at the rows named."""
    return pc.is_in(pa.array(np.arange(count)), pc.cast(rows, pa.int64()))


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _by_task(table: pa.Table) -> dict[str, int]:
    found = pc.value_counts(table["task"])
    return dict(zip(found.field("values").to_pylist(), found.field("counts").to_pylist(), strict=True))
