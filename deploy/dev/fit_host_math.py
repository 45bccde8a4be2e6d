#!/usr/bin/env python3
"""Fits the polynomials of library/device/fusion_host_math.h: of all polynomials of a degree the one whose largest weighted error is least (the
exchange algorithm of Remez), in 40 digits; prints the coefficients, rounded to the type, and that error before the rounding.

    deploy/dev/fit_host_math.py [exp|log|tanh|erf|large_erf|tail]     # needs python3-mpmath
"""
import struct
import sys

from mpmath import mp, mpf

mp.dps = 40
TINY = mpf(10) ** -9
LN2 = mp.log(2)
MOST_S = (mp.sqrt(2) - 1) / (mp.sqrt(2) + 1)
ERF_MIDDLE, LARGE_CENTER, TAIL_CENTER = mpf("1.0625"), mpf("2.5"), mpf(2)


def minimax(function, weight, low, high, degree):
    """Coefficients of the polynomial p of the degree for which the largest |weight (p - function)| on [low, high] is least, and that."""
    count = degree + 2
    between = lambda part: (low + high) / 2 - (high - low) / 2 * mp.cos(mp.pi * part)
    reference = [between(mpf(i) / (count - 1)) for i in range(count)]
    grid = [(x, function(x), weight(x)) for x in (between(mpf(i) / 1000) for i in range(1001))]
    for _ in range(12):
        matrix, values = mp.matrix(count, count), mp.matrix(count, 1)
        for i, x in enumerate(reference):
            for j in range(degree + 1):
                matrix[i, j] = x**j
            matrix[i, degree + 1] = (-1) ** i / weight(x)
            values[i] = function(x)
        solution = mp.lu_solve(matrix, values)
        coefficients = [solution[j] for j in range(degree + 1)]
        errors = [(x, w * (mp.polyval(coefficients[::-1], x) - f)) for x, f, w in grid]
        extrema = []  # of alternating sign
        for x, error in errors:
            if not extrema or (error > 0) != (extrema[-1][1] > 0):
                extrema.append((x, error))
            elif abs(error) > abs(extrema[-1][1]):
                extrema[-1] = (x, error)
        while len(extrema) > count:
            extrema.pop(0 if abs(extrema[0][1]) < abs(extrema[-1][1]) else -1)
        largest = max(abs(error) for _, error in errors)
        if len(extrema) < count or largest < 1.01 * min(abs(error) for _, error in extrema):
            break
        reference = [x for x, _ in extrema]
    return coefficients, largest


def exp_rest(r):
    return (mp.exp(r) - 1 - r) / r**2 if abs(r) > TINY else mpf(1) / 2 + r / 6


def log_rest(z):
    return 2 * (mp.atanh(mp.sqrt(z)) / mp.sqrt(z) - 1) / z


def tanh_rest(z):
    return (mp.tanh(mp.sqrt(z)) / mp.sqrt(z) - 1) / z


def erf_rest(z):
    return mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1


def tail(u):
    return -mp.log(mp.erfc(u + TAIL_CENTER))


# Name: function, weight of its error, interval, degree by type.
FITS = {
    "exp": (exp_rest, lambda r: r**2 / mp.exp(r) + TINY**2, (-LN2 * 1.001, LN2 * 1.001), {"float": 6, "double": 12}),
    "log": (log_rest, lambda z: z, (TINY, MOST_S**2 * 1.01), {"float": 2, "double": 6}),
    "tanh": (tanh_rest, lambda z: z, (TINY, mpf("0.625") ** 2), {"float": 4, "double": 10}),
    "erf": (erf_rest, lambda z: mpf(1), (TINY**2, ERF_MIDDLE**2), {"float": 6, "double": 13}),
    "large_erf": (lambda u: mp.erf(u + LARGE_CENTER), lambda u: mpf(1), (ERF_MIDDLE - LARGE_CENTER, mpf("3.92") - LARGE_CENTER), {"float": 14}),
    "tail": (tail, lambda u: mp.erfc(u + TAIL_CENTER), (ERF_MIDDLE - TAIL_CENTER, 6 - TAIL_CENTER), {"double": 18}),
}


def main():
    for name in sys.argv[1:] or FITS:
        function, weight, (low, high), degrees = FITS[name]
        for type_name, degree in degrees.items():
            coefficients, error = minimax(function, weight, mpf(low), mpf(high), degree)
            texts = [repr(float(c)) if type_name == "double" else f"{struct.unpack('f', struct.pack('f', float(c)))[0]:.9g}f" for c in coefficients]
            print(f"{name}, {type_name}, error {mp.nstr(error, 3)}: {', '.join(texts)}", flush=True)


if __name__ == "__main__":
    main()
