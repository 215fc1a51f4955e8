"""Gradient flow of wide neural networks: finite width, mean-field limit, lazy limit.

The public names are listed in `__init__.pyi`; each is loaded when it is first asked for. Names that fewer
people need are in the namespaces `wf.distances`, `wf.kernels`, `wf.diagnostics`, `wf.layers`, `wf.laws`,
`wf.losses` and `wf.types`.

Examples in docstrings go on from these lines (in float64; a test runs them all):

>>> import jax, jax.numpy as jnp, jax.random as jr, numpy as np
>>> import wideflow as wf
>>> key, ts = jr.key(0), [0.0, 0.1, 0.2]
>>> problem = wf.Problem(x=wf.Gaussian(3), target=wf.single_index("erf"), neuron=wf.Neuron("erf"))
>>> R, rho0 = wf.Risk(problem), wf.init(problem, a=1.0, w=1.0)
>>> net = rho0.sample(key, 4)

and of densities, with one coordinate θ:

>>> unit = wf.CustomNeuron(lambda x, theta: jnp.tanh(theta[0] * x[0]), dim=1)
>>> line = wf.Problem(x=wf.Gaussian(1), target=lambda x: jnp.sin(x[0]), neuron=unit)
>>> density = wf.on_grid(wf.init(line, theta=1.0), -6.0, 6.0, 16)
>>> F = wf.FreeEnergy(wf.Risk(line, wf.Quadrature(8)), beta=5.0, decay=0.1)"""

from . import _names

__version__ = "0.1.0"

NAMESPACES = ("diagnostics", "distances", "kernels", "laws", "layers", "losses", "types")

__getattr__, __dir__, __all__ = _names.attach(__name__, __file__, NAMESPACES)
