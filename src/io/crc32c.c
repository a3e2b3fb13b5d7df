/* CRC-32C; see crc32c.h. Plain C takes 8 bytes a step with eight tables. The instruction of SSE4.2
 * takes 8 bytes too, but each waits three cycles for the one before, so three stretches of the data
 * run side by side. Their sums are then joined: to put n zero bytes behind a stretch is a linear
 * map of its sum, of which tables are kept for two lengths. */
#include "io/crc32c.h"
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

enum { LONG = 4096, SHORT = 256 }; /* bytes of a stretch */
#define POLYNOMIAL 0x82f63b78u     /* reflected */

static uint32_t table[8][256];
static uint32_t behind_long[4][256], behind_short[4][256]; /* the map, for each byte of a sum */
static pthread_once_t made = PTHREAD_ONCE_INIT;

static void make_map(uint32_t map[4][256], int n_bytes)
{
    for (int k = 0; k < 4; k++)
        for (uint32_t i = 0; i < 256; i++) {
            uint32_t c = i << 8 * k;
            for (int n = 0; n < n_bytes; n++) c = table[0][c & 255] ^ c >> 8;
            map[k][i] = c;
        }
}

static void make_tables(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (int k = 0; k < 8; k++) c = c & 1 ? c >> 1 ^ POLYNOMIAL : c >> 1;
        table[0][i] = c;
    }
    for (int k = 1; k < 8; k++)
        for (int i = 0; i < 256; i++)
            table[k][i] = table[0][table[k - 1][i] & 255] ^ table[k - 1][i] >> 8;
    make_map(behind_long, LONG);
    make_map(behind_short, SHORT);
}

static uint64_t get64(const unsigned char *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v); /* little-endian, as npy.c asserts */
    return v;
}

static uint32_t plain(uint32_t c, const unsigned char *p, size_t n)
{
    for (; n >= 8; n -= 8, p += 8) {
        const uint64_t v = get64(p) ^ c;
        c = 0;
        for (int k = 0; k < 8; k++) c ^= table[7 - k][v >> 8 * k & 255];
    }
    for (; n; n--) c = table[0][(c ^ *p++) & 255] ^ c >> 8;
    return c;
}

uint32_t keel_crc32c_plain(const void *data, size_t n_bytes)
{
    pthread_once(&made, make_tables);
    return ~plain(~0u, data, n_bytes);
}

#if defined(__x86_64__)
#include <nmmintrin.h>

static uint32_t map(uint32_t m[4][256], uint32_t c)
{
    return m[0][c & 255] ^ m[1][c >> 8 & 255] ^ m[2][c >> 16 & 255] ^ m[3][c >> 24];
}

/* Three stretches of `length` bytes. */
__attribute__((target("sse4.2"))) static uint32_t three(uint32_t c, const unsigned char *p,
                                                        size_t length, uint32_t m[4][256])
{
    uint64_t a = c, b = 0, d = 0;
    for (size_t i = 0; i < length; i += 8) {
        a = _mm_crc32_u64(a, get64(p + i));
        b = _mm_crc32_u64(b, get64(p + length + i));
        d = _mm_crc32_u64(d, get64(p + 2 * length + i));
    }
    return map(m, map(m, (uint32_t)a) ^ (uint32_t)b) ^ (uint32_t)d;
}

__attribute__((target("sse4.2"))) static uint32_t by_instruction(uint32_t c, const unsigned char *p,
                                                                 size_t n)
{
    for (; n >= 3 * LONG; n -= 3 * LONG, p += 3 * LONG) c = three(c, p, LONG, behind_long);
    for (; n >= 3 * SHORT; n -= 3 * SHORT, p += 3 * SHORT) c = three(c, p, SHORT, behind_short);
    uint64_t wide = c;
    for (; n >= 8; n -= 8, p += 8) wide = _mm_crc32_u64(wide, get64(p));
    c = (uint32_t)wide;
    for (; n; n--) c = _mm_crc32_u8(c, *p++);
    return c;
}

uint32_t keel_crc32c(const void *data, size_t n_bytes)
{
    pthread_once(&made, make_tables);
    if (!__builtin_cpu_supports("sse4.2")) return ~plain(~0u, data, n_bytes);
    return ~by_instruction(~0u, data, n_bytes);
}
#else
uint32_t keel_crc32c(const void *data, size_t n_bytes)
{
    return keel_crc32c_plain(data, n_bytes);
}
#endif
