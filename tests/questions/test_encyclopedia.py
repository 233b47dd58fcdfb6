"""Clozes of encyclopedia facts: a triple and a text that holds it are found as by looking at all of them."""

from __future__ import annotations

import json
import random
from collections import Counter
from itertools import compress, product

import pytest
from all_cases import check_all

from merkhet.core.errors import InputError
from merkhet.core.schemas import FACTS, NAMES, make_table
from merkhet.knowledge.chunk import Chunk
from merkhet.knowledge.store import KnowledgeBase
from merkhet.suites.chneval.questions.cloze_selection import draw_clozes
from merkhet.suites.chneval.questions.commonsense import OWN_TEMPLATES
from merkhet.suites.chneval.questions.encyclopedia import encyclopedia_clozes
from merkhet.suites.chneval.questions.question_rows import Cloze, Usage, make_question_set
from merkhet.suites.chneval.questions.text_anomalies import FULL_WIDTH
from merkhet.suites.chneval.questions.worded_triples import (
    Text,
    Texts,
    Triple,
    Triples,
    read_texts,
    read_triples,
    triples_from_facts,
)


def make(triples, texts=(), **options):
    given = Triples(tuple(triples), len(triples))
    return encyclopedia_clozes(given, Texts(tuple(texts)), **{"seed": 1} | options)


def spots(text, word):
    return [range(at, at + len(word)) for at in range(len(text)) if text[at : at + len(word)] == word]


def holds(text, triple):
    """Whether the items stand in the text apart from one another, or the relation within the object."""
    for one, two, three in product(*(spots(text, item) for item in triple.fact)):
        if (
            not set(one) & set(two)
            and not set(one) & set(three)
            and (not set(two) & set(three) or set(two) <= set(three))
        ):
            return True
    return False


def by_looking_at_all(triples, texts, shortest, longest, characters):
    """Every triple in every text, every run of sentences in it."""
    subjects = {triple.subject for triple in triples}
    pairs = [(0, triple, triple.text, triple.where) for triple in triples if triple.text]
    for text, triple in product(texts, triples):
        if text.title not in subjects or text.title == triple.subject:
            pairs.append((int(text.title not in subjects), triple, text.text, text.where))
    found = []
    for turn, triple, text, where in pairs:
        sentences = [f"{part}。" for part in text.split("。") if part]
        runs = sorted(
            (stop - start, start) for start in range(len(sentences)) for stop in range(start + 1, len(sentences) + 1)
        )
        windows = ["".join(sentences[start : start + count]) for count, start in runs]
        windows = [one for one in windows if shortest <= len(one) <= longest and holds(one, triple)]
        usages = [
            Usage(window, window.index(item), item, where)
            for window in windows
            for item in (triple.object, triple.relation, triple.subject)
            if len(spots(window, item)) == 1 and len(item) == (characters or len(item))
        ]
        if usages:
            kept = [item != usages[0].word for item in triple.fact]
            rest = list(compress(triple.fact, kept))
            if sum(list(compress(other.fact, kept)) == rest for other in triples) == 1:
                found.append((turn, Cloze(usages[0], "encyclopedia", None, triple.relation, triple.fact, "zh")))
    return found


def small_world(seed):
    generator = random.Random(seed)
    letters = "甲乙丙丁戊己庚辛壬癸"[: generator.randint(5, 10)]

    def word(least, most):
        return "".join(generator.choices(letters, k=generator.randint(least, most)))

    triples = {}
    for line in range(generator.randint(3, 14)):
        fact = (word(1, 3), word(1, 2), word(1, 3))
        if len(set(fact)) == 3:
            own = f"{word(2, 9)}{'。'}{word(1, 4)}{''.join(fact)}。" if generator.random() < 0.3 else ""
            triples.setdefault(fact, Triple(*fact, text=own, where=f"t:{line}"))
    texts = []
    for line in range(12):
        parts = [word(1, 8) for _ in range(generator.randint(1, 5))]
        if triples and generator.random() < 0.7:
            parts[0] += "".join(generator.sample(generator.choice(sorted(triples)), 3))
        title = generator.choice(["", word(1, 2), generator.choice(sorted(triples))[0] if triples else ""])
        texts.append(Text("".join(f"{part}。" for part in parts), title, f"x:{line}"))
    return list(triples.values()), texts


def test_the_same_is_found_as_by_looking_at_all():
    def check(characters, seed):
        triples, texts = small_world(seed)
        slow = by_looking_at_all(triples, texts, 6, 20, characters)
        expected = draw_clozes(slow, seed=1, per_answer=None, per_relation=None)
        options = {"shortest": 6, "longest": 20, "characters": characters, "per_answer": None, "per_relation": None}
        assert make(triples, texts, **options).clozes == expected
        mixed = random.Random(seed)
        again = make(mixed.sample(triples, len(triples)), mixed.sample(texts, len(texts)), **options)
        assert again.clozes == expected

    check_all(check, product([None, 1], range(60)))


