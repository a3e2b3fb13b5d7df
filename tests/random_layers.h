/* Calls of layers by chance: every layer of Keel has a line in the table `drawers`, or a reason why
 * not. Long because of that table and the arguments that its layers can have. */
#ifndef TESTS_RANDOM_LAYERS_H
#define TESTS_RANDOM_LAYERS_H
#include "random_steps.h"

/* ---- arguments by chance ----------------------------------------------------------------------
 */

typedef struct drawing {
    random_graph *g;
    keel_model *m; /* what is drawn so far */
    keel_symbol symbol[STEPS_MAX];
    bool made[STEPS_MAX];
    bool certain; /* layers that draw numbers while they train are left out */
} drawing;

static int64_t count_of(const step *s)
{
    return keel_shape_count(&s->shape);
}

/* A value of that rank (0: any rank of 1 or more), a later one rather; -1: there is none. */
static int pick(const random_graph *g, int rank)
{
    for (int tries = 0; tries < 12; tries++) {
        const int back = percent(50) ? 1 + chance(g->n < 3 ? g->n : 3) : 1 + chance(g->n);
        const step *s = &g->step[g->n - back];
        if (count_of(s) <= ROW_MAX && (rank ? s->shape.rank == rank : s->shape.rank > 0))
            return g->n - back;
    }
    return -1;
}

static bool from_one(const random_graph *g, step *s, int rank)
{
    s->n_in = 1;
    s->in[0] = pick(g, rank);
    return s->in[0] >= 0;
}

static void give(step *s, keel_arg a)
{
    s->arg[s->n_arg++] = a;
}
#define GIVE_INT(s, key, n)     give(s, (keel_arg)KEEL_ARG_INT(key, n))
#define GIVE_BOOL(s, key, b)    give(s, (keel_arg)KEEL_ARG_BOOL(key, b))
#define GIVE_REAL(s, key, x)    give(s, (keel_arg)KEEL_ARG_FLOAT(key, x))
#define GIVE_STR(s, key, t)     give(s, (keel_arg)KEEL_ARG_STR(key, t))
#define GIVE_PAIR(s, key, a, b) give(s, (keel_arg)KEEL_ARG_INTS(key, a, b))

static void give_activation(step *s)
{
    int n = 0;
    while (keel_activations[n]) n++;
    GIVE_STR(s, "activation", keel_activations[chance(n)]->type.name);
}

static void give_window(step *s, const char *size, int most)
{
    GIVE_PAIR(s, size, 1 + chance(most), 1 + chance(most));
    GIVE_STR(s, "padding", percent(50) ? "same" : "valid");
}

/* Strides or dilation: Keras refuses both at once. */
static void give_strides(step *s)
{
    const int which = chance(3);
    if (which == 0) GIVE_PAIR(s, "strides", 1 + chance(3), 1 + chance(3));
    if (which == 1) GIVE_PAIR(s, "dilation_rate", 1 + chance(3), 1 + chance(3));
}

static bool draw_dense(random_graph *g, step *s)
{
    if (!from_one(g, s, 0)) return false;
    GIVE_INT(s, "units", 1 + chance(5));
    if (percent(30)) GIVE_BOOL(s, "use_bias", false);
    if (percent(40)) give_activation(s);
    if (percent(15)) GIVE_STR(s, "kernel_regularizer", "l2");
    return true;
}

static bool draw_activation(random_graph *g, step *s)
{
    give_activation(s);
    return from_one(g, s, 0);
}

static bool draw_conv2d(random_graph *g, step *s)
{
    if (!from_one(g, s, 3)) return false;
    const int64_t c = g->step[s->in[0]].shape.dim[2];
    const bool groups = c > 1 && c <= CHANNELS_MAX && percent(15);
    GIVE_INT(s, "filters", groups || percent(40) ? c : 1 + chance(CHANNELS_MAX));
    give_window(s, "kernel_size", 4);
    give_strides(s);
    if (groups) GIVE_INT(s, "groups", c);
    if (percent(40)) GIVE_BOOL(s, "use_bias", false);
    if (percent(30)) give_activation(s);
    return true;
}

static bool draw_depthwise(random_graph *g, step *s)
{
    give_window(s, "kernel_size", 4);
    give_strides(s);
    if (percent(40)) GIVE_INT(s, "depth_multiplier", 2);
    if (percent(40)) GIVE_BOOL(s, "use_bias", false);
    if (percent(20)) give_activation(s);
    return from_one(g, s, 3);
}

static bool draw_pool(random_graph *g, step *s)
{
    give_window(s, "pool_size", 3);
    if (percent(60)) GIVE_PAIR(s, "strides", 1 + chance(3), 1 + chance(3));
    return from_one(g, s, 3);
}

static bool draw_global_pool(random_graph *g, step *s)
{
    if (percent(20)) GIVE_STR(s, "data_format", "channels_first");
    if (percent(40)) GIVE_BOOL(s, "keepdims", true);
    return from_one(g, s, 3);
}

static void give_triple(step *s, const char *key, int least, int most)
{
    const int n = most - least + 1;
    give(s, (keel_arg)KEEL_ARG_INTS(key, least + chance(n), least + chance(n), least + chance(n)));
}

static bool draw_conv3d(random_graph *g, step *s)
{
    const int which = chance(3);
    GIVE_INT(s, "filters", 1 + chance(CHANNELS_MAX));
    give_triple(s, "kernel_size", 1, 3);
    GIVE_STR(s, "padding", percent(50) ? "same" : "valid");
    if (which < 2) give_triple(s, which ? "strides" : "dilation_rate", 1, 2);
    if (percent(40)) GIVE_BOOL(s, "use_bias", false);
    if (percent(30)) give_activation(s);
    return from_one(g, s, 4);
}

static bool draw_pool3d(random_graph *g, step *s)
{
    give_triple(s, "pool_size", 1, 3);
    GIVE_STR(s, "padding", percent(50) ? "same" : "valid");
    if (percent(60)) give_triple(s, "strides", 1, 3);
    return from_one(g, s, 4);
}

