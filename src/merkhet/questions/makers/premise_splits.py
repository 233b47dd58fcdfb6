"""Splits in which no conclusion has a premise in another split."""

from __future__ import annotations

from merkhet.core.text import counted, join_names
from merkhet.questions.makers.question_builder import QuestionBuilder

MAX_CONCLUSIONS = 20
"""Number of conclusions that a premise may have in any split; a premise of more is in the split ``train``."""
_LARGE_COMPONENT = 0.02
_SMALL_COMPONENT = 20
"""A component with a larger share of all pairs, and with more pairs than these, is not kept together."""


def assign_premise_splits(builder: QuestionBuilder) -> list[str]:
    """Put each conclusion and its premises into one split, and drop the conclusions for which this is impossible.

    Facts are split by their pair of names (:func:`merkhet.questions.splits.split_sql`). Pairs of premises of more than
    ``MAX_CONCLUSIONS`` conclusions are in ``train``. Conclusions without such premises connect the pairs of their
    proofs: connected pairs are in the split of the first of them, unless they are a large share of all pairs. The
    table ``moved_pairs`` has the pairs whose split is not their own, ``straddling`` the dropped conclusions.

    Returns:
        A remark on the number of conclusions that are left in each split.
    """
    _create_links(builder)
    _create_components(builder)
    _create_moved_pairs(builder)
    for table in ("worded", "concluded"):
        move_pairs(builder, table, "s", "o")
    builder.create_table(
        "straddling",
        """select l.conclusion from links l left join moved_pairs m on m.pair = l.pair
        group by l.conclusion
        having min(coalesce(m.split, split_of_pair(l.pair))) != max(coalesce(m.split, split_of_pair(l.pair)))""",
    )
    [(total,)] = builder.rows("select count(distinct fact_id) from concluded")
    builder.create_table("concluded", "select c.* from concluded c anti join straddling x on x.conclusion = c.fact_id")
    dropped = builder.tables.count("straddling")
    hubs = builder.tables.count("hub_facts")
    for table in ("fact_pairs", "links", "hub_facts", "hub_pairs"):
        builder.tables.drop(table)
    for table in ("connecting", "components", "merged", "assigned_pairs"):
        builder.tables.drop(table)
    if not total:
        return []
    counts = dict(builder.rows("select split, count(distinct fact_id) from concluded group by split"))
    left = join_names([f"{counts.get(split, 0):,} in {split}" for split in builder.options.shares or ()])
    return [
        f"left out {dropped:,} of {counted(total, 'conclusion')}, whose premises are in several splits; there remain "
        f"{left}. {counted(hubs, 'premise')} of more than {MAX_CONCLUSIONS} conclusions: all in "
        f"{training_split(builder)}"
    ]


def move_pairs(builder: QuestionBuilder, table: str, first: str, second: str) -> None:
    """Replace the column ``split`` of a table where the pair of the names in two columns was moved."""
    if not builder.has_table("moved_pairs"):
        return
    builder.create_table(
        table,
        f"""select * exclude (split, moved), coalesce(moved, split) as split from (
            select t.*, m.split as moved from {table} t
            left join moved_pairs m on m.pair = pair_of(t.{first}, t.{second})
        ) w""",
    )


def training_split(builder: QuestionBuilder) -> str:
    """Return the split of premises that many conclusions share: ``train``, or else the largest split."""
    shares = builder.options.shares or {"test": 1.0}
    return "train" if "train" in shares else max(shares, key=lambda name: shares[name])


def _create_links(builder: QuestionBuilder) -> None:
    """Create the tables ``fact_pairs``, ``links`` (conclusions and all pairs of their proofs) and ``hub_facts``."""
    builder.create_table(
        "fact_pairs",
        """with needed as (select distinct fact_id from proof_facts)
        select distinct w.fact_id, pair_of(w.s, w.o) as pair from worded w semi join needed n on n.fact_id = w.fact_id
        union
        select f.fact_id, pair_of(coalesce(a.name, f.subject), coalesce(b.name, f.object)) as pair
        from facts f semi join needed n on n.fact_id = f.fact_id
        left join named a on a.entity = f.subject left join named b on b.entity = f.object""",
    )
    builder.create_table(
        "links",
        """select distinct n.conclusion, p.pair from proof_facts n join fact_pairs p on p.fact_id = n.fact_id
        union select fact_id as conclusion, pair_of(s, o) as pair from concluded""",
    )
    builder.create_table(
        "hub_facts", f"select fact_id from proof_facts group by fact_id having count(*) > {MAX_CONCLUSIONS}"
    )
    builder.create_table(
        "hub_pairs", "select distinct p.pair from fact_pairs p semi join hub_facts h on h.fact_id = p.fact_id"
    )


def _create_components(builder: QuestionBuilder) -> None:
    """Create the table ``components``: pairs that conclusions connect, with the least pair of the component."""
    builder.create_table(
        "connecting",
        """select l.conclusion, l.pair from links l anti join (
            select distinct k.conclusion from links k semi join hub_pairs h on h.pair = k.pair
        ) x on x.conclusion = l.conclusion""",
    )
    builder.create_table("components", "select distinct pair, pair as least from connecting")
    changed = builder.tables.count("components")
    while changed:
        builder.create_table(
            "merged",
            """with least_ones as (
                select l.conclusion, min(c.least) as least from connecting l join components c on c.pair = l.pair
                group by l.conclusion
            ) select l.pair, min(x.least) as least from connecting l join least_ones x on x.conclusion = l.conclusion
            group by l.pair""",
        )
        [(changed,)] = builder.rows(
            "select count(*) from merged m join components c on c.pair = m.pair where c.least != m.least"
        )
        builder.create_table("components", "select pair, least from merged")


def _create_moved_pairs(builder: QuestionBuilder) -> None:
    """Create the table ``moved_pairs`` of the pairs that are not in the split of their own names."""
    train = f"'{training_split(builder)}'"
    largest = max(_SMALL_COMPONENT, int(_LARGE_COMPONENT * builder.tables.count("components")))
    builder.create_table(
        "assigned_pairs",
        f"""select pair, {train} as split from hub_pairs
        union all
        select c.pair, split_of_pair(c.least) as split from components c
        join (select least, count(*) as size from components group by least) z on z.least = c.least
        where z.size <= {largest}""",
    )
    # Other pairs without a stated fact belong to conclusions with a premise in train, which can be nowhere else.
    builder.create_table(
        "moved_pairs",
        f"""select pair, split from assigned_pairs where split != split_of_pair(pair)
        union all
        select l.pair, {train} as split from (select distinct pair from links) l
        anti join assigned_pairs a on a.pair = l.pair anti join components c on c.pair = l.pair
        anti join (
            select pair_of(a.name, b.name) as pair from facts f join named a on a.entity = f.subject
            join named b on b.entity = f.object where f.rule is null
            union select pair_of(s, o) as pair from worded where rule is null
        ) k on k.pair = l.pair
        where split_of_pair(l.pair) != {train}""",
    )
