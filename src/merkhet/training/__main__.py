"""Entry point of one worker of a distributed training job: ``torchrun … -m merkhet.training JOB``."""

import sys
from pathlib import Path

from merkhet.core import interrupts

if __name__ == "__main__":
    interrupts.install(line="")  # The process that started torchrun says that it was interrupted.
    from merkhet.training.distributed._jobs import run_worker

    run_worker(Path(sys.argv[1]))