static bool draw_global_pool3d(random_graph *g, step *s)
{
    if (percent(40)) GIVE_BOOL(s, "keepdims", true);
    return from_one(g, s, 4);
}

static bool draw_padding3d(random_graph *g, step *s)
{
    give_triple(s, "padding", 0, 1);
    return from_one(g, s, 4);
}

static bool draw_transpose(random_graph *g, step *s)
{
    GIVE_INT(s, "filters", 1 + chance(CHANNELS_MAX));
    give_window(s, "kernel_size", 3);
    give_strides(s);
    if (percent(30)) GIVE_BOOL(s, "use_bias", false);
    if (percent(30)) give_activation(s);
    return from_one(g, s, 3);
}

static bool draw_transpose1d(random_graph *g, step *s)
{
    const int stride = 1 + chance(3);
    GIVE_INT(s, "filters", 1 + chance(CHANNELS_MAX));
    GIVE_INT(s, "kernel_size", 1 + chance(4));
    GIVE_INT(s, "strides", stride);
    if (percent(30)) GIVE_INT(s, "output_padding", chance(stride));
    if (percent(30)) give_activation(s);
    return from_one(g, s, 2);
}

static bool draw_transpose3d(random_graph *g, step *s)
{
    GIVE_INT(s, "filters", 1 + chance(CHANNELS_MAX));
    give_triple(s, "kernel_size", 1, 3);
    give_triple(s, "strides", 1, 2);
    GIVE_STR(s, "padding", percent(50) ? "same" : "valid");
    return from_one(g, s, 4);
}

static bool draw_separable(random_graph *g, step *s)
{
    GIVE_INT(s, "filters", 1 + chance(CHANNELS_MAX));
    return draw_depthwise(g, s);
}

static bool draw_depthwise1d(random_graph *g, step *s)
{
    const int which = chance(3);
    GIVE_INT(s, "kernel_size", 1 + chance(4));
    GIVE_STR(s, "padding", percent(50) ? "same" : "valid");
    if (which < 2) GIVE_INT(s, which ? "strides" : "dilation_rate", 1 + chance(3));
    if (percent(40)) GIVE_INT(s, "depth_multiplier", 2);
    return from_one(g, s, 2);
}

static bool draw_separable1d(random_graph *g, step *s)
{
    GIVE_INT(s, "filters", 1 + chance(CHANNELS_MAX));
    return draw_depthwise1d(g, s);
}

static bool draw_cropping1d(random_graph *g, step *s)
{
    GIVE_PAIR(s, "cropping", chance(2), chance(2));
    return from_one(g, s, 2);
}

static bool draw_cropping2d(random_graph *g, step *s)
{
    give(s, (keel_arg)KEEL_ARG_JSON("cropping", percent(50) ? "[[1,0],[0,2]]" : "[[0,1],[1,0]]"));
    return from_one(g, s, 3);
}

static bool draw_cropping3d(random_graph *g, step *s)
{
    give(s, (keel_arg)KEEL_ARG_JSON("cropping", "[[1,0],[0,0],[0,1]]"));
    return from_one(g, s, 4);
}

static bool draw_upsample1d(random_graph *g, step *s)
{
    GIVE_INT(s, "size", 1 + chance(3));
    return from_one(g, s, 2);
}

static bool draw_upsample2d(random_graph *g, step *s)
{
    static const char *const words[] = { "bilinear", "bicubic", "lanczos3", "lanczos5" };
    GIVE_PAIR(s, "size", 1 + chance(3), 1 + chance(2));
    if (percent(60)) GIVE_STR(s, "interpolation", words[chance(4)]);
    return from_one(g, s, 3);
}

static void give_size(step *s)
{
    GIVE_INT(s, "height", 1 + chance(6));
    GIVE_INT(s, "width", 1 + chance(6));
}

static bool draw_resizing(random_graph *g, step *s)
{
    static const char *const words[] = { "nearest",  "bilinear", "bicubic",
                                         "lanczos3", "lanczos5", "area" };
    const int which = chance(3);
    give_size(s);
    GIVE_STR(s, "interpolation", words[chance(6)]);
    if (which < 2) GIVE_BOOL(s, which ? "crop_to_aspect_ratio" : "pad_to_aspect_ratio", true);
    if (percent(50)) GIVE_REAL(s, "fill_value", 0.25);
    if (percent(50)) GIVE_BOOL(s, "antialias", true);
    return from_one(g, s, 3);
}

static bool draw_crop(random_graph *g, step *s)
{
    give_size(s);
    return from_one(g, s, 3);
}

static bool draw_flip(random_graph *g, step *s)
{
    if (percent(50)) GIVE_STR(s, "mode", percent(50) ? "vertical" : "horizontal");
    return from_one(g, s, 3);
}

static void give_look(step *s)
{
    static const char *const fills[] = { "reflect", "constant", "wrap", "nearest" };
    GIVE_STR(s, "fill_mode", fills[chance(4)]);
    GIVE_STR(s, "interpolation", percent(70) ? "bilinear" : "nearest");
    if (percent(50)) GIVE_REAL(s, "fill_value", 0.25);
}

static bool draw_rotation(random_graph *g, step *s)
{
    GIVE_REAL(s, "factor", 0.5);
    give_look(s);
    return from_one(g, s, 3);
}

static bool draw_moved(random_graph *g, step *s)
{
    GIVE_REAL(s, "height_factor", 0.5);
    give(s, (keel_arg)KEEL_ARG_JSON("width_factor", "[-0.25, 0.5]"));
    give_look(s);
    return from_one(g, s, 3);
}

static void give_factor(step *s)
{
    GIVE_REAL(s, "factor", 0.25);
    give(s, (keel_arg)KEEL_ARG_JSON("value_range", "[-4, 4]"));
}

static bool draw_recolored(random_graph *g, step *s)
{
    give_factor(s);
    return from_one(g, s, 3);
}

static bool draw_shear(random_graph *g, step *s)
{
    GIVE_REAL(s, "x_factor", 0.5);
    give(s, (keel_arg)KEEL_ARG_JSON("y_factor", "[0.25, 0.5]"));
    give_look(s);
    return from_one(g, s, 3);
}

