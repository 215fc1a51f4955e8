"""Models of PyTorch that people train."""

from itertools import pairwise

import torch
from torch import nn


def mlp() -> nn.Module:
    """A million parameters."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(784, 800), nn.ReLU(), nn.Linear(800, 500), nn.ReLU(), nn.Linear(500, 10))


def cnn() -> nn.Module:
    """Five convolutions with batch norms, on images (1, 28, 28)."""
    torch.manual_seed(0)
    channels, layers = (1, 32, 64, 64, 128, 128), []
    for i, (one, other) in enumerate(pairwise(channels)):
        layers += [nn.Conv2d(one, other, 3, padding=1), nn.BatchNorm2d(other), nn.ReLU(inplace=True)]
        layers += [nn.MaxPool2d(2)] if i in (1, 3) else []
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels[-1], 10))


class Transformer(nn.Module):
    """Norms first, positions as a bare parameter, the mean over positions last."""

    def __init__(self, depth: int, d: int, heads: int, positions: int, words: int, classes: int) -> None:
        super().__init__()
        self.table, self.positions = nn.Embedding(words, d), nn.Parameter(0.02 * torch.randn(positions, d))
        layer = nn.TransformerEncoderLayer(d, heads, 4 * d, 0.0, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.head = nn.Linear(d, classes)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        return self.head(self.encoder(self.table(words) + self.positions).mean(1))


def transformer(depth: int, d: int, heads: int, positions: int, words: int, classes: int) -> nn.Module:
    torch.manual_seed(0)
    return Transformer(depth, d, heads, positions, words, classes)
