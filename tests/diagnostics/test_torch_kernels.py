"""Kernels of PyTorch modules, layer by layer, against Jacobians that are written out row by row."""

import weakref

import numpy as np
import pytest

from wideflow.diagnostics.regimes.plan import projected
from wideflow.diagnostics.regimes.torch_signals import Pass

torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'wideflow[torch]'")
nn = torch.nn


class Tied(nn.Module):
    """A table that is also the last layer, and a layer that is called twice."""

    def __init__(self):
        super().__init__()
        self.table, self.twice = nn.Embedding(7, 4), nn.Linear(4, 4)

    def forward(self, ids):
        h = torch.tanh(self.twice(torch.tanh(self.twice(self.table(ids))).mean(1)))
        return nn.functional.linear(h, self.table.weight)[:, :3]


class Twice(nn.Module):
    """One layer called twice: on a sequence, and on its mean; an overwritten activation."""

    def __init__(self):
        super().__init__()
        self.twice, self.relu, self.head = nn.Linear(5, 5), nn.ReLU(inplace=True), nn.Linear(5, 2, bias=False)

    def forward(self, x):
        return self.head(torch.tanh(self.twice(self.relu(self.twice(x)).mean(1))))


class Tokens(nn.Module):
    """A small transformer, with positions as a bare parameter, its rows on the first axis or the second."""

    def __init__(self, batch_first):
        super().__init__()
        self.batch_first = batch_first
        self.table, self.positions = nn.Embedding(9, 8, padding_idx=2), nn.Parameter(torch.randn(5, 8))
        layer = nn.TransformerEncoderLayer(8, 2, 12, 0.0, norm_first=True, batch_first=batch_first)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(8, 3)

    def forward(self, ids):
        h = self.table(ids) + self.positions
        h = self.encoder(h) if self.batch_first else self.encoder(h.transpose(0, 1)).transpose(0, 1)
        return self.head(h.mean(1))


class Bare(nn.Module):
    """Parameters without a layer: a token in front, positions, scales of units and of everything; one that
    meets the rows in two ways."""

    def __init__(self):
        super().__init__()
        draw = lambda *shape: nn.Parameter(torch.randn(shape))
        self.token, self.positions, self.scale, self.gain = draw(1, 1, 4), draw(1, 4, 4), draw(4), draw()
        self.both, self.head = draw(4), nn.Linear(4, 2)

    def forward(self, x):
        h = torch.cat([self.token.expand(len(x), -1, -1), x], 1) + self.positions
        h = torch.tanh(h * self.scale) * self.gain
        return self.head(torch.tanh(h * self.both).mean(1) + self.both)


class Attention(nn.Module):
    """Attention called by itself: with masks, its weights used, and once between different sequences."""

    def __init__(self):
        super().__init__()
        self.inner, self.cross = (nn.MultiheadAttention(6, 2, batch_first=True) for _ in range(2))
        self.mask = torch.triu(torch.ones(4, 4, dtype=torch.bool), 1)

    def forward(self, x):
        padding = (x[:, :, 0] > 0.5) & (torch.arange(4) > 0)  # the first sees itself alone
        h, weights = self.inner(x, x, x, attn_mask=self.mask, key_padding_mask=padding)
        h = h + self.cross(h, x, x)[0]
        return h.sum(1)[:, :2] + weights.sum(1)[:, :2]


def images(shape=(6, 2, 7, 6)):
    return torch.randn(shape, dtype=torch.float64)


def convolutions():
    return nn.Sequential(
        nn.Conv2d(2, 4, 3, stride=2, padding=1),
        nn.BatchNorm2d(4),
        nn.ReLU(inplace=True),
        nn.Conv2d(4, 6, (3, 2), dilation=(1, 2), padding="same", padding_mode="circular", bias=False),
        nn.GroupNorm(2, 6),
        nn.Tanh(),
        nn.Conv2d(6, 6, 2, groups=3),
        nn.Flatten(),
        nn.LazyLinear(3),
    )


