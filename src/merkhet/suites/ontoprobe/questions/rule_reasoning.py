"""Reasoning questions: what follows of a pseudoword by six RDFS rules, with premises shown or left to memory."""

from __future__ import annotations

import itertools
import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from merkhet.core.ids import content_id, derived_seed
from merkhet.suites.ontoprobe.questions.memorizing import candidate_sets, nearest
from merkhet.suites.ontoprobe.questions.ontology_prompts import (
    CONJUNCTIONS,
    RULES,
    TEMPLATES,
    Wording,
    check_names,
    wording_of,
)
from merkhet.suites.ontoprobe.questions.ontology_statements import FEW, Statement, Statements

Row = dict[str, Any]
SHOWN = {"both": (True, True), "first": (True, False), "second": (False, True), "neither": (False, False)}
"""Which premises stand in the text."""
_TRIES = 50


def reasoning_questions(
    statements: Statements,
    memorizing_rows: Sequence[Mapping[str, Any]],
    *,
    rules: Sequence[str] = tuple(RULES),
    templates: Sequence[str] = TEMPLATES,
    conjunctions: Sequence[str] = CONJUNCTIONS,
    premises: int | None = None,
    seed: int = 0,
    suite: str = "ontoprobe",
    compat: str | None = None,
) -> tuple[list[Row], list[Row]]:
    """Rows of the questions table and of the premises table, for at most ``premises`` test statements a rule.

    Of each statement of the test split: both premises shown, one, none, and as a control ("other") a first premise that
    does not apply; with the predisposition questions that decide whether a model holds the second premise by itself. Of
    the other splits both premises shown, to train conjunctions; a statement about a subject that is asked in test is
    left out of them. With ``compat="paper"`` training and development statements are taken from those of test.
    """
    check_names("rule", list(rules), tuple(RULES))
    check_names("template", list(templates), TEMPLATES)
    check_names("conjunction", list(conjunctions), CONJUNCTIONS)
    memory: dict[tuple[str, str], list[str]] = defaultdict(list)
    for row in memorizing_rows:
        kind = "soft" if str(row["template"]).endswith("/soft") else "manual"
        memory[row["qset"], kind].append(row["question_id"])
    maker = Maker(statements, suite, compat)
    questions: list[Row] = []
    shown: list[Row] = []
    for rule in rules:
        items, test = maker.items(rule), maker.items(rule, drawn=premises, seed=seed)
        others = maker.others(rule, test, seed)
        for template in templates:
            held = {one.fact_id: maker.predisposition(rule, one, template) for one in test}
            questions += held.values()
            for conjunction in conjunctions:
                form = f"{rule}/{template}-{conjunction}"
                for row in maker.trained(rule, items, form):
                    questions.append(row)
                    shown.append(_premises(row, "both"))
                for one in test:
                    first = list(dict.fromkeys(memory[one.fact_id, template]))
                    second = [held[one.fact_id]["question_id"]]
                    for which in SHOWN:
                        questions.append(maker.question(rule, one, form, which))
                        shown.append(_premises(questions[-1], which, first, second))
                    if one.fact_id in others:
                        questions.append(maker.question(rule, one, form, "other", other=others[one.fact_id]))
                        shown.append(_premises(questions[-1], "other", first, second))
    return questions, shown


def draw_statements(statements: Sequence[Statement], limit: int | None, seed: int) -> list[Statement]:
    """At most so many statements, by the seed and their content, in the order given; a larger draw holds a smaller."""
    if limit is None or len(statements) <= limit:
        return list(statements)
    ids = {one.fact_id for one in statements}
    drawn = set(sorted(ids, key=lambda one: (derived_seed("ontology premise", seed, one), one))[:limit])
    return [one for one in statements if one.fact_id in drawn]


