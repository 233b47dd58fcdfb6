"""Executes a study: plan, cache, resume; and reads finished runs."""

from gnomon.runs.combining import combine_runs
from gnomon.runs.executor import Outcome, execute
from gnomon.runs.folder import Run, open_run
from gnomon.runs.merging import merge_runs
from gnomon.runs.plan import Plan, Step, StepContext
from gnomon.runs.shards import Shard, ShardRun, parse_shard
from gnomon.runs.study import ModelChoice, ProbeChoice, Study, apply_setting, make_study, read_study, study_yaml

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
