"""Prompts of statements, premises and hypotheses: manual templates, soft templates and conjunctions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from merkhet.core import SLOT
from merkhet.core.errors import InputError, did_you_mean
from merkhet.questions.english import capitalize
from merkhet.suites.ontoprobe.options import PROMPT_KINDS, RULES
from merkhet.suites.ontoprobe.questions.ontology_statements import TASKS, Statement, Statements
from merkhet.suites.ontoprobe.questions.property_patterns import Pattern

_RELATION_CLOZE = f"[X]{SLOT} [Y] ."
"""Cloze with two pseudowords and a slot for their relation."""
_PLAIN = {
    "TP": (f"{{}} is a {SLOT} .", f"{{}} has class {SLOT} .", f"{{}} is a particular {SLOT} ."),
    "SCO": (f"{{}} is a {SLOT} .", f"{{}} has superclass {SLOT} .", f"{{}} is a particular {SLOT} ."),
    "SPO": (f"{{}} implies {SLOT} .",),
}


@dataclass(frozen=True)
class OntologyOptions:
    """Settings of the questions about an ontology."""

    tasks: Sequence[str] = TASKS
    """Memorizing tasks to make questions for."""
    rules: Sequence[str] = tuple(RULES)
    """RDFS rules to make reasoning questions for."""
    templates: Sequence[str] = PROMPT_KINDS
    """Kinds of templates: manual, soft."""
    conjunctions: Sequence[str] = PROMPT_KINDS
    """Kinds of conjunctions between premises and hypothesis: manual, soft."""
    choice: bool = True
    """Whether to make multiple-choice questions too."""
    premises: int | None = None
    """Maximum number of test statements of each rule; None means all."""
    seed: int = 0
    compat: str | None = None
    """``paper`` for the prompts and splits of the paper's released code, including its faults; None for merkhet's."""
    source: str | None = None
    """Source of the statements, for the facts table."""

    def __post_init__(self) -> None:
        for kind, names, known in (
            ("task", self.tasks, TASKS),
            ("rule", self.rules, tuple(RULES)),
            ("template", self.templates, PROMPT_KINDS),
            ("conjunction", self.conjunctions, PROMPT_KINDS),
            ("compat", [self.compat] if self.compat is not None else [], ("paper",)),
        ):
            for name in names:
                if name not in known:
                    raise InputError(f"there is no {kind} {name!r}; {did_you_mean(name, known)}")

    @property
    def memorizing(self) -> tuple[str, ...]:
        """Tasks with memorizing questions: ``tasks``, and the tasks that ask for the first premises of ``rules``."""
        needed = {*self.tasks, *(RULES[rule] for rule in self.rules)}
        return tuple(task for task in TASKS if task in needed)


class Wording:
    """Prompt texts of statements, premises and hypotheses."""

    therefore = "Therefore ,"

    def __init__(self, patterns: Mapping[str, Pattern]) -> None:
        self.patterns = patterns

    def format_name(self, text: str, task: str = "") -> str:
        """Capitalize the first letter of a name that begins a sentence, except in instances (TP) such as eBay."""
        return text if task == "TP" and text[1:2].isupper() else capitalize(text)

    def format_candidate(self, text: str) -> str:
        """Return a class or property label in the spelling of the candidates."""
        return text

    def pseudoword(self, rule: str, letter: str = "X") -> str:
        """Return the placeholder of a pseudoword, such as ``[X]``."""
        return f"[{letter}]"

    def prompts(self, statement: Statement, template: str) -> list[tuple[str, str]]:
        """Return pairs of template name (``TP/1``, …, or ``TP/soft``) and prompt for a statement."""
        task, subject = statement.task, statement.subject
        name = self.format_name(subject, task)
        if template == "soft":
            return [(f"{task}/soft", self.soft(task, name, SLOT))]
        if task in _PLAIN:
            return [(f"{task}/{number}", text.format(name)) for number, text in enumerate(_PLAIN[task], 1)]
        return [(f"{task}/1", self.constraint(task, subject, SLOT))]

    def soft(self, task: str, subject: str, object_: str) -> str:
        """Return a sentence with the task's three soft tokens between subject and object."""
        return f"{subject} <{task}1> <{task}2> <{task}3> {object_} ."

    def constraint(self, task: str, property_: str, object_: str) -> str:
        """Return the sentence that states a property's domain or range."""
        pattern = self.patterns[property_]
        clause = f"to {pattern.as_subject}" if task == "DM" else pattern.as_object
        return f"One has to be a particular {object_} {clause} ."

    def first_premise(self, rule: str, subject: str, object_: str, template: str) -> str:
        """Return the sentence of a rule's first premise, which states a fact of the ontology."""
        task = RULES[rule]
        if template == "soft":
            return self.soft(task, self.format_name(subject), object_)
        if task in ("DM", "RG"):
            return self.constraint(task, subject, object_)
        if task == "SPO":
            return f"{self.format_name(subject)} implies {object_} ."
        return f"Every {subject} is a particular {object_} ."

    def second_premise(self, rule: str, subject: str, template: str) -> str:
        """Return the sentence of a rule's second premise, which is about the pseudoword."""
        if rule in ("rdfs2", "rdfs3", "rdfs7"):
            return self.patterns[subject].text
        return self._pseudoword_sentence(rule, subject, template)

    def hypothesis(self, rule: str, template: str) -> str:
        """Return the sentence of a rule's conclusion about the pseudoword, with a slot for the answer."""
        return _RELATION_CLOZE if rule == "rdfs7" else self._pseudoword_sentence(rule, SLOT, template)

    def predisposition(self, rule: str, template: str) -> str:
        """Return the sentence of a rule's second premise, with a slot for its object or its relation."""
        if rule in ("rdfs2", "rdfs3", "rdfs7"):
            return _RELATION_CLOZE
        return self._pseudoword_sentence(rule, SLOT, template)

    def join(self, first: str, second: str, hypothesis: str, conjunction: str) -> str:
        """Join premises, conjunction and hypothesis into one text; a hidden premise is an empty string."""
        if conjunction == "soft":
            parts = [first, "<s4>" if first and second else "", second, "<s5>", _without_capital(hypothesis)]
        else:
            parts = [first, second, self.therefore, _without_capital(hypothesis)]
        return " ".join(part for part in parts if part)

    def _pseudoword_sentence(self, rule: str, object_: str, template: str) -> str:
        word = self.pseudoword(rule, "Y" if rule == "rdfs3" else "X")
        if template == "soft":
            return self.soft({"rdfs5": "SPO", "rdfs11": "SCO"}.get(rule, "TP"), word, object_)
        if rule == "rdfs5":
            return f"{word} implies {object_} ."
        return f"{'Every ' if rule == 'rdfs11' else ''}{word} is a particular {object_} ."


def make_wording(statements: Statements, compat: str | None = None) -> Wording:
    """Return merkhet's prompt texts, or with ``compat="paper"`` the prompt texts of the paper's released code."""
    if compat == "paper":
        from merkhet.suites.ontoprobe.questions.paper_compat import PaperWording

        return PaperWording(statements)
    return Wording(statements.patterns)


def _without_capital(hypothesis: str) -> str:
    """Lower-case "Every" at the start of a hypothesis, which continues a sentence."""
    return f"every {hypothesis[6:]}" if hypothesis.startswith("Every ") else hypothesis
