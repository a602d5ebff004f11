"""The exceptions of the package that are not Python's own."""


class FormatError(ValueError):
    """A model file that is damaged, truncated, or of a newer schema."""
