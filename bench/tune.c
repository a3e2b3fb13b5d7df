/* bench_tune [FILE]: which kernel is the fastest for the dense layers and convolutions of the works
 * of `keel bench`, on the kind of processor this is: on float32, and on values held in bfloat16.
 * With FILE, graph/tuned.inc, the rows of this kind are written anew and others stay; without, they
 * are printed. `make tune` does the former.
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
#include "tensor/bfloat16.h"
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

/* The same, or rounded to bfloat16. */
static void *values(int64_t n, keel_dtype held)
{
    float *f = numbers(n);
    if (held == KEEL_FLOAT32) return f;
    keel_bf16 *rounded = room(n * (int64_t)sizeof *rounded);
    keel_bf16_narrow(rounded, f, n);
    keel_free(f);
    return rounded;
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
    void *x, *y, *dx, *dy; /* of the node's `held` */
    float *w[2], *dw[2];
    bool tiles; /* its weight gradient is made tile by tile */
} setup;

static void open_setup(setup *s, const struct work *w, int64_t rows, keel_dtype held)
{
    *s = (setup){ .rows = rows };
    keel_case_shapes(w->in, held, &s->in, 1);
    keel_node *n = &s->node;
    *n = (keel_node){ .op = keel_op_find(w->op),
                      .args = s->args,
                      .layer = w->op,
                      .training = true,
                      .backward = true,
                      .real = KEEL_FLOAT32,
                      .held = held,
                      .n_in = 1,
                      .in = &s->in,
                      .weight = s->weight };
    if (n->op->args_for_case) n->op->args_for_case(s->args, w->args);
    n->n_weight = keel_case_shapes(w->weights, KEEL_FLOAT32, s->weight, 2);
    if (keel_node_infer(n) < 0) die(w->in);
    s->tiles = n->op->weights_tile[0] && s->in.shape.rank == 1;
    s->x = values(rows * keel_row_count(&s->in), held);
    s->dx = values(rows * keel_row_count(&s->in), held);
    s->y = values(rows * keel_row_count(&n->out[0]), held);
    s->dy = values(rows * keel_row_count(&n->out[0]), held);
    for (int i = 0; i < n->n_weight; i++) {
        s->w[i] = numbers(keel_row_count(&n->weight[i]));
        s->dw[i] = numbers(keel_row_count(&n->weight[i]));
    }
}

static void close_setup(setup *s)
{
    void *const all[] = { s->x, s->y, s->dx, s->dy, s->w[0], s->w[1], s->dw[0], s->dw[1] };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) keel_free(all[i]);
    keel_node_clear(&s->node);
}

/* ---- contenders ------------------------------------------------------------------------------ */

typedef struct contender {
    const keel_kernel *kernel;
    int column; /* of the table: see tuned.h */
    bool asks;  /* the kernel refuses what the table does not name it for */
    keel_run run;
    keel_tile_run run_tile; /* not NULL: the weight gradient is made tile by tile */
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
                  int column)
{
    const bool narrow = column == KEEL_TUNED_BFLOAT16, tiles = s->tiles && pass == KEEL_WEIGHTS;
    keel_prepare p = { .node = &s->node,
                       .pass = pass,
                       .rows = s->rows,
                       .float32 = narrow ? KEEL_FLOAT32_FMA : (keel_float32)column,
                       .measured = !narrow && column != KEEL_FLOAT32_FMA,
                       .derive = derive,
                       .context = k };
    *k = (contender){ .kernel = kernel, .column = column };
    if (tiles)
        k->run_tile = narrow ? kernel->narrow_tile : kernel->weights_tile;
    else
        k->run = (narrow ? kernel->narrow : kernel->run)[pass];
    if (!k->run && !k->run_tile) return false;
    keel_status status = keel_kernel_prepare(kernel, &p);
    if (status == KEEL_EUNSUP && narrow) {
        k->asks = p.measured = true;
        status = keel_kernel_prepare(kernel, &p);
    }
    if (status == KEEL_EUNSUP) return false;
    if (status < 0) die(kernel->name);
    k->plan = p.plan;
    k->scratch = room(p.scratch);
    return true;
}

