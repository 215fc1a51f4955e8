"""Figures as files, whole or not there."""

import io
from pathlib import Path
from typing import TYPE_CHECKING

from .._checks import path as check_path
from .folder import SaveError, make, write

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def save(figure: "Figure", path: str | Path) -> Path:
    """Write a figure to a file of the kind that its suffix names (PNG without one); the folder is made. The
    file is replaced in one step, so that a full disk leaves the one that was there."""
    path = check_path("The figure", path)
    path = path if path.suffix else path.with_suffix(".png")
    buffer = io.BytesIO()
    figure.savefig(buffer, format=path.suffix.removeprefix("."))
    try:
        make(path.parent)
        write(path, buffer.getbuffer())
    except OSError as error:
        raise SaveError(error.errno, error.strerror, str(path)) from error
    return path
