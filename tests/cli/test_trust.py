"""A study from a stranger runs no code and sends no key unasked; what the user has agreed to is remembered."""

from __future__ import annotations

import json
import shutil
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from all_cases import check_all
from chat_servers import ScriptedServer, completion, running
from strangers import PARTS, Stranger

import merkhet as package
from merkhet.core.consent import ConsentError
from merkhet.core.errors import MAX_FAULTS
from merkhet.engine.permissions import is_own_code
from merkhet.engine.resolve_study import Request, resolve_study
from merkhet.suites import SUITES

REMEDY = "Nothing was run or sent. If you trust the author, repeat the command with --trust (in Python: trust=True)"
RUN = ("run", "study/study.yaml", "--out", "run", "--quiet")


def lines_of(done: Any) -> list[str]:
    return done.stderr.splitlines()


def asked_for(done: Any) -> list[str]:
    """The announcements of a refusal, which ends with one line that says how to agree."""
    assert done.returncode == 2 and done.stdout == "", (done.returncode, done.stdout, done.stderr)
    first, *others = lines_of(done)
    assert first.startswith("merkhet: study/study.yaml ") and others[-1].startswith(f"  {REMEDY}"), done.stderr
    return [line.removeprefix("merkhet:").strip().removeprefix("study/study.yaml ") for line in [first, *others[:-1]]]


def announced(done: Any) -> list[str]:
    assert done.returncode == 0, done.stderr
    start = "merkhet: study/study.yaml "
    return [line.removeprefix(start) for line in lines_of(done) if line.startswith(start)]


CODE = (
    ({"metrics": ["../elsewhere/parts.py:ones"]}, "runs {code}:ones (metrics) from outside its folder"),
    ({"metrics": ["their_package.parts:ones", "mrr"]}, "imports their_package.parts:ones (metrics)"),
    ({"metrics": ["adjusted-their_package.parts:ones"]}, "imports their_package.parts:ones (metrics)"),
    ({"metrics": ["brass"]}, "runs the installed plug-in brass (metrics), which is the code their_package.parts:ones"),
    ({"probes": ["their_package.parts:ask"]}, "imports their_package.parts:ask (probes)"),
    ({"probes": [{"probe": "{code}:ask"}]}, "runs {code}:ask (probes) from outside its folder"),
    ({"models": ["their_package.parts:model"]}, "imports their_package.parts:model (models)"),
    ({"models": [{"model": "../elsewhere/parts.py:model"}]}, "runs {code}:model (models) from outside its folder"),
    ({"models": ["random:their_package.parts:model"]}, "imports their_package.parts:model (models)"),
    ({"learning": {"learner": "their_package.parts:learn"}}, "imports their_package.parts:learn (learning)"),
    ({"suite": "their_package.parts:SUITE"}, "imports their_package.parts:SUITE (suite)"),
    ({"suite": "brazen"}, "runs the installed plug-in brazen (suite), which is the code their_package.parts:SUITE"),
    ({"knowledge": ["{code}:read=facts.csv"]}, "runs {code}:read (knowledge) from outside its folder"),
)


def filled(stranger: Stranger, keys: dict[str, Any], said: str) -> tuple[dict[str, Any], str]:
    code = str(stranger.code)
    return yaml.safe_load(yaml.safe_dump(keys).replace("{code}", code)), said.replace("{code}", code)


@pytest.fixture
def own_cache(stranger: Stranger) -> Path:
    return stranger.folder / "cache"


def test_foreign_code_is_announced_and_not_run(merkhet, stranger: Stranger) -> None:
    def check(keys: dict[str, Any], said: str) -> None:
        keys, said = filled(stranger, keys, said)
        stranger.write(**keys)
        assert asked_for(merkhet(*RUN)) == [said]
        assert not stranger.ran and not (stranger.folder / "run").exists()

    check_all(check, CODE)


