"""The paper's tables and figures, run anew: what to run is data, running writes records, drawing reads.

Koppel, Pradhan & Rajawat, *Consistent Online Gaussian Process Regression Without the Sample
Complexity Bottleneck* (arXiv 2004.11094). `make reproduce` runs everything and writes the report.
"""
