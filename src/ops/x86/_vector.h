/* Vectors of float32 for kernels of our own: one source for two instruction sets and, with
 * ops/x86/_values.h, for values held in float32 or in bfloat16.
 *
 * The build compiles ops/x86/relu.c twice, with the flags of AVX2 and with those of AVX-512, and
 * this header gives vectors of 8 or 16 lanes under one set of names. A mask says which lanes
 * exist, so that a tail is the same loop. vf floats, vi int32, vm mask; vx_load_some and its kin
 * take float32 or bfloat16 in memory. */
#ifndef KEEL_OPS_X86_VECTOR_H
#define KEEL_OPS_X86_VECTOR_H
#include "base/unroll.h"
#include "device/cpu/cpu.h"
#include "ops/op.h"
#include "tensor/bfloat16.h"
#include <immintrin.h>
#include <string.h>

#define VECTOR_JOIN_(a, b, c) a##b##_##c
#define VECTOR_JOIN(a, b, c)  VECTOR_JOIN_(a, b, c)
#define VECTOR_KERNEL(op)     VECTOR_JOIN(keel_kernel_, op, VECTOR_ISA)
#define VECTOR_TEXT_(x)       #x
#define VECTOR_TEXT(x)        VECTOR_TEXT_(x)
#define VECTOR_NAME           VECTOR_TEXT(VECTOR_ISA)

#ifdef __AVX512F__
#define VECTOR_ISA           avx512
#define VECTOR_LEVEL         KEEL_CPU_AVX512
#define VECTOR_PRIORITY(way) KEEL_PRIORITY_##way##_AVX512
enum { LANES = 16 };
typedef __m512 vf;
typedef __m512i vi;
typedef __mmask16 vm;

