"""Reports: the page and the verdicts on a learned stream; the table and the figure of a run."""
