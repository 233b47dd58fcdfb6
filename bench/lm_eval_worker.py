"""Runs within the peers' environment: scores (context, continuation) pairs by lm-eval's HFLM and times only that.

Each line on standard input asks for one pass; the answer is a line of JSON with its seconds, the counts of what went
through the model, and the scores.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from counting import Counter


def main() -> None:
    # What the libraries print goes to standard error; standard output holds the answers alone.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    model_folder, batch, pairs_file = sys.argv[1:]
    pairs = json.loads(Path(pairs_file).read_text(encoding="utf-8"))

    import torch
    from lm_eval.api.instance import Instance
    from lm_eval.models.huggingface import HFLM

    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = HFLM(pretrained=model_folder, dtype="float32", device=device, batch_size=int(batch))
    requests = [
        Instance(request_type="loglikelihood", doc={}, arguments=tuple(pair), idx=i) for i, pair in enumerate(pairs)
    ]

    def say(answer: dict[str, Any]) -> None:
        answers.write(json.dumps(answer) + "\n")
        answers.flush()

    say({"ready": True})
    for line in sys.stdin:
        counts = {}
        started = time.perf_counter()
        if line.strip() == "count":
            with Counter(model.model) as counter:
                scores = model.loglikelihood(requests, disable_tqdm=True)
            counts = counter.counts()
        else:
            scores = model.loglikelihood(requests, disable_tqdm=True)
        seconds = time.perf_counter() - started
        say({"seconds": seconds, "counts": counts, "scores": [value for value, _ in scores]})


if __name__ == "__main__":
    main()
