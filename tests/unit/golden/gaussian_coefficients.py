#!/usr/bin/env python3
"""Prints every constant of kernels/gaussian/: polynomials by Remez' exchange, the rest to 106 bits.

    python3 tests/unit/golden/gaussian_coefficients.py

Needs mpmath (Debian: python3-mpmath); nothing else here does, and no test runs this.
"""
from mpmath import cos, exp, log, lu_solve, matrix, mp, mpf, pi, sqrt

mp.prec = 300
MARGIN = mpf(2) ** -30  # |f| may pass its bound by a rounding error


def fit(function, weight, bound, degree, rounds=12):
    """Coefficients of the polynomial with the least greatest weighted error over [-bound, bound], and that error."""
    count = degree + 2
    points = [-bound * cos(pi * i / (count - 1)) for i in range(count)]
    grid = [-bound * cos(pi * i / 2000) for i in range(2001)]
    for _ in range(rounds):
        system, values = matrix(count, count), matrix(count, 1)
        for i, x in enumerate(points):
            for power in range(degree + 1):
                system[i, power] = x ** power
            system[i, degree + 1] = (-1) ** i / weight(x)
            values[i] = function(x)
        solution = list(lu_solve(system, values))[:degree + 1]
        errors = [(evaluate(solution, x) - function(x)) * weight(x) for x in grid]
        points = extrema(grid, errors)
        assert len(points) == count, "the exchange lost an extremum"
    return solution, max(abs(e) for e in errors)


def evaluate(coefficients, x):
    value = mpf(0)
    for c in reversed(coefficients):
        value = value * x + c
    return value


def extrema(grid, errors):
    """Where the error is largest within each run of one sign."""
    found, best = [], 0
    for i in range(1, len(grid)):
        if (errors[i] > 0) != (errors[best] > 0):
            found.append(grid[best])
            best = i
        elif abs(errors[i]) > abs(errors[best]):
            best = i
    return found + [grid[best]]


def show(name, coefficients, error):
    print(f"{name}: greatest relative error 2^{float(log(error, 2)):.2f}")
    print("  " + ", ".join(float(c).hex() for c in coefficients))


def show_pair(name, value):
    high = float(value)
    print(f"{name}: {high.hex()} + {float(value - mpf(high)).hex()}")


def main():
    coefficients, error = fit(lambda x: mpf(2) ** x, lambda x: mpf(2) ** -x, mpf("0.5") + MARGIN, 6)
    show("2^f", coefficients, error)

    def quotient(x):
        return mpf(1) / 2 + x / 6 if abs(x) < mpf(2) ** -40 else (exp(x) - 1 - x) / x ** 2

    # Relative to exp(f) an error of q counts f² times; the small summand keeps the weight from vanishing at 0.
    coefficients, error = fit(quotient, lambda x: (x ** 2 + mpf("0.001")) / exp(x), log(mpf(2)) / 4 + MARGIN, 8)
    show("q(f) = (exp(f) - 1 - f) / f^2", coefficients, error)
    step = log(mpf(2)) / 2
    high = mpf(int(step * 2 ** 41)) / 2 ** 41  # 40 bits: products with 13-bit integers are exact
    print(f"ln(2)/2: {float(high).hex()} + {float(step - high).hex()}")
    show_pair("2/ln(2)", 1 / step)
    show_pair("ln(2)", 2 * step)
    show_pair("sqrt(log2(e)/2)", sqrt(1 / (2 * log(mpf(2)))))
    show_pair("sqrt(1/2)", sqrt(mpf(1) / 2))
    show_pair("1/sqrt(2*pi)", 1 / sqrt(2 * pi))
    show_pair("1/sqrt(pi)", 1 / sqrt(pi))


if __name__ == "__main__":
    main()
