"""``torchrun … -m gnomon.learning.memorizing JOB``: one of the processes that memorize together."""

import sys
from pathlib import Path

from gnomon.learning.memorizing.jobs import take_part

if __name__ == "__main__":
    take_part(Path(sys.argv[1]))
