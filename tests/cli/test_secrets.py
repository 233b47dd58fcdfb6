"""Nothing that a command prints or writes contains a part of a key, whatever servers answer and users type."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml
from chat_servers import ScriptedServer, completion, running
from secret_leaks import ATTACKS, KEY, TreacherousServer, find_leaks, raw_response
from small_packs import write_pack

import merkhet as package
from merkhet.cli.redacted_streams import redacted_streams
from merkhet.core.errors import InputError
from merkhet.core.redaction import register_secret

PASSWORD = "Wv3-hunter2-kept-to-myself"
QUICK = ["echo in tokens", "cut at 300 characters"]
"""Attacks of the fast tier."""
Check = Callable[..., list[str]]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a cache and a folder for temporary files, all of which are searched."""
    for name, variable in (("cache", "MERKHET_CACHE"), ("temporary", "TMPDIR")):
        (tmp_path / name).mkdir()
        monkeypatch.setenv(variable, str(tmp_path / name))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setenv("MERKHET_TEST_KEY", KEY)
    monkeypatch.setenv("no_proxy", "")
    return tmp_path


@pytest.fixture
def leaks(place: Path) -> Check:
    """Search for a secret in the output of a command and in all files, but for those that the user wrote."""

    def find(done: subprocess.CompletedProcess[str], secret: str = KEY) -> list[str]:
        for name in ("study.yaml", "pack"):  # Written by the user.
            path = place / name
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        return find_leaks(secret, {"stdout": done.stdout, "stderr": done.stderr}, place)

    return find


def write_study(folder: Path, endpoint: str, *, chat: dict[str, Any] | None = None, **more: Any) -> None:
    chat = {"key": "MERKHET_TEST_KEY", "tries": 2, "timeout": 5, "concurrency": 2, **(chat or {})}
    study = {
        "suite": "quickstart",
        "knowledge": [str(write_pack(folder / "pack"))],
        "tasks": ["completion"],
        "limit": 2,
        "models": [{"model": "tester", "endpoint": endpoint, "chat": chat}, "random"],
        **more,
    }
    (folder / "study.yaml").write_text(yaml.safe_dump(study))


def attack(name: str, command: Any, place: Path, leaks: Check) -> None:
    with running(TreacherousServer(ATTACKS[name])) as server:
        write_study(place, server.endpoint)
        done = command("run", "study.yaml", "--out", "r", "--quiet", "--trust")
        assert server.headers, done.stderr
        assert server.headers[0]["authorization"] == f"Bearer {KEY}"
    assert done.returncode in (0, 1, 2), done.stderr
    assert "Traceback" not in done.stderr
    assert not leaks(done), name
    assert done.returncode or (place / "r" / "report.html").exists()


@pytest.mark.parametrize("name", QUICK)
def test_what_a_server_gives_away_is_nowhere(name: str, merkhet: Any, place: Path, leaks: Check) -> None:
    attack(name, merkhet, place, leaks)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(ATTACKS))
def test_what_a_server_gives_away_is_nowhere_after_a_process(
    name: str, merkhet_process: Any, place: Path, leaks: Check
) -> None:
    attack(name, merkhet_process, place, leaks)


