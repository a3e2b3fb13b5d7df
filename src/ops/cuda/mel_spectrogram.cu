/* See ops/mel_spectrogram.c. All frames of some rows are transformed at a time; then a thread has a
 * frequency or a band of a frame. Backward transforms the gradients of the frames, and a sample
 * adds up what frames give it. */
#include "ops/cuda/_fourier.h"
#include "ops/cuda/_frames.h"
#include "ops/cuda/_lines.h"

namespace
{
struct bands {
    keel_mel_spectrogram_args a;
    int64_t bins, lines; /* lines: frames of the rows that are done at a time */
    frame_lines s;       /* of one row */
    double loudness;     /* in decibels, of the reference */
};

struct loudest { /* of a row */
    float cut;   /* where its bands are cut off */
    int64_t at;
    double lifted; /* the gradient of what was cut off, which moves with the loudest */
};

/* What lies in scratch. */
struct rooms {
    fourier_room r;
    double *window, *power, *d; /* [size]; [lines, bins]; [lines, bands]: gradients */
    float *weight, *sums;       /* [bins, bands]; [rows, bands, frames] */
    loudest *top;               /* [rows] */
};

/* Rounded as the host's float32 is. */
__device__ __forceinline__ float mel(float hertz)
{
    return times(1127.0f, (float)log((double)(1.0f + hertz / 700.0f)));
}

__global__ void __launch_bounds__(CUDA_THREADS, 1) window_kernel(double *to, const bands b)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t i = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; i < b.a.size; i += step)
        to[i] = window_at(b.a.window, b.a.size, i);
}

/* The triangles, in float32 and in the host's order of operations. Frequency 0 is in none. */
__global__ void __launch_bounds__(CUDA_THREADS, 1) weights_kernel(float *to, const bands b)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    const float low = mel((float)b.a.low), high = mel((float)b.a.high);
    const float by = (high - low) / (float)(b.a.bands + 1);
    const float bin = (float)b.a.rate / 2 / (float)(b.bins - 1);
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < b.bins * b.a.bands;
         t += step) {
        int64_t k = t;
        const int64_t m = take(&k, b.a.bands);
        const float at = mel(times((float)k, bin));
        const float left = low + times((float)m, by), middle = low + times((float)(m + 1), by);
        const float right = m + 1 == b.a.bands ? high : low + times((float)(m + 2), by);
        const float up = (at - left) / (middle - left), down = (right - at) / (right - middle);
        const float least = up < down ? up : down;
        to[t] = k > 0 && least > 0 ? least : 0;
    }
}

template <class T>
__global__ void __launch_bounds__(CUDA_THREADS)
    load_kernel(complex_number *to, const T *x, const double *window, int64_t lines, const bands b)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < lines * b.a.size;
         t += step) {
        int64_t row = t;
        const int64_t i = take(&row, b.a.size), f = take(&row, b.s.frames);
        to[t] = { (double)to_f(x[row * b.s.n + frames_at(b.s, f, i)]) * window[i], 0 };
    }
}

__global__ void __launch_bounds__(CUDA_THREADS, 1)
    power_kernel(double *power, const complex_number *from, int64_t lines, const bands b)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < lines * b.bins;
         t += step) {
        int64_t line = t;
        const complex_number v = from[take(&line, b.bins) + line * b.a.size];
        power[t] = pow(hypot(v.re, v.im), b.a.exponent);
    }
}

/* The band of a thread: number i of its row. */
struct band {
    int64_t row, i;
    double sum;
};

__device__ __forceinline__ band band_of(const double *power, const float *weight, int64_t t,
                                        const bands &b)
{
    int64_t line = t;
    const int64_t m = take(&line, b.a.bands);
    band v = { line, 0, 0 };
    v.i = take(&v.row, b.s.frames) + m * b.s.frames;
    for (int64_t k = 1; k < b.bins; k++)
        v.sum += power[line * b.bins + k] * (double)weight[k * b.a.bands + m];
    return v;
}

__global__ void __launch_bounds__(CUDA_THREADS, 1)
    bands_kernel(float *sums, const double *power, const float *weight, int64_t lines,
                 const bands b)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < lines * b.a.bands;
         t += step) {
        const band v = band_of(power, weight, t, b);
        const double y = b.a.decibels ? 10 * log10(fmax(v.sum, b.a.least)) - b.loudness : v.sum;
        sums[v.row * b.a.bands * b.s.frames + v.i] = (float)y;
    }
}

struct key_most {
    __device__ __forceinline__ uint64_t operator()(uint64_t a, uint64_t b) const
    {
        return a > b ? a : b;
    }
};

/* The first of the largest numbers of a row, which has a block. BACK: y is the output, and dy its
 * gradient. */
