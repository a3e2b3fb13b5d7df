/* Decimal numbers; see number.h.
 *
 * A number is w * 10^q with a whole number w. There are three ways to its double. If w and 10^|q|
 * are doubles themselves, one product or quotient rounds once (Clinger 1990). Else 128 bits of
 * w * 5^q mostly decide (Lemire 2021, arXiv 2101.11408). What is left goes to strtod: more than 19
 * digits, exponents beyond the table, results beyond the normal doubles. */
#include "io/number.h"
#include "base/c_locale.h"
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "io/number_powers.inc"

enum { DIGITS_MAX = 19 }; /* any whole number of as many digits fits uint64_t */

static bool is_digit(char c)
{
    return (unsigned char)(c - '0') < 10;
}

/* ---- digits -----------------------------------------------------------------------------------
 */

/* How many of eight bytes are digits before the first that is none. Adding 0x46 carries into the
 * top bit beyond '9', and subtracting 0x30 borrows from it below '0'; a borrow goes on only behind
 * a byte that is no digit. */
static inline int digits_of(uint64_t eight)
{
    const uint64_t none =
        ((eight + 0x4646464646464646) | (eight - 0x3030303030303030) | eight) & 0x8080808080808080;
    return none ? __builtin_ctzll(none) / 8 : 8;
}

/* The number that eight digits are, the first in the lowest byte: pairs of digits, then pairs of
 * pairs in one product each. */
static inline uint64_t number_of(uint64_t eight)
{
    const uint64_t mask = 0x000000FF000000FF;
    const uint64_t hundreds = UINT64_C(100) + (UINT64_C(1000000) << 32);
    const uint64_t ones = UINT64_C(1) + (UINT64_C(10000) << 32);
    eight -= 0x3030303030303030;
    eight = eight * 10 + (eight >> 8);
    return ((eight & mask) * hundreds + (eight >> 16 & mask) * ones) >> 32;
}

/* Append the digits at p to *w, modulo 2^64; returns the first byte that is none. The last ones,
 * fewer than eight, are moved up behind zeros: a loop over them would guess their number wrong. */
static inline const char *add_digits(const char *p, const char *end, uint64_t *w)
{
    uint64_t sum = *w;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    static const uint64_t ten[] = { 1, 10, 100, 1000, 10000, 100000, 1000000, 10000000 };
    while (end - p >= 8) {
        uint64_t eight;
        memcpy(&eight, p, 8);
        const int n = digits_of(eight);
        if (n < 8) {
            const uint64_t up = n ? eight << (64 - 8 * n) : 0;
            *w = sum * ten[n] + number_of(up | 0x3030303030303030 >> 8 * n);
            return p + n;
        }
        sum = sum * 100000000 + number_of(eight);
        p += 8;
    }
#else
    (void)end;
#endif
    for (; is_digit(*p); p++) sum = sum * 10 + (uint64_t)(*p - '0');
    *w = sum;
    return p;
}

/* Digits without the zeros that a number begins with. */
static int64_t significant(const char *begin, int64_t digits)
{
    for (; digits && (*begin == '0' || *begin == '.'); begin++) digits -= *begin == '0';
    return digits;
}

/* ---- rounding ---------------------------------------------------------------------------------
 */

/* True if w * 10^q is rounded right by one operation on doubles. */
static bool by_double(double *value, uint64_t w, int64_t q)
{
    static const double ten[] = { 1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                  1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                  1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22 };
    if (w > UINT64_C(1) << 53 || q < -22 || q > 22) return false;
    *value = q < 0 ? (double)w / ten[-q] : (double)w * ten[q];
    return true;
}