static void leave(contender *k)
{
    if (k->kernel->release && !k->run_tile) k->kernel->release(k->plan);
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
        k->run_tile(&(keel_tile_call){ .node = &s->node,
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

static void run_once(const setup *s, const contender *k)
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
    if (k->run_tile)
        run_tiles(s, k);
    else
        k->run(&c);
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Median seconds of each contender. */
static void race(const setup *s, contender *k, int n, double *median)
{
    int64_t repeats[KERNELS_MAX];
    for (int i = 0; i < n; i++) {
        run_once(s, &k[i]);
        const double start = now();
        run_once(s, &k[i]);
        repeats[i] = (int64_t)(TURN_SECONDS / (now() - start)) + 1;
    }
    for (int t = 0; t < TURNS; t++)
        for (int i = 0; i < n; i++) {
            const double start = now();
            for (int64_t r = 0; r < repeats[i]; r++) run_once(s, &k[i]);
            k[i].turn[t] = (now() - start) / (double)repeats[i];
        }
    for (int i = 0; i < n; i++) {
        qsort(k[i].turn, TURNS, sizeof *k[i].turn, by_value);
        median[i] = k[i].turn[TURNS / 2];
    }
}

/* ---- the table ------------------------------------------------------------------------------- */

/* Of float32 that may be multiplied as bfloat16 pieces. */
static bool of_pieces(int column)
{
    return column == KEEL_FLOAT32_EXACT || column == KEEL_FLOAT32_FAST;
}

enum { NAMES = 20 };
typedef struct result { /* of one class and pass, a line for each kernel and way to multiply */
    int n;
    struct {
        const keel_kernel *kernel;
        int column;
        bool asks;
        double seconds[COUNTS];
        int counts; /* it took part in so many */
    } of[NAMES];
} result;

static void note(result *r, const contender *k, double seconds, int count)
{
    int i = 0;
    while (i < r->n && (r->of[i].kernel != k->kernel || r->of[i].column != k->column)) i++;
    if (i == NAMES) return;
    if (i == r->n) {
        r->of[r->n].kernel = k->kernel;
        r->of[r->n++].column = k->column;
    }
    r->of[i].asks = r->of[i].asks || k->asks;
    r->of[i].seconds[count] = seconds;
    r->of[i].counts++;
}

/* Whether line i may be named in a column: in those of float32 also a kernel of FMA's. */
static bool allowed(const result *r, int i, int column)
{
    return r->of[i].column == column ||
           (r->of[i].column == KEEL_FLOAT32_FMA && column != KEEL_TUNED_BFLOAT16);
}

/* The fastest of those allowed, `first` unless another is worth it at every count of rows. */
static int fastest(const result *r, int column, int first)
{
    int best = first;
    for (int i = 0; i < r->n; i++) {
        bool worth = r->of[i].counts == COUNTS && i != first && allowed(r, i, column);
        for (int c = 0; worth && c < COUNTS; c++)
            worth = r->of[i].seconds[c] < WORTH * r->of[first].seconds[c] &&
                    r->of[i].seconds[c] < r->of[first].seconds[c] - SAVES;
        if (worth && (best == first || r->of[i].seconds[1] < r->of[best].seconds[1])) best = i;
    }
    return best;
}

/* What runs where the table says nothing; -1: no kernel. */
static int first_of(const result *r, int column)
{
    int first = -1;
    for (int i = 0; i < r->n; i++)
        if (r->of[i].column == column && !r->of[i].asks && r->of[i].counts == COUNTS &&
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
    const int first = first_of(r, KEEL_FLOAT32_FMA), held = first_of(r, KEEL_TUNED_BFLOAT16);
    if (first < 0) return;
    bool tiles = false;
    for (int i = 0; i < r->n; i++) tiles = tiles || of_pieces(r->of[i].column);
    const int fma = fastest(r, KEEL_FLOAT32_FMA, first);
    const int exact = fastest(r, KEEL_FLOAT32_EXACT, fma),
              fast = fastest(r, KEEL_FLOAT32_FAST, fma);
    const int bfloat16 = held < 0 ? -1 : fastest(r, KEEL_TUNED_BFLOAT16, held);
    fprintf(f,
            "TUNED(%s, %s, %-13s, %lld, %lld, %4lld, %4lld, %5lld, \"%s\", \"%s\", \"%s\", \"%s\") "
            "/*",
            level, class->op->name, name[pass], (long long)class->window, (long long)class->stride,
            (long long)class->c, (long long)class->k, (long long)class->places,
            word(r, fma, first, false), word(r, exact, fma, false), word(r, fast, fma, tiles),
            held < 0 ? "" : word(r, bfloat16, held, false));
    for (int i = 0; i < r->n; i++) {
        const bool narrow = r->of[i].column == KEEL_TUNED_BFLOAT16;
        if (narrow && (i == 0 || r->of[i - 1].column != KEEL_TUNED_BFLOAT16)) fputs(" held:", f);
        fprintf(f, " %s%s %.0f", r->of[i].kernel->name,
                r->of[i].column == KEEL_FLOAT32_FAST ? " fast" : "", 1e6 * r->of[i].seconds[1]);
    }
    fputs(" us */\n", f);
    fflush(f);
}

/* All kernels that have the pass on values of this type. */
static void measure_type(const struct work *w, keel_pass pass, int count, keel_dtype held,
                         keel_tuned *class, result *r)
{
    const bool narrow = held == KEEL_BFLOAT16;
    setup s;
    contender k[KERNELS_MAX];
    double median[KERNELS_MAX];
    int n = 0;
    open_setup(&s, w, w->rows[count], held);
    if (!keel_tuned_class(&s.node, class)) die(w->in);
    for (int i = 0; keel_kernels[i]; i++)
        for (int column = 0; column < KEEL_TUNED_COLUMNS && n < KERNELS_MAX; column++) {
            const bool split = strstr(keel_kernels[i]->name, "split_amx") != NULL;
            if (keel_kernels[i]->op != s.node.op || split != of_pieces(column) ||
                narrow != (column == KEEL_TUNED_BFLOAT16))
                continue;
            n += enter(&k[n], &s, pass, keel_kernels[i], column);
        }
    race(&s, k, n, median);
    for (int i = 0; i < n; i++) {
        note(r, &k[i], median[i], count);
        leave(&k[i]);
    }
    close_setup(&s);
}

static void measure(FILE *f, const struct work *w, keel_pass pass)
{
    keel_tuned class = { 0 };
    result r = { 0 };
    for (int c = 0; c < COUNTS; c++) measure_type(w, pass, c, KEEL_FLOAT32, &class, &r);
    for (int c = 0; c < COUNTS; c++) measure_type(w, pass, c, KEEL_BFLOAT16, &class, &r);
    write_row(f, &class, keel_cpu_isa_name(keel_cpu_level()), pass, &r);
}

/* What the file has for other kinds of processors, and its head. */
static void keep_others(FILE *to, const char *path, const char *level)
{
    char line[1024], mine[32];
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
