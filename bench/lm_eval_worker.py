"""Runs within the peers' environment: scores (context, continuation) pairs by lm-eval's HFLM and times only that."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from worker import Ask, serve


def load() -> tuple[Ask, Any]:
    """What scores the pairs of these numbers, and the network that it asks."""
    folder, batch, file = sys.argv[1:]
    pairs = json.loads(Path(file).read_text(encoding="utf-8"))

    import torch
    from lm_eval.api.instance import Instance
    from lm_eval.models.huggingface import HFLM

    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = HFLM(pretrained=folder, dtype="float32", device=device, batch_size=int(batch))

    def ask(numbers: list[int]) -> list[float]:
        requests = [
            Instance(request_type="loglikelihood", doc={}, arguments=tuple(pairs[i]), idx=place)
            for place, i in enumerate(numbers)
        ]
        return [value for value, _ in model.loglikelihood(requests, disable_tqdm=True)]

    return ask, model.model


if __name__ == "__main__":
    serve(load)
