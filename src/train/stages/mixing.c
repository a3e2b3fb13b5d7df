/* MixUp: rows of a batch are w a + (1 - w) b, of a row and another one that a permutation of the
 * batch gives it; w is drawn from the beta distribution (alpha, alpha). CutMix: a rectangle of the
 * image is that of the other one, and w is the share of what stays. Labels are mixed by the same w.
 *
 * All draws are a function of (seed, pass, stage, number of the batch, row). Source: Zhang et al.
 * 2017, arXiv 1710.09412; Yun et al. 2019, arXiv 1905.04899; gamma: Marsaglia and Tsang 2000. */
#include "train/stages/mixing.h"
#include "base/memory.h"
#include "data/each.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include "train/stages/change.h"
#include <math.h>
#include <string.h>

typedef struct mixing {
    bool cuts;        /* CutMix */
    double low, high; /* of alpha */
    int image, label;
} mixing;

/* ---- arguments ------------------------------------------------------------------------------- */

/* A number, or a list of two. */
static void read_range(const json_t *v, mixing *m)
{
    m->low = json_number_value(json_is_array(v) ? json_array_get(v, 0) : v);
    m->high = json_is_array(v) && json_array_size(v) > 1 ? json_number_value(json_array_get(v, 1))
                                                         : m->low;
    /* as in Keras, a factor that is one number is the upper end */
    if (m->cuts && m->low == m->high) m->low = 0;
}

static keel_status read_args(const keel_applied *s, mixing *m)
{
    json_t *args = keel_fields_json(&s->stage->type, s->args);
    if (!args) return KEEL_ENOMEM;
    m->cuts = json_object_get(args, "factor") != NULL;
    read_range(json_object_get(args, m->cuts ? "factor" : "alpha"), m);
    json_decref(args);
    if (m->low >= 0 && m->high >= m->low && (m->cuts || m->low > 0)) return KEEL_OK;
    return keel_fail(KEEL_EARG, "%s must be above 0", m->cuts ? "factor" : "alpha");
}

static keel_status check_fields(const keel_data_spec *spec, const mixing *m)
{
    const keel_data_field *x = &spec->field[m->image], *y = &spec->field[m->label];
    char shape[96];
    if (x->shape.rank != 3 || x->dtype == KEEL_STRING) {
        keel_shape_text(shape, &x->shape);
        return keel_fail(KEEL_ESHAPE, "'%s' has rows of %s, which are no images", x->path, shape);
    }
    if (y->dtype == KEEL_STRING)
        return keel_fail(KEEL_EARG, "the labels '%s' are texts: look them up and encode them first",
                         y->path);
    if (y->shape.rank == 0 && !keel_dtype_is_real(y->dtype))
        return keel_fail(KEEL_EARG,
                         "the labels '%s' are numbers of classes, which cannot be mixed: "
                         "encode them first, by CategoryEncoding with output_mode one_hot or by "
                         "categorical labels",
                         y->path);
    return KEEL_OK;
}

static keel_status infer(keel_applied *s, keel_data_spec *spec)
{
    mixing *m = keel_calloc(1, sizeof *m);
    if (!m) return KEEL_ENOMEM;
    s->made = m;
    KEEL_TRY(read_args(s, m));
    if (!spec->batched)
        return keel_fail(KEEL_EARG, "it mixes rows of a batch with each other: it stands behind "
                                    "batch");
    m->image = keel_spec_first(spec, KEEL_ROLE_INPUT);
    m->label = keel_spec_first(spec, KEEL_ROLE_TARGET);
    if (m->image < 0 || m->label < 0)
        return keel_fail(KEEL_EARG, "it mixes images with their labels, and rows have no %s",
                         m->image < 0 ? "input" : "target");
    KEEL_TRY(check_fields(spec, m));
    if (!m->cuts) spec->field[m->image].dtype = KEEL_FLOAT32; /* CutMix only moves pixels */
    spec->field[m->label].dtype = KEEL_FLOAT32;
    s->by_index = false;
    return KEEL_OK;
}

static bool is_random(const keel_applied *s)
{
    (void)s;
    return true;
}

static void release(keel_applied *s)
{
    keel_free(s->made);
    s->made = NULL;
}

/* ---- draws ----------------------------------------------------------------------------------- */

typedef struct draws {
    keel_chance chance;
    uint64_t row;
    uint32_t block; /* next */
} draws;

