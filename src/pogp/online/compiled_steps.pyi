from pogp.online.steps import EnsembleStep as EnsembleStep
from pogp.online.steps import GroupStep as GroupStep
