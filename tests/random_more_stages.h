/* More lines for the table of random_pipelines.h: stages that call functions, keep elements in
 * files, or make datasets on the way. */
#ifndef KEEL_TESTS_RANDOM_MORE_STAGES_H
#define KEEL_TESTS_RANDOM_MORE_STAGES_H
#include "random_calls.h"
#include <unistd.h>

/* What functions know an element by; 0 if its first field has no real numbers. */
static inline int64_t first_number(const keel_tensor *in)
{
    return in[0].dtype == KEEL_FLOAT32 && keel_shape_count(&in[0].shape)
               ? (int64_t) * (const float *)in[0].data
               : 0;
}

static inline keel_status not_here(const char *why)
{
    return keel_error_set(KEEL_EUNSUP, why);
}

/* ---- numbers and states ---------------------------------------------------------------------- */

static inline keel_status put_enumerate(drawn *p, keel_dataset **out)
{
    return keel_dataset_apply(out, "enumerate",
                              KEEL_ARGS(KEEL_ARG_INT("start", draw(&p->r, -3, 9))), &p->d, 1);
}

static inline bool goes_on(int64_t number, int64_t index)
{
    return mixed((uint64_t)number, (uint64_t)index) % 12 != 1;
}

static inline keel_status until(void *context, const keel_tensor *in, bool *keep,
                                const keel_element_place *at)
{
    (void)context;
    *keep = goes_on(first_number(in), at->index);
    return KEEL_OK;
}

static inline keel_status put_take_while(drawn *p, keel_dataset **out)
{
    return keel_dataset_take_while(out, p->d,
                                   &(keel_filter){ .size = sizeof(keel_filter), .call = until });
}

static inline void expect_take_while(const drawn *p, const listed *in, const listed *other,
                                     listed *out)
{
    (void)p, (void)other;
    out->ended = in->ended;
    for (int i = 0; i < in->n; i++) {
        if (!goes_on(in->at[i].number, i)) {
            out->ended = true;
            return;
        }
        list_copy(out, in, i);
    }
}

static inline keel_status scan_counts(void *context, keel_tensor *state, const keel_tensor *in,
                                      keel_tensor *out, const keel_element_place *at)
{
    int64_t *n = state->data;
    (void)at;
    map_all(context, in, out, 1, (float)(*n % 100));
    *n += 1 + first_number(in);
    return KEEL_OK;
}

static inline keel_status put_scan(drawn *p, keel_dataset **out)
{
    const int64_t begin = draw(&p->r, 0, 9);
    const keel_tensor state = { KEEL_INT64, { 0 }, (void *)(uintptr_t)&begin };
    drawn_map *c = calloc(1, sizeof *c);
    c->n_field = keel_dataset_field_count(p->d);
    const keel_status s = keel_dataset_scan(out, p->d,
                                            &(keel_scan){ .size = sizeof(keel_scan),
                                                          .context = c,
                                                          .n_state = 1,
                                                          .state = &state,
                                                          .call = scan_counts,
                                                          .release = free });
    if (s < 0) free(c);
    return s;
}

/* ---- other fields ---------------------------------------------------------------------------- */

static inline keel_status to_7_numbers(void *context, const keel_tensor *in, keel_tensor *out,
                                       const keel_element_place *at)
{
    (void)context, (void)at;
    const int64_t n = keel_shape_count(&out->shape), of = keel_shape_count(&in->shape);
    for (int64_t i = 0; i < n; i++)
        ((int64_t *)out->data)[i] = in->dtype == KEEL_FLOAT32 && of
                                        ? (int64_t)((const float *)in->data)[i * (of / n)] % 7
                                        : i % 7;
    return KEEL_OK;
}

