/* See double.h. */
#include "double.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Of the device, where it is linked. */
__attribute__((weak)) cuda_libraries *keel_cuda_libraries(keel_device *d, cudaStream_t *stream);
__attribute__((weak)) void keel_cuda_libraries_took(keel_device *d, keel_device_own kind,
                                                    int64_t before);
__attribute__((weak)) int64_t keel_cuda_free_bytes(keel_device *d);
__attribute__((weak)) int keel_cuda_number(const keel_device *d);

namespace
{
int64_t calls, fail_in, live, taken[CUDA_DOUBLE_GPUS];
bool loaded[CUDA_DOUBLE_GPUS];
int lacks;
const char *counted;
/* A call has failed, and the test has not said that it knows. */
thread_local bool broken;
} // namespace

bool double_wrong(const char *function, const char *format, ...)
{
    char text[400];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    emu_fault(nullptr, nullptr, 0, "%s: %s", function, text);
    return false;
}

/* A host that waits asks as often as it has time to, so what is counted there is by chance. */
static bool is_counted(const char *function)
{
    return !counted || (strncmp(function, counted, strlen(counted)) == 0 &&
                        strcmp(function, "ncclCommGetAsyncError") != 0);
}

bool double_begins(const char *function, bool works)
{
    if (!works || !is_counted(function)) return true;
    calls++;
    if (broken && !counted) double_wrong(function, "a call after one that failed");
    if (fail_in == 0 || --fail_in > 0) return true;
    broken = true;
    return false;
}

void double_forgives(void)
{
    broken = false;
}

int64_t double_takes(int device, int64_t bytes)
{
    return CUDA_DOUBLE_CONTEXT + (taken[device] += bytes);
}

cuda_libraries *double_opens(keel_device *d, keel_device_own kind, cudaStream_t *stream)
{
    if (!keel_cuda_libraries || !d) return nullptr;
    cuda_libraries *l = keel_cuda_libraries(d, stream);
    const bool products = kind == KEEL_OWN_PRODUCTS;
    bool *asked = products ? &l->asked_blas : &l->asked_dnn;
    if (*asked) return l;
    *asked = true;
    const int64_t before = keel_cuda_free_bytes(d);
    double_takes(keel_cuda_number(d), products ? CUDA_DOUBLE_CUBLASLT : CUDA_DOUBLE_CUDNN);
    keel_cuda_libraries_took(d, kind, before);
    return l;
}

void double_loads()
{
    bool *here = &loaded[double_device()];
    if (!*here) taken[double_device()] += CUDA_DOUBLE_CODE;
    *here = true;
}

int64_t cuda_double_taken(void)
{
    int64_t sum = 0;
    for (const int64_t of : taken) sum += of;
    return sum;
}

void cuda_double_unloads(void)
{
    for (int i = 0; i < CUDA_DOUBLE_GPUS; i++) {
        if (loaded[i]) taken[i] -= CUDA_DOUBLE_CODE;
        loaded[i] = false;
    }
}

void double_made(int by)
{
    live += by;
}

bool double_lacks(int what)
{
    return lacks & what;
}

bool double_reads(const char *function, const char *what, const void *at, size_t bytes)
{
    const char *why = emu_range(at, bytes, true);
    return why ? double_wrong(function, "%s is read: %s", what, why) : true;
}

bool double_writes(const char *function, const char *what, const void *at, size_t bytes)
{
    const char *why = emu_range(at, bytes, false);
    return why ? double_wrong(function, "%s is written: %s", what, why) : true;
}

bool double_aligned(const char *function, const char *what, const void *at, size_t to)
{
    if (reinterpret_cast<uintptr_t>(at) % to == 0) return true;
    return double_wrong(function, "%s is not aligned to the %zu bytes that were declared", what,
                        to);
}

bool double_apart(const char *function, const char *what, const void *a, size_t a_bytes,
                  const char *other, const void *b, size_t b_bytes)
{
    const uintptr_t x = reinterpret_cast<uintptr_t>(a), y = reinterpret_cast<uintptr_t>(b);
    if (x + a_bytes <= y || y + b_bytes <= x) return true;
    return double_wrong(function, "%s and %s overlap", what, other);
}

bool double_stream(const char *function, cudaStream_t stream)
{
    if (stream == emu_only_stream()) return true;
    if (!emu_knows_stream || !emu_knows_stream(stream))
        return double_wrong(function, "the stream is not that of the call");
    return double_device_of(stream) == double_device()
               ? true
               : double_wrong(function, "the stream is of another GPU than the thread's");
}

bool double_workspace(const char *function, void *at, size_t given, size_t needed)
{
    if (given < needed)
        return double_wrong(function, "a workspace of %zu bytes, of which %zu are needed", given,
                            needed);
    if (needed == 0) return true;
    if (!double_writes(function, "the workspace", at, given) ||
        !double_aligned(function, "the workspace", at, 256))
        return false;
    memset(at, 0xff, given);
    emu_mark(at, given, true, true);
    return true;
}

size_t double_size(double_type t)
{
    return t == DOUBLE_F32 ? 4 : 2;
}

double double_load(const void *at, int64_t i, double_type t)
{
    if (t == DOUBLE_F32) return static_cast<const float *>(at)[i];
    if (t == DOUBLE_F16) return static_cast<const _Float16 *>(at)[i];
    const uint32_t bits = (uint32_t) static_cast<const uint16_t *>(at)[i] << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* The upper bits of a float32, rounded to nearest even at bit `at`. */
static uint32_t rounded(float x, int at)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return bits | 0x400000u;
    const uint32_t half = (1u << (at - 1)) - 1;
    return (bits + half + (bits >> at & 1)) >> at << at;
}

void double_store(void *at, int64_t i, double_type t, double value)
{
    if (t == DOUBLE_F32)
        static_cast<float *>(at)[i] = (float)value;
    else if (t == DOUBLE_F16)
        static_cast<_Float16 *>(at)[i] = (_Float16)(float)value;
    else
        static_cast<uint16_t *>(at)[i] = (uint16_t)(rounded((float)value, 16) >> 16);
}

double double_tf32(double value)
{
    const uint32_t bits = rounded((float)value, 13);
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

void cuda_double_without(int what)
{
    lacks = what;
}

void cuda_double_fail_at(int64_t call)
{
    fail_in = call;
    broken = false;
}

void cuda_double_counts(const char *names)
{
    counted = names;
}

int64_t cuda_double_calls(void)
{
    return calls;
}

int64_t cuda_double_live(void)
{
    return live;
}
