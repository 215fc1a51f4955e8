"""A walk over what objects are made of, which names what it refuses."""

import contextlib
import types
from collections.abc import Callable, Iterable, Iterator

from . import doors
from .graphs import Node, digest

Part = str | Node


class UnreadableError(ValueError):
    """An object whose content cannot be read, and how to name it."""

    def __init__(self, where: str, what: str):
        super().__init__(
            f"{where or 'It'} is {what}, so that it cannot be told from another one when the run goes on. "
            "Give the function that uses it a name, and change the name whenever it computes something else: "
            'wf.named("scale-3", fn). A run without a checkpoint needs no name.'
        )


class Walk:
    """Turns a value into a graph: `parts(walk, value)` says what a value is made of. Each is read once."""

    def __init__(self, parts: Callable[["Walk", object], Node], called: str = "") -> None:
        self.parts = parts
        self.nodes: dict[int, Node] = {}
        self.alive: list[object] = []  # an id means something as long as its object lives
        self.trail = [called] if called else []
        self.words: set[str] = set()  # by which code may ask for attributes
        self.whole: list[tuple[str, types.ModuleType | type]] = []  # handed on, with where

    def hash(self, value: object) -> str:
        node = Node([self.of(value)])
        self._check_doors()
        return digest(node)

    def of(self, value: object, name: str = "") -> Part:
        """A value as a part of what holds it, where it is called `name`."""
        if value is None or type(value) in (bool, float, complex, bytes):
            return f"{type(value).__name__}:{value!r}"
        if type(value) is int:
            return f"int:{value:x}"  # no limit on digits
        if type(value) is str:
            self.words.add(value)
            return f"str:{value}"
        node = self.nodes.get(id(value))
        if node is None:
            node = self.nodes[id(value)] = Node()
            self.alive.append(value)
            with self.inside(name):
                made = self.parts(self, value)
            node.parts, node.ordered = made.parts, made.ordered
        return node

    def all(self, values: Iterable[object], name: str = "") -> list[Part]:
        return [self.of(value, name) for value in values]

    def named(self, pairs: Iterable[tuple[object, object]]) -> list[Part]:
        return [part for k, v in pairs for part in (self.of(k), self.of(v, str(k)))]

    def refuse(self, what: str) -> UnreadableError:
        return UnreadableError(" → ".join(self.trail), what)

    def outside(self, what: str) -> UnreadableError:
        return self.refuse(f"a function that uses {what}, by which it reads what is not in its code")

    @contextlib.contextmanager
    def inside(self, name: str) -> Iterator[None]:
        self.trail += [name] if name else []
        yield
        del self.trail[len(self.trail) - bool(name) :]

    def hands_on(self, value: types.ModuleType | type) -> None:
        """Note that code has hold of a module or class of an installed package, and may ask it for more."""
        self.whole.append((" → ".join(self.trail), value))

    def _check_doors(self) -> None:
        """Refuse doors that code may open with the words that it holds."""
        seen: set[int] = set()
        while self.whole:
            where, owner = self.whole.pop()
            if id(owner) in seen:
                continue
            seen.add(id(owner))
            is_module = isinstance(owner, types.ModuleType)
            module = owner.__name__ if is_module else owner.__module__
            if is_module and doors.by_text(module, self.words):
                raise UnreadableError(where, f"a function that asks {module} for names that are not written")
            for word in sorted(self.words & set(dir(owner))):
                inner = vars(owner).get(word)
                if isinstance(inner, types.ModuleType):
                    self.whole.append((where, inner))
                if doors.leads_outside(module, word if is_module else f"{owner.__name__}.{word}"):
                    self.trail = [where]
                    raise self.outside(f"{module}.{word}")
