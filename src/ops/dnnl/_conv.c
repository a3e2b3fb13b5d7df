/* Convolution with oneDNN: conv2d, conv3d, as a convolution of C groups depthwise_conv2d, as one of
 * 1x1 windows dense on many places, and conv_transpose, whose forward is a convolution's backward
 * and the other way round.
 *
 * Values are NHWC as everywhere in Keel. Measured on one core with AVX-512 (2.6.3, float32),
 * running on NHWC takes 0.60-1.00 of the time of reordering to oneDNN's blocked layout and back,
 * over ResNet's and small networks' layers, with one exception: the weight gradient of strided
 * windows and of very few channels, where blocked wins (1.1-1.5). layout_of() is that rule.
 *
 * Values held in bfloat16 stay so on both sides of a convolution; oneDNN sums in float32.
 *
 * Weights are packed copies of Keras's HWIO (keel_derived), of whatever layout forward and backward
 * each like; a weight gradient comes out packed and is reordered into HWIO. oneDNN overwrites its
 * results: where the binding says add, they go to scratch and are added from there. */
#include "ops/dnnl/_conv.h"
#include "base/clones.h"
#include "base/memory.h"
#include "base/round.h"
#include "device/cpu/cpu.h"
#include "device/cpu/dnnl.h"
#include "ops/args.h"
#include "tensor/bfloat16.h"

enum { X, W, Y, SIDES }; /* the tensors of a convolution */

typedef struct plan {
    keel_pass pass; /* of the convolution */
    bool transposed;
    keel_dnnl_primitive conv;
    keel_dnnl_primitive move[SIDES]; /* between our layout and oneDNN's; empty: the same layout */
    const keel_derived *packed;      /* weights; NULL: used as they are */
    bool adds, bias;                 /* bias: the primitive's own */
    int64_t at[SIDES]; /* offset in scratch of a tensor in oneDNN's layout; -1: in place */
    int64_t bias_at, scratch_at; /* the bias's gradient, and what the primitives want */
    int64_t out_channels;        /* those with a bias */
} plan;

static void release(void *p)
{
    plan *pl = p;
    if (!pl) return;
    keel_dnnl_destroy(&pl->conv);
    for (int i = 0; i < SIDES; i++) keel_dnnl_destroy(&pl->move[i]);
    keel_free(pl);
}

/* Packing the weights ------------------------------------------------------------------------ */

typedef struct packer {
    keel_dnnl_primitive move;
    void *scratch;
} packer;

static void pack(const keel_derived *d, const void *weight)
{
    const packer *k = d->plan;
    void *data[] = { (void *)weight, d->data };
    (void)keel_dnnl_run(&k->move, data, k->scratch); /* fails on bad pointers only */
}

static void packer_release(void *p)
{
    packer *k = p;
    keel_dnnl_destroy(&k->move);
    keel_free(k->scratch);
    keel_free(k);
}

static keel_status derive(keel_prepare *p, plan *pl, const keel_dnnl_md *ours,
                          const keel_dnnl_md *theirs)
{
    dnnl_primitive_desc_t pd;
    const uint64_t key = keel_dnnl_md_key(theirs);
    if (!key) return KEEL_EUNSUP;
    packer *k = keel_calloc(1, sizeof *k);
    if (!k) return KEEL_ENOMEM;
    keel_status s = keel_dnnl_reorder(&pd, ours, theirs, false);
    if (s >= 0) s = keel_dnnl_create(&k->move, pd, (const int[]){ DNNL_ARG_FROM, DNNL_ARG_TO, 0 });
    if (s >= 0 && k->move.scratch && !(k->scratch = keel_aligned_calloc(k->move.scratch, 1)))
        s = KEEL_ENOMEM;
    if (s < 0) {
        packer_release(k);
        return s;
    }
    keel_derived want = { .bytes = keel_dnnl_md_bytes(theirs),
                          .weight = 0,
                          .key = key,
                          .refresh = pack,
                          .release = packer_release,
                          .plan = k };
    return p->derive(p->context, &want, &pl->packed); /* k is derive's from here on */
}

/* Shapes ------------------------------------------------------------------------------------- */