static inline vm vm_first(int64_t n) /* the first n lanes; all when n >= LANES */
{
    return n >= LANES ? (vm)0xffff : (vm)((1u << n) - 1);
}
static inline vm vm_and(vm a, vm b)
{
    return a & b;
}
static inline bool vm_any(vm m)
{
    return m != 0;
}
static inline vm vm_load(const uint8_t *bits) /* a bit a lane */
{
    vm m;
    memcpy(&m, bits, sizeof m);
    return m;
}
static inline void vm_store(uint8_t *bits, vm m)
{
    memcpy(bits, &m, sizeof m);
}
static inline vf vf_set(float x)
{
    return _mm512_set1_ps(x);
}
static inline vf vf_zero(void)
{
    return _mm512_setzero_ps();
}
static inline vf vf_load(const float *p)
{
    return _mm512_loadu_ps(p);
}
static inline vf vf_load_some(vm m, const float *p)
{
    return _mm512_maskz_loadu_ps(m, p);
}
static inline void vf_store(float *p, vf x)
{
    _mm512_storeu_ps(p, x);
}
static inline void vf_store_some(vm m, float *p, vf x)
{
    _mm512_mask_storeu_ps(p, m, x);
}
static inline vf vf_add(vf a, vf b)
{
    return _mm512_add_ps(a, b);
}
static inline vf vf_sub(vf a, vf b)
{
    return _mm512_sub_ps(a, b);
}
static inline vf vf_mul(vf a, vf b)
{
    return _mm512_mul_ps(a, b);
}
static inline vf vf_div(vf a, vf b)
{
    return _mm512_div_ps(a, b);
}
static inline vf vf_fma(vf a, vf b, vf c)
{
    return _mm512_fmadd_ps(a, b, c);
} /* a b + c */
static inline vf vf_max(vf a, vf b)
{
    return _mm512_max_ps(a, b);
} /* b if either is NaN */
static inline vf vf_min(vf a, vf b)
{
    return _mm512_min_ps(a, b);
}
static inline vm vf_greater(vf a, vf b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ);
}
static inline vm vf_equal(vf a, vf b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ);
}
static inline vm vf_beats(vf a, vf b) /* a > b, or a is NaN */
{
    return (vm)(_mm512_cmp_ps_mask(a, b, _CMP_GT_OQ) | _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q));
}
static inline vf vf_choose(vm m, vf yes, vf no)
{
    return _mm512_mask_mov_ps(no, m, yes);
}
static inline vf vf_or(vf a, vf b)
{
    return _mm512_or_ps(a, b);
}
static inline vf vf_and(vf a, vf b)
{
    return _mm512_and_ps(a, b);
}
static inline vf vf_scale(vf x, vf n) /* x 2^n */
{
    return _mm512_scalef_ps(x, n);
}
static inline vf vf_ratio(vf a, vf b) /* a / b within a unit in the last place; b from 1 to 2^100 */
{
    const vf r = _mm512_rcp14_ps(b);
    return _mm512_mul_ps(a, _mm512_fmadd_ps(_mm512_fnmadd_ps(b, r, _mm512_set1_ps(1)), r, r));
}
static inline vf vf_sqrt(vf x)
{
    return _mm512_sqrt_ps(x);
}
static inline vf vf_round(vf x)
{
    return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
static inline float vf_sum(vf x)
{
    return _mm512_reduce_add_ps(x);
}
static inline float vf_largest(vf x)
{
    return _mm512_reduce_max_ps(x);
}
static inline vi vi_set(int32_t x)
{
    return _mm512_set1_epi32(x);
}
static inline vi vi_load(const int32_t *p)
{
    return _mm512_loadu_si512(p);
}
static inline void vi_store(void *p, vi x)
{
    _mm512_storeu_si512(p, x);
}
static inline vi vi_add(vi a, vi b)
{
    return _mm512_add_epi32(a, b);
}
static inline vi vi_or(vi a, vi b)
{
    return _mm512_or_si512(a, b);
}
static inline vi vi_xor(vi a, vi b)
{
    return _mm512_xor_si512(a, b);
}
static inline vi vi_right(vi a, int n)
{
    return _mm512_srli_epi32(a, (unsigned)n);
}
static inline vm vi_equal(vi a, vi b)
{
    return _mm512_cmpeq_epi32_mask(a, b);
}
static inline vm vi_greater(vi a, vi b)
{
    return _mm512_cmpgt_epi32_mask(a, b);
} /* signed */
static inline vi vi_choose(vm m, vi yes, vi no)
{
    return _mm512_mask_mov_epi32(no, m, yes);
}
static inline vi vi_multiply_low(vi a, vi b)
{
    return _mm512_mullo_epi32(a, b);
}
static inline vi vi_multiply_high(vi a, vi b) /* unsigned */
{
    const __m512i even = _mm512_srli_epi64(_mm512_mul_epu32(a, b), 32);
    const __m512i odd = _mm512_mul_epu32(_mm512_srli_epi64(a, 32), _mm512_srli_epi64(b, 32));
    return _mm512_mask_mov_epi32(even, 0xaaaa, odd);
}
static inline vi vi_load_bytes(vm m, const uint8_t *p) /* one byte a lane */
{
    return _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(m, p));
}
static inline void vi_store_bytes(vm m, uint8_t *p, vi x)
{
    _mm512_mask_cvtepi32_storeu_epi8(p, m, x);
}
static inline vf vn_load_some(vm m, const keel_bf16 *p) /* bfloat16: see below */
{
    static const int16_t to_upper[32] = { 0, 0, 0, 1, 0, 2,  0, 3,  0, 4,  0, 5,  0, 6,  0, 7,
                                          0, 8, 0, 9, 0, 10, 0, 11, 0, 12, 0, 13, 0, 14, 0, 15 };
    const __m512i words = _mm512_castsi256_si512(_mm256_maskz_loadu_epi16(m, p));
    return _mm512_castsi512_ps(
        _mm512_maskz_permutexvar_epi16(0xaaaaaaaa, _mm512_loadu_si512(to_upper), words));
}
static inline void vn_store_same(vm m, keel_bf16 *p, vf x)
{
    static const int16_t upper[32] = { 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31 };
    const __m512i words =
        _mm512_permutexvar_epi16(_mm512_loadu_si512(upper), _mm512_castps_si512(x));
    _mm256_mask_storeu_epi16(p, m, _mm512_castsi512_si256(words));
}
static inline void vn_store_some(vm m, keel_bf16 *p, vf x)
{
    const __m512i bits = _mm512_castps_si512(x);
    const __mmask16 odd = _mm512_test_epi32_mask(bits, _mm512_set1_epi32(0x10000));
    const __m512i up =
        _mm512_mask_mov_epi32(_mm512_set1_epi32(0x7fff), odd, _mm512_set1_epi32(0x8000));
    const __m512 even = _mm512_castsi512_ps(_mm512_add_epi32(bits, up));
    /* a NaN becomes the quiet one of x */
    vn_store_same(m, p, _mm512_fixupimm_ps(even, x, _mm512_set1_epi32(0x22), 0));
}

#elif defined __AVX2__
#define VECTOR_ISA           avx2
#define VECTOR_LEVEL         KEEL_CPU_AVX2
#define VECTOR_PRIORITY(way) KEEL_PRIORITY_##way##_AVX2
enum { LANES = 8 };
typedef __m256 vf;
typedef __m256i vi;
typedef __m256i vm; /* all ones or all zeros in each lane */

