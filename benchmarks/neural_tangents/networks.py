"""Architectures of neural-tangents from plain values."""

from typing import Any

from neural_tangents import stax

ACTIVATIONS = {
    "relu": stax.Relu,
    "leaky_relu": stax.LeakyRelu,  # alpha: the slope below 0
    "abs": stax.Abs,
    "erf": stax.Erf,
    "gelu": stax.Gelu,
    "sin": stax.Sin,
    "cos": stax.Cos,
    "identity": stax.Identity,
}
READOUTS = {"flatten": stax.Flatten, "gap": stax.GlobalAvgPool}


def kernel_of(case: dict[str, Any]) -> Any:
    """The kernel function of a case: `activation` (with `options`), `depth` (hidden layers), `w_std`,
    `b_std`, `parameterization`. With a `readout` ("flatten" or "gap") the hidden layers are 3×3
    convolutions, SAME padding, on images (N, H, W, C), else dense; `pool_after` layers of them comes a
    2×2 average pooling. In the ntk parametrisation h = w_std W x/√fan_in + b_std b; widths do not
    matter in the limit."""
    scales = {
        "W_std": case.get("w_std", 1.0),
        "b_std": case.get("b_std", 0.0),
        "parameterization": case.get("parameterization", "ntk"),
    }
    activation = ACTIVATIONS[case["activation"]]
    readout = case.get("readout")
    layers: list[Any] = []
    for layer in range(1, case["depth"] + 1):
        layers.append(stax.Conv(1, (3, 3), padding="SAME", **scales) if readout else stax.Dense(1, **scales))
        layers.append(activation(**case.get("options", {})))
        if layer == case.get("pool_after"):
            layers.append(stax.AvgPool((2, 2), strides=(2, 2)))
    if readout:
        layers.append(READOUTS[readout]())
    *_, kernel = stax.serial(*layers, stax.Dense(1, **scales))
    return kernel
