"""Entry point of one worker of a distributed training job: ``torchrun … -m merkhet.training JOB``."""

import sys
from pathlib import Path

from merkhet.training.distributed._jobs import run_worker

if __name__ == "__main__":
    run_worker(Path(sys.argv[1]))
