/* Kernels with one fault each: the emulator must find all of them. Those without a fault come
 * close to one. */
#include "bugs.h"
#include "device/cuda/gpu.h"
#include "emulator.h"

namespace
{
enum { N = 64 };

float *floats(int n, bool known)
{
    static const float zeros[4096] = { 0 };
    float *at = static_cast<float *>(emu_allocate(n * (int64_t)sizeof(float), "array"));
    if (known) emu_copy_in(at, zeros, n * (int64_t)sizeof(float));
    return at;
}

template <class... P, class... A>
const char *go(void (*kernel)(P...), unsigned blocks, unsigned threads, A... args)
{
    return gpu_launch(kernel, dim3(blocks), dim3(threads), 0, nullptr, args...);
}

/* ---- bounds -----------------------------------------------------------------------------------
 */

__global__ void writes(float *x, int n)
{
    if ((int)threadIdx.x < n) x[threadIdx.x] = 1;
}

const char *one_too_many()
{
    return go(writes, 1, 64, floats(63, false), 64);
}

__global__ void reads_before(float *y, const float *x)
{
    y[threadIdx.x] = x[(int)threadIdx.x - 1];
}

const char *one_before()
{
    return go(reads_before, 1, 32, floats(32, false), floats(32, true));
}

__global__ void past_shared(float *y)
{
    SHARED(float, part, 32);
    part[threadIdx.x + 1] = 0;
    __syncthreads();
    y[threadIdx.x] = part[threadIdx.x];
}

const char *past_the_shared_array()
{
    return go(past_shared, 1, 32, floats(32, false));
}

const char *a_pointer_of_the_host()
{
    static float host[64];
    return go(writes, 1, 64, host, 64);
}

volatile float got;

const char *the_host_reads_the_device()
{
    float *x = floats(4, true);
    got = x[1];
    return nullptr;
}

__global__ void shifted(float *y, const float *x)
{
    float v[4];
    load4(v, x + 1 + 4 * threadIdx.x);
    y[threadIdx.x] = v[0];
}

const char *a_vector_at_an_odd_place()
{
    return go(shifted, 1, 32, floats(32, false), floats(200, true));
}

/* ---- what nobody has written ------------------------------------------------------------------
 */

__global__ void copies(float *y, const float *x)
{
    y[threadIdx.x] = x[threadIdx.x] + 1;
}

const char *an_array_that_nobody_wrote()
{
    return go(copies, 1, 32, floats(32, false), floats(32, false));
}

__global__ void shared_unwritten(float *y)
{
    SHARED(float, part, 64);
    if (threadIdx.x != 5) part[threadIdx.x] = 1;
    __syncthreads();
    y[threadIdx.x] = part[threadIdx.x];
}

const char *a_shared_word_that_nobody_wrote()
{
    return go(shared_unwritten, 1, 64, floats(64, false));
}

__global__ void shared_of_the_last_block(float *y)
{
    SHARED(float, part, 64);
    if (blockIdx.x == 0) part[threadIdx.x] = 1;
    __syncthreads();
    y[blockIdx.x * 64 + threadIdx.x] = part[threadIdx.x];
}

const char *what_another_block_left()
{
    return go(shared_of_the_last_block, 2, 64, floats(128, false));
}

/* ---- races ------------------------------------------------------------------------------------
 */

__global__ void no_barrier(float *y)
{
    SHARED(float, part, 64);
    part[threadIdx.x] = 1;
    y[threadIdx.x] = part[threadIdx.x ^ 32];
}

const char *a_barrier_left_out()
{
    return go(no_barrier, 1, 64, floats(64, false));
}

/* The fold of gpu.h without its last barrier, twice: results are right wherever warps are slow. */
__global__ void used_again(float *y)
{
    SHARED(float, room, 33);
    for (int turn = 0; turn < 2; turn++) {
        if (threadIdx.x % 32 == 0) room[threadIdx.x / 32] = 1;
        __syncthreads();
        float all = 0;
        for (int w = 0; w < 4; w++) all += room[w];
        y[threadIdx.x] = all;
    }
}

const char *shared_memory_used_again_too_early()
{
    return go(used_again, 1, 128, floats(128, false));
}

__global__ void within_a_warp(float *y, bool waits)
{
    SHARED(float, part, 32);
    part[threadIdx.x] = 1;
    if (waits) __syncwarp();
    y[threadIdx.x] = part[31 - threadIdx.x];
}

const char *a_warp_that_does_not_wait()
{
    return go(within_a_warp, 1, 32, floats(32, false), false);
}

const char *a_warp_that_waits()
{
    return go(within_a_warp, 1, 32, floats(32, false), true);
}

/* A word whole, and then its halves by two lanes, of which the first had written all of it. */
__global__ void half_words(float *y, bool waits)
{
    SHARED(unsigned, words, 16);
    uint16_t *halves = reinterpret_cast<uint16_t *>(words);
    if (threadIdx.x % 2) words[threadIdx.x / 2] = 1;
    if (waits) __syncwarp();
    halves[threadIdx.x] = (uint16_t)threadIdx.x;
    __syncwarp();
    y[threadIdx.x] = halves[31 - threadIdx.x];
}

const char *halves_written_behind_a_wait()
{
    return go(half_words, 1, 32, floats(32, false), true);
}

const char *halves_written_without_a_wait()
{
    return go(half_words, 1, 32, floats(32, false), false);
}

__global__ void all_write(float *y)
{
    if (threadIdx.x == 0) y[blockIdx.x / 2] = 1;
}

const char *two_blocks_write_one_word()
{
    return go(all_write, 4, 32, floats(4, false));
}

__global__ void reads_neighbour(float *y)
{
    const float x = y[(blockIdx.x + 1) % 4];
    if (threadIdx.x == 0) y[blockIdx.x] = x + 1;
}

const char *a_block_reads_what_another_writes()
{
    return go(reads_neighbour, 4, 32, floats(4, true));
}

__global__ void bytes_of_a_word(uint8_t *y)
{
    y[threadIdx.x] = (uint8_t)threadIdx.x;
}

const char *bytes_of_one_word()
{
    return go(bytes_of_a_word, 1, 64, static_cast<uint8_t *>(emu_allocate(64, "bytes")));
}

__global__ void counts(unsigned *n, bool plainly)
{
    atomicAdd(n, 1u);
    if (plainly && threadIdx.x == 7) *n = 0;
}

const char *an_atomic_count()
{
    return go(counts, 3, 64, reinterpret_cast<unsigned *>(floats(1, true)), false);
}

const char *an_atomic_count_and_a_plain_write()
{
    return go(counts, 3, 64, reinterpret_cast<unsigned *>(floats(1, true)), true);
}

/* ---- meetings ---------------------------------------------------------------------------------
 */

__global__ void half_meets(float *y)
{
    y[threadIdx.x] = 1;
    if (threadIdx.x < 32) __syncthreads();
}

const char *a_barrier_for_half_of_the_threads()
{
    return go(half_meets, 1, 64, floats(64, false));
}

__global__ void two_barriers(float *y)
{
    if (threadIdx.x < 32)
        __syncthreads();
    else
        __syncthreads();
    y[threadIdx.x] = 1;
}

const char *two_barriers_of_one_block()
{
    return go(two_barriers, 1, 64, floats(64, false));
}

__global__ void outside(float *y)
{
    if (threadIdx.x < 16) y[threadIdx.x] = __shfl_sync(0xffffu, 1.0f, 20);
}

const char *a_shuffle_from_outside_the_mask()
{
    return go(outside, 1, 32, floats(32, false));
}

__global__ void lanes_missing(float *y)
{
    if (threadIdx.x < 16) y[threadIdx.x] = __shfl_xor_sync(GPU_ALL, 1.0f, 1);
}

const char *lanes_that_do_not_come()
{
    return go(lanes_missing, 1, 32, floats(32, false));
}

__global__ void not_in_mask(float *y)
{
    y[threadIdx.x] = __shfl_xor_sync(0xffffu, 1.0f, 1);
}

const char *a_lane_outside_its_mask()
{
    return go(not_in_mask, 1, 32, floats(32, false));
}

/* ---- launches ---------------------------------------------------------------------------------
 */

const char *too_many_threads()
{
    return go(writes, 1, 2048, floats(64, false), 64);
}

const char *half_a_warp()
{
    return go(writes, 1, 48, floats(64, false), 64);
}

const char *no_blocks()
{
    return go(writes, 0, 64, floats(64, false), 64);
}

__global__ void folds(float *y, const float *x, int n)
{
    SHARED(float, room, 33);
    float sum = 0;
    for (int i = (int)threadIdx.x; i < n; i += 128) sum += x[blockIdx.x * n + i];
    sum = block_fold(sum, room, gpu_plus());
    if (threadIdx.x == 0) y[blockIdx.x] = sum;
}

const char *a_fold_without_a_fault()
{
    return go(folds, 4, 128, floats(4, false), floats(4000, true), 1000);
}
} // namespace

