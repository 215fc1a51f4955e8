"""The example of the README: a network, its infinite-width limit and its frozen kernel, side by side.

Writes out/readme.png and out/readme.md.
"""

from pathlib import Path

import jax.numpy as jnp
import jax.random as jr

import wideflow as wf

ts, key = jnp.linspace(0.0, 10.0, 41), jr.key(0)
problem = wf.Problem(x=wf.Gaussian(50), target=wf.single_index("erf"), neuron=wf.Neuron("erf"))
rho0 = wf.init(problem, a=1.0, w=1.0)  # a ~ N(0, 1), w ~ N(0, I/d)
R = wf.Risk(problem)  # ½E(y − f)², exact where a closed form exists

limit = wf.limit(problem, rho0, ts, tol=1e-4)  # infinitely many neurons and samples, to this tolerance
net = wf.evolve(wf.SGD(R, step=1e-3), rho0.sample(key, 3000), ts, key=key)  # 3000 neurons, one pass
start = rho0.sample(key, 3000, alpha=3000**0.5)  # the same neurons at the NTK scale
lazy = wf.evolve(wf.Linearised(wf.SGD(R, step=1e-3)), start, ts, key=key)  # frozen kernel

comparison = wf.compare(limit=limit, net=net, lazy=lazy)
comparison.plot("out/readme.png")
Path("out/readme.md").write_text(comparison.table() + "\n")
print(comparison.table())
print(f"The risk of the limit is known to {limit.info['error']:.0e}")
