/* bench_tune [FILE]: which kernel is the fastest for the dense layers and convolutions of the works
 * of `keel bench`, on the kind of processor this is. With FILE, graph/tuned.inc, the rows of this
 * kind are written anew and others stay; without, they are printed. `make tune` does the former.
 *
 * Kernels take turns on one core; the median of a kernel's turns counts, with making its copy of
 * the weights once a call. Another than the first by priority is named where it takes less than
 * WORTH of the time, and some microseconds less, for every number of rows: few, as in a small batch
 * on many cores, and many. */
#include "base/memory.h"
#include "device/cpu/cpu.h"
#include "graph/choose.h"
#include "graph/tuned.h"
#include "ops/cases.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TURNS = 7, KERNELS_MAX = 12, COPIES_MAX = 8, COUNTS = 2, TILE = 16384 };
static const double WORTH = 0.9, SAVES = 5e-6, TURN_SECONDS = 2e-3;

static const struct work {
    const char *op, *in, *weights, *args;
    int64_t rows[COUNTS];
} works[] = {
    /* the two-layer network */
    { "dense", "784", "784,512|512", NULL, { 32, 128 } },
    { "dense", "512", "512,512|512", NULL, { 32, 128 } },
    { "dense", "512", "512,10|10", NULL, { 32, 128 } },
    /* the CNN of Keras's MNIST example */
    { "conv2d", "28,28,1", "3,3,1,32|32", NULL, { 32, 64 } },
    { "conv2d", "13,13,32", "3,3,32,64|64", NULL, { 32, 64 } },
    { "dense", "1600", "1600,10|10", NULL, { 32, 128 } },
    /* ResNets */
    { "conv2d", "224,224,3", "7,7,3,64|64", "strides 2,2 pad 3,3,3,3", { 2, 4 } },
    { "conv2d", "56,56,64", "3,3,64,64|64", "pad 1,1,1,1", { 2, 8 } },
    { "conv2d", "28,28,128", "3,3,128,128|128", "pad 1,1,1,1", { 2, 8 } },
    { "conv2d", "14,14,256", "3,3,256,256|256", "pad 1,1,1,1", { 2, 8 } },
    { "conv2d", "7,7,512", "3,3,512,512|512", "pad 1,1,1,1", { 2, 8 } },
    { "conv2d", "56,56,64", "3,3,64,128|128", "strides 2,2 pad 1,1,1,1", { 2, 8 } },
    { "conv2d", "28,28,128", "3,3,128,256|256", "strides 2,2 pad 1,1,1,1", { 2, 8 } },
    { "conv2d", "14,14,256", "3,3,256,512|512", "strides 2,2 pad 1,1,1,1", { 2, 8 } },
    { "conv2d", "56,56,64", "1,1,64,64|64", NULL, { 2, 8 } },
    { "conv2d", "56,56,64", "1,1,64,256|256", NULL, { 2, 8 } },
    { "conv2d", "56,56,256", "1,1,256,64|64", NULL, { 2, 8 } },
    { "conv2d", "28,28,128", "1,1,128,512|512", NULL, { 2, 8 } },
    { "conv2d", "28,28,512", "1,1,512,128|128", NULL, { 2, 8 } },
    { "conv2d", "14,14,256", "1,1,256,1024|1024", NULL, { 2, 8 } },
    { "conv2d", "14,14,1024", "1,1,1024,256|256", NULL, { 2, 8 } },
    { "conv2d", "7,7,512", "1,1,512,2048|2048", NULL, { 2, 8 } },
    { "conv2d", "7,7,2048", "1,1,2048,512|512", NULL, { 2, 8 } },
    { "conv2d", "56,56,256", "1,1,256,128|128", "strides 2,2", { 2, 8 } },
    { "conv2d", "56,56,256", "1,1,256,512|512", "strides 2,2", { 2, 8 } },
    { "conv2d", "28,28,512", "1,1,512,256|256", "strides 2,2", { 2, 8 } },
    { "conv2d", "28,28,512", "1,1,512,1024|1024", "strides 2,2", { 2, 8 } },
    { "conv2d", "14,14,1024", "1,1,1024,512|512", "strides 2,2", { 2, 8 } },
    { "conv2d", "14,14,1024", "1,1,1024,2048|2048", "strides 2,2", { 2, 8 } },
    { "dense", "2048", "2048,1000|1000", NULL, { 8, 32 } },
    { "dense", "512", "512,1000|1000", NULL, { 8, 32 } },
    /* MobileNetV2 */
    { "conv2d", "224,224,3", "3,3,3,32", "strides 2,2 pad 0,1,0,1", { 2, 4 } },
    { "conv2d", "112,112,32", "1,1,32,16", NULL, { 2, 8 } },
    { "conv2d", "112,112,16", "1,1,16,96", NULL, { 2, 8 } },
    { "conv2d", "56,56,96", "1,1,96,24", NULL, { 2, 8 } },
    { "conv2d", "56,56,24", "1,1,24,144", NULL, { 2, 8 } },
    { "conv2d", "28,28,192", "1,1,192,32", NULL, { 2, 8 } },
    { "conv2d", "28,28,32", "1,1,32,192", NULL, { 2, 8 } },
    { "conv2d", "14,14,384", "1,1,384,64", NULL, { 2, 8 } },
    { "conv2d", "14,14,64", "1,1,64,384", NULL, { 2, 8 } },
    { "conv2d", "14,14,576", "1,1,576,96", NULL, { 2, 8 } },
    { "conv2d", "7,7,960", "1,1,960,160", NULL, { 2, 8 } },
    { "conv2d", "7,7,160", "1,1,160,960", NULL, { 2, 8 } },
    { "conv2d", "7,7,320", "1,1,320,1280", NULL, { 2, 8 } },
    { "dense", "1280", "1280,1000|1000", NULL, { 8, 32 } },
};
enum { WORKS = sizeof works / sizeof *works };