static bool draw_perspective(random_graph *g, step *s)
{
    GIVE_REAL(s, "scale", 0.5);
    GIVE_STR(s, "interpolation", percent(70) ? "bilinear" : "nearest");
    if (!from_one(g, s, 3)) return false;
    const keel_shape *in = &g->step[s->in[0]].shape;
    return in->dim[0] > 1 && in->dim[1] > 1;
}

/* Red, green and blue, or gray where that will do. */
static bool from_colours(const random_graph *g, step *s, bool gray)
{
    for (int tries = 0; tries < 12; tries++) {
        if (!from_one(g, s, 3)) return false;
        const int64_t channels = g->step[s->in[0]].shape.dim[2];
        if (channels == 3 || (gray && channels == 1)) return true;
    }
    return false;
}

static bool draw_grayscale(random_graph *g, step *s)
{
    return from_colours(g, s, true);
}

static bool draw_faded(random_graph *g, step *s)
{
    give_factor(s);
    return from_colours(g, s, true);
}

static bool draw_posterization(random_graph *g, step *s)
{
    GIVE_INT(s, "factor", 2 + chance(7));
    give(s, (keel_arg)KEEL_ARG_JSON("value_range", "[-4, 4]"));
    return from_one(g, s, 3);
}

static bool draw_solarization(random_graph *g, step *s)
{
    GIVE_REAL(s, "addition_factor", 0.25);
    GIVE_REAL(s, "threshold_factor", 0.75);
    give(s, (keel_arg)KEEL_ARG_JSON("value_range", "[-4, 4]"));
    return from_one(g, s, 3);
}

static bool draw_stretched(random_graph *g, step *s)
{
    give(s, (keel_arg)KEEL_ARG_JSON("value_range", "[-1, 1]"));
    return from_one(g, s, 3);
}

static bool draw_blur(random_graph *g, step *s)
{
    GIVE_PAIR(s, "kernel_size", 1 + 2 * chance(3), 1 + 2 * chance(3));
    GIVE_REAL(s, "sigma", 1);
    return draw_stretched(g, s);
}

static bool draw_equalized(random_graph *g, step *s)
{
    GIVE_INT(s, "bins", 1 + chance(5));
    return draw_stretched(g, s);
}

static bool draw_local_contrast(random_graph *g, step *s)
{
    GIVE_PAIR(s, "tile_grid_size", 1 + chance(2), 1 + chance(2));
    if (percent(50)) GIVE_REAL(s, "clip_limit", 1.5);
    return draw_stretched(g, s);
}

static bool draw_elastic(random_graph *g, step *s)
{
    static const char *const fills[] = { "reflect", "constant", "wrap", "nearest" };
    GIVE_STR(s, "fill_mode", fills[chance(4)]);
    GIVE_STR(s, "interpolation", percent(70) ? "bilinear" : "nearest");
    return draw_stretched(g, s);
}

static bool draw_policy(random_graph *g, step *s)
{
    const bool mix = !strcmp(s->layer, "AugMix");
    if (mix) GIVE_INT(s, "chain_depth", chance(3));
    if (mix) GIVE_INT(s, "num_chains", 1 + chance(3));
    if (mix && percent(50)) GIVE_REAL(s, "alpha", 0.25);
    if (!mix) GIVE_INT(s, "num_ops", chance(4));
    give(s, (keel_arg)KEEL_ARG_JSON("value_range", "[-1, 1]"));
    return from_colours(g, s, true);
}

static bool draw_erasing(random_graph *g, step *s)
{
    if (percent(50)) GIVE_REAL(s, "fill_value", 0.25);
    return draw_stretched(g, s);
}

static bool draw_jitter(random_graph *g, step *s)
{
    GIVE_REAL(s, "brightness_factor", 0.25);
    GIVE_REAL(s, "contrast_factor", 0.25);
    return draw_stretched(g, s);
}

static bool draw_coloured(random_graph *g, step *s)
{
    give_factor(s);
    return from_colours(g, s, false);
}

static bool draw_upsample3d(random_graph *g, step *s)
{
    give_triple(s, "size", 1, 2);
    return from_one(g, s, 4);
}

static bool draw_repeat(random_graph *g, step *s)
{
    GIVE_INT(s, "n", 1 + chance(3));
    return from_one(g, s, 1);
}

static bool draw_permute(random_graph *g, step *s)
{
    static const int64_t orders[][3] = { { 3, 1, 2 }, { 2, 1, 3 }, { 3, 2, 1 } };
    const int64_t *o = orders[chance(3)];
    give(s, (keel_arg)KEEL_ARG_INTS("dims", o[0], o[1], o[2]));
    return from_one(g, s, 3);
}

static bool draw_leaky(random_graph *g, step *s)
{
    if (percent(50)) GIVE_REAL(s, "negative_slope", 0.25);
    return from_one(g, s, 0);
}

static bool draw_elu(random_graph *g, step *s)
{
    if (percent(50)) GIVE_REAL(s, "alpha", 0.5);
    return from_one(g, s, 0);
}

static bool draw_prelu(random_graph *g, step *s)
{
    GIVE_STR(s, "alpha_initializer", "ones");
    if (percent(50)) give(s, (keel_arg)KEEL_ARG_INTS("shared_axes", 1));
    return from_one(g, s, 0);
}

static bool draw_noise(random_graph *g, step *s)
{
    GIVE_REAL(s, "stddev", 0.125);
    return from_one(g, s, 0);
}

static bool draw_spatial(random_graph *g, step *s)
{
    GIVE_REAL(s, "rate", 0.25);
    return from_one(g, s, s->layer[strlen("SpatialDropout")] - '0' + 1);
}

static bool draw_rescaling(random_graph *g, step *s)
{
    GIVE_REAL(s, "scale", 1.5 * chance_real());
    if (percent(60)) GIVE_REAL(s, "offset", chance_real());
    return from_one(g, s, 0);
}

static bool draw_dropout(random_graph *g, step *s)
{
    GIVE_REAL(s, "rate", 0.25);
    return from_one(g, s, 0);
}