static inline vm vm_first(int64_t n)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n > LANES ? LANES : (int)n),
                              _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
static inline vm vm_and(vm a, vm b)
{
    return _mm256_and_si256(a, b);
}
static inline bool vm_any(vm m)
{
    return !_mm256_testz_si256(m, m);
}
static inline vm vm_load(const uint8_t *bits) /* a bit a lane */
{
    const __m256i each = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    return _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32(*bits), each), each);
}
static inline void vm_store(uint8_t *bits, vm m)
{
    *bits = (uint8_t)_mm256_movemask_ps(_mm256_castsi256_ps(m));
}
static inline vf vf_set(float x)
{
    return _mm256_set1_ps(x);
}
static inline vf vf_zero(void)
{
    return _mm256_setzero_ps();
}
static inline vf vf_load(const float *p)
{
    return _mm256_loadu_ps(p);
}
/* Whether the compiler knows that every lane counts, as in the loop of VECTOR_EACH. */
static inline bool vm_known(vm m)
{
    const __v8si v = (__v8si)m;
    const int every = v[0] & v[1] & v[2] & v[3] & v[4] & v[5] & v[6] & v[7];
    return __builtin_constant_p(every) && every;
}
static inline vf vf_load_some(vm m, const float *p)
{
    return vm_known(m) ? _mm256_loadu_ps(p) : _mm256_maskload_ps(p, m);
}
static inline void vf_store(float *p, vf x)
{
    _mm256_storeu_ps(p, x);
}
/* AMD's processors take about 16 cycles for a store with a mask, and one for a plain store. */
static inline void vf_store_some(vm m, float *p, vf x)
{
    if (vm_known(m) || _mm256_movemask_ps(_mm256_castsi256_ps(m)) == 0xff)
        _mm256_storeu_ps(p, x);
    else
        _mm256_maskstore_ps(p, m, x);
}
static inline vf vf_add(vf a, vf b)
{
    return _mm256_add_ps(a, b);
}
static inline vf vf_sub(vf a, vf b)
{
    return _mm256_sub_ps(a, b);
}
static inline vf vf_mul(vf a, vf b)
{
    return _mm256_mul_ps(a, b);
}
static inline vf vf_div(vf a, vf b)
{
    return _mm256_div_ps(a, b);
}
static inline vf vf_fma(vf a, vf b, vf c)
{
    return _mm256_fmadd_ps(a, b, c);
}
static inline vf vf_max(vf a, vf b)
{
    return _mm256_max_ps(a, b);
}
static inline vf vf_min(vf a, vf b)
{
    return _mm256_min_ps(a, b);
}
static inline vm vf_greater(vf a, vf b)
{
    return _mm256_castps_si256(_mm256_cmp_ps(a, b, _CMP_GT_OQ));
}
static inline vm vf_equal(vf a, vf b)
{
    return _mm256_castps_si256(_mm256_cmp_ps(a, b, _CMP_EQ_OQ));
}
static inline vm vf_beats(vf a, vf b)
{
    return _mm256_castps_si256(
        _mm256_or_ps(_mm256_cmp_ps(a, b, _CMP_GT_OQ), _mm256_cmp_ps(a, a, _CMP_UNORD_Q)));
}
static inline vf vf_choose(vm m, vf yes, vf no)
{
    return _mm256_blendv_ps(no, yes, _mm256_castsi256_ps(m));
}
static inline vf vf_or(vf a, vf b)
{
    return _mm256_or_ps(a, b);
}
static inline vf vf_and(vf a, vf b)
{
    return _mm256_and_ps(a, b);
}
static inline vf vf_scale(vf x, vf n) /* x 2^n for n up to 127; 0 for n below -126 */
{
    const __m256i power = _mm256_cvtps_epi32(_mm256_max_ps(_mm256_set1_ps(-127), n));
    const __m256i bits = _mm256_slli_epi32(_mm256_add_epi32(power, _mm256_set1_epi32(127)), 23);
    return _mm256_mul_ps(x, _mm256_castsi256_ps(bits));
}
static inline vf vf_ratio(vf a, vf b) /* a / b */
{
    return _mm256_div_ps(a, b);
}
static inline vf vf_sqrt(vf x)
{
    return _mm256_sqrt_ps(x);
}
static inline vf vf_round(vf x)
{
    return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
static inline float vf_sum(vf x)
{
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}
static inline float vf_largest(vf x)
{
    __m128 s = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    s = _mm_max_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_max_ss(s, _mm_movehdup_ps(s)));
}
static inline vi vi_set(int32_t x)
{
    return _mm256_set1_epi32(x);
}
static inline vi vi_load(const int32_t *p)
{
    return _mm256_loadu_si256((const __m256i *)p);
}
static inline void vi_store(void *p, vi x)
{
    _mm256_storeu_si256(p, x);
}
static inline vi vi_add(vi a, vi b)
{
    return _mm256_add_epi32(a, b);
}
static inline vi vi_or(vi a, vi b)
{
    return _mm256_or_si256(a, b);
}
static inline vi vi_xor(vi a, vi b)
{
    return _mm256_xor_si256(a, b);
}
static inline vi vi_right(vi a, int n)
{
    return _mm256_srli_epi32(a, n);
}
static inline vm vi_equal(vi a, vi b)
{
    return _mm256_cmpeq_epi32(a, b);
}
static inline vm vi_greater(vi a, vi b)
{
    return _mm256_cmpgt_epi32(a, b);
}
static inline vi vi_choose(vm m, vi yes, vi no)
{
    return _mm256_blendv_epi8(no, yes, m);
}
static inline vi vi_multiply_low(vi a, vi b)
{
    return _mm256_mullo_epi32(a, b);
}
static inline vi vi_multiply_high(vi a, vi b)
{
    const __m256i even = _mm256_srli_epi64(_mm256_mul_epu32(a, b), 32);
    const __m256i odd = _mm256_mul_epu32(_mm256_srli_epi64(a, 32), _mm256_srli_epi64(b, 32));
    return _mm256_blend_epi32(even, odd, 0xaa);
}
static inline int vm_count(vm m)
{
    return __builtin_popcount((unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(m)));
}
static inline vi vi_load_bytes(vm m, const uint8_t *p)
{
    uint8_t byte[16] = { 0 };
    const int n = vm_count(m);
    if (n == LANES) return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)p));
    memcpy(byte, p, (size_t)n);
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)byte));
}
static inline void vi_store_bytes(vm m, uint8_t *p, vi x)
{
    uint8_t byte[16];
    const __m128i words =
        _mm_packus_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
    _mm_storeu_si128((__m128i *)byte, _mm_packus_epi16(words, words));
    memcpy(p, byte, (size_t)vm_count(m));
}
static inline bool vm_all(vm m) /* of first lanes; known where VECTOR_EACH knows it */
{
    return ((__v8si)m)[LANES - 1] != 0;
}
static inline vf vn_load_some(vm m, const keel_bf16 *p)
{
    keel_bf16 some[LANES] = { 0 };
    if (!vm_all(m)) p = memcpy(some, p, (size_t)vm_count(m) * sizeof *p);
    const __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
}
static inline void vn_store_same(vm m, keel_bf16 *p, vf x)
{
    keel_bf16 some[LANES];
    const __m256i upper =
        _mm256_setr_epi8(2, 3, 6, 7, 10, 11, 14, 15, -1, -1, -1, -1, -1, -1, -1, -1, 2, 3, 6, 7, 10,
                         11, 14, 15, -1, -1, -1, -1, -1, -1, -1, -1);
    const __m256i words = _mm256_shuffle_epi8(_mm256_castps_si256(x), upper);
    const __m128i close = _mm256_castsi256_si128(_mm256_permute4x64_epi64(words, 0x08));
    _mm_storeu_si128((__m128i *)(vm_all(m) ? p : some), close);
    if (!vm_all(m)) memcpy(p, some, (size_t)vm_count(m) * sizeof *p);
}
static inline void vn_store_some(vm m, keel_bf16 *p, vf x)
{
    const __m256i bits = _mm256_castps_si256(x);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i up = _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff));
    const __m256 even = _mm256_castsi256_ps(_mm256_add_epi32(bits, up));
    vn_store_same(m, p, _mm256_or_ps(even, _mm256_cmp_ps(x, x, _CMP_UNORD_Q)));
}
#else
#error "compile it with the flags of AVX2 or AVX-512: cmake/flags.cmake"
#endif

