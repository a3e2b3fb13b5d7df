/* Whole numbers: range:STOP, range:START:STOP[:STEP], counter:START[:STEP] without end, and
 * random:SEED, numbers from 0 to 2^32 - 1 without end, as tf.data's range, counter and random. The
 * random numbers are a function of (seed, row), the same in each pass, as tf.data's with a seed;
 * they are not tf.data's numbers. */
#include "base/memory.h"
#include "data/source.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef struct numbers {
    keel_data_field field; /* its strings are the dataset's */
    int64_t start, step;
    bool random; /* by the seed `start` */
} numbers;

static bool begins(const char *spec, const char *word)
{
    return !strncmp(spec, word, strlen(word));
}

static bool claims(const char *spec)
{
    return begins(spec, "range:") || begins(spec, "counter:") || begins(spec, "random:");
}

static keel_status read(const void *state, int64_t i, const keel_row *row, keel_scratch *s)
{
    const numbers *n = state;
    uint32_t word[4];
    const keel_chance c = { .seed = (uint64_t)n->start, .stream = KEEL_STREAM_STAGES };
    (void)s;
    if (!row->at[0]) return KEEL_OK;
    if (n->random) keel_philox(word, &c, (uint64_t)i / 4, 0);
    const int64_t v = n->random ? (int64_t)word[i % 4]
                                : (int64_t)((uint64_t)n->start + (uint64_t)i * (uint64_t)n->step);
    return keel_field_write(row->at[0], row->want[0], &v, &n->field, 1);
}

static void close(void *state)
{
    keel_free(state);
}

/* The numbers behind the word, 1 to `most`. */
static keel_status parse(const char *spec, int64_t at[3], int *n, int most)
{
    const char *p = strchr(spec, ':');
    for (*n = 0; p && *n < most; ++*n) {
        char *end;
        errno = 0;
        at[*n] = strtoll(p + 1, &end, 10);
        if (errno || end == p + 1 || (*end && *end != ':')) break;
        p = *end ? end : NULL;
    }
    if (!p) return KEEL_OK;
    return keel_fail(KEEL_EARG,
                     "%s: it is range:STOP, range:START:STOP[:STEP], counter:START[:STEP] or "
                     "random:SEED, in whole numbers",
                     spec);
}

/* How many numbers there are from start to stop, without stop. */
static keel_status count(const char *spec, int64_t start, int64_t stop, int64_t step, int64_t *out)
{
    if (!step) return keel_fail(KEEL_EARG, "%s: the step is 0", spec);
    const __int128 way = step > 0 ? (__int128)stop - start : (__int128)start - stop;
    const __int128 each = step > 0 ? step : -(__int128)step;
    const __int128 n = way > 0 ? (way + each - 1) / each : 0;
    if (n > INT64_C(1) << 48)
        return keel_fail(KEEL_EARG, "%s: more numbers than can be counted", spec);
    if (!n) return keel_fail(KEEL_EDATA, "%s: no numbers", spec);
    *out = (int64_t)n;
    return KEEL_OK;
}

extern const keel_source keel_source_range;

static keel_status open_spec(keel_dataset **out, const char *spec, const keel_dataset_options *o)
{
    const bool range = begins(spec, "range:"), random = begins(spec, "random:");
    int64_t v[3] = { 0, 1, 1 };
    int n;
    keel_data_spec fields = {
        .n_field = 1,
        .field = { { .path = "x", .dtype = KEEL_INT64, .role = KEEL_ROLE_INPUT } },
        .rows = KEEL_ENDLESS_ROWS,
        .yields = -1,
        .endless = !range,
    };
    KEEL_TRY(parse(spec, v, &n, range ? 3 : random ? 1 : 2));
    if (range && n == 1) {
        v[1] = v[0];
        v[0] = 0;
    }
    if (range) KEEL_TRY(count(spec, v[0], v[1], v[2], &fields.rows));
    if (!range && o->validation_split > 0)
        return keel_fail(KEEL_EARG, "%s: data without end has no part for validation", spec);
    numbers *state = keel_calloc(1, sizeof *state);
    if (!state) return KEEL_ENOMEM;
    *state = (numbers){ .start = v[0], .step = range ? v[2] : v[1], .random = random };
    keel_dataset *d;
    KEEL_TRY(keel_dataset_create(&d, &keel_source_range, state, &fields, spec));
    state->field = d->origin->spec.field[0];
    const keel_status s = keel_dataset_take_subset(&d, o);
    if (s < 0)
        keel_dataset_destroy(d);
    else
        *out = d;
    return s;
}

const keel_source keel_source_range = {
    .name = "range",
    .help = "range:STOP, range:START:STOP:STEP, counter:START:STEP, random:SEED: whole numbers",
    .in_memory = true,
    .claims = claims,
    .open = open_spec,
    .read = read,
    .close = close,
};
