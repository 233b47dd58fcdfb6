"""``python -m gnomon`` is ``gnomon``."""

from gnomon.cli import main

main()
