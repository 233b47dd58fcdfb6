"""Classes, exceptions and parts of the `taxonomy` pack."""

from __future__ import annotations


def _words(text: str) -> set[str]:
    """Terms of a comma-separated list that may run over several lines."""
    return {" ".join(term.split()) for term in text.split(",")}


# The classes that things are said to be kinds of: groups of classes that could be confused with each other, with the
# lexicographer file of the sense that is meant. A class lies below another one if WordNet says so.
ACT, ANIMAL, ARTIFACT, BODY, FOOD, PERSON, PLANT = 4, 5, 6, 8, 13, 18, 20
CLASS_GROUPS: list[dict[str, int]] = [
    {"animal": 3}
    | dict.fromkeys(
        (
            *("bird", "fish", "insect", "mammal", "reptile", "amphibian", "arachnid", "crustacean"),
            *("mollusk", "dog", "horse", "rodent", "primate", "monkey", "whale", "bird of prey", "snake", "lizard"),
            *("marsupial", "antelope", "deer"),
        ),
        ANIMAL,
    ),
    {"tree": PLANT, "flower": PLANT, "fruit": PLANT, "vegetable": FOOD},
    dict.fromkeys(("cheese", "bread", "candy", "sauce", "soup", "sausage"), FOOD),
    dict.fromkeys(("beverage", "liquor", "cocktail"), FOOD),
    dict.fromkeys(("weapon", "tool", "container", "musical instrument", "gun"), ARTIFACT),
    dict.fromkeys(("vehicle", "boat", "ship", "aircraft", "car"), ARTIFACT),
    dict.fromkeys(("building", "room", "furniture"), ARTIFACT),
    dict.fromkeys(("clothing", "fabric", "footwear", "jewelry"), ARTIFACT),
    {"medicine": ARTIFACT},
    {"road": ARTIFACT},
    {"metal": 27},
    {"body of water": 17},
    {"bone": BODY, "muscle": BODY, "gland": BODY, "organ": BODY},
    {"sport": ACT, "dance": ACT, "crime": ACT, "disease": 26, "storm": 19},
    dict.fromkeys(("musician", "scientist", "athlete", "relative", "criminal"), PERSON),
]
# Lemmas under which WordNet lists classes that have another label here.
CLASS_LEMMAS = {"dance": "dancing", "metal": "metallic element"}
# The single parent that WordNet gives an animal is enough to exclude all other classes of animals. Elsewhere a word is
# left out if a definition mentions a class of the same group that it is not said to be.
EXACT_GROUP = 0

# Links that no reader would follow: vehicles as containers, nuts as fruits, teeth as bones.
CUT_LINKS = {
    ("wheeled_vehicle", "container"),
    ("nut", "seed"),
    ("tooth", "bone"),
    ("seed", "fruit"),
    ("contractile_organ", "organ"),
    ("alcohol", "drug_of_abuse"),
}

# How often a word must stand in the subtitles; names of living things and of food are known though they are rare.
MIN_USES = 20
MIN_USES_LIVING = 8
FAMILY = {ANIMAL, FOOD, PLANT}

