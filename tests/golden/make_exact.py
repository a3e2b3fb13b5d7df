#!/usr/bin/env python3
"""Make exact.json: values and slopes of functions that are easily written so that they cancel.

Run with mpmath, in this folder. Each is worked out at numbers that are float32, with digits for
what cancels in the plain forms and in the differences of neighbours that tell a slope.

A list of {op, args, x, y, slope}; args as in the cases of an op.
"""
import json
import struct

from mpmath import diff, erfc, mp, mpf, pi, sqrt, tanh

mp.dps = 400


def squareplus(b):
    return lambda x: (x + sqrt(x * x + mpf(b))) / 2


functions = [
    ("gelu", None, lambda x: x * erfc(-x / sqrt(2)) / 2),
    (
        "gelu",
        "approximate",
        lambda x: x * (1 + tanh(sqrt(2 / pi) * (x + mpf("0.044715") * x**3))) / 2,
    ),
    ("squareplus", "b 4", squareplus(4)),
    ("squareplus", "b 1.5", squareplus("1.5")),
    ("squareplus", "b 0", squareplus(0)),
    ("tanh_shrink", None, lambda x: x - tanh(x)),
]
sizes = [1e-18, 1e-9, 1e-6, 1e-4, 0.01, 0.1, 0.3, 0.49, 0.51, 0.75, 1, 1.5, 2, 3, 4]
sizes += [4.9, 5.1, 6, 7, 8, 9.5, 12, 20, 100, 1000, 3e4, 1e6, 1e10, 1e18]
sizes = [struct.unpack("f", struct.pack("f", x))[0] for x in sizes]


def number(x):
    """The nearest double; what is smaller than a double can be is 0."""
    return float(x) if abs(x) > mpf(10) ** -300 else 0.0


def slope(f, x):
    return diff(f, x, h=mpf(10) ** -150 * max(1, abs(x)))


cases = []
for op, args, f in functions:
    xs = [s * x for x in sizes for s in (1, -1)]
    y = [number(f(mpf(x))) for x in xs]
    slopes = [number(slope(f, mpf(x))) for x in xs]
    cases.append(dict(op=op, args=args, x=xs, y=y, slope=slopes))
with open("exact.json", "w") as out:
    out.write("[\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]\n")
