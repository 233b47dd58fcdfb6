"""What fuzzing found, each by its smallest input: refused in one line that names the place, or read as it should be."""

from __future__ import annotations

import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from merkhet.core.errors import InputError
from merkhet.core.files import read_yaml
from merkhet.core.text_formats import parse_json, parse_reply, parse_yaml, short_repr
from merkhet.engine.study import apply_setting, make_study
from merkhet.knowledge.source_lookup import read_source
from merkhet.knowledge.source_reader import ReadContext
from merkhet.models.chat._chat_settings import read_settings
from merkhet.models.chat._endpoint import _letter_logprobs, _total_tokens
from merkhet.models.chat._reply_cache import ReplyCache
from merkhet.models.chat.chat_messages import ChatReply
from merkhet.models.model_lookup import ModelSpec, resolve_model
from merkhet.models.prediction_file import read_predictions
from merkhet.probes.chat._reply_parsing import ANSWERED, NO_ANSWER, parse_answer, parse_choice
from merkhet.questions.question_files import read_card, read_questions
from merkhet.questions.schema import read_schema

DOUBLED = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 40))
MERGED = "m0: &m0 {k: 1}\n" + "".join(f"m{n}: &m{n} {{<<: [*m{n - 1}, *m{n - 1}]}}\n" for n in range(1, 40))


def refusal(call, *given) -> str:
    with pytest.raises(InputError) as caught:
        call(*given)
    text = str(caught.value)
    assert len(text.splitlines()) == 1
    return text


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: !!int x", "a value does not fit its type"),
        ("a: !!int ''", "a value does not fit its type"),
        ("a: !!bool x", "a value does not fit its type"),
        ("a: !!timestamp x", "a value does not fit its type"),
        ("a: 2001-99-99", "a value does not fit its type"),
        ("a: " + "9" * 5000, "a value does not fit its type"),
        ("a: 0x" + "f" * 6000, "a number has more than about 4300 digits"),
        ("[" * 3000, "nested more than 100 deep"),
        ("{" * 200_000, "nested more than 100 deep"),
        ("- " * 3000, "nested more than 100 deep"),
        ("a: &a [*a]", "the alias on line 1 refers to a node that contains it"),
        (DOUBLED, "aliases"),
        (MERGED, "aliases"),
        ("x" * 4_000_001, "too long"),
        ('a: "\\ud800"', "contains a lone surrogate (half of a character)"),
        ("a: \x07", "special characters are not allowed"),
    ],
)
def test_yaml_that_brings_down_its_parser_is_refused(text, told, tmp_path):
    file = tmp_path / "given.yaml"
    file.write_text(text, encoding="utf-8")
    said = refusal(read_yaml, file, "anything")
    assert told in said
    assert str(file) in said


def test_many_repeated_keys_in_a_long_setting_are_refused_in_few_short_lines():
    with pytest.raises(InputError) as caught:
        apply_setting({}, "options.a={" + "a: 1, " * 50_000 + "}")
    lines = str(caught.value).splitlines()
    assert len(lines) == 21 and max(map(len, lines)) < 400
    assert lines[0].endswith("line 1: the key 'a' is already on line 1. Remove or rename one.")
    assert lines[-1] == "… and 49,979 more"


def test_yaml_with_aliases_and_nesting_is_read_as_ever():
    text = "a: &a {x: [1, 2.5, yes]}\nb: *a\nc: {<<: *a, y: 2001-01-01}\nd: 0x1f\n"
    assert parse_yaml(text, "here") == yaml.safe_load(text)
    assert parse_yaml("", "here") is None
    deep = "[" * 90 + "]" * 90
    assert parse_yaml(deep, "here") == yaml.safe_load(deep)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (b"[" * 100_000, "too large to read"),
        (b"[" * 300 + b"]" * 300, "nested more than 100 deep"),
        (b"9" * 6000, "too large to read"),
        (b'"\\ud800"', "half of a character"),
        (b'"\xff"', "not UTF-8"),
        (b'{"a":', "not valid JSON"),
    ],
)
def test_json_that_brings_down_its_parser_is_refused(text, told):
    assert told in refusal(parse_json, text, "here, row 1", "Mend it.")
    assert parse_json(b'{"a": "\\ud83d\\ude00"}', "here", "Mend it.") == {"a": "\U0001f600"}


