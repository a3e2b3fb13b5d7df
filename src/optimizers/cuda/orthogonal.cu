/* See device/cuda/move.h. Each sum of a product is one thread's, and its terms are added in their
 * order, so the bits are those of optimizers/muon.c. A block has a square of sums, whose factors
 * pass through shared memory some of the inner dim at a time. Nothing is transposed: a matrix is a
 * view with two strides. */
#include "device/cuda/move.h"

namespace
{
const int SIDE = 16, THREADS = SIDE * SIDE, DEEP = 16;
const int64_t FEW = 768; /* up to so many rows, small squares give more multiprocessors work */

template <class T> struct view {
    const T *at;
    int64_t row, column; /* elements from one to the next */
};

/* out = scale add + by left right; out and add lie alike. scale 0: add is not read. */
template <class T> struct product {
    T *out;
    const T *add;
    view<T> left, right;
    T scale, by;
    int64_t rows, inner, columns, out_row, out_column;
};

/* to [DEEP][WIDE + 1] = the factors at (first + i, k0 + k) of a view whose i are rows; beyond `end`
 * or `inner` they are 0. Threads go along the dim whose elements are neighbours. */
template <class T, int WIDE>
__device__ __forceinline__ void fetch(T *to, const T *at, int64_t of_i, int64_t of_k, int64_t first,
                                      int64_t end, int64_t k0, int64_t inner)
{
    const bool along_k = of_k == 1;
    for (int e = (int)threadIdx.x; e < WIDE * DEEP; e += THREADS) {
        const int i = along_k ? e / DEEP : e % WIDE, k = along_k ? e % DEEP : e / WIDE;
        const bool there = first + i < end && k0 + k < inner;
        to[k * (WIDE + 1) + i] = there ? at[(first + i) * of_i + (k0 + k) * of_k] : (T)0;
    }
}

template <class T, int EACH>
__global__ void __launch_bounds__(THREADS) product_kernel(const product<T> p)
{
    const int WIDE = SIDE * EACH;
    SHARED(T, left, DEEP * (SIDE * EACH + 1));
    SHARED(T, right, DEEP * (SIDE * EACH + 1));
    const int64_t row = (int64_t)blockIdx.y * WIDE, column = (int64_t)blockIdx.x * WIDE;
    const int y = (int)threadIdx.x / SIDE, x = (int)threadIdx.x % SIDE;
    T sum[EACH][EACH] = {};
    for (int64_t k0 = 0; k0 < p.inner; k0 += DEEP) {
        const int deep = p.inner - k0 < DEEP ? (int)(p.inner - k0) : DEEP;
        fetch<T, WIDE>(left, p.left.at, p.left.row, p.left.column, row, p.rows, k0, p.inner);
        fetch<T, WIDE>(right, p.right.at, p.right.column, p.right.row, column, p.columns, k0,
                       p.inner);
        __syncthreads();
        for (int k = 0; k < deep; k++)
            for (int i = 0; i < EACH; i++)
                for (int j = 0; j < EACH; j++)
                    sum[i][j] += times(left[k * (WIDE + 1) + y + i * SIDE],
                                       right[k * (WIDE + 1) + x + j * SIDE]);
        __syncthreads();
    }
    for (int i = 0; i < EACH; i++)
        for (int j = 0; j < EACH; j++) {
            const int64_t r = row + y + i * SIDE, c = column + x + j * SIDE;
            if (r >= p.rows || c >= p.columns) continue;
            const int64_t at = r * p.out_row + c * p.out_column;
            T value = times(sum[i][j], p.by);
            if (p.scale != 0) value += times(p.scale, p.add[at]);
            p.out[at] = value;
        }
}

/* The rows of a product are the shorter side of the matrix: a grid has 65,535 blocks in y, which
 * would be 4 million rows and as many columns at least. The longer side is in x. */
template <class T> const char *multiply(cudaStream_t stream, const product<T> &p)
{
    const bool small = p.rows <= FEW && p.columns <= FEW;
    const int64_t wide = small ? SIDE * 2 : SIDE * 4;
    const dim3 grid((unsigned)((p.columns + wide - 1) / wide),
                    (unsigned)((p.rows + wide - 1) / wide));
    return gpu_launch(small ? product_kernel<T, 2> : product_kernel<T, 4>, grid, dim3(THREADS), 0,
                      stream, p);
}

/* By its length, from the sums of tiles, which each block adds up in their order. */
template <class T>
__global__ void __launch_bounds__(THREADS)
    divide_kernel(T *to, const T *from, int64_t count, const double *sums, int64_t tiles)
{
    SHARED(double, room, 1);
    if (threadIdx.x == 0) {
        double squares = 0;
        for (int64_t i = 0; i < tiles; i++) squares += sums[2 * i + 1];
        room[0] = sqrt(squares);
    }
    __syncthreads();
    const T length = (T)room[0] + (T)1e-7;
    const int64_t step = (int64_t)gridDim.x * THREADS;
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < count; i += step)
        to[i] = from[i] / length;
}

template <class T>
const char *iterate(cudaStream_t stream, const keel_device_orthogonal *o, const T *from, T *to,
                    T *a, T *b)
{
    const bool tall = o->rows > o->columns;
    const int64_t few = tall ? o->columns : o->rows, many = tall ? o->rows : o->columns;
    const int64_t row = tall ? 1 : o->columns, column = tall ? o->columns : 1;
    const view<T> x = { from, row, column }, turned = { from, column, row };
    const view<T> left = { a, few, 1 }, both = { b, few, 1 };
    const product<T> all[] = {
        { a, a, x, turned, 0, 1, few, many, few, few, 1 },
        { b, a, left, left, (T)o->b, (T)o->c, few, few, few, few, 1 },
        { to, from, both, x, (T)o->a, 1, few, few, many, row, column },
    };
    const char *why = nullptr;
    for (int i = 0; i < 3 && !why; i++) why = multiply(stream, all[i]);
    return why;
}

template <class T> const char *orthogonalize(cudaStream_t stream, const keel_device_orthogonal *o)
{
    const int64_t count = o->rows * o->columns, blocks = (count + THREADS - 1) / THREADS;
    const keel_orthogonal_room room =
        keel_orthogonal_room_of(o->rows, o->columns, o->tile, (int64_t)sizeof(T));
    char *const at = static_cast<char *>(o->scratch);
    double *const sums = reinterpret_cast<double *>(at);
    T *const x[2] = { static_cast<T *>(o->x), reinterpret_cast<T *>(at + room.x) };
    const keel_device_measure m = { o->real, count, o->tile, o->x, sums };
    int now = (int)(o->steps % 2); /* so that the last step ends where it began */
    const char *why = keel_cuda_measure(stream, &m);
    if (!why)
        why = gpu_launch(divide_kernel<T>, dim3(gpu_blocks(blocks, 1024)), dim3(THREADS), 0, stream,
                         x[now], x[0], count, sums, (count + o->tile - 1) / o->tile);
    for (int64_t s = 0; s < o->steps && !why; s++, now = 1 - now)
        why = iterate(stream, o, x[now], x[1 - now], reinterpret_cast<T *>(at + room.a),
                      reinterpret_cast<T *>(at + room.b));
    return why;
}
} // namespace

const char *keel_cuda_orthogonalize(cudaStream_t stream, const keel_device_orthogonal *o)
{
    if (o->rows == 0 || o->columns == 0) return nullptr;
    return o->real == KEEL_FLOAT64 ? orthogonalize<double>(stream, o)
                                   : orthogonalize<float>(stream, o);
}
