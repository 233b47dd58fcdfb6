"""Questions of chneval from texts, tagged senses, pairs and triples: the user's, or the embedded ones."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from merkhet.core.errors import InputError
from merkhet.core.files import path_exists
from merkhet.engine.study import Study
from merkhet.knowledge.store import KnowledgeBase
from merkhet.suites.chneval.options import read_caps
from merkhet.suites.chneval.questions.commonsense import commonsense_clozes, read_wordings
from merkhet.suites.chneval.questions.encyclopedia import encyclopedia_clozes
from merkhet.suites.chneval.questions.function_words import function_word_clozes
from merkhet.suites.chneval.questions.question_rows import (
    COMMONSENSE,
    ENCYCLOPEDIA,
    SEMANTIC,
    SYNTACTIC,
    TASKS,
    DraftQuestions,
)
from merkhet.suites.chneval.questions.sentences import embedded_file
from merkhet.suites.chneval.questions.word_pairs import pairs_from_facts, read_pairs
from merkhet.suites.chneval.questions.word_senses import word_sense_triples
from merkhet.suites.chneval.questions.worded_triples import read_texts, read_triples, triples_from_facts


def draft_questions(study: Study, home: Path) -> DraftQuestions:
    """Draft the questions of the study's tasks from its files and knowledge, or from the embedded files if it has none.

    A task that nothing was given for has no questions.
    """
    return _Drafting(study, home).draft()


class _Drafting:
    """The options of a study and the files they name."""

    def __init__(self, study: Study, home: Path) -> None:
        self.study = study
        self.home = home
        self.options = study.options
        self.caps = read_caps(study.options)
        self.language = str(study.options.get("language") or "zh")
        material = ("text", "senses", "pairs", "triples", "texts")
        self.embedded = not study.knowledge and not any(study.options.get(name) for name in material)

    def draft(self) -> DraftQuestions:
        """Collect the questions of all tasks."""
        makers = {
            SYNTACTIC: self._function_words,
            SEMANTIC: self._senses,
            COMMONSENSE: self._pairs,
            ENCYCLOPEDIA: self._triples,
        }
        if self.embedded and self.language != "zh":
            raise InputError(
                f"the embedded material is Chinese; for {self.language!r} give files of your own, such as "
                "--set options.text=FILE.conllu"
            )
        tasks = self.study.tasks or TASKS
        draft = DraftQuestions()
        for task in (task for task in TASKS if task in tasks):
            task_draft = makers[task]()
            if task_draft is not None:
                draft.clozes += task_draft.clozes
                draft.triples += task_draft.triples
                draft.filters += task_draft.filters
                draft.remarks += task_draft.remarks
        if not draft.clozes and not draft.triples:
            reason = " ".join(draft.remarks[:3]) or "they name nothing for these tasks"
            raise InputError(f"no questions can be made from the study's options and knowledge: {reason}")
        return draft

    def _function_words(self) -> DraftQuestions | None:
        paths = self._paths("text", "sentences.txt")
        if not paths:
            return None
        return function_word_clozes(
            paths,
            seed=self.study.seed,
            per_word=self.caps.per_word,
            max_characters=self.caps.characters,
            tags=self.options.get("tags"),
            language=self.options.get("language"),
        )

    def _senses(self) -> DraftQuestions | None:
        paths = self._paths("senses", "senses.tsv")
        if not paths:
            return None
        return word_sense_triples(
            self._single_path(paths, "senses"),
            seed=self.study.seed,
            per_sense=self.caps.per_sense,
            per_word=self.caps.per_polysemous_word,
            language=self.language,
        )

    def _pairs(self) -> DraftQuestions | None:
        paths = self._paths("pairs", "pairs.tsv")
        templates = self.options.get("templates")
        wordings = read_wordings(self.home / templates if templates else None, self.language)
        if paths:
            pairs = read_pairs(self._single_path(paths, "pairs"))
        elif self.study.knowledge:
            pairs = pairs_from_facts(*self._tables(), self.language)
        else:
            return None
        return commonsense_clozes(
            pairs,
            templates=wordings,
            language=self.language,
            seed=self.study.seed,
            characters=self.caps.characters,
            ask=str(self.options.get("ask") or "end"),
            per_answer=self.caps.per_answer,
            per_relation=self.caps.per_relation or 400,
        )

    def _triples(self) -> DraftQuestions | None:
        paths, texts = self._paths("triples", "triples.tsv"), self._paths("texts", None)
        if paths:
            triples = read_triples(self._single_path(paths, "triples"))
        elif self.study.knowledge and texts:
            triples = triples_from_facts(*self._tables(), self.language)
        else:
            return None
        return encyclopedia_clozes(
            triples,
            read_texts(texts) if texts else None,
            language=self.language,
            seed=self.study.seed,
            characters=self.caps.characters,
            per_answer=self.caps.per_answer,
            per_relation=self.caps.per_relation or 100,
        )

    def _tables(self) -> tuple[pa.Table, pa.Table]:
        """Return the facts of the study's knowledge, and the names in its language."""
        with KnowledgeBase.load(self.study.knowledge, self.home) as knowledge:
            return knowledge.facts(), knowledge.names(self.language)

    def _paths(self, option: str, embedded: str | None) -> list[Path]:
        """Return the files that an option names, or the embedded one if the study names no material at all."""
        value = self.options.get(option)
        if value:
            paths = [self.home / str(name) for name in (value if isinstance(value, list) else [value])]
            for path in paths:
                if not path_exists(path):
                    raise InputError(f"there is no file or folder {path} (options.{option})")
            return paths
        return [embedded_file(embedded)] if self.embedded and embedded else []

    @staticmethod
    def _single_path(paths: list[Path], option: str) -> Path:
        if len(paths) > 1:
            raise InputError(f"options.{option} must name one file, got {len(paths)}; join them to one")
        return paths[0]
