"""Python code in a fresh process that prints one number."""

import os
import subprocess
import sys


def number(code: str) -> float:
    """What `python -c code` prints last; its complaints go to our standard error. The child keeps
    the bytecode it compiles even where the environment forbids it, so that a second one finds it."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=env)
    return float(done.stdout.split()[-1])
