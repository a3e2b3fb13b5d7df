/* Finding ops, reporting a call's failure, and the checks and case texts that ops share. */
#include "ops/op.h"
#include "base/plural.h"
#include "ops/cases.h"
#include "ops/infer.h"
#include "ops/window.h"
#include "base/clones.h"
#include "base/memory.h"
#include "base/tree.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const keel_op *keel_op_find(const char *name)
{
    for (int i = 0; keel_ops[i]; i++)
        if (strcmp(keel_ops[i]->name, name) == 0) return keel_ops[i];
    return NULL;
}

static keel_status add_spec(keel_spec **list, int *n, const keel_spec *spec)
{
    keel_spec *more = keel_grow(*list, (size_t)*n + 1, sizeof *more);
    if (!more) return KEEL_ENOMEM;
    *list = more;
    more[(*n)++] = *spec;
    return KEEL_OK;
}

keel_status keel_node_add_out(keel_node *n, const keel_spec *spec)
{
    return add_spec(&n->out, &n->n_out, spec);
}

keel_status keel_node_add_saved(keel_node *n, const keel_spec *spec)
{
    return add_spec(&n->saved, &n->n_saved, spec);
}

void keel_node_clear(keel_node *n)
{
    keel_free(n->out);
    keel_free(n->saved);
    n->out = n->saved = NULL;
    n->n_out = n->n_saved = 0;
    n->partial = n->partial_backward = n->leaf = n->merged = n->merged_backward = n->sums =
        n->scratch = 0;
}

keel_status keel_node_infer(keel_node *n)
{
    keel_node_clear(n);
    return n->op->infer(n);
}

KEEL_CLONES static void add_records(const double *a, const double *b, double *out, int64_t length)
{
#pragma GCC ivdep /* out may be a or b, but does not overlap them in part */
    for (int64_t k = 0; k < length; k++) out[k] = a[k] + b[k];
}

void keel_combine_records(const keel_node *n, keel_combine combine, int64_t length,
                          keel_record left, keel_record right, double *out)
{
    if (combine)
        combine(n, left, right, out);
    else
        add_records(left.data, right.data, out, length);
}

void keel_node_merge(const keel_node *n, bool backward, double *records, int64_t rows,
                     double *merged)
{
    const int64_t length = backward ? n->partial_backward : n->partial;
    const keel_combine combine = backward ? NULL : n->op->combine;
    keel_record stack[KEEL_TREE_LEVELS_MAX + 1];
    int depth = 0;
    for (int64_t row = 0; row < rows; row++) {
        stack[depth++] = (keel_record){ .rows = 1, .data = records + row * length };
        for (int c = keel_tree_closes(rows, row, row + 1, 0, rows, true); c > 0; c--, depth--) {
            keel_record *left = &stack[depth - 2], *right = &stack[depth - 1];
            keel_combine_records(n, combine, length, *left, *right,
                                 records + (left->data - records));
            left->rows += right->rows;
        }
    }
    merged[0] = (double)rows;
    memset(merged + 1, 0, (size_t)length * sizeof *merged);
    if (rows > 0) memcpy(merged + 1, records, (size_t)length * sizeof *merged);
}

/* A worker runs its calls on one thread, so the thread keeps a failure until the engine asks. */
static _Thread_local keel_status call_status = KEEL_OK;

void keel_call_failed(const keel_call *c, keel_status s)
{
    (void)c;
    if (call_status >= 0 && s < 0) call_status = s;
}

keel_status keel_call_status_take(void)
{
    const keel_status s = call_status;
    call_status = KEEL_OK;
    return s;
}

static keel_status check_spec(const keel_node *n, const char *what, int i, const keel_spec *s,
                              keel_dtype dtype)
{
    const char *name = n->op->name;
    char text[96];
    if (s->shape.rank < 0 || s->shape.rank > KEEL_RANK_MAX)
        return keel_fail(KEEL_ESHAPE, "%s: %s %d has rank %d; at most %d is supported", name, what,
                         i, s->shape.rank, (int)KEEL_RANK_MAX);
    if (s->dtype != dtype)
        return keel_fail(KEEL_EUNSUP, "%s: %s %d is %s; this model computes in %s", name, what, i,
                         keel_dtype_name(s->dtype), keel_dtype_name(dtype));
    keel_shape_text(text, &s->shape);
    for (int d = 0; d < s->shape.rank; d++)
        if (s->shape.dim[d] < 1)
            return keel_fail(KEEL_ESHAPE, "%s: %s %d is %s; every dim must be at least 1", name,
                             what, i, text);
    if (keel_shape_check(&s->shape, sizeof(double)) < 0)
        return keel_fail(KEEL_ESHAPE, "%s: %s %d is %s; that is more than memory can hold", name,
                         what, i, text);
    return KEEL_OK;
}

