"""What a person sees on a command line; `skyband.cli` has the commands.

demo.py, screen.py        the demo in one process, and where it is shown
jobs.py, job_screen.py    jobs on Spark: the plan, the stream, the live table
"""

from __future__ import annotations

import os

from rich.console import Console

_WIDTH = 150  # columns of what goes into a file or a pipe; rich takes 80, which cuts tables short


def wide_console() -> Console:
    """Where to print: as wide as the terminal or COLUMNS say."""
    found = Console(highlight=False)
    return found if found.is_terminal or "COLUMNS" in os.environ else Console(highlight=False, width=_WIDTH)
