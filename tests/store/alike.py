"""Observers that must not be refused, and pairs that look different and compute the same."""

READABLE = {
    "seeded generator": "import numpy as np\ndef f(t, s): return np.random.default_rng(0).normal()",
    "print": """
        import sys
        def f(t, s):
            print(t, file=sys.stderr)
            return 1
        """,
    "sleep": """
        import time
        def f(t, s):
            time.sleep(0.0)
            return 1
        """,
    "logging": """
        import logging
        log = logging.getLogger('x')
        def f(t, s):
            log.info('t')
            return 1
        """,
    "numpy as an argument": "import numpy as np\ndef g(xp): return xp.sin(1.0)\ndef f(t, s): return g(np)",
    "os.path.join": "import os\ndef f(t, s): return len(os.path.join('a', 'b'))",
    "path to write to": """
        from pathlib import Path
        import numpy as np
        P = Path('x')
        def f(t, s):
            np.save(P / 'a.npy', t)
            return 1
        """,
    "jax": """
        import jax, jax.numpy as jnp
        from jax import lax
        def f(t, s):
            squares = lax.dot(s.theta, s.theta, precision=lax.Precision.HIGHEST)
            return jnp.linalg.norm(jax.nn.relu(s.theta)) + squares + jnp.float32(1) + jnp.pi
        """,
    "numpy": """
        import numpy as np
        def f(t, s):
            small = np.finfo(float).eps + np.float64(1)
            return np.linalg.norm(np.asarray(s.theta)) + small + np.r_[1, 2].sum() + np.pi
        """,
    "scipy": """
        from scipy import special, stats, optimize, linalg, integrate
        import scipy
        def f(t, s):
            root = optimize.brentq(lambda x: x, -1, 1)
            return special.erf(t) + root + linalg.expm(s) + scipy.integrate.quad(lambda x: x, 0, 1)[0]
        """,
    "wideflow": """
        import wideflow as wf
        import jax
        p = wf.Problem(x=wf.Gaussian(2), target=wf.single_index('erf'), neuron=wf.Neuron('erf'))
        R = wf.Risk(p)
        def f(t, s): return R.value(s) + wf.w2(s, s).value + wf.tangent_kernel(s, jax.numpy.ones((1, 2)))
        """,
    "matplotlib": """
        import matplotlib.pyplot as plt
        def f(t, s):
            fig, ax = plt.subplots()
            ax.plot([1])
            fig.savefig('x.png')
            plt.close(fig)
            return 1
        """,
    "math": """
        import math, statistics, itertools, functools, operator, collections, json
        def f(t, s):
            added = functools.reduce(operator.add, itertools.chain([1]))
            return math.sin(t) + statistics.mean([t]) + added + json.loads('1') + len(collections.Counter())
        """,
    "config of jax": "import jax\ndef f(t, s): return jax.config.jax_enable_x64",
    "equinox and optax": """
        import equinox as eqx, diffrax, optax
        def f(t, s): return eqx.filter_jit(lambda x: x)(t) + optax.l2_loss(t)
        """,
    "typing": """
        from typing import Any
        import typing
        def f(t, s):
            x: Any = typing.cast(float, t)
            return x
        """,
    "warnings": """
        import warnings
        def f(t, s):
            warnings.warn('x', stacklevel=2)
            return 1
        """,
    "isinstance": "import jax, numbers\ndef f(t, s): return isinstance(t, jax.Array | numbers.Number)",
    "rich": "import rich\ndef f(t, s): return rich.print(t)",
    "length of time": "import datetime\ndef f(t, s): return datetime.timedelta(1).total_seconds()",
}

