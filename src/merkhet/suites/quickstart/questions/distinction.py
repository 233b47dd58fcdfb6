"""Entity distinction: three of four belong together, and the fourth is to be found."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from merkhet.core.ids import derived_seed
from merkhet.questions.english import FORMS
from merkhet.questions.templates import Hierarchy
from merkhet.suites.quickstart.questions.named_facts import Knowledge, MakerOptions, shuffled, spread

GROUP = 3


def make_distinctions(
    knowledge: Knowledge, hierarchies: Mapping[str, Hierarchy], options: MakerOptions
) -> list[dict[str, Any]]:
    """Distinction questions, spread over hierarchies; the odd one stands in each place equally often.

    The odd one is in no way in the category of the three: the closure of the hierarchy says so.
    """
    groups = [_of_hierarchy(knowledge, one, first, options) for first, one in enumerate(hierarchies.values())]
    return spread([iter(group) for group in groups], options.limit)


def _of_hierarchy(
    knowledge: Knowledge, hierarchy: Hierarchy, first: int, options: MakerOptions
) -> list[dict[str, Any]]:
    labels = knowledge.labels(options.language)
    above: dict[str, set[str]] = defaultdict(set)
    for row in knowledge.ancestors(hierarchy.predicate).to_pylist():
        if row["subject"] in labels and row["ancestor"] in labels:
            above[labels[row["subject"]]].add(labels[row["ancestor"]])
    table = knowledge.facts(hierarchy.predicate).select(["fact_id", "subject", "object", "domain"])
    facts = [row for row in table.to_pylist() if row["object"] in labels]
    members: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in facts:
        if row["subject"] in labels:
            members[row["object"]].append(row)
    everybody = sorted({row["subject"] for row in facts if row["subject"] in labels})
    made = []
    for category, rows in sorted(members.items()):
        rows = shuffled(rows, lambda row: row["fact_id"], options.seed, "distinction")
        by_name: dict[str, dict[str, Any]] = {}
        for row in rows:
            by_name.setdefault(labels[row["subject"]], row)
        rows = list(by_name.values())
        for start in range(0, len(rows) - GROUP + 1, GROUP):
            three = rows[start : start + GROUP]
            odd = _odd_one(three, category, everybody, above, labels, options)
            if odd is not None:
                made.append((three, category, odd))
    made = shuffled(made, lambda item: item[0][0]["fact_id"], options.seed, "groups")
    return [
        _question(hierarchy, three, category, odd, labels, place, options)
        for place, (three, category, odd) in enumerate(made[: options.limit], first)
    ]


def _odd_one(
    three: list[dict[str, Any]],
    category: str,
    everybody: list[str],
    above: Mapping[str, set[str]],
    labels: Mapping[str, str],
    options: MakerOptions,
) -> str | None:
    names = {labels[row["subject"]] for row in three} | {labels[category]}
    lineage = above.get(labels[category], set())
    start = derived_seed(options.seed, "odd", three[0]["fact_id"]) % len(everybody)
    for step in range(len(everybody)):
        entity = everybody[(start + step) % len(everybody)]
        name = labels[entity]
        # Neither in the category, nor one that it is part of: "animal" is no odd one to dogs. Nor is a namesake.
        if labels[category] not in above.get(name, set()) and name not in lineage and name not in names:
            return entity
    return None


def _question(
    hierarchy: Hierarchy,
    three: list[dict[str, Any]],
    category: str,
    odd: str,
    labels: Mapping[str, str],
    place: int,
    options: MakerOptions,
) -> dict[str, Any]:
    form = FORMS[hierarchy.form]
    names = [form(labels[row["subject"]]) for row in three]
    outlier = form(labels[odd])
    names.insert(place % (GROUP + 1), outlier)
    number = derived_seed(options.seed, "template", three[0]["fact_id"]) % len(hierarchy.templates)
    prompt = hierarchy.templates[number].replace("{members}", f"{', '.join(names[:-1])}, and {names[-1]}")
    for prefix, shape in FORMS.items():
        prompt = prompt.replace(f"{{{prefix} category}}" if prefix else "{category}", shape(labels[category]))
    return {
        "suite": options.suite,
        "task": "distinction",
        "language": options.language,
        "prompt": prompt,
        "answers": [outlier],
        "target": outlier,
        "choices": names,
        "facts": [row["fact_id"] for row in three],
        "qset": three[0]["fact_id"],
        "domain": three[0]["domain"],
        "template": f"{hierarchy.name}/{number + 1}",
        "split": "test",
    }
