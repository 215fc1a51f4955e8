"""The regime report of PyTorch modules: the same numbers as in JAX, real modules, errors."""

import copy

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from wideflow.diagnostics.regimes.report import regime

torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'wideflow[torch]'")
nn = torch.nn

RNG = np.random.default_rng(0)
X = RNG.normal(size=(10, 3))
Y = np.sin(X[:, :2])


def two_layer():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 20), nn.Tanh(), nn.Linear(20, 2))


def trained(module, steps=20, rate=0.3):
    before = copy.deepcopy(module)
    x, y = (torch.as_tensor(v, dtype=next(module.parameters()).dtype) for v in (X, Y))
    optimiser = torch.optim.SGD(module.parameters(), lr=rate)
    for _ in range(steps):
        optimiser.zero_grad()
        torch.mean((module(x) - y) ** 2).backward()
        optimiser.step()
    return before, module


def in_jax(module):
    return {name: jnp.asarray(p.detach().numpy()) for name, p in module.named_parameters()}


def forward(p, x):
    return jnp.tanh(hidden(p, x)["0"]) @ p["2.weight"].T + p["2.bias"]


def hidden(p, x):
    return {"0": x @ p["0.weight"].T + p["0.bias"]}


@pytest.mark.parametrize("double", [True, False])
def test_the_same_numbers_as_in_jax(double):
    before, after = trained(two_layer().double() if double else two_layer())
    here = regime(before, after, X, y=Y)
    x = X if double else X.astype(np.float32)
    there = regime(forward, in_jax(before), in_jax(after), x, y=Y, features=hidden)
    # float64 up to rounding; float32: eps 6e-8, and differences of 1 % of their terms.
    rel = 1e-10 if double else 1e-5
    assert here.verdict == there.verdict
    one, other = (jax.tree.leaves({k: r.to_dict()[k] for k in _NUMBERS}) for r in (here, there))
    assert len(one) > 20
    np.testing.assert_allclose(one, other, rtol=rel, atol=rel)


_NUMBERS = ("weights", "features", "f0", "ft", "df", "y", "gap", "kernel")


def test_a_convolutional_module_with_norm_and_dropout():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(nn.Conv2d(1, 4, 2), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(0.5))
            self.head = nn.Linear(16, 3)
            self.scale = nn.Parameter(torch.ones(()), requires_grad=False)

        def forward(self, x):
            return self.scale * self.head(self.body(x).flatten(1))

    torch.manual_seed(1)
    images, before = torch.randn(6, 1, 3, 3), Net()
    after = copy.deepcopy(before)
    with pytest.raises(ValueError, match=r"body.1 \(BatchNorm2d\) is in training mode.*eval"):
        regime(before, after, images)
    before.eval(), after.eval()
    with torch.no_grad():
        after.head.weight.mul_(1.5)
        after.body[1].running_mean.add_(0.1)
    report = regime(before, after, images, y=np.arange(6) % 3)
    assert "scale" not in report.moved.weights  # it does not train
    assert list(report.moved.features) == ["body.0", "body.1"]
    assert report.moved.features["body.0"].dh == report.moved.features["body.1"].dh == 0  # buffers are held
    assert report.moved.weights["head.weight"] == pytest.approx(0.5, rel=1e-6)
    assert "buffers moved too" in str(report)


def test_kernels_in_tiles(monkeypatch):
    before, after = trained(two_layer().double())
    whole = regime(before, after, X).moved.kernel
    size = 3 * (3 + 20 + 20 + 20 + 20 + 2)  # numbers per row that enter and leave, three of all that is kept
    monkeypatch.setattr("wideflow.diagnostics.regimes.plan.MEMORY", 4 * size * 8)  # four rows at once
    tiled = regime(before, after, X).moved.kernel
    assert tiled.parts == pytest.approx(whole.parts, rel=1e-12)
    assert tiled.with_change == pytest.approx(whole.with_change, rel=1e-12)


def test_weights_from_before_as_a_dictionary():
    before, after = trained(two_layer())
    one, other = regime(before, after, X), regime(before.state_dict(), after, X)
    assert other.moved.kernel.movement == one.moved.kernel.movement


