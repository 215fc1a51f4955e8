"""Run in an environment of its own (see `benchmarks/peer.py`): the kernels of neural-tangents.

Modules here import nothing but numpy, jax 0.4.25, neural-tangents and `benchmarks/serve.py`."""

import sys
from types import ModuleType

# `import neural_tangents` imports its `experimental` part, and that imports TensorFlow; we need neither.
sys.modules.setdefault("neural_tangents.experimental", ModuleType("neural_tangents.experimental"))