void emu_block_sums(float *out, const float *x, int n)
{
    float *sums = floats(4, false), *from = floats(4 * n, false);
    emu_copy_in(from, x, 4 * n * (int64_t)sizeof(float));
    go(folds, 4, 128, sums, from, n);
    emu_copy_out(out, sums, 4 * sizeof(float));
}

const emu_bug emu_bugs[] = {
    { "a write behind the end", one_too_many,
      "out of bounds: writes 4 bytes of 'array' + 252 of 252", "thread 63 of block 0",
      "x[threadIdx.x] = 1" },
    { "a read before the begin", one_before, "out of bounds: reads", "thread 0",
      "(int)threadIdx.x - 1" },
    { "a write behind a shared array", past_the_shared_array, "out of bounds",
      "'part' + 128 of 128", "part[threadIdx.x + 1]" },
    { "a pointer to the host's memory", a_pointer_of_the_host, "memory of the host", "writes",
      NULL },
    { "the host reads the device", the_host_reads_the_device, "memory of the device, on the host",
      "reads 4 bytes", "got = x[1]" },
    { "a vector at an odd place", a_vector_at_an_odd_place, "misaligned", "'array' + ", NULL },
    { "an array that nobody wrote", an_array_that_nobody_wrote, "that nobody has written",
      "'array' + ", "x[threadIdx.x] + 1" },
    { "a shared word that nobody wrote", a_shared_word_that_nobody_wrote, "that nobody has written",
      "'part' + 20", NULL },
    { "what another block left in shared memory", what_another_block_left,
      "that nobody has written", "block 1", NULL },
    { "a barrier left out", a_barrier_left_out, "'part' + ", NULL, NULL },
    { "shared memory used again too early", shared_memory_used_again_too_early,
      "race: ", "since the last barrier", NULL },
    { "a warp that does not wait", a_warp_that_does_not_wait, "'part' + ", NULL, NULL },
    { "a warp that waits", a_warp_that_waits, NULL, NULL, NULL },
    { "halves of a word, written behind a wait", halves_written_behind_a_wait, NULL, NULL, NULL },
    { "the same without it", halves_written_without_a_wait, "race: writes", NULL, NULL },
    { "two blocks write one word", two_blocks_write_one_word, "race: writes", "another block wrote",
      NULL },
    { "a block reads what another writes", a_block_reads_what_another_writes,
      "race: ", "another block", NULL },
    { "bytes of one word", bytes_of_one_word, NULL, NULL, NULL },
    { "an atomic count", an_atomic_count, NULL, NULL, NULL },
    { "an atomic count and a plain write", an_atomic_count_and_a_plain_write, "race: ", NULL,
      NULL },
    { "a barrier for half of the threads", a_barrier_for_half_of_the_threads,
      "barrier: ", "has ended", "threadIdx.x < 32" },
    { "two barriers of one block", two_barriers_of_one_block, "barrier: ", "waits at bugs.cu",
      NULL },
    { "a shuffle from outside the mask", a_shuffle_from_outside_the_mask,
      "reads lane 20, which is not in the mask 0000ffff", NULL, NULL },
    { "lanes that do not come", lanes_that_do_not_come, "deadlock: ", "lanes of its warp",
      "__shfl_xor_sync(GPU_ALL" },
    { "a lane outside its mask", a_lane_outside_its_mask, "is not in the mask", NULL, NULL },
    { "a fold without a fault", a_fold_without_a_fault, NULL, NULL, NULL },
    { "too many threads", too_many_threads, "32 to 1024 threads", NULL, NULL, true },
    { "half a warp", half_a_warp, "whole warps", NULL, NULL, true },
    { "no blocks", no_blocks, "the grid", NULL, NULL, true },
    { NULL, NULL, NULL, NULL, NULL },
};
