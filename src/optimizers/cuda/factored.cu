/* See device/cuda/move.h. Each sum has the order that keel_device_factored says: a block has a tile
 * or a part of r, whose lanes are its threads; a warp has a row; a thread has a column of some
 * rows. So the bits are those of optimizers/adafactor.c. What does not wait for each other shares a
 * launch, in blocks of its own. */
#ifndef REAL
#include "device/cuda/move.h"

namespace
{
#define RULE         __device__ __forceinline__
#define TIMES(x, y)  times(x, y)
#define REAL_SQRT(x) root(x)
const int THREADS = KEEL_MEASURE_LANES, WARPS = THREADS / GPU_WARP;
const int64_t MOVES_MOST = 1024; /* blocks: each adds up all tiles' sums */
static_assert(KEEL_FACTORED_LANES == GPU_WARP, "a warp adds up a row");

/* All lanes of a block, folded: thread 0 has the result. */
__device__ __forceinline__ double fold(double *lanes, double mine)
{
    const int lane = (int)threadIdx.x;
    lanes[lane] = mine;
    for (int by = THREADS / 2; by > 0; by /= 2) {
        __syncthreads();
        if (lane < by) lanes[lane] += lanes[lane + by];
    }
    return lanes[lane];
}

/* Sums that are made one after another, as the host adds up those of tiles. */
__device__ __forceinline__ double in_order(const double *sums, int64_t n)
{
    double all = 0;
    for (int64_t i = 0; i < n; i++) all += sums[i];
    return all;
}

int64_t blocks_of(int64_t n, int each)
{
    return (n + each - 1) / each;
}

#define REAL_FILE "optimizers/cuda/factored.cu"
#include "ops/real.h"
} // namespace

const char *keel_cuda_factor(cudaStream_t stream, const keel_device_factored *f)
{
    if (f->count == 0) return nullptr;
    return f->real == KEEL_FLOAT64 ? factor_f64(stream, f) : factor_f32(stream, f);
}

#else
#include "optimizers/rules.h"

struct REAL_(weight) {
    REAL_(rule_t) f;
    REAL least, threshold;
    int64_t count, tile, matrices, rows, columns;
    REAL *w;
    const REAL *g;
    REAL *r, *c, *v;
    keel_factored_room at;
    double *w_sums, *step_sums, *r_sums, *column_sums, *mean;
    int64_t of_tiles, of_rows; /* the first blocks that add up rows, and columns */
};

/* ---- squares of w, means of rows, sums of columns over some rows ----------------------------- */

__device__ __forceinline__ void REAL_(decay_tile)(const REAL_(weight) & x, double *lanes)
{
    const int64_t first = (int64_t)blockIdx.x * x.tile;
    const int64_t end = x.count - first < x.tile ? x.count : first + x.tile;
    double squares = 0;
    for (int64_t i = first + threadIdx.x; i < end; i += THREADS) {
        const REAL w = REAL_(decayed)(&x.f, x.w[i]);
        if (x.f.decay != 0) x.w[i] = w;
        squares += times((double)w, (double)w);
    }
    const double sum = fold(lanes, squares);
    if (threadIdx.x == 0) x.w_sums[blockIdx.x] = sum;
}

__device__ __forceinline__ void REAL_(mean_row)(const REAL_(weight) & x, int64_t row)
{
    if (row >= x.matrices * x.rows) return; /* a whole warp */
    const int lane = (int)threadIdx.x % GPU_WARP;
    const REAL *g = x.g + row * x.columns;
    double sum = 0;
    for (int64_t i = lane; i < x.columns; i += GPU_WARP)
        sum += (double)REAL_(factored_square)(&x.f, g[i]);
    sum = warp_fold(sum, gpu_plus());
    if (lane == 0) x.r[row] = REAL_(factored_mean)(&x.f, x.r[row], (REAL)(sum / (double)x.columns));
}

