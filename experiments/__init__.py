"""The paper's tables and figures, reproduced: a plan as data, records of the runs, and drawings.

Koppel, Pradhan & Rajawat, *Consistent Online Gaussian Process Regression Without the Sample
Complexity Bottleneck* (arXiv 2004.11094). `make reproduce` runs everything and writes the report.
"""
