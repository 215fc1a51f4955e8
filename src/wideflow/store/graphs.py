"""Hashes of graphs that may have cycles: two nodes have the same hash if and only if whatever can be reached
from them, step by step, is the same."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Union


@dataclass(eq=False, slots=True)
class Node:
    """Texts and other nodes; where they are not `ordered` they count as a set."""

    parts: list[Union[str, "Node"]] = field(default_factory=list)
    ordered: bool = True
    digest: str = ""

    def children(self) -> Iterator["Node"]:
        return (part for part in self.parts if isinstance(part, Node))


def digest(root: Node) -> str:
    """The hash of all that can be reached from the root."""
    for cycle in _components(root):
        _close(cycle)
    return root.digest


def _hash(parts: list[str]) -> str:
    text = "".join(f"{len(part)}:{part}" for part in parts)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _look(node: Node, marks: dict[Node, str]) -> str:
    """The hash of a node, where those of its children are known or marked."""
    parts = [part if isinstance(part, str) else part.digest or marks[part] for part in node.parts]
    return _hash(["ordered", *parts] if node.ordered else ["set", *sorted(parts)])


def _close(component: list[Node]) -> None:
    """Set the hashes of nodes that all reach each other.

    A cycle has no first node to begin with, so that nodes are told apart by what they look like from farther
    and farther away, until no further ones are: this is the smallest automaton with the same paths."""
    if len(component) == 1 and component[0] not in component[0].children():
        component[0].digest = _look(component[0], {})
        return
    marks, kinds = dict.fromkeys(component, ""), 1
    while True:
        seen = {node: _look(node, marks) for node in component}
        if len(set(seen.values())) == kinds:
            break
        marks, kinds = seen, len(set(seen.values()))
    whole = _hash(sorted({marks[node] + seen[node] for node in component}))
    for node in component:
        node.digest = _hash([whole, marks[node]])


def _components(root: Node) -> Iterator[list[Node]]:
    """Sets of nodes that reach each other, those first that others lead to (Tarjan, without recursion)."""
    order: dict[Node, int] = {root: 0}
    lowest: dict[Node, int] = {root: 0}
    path, todo = [root], [(root, root.children())]
    while todo:
        node, children = todo[-1]
        for child in children:
            if child.digest:
                continue
            if child not in order:
                order[child] = lowest[child] = len(order)
                path.append(child)
                todo.append((child, child.children()))
                break
            lowest[node] = min(lowest[node], order[child])
        else:
            todo.pop()
            if todo:
                lowest[todo[-1][0]] = min(lowest[todo[-1][0]], lowest[node])
            if lowest[node] == order[node]:
                at = path.index(node)
                yield path[at:]
                del path[at:]
