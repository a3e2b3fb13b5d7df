/* Weights that a GPU moves have the bits of those that the host moves, by each rule, in both types,
 * with clips that are reached and without. The GPU is the emulator's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "emulator.h"
#include "factor.h"
#include "optimizers/move.h"
#include "orthogonalize.h"
#include "tensor/shape.h"

extern const char *keel_cuda_move(void *stream, const keel_device_move *m, int n);
extern const char *keel_cuda_check(void *stream, const keel_device_check *c);
extern const char *keel_cuda_project(void *stream, const keel_device_project *p);
extern const char *keel_cuda_orthogonalize(void *stream, const keel_device_orthogonal *o);
extern const char *keel_cuda_factor(void *stream, const keel_device_factored *f);
extern const char *keel_cuda_measure(void *stream, const keel_device_measure *m);

enum { ARRAYS = 2 + KEEL_MOVE_SLOTS, MOST = 3000, STEPS = 3 };

/* Before each launch: threads in another order, and every second time few blocks. */
static void turn(void)
{
    static uint32_t orders;
    emu_seed(++orders);
}

/* Whether the first slot is a mean or a sum of squares, of which a root is taken. */
static bool first_is_square(keel_rule rule)
{
    return (rule >= KEEL_RULE_RMSPROP && rule <= KEEL_RULE_ADADELTA) || rule == KEEL_RULE_FTRL;
}

static double number(keel_rule rule, int array, int64_t i)
{
    const double x = (double)(((i + 1) * 7919 + array * 104729) % 2003) / 911 - 1.1;
    if (array == 2 && first_is_square(rule)) return fabs(x) / 7 + 0.3; /* above those of means */
    return array > 2 ? fabs(x) / 7 : x;
}

static void set(void *to, keel_dtype real, int64_t i, double x)
{
    if (real == KEEL_FLOAT64)
        ((double *)to)[i] = x;
    else
        ((float *)to)[i] = (float)x;
}

static void compare(keel_rule rule, keel_dtype real, int64_t count, double clip)
{
    const int64_t bytes = count * (int64_t)keel_dtype_size(real);
    char *host[ARRAYS], *gpu[ARRAYS], *got = malloc((size_t)bytes);
    for (int k = 0; k < ARRAYS; k++) {
        host[k] = malloc((size_t)bytes);
        gpu[k] = emu_allocate(bytes, "an array");
        assert_true(host[k] && got);
        for (int64_t i = 0; i < count; i++) set(host[k], real, i, number(rule, k, i));
        emu_copy_in(gpu[k], host[k], bytes);
    }
    keel_device_move m = { .rule = rule,
                           .real = real,
                           .count = count,
                           .number = { .rate = 0.013,
                                       .decay = 0.004,
                                       .scale = 0.37,
                                       .clip = clip,
                                       .momentum = 0.9,
                                       .epsilon = 1e-7,
                                       .alpha = 0.0021,
                                       .beta_1 = 0.9,
                                       .beta_2 = 0.999,
                                       .one_less_beta_1 = 0.1,
                                       .one_less_beta_2 = 0.001,
                                       .rho = 0.95,
                                       .one_less_rho = 0.05,
                                       .left = 0.27,
                                       .left_2 = 0.19,
                                       .of_m = 0.71,
                                       .under_m = 0.64,
                                       .of_g = 0.29,
                                       .under_g = 0.36,
                                       .l1 = 0.07,
                                       .twice_l2 = 0.013,
                                       .twice_shrinkage = 0.011,
                                       .share = 0.3,
                                       .one_less_share = 0.7,
                                       .steps = 3 } };
    for (int step = 0; step < STEPS; step++) {
        for (int there = 0; there < 2; there++) {
            char **at = there ? gpu : host;
            m.w = at[0];
            m.g = at[1];
            for (int k = 0; k < KEEL_MOVE_SLOTS; k++) m.slot[k] = at[2 + k];
            if (there) {
                turn();
                assert_null(keel_cuda_move(NULL, &m, 1));
            } else {
                keel_move(&m);
            }
        }
        assert_null(emu_report());
    }
    for (int k = 0; k < ARRAYS; k++) {
        emu_copy_out(got, gpu[k], bytes);
        assert_memory_equal(got, host[k], (size_t)bytes);
        free(host[k]);
    }
    free(got);
    emu_release_all();
}

