"""Reasoning questions: conclusions about a pseudoword by six RDFS rules, with premises shown or hidden."""

from __future__ import annotations

import itertools
import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from merkhet.core.ids import content_id, derived_seed
from merkhet.suites.ontoprobe.options import PREDISPOSITION, RULES
from merkhet.suites.ontoprobe.questions.memorizing import Row, candidate_sets, nearest_candidate, question_row
from merkhet.suites.ontoprobe.questions.ontology_prompts import OntologyOptions, make_wording
from merkhet.suites.ontoprobe.questions.ontology_statements import SPLIT_SIZE, Statement, Statements, split_at

VISIBLE_PREMISES = {"both": (True, True), "first": (True, False), "second": (False, True), "neither": (False, False)}
"""Whether the first and the second premise are in the text, by value of the column ``shown``."""
_CONTROL_DRAWS = 50


def reasoning_questions(
    statements: Statements, memorizing_rows: Sequence[Mapping[str, Any]], options: OntologyOptions
) -> tuple[list[Row], list[Row]]:
    """Make the reasoning questions of the rules.

    Each test statement is asked with both premises shown, with either premise, with none, and as a control (``other``),
    whose first premise does not apply. A predisposition question decides whether a model assumes the second premise
    without reading it. Train and dev statements are asked with both premises shown, to train conjunctions, unless their
    subject is in the test split. With ``compat="paper"``, train and dev questions use test statements.

    Args:
        memorizing_rows: Rows of the memorizing questions, which decide whether a model knows the first premise.

    Returns:
        Rows of the questions table and rows of the table of premise questions.
    """
    memory: dict[tuple[str, str], list[str]] = defaultdict(list)
    for row in memorizing_rows:
        kind = "soft" if str(row["template"]).endswith("/soft") else "manual"
        memory[row["qset"], kind].append(row["question_id"])
    maker = RuleQuestionMaker(statements, options)
    questions: list[Row] = []
    premise_rows: list[Row] = []
    for rule in options.rules:
        askable, test = maker.askable_statements(rule), maker.test_statements(rule)
        controls = maker.control_statements(rule, test)
        for template in options.templates:
            predispositions = {statement.fact_id: maker.predisposition(rule, statement, template) for statement in test}
            questions += predispositions.values()
            for conjunction in options.conjunctions:
                form = f"{rule}/{template}-{conjunction}"
                for row in maker.training_questions(rule, askable, form):
                    questions.append(row)
                    premise_rows.append(premise_row(row, "both"))
                for statement in test:
                    first = list(dict.fromkeys(memory[statement.fact_id, template]))
                    second = [predispositions[statement.fact_id]["question_id"]]
                    control = controls.get(statement.fact_id)
                    for shown in (*VISIBLE_PREMISES, "other") if control else VISIBLE_PREMISES:
                        questions.append(maker.question(rule, statement, form, shown, control=control))
                        premise_rows.append(premise_row(questions[-1], shown, first, second))
    return questions, premise_rows


def draw_statements(statements: Sequence[Statement], limit: int | None, seed: int) -> list[Statement]:
    """Draw at most ``limit`` statements by seed and content, in their original order.

    A draw with a larger limit contains every draw with a smaller one.
    """
    if limit is None or len(statements) <= limit:
        return list(statements)
    ids = {statement.fact_id for statement in statements}
    drawn = set(sorted(ids, key=lambda fact_id: (derived_seed("ontology premise", seed, fact_id), fact_id))[:limit])
    return [statement for statement in statements if statement.fact_id in drawn]


