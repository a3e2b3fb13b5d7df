/* See ops/permute.c. Where neighbours stay neighbours they move as boxes do. Else the last dim of
 * the output and the one whose elements are neighbours in the input change places, tile by tile
 * through shared memory, so that both are read and written in order. */
#include "ops/cuda/_move.h"

namespace
{
const int TILE = GPU_WARP, LINES = CUDA_THREADS / TILE;

/* Dims of the box but two: `across` (from has step 1) and the last one (to has step 1). */
struct turn {
    move_box b;
    int across;
    int64_t tiles_across, tiles_along, tiles;
};

template <class T>
__global__ void __launch_bounds__(CUDA_THREADS)
    turn_kernel(T *to, const T *from, const turn t, bool adds)
{
    SHARED(T, room, TILE * (TILE + 1));
    const move_box &b = t.b;
    const int last = b.dims - 1, lane = (int)threadIdx.x % TILE, line = (int)threadIdx.x / TILE;
    for (int64_t tile = blockIdx.x; tile < t.tiles; tile += gridDim.x) {
        int64_t rest = tile, x = b.from_begin, y = b.to_begin;
        const int64_t along = take(&rest, t.tiles_along) * TILE;
        const int64_t across = take(&rest, t.tiles_across) * TILE;
        for (int d = last - 1; d >= 0; d--) {
            if (d == t.across) continue;
            const int64_t k = take(&rest, b.dim[d]);
            x += k * b.from[d];
            y += k * b.to[d];
        }
        for (int j = line; j < TILE; j += LINES)
            if (along + j < b.dim[last] && across + lane < b.dim[t.across])
                room[j * (TILE + 1) + lane] = from[x + (along + j) * b.from[last] + across + lane];
        __syncthreads();
        for (int j = line; j < TILE; j += LINES)
            if (along + lane < b.dim[last] && across + j < b.dim[t.across])
                move_put(to + y + (across + j) * b.to[t.across] + along + lane,
                         room + lane * (TILE + 1) + j, 1, adds);
        __syncthreads();
    }
}

/* A tile of fewer elements than this mostly has threads with nothing to do. */
bool is_worth(int64_t across, int64_t along)
{
    return across >= 8 && along >= 8;
}

template <class T> void go(const keel_call *c, T *to, const T *from, const move_box &b, bool adds)
{
    const int last = b.dims - 1;
    turn t = { b, -1, 0, 0, 0 };
    for (int d = 0; d < last; d++)
        if (b.from[d] == 1) t.across = d;
    if (t.across < 0 || b.to[last] != 1 || !is_worth(b.dim[t.across], b.dim[last])) {
        move(c, to, from, b, adds);
        return;
    }
    t.tiles_across = (b.dim[t.across] + TILE - 1) / TILE;
    t.tiles_along = (b.dim[last] + TILE - 1) / TILE;
    t.tiles = b.count / (b.dim[t.across] * b.dim[last]) * t.tiles_across * t.tiles_along;
    cuda_launch(c, turn_kernel<T>, cuda_turns(t.tiles), CUDA_THREADS, 0, to, from, t, adds);
}

/* In the order of the output's dims, or of the input's, which the gradient goes to. */
move_box box_of(const keel_call *c, bool back)
{
    const keel_permute_args *a = cuda_args<keel_permute_args>(c);
    const keel_shape &in = c->node->in[0].shape;
    int64_t in_step[KEEL_RANK_MAX], out_step[KEEL_RANK_MAX] /* of the input's dims, both */, n = 1;
    for (int d = in.rank - 1; d >= 0; d--) {
        in_step[d] = n;
        n *= in.dim[d];
    }
    const int64_t row = n;
    n = 1;
    for (int d = in.rank - 1; d >= 0; d--) {
        out_step[a->from[d]] = n;
        n *= in.dim[a->from[d]];
    }
    move_box b = move_rows(c->rows, row, row);
    for (int i = 0; i < in.rank; i++) {
        const int64_t d = back ? i : a->from[i];
        move_add(&b, in.dim[d], back ? out_step[d] : in_step[d], back ? in_step[d] : out_step[d]);
    }
    return b;
}

template <class T> void forward(const keel_call *c)
{
    go(c, cuda_out<T>(c), cuda_in<T>(c, 0), box_of(c, false), false);
}

template <class T> void backward(const keel_call *c)
{
    if (c->in_grad[0])
        go(c, cuda_in_grad<T>(c, 0), cuda_out_grad<T>(c), box_of(c, true), c->in_adds[0]);
}
} // namespace

MOVE_KERNEL(permute);