/* Of seven numbers, so data without end would never give an eighth. */
static inline keel_status put_unique(drawn *p, keel_dataset **out)
{
    static const keel_data_field number = { .path = "n", .dtype = KEEL_INT64 };
    keel_dataset *numbers;
    if (keel_stage_spec(p->d).endless) return not_here("no end");
    const keel_status s = keel_dataset_map(
        &numbers, p->d,
        &(keel_map){
            .size = sizeof(keel_map), .n_field = 1, .field = &number, .call = to_7_numbers });
    if (s < 0) return s;
    must(keel_dataset_apply(out, "unique", NULL, &numbers, 1));
    keel_dataset_destroy(numbers);
    return KEEL_OK;
}

static inline keel_status with_class(void *context, const keel_tensor *in, keel_tensor *out,
                                     const keel_element_place *at)
{
    const drawn_map *c = context;
    map_all(c, in, out, 1, 0);
    *(int64_t *)out[c->n_field].data = (first_number(in) + at->index) % 3;
    return KEEL_OK;
}

/* The fields of what comes, with room for one more. */
static inline int fields_of(const drawn *p, keel_data_field *f)
{
    const keel_data_spec spec = keel_stage_spec(p->d);
    memcpy(f, spec.field, (size_t)spec.n_field * sizeof *f);
    return spec.n_field;
}

static inline keel_status put_resample(drawn *p, keel_dataset **out)
{
    keel_data_field f[KEEL_FIELDS_MAX + 1];
    keel_dataset *classes;
    const bool known = chance(&p->r, 2);
    if (keel_stage_spec(p->d).batched) return not_here("batches");
    const int n = fields_of(p, f);
    if (n == KEEL_FIELDS_MAX || keel_spec_is_open(&p->d->origin->spec)) return not_here("fields");
    f[n] = (keel_data_field){ .path = "class", .dtype = KEEL_INT64, .role = KEEL_ROLE_TARGET };
    keel_status s =
        put_function(p, &classes, (keel_map){ .call = with_class, .n_field = n + 1, .field = f });
    if (s < 0) return s;
    s = keel_dataset_apply(out, "rejection_resample",
                           KEEL_ARGS(KEEL_ARG_JSON("target_dist", "[1, 2, 1]"),
                                     KEEL_ARG_STR("field", "class"),
                                     KEEL_ARG_JSON("initial_dist", known ? "[1, 1, 2]" : "null")),
                           &classes, 1);
    keel_dataset_destroy(classes);
    return s;
}

static inline keel_status to_image(void *context, const keel_tensor *in, keel_tensor *out,
                                   const keel_element_place *at)
{
    const drawn_map *c = context;
    (void)at;
    const int64_t n = keel_shape_count(&out->shape);
    for (int64_t i = 0; i < n; i++) ((float *)out->data)[i] = (float)(first_number(in) % 50 + i);
    map_all(&(drawn_map){ .n_field = c->n_field - 1 }, in + 1, out + 1, 1, 0);
    return KEEL_OK;
}

/* A layer that draws, of an image made from the first field. */
static inline keel_status put_flip(drawn *p, keel_dataset **out)
{
    keel_data_field f[KEEL_FIELDS_MAX + 1];
    keel_dataset *images;
    const int n = fields_of(p, f);
    if (keel_spec_is_open(&p->d->origin->spec) || f[0].role != KEEL_ROLE_INPUT)
        return not_here("fields");
    f[0].dtype = KEEL_FLOAT32;
    f[0].shape = (keel_shape){ 3, { 2, 3, 1 } };
    keel_status s =
        put_function(p, &images, (keel_map){ .call = to_image, .n_field = n, .field = f });
    if (s < 0) return s;
    s = keel_dataset_apply(out, "RandomFlip", NULL, &images, 1);
    keel_dataset_destroy(images);
    return s;
}

static inline keel_status put_rescaling(drawn *p, keel_dataset **out)
{
    return keel_dataset_apply(out, "Rescaling",
                              KEEL_ARGS(KEEL_ARG_FLOAT("scale", 0.5), KEEL_ARG_FLOAT("offset", 3)),
                              &p->d, 1);
}