static double uniform(draws *d) /* in (0, 1) */
{
    uint32_t word[4];
    keel_philox(word, &d->chance, d->row, d->block++);
    return ((double)word[0] + 0.5) / 4294967296.0;
}

/* The logarithm of a gamma(alpha) number, which is too small for a double if alpha is small. */
static double log_gamma_draw(draws *d, double alpha)
{
    const double more = alpha < 1 ? 1 : 0; /* gamma(a) = gamma(a + 1) u^(1/a) */
    const double k = alpha + more - 1.0 / 3, c = 1 / sqrt(9 * k);
    for (;;) {
        double z[4];
        keel_normals(z, &d->chance, d->row, d->block++);
        const double u = uniform(d), v = 1 + c * z[0], cube = v * v * v;
        if (v <= 0 || log(u) >= z[0] * z[0] / 2 + k - k * cube + k * log(cube)) continue;
        return log(k * cube) + (more > 0 ? log(uniform(d)) / alpha : 0);
    }
}

static double beta_draw(draws *d, double alpha)
{
    const double a = log_gamma_draw(d, alpha), b = log_gamma_draw(d, alpha);
    return 1 / (1 + exp(b - a));
}

/* The chance of one batch: its rows draw as rows of their own. */
static keel_chance chance_of(const keel_applied *s, const keel_position *at)
{
    const uint32_t epoch = keel_stage_chance(s, at).epoch;
    const keel_chance stage = { .seed = keel_change_seed(s, at), .epoch = epoch };
    uint32_t word[4];
    keel_philox(word, &stage, (uint64_t)at->index, 0);
    return (keel_chance){ .seed = (uint64_t)word[0] << 32 | word[1], .epoch = epoch };
}

/* ---- a batch --------------------------------------------------------------------------------- */

typedef struct mixture { /* of a row */
    int64_t other;
    float weight;      /* of the row itself */
    int64_t box[2][2]; /* down, across: first place and the one behind the last */
} mixture;

/* The places i with i >= begin and i < end, of n. */
static void places(int64_t at[2], float begin, float end, int64_t n)
{
    at[0] = (int64_t)ceilf(begin);
    at[1] = (int64_t)ceilf(end);
    if (at[1] > n) at[1] = n;
}

static void draw_box(mixture *x, draws *d, const keel_shape *image)
{
    const float ratio = sqrtf(1 - x->weight);
    float area = 1;
    for (int k = 1; k >= 0; k--) { /* across first, as in Keras */
        const float n = (float)image->dim[k], length = ratio * n;
        const float begin = (float)uniform(d) * (n - length), end = begin + length;
        places(x->box[k], begin, end, image->dim[k]);
        area *= end - begin;
    }
    x->weight = 1 - area / (float)(image->dim[0] * image->dim[1]);
}

static mixture mixture_of(const mixing *m, const keel_chance *chance, double alpha, int64_t row,
                          const keel_permutation *order, const keel_shape *image)
{
    draws d = { .chance = *chance, .row = (uint64_t)row + 1 };
    mixture x = { .other = (int64_t)keel_permutation_at(order, (uint64_t)row),
                  .weight = (float)beta_draw(&d, alpha) };
    if (m->cuts) draw_box(&x, &d, image);
    return x;
}

static void mix(float *to, const float *a, const float *b, float w, int64_t n)
{
    for (int64_t i = 0; i < n; i++) to[i] = w * a[i] + (1 - w) * b[i];
}

static void cut(char *to, const char *a, const char *b, const mixture *x, const keel_shape *image,
                size_t pixel)
{
    const size_t line = (size_t)image->dim[1] * pixel;
    memcpy(to, a, (size_t)image->dim[0] * line);
    if (x->box[1][1] <= x->box[1][0]) return;
    for (int64_t i = x->box[0][0]; i < x->box[0][1]; i++) {
        const size_t from = (size_t)i * line + (size_t)x->box[1][0] * pixel;
        memcpy(to + from, b + from, (size_t)(x->box[1][1] - x->box[1][0]) * pixel);
    }
}

/* A field of all rows as float32: as it is, or converted in scratch. */
static const void *as_floats(const keel_element *e, const keel_data_spec *spec, int field, int i,
                             keel_scratch *scratch)
{
    const keel_dtype has = spec->field[field].dtype;
    const int64_t n = keel_shape_count(&e->field[field].shape);
    if (has == KEEL_FLOAT32) return e->field[field].data;
    float *to = keel_scratch_reserve(scratch, i, (size_t)n * sizeof *to + 1);
    if (to) keel_convert(to, KEEL_FLOAT32, e->field[field].data, has, n);
    return to;
}

