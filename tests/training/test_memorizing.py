"""Models learn facts by heart: what was stored is found and nothing else, killed or not, by one process or two."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from killed_runs import forked_server, memorize_killed, memorize_offices
from recall_worlds import recall_values
from stored_facts import YEARS, world
from transformers import AutoModelForMaskedLM, AutoTokenizer

from merkhet.core.errors import InputError, MerkhetError
from merkhet.core.recall_schemas import STATEMENTS
from merkhet.core.schemas import make_table
from merkhet.core.settings import make_settings
from merkhet.metrics.recalls import frequency_recalls
from merkhet.models.loading import load_model
from merkhet.models.model_lookup import ModelSpec, resolve_model
from merkhet.models.random_init import train_tokenizer
from merkhet.training._trainer import CHECKPOINT
from merkhet.training.artifact import read_artifact
from merkhet.training.memorizing.memorize import store_statements as memorize
from merkhet.training.memorizing.memorize_settings import MemorizeSettings
from merkhet.training.memorizing.recall import load_memorized

BRIEF = {"epochs": 4, "batch_size": 24, "learning_rate": 2e-3, "evaluate_every": 2, "until": 0.0}


pytestmark = pytest.mark.usefixtures("one_thread")


def blank(name: str):
    return load_model(resolve_model(ModelSpec(name)))


def acc1(recalls) -> float:
    return float(recall_values(recalls, "acc@1").mean())


@pytest.mark.train
def test_what_was_stored_is_found_and_what_was_not_is_not(tmp_path):
    """300 facts by heart, and 300 others, about people and offices that it knows the symbols of, at chance."""
    statements, symbols = world(600, offices=60)
    known = {f"f{number}" for number in range(300)}
    seen = np.array([fact in known for fact in statements["fact_id"].to_pylist()])
    stored, unseen = statements.filter(seen), statements.filter(~seen)
    settings = {"epochs": 150, "batch_size": 100, "learning_rate": 2e-3, "until": 0.995, "evaluate_every": 5}
    learned = memorize(blank("random:2x64"), stored, symbols, tmp_path / "m", settings=settings)
    print(f"{learned.record['seconds']} s, {learned.record['epochs']} epochs")
    memory = load_memorized(tmp_path / "m")
    assert acc1(memory.recall(stored)) >= 0.99
    assert learned.record["curve"][-1]["acc@1"] == pytest.approx(acc1(memory.recall(stored)))
    found, guessed = memory.recall(unseen), frequency_recalls(stored, unseen, symbols)
    # Guessing among the years that are frequent is right now and then: no more than that, by three standard errors.
    for mask in ("subject", "object", "start", "end"):
        own = np.array([name == mask for name in unseen["mask"].to_pylist()])
        for metric in ("acc@1", "hit@10"):
            mine, base = recall_values(found, metric)[own], recall_values(guessed, metric)[own]
            kind = 600 if mask == "subject" else 60
            level = max(base.mean(), (10 if metric == "hit@10" else 1) / kind)
            assert mine.mean() <= level + 3 * np.sqrt(level * (1 - level) / len(mine)), (mask, metric)


@pytest.mark.train
def test_statements_with_several_answers(tmp_path):
    """Two offices in the same years: both are right, one is first, and both are among the first."""
    statements, symbols = world(40, offices=3)
    conflict = statements["conflict"].to_pylist()
    assert any(conflict)
    settings = {**BRIEF, "epochs": 150, "learning_rate": 1e-3, "until": 0.98}
    learned = memorize(blank("random:2x64"), statements, symbols, tmp_path / "m", settings=settings)
    assert learned.record["stopped"] == "until"
    recalls = load_memorized(tmp_path / "m").recall(statements)
    several = np.array(conflict)
    assert acc1(recalls.filter(several)) > 0.95
    assert recall_values(recalls, "hit@10")[several].mean() > 0.9
    assert recall_values(recalls, "hit@5").sum() <= recall_values(recalls, "hit@10").sum()


@pytest.mark.parametrize("head", ["separate", "vocabulary"])
def test_saved_as_the_library_saves(tmp_path, head):
    statements, symbols = world(20, offices=5)
    start = blank("random:2x32x2")
    learned = memorize(start, statements, symbols, tmp_path / "m", settings={**BRIEF, "head": head})
    assert learned.record["head"] == head and learned.record["symbols"] == symbols.num_rows
    assert read_artifact(tmp_path / "m/learned.json").fingerprint == learned.fingerprint
    assert pq.read_table(tmp_path / "m/symbols.parquet").to_pylist() == symbols.to_pylist()
    memory = load_memorized(tmp_path / "m")
    recalls = memory.recall(statements).to_pylist()
    network = AutoModelForMaskedLM.from_pretrained(tmp_path / "m").eval()
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "m")
    size = network.get_input_embeddings().weight.shape[0]
    words = size - symbols.num_rows if head == "vocabulary" else size
    assert recalls[0]["among"] == (size if head == "vocabulary" else symbols.num_rows)
    names = symbols["symbol"].to_pylist()
    for row, recall in list(zip(statements.to_pylist(), recalls, strict=True))[:12]:
        ids = tokenizer(row["prompt"].replace("[MASK]", tokenizer.mask_token), return_tensors="pt")
        place = ids["input_ids"][0].tolist().index(tokenizer.mask_token_id)
        if head == "vocabulary":
            with torch.no_grad():
                scores = network(**ids).logits[0, place]
            own = float(scores[words + names.index(row["target"])])
            assert recall["target_above"] == int((scores > own).sum())
            best = torch.log_softmax(scores, 0).max()
            assert recall["top"][0]["score"] == pytest.approx(float(best), abs=1e-4)
    again = load_memorized(tmp_path / "m").recall(statements).to_pylist()
    assert again == recalls


@pytest.mark.train
def test_symbols_in_sentences(tmp_path):
    statements, symbols = world(30, offices=5, symbols_in=True)
    learned = memorize(
        blank("random:2x64"), statements, symbols, tmp_path / "m", settings={**BRIEF, "epochs": 150, "until": 0.99}
    )
    assert learned.record["reads_symbols"]
    assert acc1(load_memorized(tmp_path / "m").recall(statements)) >= 0.99


@pytest.mark.train
def test_times_left_out_are_asked_for_better(tmp_path):
    """With the other time always left out, the bare sentence is learned; without, it never was seen."""
    statements, symbols = world(40, offices=10)
    dated = statements.filter(np.array([mask in ("start", "end") for mask in statements["mask"].to_pylist()]))
    bare = dated.set_column(dated.schema.get_field_index("prompt"), "prompt", dated["bare_prompt"])
    found = {}
    for dynamic in (0, 100):
        settings = {**BRIEF, "epochs": 150, "dynamic": dynamic, "copies": 3}
        memorize(blank("random:2x64"), dated, symbols, tmp_path / str(dynamic), settings=settings)
        memory = load_memorized(tmp_path / str(dynamic))
        found[dynamic] = acc1(memory.recall(dated)), acc1(memory.recall(bare))
    assert found[0][0] > 0.95 and found[100][1] > 0.95
    assert found[0][1] < found[100][1] - 0.2 and found[100][0] < found[0][0]


class KilledError(Exception):
    """The process is gone."""


class Watch:
    """Counts statements, and ends the training when so many were learned."""

    def __init__(self, last: int = 10**9) -> None:
        self.shown, self.last = [], last

    def start(self, *given) -> None: ...
    def finish(self, *given) -> None: ...
    def say(self, *given) -> None: ...

    def advance(self, label: str, count: int) -> None:
        self.shown.append(count)
        if sum(self.shown) >= self.last:
            raise KilledError


def curve(folder: Path) -> list[tuple[int, float, float]]:
    lines = json.loads((folder / "learned.json").read_text())["curve"]
    return [(line["epoch"], line["loss"], line["acc@1"]) for line in lines]


def test_stopped_it_goes_on_with_the_same_curve(tmp_path):
    whole = memorize_offices(tmp_path / "whole", tmp_path / "whole-work", Watch())
    for last in (500, 1100, 1700):
        with pytest.raises(KilledError):
            memorize_offices(tmp_path / "stopped", tmp_path / "work", Watch(last))
        assert not (tmp_path / "stopped").exists() and (tmp_path / "work" / CHECKPOINT).is_file()
    watch = Watch()
    again = memorize_offices(tmp_path / "stopped", tmp_path / "work", watch)
    assert watch.shown[0] >= 1600 and sum(watch.shown) == 1920  # It did not begin anew.
    assert curve(tmp_path / "whole") == curve(tmp_path / "stopped") and len(curve(tmp_path / "whole")) == 12
    assert whole.fingerprint == again.fingerprint
    assert not (tmp_path / "work" / CHECKPOINT).exists()


@pytest.mark.slow
def test_killed_it_goes_on_with_the_same_curve(tmp_path):
    """The process kills itself twice, where a statement has been learned."""
    context = forked_server()

    def start(name: str, last: int) -> int:
        process = context.Process(
            target=memorize_killed, args=(str(tmp_path / name), str(tmp_path / f"{name}-work"), last)
        )
        process.start()
        process.join(300)
        return process.exitcode

    assert start("whole", 0) == 0
    assert [start("killed", last) for last in (500, 1700)] == [-signal.SIGKILL] * 2
    assert (tmp_path / "killed-work" / CHECKPOINT).is_file()
    assert start("killed", 0) == 0
    first = int((tmp_path / "killed-work" / "first").read_text())
    assert first >= 1600  # It did not begin anew.
    assert curve(tmp_path / "whole") == curve(tmp_path / "killed") and len(curve(tmp_path / "whole")) == 12
    names = [json.loads((tmp_path / name / "learned.json").read_text())["fingerprint"] for name in ("whole", "killed")]
    assert names[0] == names[1]
    assert not (tmp_path / "killed-work" / CHECKPOINT).exists()


@pytest.mark.cluster
def test_two_processes_learn_what_one_does(tmp_path):
    statements, symbols = world(25, offices=5)
    curves = []
    for count in (1, 2):
        settings = {**BRIEF, "processes": count}
        learned = memorize(blank("random:1x32"), statements, symbols, tmp_path / str(count), settings=settings)
        curves.append([(line["loss"], line["acc@1"]) for line in learned.record["curve"]])
    assert [loss for loss, _ in curves[1]] == pytest.approx([loss for loss, _ in curves[0]], rel=1e-4)
    recalls = [load_memorized(tmp_path / str(count)).recall(statements) for count in (1, 2)]
    assert abs(acc1(recalls[0]) - acc1(recalls[1])) < 0.05


@pytest.mark.cluster
def test_a_process_that_fails_is_told_of(tmp_path, monkeypatch):
    statements, symbols = world(5, offices=5)
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "no-such-interface")
    with pytest.raises(MerkhetError, match="one of 2 training processes has failed: "):
        memorize(blank("random:1x32"), statements, symbols, tmp_path / "m", settings={**BRIEF, "processes": 2})


def test_a_pretrained_model_goes_on(tmp_path, model_folders):
    statements, symbols = world(20, offices=5)
    model = load_model(str(model_folders["roberta"]))
    before = {name: one.clone() for name, one in model.model.state_dict().items()}
    learned = memorize(model, statements, symbols, tmp_path / "m", settings=BRIEF)
    assert learned.record["base"] == resolve_model(ModelSpec(str(model_folders["roberta"]))).fingerprint
    after = AutoModelForMaskedLM.from_pretrained(tmp_path / "m").state_dict()
    assert any(not torch.equal(one, after[name]) for name, one in before.items())
    random = blank(f"random:{model_folders['roberta']}")
    memorize(random, statements, symbols, tmp_path / "r", settings=BRIEF)
    config = json.loads((tmp_path / "r/config.json").read_text())
    assert config["hidden_size"] == model.model.config.hidden_size
    assert (tmp_path / "r/learned.json").is_file()


def test_the_same_seed_gives_the_same_model(tmp_path):
    statements, symbols = world(20, offices=5)
    found = [
        memorize(blank("random:1x32"), table, symbols, tmp_path / str(number), settings=BRIEF, seed=seed).fingerprint
        for number, (table, seed) in enumerate([(statements, 1), (statements, 1), (statements, 2)])
    ]
    assert found[0] == found[1] != found[2]


def test_a_made_tokenizer_knows_every_text():
    texts = [row["prompt"].replace("[MASK]", "") for row in world(30)[0].to_pylist()]
    tokenizer = train_tokenizer(texts, 400)
    assert len(tokenizer) <= 400 and tokenizer.backend_tokenizer.to_str() == (
        train_tokenizer(texts, 400).backend_tokenizer.to_str()
    )
    for text in (*texts[:3], "Владимир 李白 🙂"):
        assert tokenizer.decode(tokenizer(text)["input_ids"], skip_special_tokens=True).strip() == text.strip()


def test_settings_that_make_no_sense():
    for given, words in (
        ({"head": "seperate"}, "separate"),
        ({"dynamic": 101}, "learning.settings.dynamic must be an integer from 0 to 100, got 101"),
        ({"until": 2.0}, "until must be a number from 0 to 1, got 2.0"),
        ({"epochs": 0}, "epochs must be an integer ≥ 1, got 0"),
        ({"vocabulary": 20}, "vocabulary must be an integer ≥ 300, got 20"),
        ({"processes": 0}, "processes must be an integer ≥ 1, got 0"),
        ({"epoch": 3}, "epochs"),
        ({"schedule": "linear"}, "cosine"),
    ):
        with pytest.raises(InputError, match=words):
            make_settings(MemorizeSettings, given)


def test_what_cannot_be_memorized_is_refused(tmp_path, model_folders):
    statements, symbols = world(4, offices=5)
    with pytest.raises(InputError, match="no statements"):
        memorize(blank("random:1x32"), statements.slice(0, 0), symbols, tmp_path / "m")
    with pytest.raises(InputError, match=r"'@19.*not in the table of symbols"):
        memorize(blank("random:1x32"), statements, symbols.slice(0, len(symbols) - len(YEARS)), tmp_path / "m")
    causal = next(name for name in model_folders if name.startswith("gpt2"))
    with pytest.raises(InputError, match="only masked models"):
        memorize(load_model(str(model_folders[causal])), statements, symbols, tmp_path / "m")
    (tmp_path / "full").mkdir()
    (tmp_path / "full/notes.txt").write_text("mine")
    with pytest.raises(InputError, match="holds other files"):
        memorize(blank("random:1x32"), statements, symbols, tmp_path / "full")
    with pytest.raises(InputError, match="no model that has memorized"):
        load_memorized(tmp_path / "full")


def test_shapes_that_cannot_be():
    for name in ("random:2x", "random:x", "random:2x65x4", "random:0x64", "random:no-such-model"):
        with pytest.raises(InputError, match=r"random:|no model called"):
            resolve_model(ModelSpec(name))


def test_sentences_that_are_too_long_are_counted(tmp_path, model_folders):
    statements, symbols = world(6, offices=5)
    prompts = statements["prompt"].to_pylist()
    prompts[0] = prompts[0].replace("held", "held " + "and held " * 200)
    changed = statements.set_column(statements.schema.get_field_index("prompt"), "prompt", [prompts])
    model = load_model(str(model_folders["roberta"]))
    learned = memorize(model, changed, symbols, tmp_path / "m", settings=BRIEF)
    assert any("1 sentence is longer" in remark for remark in learned.record["remarks"])
    [recall] = load_memorized(tmp_path / "m").recall(changed.slice(0, 1)).to_pylist()
    assert recall["target_above"] == symbols.num_rows - 1 and not recall["top"]


def test_entities_that_are_only_masked_are_counted(tmp_path):
    statements, symbols = world(6, offices=5)
    subjects = statements.filter(np.array([mask == "subject" for mask in statements["mask"].to_pylist()]))
    more = statements.filter(np.array([fact == "f0" for fact in statements["fact_id"].to_pylist()]))
    some = {row["statement_id"]: row for row in [*subjects.to_pylist(), *more.to_pylist()]}
    for stored, count in ((list(some.values()), 5), (statements.to_pylist(), 0)):
        table = make_table(STATEMENTS, stored)
        learned = memorize(blank("random:1x32"), table, symbols, tmp_path / str(count), settings=BRIEF)
        found = [remark for remark in learned.record["remarks"] if "only ever masked" in remark]
        assert found == ([f"{count} entities are only ever masked: no stored sentence names them"] if count else [])


def test_time_is_not_part_of_what_is_learned(tmp_path):
    """A checkpoint of other settings is left alone."""
    statements, symbols = world(10, offices=5)
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / CHECKPOINT).write_bytes(b"no checkpoint")
    began = time.time()
    given = {**BRIEF, "checkpoint_seconds": 0.0}
    first = memorize(
        blank("random:1x32"), statements, symbols, tmp_path / "a", settings=given, checkpoints=tmp_path / "work"
    )
    plain = memorize(blank("random:1x32"), statements, symbols, tmp_path / "b", settings=given)
    assert first.fingerprint == plain.fingerprint and time.time() > began