def others():
    """Layers without a rule: a transposed convolution, PReLU, a norm of each image, weights with a norm."""
    return nn.Sequential(
        nn.ConvTranspose2d(2, 3, 2),
        nn.PReLU(3),
        nn.InstanceNorm2d(3, affine=True),
        nn.Flatten(),
        nn.utils.parametrizations.weight_norm(nn.Linear(168, 4)),
        nn.Linear(4, 2),
    )


def sequences():
    return nn.Sequential(
        nn.Conv1d(3, 5, 3, padding=1), nn.Tanh(), nn.Flatten(2), nn.LayerNorm((5, 8)), nn.Linear(8, 2)
    )


CASES = {
    "dense": (
        lambda: nn.Sequential(nn.Linear(3, 20), nn.Tanh(), nn.Linear(20, 2)),
        lambda: torch.randn(9, 3),
        [],
    ),
    "convolutions": (convolutions, images, []),
    "sequences": (sequences, lambda: torch.randn(6, 3, 8), []),
    "many rows": (
        lambda: nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Flatten(), nn.Linear(6, 1)),
        lambda: torch.randn(130, 2, 4),
        [],
    ),
    "wide images": (
        lambda: nn.Sequential(nn.Conv2d(2, 3, 3), nn.Flatten(1)),
        lambda: images((4, 2, 4, 3)),
        [],
    ),
    "others": (
        others,
        images,
        [
            "0.weight",
            "0.bias",
            "1.weight",
            "2.weight",
            "2.bias",
            "4.parametrizations.weight.original0",
            "4.parametrizations.weight.original1",
        ],
    ),
    "tied": (Tied, lambda: torch.randint(7, (6, 5)), ["table.weight"]),
    "twice": (Twice, lambda: torch.randn(6, 4, 5), []),
    "transformer": (lambda: Tokens(True), lambda: torch.randint(9, (6, 5)), []),
    "rows on the second axis": (lambda: Tokens(False), lambda: torch.randint(9, (5, 5)), []),
    "bare": (Bare, lambda: torch.randn(6, 3, 4), ["both"]),
    "attention": (
        Attention,
        lambda: torch.randn(5, 4, 6),
        ["cross.in_proj_weight", "cross.in_proj_bias", "cross.out_proj.weight", "cross.out_proj.bias"],
    ),
    "rms norm": (lambda: nn.Sequential(nn.RMSNorm(4), nn.Linear(4, 2)), lambda: torch.randn(5, 3, 4), []),
}


def made(name, double):
    from wideflow.diagnostics.regimes.torch_kernels import TorchKernels

    torch.manual_seed(0)
    make, draw, _ = CASES[name]
    x, module = draw(), make()
    floating = x.is_floating_point()
    with torch.no_grad():
        module(x.float() if floating else x)  # lazy layers, and running statistics
    module = (module.double() if double else module).eval()
    x = x.to(torch.float64 if double else torch.float32) if floating else x
    tensors = dict(module.named_parameters()) | dict(module.named_buffers())
    moving = [name for name, _ in module.named_parameters()]
    return module, x, TorchKernels(torch, module, tensors, moving, x)


def by_hand(module, x, v):
    """Σ_k (J v_k)(J v_k)ᵀ of every parameter, a row of the Jacobian at a time."""
    params = dict(module.named_parameters())
    rows = {name: [] for name in params}
    for row in range(len(x)):
        f = torch.as_tensor(v).to(next(iter(params.values()))) @ module(x[row : row + 1]).reshape(-1)
        for k in range(len(v)):
            grads = torch.autograd.grad(f[k], list(params.values()), retain_graph=True, allow_unused=True)
            for (name, p), g in zip(params.items(), grads, strict=True):
                rows[name].append(torch.zeros_like(p).flatten() if g is None else g.flatten())
    jacobians = {name: torch.stack(g).reshape(len(x), -1).numpy().astype(float) for name, g in rows.items()}
    return {name: J @ J.T for name, J in jacobians.items()}