@pytest.mark.slow
def test_an_answer_that_is_refused_later_in_a_run_has_no_key(merkhet: Any, place: Path, leaks: Check) -> None:
    """A request that an endpoint refuses after it has answered others becomes an answer with the reason."""
    count = iter(range(1000))

    def respond(body: dict[str, Any], headers: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
        if next(count) < 2:
            return 200, {}, completion("A")
        return 400, {}, json.dumps({"error": {"message": "y" * 280 + headers["authorization"]}}).encode()

    with running(ScriptedServer(respond)) as server:
        write_study(place, server.endpoint, chat={"concurrency": 1}, report="none")
        done = merkhet("run", "study.yaml", "--out", "r", "--quiet", "--trust", check=0)
    reasons = pq.read_table(place / "r" / "answers.parquet")["unusable"].to_pylist()
    assert any("the endpoint refuses this question: yyy" in str(reason) for reason in reasons)
    assert not leaks(done)


SHAPES = [
    "sk-proj-Zq8Xv2-not-to-be-seen",
    "sk_live_Zq8Xv2nottobeseen",
    "ABCDEF0123456789ABCDEF",
    "AKIAIOSFODNN7EXAMPLE",
    "a3f5c9d2e8b14f6790ab12cd34ef5678",
    "OPENAI_API_KEY_VALUE_17",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc123",
    "Bearer Zq8Xv2nottobeseen",
    "_Zq8Xv2nottobeseen",
]


def given_keys(key: str, place: Path) -> dict[str, list[str]]:
    """Commands in which a key stands where it does not belong."""
    here = "http://127.0.0.1:1/v1"
    studies: dict[str, Any] = {
        "key": {"chat": {"key": key}},
        "key of all models": {"models": ["random"], "chat": {"key": key}},
        "chat": {"chat": key},
        "extra": {"chat": {"key": "MERKHET_TEST_KEY", "extra": {"api_key": key}}},
        "nested extra": {"chat": {"key": "MERKHET_TEST_KEY", "extra": {"headers": {"Authorization": f"Bearer {key}"}}}},
    }
    commands = {}
    for name, study in studies.items():
        (place / f"{name}.yaml").write_text(
            yaml.safe_dump({"suite": "quickstart", "models": [{"model": "m", "endpoint": here}], **study})
        )
        commands[f"study: {name}"] = ["run", f"{name}.yaml"]
    (place / "broken.yaml").write_text(f'suite: quickstart\nchat: {{key: "{key}\n')
    model = ["run", "quickstart", "--model", f"chat:m@{here}", "--set"]
    return {
        **commands,
        "study: broken": ["run", "broken.yaml"],
        "--set": [*model, f"chat.key={key}"],
        "--set, quoted": [*model, f"chat.key='{key}'"],
        "--set=": [*model[:-1], f"--set=chat.key={key}"],
        "--set chat": [*model, f"chat={{key: {key}}}"],
        "--set, broken": [*model, f"chat.key=[{key}"],
        "--set of a name": [*model, f"chat.key.x={key}", "--set", f"chat.key={key}"],
        "--set for a local model": ["run", "quickstart", "--model", "random", "--set", f"chat.key={key}"],
        "unknown option": [*model, f"chat.key={key}", "--no-such-option"],
        "surplus": [*model, f"chat.key={key}", "surplus", f"chat.key={key}"],
    }


def slow_but_first(values: list[str]) -> list[Any]:
    """Parameters of which the fast tier tests only the first."""
    return [values[0], *(pytest.param(value, marks=pytest.mark.slow) for value in values[1:])]


def check_refusal(name: str, done: Any, secret: str, place: Path) -> None:
    """Check that a command was refused, and that nothing that it printed or wrote contains the secret."""
    texts = {"stdout": done.stdout, "stderr": done.stderr}
    assert done.returncode == 2, (name, texts)
    assert "Traceback" not in done.stderr
    written = [folder for folder in (place / "runs", place / "cache", place / "temporary") if folder.exists()]
    assert not find_leaks(secret, texts, *written), name


@pytest.mark.parametrize("shape", slow_but_first(SHAPES))
def test_a_key_in_place_of_a_variable_is_refused_and_not_repeated(shape: str, merkhet: Any, place: Path) -> None:
    for name, words in given_keys(shape, place).items():
        check_refusal(name, merkhet(*words, cwd=place), shape, place)


def given_logins(place: Path) -> dict[str, list[str]]:
    """Commands with a user and password in an address."""
    (place / "login.yaml").write_text(f"suite: quickstart\nknowledge: ['https://me:{PASSWORD}@127.0.0.1:1/sparql']\n")
    (place / "model.yaml").write_text(f"suite: quickstart\nmodels: ['chat:m@https://me:{PASSWORD}@127.0.0.1:1/v1']\n")
    address = f"https://me:{PASSWORD}@127.0.0.1:1/v1"
    into = ["--into", "kb.duckdb"]
    return {
        "model": ["run", "quickstart", "--model", f"chat:m@{address}"],
        "model without a host": ["run", "quickstart", "--model", f"chat:m@https://me:{PASSWORD}/v1"],
        "model with a wrong scheme": ["run", "quickstart", "--model", f"chat:m@htp://me:{PASSWORD}@h/v1"],
        "model without a scheme": ["run", "quickstart", "--model", f"chat:m@me:{PASSWORD}@h/v1"],
        "model without a name": ["run", "quickstart", "--model", f"chat:{address}"],
        "token as a user": ["run", "quickstart", "--model", f"chat:m@https://{PASSWORD}@h/v1"],
        "endpoint": ["run", "quickstart", "--set", f"models=[{{model: m, endpoint: '{address}'}}]"],
        "study": ["run", "login.yaml"],
        "study of a model": ["run", "model.yaml"],
        "study in place of a suite": ["run", address],
        "knowledge": ["run", "quickstart", "--knowledge", address],
        "knowledge by --set": ["build", "quickstart", "--out", "q", "--set", f"knowledge=['{address}']"],
        "import": ["knowledge", "import", address, "--query", "wikidata-facts", *into],
        "import with a source": ["knowledge", "import", f"sparql={address}", "--query", "wikidata-facts", *into],
        "import with an option": ["knowledge", "import", "q.rq", "--set", f"endpoint={address}", *into],
        "import of another scheme": ["knowledge", "import", f"ftp://me:{PASSWORD}@h/x", *into],
        "surplus": ["models", address],
        "no scheme": ["knowledge", "import", f"me:{PASSWORD}@127.0.0.1:1/sparql", "--into", "kb.duckdb"],
        "one slash": ["knowledge", "import", f"http:/me:{PASSWORD}@127.0.0.1:1/sparql", "--into", "kb.duckdb"],
        "escaped": ["knowledge", "import", f"http://me%3A{PASSWORD}%40127.0.0.1:1/sparql", "--into", "kb.duckdb"],
        "number": ["run", "quickstart", "--seed", address],
        "engine": ["run", "quickstart", "--engine", f"ray://me:{PASSWORD}@127.0.0.1:1"],
    }


def test_a_login_in_an_address_is_refused_and_not_repeated(merkhet: Any, place: Path) -> None:
    (place / "q.rq").write_text("SELECT ?subject ?predicate ?object { ?subject ?predicate ?object }")
    for name, words in given_logins(place).items():
        check_refusal(name, merkhet(*words, cwd=place), PASSWORD, place)
    assert not (place / "kb.duckdb").exists()


@pytest.mark.slow
def test_processes_refuse_keys_and_logins_too(merkhet_process: Any, place: Path) -> None:
    (place / "q.rq").write_text("SELECT ?subject ?predicate ?object { ?subject ?predicate ?object }")
    for secret, commands in ((SHAPES[1], given_keys(SHAPES[1], place)), (PASSWORD, given_logins(place))):
        for name, words in commands.items():
            done = merkhet_process(*words, cwd=place)
            assert done.returncode == 2, (name, done.stderr)
            assert not find_leaks(secret, {"stdout": done.stdout, "stderr": done.stderr}), name


@pytest.mark.parametrize(
    "chat",
    [
        {"extra": {"user": KEY}},
        {"extra": {"nested": [{"a": f"x{KEY}"}]}},
        {"extra": {KEY: 1}},
        {"extra": {"token": "short"}},
        {"extra": {"note": "sk-ant-0123456789abcdefghij"}},
        {"system": f"The key is {KEY}."},
        {"key_header": "sk-ant-0123456789abcdefghij"},
    ],
)
def test_a_key_in_a_setting_that_is_recorded_is_refused(chat: dict[str, Any], merkhet: Any, place: Path) -> None:
    write_study(place, "http://127.0.0.1:1/v1", chat=chat)
    done = merkhet("run", "study.yaml", "--out", "r", "--quiet", "--trust", check=2)
    assert "contains a key or password" in done.stderr
    for secret in (KEY, "sk-ant-0123456789abcdefghij"):
        assert not find_leaks(secret, {"stderr": done.stderr}, place / "cache")
    assert not (place / "r").exists()


@pytest.mark.slow
def test_fields_that_are_no_credentials_are_sent(merkhet: Any, place: Path) -> None:
    extra = {"max_tokens_to_sample": 3, "prompt_cache_key": "mine", "stop_token_ids": [1], "user": "me", "token": 3}
    with running(ScriptedServer(lambda body, headers: (200, {}, completion("A")))) as server:
        write_study(place, server.endpoint, chat={"extra": extra}, report="none")
        merkhet("run", "study.yaml", "--out", "r", "--quiet", "--trust", check=0)
        assert extra.items() <= server.requests[0].items()


def test_a_model_with_the_name_of_the_key_is_refused(merkhet: Any, place: Path) -> None:
    done = merkhet(
        "run", "quickstart", "--model", f"chat:{KEY}@http://127.0.0.1:1/v1", "--set", "chat.key=MERKHET_TEST_KEY"
    )
    assert done.returncode == 2
    assert "contains the key" in done.stderr
    assert not find_leaks(KEY, {"stderr": done.stderr})


@pytest.mark.slow
@pytest.mark.parametrize("proxy", ["http://me:{}@127.0.0.1:{}", "me:{}@127.0.0.1:{}", "http://me:{}@127.0.0.1:port{}"])
def test_the_password_of_a_proxy_is_nowhere(
    proxy: str, merkhet: Any, place: Path, leaks: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    def respond(body: dict[str, Any], headers: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
        return 200, {}, completion(f"{headers}")

    with running(ScriptedServer(respond)) as server:
        monkeypatch.setenv("http_proxy", proxy.format(PASSWORD, server.server_address[1]))
        write_study(place, "http://far.invalid/v1", report="none")
        done = merkhet("run", "study.yaml", "--out", "r", "--quiet", "--trust")
        assert done.returncode == (1 if "port" in proxy else 0), done.stderr
        if not done.returncode:
            assert "proxy-authorization" in server.headers[0]
    assert not leaks(done, PASSWORD)
    assert not find_leaks(KEY, {}, place / "r")


def rows(key: str) -> bytes:
    """A page of facts in which the key occurs; none without a key."""
    values = [f"http://example.org/{key}", "http://example.org/p", f"it is {key}"]
    kinds = ["uri", "uri", "literal"]
    names = ["subject", "predicate", "object"]
    cells = {name: {"type": kind, "value": value} for name, kind, value in zip(names, kinds, values, strict=True)}
    found = [{**cells, "object": {"type": "literal", "value": f"{number} {key}"}} for number in range(3) if key]
    return raw_response(json.dumps({"head": {"vars": names}, "results": {"bindings": found}}))


SPARQL_ATTACKS = {"rows": rows, **{name: ATTACKS[name] for name in ATTACKS if "reply" not in name}}


class TreacherousEndpoint(TreacherousServer):
    """Answers queries instead of requests in JSON."""

    def __init__(self, attack: Callable[[str], bytes], key: str) -> None:
        super().__init__(attack, key)
        handler = self.RequestHandlerClass

        class Handler(handler):  # type: ignore[misc, valid-type]
            def do_POST(self) -> None:  # noqa: N802
                self.rfile.read(int(self.headers["Content-Length"]))
                self.server.headers.append({name.lower(): value for name, value in self.headers.items()})
                self.server.answer(self, {})
                if self.server.attack is rows:
                    self.server.key = ""  # The next page is empty.

        self.RequestHandlerClass = Handler


def ask_endpoint(name: str, command: Any, place: Path, leaks: Check, *, by_option: bool = False) -> None:
    (place / "q.rq").write_text("SELECT ?subject ?predicate ?object { ?subject ?predicate ?object }")
    with running(TreacherousEndpoint(SPARQL_ATTACKS[name], KEY)) as server:
        address = f"http://127.0.0.1:{server.server_address[1]}/sparql?apikey={KEY.replace('+', '%2B')}"
        options = ["retries=1", "wait=0", "count=no", "key=MERKHET_TEST_LOGIN"]
        sets = [word for option in options for word in ("--set", option)]
        words = ["q.rq", "--set", f"endpoint={address}"] if by_option else [address, "--query", "q.rq"]
        done = command("knowledge", "import", *words, *sets, "--into", "kb.duckdb")
        assert server.headers[0]["authorization"]
    assert done.returncode in (0, 1, 2), done.stderr
    assert "Traceback" not in done.stderr
    assert (name != "rows") or done.returncode == 0, done.stderr
    assert not leaks(done), name


def test_what_an_endpoint_gives_away_is_nowhere(
    merkhet: Any, place: Path, leaks: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MERKHET_TEST_LOGIN", f"me:{KEY}")
    ask_endpoint("rows", merkhet, place, leaks, by_option=True)


@pytest.mark.slow
def test_no_response_of_an_endpoint_brings_the_key_to_disk(
    merkhet_process: Any, place: Path, leaks: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, name in enumerate(SPARQL_ATTACKS):
        monkeypatch.setenv("MERKHET_TEST_LOGIN", f"me:{KEY}" if number % 2 else KEY)
        ask_endpoint(name, merkhet_process, place, leaks)
        (place / "kb.duckdb").unlink(missing_ok=True)


def test_an_error_of_the_program_itself_is_printed_without_keys(capsys: pytest.CaptureFixture[str]) -> None:
    register_secret(KEY)
    stdout = sys.stdout
    with pytest.raises(SystemExit) as stopped, redacted_streams([f"--set=chat.key={PASSWORD}"]):
        print(f"the key is {KEY}, the password {PASSWORD}")
        raise ValueError(f"not this: {KEY}")
    assert sys.stdout is stdout
    assert stopped.value.code == 1
    printed = capsys.readouterr()
    assert printed.out == "the key is (the key), the password (the key)\n"
    assert printed.err.startswith("Traceback")
    assert printed.err.endswith("ValueError: not this: (the key)\n")


@pytest.mark.slow
def test_a_study_of_an_address_with_a_key_records_it_without(merkhet: Any, place: Path, leaks: Check) -> None:
    def respond(body: dict[str, Any], headers: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
        return 200, {}, completion("A")

    with running(ScriptedServer(respond)) as server:
        write_study(place, server.endpoint, title=f"From https://me.example/sparql?apikey={KEY}")
        done = merkhet("run", "study.yaml", "--out", "r", "--quiet", "--trust", check=0)
    assert not leaks(done)


def test_the_python_interface_shows_no_key(place: Path) -> None:
    from merkhet.models.chat._chat_settings import read_settings
    from merkhet.models.chat._endpoint import EndpointModel

    with running(TreacherousServer(ATTACKS["a status line"])) as server:
        settings = read_settings("m", server.endpoint, {"key": "MERKHET_TEST_KEY", "tries": 1})
        settings.read_key()
        model = EndpointModel("m", settings)
        texts = {"repr": f"{settings!r} {model!r} {vars(model)!r} {model.describe()!r} {settings!s}"}
        with pytest.raises(Exception, match="gave no reply") as caught:
            package.run(
                "quickstart",
                models=[{"model": "m", "endpoint": server.endpoint, "chat": {"key": "MERKHET_TEST_KEY", "tries": 1}}],
                knowledge=[str(write_pack(place / "pack"))],
                limit=1,
                out=place / "r",
            )
        texts["traceback"] = str(caught.getrepr(chain=True, style="native"))
    for given in ({"key": KEY}, {"extra": {"api_key": KEY}}, {"system": KEY}):
        with pytest.raises(InputError) as refused:
            package.run(
                "quickstart", models=[{"model": "m", "endpoint": server.endpoint, "chat": given}], out=place / "x"
            )
        texts[str(sorted(given))] = f"{refused.value} {refused.value!r}"
    with pytest.raises(InputError) as refused:
        package.run("quickstart", models=[f"chat:m@https://me:{KEY[:6]}secretpart@h/v1"], out=place / "x")
    assert "secretpart" not in f"{refused.value!r}"
    assert not find_leaks(KEY, texts)
