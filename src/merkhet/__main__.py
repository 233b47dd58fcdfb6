"""``python -m merkhet`` is ``merkhet``."""

from merkhet.cli import main

main()
