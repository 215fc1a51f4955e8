"""What `import wideflow` costs beyond `import jax`."""

from . import child
from .rows import Row

CODE = "import time; begun = time.process_time(); import {name}; print(time.process_time() - begun)"


def measure(quick: bool) -> list[Row]:
    """CPU seconds of `import wideflow` minus those of `import jax`, in fresh processes that take
    turns, bytecode compiled before. A difference, not a ratio; CPU time, since a loaded machine would
    count against nobody in particular."""
    cost = lambda name: child.number(CODE.format(name=name))
    cost("wideflow")  # writes the bytecode
    turns = [(cost("jax"), cost("wideflow")) for _ in range(3 if quick else 7)]
    differences = tuple(ours - jax for jax, ours in turns)
    shares = tuple(ours / jax for jax, ours in turns)
    return [
        Row("import wideflow, CPU seconds beyond import jax", differences, 0.3, at_most=True),
        Row("import wideflow over import jax, CPU time", shares),
    ]