def test_bad_input():
    before, after = trained(two_layer())
    with pytest.raises(ValueError, match=r"same module.*deepcopy"):
        regime(after, after, X)
    with pytest.raises(ValueError, match=r"0.weight is \(20, 3\) before and \(5, 3\) after"):
        regime(before, nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 2)), X)
    with pytest.raises(ValueError, match=r"takes two torch\.nn.Module"):
        regime(before, 3, X)
    with pytest.raises(ValueError, match="does not fit the module"):
        regime({"w": torch.ones(2)}, after, X)
    with pytest.raises(ValueError, match="x must be finite"):
        regime(before, after, X * np.nan)
    with pytest.raises(ValueError, match="training mode"):
        regime(nn.Sequential(before, nn.Dropout()), nn.Sequential(after, nn.Dropout()), X)
    weights = before.state_dict(), after.state_dict()
    for given in ((*weights, X), (after, *weights, X), (forward, *weights, X)):
        with pytest.raises(ValueError, match="pass the modules themselves"):
            regime(*given)
    with pytest.raises(ValueError, match=r"failed on x of shape \(10, 2\)"):
        regime(before, after, X[:, :2])
    assert "Parametrisation" not in str(regime(before, after, X))  # which a module does not have
    broken = copy.deepcopy(after)
    with torch.no_grad():
        broken[0].weight[0, 0] = float("nan")
    assert regime(before, broken, X).verdict == "unstable"
    with pytest.raises(ValueError, match="before training must be finite"):
        regime(broken, after, X)


def test_without_torch(monkeypatch):
    from wideflow.diagnostics.regimes.torch_model import torch_model

    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    with pytest.raises(ImportError, match=r"wideflow\[torch\]"):
        torch_model(1, 2, X)


def with_norm():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 20), nn.BatchNorm1d(20), nn.Tanh(), nn.Linear(20, 2)).double()


def test_buffers_alone_are_no_movement():
    """Running statistics that moved while no weight did: training at rate 0."""
    before, after = trained(with_norm(), steps=5, rate=0.0)
    report = regime(before.eval(), after.eval(), X, y=Y)
    assert report.verdict == "not decided" and "no parameter moved: only buffers did" in str(report)
    assert report.moved.kernel.movement == 0 and report.moved.df == 0
    assert report.moved.buffers.share == pytest.approx(1)  # all of what f moved with its own buffers
    assert report.to_dict()["buffers"]["names"] == ["1.running_mean", "1.running_var"]


def test_buffers_are_held_at_the_start():
    """By hand: the trained weights with the statistics from before training; of a norm that had seen no
    batch, with those of x at the weights from before."""
    before, after = trained(with_norm(), steps=5)
    first = copy.deepcopy(before)
    report = regime(before.eval(), after.eval(), X)
    x = torch.as_tensor(X)
    h = first[0](x)
    mean, variance = h.mean(0), h.var(0)
    norm = lambda module: (module[0](x) - mean) / (variance + module[1].eps).sqrt()
    f = lambda module: module[3](torch.tanh(norm(module) * module[1].weight + module[1].bias))
    change = (f(after) - f(first)).detach().numpy()
    assert report.moved.df == pytest.approx(np.sqrt(np.mean(change**2)), rel=1e-10)
    seen, later = copy.deepcopy(after), copy.deepcopy(after)
    with torch.no_grad():
        later[1].running_mean.add_(0.3)
        later[3].weight.mul_(1.2)
    mean, variance = seen[1].running_mean, seen[1].running_var
    change = (f(later) - f(seen)).detach().numpy()
    again = regime(seen, later, X).moved
    assert again.df == pytest.approx(np.sqrt(np.mean(change**2)), rel=1e-10)
    assert torch.equal(later[1].running_mean, seen[1].running_mean + 0.3)  # the user's are left alone


def test_rows_that_depend_on_each_other_are_refused():
    module = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4, track_running_stats=False)).eval()
    with pytest.raises(ValueError, match="row by row"):
        regime(module, copy.deepcopy(module), X)


def test_biases_that_start_at_zero_are_measured_against_their_layer():
    before = two_layer().double()
    with torch.no_grad():
        before[0].bias.zero_()
    after = copy.deepcopy(before)
    with torch.no_grad():
        after[0].bias.add_(0.5)
    moved = regime(before, after, X).moved.weights
    size = float(before[0].weight.detach().norm())
    assert moved["0.bias"] == pytest.approx(0.5 * 20**0.5 / size, rel=1e-12)
    assert moved["0.weight"] == moved["2.bias"] == 0