/* The same by 128 bits of w * 5^q; false if they do not decide. w > 0. */
static inline bool by_product(double *value, uint64_t w, int64_t q)
{
    typedef unsigned __int128 wide;
    enum { FRACTION = 52, BELOW = 64 - FRACTION - 3 }; /* bits: of a double; below the rounding */
    if (q < POWER_LEAST || q > POWER_MOST) return false;
    const uint64_t *five = power_of_five[q - POWER_LEAST];
    const int zeros = __builtin_clzll(w);
    const wide product = (wide)(w << zeros) * five[0];
    uint64_t high = (uint64_t)(product >> 64), low = (uint64_t)product;
    if ((high & ((UINT64_C(1) << BELOW) - 1)) == (UINT64_C(1) << BELOW) - 1) {
        const uint64_t more = (uint64_t)((wide)(w << zeros) * five[1] >> 64);
        low += more;
        high += low < more;
    }
    if (low == UINT64_MAX) return false; /* the bits that were cut off might carry */
    const int top = (int)(high >> 63);
    const int64_t two = (217706 * q >> 16) + 63 + top - zeros; /* 217706 / 2^16: log2(10) */
    uint64_t bits = high >> (top + BELOW);                     /* 54 of them */
    if (two < -1022 || two > 1022) return false;
    /* Halfway between two doubles, which only small powers reach exactly: to the even one. */
    if (low <= 1 && q >= -4 && q <= 23 && (bits & 3) == 1 && bits << (top + BELOW) == high)
        bits &= ~UINT64_C(1);
    bits = (bits + (bits & 1)) >> 1;
    const int64_t carry = (int64_t)(bits >> (FRACTION + 1)); /* rounded up to a power of two */
    bits = (bits & ((UINT64_C(1) << FRACTION) - 1)) | (uint64_t)(two + 1023 + carry) << FRACTION;
    memcpy(value, &bits, sizeof *value);
    return true;
}

static const double sign[] = { 1, -1 };

/* ---- short numbers ----------------------------------------------------------------------------
 */

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
/* The top bit of each byte that is no digit; other than in digits_of, of all bytes. */
static inline uint64_t no_digits(uint64_t eight)
{
    const uint64_t from0 = eight ^ 0x3030303030303030;
    return (((from0 & 0x7F7F7F7F7F7F7F7F) + 0x7676767676767676) | from0) & 0x8080808080808080;
}

/* At most seven characters, digits and perhaps a point: tables have mostly such numbers. How many
 * digits stand on each side of the point does not decide where the program goes on, since the
 * processor could not guess it. Returns `begin` if this is another number, or none. */
static inline const char *short_number(const char *begin, double *value)
{
    static const double ten[] = { 1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7 };
    uint64_t eight, none;
    memcpy(&eight, begin, 8);
    if (!(none = no_digits(eight))) return begin;
    int n = __builtin_ctzll(none) / 8, fraction = 0; /* digits, and those behind the point */
    const char *stop = begin + n;
    if (*stop == '.') {
        const uint64_t before = (UINT64_C(1) << 8 * n) - 1;
        if (!(none &= none - 1)) return begin;
        stop = begin + __builtin_ctzll(none) / 8;
        eight = (eight & before) | (eight >> 8 & ~before); /* without the point */
        fraction = (int)(stop - begin) - 1 - n;
        n += fraction;
    }
    if (!n || *stop == '.' || *stop == 'e' || *stop == 'E') return begin;
    eight = eight << (64 - 8 * n) | 0x3030303030303030 >> 8 * n;
    *value = (double)number_of(eight) / ten[fraction];
    return stop;
}
#endif

/* ---- long numbers -----------------------------------------------------------------------------
 */

#ifdef __SSE2__
enum { LONG_BYTES = 32 }; /* that long_number reads */

/* A bit for each of 32 bytes that is no digit. */
static inline uint32_t find_no_digits(const char *p)
{
    const __m128i zero = _mm_set1_epi8('0'), ten = _mm_set1_epi8(10);
    uint32_t none = 0;
    for (int i = 0; i < LONG_BYTES; i += 16) {
        const __m128i v = _mm_sub_epi8(_mm_loadu_si128((const void *)(p + i)), zero);
        none |= (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_max_epu8(v, ten), v)) << i;
    }
    return none;
}