/* More weights than a launch may have, some without elements, and rules that take turns. */
static void weights_that_move_together_move_as_alone(void **unused)
{
    enum { WEIGHTS = 60, LONGEST = 700 };
    float start[LONGEST], got[LONGEST], alone[LONGEST];
    keel_device_move m[WEIGHTS];
    (void)unused;
    for (int i = 0; i < LONGEST; i++) start[i] = (float)(i % 13) - 6;
    for (int k = 0; k < WEIGHTS; k++) {
        const int64_t bytes = sizeof start;
        m[k] = (keel_device_move){ .rule = k < 45 ? KEEL_RULE_AVERAGE : KEEL_RULE_SUM,
                                   .real = KEEL_FLOAT32,
                                   .count = k % 7 ? (int64_t)k * 37 % LONGEST : 0,
                                   .w = emu_allocate(bytes, "w"),
                                   .g = emu_allocate(bytes, "g"),
                                   .number = { .momentum = 0.5 + k } };
        emu_copy_in(m[k].w, start, bytes);
        emu_copy_in((void *)(uintptr_t)m[k].g, start, bytes);
    }
    turn();
    assert_null(keel_cuda_move(NULL, m, WEIGHTS));
    for (int k = 0; k < WEIGHTS; k++) {
        keel_device_move one = m[k];
        memcpy(alone, start, sizeof alone);
        one.w = alone;
        one.g = start;
        if (one.count > 0) keel_move(&one);
        emu_copy_out(got, m[k].w, sizeof got);
        assert_memory_equal(got, alone, sizeof got);
    }
    assert_null(emu_report());
    emu_release_all();
}

static void bits_are_those_of_the_host(void **unused)
{
    static const int64_t counts[] = { 1, 7, 256, MOST };
    (void)unused;
    for (int rule = 0; rule < KEEL_RULES; rule++)
        for (int i = 0; i < 16; i++)
            compare((keel_rule)rule, i & 1 ? KEEL_FLOAT64 : KEEL_FLOAT32, counts[i / 4],
                    i & 2 ? 0.11 : INFINITY);
}

static void every_rule_moves_weights(void **unused)
{
    (void)unused;
    for (int rule = 0; rule < KEEL_RULES; rule++) {
        float w = 1, g = 0.5f, slot[KEEL_MOVE_SLOTS] = { 0 };
        keel_device_move m = { .rule = (keel_rule)rule,
                               .real = KEEL_FLOAT32,
                               .count = 1,
                               .w = &w,
                               .g = &g,
                               .slot = { &slot[0], &slot[1], &slot[2] },
                               .number = { .rate = 0.1,
                                           .decay = 0.1,
                                           .scale = 1,
                                           .clip = INFINITY,
                                           .epsilon = 1e-7,
                                           .alpha = 0.1,
                                           .beta_1 = 0.5,
                                           .beta_2 = 0.5,
                                           .one_less_beta_1 = 0.5,
                                           .one_less_beta_2 = 0.5,
                                           .rho = 0.5,
                                           .one_less_rho = 0.5,
                                           .left = 0.5,
                                           .left_2 = 0.5,
                                           .of_m = 0.5,
                                           .under_m = 1,
                                           .of_g = 0.5,
                                           .under_g = 1,
                                           .share = 0.5,
                                           .one_less_share = 0.5,
                                           .steps = 2,
                                           .l1 = 0.1 } };
        keel_move(&m);
        assert_true(rule == KEEL_RULE_SUM || rule == KEEL_RULE_PENALTY ? w > 1 : w < 1);
        for (int k = 0; k < KEEL_MOVE_SLOTS; k++)
            assert_true((slot[k] != 0) ==
                        (k < keel_rule_slots(m.rule) && rule != KEEL_RULE_LAMB_STEP &&
                         rule != KEEL_RULE_MUON_STEP));
    }
}

/* Tiles of one weight, of which the last may be shorter. */
static void sums_are_those_of_the_host(void **unused)
{
    static const struct {
        int64_t count, tile;
    } cases[] = { { 1, 1 }, { 7, 7 }, { MOST, MOST }, { MOST, 600 }, { MOST, 1000 }, { 513, 256 } };
    (void)unused;
    for (int i = 0; i < 12; i++) {
        const keel_dtype real = i & 1 ? KEEL_FLOAT64 : KEEL_FLOAT32;
        const int64_t count = cases[i / 2].count, tile = cases[i / 2].tile;
        const int64_t bytes = count * (int64_t)keel_dtype_size(real),
                      tiles = (count + tile - 1) / tile;
        double want[2 * 16], got[2 * 16], size = 0;
        char *host = malloc((size_t)bytes);
        assert_true(host && tiles <= 16);
        for (int64_t k = 0; k < count; k++) {
            set(host, real, k, number(KEEL_RULE_PLAIN, 0, k));
            size += fabs(number(KEEL_RULE_PLAIN, 0, k));
        }
        keel_device_measure m = {
            .real = real, .count = count, .tile = tile, .w = host, .sums = want
        };
        keel_measure(&m);
        void *there = emu_allocate(bytes, "weights");
        m.sums = emu_allocate(tiles * 16, "sums");
        m.w = there;
        emu_copy_in(there, host, bytes);
        turn();
        assert_null(keel_cuda_measure(NULL, &m));
        assert_null(emu_report());
        emu_copy_out(got, m.sums, tiles * 16);
        assert_memory_equal(got, want, (size_t)tiles * 16);
        for (int64_t k = 0; k < tiles; k++) size -= want[2 * k];
        assert_true(fabs(size) < 1e-3);
        free(host);
        emu_release_all();
    }
}

