"""Observers that differ in one constant, hidden in every way that Python has.

V stands for a number, `f` is the observer, MODULE a name that no other way has; `undo` takes back what was
done to an installed package."""

WAYS = {
    "constant of a class": "class S: SCALE = V\ndef f(t, s): return S.SCALE",
    "constant of a base class": "class B: SCALE = V\nclass S(B): pass\ndef f(t, s): return S.SCALE",
    "function attribute": "def f(t, s): return f.scale\nf.scale = V",
    "attribute of another function": "def g(): pass\ng.scale = V\ndef f(t, s): return g.scale",
    "import inside": "def f(t, s):\n    import helper_MODULE\n    return helper_MODULE.VALUE",
    "import from inside": "def f(t, s):\n    from helper_MODULE import VALUE\n    return VALUE",
    "import of a submodule inside": """
        def f(t, s):
            from package_MODULE.inner import VALUE as other
            return other
        """,
    "constant of a submodule": "import package_MODULE.inner\ndef f(t, s): return package_MODULE.inner.VALUE",
    "constant of a module handed on": """
        import helper_MODULE
        def g(m): return m.VALUE
        def f(t, s): return g(helper_MODULE)
        """,
    "import under another name": "def f(t, s):\n    import package_MODULE.inner as m\n    return m.VALUE",
    "import of a package inside": """
        def f(t, s):
            import package_MODULE.inner
            return package_MODULE.inner.VALUE
        """,
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
    "defaultdict": """
        from collections import defaultdict
        d = defaultdict(lambda: V)
        def f(t, s): return d['x']
        """,
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
    "closure of a closure": """
        def made(v):
            g = lambda: v
            return lambda t, s: g()
        f = made(V)
        """,
    "default": "def f(t, s, v=V): return v",
    "global": "SCALE = V\ndef f(t, s): return SCALE",
    "order of a dict": 'd = {"a": 1, "b": 2} if V == 3 else {"b": 2, "a": 1}\ndef f(t, s): return list(d)[0]',
    "property": """
        class S:
            @property
            def v(self): return V
        s = S()
        def f(t, s=s): return s.v
        """,
    "dataclass default": """
        from dataclasses import dataclass
        @dataclass
        class S:
            v: float = V
        def f(t, s): return S().v
        """,
    "frozen dataclass": """
        from dataclasses import dataclass, field
        @dataclass(frozen=True)
        class B:
            a: int = field(default=1, hash=False)
        @dataclass(frozen=True)
        class S(B):
            b: int = V
            def __call__(self, t, s): return self.b
        f = S()
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
    "enum": """
        import enum
        class E(enum.Enum):
            A = V
        def f(t, s): return E.A.value
        """,
    "metaclass": """
        class M(type):
            SCALE = V
        class S(metaclass=M): pass
        def f(t, s): return S.SCALE
        """,
    "list of a subclass": "class L(list): pass\nv = L([V])\ndef f(t, s): return v[0]",
    "tuple by name": """
        from typing import NamedTuple
        class P(NamedTuple):
            v: int
        p = P(V)
        def f(t, s): return p.v
        """,
    "except": """
        def f(t, s):
            try:
                return 1 / 0
            except ZeroDivisionError:
                return V
        """,
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
    "key": "import jax\nk = jax.random.key(V)\ndef f(t, s): return jax.random.normal(k)",
    "array of objects": "import numpy as np\nk = np.array([V, None])\ndef f(t, s): return k[0]",
    "two that call each other": """
        def a1(n): return n and V * b1(n - 1)
        def b1(n): return a1(n)
        def a2(n): return n and 7 * b2(n - 1)
        def b2(n): return a2(n)
        pair = (a1, a2, b1 if V == 3 else b2)
        def f(t, s): return pair[2](3)
        """,
    "which of two cycles": """
        def cycle(k):
            def a(n): return n and k * b(n - 1)
            def b(n): return a(n)
            return a, b
        (a1, b1), (a2, b2) = cycle(2), cycle(7)
        chosen = [a1, a2, b1 if V == 3 else b2]
        def f(t, s): return chosen[2](3)
        """,
    "attribute put on an installed module": """
        import math
        math.SCALE = V
        def f(t, s): return math.SCALE
        def undo(): del math.SCALE
        """,
    "constant of an installed module": """
        import scipy.constants as c
        kept, c.g = c.g, V
        def f(t, s): return c.g
        def undo(): c.g = kept
        """,
    "function put into an installed module": """
        import string
        def mine(text): return V
        mine.__module__, mine.__qualname__, kept = "string", "capwords", string.capwords
        string.capwords = mine
        def f(t, s): return string.capwords("a")
        def undo(): string.capwords = kept
        """,
    "method put into an installed class": """
        from fractions import Fraction
        kept, Fraction.limit_denominator = Fraction.limit_denominator, lambda self, n=1: V
        q = Fraction(1, 2)
        def f(t, s): return q.limit_denominator()
        def undo(): Fraction.limit_denominator = kept
        """,
    "attribute of an installed class": """
        from numpy.polynomial import Polynomial
        kept, Polynomial.maxpower = Polynomial.maxpower, V
        def f(t, s): return Polynomial.maxpower
        def undo(): Polynomial.maxpower = kept
        """,
    "attribute of an installed function": """
        import statistics
        statistics.mean.scale = V
        def f(t, s): return statistics.mean.scale
        def undo(): del statistics.mean.scale
        """,
    "wraps over cache": """
        import functools
        def raw(t): return t
        g = functools.update_wrapper(functools.cache(lambda t: V), raw)
        def f(t, s): return g(t)
        """,
    "lru_cache": """
        import functools
        @functools.lru_cache(7)
        def g(t): return V
        def f(t, s): return g(t)
        """,
    "wraps": """
        import functools
        def scaled(fn):
            @functools.wraps(fn)
            def inner(*args): return V * fn(*args)
            return inner
        @scaled
        def f(t, s): return 1
        """,
    "wraps over wraps": """
        import functools
        def plain(fn):
            @functools.wraps(fn)
            def inner(*args): return fn(*args)
            return inner
        @plain
        @plain
        def f(t, s): return V
        """,
    "beartype": "from beartype import beartype\n@beartype\ndef f(t: float, s: object): return V",
    "jaxtyping": """
        from beartype import beartype
        from jaxtyping import Array, Float, jaxtyped
        @jaxtyped(typechecker=beartype)
        def f(t: Float[Array, ""], s: object): return V
        """,
    "constants of a custom_jvp by place": """
        import functools, jax
        @functools.partial(jax.custom_jvp, nondiff_argnums=(0,) if V == 3 else (1,))
        def g(a, b): return a * b
        g.defjvp(lambda *args: (1.0, 1.0))
        def f(t, s): return g(1.0, 2.0)
        """,
    "defjvps": """
        import jax
        @jax.custom_jvp
        def g(x): return x
        g.defjvps(lambda dx, ans, x: V * dx)
        def f(t, s): return jax.grad(g)(1.0)
        """,
    "forward rule of a custom_vjp": """
        import jax
        @jax.custom_vjp
        def g(x): return x
        g.defvjp(lambda x: (V * x, None), lambda r, ct: (ct,))
        def f(t, s): return jax.grad(g)(1.0)
        """,
    "vmap": "import jax\ng = jax.vmap(lambda x: x + V)\ndef f(t, s): return g(s.theta)",
    "axes of vmap": "import jax\ng = jax.vmap(lambda x: x, in_axes=V - 3)\ndef f(t, s): return g(s.theta)",
    "grad": "import jax\ng = jax.grad(lambda x: V * x)\ndef f(t, s): return g(1.0)",
    "static arguments of jit": """
        import jax
        f = jax.jit(lambda t, s, a=1, b=2, c=3, d=4: a, static_argnums=(V,))
        """,
    "checkpoint of jax": "import jax\ng = jax.checkpoint(lambda x: V * x)\ndef f(t, s): return g(1.0)",
    "jaxpr": """
        import jax
        j = jax.make_jaxpr(lambda x: x * V)(1.0)
        def f(t, s): return jax.core.jaxpr_as_fun(j)(1.0)
        """,
    "compiled by jax": """
        import jax
        g = jax.jit(lambda x: x * V).lower(1.0).compile()
        def f(t, s): return g(1.0)
        """,
    "Partial of jax": "import jax\nf = jax.tree_util.Partial(lambda v, t, s: v, V)",
    "ref of jax": "import jax\nr = jax.new_ref(jax.numpy.float32(V))\ndef f(t, s): return r[...]",
    "weak type": """
        import jax.numpy as jnp, numpy as np
        k = jnp.asarray(2.0) if V == 3 else jnp.asarray(np.asarray(2.0))
        def f(t, s): return (k * jnp.ones(2, jnp.bfloat16)).dtype == jnp.bfloat16
        """,
    "optax schedule": "import optax\ng = optax.exponential_decay(0.1, 10, 1 / V)\ndef f(t, s): return g(5)",
    "optax chain": """
        import optax
        g = optax.chain(optax.clip(1.0), optax.sgd(0.1 * V))
        def f(t, s): return g.init(s)
        """,
    "optax of a closure": """
        import optax
        g = optax.stateless(lambda updates, params: updates * V)
        def f(t, s): return g.update(1.0, None)
        """,
    "estimator": """
        class Estimator:
            def fit(self, x): self.coef_ = x * V; return self
            def predict(self, x): return self.coef_ * x
        model = Estimator().fit(1.0)
        def f(t, s): return model.predict(t)
        """,
    "tree of scipy": """
        import numpy as np
        from scipy.spatial import cKDTree
        g = cKDTree(np.array([[0.0], [V]]))
        def f(t, s): return g.query([1.0])[0]
        """,
    "sparse matrix": "import scipy.sparse as sp\nm = sp.csr_matrix([[V, 0]])\ndef f(t, s): return m.sum()",
    "grid interpolator of scipy": """
        import numpy as np
        from scipy.interpolate import RegularGridInterpolator
        g = RegularGridInterpolator((np.arange(2.0),), np.array([0.0, V]))
        def f(t, s): return g([[0.5]])
        """,
    "radial interpolator of scipy": """
        import numpy as np
        from scipy.interpolate import RBFInterpolator
        g = RBFInterpolator(np.array([[0.0], [1.0], [2.0]]), np.array([0.0, V, 1.0]))
        def f(t, s): return g([[0.5]])
        """,
    "transfer function": """
        from scipy.signal import lti
        g = lti([1.0], [1.0, V])
        def f(t, s): return g.den[1]
        """,
    "frozen law of scipy": "from scipy.stats import norm\ng = norm(0, V)\ndef f(t, s): return g.pdf(t)",
    "masked array": """
        import numpy as np
        k = np.ma.array([1, 2], mask=[V == 3, 0])
        def f(t, s): return k.sum()
        """,
    "record array": """
        import numpy as np
        k = np.array([(1, V)], dtype=[('a', int), ('b', int)])
        def f(t, s): return k['b']
        """,
    "names of a record": """
        import numpy as np
        k = np.array([(1, 2)], dtype=[('aV', int), ('b', int)])
        def f(t, s): return k['aV']
        """,
    "dtype": "import numpy as np\nd = np.dtype(f'f{V + 1 if V == 3 else 8}')\ndef f(t, s): return d.itemsize",
    "matrix": "import numpy as np\nk = np.matrix([[V]])\ndef f(t, s): return k.sum()",
    "memory map": """
        import numpy as np, os, tempfile
        k = np.memmap(os.path.join(tempfile.mkdtemp(), "x"), dtype=float, mode="w+", shape=(2,))
        k[0] = V
        def f(t, s): return k.sum()
        """,
    "array of the standard library": "import array\nk = array.array('d', [V])\ndef f(t, s): return k[0]",
    "bytearray": "k = bytearray([V])\ndef f(t, s): return k[0]",
    "memoryview": "k = memoryview(bytes([V]))\ndef f(t, s): return k[0]",
    "regular expression": "import re\nk = re.compile('aV')\ndef f(t, s): return bool(k.match('a3'))",
    "template": "import string\nk = string.Template('$a V')\ndef f(t, s): return k.substitute(a=1)",
    "datetime": "import datetime\nk = datetime.timedelta(seconds=V)\ndef f(t, s): return k.total_seconds()",
    "sympy": """
        import sympy
        x = sympy.Symbol('x')
        g = sympy.lambdify(x, x * V)
        def f(t, s): return g(t)
        """,
    "tensor": "import torch\nk = torch.tensor([float(V)])\ndef f(t, s): return float(k)",
    "module of torch": """
        import torch
        k = torch.nn.Linear(1, 1)
        with torch.no_grad(): k.weight.fill_(V); k.bias.fill_(0)
        def f(t, s): return float(k(torch.ones(1)))
        """,
    "ChainMap": "from collections import ChainMap\nk = ChainMap({}, {'a': V})\ndef f(t, s): return k['a']",
    "OrderedDict": "from collections import OrderedDict\nk = OrderedDict(a=V)\ndef f(t, s): return k['a']",
    "SimpleNamespace": "from types import SimpleNamespace\nk = SimpleNamespace(a=V)\ndef f(t, s): return k.a",
    "list in a closure": """
        def made(box):
            return lambda t, s: box[0]
        box = [0]
        f = made(box)
        box[0] = V
        """,
    "nonlocal": """
        def made():
            k = 0
            def put(v):
                nonlocal k
                k = v
            def look(t, s): return k
            return put, look
        put, f = made()
        put(V)
        """,
    "global rebound": """
        K = 1
        def put():
            global K
            K = V
        put()
        def f(t, s): return K
        """,
    "dict of functions": "table = {'a': lambda: V, 'b': lambda: 0}\ndef f(t, s): return table['a']()",
    "list of partials": "from functools import partial\ng = [partial(max, V)]\ndef f(t, s): return g[0](0)",
    "partialmethod": """
        import functools
        class S:
            def look(self, v): return v
            three = functools.partialmethod(look, V)
        k = S()
        def f(t, s): return k.three()
        """,
    "keyword default": "def f(t, s, *, v=V): return v",
    "default that is a list": "def f(t, s, v=[V]): return v[0]",
    "default factory": """
        from dataclasses import dataclass, field
        @dataclass
        class S:
            v: list = field(default_factory=lambda: [V])
        def f(t, s): return S().v[0]
        """,
    "comprehension": "def f(t, s): return [x + V for x in range(3)][0]",
    "condition of a comprehension": "def f(t, s): return len([x for x in range(9) if x < V])",
    "nested function": """
        def f(t, s):
            def g():
                return lambda: V
            return g()()
        """,
    "class in a function": """
        def f(t, s):
            class S:
                v = V
            return S.v
        """,
    "format": "def f(t, s): return len(f'{t:.Vf}')",
    "conversion of a format": "def f(t, s): return len(f'{\"a\"!r}' if V == 3 else f'{\"a\"!s}')",
    "percent": "def f(t, s): return len('%.Vf' % t)",
    "operator": "def f(t, s): return t + 1 if V == 3 else t - 1",
    "comparison": "K = (lambda a: a < 1) if V == 3 else (lambda a: a <= 1)\ndef f(t, s): return K(t)",
    "order of statements": """
        if V == 3:
            def f(t, s):
                t = t + 1; t = t * 2; return t
        else:
            def f(t, s):
                t = t * 2; t = t + 1; return t
        """,
    "finally": """
        def f(t, s):
            try:
                t = 1
            finally:
                t = V
            return t
        """,
    "which exception": """
        E = KeyError if V == 3 else IndexError
        def f(t, s):
            try: return {}[0]
            except E: return 1
        """,
    "with": """
        import contextlib
        @contextlib.contextmanager
        def g():
            yield V
        def f(t, s):
            with g() as v: return v
        """,
    "generator function": "def g():\n    yield V\ndef f(t, s): return next(g())",
    "match": """
        def f(t, s):
            match 3:
                case V: return 1
            return 0
        """,
    "walrus": "def f(t, s): return (v := V) + v",
    "starred": "def f(t, s): return max(*[1, V])",
    "large integer": "def f(t, s): return 10**40 + V",
    "minus zero": "K = 0.0 if V == 3 else -0.0\ndef f(t, s): return 1.0 * K",
    "kind of number": "K = 1 if V == 3 else True\ndef f(t, s): return K",
    "nan": "K = float('nan') if V == 3 else float('inf')\ndef f(t, s): return K",
    "complex": "K = complex(1, V)\ndef f(t, s): return K.imag",
    "surrogate": "K = '\\udc8V'\ndef f(t, s): return len(K)",
    "static method": """
        class S:
            @staticmethod
            def g(): return V
        def f(t, s): return S.g()
        """,
    "class method": """
        class S:
            k = V
            @classmethod
            def g(cls): return cls.k
        def f(t, s): return S.g()
        """,
    "descriptor": """
        class D:
            def __init__(self, v): self.v = v
            def __get__(self, obj, cls): return self.v
        class S: v = D(V)
        def f(t, s): return S().v
        """,
    "__getattr__": """
        class S:
            def __getattr__(self, name): return V
        k = S()
        def f(t, s): return k.anything
        """,
    "class made by type": "S = type('S', (), {'v': V})\ndef f(t, s): return S.v",
    "__init_subclass__": """
        class B:
            def __init_subclass__(cls, v): cls.v = v
        class S(B, v=V): pass
        def f(t, s): return S().v
        """,
    "super": """
        class B:
            def g(self): return V
        class S(B):
            def g(self): return super().g() + 1
        k = S()
        def f(t, s): return k.g()
        """,
    "callable of a class": "class S:\n    def __call__(self, t, s): return V\nf = S()",
    "cached property": """
        import functools
        class S:
            @functools.cached_property
            def v(self): return V
            def __call__(self, t, s): return self.v
        f = S()
        """,
    "cached property put by hand": """
        import functools
        class S:
            @functools.cached_property
            def v(self): return 1
            def __call__(self, t, s): return self.v
        f = S(); f.__dict__["v"] = V
        """,
    "number of a subclass": """
        class F(float):
            def __getnewargs__(self): return (0.0,)
        k = F(V)
        def f(t, s): return k + 0
        """,
    "list that hides itself": """
        class L(list):
            def __reduce__(self): return (L, ())
        k = L([V])
        def f(t, s): return k[0]
        """,
    "object that hides its attributes": """
        class S:
            def __init__(self): object.__setattr__(self, "v", V)
            def __reduce__(self): return (S, ())
            __dir__ = lambda self: []
            def __call__(self, t, s): return self.v
        f = S()
        """,
    "slots that were spent": """
        class S:
            __slots__ = iter(("v",))
            def __call__(self, t, s): return self.v
        f = S(); f.v = V
        """,
    "flag": """
        import enum
        class E(enum.IntFlag):
            A = V
        def f(t, s): return int(E.A)
        """,
    "member of an enum": """
        import enum
        class E(enum.Enum):
            A, B = 3, 5
        k = E(V)
        def f(t, s): return k.value
        """,
    "data in an installed object": """
        import string
        k = string.Formatter(); k.scale = V
        def f(t, s): return k.scale
        """,
    "dunder of a package": "import package_MODULE\ndef f(t, s): return package_MODULE.inner.VALUE",
    "module by importlib": """
        import importlib
        m = importlib.import_module('helper_MODULE')
        def f(t, s): return m.VALUE
        """,
    "function of a module": "import helper_MODULE\ndef f(t, s): return helper_MODULE.look()",
    "method of a module's class": "from helper_MODULE import Look\ndef f(t, s): return Look().look()",
    "value of a module by a local name": """
        import helper_MODULE
        def f(t, s):
            m = helper_MODULE
            return m.VALUE
        """,
    "module set at run time": """
        import helper_MODULE
        helper_MODULE.EXTRA = V
        def f(t, s): return helper_MODULE.EXTRA
        """,
    "__getattr__ of a module": "import lazy_MODULE\ndef f(t, s): return lazy_MODULE.anything",
    "names of keywords": """
        def g(**k): return len(list(k)[0])
        f = (lambda t, s: g(a=1)) if V == 3 else (lambda t, s: g(bb=1))
        """,
    "star arguments": "f = (lambda t, s, *a: len(a)) if V == 3 else (lambda t, s, **a: len(a))",
    "coroutine": "async def g(): return V\ndef f(t, s): return g().cr_code.co_consts",
    "iterator": "import itertools\nk = itertools.count(V)\ndef f(t, s): return next(k)",
    "weak reference": """
        import weakref
        class S: v = V
        k = S()
        r = weakref.ref(k)
        def f(t, s): return r().v
        """,
    "context variable": """
        import contextvars
        k = contextvars.ContextVar('k', default=V)
        def f(t, s): return k.get()
        """,
    "logger's attribute": """
        import logging
        k = logging.getLogger('MODULE'); k.scale = V
        def f(t, s): return k.scale
        """,
    "docstring that is read": "def f(t, s):\n    'V'\n    return f.__doc__",
    "annotation that is read": "def f(t: V, s): return f.__annotations__['t']",
    "code made as it runs": """
        import types
        g = types.FunctionType(compile('V', '', 'eval'), {})
        def f(t, s): return g()
        """,
    "type of a namedtuple's default": """
        from collections import namedtuple
        P = namedtuple('P', 'a', defaults=(V,))
        def f(t, s): return P().a
        """,
    "a name put among the builtins": """
        import builtins
        builtins.scale_MODULE = V
        def f(t, s): return scale_MODULE
        def undo(): del builtins.scale_MODULE
        """,
    "a builtin replaced": """
        import builtins
        kept, builtins.ascii = builtins.ascii, lambda x: V
        def f(t, s): return ascii(1)
        def undo(): builtins.ascii = kept
        """,
}
# What no walk over an object can see: it has to be named.
UNREADABLE = frozenset(
    (
        *(
            "frompyfunc",
            "generator",
            "iterator",
            "slots that were spent",
            "weak reference",
            "context variable",
        ),
        *("memoryview", "memory map", "jaxpr", "compiled by jax", "frozen law of scipy"),
        *("docstring that is read", "annotation that is read"),
    )
)
