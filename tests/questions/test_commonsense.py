"""Clozes of common sense: one right answer, seen nowhere else in the sentence, in words that read well."""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise, product

import pytest
from all_cases import check_all

from merkhet.core.errors import InputError
from merkhet.suites.chneval.questions.cloze_selection import has_askable_length, word_positions
from merkhet.suites.chneval.questions.commonsense import OWN_TEMPLATES, Wording, commonsense_clozes, read_wordings
from merkhet.suites.chneval.questions.question_rows import make_question_set
from merkhet.suites.chneval.questions.text_anomalies import MIXED
from merkhet.suites.chneval.questions.worded_triples import Triple, Triples, read_pairs

PLAIN = {
    "UsedFor": Wording(("{start}是用来{end}的。", "人们用{start}来{end}。")),
    "Antonym": Wording(("{start}和{end}相反。",)),
}


def make(*pairs, **options):
    triples = (Triple(*pair, where=f"words.tsv, line {line}") for line, pair in enumerate(pairs, 2))
    given = Triples(tuple(triples), len(pairs))
    return commonsense_clozes(given, **{"templates": PLAIN, "language": "zh", "seed": 1} | options)


def asked(gathered):
    return sorted((cloze.usage.prompt, cloze.usage.word) for cloze in gathered.clozes)


def synonyms(pairs, words):
    """The words, and all that a pair says is a synonym of one of them."""
    ends = [(one.subject, one.object) for one in pairs if one.relation == "Synonym"]
    return words | {b for a, b in ends if a in words} | {a for a, b in ends if b in words}


def expected(pairs, ask):
    """The pairs with one right answer, by walking over all pairs for each of them."""
    found = set()
    for pair in pairs:
        given, answer = (pair.subject, pair.object) if ask == "end" else (pair.object, pair.subject)
        alike, right = synonyms(pairs, {given}), set()
        for one in pairs:
            if one.relation == pair.relation:
                here, there = (one.subject, one.object) if ask == "end" else (one.object, one.subject)
                right |= {there} if here in alike else set()
                right |= {here} if there in alike and one.relation == "Antonym" else set()
        if pair.relation in PLAIN and synonyms(pairs, right) - {given} == {answer}:
            found.add(pair.fact)
    return found


def test_only_what_has_one_right_answer_is_asked():
    def check(seed, ask):
        draw = random.Random(seed)
        words = draw.sample("猫狗鸟鱼牛马羊鸡鸭鹅虎龙", 12)
        names = [(*draw.sample(words, 2), draw.choice(["UsedFor", "UsedFor", "Antonym", "Synonym"])) for _ in range(9)]
        pairs = sorted({(start, relation, end) for start, end, relation in names})
        found = make(*pairs, ask=ask, per_answer=None, per_relation=None)
        assert {cloze.fact for cloze in found.clozes} == expected([Triple(*pair) for pair in pairs], ask)

    check_all(check, product(range(30), ["end", "start"]))


def test_both_asks_for_the_start_where_the_end_cannot_be_asked():
    pairs = [("刀", "UsedFor", "切菜"), ("刀", "UsedFor", "削皮"), ("笔", "UsedFor", "写字")]
    assert {cloze.usage.word for cloze in make(*pairs).clozes} == {"写字"}
    both = make(*pairs, ask="both").clozes
    assert sorted(cloze.usage.word for cloze in both) == ["写字", "刀", "刀"]
    assert {cloze.usage.word for cloze in make(*pairs, ask="both", characters=1).clozes} == {"刀", "笔"}
    with pytest.raises(InputError, match="'ends'"):
        make(*pairs, ask="ends")


def test_a_cloze_says_where_it_comes_from():
    (cloze,) = make(("笔", "UsedFor", "写字")).clozes
    assert cloze.template in ("UsedFor/1", "UsedFor/2")
    assert cloze.fact == ("笔", "UsedFor", "写字")
    assert cloze.domain is None
    assert cloze.usage.where == "words.tsv, line 2"
    assert cloze.usage.prompt in ("笔是用来[MASK]的。", "人们用笔来[MASK]。")


def test_what_reads_badly_is_not_asked():
    def check(end):
        assert not make(("笔", "UsedFor", end)).clozes

    check_all(
        check,
        [
            "写 字",
            "写A",
            "写，字",
            "你写字",
            "我写字",
            "写字了",
            "写字的",
            "会写字",
            "笔画",
            "𠮷字",
            "可以写字",
            "写" * 9,
            "写字" * 12,
        ],
    )