/* Taller and wider ones, by small squares and by large ones, in one tile and in several. */
static void orthogonal_matrices_are_those_of_the_host(void **unused)
{
    static const struct {
        int64_t rows, columns, tile, steps;
    } cases[] = { { 1, 1, 1, 5 },     { 1, 40, 40, 3 },    { 40, 1, 40, 2 },
                  { 33, 17, 561, 5 }, { 17, 33, 33, 4 },   { 64, 64, 4096, 1 },
                  { 65, 31, 310, 0 }, { 800, 3, 2400, 2 }, { 70, 800, 16000, 1 } };
    (void)unused;
    for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
        const keel_dtype real = i & 1 ? KEEL_FLOAT64 : KEEL_FLOAT32;
        const int64_t element = (int64_t)keel_dtype_size(real);
        keel_device_orthogonal o = { .real = real,
                                     .rows = cases[i / 2].rows,
                                     .columns = cases[i / 2].columns,
                                     .tile = cases[i / 2].tile,
                                     .steps = cases[i / 2].steps,
                                     .a = 3.4445,
                                     .b = -4.775,
                                     .c = 2.0315 };
        const int64_t count = o.rows * o.columns, bytes = count * element;
        const int64_t room = keel_orthogonal_room_of(o.rows, o.columns, o.tile, element).size;
        char *host = malloc((size_t)bytes), *got = malloc((size_t)bytes);
        void *scratch = malloc((size_t)room);
        assert_true(host && got && scratch);
        for (int64_t k = 0; k < count; k++) set(host, real, k, number(KEEL_RULE_PLAIN, 0, k));
        void *there = emu_allocate(bytes, "a step");
        emu_copy_in(there, host, bytes);
        o.x = host;
        o.scratch = scratch;
        orthogonalize_on_host(&o);
        o.x = there;
        o.scratch = emu_allocate(room, "scratch");
        turn();
        assert_null(keel_cuda_orthogonalize(NULL, &o));
        assert_null(emu_report());
        emu_copy_out(got, there, bytes);
        if (memcmp(got, host, (size_t)bytes)) fail_msg("case %d", (int)i);
        free(host);
        free(got);
        free(scratch);
        emu_release_all();
    }
}

typedef struct factored {
    int64_t matrices, rows, columns, tile; /* no matrices: a vector of so many columns */
    double clip, decay, least, threshold;
} factored;

static void compare_factored(const factored *x, keel_dtype real)
{
    enum { W, G, R, C, V, ALL };
    const int64_t element = (int64_t)keel_dtype_size(real);
    keel_device_factored f = { .real = real,
                               .matrices = x->matrices,
                               .rows = x->matrices > 0 ? x->rows : 0,
                               .columns = x->matrices > 0 ? x->columns : 0,
                               .count = x->matrices > 0 ? x->matrices * x->rows * x->columns
                                                        : x->columns,
                               .tile = x->tile,
                               .number = { .rate = 0.013,
                                           .decay = x->decay,
                                           .scale = 0.37,
                                           .clip = x->clip,
                                           .epsilon = 1e-30,
                                           .alpha = 0.011 },
                               .least = x->least,
                               .threshold = x->threshold };
    const int64_t count[ALL] = { f.count, f.count, f.matrices * f.rows, f.matrices * f.columns,
                                 f.count };
    void *host[ALL], *gpu[ALL], *got = malloc((size_t)(f.count * element));
    const int64_t room = keel_factored_room_of(&f).size;
    for (int k = 0; k < ALL; k++) {
        host[k] = calloc((size_t)count[k] + 1, (size_t)element);
        gpu[k] = emu_allocate((count[k] + 1) * element, "an array");
        assert_true(host[k] && got);
        for (int64_t i = 0; i < count[k] && k < R; i++)
            set(host[k], real, i, number(KEEL_RULE_PLAIN, k, i));
        emu_copy_in(gpu[k], host[k], (count[k] + 1) * element);
    }
    void *scratch = emu_allocate(room, "scratch");
    for (int step = 1; step <= STEPS; step++) {
        f.number.one_less_rho = 1.0 / step;
        f.number.rho = 1 - f.number.one_less_rho;
        for (int there = 0; there < 2; there++) {
            void **at = there ? gpu : host;
            f.w = at[W];
            f.g = at[G];
            f.r = at[R];
            f.c = at[C];
            f.v = at[V];
            f.scratch = scratch;
            if (there) {
                turn();
                assert_null(keel_cuda_factor(NULL, &f));
            } else {
                factor_on_host(&f);
            }
        }
        assert_null(emu_report());
    }
    for (int k = 0; k < ALL; k++) {
        emu_copy_out(got, gpu[k], count[k] * element);
        assert_memory_equal(got, host[k], (size_t)(count[k] * element));
        free(host[k]);
    }
    free(got);
    emu_release_all();
}

