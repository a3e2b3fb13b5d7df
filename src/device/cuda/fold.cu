/* See fold.h. Additions are in the order of the tree, and the bits are those of the host: products
 * are rounded before they are added.
 *
 * A block has 32 numbers of a record, or the two of 32 channels. The rows are cut into pieces that
 * are whole nodes of the tree, of at most 16 rows. The block's warps fold a piece each; then the
 * first warp pushes the nodes of these pieces on the stack, and all go on to the next pieces. Of
 * 256 rows a thread so waits for 48 others, and not for all.
 *
 *     rows       | 0 .. 15 | 16 .. 31 | ...                a warp each
 *     stack      |   node 0, node 1 closes it, ...  |      the first warp */
#include "device/cuda/fold.h"

namespace
{
const int WARPS = 8, THREADS = WARPS * GPU_WARP;
const int PIECE_ROWS = 16, PIECE_DEPTH = 5; /* PIECE_DEPTH: nodes of a piece that wait for others */
const int AT_ONCE = 8;                      /* rows of a piece that are loaded together */
const int NEAR = 8;                         /* nodes of the stack that are in shared memory */

struct pushes {
    double *stack;
    const double *leaf;
    int64_t length, places;
    int rows, depth, pieces;
    int lowest; /* nodes of the stack that stay as they are */
    bool upward;
    int32_t held[KEEL_FOLD_STACK];
    uint16_t first[KEEL_FOLD_ROWS + 1]; /* of each piece; behind the last one, the rows */
    uint8_t within[KEEL_FOLD_ROWS];     /* by a row: nodes of its piece that become complete */
    uint8_t closes[KEEL_FOLD_ROWS];     /* by a piece: nodes of the stack that do */
};

/* One number of a record, which is added. */
struct adding {
    static const int PARTS = 1;
    __device__ static void join(double *out, const double *a, const double *b, double, double,
                                double)
    {
        out[0] = a[0] + b[0];
    }
};

/* Mean and sum of squared deviations of a channel: as graph/moments.c. */
struct moments {
    static const int PARTS = 2;
    __device__ static void join(double *out, const double *a, const double *b, double left,
                                double right, double places)
    {
        const double share = left == right ? 0.5 : right / (left + right);
        const double weight = times(times(left, share), places);
        const double d = b[0] - a[0], mean = a[0] + times(d, share);
        out[1] = a[1] + b[1] + times(times(d, d), weight);
        out[0] = mean;
    }
};

template <class F>
__device__ __forceinline__ void join(const pushes &p, double *top, const double *below,
                                     int32_t rows_below, int32_t rows_top)
{
    if (p.upward)
        F::join(top, below, top, rows_below, rows_top, (double)p.places);
    else
        F::join(top, top, below, rows_top, rows_below, (double)p.places);
}

template <class F>
__device__ __forceinline__ void load_row(double *to, const pushes &p, int row, int64_t k)
{
    const double *from = p.leaf + (p.upward ? row : p.rows - 1 - row) * p.length + k;
    for (int j = 0; j < F::PARTS; j++) to[j] = from[j * (p.length / F::PARTS)];
}

/* The node of a piece's rows. `node` and `held` are the thread's own, with a step of THREADS. */
template <class F>
__device__ void fold_piece(double *top, const pushes &p, int piece, int64_t k, double *node,
                           int32_t *held)
{
    const int end = p.first[piece + 1];
    double row[AT_ONCE][F::PARTS], below[F::PARTS];
    int depth = 0;
    for (int first = p.first[piece]; first < end; first += AT_ONCE) {
        UNROLL
        for (int r = 0; r < AT_ONCE; r++)
            load_row<F>(row[r], p, first + r < end ? first + r : end - 1, k);
        UNROLL
        for (int r = 0; r < AT_ONCE; r++) {
            if (first + r >= end) break;
            int32_t rows = 1;
            for (int j = 0; j < F::PARTS; j++) top[j] = row[r][j];
            for (int c = p.within[first + r]; c > 0; c--) {
                depth--;
                for (int j = 0; j < F::PARTS; j++)
                    below[j] = node[(depth * F::PARTS + j) * THREADS];
                join<F>(p, top, below, held[depth * THREADS], rows);
                rows += held[depth * THREADS];
            }
            for (int j = 0; j < F::PARTS; j++) node[(depth * F::PARTS + j) * THREADS] = top[j];
            held[depth * THREADS] = rows;
            depth++;
        }
    }
}

/* A channel's node number i of the stack. Those that change are read right after they are written,
 * so the first of them are in shared memory until the end. */
template <class F> struct nodes {
    const pushes &p;
    double *near; /* the thread's own, with a step of GPU_WARP */
    int64_t k;

    __device__ __forceinline__ bool is_near(int i) const
    {
        return i >= p.lowest && i < p.lowest + NEAR;
    }
    __device__ __forceinline__ double *far_at(int i, int j) const
    {
        return p.stack + i * (p.length + 1) + 1 + k + j * (p.length / F::PARTS);
    }
    __device__ __forceinline__ double *near_at(int i, int j) const
    {
        return near + ((i - p.lowest) * F::PARTS + j) * GPU_WARP;
    }
    __device__ __forceinline__ void get(double *node, int i) const
    {
        for (int j = 0; j < F::PARTS; j++) node[j] = is_near(i) ? *near_at(i, j) : *far_at(i, j);
    }
    __device__ __forceinline__ void put(int i, const double *node) const
    {
        for (int j = 0; j < F::PARTS; j++) *(is_near(i) ? near_at(i, j) : far_at(i, j)) = node[j];
    }
    /* Between the two: of `depth` nodes, those that are in shared memory. */
    __device__ __forceinline__ void fetch(int depth) const
    {
        for (int i = p.lowest; i < depth && is_near(i); i++)
            for (int j = 0; j < F::PARTS; j++) *near_at(i, j) = *far_at(i, j);
    }
    __device__ __forceinline__ void leave(int depth) const
    {
        for (int i = p.lowest; i < depth && is_near(i); i++)
            for (int j = 0; j < F::PARTS; j++) *far_at(i, j) = *near_at(i, j);
    }
};

/* A piece's node on the stack. `held` is the thread's own, with a step of GPU_WARP. */
template <class F>
__device__ void push_node(const pushes &p, const nodes<F> &stack, double *top, int piece,
                          int *depth, int32_t *held)
{
    int32_t rows = p.first[piece + 1] - p.first[piece];
    double below[F::PARTS];
    for (int c = p.closes[piece]; c > 0; c--) {
        stack.get(below, --*depth);
        join<F>(p, top, below, held[*depth * GPU_WARP], rows);
        rows += held[*depth * GPU_WARP];
    }
    stack.put(*depth, top);
    if (stack.k == 0) p.stack[*depth * (p.length + 1)] = rows;
    held[(*depth)++ * GPU_WARP] = rows;
}

template <class F> __global__ void __launch_bounds__(THREADS, 1) push(const pushes p)
{
    SHARED(double, node, PIECE_DEPTH *F::PARTS *THREADS);
    SHARED(double, result, F::PARTS *THREADS);
    SHARED(int32_t, held, PIECE_DEPTH * THREADS);
    SHARED(int32_t, below, KEEL_FOLD_STACK * GPU_WARP);
    SHARED(double, near, NEAR *F::PARTS *GPU_WARP);
    const int t = (int)threadIdx.x, lane = t % GPU_WARP, warp = t / GPU_WARP;
    const int64_t k = (int64_t)blockIdx.x * GPU_WARP + lane;
    const bool there = k < p.length / F::PARTS;
    const nodes<F> stack = { p, near + lane, k };
    double top[F::PARTS];
    int depth = p.depth;
    if (there && warp == 0) stack.fetch(depth);
    for (int i = 0; i < depth && warp == 0; i++) below[i * GPU_WARP + lane] = p.held[i];
    for (int first = 0; first < p.pieces; first += WARPS) {
        if (there && first + warp < p.pieces) {
            fold_piece<F>(top, p, first + warp, k, node + t, held + t);
            for (int j = 0; j < F::PARTS; j++) result[j * THREADS + t] = top[j];
        }
        __syncthreads();
        for (int w = 0; there && warp == 0 && w < WARPS && first + w < p.pieces; w++) {
            for (int j = 0; j < F::PARTS; j++) top[j] = result[j * THREADS + w * GPU_WARP + lane];
            push_node<F>(p, stack, top, first + w, &depth, below + lane);
        }
        __syncthreads();
    }
    if (there && warp == 0) stack.leave(depth);
}

/* ---- pieces -----------------------------------------------------------------------------------
 */

/* The end of the longest piece that begins at `row`. Fills in what its rows close within it, and
 * *closes, what its node then closes. */
int piece_from(const keel_device_fold *f, int row, uint8_t *within, uint8_t *closes)
{
    int end = row, last = 0;
    for (int i = row, depth = 0; i < f->rows && i < row + PIECE_ROWS && depth < PIECE_DEPTH; i++) {
        within[i] = f->closes[i];
        if (f->closes[i] < depth) {
            depth += 1 - f->closes[i];
            continue;
        }
        end = i + 1; /* all that waited is one node now */
        last = depth;
        if (f->closes[i] > depth) break;
        depth = 1;
    }
    *closes = (uint8_t)(f->closes[end - 1] - last);
    within[end - 1] = (uint8_t)last;
    return end;
}

pushes pushes_of(const keel_device_fold *f)
{
    pushes p = {};
    p.stack = f->stack;
    p.leaf = f->leaf;
    p.length = f->length;
    p.places = f->places;
    p.rows = f->rows;
    p.depth = f->depth;
    p.upward = f->upward;
    for (int i = 0; i < f->depth; i++) p.held[i] = f->held[i];
    int depth = p.lowest = f->depth;
    for (int row = 0; row < f->rows; row = p.first[++p.pieces]) {
        p.first[p.pieces + 1] = (uint16_t)piece_from(f, row, p.within, &p.closes[p.pieces]);
        depth -= p.closes[p.pieces];
        if (depth < p.lowest) p.lowest = depth;
        depth++;
    }
    return p;
}
} // namespace

const char *keel_cuda_fold(cudaStream_t stream, const keel_device_fold *f)
{
    const int64_t n = f->moments ? f->length / 2 : f->length;
    const dim3 grid((unsigned)((n + GPU_WARP - 1) / GPU_WARP)), block(THREADS);
    const pushes p = pushes_of(f);
    return f->moments ? gpu_launch(push<moments>, grid, block, 0, stream, p)
                      : gpu_launch(push<adding>, grid, block, 0, stream, p);
}