def test_a_value_is_shown_in_part_whatever_it_is():
    assert short_repr("x" * 500) == "'" + "x" * 76 + "..."
    nested: list = []
    for _ in range(100_000):
        nested = [nested]
    assert "too large" in short_repr(nested) or short_repr(nested).endswith("...")
    assert "too large" in short_repr(10**5000)


def test_a_study_whose_models_are_no_list_is_refused():
    for key in ("models", "probes"):
        text = refusal(make_study, {"suite": "quickstart", key: 3}, "study.yaml")
        assert text.startswith(f"{key} must be a list") and text.endswith(", got 3 (study.yaml)")
        assert ", got None (study.yaml)" in refusal(make_study, {"suite": "quickstart", key: None}, "study.yaml")
    odd = {"suite": "quickstart", "opti\udc91ons": 4}
    assert refusal(make_study, odd, "study.yaml").startswith("a key is not valid: ")
    assert "nested more than 100 deep" in refusal(apply_setting, {}, "a=" + "[" * 500)
    assert "--set a=!!int x" in refusal(apply_setting, {}, "a=!!int x")


def test_a_schema_with_lists_for_names_is_refused(tmp_path):
    file = tmp_path / "schema.yaml"
    body = {"templates": ["{subject} is {object}."]}
    for key in ("domain", "kinship"):
        file.write_text(yaml.safe_dump({"domains": {"x": "general"}, "relations": {"r": {**body, key: ["x"]}}}))
        assert "relation 'r'" in refusal(read_schema, file)
    file.write_text(yaml.safe_dump({"relations": {"r": {**body, "scopes": 1.5}}}))
    assert "'scopes' must be a list of mappings" in refusal(read_schema, file)
    members = {"predicate": "p", "aspect": "kind", "form": ["a"], "templates": ["Of {members}, [MASK] is {aspect}."]}
    file.write_text(yaml.safe_dump({"hierarchies": {"h": members}}))
    assert "'form' is ['a']" in refusal(read_schema, file)
    file.write_text(yaml.safe_dump({"hierarchies": {"h": {"form": {}, "templates": ["{members}: [MASK] {category}"]}}}))
    assert "'form' is {}" in refusal(read_schema, file)


@pytest.mark.parametrize("value", ['"\\ud800"', "9" * 6000, "[" * 60_000 + "]" * 60_000, "[" * 200 + "]" * 200])
@pytest.mark.parametrize("key", ["prompt", "answers", "task"])
def test_a_question_that_no_file_can_hold_is_refused_by_its_row(key, value, tmp_path):
    row = {"task": "t", "prompt": "a [MASK]", "answers": ["b"], key: "@"}
    file = tmp_path / "questions.jsonl"
    file.write_text(json.dumps(row).replace('"@"', value) + "\n")
    assert "row 1" in refusal(read_questions, file)


def test_a_card_of_a_stranger_is_read_or_refused(tmp_path):
    (tmp_path / "card.json").write_text("[" * 100_000)
    assert "card.json" in refusal(read_card, tmp_path)


def parquet(**columns) -> bytes:
    target = io.BytesIO()
    pq.write_table(pa.table(columns), target)
    return target.getvalue()


@pytest.mark.parametrize(
    ("name", "columns", "told"),
    [
        ("predicates", {"label": ["x"]}, None),
        ("predicates", {"name": [{"a": 1}], "label": ["x"]}, "the column 'name' must hold"),
        ("predicates", {"name": ["p"], "colour": ["x"]}, "unknown column 'colour'"),
        ("names", {"entity": ["e"], "language": [[None]]}, "the column 'language' must hold"),
        ("details", {"subject": ["e"], "name": [b"\xff"]}, "the column 'name' must hold"),
    ],
)
def test_exported_tables_with_other_columns_are_refused_by_the_column(name, columns, told, tmp_path):
    (tmp_path / "facts.parquet").write_bytes(parquet(subject=["a"], predicate=["p"], object=["b"]))
    (tmp_path / f"{name}.parquet").write_bytes(parquet(**columns))
    if told is None:
        assert list(read_source(str(tmp_path), ReadContext()))
    else:
        assert told in refusal(lambda: list(read_source(str(tmp_path), ReadContext())))


