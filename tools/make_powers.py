#!/usr/bin/env python3
"""Make src/io/number_powers.inc: the first 128 bits of 5^q for the exponents q that io/number.c
multiplies by. Positive powers are cut off; negative ones are rounded up, so that a product with
their reciprocal is never too small (Lemire 2021, arXiv 2101.11408, section 5)."""
import os

LEAST, MOST = -64, 64


def bits(q):
    if q >= 0:
        power = 5**q
        shift = 128 - power.bit_length()
        return power << shift if shift >= 0 else power >> -shift
    power = 5**-q
    # 2^b / 5^-q has 128 bits
    b = power.bit_length() + 127
    value = (1 << b) // power + 1
    assert value.bit_length() == 128
    return value


here = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(here, "../src/io/number_powers.inc"), "w") as f:
    f.write("/* Made by tools/make_powers.py: the upper and the lower 64 bits of 5^q, normalized. */\n")
    f.write(f"enum {{ POWER_LEAST = {LEAST}, POWER_MOST = {MOST} }};\n")
    f.write("static const uint64_t power_of_five[POWER_MOST - POWER_LEAST + 1][2] = {\n")
    for q in range(LEAST, MOST + 1):
        v = bits(q)
        f.write(f"    {{ 0x{v >> 64:016X}, 0x{v & (1 << 64) - 1:016X} }}, /* {q} */\n")
    f.write("};\n")