typedef struct problem {
    int64_t dims[SIDES][6]; /* oneDNN's order: N C (D) H W, (G) O I (D) H W, N K (D) H W */
    int n_dims, n_dims_w;
    int64_t weight_strides[6]; /* of Keras's layout in that order */
    int64_t bias[1];
    keel_dnnl_window window;
    bool few, strided, transposed;
    dnnl_data_type_t ours[SIDES], theirs[SIDES]; /* types of values and of what oneDNN reads */
} problem;

/* Values held in bfloat16 meet weights rounded to it; weight gradients are float32, and so are
 * gradients that are added to what is there, so that the sum is rounded once. */
static void types_of(problem *o, const keel_prepare *p)
{
    const bool narrow = p->node->held == KEEL_BFLOAT16;
    for (int i = 0; i < SIDES; i++) {
        o->ours[i] = narrow && i != W ? dnnl_bf16 : dnnl_f32;
        o->theirs[i] = narrow ? dnnl_bf16 : dnnl_f32;
    }
    if (p->pass == KEEL_WEIGHTS) o->theirs[W] = dnnl_f32;
    if (p->pass == KEEL_BACKWARD && p->in_adds) o->theirs[o->transposed ? Y : X] = dnnl_f32;
    /* as there is a bias to add */
    if (p->pass == KEEL_FORWARD && o->transposed && p->node->n_weight > 1) o->theirs[X] = dnnl_f32;
}

/* A node's convolution in Keel's terms: from x [places.., C] to y [places.., K]. */
typedef struct geometry {
    int dims; /* of places */
    int64_t x[4], y[4], w[5];
    const int64_t *strides, *dilation, *pad;
    int64_t groups;
} geometry;

static void copy(int64_t *to, const int64_t *from, int n)
{
    for (int i = 0; i < n; i++) to[i] = from[i];
}

/* A volume of one plane is an image, for which oneDNN has more kernels. */
static void flatten(geometry *g)
{
    if (g->x[0] != 1 || g->y[0] != 1 || g->w[0] != 1 || g->pad[0] || g->pad[1]) return;
    g->dims = 2;
    copy(g->x, g->x + 1, 3);
    copy(g->y, g->y + 1, 3);
    copy(g->w, g->w + 1, 4);
    g->strides++;
    g->dilation++;
    g->pad += 2;
}

static geometry geometry_of(const keel_node *n, keel_conv_dnnl_op op)
{
    static const int64_t ones[] = { 1, 1 }, none[4] = { 0 };
    const keel_shape *x = &n->in[0].shape, *y = &n->out[0].shape, *w = &n->weight[0].shape;
    geometry g = { .dims = op == KEEL_CONV_3D || op == KEEL_CONV_TRANSPOSE ? 3 : 2, .groups = 1 };
    if (op == KEEL_CONV_DENSE) {
        const int64_t places = keel_row_count(&n->out[0]) / w->dim[1];
        copy(g.x, (int64_t[]){ places, 1, w->dim[0] }, 3);
        copy(g.y, (int64_t[]){ places, 1, w->dim[1] }, 3);
        copy(g.w, (int64_t[]){ 1, 1, w->dim[0], w->dim[1] }, 4);
        g.strides = g.dilation = ones;
        g.pad = none;
        return g;
    }
    if (op == KEEL_CONV_TRANSPOSE) x = &n->out[0].shape, y = &n->in[0].shape;
    copy(g.x, x->dim, g.dims + 1);
    copy(g.y, y->dim, g.dims + 1);
    copy(g.w, w->dim, g.dims + 2);
    if (op == KEEL_CONV_TRANSPOSE) {
        const keel_conv_transpose_args *a = n->args;
        g.strides = a->strides, g.dilation = a->dilation, g.pad = a->pad;
    } else if (op == KEEL_CONV_3D) {
        const keel_conv3d_args *a = n->args;
        g.strides = a->strides, g.dilation = a->dilation, g.pad = a->pad, g.groups = a->groups;
    } else {
        const keel_conv2d_args *a = n->args;
        g.strides = a->strides, g.dilation = a->dilation, g.pad = a->pad;
        g.groups = op == KEEL_CONV_DEPTHWISE ? g.x[2] : a->groups;
    }
    if (g.dims == 3) flatten(&g);
    return g;
}

