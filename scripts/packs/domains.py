"""The small packs `medicine`, `law`, `military`, `music` and `film-tv`."""

from __future__ import annotations

from .compiled import Described, compiled_pack
from .writing import Pack

NOTE = "Compiled by hand; left out where accounts differ."

MEDICINE = {
    "lack-of": Described("is caused by a lack of", "disease", "substance", functional=True),
    "caused-by": Described("is caused by a", "disease", "germ", functional=True),
    "affects-organ": Described("is a disease of the", "disease", "organ"),
    "specialty-for": Described("is the branch of medicine for", "specialty", "topic", functional=True),
    "drug-kind": Described("is a", "drug", "drugkind", functional=True),
    "medical-advance": Described("is owed to", "discovery", "person", functional=True),
    "made-by-gland": Described("is made by the", "hormone", "organ", functional=True),
    "bone-of": Described("is a bone of the", "bone", "bodypart", functional=True),
}
LAW = {
    "parliament": Described("has the parliament", "country", "parliament", functional=True),
    "law-year": Described("dates from the year", "law", unit="year", functional=True, note="Laws and leading cases."),
    "case-about": Described("is about", "law", "topic", functional=True),
    "seat-of-body": Described("has its seat in", "court", "place", functional=True),
    "legal-term": Described("means", "term", "meaning", functional=True, note="Latin terms of the law."),
    "offence-is": Described("is the offence of", "offence", "deed", functional=True),
}
MILITARY = {
    "outranks": Described("outranks a", "rank", "rank", note="The next rank of the army only."),
    "larger-unit-than": Described("is larger than a", "troop", "troop", note="The next in size only."),
    "weapon-kind": Described("is a", "weapon", "weaponkind", functional=True),
    "weapon-origin": Described("was developed in", "weapon", "place", functional=True),
    "won-by": Described("was won by", "event", "person", functional=True, note="The commander of the winning side."),
    "served-in": Described("served in the", "person", "force", functional=True),
}
MUSIC = {
    "composed-by": Described("was composed by", "composition", "person", functional=True),
    "instrument-family": Described("is a", "instrument", "family", functional=True),
    "performed-by": Described("was recorded by", "album", "artist", functional=True),
    "music-term": Described("means", "term", "meaning", functional=True, note="Italian terms of music."),
}
FILM_TV = {
    "directed-by": Described("was directed by", "film", "person", functional=True),
    "film-year": Described("came out in the year", "film", unit="year", functional=True),
    "first-broadcast-by": Described("was first broadcast by", "series", "channel", functional=True),
}


def build() -> list[Pack]:
    return [
        compiled_pack(
            name="medicine",
            title="Medicine",
            description="Diseases with their causes and the organs they affect, drugs and their kinds, branches and "
            "advances of medicine, hormones and bones.",
            domain="medicine",
            predicates=MEDICINE,
            note=NOTE,
        ),
        compiled_pack(
            name="law",
            title="Law",
            description="Parliaments, laws and leading cases, seats of courts, Latin terms and offences.",
            domain="law",
            predicates=LAW,
            note=NOTE,
        ),
        compiled_pack(
            name="military",
            title="Military",
            description="Ranks and units, weapons and their origins, victors of battles and the forces they served in.",
            domain="military",
            predicates=MILITARY,
            note=NOTE,
        ),
        compiled_pack(
            name="music",
            title="Music",
            description="Composers of works, families of instruments, albums and Italian terms.",
            domain="music",
            predicates=MUSIC,
            note=NOTE,
        ),
        compiled_pack(
            name="film-tv",
            title="Film and television",
            description="Directors and years of films, broadcasters of series.",
            domain="film-tv",
            predicates=FILM_TV,
            note=NOTE,
        ),
    ]