/* ---- datasets that are made ------------------------------------------------------------------ */

enum { MADE_PLAIN, MADE_BATCHES, MADE_SHUFFLED, MADE_NOISE, MADE_CACHED, MADE_FILTERED, MADE };

typedef struct drawn_made {
    int kind;
} drawn_made;

static inline int64_t made_rows(int64_t number, int64_t index)
{
    return (number + index) % 5;
}

static inline int64_t made_from(int64_t number)
{
    return number % (DRAWN_ROWS - 4);
}

/* Rows [from, from + n) of the arrays; n may be 0. */
static inline keel_dataset *some_rows(int64_t from, int64_t n)
{
    keel_data_field f[3];
    keel_array_field a[2] = { 0 };
    keel_dataset *all, *some;
    drawn_fields(f, PLAIN);
    for (int i = 0; i < 2; i++) {
        a[i].path = f[i].path;
        a[i].role = f[i].role;
    }
    a[0].array = (keel_tensor){ KEEL_FLOAT32, { 2, { 4, DRAWN_WIDTH } }, drawn_x[from] };
    a[1].array = (keel_tensor){ KEEL_FLOAT32, { 1, { 4 } }, drawn_y + from };
    must(keel_dataset_from_fields(&all, a, 2));
    must(keel_dataset_take(&some, all, n));
    keel_dataset_destroy(all);
    return some;
}

static inline keel_status make_dataset(const drawn_made *m, int64_t from, int64_t n,
                                       keel_dataset **out)
{
    keel_dataset *d = some_rows(from, n);
    drawn p = { .d = d };
    keel_status s = KEEL_OK;
    switch (m->kind) {
    case MADE_BATCHES:
        s = keel_dataset_batch(out, d, 2, false);
        break;
    case MADE_SHUFFLED:
        s = keel_dataset_shuffle(out, d, 0);
        break;
    case MADE_NOISE:
        s = put_function(&p, out, (keel_map){ .call = map_noise, .random = true });
        break;
    case MADE_CACHED:
        s = keel_dataset_apply(out, "cache", NULL, &d, 1);
        break;
    case MADE_FILTERED:
        s = keel_dataset_filter(out, d,
                                &(keel_filter){ .size = sizeof(keel_filter), .call = filter_some });
        break;
    default:
        *out = d;
        return KEEL_OK;
    }
    keel_dataset_destroy(d);
    return s;
}

static inline keel_status rows_of_element(void *context, const keel_tensor *in, keel_dataset **out,
                                          const keel_element_place *at)
{
    const int64_t k = first_number(in);
    return make_dataset(context, made_from(k), made_rows(k, at->index), out);
}

/* cycle 0: flat_map. */
static inline keel_status put_made(drawn *p, keel_dataset **out, int64_t cycle, int64_t block)
{
    drawn_made *m = calloc(1, sizeof *m);
    keel_dataset *like;
    m->kind = chance(&p->r, 2) ? MADE_PLAIN : (int)draw(&p->r, 1, MADE - 1);
    must(make_dataset(m, 0, 4, &like));
    const keel_flat_map how = {
        .size = sizeof how,
        .context = m,
        .like = like,
        .call = rows_of_element,
        .cycle_length = cycle,
        .block_length = block,
        .random = m->kind == MADE_SHUFFLED || m->kind == MADE_NOISE,
        .release = free,
    };
    const keel_status s =
        cycle ? keel_dataset_interleave(out, p->d, &how) : keel_dataset_flat_map(out, p->d, &how);
    keel_dataset_destroy(like);
    if (m->kind != MADE_PLAIN) cycle = -1; /* `expect` does not say what comes */
    p->a = cycle ? cycle : 1;
    p->b = block ? block : 1;
    if (s < 0) free(m);
    return s;
}

static inline keel_status put_flat_map(drawn *p, keel_dataset **out)
{
    return put_made(p, out, 0, 0);
}

