"""Statements and what follows from them as prompts: manual templates, soft templates and conjunctions."""

from __future__ import annotations

from collections.abc import Mapping

from merkhet.core import SLOT
from merkhet.core.errors import InputError, did_you_mean
from merkhet.questions.english import capitalize
from merkhet.suites.ontoprobe.questions.ontology_statements import Statement, Statements
from merkhet.suites.ontoprobe.questions.property_patterns import Pattern

RULES = {"rdfs2": "DM", "rdfs3": "RG", "rdfs5": "SPO", "rdfs7": "SPO", "rdfs9": "SCO", "rdfs11": "SCO"}
"""The task whose statements are the first premises of each rule."""
TEMPLATES = ("manual", "soft")
CONJUNCTIONS = ("manual", "soft")
COMPAT = ("paper",)

_PLAIN = {
    "TP": (f"{{}} is a {SLOT} .", f"{{}} has class {SLOT} .", f"{{}} is a particular {SLOT} ."),
    "SCO": (f"{{}} is a {SLOT} .", f"{{}} has superclass {SLOT} .", f"{{}} is a particular {SLOT} ."),
    "SPO": (f"{{}} implies {SLOT} .",),
}


class Wording:
    """How statements, premises and hypotheses are said."""

    therefore = "Therefore ,"

    def __init__(self, patterns: Mapping[str, Pattern]) -> None:
        self.patterns = patterns

    def name(self, text: str) -> str:
        """A class or property at the beginning of a sentence: first letter in upper case, the rest as it is."""
        return capitalize(text)

    def instance(self, text: str) -> str:
        """An instance at the beginning of a sentence: as other names, but for those such as eBay."""
        return text if text[1:2].isupper() else capitalize(text)

    def candidate(self, text: str) -> str:
        """A class or property as it is spelled among the candidates."""
        return text

    def pseudoword(self, rule: str, letter: str = "X") -> str:
        """What stands for a thing without a meaning."""
        return f"[{letter}]"

    def asked(self, statement: Statement, template: str) -> list[tuple[str, str]]:
        """The prompts of a statement by the names of their templates: "TP/1", …, or "TP/soft"."""
        task, subject = statement.task, statement.subject
        if template == "soft":
            name = self.instance(subject) if task == "TP" else self.name(subject)
            return [(f"{task}/soft", self.soft(task, name, SLOT))]
        if task in _PLAIN:
            name = self.instance(subject) if task == "TP" else self.name(subject)
            return [(f"{task}/{number}", text.format(name)) for number, text in enumerate(_PLAIN[task], 1)]
        return [(f"{task}/1", self.constraint(task, subject, SLOT))]

    def soft(self, task: str, subject: str, object_: str) -> str:
        """Subject and object with three learnt words of the task between them."""
        return f"{subject} <{task}1> <{task}2> <{task}3> {object_} ."

    def constraint(self, task: str, property_: str, object_: str) -> str:
        """What one has to be for a property's domain or range."""
        pattern = self.patterns[property_]
        said = f"to {pattern.as_subject}" if task == "DM" else pattern.as_object
        return f"One has to be a particular {object_} {said} ."

    def first(self, rule: str, subject: str, object_: str, template: str) -> str:
        """The first premise of a rule: what a statement says."""
        task = RULES[rule]
        if template == "soft":
            return self.soft(task, self.name(subject), object_)
        if task in ("DM", "RG"):
            return self.constraint(task, subject, object_)
        if task == "SPO":
            return f"{self.name(subject)} implies {object_} ."
        return f"Every {subject} is a particular {object_} ."

    def second(self, rule: str, subject: str, template: str) -> str:
        """The second premise of a rule: what holds of the pseudoword."""
        if rule in ("rdfs2", "rdfs3", "rdfs7"):
            return self.patterns[subject].text
        return self._of_pseudoword(rule, subject, template)

    def hypothesis(self, rule: str, template: str) -> str:
        """What is to be concluded of the pseudoword."""
        if rule == "rdfs7":
            return self.relation()
        return self._of_pseudoword(rule, SLOT, template)

    def predisposition(self, rule: str, template: str) -> str:
        """The second premise with a slot for what it says: does a model hold it without being told?"""
        if rule in ("rdfs2", "rdfs3", "rdfs7"):
            return self.relation()
        return self._of_pseudoword(rule, SLOT, template)

    def relation(self) -> str:
        """Two pseudowords with a slot for what is between them."""
        return f"[X]{SLOT} [Y] ."

    def join(self, first: str, second: str, hypothesis: str, conjunction: str) -> str:
        """Premises (empty: not shown) and hypothesis as one text."""
        if conjunction == "soft":
            parts = [first, "<s4>" if first and second else "", second, "<s5>", _continued(hypothesis)]
        else:
            parts = [first, second, self.therefore, _continued(hypothesis)]
        return " ".join(part for part in parts if part)

    def _of_pseudoword(self, rule: str, object_: str, template: str) -> str:
        word = self.pseudoword(rule, "Y" if rule == "rdfs3" else "X")
        if template == "soft":
            return self.soft({"rdfs5": "SPO", "rdfs11": "SCO"}.get(rule, "TP"), word, object_)
        if rule == "rdfs5":
            return f"{word} implies {object_} ."
        return f"{'Every ' if rule == 'rdfs11' else ''}{word} is a particular {object_} ."


def wording_of(statements: Statements, compat: str | None = None) -> Wording:
    """The wording to use: as it should be, or with ``compat="paper"`` as the released code of the paper has it."""
    check_names("compat", [compat] if compat is not None else [], COMPAT)
    if compat == "paper":
        from merkhet.suites.ontoprobe.questions.paper_compat import ReleasedWording

        return ReleasedWording(statements)
    return Wording(statements.patterns)


def check_names(what: str, given: object, known: tuple[str, ...]) -> None:
    """Refuse a list with a name that is not known."""
    for name in given if isinstance(given, list | tuple) else (given,):
        if name not in known:
            raise InputError(f"there is no {what} {name!r}; {did_you_mean(str(name), known)}")


def _continued(hypothesis: str) -> str:
    """A hypothesis within a sentence: no capital, unless it starts with a name."""
    return f"every {hypothesis[6:]}" if hypothesis.startswith("Every ") else hypothesis
