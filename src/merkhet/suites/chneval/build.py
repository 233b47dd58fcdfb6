"""Drafts of chneval questions from the user's or the embedded texts, tagged senses, pairs and triples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa

from merkhet.core.errors import InputError
from merkhet.engine.study import Study
from merkhet.knowledge.store import KnowledgeBase
from merkhet.suites.chneval.options import ChnevalOptions
from merkhet.suites.chneval.questions.commonsense import commonsense_clozes, read_wordings
from merkhet.suites.chneval.questions.encyclopedia import encyclopedia_clozes
from merkhet.suites.chneval.questions.function_words import function_word_clozes
from merkhet.suites.chneval.questions.question_rows import (
    COMMONSENSE,
    ENCYCLOPEDIA,
    SEMANTIC,
    SYNTACTIC,
    DraftQuestions,
)
from merkhet.suites.chneval.questions.sentences import embedded_file
from merkhet.suites.chneval.questions.word_senses import word_sense_triples
from merkhet.suites.chneval.questions.worded_triples import (
    Triples,
    pairs_from_facts,
    read_pairs,
    read_texts,
    read_triples,
    triples_from_facts,
)


def draft_questions(study: Study, home: Path) -> DraftQuestions:
    """Draft the questions of the study's tasks from the files and the knowledge that the study names.

    If the study names neither, use the embedded files. A task without material has no questions.
    """
    return _Drafting(study, home).draft()


class _Drafting:
    """Maker of draft questions from the options and the knowledge of a study."""

    def __init__(self, study: Study, home: Path) -> None:
        self.study = study
        self.home = home
        self.options = ChnevalOptions.of(study)
        self.language = self.options.language or "zh"
        self.embedded = not study.knowledge and not self.options.has_material

    def draft(self) -> DraftQuestions:
        """Collect the draft questions of all tasks."""
        if self.embedded and self.language != "zh":
            raise InputError(
                f"the embedded material is Chinese; for {self.language!r} name files, such as "
                "--set options.text=FILE.conllu"
            )
        draft = DraftQuestions()
        for task, draft_task in (
            (SYNTACTIC, self._function_words),
            (SEMANTIC, self._senses),
            (COMMONSENSE, self._pairs),
            (ENCYCLOPEDIA, self._triples),
        ):
            if (not self.study.tasks or task in self.study.tasks) and (task_draft := draft_task()):
                draft.clozes += task_draft.clozes
                draft.triples += task_draft.triples
                draft.filters += task_draft.filters
                draft.accounts += task_draft.accounts
                draft.remarks += task_draft.remarks
        if not draft.clozes and not draft.triples:
            reason = " ".join(draft.remarks[:3]) or "they have no material for these tasks"
            raise InputError(f"no questions can be made from the study's options and knowledge: {reason}")
        return draft

    def _function_words(self) -> DraftQuestions | None:
        paths = self._paths(self.options.text, "sentences.txt")
        if not paths:
            return None
        return function_word_clozes(
            paths,
            seed=self.study.seed,
            per_word=self.options.per_word,
            max_characters=self.options.characters,
            tags=self.options.tags,
            language=self.options.language,
        )

    def _senses(self) -> DraftQuestions | None:
        path = self._path(self.options.senses, "senses.tsv")
        if path is None:
            return None
        return word_sense_triples(
            path,
            seed=self.study.seed,
            per_sense=self.options.per_sense,
            per_word=self.options.per_polysemous_word,
            language=self.language,
        )

    def _pairs(self) -> DraftQuestions | None:
        templates = self.options.templates
        wordings = read_wordings(self.home / templates if templates else None, self.language)
        path = self._path(self.options.pairs, "pairs.tsv")
        pairs = read_pairs(path) if path else self._from_knowledge(pairs_from_facts)
        if pairs is None:
            return None
        return commonsense_clozes(
            pairs,
            templates=wordings,
            language=self.language,
            seed=self.study.seed,
            characters=self.options.characters,
            ask=self.options.ask,
            per_answer=self.options.per_answer,
            per_relation=self.options.per_relation or 400,
        )

    def _triples(self) -> DraftQuestions | None:
        path, texts = self._path(self.options.triples, "triples.tsv"), self._paths(self.options.texts)
        if not path and not texts:
            return None
        triples = read_triples(path) if path else self._from_knowledge(triples_from_facts)
        if triples is None:
            return None
        return encyclopedia_clozes(
            triples,
            read_texts(texts) if texts else None,
            language=self.language,
            seed=self.study.seed,
            characters=self.options.characters,
            per_answer=self.options.per_answer,
            per_relation=self.options.per_relation or 100,
        )

    def _from_knowledge(self, make_triples: Callable[[pa.Table, pa.Table, str], Triples]) -> Triples | None:
        """Make triples from the study's knowledge with names in the study's language; None without knowledge."""
        if not self.study.knowledge:
            return None
        with KnowledgeBase.load(self.study.knowledge, self.home) as knowledge:
            return make_triples(knowledge.facts(), knowledge.names(self.language), self.language)

    def _paths(self, paths: Sequence[Path], embedded: str | None = None) -> list[Path]:
        """Return the files of an option, or the embedded file if the study names no material at all."""
        if self.embedded and embedded:
            return [embedded_file(embedded)]
        return [self.home / path for path in paths]

    def _path(self, path: Path | None, embedded: str) -> Path | None:
        return next(iter(self._paths([path] if path else [], embedded)), None)
