"""Declarations for `compiled_steps.pyx`; see `arithmetic.py`."""

cimport numpy as cnp

from libc.math cimport fmax, fmin


cdef inline double* at(cnp.ndarray array) except? NULL:
    """Return the address of the first number of an array."""
    if cnp.PyArray_TYPE(array) != cnp.NPY_DOUBLE or not cnp.PyArray_IS_C_CONTIGUOUS(array):
        raise ValueError(f"expected a contiguous array of float64, got {array!r}")
    return <double*> cnp.PyArray_DATA(array)


cdef inline double clip(double value, double lower, double upper) noexcept nogil:
    return fmin(fmax(value, lower), upper)


cpdef scale_input(cnp.ndarray x_, cnp.ndarray centre_, cnp.ndarray inverse_, double far,
                  cnp.ndarray out_)
cpdef combine(cnp.ndarray scores_, cnp.ndarray outer_scores_, cnp.ndarray means_,
              cnp.ndarray variances_, cnp.ndarray level_means_, cnp.ndarray level_variances_,
              cnp.ndarray mean_, cnp.ndarray variance_)
cpdef score(cnp.ndarray target_, cnp.ndarray means_, cnp.ndarray variances_, cnp.ndarray discounts_,
            tuple ends, cnp.ndarray gains_, cnp.ndarray scores_)
cpdef add_discounted(cnp.ndarray scores_, cnp.ndarray discounts_, cnp.ndarray gains_)
cpdef calibrate(cnp.ndarray target_, cnp.ndarray mean_, cnp.ndarray variance_, cnp.ndarray extra_,
                cnp.ndarray shift_, cnp.ndarray tilt_, cnp.ndarray extra_shift_,
                cnp.ndarray centre_, cnp.ndarray spread_, cnp.ndarray tail_scale_,
                cnp.ndarray tail_likelihood_, cnp.ndarray averages_, cnp.ndarray freedoms_,
                cnp.ndarray constants_, long long count, long long averaged, cnp.ndarray record_)
cpdef predict_simple(cnp.ndarray x_, cnp.ndarray mean_, cnp.ndarray last_,
                     cnp.ndarray lags_, cnp.ndarray plain_, cnp.ndarray with_lags_,
                     cnp.ndarray centre_, cnp.ndarray scale_, cnp.ndarray errors_,
                     cnp.ndarray features_, cnp.ndarray means_, cnp.ndarray variances_)
cpdef update_simple(cnp.ndarray y_, cnp.ndarray means_, cnp.ndarray errors_, cnp.ndarray mean_,
                    cnp.ndarray last_, cnp.ndarray lags_, cnp.ndarray centre_,
                    cnp.ndarray scale_, cnp.ndarray targets_, long long count, long long window,
                    double share, double bound, double largest_ratio)
cpdef write_sample(cnp.ndarray x_, cnp.ndarray y_, bint outlier, double weight, extra_, shift_,
                   Py_ssize_t index, cnp.ndarray inputs_, cnp.ndarray rows_)
cpdef within_reach(cnp.ndarray inputs_, cnp.ndarray rows_, long long seen, long long count,
                   cnp.ndarray centre_, cnp.ndarray reach_, cnp.ndarray target_centre_,
                   cnp.ndarray target_reach_)
cpdef least_squares(cnp.ndarray P_, cnp.ndarray w_, cnp.ndarray h_, cnp.ndarray y_,
                    cnp.ndarray gain_, double forgetting, double largest)
