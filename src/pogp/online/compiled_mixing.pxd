"""What `compiled_steps.pyx` calls of the arithmetic on small arrays; see `mixing.py`."""

cimport numpy as cnp


cdef inline double* at(cnp.ndarray array) except? NULL:
    """Return where an array starts."""
    if cnp.PyArray_TYPE(array) != cnp.NPY_DOUBLE or not cnp.PyArray_IS_C_CONTIGUOUS(array):
        raise ValueError(f"expected a contiguous array of float64, got {array!r}")
    return <double*> cnp.PyArray_DATA(array)


cpdef scale(cnp.ndarray x_, cnp.ndarray centre_, cnp.ndarray inverse_, double far, cnp.ndarray out_)
cpdef correct(cnp.ndarray mean_, cnp.ndarray latent_, cnp.ndarray factor_, double noise,
              double extra, cnp.ndarray product_, cnp.ndarray square_, cnp.ndarray residual_,
              cnp.ndarray narrow_, cnp.ndarray centre_, cnp.ndarray scale_, cnp.ndarray variance_,
              cnp.ndarray corrected_, cnp.ndarray means_, cnp.ndarray variances_)
cpdef take(cnp.ndarray y_, cnp.ndarray centre_, cnp.ndarray scale_, cnp.ndarray mean_,
           cnp.ndarray variance_, cnp.ndarray corrected_, cnp.ndarray product_, cnp.ndarray square_,
           cnp.ndarray residual_, cnp.ndarray unit_, cnp.ndarray narrow_, cnp.ndarray factor_,
           double noise, double extra, double kept, double guard, double least, cnp.ndarray target_,
           cnp.ndarray noises_)
cpdef surprise(cnp.ndarray y_, cnp.ndarray centre_, cnp.ndarray scale_, cnp.ndarray mean_,
               cnp.ndarray variance_)
cpdef follow(cnp.ndarray factor_, cnp.ndarray squares_, cnp.ndarray variance_, double noise,
             double extra, double least)
cpdef combine(cnp.ndarray scores_, cnp.ndarray outer_scores_, cnp.ndarray means_,
              cnp.ndarray variances_, cnp.ndarray level_means_, cnp.ndarray level_variances_,
              cnp.ndarray mean_, cnp.ndarray variance_)
cpdef score(cnp.ndarray target_, cnp.ndarray means_, cnp.ndarray variances_, cnp.ndarray discounts_,
            tuple ends, cnp.ndarray gains_, cnp.ndarray scores_)
cpdef discount(cnp.ndarray scores_, cnp.ndarray discounts_, cnp.ndarray gains_)
cpdef calibrate(cnp.ndarray target_, cnp.ndarray mean_, cnp.ndarray variance_, cnp.ndarray extra_,
                cnp.ndarray shift_, cnp.ndarray tilt_, cnp.ndarray lean_, cnp.ndarray centre_,
                cnp.ndarray size_, cnp.ndarray scale_, cnp.ndarray likelihood_, cnp.ndarray usual_,
                cnp.ndarray freedoms_, cnp.ndarray constants_, long long count, long long lately,
                cnp.ndarray record_)
cpdef foresee(cnp.ndarray x_, cnp.ndarray mean_, cnp.ndarray last_, cnp.ndarray held_,
              cnp.ndarray plain_, cnp.ndarray informed_, cnp.ndarray centre_, cnp.ndarray scale_,
              cnp.ndarray errors_, cnp.ndarray features_, cnp.ndarray means_,
              cnp.ndarray variances_)
cpdef average(cnp.ndarray y_, cnp.ndarray means_, cnp.ndarray errors_, cnp.ndarray mean_,
              cnp.ndarray last_, cnp.ndarray held_, cnp.ndarray centre_, cnp.ndarray scale_,
              cnp.ndarray targets_, long long count, long long window, double counts, double guard,
              double largest)
cpdef keep(cnp.ndarray x_, cnp.ndarray y_, bint odd, double weight, extra_, Py_ssize_t place,
           cnp.ndarray inputs_, cnp.ndarray marked_)
cpdef near(cnp.ndarray inputs_, cnp.ndarray marked_, long long seen, long long count,
           cnp.ndarray centre_, cnp.ndarray reach_, cnp.ndarray target_centre_,
           cnp.ndarray target_reach_)
cpdef least_squares(cnp.ndarray P_, cnp.ndarray w_, cnp.ndarray h_, cnp.ndarray y_,
                    cnp.ndarray gain_, double forgetting, double largest)
