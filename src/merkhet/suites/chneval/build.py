"""What chneval makes questions of: texts, tagged senses, pairs and triples that are given, or the embedded ones."""

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
    Gathered,
)
from merkhet.suites.chneval.questions.sentences import own_material
from merkhet.suites.chneval.questions.word_pairs import pairs_of, read_pairs
from merkhet.suites.chneval.questions.word_senses import word_sense_triples
from merkhet.suites.chneval.questions.worded_triples import read_texts, read_triples, triples_of


def gather(study: Study, home: Path) -> Gathered:
    """Questions of every task that is wanted and that something was given for; without anything, the embedded ones."""
    return _Workshop(study, home).gather()


class _Workshop:
    """The options of a study, with what they name found."""

    def __init__(self, study: Study, home: Path) -> None:
        self.study = study
        self.home = home
        self.options = study.options
        self.caps = read_caps(study.options)
        self.language = str(study.options.get("language") or "zh")
        given = ("text", "senses", "pairs", "triples", "texts")
        self.embedded = not study.knowledge and not any(study.options.get(name) for name in given)

    def gather(self) -> Gathered:
        """What the makers of all tasks give, one after another."""
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
        wanted = self.study.tasks or TASKS
        together = Gathered()
        for task in (task for task in TASKS if task in wanted):
            made = makers[task]()
            if made is not None:
                together.clozes += made.clozes
                together.triples += made.triples
                together.filters += made.filters
                together.remarks += made.remarks
        if not together.clozes and not together.triples:
            raise InputError(
                f"no questions can be made of what was given: {' '.join(together.remarks[:3]) or 'nothing'}"
            )
        return together

    def _function_words(self) -> Gathered | None:
        places = self._places("text", "sentences.txt")
        if not places:
            return None
        return function_word_clozes(
            places,
            seed=self.study.seed,
            per_word=self.caps.per_word,
            most_characters=self.caps.characters,
            tags=self.options.get("tags"),
            language=self.options.get("language"),
        )

    def _senses(self) -> Gathered | None:
        places = self._places("senses", "senses.tsv")
        if not places:
            return None
        return word_sense_triples(
            self._one(places, "senses"),
            seed=self.study.seed,
            per_sense=self.caps.per_sense,
            per_word=self.caps.per_polysemous_word,
            language=self.language,
        )

    def _pairs(self) -> Gathered | None:
        places = self._places("pairs", "pairs.tsv")
        templates = self.options.get("templates")
        wordings = read_wordings(self.home / templates if templates else None, self.language)
        if places:
            pairs = read_pairs(self._one(places, "pairs"))
        elif self.study.knowledge:
            pairs = pairs_of(*self._tables(), self.language)
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

    def _triples(self) -> Gathered | None:
        places, texts = self._places("triples", "triples.tsv"), self._places("texts", None)
        if places:
            triples = read_triples(self._one(places, "triples"))
        elif self.study.knowledge and texts:
            triples = triples_of(*self._tables(), self.language)
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
        """The facts of the study's knowledge, and the names in its language."""
        with KnowledgeBase.load(self.study.knowledge, self.home) as knowledge:
            return knowledge.facts(), knowledge.names(self.language)

    def _places(self, option: str, embedded: str | None) -> list[Path]:
        """The files that an option names, or the embedded one where nothing at all was given."""
        given = self.options.get(option)
        if given:
            places = [self.home / str(name) for name in (given if isinstance(given, list) else [given])]
            for place in places:
                if not path_exists(place):
                    raise InputError(f"there is no file or folder {place} (options.{option})")
            return places
        return [own_material(embedded)] if self.embedded and embedded else []

    @staticmethod
    def _one(places: list[Path], option: str) -> Path:
        if len(places) > 1:
            raise InputError(f"options.{option} names {len(places)} files, and one is read; put them together")
        return places[0]