static bool draw_embedding(random_graph *g, step *s)
{
    s->n_in = 1;
    s->in[0] = chance(2); /* an input: nothing else is of whole numbers */
    if (!g->step[s->in[0]].ids) return false;
    GIVE_INT(s, "input_dim", g->step[s->in[0]].ids + chance(2));
    GIVE_INT(s, "output_dim", 1 + chance(CHANNELS_MAX));
    if (percent(50)) GIVE_BOOL(s, "mask_zero", true);
    return true;
}

static bool draw_reversible(random_graph *g, step *s)
{
    if (percent(40)) GIVE_BOOL(s, "tie_weights", false);
    return draw_embedding(g, s);
}

static bool draw_masking(random_graph *g, step *s)
{
    if (percent(20)) GIVE_REAL(s, "mask_value", 0.5);
    return from_one(g, s, percent(15) ? 1 : percent(70) ? 2 : 3); /* of vectors whole rows */
}

static bool draw_global_pool1d(random_graph *g, step *s)
{
    if (percent(40)) GIVE_BOOL(s, "keepdims", true);
    return from_one(g, s, 2);
}

static bool draw_conv1d(random_graph *g, step *s)
{
    static const char *const paddings[] = { "valid", "same", "causal" };
    const int which = chance(3);
    GIVE_INT(s, "filters", 1 + chance(CHANNELS_MAX));
    GIVE_INT(s, "kernel_size", 1 + chance(4));
    GIVE_STR(s, "padding", paddings[chance(3)]);
    if (which < 2) GIVE_INT(s, which ? "strides" : "dilation_rate", 1 + chance(3));
    if (percent(30)) give_activation(s);
    return from_one(g, s, 2);
}

static bool draw_pool1d(random_graph *g, step *s)
{
    GIVE_INT(s, "pool_size", 1 + chance(3));
    GIVE_STR(s, "padding", percent(50) ? "same" : "valid");
    if (percent(60)) GIVE_INT(s, "strides", 1 + chance(3));
    return from_one(g, s, 2);
}

static bool draw_padding1d(random_graph *g, step *s)
{
    GIVE_PAIR(s, "padding", chance(3), chance(3));
    return from_one(g, s, 2);
}

/* A layer that is called once for all steps, or one that is called at each. */
static bool draw_steps(random_graph *g, step *s)
{
    static const char *const of_vectors[] = {
        "{\"class_name\":\"Dense\",\"config\":{\"units\":3}}",
        "{\"class_name\":\"LayerNormalization\",\"config\":{\"epsilon\":0.0625}}",
        "{\"class_name\":\"Softmax\",\"config\":{}}",
        "{\"class_name\":\"RepeatVector\",\"config\":{\"n\":2}}",
    };
    static const char *const of_steps[] = {
        "{\"class_name\":\"Conv1D\",\"config\":{\"filters\":2,\"kernel_size\":2,\"padding\":"
        "\"same\"}}",
        "{\"class_name\":\"GRU\",\"config\":{\"units\":2}}",
        "{\"class_name\":\"LSTM\",\"config\":{\"units\":2,\"return_sequences\":true}}",
        "{\"class_name\":\"GlobalAveragePooling1D\",\"config\":{}}",
        "{\"class_name\":\"PReLU\",\"config\":{\"alpha_initializer\":\"ones\"}}",
        "{\"class_name\":\"LayerNormalization\",\"config\":{\"axis\":1,\"epsilon\":0.0625}}",
    };
    const bool each = percent(60);
    give(s, (keel_arg)KEEL_ARG_JSON("layer", each ? of_steps[chance(6)] : of_vectors[chance(4)]));
    return from_one(g, s, each ? 3 : 2);
}

static bool draw_stft(random_graph *g, step *s)
{
    static const char *const modes[] = { "log", "magnitude", "psd", "real", "imag", "stft" };
    GIVE_STR(s, "mode", modes[chance(6)]);
    GIVE_INT(s, "frame_length", 2 + chance(3));
    GIVE_STR(s, "padding", percent(60) ? "same" : "valid");
    if (percent(50)) GIVE_BOOL(s, "expand_dims", true);
    return from_one(g, s, 2);
}

static bool draw_mel(random_graph *g, step *s)
{
    if (!from_one(g, s, 1)) return false;
    const int64_t n = count_of(&g->step[s->in[0]]);
    if (n < 3) return false;
    GIVE_INT(s, "fft_length", 2 + chance(n > 8 ? 8 : (int)n - 1));
    GIVE_INT(s, "sequence_stride", 1 + chance(3));
    GIVE_INT(s, "num_mel_bins", 1 + chance(3));
    GIVE_REAL(s, "min_power", 0.125);
    return true;
}

static bool draw_activity(random_graph *g, step *s)
{
    GIVE_REAL(s, "l2", 0.125);
    return from_one(g, s, 0);
}

static bool draw_plain(random_graph *g, step *s)
{
    return from_one(g, s, 0);
}

/* A divisor of n. */
static int64_t divisor(int64_t n)
{
    int64_t d = 1 + chance((int)n);
    while (n % d) d--;
    return d;
}

static bool draw_reshape(random_graph *g, step *s)
{
    if (!from_one(g, s, 0)) return false;
    const int64_t n = count_of(&g->step[s->in[0]]), a = divisor(n), b = divisor(n / a);
    const int rank = 1 + chance(4);
    if (rank == 1) give(s, (keel_arg)KEEL_ARG_INTS("target_shape", -1));
    if (rank == 2) GIVE_PAIR(s, "target_shape", a, percent(50) ? -1 : n / a);
    if (rank == 3) give(s, (keel_arg)KEEL_ARG_INTS("target_shape", a, b, n / a / b));
    const int64_t c = divisor(n / a / b);
    if (rank == 4) give(s, (keel_arg)KEEL_ARG_INTS("target_shape", a, b, c, n / a / b / c));
    return true;
}

static bool draw_padding(random_graph *g, step *s)
{
    if (!from_one(g, s, 3)) return false;
    if (percent(40))
        give(s,
             (keel_arg)KEEL_ARG_JSON("padding", percent(50) ? "[[1,0],[0,2]]" : "[[0,1],[2,1]]"));
    else
        GIVE_INT(s, "padding", 1 + chance(2));
    return true;
}

