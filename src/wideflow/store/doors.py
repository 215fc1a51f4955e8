"""Doors out of a function's code: what reads files, the environment, clocks, chance, the network, or code
that is made as it runs. No fingerprint sees what comes in by them: a function that uses one needs a name."""

import re

# Modules that lead outside with all that is in them.
_CLOSED = """
    random secrets uuid numpy.random
    tempfile glob fileinput linecache configparser shelve dbm sqlite3 mmap zipfile tarfile gzip bz2 lzma
    socket ssl select selectors http urllib ftplib smtplib poplib imaplib xmlrpc
    requests httpx aiohttp urllib3
    subprocess multiprocessing asyncio signal resource platform getpass pwd locale psutil
    gc ctypes cffi importlib pkgutil runpy code codeop tracemalloc
"""
# Names of each module that lead outside; "*" is all of them, which goes for the modules inside it too.
_DOORS = {module: frozenset("*") for module in _CLOSED.split()} | {
    module: frozenset(names.split())
    for module, names in {
        "builtins": "eval exec compile open input globals locals dir id hash __import__ breakpoint",
        "os": (
            "environ environb getenv getenvb _Environ listdir scandir walk stat lstat getcwd getcwdb getpid "
            "getppid getlogin getuid cpu_count getloadavg urandom times uname popen system read pread open "
            "fdopen access sched_getaffinity readlink pipe get_terminal_size"
        ),
        "os.path": (
            "exists lexists isfile isdir islink ismount getmtime getatime getctime getsize expanduser "
            "expandvars abspath realpath samefile"
        ),
        "pathlib": (
            "read_text read_bytes open exists is_file is_dir is_symlink stat lstat iterdir glob rglob walk "
            "cwd home resolve absolute expanduser readlink samefile owner"
        ),
        "io": "open open_code FileIO",
        "sys": (
            "argv orig_argv path modules stdin __stdin__ _getframe _current_frames executable meta_path "
            "getrefcount getsizeof exc_info"
        ),
        "time": (
            "time time_ns perf_counter perf_counter_ns monotonic monotonic_ns process_time process_time_ns "
            "thread_time thread_time_ns clock_gettime clock_gettime_ns localtime gmtime ctime asctime "
            "strftime"
        ),
        "datetime": "now utcnow today",
        "inspect": (
            "getsource getsourcelines getsourcefile getfile getdoc getcomments currentframe stack trace "
            "getmodule signature get_annotations getclosurevars getmembers"
        ),
        "typing": "get_type_hints",
        "threading": "get_ident get_native_id current_thread active_count enumerate local",
        "shutil": "disk_usage which get_terminal_size",
        "numpy": "load loadtxt genfromtxt fromfile memmap fromregex DataSource",
        "torch": "rand randn randint randperm rand_like randn_like normal bernoulli multinomial seed",
    }.items()
}
# Modules under the name that their functions tell.
_ALIASES = {
    **dict.fromkeys(("posix", "nt"), "os"),
    **dict.fromkeys(("posixpath", "ntpath", "genericpath"), "os.path"),
    "_io": "io",
    "_datetime": "datetime",
    "_random": "random",
    "_socket": "socket",
    "_ctypes": "ctypes",
    "_thread": "threading",
    "numpy.lib": "numpy",
}
# What functions of any package are called that read what is not in their arguments.
_READERS = re.compile(
    r"(load|read|open|fetch|download)(_.*|txt|mat|wav|arff|image)?|from_?(file|url|regex|txt)|genfromtxt"
    r"|i?mread|urlopen|memmap|File|io_callback|tree_deserialise_leaves"
)
# Attributes that show a function or module as it was written, or all that it can reach.
UNSEEN = frozenset(
    (
        *("__doc__", "__annotations__", "__globals__", "__builtins__", "__subclasses__", "__code__"),
        *("__file__", "__loader__", "__spec__", "__path__", "__cached__", "f_globals", "f_locals", "f_back"),
        *("f_lineno", "co_firstlineno", "co_filename", "tb_lineno", "tb_frame"),
    )
)
# Ways to ask for an attribute whose name is not in the code.
_BY_TEXT = frozenset(("getattr", "vars", "__dict__", "__getattribute__", "attrgetter", "methodcaller"))


def _names(module: str) -> frozenset[str]:
    """The names of a module that lead outside."""
    module = _ALIASES.get(module, module)
    while module not in _DOORS and "." in module:
        module = module.rpartition(".")[0]
        if _DOORS.get(module) != {"*"}:
            return frozenset()
    return _DOORS.get(module, frozenset())


def is_closed(module: str) -> bool:
    """Whether all of a module leads outside."""
    return "*" in _names(module)


def leads_outside(module: str, name: str) -> bool:
    """Whether `module.name`, of an installed package, reads anything that is not in its arguments. A method,
    `Class.name`, is asked for in the table alone: most that are called `read` read their object."""
    names, last = _names(module), name.rpartition(".")[2]
    return "*" in names or bool({name, last} & names) or bool(_READERS.fullmatch(name))


def by_text(module: str, words: set[str]) -> bool:
    """Whether code that holds these words may ask a module with doors for a name that is nowhere written."""
    doors = _ALIASES.get(module, module) in ("os", "sys", "io", "time", "builtins", "pathlib", "datetime")
    return doors and bool(words & _BY_TEXT)
