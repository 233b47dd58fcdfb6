"""Prompts of the paper's released code, including its faults, for ``compat="paper"``.

Differences from merkhet's prompts:

* ``.capitalize()`` lower-cases all letters of a name but the first.
* Hyphens, slashes and brackets become spaces.
* Prompts for domains (DM) and ranges (RG) say "if one …". DM names the range class, RG the domain class.
* Premises differ in text from the memorizing questions.
* In rdfs5, rdfs9 and rdfs11, the pseudoword remains the literal text "[X]". Here it is written "[ X ]" to prevent its
  replacement. The inputs of rdfs9 and rdfs11 are equal.
"""

from __future__ import annotations

import re
from dataclasses import replace

from merkhet.core import SLOT
from merkhet.suites.ontoprobe.options import RULES
from merkhet.suites.ontoprobe.questions.ontology_prompts import Wording
from merkhet.suites.ontoprobe.questions.ontology_statements import Statement, Statements


def to_paper_statements(statements: Statements) -> Statements:
    """Return the statements with names and candidates spelled as in the released code.

    Hyphens, slashes and brackets become spaces. Superclasses missing from the list of classes are added to it.
    """

    def respell(statement: Statement) -> Statement:
        subject = _replace_signs(statement.subject) if statement.task == "TP" else statement.subject
        return replace(statement, subject=subject, golds=tuple(dict.fromkeys(map(_plain, statement.golds))))

    respelled = tuple(map(respell, statements.statements))
    superclasses = (gold for statement in respelled if statement.task == "SCO" for gold in statement.golds)
    return replace(
        statements,
        statements=respelled,
        classes=tuple(dict.fromkeys([*map(_plain, statements.classes), *superclasses])),
        properties=tuple(dict.fromkeys(map(_plain, statements.properties))),
        patterns={
            **{_plain(label): pattern for label, pattern in statements.patterns.items()},
            **statements.patterns,
        },
    )


class PaperWording(Wording):
    """Prompt texts of the released code."""

    therefore = "Therefore,"

    def __init__(self, statements: Statements) -> None:
        super().__init__(statements.patterns)
        self._nearest_golds = {
            (statement.task, statement.subject): statement.golds[0] for statement in statements.statements
        }

    def format_name(self, text: str, task: str = "") -> str:
        """Upper-case the first letter of a name and lower-case all other letters."""
        return text.capitalize()

    def format_candidate(self, text: str) -> str:
        """Replace hyphens, slashes and brackets with spaces."""
        return _plain(text)

    def prompts(self, statement: Statement, template: str) -> list[tuple[str, str]]:
        """Return pairs of template name and prompt; the subject of a soft DM or RG prompt is not capitalized."""
        if template == "soft" and statement.task in ("DM", "RG"):
            return [(f"{statement.task}/soft", self.soft(statement.task, statement.subject, SLOT))]
        return super().prompts(statement, template)

    def pseudoword(self, rule: str, letter: str = "X") -> str:
        """Return the placeholder of a pseudoword, or literal text for rules where the released code keeps "[X]"."""
        return f"[ {letter} ]" if rule in ("rdfs5", "rdfs9", "rdfs11") else super().pseudoword(rule, letter)

    def constraint(self, task: str, property_: str, object_: str) -> str:
        """Return a domain or range sentence with "if one …".

        A domain sentence names the range class, and a range sentence the domain class, or "something" if it is unknown.
        """
        text = self.patterns[property_].text
        particular = "particular " if object_ == SLOT else ""
        other_side = self._nearest_golds.get(("RG" if task == "DM" else "DM", property_))
        clause = _domain_clause(text, other_side) if task == "DM" else _range_clause(text, other_side)
        return f"One has to be a {particular}{object_} {clause}"

    def first_premise(self, rule: str, subject: str, object_: str, template: str) -> str:
        """Return the sentence of the first premise; subclass premises have an article instead of "every"."""
        if template == "soft":
            task = RULES[rule]
            if task in ("DM", "RG"):
                return f"{subject} <{task}1> <{task}2> <{task}3> {object_}"
            return self.soft(task, self.format_name(subject), object_)
        if RULES[rule] == "SCO":
            return f"{self.format_name(subject)} is {_with_article(object_)} ."
        return super().first_premise(rule, subject, object_, template)

    def _pseudoword_sentence(self, rule: str, object_: str, template: str) -> str:
        if rule in ("rdfs9", "rdfs11"):
            word = self.pseudoword(rule)
            if template == "soft":
                return self.soft("TP" if rule == "rdfs9" else "SCO", word, object_)
            return f"{word} is {'a particular ' + SLOT if object_ == SLOT else _with_article(object_)} ."
        return super()._pseudoword_sentence(rule, object_, template)


def _domain_clause(text: str, range_class: str | None) -> str:
    if text.startswith("[X]'s"):
        noun = text[5:].split("contain " if "contain" in text else "is ", maxsplit=1)[0]
        return f"if one has{noun}."
    clause = f"if one {text.removeprefix('[X]').strip()}"
    if range_class is None:
        return clause.replace("[Y]", "something")
    if range_class[0] in "aeiouAEIOU":
        return clause.replace(range_class, "").replace("[Y]", f"an {range_class}")
    return clause.replace("[Y]", f"a {range_class}")


def _range_clause(text: str, domain_class: str | None) -> str:
    last = text.removesuffix(" [Y] .").rpartition(" ")[2]
    is_noun = last in ("is", "contain")
    clause = f"if one is {text.replace(f'{last} [Y] ', '')}" if is_noun else f"if {text.replace('[Y]', 'that')}"
    return clause.replace("[X]", "something" if domain_class is None else _with_article(domain_class))


def _with_article(name: str) -> str:
    return f"{'an' if name[:1] in 'aeiouAEIOU' else 'a'} {name}"


def _replace_signs(name: str) -> str:
    return re.sub(r"[-()/]", " ", name)


def _plain(name: str) -> str:
    return " ".join(_replace_signs(name).split())
