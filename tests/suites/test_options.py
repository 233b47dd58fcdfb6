from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from merkhet.analysis.analysis_options import AnalysisOptions, LengthOptions, available_options
from merkhet.analysis.option_models import named_fields, validate
from merkhet.core.errors import InputError
from merkhet.core.settings import Settings, annotated, describe_type, make_settings, setting_types
from merkhet.engine.study import make_study
from merkhet.engine.suite import Suite
from merkhet.engine.suite_options import check_options
from merkhet.models.chat._chat_settings import ChatSettings
from merkhet.suites import SUITES
from merkhet.training._soft_prompt_training import SoftSettings
from merkhet.training.calibration_models import ContentSettings
from merkhet.training.cloze import ClozeSettings
from merkhet.training.memorizing.memorize_settings import MemorizeSettings
from merkhet.training.pretraining_settings import PretrainSettings

LEARNERS: tuple[type[Settings], ...] = (
    *(ClozeSettings, SoftSettings, PretrainSettings, MemorizeSettings, ContentSettings, ChatSettings),
)
DOCS = Path(__file__).parents[2] / "docs"
WRONG = object()
"""A value that no option has."""


def suites() -> list[Suite]:
    return [SUITES.get(name, None) for name in SUITES]


def refuse(check: Any, name: str) -> str | None:
    """Return what is wrong with the refusal of a wrong value, if anything."""
    try:
        check()
    except InputError as error:
        text = str(error)
        return None if "\n" not in text and name in text and " must be " in text and "got " in text else text
    return "not refused"


def test_every_option_refuses_a_wrong_type_in_one_line_that_names_it() -> None:
    wrong: dict[str, str | None] = {}
    for suite in suites():
        for name in suite.options.names():
            study = make_study({"suite": suite.name, "options": {name: WRONG}}, "here")
            wrong[f"{suite.name} {name}"] = refuse(
                lambda suite=suite, study=study: check_options(suite.options, suite.name, (), study, Path(), "here"),
                f"options.{name} ",
            )
    for name in named_fields(AnalysisOptions):
        wrong[name] = refuse(lambda name=name: validate(AnalysisOptions, {name: WRONG}, "options"), f"options.{name} ")
    assert len(wrong) > 50 and {name: text for name, text in wrong.items() if text} == {}


def test_every_setting_refuses_a_wrong_type_in_one_line_that_names_it() -> None:
    wrong = {
        f"{kind.__name__} {name}": refuse(
            lambda kind=kind, name=name: make_settings(kind, {name: WRONG}), f"{kind.place}{name} "
        )
        for kind in LEARNERS
        for name in setting_types(kind)
    }
    assert len(wrong) > 60 and {name: text for name, text in wrong.items() if text} == {}


def test_every_option_is_described() -> None:
    undescribed = [
        f"{suite.name} {name}"
        for suite in suites()
        for name, field in named_fields(suite.options).items()
        if not field.description
    ]
    assert undescribed == []
    assert all(field.description for field in named_fields(AnalysisOptions).values())


def test_the_options_that_the_docs_name_exist() -> None:
    known = {name for suite in suites() for name in suite.options.names()} | set(named_fields(AnalysisOptions))
    for path in DOCS.glob("*.md"):
        for name in re.findall(r"--set options\.(\w+)", path.read_text(encoding="utf-8")):
            assert name in known, f"{path.name} names options.{name}"


def shown(default: Any) -> str:
    """Write a default as in YAML; nothing where the description says what it stands for."""
    if default in (None, (), (None,)) or isinstance(default, LengthOptions):
        return ""
    if isinstance(default, tuple):
        return f"[{', '.join(map(str, default))}]"
    if isinstance(default, dict):
        return f"{{{', '.join(f'{key}: {value}' for key, value in default.items())}}}"
    return str(default).lower()


def option_table() -> list[str]:
    """Return the table of docs/study.md, from the models."""
    models = {**{suite.name: suite.options for suite in suites()}, "analyses": AnalysisOptions}
    return [
        f"| {owner} | `{name}` | {describe_type(annotated(field.annotation, field.metadata))} | {shown(field.default)} "
        f"| {field.description} |"
        for owner, model in models.items()
        for name, field in named_fields(model).items()
    ]


def test_the_docs_list_every_option_as_its_model_declares_it() -> None:
    text = (DOCS / "study.md").read_text(encoding="utf-8")
    section = text.partition("## Options\n")[2].partition("\n## ")[0]
    assert [line for line in section.splitlines() if line.startswith("| ") and "`" in line] == option_table()


def test_options_of_analyses_are_options_of_the_suites_that_make_them() -> None:
    study = make_study({"suite": "kmir", "options": {"pairs": 3}}, "here")
    kmir = SUITES.get("kmir", None)
    assert "pairs" in available_options(kmir.analysis_names())
    with pytest.raises(InputError, match=r"options\.pairs must be a list .*, got 3 \(here\)"):
        check_options(kmir.options, "kmir", kmir.analysis_names(), study, Path(), "here")