static bool draw_relu(random_graph *g, step *s)
{
    if (percent(25)) GIVE_REAL(s, "max_value", percent(50) ? 6 : 0.5);
    if (percent(20)) GIVE_REAL(s, "negative_slope", 0.25);
    if (percent(10)) GIVE_REAL(s, "threshold", 0.125);
    return from_one(g, s, 0);
}

static bool draw_softmax(random_graph *g, step *s)
{
    if (!from_one(g, s, 0)) return false;
    const int rank = g->step[s->in[0]].shape.rank;
    if (rank > 1 && percent(15))
        GIVE_PAIR(s, "axis", rank - 1, rank);
    else if (percent(30))
        GIVE_INT(s, "axis", 1 + chance(rank));
    return true;
}

static bool draw_batch_norm(random_graph *g, step *s)
{
    if (!from_one(g, s, 0)) return false;
    if (percent(20)) GIVE_INT(s, "axis", 1 + chance(g->step[s->in[0]].shape.rank));
    if (percent(20)) GIVE_BOOL(s, "center", false);
    if (percent(20)) GIVE_BOOL(s, "scale", false);
    if (percent(50)) GIVE_REAL(s, "epsilon", 0.0625);
    return true;
}

/* Two to four values that agree in every dim but `free` (-1: in all); the same one again and again
 * is as good as any. */
static bool from_many(const random_graph *g, step *s, int free)
{
    s->in[0] = pick(g, 0);
    if (s->in[0] < 0) return false;
    const keel_shape *first = &g->step[s->in[0]].shape;
    const int n = 2 + (percent(30) ? chance(INS_MAX - 1) : 0);
    if (free == -2) free = first->rank - 1 - (percent(30) ? chance(first->rank) : 0);
    for (s->n_in = 1; s->n_in < n; s->n_in++) {
        int found = percent(30) ? s->in[chance(s->n_in)] : -1;
        for (int tries = 0; tries < 12 && found < 0; tries++) {
            const int i = chance(g->n);
            keel_shape shape = g->step[i].shape;
            if (free >= 0 && shape.rank == first->rank) shape.dim[free] = first->dim[free];
            if (keel_shape_equal(&shape, first)) found = i;
        }
        s->in[s->n_in] = found >= 0 ? found : s->in[0];
    }
    if (free >= 0) GIVE_INT(s, "axis", free == first->rank - 1 ? -1 : free + 1);
    return true;
}

static bool draw_merge(random_graph *g, step *s)
{
    return from_many(g, s, -1);
}

static bool draw_concatenate(random_graph *g, step *s)
{
    return from_many(g, s, -2);
}

static bool draw_two(random_graph *g, step *s)
{
    if (!from_many(g, s, -1)) return false;
    s->n_in = 2;
    return true;
}

static bool draw_dot(random_graph *g, step *s)
{
    if (!draw_two(g, s)) return false;
    GIVE_INT(s, "axes", 1 + chance(g->step[s->in[0]].shape.rank));
    if (percent(30)) GIVE_BOOL(s, "normalize", true);
    return true;
}

static bool draw_reduction(random_graph *g, step *s)
{
    if (!from_one(g, s, 0)) return false;
    GIVE_INT(s, "axis", 1 + chance(g->step[s->in[0]].shape.rank));
    if (percent(50)) GIVE_BOOL(s, "keepdims", true);
    return true;
}

static bool draw_layer_norm(random_graph *g, step *s)
{
    if (!from_one(g, s, 0)) return false;
    if (percent(20)) GIVE_BOOL(s, "center", false);
    if (percent(20)) GIVE_BOOL(s, "scale", false);
    if (percent(30)) GIVE_INT(s, "axis", 1 + chance(g->step[s->in[0]].shape.rank));
    if (percent(70)) GIVE_REAL(s, "epsilon", 0.0625);
    return true;
}

static bool draw_rms_norm(random_graph *g, step *s)
{
    GIVE_REAL(s, "epsilon", 0.0625);
    return from_one(g, s, 0);
}

static bool draw_einsum(random_graph *g, step *s)
{
    static const char *const equations[] = { "abc,cd->abd", "abc,cd->adb", "...c,cd->...d" };
    const int which = chance(3);
    if (percent(25)) { /* the kernel is no matrix of sums and units */
        GIVE_STR(s, "equation", "abc,bcd->abd");
        GIVE_STR(s, "bias_axes", "bd");
        GIVE_PAIR(s, "output_shape", -1, 1 + chance(3));
        return from_one(g, s, 2);
    }
    GIVE_STR(s, "equation", equations[which]);
    if (which < 2 && percent(70)) GIVE_STR(s, "bias_axes", "d");
    if (which == 2)
        GIVE_INT(s, "output_shape", 1 + chance(5));
    else
        GIVE_PAIR(s, "output_shape", which ? 3 : -1, which ? -1 : 2);
    return from_one(g, s, which == 2 ? 0 : 2);
}

/* Of images one dim attends, or both; key and value are the same or differ in their last dim. */
static bool draw_attention(random_graph *g, step *s)
{
    const int rank = percent(80) ? 2 : 3;
    if (!from_one(g, s, rank) || (s->in[1] = pick(g, rank)) < 0) return false;
    s->n_in = 2;
    if (percent(30)) s->in[s->n_in++] = s->in[1];
    GIVE_INT(s, "num_heads", 1 + chance(3));
    GIVE_INT(s, "key_dim", 1 + chance(4));
    if (percent(30)) GIVE_INT(s, "value_dim", 1 + chance(4));
    if (percent(30)) GIVE_BOOL(s, "use_bias", false);
    if (percent(30)) GIVE_BOOL(s, "use_gate", true);
    if (percent(20)) GIVE_PAIR(s, "output_shape", 2, 1);
    if (rank == 3 && percent(50)) GIVE_INT(s, "attention_axes", 1 + chance(2));
    if (rank == 2 && percent(20)) GIVE_INT(s, "sliding_window", 1 + chance(3));
    return true;
}