class RuleQuestionMaker:
    """Maker of reasoning questions from the statements of an ontology."""

    def __init__(self, statements: Statements, options: OntologyOptions) -> None:
        self.statements = statements
        self.options = options
        self.wording = make_wording(statements, options.compat)
        self.sets = candidate_sets(statements)
        self._candidates = {name: frozenset(texts) for name, (_, texts) in self.sets.items()}
        self._golds_by_subject: dict[tuple[str, str], set[str]] = defaultdict(set)
        for statement in statements.statements:
            self._golds_by_subject[statement.task, statement.subject].update(statement.golds)

    def askable_statements(self, rule: str) -> list[Statement]:
        """Return the distinct statements that can be the first premise of a rule's questions."""
        statements: dict[str, Statement] = {}
        for statement in self.statements.for_task(RULES[rule]):
            if self.target(rule, statement) is not None and self.has_pattern(rule, statement):
                statements.setdefault(statement.fact_id, statement)
        return list(statements.values())

    def test_statements(self, rule: str) -> list[Statement]:
        """Draw at most ``options.premises`` of the rule's askable statements in the test split."""
        test = [statement for statement in self.askable_statements(rule) if statement.split == "test"]
        return draw_statements(test, self.options.premises, self.options.seed)

    def training_questions(self, rule: str, askable: Sequence[Statement], form: str) -> Iterator[Row]:
        """Yield the train and dev questions for learning conjunctions, without subjects and prompts of the test split.

        With ``compat="paper"``, yield questions about test statements instead.
        """
        test = [statement for statement in askable if statement.split == "test"]
        if self.options.compat == "paper":
            for index, statement in enumerate(test[: 2 * SPLIT_SIZE]):
                yield self.question(rule, statement, form, "both", split=split_at(index))
            return
        subjects = {statement.subject for statement in self.statements.for_task(RULES[rule], "test")}
        prompts = {self.question(rule, statement, form, "both")["prompt"] for statement in test}
        for statement in askable:
            if statement.split != "test" and statement.subject not in subjects:
                row = self.question(rule, statement, form, "both")
                if row["prompt"] not in prompts:
                    yield row

    def conclusions(self, rule: str, statement: Statement) -> tuple[str, ...]:
        """Return the conclusions of a rule, nearest first.

        Conclusions are classes or properties. For rdfs7, they are pattern texts between [X] and [Y].
        """
        if rule != "rdfs7":
            return statement.golds
        return tuple(dict.fromkeys(self.statements.infixes(statement.golds)))

    def target(self, rule: str, statement: Statement) -> str | None:
        """Return the nearest conclusion of the rule that is a candidate, or None."""
        return nearest_candidate(self.conclusions(rule, statement), self._candidates[rule])

    def question(
        self,
        rule: str,
        statement: Statement,
        form: str,
        shown: str,
        *,
        control: Statement | None = None,
        split: str | None = None,
    ) -> Row:
        """Make a reasoning question.

        Args:
            form: Rule, template and conjunction, such as ``rdfs9/manual-soft``.
            shown: Which premises are in the text: a key of :data:`VISIBLE_PREMISES`, or ``other`` for a control.
            control: Statement for the first premise of a control question; its conclusions are the gold answers.
            split: Split of the question; the split of the statement by default.
        """
        template, conjunction = form.partition("/")[2].split("-")
        first = control if control and shown == "other" else statement
        shows_first, shows_second = VISIBLE_PREMISES["both" if shown == "other" else shown]
        nearest_gold = nearest_candidate(first.golds, self._candidates[RULES[rule]]) or first.golds[0]
        prompt = self.wording.join(
            self.wording.first_premise(rule, first.subject, nearest_gold, template) if shows_first else "",
            self.wording.second_premise(rule, statement.subject, template) if shows_second else "",
            self.wording.hypothesis(rule, template),
            conjunction,
        )
        columns = {"target": self.target(rule, first), "candidate_set": self.sets[rule][0], "rule": rule}
        columns |= {"template": form, "split": split or statement.split}
        row = question_row(statement, rule, prompt, self.conclusions(rule, first), **columns)
        return assign_question_id(row, shown)

    def predisposition(self, rule: str, statement: Statement, template: str) -> Row:
        """Make the question that asks for the second premise when no premise is shown."""
        kind = {"rdfs5": "SPO", "rdfs9": "SCO", "rdfs11": "SCO"}.get(rule, "relations")
        if kind == "relations":
            target = self.statements.patterns[statement.subject].infix
        else:
            target = self.wording.format_candidate(statement.subject)
        columns = {
            "target": target,
            "candidate_set": self.sets[kind][0],
            "rule": rule,
            "template": f"{rule}/{template}",
        }
        prompt = self.wording.predisposition(rule, template)
        return assign_question_id(question_row(statement, PREDISPOSITION, prompt, [target], **columns), PREDISPOSITION)

    def control_statements(self, rule: str, statements: Sequence[Statement]) -> dict[str, Statement]:
        """Draw a control for each statement: another first premise, which entails nothing with the second premise.

        Returns:
            Controls by the fact id of the statement. Statements without a suitable control are missing.
        """
        pool = sorted(statements, key=lambda statement: statement.fact_id)
        # A premise about the subject or one of its ancestors would entail a conclusion.
        hierarchy = "SCO" if rule in ("rdfs9", "rdfs11") else "SPO"
        controls = {}
        for statement in statements:
            generator = random.Random(derived_seed("ontology control", self.options.seed, rule, statement.fact_id))
            drawn = (pool[generator.randrange(len(pool))] for _ in range(_CONTROL_DRAWS))
            start = generator.randrange(len(pool))
            entailing = {statement.subject, *self.ancestors(hierarchy, statement.subject)}
            right = self.right_answers(rule, statement)
            for control in itertools.chain(drawn, pool[start:], pool[:start]):
                if control.subject not in entailing and right.isdisjoint(self.conclusions(rule, control)):
                    controls[statement.fact_id] = control
                    break
        return controls

    def right_answers(self, task_or_rule: str, statement: Statement) -> set[str]:
        """Return all answers known to be right for a statement's subject, or for the pseudoword of a rule.

        Right answers are the gold answers of all statements about the subject, and the ancestors of these answers. In
        questions for superclasses and superproperties, the subject counts as right too.
        """
        task = RULES.get(task_or_rule, task_or_rule)
        right = set(self._golds_by_subject[task, statement.subject]) | set(statement.golds)
        for gold in tuple(right):
            right |= self.ancestors("SPO" if task == "SPO" else "SCO", gold)
        if task in ("SCO", "SPO"):
            right |= {statement.subject, *self.ancestors(task, statement.subject)}
        return set(self.statements.infixes(right)) if task_or_rule == "rdfs7" else right

    def ancestors(self, task: str, name: str) -> set[str]:
        """Return all ancestors of a class (``task`` SCO) or a property (SPO), by transitive closure."""
        ancestors: set[str] = set()
        queue = [name]
        while queue:
            parents = self._golds_by_subject.get((task, queue.pop()), set()) - ancestors
            ancestors |= parents
            queue += parents
        return ancestors

    def has_pattern(self, rule: str, statement: Statement) -> bool:
        """Check that the rule's second premise can be written and does not state the conclusion."""
        if rule not in ("rdfs2", "rdfs3", "rdfs7"):
            return True
        pattern = self.statements.patterns.get(statement.subject)
        conclusions = self.conclusions(rule, statement) if rule == "rdfs7" else ()
        return pattern is not None and pattern.infix not in conclusions


def assign_question_id(row: Row, shown: str) -> Row:
    """Set a question id that also depends on the fact; statements with equal prompts and answers get different ids."""
    asked = ("suite", "task", "language", "prompt", "answers", "target", "choices", "candidate_set")
    origin = ("facts", "rule", "template", "split")
    row["question_id"] = content_id("q", *(row.get(name) for name in (*asked, *origin)), shown)
    return row


def premise_row(
    row: Row, shown: str, first: Sequence[str] = (), second: Sequence[str] = (), memory: str = "half"
) -> Row:
    """Make a row of premise questions: the premises that a question shows, and the questions about premises."""
    named = {"first": list(first), "second": list(second)}
    return {"question_id": row["question_id"], "shown": shown, **named, "memory": memory}
