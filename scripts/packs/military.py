"""The `military` pack: battles, commanders, weapons, armed forces and terms of the military."""

from __future__ import annotations

import re
from pathlib import Path

from . import factbook
from .compiled import Described
from .countries import COUNTRY_LABELS
from .glosses import Glosses, Person, chosen_terms, first_part
from .people_facts import PEOPLE, add_people
from .sourced import SourcedPack
from .wordnet import PART_HOLONYM

PREDICATES = {
    "battle-of-war": Described("was fought in", "event", "event", functional=True),
    "event-year": Described("took place in the year", "event", unit="year", functional=True),
    "battle-place": Described(
        "took place in", "event", "place", functional=True, note="Countries of today and states of the US."
    ),
    "known-for-war": Described("is known for a part in", "person", "event", functional=True),
    "weapon-kind": Described(
        "is a", "weapon", "weaponkind", functional=True, note="Kinds that exclude one another only."
    ),
    "force-of": Described("is a part of the armed forces of", "force", "country", functional=True),
    "spelled-as": Described("has the code word", "letter", "codeword", functional=True, note="NATO spelling alphabet."),
    "military-term": Described("means", "term", "definition", functional=True, note="Definitions are glosses."),
    **PEOPLE,
}
# Wars as the database names them, and as the packs do.
WARS = {
    "World War I": "the First World War",
    "World War II": "the Second World War",
    "American Revolution": "the American War of Independence",
    "American Civil War": "the American Civil War",
    "Napoleonic Wars": "the Napoleonic Wars",
    "Hundred Years' War": "the Hundred Years' War",
    "Thirty Years' War": "the Thirty Years' War",
    "Seven Years' War": "the Seven Years' War",
    "English Civil War": "the English Civil War",
    "Mexican War": "the Mexican–American War",
    "Spanish-American War": "the Spanish–American War",
    "War of the Spanish Succession": "the War of the Spanish Succession",
    "War of the Austrian Succession": "the War of the Austrian Succession",
    "Russo-Japanese War": "the Russo-Japanese War",
    "Korean War": "the Korean War",
    "War of the Roses": "the Wars of the Roses",
    "Balkan Wars": "the Balkan Wars",
    "Peloponnesian War": "the Peloponnesian War",
}
_WAR_IN_GLOSS = {
    "World War I": "World War I",
    "World War II": "World War II",
    "American Revolution": "American Revolution",
    "American Civil War": "American Civil War",
    "Civil War": "American Civil War",
    "Napoleonic Wars": "Napoleonic Wars",
    "English Civil War": "English Civil War",
    "Korean War": "Korean War",
    "Thirty Years' War": "Thirty Years' War",
    "War of the Spanish Succession": "War of the Spanish Succession",
    "Mexican War": "Mexican War",
    "Spanish-American War": "Spanish-American War",
    "Peloponnesian War": "Peloponnesian War",
}
# Names that the database shortens, misplaces or gives to several battles, by the first lemma; "" leaves a battle out.
_BATTLES = {
    "Alamo": "the Battle of the Alamo",
    "Battle_of_the_Ardennes_Bulge": "the Battle of the Bulge",
    "Battle_of_the_Marne": "",
    "Bull_Run": "",
    "Boyne": "the Battle of the Boyne",
    "Chaeronea": "",
    "Mantinea": "",
    "Somme": "the Battle of the Somme",
    "Syracuse": "",
    "Yalu_River": "",
    "Fort_Ticonderoga": "the capture of Fort Ticonderoga",
    "Poitiers": "",
    "Lutzen": "the Battle of Lützen",
    "Trasimeno": "",
    "Lexington": "the Battles of Lexington and Concord",
    "Saratoga": "the Battles of Saratoga",
    "Yorktown": "the siege of Yorktown",
    "Vicksburg": "the siege of Vicksburg",
    "Orleans": "the siege of Orléans",
    "Lucknow": "the siege of Lucknow",
    "Plevna": "the siege of Plevna",
    "Petersburg": "the siege of Petersburg",
    "Atlanta": "the Battle of Atlanta",
    "Bataan": "the Battle of Bataan",
    "Dien_Bien_Phu": "the Battle of Dien Bien Phu",
    "Dardanelles": "",
    "Wilderness_Campaign": "the Battle of the Wilderness",
    "Metaurus_River": "the Battle of the Metaurus",
    "Lake_Trasimenus": "the Battle of Lake Trasimene",
    "Granicus": "the Battle of the Granicus",
    "Thermopylae": "the Battle of Thermopylae",
    "Caudine_Forks": "the Battle of the Caudine Forks",
    "Chalons": "the Battle of the Catalaunian Plains",
    "Crecy": "the Battle of Crécy",
    "El_Alamein": "the Second Battle of El Alamein",
    "Philippine_Sea": "the Battle of the Philippine Sea",
    "Coral_Sea": "the Battle of the Coral Sea",
    "Bismarck_Sea": "the Battle of the Bismarck Sea",
    "Aegates_Isles": "the Battle of the Aegates Islands",
    "Iwo": "the Battle of Iwo Jima",
    "Tarawa": "the Battle of Tarawa",
    "Battle_of_Wake": "the Battle of Wake Island",
    "Saint-Mihiel": "the Battle of Saint-Mihiel",
    "Ravenna": "the Battle of Ravenna",
    "Drogheda": "the siege of Drogheda",
    "Battle_of_the_Spanish_Armada": "",
    "Cape_Trafalgar": "the Battle of Trafalgar",
    "Santiago": "the Battle of Santiago de Cuba",
    "Panipat": "the Third Battle of Panipat",
    "Soissons": "",
    "Chattanooga": "the Battle of Chattanooga",
    "Aegospotami": "the Battle of Aegospotami",
    "Hampton_Roads": "the Battle of Hampton Roads",
    "Tannenberg": "the Battle of Tannenberg",
    "Ypres": "",
    "Verdun": "the Battle of Verdun",
    "Passero": "the Battle of Cape Passero",
    "Kerbala": "the Battle of Karbala",
    "Battle_of_Kerbala": "the Battle of Karbala",
    "Tertry": "the Battle of Tertry",
    "Teutoburger_Wald": "the Battle of the Teutoburg Forest",
    "White_Hill": "the Battle of White Mountain",
    "Valmy": "the Battle of Valmy",
    "Langside": "the Battle of Langside",
    "Cunaxa": "the Battle of Cunaxa",
    "Jena": "the Battle of Jena",
    "Salerno": "the landing at Salerno",
    "Meuse": "the Meuse–Argonne offensive",
    "Battle_of_Britain": "the Battle of Britain",
    "Port_Arthur": "",
    "Monmouth_Court_House": "the Battle of Monmouth",
    "Guadalcanal": "the Battle of Guadalcanal",
}
_COUNTRIES = {
    **{
        name: name for name in ("France", "Italy", "Greece", "Germany", "Belgium", "Egypt", "India", "Mexico", "Turkey")
    },
    **{name: name for name in ("Switzerland", "Philippines", "Cuba", "Vietnam", "South Korea", "Sudan", "Bulgaria")},
    **{name: name for name in ("Denmark", "Ireland", "England", "Scotland", "Poland", "Austria", "Spain")},
    **{name: name for name in ("Virginia", "Pennsylvania", "Tennessee", "Georgia", "South Carolina", "New Jersey")},
    **{name: name for name in ("Massachusetts", "Mississippi", "Maryland")},
    "Soviet Russia": "Russia",
}
# Places that the database gets wrong, or that are another country today.
# Fought before 1803, which most historians do not count among the Napoleonic Wars.
_NO_WAR = frozenset(("Marengo", "Hohenlinden", "Lodi", "Rivoli", "Aboukir_Bay", "Acre"))
_NO_PLACE = frozenset(
    (
        *("Bouvines", "Chickamauga", "Blenheim", "Brunanburh", "Drogheda", "Battle_of_the_Ardennes_Bulge", "Jutland"),
        *("Lexington", "Tannenberg", "Panipat", "Lepanto", "Navarino", "Actium", "Philippi", "Boyne", "Dardanelles"),
    )
)
_WEAPONS = {
    "sword": "sword",
    "dagger": "dagger",
    "pistol": "pistol",
    "machine_gun": "machine gun",
    "rifle": "rifle",
    "spear": "spear",
    "missile": "missile",
    "warship": "warship",
    "warplane": "warplane",
    "club": "club",
    "body_armor": "body armour",
    "helmet": "helmet",
}
_ONE_SENSE = {"club": {"blackjack", "bludgeon", "cudgel", "knobkerrie", "lathi", "shillelagh", "truncheon"}}
_NO_WEAPON = frozenset(
    (
        *("forty-five", "gat", "peacekeeper", "space_probe", "batting_helmet", "football_helmet", "hard_hat"),
        *("crash_helmet", "skid_lid", "space_helmet", "headpiece", "destroyer_escort", "capital_ship"),
        *("nautilus", "tin_can", "submersible", "surface_ship", "guard_ship", "interceptor"),
        *("brilliant_pebble", "sidewinder", "horse_pistol", "zip_gun", "Very_pistol", "burp_gun"),
        *("automatic_rifle", "light_machine_gun", "cruise_missile", "voider", "bulletproof_vest", "kamikaze"),
        *("frigate", "fleet_ballistic_missile_submarine", "auxiliary_research_submarine", "leister", "harpoon"),
        *("Colt", "casquet", "heaume", "habergeon", "corselet", "sloop_of_war", "reconnaissance_plane"),
        *("sailing_warship", "assault_rifle", "Kalashnikov", "Browning_automatic_rifle"),
        *("Saturday_night_special", "pepper_spray", "Mace", "fighter", "pocket_battleship"),
        *("guided_missile_cruiser", "guided_missile_frigate", "attack_submarine", "trench_knife"),
    )
)
_NO_FORCE = re.compile(
    r"Salvadorena|Eireannn|Voyskia|KdoL|SENAFRONT|Military Police|Brunoto|Naznacheniya|Commando|Secretaria|La Marine"
    r"|Marine Nationale|Directemar"
    r"|Ejercito$|Ejercito Nacional|Armee|Forca Aerea Nacional|Armada Nacional|Fuerza de Mar|Marina de Guerra|Milicia"
    r"|Takticke|Zracnih|Infanteria de Marina|Fusileros|Specialiuju|Territoriales|Streitkraefte|Fortele|Sanitaets"
    r"|Juvenil|Guardia Costeira|Guarda|Mocambique|Forcas|Corpi|Militar |Guardia Nacional|Armada Bol|Ejercito Bol"
    r"|Armada Rep|al Jawyiya|al-Jawwiya al-Jaza|Sena Bahini|Brasileir|Espanol|Schweizer|Lietuvos|Italian"
)