keel_status keel_infer_check(const keel_node *n, int n_in, int min_weight, int max_weight)
{
    if (!keel_dtype_is_real(n->real))
        return keel_fail(KEEL_EUNSUP, "%s: cannot compute in %s; float32 and float64 are supported",
                         n->op->name, keel_dtype_name(n->real));
    if (n_in < 0 ? n->n_in < 1 : n->n_in != n_in)
        return keel_fail(KEEL_EARG, "%s: has %d input%s, needs %d%s", n->op->name, n->n_in,
                         keel_s(n->n_in), n_in < 0 ? 1 : n_in, n_in < 0 ? " or more" : "");
    if (n->n_weight < min_weight || n->n_weight > max_weight)
        return keel_fail(KEEL_EARG, "%s: has %d weight%s, needs %d to %d", n->op->name, n->n_weight,
                         keel_s(n->n_weight), min_weight, max_weight);
    for (int i = 0; i < n->n_in; i++) KEEL_TRY(check_spec(n, "input", i, &n->in[i], n->held));
    for (int i = 0; i < n->n_weight; i++)
        KEEL_TRY(check_spec(n, "weight", i, &n->weight[i], n->real));
    return KEEL_OK;
}

keel_status keel_infer_weight(const keel_node *n, int i, const char *name, const keel_shape *want)
{
    char have_text[96], want_text[96], in_text[96];
    if (keel_shape_equal(&n->weight[i].shape, want)) return KEEL_OK;
    keel_shape_text(have_text, &n->weight[i].shape);
    keel_shape_text(want_text, want);
    keel_shape_text(in_text, &n->in[0].shape);
    return keel_fail(KEEL_ESHAPE, "%s: %s is %s; input %s needs %s", n->op->name, name, have_text,
                     in_text, want_text);
}

keel_status keel_infer_image(const keel_node *n)
{
    char text[96];
    if (n->in[0].shape.rank == 3) return KEEL_OK;
    keel_shape_text(text, &n->in[0].shape);
    return keel_fail(KEEL_ESHAPE, "%s: input is %s; needs an image (height, width, channels)",
                     n->op->name, text);
}

keel_status keel_infer_volume(const keel_node *n)
{
    char text[96];
    if (n->in[0].shape.rank == 4) return KEEL_OK;
    keel_shape_text(text, &n->in[0].shape);
    return keel_fail(KEEL_ESHAPE,
                     "%s: input is %s; needs a volume (depth, height, width, channels)",
                     n->op->name, text);
}

keel_status keel_infer_axis(const keel_node *n, int64_t axis, int *index)
{
    const int rank = n->in[0].shape.rank;
    char text[96];
    if (axis >= -rank && axis < rank) {
        *index = (int)(axis < 0 ? axis + rank : axis);
        return KEEL_OK;
    }
    keel_shape_text(text, &n->in[0].shape);
    return keel_fail(KEEL_EARG, "%s: a row of the input is %s; it has no axis %lld", n->op->name,
                     text, (long long)axis);
}

keel_status keel_infer_out(keel_node *n, const keel_shape *shape)
{
    const keel_status s = keel_shape_check(shape, sizeof(double));
    if (s < 0) return keel_fail_within(s, "%s: the output", n->op->name);
    return keel_node_add_out(n, &(keel_spec){ n->held, *shape });
}

keel_status keel_infer_like(keel_node *n)
{
    KEEL_TRY(keel_infer_check(n, 1, 0, 0));
    return keel_infer_out(n, &n->in[0].shape);
}

keel_axis_split keel_split_at(const keel_shape *s, int index)
{
    keel_axis_split a = { 1, s->rank ? s->dim[index] : 1, 1 };
    for (int d = 0; d < s->rank; d++) {
        if (d < index) a.outer *= s->dim[d];
        if (d > index) a.inner *= s->dim[d];
    }
    return a;
}

