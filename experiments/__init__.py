"""The paper's tables and figures, run anew: a plan as data, records of the runs, drawings of them.

Koppel, Pradhan & Rajawat, *Consistent Online Gaussian Process Regression Without the Sample
Complexity Bottleneck* (arXiv 2004.11094). `make reproduce` runs everything and writes the report.
"""