def build(glosses: Glosses, factbook_folder: Path, alphabet: Path, used: set[str]) -> SourcedPack:
    pack = SourcedPack(
        name="military",
        title="Military",
        description="Battles with their wars, years and places, commanders, weapons, armed forces and terms of "
        "the military.",
        domain="military",
        predicates=PREDICATES,
        sources=("wordnet", "factbook", "spelling"),
    )
    _add_battles(pack, glosses)
    people = glosses.people("general", "military_officer", "soldier", "naval_officer", "military_leader")
    for person, entity in add_people(pack, people, used):
        _add_war(pack, person, entity)
    _add_weapons(pack, glosses)
    for code, name in factbook.forces(factbook.profiles(factbook_folder)):
        if not _NO_FORCE.search(name):
            country = pack.pack.name(f"country:{code}", COUNTRY_LABELS[code])
            pack.link(pack.entity("force", name), "force-of", country, "factbook")
    _add_alphabet(pack, alphabet)
    pack.define("military-term", chosen_terms(glosses, "military"), "wordnet")
    return pack


def _add_battles(pack: SourcedPack, glosses: Glosses) -> None:
    seen: set[str] = set()
    for synset in glosses.instances("battle", "siege", "amphibious_assault", "military_action", "campaign"):
        lemma = synset.lemmas[0]
        plain = re.sub(r"^battle of ", "", lemma.replace("_", " "), flags=re.IGNORECASE)
        label = _BATTLES.get(lemma, f"the Battle of {plain}")
        if not label or label in seen or re.search(r"\bWars?\b|Revolution|Conquest", plain):
            continue
        seen.add(label)
        gloss = first_part(synset.gloss)
        battle = ""
        wars = [whole.label for whole in glosses.linked(synset, PART_HOLONYM) if whole.label in WARS]
        if len(wars) == 1 and lemma not in _NO_WAR:
            battle = pack.entity("event", label)
            pack.link(battle, "battle-of-war", pack.entity("event", WARS[wars[0]]), "wordnet")
        years = set(re.findall(r"(?<![-\d])\b(\d{3,4})\b(?!\s*BC|-\d)", gloss))
        if len(years) == 1 and "BC" not in gloss and not re.search(r"\d-\d", gloss):
            battle = pack.entity("event", label)
            pack.measure(battle, "event-year", int(years.pop()), "wordnet")
        places = {_COUNTRIES[place.label] for place in glosses.linked(synset, ";r") if place.label in _COUNTRIES}
        if len(places) == 1 and lemma not in _NO_PLACE:
            battle = pack.entity("event", label)
            pack.link(battle, "battle-place", pack.entity("place", places.pop()), "wordnet")


