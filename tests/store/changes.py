"""Observers that differ in one constant, hidden in every way that Python has. As a script it prints the
fingerprints of one version of each, to be compared from process to process."""

import importlib.util
import json
import sys
import textwrap
from pathlib import Path
from typing import Any

import jax

from wideflow.store.fingerprints import UnreadableError, fingerprint

# V stands for a number. `f` is the observer.
WAYS = {
    "constant of a class": "class S: SCALE = V\ndef f(t, s): return S.SCALE",
    "constant of a base class": "class B: SCALE = V\nclass S(B): pass\ndef f(t, s): return S.SCALE",
    "function attribute": "def f(t, s): return f.scale\nf.scale = V",
    "attribute of another function": "def g(): pass\ng.scale = V\ndef f(t, s): return g.scale",
    "import inside": "def f(t, s):\n    import helper_MODULE\n    return helper_MODULE.VALUE",
    "import from inside": "def f(t, s):\n    from helper_MODULE import VALUE\n    return VALUE",
    "import of a submodule inside": (
        "def f(t, s):\n    from package_MODULE.inner import VALUE as other\n    return other"
    ),
    "constant of a submodule": "import package_MODULE.inner\ndef f(t, s): return package_MODULE.inner.VALUE",
    "constant of a module handed on": (
        "import helper_MODULE\ndef g(m): return m.VALUE\ndef f(t, s): return g(helper_MODULE)"
    ),
    "import under another name": "def f(t, s):\n    import package_MODULE.inner as m\n    return m.VALUE",
    "import of a package inside": (
        "def f(t, s):\n    import package_MODULE.inner\n    return package_MODULE.inner.VALUE"
    ),
    "environment": "import os\ndef f(t, s): return os.environ['SCALEV']",
    "environment inside": "def f(t, s):\n    from os import environ\n    return environ['SCALEV']",
    "file of numpy": "import numpy as np\ndef f(t, s): return np.load('scaleV.npy')",
    "getattr of a module": "import helper_MODULE\ndef f(t, s): return getattr(helper_MODULE, 'VALUE')",
    "custom_jvp": """
        import jax
        @jax.custom_jvp
        def g(x): return x
        @g.defjvp
        def rule(p, t): return p[0], V * t[0]
        def f(t, s): return jax.grad(g)(1.0)
        """,
    "custom_vjp": """
        import jax
        @jax.custom_vjp
        def g(x): return x
        g.defvjp(lambda x: (x, None), lambda r, ct: (V * ct,))
        f = jax.jit(lambda t, s: jax.grad(g)(1.0))
        """,
    "slots": """
        class S:
            __slots__ = ("a", "__b")
            def __init__(self): self.a, self.__b = 1, V
            def __call__(self, t, s): return self.__b
        f = S()
        """,
    "inherited slots": """
        class B: __slots__ = ("a",)
        class S(B):
            __slots__ = ()
            def __call__(self, t, s): return self.a
        f = S(); f.a = V
        """,
    "Polynomial": "from numpy.polynomial import Polynomial\np = Polynomial([1, V])\ndef f(t, s): return p(t)",
    "poly1d": "import numpy as np\np = np.poly1d([1, V])\ndef f(t, s): return p(t)",
    "interpolator of JAX": """
        import jax.numpy as jnp
        from jax.scipy.interpolate import RegularGridInterpolator
        g = RegularGridInterpolator((jnp.arange(2.0),), jnp.array([0.0, V]))
        def f(t, s): return g(jnp.array([[0.5]]))
        """,
    "interpolator of scipy": """
        from scipy.interpolate import CubicSpline
        g = CubicSpline([0, 1, 2], [0, 1, V])
        def f(t, s): return g(t)
        """,
    "interp1d": """
        from scipy.interpolate import interp1d
        g = interp1d([0, 1, 2], [0, 1, V])
        def f(t, s): return g(t)
        """,
    "range": "r = range(V)\ndef f(t, s): return len(r)",
    "deque": "from collections import deque\nd = deque([1, V])\ndef f(t, s): return d[1]",
    "length of a deque": "from collections import deque\nd = deque([], V)\ndef f(t, s): return d.maxlen",
    "Counter": "from collections import Counter\nd = Counter(a=V)\ndef f(t, s): return d['a']",
    "defaultdict": (
        "from collections import defaultdict\nd = defaultdict(lambda: V)\ndef f(t, s): return d['x']"
    ),
    "Fraction": "from fractions import Fraction\nq = Fraction(V, 7)\ndef f(t, s): return float(q)",
    "Decimal": "from decimal import Decimal\nq = Decimal(V)\ndef f(t, s): return float(q)",
    "slice": "k = slice(V)\ndef f(t, s): return s.theta[k].sum()",
    "itemgetter": "import operator\ng = operator.itemgetter(V)\ndef f(t, s): return g(s.theta)",
    "attrgetter": "import operator\ng = operator.attrgetter('attributeV')\ndef f(t, s): return g(s)",
    "methodcaller": "import operator\ng = operator.methodcaller('sum', V)\ndef f(t, s): return g(s.theta)",
    "bound method": """
        class S:
            def __init__(self, v): self.v = v
            def look(self, t, s): return self.v
        f = S(V).look
        """,
    "bound method of C": "g = [1, V].index\ndef f(t, s): return g(1)",
    "dict.get": "g = {'a': V}.get\ndef f(t, s): return g('a')",
    "vectorize": "import numpy as np\ng = np.vectorize(lambda t: t + V)\ndef f(t, s): return g(t)",
    "frompyfunc": "import numpy as np\ng = np.frompyfunc(lambda t: t + V, 1, 1)\ndef f(t, s): return g(t)",
    "partial": "import functools\nf = functools.partial(lambda v, t, s: v, V)",
    "closure": "def made(v):\n    return lambda t, s: v\nf = made(V)",
    "closure of a closure": "def made(v):\n    g = lambda: v\n    return lambda t, s: g()\nf = made(V)",
    "default": "def f(t, s, v=V): return v",
    "global": "SCALE = V\ndef f(t, s): return SCALE",
    "order of a dict": """
        d = {"a": 1, "b": 2} if V == 3 else {"b": 2, "a": 1}
        def f(t, s): return list(d)[0]
        """,
    "property": "class S:\n    @property\n    def v(self): return V\ns = S()\ndef f(t, s=s): return s.v",
    "dataclass default": """
        from dataclasses import dataclass
        @dataclass
        class S:
            v: float = V
        def f(t, s): return S().v
        """,
    "attribute that is no field": """
        from dataclasses import dataclass
        @dataclass
        class S:
            v: float = 0.0
            def __post_init__(self): self.w = V
            def __call__(self, t, s): return self.w
        f = S()
        """,
    "state that is not copied": """
        class S:
            def __init__(self, v): self.v = v
            def __getstate__(self): return {}
            def __call__(self, t, s): return self.v
        f = S(V)
        """,
    "enum": "import enum\nclass E(enum.Enum):\n    A = V\ndef f(t, s): return E.A.value",
    "metaclass": "class M(type):\n    SCALE = V\nclass S(metaclass=M): pass\ndef f(t, s): return S.SCALE",
    "list of a subclass": "class L(list): pass\nv = L([V])\ndef f(t, s): return v[0]",
    "tuple by name": (
        "from typing import NamedTuple\nclass P(NamedTuple):\n    v: int\np = P(V)\ndef f(t, s): return p.v"
    ),
    "except": "def f(t, s):\n    try:\n        return 1 / 0\n    except ZeroDivisionError:\n        return V",
    "equinox": """
        import equinox as eqx
        class S(eqx.Module):
            v: float = 0.0
            def __call__(self, t, s): return self.v + V
        f = S()
        """,
    "singledispatch": """
        import functools
        @functools.singledispatch
        def g(x): return V
        def f(t, s): return g(t)
        """,
    "generator": "g = (V for _ in range(9))\ndef f(t, s): return next(g)",
    "eval": "SCALE = V\ndef f(t, s): return eval('SCALE')",
    "file": "def f(t, s): return float(open('scaleV.txt').read())",
    "globals": "SCALE = V\ndef f(t, s): return globals()['SCALE']",
    "key": "import jax\nk = jax.random.key(V)\ndef f(t, s): return jax.random.normal(k)",
    "numpy generator": "import numpy as np\nk = np.random.default_rng(V)\ndef f(t, s): return k.normal()",
    "array of objects": "import numpy as np\nk = np.array([V, None])\ndef f(t, s): return k[0]",
}
# What no walk over an object can see; it has to be named.
REFUSED = {
    *("frompyfunc", "generator", "eval", "file", "globals", "singledispatch"),
    *("environment", "environment inside", "file of numpy"),
}


