"""Compares merkhet's scores with those of LM Pub Quiz, minicons and lm-eval wherever the rule is the same."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from material import model_folder
from measuring import Table, arguments, finish, parse
from peers import find_peers, peer_versions
from ranking import TOLERANCE, Way, largest_difference, make_material, start_worker

RULES = {
    "minilm-mlm": {
        "merkhet pll-l2r-sum": ("LM Pub Quiz, float32, batches of 32", "minicons PLL"),
        "merkhet pll-sum": ("LM Pub Quiz PLL, original", "minicons PLL, original"),
        "merkhet sentence-pll-l2r-sum": ("LM Pub Quiz sentence PLL", "minicons sentence PLL"),
        "merkhet sentence-pll-sum": ("LM Pub Quiz sentence PLL, original",),
    },
    "smollm2-135m": {"merkhet sum": ("lm-eval, batches of 32",)},
}
PROMPTS, CANDIDATES = 4, 60


def main() -> int:
    options = parse(arguments(__doc__, repeats=1))
    peers = find_peers(not options.no_peers)
    rows, differences = [], {}
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        content = make_material(PROMPTS, 10 if options.quick else CANDIDATES)
        material = place / "material.json"
        material.write_text(json.dumps(content), encoding="utf-8")
        for model, rules in RULES.items() if peers.python else ():
            _, folder = model_folder(model)
            for own, others in rules.items():
                scores = {}
                for name in (own, *others):
                    worker = start_worker(Way(name, PROMPTS), folder, material, peers, PROMPTS, place)
                    scores[name] = worker.ask(range(PROMPTS), scores=True)["scores"]
                    worker.close()
                for name in others:
                    differences[f"{own} / {name}"] = difference = largest_difference(scores[own], scores[name])
                    rows.append([own.removeprefix("merkhet "), model, name, f"{difference:.0e}"])
    unequal = [pair for pair, difference in differences.items() if not difference <= TOLERANCE]
    notes = [
        f"{len(content['prompts'])} prompts with {len(content['candidates'])} candidates; sums of log-probabilities.",
        "LM Pub Quiz sets a token of its own choice before a causal model's sentence: another rule, not compared.",
        *([f"Peers not installed: {peers.reason}"] if peers.python is None else []),
        *(f"UNEQUAL SCORES: {pair}" for pair in unequal),
    ]
    table = Table("Agreement with peers", ("method", "model", "peer", "largest difference"), rows, notes)
    finish("agreement", options, table, {}, {}, {"differences": differences, "peers": peer_versions(peers)})
    return 1 if unequal else 0


if __name__ == "__main__":
    sys.exit(main())