static inline keel_status put_interleave_made(drawn *p, keel_dataset **out)
{
    const int64_t cycle = draw(&p->r, 1, 5);
    return put_made(p, out, cycle, draw(&p->r, 1, 4));
}

/* The turn of one of the open datasets, of which each is an element of `in`. */
static inline void expect_made(const drawn *p, const listed *in, const listed *other, listed *out)
{
    struct {
        int64_t from, left;
        bool open;
    } at[8] = { { 0 } };
    int next = 0, open = 0;
    (void)other;
    if (p->a < 0) return;
    for (int64_t k = 0; next < in->n || open; k = (k + 1) % p->a) {
        if (!at[k].open && next == in->n && !in->ended) return;
        if (!at[k].open && next < in->n) {
            const int64_t number = in->at[next].number;
            at[k].from = made_from(number);
            at[k].left = made_rows(number, next++);
            at[k].open = true;
            open++;
        }
        for (int64_t i = 0; i < p->b && at[k].open && list_room(out, 1); i++) {
            if (!at[k].left) {
                at[k].open = false;
                open--;
                break;
            }
            const int64_t row = at[k].from++;
            const keel_tensor f[2] = {
                { KEEL_FLOAT32, { 1, { DRAWN_WIDTH } }, drawn_x[row] },
                { KEEL_FLOAT32, { 0 }, drawn_y + row },
            };
            const uint64_t h = hash_row(f, 2, 0, 1);
            list_add(out, &h, -1, (int64_t)drawn_x[row][0]);
            at[k].left--;
        }
        if (!list_room(out, 1)) return;
    }
    out->ended = in->ended;
}

/* ---- groups ---------------------------------------------------------------------------------- */

static inline keel_status group_key(void *context, const keel_tensor *in, int64_t *key,
                                    const keel_element_place *at)
{
    (void)context, (void)at;
    *key = first_number(in) % 3 - 1;
    return KEEL_OK;
}

static inline keel_status window_by_key(void *context, int64_t key, int64_t *size)
{
    (void)context;
    *size = key + 2;
    return KEEL_OK;
}

static inline keel_status shuffled_window(void *context, int64_t key, keel_dataset *window,
                                          keel_dataset **out)
{
    (void)context, (void)key;
    return keel_dataset_shuffle(out, window, 0);
}

static inline keel_status shorter_window(void *context, int64_t key, keel_dataset *window,
                                         keel_dataset **out)
{
    (void)context, (void)key;
    return keel_dataset_skip(out, window, 1);
}

static inline keel_status put_group(drawn *p, keel_dataset **out)
{
    keel_group g = { .size = sizeof g, .key = group_key };
    p->a = chance(&p->r, 3) ? 0 : draw(&p->r, 1, 5);
    g.window_size = p->a ? p->a : 3;
    if (!p->a) g.window_size_of = window_by_key;
    p->b = draw(&p->r, 0, 3);
    /* without end, a window of one row would leave nothing for ever */
    if (p->b == 1 && (keel_stage_spec(p->d).endless || p->a == 1)) p->b = 2;
    g.reduce = p->b == 1 ? shorter_window : p->b == 2 ? shuffled_window : NULL;
    g.random = p->b == 2;
    return keel_dataset_group_by_window(out, p->d, &g);
}

static inline void expect_group(const drawn *p, const listed *in, const listed *other, listed *out)
{
    static uint64_t row[3][8];
    int n[3] = { 0 };
    (void)other;
    if (p->b == 1 || p->b == 2) return;
    for (int i = 0; i < in->n && list_room(out, 8); i++) {
        const int64_t k = in->at[i].number % 3;
        row[k][n[k]++] = in->row[in->at[i].first];
        if (n[k] < (p->a ? p->a : k + 1)) continue;
        list_add(out, row[k], n[k], 0);
        n[k] = 0;
    }
    if (!in->ended) return;
    for (int k = 0; k < 3; k++)
        if (n[k]) list_add(out, row[k], n[k], 0);
    out->ended = true;
}