/* Keras keeps kernels [taps.., C / groups, K]; a depthwise one, [kh, kw, C, m], is the same bytes
 * as [kh, kw, 1, C m] in C groups. Output channels go group by group. */
static keel_status problem_of(problem *o, const keel_prepare *p, keel_conv_dnnl_op op)
{
    const geometry v = geometry_of(p->node, op);
    const int d = v.dims;
    const int64_t groups = v.groups, c = v.x[d], k = v.y[d];
    if (p->rows < 1 || groups < 1 || c % groups || k % groups) return KEEL_EUNSUP;
    if (op == KEEL_CONV_DENSE && v.x[0] < 2) return KEEL_EUNSUP; /* gradients go tile by tile */
    const int64_t cg = c / groups, kg = k / groups;
    const int64_t heads[] = { groups, kg, cg }, steps[] = { kg, 1, k };
    const int skip = groups > 1 ? 0 : 1, w = 3 - skip; /* no dim for one group */
    *o = (problem){ .n_dims = d + 2,
                    .n_dims_w = d + w,
                    .dims = { { p->rows, c }, { 0 }, { p->rows, k } },
                    .bias = { op == KEEL_CONV_TRANSPOSE ? c : k },
                    .window = { .dims = d },
                    .few = cg <= 4,
                    .transposed = op == KEEL_CONV_TRANSPOSE };
    copy(o->dims[W], heads + skip, w);
    copy(o->weight_strides, steps + skip, w);
    int64_t taps = 1;
    bool far = false;
    for (int i = d - 1; i >= 0; i--) {
        o->dims[X][2 + i] = v.x[i];
        o->dims[Y][2 + i] = v.y[i];
        o->dims[W][w + i] = v.w[i];
        o->weight_strides[w + i] = taps * cg * k;
        taps *= v.w[i];
        far = far || v.strides[i] > 1;
        o->window.stride[i] = v.strides[i];
        o->window.dilation[i] = v.dilation[i] - 1;
        o->window.before[i] = v.pad[2 * i];
        /* what the windows really reach over; less than pad where a stride leaves a rest */
        o->window.after[i] =
            (v.y[i] - 1) * v.strides[i] + (v.w[i] - 1) * v.dilation[i] + 1 - v.x[i] - v.pad[2 * i];
    }
    o->strided = far && taps > 1;
    types_of(o, p);
    return KEEL_OK;
}

static dnnl_format_tag_t channels_last(const problem *o)
{
    return o->n_dims == 5 ? dnnl_ndhwc : dnnl_nhwc;
}

static dnnl_format_tag_t layout_of(const problem *o, keel_pass pass)
{
    const bool depthwise = o->n_dims_w > o->n_dims && o->dims[W][2] == 1;
    if (pass == KEEL_WEIGHTS && !depthwise && (o->few || o->strided)) return dnnl_format_tag_any;
    return channels_last(o);
}

/* Prepare ------------------------------------------------------------------------------------ */

/* Layouts: asked (to find the primitive), ours (what the values have), theirs (what it wants). */
typedef struct layouts {
    keel_dnnl_md asked[SIDES], ours[SIDES], theirs[SIDES], bias;
} layouts;