/* Query, value and maybe key: as many features in all of them, so of one value. */
static bool draw_plain_attention(random_graph *g, step *s)
{
    if (!from_one(g, s, 2)) return false;
    s->n_in = 2 + percent(40);
    for (int k = 1; k < s->n_in; k++) s->in[k] = s->in[0];
    if (percent(50)) GIVE_BOOL(s, "use_scale", percent(50));
    if (!strcmp(s->layer, "Attention") && percent(40)) GIVE_STR(s, "score_mode", "concat");
    return true;
}

static bool draw_few_heads(random_graph *g, step *s)
{
    const int shared = 1 + chance(2);
    if (!from_one(g, s, 2)) return false;
    s->n_in = 2;
    s->in[1] = s->in[0];
    GIVE_INT(s, "head_dim", 1 + chance(4));
    GIVE_INT(s, "num_key_value_heads", shared);
    GIVE_INT(s, "num_query_heads", shared * (1 + chance(3)));
    if (percent(30)) GIVE_BOOL(s, "use_bias", false);
    if (percent(30)) GIVE_BOOL(s, "use_gate", true);
    if (percent(20)) GIVE_INT(s, "sliding_window", 1 + chance(3));
    return true;
}

static bool draw_normalization(random_graph *g, step *s)
{
    if (!from_one(g, s, 0)) return false;
    const int rank = g->step[s->in[0]].shape.rank;
    if (percent(60)) GIVE_INT(s, "axis", percent(50) ? -1 : 1 + chance(rank));
    if (percent(50)) {
        GIVE_REAL(s, "mean", 0.25);
        GIVE_REAL(s, "variance", 2.25);
    }
    if (percent(30)) GIVE_BOOL(s, "invert", true);
    return true;
}

static bool draw_unit_norm(random_graph *g, step *s)
{
    if (!from_one(g, s, 0)) return false;
    if (percent(40)) GIVE_INT(s, "axis", 1 + chance(g->step[s->in[0]].shape.rank));
    return true;
}

static bool draw_group_norm(random_graph *g, step *s)
{
    if (!from_one(g, s, 0)) return false;
    const keel_shape *in = &g->step[s->in[0]].shape;
    const int axis = percent(20) ? chance(in->rank) : in->rank - 1;
    if (axis != in->rank - 1) GIVE_INT(s, "axis", 1 + axis);
    GIVE_INT(s, "groups", percent(20) ? -1 : divisor(in->dim[axis]));
    GIVE_REAL(s, "epsilon", 0.0625);
    if (percent(20)) GIVE_BOOL(s, "center", false);
    if (percent(20)) GIVE_BOOL(s, "scale", false);
    return true;
}

static bool draw_adaptive(random_graph *g, step *s)
{
    const int dims = s->layer[strlen(s->layer) - 2] - '0';
    if (dims == 1) GIVE_INT(s, "output_size", 1 + chance(3));
    if (dims == 2) GIVE_PAIR(s, "output_size", 1 + chance(3), 1 + chance(3));
    if (dims == 3) give_triple(s, "output_size", 1, 3);
    return from_one(g, s, dims + 1);
}

#define CELL(kind, more) "{\"class_name\":\"" kind "\",\"config\":{\"units\":2" more "}}"
#define CELLS(list)      "{\"class_name\":\"StackedRNNCells\",\"config\":{\"cells\":[" list "]}}"

static bool draw_recurrent(random_graph *g, step *s)
{
    static const char *const cells[] = { CELL("LSTMCell", ""), CELL("GRUCell", ""),
                                         CELLS(CELL("GRUCell", "") "," CELL("LSTMCell", "")),
                                         CELLS(CELL("SimpleRNNCell", "")) };
    if (!strcmp(s->layer, "RNN"))
        give(s, (keel_arg)KEEL_ARG_JSON("cell", cells[chance(4)]));
    else
        GIVE_INT(s, "units", 1 + chance(4));
    if (!strcmp(s->layer, "GRU") && percent(40)) GIVE_BOOL(s, "reset_after", false);
    if (percent(30) && strcmp(s->layer, "RNN")) GIVE_STR(s, "activation", "silu");
    if (percent(50)) GIVE_BOOL(s, "return_sequences", true);
    if (percent(30)) GIVE_BOOL(s, "go_backwards", true);
    if (percent(30)) GIVE_BOOL(s, "zero_output_for_mask", true);
    return from_one(g, s, 2);
}

static bool draw_conv_lstm(random_graph *g, step *s)
{
    const int dims = s->layer[8] - '0';
    GIVE_INT(s, "filters", 1 + chance(3));
    GIVE_INT(s, "kernel_size", 1 + chance(3));
    GIVE_STR(s, "padding", percent(60) ? "same" : "valid");
    if (percent(40)) GIVE_INT(s, percent(50) ? "strides" : "dilation_rate", 2);
    if (percent(50)) GIVE_BOOL(s, "return_sequences", true);
    if (percent(30)) GIVE_BOOL(s, "go_backwards", true);
    if (percent(30)) GIVE_BOOL(s, "use_bias", false);
    return from_one(g, s, dims + 2);
}

static bool draw_both_ways(random_graph *g, step *s)
{
    static const char *const modes[] = { "concat", "sum", "mul", "ave" };
    const bool all = percent(50);
    give(s, (keel_arg)KEEL_ARG_JSON("layer", all ? CELL("LSTM", ",\"return_sequences\":true")
                                                 : CELL("GRU", "")));
    give(s, (keel_arg)KEEL_ARG_JSON("backward_layer",
                                    all ? CELL("GRU", ",\"return_sequences\":true,"
                                                      "\"go_backwards\":true")
                                        : CELL("SimpleRNN", ",\"go_backwards\":true")));
    GIVE_STR(s, "merge_mode", modes[chance(4)]);
    return from_one(g, s, 2);
}