static void die(const char *what)
{
    fprintf(stderr, "bench_tune: %s: %s\n", what, keel_error());
    exit(1);
}

static void *room(int64_t bytes)
{
    void *p = keel_aligned_calloc((size_t)bytes + 64, 1);
    if (!p) die("memory");
    return p;
}

/* Of both signs and all magnitudes near 1: zeros would run faster. */
static float *numbers(int64_t n)
{
    static uint32_t seed = 1;
    float *f = room(n * (int64_t)sizeof *f);
    for (int64_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        f[i] = (float)(int32_t)(seed & 0xffffff00) * 0x1p-31f;
    }
    return f;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- a node and what it is run on ------------------------------------------------------------ */

typedef struct setup {
    keel_node node;
    keel_spec in;
    char args[256];
    int64_t rows;
    keel_spec weight[2];
    float *x, *y, *dx, *dy, *w[2], *dw[2];
    bool tiles; /* its weight gradient is made tile by tile */
} setup;

static void open_setup(setup *s, const struct work *w, int64_t rows)
{
    *s = (setup){ .rows = rows };
    keel_case_shapes(w->in, KEEL_FLOAT32, &s->in, 1);
    keel_node *n = &s->node;
    *n = (keel_node){ .op = keel_op_find(w->op),
                      .args = s->args,
                      .layer = w->op,
                      .training = true,
                      .backward = true,
                      .real = KEEL_FLOAT32,
                      .n_in = 1,
                      .in = &s->in,
                      .weight = s->weight };
    if (n->op->args_for_case) n->op->args_for_case(s->args, w->args);
    n->n_weight = keel_case_shapes(w->weights, KEEL_FLOAT32, s->weight, 2);
    if (keel_node_infer(n) < 0) die(w->in);
    s->tiles = n->op->weights_tile[0] && s->in.shape.rank == 1;
    s->x = numbers(rows * keel_row_count(&s->in));
    s->dx = numbers(rows * keel_row_count(&s->in));
    s->y = numbers(rows * keel_row_count(&n->out[0]));
    s->dy = numbers(rows * keel_row_count(&n->out[0]));
    for (int i = 0; i < n->n_weight; i++) {
        s->w[i] = numbers(keel_row_count(&n->weight[i]));
        s->dw[i] = numbers(keel_row_count(&n->weight[i]));
    }
}

static void close_setup(setup *s)
{
    float *const all[] = { s->x, s->y, s->dx, s->dy, s->w[0], s->w[1], s->dw[0], s->dw[1] };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) keel_free(all[i]);
    keel_node_clear(&s->node);
}

/* ---- contenders ------------------------------------------------------------------------------ */

typedef struct contender {
    const keel_kernel *kernel;
    keel_float32 float32;
    bool tiles;
    void *plan, *scratch;
    keel_derived copy[COPIES_MAX];
    int n_copy;
    double turn[TURNS];
} contender;

static keel_status derive(void *context, keel_derived *want, const keel_derived **got)
{
    contender *k = context;
    if (k->n_copy == COPIES_MAX) die("too many copies");
    want->data = room((int64_t)want->bytes);
    k->copy[k->n_copy] = *want;
    *got = &k->copy[k->n_copy++];
    return KEEL_OK;
}