def test_small_worlds_are_not_empty():
    found = [by_looking_at_all(*small_world(seed), 6, 20, None) for seed in range(60)]
    assert sum(map(bool, found)) > 30


def test_object_before_relation_before_subject():
    triple = Triple("长江", "发源地", "青藏高原")
    text = "亚洲最长的河流长江，发源地是青藏高原。"
    (cloze,) = make([triple], [Text(text)]).clozes
    assert (cloze.usage.word, cloze.template, cloze.fact) == ("青藏高原", "发源地", triple.fact)
    (cloze,) = make([triple], [Text(text.replace("。", "，青藏高原很高。"))]).clozes
    assert cloze.usage.word == "发源地"
    (cloze,) = make([triple], [Text(text.replace("。", "，青藏高原是发源地。"))]).clozes
    assert cloze.usage.word == "长江"


def test_a_text_is_cut_to_the_fewest_sentences_that_hold_the_triple():
    triple = Triple("黄河", "长度", "五千公里")
    text = "这是第一句话。黄河是一条大河。它的长度约为五千公里。最后还有一句话。"
    (cloze,) = make([triple], [Text(text)]).clozes
    assert cloze.usage.sentence == "黄河是一条大河。它的长度约为五千公里。"
    assert not make([triple], [Text(text)], longest=18).clozes
    short = "黄河长度五千公里。它流入大海里。"
    (cloze,) = make([triple], [Text(short)]).clozes
    assert cloze.usage.sentence == short
    assert not make([triple], [Text("黄河长度五千公里。")]).clozes


def test_items_within_items():
    text = "北京大学是一所大学，所在地不在上海，成立很早。"
    assert not make([Triple("北京大学", "所在地", "北京")], [Text(text)]).clozes
    (cloze,) = make([Triple("北京大学", "所在地", "北京")], [Text(text.replace("不在上海", "是北京"))]).clozes
    assert cloze.usage.word == "所在地"
    bat = [Text("长尾棕蝠是一种哺乳动物，属于翼手目、蝙蝠科。")]
    (cloze,) = make([Triple("长尾棕蝠", "目", "翼手目")], bat, characters=1).clozes
    assert cloze.usage.prompt == "长尾棕蝠是一种哺乳动物，属于翼手[MASK]、蝙蝠科。"
    assert not make([Triple("棕蝠科", "科", "翼手目")], [Text("棕蝠科是一类哺乳动物的名字，属于翼手目。")]).clozes


def test_what_other_triples_answer_otherwise_is_not_asked():
    texts = [Text("荷兰是欧洲的一个国家，首都是阿姆斯特丹，非常美丽。")]
    one, other = Triple("荷兰", "首都", "阿姆斯特丹"), Triple("荷兰", "首都", "海牙")
    assert len(make([one], texts).clozes) == 1
    assert not make([one, other], texts).clozes


def test_a_sentence_is_asked_once_and_caps_hold():
    triples = [Triple(f"{name}国", "首都", "京城") for name in "甲乙丙丁戊己"]
    texts = [Text(f"{triple.subject}是一个很大的国家，首都是京城，人口很多。") for triple in triples]
    assert len(make(triples, texts).clozes) == 6
    assert len(make(triples, texts, per_answer=4).clozes) == 4
    assert len(make(triples, texts, per_relation=3).clozes) == 3
    several = [Triple("甲国", "首都", "京城"), Triple("甲国", "人口", "很多")]
    (cloze,) = make(several, texts[:1]).clozes
    assert cloze.usage.sentence == texts[0].text


def test_texts_with_the_title_come_first():
    triple = Triple("黄河", "长度", "五千公里")
    other = Text("有人说过黄河的长度大约是五千公里。", "", "x:1")
    own = Text("作为中国的大河，黄河的长度是五千公里。", "黄河", "x:2")
    for seed in range(8):
        assert [cloze.usage.where for cloze in make([triple], [other, own], seed=seed).clozes] == ["x:2"]


def test_texts_are_read_from_every_kind_of_file(tmp_path):
    (tmp_path / "a.tsv").write_text("title\ttext\n黄河\t黄河很长。\n长江\t\n江\t有[MASK]。\n少\n", encoding="utf-8")
    lines = [{"title": "黄河", "text": "黄河很长。"}, {"text": "没有题目。"}]
    (tmp_path / "b.jsonl").write_text("\n".join(json.dumps(line) for line in lines) + "\nx\n", encoding="utf-8")
    (tmp_path / "c.txt").write_text("第一个。\n第二个。\n\n", encoding="utf-8")
    (tmp_path / "d.txt").write_text("\n\n第一段开始\n到这里。\n\nThe second\none.\n", encoding="utf-8")
    found = read_texts(tmp_path)
    assert [(text.where, text.title, text.text) for text in found.texts] == [
        ("a.tsv, line 2", "黄河", "黄河很长。"),
        ("b.jsonl, line 1", "黄河", "黄河很长。"),
        ("b.jsonl, line 2", "", "没有题目。"),
        ("c.txt, line 1", "", "第一个。"),
        ("c.txt, line 2", "", "第二个。"),
        ("d.txt, line 3", "", "第一段开始到这里。"),
        ("d.txt, line 6", "", "The second one."),
    ]
    told = " ".join(found.remarks)
    assert all(place in told for place in ("a.tsv, line 3", "a.tsv, line 4", "a.tsv, line 5", "b.jsonl, line 3"))
    with pytest.raises(InputError, match="there is no"):
        read_texts(tmp_path / "none.txt")