# Words that pass all tests, though a reader stumbles over them: another meaning comes first to mind, the word is a
# near synonym or a part of the class, it covers members of several classes, or the matter is disputed.
DROPPED_WORDS = _words(
    """
    critter, feeder, pet, female, fetus, embryo, larva, biped, poultry, livestock, carnivore, raptor, songbird, olm,
    broody, brent, solan, goonie, guan, ern, willet, widgeon, slater, creeper, barnacle, lungfish, fingerling,
    argentine, grindle, gar, grubby, brill, mollie, coho, cisco, wahoo, pomfret, croaker, char, steed, prancer, dun,
    mudder, pacer, charger, trotter, punky, pupa, queen, bug, drone, deathwatch, dobson, cootie, fitch, kiang, humans,
    human, silverback, piggy, beef, pollard, dinosaur, pterodactyl, brontosaurus, tyrannosaurus, mastodon, mammoth,
    bloomer, columbine, campion, goldilocks, calypso, chatterbox, tansy, wallflower, freestone, berry, windfall, corn,
    cumin, seed, nut, carob, citrus, coffee, acorn, kernel, poon, fuji, miro, arbor, bonsai, sapling, tung, palmyra,
    cinnamon, nutmeg, sassafras, laurel, locust, greens, chips, cole, mustard, cayenne, taro, mung, sprout, produce,
    potion, fizz, ade, cuppa, herbal, brew, liquor, swizzle, rotgut, julep, absinthe, bitters, marc, aperitif,
    maraschino, booze, sidecar, chocolate, bock, meatloaf, challah, bap, loaf, rusk, shortcake, biscuit, truffle,
    patty, wonton, blanc, banger, buckshot, knuckles, kris, kylie, projectile, gun, claymore, machete, ax, axe,
    cutlass, smoother, bender, spreader, sawmill, razor, cleaver, mower, knife, bones, vibes, chime, fife, clarion,
    argyle, bale, basin, beanbag, boiler, bumper, caddy, cassette, cesspool, coffin, creamer, dipper, empty, gourd,
    hopper, inhaler, locket, magnum, mailbox, manger, paintball, pocket, portfolio, receptacle, sandbox, sarcophagus,
    shook, soapbox, spittoon, spoon, toby, wastebasket, bath, bathtub, tub, tray, aquarium, cradle, dish, drawer,
    envelope, antiaircraft, firearm, gat, semiautomatic, automatic, aircraft, boat, car, ship, conveyance, carriage,
    gig, launch, barge, outboard, dory, tender, corvette, ironclad, shipwreck, tanker, submarine, destroyer, ferry,
    kamikaze, interceptor, balloon, jet, bomber, dinky, clarence, shay, panzer, pickup, rocket, spacecraft,
    starship, forklift, trolley, snowplow, missile, technical, hovercraft, bulldozer, skateboard, wheelbarrow, ambulance,
    hearse, architecture, dollhouse, grill, rink, house, coop, kennel, fleabag, madhouse, sanatorium, dispensary,
    garage, outbuilding, gazebo, greenhouse, castle, home, place, woodshed, dorm, roadhouse, boathouse, capitol,
    brothel, whorehouse, altar, cabinet, wheelchair, throne, stall, cab, locker, cubicle, kiosk, cockpit, cuddy,
    confessional, lobby, speakeasy, boudoir, sickbay, homeroom, checkroom, apparel, attire, garment, finery, accessory,
    ironing, laundry, mending, threads, getup, trappings, drawers, stays, cords, tails, silks, skivvies, weeds, mini,
    maxi, strapless, wrapper, muff, seatbelt, jockstrap, footwear, hat, overall, toupee, wig, vest, slacks, underwear,
    lingerie, costume, frock, knickers, bra, panty, panties, briefs, underpants, slip, bolo, capote, stole, baldric,
    baldrick, undies, uniform, bandanna, bib, gunny, handkerchief, jib, mainsail, needlepoint, rag, bagging, tarp,
    towel, yoke, jean, paisley, plaid, pique, spinnaker, cobweb, linen, swatch, bijou, bling, bead, diamond, jewel,
    nylons, pantyhose, sock, stocking, tights, boot, acoustic, dose, placebo, pharmaceutical, ointment, liniment,
    antidote, preventive, detour, shortcut, thoroughfare, backwater, narrow, cascade, waterfall, inlet, sea, chrome,
    mandible, jaw, skull, cranium, tooth, molar, vertebra, wishbone, lat, intercostal, pecs, sphincter, dug, tit, udder,
    testicle, prostate, gonad, nucleus, craw, snout, muscle, vitals, entrails, gland, ear, lip, conk, nose, ticker,
    genitals, genitalia, womb, uterus, clitoris, penis, pussy, gut, hooter, proboscis, viscera, tumbling, jumping,
    racing, riding, hunting, coursing, ducking, trolling, horseshoes, singles, doubles, fives, hurling, track, angling,
    sleighing, choreography, lancers, phrase, contagion, malnutrition, dandruff, pimple, creeps, mono, rheumatism,
    prostitution, scam, felony, mayhem, violation, gyp, holdup, hustle, mugging, rape, robbery, tort, pederasty, cager,
    slammer, kicker, southpaw, sharpshooter, pro, tackle, bravo, collaborator, ghoul, punk, jailbird, moll, raider,
    ripper, cutthroat, rapist, suspect, principal, pervert, hummer, harper, investigator, hypnotist, benedick, cherub,
    cuckold, mater, matron, missus, signora, baby, bride, bridegroom, newlywed, partner, twin, kin, housewife, eldest,
    parent, descendant, ancestor, offspring, sibling, calf, colt, filly, foal, pup, kitten, lamb, chick, cub, whelp,
    nestling, tadpole, larva, maggot, grub, caterpillar, chili, dirk, broadsword, trident, derringer, mutt, pooch, cur,
    lapdog, doggy, puppy, peacock, tom, goldeneye, hind, anemone, turnover, roast, grasshopper, toast, fowl, brine,
    swine, porker, hound, setter, mount, gelding, thoroughbred, stray, broiler, fryer, capon, duckling, gosling,
    cygnet, yearling, cottontail, jackrabbit, equine, bovine, feline, canine, simian, ungulate, marsupial mouse,
    rasher, pumpernickel, toke, caramel apple, rock candy, patois, abduction, heist, hooky, phaeton, beet,
    agua, kob, cob, reeve, firebird, flathead, ridley, cooter, tabby, morello, sultana, nan, tam, derby, tunny, ponderosa,
    sidewinder, hazel, letterman, kiwi, switchblade, jigsaw, almond, rye, entire, ephemeral, pinche, cling, bootleg, bitter, generic, hock, stout, vintage, petty, warble, everlasting,
    blackjack, livery, galley, virginal, chilly, hose, swinger, sportsman, shellfish, quadruped, mollusc, mynah, gooney,
    takin, scrubs, sulfa, loo, ma, bronc, calla, vanilla, clothes, luggage, cocker, snatcher, rustler, rustling, coupe,
    buckboard, lentil, okra, butternut, chicory, sarsaparilla, trouser, fatigues, sweats, britches, ladle, dispenser,
    minibar, molly, liza, das, mavis, merle, mademoiselle, gator, puffer, veronica, heather, timothy, marguerite,
    bennet, argyle, rob roy, generic, jack, harry, toddy, gunk, sherry, rummy, hammerhead, merlin, daphne, olive,
    rhubarb, ratter, longhorn, bullock, piper, diva, bugler, troubadour, singer, organ, cowboy, medicinal,
    sandbar, streetcar, chariot, motorbike, lorry, showboat, gunboat, longboat, motorboat, houseboat, steamboat,
    speedboat, battleship, warship, steamship, airship, steakhouse, teahouse, guesthouse, farmhouse, courthouse,
    clubhouse, playhouse, schoolhouse, outhouse, slaughterhouse, sandstorm, rainstorm, thunderstorm
    """
)