def test_what_reads_well_is_asked():
    def check(end):
        assert len(make(("笔", "UsedFor", end)).clozes) == 1

    check_all(check, ["写字", "开会", "达到目的", "自我介绍", "弹吉他", "會議"])


def test_no_word_repeats_its_neighbour_in_the_template():
    wordings = {"AtLocation": Wording(("{start}在{end}里。", "在{end}有{start}。"))}
    (cloze,) = make(("鱼", "AtLocation", "海里"), templates=wordings).clozes
    assert cloze.template == "AtLocation/2"
    assert not make(("鱼", "AtLocation", "在海里"), templates=wordings).clozes


def test_an_answer_that_stands_in_the_sentence_is_not_asked():
    for seed in range(8):
        (cloze,) = make(("马", "UsedFor", "驮人"), ("车", "UsedFor", "人"), seed=seed, ask="end", characters=1).clozes
        assert cloze.usage.prompt == "车是用来[MASK]的。"
    assert not make(("来回", "UsedFor", "来")).clozes


def test_caps_hold_and_leave_out_nothing_else():
    draw = random.Random(5)
    pairs = [(f"{a}{b}", "UsedFor", draw.choice("切削砍打")) for a in "甲乙丙丁戊己庚辛" for b in "刀斧锯"]
    pairs += [(f"{a}盘", "Antonym", draw.choice("切削砍打")) for a in "甲乙丙丁戊己庚辛"]
    every = make(*pairs, per_answer=None, per_relation=None)
    capped = make(*pairs, per_answer=6, per_relation=15)
    answers = Counter(cloze.usage.word for cloze in capped.clozes)
    relations = Counter(cloze.fact[1] for cloze in capped.clozes)
    assert max(answers.values()) <= 6 and max(relations.values()) <= 15
    kept = set(capped.clozes)
    assert kept < set(every.clozes)
    for cloze in set(every.clozes) - kept:
        assert answers[cloze.usage.word] == 6 or relations[cloze.fact[1]] == 15
    assert capped.filters[-1]["after"] == len(kept)


def test_neither_order_nor_repeats_matter_and_the_seed_does():
    pairs = [
        (f"{a}{b}", "UsedFor", end)
        for a in "甲乙丙丁"
        for b, end in zip("刀笔锯", ("切菜", "写字", "锯树"), strict=True)
    ]
    first = make(*pairs, per_answer=2)
    for seed in range(5):
        mixed = random.Random(seed).sample(pairs, len(pairs))
        assert asked(make(*mixed, per_answer=2)) == asked(first)
    assert any(asked(make(*pairs, per_answer=2, seed=seed)) != asked(first) for seed in range(2, 8))


def test_filters_follow_one_another():
    steps = make(("笔", "UsedFor", "写字"), ("笔", "Unknown", "字"), ("刀", "UsedFor", "A")).filters
    assert [step["task"] for step in steps] == ["commonsense"] * len(steps)
    assert all(one["after"] == other["before"] for one, other in pairwise(steps))
    assert (steps[0]["before"], steps[-1]["after"]) == (3, 1)


def test_mixed_scripts_are_asked_and_remarked():
    found = make(("電風扇", "UsedFor", "乘涼"), templates={"UsedFor": Wording(("人们用{start}来{end}。",))})
    assert len(found.clozes) == 1
    assert any(MIXED in said and "words.tsv, line 2" in said for said in found.remarks)


def test_own_sentences_take_every_relation():
    def check(language):
        wordings = read_wordings(language=language)
        assert len(wordings) >= 13
        given = {"zh": ("锤子", "钉钉子"), "en": ("hammer", "nail wood")}[language]
        for relation, wording in wordings.items():
            for number in range(len(wording.templates)):
                one = {relation: Wording(wording.templates[number : number + 1])}
                (cloze,) = make((given[0], relation, given[1]), templates=one, language=language).clozes
                assert cloze.usage.sentence.replace(cloze.usage.word, "[MASK]") == cloze.usage.prompt
                assert cloze.usage.sentence[0].upper() == cloze.usage.sentence[0]
                assert cloze.language == language

    check_all(check, ["zh", "en"])


