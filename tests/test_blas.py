"""BLAS threads: one while a model learns, and afterwards what there was."""

import os
import signal
import subprocess
import sys
import time
from functools import cache

import pytest

from pogp import blas

CODE = """
import numpy as np, pogp
from pogp import blas

def threads():
    return [library.read() for library in blas.libraries()]

def kernel(A, B):
    seen.append(threads())
    return np.exp(-((A[:, None] - B[None]) ** 2).sum(axis=2) / 2)

for library in blas.libraries():
    library.set(3)
X = np.linspace(0, 1, 20)[:, None]
for model in (pogp.POG(kernel, 0.1), pogp.DenseGP(kernel, 0.1)):
    seen = []
    model.learn(X, X[:, 0])
    print(seen[-1], threads())
    for ask in (model.predict, model.covariance, model.sample):
        ask(X)
        print(seen[-1], threads())
try:
    pogp.POG(kernel, 0.1).learn(X, X[:3, 0])
except ValueError:
    print(threads())
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of forking where there are threads
def test_a_process_forked_amid_a_change_does_not_wait_for_it():
    with blas.one_thread._lock:  # as held by a thread that the child does not have
        child = os.fork()
        if child == 0:
            with blas.one_thread:
                os._exit(0)
        for _ in range(500):
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                break
            time.sleep(0.01)
        else:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    assert done
    assert os.waitstatus_to_exitcode(status) == 0


@cache
def threads_of(code=CODE, **variables):
    environment = {name: value for name, value in os.environ.items() if name not in blas.VARIABLES}
    return subprocess.run(
        [sys.executable, "-c", code],
        env=environment | variables,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()


def test_learning_and_predicting_have_one_thread_and_restore_the_others():
    *calls, after = threads_of()
    if after == "[]":
        pytest.skip("no BLAS whose threads can be set")
    ones = "[" + ", ".join("1" for _ in after.split(",")) + "]"
    assert calls == 4 * [f"{ones} {after}"] + 4 * [f"{after} {after}"]


def test_settings_of_the_user_are_kept():
    assert threads_of(OMP_NUM_THREADS="2")[0].endswith("[]")


def test_a_variable_that_was_set_too_late_changes_nothing():
    late = "import os, numpy, scipy.linalg\nos.environ['OMP_NUM_THREADS'] = '1'\n"
    assert threads_of() == threads_of(code=late + CODE)


def test_the_last_to_leave_restores(monkeypatch):
    count = [4]
    library = blas.Library(lambda: count[0], lambda n: count.__setitem__(0, n))
    monkeypatch.setattr(blas, "libraries", lambda: (library,))
    limit = blas.OneThread()
    with limit:
        with limit:
            assert count == [1]
        assert count == [1]
    assert count == [4]