def test_bad_triples_are_left_out_and_named(tmp_path):
    path = tmp_path / "t.tsv"
    path.write_text(
        "subject\trelation\tobject\n黄河\t长度\t五千公里\n黄河\t\t五千公里\n黄河\t别名\t黄河\n黄河\t长度\t五千公里\n"
    )
    found = read_triples(path)
    assert [triple.where for triple in found.triples] == ["t.tsv, line 2"]
    assert found.rows == 4
    assert "t.tsv, line 3" in found.remarks[0] and "t.tsv, line 4" in found.remarks[1]
    path.write_text("subject\tobject\n黄河\t长\n")
    with pytest.raises(InputError, match=r"t\.tsv:1: there is no column 'relation'"):
        read_triples(path)


def test_questions_from_a_knowledge_base(tmp_path):
    facts = [
        {"subject": "Q1", "predicate": "P36", "object": "Q2"},
        {"subject": "Q1", "predicate": "P2046", "value": 83.0, "unit": "Q9"},
        {"subject": "Q1", "predicate": "P36", "object": "Q77"},
    ]
    labels = {"Q1": "丹国", "Q2": "本城", "Q9": "公顷", "P36": "首都", "P2046": "大小"}
    material = Chunk(
        make_table(FACTS, facts),
        make_table(NAMES, [{"entity": e, "language": "zh", "label": label} for e, label in labels.items()]),
    )
    with KnowledgeBase([material]) as knowledge:
        triples = triples_from_facts(knowledge.facts(), knowledge.names("zh"), "zh")
    assert {triple.fact for triple in triples.triples} == {("丹国", "首都", "本城"), ("丹国", "大小", "83公顷")}
    assert "1 fact left out: an item has no label in 'zh'" in triples.remarks[0]
    path = tmp_path / "texts.txt"
    path.write_text(
        "丹国靠近大海，它的首都叫做本城，有Ａ级港口。\n丹国的国土并不算大，大小只有83公顷。\n", encoding="utf-8"
    )
    made = encyclopedia_clozes(triples, read_texts(path), seed=1)
    assert {cloze.usage.prompt for cloze in made.clozes} == {
        "丹国靠近大海，它的首都叫做[MASK]，有Ａ级港口。",
        "丹国的国土并不算大，大小只有[MASK]。",
    }
    assert any(FULL_WIDTH in said and "texts.txt, line 1" in said for said in made.remarks)
    assert make_question_set(made, seed=1).questions.num_rows == 2
    assert made.filters[0]["before"] == 3 and made.filters[-1]["after"] == 2


def test_english_words_stand_whole():
    triple = Triple("Rome", "capital", "Italy")
    assert not make([triple], [Text("Jerome went to a capital city in Italy.")], language="en").clozes
    (cloze,) = make([triple], [Text("It is known that Rome is the capital of Italy.")], language="en").clozes
    assert (cloze.usage.word, cloze.language) == ("Italy", "en")


def test_embedded_triples_make_valid_questions():
    made = encyclopedia_clozes(read_triples(OWN_TEMPLATES.parent / "zh/triples.tsv"), seed=3)
    assert len(made.clozes) > 40
    assert make_question_set(made, seed=3).questions.num_rows == len(made.clozes)


def test_published_triples_are_asked_as_published(shared, tmp_path):
    published = (shared / "data/chneval/fact.txt").read_text(encoding="utf-8")
    path = tmp_path / "facts.tsv"
    path.write_text(f"subject\trelation\tobject\ttext\n{published}", encoding="utf-8")
    made = encyclopedia_clozes(read_triples(path), seed=1, characters=1, per_answer=None, per_relation=None)
    rows = [line.split("\t") for line in published.splitlines() if line]
    distinct = {tuple(row[:3]) for row in rows if len(set(row[:3])) == 3}
    assert made.filters[0]["after"] == len(distinct)
    assert len(made.clozes) > 0.9 * len(distinct)
    for cloze in made.clozes:
        entity, relation, attribute = cloze.fact
        assert cloze.usage.word == next(item for item in (attribute, relation, entity) if len(item) == 1)
    assert max(Counter(cloze.usage.sentence for cloze in made.clozes).values()) == 1
