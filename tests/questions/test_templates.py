"""Templates: read from YAML, refused in one line, filled so that a name fits where it was left out."""

from __future__ import annotations

import duckdb
import pytest
from all_cases import check_all
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from template_wording import fill_template, format_answer

import merkhet.suites.quickstart
from merkhet.core import SLOT
from merkhet.core.errors import InputError
from merkhet.questions.english import FORMS
from merkhet.questions.makers._template_sql import answer_sql, placeholder_forms, sentence_sql
from merkhet.questions.schema import default_relation, read_schema
from merkhet.questions.templates import placeholder_names

NAMES = st.text(st.characters(exclude_characters="{}[]", exclude_categories=["Cs"]), min_size=1, max_size=10)
WORDS = st.text(st.characters(exclude_characters="{}[]", exclude_categories=["Cs"]), max_size=8)
LETTERS = st.text("abcdeuhABC '", min_size=1, max_size=10)
FORM = st.sampled_from(["", "a ", "the "])


@st.composite
def templates(draw):
    """A sentence with a subject, an object and perhaps a year, in any order, with any forms."""
    wanted = draw(st.permutations(["subject", "object", *draw(st.sampled_from([[], ["start"], ["start", "end"]]))]))
    return draw(WORDS) + "".join(f"{{{draw(FORM)}{place}}}{draw(WORDS)}" for place in wanted)


@settings(deadline=None)
@given(template=templates(), values=st.fixed_dictionaries(dict.fromkeys(("subject", "object", "start", "end"), NAMES)))
def test_the_name_put_into_the_slot_gives_the_whole_sentence(template, values):
    for asked in placeholder_names(template):
        prompt = fill_template(template, values, asked)
        assert prompt.count(SLOT) == 1
        assert prompt.replace(SLOT, format_answer(template, asked, values[asked])) == fill_template(template, values)


@settings(deadline=None, max_examples=30)
@given(
    template=templates(), values=st.fixed_dictionaries(dict.fromkeys(("subject", "object", "start", "end"), LETTERS))
)
def test_sql_words_a_template_as_plain_python_does(template, values):
    columns = {"s": values["subject"], "o": values["object"], "start": values["start"], "end": values["end"]}
    for field, form in placeholder_forms([template]):
        assume(field in ("subject", "object"))
        columns[f"{field[0]}_{form}"] = FORMS[form](values[field])
    with duckdb.connect() as connection:
        connection.execute("create macro capital(t) as upper(left(t, 1)) || substr(t, 2)")
        given = ", ".join(f'$c{n}::varchar as "{name}"' for n, name in enumerate(columns))
        parameters = {f"c{n}": text for n, text in enumerate(columns.values())}
        for asked in ("subject", "object"):
            query = f"select {sentence_sql(template, asked)}, {answer_sql(template, asked)} from (select {given})"
            [(prompt, answer)] = connection.execute(query, parameters).fetchall()
            assert prompt == fill_template(template, values, asked)
            assert answer == format_answer(template, asked, values[asked])


def test_sentences_by_hand():
    def check(template, asked, prompt, target):
        values = {"subject": "iron", "object": "element", "start": "1990"}
        assert fill_template(template, values, asked) == prompt
        assert format_answer(template, asked, values[asked]) == target

    check_all(
        check,
        [
            ("{subject} is {a object}.", "object", "Iron is [MASK].", "an element"),
            ("{subject} is {a object}.", "subject", "[MASK] is an element.", "Iron"),
            ("{the subject} is near {the object}.", "object", "Iron is near [MASK].", "element"),
            ("In {start}, {subject} became {object}.", "start", "In [MASK], iron became element.", "1990"),
        ],
    )


def test_a_place_that_is_not_there_cannot_be_asked():
    with pytest.raises(ValueError, match="has no placeholder"):
        answer_sql("{subject} sleeps.", "object")


def test_a_predicate_without_templates_gets_a_plain_sentence():
    relation = default_relation("wife_of", "wife of")
    values = {"subject": "Netherlands", "object": "Rome"}
    assert [fill_template(text, values) for text in relation.templates] == ["The Netherlands is a wife of Rome."]
    assert relation.predicates == ("wife_of",)


def schema(folder, text):
    path = folder / "schema.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def relation(**keys):
    keys = {"templates": ["{subject} is {object}."], **keys}
    return f"relations: {{capital: {keys}}}"


def hierarchy(**keys):
    keys = {"templates": ["Among {members}, the one that is not {a category} is [MASK]."], **keys}
    return f"hierarchies: {{kinds: {keys}}}"


