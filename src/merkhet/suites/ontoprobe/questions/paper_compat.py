"""The texts of the paper's released code, faults and all: only for ``compat="paper"``.

What differs: ``.capitalize()`` lower-cases the rest of a name; hyphens, slashes and brackets become blanks; DM and RG
say "if one …" and name the other side's class; premises are worded unlike the questions; in rdfs5, rdfs9 and rdfs11 the
pseudoword stays the four characters "[X]" (written "[ X ]" here, so that nothing takes its place), and the inputs of
rdfs9 and rdfs11 are the same.
"""

from __future__ import annotations

import re
from dataclasses import replace

from merkhet.core import SLOT
from merkhet.suites.ontoprobe.questions.ontology_prompts import RULES, Wording
from merkhet.suites.ontoprobe.questions.ontology_statements import Statement, Statements


def as_released(statements: Statements) -> Statements:
    """The statements with names and candidates as the released code has them.

    Hyphens, slashes and brackets are blanks, and superclasses that are no class of the list are candidates too.
    """

    def changed(one: Statement) -> Statement:
        subject = _blanked(one.subject) if one.task == "TP" else one.subject
        return replace(one, subject=subject, golds=tuple(dict.fromkeys(map(_plain, one.golds))))

    found = tuple(map(changed, statements.statements))
    above = (gold for one in found if one.task == "SCO" for gold in one.golds)
    return replace(
        statements,
        statements=found,
        classes=tuple(dict.fromkeys([*map(_plain, statements.classes), *above])),
        properties=tuple(dict.fromkeys(map(_plain, statements.properties))),
        patterns={**{_plain(name): one for name, one in statements.patterns.items()}, **statements.patterns},
    )


class ReleasedWording(Wording):
    """The wording of the released code."""

    therefore = "Therefore,"

    def __init__(self, statements: Statements) -> None:
        super().__init__(statements.patterns)
        self._sides = {(one.task, one.subject): one.golds[0] for one in statements.statements}

    def name(self, text: str) -> str:
        """A name with its first letter in upper case and all others in lower case."""
        return text.capitalize()

    def instance(self, text: str) -> str:
        """Instances as all names."""
        return text.capitalize()

    def candidate(self, text: str) -> str:
        """Candidates without hyphens, slashes and brackets."""
        return _plain(text)

    def asked(self, statement: Statement, template: str) -> list[tuple[str, str]]:
        """The prompts of a statement; soft ones of properties' domains and ranges begin in lower case."""
        if template == "soft" and statement.task in ("DM", "RG"):
            return [(f"{statement.task}/soft", self.soft(statement.task, statement.subject, SLOT))]
        return super().asked(statement, template)

    def pseudoword(self, rule: str, letter: str = "X") -> str:
        """A pseudoword, where the released code puts one in."""
        return f"[ {letter} ]" if rule in ("rdfs5", "rdfs9", "rdfs11") else super().pseudoword(rule, letter)

    def constraint(self, task: str, property_: str, object_: str) -> str:
        """A domain or range with "if one …" and the class of the other side, or something."""
        text = self.patterns[property_].text
        particular = "particular " if object_ == SLOT else ""
        other = self._sides.get(("RG" if task == "DM" else "DM", property_))
        said = _domain(text, other) if task == "DM" else _range(text, other)
        return f"One has to be a {particular}{object_} {said}"

    def first(self, rule: str, subject: str, object_: str, template: str) -> str:
        """The first premise; of classes without "every", and with "a" or "an"."""
        if template == "soft":
            task = RULES[rule]
            if task in ("DM", "RG"):
                return f"{subject} <{task}1> <{task}2> <{task}3> {object_}"
            return self.soft(task, self.name(subject), object_)
        if RULES[rule] == "SCO":
            return f"{self.name(subject)} is {_article(object_)} ."
        return super().first(rule, subject, object_, template)

    def _of_pseudoword(self, rule: str, object_: str, template: str) -> str:
        if rule in ("rdfs9", "rdfs11"):
            word = self.pseudoword(rule)
            if template == "soft":
                return self.soft("TP" if rule == "rdfs9" else "SCO", word, object_)
            return f"{word} is {'a particular ' + SLOT if object_ == SLOT else _article(object_)} ."
        return super()._of_pseudoword(rule, object_, template)


def _domain(text: str, other: str | None) -> str:
    if text.startswith("[X]'s"):
        noun = text[5:].split("contain " if "contain" in text else "is ", maxsplit=1)[0]
        return f"if one has{noun}."
    said = f"if one {text.removeprefix('[X]').strip()}"
    if other is None:
        return said.replace("[Y]", "something")
    if other[0] in "aeiouAEIOU":
        return said.replace(other, "").replace("[Y]", f"an {other}")
    return said.replace("[Y]", f"a {other}")


def _range(text: str, other: str | None) -> str:
    last = text.removesuffix(" [Y] .").rpartition(" ")[2]
    if last in ("is", "contain"):
        said = f"if one is {text.replace(f'{last} [Y] ', '')}"
    else:
        said = f"if {text.replace('[Y]', 'that')}"
    return said.replace("[X]", "something" if other is None else _article(other))


def _article(name: str) -> str:
    return f"{'an' if name[:1] in 'aeiouAEIOU' else 'a'} {name}"


def _blanked(name: str) -> str:
    return re.sub(r"[-()/]", " ", name)


def _plain(name: str) -> str:
    return " ".join(_blanked(name).split())