def _add_war(pack: SourcedPack, person: Person, entity: str) -> None:
    # The database gives Joffre to the other world war.
    if person.label == "Joseph Joffre":
        return
    named = {war for words, war in _WAR_IN_GLOSS.items() if re.search(rf"\b{words}\b(?! I)", person.gloss)}
    if "English Civil War" in named:
        named.discard("American Civil War")
    if len(named) == 1:
        war = pack.entity("event", WARS[named.pop()])
        pack.link(entity, "known-for-war", war, "wordnet")


def _add_weapons(pack: SourcedPack, glosses: Glosses) -> None:
    families = {kind: {synset.offset for synset in glosses.descendants(kind)} for kind in _WEAPONS}
    for kind, label in _WEAPONS.items():
        for synset in glosses.descendants(kind):
            lemma = synset.lemmas[0]
            others = [other for other in _WEAPONS if other != kind and synset.offset in families[other]]
            wanted = _ONE_SENSE.get(kind)
            if others or lemma in _NO_WEAPON or (wanted and lemma not in wanted):
                continue
            name = lemma.replace("_", " ")
            word = label.split()[-1]
            # A name that ends in its kind, or has kinds of its own, makes no question.
            if word[:4].lower() in name.lower() or len(glosses.by_lemma[lemma]) > 1:
                continue
            weapon = pack.entity("weapon", name, [other.replace("_", " ") for other in synset.lemmas[1:]])
            pack.link(weapon, "weapon-kind", pack.entity("weaponkind", label), "wordnet")


def _add_alphabet(pack: SourcedPack, alphabet: Path) -> None:
    words = re.search(r'\["alfa",([^\]]*)\]', alphabet.read_text(encoding="utf-8"))
    if words is None:
        raise ValueError(f"{alphabet} has no list of code words")
    for letter, word in zip(map(chr, range(65, 91)), ["alfa", *re.findall(r'"([^"]*)"', words[1])], strict=True):
        target = pack.entity("codeword", word.capitalize(), ["Alpha"] if word == "alfa" else [])
        pack.link(pack.entity("letter", letter), "spelled-as", target, "spelling")