def test_a_schema_that_is_wrong_is_refused_in_one_line(tmp_path):
    def check(text, said):
        path = schema(tmp_path, text)
        with pytest.raises(InputError) as refused:
            read_schema(path)
        assert "\n" not in str(refused.value)
        assert str(refused.value).startswith(str(path))
        assert said in str(refused.value)

    check_all(
        check,
        [
            ("relations: [", "is not valid YAML"),
            (b"relations: {caf\xe9: 1}", "is not UTF-8"),
            ("", "a schema must be a mapping with 'relations' or 'hierarchies'"),
            ("- a\n- b\n", "a schema must be a mapping with 'relations' or 'hierarchies'"),
            ("relation: {}", "there is no key 'relation'; did you mean 'relations'?"),
            ("relations: [a, b]", "'relations' must be a mapping of names, got a list"),
            ("relations: {capital: }", "relation 'capital' has no templates"),
            ("relations: {capital: {templates: []}}", "relation 'capital' has no templates"),
            ("relations: {capital: {templates: '{subject} is {object}'}}", "'templates' must be a list of sentences"),
            ("relations: {capital: {templates: [1]}}", "'templates' must be a list of sentences"),
            (relation(asks="object"), "relation 'capital': there is no key 'asks'; did you mean 'ask'?"),
            (relation(ask="objekt"), "'ask' is 'objekt'; did you mean 'object'?"),
            (relation(shorten="objct"), "'shorten' is 'objct'; did you mean 'object'?"),
            (relation(shorten="subjct"), "'shorten' is 'subjct'; did you mean 'subject'?"),
            (relation(templates=["{subject} is {objct}."]), "{objct} in '{subject} is {objct}.' is not a placeholder"),
            (relation(templates=["{subject} is {an object}."]), "'an' in {an object} is not a form; did you mean 'a'?"),
            (relation(templates=["{subject} is."]), "'{subject} is.' must name {object} exactly once"),
            (relation(templates=["It is {object}."]), "must name {subject} exactly once"),
            (relation(templates=["{subject} {object} {object}."]), "must name {object} exactly once"),
            (relation(ask="start"), "'ask' is 'start', but no template names {start}"),
            (relation(ask="subject", templates=["{subject} is."]), "must name {object} exactly once"),
            (
                relation(templates=["{subject} is {object} [MASK]."]),
                "has a slot; write the asked placeholder, as in {object}",
            ),
            (relation(templates=["{subject} is {object}, {see below}}."]), "is not a placeholder"),
            (relation(templates=["{subject} is {object} {."]), "has a '{' outside of any placeholder"),
            (hierarchy(forms="a"), "hierarchy 'kinds': there is no key 'forms'; did you mean 'form'?"),
            (hierarchy(form="teh"), "'form' is 'teh'; did you mean 'the'?"),
            (hierarchy(templates=["Among {members}, no {category}."]), "has 0 slots; write [MASK] exactly once"),
            (hierarchy(templates=["{members} {category} [MASK] [MASK]"]), "has 2 slots; write [MASK] exactly once"),
            (hierarchy(templates=["Among {members} is [MASK]."]), "must name {category} or {aspect}"),
            (hierarchy(templates=["Among {category} is [MASK]."]), "must name {members} exactly once"),
            (hierarchy(templates=["{the members} {category} [MASK]."]), "must write {members} plainly"),
            (
                hierarchy(templates=["{member} {category} [MASK]."]),
                "{member} in '{member} {category} [MASK].' is not a placeholder",
            ),
        ],
    )


def test_a_schema_is_read_with_its_defaults(tmp_path):
    found = read_schema(schema(tmp_path, relation() + "\n" + hierarchy(predicate="is-a", form="a")))
    capital, kinds = found.relations["capital"], found.hierarchies["kinds"]
    assert (capital.predicates, capital.asks, capital.about) == (("capital",), ("object",), "capital")
    assert (capital.checking, capital.completion, capital.transitive) == (True, True, False)
    assert (kinds.predicates, kinds.form) == (("is-a",), "a")
    with pytest.raises(InputError, match="there is no file"):
        read_schema(tmp_path / "absent.yaml")


def test_the_schema_of_quickstart_is_read():
    from pathlib import Path

    found = read_schema(Path(merkhet.suites.quickstart.__file__).with_name("schema.yaml"))
    assert {"capital", "symbol", "is-a"} <= set(found.relations)
    assert all(one.about for one in (*found.relations.values(), *found.hierarchies.values()))
    assert all(one.form in FORMS for one in found.hierarchies.values())
