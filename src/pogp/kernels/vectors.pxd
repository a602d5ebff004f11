# Loops of kernels by the vector: four numbers at once where the processor can, and the same numbers
# where it cannot.
cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>
    #if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__gnu_linux__)
    #define WIDE __attribute__((target_clones("avx2", "default")))
    #else
    #define WIDE
    #endif
    WIDE static void pogp_add_squares(double at, double factor, const double *x, double *out,
                                      Py_ssize_t count) {
        for (Py_ssize_t i = 0; i < count; i++) {
            double scaled = (x[i] - at) * factor;
            out[i] += scaled * scaled;
        }
    }
    WIDE static void pogp_decay(const double *x, double *out, Py_ssize_t count) {
        /* exp(-x) to two units of the last digit: 2^k times a series in |r| <= log(2)/2.
           Adding 1.5 * 2^52 rounds to k, which is then in the last bits. The C library has
           no such function that works by the vector. Beyond 230 it is 0, not
           1e-100 or less: products of such numbers are subnormal, and ten times as slow. */
        const double round = 6755399441055744.0;
        for (Py_ssize_t i = 0; i < count; i++) {
            double v = -(x[i] > 230.0 ? 230.0 : x[i]), kept = x[i] > 230.0 ? 0.0 : 1.0;
            double shifted = v * 1.4426950408889634 + round, k = shifted - round;
            double r = (v - k * 6.93147180369123816490e-01) - k * 1.90821492927058770002e-10;
            double r2 = r * r, r4 = r2 * r2, r8 = r4 * r4;
            double a = (1.0 + r) + r2 * (1.0 / 2 + r * (1.0 / 6));
            double b = (1.0 / 24 + r * (1.0 / 120)) + r2 * (1.0 / 720 + r * (1.0 / 5040));
            double c = (1.0 / 40320 + r * (1.0 / 362880))
                     + r2 * (1.0 / 3628800 + r * (1.0 / 39916800));
            double d = 1.0 / 479001600 + r * (1.0 / 6227020800.0);
            double power = a + (r4 * b + r8 * (c + r4 * d));
            uint64_t bits, exponent;
            memcpy(&bits, &power, 8);
            memcpy(&exponent, &shifted, 8);
            bits += exponent << 52;
            memcpy(&power, &bits, 8);
            out[i] = kept * power;
        }
    }
    """
    void pogp_add_squares(double at, double factor, const double* x, double* out,
                          Py_ssize_t count) noexcept nogil
    void pogp_decay(const double* x, double* out, Py_ssize_t count) noexcept nogil
