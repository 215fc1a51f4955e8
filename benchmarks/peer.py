"""neural-tangents in an environment of its own: it no longer imports beside a current JAX."""

import hashlib
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
HOME = ROOT / ".venv-neural-tangents"
REQUIREMENTS = Path(__file__).parent / "neural_tangents" / "requirements.txt"
NEWEST = (3, 12)  # jaxlib 0.4.25 has no wheels beyond


def python(home: Path = HOME, requirements: Path = REQUIREMENTS) -> Path:
    """The interpreter of the environment, which is made when there is none for these requirements and
    this Python. The stamp is written last: an interrupted installation starts again."""
    interpreter, stamp = home / "bin" / "python", home / "stamp"
    wanted = _stamp(requirements)
    if stamp.exists() and stamp.read_text() == wanted and interpreter.exists():
        return interpreter
    if sys.version_info[:2] > NEWEST:
        has = ".".join(map(str, sys.version_info[:2]))
        raise RuntimeError(
            f"neural-tangents works with JAX 0.4.25 at the latest, which needs Python 3.11 or 3.12; "
            f"this is {has}. Run the benchmarks with an older Python, or without those named ntk."
        )
    print(f"… making {home.name} for neural-tangents (once, some 600 MB)", flush=True)
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(home)], check=True)
    install = [str(interpreter), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*install, "--no-deps", "-r", str(requirements)], check=True)
    stamp.write_text(wanted)
    return interpreter


def _stamp(requirements: Path) -> str:
    return hashlib.sha256(requirements.read_bytes() + sys.version.encode()).hexdigest()
