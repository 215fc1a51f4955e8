"""Every experiment passes, with its error bars small against its tolerance."""

import pytest

from wideflow.experiments.catalogue import EXPERIMENTS
from wideflow.experiments.reproduction import reproduce

# Minutes each, so that `wideflow reproduce --all` runs them and not the tests. What they rest on is tested
# here or in files of their own by smaller cases, and in tests/mean_field to all digits.
LONG = {
    "sgd-tracks-flow",
    "node-order",
    "three-ways",
    "limit-digits",
    "single-neuron-samples",
    "single-neuron-widths",
    "two-gaussians-dynamics",
    "two-gaussians-threshold",
    "two-gaussians-failure",
    "naive-scaling",
    "abc-lattice",
    "lazy-to-mean-field",
    "lazy-threshold",
    "feature-and-lazy",
    "noise-annealing",
    "global-convergence",
    "cost-of-noise",
    "log-sobolev-rate",
    "exact-noise",
    "several-ways",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in EXPERIMENTS if name not in LONG])
def test_experiment_passes(name, tmp_path):
    (result,) = reproduce([name], tmp_path)
    assert result.record.verdict == "PASS", "\n".join(map(str, result.record.checks))
    assert not result.already and (tmp_path / f"{name}.png").stat().st_size > 10_000
    for check in result.record.checks:
        # a check whose error bar is as wide as what it allows would pass by luck
        # (an exact figure may have an error of 0)
        assert 0 <= check.error < (check.high - check.low) / 4
