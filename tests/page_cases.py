"""Clouds, a picture of each kind and a page that has every part, made of seeded numbers."""

import struct
import zlib

import numpy as np

from wideflow.page import parts
from wideflow.page.document import Section
from wideflow.page.player import Cloud, player

SVG = b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 90 30"><path d="M0 0L90 30" stroke="red"/></svg>'


def png(width=3, height=2):
    """A grey PNG, by the file format's own rules."""
    chunk = lambda kind, body: (
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
    )
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = zlib.compress(b"".join(b"\x00" + b"\x80" * width for _ in range(height)))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def cloud(label="a cloud", frames=11, points=40, end=10.0, seed=0):
    """Points that start in one heap and part by their sign."""
    rng = np.random.default_rng(seed)
    a, w = rng.normal(size=(2, points))
    t = np.linspace(0, end, frames)
    grown = (t / end)[:, None]
    return Cloud(label, t, w + 3 * grown * np.sign(a), a * (1 + grown), np.broadcast_to(a, (frames, points)))


def diverged(label="diverged", frames=11, points=40):
    """A cloud that grows, and then is not finite."""
    made = cloud(label, frames, points, seed=1)
    x = made.x * np.exp(3 * made.t)[:, None]
    x[frames // 2 :] = np.nan
    x[-1, 0] = np.inf
    return Cloud(label, made.t, x, made.y, made.colour)


def played(clouds, **options):
    labels = dict(x_label="x", y_label="y", colour_label="colour")
    return player(clouds, **(labels | options))


def sections(clouds):
    """One of every part."""
    wide = [f"column {i}" for i in range(14)]
    return [
        Section("Words", parts.join(parts.paragraph("A `word` in **bold**."), parts.verdict("It learns."))),
        Section("Formula", parts.equation(r"\partial_t\rho = \nabla\cdot(\rho\nabla\Psi)" * 4, "Long.")),
        Section("Lists", parts.bullets(["one", parts.link("https://example.org", "two")])),
        Section("Table", parts.table(wide, [["(1.234 ± 0.012) × 10⁻⁵"] * 14] * 3, "Wide.")),
        Section("Pictures", parts.join(parts.picture(SVG, "a line"), parts.picture(png(2400, 600), "grey"))),
        Section("Player", played(clouds)),
        Section("Fold", parts.fold("More", "Hidden words.", parts.code("long = " + "1 + " * 100))),
    ]