/* Keeps a product from becoming part of a multiply-add, where the bits are those of somebody who
 * writes the product: the rule of an optimizer, or an op by itself. */
static inline vf vf_rounded(vf x)
{
#ifdef __AVX512F__
    __asm__("" : "+v"(x));
#else
    __asm__("" : "+x"(x));
#endif
    return x;
}

/* Values in memory, float32 or bfloat16 by the type of the pointer p. bfloat16 is rounded as
 * keel_bf16_round does, bit for bit but for which NaN a NaN becomes. Same: x is a value that was
 * loaded, or 0; there is nothing to round. */
#define vx_load_some(m, p) _Generic(*(p), float : vf_load_some, keel_bf16 : vn_load_some)((m), (p))
#define vx_store_some(m, p, x)                                                                     \
    _Generic(*(p), float : vf_store_some, keel_bf16 : vn_store_some)((m), (p), (x))
#define vx_store_same(m, p, x)                                                                     \
    _Generic(*(p), float : vf_store_some, keel_bf16 : vn_store_same)((m), (p), (x))

/* n values as float32: themselves, or a copy of bfloat16 ones in `room`. */
#define vx_floats(x, room, n)                                                                      \
    _Generic(*(x), float : vf_floats, keel_bf16 : vn_floats)((x), (room), (n))