# Two observers that compute the same.
PAIRS = {
    "comment": ("def f(t, s): return 3", "# three\ndef f(t, s):\n    # a number\n    return 3  # here"),
    "lines moved": ("def f(t, s): return 3", "\n\n\nX = 1\n\ndef f(t, s): return 3"),
    "docstring": ("def f(t, s): return None or t", 'def f(t, s):\n    """Doc."""\n    return None or t'),
    "another docstring": ('def f(t, s):\n    """A."""', 'def f(t, s):\n    """B."""'),
    "docstring of a class": (
        "class S:\n    v = 3\ndef f(t, s): return S.v",
        "class S:\n    'Doc.'\n    v = 3\ndef f(t, s): return S.v",
    ),
    "docstring of a class inside": (
        "def f(t, s):\n    class S:\n        v = 3\n    return S.v",
        "def f(t, s):\n    class S:\n        'Doc.'\n        v = 3\n    return S.v",
    ),
    "broken lines": (
        "def f(t, s): return t > 1 and (t < 2 or t > 3) and [x for x in (1, 2) if x > t or x < 0]",
        """
        def f(t, s):
            return (
                t > 1
                and (
                    t < 2
                    or t > 3
                )
                and [
                    x
                    for x in (1, 2)
                    if x > t
                    or x < 0
                ]
            )
        """,
    ),
    "broken conditions": (
        """
        def f(t, s):
            while t and not (s or t > 3):
                if t > 1 and s: continue
                try: t = t + 1
                except ValueError: break
            return t if s and t else None
        """,
        """
        def f(t, s):
            while (t
                   and not (s
                            or t > 3)):

                if (t > 1
                        and s):
                    continue
                try:
                    t = t + 1

                except ValueError:
                    break
            return (t
                    if s
                    and t
                    else None)
        """,
    ),
    "quotes and parentheses": (
        "def f(t, s): return len('a') + 1",
        'def f(t, s):\n    return (len(("a")) + (1))',
    ),
    "pass": ("def f(t, s): return 3", "def f(t, s):\n    pass\n    return 3"),
    "annotations": ("def f(t, s): return t", "def f(t: float, s: object) -> float: return t"),
    "postponed annotations": (
        "def f(t: float, s): return t",
        "from __future__ import annotations\ndef f(t: float, s): return t",
    ),
    "annotation inside": (
        "def f(t, s):\n    x = 3\n    return x",
        "def f(t, s):\n    x: int = 3\n    return x",
    ),
    "name": ("def f(t, s): return 3", "def look(t, s): return 3\nf = look"),
    "globals that are not read": (
        "K = 3\ndef f(t, s): return K",
        "import os\nL = 4\nK = 3\ndef f(t, s): return K",
    ),
    "order of functions": (
        "def g(): return 3\ndef f(t, s): return g()",
        "def f(t, s): return g()\ndef g(): return 3",
    ),
    "order of a class": (
        "class S:\n    a = 1\n    b = 2\ndef f(t, s): return S.a",
        "class S:\n    b = 2\n    a = 1\ndef f(t, s): return S.a",
    ),
    "order of a set": (
        "K = {1, 2, 'a'}\ndef f(t, s): return 1 in K",
        "K = {'a', 2, 1}\ndef f(t, s): return 1 in K",
    ),
    "shared or copied": (
        "a = [1]\nK = (a, a)\ndef f(t, s): return K[1][0]",
        "K = ([1], [1])\ndef f(t, s): return K[1][0]",
    ),
    "type checker": (
        "def f(t: float, s: object): return t + 3",
        "from beartype import beartype\n@beartype\ndef f(t: float, s: object): return t + 3",
    ),
    "shape checker": (
        "def f(t: float, s: object): return t + 3",
        "from jaxtyping import jaxtyped\nfrom beartype import beartype\n"
        "@jaxtyped(typechecker=beartype)\ndef f(t: float, s: object): return t + 3",
    ),
    "property that was asked": (
        """
        import functools
        class S:
            @functools.cached_property
            def v(self): return 3
            def __call__(self, t, s): return self.v
        f = S()
        """,
        """
        import functools
        class S:
            @functools.cached_property
            def v(self): return 3
            def __call__(self, t, s): return self.v
        f = S(); f.v
        """,
    ),
    "cache that was used": (
        "import functools\n@functools.cache\ndef g(t): return 3\ndef f(t, s): return g(t)",
        "import functools\n@functools.cache\ndef g(t): return 3\ndef f(t, s): return g(t)\nf(1, 2)",
    ),
    "jit that was used": (
        "import jax\ng = jax.jit(lambda t: 3 * t)\ndef f(t, s): return g(t)",
        "import jax\ng = jax.jit(lambda t: 3 * t)\ndef f(t, s): return g(t)\nf(1.0, 2)",
    ),
    "object that was copied": (
        "class S: pass\nk = S(); k.v = 3\ndef f(t, s): return k.v",
        "import copy\nclass S: pass\nk = S(); k.v = 3\nk = copy.deepcopy(k)\ndef f(t, s): return k.v",
    ),
    "array of another library": (
        "import numpy as np\nK = np.arange(3, dtype='f4')\ndef f(t, s): return K.sum()",
        "import jax.numpy as jnp\nK = jnp.arange(3, dtype='f4')\ndef f(t, s): return K.sum()",
    ),
}