/* i: of [matrices, heights, columns]. */
__device__ __forceinline__ void REAL_(add_column)(const REAL_(weight) & x, int64_t i)
{
    if (i >= x.matrices * x.at.heights * x.columns) return;
    const int64_t column = i % x.columns, part = i / x.columns;
    const int64_t height = part % x.at.heights, matrix = part / x.at.heights;
    const int64_t first = height * KEEL_FACTORED_ROWS;
    const int64_t left = x.rows - first;
    const int n = left < KEEL_FACTORED_ROWS ? (int)left : KEEL_FACTORED_ROWS;
    const REAL *g = x.g + (matrix * x.rows + first) * x.columns + column;
    double sum = 0;
    for (int k = 0; k < n; k++) sum += (double)REAL_(factored_square)(&x.f, g[k * x.columns]);
    x.column_sums[i] = sum;
}

__global__ void __launch_bounds__(THREADS) REAL_(sums_kernel)(const REAL_(weight) x)
{
    SHARED(double, lanes, THREADS);
    const int64_t block = blockIdx.x;
    if (block < x.of_tiles)
        REAL_(decay_tile)(x, lanes);
    else if (block < x.of_rows)
        REAL_(mean_row)(x, (block - x.of_tiles) * WARPS + threadIdx.x / GPU_WARP);
    else
        REAL_(add_column)(x, (block - x.of_rows) * THREADS + threadIdx.x);
}

/* ---- sums of r, means of columns ------------------------------------------------------------- */

__device__ __forceinline__ void REAL_(add_part)(const REAL_(weight) & x, double *lanes)
{
    const int64_t matrix = blockIdx.x / x.at.parts, part = blockIdx.x % x.at.parts;
    const int64_t first = part * x.at.part;
    const int64_t end = x.rows - first < x.at.part ? x.rows : first + x.at.part;
    const REAL *r = x.r + matrix * x.rows;
    double mine = 0;
    for (int64_t i = first + threadIdx.x; i < end; i += THREADS) mine += (double)r[i];
    const double sum = fold(lanes, mine);
    if (threadIdx.x == 0) x.r_sums[blockIdx.x] = sum;
}

__global__ void __launch_bounds__(THREADS) REAL_(columns_kernel)(const REAL_(weight) x)
{
    SHARED(double, lanes, THREADS);
    const int64_t parts = x.matrices * x.at.parts;
    if (blockIdx.x < parts) {
        REAL_(add_part)(x, lanes);
        return;
    }
    const int64_t i = (blockIdx.x - parts) * THREADS + threadIdx.x;
    if (i >= x.matrices * x.columns) return;
    const double *from = x.column_sums + i / x.columns * x.at.heights * x.columns + i % x.columns;
    double sum = 0;
    for (int64_t k = 0; k < x.at.heights; k++) sum += from[k * x.columns];
    x.c[i] = REAL_(factored_mean)(&x.f, x.c[i], (REAL)(sum / (double)x.rows));
}

/* As the host has it, a mean is rounded before anything is divided by it. */
__global__ void __launch_bounds__(THREADS) REAL_(means_kernel)(const REAL_(weight) x)
{
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i < x.matrices)
        x.mean[i] =
            (double)(REAL)(in_order(x.r_sums + i * x.at.parts, x.at.parts) / (double)x.rows);
}

/* ---- v, and the squares of steps ------------------------------------------------------------- */

/* A thread's next element is THREADS further, so it counts rows and columns instead of dividing by
 * their number. */
__global__ void __launch_bounds__(THREADS) REAL_(spread_kernel)(const REAL_(weight) x)
{
    SHARED(double, lanes, THREADS);
    const bool by_rows = x.matrices > 0;
    const int64_t first = (int64_t)blockIdx.x * x.tile, columns = by_rows ? x.columns : 1;
    const int64_t end = x.count - first < x.tile ? x.count : first + x.tile;
    const int down = (int)(THREADS / columns), aside = (int)(THREADS - down * columns);
    int64_t row = first / columns + threadIdx.x / columns, column = threadIdx.x % columns;
    int64_t matrix = by_rows ? row / x.rows : 0;
    double squares = 0;
    for (int64_t i = first + threadIdx.x; i < end; i += THREADS) {
        REAL v;
        if (by_rows) {
            while (row >= (matrix + 1) * x.rows) matrix++;
            v = TIMES(x.r[row] / (REAL)x.mean[matrix], x.c[matrix * columns + column]);
            row += down;
            column += aside;
            if (column >= columns) {
                column -= columns;
                row++;
            }
        } else {
            v = REAL_(factored_mean)(&x.f, x.v[i], REAL_(factored_square)(&x.f, x.g[i]));
        }
        x.v[i] = v;
        const double step = (double)REAL_(factored_step)(&x.f, x.g[i], v);
        squares += times(step, step);
    }
    const double sum = fold(lanes, squares);
    if (threadIdx.x == 0) x.step_sums[blockIdx.x] = sum;
}

