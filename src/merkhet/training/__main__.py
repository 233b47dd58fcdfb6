"""``torchrun … -m merkhet.training JOB``: one of the processes that train together."""

import sys
from pathlib import Path

from merkhet.training.distributed._jobs import take_part

if __name__ == "__main__":
    take_part(Path(sys.argv[1]))
