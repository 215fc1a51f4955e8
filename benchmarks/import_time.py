"""What `import wideflow` costs beyond `import jax`."""

from . import child
from .rows import Row

CODE = "import time; begun = time.process_time(); {line}; print(time.process_time() - begun)"
JAX, OURS, NAMES = "import jax", "import jax, wideflow", "import jax; from wideflow import *"


def measure(quick: bool) -> list[Row]:
    """CPU seconds beyond those of `import jax`, in fresh processes that take turns, bytecode compiled
    before: of `import wideflow`, which loads each name when it is first asked for, and of loading all
    of them. A difference, not a ratio; CPU time, since a loaded machine would count against nobody in
    particular."""
    cost = lambda line: child.number(CODE.format(line=line))
    cost(NAMES)  # writes the bytecode
    turns = [(cost(JAX), cost(OURS), cost(NAMES)) for _ in range(3 if quick else 7)]
    beyond = lambda i: tuple(turn[i] - turn[0] for turn in turns)
    return [
        Row("import wideflow, CPU seconds beyond import jax", beyond(1), 0.3, at_most=True),
        Row("the same with every public name loaded", beyond(2), 0.3, at_most=True),
    ]
