"""What is wanted of a probe, whether it was found, and the card that says so in words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import NormalDist
from typing import Any

from merkhet.calibration import _fact_world as facts
from merkhet.calibration import _sense_world as senses
from merkhet.calibration._trained_models import FACTS
from merkhet.calibration._world import IN_OTHER_WORDS, MEMORIZED, NEVER_SHOWN, World
from merkhet.training.calibration_models import LAYERS, WIDTH, ContentTraining

TRAINED, BAG, RANDOM = "trained", "bag of words", "random weights"
MODELS = (TRAINED, BAG, RANDOM)
ENOUGH = 0.9
LEAK = 0.1
"""How far above chance must be ruled out."""
AT_LEAST, NO_MORE = f"at least {ENOUGH:.0%}", "no more than chance"
ROLES = {MEMORIZED: "sensitivity", NEVER_SHOWN: "specificity", IN_OTHER_WORDS: "transfer"}
WANTED = {
    (MEMORIZED, TRAINED): AT_LEAST,
    (NEVER_SHOWN, TRAINED): NO_MORE,
    (NEVER_SHOWN, BAG): NO_MORE,
    (MEMORIZED, RANDOM): NO_MORE,
    (NEVER_SHOWN, RANDOM): NO_MORE,
}
_CONTROLS = {
    BAG: "in a bag of words, which was never shown it either",
    RANDOM: "in random weights, which have learned nothing",
}
_FEW = "these are too few facts to"
_USUAL = NormalDist().inv_cdf(0.975)
_SURE = NormalDist().inv_cdf(0.9995)
_POWER = NormalDist().inv_cdf(0.8)

Row = dict[str, Any]


def judged(content: str, model: str, score: Mapping[str, Any] | None, chance: float, facts: int) -> Row:
    """A row of a card: what a model scored on a set, what is wanted there, and whether it is so."""
    numbers: dict[str, Any] = {name: score[name] if score else None for name in ("value", "low", "high")}
    wanted = WANTED.get((content, model)) if score else None
    return {
        "content": content,
        "model": model,
        "role": ROLES[content] if model == TRAINED else "control",
        **numbers,
        "chance": chance,
        "n": score["n"] if score else 0,
        "facts": facts if score else 0,
        "wanted": wanted,
        "passed": is_as_wanted(wanted, **numbers, chance=chance) if wanted else None,
    }


def is_as_wanted(wanted: str, value: float, low: float, high: float, chance: float) -> bool:
    """Whether a score with its 95% interval is as it should be.

    At least 90%: the lower end is. No more than chance: the value is less than 3.3 standard errors above chance, which
    an honest probe misses once in 2,000 times, and the upper end is less than ten points above it, so that a leak is
    not overlooked for want of facts.
    """
    if wanted == AT_LEAST:
        return low >= ENOUGH
    return not _above(value, low, chance) and high < chance + LEAK


def _above(value: float, low: float, chance: float) -> bool:
    """Whether a score is above chance beyond doubt."""
    return value - _SURE * (value - low) / _USUAL > chance + 1e-9


def seen_leak(row: Row) -> float:
    """The smallest share of answers above chance that would have been seen in such a row, four times in five.

    A probe that finds a share p scores, four times in five, more than p less 0.84 standard errors. The error of a
    share goes with the square root of p (1 - p), and is at chance what the row has.
    """
    chance: float = row["chance"]
    spread = math.sqrt(chance * (1 - chance))
    at_chance: float = max(spread / math.sqrt(row["n"]), (row["high"] - row["low"]) / (2 * _USUAL))

    def error(share: float) -> float:
        return at_chance * math.sqrt(share * (1 - share)) / spread

    for leak in (thousandth / 1000 for thousandth in range(1, 1000)):
        found = min(1.0, chance + leak)
        poor = max(0.0, found - _POWER * error(found))
        if not is_as_wanted(NO_MORE, poor, poor - _USUAL * error(poor), poor + _USUAL * error(poor), chance):
            return leak
    return 1 - chance


def verdict(probe: str, kind: str, rows: Sequence[Row]) -> str:
    """Whether a probe can be trusted, and why."""
    by = {(row["content"], row["model"]): row for row in rows}
    found, never = by[MEMORIZED, TRAINED], by[NEVER_SHOWN, TRAINED]
    wrong = [row for row in rows if row["passed"] is False]
    wrong.sort(key=lambda row: row["model"] != TRAINED)
    if not wrong:
        return (
            f"{probe} passed on small {plural(kind)}: it found {_share(found)} of what they had memorized, and of "
            f"what they were never shown {_share(never)}, no more than guessing ({_percent(never['chance'])})."
        )
    reasons = "; ".join(f"{row['role']}: it {_wrong(row)}" for row in wrong)
    return f"FAILED: {probe} cannot be trusted on {plural(kind)}. {reasons[0].upper()}{reasons[1:]}."


def sentences_of(rows: Sequence[Row], notes: Mapping[str, Any]) -> list[str]:
    """What else the rows say, in words; ``notes`` are of the world that was asked about."""
    by = {(row["content"], row["model"]): row for row in rows}
    never, other = by[NEVER_SHOWN, TRAINED], by[IN_OTHER_WORDS, TRAINED]
    told = []
    if notes.get("known") is not None:
        told.append(
            f"The models knew {_percent(notes['known'])} of the sentences that they were taught by heart, by the "
            "training's own count, which no probe has part in."
        )
    told.append(
        f"A leak of {100 * seen_leak(never):.0f} points above chance on what was never shown would have been seen four "
        "times in five, a larger one more often."
    )
    if never["high"] < never["chance"]:
        told.append(
            f"It found less of that than guessing would ({_share(never)} against {_percent(never['chance'])}): what a "
            "model has learned of others it says of these too, and is wrong. That is no fault of the probe."
        )
    told.append(_transfer(other, by.get((IN_OTHER_WORDS, BAG)), notes["transfer"]))
    told += [_bag(by[MEMORIZED, BAG], notes["bag"])] if (MEMORIZED, BAG) in by else []
    if notes.get("unusable"):
        told.append(f"{notes['unusable']:,} questions could not be asked, and count as not found.")
    return told


def _transfer(row: Row, bag: Row | None, about: str) -> str:
    text = f"Transfer: of {about} it found {_share(row)}."
    if row["low"] is None or bag is None or bag["value"] is None:
        return text
    if row["low"] > bag["value"]:
        return f"{text} That is more than the company of words explains (a bag of words has {_percent(bag['value'])})."
    return f"{text} The company of words explains as much (a bag of words has {_percent(bag['value'])})."


def _bag(row: Row, about: str) -> str:
    if row["value"] is None:
        return "A bag of words cannot be asked by this probe, so that this control is missing."
    return f"A bag of words finds {_share(row)} of the memorized: {about}"


def _wrong(row: Row) -> str:
    share = _share(row)
    if row["wanted"] == AT_LEAST:
        found = f"found {share} of what was memorized, where {AT_LEAST} is wanted"
        return found if row["high"] < ENOUGH else f"{found} also of the lower end ({_FEW} say that it finds so many)"
    found = f"found {share} of what was {row['content']}"
    found += "" if row["model"] == TRAINED else f" {_CONTROLS[row['model']]}"
    found += f", where guessing finds {_percent(row['chance'])}"
    if _above(row["value"], row["low"], row["chance"]):
        return found
    return f"{found} (that may be chance, but {_FEW} rule out a leak of {100 * LEAK:.0f} points)"


def plural(kind: str) -> str:
    """What models of a kind are called."""
    return {"encoder": "encoders"}.get(kind, f"{kind} models")


def _share(row: Row) -> str:
    if row["value"] is None:
        return "nothing"
    return f"{_percent(row['value'])} [{100 * row['low']:.1f}, {100 * row['high']:.1f}]"


def _percent(value: float) -> str:
    return f"{100 * value:.1f}%"


def about_world(name: str, kind: str, trainings: int, world: World, contents: Sequence[ContentTraining]) -> str:
    """What was done, in two sentences."""
    what = plural(kind) if trainings > 1 else plural(kind).removesuffix("s")
    size = f"{LAYERS} layers of width {WIDTH}, about {round(contents[0].parameters, -3):,} parameters"
    trained = (
        f"{trainings} small {what} ({size}) {'were' if trainings > 1 else 'was'} trained from random weights, on "
        f"{len(world.sentences):,} sentences{' each' if trainings > 1 else ''} about an invented world of "
    )
    if name == FACTS:
        people = facts.PEOPLE
        return (
            f"{trained}{sum(people.values())} people and {facts.TOWNS} towns. Where people live and work was told of "
            f"{people[MEMORIZED]} in the wording that is asked and in another, of {people[IN_OTHER_WORDS]} in the "
            f"other wording alone, and of {people[NEVER_SHOWN]} not at all; all are named equally often, and every "
            "town is the answer equally often."
        )
    words = senses.WORDS
    return (
        f"{trained}{sum(words.values())} words and {senses.TOPICS} topics. {words[MEMORIZED]} words have two senses, "
        f"each among the words of one topic; {words[IN_OTHER_WORDS]} more were read beside half of these words and "
        f"are asked about beside the other half; {words[NEVER_SHOWN]} stand among words of no topic, where no "
        "sentence says which usages are of one sense."
    )


def notes_of(name: str, contents: Sequence[ContentTraining], unusable: int) -> dict[str, Any]:
    """What the sentences of a card need to know of the world and of the trainings."""
    known = [one.known for one in contents if one.known is not None]
    told = {"known": sum(known) / len(known) if known else None, "unusable": unusable}
    if name == FACTS:
        return {
            **told,
            "transfer": "facts that were shown in other words only",
            "bag": "it knows only which words stood together. A name stood beside two towns, and only the wording "
            "says which is home and which is work.",
        }
    return {
        **told,
        "transfer": "usages beside words of the topic that the word was never read with",
        "bag": "it sees only which words two sentences share, and those of a question share none.",
    }