def made(way: str, value: int, folder: Path) -> Any:
    """The observer `f` of a way with this number, from files of its own in the folder."""
    name = f"way{list(WAYS).index(way)}"
    here = folder / f"{name}_{value}"
    (here / f"package_{name}").mkdir(parents=True, exist_ok=True)
    (here / f"helper_{name}.py").write_text(f"VALUE = {value}\nOTHER = 1\n")
    (here / f"package_{name}" / "__init__.py").write_text("")
    (here / f"package_{name}" / "inner.py").write_text(f"VALUE = {value}\n")
    source = textwrap.dedent(WAYS[way]).replace("MODULE", name).replace("V", str(value), 99)
    source = source.replace(f"{value}ALUE", "VALUE")
    (here / f"{name}.py").write_text(source)
    for loaded in [m for m in sys.modules if m.partition(".")[0] in (f"helper_{name}", f"package_{name}")]:
        del sys.modules[loaded]
    sys.path.insert(0, str(here))
    try:
        spec = importlib.util.spec_from_file_location(name, here / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.f, marked(module.f)
    finally:
        sys.path.remove(str(here))


def marked(fn: Any) -> str:
    """Its fingerprint, or "refused"."""
    try:
        return fingerprint(fn)
    except UnreadableError:
        return "refused"


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)  # as the tests do
    print(json.dumps({way: made(way, 3, Path(sys.argv[1]))[1] for way in WAYS}))
