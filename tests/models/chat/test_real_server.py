"""SmolLM2 behind ``transformers serve``: the same replies as on this machine, whatever happens on the way."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from chat_servers import FaultyProxy, running, transformers_server

from merkhet.core.errors import InputError
from merkhet.core.records import Question
from merkhet.models.chat._chat_settings import read_settings
from merkhet.models.chat._endpoint import EndpointModel
from merkhet.models.chat._reply_cache import ReplyCache
from merkhet.models.loading import load_model
from merkhet.models.model_lookup import ModelSpec, resolve_model
from merkhet.models.protocol import Model
from merkhet.probes.chat.answer import answer
from merkhet.probes.chat.choose import choose
from merkhet.probes.chat.judge import judge

pytestmark = pytest.mark.slow

CAPITALS = {"France": "Paris", "Spain": "Madrid", "Italy": "Rome", "Japan": "Tokyo", "Egypt": "Cairo", "Peru": "Lima"}


def questions() -> list[Question]:
    return [
        Question(
            question_id=f"q-{country}",
            task="completion",
            prompt=f"The capital of {country} is [MASK].",
            answers=(city,),
            target=city,
            candidates=tuple(CAPITALS.values()),
        )
        for country, city in CAPITALS.items()
    ]


@pytest.fixture(scope="module")
def folder() -> Path:
    from merkhet.models._gguf import unpack_gguf

    pytest.importorskip("uvicorn")
    found = resolve_model(ModelSpec("smollm2-135m")).path
    assert found is not None
    return unpack_gguf(found)


@pytest.fixture(scope="module")
def endpoint(folder: Path) -> Iterator[str]:
    with transformers_server(folder) as address:
        yield address


@pytest.fixture(scope="module")
def here() -> Model:
    return load_model("smollm2-135m")


@pytest.fixture(scope="module")
def proxy(endpoint: str) -> Iterator[FaultyProxy]:
    """A proxy before the server, without faults until a test wants them; it keeps what the server has replied."""
    with running(FaultyProxy(endpoint)) as found:
        yield found


@pytest.fixture(scope="module")
def judged_here(here: Model) -> dict[tuple[str, int | None], tuple[str, ...]]:
    return replies(judge(here, questions()))


def served(folder: Path, endpoint: str, kept: Path, **settings: object) -> EndpointModel:
    given = read_settings(str(folder), endpoint, {"timeout": 300, "concurrency": 4, **settings})
    return EndpointModel("served", given, ReplyCache(kept))


def replies(answers: Iterator) -> dict[tuple[str, int | None], tuple[str, ...]]:
    return {(one.question_id, one.repeat): one.replies for one in answers}


def test_the_same_model_says_the_same_here_and_behind_a_server(
    folder: Path, proxy: FaultyProxy, here: Model, judged_here: dict, tmp_path: Path
) -> None:
    there = served(folder, proxy.endpoint, tmp_path / "kept.sqlite")
    assert not there.has_letter_logprobs()
    assert replies(judge(there, questions())) == judged_here
    assert replies(answer(there, questions())) == replies(answer(here, questions()))
    assert replies(choose(there, questions())) == replies(choose(here, questions(), ["text"]))


def test_faults_on_the_way_change_nothing_and_nothing_is_delivered_twice(
    folder: Path, proxy: FaultyProxy, judged_here: dict, tmp_path: Path
) -> None:
    # The real server may take its time on a busy machine: the proxy has all its replies before there are faults.
    list(judge(served(folder, proxy.endpoint, tmp_path / "other.sqlite"), questions()))
    there = served(folder, proxy.endpoint, tmp_path / "kept.sqlite", timeout=5.0, tries=40)
    with proxy.spoiling():
        found = replies(judge(there, questions()))
    assert found == judged_here
    # Every kind of fault was there, and each of the twelve requests had one whole reply.
    assert set(proxy.faults) == set(proxy.KINDS)
    assert sorted(proxy.delivered.values()) == [1] * 12
    sent = len(proxy.requests)
    assert replies(judge(served(folder, proxy.endpoint, tmp_path / "kept.sqlite"), questions())) == found
    assert len(proxy.requests) == sent


def test_a_model_that_the_server_does_not_have(endpoint: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nobody"):
        list(answer(served(Path("nobody"), endpoint, tmp_path / "kept.sqlite"), questions()))


def test_letters_of_the_model_here_are_its_own_probabilities(here: Model) -> None:
    """Against one pass of the network over the templated text."""
    import torch

    from merkhet.models.chat.chat_messages import ChatRequest

    messages = (("user", "Which is the capital of France?\nA. Rome\nB. Paris\nReply with the letter alone."),)
    (reply,) = here.reply([ChatRequest(messages, 1, ("A", "B"))])  # type: ignore[attr-defined]
    tokenizer, network = here.tokenizer, here.model  # type: ignore[attr-defined]
    text = tokenizer.apply_chat_template(
        [{"role": "user", "content": messages[0][1]}], tokenize=False, add_generation_prompt=True
    )
    ids = tokenizer(text, add_special_tokens=False, return_tensors="pt")["input_ids"]
    with torch.inference_mode():
        shares = torch.log_softmax(network(input_ids=ids).logits[0, -1].double(), dim=0)
    for letter in "AB":
        tokens = [tokenizer(one, add_special_tokens=False)["input_ids"] for one in (letter, f" {letter}")]
        expected = torch.logsumexp(torch.stack([shares[one[0]] for one in tokens if len(one) == 1]), dim=0)
        assert reply.letters[letter] == pytest.approx(float(expected), abs=1e-4)
    assert json.loads(json.dumps(dict(reply.letters)))
