from pogp.online.steps import GroupStep as GroupStep
from pogp.online.steps import StreamStep as StreamStep
