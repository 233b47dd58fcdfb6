"""Hand-kept word lists of the `taxonomy` pack."""

from __future__ import annotations


def _words(text: str) -> set[str]:
    """Terms of a comma-separated list that may run over several lines."""
    return {" ".join(term.split()) for term in text.split(",")}


# Lexicographer files: animal, artifact, body, food, object, plant, substance.
CONCRETE = {5, 6, 8, 13, 17, 20, 27}
LIVING = {5, 8, 20}

# In how many glosses a word that was never tagged must stand to count as well known, by lexicographer file.
SUBJECT_GLOSSES = {5: 2, 6: 3, 8: 4, 13: 2, 17: 3, 20: 4, 27: 5}
CLASS_GLOSSES = 3
PART_GLOSSES = 2
TAGGED_GLOSSES = 2

# Classes that say nothing to a reader, or only something to a specialist: links go past them.
ABSTRACT = _words(
    """
    acanthopterygian, agent, amniote, anapsid, angiosperm, animal material, animal part, animal product, animal
    tissue, annelid, appendage, aquatic vertebrate, area, arthropod, article, artifact, assembly, astronomical
    object, attachment, bar, barrier, base, block, bodily cavity, body, body covering, body of water, body part,
    bony fish, bottom, building material, causal agent, cavity, celestial body, chemical, chordate, coelenterate,
    collection, commodity, component, compound, connection, constituent, construction, consumer goods, conveyance,
    covering, craft, craniate, creation, decoration, diapsid, dicot, durables, echinoderm, edge, element, enclosure,
    entity, equipment, establishment, eutherian, even-toed ungulate, excavation, external body part, extremity,
    facility, fastener, fiber, fixture, fluid, food, foodstuff, formation, fragment, geographical area, geological
    formation, gnathostome, good, gymnosperm, hominid, homo, hydrocarbon, implement, ingredient, inorganic compound,
    instrumentality, invertebrate, land, land mass, layer, line, lipid, living thing, location, macromolecule,
    macronutrient, malacopterygian, material, matter, means, mechanism, medium, metatherian, micronutrient, mixture,
    molecule, mollusk, monocot, mouthpart, natural object, nourishment, nutriment, object, obstruction, odd-toed
    ungulate, opening, organic compound, organic process, organism, oscine, paper, part, passage, passerine, paving
    material, percoid fish, physical entity, phytochemical, piece, place of business, placental, plant material,
    plant organ, plant part, plant product, plant tissue, point, portion, process, product, region, remains,
    representation, restraint, rod, room, sheet, side, soft-finned fish, solid, space, spermatophyte, spiny-finned
    fish, strip, structure, substance, support, surface, system, teleost fish, tetrapod, thing, top, tracheophyte,
    ungulate, unit, vascular plant, vertebrate, ware, waste, way, weight, whole, woody plant, work
    """
)

# Classes everybody uses; a thing below one of them is also said to be one.
FOLK_CLASSES = _words(
    """
    aircraft, amphibian, animal, bacteria, beverage, bird, boat, bone, building, cake, cattle, cheese, clothing,
    crustacean, dog, drug, fabric, fish, flower, fruit, fungus, furniture, garment, gas, gem, grass, herb, horse,
    insect, machine, mammal, marsupial, meat, metal, mineral, mountain, muscle, musical instrument, plant, primate,
    reptile, river, rock, rodent, ship, shrub, snake, spice, spider, tool, tree, vegetable, vehicle, virus, weapon
    """
)

WIDEST = {"animal", "plant", "vehicle"}

# Words whose first sense in WordNet is not what a reader thinks of, or that read badly.
DROPPED_WORDS = _words(
    """
    small, short, central, draw, female, male, male horse, stretch, portable, fluorescent, sights, links, tom, mix,
    cling, scapular, strapless, radial, mouth, snuff, short circuit, merchandise, standing room, upstairs, main,
    small white, perch, sling, limber, holder, brew, reflector, graft, waterproof, accessory, stifle, trouser,
    contraceptive, sperm, psilocybin, hallucinogen, lacing, wrap, boards, grubby, idol, dun, plant, assembly plant
    """
)
DROPPED_PAIRS = {
    ("atom", "chemical element"),
    ("circulatory system", "vascular system"),
    ("morel", "basidiomycete"),
    ("vole", "wood rat"),
    ("alcohol", "beverage"),
    ("architecture", "building"),
    ("bacteria", "microorganism"),
    ("beak", "orifice"),
    ("bullet", "container"),
    ("dressing", "sauce"),
    ("fetus", "animal"),
    ("meat loaf", "bread"),
    ("nucleic acid", "ribonucleic acid"),
    ("okra", "fruit"),
    ("optic nerve", "diencephalon"),
    ("rainbow", "sky"),
    ("rye", "fruit"),
    ("sandwich", "meal"),
    ("spectacles", "frame"),
    ("tooth", "bone"),
    ("veal", "calf"),
    ("vegetable", "herb"),
    ("rust", "ferric oxide"),
}
# A first sense is dropped where the word also names the second thing, which readers think of first:
# (lexicographer file of the sense, file of the other sense): meat of an animal, fruit tree, wood of a tree.
OVERSHADOWED = {(13, 5), (20, 13), (27, 20)}

BANNED_GLOSS_WORDS = _words(
    """
    offensive, offensively, vulgar, obscene, obscenity, slang, disparaging, derogatory, slur, sexual, sexually,
    erotic, pornographic, genital, genitals, genitalia, penis, vagina, vulva, prostitute, prostitutes, coitus,
    copulation, semen, testicle, testis, scrotum, excrement, feces, urine, execution, torture, suicide, narcotic,
    marijuana, heroin, cocaine, racist, negro, negroes, jews, jewish, contraceptive, anus, rectum, breasts, nude,
    naked, underpants
    """
)
BANNED_WORDS = _words(
    """
    arse, ass, bosom, breast, brothel, whorehouse, bordello, booby, boob, bitch, cock, pussy, dick, prick, condom,
    dildo, crap, shit, turd, piss, faggot, fag, dyke, gallows, guillotine, noose, nipple, ovary, uterus, womb,
    buttocks, hookah, bong, crack, rack, gas chamber, concentration camp, reservation, gypsy, negro, coon, spade,
    slave ship, swastika, rape, colza, bumper, empty, reset, royal, topgallant, twins, bones, workhorse, second base,
    home plate, simple, organic, everlasting, steep, downhill, hooks, silks, cords, facial, cleat, gastrula, rung,
    powdered milk, pickled herring, blood clot, hydrogen ion, quadruped, button quail
    """
)
BANNED_ROOTS = {
    "sex organ",
    "reproductive organ",
    "genitalia",
    "body waste",
    "excretory product",
    "reproductive system",
}