def test_trusted_code_runs_and_the_consent_is_remembered(merkhet, stranger: Stranger, own_cache: Path) -> None:
    keys, said = filled(stranger, *CODE[0])
    study = stranger.write(**keys, tasks=["completion"])
    assert asked_for(merkhet(*RUN)) == [said] and not own_cache.exists()
    assert announced(merkhet(*RUN, "--trust")) == [said] and stranger.ran
    assert announced(merkhet(*RUN)) == []
    moved = Path(shutil.copytree(study.parent, stranger.folder / "moved"))
    assert resolved(moved / study.name) is None
    records = [json.loads(file.read_bytes()) for file in (own_cache / "consent").glob("*.json")]
    assert [record["permission"] for record in records] == [said]


@pytest.mark.slow
def test_every_kind_of_code_runs_only_with_trust_which_is_remembered(merkhet, stranger: Stranger) -> None:
    def check(keys: dict[str, Any], said: str) -> None:
        keys, said = filled(stranger, keys, said)
        stranger.write(**keys, tasks=["completion"])
        shutil.rmtree(stranger.folder / "run", ignore_errors=True)
        assert asked_for(merkhet(*RUN)) == [said]
        assert not stranger.ran
        assert announced(merkhet(*RUN, "--trust")) == [said]
        assert stranger.ran
        assert announced(merkhet(*RUN)) == []
        stranger.forget_markers()

    check_all(check, [case for case in CODE if "learning" not in case[0] and "random:" not in str(case[0])])


@pytest.mark.slow
def test_processes_share_the_consent(merkhet_process, stranger: Stranger) -> None:
    """Real processes; the current folder is where ``python -m`` looks for modules first."""
    (stranger.folder / "beside.py").write_text(PARTS)
    stranger.write(metrics=["beside:ones"], tasks=["completion"])
    assert asked_for(merkhet_process(*RUN)) == ["imports beside:ones (metrics)"] and not stranger.ran
    assert announced(merkhet_process(*RUN, "--trust")) == ["imports beside:ones (metrics)"] and stranger.ran
    assert announced(merkhet_process(*RUN)) == []
    for shard in ("1/2", "2/2"):
        done = merkhet_process(*RUN[:2], "--shard", shard, "--out", f"part-{shard[0]}", "--quiet")
        assert announced(done) == []
    assert merkhet_process("merge", "part-1", "part-2", "--out", "whole", "--quiet").returncode == 0


def resolved(study: Path | str, *settings: str, trust: bool = False, **request: Any) -> list[str] | None:
    """What a study asks for when it is resolved; None if it asks for nothing."""
    try:
        resolve_study(Request(str(study), settings=settings, trust=trust, **request), SUITES)
    except ConsentError as error:
        return [line.removeprefix(f"{study} ") for line in error.faults]
    return None


def test_a_changed_byte_of_the_code_or_the_study_ends_the_consent(stranger: Stranger) -> None:
    module = stranger.folder / "installed" / "their_package" / "parts.py"

    def check(metric: str, changed: Path) -> None:
        study = stranger.write(metrics=[metric])
        assert resolved(study, trust=True) is None and resolved(study) is None
        changed.write_text(changed.read_text() + "#")
        assert len(resolved(study) or ()) == 1
        assert resolved(study, trust=True) is None and resolved(study) is None
        assert len(resolved(stranger.write(metrics=[metric], seed=1)) or ()) == 1

    check_all(
        check,
        [
            ("../elsewhere/parts.py:ones", stranger.code),
            ("their_package.parts:ones", module),
            ("their_package.parts:ones", module.with_name("__init__.py")),
            ("brass", module),
        ],
    )


