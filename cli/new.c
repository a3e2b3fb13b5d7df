/* keel new ARCHITECTURE: makes a model without Python, ready to fit. The networks are in
 * architectures/. */
#include "architecture.h"
#include "setup.h"
#include <math.h>
#include <string.h>

typedef struct options {
    const char *input, *sizes, *output, *name;
    int64_t classes, vocabulary, seed;
    double dropout;
    bool no_rescaling;
    keel_compile_options compile;
    int dtype;
} options;

static int find(const keel_architecture **out, const char *name)
{
    const char *names[64] = { NULL };
    for (int i = 0; keel_architectures[i] && i < 63; i++) {
        names[i] = keel_architectures[i]->name;
        if (!strcmp(names[i], name)) {
            *out = keel_architectures[i];
            return -1;
        }
    }
    const char *near = keel_nearest(name, names);
    if (near)
        return keel_complain(EXIT_USAGE, "there is no architecture '%s'; did you mean %s?", name,
                             near);
    return keel_complain(EXIT_USAGE, "there is no architecture '%s'; see keel new --help", name);
}

static int check(const options *o, const keel_architecture *a, keel_net *n)
{
    keel_shape sizes;
    if (!keel_shape_parse(&n->input, o->input, 1, KEEL_RANK_MAX - 1))
        return keel_complain(
            EXIT_USAGE, "--input '%s': give the shape of one row, as 100,100,3 or 784", o->input);
    if (a->rank && n->input.rank != a->rank)
        return keel_complain(EXIT_USAGE, "--input '%s': %s takes %s", o->input, a->name,
                             a->takes ? a->takes : "images, as 100,100,3");
    if (o->vocabulary && !a->vocabulary)
        return keel_complain(EXIT_USAGE, "--vocabulary: %s takes no tokens", a->name);
    n->classes = o->classes;
    n->vocabulary = o->vocabulary ? o->vocabulary : a->vocabulary;
    if (!(o->dropout >= 0 && o->dropout < 1))
        return keel_complain(EXIT_USAGE, "--dropout %g: must be at least 0 and below 1",
                             o->dropout);
    n->dropout = o->dropout;
    for (const char *p = o->sizes; p && *p;) {
        char one[24];
        const size_t length = strcspn(p, ",");
        snprintf(one, sizeof one, "%.*s", (int)(length < 23 ? length : 23), p);
        if (n->n_size == 16 || !keel_shape_parse(&sizes, one, 1, 1))
            return keel_complain(EXIT_USAGE, "--sizes '%s': give up to 16 numbers, as 32,64,128",
                                 o->sizes);
        n->size[n->n_size++] = sizes.dim[0];
        p += length + (p[length] == ',');
    }
    return -1;
}

/* Input, rescaling, the architecture, the last layer. */
static keel_status build(keel_net *n, const keel_architecture *a, const options *o)
{
    keel_symbol x = keel_net_input(n);
    if (n->input.rank == 3 && !o->no_rescaling)
        x = keel_net_call(
            n, "Rescaling",
            KEEL_ARGS(KEEL_ARG_FLOAT("scale", a->scale), KEEL_ARG_FLOAT("offset", a->offset)), x);
    x = a->build(n, x);
    if (a->head) x = keel_net_head(n, a->head, x);
    if (n->status >= 0) n->status = keel_model_outputs(n->model, &x, 1);
    return n->status;
}

static int run(const void *given, int n_arg, char **arg)
{
    const options *o = given;
    const keel_architecture *a = NULL;
    keel_net n = { 0 };
    char params[KEEL_NUMBER_MAX], trained[KEEL_NUMBER_MAX];
    int64_t trainable = 0;
    int code;
    (void)n_arg;
    if ((code = find(&a, arg[0])) >= 0) return code;
    if ((code = check(o, a, &n)) >= 0) return code;
    if ((code = keel_setup_output("-o", o->output, ".keras")) >= 0) return code;

    keel_compile_options c = o->compile;
    if (!c.loss)
        c.loss = o->classes > 1 ? "sparse_categorical_crossentropy" : "binary_crossentropy";
    keel_status s =
        keel_model_create(&n.model, o->name ? o->name : a->name, KEEL_FLOAT32, (uint64_t)o->seed);
    if (s >= 0) s = build(&n, a, o);
    if (s >= 0 && o->dtype) s = keel_model_set_dtype_policy(n.model, keel_setup_policy(o->dtype));
    if (s >= 0 && (code = keel_setup_compile(n.model, &c, a->name)) >= 0) goto out;
    if (s >= 0) s = keel_model_save(n.model, o->output);
    if (s < 0) {
        code = keel_complain_status(s);
        goto out;
    }
    const int64_t count = keel_model_count_params(n.model, &trainable);
    printf("%s: %s, %d layer%s, %s parameters, %s of them trained\n", o->output, a->name,
           keel_model_layer_count(n.model), keel_model_layer_count(n.model) == 1 ? "" : "s",
           keel_grouped(params, count), keel_grouped(trained, trainable));
    code = EXIT_OK;
out:
    keel_model_destroy(n.model);
    return code;
}

