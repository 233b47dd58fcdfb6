"""Classes, exceptions and parts of the `taxonomy` pack."""

from __future__ import annotations


def _words(text: str) -> set[str]:
    """Terms of a comma-separated list that may run over several lines."""
    return {" ".join(term.split()) for term in text.split(",")}


# The classes that things are said to be kinds of: groups of classes that could be confused with each other, with the
# lexicographer file of the sense that is meant. A class lies below another one if WordNet says so.
ACT, ANIMAL, ARTIFACT, BODY, FOOD, PERSON, PLANT = 4, 5, 6, 8, 13, 18, 20
CLASS_GROUPS: list[dict[str, int]] = [
    dict.fromkeys(
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
    abduction, absinthe, accessory, acorn, acoustic, ade, agua, aircraft, airship, almond, altar, amaretto,
    ambulance, ancestor, anemone, angling, antiaircraft, antidote, aperitif, apparel, aquarium, arbor, architecture,
    argentine, argyle, attire, automatic, ax, axe, baby, backwater, bagging, baldric, baldrick, bale, balloon,
    bandanna, banger, bap, barge, barnacle, basin, bath, bathtub, battleship, bead, beanbag, beef, beet, bender,
    benedick, bennet, berry, bib, bijou, biped, biscuit, bitter, bitters, blackjack, blanc, bling, bloomer, boat,
    boathouse, bock, boiler, bolo, bomber, bones, bonsai, boot, bootleg, booze, boudoir, bovine, bra, bravo, brent,
    brew, bride, bridegroom, briefs, brill, brine, britches, broadsword, broiler, bronc, brontosaurus, broody,
    brothel, buckboard, buckshot, bug, bugler, bulldozer, bullock, bumper, butternut, cab, cabinet, caddy, cager,
    calf, calla, calypso, campion, canine, capitol, capon, capote, car, caramel apple, carnivore, carob, carriage,
    cascade, cashew, cassette, hazelnut, macadamia, pistachio, walnut,
    castle, caterpillar, cayenne, cesspool, challah, char, charger, chariot, chatterbox,
    checkroom, cherub, chick, chicory, chili, chilly, chime, chips, chocolate, choreography, chrome, cinnamon,
    cisco, citrus, clarence, clarion, claymore, cleaver, cling, clitoris, clothes, clubhouse, cob, cobweb, cocker,
    cockpit, coffee, coffin, coho, cole, collaborator, colt, columbine, confessional, conk, contagion, conveyance,
    coop, cooter, cootie, cords, corn, corvette, costume, cottontail, coupe, coursing, courthouse, cowboy, cradle,
    cranium, craw, creamer, creeper, creeps, critter, croaker, cub, cubicle, cuckold, cuddy, cumin, cuppa, cur,
    cutlass, cutthroat, cygnet, dandruff, daphne, das, deathwatch, derby, derringer, descendant, destroyer, detour,
    diamond, dinky, dinosaur, dipper, dirk, dish, dispensary, dispenser, diva, dobson, doggy, dollhouse, dorm, dory,
    dose, doubles, drawer, drawers, drone, ducking, duckling, dug, dun, ear, eldest, embryo, empty, entire,
    entrails, envelope, ephemeral, equine, ern, everlasting, farmhouse, fatigues, feeder, feline, felony, female,
    ferry, fetus, fife, filly, finery, fingerling, firearm, firebird, firewater, fitch, fives, fizz, flathead,
    fleabag, foal, foetus, footwear, forklift, fowl, freestone, frock, fryer, fuji, galley, gar, garage, garment,
    gat, gator, gazebo, gelding, generic, genitalia, genitals, getup, ghoul, gig, gland, goldeneye, goldilocks,
    gonad, gooney, goonie, goony, gosling, gourd, grasshopper, greenhouse, greens, grill, grindle, grub, grubby,
    guan, guesthouse, gun, gunboat, gunk, gunny, gut, gyp, hammerhead, handkerchief, harper, harry, hat, hazel,
    hearse, heather, heist, herbal, hind, hock, holdup, home, homeroom, hooky, hooter, hopper, horseshoes, hose,
    hound, house, houseboat, housewife, hovercraft, human, humans, hummer, hunting, hurling, hustle, hypnotist,
    inhaler, inlet, interceptor, intercostal, investigator, ironclad, ironing, jack, jackrabbit, jailbird, jaw,
    jean, jet, jewel, jib, jigsaw, jockstrap, julep, jumping, kamikaze, kennel, kernel, kiang, kicker, kin, kiosk,
    kitten, kiwi, knickers, knife, knuckles, kob, kris, kylie, ladle, lamb, lancers, lapdog, larva, lat, launch,
    laundry, laurel, lentil, letterman, linen, lingerie, liniment, lip, liquor, liver, livery, livestock, liza,
    loaf, lobby, locker, locket, locust, longboat, longhorn, loo, lorry, luggage, lungfish, ma, machete,
    mademoiselle, madhouse, maggot, magnum, mailbox, mainsail, malnutrition, mammoth, mandible, manger, mankind,
    maraschino, marc, marguerite, marsupial mouse, mastodon, mater, matron, mavis, maxi, mayhem, meatloaf,
    medicinal, mending, merle, merlin, mini, minibar, miro, missile, missus, molar, moll, mollie, mollusc, molly,
    mono, morello, motorbike, motorboat, mount, mower, mudder, muff, mugging, mung, muscle, mustard, mutt, mynah,
    nan, narrow, needlepoint, nestling, newlywed, nose, nucleus, nursery, nut, nutmeg, nylons, offspring, ointment,
    okra, olive, olm, organ, outboard, outbuilding, outhouse, overall, pacer, paintball, paisley, palmyra, panties,
    panty, pantyhose, panzer, parent, partner, patois, patty, peacock, pecs, pederasty, penis, pervert, pet, petty,
    phaeton, pharmaceutical, phrase, pickup, piggy, pimple, pinche, piper, pique, place, placebo, plaid, playhouse,
    pocket, pollard, pomfret, ponderosa, pooch, poon, porker, porpoise, portfolio, potion, poultry, prancer,
    preventive, principal, privates, pro, proboscis, produce, projectile, prostate, prostitution, pterodactyl,
    puffer, pumpernickel, punk, punky, pup, pupa, puppy, pussy, quadruped, queen, racing, rag, raider, rainstorm,
    rape, rapist, raptor, rasher, ratter, razor, receptacle, reeve, rheumatism, rhubarb, riding, ridley, rink,
    ripper, roadhouse, roast, rob roy, robbery, rock candy, rocket, rotgut, rummy, rusk, rustler, rustling, rye,
    sailboat, salon, sambuca, sanatorium, sandbar, sandbox, sandstorm, sapling, sarcophagus, sarsaparilla,
    sassafras, sauna, sawmill, scam, schoolhouse, scrubs, sea, seatbelt, seed, semiautomatic, setter, sharpshooter,
    shay, shellfish, sherry, ship, shipwreck, shook, shortcake, shortcut, showboat, sibling, sickbay, sidecar,
    sidewinder, signora, silks, silverback, simian, singer, singles, skateboard, skivvies, skull, slacks, slammer,
    slater, slaughterhouse, sleighing, slip, smoother, snatcher, snout, snowplow, soapbox, sock, solan, songbird,
    southpaw, spacecraft, spaceship, speakeasy, speedboat, sphincter, spinnaker, spittoon, spoon, sportsman,
    spreader, spritzer, sprout, stall, starship, stays, steakhouse, steamboat, steamship, steed, stocking, stole,
    stout, strapless, stray, streetcar, submarine, sulfa, sultana, suspect, swatch, sweats, swine, swinger,
    switchblade, swizzle, tabby, tackle, tadpole, tails, takin, tam, tanker, tansy, taro, tarp, teahouse, technical,
    tender, testicle, thoroughbred, thoroughfare, threads, throne, thunderstorm, ticker, tights, timothy, tit,
    toast, toby, toddy, toke, tom, tongue, tooth, tort, toupee, towel, track, trappings, tray, trident, trolley,
    trolling, trotter, troubadour, trouser, truffle, tub, tumbling, tung, tunny, turnover, twin, tyrannosaurus,
    udder, underpants, underwear, undies, ungulate, uniform, uterus, vanilla, vermouth, veronica, vertebra, vest,
    vibes, vintage, violation, virginal, viscera, vitals, wahoo, wallflower, warble, warship, wastebasket,
    waterfall, weeds, wheelbarrow, wheelchair, whelp, whorehouse, widgeon, wig, willet, windfall, wishbone, womb,
    wonton, woodshed, wrapper, yacht, yearling, yoke
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

# What the lexicographer files of WordNet are about, for the classes that lie below no other class.
REALMS = {
    ACT: "acts",
    ANIMAL: "animals",
    ARTIFACT: "artifacts",
    BODY: "parts of the body",
    FOOD: "food and drink",
    PERSON: "people",
    PLANT: "plants",
    17: "natural objects",
    19: "natural phenomena",
    26: "states of health",
    27: "substances",
}

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
