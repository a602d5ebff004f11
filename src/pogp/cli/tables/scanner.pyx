# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Numbers out of lines of text, where every line is as plain as most are.

A decimal number of up to 2⁵³ with a power of ten of up to 22 is one exact multiplication or division
away from its float (Clinger 1990); any other is left to `strtod`, which rounds correctly.
"""

import numpy as np

from libc.stdint cimport uint64_t
from libc.stdlib cimport strtod

cdef enum:
    EXACT = 22
cdef char ZERO = b"0"
cdef uint64_t LARGEST = 1ULL << 53
cdef double[EXACT + 1] TENS
cdef int _i
for _i in range(EXACT + 1):
    TENS[_i] = 10.0 ** _i


cdef inline bint _is_digit(char c) noexcept nogil:
    return b"0" <= c <= b"9"


cdef inline bint _is_special(char c) noexcept nogil:
    """Return whether a character ends a cell or makes it odd; bytes end with a zero."""
    return c == b"\n" or c == b"\r" or c == b'"' or c == 0


cdef const char* _number(const char* at, double* value) noexcept nogil:
    """Read a number; return where it ends, NULL if there is none."""
    cdef const char* begin = at
    cdef char* end
    cdef uint64_t digits = 0
    cdef int count = 0, places = 0, power = 0
    cdef bint negative = at[0] == b"-", below = False
    if at[0] == b"-" or at[0] == b"+":
        at += 1
    while _is_digit(at[0]):
        digits = 10 * digits + <uint64_t> (at[0] - ZERO)
        count += 1
        at += 1
    if at[0] == b".":
        at += 1
        while _is_digit(at[0]):
            digits = 10 * digits + <uint64_t> (at[0] - ZERO)
            count += 1
            places += 1
            at += 1
    if count == 0:
        return NULL
    if at[0] == b"e" or at[0] == b"E":
        at += 1
        below = at[0] == b"-"
        if at[0] == b"-" or at[0] == b"+":
            at += 1
        if not _is_digit(at[0]):
            return NULL
        while _is_digit(at[0]):
            if power < 10000:
                power = 10 * power + (at[0] - ZERO)
            at += 1
    power = (-power if below else power) - places
    if count < 19 and digits <= LARGEST and -EXACT <= power <= EXACT:
        value[0] = digits / TENS[-power] if power < 0 else digits * TENS[power]
        if negative:
            value[0] = -value[0]
        return at
    value[0] = strtod(begin, &end)
    return at if end == at else NULL  # where a locale has commas it ends before


def scan(bytes data, str delimiter, const Py_ssize_t[::1] slots, Py_ssize_t wanted):
    """Return the numbers of each line (n, wanted), and where each line ends; None if any is odd.

    Cell i of a line goes to the column `slots[i]`, and nowhere if that is negative. Odd is a line
    with more or fewer cells than slots, with quotes, or with anything but a plain decimal number
    where one is wanted. So is all that is delimited by what a number may have in it.
    """
    if delimiter in "+-.eE0123456789":
        return None
    cdef Py_ssize_t cells = slots.shape[0], lines = data.count(b"\n") + (not data.endswith(b"\n"))
    cdef const char* begin = data
    cdef const char* stop = begin + len(data)
    cdef const char* at = begin
    cdef char between = ord(delimiter)
    cdef Py_ssize_t line, cell
    values, ends = np.empty((lines, wanted)), np.empty(lines, dtype=np.int64)
    cdef double[:, ::1] value = values
    cdef long long[::1] end = ends
    cdef bint odd = False
    with nogil:
        for line in range(lines):
            for cell in range(cells):
                if slots[cell] >= 0:
                    at = _number(at, &value[line, slots[cell]])
                    if at == NULL:
                        odd = True
                        break
                else:
                    while at[0] != between and not _is_special(at[0]):
                        at += 1
                if cell < cells - 1:
                    odd = at >= stop or at[0] != between
                    at += 1
                else:
                    if at < stop and at[0] == b"\r":
                        at += 1
                    odd = at < stop and at[0] != b"\n"
                    at += at < stop
                if odd:
                    break
            if odd:
                break
            end[line] = at - begin
        odd = odd or at != stop
    return None if odd else (values, ends)