@pytest.mark.parametrize("double", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_the_same_as_explicit_jacobians(name, double):
    module, x, kernels = made(name, double)
    assert sorted(kernels.generic) == sorted(CASES[name][2])
    outputs = module(x[:1]).numel()
    for s in (outputs, 1):
        groups = projected(outputs, s, seed=0)
        found, exact = kernels.kernels(x, groups, lambda: None), by_hand(module, x, np.concatenate(groups))
        whole = sum(exact.values())
        size = np.abs(whole).max()
        # Sums of up to 10³ terms: rounding of float64 and of float32.
        atol = (1e-10 if double else 1e-5) * size
        assert list(found.parts) == list(exact)
        for key, K in exact.items():
            np.testing.assert_allclose(found.parts[key], K, rtol=0, atol=atol, err_msg=key)
        assert found.terms.shape == (1, len(x), len(x))
        np.testing.assert_allclose(found.terms.sum(0), whole, rtol=0, atol=atol)


@pytest.mark.parametrize("name", ["sequences", "convolutions", "transformer", "wide images"])
def test_every_way_to_the_same_kernel(name, monkeypatch):
    """By pairs of positions, by gradients of weights, and some of them at a time."""
    module, x, kernels = made(name, True)
    v = projected(module(x[:1]).numel(), 2, seed=0)
    whole = kernels.kernels(x, v, lambda: None).terms
    home = "wideflow.diagnostics.regimes.torch_uses"
    for ways in (True, False):
        monkeypatch.setattr(f"{home}.by_positions", lambda *_, ways=ways: ways)
        for size in (2**27, 2000):
            monkeypatch.setattr(f"{home}.BYTES", size)
            again = kernels.kernels(x, v, lambda: None).terms
            np.testing.assert_allclose(again, whole, rtol=0, atol=1e-12 * np.abs(whole).max())


def test_what_cannot_be_mapped_is_taken_row_by_row():
    class Branch(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.tensor([0.5, -0.3], dtype=torch.float64))

        def forward(self, x):
            return x @ self.w if x.sum().item() > 0 else x @ self.w**3

    from wideflow.diagnostics.regimes.torch_kernels import TorchKernels

    module, x = Branch(), torch.randn(4, 2, dtype=torch.float64)
    kernels = TorchKernels(torch, module, dict(module.named_parameters()), ["w"], x)
    found = kernels.kernels(x, [np.ones((1, 1))], lambda: None).parts["w"]
    np.testing.assert_allclose(found, by_hand(module, x, np.ones((1, 1)))["w"], rtol=1e-12)


def test_the_module_is_left_as_it_was():
    module, x, kernels = made("transformer", True)
    before = {name: p.clone() for name, p in module.state_dict().items()}
    kernels.kernels(x, projected(3, 3, 0), lambda: None)
    assert all(torch.equal(p, before[name]) for name, p in module.state_dict().items())
    assert all(p.requires_grad and p.grad is None for p in module.parameters())
    assert not any(part._forward_hooks or "forward" in part.__dict__ for part in module.modules())
    assert torch.backends.mha.get_fastpath_enabled()


def test_a_pass_is_freed_with_its_graph():
    """Hooks in the graph must not keep the pass that keeps the graph: Python does not see such a circle."""
    module = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2))
    tensors = {name: p.detach() for name, p in module.named_parameters()}
    taken: dict = {}
    forward = Pass(torch, module, tensors, torch.ones(5, 3), dict.fromkeys(tensors, 0))
    forward.back(torch.ones(5, 2), lambda name, used: taken.setdefault(name, len(used)))
    assert taken == dict.fromkeys(tensors, 1)
    left = weakref.ref(forward.f)
    del forward
    assert left() is None
