"""The explorer's views the plain way, the oracle and the measure of bench/explorer.py: scans of the Parquet files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

SIZE = 25
SHOWN = ["question_id", "prompt", "answers", "task", "domain", "template", "split"]


class Scans:
    """A run on disk, read anew for each view; a view gives what is compared with the explorer's own answer."""

    def __init__(self, folder: Path) -> None:
        self.questions, self.answers = (folder / f"{name}.parquet" for name in ("questions", "answers"))

    def task(self, params: Mapping[str, str]) -> list[object]:
        """How many questions a task has, and the first page of them."""
        found = pq.read_table(self.questions, columns=SHOWN, filters=pc.field("task") == params["task"])
        return [found.num_rows, found["question_id"].slice(0, SIZE).to_pylist()]

    def search(self, params: Mapping[str, str]) -> list[object]:
        """The same of the questions with some words in their prompt or right answer, whatever the case."""
        found = pq.read_table(self.questions, columns=SHOWN)
        words = params["search"].strip('"')
        hit = pc.match_substring(found["prompt"], words, ignore_case=True)
        golds = pc.match_substring(pc.list_element(found["answers"], 0), words, ignore_case=True)
        found = found.filter(pc.or_(hit, golds))
        return [found.num_rows, found["question_id"].slice(0, SIZE).to_pylist()]

    def result(self, params: Mapping[str, str]) -> list[object]:
        """The same of the questions that a model got right."""
        own = self._judged(pc.field("model") == params["model"])
        ids = own["question_id"].filter(pc.equal(own["verdict"], "right"))
        asked = pq.read_table(self.questions, columns=SHOWN)
        found = asked.filter(pc.is_in(asked["question_id"], value_set=ids.combine_chunks()))
        return [found.num_rows, found["question_id"].slice(0, SIZE).to_pylist()]

    def facets(self, params: Mapping[str, str]) -> list[object]:
        """How many questions there are of each task, domain and split."""
        asked = pq.read_table(self.questions, columns=["task", "domain", "split"])
        return [
            {one["values"]: one["counts"] for one in pc.value_counts(asked[name].combine_chunks()).to_pylist()}
            for name in asked.column_names
        ]

    def question(self, params: Mapping[str, str]) -> list[object]:
        """The best-ranked candidate of each model on one question."""
        pq.read_table(self.questions, filters=pc.field("question_id") == params["id"])
        said = pq.read_table(self.answers, columns=["model", "ranked"], filters=pc.field("question_id") == params["id"])
        return [{row["model"]: row["ranked"][0]["candidate"] for row in said.to_pylist()}]

    def compare(self, params: Mapping[str, str]) -> list[object]:
        """How many questions both models, one or none got right, of those with a usable answer of both."""
        first, second = (self._judged(pc.field("model") == params[name]) for name in ("first", "second"))
        both = first.join(second, "question_id", right_suffix=" too", join_type="inner")
        usable = both.filter(
            pc.and_(pc.not_equal(both["verdict"], "unusable"), pc.not_equal(both["verdict too"], "unusable"))
        )
        counted = usable.group_by(["verdict", "verdict too"]).aggregate([([], "count_all")]).to_pylist()
        by_pair = {(row["verdict"], row["verdict too"]): row["count_all"] for row in counted}
        pairs = (("right", "right"), ("right", "wrong"), ("wrong", "right"), ("wrong", "wrong"))
        return [[by_pair.get(pair, 0) for pair in pairs]]

    def _judged(self, wanted: pc.Expression) -> pa.Table:
        columns = ["question_id", "gold_ranks", "unusable"]
        table = pq.read_table(self.answers, columns=columns, filters=wanted)
        right = pc.equal(pc.list_element(table["gold_ranks"], 0), 1.0)
        verdict = pc.if_else(pc.is_valid(table["unusable"]), "unusable", pc.if_else(right, "right", "wrong"))
        return pa.table({"question_id": table["question_id"], "verdict": verdict})
