/* Names against Keras (tests/golden/names.json): whatever Keel has is found by every name that
 * Keras has for it, and whatever it has not is refused by the name that was asked for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "activations/activation.h"
#include "base/memory.h"
#include "golden.h"
#include "initializers/initializer.h"
#include "model/parts.h"
#include "regularizers/regularizer.h"

static const keel_type *find_layer(const char *name)
{
    const keel_layer *l = keel_layer_find(name);
    return l ? &l->type : NULL;
}

static const struct {
    const char *key;
    const keel_type *(*find)(const char *name);
    const void *const *list; /* of structs that begin with a keel_type */
} kinds[] = {
    { "layers", find_layer, (const void *const *)keel_layers },
    { "losses", keel_loss_find, (const void *const *)keel_losses },
    { "metrics", keel_metric_find, (const void *const *)keel_metrics },
    { "optimizers", keel_optimizer_find, (const void *const *)keel_optimizers },
    { "activations", keel_activation_find, (const void *const *)keel_activations },
    { "initializers", keel_initializer_find, (const void *const *)keel_initializers },
    { "regularizers", keel_regularizer_find, (const void *const *)keel_regularizers },
    { "constraints", keel_constraint_find, (const void *const *)keel_constraints },
};
enum { N_KIND = sizeof kinds / sizeof *kinds, LAYERS = 0 };

/* The class that a name means. */
static const char *class_of(const json_t *entry)
{
    return json_string_value(json_is_array(entry) ? json_array_get(entry, 0) : entry);
}

/* Does the list of that kind hold a thing of exactly that name? (Finding would follow aliases.) */
static bool has(int kind, const char *class_name)
{
    for (int i = 0; kinds[kind].list[i]; i++) {
        const keel_type *t = kinds[kind].list[i];
        if (kind == LAYERS && keel_layers[i]->operation) continue;
        if (!strcmp(t->name, class_name)) return true;
    }
    return false;
}

static void every_name_of_keras_finds_its_class_or_nothing(void **state)
{
    (void)state;
    json_t *all = golden_load("names.json"), *entry;
    for (int k = 0; k < N_KIND; k++) {
        const char *name;
        int n_found = 0;
        json_object_foreach(json_object_get(all, kinds[k].key), name, entry)
        {
            const char *want = class_of(entry);
            const keel_type *t = kinds[k].find(name);
            if (has(k, want) && !t) fail_msg("%s: '%s' is not found", kinds[k].key, name);
            if (t && strcmp(t->name, want))
                fail_msg("%s: '%s' is %s, of Keras %s", kinds[k].key, name, t->name, want);
            n_found += t != NULL;
        }
        assert_true(n_found > 0);
    }
    json_decref(all);
}

static void keel_has_no_class_that_keras_has_not(void **state)
{
    (void)state;
    json_t *all = golden_load("names.json");
    for (int k = 0; k < N_KIND; k++)
        for (int i = 0; kinds[k].list[i]; i++) {
            const keel_type *t = kinds[k].list[i];
            if (k == LAYERS && keel_layers[i]->operation) continue;
            const char *exported = k == LAYERS ? keel_layers[i]->exported : NULL;
            const char *name = exported ? exported : t->name;
            const bool layer = !strcmp(t->module, "keras.layers"); /* some are activations, too */
            const char *key = layer ? kinds[LAYERS].key : kinds[k].key;
            if (!json_object_get(json_object_get(all, key), name))
                fail_msg("%s: Keras has no '%s'", key, name);
        }
    json_decref(all);
}

/* Keras writes either module, by its version. */
static void a_layer_is_found_by_its_class_in_either_module(void **state)
{
    (void)state;
    json_t *all = golden_load("names.json"), *entry;
    const char *name;
    json_object_foreach(json_object_get(all, "layers"), name, entry)
    {
        const char *const class_name = class_of(entry);
        const char *const modules[] = { "keras.layers",
                                        json_string_value(json_array_get(entry, 1)) };
        for (int i = 0; i < 2; i++) {
            json_t *v = json_pack("{s:s,s:s,s:{},s:n}", "module", modules[i], "class_name",
                                  class_name, "config", "registered_name");
            const keel_layer *l = keel_model_class_of(v);
            if ((l != NULL) != has(LAYERS, class_name))
                fail_msg("%s of %s", class_name, modules[i]);
            json_decref(v);
        }
    }
    json_decref(all);
}

static void what_keel_has_not_is_refused_by_its_name(void **state)
{
    (void)state;
    json_t *all = golden_load("names.json"), *entry;
    const keel_kind *const asked[] = { &keel_kind_loss, &keel_kind_metric, &keel_kind_optimizer };
    const char *const keys[] = { "losses", "metrics", "optimizers" };
    for (int k = 0; k < 3; k++) {
        const char *name;
        json_object_foreach(json_object_get(all, keys[k]), name, entry)
        {
            keel_object o = { 0 };
            json_t *v = json_string(name);
            const keel_status s = keel_kind_read(&o, v, asked[k]);
            /* of an argument that has no default the error names the class */
            const char *class_name = strstr(keel_error(), json_string_value(entry));
            const bool asks = s == KEEL_EARG && class_name && strstr(class_name, "must be given");
            const bool lacks = s == KEEL_EUNSUP && (class_name || strstr(keel_error(), name));
            if (s < 0 && !asks && !lacks) fail_msg("%s '%s': %s", keys[k], name, keel_error());
            if (s >= 0) assert_non_null(asked[k]->find(name));
            keel_object_free(&o);
            json_decref(v);
        }
    }
    json_decref(all);
    assert_int_equal(keel_memory_live(), 0);
}

static void a_class_of_another_module_is_refused(void **state)
{
    (void)state;
    const struct {
        const char *module;
        keel_status want;
    } cases[] = {
        { "keras.losses", KEEL_OK }, { "keras.src.losses.losses", KEEL_OK },
        { "keras", KEEL_OK },        { "mine.losses", KEEL_EUNSUP },
        { "kerasish", KEEL_EUNSUP }, { "__main__", KEEL_EUNSUP },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        keel_object o = { 0 };
        json_t *v = json_pack("{s:s,s:s,s:{}}", "module", cases[i].module, "class_name",
                              "MeanSquaredError", "config");
        assert_int_equal(keel_kind_read(&o, v, &keel_kind_loss), cases[i].want);
        if (cases[i].want < 0) assert_non_null(strstr(keel_error(), cases[i].module));
        keel_object_free(&o);
        json_decref(v);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_name_of_keras_finds_its_class_or_nothing),
        cmocka_unit_test(keel_has_no_class_that_keras_has_not),
        cmocka_unit_test(a_layer_is_found_by_its_class_in_either_module),
        cmocka_unit_test(what_keel_has_not_is_refused_by_its_name),
        cmocka_unit_test(a_class_of_another_module_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
