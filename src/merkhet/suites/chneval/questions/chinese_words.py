"""Chinese function words, and the contexts in which an ambiguous word is a function word."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

_WORDS = {
    "C": """
        和 与 及 或 而 但 并 且 既 则 若 虽 因 以及 并且 而且 或者 但是 可是 不过 然而 因为 所以 因此 因而 于是 虽然
        尽管 即使 即便 哪怕 如果 要是 假如 倘若 只要 只有 除非 无论 不管 不论 不但 不仅 何况 况且 否则 既然 从而 以便
        以免 以致 与其 固然 由于 此外 总之 乃至 尚且 可见
    """,
    "D": """
        不 也 就 都 还 又 将 只 已 却 最 更 再 才 便 正 曾 先 太 均 真 未 极 常 仅 竟 刚 亦 必 须 仍 很 挺 颇 较 稍 略
        皆 尚 互 相 越 没 别 甭 已经 早已 一定 必须 特别 一直 非常 比较 越来越 甚至 原来 不断 当然 其实 终于 几乎 似乎
        进一步 也许 或许 大概 恐怕 难道 到底 究竟 毕竟 居然 竟然 果然 忽然 渐渐 逐渐 慢慢 常常 经常 往往 总是 从来
        从不 从未 一向 始终 仍然 依然 仍旧 曾经 刚刚 马上 立刻 立即 赶快 赶紧 连忙 急忙 随时 偶尔 再次 重新 一起 互相
        相互 分别 亲自 尤其 更加 十分 极其 格外 过于 稍微 大约 至少 差点 简直 只好 不得不 未必 何必 不必 正在 即将
        反正 幸亏 偏偏 恰好 正好 故意 特意 随便 尽量 尽快 反复 纷纷 陆续 依次 永远 顿时 顺便 一再 再三 通常 首先 最终
        到处 处处 暂时 的确 确实 仅仅 反而 毫不
    """,
    "P": """
        在 从 把 被 对 比 跟 同 为 以 于 由 向 往 朝 给 按 据 沿 随 趁 替 自 当 用 连 凭 按照 根据 依照 沿着 随着 趁着
        朝着 顺着 为了 对于 关于 至于 除了 通过 自从 凭借 鉴于 针对
    """,
    "U": "的 地 得 了 着 过 之 所 等 等等 般 似的 的话 吗 吧 呢 呀 啊 啦 嘛 么 哇 呗 哦 而已 罢了",
    "ND": """
        上 下 里 外 前 后 中 内 间 边 旁 底 左 右 东 西 南 北 上面 下面 里面 外面 前面 后面 上边 下边 里边 外边 前边
        后边 左边 右边 东边 西边 南边 北边 旁边 中间 对面 背后 身后 面前 附近 周围 两边 两侧 两旁 底下 之间 之前 之后
        之中 之内 之外 之上 之下 以前 以后 以来 以内 以外 以上 以下 期间 内部 外部 东部 西部 南部 北部 中部
    """,
}

CHINESE_WORDS: Mapping[str, tuple[str, ...]] = {name: tuple(words.split()) for name, words in _WORDS.items()}
"""Closed lists of function words by class; the dictionaries of taggers have errors (首都 as an adverb)."""

_CLASS_OF = {word: name for name, words in CHINESE_WORDS.items() for word in words}

_NOUNLIKE, _VERBLIKE = "nstrqj", "va"
# Allowed first letters of the preceding word's tag: 上 after a noun is a direction noun, otherwise the verb "go up".
_PRECEDING_TAGS = {
    **dict.fromkeys("上下", "nsqj"),
    **dict.fromkeys("里外底旁边", _NOUNLIKE),
    **dict.fromkeys("中内间", _NOUNLIKE + "vm"),
    **dict.fromkeys("前后", _NOUNLIKE + "vmuai"),
    **dict.fromkeys("左右东西南北", "p"),
    **dict.fromkeys("着过", _VERBLIKE),
    "得": _VERBLIKE,
    "地": "adzilovb",
    "等": "nj",
    "等等": "nj",
    "般": "nvail",
}
# Words that are measure words after a number or one of these determiners: 一把, 这只, 每对.
_MEASURE_WORDS, _DETERMINERS = "把只对则", "这那哪每几"
# Allowed first letters of the following word's tag.
_FOLLOWING_TAGS = {
    **dict.fromkeys(("没", "别", "甭", "相", "必", "须", "只", "先", "互"), _VERBLIKE + "dpcr"),
    "将": _VERBLIKE + "dp",
    "正": _VERBLIKE + "dp",
    "所": "v",
    "用": "nrm",
    "给": "nr",
}
# Prefixes that the following word's tag must not have.
_EXCLUDED_FOLLOWING = {"还": ("n", "m"), "一定": ("u",), **dict.fromkeys("上下", ("ud", "ug", "uz"))}
# Words of which one must come later in the sentence (连……都, 只有……才), or earlier (、 in a list before 等).
_LATER = {"连": ("都", "也"), "当": ("时",), "只有": ("才",)}
_EARLIER = dict.fromkeys(("等", "等等"), ("、",))


class _Word(Protocol):
    @property
    def text(self) -> str: ...

    @property
    def tag(self) -> str: ...


def function_word_class(words: Sequence[_Word], index: int) -> str | None:
    """Return the class of a word in a segmented sentence, or None if the word is not a function word there."""
    word = words[index].text
    name = _CLASS_OF.get(word)
    if name is None:
        return None
    preceding = words[index - 1].tag[:1] if index else ""
    following = words[index + 1].tag if index + 1 < len(words) else ""
    fits = (
        (word not in _PRECEDING_TAGS or (preceding and preceding in _PRECEDING_TAGS[word]))
        and not (word in _MEASURE_WORDS and index and (preceding == "m" or words[index - 1].text in _DETERMINERS))
        and (word not in _FOLLOWING_TAGS or (following and following[0] in _FOLLOWING_TAGS[word]))
        and not following.startswith(_EXCLUDED_FOLLOWING.get(word, ()))
        and (word not in _LATER or any(mark in other.text for other in words[index + 1 :] for mark in _LATER[word]))
        and (word not in _EARLIER or any(other.text in _EARLIER[word] for other in words[:index]))
    )
    return name if fits else None
