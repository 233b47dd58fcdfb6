"""What a card says of the world that was asked about: what the models were shown, and what that means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from merkhet.calibration import fact_world as facts
from merkhet.calibration import sense_world as senses
from merkhet.calibration.calibration_verdict import plural
from merkhet.calibration.trained_models import FACTS
from merkhet.calibration.world import IN_OTHER_WORDS, MEMORIZED, NEVER_SHOWN, World
from merkhet.training.calibration_models import LAYERS, WIDTH, KnownContent


def about_world(name: str, kind: str, trainings: int, world: World, contents: Sequence[KnownContent]) -> str:
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


def notes_of(name: str, contents: Sequence[KnownContent], unusable: int) -> dict[str, Any]:
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