static bool enter(contender *k, const setup *s, keel_pass pass, const keel_kernel *kernel,
                  keel_float32 float32)
{
    keel_prepare p = { .node = &s->node,
                       .pass = pass,
                       .rows = s->rows,
                       .float32 = float32,
                       .measured = float32 != KEEL_FLOAT32_FMA,
                       .derive = derive,
                       .context = k };
    *k = (contender){ .kernel = kernel, .float32 = float32, .tiles = s->tiles };
    k->tiles = s->tiles && pass == KEEL_WEIGHTS;
    if (k->tiles ? !kernel->weights_tile : !kernel->run[pass]) return false;
    const keel_status status = keel_kernel_prepare(kernel, &p);
    if (status == KEEL_EUNSUP) return false;
    if (status < 0) die(kernel->name);
    k->plan = p.plan;
    k->scratch = room(p.scratch);
    return true;
}

static void leave(contender *k)
{
    if (k->kernel->release && !k->tiles) k->kernel->release(k->plan);
    for (int i = 0; i < k->n_copy; i++) {
        if (k->copy[i].release) k->copy[i].release(k->copy[i].plan);
        keel_free(k->copy[i].data);
    }
    keel_free(k->scratch);
}

static void run_tiles(const setup *s, const contender *k)
{
    const keel_span span = { s->x, s->dy, s->rows };
    const int64_t *w = s->node.weight[0].shape.dim, all = w[0] * w[1];
    const int64_t step = w[1] < TILE ? TILE / w[1] * w[1] : w[1];
    for (int64_t at = 0; at < all; at += step)
        k->kernel->weights_tile(&(keel_tile_call){ .node = &s->node,
                                                   .n_span = 1,
                                                   .span = &span,
                                                   .first = at,
                                                   .count = all - at < step ? all - at : step,
                                                   .grad = s->dw[0] + at,
                                                   .n_prefetch = 1,
                                                   .prefetch = { s->w[0] + at },
                                                   .scratch = k->scratch,
                                                   .scratch_ready = at > 0,
                                                   .plan = k->plan });
}

