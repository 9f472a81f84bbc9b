"""Fewer sweeps: what moves q before a sweep. `ACCELERATORS` is the list, in the order of use."""

from svmp.inference.acceleration.accelerator import Accelerator as Accelerator
from svmp.inference.acceleration.chain_rotating import ChainRotation
from svmp.inference.acceleration.extrapolation import Extrapolation as Extrapolation
from svmp.inference.acceleration.factor_rotating import FactorRotation
from svmp.inference.acceleration.precisions import PrecisionExtrapolation
from svmp.inference.acceleration.relaxation import OverRelaxation
from svmp.inference.acceleration.scaling import FactorScaling

ACCELERATORS: tuple[type[Accelerator], ...] = (
    ChainRotation,
    FactorRotation,
    FactorScaling,
    Extrapolation,
    PrecisionExtrapolation,
    OverRelaxation,
)
