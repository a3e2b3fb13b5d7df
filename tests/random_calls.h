/* More lines for the table of random_pipelines.h: stages that call functions or keep elements. */
#ifndef KEEL_TESTS_RANDOM_CALLS_H
#define KEEL_TESTS_RANDOM_CALLS_H
#include "random_stages.h"
#include <math.h>

typedef struct drawn_map {
    int n_field;
    int64_t calls;
} drawn_map;

/* Copy all fields, and change the numbers of the first. */
static inline void map_all(const drawn_map *c, const keel_tensor *in, keel_tensor *out, float by,
                           float add)
{
    for (int i = 0; i < c->n_field; i++) {
        const int64_t n = keel_shape_count(&in[i].shape);
        memcpy(out[i].data, in[i].data, (size_t)n * keel_dtype_size(in[i].dtype));
        for (int64_t k = 0; !i && in[i].dtype == KEEL_FLOAT32 && k < n; k++) {
            float *v = (float *)out[i].data + k;
            if (*v != 0) *v = fmodf(*v * by + add, 4093) + 1;
        }
    }
}

static inline keel_status map_pure(void *context, const keel_tensor *in, keel_tensor *out,
                                   const keel_element_place *at)
{
    (void)at;
    map_all(context, in, out, 3, 5);
    return KEEL_OK;
}

static inline keel_status map_noise(void *context, const keel_tensor *in, keel_tensor *out,
                                    const keel_element_place *at)
{
    map_all(context, in, out, 1, (float)(int)(keel_element_uniform(at, 3) * 1000));
    return KEEL_OK;
}

static inline keel_status map_counts(void *context, const keel_tensor *in, keel_tensor *out,
                                     const keel_element_place *at)
{
    drawn_map *c = context;
    (void)at;
    map_all(c, in, out, 1, (float)(c->calls++ % 1000));
    return KEEL_OK;
}

static inline keel_status map_fails(void *context, const keel_tensor *in, keel_tensor *out,
                                    const keel_element_place *at)
{
    map_all(context, in, out, 1, 0);
    if (at->index * 7 % 5 == 3) {
        char text[64];
        snprintf(text, sizeof text, "element %lld is bad", (long long)at->index);
        return keel_error_set(KEEL_EDATA, text);
    }
    return KEEL_OK;
}

static inline keel_status put_function(drawn *p, keel_dataset **out, keel_map m)
{
    drawn_map *c = calloc(1, sizeof *c);
    c->n_field = keel_dataset_field_count(p->d);
    m.size = sizeof m;
    m.context = c;
    m.release = free;
    const keel_status s = keel_dataset_map(out, p->d, &m);
    if (s < 0) free(c);
    return s;
}

static inline keel_status put_map(drawn *p, keel_dataset **out)
{
    return put_function(p, out, (keel_map){ .call = map_pure });
}

static inline keel_status put_noise(drawn *p, keel_dataset **out)
{
    return put_function(p, out, (keel_map){ .call = map_noise, .random = true });
}

static inline keel_status put_in_order(drawn *p, keel_dataset **out)
{
    p->one_pass = true;
    return put_function(p, out, (keel_map){ .call = map_counts, .sequential = true });
}

/* A map that fails for some elements, and a stage that goes on. */
static inline keel_status put_errors(drawn *p, keel_dataset **out)
{
    keel_dataset *bad;
    p->a = draw(&p->r, 0, 3);
    keel_status s = put_function(p, &bad, (keel_map){ .call = map_fails, .name = "some fail" });
    if (s < 0) return s;
    if (p->a == 3) { /* nobody goes on */
        *out = bad;
        return KEEL_OK;
    }
    s = keel_dataset_apply(out, p->a ? "ignore_errors" : "substitute",
                           KEEL_ARGS(KEEL_ARG_INT("most", 100000)), &bad, 1);
    keel_dataset_destroy(bad);
    return s;
}

/* By value and place, so that an endless stream never loses all. */
static inline bool stays(int64_t number, int64_t index)
{
    return mixed((uint64_t)number, (uint64_t)index) % 4 != 1;
}

static inline keel_status filter_some(void *context, const keel_tensor *in, bool *keep,
                                      const keel_element_place *at)
{
    (void)context;
    const bool numbers = in[0].dtype == KEEL_FLOAT32 && keel_shape_count(&in[0].shape);
    *keep = stays(numbers ? (int64_t) * (const float *)in[0].data : 0, at->index);
    return KEEL_OK;
}

static inline keel_status put_filter(drawn *p, keel_dataset **out)
{
    return keel_dataset_filter(out, p->d,
                               &(keel_filter){ .size = sizeof(keel_filter), .call = filter_some });
}

static inline void expect_filter(const drawn *p, const listed *in, const listed *other, listed *out)
{
    (void)p;
    (void)other;
    for (int i = 0; i < in->n; i++)
        if (stays(in->at[i].number, i)) list_copy(out, in, i);
    out->ended = in->ended;
}

static inline keel_status put_cache(drawn *p, keel_dataset **out)
{
    if (chance(&p->r, 2)) return keel_dataset_apply(out, "cache", NULL, &p->d, 1);
    return keel_dataset_apply(out, "cache", KEEL_ARGS(KEEL_ARG_INT("memory", draw(&p->r, 0, 3000))),
                              &p->d, 1);
}

static inline void expect_same(const drawn *p, const listed *in, const listed *other, listed *out)
{
    (void)p;
    (void)other;
    expect_some(in, 0, -1, 1, out);
}

static inline keel_status put_window(drawn *p, keel_dataset **out)
{
    const char *const offsets[] = { "null", "0", "5" };
    return keel_dataset_apply(out, "window",
                              KEEL_ARGS(KEEL_ARG_INT("size", draw(&p->r, 1, 4)),
                                        KEEL_ARG_INT("shift", draw(&p->r, 1, 4)),
                                        KEEL_ARG_INT("stride", draw(&p->r, 1, 3)),
                                        KEEL_ARG_JSON("target_offset", offsets[draw(&p->r, 0, 2)])),
                              &p->d, 1);
}

static inline keel_status put_bucket(drawn *p, keel_dataset **out)
{
    return keel_dataset_apply(out, "bucket_by_sequence_length",
                              KEEL_ARGS(KEEL_ARG_JSON("bucket_boundaries", "[2, 4]"),
                                        KEEL_ARG_JSON("bucket_batch_sizes", "[4, 3, 2]"),
                                        KEEL_ARG_BOOL("drop_remainder", chance(&p->r, 3))),
                              &p->d, 1);
}

static inline keel_status drawn_all_stay(void *context, const keel_tensor *in, bool *keep,
                                         const keel_element_place *at)
{
    (void)context, (void)in, (void)at;
    *keep = true;
    return KEEL_OK;
}

#endif
