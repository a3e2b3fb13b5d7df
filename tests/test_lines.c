/* Stages that a row goes through some lines at a time give the bits of the same stages one by one,
 * as a stream runs them: for bytes and float32, for images of lines longer and shorter than a
 * block, from any row on and with any number of threads. */
#include "layer_stages.h"
#include "train/stages/change_impl.h"

enum { ROWS = 9, STAGES_MAX = 5 };

typedef struct chain {
    const char *what;
    const struct {
        const char *name, *args;
    } stage[STAGES_MAX];
    int together; /* how many stages run by lines, from the last one back */
    int channels; /* of the images, if only those of so many are taken; 0: any */
} chain;

#define NORMAL                                                                                     \
    {                                                                                              \
        "Normalization", "{\"mean\": 3, \"variance\": 7}"                                          \
    }
#define FLIP                                                                                       \
    {                                                                                              \
        "RandomFlip", ""                                                                           \
    }
#define RESCALE                                                                                    \
    {                                                                                              \
        "Rescaling", "{\"scale\": 0.00392156862745098, \"offset\": -0.5}"                          \
    }

static const chain chains[] = {
    { "a flip, then scaled", { FLIP, RESCALE }, 2 },
    { "scaled, then a flip", { RESCALE, FLIP }, 2 },
    { "a flip, normalized by one number", { FLIP, NORMAL }, 2 },
    { "normalized by channel, then a flip",
      { { "Normalization", "{\"mean\": [1, 2, 3], \"variance\": [4, 2, 0.5]}" }, FLIP },
      2,
      3 },
    { "normalized the way back",
      { FLIP, { "Normalization", "{\"mean\": 3, \"variance\": 7, \"invert\": true}" } },
      2 },
    { "normalized by what differs from line to line: alone",
      { FLIP,
        { "Normalization", "{\"axis\": 1, \"mean\": [1, 2, 3, 4, 5, 6, 7], \"variance\": [1, "
                           "2, 3, 4, 5, 6, 7]}" } },
      0,
      -1 },
    { "a crop of a flip", { FLIP, { "RandomCrop", "{\"height\": 5, \"width\": 4}" }, RESCALE }, 3 },
    { "a flip of a crop of a flip",
      { FLIP, { "RandomCrop", "{\"height\": 5, \"width\": 4}" }, FLIP, NORMAL },
      4 },
    { "flips and crops alone", { { "RandomCrop", "{\"height\": 5, \"width\": 3}" }, FLIP }, 2 },
    { "a flip and a shuffle between", { FLIP, { "take", "{\"count\": 8}" }, RESCALE }, 2 },
    { "brightness", { FLIP, { "RandomBrightness", "{\"factor\": 0.5}" }, RESCALE }, 3 },
    { "inverted", { { "RandomInvert", "{\"factor\": 0.5}" }, FLIP }, 2 },
    { "gray", { FLIP, { "RandomGrayscale", "" } }, 2, 3 },
    { "degenerated", { FLIP, { "RandomColorDegeneration", "{\"factor\": 0.5}" } }, 2, 3 },
    { "saturated", { { "RandomSaturation", "{\"factor\": 0.5}" }, FLIP }, 2, 3 },
    { "of another hue", { { "RandomHue", "{\"factor\": 0.5}" }, FLIP, RESCALE }, 3, 3 },
    { "posterized", { FLIP, { "RandomPosterization", "{\"factor\": [2, 7]}" } }, 2 },
    { "solarized",
      { { "Solarization", "{\"addition_factor\": 0.5, \"threshold_factor\": 0.5}" }, FLIP },
      2 },
    { "contrast, which needs the whole image, between",
      { FLIP, { "RandomContrast", "{\"factor\": 0.5}" }, FLIP, RESCALE },
      2 },
};
enum { CHAINS = sizeof chains / sizeof *chains };

static const keel_shape shapes[] = { { 3, { 7, 7, 3 } },
                                     { 3, { 9, 7, 1 } },
                                     { 3, { 64, 53, 3 } },
                                     { 3, { 6, 7, 4 } },
                                     { 3, { 7, 4001, 3 } } };

