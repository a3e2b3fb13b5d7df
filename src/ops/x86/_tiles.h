/* The few operations on tiles that kernels for AMX need: eight registers t of 16 rows of 64 bytes,
 * always used whole.
 *
 * In a file compiled for AMX they are the instructions, written as assembler, because the
 * intrinsics of gcc 12 do not tell the compiler that a tile is loaded from memory that it may still
 * have to write. With KEEL_TILES_EMULATED they are plain C that gives the same bits, so a test runs
 * the same kernels on any processor. */
#ifndef KEEL_OPS_X86_TILES_H
#define KEEL_OPS_X86_TILES_H
#include "device/cpu/cpu.h"
#include <stdint.h>
#include <string.h>

/* What the processor must have. In a test the tiles are plain C, and the rest needs AVX-512. */
#ifdef KEEL_TILES_EMULATED
enum { TILES_NEED = KEEL_CPU_AVX512 };
#else
enum { TILES_NEED = KEEL_CPU_AMX };
#endif

enum { TILE_ROWS = 16, TILE_BYTES = 64, TILE_REDUCED = 32 /* by one product of tiles */ };
enum { TILE_HALVES = TILE_ROWS * TILE_REDUCED };

#ifndef KEEL_TILES_EMULATED

/* Begin and end a call's use of tiles, in the thread that uses them: idle tiles cost clock rate,
 * and their state must be saved. */
static inline void tiles_begin(void)
{
    struct {
        uint8_t palette, start_row, zero[14];
        uint16_t row_bytes[16];
        uint8_t rows[16];
    } all __attribute__((aligned(64))) = { .palette = 1 };
    for (int t = 0; t < 8; t++) {
        all.row_bytes[t] = TILE_BYTES;
        all.rows[t] = TILE_ROWS;
    }
    __asm__ volatile("ldtilecfg %0" ::"m"(all));
}
static inline void tiles_end(void)
{
    __asm__ volatile("tilerelease" ::: "memory");
}

/* t = 16 rows that begin `stride` bytes apart, and back */
#define tile_load(t, p, stride)                                                                    \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #t ::"r"((const void *)(p)),                     \
                     "r"((int64_t)(stride))                                                        \
                     : "memory")
#define tile_store(t, p, stride)                                                                   \
    __asm__ volatile("tilestored %%tmm" #t ", (%0,%1,1)" ::"r"((void *)(p)),                       \
                     "r"((int64_t)(stride))                                                        \
                     : "memory")
#define tile_zero(t) __asm__ volatile("tilezero %%tmm" #t ::)
/* c[i][j] += the sum over k of a[i][2k] b[k][2j] + a[i][2k + 1] b[k][2j + 1] */
#define tile_multiply(c, a, b) __asm__ volatile("tdpbf16ps %%tmm" #b ", %%tmm" #a ", %%tmm" #c ::)

#else
#include <math.h>

/* As Intel documents tdpbf16ps: the even and the odd products of a row are summed apart, from zero,
 * by multiply-adds in order of k; the two sums are added, then the old value; each result is
 * rounded to nearest even, subnormal operands and results are zeros. */
static _Thread_local union {
    uint16_t half[TILE_ROWS][TILE_REDUCED];
    float word[TILE_ROWS][TILE_ROWS];
} tile_register[8];

static inline void tiles_begin(void)
{
}
static inline void tiles_end(void)
{
    memset(tile_register, 0xff, sizeof tile_register); /* NaN: nothing may rely on the contents */
}

/* A double holds the product of two bfloat16 numbers exactly, and rounds its sum with a float32 so
 * finely that rounding once more to float32 gives the result of one multiply-add. */
static inline float tile_rounded(double x)
{
    return fabs(x) < 0x1.ffffffp-127 ? (float)copysign(0, x) : (float)x;
}
static inline float tile_operand(float x)
{
    return fabsf(x) < 0x1p-126f ? copysignf(0, x) : x;
}
static inline float tile_half(uint16_t x)
{
    const uint32_t bits = (uint32_t)x << 16;
    float f;
    memcpy(&f, &bits, sizeof f);
    return tile_operand(f);
}

static inline void tile_load(int t, const void *p, int64_t stride)
{
    for (int i = 0; i < TILE_ROWS; i++)
        memcpy(tile_register[t].half[i], (const char *)p + i * stride, TILE_BYTES);
}
static inline void tile_store(int t, void *p, int64_t stride)
{
    for (int i = 0; i < TILE_ROWS; i++)
        memcpy((char *)p + i * stride, tile_register[t].half[i], TILE_BYTES);
}
static inline void tile_zero(int t)
{
    memset(&tile_register[t], 0, sizeof tile_register[t]);
}
static __attribute__((noinline, unused)) void tile_multiply(int c, int a, int b)
{
    float right[TILE_ROWS][2][TILE_ROWS];
    for (int k = 0; k < TILE_ROWS; k++)
        for (int j = 0; j < TILE_ROWS; j++)
            for (int h = 0; h < 2; h++)
                right[k][h][j] = tile_half(tile_register[b].half[k][2 * j + h]);
    for (int i = 0; i < TILE_ROWS; i++) {
        float sum[2][TILE_ROWS] = { { 0 } };
        for (int k = 0; k < TILE_ROWS; k++)
            for (int h = 0; h < 2; h++) {
                const double left = tile_half(tile_register[a].half[i][2 * k + h]);
                for (int j = 0; j < TILE_ROWS; j++)
                    sum[h][j] = tile_rounded((double)sum[h][j] + left * (double)right[k][h][j]);
            }
        float *const to = tile_register[c].word[i];
        for (int j = 0; j < TILE_ROWS; j++)
            to[j] = tile_rounded((double)tile_operand(to[j]) +
                                 (double)tile_rounded((double)sum[0][j] + (double)sum[1][j]));
    }
}
#endif

#endif