/* Every registered layer: how its arguments are drawn, or why it is not. */
static const struct drawer {
    const char *layer;
    bool (*draw)(random_graph *g, step *s); /* false: nothing that is there fits */
    const char *excuse;
    int often;                   /* a share of all draws */
    bool once, trains_otherwise; /* it may not be called again; training is not inference */
} drawers[] = {
    { "InputLayer", NULL, "every graph begins with one", 0, true, false },
    { "StringLookup", NULL, "tests/test_lookups.c; it takes texts", 0, true, false },
    { "IntegerLookup", NULL, "tests/test_lookups.c; it takes inputs only", 0, true, false },
    { "TextVectorization", NULL, "tests/test_lookups.c; it takes texts", 0, true, false },
    { "Hashing", NULL, "tests/test_lookups.c; it takes inputs only", 0, true, false },
    { "HashedCrossing", NULL, "tests/test_lookups.c; it takes inputs only", 0, true, false },
    { "CategoryEncoding", NULL, "tests/test_lookups.c; it takes inputs only", 0, true, false },
    { "Discretization", NULL, "tests/test_lookups.c; it takes inputs only", 0, true, false },
    { "UnitNormalization", draw_unit_norm, NULL, 1, false, false },
    { "GroupNormalization", draw_group_norm, NULL, 1, false, false },
    { "Identity", draw_plain, NULL, 1, false, false },
    { "AdaptiveAveragePooling1D", draw_adaptive, NULL, 1, false, false },
    { "AdaptiveAveragePooling2D", draw_adaptive, NULL, 1, false, false },
    { "AdaptiveAveragePooling3D", draw_adaptive, NULL, 1, false, false },
    { "AdaptiveMaxPooling1D", draw_adaptive, NULL, 1, false, false },
    { "AdaptiveMaxPooling2D", draw_adaptive, NULL, 1, false, false },
    { "AdaptiveMaxPooling3D", draw_adaptive, NULL, 1, false, false },
    { "Normalization", draw_normalization, NULL, 1, false, false },
    { "MixUp", NULL, "it does not train", 0, true, false },
    { "CutMix", NULL, "it does not train", 0, true, false },
    { "LSTMCell", NULL, "layers over time call it", 0, true, false },
    { "GRUCell", NULL, "layers over time call it", 0, true, false },
    { "SimpleRNNCell", NULL, "layers over time call it", 0, true, false },
    { "StackedRNNCells", NULL, "layers over time call it", 0, true, false },
    { "LayerScale", NULL, "tests/test_operations.c; it must be told the channels", 0, true, false },
    { "CustomScaleLayer", NULL, "tests/test_operations.c; it is called on a list", 0, true, false },
    { "TFDConcat", NULL, "tests/test_operations.c; it is Concatenate", 0, true, false },
    { "TFDIdentity", NULL, "tests/test_operations.c; it is Identity", 0, true, false },
    { "Dense", draw_dense, NULL, 3, false, false },
    { "Activation", draw_activation, NULL, 3, false, false },
    { "Conv2D", draw_conv2d, NULL, 4, false, false },
    { "Conv1D", draw_conv1d, NULL, 2, false, false },
    { "DepthwiseConv2D", draw_depthwise, NULL, 2, false, false },
    { "MaxPooling2D", draw_pool, NULL, 2, false, false },
    { "AveragePooling2D", draw_pool, NULL, 2, false, false },
    { "MaxPooling1D", draw_pool1d, NULL, 1, false, false },
    { "AveragePooling1D", draw_pool1d, NULL, 1, false, false },
    { "GlobalMaxPooling1D", draw_global_pool1d, NULL, 1, false, false },
    { "GlobalMaxPooling2D", draw_global_pool, NULL, 1, false, false },
    { "GlobalAveragePooling1D", draw_global_pool1d, NULL, 2, false, false },
    { "Conv3D", draw_conv3d, NULL, 2, false, false },
    { "MaxPooling3D", draw_pool3d, NULL, 1, false, false },
    { "AveragePooling3D", draw_pool3d, NULL, 1, false, false },
    { "GlobalMaxPooling3D", draw_global_pool3d, NULL, 1, false, false },
    { "GlobalAveragePooling3D", draw_global_pool3d, NULL, 1, false, false },
    { "ZeroPadding3D", draw_padding3d, NULL, 1, false, false },
    { "Conv1DTranspose", draw_transpose1d, NULL, 1, false, false },
    { "Conv2DTranspose", draw_transpose, NULL, 2, false, false },
    { "Conv3DTranspose", draw_transpose3d, NULL, 1, false, false },
    { "SeparableConv1D", draw_separable1d, NULL, 1, false, false },
    { "SeparableConv2D", draw_separable, NULL, 1, false, false },
    { "DepthwiseConv1D", draw_depthwise1d, NULL, 1, false, false },
    { "Cropping1D", draw_cropping1d, NULL, 1, false, false },
    { "Cropping2D", draw_cropping2d, NULL, 1, false, false },
    { "Cropping3D", draw_cropping3d, NULL, 1, false, false },
    { "UpSampling1D", draw_upsample1d, NULL, 1, false, false },
    { "UpSampling2D", draw_upsample2d, NULL, 1, false, false },
    { "UpSampling3D", draw_upsample3d, NULL, 1, false, false },
    { "Resizing", draw_resizing, NULL, 1, false, false },
    { "CenterCrop", draw_crop, NULL, 1, false, false },
    { "RandomCrop", draw_crop, NULL, 1, true, true },
    { "RandomFlip", draw_flip, NULL, 1, true, true },
    { "RandomRotation", draw_rotation, NULL, 1, true, true },
    { "RandomZoom", draw_moved, NULL, 1, true, true },
    { "RandomTranslation", draw_moved, NULL, 1, true, true },
    { "RandomBrightness", draw_recolored, NULL, 1, true, true },
    { "RandomContrast", draw_recolored, NULL, 1, true, true },
    { "RandomInvert", draw_recolored, NULL, 1, true, true },
    { "RandomColorDegeneration", draw_faded, NULL, 1, true, true },
    { "RandomSaturation", draw_coloured, NULL, 1, true, true },
    { "RandomSharpness", draw_recolored, NULL, 1, true, true },
    { "RandomGaussianBlur", draw_blur, NULL, 1, true, true },
    { "RandomErasing", draw_erasing, NULL, 1, true, true },
    { "RandomColorJitter", draw_jitter, NULL, 1, true, true },
    { "AutoContrast", draw_stretched, NULL, 1, false, false },
    { "RandomHue", draw_coloured, NULL, 1, true, true },
    { "RandomGrayscale", draw_grayscale, NULL, 1, true, true },
    { "RandomPosterization", draw_posterization, NULL, 1, true, true },
    { "Solarization", draw_solarization, NULL, 1, true, true },
    { "RandomShear", draw_shear, NULL, 1, true, true },
    { "RandomPerspective", draw_perspective, NULL, 1, true, true },
    { "Equalization", draw_equalized, NULL, 1, false, true },
    { "ContrastLimitedAdaptiveHistogramEqualization", draw_local_contrast, NULL, 1, false, false },
    { "RandomElasticTransform", draw_elastic, NULL, 1, true, true },
    { "RandAugment", draw_policy, NULL, 1, true, true },
    { "AugMix", draw_policy, NULL, 1, true, true },
    { "RepeatVector", draw_repeat, NULL, 1, false, false },
    { "Permute", draw_permute, NULL, 1, false, false },
    { "LeakyReLU", draw_leaky, NULL, 1, false, false },
    { "ELU", draw_elu, NULL, 1, false, false },
    { "PReLU", draw_prelu, NULL, 1, false, false },
    { "GaussianNoise", draw_noise, NULL, 1, true, true },
    { "GaussianDropout", draw_dropout, NULL, 1, true, true },
    { "AlphaDropout", draw_dropout, NULL, 1, true, true },
    { "SpatialDropout1D", draw_spatial, NULL, 1, true, true },
    { "SpatialDropout2D", draw_spatial, NULL, 1, true, true },
    { "SpatialDropout3D", draw_spatial, NULL, 1, true, true },
    { "Embedding", draw_embedding, NULL, 3, false, false },
    { "ReversibleEmbedding", draw_reversible, NULL, 1, false, false },
    { "Masking", draw_masking, NULL, 2, false, false },
    { "GlobalAveragePooling2D", draw_global_pool, NULL, 1, false, false },
    { "Rescaling", draw_rescaling, NULL, 1, false, false },
    { "Dropout", draw_dropout, NULL, 1, true, true },
    { "Flatten", draw_plain, NULL, 1, false, false },
    { "Reshape", draw_reshape, NULL, 3, false, false },
    { "ZeroPadding2D", draw_padding, NULL, 2, false, false },
    { "ZeroPadding1D", draw_padding1d, NULL, 1, false, false },
    { "TimeDistributed", draw_steps, NULL, 1, false, false },
    { "SpectralNormalization", NULL,
      "tests/test_constraints.c; as in Keras a step moves its kernel even if it is frozen", 0, true,
      false },
    { "MelSpectrogram", draw_mel, NULL, 1, false, false },
    { "STFTSpectrogram", draw_stft, NULL, 1, false, false },
    { "LayerNormalization", draw_layer_norm, NULL, 2, false, false },
    { "RMSNormalization", draw_rms_norm, NULL, 1, false, false },
    { "EinsumDense", draw_einsum, NULL, 1, false, false },
    { "MultiHeadAttention", draw_attention, NULL, 3, false, false },
    { "GroupedQueryAttention", draw_few_heads, NULL, 2, false, false },
    { "Attention", draw_plain_attention, NULL, 2, false, false },
    { "AdditiveAttention", draw_plain_attention, NULL, 1, false, false },
    { "LSTM", draw_recurrent, NULL, 3, false, false },
    { "GRU", draw_recurrent, NULL, 3, false, false },
    { "SimpleRNN", draw_recurrent, NULL, 1, false, false },
    { "RNN", draw_recurrent, NULL, 1, false, false },
    { "Bidirectional", draw_both_ways, NULL, 2, false, false },
    { "ConvLSTM1D", draw_conv_lstm, NULL, 2, false, false },
    { "ConvLSTM2D", draw_conv_lstm, NULL, 2, false, false },
    { "ConvLSTM3D", NULL, "tests/test_against_keras.c; no graph has rows of 5 dims", 0, true,
      false },
    { "ActivityRegularization", draw_activity, NULL, 1, false, false },
    { "ReLU", draw_relu, NULL, 3, false, false },
    { "Softmax", draw_softmax, NULL, 1, false, false },
    { "BatchNormalization", draw_batch_norm, NULL, 3, false, true },
    { "Add", draw_merge, NULL, 4, false, false },
    { "Multiply", draw_merge, NULL, 1, false, false },
    { "Average", draw_merge, NULL, 1, false, false },
    { "Maximum", draw_merge, NULL, 1, false, false },
    { "Minimum", draw_merge, NULL, 1, false, false },
    { "Subtract", draw_two, NULL, 1, false, false },
    { "Dot", draw_dot, NULL, 1, false, false },
    { "Concatenate", draw_concatenate, NULL, 3, false, false },
    /* Operations of keras.ops, as many as show each kind of op behind them. */
    { "ops.Add", draw_two, NULL, 1, false, false },
    { "ops.Subtract", draw_two, NULL, 1, false, false },
    { "ops.Multiply", draw_two, NULL, 2, false, false },
    { "ops.Maximum", draw_two, NULL, 1, false, false },
    { "ops.Minimum", draw_two, NULL, 1, false, false },
    { "ops.Negative", draw_plain, NULL, 1, false, false },
    { "ops.Absolute", draw_plain, NULL, 1, false, false },
    { "ops.Square", draw_plain, NULL, 1, false, false },
    { "ops.Sin", draw_plain, NULL, 1, false, false },
    { "ops.Cos", draw_plain, NULL, 1, false, false },
    { "ops.Mean", draw_reduction, NULL, 1, false, false },
    { "ops.Sum", draw_reduction, NULL, 1, false, false },
    { "ops.Max", draw_reduction, NULL, 1, false, false },
};
enum { DRAWERS = sizeof drawers / sizeof *drawers };

static const struct drawer *drawer_of(const char *layer)
{
    for (int i = 0; i < DRAWERS; i++)
        if (!strcmp(drawers[i].layer, layer)) return &drawers[i];
    return NULL;
}

#endif
