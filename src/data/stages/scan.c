/* tf.data's scan: a function of each element and of a state that it changes. The state begins anew
 * with each pass, so a pass depends on its own elements alone. A call that fails changes nothing.
 */
#include "base/memory.h"
#include "data/iter.h"
#include "data/sources/called.h"
#include "data/stage.h"
#include "keel/pipeline_calls.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include <string.h>

enum { ALIGNED = 64 };

typedef struct scan_args {
    keel_scan f; /* its state and fields are not used after infer */
} scan_args;

typedef struct scan_state { /* what a pass begins with */
    int n;
    keel_tensor at[KEEL_FIELDS_MAX]; /* data: in bytes */
    size_t n_bytes;
    char *bytes;
} scan_state;

static keel_status check_state(const keel_scan *f)
{
    if (f->n_state < 0 || f->n_state > KEEL_FIELDS_MAX || (f->n_state && !f->state))
        return keel_fail(KEEL_EARG, "%s: 0 to %d tensors of state", f->name, KEEL_FIELDS_MAX);
    for (int i = 0; i < f->n_state; i++) {
        const keel_tensor *t = &f->state[i];
        if (t->dtype == KEEL_STRING) return keel_fail(KEEL_EUNSUP, "%s: a state of texts", f->name);
        KEEL_TRY(keel_shape_check(&t->shape, keel_dtype_size(t->dtype)));
        if (!t->data) return keel_fail(KEEL_EARG, "%s: state %d has no data", f->name, i);
    }
    return KEEL_OK;
}

static keel_status copy_state(scan_state *to, const keel_scan *f)
{
    size_t offset[KEEL_FIELDS_MAX];
    KEEL_TRY(check_state(f));
    for (to->n = 0; to->n < f->n_state; to->n++) {
        const keel_tensor *t = &f->state[to->n];
        const size_t n = (size_t)keel_shape_count(&t->shape) * keel_dtype_size(t->dtype);
        offset[to->n] = to->n_bytes;
        if (n > SIZE_MAX / 4 - to->n_bytes)
            return keel_fail(KEEL_ESHAPE, "%s: the state is larger than the address space",
                             f->name);
        to->n_bytes += (n + ALIGNED - 1) / ALIGNED * ALIGNED;
    }
    if (!(to->bytes = keel_aligned_calloc(1, to->n_bytes + 1))) return KEEL_ENOMEM;
    for (int i = 0; i < to->n; i++) {
        const keel_tensor *t = &f->state[i];
        to->at[i] = (keel_tensor){ t->dtype, t->shape, to->bytes + offset[i] };
        memcpy(to->at[i].data, t->data,
               (size_t)keel_shape_count(&t->shape) * keel_dtype_size(t->dtype));
    }
    return KEEL_OK;
}

static keel_status infer(keel_applied *s, keel_data_spec *spec)
{
    const keel_scan *f = &((const scan_args *)s->args)->f;
    scan_state *begin = s->made = keel_calloc(1, sizeof *begin);
    if (!begin) return KEEL_ENOMEM;
    KEEL_TRY(copy_state(begin, f));
    if (!f->n_field) return KEEL_OK;
    spec->n_field = 0;
    KEEL_TRY(keel_spec_add_all(spec, f->n_field, f->field, f->name));
    if (keel_spec_is_open(spec))
        return keel_fail(KEEL_EUNSUP, "%s: a field of the result has open dims", f->name);
    return KEEL_OK;
}

static void release(keel_applied *s)
{
    keel_free(((scan_state *)s->made)->bytes);
    keel_free(s->made);
}

static bool is_random(const keel_applied *s)
{
    return ((const scan_args *)s->args)->f.random;
}

typedef struct scan_iter {
    char *state, *next; /* next: given to the call, and kept if it succeeds */
    keel_element *in;   /* whose call failed */
    int64_t taken;      /* elements, those that were left out too */
} scan_iter;

static keel_status begin(keel_iter *it)
{
    scan_iter *w = it->own;
    const scan_state *first = it->applied->made;
    w->state = keel_aligned_calloc(1, first->n_bytes + 1);
    w->next = keel_aligned_calloc(1, first->n_bytes + 1);
    if (!w->state || !w->next) return KEEL_ENOMEM;
    memcpy(w->state, first->bytes, first->n_bytes);
    return keel_iter_begin(it->parent[0], it->at.pass);
}

static void end(keel_iter *it)
{
    scan_iter *w = it->own;
    keel_element_release(w->in);
    keel_free(w->state);
    keel_free(w->next);
    *w = (scan_iter){ 0 };
}