static inline const float *vf_floats(const float *x, float *room, int64_t n)
{
    (void)room, (void)n;
    return x;
}
static inline const float *vn_floats(const keel_bf16 *x, float *room, int64_t n)
{
    for (int64_t i = 0; i < n; i += LANES) {
        const vm m = vm_first(n - i);
        vf_store_some(m, room + i, vn_load_some(m, x + i));
    }
    return room;
}

/* The first test of every prepare here: float32. */
static inline keel_status vector_prepare(keel_prepare *p)
{
    if (p->node->real != KEEL_FLOAT32) return KEEL_EUNSUP;
    p->scratch = 0;
    p->plan = NULL;
    return KEEL_OK;
}

/* The kernel of op `stem` that runs both passes, for values held in float32 and in bfloat16, by
 * forward_f32 and so on: see ops/x86/_values.h. The second one has weights, too. */
#define VECTOR_BOTH(stem, ready)                                                                   \
    KEEL_USES_OP(stem);                                                                            \
    const keel_kernel VECTOR_KERNEL(stem) = {                                                      \
        VECTOR_HEAD(stem, ready),                                                                  \
        .run = { [KEEL_FORWARD] = forward_f32, [KEEL_BACKWARD] = backward_f32 },                   \
        .narrow = { [KEEL_FORWARD] = forward_bf16, [KEEL_BACKWARD] = backward_bf16 },              \
    }
#define VECTOR_BOTH_WEIGHTS(stem, ready)                                                           \
    KEEL_USES_OP(stem);                                                                            \
    const keel_kernel VECTOR_KERNEL(stem) = {                                                      \
        VECTOR_HEAD(stem, ready),                                                                  \
        .run = { [KEEL_FORWARD] = forward_f32,                                                     \
                 [KEEL_BACKWARD] = backward_f32,                                                   \
                 [KEEL_WEIGHTS] = weights_f32 },                                                   \
        .narrow = { [KEEL_FORWARD] = forward_bf16,                                                 \
                    [KEEL_BACKWARD] = backward_bf16,                                               \
                    [KEEL_WEIGHTS] = weights_bf16 },                                               \
    }
#define VECTOR_HEAD(stem, ready)                                                                   \
    .op = &keel_op_##stem, .name = VECTOR_NAME, .needs = VECTOR_LEVEL,                             \
    .priority = VECTOR_PRIORITY(VECTOR), .prepare = ready

/* Run `body` for i = 0, LANES, ... < n with the mask m of the lanes below n. */
#define VECTOR_EACH(i, n, m, ...)                                                                  \
    do {                                                                                           \
        int64_t i = 0;                                                                             \
        for (const vm m = vm_first(LANES); i + LANES <= (n); i += LANES) __VA_ARGS__;              \
        if (i < (n)) {                                                                             \
            const vm m = vm_first((n)-i);                                                          \
            __VA_ARGS__;                                                                           \
        }                                                                                          \
    } while (0)

/* to[i] = from[i], or where the call adds to[i] += from[i], for i < n; each float or keel_bf16. */
#define VECTOR_MOVE(to, from, n, adds)                                                             \
    do {                                                                                           \
        if (adds)                                                                                  \
            VECTOR_EACH(e, n, m, {                                                                 \
                const vf sum = vf_add(vx_load_some(m, (to) + e), vx_load_some(m, (from) + e));     \
                vx_store_some(m, (to) + e, sum);                                                   \
            });                                                                                    \
        else if (sizeof *(to) == sizeof *(from))                                                   \
            memcpy((to), (from), (size_t)(n) * sizeof *(to));                                      \
        else                                                                                       \
            VECTOR_EACH(e, n, m, vx_store_some(m, (to) + e, vx_load_some(m, (from) + e)));         \
    } while (0)

#endif