static keel_status find(dnnl_primitive_desc_t *pd, layouts *l, const problem *o, keel_pass pass,
                        bool bias)
{
    static const dnnl_query_t what[][SIDES] = {
        [KEEL_FORWARD] = { dnnl_query_src_md, dnnl_query_weights_md, dnnl_query_dst_md },
        [KEEL_BACKWARD] = { dnnl_query_diff_src_md, dnnl_query_weights_md, dnnl_query_diff_dst_md },
        [KEEL_WEIGHTS] = { dnnl_query_src_md, dnnl_query_diff_weights_md, dnnl_query_diff_dst_md },
    };
    const dnnl_format_tag_t tag = layout_of(o, pass);
    const keel_dnnl_md *b = bias ? &l->bias : NULL;
    for (int i = X; i <= Y; i += Y - X) {
        KEEL_TRY(
            keel_dnnl_md_tag(&l->ours[i], o->ours[i], o->n_dims, o->dims[i], channels_last(o)));
        KEEL_TRY(keel_dnnl_md_tag(&l->asked[i], o->theirs[i], o->n_dims, o->dims[i], tag));
    }
    KEEL_TRY(
        keel_dnnl_md_strides(&l->ours[W], dnnl_f32, o->n_dims_w, o->dims[W], o->weight_strides));
    KEEL_TRY(
        keel_dnnl_md_tag(&l->asked[W], o->theirs[W], o->n_dims_w, o->dims[W], dnnl_format_tag_any));
    KEEL_TRY(keel_dnnl_md_tag(&l->bias, dnnl_f32, 1, o->bias, dnnl_a));
    const keel_dnnl_md *x = &l->asked[X], *w = &l->asked[W], *y = &l->asked[Y];
    if (pass == KEEL_FORWARD) KEEL_TRY(keel_dnnl_conv_forward(pd, x, w, b, y, &o->window));
    if (pass == KEEL_BACKWARD) KEEL_TRY(keel_dnnl_conv_backward(pd, x, w, y, &o->window));
    if (pass == KEEL_WEIGHTS) KEEL_TRY(keel_dnnl_conv_weights(pd, x, w, b, y, &o->window));
    if (keel_dnnl_is_reference(*pd)) return KEEL_EUNSUP;
    for (int i = 0; i < SIDES; i++)
        KEEL_TRY(keel_dnnl_md_wanted(&l->theirs[i], *pd, what[pass][i]));
    return KEEL_OK;
}

static int64_t take(int64_t *scratch, size_t bytes)
{
    const int64_t at = *scratch;
    *scratch += keel_round_up((int64_t)bytes, 64);
    return at;
}

/* Where oneDNN's side of tensor i is, and how it gets there or back. */
static keel_status place(plan *pl, keel_prepare *p, layouts *l, int i)
{
    const bool result = i == (pl->pass == KEEL_FORWARD ? Y : pl->pass == KEEL_BACKWARD ? X : W);
    const bool same = keel_dnnl_md_equal(&l->ours[i], &l->theirs[i]);
    dnnl_primitive_desc_t pd;
    pl->at[i] = -1;
    if (i == W && !result) return same ? KEEL_OK : derive(p, pl, &l->ours[W], &l->theirs[W]);
    /* An own copy also for a weight gradient that nobody asked for, when only the bias is trained.
     */
    if (same && !(result && pl->adds) && !(result && i == W)) return KEEL_OK;
    pl->at[i] = take(&p->scratch, keel_dnnl_md_bytes(&l->theirs[i]));
    if (result)
        KEEL_TRY(keel_dnnl_reorder(&pd, &l->theirs[i], &l->ours[i], pl->adds));
    else
        KEEL_TRY(keel_dnnl_reorder(&pd, &l->ours[i], &l->theirs[i], false));
    return keel_dnnl_create(&pl->move[i], pd, (const int[]){ DNNL_ARG_FROM, DNNL_ARG_TO, 0 });
}

