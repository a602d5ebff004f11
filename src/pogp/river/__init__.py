"""An adapter for River: a sample is a mapping from features to numbers, a batch a frame of them."""

try:
    import river.utils.dataframe  # noqa: F401
except ImportError as error:
    raise ImportError("pogp.river needs River; pip install 'pogp[river]'") from error

from pogp.river.regressor import POGRegressor

__all__ = ["POGRegressor"]