class Maker:
    """Makes the questions of rules over some statements."""

    def __init__(self, statements: Statements, suite: str, compat: str | None) -> None:
        self.statements = statements
        self.suite = suite
        self.compat = compat
        self.wording: Wording = wording_of(statements, compat)
        self.sets = candidate_sets(statements)
        self._among = {name: frozenset(texts) for name, (_, texts) in self.sets.items()}
        self._of_subject: dict[tuple[str, str], set[str]] = defaultdict(set)
        for one in statements.statements:
            self._of_subject[one.task, one.subject].update(one.golds)

    def items(self, rule: str, drawn: int | None = None, seed: int | None = None) -> list[Statement]:
        """The statements that a rule can be asked about; with a seed those of the test split, at most so many."""
        found: dict[str, Statement] = {}
        for one in self.statements.of(RULES[rule]):
            if self.target(rule, one) is not None and self._has_pattern(rule, one):
                found.setdefault(one.fact_id, one)
        items = list(found.values())
        if seed is None:
            return items
        return draw_statements([one for one in items if one.split == "test"], drawn, seed)

    def trained(self, rule: str, items: Sequence[Statement], form: str) -> Iterator[Row]:
        """The questions that conjunctions are trained and chosen on; none that says what a test question says."""
        test = [one for one in items if one.split == "test"]
        if self.compat == "paper":
            for at, one in enumerate(test[: 2 * FEW]):
                yield self.question(rule, one, form, "both", split="train" if at < FEW else "dev")
            return
        subjects = {one.subject for one in self.statements.of(RULES[rule], "test")}
        prompts = {self.question(rule, one, form, "both")["prompt"] for one in test}
        for one in items:
            if one.split != "test" and one.subject not in subjects:
                row = self.question(rule, one, form, "both")
                if row["prompt"] not in prompts:
                    yield row

    def golds(self, rule: str, statement: Statement) -> tuple[str, ...]:
        """What follows by the rule, nearest first: classes, properties, or for rdfs7 what stands between two things."""
        if rule != "rdfs7":
            return statement.golds
        patterns = self.statements.patterns
        return tuple(dict.fromkeys(patterns[one].piece for one in statement.golds if one in patterns))

    def target(self, rule: str, statement: Statement) -> str | None:
        """The nearest of what follows that is a candidate."""
        return nearest(self.golds(rule, statement), self._among[rule])

    def question(
        self,
        rule: str,
        one: Statement,
        form: str,
        shown: str,
        *,
        other: Statement | None = None,
        split: str | None = None,
    ) -> Row:
        """A question whether the rule is applied, in a form such as "rdfs9/manual-soft"."""
        template, conjunction = form.partition("/")[2].split("-")
        said = other or one
        first, second = SHOWN["both" if shown == "other" else shown]
        nearest_gold = nearest(said.golds, self._among[RULES[rule]])
        prompt = self.wording.join(
            self.wording.first(rule, said.subject, nearest_gold or said.golds[0], template) if first else "",
            self.wording.second(rule, one.subject, template) if second else "",
            self.wording.hypothesis(rule, template),
            conjunction,
        )
        row = {
            "suite": self.suite,
            "task": rule,
            "language": "en",
            "prompt": prompt,
            "answers": list(self.golds(rule, said)),
            "target": self.target(rule, said),
            "candidate_set": self.sets[rule][0],
            "facts": [one.fact_id],
            "qset": one.fact_id,
            "rule": rule,
            "template": form,
            "split": split or one.split,
        }
        return identified(row, shown)

    def predisposition(self, rule: str, one: Statement, template: str) -> Row:
        """A question whether the second premise is held without being told."""
        kind = {"rdfs5": "SPO", "rdfs9": "SCO", "rdfs11": "SCO"}.get(rule, "relations")
        if kind == "relations":
            held = self.statements.patterns[one.subject].piece
        else:
            held = self.wording.candidate(one.subject)
        row = {
            "suite": self.suite,
            "task": "predisposition",
            "language": "en",
            "prompt": self.wording.predisposition(rule, template),
            "answers": [held],
            "target": held,
            "candidate_set": self.sets[kind][0],
            "facts": [one.fact_id],
            "qset": one.fact_id,
            "rule": rule,
            "template": f"{rule}/{template}",
            "split": one.split,
        }
        return identified(row, "predisposition")

    def others(self, rule: str, items: Sequence[Statement], seed: int) -> dict[str, Statement]:
        """For each statement another one from which, with the second premise, nothing follows; by statement id."""
        pool = sorted(items, key=lambda one: one.fact_id)
        found = {}
        for one in items:
            generator = random.Random(derived_seed("ontology control", seed, rule, one.fact_id))
            drawn = (pool[generator.randrange(len(pool))] for _ in range(_TRIES))
            start = generator.randrange(len(pool))
            about = {one.subject, *self.true_of(_kind(rule), one.subject)}
            right = self.right(rule, one)
            for other in itertools.chain(drawn, pool[start:], pool[:start]):
                if other.subject not in about and right.isdisjoint(self.golds(rule, other)):
                    found[one.fact_id] = other
                    break
        return found

    def right(self, asked: str, one: Statement) -> set[str]:
        """All candidates that are right of a statement's subject (of the pseudoword, in a rule), as far as is known.

        Its golds and those of any statement about the same subject, what these are in turn, and, where superclasses or
        superproperties are asked for, the subject itself.
        """
        task = RULES.get(asked, asked)
        found = set(self._of_subject[task, one.subject]) | set(one.golds)
        for gold in tuple(found):
            found |= self.true_of("SPO" if task == "SPO" else "SCO", gold)
        if task in ("SCO", "SPO"):
            found |= {one.subject, *self.true_of(task, one.subject)}
        if asked == "rdfs7":
            patterns = self.statements.patterns
            found = {patterns[name].piece for name in found if name in patterns}
        return found

    def true_of(self, task: str, name: str) -> set[str]:
        """All that a class (SCO) or a property (SPO) is, by the statements and what follows from them."""
        found: set[str] = set()
        waiting = [name]
        while waiting:
            above = self._of_subject.get((task, waiting.pop()), set()) - found
            found |= above
            waiting += above
        return found

    def _has_pattern(self, rule: str, one: Statement) -> bool:
        """Whether the rule's premises can be said, and the conclusion is not said in the second one already."""
        if rule not in ("rdfs2", "rdfs3", "rdfs7"):
            return True
        pattern = self.statements.patterns.get(one.subject)
        return pattern is not None and pattern.piece not in (self.golds(rule, one) if rule == "rdfs7" else ())


def _kind(rule: str) -> str:
    """Whether a rule's statements are about classes or properties, as the task that says what is above them."""
    return "SCO" if rule in ("rdfs9", "rdfs11") else "SPO"


def identified(row: Row, shown: str) -> Row:
    """The row with an id of its own: two statements with one prompt and one answer are two questions."""
    wanted = ("suite", "task", "language", "prompt", "answers", "target", "choices", "candidate_set")
    rest = ("facts", "rule", "template", "split")
    row["question_id"] = content_id("q", *(row.get(name) for name in (*wanted, *rest)), shown)
    return row


def _premises(row: Row, shown: str, first: Sequence[str] = (), second: Sequence[str] = ()) -> Row:
    found = {"question_id": row["question_id"], "shown": shown, "first": list(first), "second": list(second)}
    return {**found, "memory": "half"}