template <bool BACK, class T>
__global__ void __launch_bounds__(CUDA_THREADS, 1)
    loudest_kernel(loudest *to, const T *y, const T *dy, int64_t rows, const bands b)
{
    typedef line_threads<true> threads;
    SHARED(uint64_t, keys, 33);
    SHARED(double, room, 33);
    const int64_t count = b.a.bands * b.s.frames;
    for (int64_t row = threads::first_line(); row < rows; row += threads::step()) {
        const T *own = y + row * count;
        uint64_t most = 0;
        for (int64_t i = threads::number(); i < count; i += threads::WIDTH) {
            const float v = to_f(own[i]);
            const unsigned number = v == v ? ascending(v == 0 ? 0 : v) : 0;
            most = key_most()(most, (uint64_t)number << 32 | (unsigned)~(unsigned)i);
        }
        most = threads::fold(most, keys, key_most());
        loudest l = { 0, (int64_t)(unsigned)~(unsigned)most, 0 };
        l.cut = to_f(own[l.at]) - (float)b.a.top;
        for (int64_t i = threads::number(); BACK && i < count; i += threads::WIDTH)
            if (!(to_f(own[i]) > l.cut) && i != l.at) l.lifted += to_f(dy[row * count + i]);
        if (BACK) l.lifted = threads::fold(l.lifted, room, gpu_plus());
        if (threads::number() == 0) to[row] = l;
    }
}

template <class T>
__global__ void __launch_bounds__(CUDA_THREADS)
    forward_kernel(T *y, const float *sums, const loudest *top, int64_t rows, const bands b)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS, count = b.a.bands * b.s.frames;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < rows * count;
         t += step) {
        int64_t row = t;
        take(&row, count);
        const float v = sums[t];
        y[t] = to_value<T>(b.a.decibels && v < top[row].cut ? top[row].cut : v);
    }
}

/* The gradient of the sum of a band. */
template <class T>
__global__ void __launch_bounds__(CUDA_THREADS, 1)
    sums_back_kernel(double *d, const T *y, const T *dy, const double *power, const float *weight,
                     const loudest *top, int64_t lines, const bands b)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS, count = b.a.bands * b.s.frames;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < lines * b.a.bands;
         t += step) {
        const band v = band_of(power, weight, t, b);
        const int64_t at = v.row * count + v.i;
        double g = to_f(dy[at]);
        if (b.a.decibels) {
            const loudest &l = top[v.row];
            if (v.i == l.at)
                g += l.lifted;
            else if (!(to_f(y[at]) > l.cut))
                g = 0;
            g = v.sum >= b.a.least ? 10 / log(10.0) * g / v.sum : 0;
        }
        d[t] = g;
    }
}

/* The gradient of the spectrum, conjugated; its transform is that of the frame. `to` may be `from`.
 */
__global__ void __launch_bounds__(CUDA_THREADS, 1)
    spectrum_back_kernel(complex_number *to, const complex_number *from, const double *d,
                         const float *weight, int64_t lines, const bands b)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < lines * b.a.size;
         t += step) {
        int64_t line = t;
        const int64_t k = take(&line, b.a.size);
        complex_number g = { 0, 0 };
        if (k > 0 && k < b.bins) {
            const complex_number v = from[t];
            const double length = hypot(v.re, v.im);
            double sum = 0;
            for (int64_t m = 0; m < b.a.bands; m++)
                sum += d[line * b.a.bands + m] * (double)weight[k * b.a.bands + m];
            if (length > 0) sum *= b.a.exponent * pow(length, b.a.exponent - 2);
            g = { sum * v.re, -sum * v.im };
        }
        to[t] = g;
    }
}

template <class T>
__global__ void __launch_bounds__(CUDA_THREADS, 1)
    backward_kernel(T *dx, const complex_number *g, const double *window, int64_t rows,
                    const bands b, bool adds)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < rows * b.s.n;
         t += step) {
        int64_t row = t;
        const int64_t at = take(&row, b.s.n);
        const complex_number *own = g + row * b.s.frames * b.a.size;
        const double sum = frames_of([=](int64_t k) { return own[k].re; }, window, b.s, at);
        dx[t] = to_value<T>((float)(adds ? to_f(dx[t]) + sum : sum));
    }
}

/* `rows`: of a call. */
bands bands_of(const keel_node *n, int64_t rows)
{
    const keel_mel_spectrogram_args *a = static_cast<const keel_mel_spectrogram_args *>(n->args);
    const int64_t frames = n->out[0].shape.dim[1], some = FOURIER_SOME / (frames * a->size);
    bands b = {};
    b.a = *a;
    b.bins = a->size / 2 + 1;
    b.lines = (rows < some ? rows : some > 0 ? some : 1) * frames;
    b.s = { 1, n->in[0].shape.dim[0], frames, a->size, a->stride, a->size / 2 };
    b.loudness = 10 * log10(fmax(fabs(a->reference), a->least));
    return b;
}

