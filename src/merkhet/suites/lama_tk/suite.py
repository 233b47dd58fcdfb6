"""The LAMA-TK suite of temporal knowledge."""

from __future__ import annotations

from pathlib import Path

from merkhet.engine.plan import Plan
from merkhet.engine.resolve_study import ResolvedStudy
from merkhet.engine.study import Study
from merkhet.engine.suite import Suite
from merkhet.engine.suite_card import ScoringRule
from merkhet.questions.question_files import QuestionSet
from merkhet.suites.lama_tk.build import make_temporal_questions
from merkhet.suites.lama_tk.options import TASKS, LamaTkOptions
from merkhet.suites.lama_tk.plan import memory_plan
from merkhet.suites.lama_tk.published import FILES


class LamaTk(Suite):
    """LAMA-TK suite, for models as they are or models that first memorize the facts."""

    memorizes = True

    def read_published(self, place: Path, study: Study, home: Path) -> QuestionSet:
        """Build questions from the study's published table or folder of facts with times."""
        return make_temporal_questions(study, home)

    def scoring(self, study: Study) -> ScoringRule:
        """Return the scoring rule: questions for the one before and the one after are no paraphrases."""
        return ScoringRule(distinct_templates=("order",))

    def memorize_plan(self, resolved: ResolvedStudy, command: str) -> Plan:
        """Return the plan of a memorizing experiment."""
        return memory_plan(resolved, command)


SUITE = LamaTk(
    name="lama-tk",
    title="LAMA-TK: language models as temporal knowledge bases",
    about=(
        "Whether a model knows who or what stood in a relation, from when to when; whether it knows this in other "
        "words, for a year within the time, and in what order."
    ),
    build=make_temporal_questions,
    tasks=TASKS,
    headline=tuple((task, "acc@1") for task in TASKS),
    defaults={
        "knowledge": ["offices"],
        "probes": ["rank"],
        "metrics": ["acc@1", "acc@5", "hit@5", "hit@10"],
        "groups": ["relation", "mask", "conflict"],
        "options": {},
    },
    run_defaults={"models": ["minilm-mlm", "frequency", "random"], "limit": 100},
    options=LamaTkOptions,
    analyses=("consistency",),
    published=FILES,
    splits_keep_pairs=False,
    methods=(
        "Facts with times are put into sentences, in the manner of LAMA-TK. Each sentence leaves out the subject, the "
        "object, the start or the end (statement). Further questions ask for the start and the end in other words "
        "(boundary); for the object in one year strictly within the interval, in the same words and in others "
        "(implicit); and for the first and the last subject of an object, and those before and after a subject "
        "(order), where the known facts decide it. Every name that makes a sentence true by these facts counts as "
        "right. Years are ranked among all years that occur with the relation. A name is ranked among 100 names of the "
        "relation, or as many as the study says: the one that was left out, other right ones (at most a tenth in all), "
        "and wrong ones. Up to half of the wrong ones were in the same relation to the same entity at another time; "
        "the others are drawn by a seed in proportion to their frequency in the facts. No wrong name occurs in the "
        "sentence. Times have the precision that the study sets (years). Facts with an unknown time are left out and "
        "counted."
    ),
    published_methods="The facts were read in the format of LAMA-TK's published files. {methods}",
    citations=(
        """@misc{lama-tk,
  title = {Can Language Models serve as Temporal Knowledge Bases?},
  note = {Anonymous EMNLP submission}
}""",
        """@inproceedings{heinzerling2021storage,
  author = {Heinzerling, Benjamin and Inui, Kentaro},
  title = {Language Models as Knowledge Bases: On Entity Representations, Storage Capacity, and Paraphrased Queries},
  booktitle = {Proceedings of the 16th Conference of the European Chapter of the Association for Computational
    Linguistics},
  pages = {1772--1791},
  url = {https://aclanthology.org/2021.eacl-main.153},
  year = {2021}
}""",
    ),
)
