"""Observers whose value is not in their code: files, the environment, clocks, chance, the network."""

OUTSIDE = {
    "numpy generator": "import numpy as np\nk = np.random.default_rng(V)\ndef f(t, s): return k.normal()",
    "globals": "SCALE = V\ndef f(t, s): return globals()['SCALE']",
    "file": "def f(t, s): return float(open('scaleV.txt').read())",
    "eval": "SCALE = V\ndef f(t, s): return eval('SCALE')",
    "file of numpy": "import numpy as np\ndef f(t, s): return np.load('scaleV.npy')",
    "environment inside": "def f(t, s):\n    from os import environ\n    return environ['SCALEV']",
    "environment": "import os\ndef f(t, s): return os.environ['SCALEV']",
    "os.getenv": "import os\ndef f(t, s): return os.getenv('X')",
    "os by another name": "import os as system\ndef f(t, s): return system.environ['X']",
    "os inside": "def f(t, s):\n    import os\n    return os.environ['X']",
    "os by a local name": """
        import os
        def f(t, s):
            m = os
            return m.getenv('X')
        """,
    "os in a list": "import os\nk = [os]\ndef f(t, s): return k[0].getenv('X')",
    "os by getattr": "import os\ndef f(t, s): return getattr(os, 'environ')['X']",
    "os by a text made at run time": "import os\nk = 'iron'\ndef f(t, s): return getattr(os, 'env' + k)['X']",
    "environment in a closure": """
        import os
        def made(e):
            return lambda t, s: e['X']
        f = made(os.environ)
        """,
    "open in a closure": "def made(o):\n    return lambda t, s: o('x').read()\nf = made(open)",
    "open in a partial": "import functools\ng = functools.partial(open, 'x')\ndef f(t, s): return g().read()",
    "open in a table": "k = {'read': open}\ndef f(t, s): return k['read']('x')",
    "Path": "from pathlib import Path\ndef f(t, s): return float(Path('x').read_text())",
    "Path that is there": "from pathlib import Path\nP = Path('x')\ndef f(t, s): return float(P.read_text())",
    "Path that opens": "from pathlib import Path\nP = Path('x')\ndef f(t, s): return P.open().read()",
    "whether a file exists": "import os\ndef f(t, s): return os.path.exists('x')",
    "np.load by getattr": "import numpy as np\ndef f(t, s): return getattr(np, 'load')('x.npy')",
    "np.load by a local name": """
        import numpy as np
        def f(t, s):
            xp = np
            return xp.load('x.npy')
        """,
    "np.load of an argument": """
        import numpy as np
        def g(xp): return xp.load('x.npy')
        def f(t, s): return g(np)
        """,
    "np.load in a partial": """
        import functools
        import numpy as np
        g = functools.partial(np.load, 'x')
        def f(t, s): return g()
        """,
    "np.load inside": "def f(t, s):\n    import numpy as np\n    return np.load('x.npy')",
    "np.loadtxt": "from numpy import loadtxt\ndef f(t, s): return loadtxt('x')",
    "np.fromfile": "import numpy as np\ndef f(t, s): return np.fromfile('x')",
    "jnp.load": "import jax.numpy as jnp\ndef f(t, s): return jnp.load('x.npy')",
    "loadmat": "import scipy.io\ndef f(t, s): return scipy.io.loadmat('x')",
    "read_dataset": "import wideflow as wf\ndef f(t, s): return wf.read_dataset('x.csv', target='y')",
    "wf.load": "import wideflow as wf\ndef f(t, s): return wf.load('x').t[0]",
    "torch.load": "import torch\ndef f(t, s): return torch.load('x')",
    "parquet": "import pyarrow.parquet as pq\ndef f(t, s): return pq.read_table('x')",
    "json.load": "import json\ndef f(t, s): return json.load(open('x'))",
    "equinox leaves": "import equinox as eqx\ndef f(t, s): return eqx.tree_deserialise_leaves('x', s)",
    "time.time": "import time\ndef f(t, s): return time.time()",
    "perf_counter": "from time import perf_counter\ndef f(t, s): return perf_counter()",
    "time inside": "def f(t, s):\n    import time\n    return time.monotonic()",
    "datetime.now": "import datetime\ndef f(t, s): return datetime.datetime.now().timestamp()",
    "datetime of a class": "from datetime import datetime\ndef f(t, s): return datetime.now().timestamp()",
    "today": """
        from datetime import date
        def f(t, s):
            d = date
            return d.today().day
        """,
    "random": "import random\ndef f(t, s): return random.random()",
    "random by name": "from random import gauss\ndef f(t, s): return gauss(0, 1)",
    "random inside": "def f(t, s):\n    import random\n    return random.random()",
    "Random": "import random\nk = random.Random(0)\ndef f(t, s): return k.random()",
    "np.random": "import numpy as np\ndef f(t, s): return np.random.normal()",
    "np.random by name": "from numpy import random as r\ndef f(t, s): return r.normal()",
    "np.random by a local name": """
        import numpy as np
        def f(t, s):
            r = np.random
            return r.rand()
        """,
    "np.random function": "from numpy.random import rand\ndef f(t, s): return rand()",
    "generator without a seed": "import numpy as np\ndef f(t, s): return np.random.default_rng().normal()",
    "generator with a seed of None": """
        import numpy as np
        def f(t, s): return np.random.default_rng(None).normal()
        """,
    "RandomState": "import numpy as np\nk = np.random.RandomState(0)\ndef f(t, s): return k.normal()",
    "torch.rand": "import torch\ndef f(t, s): return float(torch.rand(1))",
    "uuid": "import uuid\ndef f(t, s): return uuid.uuid4().int % 7",
    "secrets": "import secrets\ndef f(t, s): return secrets.randbelow(7)",
    "urandom": "import os\ndef f(t, s): return os.urandom(1)[0]",
    "socket": "import socket\ndef f(t, s): return socket.gethostname()",
    "urlopen": "from urllib.request import urlopen\ndef f(t, s): return urlopen('http://x').read()",
    "http": "import http.client\ndef f(t, s): return http.client.HTTPConnection('x')",
    "subprocess": "import subprocess\ndef f(t, s): return subprocess.check_output('date')",
    "input": "def f(t, s): return float(input())",
    "stdin": "import sys\ndef f(t, s): return sys.stdin.read()",
    "argv": "import sys\ndef f(t, s): return sys.argv[1]",
    "frame": "import sys\ndef f(t, s): return sys._getframe().f_lineno",
    "source": "import inspect\ndef f(t, s): return len(inspect.getsource(f))",
    "sqlite": "import sqlite3\ndef f(t, s): return sqlite3.connect('x')",
    "ctypes": "import ctypes\ndef f(t, s): return ctypes.CDLL(None).rand()",
    "__import__": "def f(t, s): return __import__('os').environ['X']",
    "import_module": "import importlib\ndef f(t, s): return importlib.import_module('os').environ['X']",
    "exec": "def f(t, s):\n    exec('a = 1')\n    return 1",
    "id": "def f(t, s): return id(s) % 7",
    "hash": "def f(t, s): return hash('a') % 7",
    "hash of a dataclass by hand": """
        from dataclasses import dataclass
        @dataclass(frozen=True)
        class S:
            a: int = 1
            def __hash__(self): return hash('a')
            def __call__(self, t, s): return self.__hash__() % 7
        f = S()
        """,
    "__globals__": "K = 1\ndef f(t, s): return f.__globals__['K']",
    "__file__": "def f(t, s): return len(__file__)",
    "working directory": "import os\ndef f(t, s): return len(os.getcwd())",
    "processors": "import os\ndef f(t, s): return os.cpu_count()",
    "lock": "import threading\nk = threading.Lock()\ndef f(t, s): return k.locked()",
    "open file": "import sys\nk = open(sys.executable, 'rb')\ndef f(t, s): return k.read(1)",
    "glob": "import glob\ndef f(t, s): return len(glob.glob('*'))",
    "tempfile": "import tempfile\ndef f(t, s): return len(tempfile.gettempdir())",
    "garbage": "import gc\ndef f(t, s): return len(gc.get_objects())",
}