static keel_status mix_rows(const keel_applied *s, const keel_position *at, const keel_element *e,
                            void *const *to, keel_scratch *scratch)
{
    const mixing *m = s->made;
    const keel_data_spec *spec = &s->parent[0]->origin->spec;
    const keel_shape image = keel_row_shape(&e->field[m->image].shape);
    const keel_shape label = keel_row_shape(&e->field[m->label].shape);
    const int64_t n = e->field[m->image].shape.dim[0];
    const int64_t pixels = keel_shape_count(&image), labels = keel_shape_count(&label);
    const size_t pixel = (size_t)image.dim[2] * keel_dtype_size(spec->field[m->image].dtype);
    const size_t n_bytes = (size_t)(image.dim[0] * image.dim[1]) * pixel;
    const void *x = m->cuts ? e->field[m->image].data : as_floats(e, spec, m->image, 0, scratch);
    const float *y = as_floats(e, spec, m->label, 1, scratch);
    if (!x || !y) return KEEL_ENOMEM;
    const keel_chance chance = chance_of(s, at);
    keel_chance shuffle = chance;
    keel_permutation order;
    shuffle.stream = KEEL_STREAM_SHUFFLE;
    if (n) keel_permutation_init(&order, (uint64_t)n, &shuffle);
    draws first = { .chance = chance };
    const double alpha = m->low + (m->high - m->low) * uniform(&first) + (m->cuts ? 1e-6 : 0);
    for (int64_t i = 0; i < n; i++) {
        const mixture z = mixture_of(m, &chance, alpha, i, &order, &image);
        if (m->cuts)
            cut((char *)to[m->image] + (size_t)i * n_bytes, (const char *)x + (size_t)i * n_bytes,
                (const char *)x + (size_t)z.other * n_bytes, &z, &image, pixel);
        else
            mix((float *)to[m->image] + i * pixels, (const float *)x + i * pixels,
                (const float *)x + z.other * pixels, z.weight, pixels);
        mix((float *)to[m->label] + i * labels, y + i * labels, y + z.other * labels, z.weight,
            labels);
    }
    return KEEL_OK;
}

/* Fields that are not float32 are converted first. */
static int64_t converted_bytes(const keel_data_spec *spec, int field)
{
    int64_t n;
    const keel_data_field *f = &spec->field[field];
    if (f->dtype == KEEL_FLOAT32 || keel_shape_is_open(&f->shape)) return 0;
    return keel_mul_i64(keel_shape_count(&f->shape) * (int64_t)sizeof(float), spec->max_rows, &n)
               ? n + 1
               : INT64_MAX / 4;
}

static int64_t needs(const keel_applied *s)
{
    const mixing *m = s->made;
    const keel_data_spec *spec = &s->parent[0]->origin->spec;
    return (m->cuts ? 0 : converted_bytes(spec, m->image)) + converted_bytes(spec, m->label);
}

static keel_status make(const keel_applied *s, keel_account *a, keel_position at,
                        const keel_element *e, keel_element **out, keel_scratch *scratch)
{
    const mixing *m = s->made;
    keel_shape shape[KEEL_FIELDS_MAX];
    void *to[KEEL_FIELDS_MAX];
    keel_element *made;
    for (int i = 0; i < s->spec->n_field; i++) shape[i] = e->field[i].shape;
    KEEL_TRY(keel_element_create(&made, a, s->spec, shape));
    for (int i = 0; i < s->spec->n_field; i++) {
        to[i] = made->field[i].data;
        const size_t n = keel_element_bytes(made, s->spec, i);
        if (i != m->image && i != m->label && n) memcpy(to[i], e->field[i].data, n);
    }
    const keel_status r = mix_rows(s, &at, e, to, scratch);
    if (r < 0) {
        keel_element_release(made);
        return r;
    }
    *out = made;
    return KEEL_OK;
}

const keel_stage keel_mixing_stage = {
    .n_parent = 1,
    .no_index = true,
    .infer = infer,
    .is_random = is_random,
    KEEL_EACH_STAGE,
    .make = make,
    .needs = needs,
    .release = release,
};