static void run_once(const setup *s, const contender *k, keel_pass pass)
{
    const keel_call c = { .node = &s->node,
                          .rows = s->rows,
                          .in = (const void *[]){ s->x },
                          .out = (void *[]){ s->y },
                          .weight = (const void *[]){ s->w[0], s->w[1] },
                          .out_grad = (const void *[]){ s->dy },
                          .in_grad = (void *[]){ s->dx },
                          .in_adds = (const bool[]){ false },
                          .weight_grad = (void *[]){ s->dw[0], s->dw[1] },
                          .scratch = k->scratch,
                          .plan = k->plan };
    for (int i = 0; i < k->n_copy; i++) k->copy[i].refresh(&k->copy[i], s->w[k->copy[i].weight]);
    if (k->tiles)
        run_tiles(s, k);
    else
        k->kernel->run[pass](&c);
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Median seconds of each contender. */
static void race(const setup *s, contender *k, int n, keel_pass pass, double *median)
{
    int64_t repeats[KERNELS_MAX];
    for (int i = 0; i < n; i++) {
        run_once(s, &k[i], pass);
        const double start = now();
        run_once(s, &k[i], pass);
        repeats[i] = (int64_t)(TURN_SECONDS / (now() - start)) + 1;
    }
    for (int t = 0; t < TURNS; t++)
        for (int i = 0; i < n; i++) {
            const double start = now();
            for (int64_t r = 0; r < repeats[i]; r++) run_once(s, &k[i], pass);
            k[i].turn[t] = (now() - start) / (double)repeats[i];
        }
    for (int i = 0; i < n; i++) {
        qsort(k[i].turn, TURNS, sizeof *k[i].turn, by_value);
        median[i] = k[i].turn[TURNS / 2];
    }
}

/* ---- the table ------------------------------------------------------------------------------- */

enum { NAMES = 16 };
typedef struct result { /* of one class and pass, a line for each kernel and way to multiply */
    int n;
    struct {
        const keel_kernel *kernel;
        keel_float32 float32;
        double seconds[COUNTS];
        int counts; /* it took part in so many */
    } of[NAMES];
} result;

static void note(result *r, const contender *k, double seconds, int count)
{
    int i = 0;
    while (i < r->n && (r->of[i].kernel != k->kernel || r->of[i].float32 != k->float32)) i++;
    if (i == NAMES) return;
    if (i == r->n) {
        r->of[r->n].kernel = k->kernel;
        r->of[r->n++].float32 = k->float32;
    }
    r->of[i].seconds[count] = seconds;
    r->of[i].counts++;
}

/* The fastest of those allowed, `first` unless another is worth it at every count of rows. */
static int fastest(const result *r, keel_float32 float32, int first)
{
    int best = first;
    for (int i = 0; i < r->n; i++) {
        bool worth = r->of[i].counts == COUNTS && i != first &&
                     (r->of[i].float32 == KEEL_FLOAT32_FMA || r->of[i].float32 == float32);
        for (int c = 0; worth && c < COUNTS; c++)
            worth = r->of[i].seconds[c] < WORTH * r->of[first].seconds[c] &&
                    r->of[i].seconds[c] < r->of[first].seconds[c] - SAVES;
        if (worth && (best == first || r->of[i].seconds[1] < r->of[best].seconds[1])) best = i;
    }
    return best;
}

static int first_of(const result *r)
{
    int first = -1;
    for (int i = 0; i < r->n; i++)
        if (r->of[i].float32 == KEEL_FLOAT32_FMA && r->of[i].counts == COUNTS &&
            (first < 0 || r->of[i].kernel->priority > r->of[first].kernel->priority))
            first = i;
    return first;
}

/* Where tiles were tried, FMA's kernel is named too: in a fast fit "" would be the tiles. */
static const char *word(const result *r, int best, int first, bool always)
{
    return best != first || always ? r->of[best].kernel->name : "";
}

static void write_row(FILE *f, const keel_tuned *class, const char *level, keel_pass pass,
                      const result *r)
{
    static const char *const name[] = { "KEEL_FORWARD", "KEEL_BACKWARD", "KEEL_WEIGHTS" };
    const int first = first_of(r);
    if (first < 0) return;
    bool tiles = false;
    for (int i = 0; i < r->n; i++) tiles = tiles || r->of[i].float32 != KEEL_FLOAT32_FMA;
    const int fma = fastest(r, KEEL_FLOAT32_FMA, first);
    const int exact = fastest(r, KEEL_FLOAT32_EXACT, fma),
              fast = fastest(r, KEEL_FLOAT32_FAST, fma);
    fprintf(f, "TUNED(%s, %s, %-13s, %lld, %lld, %4lld, %4lld, %5lld, \"%s\", \"%s\", \"%s\") /*",
            level, class->op->name, name[pass], (long long)class->window, (long long)class->stride,
            (long long)class->c, (long long)class->k, (long long)class->places,
            word(r, fma, first, false), word(r, exact, fma, false), word(r, fast, fma, tiles));
    for (int i = 0; i < r->n; i++)
        fprintf(f, " %s%s %.0f", r->of[i].kernel->name,
                r->of[i].float32 == KEEL_FLOAT32_FAST ? " fast" : "", 1e6 * r->of[i].seconds[1]);
    fputs(" us */\n", f);
    fflush(f);
}

static void measure(FILE *f, const struct work *w, keel_pass pass)
{
    const char *const level = keel_cpu_isa_name(keel_cpu_level());
    keel_tuned class = { 0 };
    result r = { 0 };
    for (int c = 0; c < COUNTS; c++) {
        setup s;
        contender k[KERNELS_MAX];
        double median[KERNELS_MAX];
        int n = 0;
        open_setup(&s, w, w->rows[c]);
        if (!keel_tuned_class(&s.node, &class)) die(w->in);
        for (int i = 0; keel_kernels[i]; i++)
            for (keel_float32 way = 0; way <= KEEL_FLOAT32_FAST && n < KERNELS_MAX; way++) {
                const bool split = strstr(keel_kernels[i]->name, "split_amx") != NULL;
                if (keel_kernels[i]->op != s.node.op || split == (way == KEEL_FLOAT32_FMA))
                    continue;
                n += enter(&k[n], &s, pass, keel_kernels[i], way);
            }
        race(&s, k, n, pass, median);
        for (int i = 0; i < n; i++) {
            note(&r, &k[i], median[i], c);
            leave(&k[i]);
        }
        close_setup(&s);
    }
    write_row(f, &class, level, pass, &r);
}

/* What the file has for other kinds of processors, and its head. */
static void keep_others(FILE *to, const char *path, const char *level)
{
    char line[512], mine[32];
    FILE *from = fopen(path, "r");
    snprintf(mine, sizeof mine, "TUNED(%s,", level);
    while (from && fgets(line, sizeof line, from))
        if (strncmp(line, mine, strlen(mine))) fputs(line, to);
    if (from) fclose(from);
}

int main(int argc, char **argv)
{
    char part[4096] = "";
    FILE *f = stdout;
    keel_cpu_single_thread();
    if (argc > 1) {
        snprintf(part, sizeof part, "%s.part", argv[1]);
        if (!(f = fopen(part, "w"))) {
            perror(part);
            return 1;
        }
        keep_others(f, argv[1], keel_cpu_isa_name(keel_cpu_level()));
    }
    for (int i = 0; i < WORKS; i++) {
        for (keel_pass pass = KEEL_FORWARD; pass <= KEEL_WEIGHTS; pass++)
            measure(f, &works[i], pass);
        if (argc > 1) fprintf(stderr, "\r%d of %d", i + 1, WORKS);
    }
    if (argc > 1) {
        fputc('\n', stderr);
        if (fclose(f) || rename(part, argv[1])) {
            perror(argv[1]);
            return 1;
        }
    }
    return 0;
}