# Words that a reader takes in a sense that WordNet does not list first.
MEANT = dict.fromkeys(
    (
        *("tiger", "scorpion", "shrimp", "tick", "mite", "turtle", "alligator", "raven", "swallow", "dolphin", "crow"),
        *("duck", "crayfish", "rabbit", "donkey", "leopard", "monkey", "wasp", "mole", "hawk"),
    ),
    ANIMAL,
) | {"rose": PLANT, "cherry": FOOD}

# Animals below no narrower class than this one are told only if WordNet places them among the kinds of animals, not
# where it lists young or female animals, pets and the like.
WIDEST = "animal"
KINDS_OF_ANIMALS = ("vertebrate", "invertebrate")

# Parts and wholes that WordNet relates, as far as a reader accepts them: "the toe is a part of the foot". Of each part
# all wholes of the table are listed, save those that follow: what is a part of the foot is a part of the leg.
PARTS: dict[str, str] = {
    "knee": "leg",
    "foot": "leg",
    "thigh": "leg",
    "shin": "leg",
    "fibula": "leg",
    "tibia": "leg",
    "femur": "thigh",
    "kneecap": "knee",
    "toe": "foot",
    "toenail": "toe",
    "elbow": "arm",
    "forearm": "arm",
    "hand": "arm",
    "humerus": "arm",
    "ulna": "forearm",
    "finger": "hand",
    "palm": "hand",
    "knuckle": "finger",
    "fingernail": "finger",
    "face": "head",
    "skull": "head",
    "cheek": "face",
    "chin": "face",
    "eye": "face",
    "eyebrow": "face",
    "nose": "face",
    "cornea": "eye",
    "retina": "eye",
    "eyelid": "eye",
    "eardrum": "ear",
    "cerebellum": "brain",
    "hypothalamus": "brain",
    "navel": "abdomen",
    "abdomen": "torso",
    "epidermis": "skin",
    "dermis": "skin",
    "parietal bone": "skull",
    "occipital bone": "skull",
    "frontal bone": "skull",
    "stern": "ship",
    "fuselage": "airplane",
    "shoelace": "shoe",
    "hilt": "sword",
    "minaret": "mosque",
    "stirrup": "saddle",
    "windowpane": "window",
    "eaves": "roof",
    "ripcord": "parachute",
    "broomstick": "broom",
    "bark": "tree",
    "petal": "flower",
    "stamen": "flower",
    "pistil": "flower",
}