static keel_status make_plan(plan *pl, keel_prepare *p, layouts *l, const problem *o, bool tiles)
{
    static const int args[][5] = {
        [KEEL_FORWARD] = { DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST, DNNL_ARG_BIAS },
        [KEEL_BACKWARD] = { DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST },
        [KEEL_WEIGHTS] = { DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST,
                           DNNL_ARG_DIFF_BIAS },
    };
    dnnl_primitive_desc_t pd = NULL;
    int arg[5];
    const keel_pass pass = !o->transposed || p->pass == KEEL_WEIGHTS ? p->pass
                           : p->pass == KEEL_FORWARD                 ? KEEL_BACKWARD
                                                                     : KEEL_FORWARD;
    *pl = (plan){ .pass = pass,
                  .transposed = o->transposed,
                  .bias = p->node->n_weight > 1 && p->pass != KEEL_BACKWARD && !o->transposed,
                  .adds = p->pass == KEEL_BACKWARD  ? p->in_adds
                          : p->pass == KEEL_WEIGHTS ? p->weight_adds
                                                    : false,
                  .out_channels = o->bias[0] };
    keel_status s = find(&pd, l, o, pass, pl->bias);
    if (s >= 0 && tiles && !keel_dnnl_uses_tiles(pd)) s = KEEL_EUNSUP;
    if (s < 0) {
        if (pd) dnnl_primitive_desc_destroy(pd);
        return s;
    }
    for (int i = 0; i < 5; i++) arg[i] = i == 3 && !pl->bias ? 0 : args[pass][i];
    KEEL_TRY(keel_dnnl_create(&pl->conv, pd, arg));
    p->scratch = 0;
    for (int i = 0; i < SIDES; i++) KEEL_TRY(place(pl, p, l, i));
    if (pl->bias) pl->bias_at = take(&p->scratch, (size_t)pl->out_channels * sizeof(float));
    size_t most = pl->conv.scratch; /* the primitives run one after the other */
    for (int i = 0; i < SIDES; i++) most = most > pl->move[i].scratch ? most : pl->move[i].scratch;
    pl->scratch_at = take(&p->scratch, most);
    return KEEL_OK;
}

static keel_status prepare(keel_prepare *p, keel_conv_dnnl_op op, bool tiles)
{
    problem o;
    layouts l = { 0 };
    const keel_node *n = p->node;
    if (n->real != KEEL_FLOAT32 || p->pass > KEEL_WEIGHTS || n->in[0].dtype != n->held ||
        (n->held == KEEL_BFLOAT16 && !keel_cpu_bf16()))
        return KEEL_EUNSUP;
    KEEL_TRY(problem_of(&o, p, op));
    plan *pl = keel_calloc(1, sizeof *pl);
    if (!pl) return KEEL_ENOMEM;
    const keel_status s = make_plan(pl, p, &l, &o, tiles);
    for (int i = 0; i < SIDES; i++) {
        keel_dnnl_md_free(&l.asked[i]);
        keel_dnnl_md_free(&l.ours[i]);
        keel_dnnl_md_free(&l.theirs[i]);
    }
    keel_dnnl_md_free(&l.bias);
    if (s < 0)
        release(pl);
    else
        p->plan = pl;
    return s;
}

keel_status keel_conv_dnnl_prepare(keel_prepare *p, keel_conv_dnnl_op op)
{
    return prepare(p, op, false);
}

/* Measured on a core with AMX over ResNet-50 at 16 rows, bfloat16 takes of float32's time: in 3.2
 * 0.20 forward, 0.21 backward, 0.37 for weight gradients; in 2.6.3 0.20, 0.31 and 0.75, where our
 * own kernels, already those of pairs, are the better choice. */
keel_status keel_conv_dnnl_prepare_tiles(keel_prepare *p, keel_conv_dnnl_op op)
{
    const bool slow = DNNL_VERSION_MAJOR < 3 && p->pass == KEEL_WEIGHTS;
    if (p->node->held != KEEL_BFLOAT16 || keel_cpu_level() < KEEL_CPU_AMX || slow)
        return KEEL_EUNSUP;
    return prepare(p, op, true);
}

/* Run ---------------------------------------------------------------------------------------- */

/* Of a transposed convolution, whose primitive knows none. */
KEEL_CLONES static void add_bias(float *restrict y, const float *restrict bias, int64_t places,
                                 int64_t n)
{
    for (int64_t i = 0; i < places; i++)
        for (int64_t k = 0; k < n; k++) y[i * n + k] += bias[k];
}

