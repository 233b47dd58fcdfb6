"""The `medicine` pack: diseases, operations, branches of medicine, drugs and physicians, as WordNet describes them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .compiled import Described
from .glosses import Glosses, chosen_terms, definition, first_part
from .people_facts import PEOPLE, add_people
from .sourced import SourcedPack
from .wordnet import PART_HOLONYM, Synset
from .writing import read_table, slug

PREDICATES = {
    "inflammation-of": Described("is an inflammation of the", "disease", "organ", functional=True),
    "caused-by": Described("is caused by a", "disease", "germ", functional=True),
    "removes": Described("is the surgical removal of", "operation", "removed", functional=True),
    "fear-of": Described("is the fear of", "phobia", "feared", functional=True),
    "specialty-for": Described("is the branch of medicine for", "specialty", "topic", functional=True),
    "brand-of": Described("is a trade name of", "brand", "drug", functional=True),
    "drug-kind": Described("is a", "drug", "drugkind", functional=True, note="Kinds that exclude one another only."),
    "bone-of": Described("is a bone of the", "bone", "bodypart", functional=True),
    "medical-term": Described("means", "term", "definition", functional=True, note="Definitions are glosses."),
    **PEOPLE,
}
# Kinds of drugs of which no drug of the database has two.
_DRUG_KINDS = {
    "antibiotic": "antibiotic",
    "antihistamine": "antihistamine",
    "beta_blocker": "beta blocker",
    "benzodiazepine": "benzodiazepine",
    "barbiturate": "barbiturate",
    "nonsteroidal_anti-inflammatory": "nonsteroidal anti-inflammatory drug",
    "tricyclic": "tricyclic antidepressant",
    "local_anesthetic": "local anaesthetic",
    "ACE_inhibitor": "ACE inhibitor",
    "lipid-lowering_medicine": "lipid-lowering drug",
    "antimalarial": "antimalarial drug",
    "antiviral": "antiviral drug",
    "antifungal": "antifungal drug",
    "antineoplastic": "cancer drug",
    "bronchodilator": "bronchodilator",
    "anticoagulant": "anticoagulant",
    "vermifuge": "drug against worms",
    "diuretic_drug": "diuretic",
}
_DRUG_KIND_ALIASES = {
    "nonsteroidal anti-inflammatory drug": ("NSAID", "nonsteroidal anti-inflammatory"),
    "local anaesthetic": ("local anesthetic",),
    "cancer drug": ("antineoplastic", "antineoplastic drug"),
    "drug against worms": ("vermifuge", "anthelmintic"),
    "antiviral drug": ("antiviral",),
    "antifungal drug": ("antifungal",),
    "antimalarial drug": ("antimalarial",),
    "lipid-lowering drug": ("lipid-lowering medicine",),
}
# What is no single drug, and drugs that are two of these kinds.
_NO_KIND = frozenset(
    (
        *("doxorubicin", "actinomycin", "mitomycin", "aspirin_powder", "enteric-coated_aspirin"),
        *("buffered_aspirin", "antipruritic", "pyocyanin", "pyocyanase", "tetrachlorethylene", "salol"),
        *("sodium_thiopental", "mannitol", "gamma-interferon", "alpha-interferon", "beta-interferon"),
        *("penicillin_F", "penicillin_O", "anesthyl", "amphotericin", "ethyl_chloride", "iodochlorhydroxyquin"),
        *("tyrocidine", "tyrothricin", "subtilin", "mycomycin", "antimycin", "carbomycin", "streptothricin"),
        *("methyl_salicylate", "butacaine", "dicumarol", "quinine", "phenyltoloxamine", "methapyrilene"),
        *("cephaloridine", "cephaloglycin", "gramicidin", "mithramycin"),
    )
)
_NO_DRUGS = frozenset(
    (
        *("abortion_pill", "aqualung", "briefs", "cellulose_tape", "deep-freeze", "felt-tip_pen", "walker"),
        *("mannitol", "polypropenonitrile", "sanitary_napkin", "cling_film", "smokeless_powder"),
        *("nitrogen_trichloride", "cephalosporin", "angiotensin", "mild_silver_protein", "potassium_chloride"),
        *("pneumococcal_vaccine", "buffered_aspirin", "lactase"),
    )
)
# Names of combinations, misspelt names, and names that the database gives to another drug than their maker does.
_NO_BRANDS = frozenset(
    (
        *("Augmentin", "Sudafed", "Triavil", "Depokene", "Prinival", "Larium", "Torodal", "Coricidin", "Bayer"),
        *("Mephaquine", "St. Joseph", "Ethocaine", "Cortone Acetate", "Liquid Pred", "Vasomax", "Kavrin"),
        *("Keflin", "Hemofil", "Liquaemin", "Mexitil", "Daricon", "Orudis KT", "Dexamethasone Intensol"),
        *("Lipo-Hepin", "Ergotrate Maleate", "Atromid-S", "Tandearil", "Gemonil", "Estronol", "Lipo-Lutin"),
        *("Kabolin", "Nitrospan", "Larotid", "SK-Ampicillin"),
    )
)
_SPELLING = {"flunitrazepan": "flunitrazepam", "propanolol": "propranolol", "rifampin": "rifampin"}
_SALTS = (
    " sodium",
    " potassium",
    " hydrochloride",
    " maleate",
    " besylate",
    " bisulfate",
    " sulphate",
    " tromethamine",
)
_GERMS = {
    "virus": r"\b(?:virus|viruses|viral|herpes|rotavirus|retrovirus|arbovirus)\b",
    "bacterium": r"\b(?:bacteri\w*|bacillus|spirochete|streptococc\w*|staphylococc\w*|rickettsia\w*|chlamydia)\b",
    "parasite": r"\b(?:protozoa\w*|parasit\w*|\w*worms?|flukes?|trypanosome\w*|mites?)\b",
    "fungus": r"\bfung\w*\b",
}
# Infections of animals and plants, classes of diseases, and diseases that the gloss ties to a germ only in passing.
_NO_HUMAN_DISEASE = re.compile(
    r"\b(?:cattle|horses?|sheep|dogs?|cats?|swine|birds|plants?|poultry|chickens?|rabbits?|deer|livestock|lettuce|trees?"
    r"|grapes?|potato|crops?|leaves|bees|wheat|tobacco|fish|sometimes|usually|may be|can be|various|any of|often)\b"
)
# Conditions with several causes, what is no disease, and carriers that are no cause.
_NO_GERM = frozenset(
    (
        *("hepatitis", "toxemia", "pyemia", "sapremia", "focal infection", "HIV", "tsutsugamushi disease"),
        *("typhus", "tinea unguium", "chromoblastomycosis", "keratomycosis", "tinea barbae", "phycomycosis"),
        *("dermatomycosis", "favus", "tinea corporis", "lymphocytic choriomeningitis"),
    )
)
_REMOVED = re.compile(
    r"^surgical removal of (?:all or (?:a )?part of |part or all of |some or all of )?"
    r"((?:the|a|an|one or both) [a-z ]+?)"
    r"(?: to .*)?$"
)
_BRANCH = re.compile(
    r"^the branch of (?:medicine|medical science|dentistry) "
    r"(?:dealing with|that deals with|concerned with|that studies)"
    r" (?:the (?:diagnosis and treatment of |study and treatment of |treatment of |diseases of )|diseases of )?(.*)$"
)
_INFLAMMATION = re.compile(
    r"^(?:an? )?(?:acute )?inflammation of the ([a-z ]+?)(?: usually)?(?: caused by.*| characterized.*| of the eye)?$"
)
# Wrong or narrower senses, and groups of organs.
_NO_INFLAMMATION = frozenset(
    (
        *("aspiration pneumonia", "amebic dysentery", "pelvic inflammatory disease", "tympanitis", "rachitis"),
        *("tarsitis", "pancarditis", "corditis", "ulitis", "colpitis", "episcleritis", "leptomeningitis"),
        *("myocardial inflammation", "chilblain", "otitis", "sore throat"),
    )
)
# Wholes of bones, by the database's name; those of which none holds another, so that a bone has one.
_WHOLES = {
    **dict.fromkeys(("skull", "cranium", "head"), "skull"),
    **dict.fromkeys(("leg", "thigh"), "leg"),
    **{part: part for part in ("wrist", "pelvis")},
}
_NO_BONE = frozenset(
    (
        "upper jaw",
        "hipbone",
        "jaw",
        "skull",
        "cranium",
        "ossicle",
        "calvaria",
        "coccyx",
        "sacrum",
        "ramus",
        "sinciput",
        "occiput",
    )
)


def build(glosses: Glosses, used: set[str]) -> SourcedPack:
    pack = SourcedPack(
        name="medicine",
        title="Medicine",
        description="Diseases with what they inflame and what causes them, operations, fears, branches of medicine, "
        "drugs with their kinds and trade names, bones and physicians.",
        domain="medicine",
        predicates=PREDICATES,
        sources=("wordnet",),
    )
    nouns = [synset for _, synset in sorted(glosses.nouns.items()) if synset.lemmas[0].islower()]
    _add_inflammations(pack, glosses)
    _add_germs(pack, glosses)
    _confirm_germs(pack, glosses)
    _add_operations(pack, nouns)
    _add_fears(pack, glosses)
    _add_branches(pack, nouns)
    _add_drugs(pack, glosses, nouns)
    _add_bones(pack, glosses)
    pack.define("medical-term", chosen_terms(glosses, "medicine"), "wordnet")
    add_people(pack, glosses.people("doctor", "physiologist", "bacteriologist", "anatomist", "nurse"), used)
    return pack


def _names(synset: Synset) -> tuple[str, tuple[str, ...]]:
    first, *others = (lemma.replace("_", " ") for lemma in synset.lemmas)
    return first, tuple(others)


def _add_inflammations(pack: SourcedPack, glosses: Glosses) -> None:
    for synset in glosses.descendants("inflammation", "disease", "infection", "disorder"):
        match = _INFLAMMATION.match(definition(synset.gloss))
        named = glosses.by_lemma[synset.lemmas[0]]
        # The glosses of some diseases name a part of an organ beside the organ, or several organs.
        if match and len(named) == 1 and not re.search(r"\b(?:and|or|of|body|membrane)\b", match[1]):
            label, aliases = _names(synset)
            organ = match[1]
            if label not in _NO_INFLAMMATION and len(organ.split()) <= 3:
                disease = pack.entity("disease", label, aliases)
                pack.link(disease, "inflammation-of", pack.entity("organ", organ), "wordnet")


def _add_germs(pack: SourcedPack, glosses: Glosses) -> None:
    for synset in glosses.descendants("infectious_disease", "infection", "parasitic_disease"):
        gloss = first_part(synset.gloss)
        found = [germ for germ, pattern in _GERMS.items() if re.search(pattern, gloss)]
        if len(found) != 1 or _NO_HUMAN_DISEASE.search(gloss) or len(glosses.by_lemma[synset.lemmas[0]]) > 1:
            continue
        label, aliases = _names(synset)
        is_told = re.search(_GERMS[found[0]], label) or found[0][:4] in label or label in _NO_GERM
        if is_told or not re.search(r"\b(?:caused|infect\w*|transmitted|due to|disease)\b", gloss):
            continue
        disease = pack.entity("disease", label, aliases)
        pack.link(disease, "caused-by", pack.entity("germ", found[0]), "wordnet")


def _confirm_germs(pack: SourcedPack, glosses: Glosses) -> None:
    """Add well-known diseases of germs.csv, where the gloss of the disease or of its kind names the germ."""
    by_name: dict[str, list[Synset]] = {}
    for synset in glosses.descendants("disease", "disorder", "infection"):
        for lemma in synset.lemmas:
            by_name.setdefault(lemma.replace("_", " ").lower(), []).append(synset)
    for row in read_table("germs.csv"):
        label, germ = row["disease"], row["germ"]
        senses = by_name.get(label.lower(), [])
        texts = [first_part(above.gloss) for synset in senses for above in (synset, *glosses.parents(synset))]
        if any(re.search(_GERMS[germ], text) for text in texts):
            known = [synset.lemmas[0].replace("_", " ") for synset in senses]
            # A disease that the glosses have already named goes by that name.
            name = next((name for name in known if ("disease:" + slug(name), "en") in pack.pack.names), label)
            disease = pack.entity("disease", name)
            if not any(fact.subject == disease and fact.predicate == "caused-by" for fact in pack.pack.facts):
                pack.link(disease, "caused-by", pack.entity("germ", germ), "wordnet")


def _add_operations(pack: SourcedPack, nouns: list[Synset]) -> None:
    for synset in nouns:
        match = _REMOVED.match(definition(synset.gloss))
        is_vague = match and re.search(
            r"\b(?:and|or|part|organ|body|that|blood)\b|^an? (?!lung|kidney|eye|breast)", match[1]
        )
        if match and not is_vague and synset.lemmas[0] != "enervation":
            label, aliases = _names(synset)
            operation = pack.entity("operation", label, aliases)
            pack.link(operation, "removes", pack.entity("removed", match[1]), "wordnet")


def _add_fears(pack: SourcedPack, glosses: Glosses) -> None:
    # The database calls the fear of snakes by the name of another.
    for synset in glosses.descendants("phobia"):
        match = re.match(r"^(?:a morbid|irrational) fear of (.*)$", definition(synset.gloss))
        label, aliases = _names(synset)
        if match and label != "lepidophobia" and "phobia" not in match[1]:
            pack.link(pack.entity("phobia", label, aliases), "fear-of", pack.entity("feared", match[1]), "wordnet")


def _add_branches(pack: SourcedPack, nouns: list[Synset]) -> None:
    for synset in nouns:
        match = _BRANCH.match(definition(synset.gloss))
        label, aliases = _names(synset)
        if match is None or len(match[1].split()) > 9 or label in ("biomedicine", "therapeutics", "anesthesiology"):
            continue
        topic = re.sub(r" and (?:its|their) (?:diseases|disorders|secretions|bodily functions)$", "", match[1])
        if topic[:5] in label:
            continue
        specialty = pack.entity("specialty", label, aliases)
        pack.link(specialty, "specialty-for", pack.entity("topic", topic), "wordnet")


def _add_drugs(pack: SourcedPack, glosses: Glosses, nouns: list[Synset]) -> None:
    for kind, label in _DRUG_KINDS.items():
        for synset in glosses.descendants(kind):
            if synset.lemmas[0] in _NO_KIND:
                continue
            others = [other for other in _DRUG_KINDS if other != kind and synset in glosses.descendants(other)]
            if others or glosses.descendants(synset.lemmas[0]) or not synset.lemmas[0][0].islower():
                continue
            drug = _drug(pack, synset)
            if label.split()[0][:6] not in pack.pack.names[drug, "en"][0]:
                target = pack.entity("drugkind", label, _DRUG_KIND_ALIASES.get(label, ()))
                pack.link(drug, "drug-kind", target, "wordnet")
    for synset in nouns:
        if synset.lemmas[0] not in _NO_DRUGS:
            for brand in _brands(synset):
                pack.link(pack.entity("brand", brand), "brand-of", _drug(pack, synset), "wordnet")


def _drug(pack: SourcedPack, synset: Synset) -> str:
    given, others = _names(synset)
    label = _SPELLING.get(given, given)
    for salt in _SALTS:
        label = label.removesuffix(salt)
    # Trade names are facts, so that they are no names of the drug here.
    aliases = [name for name in (given, *others) if name.islower() and name != label]
    return pack.entity("drug", label, aliases)


def _brands(synset: Synset) -> Iterator[str]:
    match = re.search(r"\(trade names? ([^)]*)\)", synset.gloss)
    for name in re.split(r", and |, | and | or ", match[1]) if match else ():
        brand = name.strip()
        given = synset.lemmas[0].lower()
        if brand and brand not in _NO_BRANDS and not re.search(r"\d", brand) and brand.lower()[:4] != given[:4]:
            yield brand


def _add_bones(pack: SourcedPack, glosses: Glosses) -> None:
    for synset in glosses.descendants("bone"):
        label, aliases = _names(synset)
        if label in _NO_BONE or glosses.descendants(synset.lemmas[0]):
            continue
        # A carpal bone is a part of the wrist, and so is each of its kinds.
        above = [synset, *glosses.parents(synset)]
        wholes = {
            _WHOLES.get(whole.lemmas[0], "") for bone in above for whole in glosses.linked(bone, PART_HOLONYM)
        } - {""}
        if len(wholes) == 1 and not any(word[:3] in label for word in wholes):
            bone = pack.entity("bone", label, aliases)
            pack.link(bone, "bone-of", pack.entity("bodypart", wholes.pop()), "wordnet")
