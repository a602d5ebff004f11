"""Benchmarks: frozen, seeded workloads, timed side by side in one process with one BLAS thread.

Machines differ and are noisy, so what is kept is ratios inside one run: the compiled loop against
the naive step, the reference, and the hardware's floor.
"""

import os

# before NumPy loads its BLAS
for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"
