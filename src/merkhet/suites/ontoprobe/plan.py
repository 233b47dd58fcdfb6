"""Steps of ontoprobe that ask with manual templates, learn soft prompts, ask with soft prompts, and label premises."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

from merkhet.engine.ask_planning import make_ask_step, make_learn_step, select_probes, training_suffix
from merkhet.engine.plan import NOTHING, AnyStep, Nothing, Step
from merkhet.engine.resolve_study import ResolvedStudy
from merkhet.engine.run_files import PREMISE_LABELS, QUESTION_TABLES
from merkhet.engine.study import ProbeChoice
from merkhet.engine.suite import AskingSteps
from merkhet.models.placeholders import PseudowordSettings
from merkhet.suites.ontoprobe.options import (
    CHOICE,
    MEMORIZING,
    PREDISPOSITION,
    RULES,
    SOFT_TEMPLATE_TASKS,
    Loss,
    OntoprobeOptions,
)
from merkhet.suites.ontoprobe.premise_labels import PremiseParams, label_premises

SOFT = "soft"
WEIGHTS = "soft.safetensors"


def asking_steps(resolved: ResolvedStudy) -> AskingSteps:
    """Plan the steps that ask each model with manual templates and with soft prompts learned for this model.

    If the study has reasoning tasks, a final step labels the premises.
    """
    steps: list[AnyStep] = []
    repeated: list[list[AnyStep]] = [[] for _ in range(1, resolved.study.trainings)]
    for number in range(len(resolved.models)):
        model_steps = _ModelSteps(resolved, number)
        steps += [*model_steps.steps(), *model_steps.soft_steps()]
        for training, training_steps in enumerate(repeated, 1):
            training_steps += _ModelSteps(resolved, number, training).soft_steps()
    asks_rules = any(task.removesuffix("-choice") in RULES for task in _tasks(resolved))
    label_premises = _label_step(resolved) if asks_rules else None
    return AskingSteps(tuple(steps), label_premises, tuple(map(tuple, filter(None, repeated))))


class _ModelSteps:
    """Planner of the steps of one model.

    Args:
        training: Number of further trainings before this one, which each have another seed.
    """

    def __init__(self, resolved: ResolvedStudy, number: int, training: int = 0) -> None:
        self.resolved = resolved
        self.number = number
        self.training = training
        self.model = resolved.models[number]
        self.options = OntoprobeOptions.of(resolved.study)
        centre = "unknown" if self.options.compat == "paper" else "mask"
        pseudowords = PseudowordSettings(self.options.pairs, self.options.alpha, resolved.study.seed, centre)
        self.rule_settings: dict[str, Any] = {"methods": 1, "pseudowords": pseudowords}
        self.probes = select_probes(self.model, resolved.study.probes)
        asked = set(_tasks(resolved))
        # The memorizing questions about first premises decide whether the model knows these premises.
        asked |= {RULES[task] for task in asked if task in RULES}
        self.memorizing = [task for task in MEMORIZING if task in asked]
        self.rules = [rule for rule in RULES if rule in asked]
        bases = (task.removesuffix("-choice") for task in asked if task.endswith("-choice"))
        chosen = asked | {f"{RULES[base]}-choice" for base in bases if base in RULES}
        self.choice = [task for task in CHOICE if task in chosen]

    def steps(self) -> list[AnyStep]:
        """Plan the questions that are asked with manual templates."""
        steps: list[AnyStep] = []
        for choice in self.probes:
            if self.memorizing:
                # A baseline does not read the question: one template is enough.
                kinds = ["1"] if self.model.kind == "baseline" else []
                steps.append(self._ask(choice, "memorizing", tasks=self.memorizing, kinds=kinds))
            if self.rules:
                tasks = [*self.rules, PREDISPOSITION]
                steps.append(self._ask(choice, "reasoning", tasks=tasks, **self.rule_settings))
            if self.choice:
                steps.append(self._ask(choice, "choice", tasks=self.choice, **self.rule_settings))
        return steps

    def soft_steps(self) -> list[AnyStep]:
        """Plan the learning of soft prompts, and the questions that are asked with them."""
        steps: list[AnyStep] = []
        learns = self.resolved.study.learning is not None and self.model.kind in ("masked", "causal")
        ranked = next((choice for choice in self.probes if choice.probe == "rank"), None)
        if not learns or ranked is None:
            return steps
        combined = [kind for kind in self.options.reasoning if SOFT in kind] if self.rules else []
        for loss in self.options.losses if SOFT in self.options.templates or combined else ():
            weights, memorizing_steps = self._soft_memorizing(ranked, loss)
            steps += memorizing_steps
            if loss == self.options.losses[0]:
                steps += self._soft_reasoning(ranked, loss, weights, combined)
        return steps

    def _soft_memorizing(self, choice: ProbeChoice, loss: str) -> tuple[list[str], list[AnyStep]]:
        """Plan the learning of soft prompts for each memorizing task, and the questions asked with these prompts.

        Returns:
            Weight files of the soft prompts, and the steps.
        """
        weights: list[str] = []
        steps: list[AnyStep] = []
        needed = set(self.memorizing)
        if any(SOFT in kind for kind in self.options.reasoning):
            needed |= {task for rule in self.rules for task in SOFT_TEMPLATE_TASKS[rule]}
        for task in (task for task in MEMORIZING if task in needed):
            learn = self._learn(task, loss, kinds=["soft"])
            weights.append(learn.outputs[0])
            steps.append(learn)
            if SOFT in self.options.templates and task in self.memorizing:
                steps.append(self._ask_soft(choice, loss, task, tasks=[task], kinds=["soft"], soft=[weights[-1]]))
        return weights, steps

    def _soft_reasoning(
        self, choice: ProbeChoice, loss: str, weights: list[str], combined: Sequence[str]
    ) -> list[AnyStep]:
        """Plan reasoning questions with soft templates, soft conjunctions, or both.

        Training of the kind ``soft-soft`` starts from the soft prompts of the memorizing tasks.
        """
        steps: list[AnyStep] = []
        if any(kind.startswith(SOFT) for kind in combined):
            tasks = [*self.rules, PREDISPOSITION]
            kinds = [*(kind for kind in combined if kind == "soft-manual"), "soft"]
            asked = {"tasks": tasks, "kinds": kinds, "soft": weights, **self.rule_settings}
            steps.append(self._ask_soft(choice, loss, "soft-manual", **asked))
        for kind in (kind for kind in combined if kind != "soft-manual"):
            start = weights if kind == "soft-soft" else []
            settings = {"pseudowords": self.options.pairs, "alpha": self.options.alpha}
            for rule in self.rules:
                learn = self._learn(rule, loss, kinds=[kind], start=start, settings=settings)
                asked = {"tasks": [rule], "kinds": [kind], "soft": [learn.outputs[0]], **self.rule_settings}
                steps += [learn, self._ask_soft(choice, loss, f"{rule} {kind}", **asked)]
        return steps

    def _ask(self, choice: ProbeChoice, about: str, **settings: Any) -> AnyStep:
        return make_ask_step(self.resolved, self.number, choice, about, **settings)

    def _ask_soft(self, choice: ProbeChoice, loss: str, about: str, **settings: Any) -> AnyStep:
        name = soft_name(self.model.name, loss)
        label = f"{about}, soft ({loss}){training_suffix(self.training)}"
        return make_ask_step(self.resolved, self.number, choice, label, name=name, **settings)

    def _learn(self, task: str, loss: str, **arguments: Any) -> AnyStep:
        settings = {**arguments.pop("settings", {}), "loss": loss}
        if self.options.compat:
            settings["compat"] = self.options.compat
        name = soft_name(self.model.name, loss)
        return make_learn_step(
            self.resolved,
            self.number,
            name,
            task,
            weights=WEIGHTS,
            settings=settings,
            training=self.training,
            **arguments,
        )


def soft_name(model: str, loss: str) -> str:
    """Return the name under which a model with soft prompts is reported."""
    return f"{model}, soft" if loss == "bce" else f"{model}, soft ({loss})"


def _label_step(resolved: ResolvedStudy) -> Step[PremiseParams, Nothing]:
    """Make the step that labels premises as shown, known or unknown for each model."""
    families: dict[str, tuple[str, ...]] = {}
    methods: dict[str, str] = {}
    ranked = next((choice for choice in resolved.study.probes if choice.probe == "rank"), None)
    for model in resolved.models:
        soft_names = [soft_name(model.name, loss) for loss in get_args(Loss)]
        model_methods = (ranked.methods.get(model.name) or ranked.methods.get(model.kind)) if ranked else None
        methods |= dict.fromkeys([model.name, *soft_names], model_methods[0]) if model_methods else {}
        families |= {name: (name, model.name) for name in soft_names}
    inputs = (*QUESTION_TABLES, "answers.parquet")
    params = PremiseParams(families, methods)
    return Step("label premises", "score", label_premises, params, NOTHING, inputs, (PREMISE_LABELS,))


def _tasks(resolved: ResolvedStudy) -> Sequence[str]:
    return resolved.study.tasks or resolved.suite.tasks