/* The number that the last n of the 16 digits before `stop` are. */
static inline uint64_t number_of_last(const char *stop, int n)
{
    static const unsigned char keep[32] = { [16] = 255, 255, 255, 255, 255, 255, 255, 255,
                                            255,        255, 255, 255, 255, 255, 255, 255 };
    const __m128i tens = _mm_set1_epi16(10), hundreds = _mm_set1_epi32(100 + (1 << 16)),
                  thousands = _mm_set1_epi32(10000 + (1 << 16));
    __m128i v = _mm_loadu_si128((const void *)(stop - 16));
    v = _mm_and_si128(_mm_sub_epi8(v, _mm_set1_epi8('0')),
                      _mm_loadu_si128((const void *)(keep + n)));
    const __m128i first = _mm_and_si128(v, _mm_set1_epi16(255));
    v = _mm_add_epi16(_mm_mullo_epi16(first, tens), _mm_srli_epi16(v, 8)); /* of two digits each */
    v = _mm_madd_epi16(v, hundreds);
    v = _mm_madd_epi16(_mm_packs_epi32(v, v), thousands);
    const uint64_t eights = (uint64_t)_mm_cvtsi128_si64(v);
    return (eights & UINT32_MAX) * 100000000 + (eights >> 32);
}

/* A number with a point and 14 digits or more behind it: doubles are written so. The last 16 of
 * these are read at once, and at once all that stands before them. As in short_number, the number
 * of digits decides nothing that the processor would have to guess, not even whether they are a
 * double: those of 16 digits mostly are, those of 17 are not. Returns `begin` if this is another
 * number, or none. */
static inline const char *long_number(const char *begin, double *value)
{
    enum { LEAST = 14 }; /* with one before the point and the point, 16 bytes */
    static const uint64_t ten[] = { UINT64_C(100000000000000), UINT64_C(1000000000000000),
                                    UINT64_C(10000000000000000) };
    uint64_t eight;
    uint32_t none = find_no_digits(begin);
    const uint32_t more = none & (none - 1);
    if (!more) return begin;
    const int whole = __builtin_ctz(none), n = __builtin_ctz(more) - whole - 1;
    const char *const stop = begin + __builtin_ctz(more);
    const int last = n < 16 ? n : 16, first = whole + n - last;
    if (!whole || begin[whole] != '.' || n < LEAST || first > 7) return begin;
    if (*stop == 'e' || *stop == 'E') return begin;
    memcpy(&eight, begin, 8);
    const uint64_t before = (UINT64_C(1) << 8 * whole) - 1;
    eight = (eight & before) | (eight >> 8 & ~before); /* without the point */
    eight = eight << (64 - 8 * first) | 0x3030303030303030 >> 8 * first;
    const uint64_t high = number_of(eight);
    const uint64_t w = high * ten[last - LEAST] + number_of_last(stop, last);
    if (high >= 1000 || !w || !by_product(value, w, -n)) return begin; /* w has no 20 digits */
    return stop;
}
#endif

const char *keel_number_scan(const char *text, const char *end, double *value)
{
    const bool minus = *text == '-', plus = *text == '+';
    const char *const begin = text + (minus | plus);
    uint64_t w = 0;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    if (end - begin >= 8) {
        double v;
        const char *const stop = short_number(begin, &v);
        if (stop != begin) {
            *value = v * sign[minus]; /* no branch: signs are hard to guess */
            return stop;
        }
    }
#endif
#ifdef __SSE2__
    if (end - begin >= LONG_BYTES) {
        double v;
        const char *const stop = long_number(begin, &v);
        if (stop != begin) {
            *value = v * sign[minus];
            return stop;
        }
    }
#endif
    const char *p = begin; /* mostly few digits before the point: a loop is quickest */
    for (int i = 0; i < 3 && is_digit(*p); i++, p++) w = w * 10 + (uint64_t)(*p - '0');
    if (is_digit(*p)) p = add_digits(p, end, &w);
    int64_t digits = p - begin, q = 0;
    if (*p == '.') {
        const char *const fraction = ++p;
        p = add_digits(p, end, &w);
        q = fraction - p;
        digits -= q;
    }
    if (!digits) return text;
    if (*p == 'e' || *p == 'E') {
        const char *e = p + 1 + (p[1] == '-' || p[1] == '+');
        int64_t power = 0;
        if (is_digit(*e)) {
            for (; is_digit(*e); e++)
                if (power < 100000) power = 10 * power + (*e - '0');
            q += p[1] == '-' ? -power : power;
            p = e;
        }
    }
    if (digits <= DIGITS_MAX || significant(begin, digits) <= DIGITS_MAX) {
        double v = 0;
        if (!w || by_double(&v, w, q) || by_product(&v, w, q)) {
            *value = v * sign[minus];
            return p;
        }
    }
    *value = keel_strtod(text, NULL);
    return p;
}
