"""`python limit_points.py SECONDS LINK D TOL…`: for each tolerance a line with the CPU seconds of a compiled
limit and the error that it states, until SECONDS of CPU are spent. It runs with any version of the library on
the path."""

import math
import resource
import sys
import time

import jax

import wideflow as wf

TS = (1.0, 2.0, 5.0)


def warm(link: str, d: float, tol: float) -> tuple[float, float]:
    """CPU seconds of the second of two limits, and its error."""
    problem = wf.Problem(x=wf.Gaussian(d), target=wf.single_index(link), neuron=wf.Neuron(link))
    wf.limit(problem, wf.init(problem), TS, tol)
    begun = time.process_time()
    run = wf.limit(problem, wf.init(problem), TS, tol)
    return time.process_time() - begun, run.info["error"]


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    cap, link, d, *tolerances = sys.argv[1:]
    resource.setrlimit(resource.RLIMIT_CPU, (int(cap), int(cap)))
    for tol in tolerances:
        seconds, error = warm(link, math.inf if d == "inf" else int(d), float(tol))
        print(tol, seconds, error, flush=True)
