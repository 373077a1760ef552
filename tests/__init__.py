"""The tests. Each process computes in one thread: more would wait for each other's cores."""

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