def test_a_column_that_stands_twice_in_exported_names_is_refused(tmp_path):
    (tmp_path / "facts.parquet").write_bytes(parquet(subject=["a"], predicate=["p"], object=["b"]))
    twice = pa.Table.from_arrays(
        [pa.array(["e"]), pa.array(["en"]), pa.array(["fr"])], ["entity", "language", "language"]
    )
    pq.write_table(twice, tmp_path / "names.parquet")
    assert "'language' is in the header twice" in refusal(lambda: list(read_source(str(tmp_path), ReadContext())))


PACK = {"name": "mine", "title": "Mine", "description": "x", "licence": "CC0", "domain": "d"}


@pytest.mark.parametrize(
    "odd",
    [
        {"name": True},
        {"domain": ["d"]},
        {"licence": 3},
        {"predicates": " "},
        {"predicates": {"p": 2}},
        {"predicates": {"p": {"label": []}}},
    ],
)
def test_a_pack_that_says_odd_things_of_itself_is_refused(odd, tmp_path):
    (tmp_path / "pack.yaml").write_text(yaml.safe_dump({**PACK, **odd}))
    (tmp_path / "facts.csv").write_text("subject,predicate,object\na,p,b\n")
    assert "pack.yaml" in refusal(lambda: list(read_source(str(tmp_path), ReadContext())))


def test_a_name_in_a_dump_that_is_no_text_is_a_bad_row(tmp_path):
    file = tmp_path / "dump.json"
    entity = {"id": "Q1", "labels": {"en": {"value": {"a": 1}}}, "aliases": {}, "claims": {}}
    file.write_text("[\n" + json.dumps(entity) + "\n]\n")
    assert "dump.json:2: a name in 'en' is not a text" in refusal(lambda: list(read_source(str(file), ReadContext())))
    reading = ReadContext(skip_bad=True)
    assert list(read_source(str(file), reading)) == []
    assert reading.bad == 1


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (b'<?xml version="1.0" encoding="utf-99"?><a/>', ":1: not well-formed XML (unknown encoding"),
        (b"x" * 3_000_000, "not well-formed XML"),
        (b'<a b="' + b"x" * 3_000_000, "a tag is longer than a megabyte"),
        (b'<a xmlns="http://a/">' + b"<a>" * 50_000, "elements are nested more than 1,000 deep"),
    ],
)
def test_xml_that_parsers_take_ever_longer_for_is_refused(text, told, tmp_path):
    file = tmp_path / "facts.owl"
    file.write_bytes(text)
    assert told in refusal(lambda: list(read_source(str(file), ReadContext())))


def test_a_config_that_is_no_models_is_refused(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"x")
    for content in ('{"architectures": 30}', "[]", "[" * 100_000, '"\\ud800"'):
        (tmp_path / "config.json").write_text(content)
        assert "config.json" in refusal(resolve_model, ModelSpec(str(tmp_path)))


def test_predictions_nested_without_end_are_refused_by_their_row(tmp_path):
    file = tmp_path / "predictions.csv"
    for ret in ("[" * 100_000, "9" * 6000):
        file.write_text(f"id,ret\nq1,{ret}\n")
        assert "row 2: ret must be" in refusal(read_predictions, file)


def test_replies_of_endpoints_are_read_or_are_none():
    assert parse_reply(b"[" * 100_000) is None
    assert parse_reply(b"[" * 200 + b"]" * 200) is None
    assert parse_reply(b"9" * 6000) is None
    assert parse_reply(b'{"a": "x\\ud83d"}') == {"a": "x\ufffd"}
    assert parse_reply(b'{"a": "\\ud83d\\ude00"}') == {"a": "\U0001f600"}
    logprobs = {"content": [{"top_logprobs": [{"token": "A", "logprob": 10**400}]}]}
    assert _letter_logprobs({"logprobs": logprobs}, ("A", "B")) is None
    assert _total_tokens({"usage": {"total_tokens": float("inf")}}) is None


def test_odd_settings_of_an_endpoint_are_refused():
    address = "http://127.0.0.1:1/v1"
    assert "key_header" in refusal(read_settings, "m", address, {"key_header": None})
    refused_name = refusal(read_settings, "m\udcda", address, {})
    assert "the model name 'm\\udcda' contains characters that are not printable" in refused_name


def test_a_damaged_store_of_replies_is_refused(tmp_path):
    kept = ReplyCache(tmp_path / "replies.sqlite")
    kept.database.execute("insert into replies values ('k', 'e', 'm', '{}', '{', 0)")
    assert "is damaged" in refusal(kept.find, ["k"])
    kept.close()


