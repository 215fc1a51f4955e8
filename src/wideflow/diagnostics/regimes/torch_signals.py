"""One pass of a PyTorch module forward, and passes back: every use of its weights with A and B."""

import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Any

from .torch_attention import attend, can_be_seen
from .torch_rules import linear_uses, rule_of
from .torch_uses import Direct, Use, Used

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

Back = Callable[["Tensor"], "Tensor"]
Take = Callable[[str, Used], None]


class Pass:
    """f (m, O) of a module at given tensors, with the uses of those weights whose axis of rows is in `axes`,
    and of bare parameters that are spread over rows: each row has a copy, in the shape (m, …) that `spread`
    gives for one row.

    The graph that is kept goes through the outputs of layers alone: no gradient of a weight is computed."""

    def __init__(
        self,
        torch: ModuleType,
        module: "Module",
        tensors: dict,
        x: "Tensor",
        axes: dict[str, int],
        spread: "dict[str, tuple[int, ...]] | None" = None,
    ):
        self._torch, self._axes, self._m = torch, axes, len(x)
        self._copies = {
            name: tensors[name].reshape(1, *shape).repeat(len(x), *(1 for _ in shape)).requires_grad_()
            for name, shape in (spread or {}).items()
        }
        self._names = {id(tensors[name]): name for name in axes}
        self._leaves: list = []
        self._taken = 0
        self._arrived: dict[str, Used] = {}
        self._take: Take | None = None
        self.uses: dict[str, list[Use]] = {}
        with self._seen(module), without_fast_path(torch), torch.enable_grad():
            f = torch.func.functional_call(module, {**tensors, **self._copies}, (x,))
        self.f = f.reshape(len(x), -1)

    def back(self, cotangent: "Tensor", take: Take, again: bool = True) -> None:
        """Send a cotangent (m, O) back; `take(name, used)` is called once for every weight that it reaches,
        as soon as all of its uses have their b, which is then forgotten."""
        self._take, self._arrived = take, {}
        if self.f.requires_grad:
            self._torch.autograd.backward(self.f, cotangent, retain_graph=again)
        for leaf in self._leaves:
            leaf.grad = None
        for name, used in self._arrived.items():  # some of their uses are not part of f
            take(name, used)
        for name, copy in self._copies.items():
            if copy.grad is not None:
                take(name, [(Direct(lambda b: b.flatten(1)), copy.grad)])
            copy.grad = None

    @contextmanager
    def _seen(self, module: "Module") -> Iterator[None]:
        with ExitStack() as stack:
            for part in module.modules():
                if can_be_seen(self._torch, part):
                    self._replace(stack, part)
                elif rule_of(self._torch, part) is not None:
                    stack.callback(part.register_forward_hook(self._hook).remove)
            yield

    def _replace(self, stack: ExitStack, part: Any) -> None:
        def multiply(a: "Tensor", weight: str, bias: str) -> "Tensor":
            W, b = (_attribute(part, name) for name in (weight, bias))
            out = self._torch.nn.functional.linear(a, W, b)
            axis = 0 if part.batch_first else 1
            rows = a.detach().movedim(axis, 0)
            uses = linear_uses(rows.reshape(len(rows), -1, a.shape[-1]), len(W))
            back = lambda b: b.movedim(axis, 0).reshape(b.shape[axis], -1, b.shape[-1])
            known = [(W, uses["weight"], axis), (b, uses["bias"], axis)]
            return self._watched(out, [(*one, back) for one in known if len(rows) == self._m])

        part.forward = attend(self._torch, part, multiply)
        stack.callback(lambda: part.__dict__.pop("forward", None))

    def _hook(self, part: Any, inputs: tuple, output: "Tensor") -> "Tensor":
        rule = rule_of(self._torch, part)
        found: list[tuple[Any, Use, int, Back]] = []
        assert rule is not None
        for name in ("weight", "bias"):
            tensor = getattr(part, name, None)
            axis = self._axes.get(self._names.get(id(tensor), ""))
            if axis is None or not inputs or inputs[0].ndim <= axis or inputs[0].shape[axis] != self._m:
                continue
            uses, back = rule(self._torch, part, inputs[0].detach(), axis)
            found.append((tensor, uses[name], axis, back))
        return self._watched(output, found)

    def _watched(self, output: "Tensor", found: list[tuple[Any, Use, int, Back]]) -> "Tensor":
        """The output, which hands its derivative over when there is one."""
        named = [(self._names.get(id(tensor)), use, axis, back) for tensor, use, axis, back in found]
        kept = [(name, use, back) for name, use, axis, back in named if name and self._axes[name] == axis]
        if not kept:
            return output
        for name, use, _ in kept:
            self.uses.setdefault(name, []).append(use)
        start = not output.requires_grad
        watched = output.detach().requires_grad_() if start else output
        here = weakref.ref(self)  # the graph keeps its hooks and a pass its graph: a circle is never freed
        watched.register_hook(lambda b: _handed(here(), b.detach(), kept))
        if not start:
            return output
        self._leaves.append(watched)
        return watched.clone()  # of which a layer behind it may overwrite the values

    def _arrive(self, b: "Tensor", kept: list[tuple[str, Use, Back]]) -> None:
        for name, use, back in kept:
            used = self._arrived.setdefault(name, [])
            used.append((use, back(b)))
            if len(used) == len(self.uses[name]) and self._take is not None:
                self._take(name, self._arrived.pop(name))


def _handed(to: Pass | None, b: "Tensor", kept: list[tuple[str, Use, Back]]) -> None:
    if to is not None:
        to._arrive(b, kept)


def _attribute(part: Any, path: str) -> Any:
    for name in path.split("."):
        part = getattr(part, name)
    return part


@contextmanager
def without_fast_path(torch: ModuleType) -> Iterator[None]:
    """Transformer layers in the code of Python, where their parts can be seen, and attention as products,
    which `torch.func` can map and derive."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with sdpa_kernel(SDPBackend.MATH):
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(before)
