"""Methods taken through data sets and scored, for `pogp run` and for the experiments."""
