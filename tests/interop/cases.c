/* cases FOLDER: each layer of golden/layers.json and each operation of golden/operations.json as a
 * model, FOLDER/NUMBER.keras, on which cases.py compares Keel with the real Keras. A model is read
 * from the configuration that Keras wrote and saved with the one that Keel writes. Prints a line
 * for each file: its number, and the name of the case. */
#include "golden.h"
#include "keel/keel.h"
#include "model/parts.h"

enum { INS = 4 };

static void must(keel_status s)
{
    if (s >= 0) return;
    fprintf(stderr, "cases: %s\n", keel_error());
    exit(1);
}

/* Weights that hide nothing: none is 0 or 1, and no variance is below 0. */
static void set_weights(keel_model *m)
{
    must(keel_model_fill_weights(m));
    for (int i = 0; i < m->n_weight; i++) {
        keel_tensor w;
        const char *name = m->weight[i].info.name;
        must(keel_model_get_weight(m, name, &w));
        const bool positive = strstr(name, "variance") != NULL;
        const int64_t n = w.dtype == KEEL_FLOAT32 ? keel_shape_count(&w.shape) : 0;
        for (int64_t k = 0; k < n; k++) {
            const float v = (float)((k * 37 + 29 * i + 11) % 101 - 50) / 128;
            ((float *)w.data)[k] = positive ? v * v + 0.5f : v;
        }
        must(keel_model_set_weight(m, name, &w));
        keel_tensor_free(&w);
    }
}

static keel_model *model_of_layer(const json_t *c)
{
    keel_model *m;
    keel_symbol in[INS], out;
    int layer;
    const json_t *inputs = json_object_get(c, "in");
    const int n = (int)json_array_size(inputs);
    must(keel_model_create(&m, "case", KEEL_FLOAT32, 1));
    for (int k = 0; k < n; k++) {
        const json_t *dims = json_array_get(inputs, (size_t)k);
        keel_shape shape = { .rank = (int)json_array_size(dims) };
        for (int d = 0; d < shape.rank; d++)
            shape.dim[d] = json_integer_value(json_array_get(dims, (size_t)d));
        must(keel_model_input(m, &shape, NULL, &in[k]));
    }
    must(keel_model_new_layer(m, golden_text(c, "class"), json_object_get(c, "config"), &layer));
    must(keel_model_new_node(m, layer, &(keel_model_call_of){ in, n }, &out));
    must(keel_model_outputs(m, &out, 1));
    return m;
}

static keel_model *model_of_operation(const json_t *c)
{
    keel_model *m;
    must(keel_model_create(&m, NULL, KEEL_FLOAT32, 0));
    m->file_config = json_deep_copy(json_object_get(c, "config"));
    must(keel_model_read_root(m));
    json_decref(m->file_config);
    m->file_config = NULL; /* so that Keel writes its own */
    return m;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *file, *name;
        keel_model *(*model_of)(const json_t *c);
    } kind[] = {
        { "layers.json", "class", model_of_layer },
        { "operations.json", "name", model_of_operation },
    };
    char path[4096];
    int number = 0;
    if (argc != 2 || strlen(argv[1]) > sizeof path - 40) {
        fprintf(stderr, "cases FOLDER\n");
        return 2;
    }
    for (size_t k = 0; k < sizeof kind / sizeof *kind; k++) {
        json_t *cases = golden_load(kind[k].file), *c;
        size_t i;
        json_array_foreach(cases, i, c)
        {
            keel_model *m = kind[k].model_of(c);
            set_weights(m);
            snprintf(path, sizeof path, "%s/%d.keras", argv[1], number);
            must(keel_model_save(m, path));
            keel_model_destroy(m);
            printf("%d %s\n", number++, golden_text(c, kind[k].name));
        }
        json_decref(cases);
    }
    return 0;
}