/* Rows shorter and longer than a warp and a block; columns of several heights; a tile that begins
 * and ends within a matrix, has several, or a row alone. */
static void weights_moved_by_factors_are_those_of_the_host(void **unused)
{
    static const factored cases[] = {
        { 0, 0, 1, 1, INFINITY, 0, 1e-3, 1 },        { 0, 0, 700, 300, 0.2, 0.004, 1e-3, 1 },
        { 1, 1, 1, 1, INFINITY, 0, 1e-3, 1 },        { 1, 1, 600, 600, INFINITY, 0, 1e-3, 1 },
        { 1, 600, 1, 400, 0.2, 0.004, 10, 0.5 },     { 1, 300, 7, 700, INFINITY, 0.004, 1e-3, 1 },
        { 1, 5, 300, 300, INFINITY, 0, 1e-3, 2000 }, { 9, 3, 40, 280, 0.2, 0.004, 1e-3, 0.5 },
        { 40, 2, 3, 51, INFINITY, 0, 1e-3, 1 },      { 2, 140, 30, 420, INFINITY, 0.004, 1e-3, 1 },
        { 300, 1, 4, 1200, INFINITY, 0, 1e-3, 1 },   { 3, 257, 2, 1028, 0.2, 0.004, 1e-3, 1 },
    };
    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        compare_factored(&cases[i], KEEL_FLOAT32);
        compare_factored(&cases[i], KEEL_FLOAT64);
    }
}

/* Vectors along any dims, shorter and longer than the lanes of a sum. */
static void constraints_are_those_of_the_host(void **unused)
{
    static const keel_projection hows[] = {
        { .non_negative = true },
        { .lengths = true, .most = 0.8, .rate = 1 },
        { .lengths = true, .least = 1, .most = 1, .rate = 1 },
        { .lengths = true, .least = 0.4, .most = 0.9, .rate = 0.3 },
    };
    static const struct {
        keel_shape shape;
        unsigned over;
    } cases[] = {
        { { 1, { 1 } }, 1 },          { { 1, { 700 } }, 1 },        { { 2, { 600, 3 } }, 1 },
        { { 2, { 600, 3 } }, 2 },     { { 2, { 40, 30 } }, 3 },     { { 2, { 5, 7 } }, 0 },
        { { 4, { 3, 5, 7, 4 } }, 7 }, { { 4, { 3, 5, 7, 4 } }, 5 }, { { 4, { 3, 5, 7, 4 } }, 10 },
        { { 3, { 9, 31, 2 } }, 6 },   { { 2, { 0, 3 } }, 1 },
    };
    enum { HOWS = sizeof hows / sizeof *hows, CASES = sizeof cases / sizeof *cases };
    (void)unused;
    for (int i = 0; i < 2 * HOWS * CASES; i++) {
        const keel_dtype real = i & 1 ? KEEL_FLOAT64 : KEEL_FLOAT32;
        const int64_t count = keel_shape_count(&cases[i / 2 / HOWS].shape);
        const int64_t bytes = count * (int64_t)keel_dtype_size(real);
        char *host = malloc((size_t)bytes + 1), *came = malloc((size_t)bytes + 1);
        keel_device_project p = { .real = real,
                                  .how = hows[i / 2 % HOWS],
                                  .shape = cases[i / 2 / HOWS].shape,
                                  .w = emu_allocate(bytes, "a weight") };
        assert_true(host && came);
        p.how.over = cases[i / 2 / HOWS].over;
        for (int64_t k = 0; k < count; k++) set(host, real, k, number(KEEL_RULE_PLAIN, 0, k));
        emu_copy_in(p.w, host, bytes);
        memcpy(came, host, (size_t)bytes);
        if (count > 0) keel_project(&p.how, &p.shape, real, host);
        if (count > 1) assert_memory_not_equal(came, host, (size_t)bytes);
        turn();
        assert_null(keel_cuda_project(NULL, &p));
        assert_null(emu_report());
        emu_copy_out(came, p.w, bytes);
        if (memcmp(came, host, (size_t)bytes)) fail_msg("case %d", i);
        free(host);
        free(came);
        emu_release_all();
    }
}