def test_everything_is_named_at_once(merkhet, stranger: Stranger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THEIR_KEY", "s3cret")
    metrics = []
    for number in range(MAX_FAULTS + 1):
        file = stranger.folder / "elsewhere" / f"metric_{number}.py"
        file.write_text(PARTS)
        metrics.append(f"../elsewhere/{file.name}:ones")
    models = [
        {"model": "big/model", "trust_remote_code": True},
        {"model": "chat:m@https://api.evil.example/v1", "chat": {"key": "THEIR_KEY"}},
    ]
    stranger.write(metrics=metrics, models=models, probes=["their_package.parts:ask"])
    said = asked_for(merkhet(*RUN))
    assert [line for line in said if "metric_" not in line] == [
        "imports their_package.parts:ask (probes)",
        "lets the model big/model run the code that comes with it (trust_remote_code)",
        "sends the environment variable THEIR_KEY to api.evil.example",
    ]
    assert len(said) == MAX_FAULTS + 4 and not stranger.ran and not any("s3cret" in line for line in said)


def test_code_in_the_folder_of_the_study_needs_no_consent(stranger: Stranger) -> None:
    below = stranger.folder / "study" / "below" / "own.py"
    below.parent.mkdir()
    below.write_text(PARTS)
    assert resolved(stranger.write(metrics=["below/own.py:ones"])) is None and stranger.ran
    assert resolved(stranger.write(metrics=[f"{stranger.folder}/study/../study/below/own.py:ones"])) is None
    below.unlink()
    below.symlink_to(stranger.code)
    study = stranger.write(metrics=["below/own.py:ones"])
    assert resolved(study) == [f"runs {stranger.code}:ones (metrics) from outside its folder"]


def test_in_a_folder_that_holds_more_than_a_study_only_the_code_beside_it_is_its_own(
    stranger: Stranger, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = stranger.folder / "home"
    for place in ("own.py", "other/own.py"):
        (home / place).parent.mkdir(parents=True, exist_ok=True)
        (home / place).write_text("")
    assert is_own_code(home / "own.py", home) and is_own_code(home / "other" / "own.py", home)
    monkeypatch.setenv("HOME", str(home))
    assert is_own_code(home / "own.py", home) and not is_own_code(home / "other" / "own.py", home)
    assert is_own_code(home / "other" / "own.py", home / "other")
    assert not is_own_code(Path(sysconfig.__file__), Path("/"))
    assert not is_own_code(Path(sysconfig.__file__), Path(sysconfig.__file__).parent)


def test_what_the_user_types_needs_no_consent(stranger: Stranger) -> None:
    study = stranger.write(metrics=["their_package.parts:ones"])
    assert resolved(study, "metrics=['their_package.parts:ones']") is None and stranger.ran
    assert resolved(study, "metrics=[mrr]", models=["their_package.parts:model"]) is None and stranger.ran
    assert resolved(study, "metrics=[mrr]", knowledge=[f"{stranger.code}:read=study/facts.csv"]) is None
    assert resolved(study, "seed=2", models=["random"]) == ["imports their_package.parts:ones (metrics)"]
    # The same code in another place is the study's.
    study = stranger.write(probes=["their_package.parts:ask"])
    assert resolved(study, "metrics=['their_package.parts:ask']") == ["imports their_package.parts:ask (probes)"]
    assert resolved(f"{stranger.code}:SUITE", models=["random"]) is None and stranger.ran


def test_a_study_cannot_give_the_users_consent(merkhet, stranger: Stranger) -> None:
    stranger.write(metrics=["their_package.parts:ones"], trust=True)
    (line,) = lines_of(merkhet(*RUN, check=2))
    assert "'trust' is not a key of a study" in line and line.endswith("(study/study.yaml)")
    stranger.write(models=[{"model": "random", "trust": True}])
    assert "trust" in merkhet(*RUN, check=2).stderr


def test_consent_in_python(stranger: Stranger) -> None:
    study = str(stranger.write(metrics=["their_package.parts:ones"]))
    out = stranger.folder / "run"
    with pytest.raises(package.InputError) as refused:
        package.run(study, out=out)
    assert str(refused.value).splitlines()[0] == f"{study} imports their_package.parts:ones (metrics)"
    assert not stranger.ran
    assert package.run(study, out=out, trust=True).scores.num_rows and stranger.ran


def test_memorize_asks_too(merkhet, stranger: Stranger) -> None:
    stranger.write(suite="lama-tk", learning="memorize", models=["random:1x8"], metrics=["their_package.parts:ones"])
    done = merkhet("memorize", "study/study.yaml", "--out", "run", "--quiet")
    assert asked_for(done) == ["imports their_package.parts:ones (metrics)"] and not stranger.ran


BUILT = {
    "metrics": ["own.py:ones", "their_package.parts:ones", "../elsewhere/parts.py:ones"],
    "probes": [{"probe": "own.py:ask", "options": {"anything": 1}}, "their_package.parts:ask"],
    "models": ["own.py:model", {"model": "their_package.parts:model"}, {"model": "x/y", "trust_remote_code": True}],
    "chat": {"key": "THEIR_KEY"},
}


def test_build_imports_nothing_that_only_asking_needs(merkhet, stranger: Stranger) -> None:
    (stranger.folder / "study" / "own.py").write_text(PARTS)
    build = ("build", "study/study.yaml", "--out", "built")
    stranger.write(**BUILT, learning="their_package.parts:learn", tasks=["completion"])
    assert announced(merkhet(*build)) == [] and not stranger.ran
    stranger.write(**{**BUILT, "suite": "their_package.parts:SUITE"})
    assert asked_for(merkhet(*build)) == ["imports their_package.parts:SUITE (suite)"] and not stranger.ran
    stranger.write(**{**BUILT, "knowledge": ["their_package.parts:read=facts.csv"]})
    said = ["imports their_package.parts:read (knowledge)"]
    assert asked_for(merkhet(*build)) == said and not stranger.ran
    assert announced(merkhet(*build, "--set", "tasks=[completion]", "--trust")) == said and stranger.ran
    stranger.write(metrics=["os:system"])
    assert "'os:system' is not a metric" in merkhet(*build, check=2).stderr


def test_code_that_comes_with_a_model_needs_consent(stranger: Stranger) -> None:
    model = stranger.folder / "study" / "model"
    model.mkdir()
    (model / "config.json").write_text('{"architectures": ["BertForMaskedLM"]}')
    (model / "model.safetensors").touch()
    study = stranger.write(models=[{"model": "model", "trust_remote_code": True}])
    said = ["lets the model model run the code that comes with it (trust_remote_code)"]
    assert resolved(study) == said
    assert resolved(study, trust=True) is None and resolved(study) is None
    (model / "modeling_theirs.py").write_text("")
    assert resolved(study) == said
    assert resolved(study, "models=[{model: model, trust_remote_code: true}]") is None


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedServer]:
    monkeypatch.setenv("THEIR_KEY", "s3cret-of-the-user")
    monkeypatch.setenv("MY_KEY", "my-own-key")
    with running(ScriptedServer(lambda body, headers: (200, {}, completion("A")))) as found:
        yield found


def key_cases(server: ScriptedServer) -> list[tuple[dict[str, Any], dict[str, Any], bool]]:
    """Studies, what the user types, and whether the user has to agree."""
    model = f"chat:m@{server.endpoint}"
    theirs = {"key": "THEIR_KEY"}
    return [
        ({"models": [model], "chat": theirs}, {}, True),
        ({"models": [{"model": model, "chat": theirs}]}, {}, True),
        ({"models": [{"model": "m", "endpoint": server.endpoint}], "chat": theirs, "seed": 2}, {}, True),
        # The study names the variable, the user the host; and the reverse.
        ({"chat": theirs, "seed": 3}, {"models": [model]}, True),
        ({"models": [model], "seed": 4}, {"settings": ["chat.key=THEIR_KEY"]}, True),
        # The study names another variable than the user.
        ({"models": [{"model": model, "chat": theirs}], "seed": 5}, {"settings": ["chat.key=MY_KEY"]}, True),
        ({"seed": 6}, {"models": [model], "settings": ["chat.key=MY_KEY"]}, False),
        ({"models": [model], "seed": 7}, {}, False),
    ]


def announced_key(server: ScriptedServer) -> str:
    host = server.endpoint.removeprefix("http://").removesuffix("/v1")
    return f"sends the environment variable THEIR_KEY to {host} (unencrypted)"


def test_a_key_is_sent_only_with_consent(merkhet, stranger: Stranger, server: ScriptedServer) -> None:
    study = stranger.write(models=[f"chat:m@{server.endpoint}"], chat={"key": "THEIR_KEY"}, tasks=["completion"])
    said = [announced_key(server)]
    assert asked_for(merkhet(*RUN)) == said and not server.headers
    assert announced(merkhet(*RUN, "--trust")) == said
    assert {headers.get("authorization") for headers in server.headers} == {"Bearer s3cret-of-the-user"}
    assert announced(merkhet(*RUN)) == []
    with running(ScriptedServer(server.respond)) as other:
        study.write_text(study.read_text().replace(server.endpoint, other.endpoint))
        assert asked_for(merkhet(*RUN)) == [announced_key(other)] and not other.headers


def test_a_key_needs_consent_unless_the_user_types_both_variable_and_host(stranger: Stranger, server) -> None:
    def check(keys: dict[str, Any], typed: dict[str, Any], asks: bool) -> None:
        study = stranger.write(**keys)
        settings, models = typed.get("settings", ()), typed.get("models", ())
        assert resolved(study, *settings, models=models) == ([announced_key(server)] if asks else None)
        assert resolved(study, *settings, models=models, trust=True) is None
        assert resolved(study, *settings, models=models) is None

    check_all(check, key_cases(server))


def test_the_usual_key_of_a_known_host_is_announced(merkhet, stranger: Stranger, monkeypatch) -> None:
    """The study causes requests that cost money, but the key goes where it belongs. The host is not asked here."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    usual = "sends the environment variable OPENAI_API_KEY to api.openai.com"

    def said(model: str, *typed: str, **keys: Any) -> list[str]:
        stranger.write(models=[model], **keys)
        return lines_of(merkhet(*RUN, *typed, check=2))

    address = "chat:m@https://api.openai.com/v1"
    announcement, refusal = said(address)
    assert announcement == f"merkhet: study/study.yaml {usual}" and "OPENAI_API_KEY" in refusal
    assert "is not set" in refusal
    (only,) = said("random", "--model", address)
    assert "is not set" in only
    # A key that a study names must be set.
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    named = said(address, chat={"key": "OPENAI_API_KEY"})
    monkeypatch.delenv("OPENAI_API_KEY")
    assert named[0] == f"merkhet: study/study.yaml {usual}" and named[-1].startswith(f"  {REMEDY}")
    plain = said("chat:m@http://api.openai.com/v1")
    assert plain[0] == f"merkhet: study/study.yaml {usual} (unencrypted)" and plain[-1].startswith(f"  {REMEDY}")
    other = said("chat:m@https://api.openai.com:8080/v1")
    assert other[0] == f"merkhet: study/study.yaml {usual}:8080" and other[-1].startswith(f"  {REMEDY}")


def test_functions_of_python_are_no_parts_even_with_trust(merkhet, stranger: Stranger) -> None:
    (stranger.folder / "study" / "own.py").write_text("from os import getcwd, system\nfrom subprocess import call\n")
    facts = "study/facts.csv"

    def check(keys: dict[str, Any], typed: tuple[str, ...], name: str) -> None:
        stranger.write(**keys)
        for given in ((*RUN, "--trust"), RUN):
            (line,) = lines_of(merkhet(*given, *typed, check=2))
            assert line.startswith(f"merkhet: '{name}' is not a ") and "standard library" in line

    check_all(
        check,
        [
            ({"metrics": ["os:system"]}, (), "os:system"),
            ({}, ("--set", "metrics=['os:system']"), "os:system"),
            ({"metrics": ["own.py:system"]}, (), "own.py:system"),
            ({"probes": ["subprocess:call"]}, (), "subprocess:call"),
            ({"probes": ["own.py:call"]}, (), "own.py:call"),
            ({"models": ["os:getcwd"]}, (), "os:getcwd"),
            ({"models": ["own.py:getcwd"]}, (), "own.py:getcwd"),
            ({"suite": "builtins:eval"}, (), "builtins:eval"),
            ({"learning": "os:system"}, (), "os:system"),
            ({}, ("--knowledge", f"os:listdir={facts}"), "os:listdir"),
            ({}, ("--model", "os:getcwd"), "os:getcwd"),
        ],
    )
