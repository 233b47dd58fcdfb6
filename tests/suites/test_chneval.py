"""The suite chneval as a user runs it: embedded or own material, masked, causal and encoder models, every step."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import torch
from transformers import BertConfig, BertForMaskedLM, BertModel, BertTokenizerFast, GPT2Config, GPT2LMHeadModel

import merkhet
from merkhet.core.errors import InputError
from merkhet.suites.chneval.questions.sentences import embedded_file

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
CLASSES = ["C", "D", "P", "U", "ND"]


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> dict[str, str]:
    """Tiny models that know every character of the embedded material but one."""
    files = ("sentences.txt", "senses.tsv", "pairs.tsv", "triples.tsv")
    text = "".join(embedded_file(name).read_text(encoding="utf-8") for name in files)
    pieces = [*SPECIAL, *sorted(set(text.lower()) - set("\t\n 向"))]
    tokenizer = BertTokenizerFast(vocab={piece: i for i, piece in enumerate(pieces)}, model_max_length=160)
    torch.manual_seed(0)
    small = {"vocab_size": len(pieces), "max_position_embeddings": 160, "hidden_size": 32, "num_hidden_layers": 2}
    bert = BertConfig(**small, num_attention_heads=2, intermediate_size=64)
    gpt = GPT2Config(vocab_size=len(pieces), n_positions=160, n_embd=32, n_layer=2, n_head=2, bos_token_id=2)
    made = {}
    for name, network in (
        ("masked", BertForMaskedLM(bert)),
        ("causal", GPT2LMHeadModel(gpt)),
        ("encoder", BertModel(bert)),
    ):
        folder = tmp_path_factory.mktemp("models") / name
        network.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        made[name] = str(folder)
    return made


@pytest.fixture(scope="module")
def finished(folders, tmp_path_factory):
    """One run over all kinds of models."""
    models = [*folders.values(), "frequency", "word-overlap", "random"]
    return merkhet.run("chneval", models=models, limit=40, out=tmp_path_factory.mktemp("run") / "run")


def rows_of(run, **wanted):
    found = run.scores.to_pylist()
    return [row for row in found if all(row.get(key) == value for key, value in wanted.items())]


def test_every_model_is_asked_in_the_ways_it_can_be(finished) -> None:
    ways = {}
    for row in finished.scores.to_pylist():
        ways.setdefault(row["model"], set()).add((row["task"] == "semantic", row["probe"]))
    clozes = {(False, "fill"), (False, "rank")}
    assert ways == {
        "masked": {*clozes, (True, "compare")},
        "causal": {(False, "rank"), (True, "compare")},
        "encoder": {(True, "compare")},
        "frequency": {(False, "rank")},
        "word-overlap": {(True, "compare")},
        "random": {(False, "rank"), (True, "compare")},
    }
    layers = {row["method"] for row in rows_of(finished, model="masked", task="semantic")}
    assert layers == {"word@0", "word@1", "word"}


def test_scores_of_function_words_are_means_over_their_classes(finished) -> None:
    for probe in ("fill", "rank"):
        for metric in ("p@1", "p@10"):
            rows = rows_of(finished, model="masked", task="syntactic", probe=probe, metric=metric, relation=None)
            by_class = {row["domain"]: row["value"] for row in rows}
            overall = by_class.pop(None)
            assert set(by_class) == set(CLASSES)
            assert overall == pytest.approx(sum(by_class.values()) / len(CLASSES))


def test_what_cannot_be_asked_counts_as_wrong_and_is_counted(finished) -> None:
    """No question about 向 can be asked, nor one whose answer has two characters where the vocabulary is ranked."""
    questions = pq.read_table(finished.folder / "questions.parquet").to_pylist()
    asked = [row for row in questions if row["task"] == "commonsense"]
    several = sum(len(row["target"]) > 1 for row in asked)
    (row,) = rows_of(finished, model="masked", task="commonsense", probe="fill", metric="p@1", relation=None)
    assert (row["n"], row["unusable"]) == (len(asked), several)
    (row,) = rows_of(finished, model="masked", task="commonsense", probe="rank", metric="p@1", relation=None)
    assert (row["n"], row["unusable"]) == (len(asked), 0)
    findings = json.loads((finished.folder / "findings.json").read_text())
    assert any("count as wrong" in sentence for sentence in findings["sentences"])


def test_masked_and_causal_models_are_compared_by_the_same_probe(finished) -> None:
    findings = json.loads((finished.folder / "findings.json").read_text())
    pairs = {(one["task"], frozenset((one["model"], one["other"]))) for one in findings["comparisons"]}
    assert ("syntactic", frozenset(("masked", "causal"))) in pairs
    assert ("semantic", frozenset(("encoder", "causal"))) in pairs
    assert not any("encoder" in models for task, models in pairs if task != "semantic")


def test_the_report_has_the_tables_and_figures_of_the_paper(finished) -> None:
    analyses = {one["name"]: one for one in json.loads((finished.folder / "analyses.json").read_text())}
    assert {"classes", "lengths", "layers"} <= set(analyses)
    assert "objectives" not in analyses and "extrinsic" not in analyses
    assert analyses["lengths"]["figures"] and analyses["layers"]["figures"]
    report = (finished.folder / "report.html").read_text(encoding="utf-8")
    assert "conjunctions" in report and "Accuracy by text length" in report


def test_senses_do_not_give_themselves_away_by_their_order(finished) -> None:
    """The right usage stands first about as often as second."""
    rows = pq.read_table(finished.folder / "questions.parquet").to_pylist()
    first = [row["choices"].index(row["target"]) == 0 for row in rows if row["task"] == "semantic"]
    assert 0.25 < sum(first) / len(first) < 0.75


@pytest.mark.slow
def test_the_released_code_can_be_followed(folders, tmp_path) -> None:
    models = [folders["masked"], folders["causal"]]
    paper = merkhet.run(
        "chneval", models=models, limit=20, settings=["options.compat=paper", "report=none"], out=tmp_path / "paper"
    )
    assert {row["method"] for row in rows_of(paper, model="masked", task="semantic")} == {"masked"}
    assert {row["method"] for row in rows_of(paper, model="causal", task="semantic")} == {"word"}
    assert rows_of(paper, task="syntactic", metric="p@20") and rows_of(paper, task="semantic", metric="strict-accuracy")
    (row,) = rows_of(paper, model="masked", task="commonsense", probe="fill", metric="p@1", relation=None)
    assert row["unusable"] > 0 and row["n"] + row["unusable"] == 20
    given = {"models": [folders["masked"]], "limit": 20, "tasks": ["syntactic"], "settings": ["report=none"]}
    plain = merkhet.run("chneval", out=tmp_path / "plain", **given)

    def scores(run):
        answers = pq.read_table(run.folder / "answers.parquet").to_pylist()
        chosen = [one for one in answers if (one["model"], one["probe"], one["unusable"]) == ("masked", "fill", None)]
        return {one["question_id"]: one["ranked"][0]["score"] for one in chosen}

    with_tokens, without = scores(plain), scores(paper)
    shared = with_tokens.keys() & without.keys()
    assert shared and any(abs(with_tokens[name] - without[name]) > 1e-4 for name in shared)
    with pytest.raises(InputError, match=r"options\.compat must be paper or null, got 'Paper'; did you mean 'paper'"):
        merkhet.run("chneval", models=models, settings=["options.compat=Paper"], out=tmp_path / "wrong")


def write(folder: Path, **files: str) -> list[str]:
    settings = []
    for option, text in files.items():
        name, _, content = text.partition("|")
        (folder / name).write_text(content, encoding="utf-8")
        settings.append(f"options.{option}={folder / name}")
    return settings


OWN = {
    "text": "news.txt|他把书放在桌子上了。\n虽然下雨，但是我们还是去了。\n她已经到北京了。\n",
    "senses": "senses.tsv|word\tsense\tsentence\tposition\n打\thit\t他打了我。\t\n打\thit\t别打人。\t\n"
    "打\tcall\t我打电话。\t\n打\tcall\t快打电话给我。\t\n打\tcall\t她打了又打电话。\t4\n打\thit\t没有这个字。\t\n",
    "pairs": "pairs.csv|,url,start,rel,end\n0,x,雨伞,UsedFor,挡雨\n1,x,剪刀,UsedFor,剪纸\n",
    "triples": "triples.tsv|subject\trelation\tobject\n长江\t发源地\t青海\n",
    "texts": "texts.tsv|title\ttext\n长江\t长江是中国第一大河，它的发源地在青海，流经许多省份。\n",
}


def test_questions_are_made_of_what_a_user_has(tmp_path) -> None:
    made = merkhet.build("chneval", settings=write(tmp_path, **OWN), out=tmp_path / "own")
    rows = made.questions.to_pylist()
    assert {row["task"] for row in rows} == {"syntactic", "semantic", "commonsense", "encyclopedia"}
    (fact,) = (row for row in rows if row["task"] == "encyclopedia")
    assert (fact["target"], fact["template"]) == ("青海", "发源地")
    assert all(len(row["choices"]) == 2 and row["words"] == ["打"] for row in rows if row["task"] == "semantic")
    assert any("senses.tsv, line 7" in remark for remark in made.about["remarks"])
    alone = merkhet.build("chneval", settings=write(tmp_path, pairs=OWN["pairs"]), out=tmp_path / "pairs")
    assert {row["task"] for row in alone.questions.to_pylist()} == {"commonsense"}


def test_another_language_is_made_of_tagged_text(tmp_path) -> None:
    conllu = "\n".join(
        ["# text = She reads because it rains ."]
        + [
            "\t".join([str(i), form, form.lower(), tag, *["_"] * 6])
            for i, (form, tag) in enumerate(
                [
                    ("She", "PRON"),
                    ("reads", "VERB"),
                    ("because", "SCONJ"),
                    ("it", "PRON"),
                    ("rains", "VERB"),
                    (".", "PUNCT"),
                ],
                1,
            )
        ]
    )
    settings = [*write(tmp_path, text=f"some.conllu|{conllu}\n\n"), "options.language=en"]
    (row,) = merkhet.build("chneval", settings=settings, out=tmp_path / "en").questions.to_pylist()
    assert (row["target"], row["domain"], row["language"]) == ("because", "C", "en")
    with pytest.raises(InputError, match="the embedded material is Chinese"):
        merkhet.build("chneval", settings=["options.language=en"], out=tmp_path / "nothing")


def test_options_that_make_no_sense_are_refused(tmp_path) -> None:
    for setting, said in (
        ("options.per_word=0", "per_word must be an integer ≥ 1, got 0"),
        ("options.characters=one", "characters must be an integer ≥ 1 or null, got 'one'"),
        ("options.text=nowhere.txt", r"there is no file or folder .*nowhere\.txt"),
        ("options.txt=a.txt", "chneval has no option 'txt'"),
        ("options.ask=middle", "middle"),
    ):
        with pytest.raises(InputError, match=said):
            merkhet.build("chneval", settings=[setting], out=tmp_path / "made")


def test_published_files_with_faults_are_asked_all_the_same(merkhet, folders, tmp_path) -> None:
    published = tmp_path / "published" / "syntax"
    published.mkdir(parents=True)
    lines = ["他也来了。\t1", "他也走了。\t9", "我也喜欢😀。\t1", "他也來说话。\t1", "他也会ＡＢＣ。\t1"]
    (published / "adverb.txt").write_text("\n".join(lines), encoding="utf-8")
    blocks = "他打电话。\t1\n我打给你。\t1\n她打我。\t1\n\n他打人。\t1\n\n别打人。\t1\n她打我。\t1\n"
    (published.parent / "semantic.txt").write_text(blocks, encoding="utf-8")
    done = merkhet(
        "run",
        "chneval",
        "--data",
        published.parent,
        "--model",
        folders["masked"],
        "--set",
        "report=none",
        "--out",
        "run",
        check=0,
    )
    said = " ".join(done.stderr.split())
    assert "3 lines that cannot be asked are left out" in said
    assert "adverb.txt, line 2: 9 of 5 characters" in said
    done = merkhet("build", "chneval", "--data", published.parent, "--out", "made", check=0)
    assert "semantic.txt, line 5: 1 line; semantic.txt, line 7: 2 lines" in " ".join(done.stdout.split())
    one = merkhet("build", "chneval", "--data", published / "adverb.txt", "--out", "one", "--json", check=0)
    assert json.loads(one.stdout)["by_task"] == {"syntactic": 4}


@pytest.mark.train
def test_objectives_are_compared(folders, tmp_path) -> None:
    corpus = tmp_path / "corpus.txt"
    lines = embedded_file("sentences.txt").read_text(encoding="utf-8").splitlines()
    corpus.write_text("\n\n".join("\n".join(lines[i : i + 6]) for i in range(0, len(lines), 6)), encoding="utf-8")
    run = merkhet.run(
        "chneval",
        models=[folders["masked"]],
        limit=12,
        settings=[
            "report=none",
            "learning.learner=pretrain",
            f"learning.settings.corpus={corpus}",
            "learning.settings.steps=3",
        ],
        out=tmp_path / "run",
    )
    names = [f"masked{ending}" for ending in ("", ", mlm", ", mlm+nsp", ", mlm+sop", ", mlm+sbo")]
    assert list(dict.fromkeys(row["model"] for row in run.scores.to_pylist())) == names
    analyses = {one["name"]: one for one in json.loads((run.folder / "analyses.json").read_text())}
    assert analyses["objectives"]["tables"] and analyses["objectives"]["figures"]