/* Of tiles that are no neighbours: what lies between stays. */
static void votes_are_those_of_the_host(void **unused)
{
    static const struct {
        const char *what;
        double scale, at; /* a number that is put into tile 1; 0: none */
        bool bad;         /* that tile is, in float32 */
    } cases[] = { { "finite", 0.37, 0, false },
                  { "a NaN", 0.37, NAN, true },
                  { "an infinite number", 0, INFINITY, true },
                  { "minus it", 0.37, -INFINITY, true },
                  { "what overflows when it is scaled", 1e30, 1e20, true },
                  { "what does not when it is", 1e-30, 3e38, false },
                  { "weights", 1, 0, false },
                  { "weights with a NaN", 1, NAN, true } };
    static const keel_device_tile tile[] = { { 0, 1 }, { 5, 600 }, { 640, 256 }, { 1000, 2000 } };
    enum { TILES = sizeof tile / sizeof *tile };
    (void)unused;
    for (int i = 0; i < 32; i++) {
        const keel_dtype real = i & 1 ? KEEL_FLOAT64 : KEEL_FLOAT32;
        const int64_t bytes = MOST * (int64_t)keel_dtype_size(real);
        keel_device_vote want[TILES], got[TILES];
        char *host = malloc((size_t)bytes), *came = malloc((size_t)bytes);
        assert_true(host && came);
        for (int64_t k = 0; k < MOST; k++) set(host, real, k, number(KEEL_RULE_PLAIN, 1, k));
        if (cases[i / 4].at != 0) set(host, real, 5 + 599, cases[i / 4].at);
        void *there = emu_allocate(bytes, "gradients"), *tiles = emu_allocate(sizeof tile, "tiles");
        emu_copy_in(there, host, bytes);
        emu_copy_in(tiles, tile, sizeof tile);
        keel_device_check c = { .real = real,
                                .n_tile = TILES,
                                .tile = tile,
                                .g = host,
                                .end = MOST,
                                .scale = cases[i / 4].scale,
                                .squares = i & 2,
                                .vote = want };
        keel_check(&c);
        assert_true(want[1].bad == (cases[i / 4].bad && (real == KEEL_FLOAT32 || i / 4 != 4)));
        assert_true(!want[0].bad && !want[2].bad &&
                    (want[3].squares > 0) == (c.squares && c.scale > 0));
        c.tile = tiles;
        c.g = there;
        c.vote = emu_allocate(sizeof got, "votes");
        turn();
        assert_null(keel_cuda_check(NULL, &c));
        assert_null(emu_report());
        emu_copy_out(got, c.vote, sizeof got);
        emu_copy_out(came, there, bytes);
        for (int k = 0; k < TILES; k++)
            if (got[k].bad != want[k].bad ||
                (!got[k].bad && memcmp(&got[k].squares, &want[k].squares, sizeof(double))))
                fail_msg("%s: tile %d", cases[i / 4].what, k);
        const int64_t element = (int64_t)keel_dtype_size(real);
        assert_memory_equal(came, host, (size_t)(5 * element));
        assert_memory_equal(came + 605 * element, host + 605 * element,
                            (size_t)(bytes - 605 * element));
        free(host);
        free(came);
        emu_release_all();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bits_are_those_of_the_host),
        cmocka_unit_test(weights_that_move_together_move_as_alone),
        cmocka_unit_test(every_rule_moves_weights),
        cmocka_unit_test(sums_are_those_of_the_host),
        cmocka_unit_test(orthogonal_matrices_are_those_of_the_host),
        cmocka_unit_test(weights_moved_by_factors_are_those_of_the_host),
        cmocka_unit_test(constraints_are_those_of_the_host),
        cmocka_unit_test(votes_are_those_of_the_host),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
