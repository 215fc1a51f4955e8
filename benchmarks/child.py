"""Python code in a fresh process that prints one number."""

import subprocess
import sys


def number(code: str) -> float:
    """What `python -c code` prints last; its complaints go to our standard error."""
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True)
    return float(done.stdout.split()[-1])