/* The text after the word `key`, or NULL. */
static const char *after_key(const char *text, const char *key)
{
    const size_t n = strlen(key);
    for (const char *p = text; p && *p;) {
        const size_t word = strcspn(p, " ");
        if (word == n && strncmp(p, key, n) == 0) return p + n;
        p += word;
        p += strspn(p, " ");
    }
    return NULL;
}

bool keel_case_has(const char *text, const char *key)
{
    return after_key(text, key) != NULL;
}

int keel_case_number(const char *text, const char *key, double *out)
{
    const char *p = after_key(text, key);
    if (!p) return 0;
    *out = strtod(p, NULL);
    return 1;
}

int keel_case_shapes(const char *text, keel_dtype dtype, keel_spec *out, int max)
{
    int n = 0;
    for (; text && *text && n < max; n++) {
        char *end;
        out[n] = (keel_spec){ .dtype = dtype };
        do {
            out[n].shape.dim[out[n].shape.rank++] = strtoll(text, &end, 10);
            text = *end ? end + 1 : end;
        } while (*end == ',' && out[n].shape.rank < KEEL_RANK_MAX);
    }
    return n;
}

int keel_case_ints(const char *text, const char *key, int64_t *out, int max)
{
    const char *p = after_key(text, key);
    int n = 0;
    while (p && n < max) {
        char *end;
        const long long number = strtoll(p, &end, 10);
        if (end == p) break;
        out[n++] = number;
        p = *end == ',' ? end + 1 : NULL;
    }
    return n;
}

/* "3x3x3", "2,2" */
static const char *numbers_text(char out[96], int n, const int64_t *at, char between)
{
    int used = 0;
    for (int d = 0; d < n && used < 96; d++) {
        const char gap[2] = { d ? between : 0, 0 };
        used += snprintf(out + used, 96 - (size_t)used, "%s%lld", gap, (long long)at[d]);
    }
    return out;
}

keel_status keel_window_over(keel_window *w, const keel_node *n, const keel_shape *over,
                             const char *kernel, const int64_t *size, const int64_t *strides,
                             const int64_t *dilation, const int64_t *pad)
{
    enum { LIMIT = 1 << 24 }; /* for each number, so that no sum or product below can overflow */
    const char *name = n->op->name;
    char text[96], window[96], steps[96];
    keel_shape_text(text, over);
    *w = (keel_window){ .dims = over->rank - 1 };
    numbers_text(window, w->dims, size, 'x');
    numbers_text(steps, w->dims, strides, ',');
    for (int d = 0; d < w->dims; d++) {
        const int64_t in = over->dim[d], dil = dilation ? dilation[d] : 1;
        const int64_t before = pad[2 * d], after = pad[2 * d + 1];
        if (in > LIMIT || size[d] < 1 || size[d] > LIMIT || strides[d] < 1 || strides[d] > LIMIT ||
            dil < 1 || dil > LIMIT || before < 0 || before > LIMIT || after < 0 || after > LIMIT)
            return keel_fail(KEEL_EARG,
                             "%s: input %s, %s %s, strides %s and dilation %lld must be from 1 to "
                             "%d, padding from 0",
                             name, text, kernel, window, steps, (long long)dil, (int)LIMIT);
        const int64_t reach = (size[d] - 1) * dil + 1; /* of the dilated window */
        const int64_t room = in + before + after - reach;
        if (room < 0)
            return keel_fail(KEEL_ESHAPE,
                             "%s: input is %s and %s %s%s with padding %s leaves no output; use "
                             "padding='same' or a larger input",
                             name, text, kernel, window, dil > 1 ? " (dilated)" : "",
                             before + after ? "as given" : "valid");
        w->in[d] = in;
        w->out[d] = room / strides[d] + 1;
        w->size[d] = size[d];
        w->stride[d] = strides[d];
        w->dilation[d] = dil;
        w->pad[d] = before;
    }
    return KEEL_OK;
}

keel_status keel_window_init(keel_window *w, const keel_node *n, const char *kernel,
                             const int64_t *size, const int64_t *strides, const int64_t *dilation,
                             const int64_t *pad)
{
    return keel_window_over(w, n, &n->in[0].shape, kernel, size, strides, dilation, pad);
}
