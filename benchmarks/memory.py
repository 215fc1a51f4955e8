"""Peak memory of one velocity of a very wide network."""

from . import child
from .rows import Row

CODE = """
import jax, jax.numpy as jnp
import wideflow as wf

def status(field):  # in kB
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith(field))

jnp.zeros(1).block_until_ready()  # the backend is up
before = status("VmRSS")
n, m, d = 10**6, 10**4, 20
x = jax.random.normal(jax.random.key(0), (m, d))
problem = wf.Problem(x=wf.Dataset(x, jnp.sin(x[:, 0])), neuron=wf.Neuron("tanh"))
particles = wf.init(problem).sample(jax.random.key(1), n)
assert particles.dtype == jnp.float32
wf.Risk(problem).velocity(particles).block_until_ready()
print((status("VmHWM") - before) / 1e6)
"""


def measure(quick: bool) -> list[Row]:
    """Peak resident memory of a fresh process that draws n = 10⁶ neurons in d = 20 and m = 10⁴ rows
    (float32) and computes one velocity, above its memory after the imports, in GB.

    An amount, not a ratio. For scale: the hidden layer alone, which autograd over one batch
    keeps, has 40 GB; θ and the velocity have 0.08 GB each. VmHWM belongs to the process image, unlike
    ru_maxrss, which a child inherits; so this needs Linux."""
    peak = child.number(CODE)
    return [Row("velocity n=10⁶ m=10⁴ d=20, GB above imports", (peak,), 1.0, at_most=True)]
