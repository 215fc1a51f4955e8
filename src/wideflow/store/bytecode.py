"""What compiled code does, whatever it looks like: instructions as a graph, each one leading to the next.

Line numbers, comments and docstrings are not in it, nor how the compiler arranged the instructions, which
depends on where the lines of an expression are broken."""

import dis
import re
import types
from collections.abc import Callable, Iterator

from .graphs import Node

Instruction = dis.Instruction

_SILENT = ("NOP", "CACHE", "EXTENDED_ARG", "RESUME", "PRECALL")
_ALWAYS = re.compile(r"JUMP(_ABSOLUTE|_FORWARD|_BACKWARD(_NO_INTERRUPT)?)?")
_TEST = re.compile(r"(POP_)?JUMP_IF_(TRUE|FALSE)(_OR_POP)?")
_LAST = ("RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE")
_JUMPS = frozenset((*dis.hasjrel, *dis.hasjabs))
_NAMES = frozenset((*dis.hasname, *dis.haslocal, *dis.hasfree))
# What a class body notes about its own text.
_NOTED = ("__doc__", "__firstlineno__")
# How arguments are passed, and whether a call runs or makes a generator or coroutine.
_KINDS = 0x04 | 0x08 | 0x20 | 0x80 | 0x200


def codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """A code and all that are inside it."""
    yield code
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from codes(const)


def instructions(code: types.CodeType) -> list[Instruction]:
    """The instructions without those that only keep room."""
    return [step for step in dis.get_instructions(code) if step.opname not in ("CACHE", "EXTENDED_ARG")]


def signature(code: types.CodeType) -> str:
    """How the code is called."""
    counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags & _KINDS)
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return repr((counts, names))


def flow(code: types.CodeType, constant: Callable[[object], str | Node]) -> Node:
    """The first instruction, as a node that leads to all others; `constant` turns a constant of the code into
    a part of its node."""
    steps = list(dis.get_instructions(code))
    where = {step.offset: i for i, step in enumerate(steps)}
    handlers = _handlers(code, where)
    nodes = [Node() for _ in steps]
    for i, step in enumerate(steps):
        node, following = nodes[i], _next(steps, where, i + 1)
        if step.opcode in _JUMPS:
            name, target = _jump(steps, where, i)
            node.parts += [name, nodes[target]]
        else:
            node.parts += [step.opname, _argument(code, step, constant)]
        if i in handlers:
            target, how = handlers[i]
            node.parts += [how, nodes[_next(steps, where, target)]]
        if step.opname not in _LAST and following < len(steps):
            node.parts.append(nodes[following])
    return nodes[_next(steps, where, 0)]


def _plain(name: str) -> str:
    return name.replace("_FORWARD", "").replace("_BACKWARD", "")


def _argument(
    code: types.CodeType, step: Instruction, constant: Callable[[object], str | Node]
) -> str | Node:
    if step.opcode in dis.hasconst and step.arg is not None:
        return constant(code.co_consts[step.arg])  # argval does not know the names of keywords
    if step.opcode in _NAMES:
        return str(step.argval)
    return "" if step.arg is None else str(step.arg)


def _jump(steps: list[Instruction], where: dict[int, int], i: int) -> tuple[str, int]:
    """What a jump does and where it leads. One that keeps its value for the next test, `(a or b) and c`, goes
    at once where that test would send it, which the compiler does on one line only."""
    name, target = _plain(steps[i].opname), _next(steps, where, where[steps[i].argval])
    while name.endswith("_OR_POP"):
        test = _TEST.fullmatch(_plain(steps[target].opname))
        if test is None:
            break
        truth = "TRUE" if "TRUE" in name else "FALSE"
        jumps = truth in test[0]
        if test[1] or not jumps:
            name = f"POP_JUMP_IF_{truth}"
        target = _next(steps, where, where[steps[target].argval] if jumps else target + 1)
    return name, target


def _next(steps: list[Instruction], where: dict[int, int], i: int) -> int:
    """The first instruction from the i-th on that does something: jumps are followed, notes left out."""
    passed = set()
    while i < len(steps) and i not in passed:
        passed.add(i)
        step = steps[i]
        if step.opname in _SILENT:
            i += 1
        elif _ALWAYS.fullmatch(step.opname):
            i = where[step.argval]
        elif step.opcode in dis.hasconst and steps[i + 1].opname == "STORE_NAME" and _is_note(steps[i + 1]):
            i += 2
        else:
            break
    return i


def _is_note(step: Instruction) -> bool:
    return step.argval in _NOTED


def _handlers(code: types.CodeType, where: dict[int, int]) -> dict[int, tuple[int, str]]:
    """For each instruction inside a `try` or `with`: where an exception leads, and what it leaves behind."""
    handlers = {}
    for entry in dis.Bytecode(code).exception_entries:  # type: ignore[attr-defined]
        for offset, i in where.items():
            if entry.start <= offset < entry.end:
                handlers[i] = (where[entry.target], f"handler {entry.depth} {entry.lasti}")
    return handlers
