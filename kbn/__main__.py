"""``python -m kbn`` is ``kbn``."""

from kbn.cli.main import run

run()