static const keel_option table[] = {
    KEEL_OPTION_ROW(options, output, "output", 'o', true, KEEL_OPTION_TEXT, "M.keras", NULL,
                    "the file to write"),
    KEEL_OPTION_ROW(
        options, input, "input", 0, true, KEEL_OPTION_TEXT, "SHAPE", NULL,
        "the shape of one row: height,width,channels of an image, 784, or a text's tokens"),
    KEEL_OPTION_ROW(options, classes, "classes", 0, true, KEEL_OPTION_POSITIVE, "N", NULL,
                    "number of classes; 1 makes a binary classifier (sigmoid)"),
    KEEL_OPTION_ROW(options, vocabulary, "vocabulary", 0, false, KEEL_OPTION_POSITIVE, "N", NULL,
                    "lstm, transformer, gpt: how many tokens there are (default: 20000; gpt: 65)"),
    KEEL_OPTION_ROW(options, sizes, "sizes", 0, false, KEEL_OPTION_TEXT, "N,N,...", NULL,
                    "mlp: units of each layer; cnn: filters of each stage"),
    KEEL_OPTION_ROW(options, dropout, "dropout", 0, false, KEEL_OPTION_REAL, "RATE", "0",
                    "dropout rate; mlp, gpt: after each layer, cnn: before the last layer"),
    KEEL_OPTION_ROW(options, no_rescaling, "no-rescaling", 0, false, KEEL_OPTION_FLAG, NULL, NULL,
                    "leave out the Rescaling layer, for pixels that are not 0..255"),
    KEEL_OPTION_ROW(options, dtype, "dtype", 0, false, KEEL_OPTION_CHOICE,
                    "float32|mixed_bfloat16|mixed_float16", "float32",
                    "dtype policy of all layers, as in keel fit"),
    KEEL_OPTIMIZER_ROWS(options, compile),
    KEEL_LOSS_ROWS(options, compile),
    KEEL_OPTION_ROW(options, seed, "seed", 0, false, KEEL_OPTION_COUNT, "N", "0",
                    "seed of the initial weights"),
    KEEL_OPTION_ROW(options, name, "name", 0, false, KEEL_OPTION_TEXT, "NAME", NULL,
                    "the model's name (default: the architecture's)"),
    { 0 },
};

const keel_command keel_command_new = {
    .name = "new",
    .args = "ARCHITECTURE",
    .least = 1,
    .most = 1,
    .summary = "Make a model without Python",
    .help =
        "The model is compiled with an optimizer (adam), a loss (sparse_categorical_crossentropy) "
        "and a metric (accuracy), so that keel fit and Keras can train it. Image models begin "
        "with a Rescaling layer and take pixels of 0..255. mlp has dense layers of --sizes units "
        "(512,512). cnn has stages of a 3x3 convolution with --sizes filters (32,64,128,128), "
        "BatchNorm, relu and 2x2 max pooling, which halves height and width. resnet18 has 11 "
        "million parameters. resnet50, mobilenetv2, densenet121, efficientnetb0 and convnexttiny "
        "equal those of keras.applications, layer by layer. unet (classes for each pixel), conv1d "
        "(sound), lstm and transformer (texts as tokens, whole numbers from 0) are those of "
        "Keras's examples. gpt learns the next token at each place: --classes is the vocabulary, "
        "too.",
    .example = "keel new cnn --input 100,100,3 --classes 10 -o m.keras",
    .options = table,
    .size = sizeof(options),
    .run = run,
};