/* ours: the tensors in our layout, by side; what is missing runs in scratch. */
static void run(const keel_call *c, void *const ours[SIDES], void *bias)
{
    const plan *pl = c->plan;
    const int result = pl->pass == KEEL_FORWARD ? Y : pl->pass == KEEL_BACKWARD ? X : W;
    char *const scratch = c->scratch;
    void *data[SIDES + 1] = { ours[X], ours[W], ours[Y], bias };
    keel_status s = KEEL_OK;
    for (int i = 0; i < SIDES; i++)
        if (pl->at[i] >= 0) data[i] = scratch + pl->at[i];
    if (pl->packed) data[W] = pl->packed->data;
    for (int i = 0; i < SIDES && s >= 0; i++)
        if (i != result && pl->move[i].primitive)
            s = keel_dnnl_run(&pl->move[i], (void *[]){ ours[i], data[i] },
                              scratch + pl->scratch_at);
    if (s >= 0) s = keel_dnnl_run(&pl->conv, data, scratch + pl->scratch_at);
    if (s >= 0 && pl->transposed && bias)
        add_bias(data[X], bias, c->rows * keel_row_count(&c->node->out[0]) / pl->out_channels,
                 pl->out_channels);
    if (s >= 0 && pl->move[result].primitive && ours[result])
        s = keel_dnnl_run(&pl->move[result], (void *[]){ data[result], ours[result] },
                          scratch + pl->scratch_at);
    if (s < 0) keel_call_failed(c, s);
}

void keel_conv_dnnl_forward(const keel_call *c)
{
    const bool turned = ((const plan *)c->plan)->transposed;
    void *const x = (void *)c->in[0], *const y = c->out[0];
    run(c, (void *[]){ turned ? y : x, (void *)c->weight[0], turned ? x : y },
        c->node->n_weight > 1 ? (void *)c->weight[1] : NULL);
}

void keel_conv_dnnl_backward(const keel_call *c)
{
    const bool turned = ((const plan *)c->plan)->transposed;
    void *const dx = c->in_grad[0], *const dy = (void *)c->out_grad[0];
    if (dx) run(c, (void *[]){ turned ? dy : dx, (void *)c->weight[0], turned ? dx : dy }, NULL);
}

/* The bias's gradient of a transposed convolution: sums over places of dy [places, n]. */
KEEL_CLONES static void sum_places(float *db, const keel_call *c, int64_t n)
{
    enum { BLOCK = 64 };
    const int64_t places = c->rows * keel_row_count(&c->node->out[0]) / n;
    const float *wide = c->node->held == KEEL_BFLOAT16 ? NULL : c->out_grad[0];
    const keel_bf16 *narrow = c->out_grad[0];
    for (int64_t k0 = 0; k0 < n; k0 += BLOCK) {
        const int64_t nk = n - k0 < BLOCK ? n - k0 : BLOCK;
        double sum[BLOCK] = { 0 };
        for (int64_t i = 0; i < places; i++) {
            const int64_t at = i * n + k0;
            if (wide)
                for (int64_t k = 0; k < nk; k++) sum[k] += (double)wide[at + k];
            else
                for (int64_t k = 0; k < nk; k++) sum[k] += (double)keel_bf16_wide(narrow[at + k]);
        }
        for (int64_t k = 0; k < nk; k++)
            db[k0 + k] = (float)sum[k] + (c->weight_adds ? db[k0 + k] : 0);
    }
}

static void transposed_weights(const keel_call *c)
{
    if (c->weight_grad[0])
        run(c, (void *[]){ (void *)c->out_grad[0], c->weight_grad[0], (void *)c->in[0] }, NULL);
    if (c->node->n_weight > 1 && c->weight_grad[1])
        sum_places(c->weight_grad[1], c, ((const plan *)c->plan)->out_channels);
}

void keel_conv_dnnl_weights(const keel_call *c)
{
    if (((const plan *)c->plan)->transposed) {
        transposed_weights(c);
        return;
    }
    const plan *pl = c->plan;
    float *const own = (float *)((char *)c->scratch + pl->bias_at);
    float *const db = c->node->n_weight > 1 ? c->weight_grad[1] : NULL;
    const bool direct = pl->bias && db && !pl->adds;
    if (!c->weight_grad[0] && !(pl->bias && db)) return;
    run(c, (void *[]){ (void *)c->in[0], c->weight_grad[0], (void *)c->out_grad[0] },
        direct ? db : own);
    if (pl->bias && db && pl->adds)
        for (int64_t i = 0; i < pl->out_channels; i++) db[i] += own[i];
}

void keel_conv_dnnl_release(void *p)
{
    release(p);
}
