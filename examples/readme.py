"""The example of the README: one network, its infinite-width limit, and how far apart they are.

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
net = wf.evolve(wf.SGD(R, step=1e-3), rho0.sample(key, 800), ts, key=key)  # 800 neurons, one pass
lazy = wf.evolve(wf.Linearised(R), rho0.sample(key, 800, alpha=30.0), ts)  # frozen kernel

comparison = wf.compare(limit=limit, net=net, lazy=lazy)
comparison.plot("out/readme.png")
Path("out/readme.md").write_text(comparison.table() + "\n")
print(comparison.table())
print("\nE was taken by:", net.info["expectation"])
print(f"The risk of the limit is known to {limit.info['error']:.0e}")
print("Wrote out/readme.png and out/readme.md")
