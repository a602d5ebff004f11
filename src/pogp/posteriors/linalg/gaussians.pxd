# Distances between normal distributions for the compiled loops; the twin of pogp/distances.py.
cimport cython
from libc.math cimport expm1, fabs, fmax, log1p, sqrt


@cython.cdivision(True)
cdef inline double hellinger_cost(double mean_shift, double variance, double gain) noexcept nogil:
    """−log BC of N(μ, variance) and N(μ + mean_shift, variance + gain) (mathematics.md §2)."""
    cdef double other = variance + gain
    cdef double s1 = sqrt(variance), s2 = sqrt(other)
    cdef double difference = gain / (s1 + s2)
    return (0.5 * log1p(difference * difference / (2.0 * s1 * s2))
            + mean_shift * mean_shift / (4.0 * (variance + other)))


cdef inline double distance_of_cost(double cost) noexcept nogil:
    """The Hellinger distance of a cost."""
    return sqrt(-expm1(-cost))


cdef inline double tie_width(double lowest, double tie, double near) noexcept nogil:
    """By how much a cost may exceed the lowest one and still count as equal; see `slots.py`."""
    return tie * fabs(lowest) + near * (2.0 * sqrt(fmax(lowest, 0.0)) + near)
