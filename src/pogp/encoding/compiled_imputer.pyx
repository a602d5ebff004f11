# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""What the imputer learns from a row that has nothing special, compiled."""

cimport numpy as cnp

from libc.math cimport fabs, fmax, sqrt

cnp.import_array()


cdef inline double *at(cnp.ndarray values) noexcept:
    return <double *> cnp.PyArray_DATA(values)


cpdef bint learn(cnp.ndarray row_, cnp.ndarray last_, cnp.ndarray unsure_, cnp.ndarray runs_,
                 cnp.ndarray known_, cnp.ndarray mean_, cnp.ndarray covariance_, double rate,
                 double far, double still, cnp.ndarray new_mean_, cnp.ndarray new_covariance_):
    """Fill the mean and the covariance of values and steps once a row is learned.

    Return False, with nothing of use filled, if anything is special: a column without a value so
    far, a last row that is unsure, or values or steps that are far off, now or in the last row.
    """
    cdef double *row = at(row_)
    cdef double *last = at(last_)
    cdef double *unsure = at(unsure_)
    cdef double *runs = at(runs_)
    cdef double *mean = at(mean_)
    cdef double *covariance = at(covariance_)
    cdef double *away = at(new_mean_)
    cdef double *found = at(new_covariance_)
    cdef cnp.npy_bool *known = <cnp.npy_bool *> cnp.PyArray_DATA(known_)
    cdef Py_ssize_t i, j, p = row_.shape[0], n = 2 * row_.shape[0]
    cdef double deviation, kept = 1.0 - rate
    for i in range(p):
        if not known[i] or unsure[i * p + i] != 0.0:
            return False
    for i in range(n):
        if runs[i] != 0.0:
            return False
        away[i] = (row[i] if i < p else row[i - p] - last[i - p]) - mean[i]
        deviation = sqrt(fmax(covariance[i * n + i], 0.0))
        if (deviation > still * fabs(mean[i if i < p else i - p])
                and fabs(away[i]) > far * sqrt(deviation * deviation)):
            return False
    for i in range(n):
        for j in range(n):
            found[i * n + j] = kept * (covariance[i * n + j] + rate * (away[i] * away[j]))
    for i in range(n):
        away[i] = mean[i] + rate * away[i]
    return True
