from ..figures import *  # noqa: F403
from ..figures import COLOURS, DASHES, panels, power_law, save  # noqa: F401