/* ---- w --------------------------------------------------------------------------------------- */

__global__ void __launch_bounds__(THREADS) REAL_(move_kernel)(const REAL_(weight) x)
{
    SHARED(REAL, room, 2);
    if (threadIdx.x == 0) {
        const REAL of_w = REAL_(rms)(in_order(x.w_sums, x.at.tiles), x.count);
        const REAL of_step = REAL_(rms)(in_order(x.step_sums, x.at.tiles), x.count);
        room[0] = REAL_(factored_length)(&x.f, of_w, x.least);
        room[1] = REAL_(factored_over)(of_step, x.threshold);
    }
    __syncthreads();
    const REAL length = room[0], over = room[1];
    const int64_t step = (int64_t)gridDim.x * THREADS;
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < x.count; i += step)
        x.w[i] -= TIMES(length, REAL_(factored_step)(&x.f, x.g[i], x.v[i]) / over);
}

REAL_(weight) REAL_(weight_of)(const keel_device_factored *f)
{
    char *const scratch = static_cast<char *>(f->scratch);
    REAL_(weight) x;
    x.f = REAL_(rule_of)(&f->number);
    x.least = (REAL)f->least;
    x.threshold = (REAL)f->threshold;
    x.count = f->count;
    x.tile = f->tile;
    x.matrices = f->matrices;
    x.rows = f->rows;
    x.columns = f->columns;
    x.w = static_cast<REAL *>(f->w);
    x.g = static_cast<const REAL *>(f->g);
    x.r = static_cast<REAL *>(f->r);
    x.c = static_cast<REAL *>(f->c);
    x.v = static_cast<REAL *>(f->v);
    x.at = keel_factored_room_of(f);
    x.w_sums = reinterpret_cast<double *>(scratch + x.at.w);
    x.step_sums = reinterpret_cast<double *>(scratch + x.at.step);
    x.r_sums = reinterpret_cast<double *>(scratch + x.at.r);
    x.column_sums = reinterpret_cast<double *>(scratch + x.at.columns);
    x.mean = reinterpret_cast<double *>(scratch + x.at.mean);
    x.of_tiles = x.at.tiles;
    x.of_rows = x.of_tiles + blocks_of(f->matrices * f->rows, WARPS);
    return x;
}

const char *REAL_(factor)(cudaStream_t stream, const keel_device_factored *f)
{
    const REAL_(weight) x = REAL_(weight_of)(f);
    const int64_t sums = x.of_rows + blocks_of(f->matrices * x.at.heights * f->columns, THREADS);
    const int64_t columns = f->matrices * x.at.parts + blocks_of(f->matrices * f->columns, THREADS);
    const int64_t means = blocks_of(f->matrices, THREADS), all = blocks_of(f->count, THREADS);
    const struct {
        void (*kernel)(const REAL_(weight));
        int64_t blocks;
    } launches[] = {
        { REAL_(sums_kernel), sums },
        { REAL_(columns_kernel), columns },
        { REAL_(means_kernel), means },
        { REAL_(spread_kernel), x.at.tiles },
        { REAL_(move_kernel), gpu_blocks(all, MOVES_MOST) },
    };
    const char *why = nullptr;
    for (int i = 0; i < 5 && !why; i++)
        if (launches[i].blocks > 0)
            why = gpu_launch(launches[i].kernel, dim3((unsigned)launches[i].blocks), dim3(THREADS),
                             0, stream, x);
    return why;
}
#endif