def test_a_long_reply_is_read_as_soon_as_a_short_one():
    blank = (" " * 100 + ".") * 2000
    assert parse_answer(ChatReply(0, f"The capital of France is{blank}x"), "The capital of France is", ".").outcome
    assert parse_choice(ChatReply(0, "Th|e answer" + " " * 20_000 + "!"), ("A", "B"), ("x", "y")).outcome == NO_ANSWER
    said = parse_choice(ChatReply(0, "So the answer\n\n  is :  B, I think"), ("A", "B"), ("x", "y"))
    assert (said.outcome, said.text) == (ANSWERED, "y")
    said = parse_answer(ChatReply(0, "The capital of France is   Paris ."), "The capital of France is", ".")
    assert (said.outcome, said.text) == (ANSWERED, "Paris")
    said = parse_answer(
        ChatReply(0, "the river of Paris, which is LONG, is the Seine in france!"), "The river of", "in France."
    )
    assert said.text == "Paris, which is LONG, is the Seine"


def test_the_command_line_says_one_line_of_a_screen_at_most(merkhet, tmp_path):
    file = tmp_path / "study.yaml"
    file.write_text(yaml.safe_dump({"suite": "x\ny" + "z" * 50_000}))
    done = merkhet("build", file, "--out", tmp_path / "o", check=2)
    assert len(done.stderr.splitlines()) == 1
    assert len(done.stderr) < 2100
    assert not (tmp_path / "o").exists()


def test_an_address_with_half_characters_is_refused():
    assert "is not a valid address: it has characters that are not printable" in refusal(
        resolve_model, ModelSpec("chat:m@http://10\udc9d.1:1/v1")
    )


def test_a_position_of_thousands_of_digits_lies_outside_its_sentence():
    from merkhet.suites.chneval.published import _at_position, _SkippedLineError

    with pytest.raises(_SkippedLineError):
        _at_position(["他在家", "9" * 5000], "here")


def test_a_sense_at_a_position_of_thousands_of_digits_is_refused():
    from merkhet.suites.chneval.questions.word_senses import _BadRowError, _find_start

    with pytest.raises(_BadRowError, match="outside the sentence"):
        _find_start("他在家", "家", "9" * 5000)


def test_a_long_setting_without_an_address_is_read_at_once():
    # A search that tries each letter as the first of an address takes minutes here.
    apply_setting({}, "title=" + "a" * 1_000_000)
    apply_setting({}, "title=" + "eyJ-" * 250_000)


def test_half_characters_of_a_corpus_are_left_out_and_counted(tmp_path):
    from tokenizers import Tokenizer, models, pre_tokenizers

    from merkhet.training.text_corpus import read_corpus

    backend = Tokenizer(models.WordLevel({"a": 0, "b": 1, "[UNK]": 2}, unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    (tmp_path / "corpus.jsonl").write_text('{"text": "a\\udc80"}\n{"text": "a b"}\n')
    found = read_corpus(tmp_path / "corpus.jsonl", backend)
    assert found.tokens.tolist() == [0, 1]
    assert "a lone surrogate (corpus.jsonl:1)" in found.remarks[0]


def test_a_table_whose_columns_have_no_names_is_refused(tmp_path):
    content = parquet(predicate=["a"], label=["b"])
    assert content.count(b"predicate") > 1
    (tmp_path / "facts.parquet").write_bytes(parquet(subject=["a"], predicate=["b"], object=["c"]))
    (tmp_path / "predicates.parquet").write_bytes(content.replace(b"predicate", b"predic\xba\xffe"))
    assert "is not a complete Parquet file" in refusal(lambda: list(read_source(str(tmp_path), ReadContext())))


def test_a_model_whose_name_no_file_could_have_is_refused(tmp_path):
    assert refusal(resolve_model, ModelSpec("freque" + "9" * 5000), tmp_path)
    assert refusal(lambda: list(read_source("countr" + "9" * 5000, ReadContext())))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
def test_half_of_a_character_is_refused_however_it_is_written(encoding):
    for text in ('"a\udfff"', '{"a": ["\ud800"]}'):
        assert "half of a character" in refusal(parse_json, text.encode(encoding, "surrogatepass"), "here", "Mend it.")
    assert parse_json('"a\\ud83d\\ude00 é"'.encode(encoding), "here", "Mend it.") == "a😀 é"