def test_sentences_of_ones_own(tmp_path):
    path = tmp_path / "own.yaml"
    path.write_text(
        'zh:\n  用途:\n    - "{start}的用途是{end}。"\n'
        '  Synonym: {templates: ["{start}即{end}。"], apart: true, least: 2}\n'
    )
    wordings = read_wordings(path, "zh-cn")
    pairs = [
        ("笔", "用途", "写字"),
        ("凤梨", "Synonym", "菠萝"),
        ("小凤梨", "Synonym", "大凤梨"),
        ("甲", "Synonym", "乙"),
    ]
    found = make(*pairs, templates=wordings)
    assert asked(found) == [("凤梨即[MASK]。", "菠萝"), ("笔的用途是[MASK]。", "写字")]


def test_bad_sentences_are_refused_by_file_and_key(tmp_path):
    def check(text, message):
        path = tmp_path / "own.yaml"
        path.write_text(text)
        with pytest.raises(InputError, match=message):
            read_wordings(path)

    check_all(
        check,
        [
            ("- a\n", "write sentences under a language"),
            ("zh: []\n", "write sentences under a language"),
            ('zh:\n  UsedFor: "{start}用来{end}。"\n', "own.yaml, zh, UsedFor: must be a list"),
            ('zh:\n  UsedFor: ["{start}用来。"]\n', "own.yaml, zh, UsedFor: .*{end} exactly once"),
            ('zh:\n  UsedFor: ["{start}{end}{end}。"]\n', "own.yaml, zh, UsedFor: .*{end} exactly once"),
            ('zh:\n  UsedFor: ["{start}用来{ned}。"]\n', "own.yaml, zh, UsedFor: {ned}"),
            ('zh:\n  UsedFor: ["{a start}用来{end}。"]\n', "own.yaml, zh, UsedFor: .*form"),
            ('zh:\n  UsedFor: ["{start}用来{end}[MASK]。"]\n', "own.yaml, zh, UsedFor: .*slot"),
            ('zh:\n  UsedFor: {template: ["{start}用来{end}。"]}\n', "own.yaml, zh, UsedFor: .*'template'"),
            (
                'zh:\n  UsedFor: {templates: ["{start}用来{end}。"], least: 0}\n',
                "own.yaml, zh, UsedFor: 'least' must be",
            ),
            (
                'zh:\n  UsedFor: {templates: ["{start}用来{end}。"], apart: 2}\n',
                "own.yaml, zh, UsedFor: 'apart' must be",
            ),
            ('en:\n  UsedFor: ["Use {start} for {end}."]\n', "own.yaml: there are no sentences in 'zh'"),
            ("zh: [\n", "own.yaml is not valid YAML"),
        ],
    )


def test_words_stand_whole_where_there_are_blanks():
    assert word_positions("a cat in a category, cat", "cat") == [2, 21]
    assert word_positions("不但不", "不") == [0, 2]
    assert word_positions("哈哈哈", "哈哈") == [0, 1]
    assert word_positions("苹果Mac电脑", "Mac") == [2]
    assert has_askable_length("the Netherlands Antilles", None) and not has_askable_length("一二三四五六七八九", None)


def test_embedded_pairs_make_valid_questions():
    made = commonsense_clozes(read_pairs(OWN_TEMPLATES.parent / "zh/pairs.tsv"), templates=read_wordings(), seed=3)
    assert len(made.clozes) > 100
    assert len({cloze.fact[1] for cloze in made.clozes}) >= 13
    table = make_question_set(made, seed=3).questions
    assert table.num_rows == len(made.clozes)


@pytest.mark.parametrize("options", [{}, {"characters": 1, "ask": "both"}])
def test_real_pairs(shared, options):
    pairs = read_pairs(next((shared / "data/conceptnet_zh").glob("*.csv")))
    made = commonsense_clozes(pairs, templates=read_wordings(), seed=1, **options)
    assert made.clozes
    sentences = [cloze.usage.sentence for cloze in made.clozes]
    assert len(set(sentences)) == len(sentences)
    ends = Counter((pair.subject, pair.relation) for pair in pairs.triples)
    starts = Counter((pair.object, pair.relation) for pair in pairs.triples)
    for cloze in made.clozes:
        start, relation, end = cloze.fact
        assert len(cloze.usage.sentence) <= 24
        assert cloze.usage.sentence.count(cloze.usage.word) == 1
        assert (ends[start, relation] if cloze.usage.word == end else starts[end, relation]) == 1
        assert len(cloze.usage.word) == 1 or "characters" not in options
    assert made.filters[0]["before"] == pairs.rows
