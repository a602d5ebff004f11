"""Figures, tables and the report, drawn from records alone.

A module of figures has `FIGURES`: the name of each file and the function that draws it from the
records. The report asks only for those that its records can give.
"""

try:
    import jinja2  # noqa: F401
    import markdown_it  # noqa: F401
    import matplotlib  # noqa: F401
except ImportError as error:
    raise ImportError(f"{error}: the report needs pip install 'pogp[reproduce]'") from error