/* The result of an element, whose bytes are not set. */
static keel_status create(keel_iter *it, const keel_element *in, keel_element **out)
{
    const keel_scan *f = &((const scan_args *)it->applied->args)->f;
    const int64_t rows = keel_element_rows(in, it->spec);
    keel_shape shape[KEEL_FIELDS_MAX];
    for (int i = 0; i < it->spec->n_field; i++) {
        shape[i] = f->n_field ? it->spec->field[i].shape : in->field[i].shape;
        if (f->n_field && it->spec->batched)
            KEEL_TRY(keel_batch_shape(&shape[i], &shape[i], rows, it->spec->field[i].path));
    }
    return keel_element_create_zeroed(out, it->run->account, it->spec, shape);
}

static keel_status call(keel_iter *it, const keel_element *e, keel_element *made)
{
    scan_iter *w = it->own;
    const keel_scan *f = &((const scan_args *)it->applied->args)->f;
    const scan_state *first = it->applied->made;
    const keel_data_spec *from = &it->applied->parent[0]->origin->spec;
    const keel_chance c = keel_stage_chance(it->applied, &it->at);
    const keel_element_place place = { it->at.seed, it->at.pass, w->taken, c.stream };
    keel_tensor in[KEEL_FIELDS_MAX], to[KEEL_FIELDS_MAX], state[KEEL_FIELDS_MAX];
    memcpy(w->next, w->state, first->n_bytes);
    for (int i = 0; i < first->n; i++) {
        state[i] = first->at[i];
        state[i].data = w->next + ((char *)first->at[i].data - first->bytes);
    }
    for (int i = 0; i < from->n_field; i++)
        in[i] = (keel_tensor){ from->field[i].dtype, e->field[i].shape, e->field[i].data };
    for (int i = 0; i < it->spec->n_field; i++)
        to[i] =
            (keel_tensor){ it->spec->field[i].dtype, made->field[i].shape, made->field[i].data };
    const unsigned texts = keel_error_count();
    const keel_status s = f->call(f->context, state, in, to, &place);
    return s == KEEL_OK ? KEEL_OK : keel_callback_failed(texts, s, "%s:", f->name);
}

static keel_status next(keel_iter *it, keel_element **out)
{
    scan_iter *w = it->own;
    keel_element *made;
    if (!w->in) {
        const keel_status s = keel_iter_next(it->parent[0], &w->in);
        if (s != KEEL_OK) return s;
    }
    KEEL_TRY(create(it, w->in, &made));
    const keel_status s = call(it, w->in, made);
    if (s < 0) {
        keel_element_release(made);
        return s;
    }
    KEEL_TRY(keel_element_own_texts(&made, it->spec)); /* that the call has set may be its own */
    char *swap = w->state;
    w->state = w->next;
    w->next = swap;
    made->place = w->in->place;
    keel_element_release(w->in);
    w->in = NULL;
    w->taken++;
    *out = made;
    return KEEL_OK;
}

static void pass(keel_iter *it)
{
    scan_iter *w = it->own;
    if (!w->in) {
        keel_iter_pass(it->parent[0]);
        return;
    }
    keel_element_release(w->in);
    w->in = NULL;
    w->taken++;
}

static void release_args(void *args)
{
    const scan_args *a = args;
    if (a->f.release) a->f.release(a->f.context);
}

const keel_stage keel_stage_scan = {
    .type = { .name = "scan",
              .module = "keel.data",
              .help = "A function of each element and of a state; only from C, by "
                      "keel_dataset_scan.",
              .args_size = sizeof(scan_args),
              .release = release_args },
    .n_parent = 1,
    .no_index = true,
    .infer = infer,
    .is_random = is_random,
    .iter_size = sizeof(scan_iter),
    .begin = begin,
    .next = next,
    .end = end,
    .pass = pass,
    .release = release,
};

keel_status keel_dataset_scan(keel_dataset **out, keel_dataset *d, const keel_scan *scan)
{
    scan_args a = { 0 };
    if (!out || !d || !scan) return keel_fail(KEEL_EARG, "scan: out, d and scan must not be NULL");
    if (scan->size < sizeof a.f)
        return keel_fail(KEEL_EARG, "scan: size must be sizeof(keel_scan)");
    a.f = *scan;
    if (!a.f.name) a.f.name = "scan";
    KEEL_TRY(keel_callback_check(a.f.name, a.f.call, a.f.n_field, a.f.field));
    a.f.release = NULL; /* after a failure the caller still owns the context */
    KEEL_TRY(keel_stage_apply_args(out, &keel_stage_scan, &a, &d, 1));
    ((scan_args *)(*out)->origin->applied->args)->f.release = scan->release;
    return KEEL_OK;
}
