# Passes over a symmetric matrix (the lower triangle, by columns) that BLAS does not have. On x86-64
# they are compiled twice, for processors with AVX2 and for all.
cdef extern from *:
    """
    #include <string.h>
    typedef double four __attribute__((vector_size(32), aligned(8), may_alias));
    #if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__) && __GNUC__ >= 12
    #define IN_FOURS __attribute__((target_clones("arch=x86-64-v3", "default")))
    #else
    #define IN_FOURS
    #endif

    /* The entry (i, j) of a symmetric matrix, and (j, i), in the products y with x and t with z. */
    static inline void enter(double a, Py_ssize_t i, Py_ssize_t j, const double *x,
                             const double *z, double *y, double *t)
    {
        y[i] += a * x[j], t[i] += a * z[j];
        if (i != j)
            y[j] += a * x[i], t[j] += a * z[i];
    }

    IN_FOURS static void two_products(Py_ssize_t n, const double *restrict a, Py_ssize_t ld,
                                      const double *restrict x, const double *restrict z,
                                      double *restrict y, double *restrict t)
    {
        Py_ssize_t i, j, p, q;
        memset(y, 0, n * sizeof(double));
        memset(t, 0, n * sizeof(double));
        for (j = 0; j < n % 4; j++)
            for (i = j; i < n; i++)
                enter(a[j * ld + i], i, j, x, z, y, t);
        for (; j < n; j += 4) {
            four Y[4] = {{0}}, T[4] = {{0}};
            double at[4], other[4];  /* copies, which no store can change */
            for (q = 0; q < 4; q++) {
                at[q] = x[j + q], other[q] = z[j + q];
                for (p = q; p < 4; p++)
                    enter(a[(j + q) * ld + j + p], j + p, j + q, x, z, y, t);
            }
            for (i = j + 4; i < n; i += 4) {
                four X = *(four *) (x + i), Z = *(four *) (z + i);
                four y_i = *(four *) (y + i), t_i = *(four *) (t + i);
                for (q = 0; q < 4; q++) {
                    four A = *(four *) (a + (j + q) * ld + i);
                    y_i += A * at[q], t_i += A * other[q];
                    Y[q] += A * X, T[q] += A * Z;
                }
                *(four *) (y + i) = y_i, *(four *) (t + i) = t_i;
            }
            for (q = 0; q < 4; q++)
                for (p = 0; p < 4; p++)
                    y[j + q] += Y[q][p], t[j + q] += T[q][p];
        }
    }

    /* A += xzᵀ + zxᵀ, by four columns at a time: dsyr2 goes over the matrix twice. */
    IN_FOURS static void add_pair_of(Py_ssize_t n, double *restrict a, Py_ssize_t ld,
                                     const double *restrict x, const double *restrict z)
    {
        Py_ssize_t i, j, q;
        for (j = 0; j < n % 4; j++)
            for (i = j; i < n; i++)
                a[j * ld + i] += x[j] * z[i] + z[j] * x[i];
        for (; j < n; j += 4) {
            for (q = 0; q < 4; q++)
                for (i = j + q; i < j + 4; i++)
                    a[(j + q) * ld + i] += x[j + q] * z[i] + z[j + q] * x[i];
            for (i = j + 4; i < n; i += 4) {
                four X = *(four *) (x + i), Z = *(four *) (z + i);
                for (q = 0; q < 4; q++)
                    *(four *) (a + (j + q) * ld + i) += Z * x[j + q] + X * z[j + q];
            }
        }
    }
    """
    void two_products(Py_ssize_t n, const double* a, Py_ssize_t ld, const double* x,
                      const double* z, double* y, double* t) noexcept nogil
    void add_pair_of(Py_ssize_t n, double* a, Py_ssize_t ld, const double* x,
                     const double* z) noexcept nogil
