"""The kernel of an MLP at given weights as PyTorch's tutorial on neural tangent kernels has it.

The recipe: `functional_call` of a module, the Jacobian of one sample by `jacrev`, `vmap` over samples, and
for every parameter the contraction Naf,Mbf→NMab of both Jacobians. job and arrays as those of
`neural_tangents/empirical.py`, without biases and "implementation"; result "ntk" (N, N, k, k)."""

from collections.abc import Callable
from itertools import count, takewhile

import torch
from torch.func import functional_call, jacrev, vmap

from .serve import Arrays, serve

ACTIVATIONS = {"relu": torch.relu, "erf": torch.erf, "tanh": torch.tanh}


class Network(torch.nn.Module):
    """h_l = w_std W_l x_l/√fan_in, W_l of shape (fan_out, fan_in) as `torch.nn.Linear` has it."""

    def __init__(self, weights: list[torch.Tensor], activation: str, w_std: float) -> None:
        super().__init__()
        self.weights = torch.nn.ParameterList(weights)
        self.phi, self.w_std = ACTIVATIONS[activation], w_std

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer, w in enumerate(self.weights):
            x = self.w_std / w.shape[1] ** 0.5 * torch.nn.functional.linear(x, w)
            x = self.phi(x) if layer + 1 < len(self.weights) else x
        return x


def prepare(job: dict, arrays: Arrays) -> Callable[[], Arrays]:
    dtype = getattr(torch, job["dtype"])
    tensor = {name: torch.tensor(value, dtype=dtype) for name, value in arrays.items()}
    layers = takewhile(lambda layer: f"W{layer}" in tensor, count())
    weights = [tensor[f"W{layer}"].T.contiguous() for layer in layers]
    network = Network(weights, job["activation"], job.get("w_std", 1.0))
    params = {name: value.detach() for name, value in network.named_parameters()}
    single = lambda params, x: functional_call(network, params, (x[None],))[0]
    jacobian = vmap(jacrev(single), in_dims=(None, 0))

    def call() -> Arrays:
        x1, x2 = tensor["x"], tensor.get("x2", tensor["x"])
        first, second = jacobian(params, x1), jacobian(params, x2)
        blocks = (_contracted(first[name], second[name]) for name in params)
        return {"ntk": sum(blocks)}

    return call


def _contracted(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    return torch.einsum("Naf,Mbf->NMab", first.flatten(2), second.flatten(2))


if __name__ == "__main__":
    serve(prepare)