/* ---- batches and rows of other shapes -------------------------------------------------------- */

static inline keel_status put_padded_batch(drawn *p, keel_dataset **out)
{
    p->a = draw(&p->r, 1, 7);
    p->b = draw(&p->r, 0, 1);
    return keel_dataset_apply(
        out, "padded_batch",
        KEEL_ARGS(KEEL_ARG_INT("batch_size", p->a), KEEL_ARG_BOOL("drop_remainder", p->b)), &p->d,
        1);
}

static inline void expect_padded_batch(const drawn *p, const listed *in, const listed *other,
                                       listed *out)
{
    (void)other;
    expect_batches(p, in, p->a, (int)p->b, out);
}

static inline keel_status put_padded_values(drawn *p, keel_dataset **out)
{
    return keel_dataset_apply(out, "padded_batch",
                              KEEL_ARGS(KEEL_ARG_INT("batch_size", draw(&p->r, 1, 7)),
                                        KEEL_ARG_JSON("padding_values", "[-1, 2]"),
                                        KEEL_ARG_JSON("padded_shapes", "[[5], []]")),
                              &p->d, 1);
}

static inline keel_status put_pad(drawn *p, keel_dataset **out)
{
    static const char *const side[] = { "pre", "post" };
    const char *const where[] = { side[draw(&p->r, 0, 1)], side[draw(&p->r, 0, 1)] };
    return keel_dataset_apply(out, "pad",
                              KEEL_ARGS(KEEL_ARG_INT("length", draw(&p->r, 1, 5)),
                                        KEEL_ARG_INT("value", draw(&p->r, 0, 9)),
                                        KEEL_ARG_STR("padding", where[0]),
                                        KEEL_ARG_STR("truncating", where[1])),
                              &p->d, 1);
}

static inline keel_status put_rebatch_in_turn(drawn *p, keel_dataset **out)
{
    char sizes[32];
    p->a = draw(&p->r, 1, 5);
    p->b = draw(&p->r, 1, 5);
    snprintf(sizes, sizeof sizes, "[%d, %d]", (int)p->a, (int)p->b);
    return keel_dataset_apply(out, "rebatch", KEEL_ARGS(KEEL_ARG_JSON("batch_size", sizes)), &p->d,
                              1);
}

static inline void expect_rebatch_in_turn(const drawn *p, const listed *in, const listed *other,
                                          listed *out)
{
    uint64_t row[8];
    int n = 0;
    (void)other;
    for (int i = 0; i < in->rows && list_room(out, 8); i++) {
        row[n++] = in->row[i];
        if (n < (out->n % 2 ? p->b : p->a)) continue;
        list_add(out, row, n, 0);
        n = 0;
    }
    out->ended = in->ended;
    if (n && in->ended) list_add(out, row, n, 0);
}

/* ---- chosen ---------------------------------------------------------------------------------- */

enum { CHOICES = 40 };

static inline int64_t choice_at(int64_t i)
{
    return (int64_t)(mixed((uint64_t)i, 5) % 2);
}

static inline keel_status put_choose(drawn *p, keel_dataset **out)
{
    static int64_t number[CHOICES];
    keel_dataset *some, *choice;
    for (int64_t i = 0; i < CHOICES; i++) number[i] = choice_at(i);
    p->a = draw(&p->r, 0, 1);
    const bool without_end = chance(&p->r, 3);
    p->b = draw(&p->r, without_end ? CHOICES / 2 : 1, CHOICES); /* else perhaps one of them only */
    const keel_tensor t = { KEEL_INT64, { 1, { p->b } }, number };
    must(keel_dataset_from_arrays(&some, &t, NULL, NULL));
    must(keel_dataset_repeat(&choice, some, without_end ? -1 : 1));
    keel_dataset_destroy(some);
    drawn_other(p);
    const keel_status s = keel_dataset_apply(
        out, "choose_from_datasets", KEEL_ARGS(KEEL_ARG_BOOL("stop_on_empty_dataset", p->a)),
        (keel_dataset *[]){ p->d, p->other, choice }, 3);
    keel_dataset_destroy(choice);
    if (without_end) p->b = -p->b;
    return s;
}