rooms rooms_of(const keel_call *c, const bands &b)
{
    const int64_t rows = b.lines / b.s.frames;
    rooms r = {};
    r.r = fourier_begin(c, c->scratch, b.a.size, b.lines);
    r.window = reinterpret_cast<double *>(r.r.other + b.a.size * b.lines);
    r.power = r.window + b.a.size;
    r.d = r.power + b.lines * b.bins;
    r.top = reinterpret_cast<loudest *>(r.d + b.lines * b.a.bands);
    r.weight = reinterpret_cast<float *>(r.top + rows);
    r.sums = r.weight + b.bins * b.a.bands;
    if (window_is_given(b.a.window))
        give(c, r.window, b.a.size, 1,
             [&](int64_t i) { return window_given_at(b.a.window, b.a.size, i); });
    else
        cuda_launch(c, window_kernel, cuda_blocks(b.a.size), CUDA_THREADS, 0, r.window, b);
    cuda_launch(c, weights_kernel, cuda_blocks(b.bins * b.a.bands), CUDA_THREADS, 0, r.weight, b);
    return r;
}

keel_status prepare(keel_prepare *p)
{
    const bands b = bands_of(p->node, p->rows);
    const int64_t rows = b.lines / b.s.frames, numbers = b.lines * b.a.bands;
    if (b.a.bands * b.s.frames > UINT32_MAX) return KEEL_EUNSUP;
    return cuda_prepare(p, fourier_scratch(b.a.size, b.lines) +
                               (b.a.size + b.lines * b.bins + numbers) * (int64_t)sizeof(double) +
                               rows * (int64_t)sizeof(loudest) +
                               (b.bins * b.a.bands + numbers) * (int64_t)sizeof(float));
}

/* The spectra of so many lines, and their powers. */
template <class T>
complex_number *spectra(const keel_call *c, const rooms &r, const T *x, int64_t lines,
                        const bands &b)
{
    cuda_launch(c, load_kernel<T>, cuda_blocks(lines * b.a.size), CUDA_THREADS, 0, r.r.from, x,
                r.window, lines, b);
    complex_number *to = fourier_transform(c, r.r, b.a.size, lines);
    cuda_launch(c, power_kernel, cuda_blocks(lines * b.bins), CUDA_THREADS, 0, r.power, to, lines,
                b);
    return to;
}

template <class T> void forward(const keel_call *c)
{
    const bands b = bands_of(c->node, c->rows);
    const rooms r = rooms_of(c, b);
    const int64_t some = b.lines / b.s.frames, count = b.a.bands * b.s.frames;
    for (int64_t first = 0; first < c->rows; first += some) {
        const int64_t rows = c->rows - first < some ? c->rows - first : some;
        const int64_t lines = rows * b.s.frames;
        spectra(c, r, cuda_in<T>(c, 0) + first * b.s.n, lines, b);
        cuda_launch(c, bands_kernel, cuda_blocks(lines * b.a.bands), CUDA_THREADS, 0, r.sums,
                    r.power, r.weight, lines, b);
        if (b.a.decibels)
            cuda_launch(c, loudest_kernel<false, float>, line_blocks(rows, true), CUDA_THREADS, 0,
                        r.top, r.sums, nullptr, rows, b);
        cuda_launch(c, forward_kernel<T>, cuda_blocks(rows * count), CUDA_THREADS, 0,
                    cuda_out<T>(c) + first * count, r.sums, r.top, rows, b);
    }
}

template <class T> void backward(const keel_call *c)
{
    const bands b = bands_of(c->node, c->rows);
    const int64_t some = b.lines / b.s.frames, count = b.a.bands * b.s.frames;
    if (!c->in_grad[0]) return;
    const rooms r = rooms_of(c, b);
    for (int64_t first = 0; first < c->rows; first += some) {
        const int64_t rows = c->rows - first < some ? c->rows - first : some;
        const int64_t lines = rows * b.s.frames;
        const T *y = cuda_out<T>(c) + first * count, *dy = cuda_out_grad<T>(c) + first * count;
        const complex_number *to = spectra(c, r, cuda_in<T>(c, 0) + first * b.s.n, lines, b);
        if (b.a.decibels)
            cuda_launch(c, loudest_kernel<true, T>, line_blocks(rows, true), CUDA_THREADS, 0, r.top,
                        y, dy, rows, b);
        cuda_launch(c, sums_back_kernel<T>, cuda_blocks(lines * b.a.bands), CUDA_THREADS, 0, r.d, y,
                    dy, r.power, r.weight, r.top, lines, b);
        cuda_launch(c, spectrum_back_kernel, cuda_blocks(lines * b.a.size), CUDA_THREADS, 0,
                    r.r.from, to, r.d, r.weight, lines, b);
        to = fourier_transform(c, r.r, b.a.size, lines);
        cuda_launch(c, backward_kernel<T>, cuda_blocks(rows * b.s.n), CUDA_THREADS, 0,
                    cuda_in_grad<T>(c, 0) + first * b.s.n, to, r.window, rows, b, c->in_adds[0]);
    }
}
} // namespace

CUDA_KERNEL(mel_spectrogram) = { .op = &keel_op_mel_spectrogram,
                                 .name = "cuda",
                                 .prepare = prepare,
                                 .run = { forward<float>, backward<float> },
                                 .narrow = { forward<bf16>, backward<bf16> },
                                 .half = { forward<f16>, backward<f16> } };
