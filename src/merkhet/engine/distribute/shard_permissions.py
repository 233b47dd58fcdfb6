"""Permissions that the merging of shards needs before foreign code is imported."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from merkhet.analysis import ANALYSES
from merkhet.core.consent import Permission, remember_consent, require_consent
from merkhet.core.ids import digest
from merkhet.engine._analysis_step import AnalysisParams, is_available_analysis
from merkhet.engine.asker import AskParams
from merkhet.engine.permissions import Part
from merkhet.engine.plan import AnyStep, step_identity
from merkhet.engine.score_step import FindingsParams, ScoreParams
from merkhet.metrics import METRICS, registered_name
from merkhet.probes import PROBES


def check_shard_permissions(file: Path, steps: Sequence[AnyStep], home: Path, *, trust: bool) -> None:
    """Check that the user has agreed to the foreign code that merging shards imports.

    Args:
        file: The file that records a shard, which may come from somebody else.
        steps: Steps of the whole run.
        home: Folder of the study, as the file records it.
        trust: Whether the user agrees to everything.

    Raises:
        ConsentError: The user has not agreed.
        InputError: The steps name code that does not exist.
    """
    require_consent(_permissions(steps, home), str(file), _content(steps, home), trust=trust)


def remember_shard_permissions(file: Path, steps: Sequence[AnyStep], home: Path) -> None:
    """Remember that the user runs a shard with this code, so that merging the shards needs no further consent."""
    permissions = _permissions(steps, home)
    if permissions:
        remember_consent(permissions, str(file), _content(steps, home))


def _permissions(steps: Sequence[AnyStep], home: Path) -> list[Permission]:
    """Return the permissions for all foreign code, even in the folder of the study, which the file only claims."""
    parts = dict.fromkeys(part for step in steps for part in _parts(step))
    permissions = (part.permission(home, has_own_code=False) for part in parts)
    return [permission for permission in permissions if permission is not None]


def _content(steps: Sequence[AnyStep], home: Path) -> str:
    """Hash what the merging of shards executes."""
    return digest(["shards", str(home), [step_identity(step) for step in steps]])


def _parts(step: AnyStep) -> Iterator[Part]:
    """Yield the components that a step of a merged run imports."""
    params = step.params
    if isinstance(params, AskParams):
        yield Part("probes", PROBES, params.probe)
    if isinstance(params, ScoreParams):
        yield from (Part("metrics", METRICS, registered_name(name)) for name in params.metrics)
    if isinstance(params, AnalysisParams):
        names = [name for name in params.analyses if not is_available_analysis(name)]
        yield from (Part("analyses", ANALYSES, name) for name in names)
    findings = params.findings if isinstance(params, AnalysisParams) else params
    if isinstance(findings, FindingsParams):
        yield from (Part("metrics", METRICS, registered_name(name)) for name in findings.metrics.values())
