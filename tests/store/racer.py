"""One of several processes that call `evolve` on one folder at the same moment: `racer.py FOLDER ROWS`. It
makes the file $GO.PID when it is ready, begins when there is the file $GO, and prints how it went."""

import os
import sys
import time
from pathlib import Path

import jax
from cases import LONG

import wideflow as wf
from wideflow.store.folder import InUseError

jax.config.update("jax_enable_x64", True)
call = LONG.call(int(sys.argv[2]))
go = os.environ["GO"]
Path(f"{go}.{os.getpid()}").touch()
end = time.monotonic() + 300
while not Path(go).exists() and time.monotonic() < end:
    time.sleep(0.005)
try:
    print(wf.evolve(**call, checkpoint=wf.Checkpoint(sys.argv[1], every=0.0)).status)
except InUseError:
    print("in use")
