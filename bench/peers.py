"""Makes the virtual environment of the peers that merkhet is measured against, apart from merkhet's own."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / ".venv-bench"
STEPS = (("torch==2.13.0",), ("lm-eval[hf]", "lm-pub-quiz", "requests", "minicons"))
"""What is installed, in this order: torch is pinned and there before another package asks for it."""
PACKAGES = ("lm_eval", "lm-pub-quiz", "minicons", "torch", "transformers", "tokenizers", "numpy")
PAUSES = (20.0, 60.0, 120.0)
FAILED = "MERKHET_BENCH_PEERS_FAILED"
"""An environment variable with the reason why there are no peers, so that a failed installation is tried once."""


@dataclass(frozen=True)
class Peers:
    """The interpreter of the peers' environment, or the reason why there is none."""

    python: Path | None = None
    reason: str = ""

    def command(self, name: str) -> str:
        """The path of a command that a peer brings."""
        assert self.python is not None
        return str(self.python.with_name(name))


def find_peers(wanted: bool = True) -> Peers:
    """The peers, installed on first use; without them the reason in a few words, never an error."""
    if not wanted:
        return Peers(reason="left out (--no-peers)")
    if os.environ.get(FAILED):
        return Peers(reason=os.environ[FAILED])
    python = FOLDER / "bin" / "python"
    marker = FOLDER / "installed.json"
    if not (marker.is_file() and json.loads(marker.read_text(encoding="utf-8")) == [list(step) for step in STEPS]):
        reason = _install(python)
        if reason:
            return Peers(reason=reason)
        marker.write_text(json.dumps(STEPS), encoding="utf-8")
    return Peers(python)


def peer_versions(peers: Peers) -> dict[str, str]:
    """The versions of the peers' packages."""
    if peers.python is None:
        return {}
    code = (
        "import json, sys\nfrom importlib.metadata import PackageNotFoundError, version\nfound = {}\n"
        "for name in sys.argv[1:]:\n    try:\n        found[name] = version(name)\n"
        "    except PackageNotFoundError:\n        pass\nprint(json.dumps(found))"
    )
    done = subprocess.run(
        [str(peers.python), "-c", code, *PACKAGES], env=peer_environment(), capture_output=True, text=True, check=True
    )
    found: dict[str, str] = json.loads(done.stdout)
    return found


def peer_environment() -> dict[str, str]:
    """The environment for a peer's process: nothing of merkhet's on its path, and no question to the model hub."""
    kept = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")}
    return {**kept, "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "true"}


def _install(python: Path) -> str:
    print(f"installing the peers into {FOLDER.name} (some minutes, once)", file=sys.stderr, flush=True)
    base = os.environ.get("PYTHON") or getattr(sys, "_base_executable", None) or sys.executable
    base = shutil.which(base) or base
    made, reason = _attempt([base, "-m", "venv", str(FOLDER)])
    if not made:
        return reason
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--retries", "10"]
    for packages in STEPS:
        for pause in (*PAUSES, None):
            made, reason = _attempt([*pip, *packages])
            if made:
                break
            if pause is None:
                return reason
            print(f"{reason}; trying again in {pause:.0f} s", file=sys.stderr, flush=True)
            time.sleep(pause)
    return ""


def _attempt(command: list[str]) -> tuple[bool, str]:
    """Whether a command ended well, and if not its last words, without addresses."""
    try:
        done = subprocess.run(command, env=peer_environment(), capture_output=True, text=True, check=False)
    except OSError as error:
        return False, f"{Path(command[0]).name}: {error.strerror}"
    if done.returncode == 0:
        return True, ""
    lines = [line.strip() for line in (done.stderr + done.stdout).splitlines() if line.strip()]
    told = [line for line in lines if line.startswith("ERROR")] or lines or [f"exit code {done.returncode}"]
    return False, re.sub(r"\w+://\S+", "…", told[-1])[:160]


if __name__ == "__main__":
    found = find_peers()
    print(json.dumps(peer_versions(found)) if found.python else f"peers not installed: {found.reason}")
    sys.exit(0 if found.python else 1)