static bool fits(const chain *c, const keel_shape *s)
{
    return c->channels < 0 ? s->dim[0] == 7 && s->dim[1] == 7
                           : !c->channels || s->dim[2] == c->channels;
}

static void open_chain(source *s, const chain *c, keel_dtype t, const keel_shape *row, bool stream)
{
    must(open_source(s, t, row, ROWS, false));
    if (stream)
        stream_of(&s->d);
    else
        must(apply(&s->d, "take", "{\"count\": -1}"));
    for (int i = 0; i < STAGES_MAX && c->stage[i].name; i++)
        must(apply(&s->d, c->stage[i].name, c->stage[i].args));
}

/* From the last stage back, as far as they run by lines. */
static int together(const keel_dataset *d)
{
    int n = 0;
    for (;;) {
        keel_position at = { 0 };
        const keel_data_origin *o = keel_stage_of_row(d, &at);
        if (!o || o->applied->stage->read != keel_change_read) return n;
        if (((const keel_change *)o->applied->made)->lines < 0) return n;
        n++;
        d = o->applied->parent[0];
    }
}

static void the_bits_are_those_of_one_stage_after_another(void **state)
{
    const chain *c = *state;
    static const keel_dtype types[] = { KEEL_UINT8, KEEL_FLOAT32 };
    int ran = 0;
    for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++)
        for (int t = 0; t < 2 && fits(c, &shapes[k]); t++, ran++) {
            source by_index, stream;
            open_chain(&by_index, c, types[t], &shapes[k], false);
            open_chain(&stream, c, types[t], &shapes[k], true);
            assert_int_equal(together(by_index.d), c->together);
            assert_int_equal(together(stream.d), 0);
            bytes want = read_all(stream.d, 1, 0, 1), got = read_all(by_index.d, 1, 0, 1);
            bytes two = read_all(by_index.d, 1, 3, 2);
            same_bytes(c->what, &got, &want, 0);
            same_bytes("from a row on, two threads", &two, &want, want.first[3]);
            free(want.at);
            free(got.at);
            free(two.at);
            close_source(&by_index);
            close_source(&stream);
        }
    assert_true(ran >= 2);
}

/* Rows as a reader of float32 wants them, which for bytes that only move is another op. */
static void bytes_that_move_become_float32_on_the_way(void **state)
{
    (void)state;
    const chain c = { "a flip of a crop",
                      { FLIP, { "RandomCrop", "{\"height\": 5, \"width\": 4}" } } };
    enum { N = 5 * 4 * 3 };
    source s;
    open_chain(&s, &c, KEEL_UINT8, &shapes[0], false);
    for (int64_t i = 0; i < ROWS; i++) {
        uint8_t moved[N];
        float wide[N];
        keel_scratch scratch = { 0 };
        const keel_position at = { .seed = 3, .index = i };
        const int64_t count[] = { N, 1 };
        keel_row row = { .want = (keel_dtype[]){ KEEL_UINT8, KEEL_INT64 },
                         .at = { moved, NULL },
                         .count = count };
        must(keel_dataset_read(s.d, at, &row, &scratch));
        row.want = (keel_dtype[]){ KEEL_FLOAT32, KEEL_INT64 };
        row.at[0] = wide;
        must(keel_dataset_read(s.d, at, &row, &scratch));
        for (int k = 0; k < N; k++) assert_true(wide[k] == moved[k]);
        keel_scratch_free(&scratch);
    }
    close_source(&s);
}

int main(void)
{
    struct CMUnitTest t[CHAINS + 1];
    for (int i = 0; i < CHAINS; i++)
        t[i] = (struct CMUnitTest){ chains[i].what, the_bits_are_those_of_one_stage_after_another,
                                    NULL, NULL, (void *)(uintptr_t)&chains[i] };
    t[CHAINS] = (struct CMUnitTest)cmocka_unit_test(bytes_that_move_become_float32_on_the_way);
    return cmocka_run_group_tests(t, NULL, NULL);
}