static inline void expect_choose(const drawn *p, const listed *in, const listed *other, listed *out)
{
    const listed *of[2] = { in, other };
    const int64_t each = p->b < 0 ? -p->b : p->b;
    int at[2] = { 0 };
    bool ended[2] = { false };
    for (int64_t i = 0; (p->b < 0 || i < each) && list_room(out, 64); i++) {
        const int64_t k = choice_at(i % each);
        if (ended[k]) continue;
        if (at[k] < of[k]->n) {
            list_copy(out, of[k], at[k]++);
            continue;
        }
        if (!of[k]->ended) return; /* what comes is not known */
        ended[k] = true;
        if (p->a || (ended[0] && ended[1])) {
            out->ended = true;
            return;
        }
    }
    out->ended = p->b > 0;
}

/* ---- files ----------------------------------------------------------------------------------- */

static char drawn_folder[200]; /* where files are kept; "": nowhere */

static inline void drawn_file(const drawn *p, int depth, char name[256])
{
    snprintf(name, 256, "%s/%llu-%d", drawn_folder, (unsigned long long)p->seed, depth);
}

/* Remove the files of a pipeline, so that the next one of its kind makes them. */
static inline void drawn_forget(const drawn *p)
{
    char name[256];
    for (int i = 0; *drawn_folder && i < DRAWN_DEPTH; i++) {
        drawn_file(p, i, name);
        unlink(name);
    }
}

static inline keel_status put_kept(drawn *p, keel_dataset **out)
{
    char name[256];
    const int kind = (int)draw(&p->r, 0, 2);
    drawn_file(p, p->depth, name);
    if (!*drawn_folder) return not_here("no folder");
    if (keel_stage_spec(p->d).one_shot) return not_here("read once"); /* fails without the file */
    const keel_status s =
        kind == 0
            ? keel_dataset_apply(out, "cache", KEEL_ARGS(KEEL_ARG_STR("filename", name)), &p->d, 1)
            : keel_dataset_apply(
                  out, "snapshot",
                  KEEL_ARGS(KEEL_ARG_STR("path", name),
                            KEEL_ARG_STR("compression", kind == 1 ? "NONE" : "GZIP")),
                  &p->d, 1);
    if (s < 0 && strstr(keel_error(), name)) /* it was made by the same pipeline */
        fail_msg("seed %llu: %s\n  %s", (unsigned long long)p->seed, p->text, keel_error());
    return s;
}

#define MORE_RANDOM_STAGES                                                                         \
    { "enumerate", 1, put_enumerate, NULL, true },                                                 \
        { "take_while", 2, put_take_while, expect_take_while, false },                             \
        { "scan", 2, put_scan, NULL, false }, { "unique", 1, put_unique, NULL, true },             \
        { "resample", 2, put_resample, NULL, true }, { "flip", 1, put_flip, NULL, true },          \
        { "Rescaling", 1, put_rescaling, NULL, false },                                            \
        { "flat_map", 2, put_flat_map, expect_made, false },                                       \
        { "interleave_made", 2, put_interleave_made, expect_made, false },                         \
        { "group_by_window", 2, put_group, expect_group, false },                                  \
        { "padded_batch", 2, put_padded_batch, expect_padded_batch, false },                       \
        { "padded_values", 1, put_padded_values, NULL, true }, { "pad", 5, put_pad, NULL, true },  \
        { "rebatch_in_turn", 1, put_rebatch_in_turn, expect_rebatch_in_turn, false },              \
        { "choose", 2, put_choose, expect_choose, false },                                         \
        { "kept", 6, put_kept, expect_same, false },

#endif
