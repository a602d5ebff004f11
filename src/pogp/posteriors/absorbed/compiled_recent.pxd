# The latest samples, from which new points learn; see compiled_recent.pyx.
from pogp.posteriors.absorbed.compiled_updates cimport AbsorbedUpdates
from pogp.posteriors.linalg.storage cimport Matrix


cdef class AbsorbedRecent(AbsorbedUpdates):
    cdef Matrix _cross
    cdef object _recent, _targets, _their_noises, _arrived, _retained, _row_of, _open, _lesson
    cdef Py_ssize_t rows               # room for so many samples, used in turn
    cdef Py_ssize_t first, held        # where the oldest is, and how many there are
    cdef double* cross                 # (rows, capacity), κ(Z, xᵢ), and room to gather some
    cdef double* recent                # (p, rows), the inputs
    cdef double* targets               # (rows, outputs), without the prior mean
    cdef double* noise_of              # (rows,)
    cdef long long* arrived            # (rows,)
    cdef long long* retained           # (rows,), whether the sample is a point
    cdef long long* row_of             # (capacity,), of the sample that a point was, if it is held
    cdef double* open                  # (rows,), κ(xᵢ, x), and work for it
    cdef double* h                     # (outputs,), what the samples say of x
    cdef double known                  # b, how much that counts

    cdef Py_ssize_t _used(self) noexcept nogil
    cdef Py_ssize_t _row(self, Py_ssize_t age) noexcept nogil
    cdef bint _ask(self, const double* x) noexcept nogil
    cdef void _teach(self, double noise) noexcept nogil
    cdef void _keep(self, const double* x, const double* y, double noise, long long arrival,
                    Py_ssize_t points, bint appended) noexcept nogil
    cdef void _shorten(self, Py_ssize_t most) noexcept nogil
