"""Executes a study: plan, cache, resume; and reads finished runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gnomon.foundation.lazy import lazy_names

if TYPE_CHECKING:
    from gnomon.runs.combining import combine_runs
    from gnomon.runs.executor import Outcome, execute
    from gnomon.runs.folder import Run, open_run
    from gnomon.runs.merging import merge_runs
    from gnomon.runs.plan import Plan, Step, StepContext
    from gnomon.runs.shards import Shard, ShardRun, parse_shard
    from gnomon.runs.study import ModelChoice, ProbeChoice, Study, apply_setting, make_study, read_study, study_yaml

__getattr__ = lazy_names(
    __name__,
    {
        "ModelChoice": "gnomon.runs.study",
        "Outcome": "gnomon.runs.executor",
        "Plan": "gnomon.runs.plan",
        "ProbeChoice": "gnomon.runs.study",
        "Run": "gnomon.runs.folder",
        "Shard": "gnomon.runs.shards",
        "ShardRun": "gnomon.runs.shards",
        "Step": "gnomon.runs.plan",
        "StepContext": "gnomon.runs.plan",
        "Study": "gnomon.runs.study",
        "apply_setting": "gnomon.runs.study",
        "combine_runs": "gnomon.runs.combining",
        "execute": "gnomon.runs.executor",
        "make_study": "gnomon.runs.study",
        "merge_runs": "gnomon.runs.merging",
        "open_run": "gnomon.runs.folder",
        "parse_shard": "gnomon.runs.shards",
        "read_study": "gnomon.runs.study",
        "study_yaml": "gnomon.runs.study",
    },
)

__all__ = [
    "ModelChoice",
    "Outcome",
    "Plan",
    "ProbeChoice",
    "Run",
    "Shard",
    "ShardRun",
    "Step",
    "StepContext",
    "Study",
    "apply_setting",
    "combine_runs",
    "execute",
    "make_study",
    "merge_runs",
    "open_run",
    "parse_shard",
    "read_study",
    "study_yaml",
]
