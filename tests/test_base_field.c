/* Field tables: accepted values, refused values and their errors, the JSON that is written, and
 * failed allocations, Keel's own and those of the JSON library. Long because of the tables of
 * cases: all of them read the few types that are declared first. */
#include "base/field.h"
#include "base/memory.h"
#include "base/python_json.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static const keel_type relu = { .name = "relu", .alias = "relu", .module = "keras.activations" };
static const keel_type linear = { .name = "linear", .module = "keras.activations" };

static const keel_type *find_activation(const char *name)
{
    return keel_type_is(&relu, name) ? &relu : keel_type_is(&linear, name) ? &linear : NULL;
}

typedef struct wrap_args { /* an object that may hold its like, and a text */
    double l2;
    char *note;
    keel_object inner;
} wrap_args;
static const keel_type *find_wrap(const char *name);
static const keel_field wrap_fields[] = {
    KEEL_FLOAT(wrap_args, l2, "0.01", 0, 1e9, "factor"),
    KEEL_STRING(wrap_args, note, "null", "a text"),
    KEEL_OBJECT(wrap_args, inner, "null", find_wrap, "another"),
    { 0 },
};
static const keel_type wrap = {
    .name = "WrapUp",
    .module = "keras.regularizers",
    .args_size = sizeof(wrap_args),
    .fields = wrap_fields,
};
static const keel_type *find_wrap(const char *name)
{
    return keel_type_is(&wrap, name) ? &wrap : NULL;
}

typedef struct conv_args {
    int64_t filters, seed;
    keel_ints kernel_size, pads, target, axes;
    int padding;
    bool use_bias;
    double rate, max_value;
    char *label;
    keel_object activation, regularizer, inner;
} conv_args;
typedef struct lists_args {
    keel_texts names, none;
    keel_reals rates;
} lists_args;
static const keel_field lists_fields[] = {
    KEEL_TEXTS(lists_args, names, "[\"a\"]", "texts"),
    KEEL_TEXTS(lists_args, none, "null", "texts"),
    KEEL_REALS(lists_args, rates, "numbers"),
    { 0 },
};
static const keel_type lists = { .name = "Lists",
                                 .args_size = sizeof(lists_args),
                                 .fields = lists_fields };
static const keel_type *find_lists(const char *name)
{
    return keel_type_is(&lists, name) ? &lists : NULL;
}

static const keel_field conv_fields[] = {
    KEEL_INT(conv_args, filters, NULL, 1, 1e9, "how many"),
    KEEL_INT(conv_args, seed, "null", 0, 0, "of chance"),
    KEEL_INTS(conv_args, kernel_size, 2, "3", 1, 1e6, "size"),
    KEEL_INTS(conv_args, pads, 4, "[[0, 0], [0, 0]]", 0, 1e6, "rows and columns"),
    KEEL_INTS(conv_args, target, 0, "[-1]", -1, 1e6, "a shape"),
    KEEL_INTS(conv_args, axes, 0, "null", 0, 0, "axes"),
    KEEL_CHOICE(conv_args, padding, "\"valid\"", "valid|same", "at the border"),
    KEEL_BOOL(conv_args, use_bias, "true", "add a bias"),
    KEEL_FLOAT(conv_args, rate, "0.5", 0, 1, "of dropping"),
    KEEL_FLOAT(conv_args, max_value, "null", 0, -1, "largest output"),
    KEEL_STRING(conv_args, label, "\"none\"", "a text"),
    KEEL_OBJECT(conv_args, activation, "\"linear\"", find_activation, "after it"),
    KEEL_OBJECT(conv_args, regularizer, "\"wrap_up\"", find_wrap, "of the kernel"),
    KEEL_OBJECT(conv_args, inner, "null", find_wrap, "of nothing"),
    KEEL_REFUSE("groups", "1", "grouped convolution"),
    KEEL_REFUSE("data_format", "\"channels_last\"", "order of dims"),
    KEEL_IGNORE("quantization_config", "not used"),
    { 0 },
};
static const keel_type conv = {
    .name = "Conv2D",
    .module = "keras.layers",
    .args_size = sizeof(conv_args),
    .fields = conv_fields,
};

static json_t *parse(const char *text)
{
    json_t *v = json_loads(text, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    if (!v) fail_msg("not JSON: %s", text);
    return v;
}

static keel_status read_text(const char *text, conv_args *a)
{
    json_t *config = parse(text);
    *a = (conv_args){ 0 };
    const keel_status s = keel_fields_read(&conv, config, a);
    json_decref(config);
    return s;
}

static void what_is_absent_gets_its_default(void **state)
{
    conv_args a;
    assert_int_equal(read_text("{\"filters\": 8}", &a), KEEL_OK);
    assert_int_equal(a.filters, 8);
    assert_true(a.seed == KEEL_INT_NULL);
    assert_int_equal(a.kernel_size.count, 2);
    assert_int_equal(a.kernel_size.at[1], 3);
    assert_int_equal(a.pads.count, 4);
    assert_int_equal(a.target.count, 1);
    assert_int_equal(a.target.at[0], -1);
    assert_int_equal(a.axes.count, -1);
    assert_int_equal(a.padding, 0);
    assert_true(a.use_bias);
    assert_true(a.rate == 0.5);
    assert_true(isnan(a.max_value));
    assert_string_equal(a.label, "none");
    assert_ptr_equal(a.activation.type, &linear);
    assert_ptr_equal(a.regularizer.type, &wrap);
    assert_true(((wrap_args *)a.regularizer.args)->l2 == 0.01);
    assert_null(a.inner.type);
    keel_fields_free(&conv, &a);
    keel_fields_free(&conv, &a); /* what is freed is empty */
    keel_fields_free(&conv, NULL);
    assert_int_equal(keel_fields_read(&conv, NULL, &a), KEEL_EARG);
    assert_string_equal(keel_error(), "Conv2D: filters must be given");
}

static void tuples_come_in_every_form_keras_takes(void **state)
{
    const struct {
        const char *json;
        int64_t pads[4];
    } cases[] = {
        { "2", { 2, 2, 2, 2 } },
        { "[1, 2]", { 1, 1, 2, 2 } },
        { "[[1, 2], [3, 4]]", { 1, 2, 3, 4 } },
        { "[1, [3, 4]]", { 1, 1, 3, 4 } },
        { "[1, 2, 3, 4]", { 1, 2, 3, 4 } },
        { "{\"class_name\": \"__numpy__\", \"config\": {\"value\": [[1, 2], [3, 4]], \"dtype\": "
          "\"int64\"}}",
          { 1, 2, 3, 4 } },
        { "{\"class_name\": \"__tensor__\", \"config\": {\"value\": 2}}", { 2, 2, 2, 2 } },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[192];
        conv_args a;
        snprintf(text, sizeof text, "{\"filters\": [1], \"pads\": %s}", cases[i].json);
        assert_int_equal(read_text(text, &a), KEEL_OK);
        assert_memory_equal(a.pads.at, cases[i].pads, sizeof cases[i].pads);
        keel_fields_free(&conv, &a);
    }
}

static void objects_come_by_name_or_with_their_config(void **state)
{
    const char *const good[] = {
        "\"relu\"",
        "{\"class_name\": \"relu\", \"config\": {}}",
        "{\"module\": \"builtins\", \"class_name\": \"function\", \"config\": \"relu\","
        " \"registered_name\": \"function\"}",
        "{\"module\": \"keras.activations\", \"class_name\": \"relu\", \"config\": null,"
        " \"registered_name\": null}",
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        json_t *v = parse(good[i]);
        keel_object o = { 0 };
        assert_int_equal(keel_object_read(&o, v, find_activation, "x"), KEEL_OK);
        assert_ptr_equal(o.type, &relu);
        keel_object_free(&o);
        json_decref(v);
    }
    const struct {
        const char *json, *text;
    } bad[] = {
        { "3", "x must be a name or an object with class_name and config" },
        { "{}", "x must be a name or an object with class_name and config" },
        { "{\"class_name\": 3}", "x must be a name or an object with class_name and config" },
        { "\"relu\\u0000\"", "x must be a name or an object with class_name and config" },
        { "\"gelu\"", "x: 'gelu' is not supported" },
        { "{\"class_name\": \"WrapUp\", \"registered_name\": \"Mine>WrapUp\"}",
          "x: 'Mine>WrapUp' is a custom object; only Keras's own are supported" },
        { "{\"class_name\": \"WrapUp\", \"config\": {\"l2\": -1}}",
          "x: WrapUp: l2 must be at least 0, not -1" },
        { "{\"class_name\": \"WrapUp\", \"config\": [1]}",
          "x: WrapUp: its config must be an object, not a list of 1" },
        { "{\"class_name\": \"WrapUp\", \"config\": {\"l3\": 1}}",
          "x: WrapUp: there is no argument 'l3' (did you mean 'l2'?); its arguments are l2, note, "
          "inner" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        json_t *v = parse(bad[i].json);
        keel_object o = { .type = &relu };
        assert_true(keel_object_read(&o, v, find_wrap, "x") < 0);
        assert_string_equal(keel_error(), bad[i].text);
        assert_ptr_equal(o.type, &relu); /* untouched */
        json_decref(v);
    }
    assert_true(keel_type_is(&wrap, "WrapUp") && keel_type_is(&wrap, "wrap_up"));
    assert_false(keel_type_is(&wrap, "wrapup"));
}

static void what_is_wrong_is_named_with_its_place(void **state)
{
    const struct {
        const char *json;
        keel_status want;
        const char *text;
    } cases[] = {
        { "[]", KEEL_EARG, "Conv2D: its config must be an object, not a list of 0" },
        { "{\"filters\": 0}", KEEL_EARG, "Conv2D: filters must be at least 1, not 0" },
        { "{\"filters\": 1000000001}", KEEL_EARG,
          "Conv2D: filters must be at most 1000000000, not 1000000001" },
        { "{\"filters\": true}", KEEL_EARG, "Conv2D: filters must be a whole number, not true" },
        { "{\"filters\": 8.0}", KEEL_EARG, "Conv2D: filters must be a whole number, not 8" },
        { "{\"filters\": null}", KEEL_EARG, "Conv2D: filters must be a whole number, not null" },
        { "{\"filters\": [1, 2]}", KEEL_EARG,
          "Conv2D: filters must be a whole number, not a list of 2" },
        { "{\"filters\": 1, \"seed\": -9223372036854775808}", KEEL_EARG,
          "Conv2D: seed must be a whole number, not -9223372036854775808" },
        { "{\"filterz\": 1}", KEEL_EARG,
          "Conv2D: there is no argument 'filterz' (did you mean 'filters'?); see 'keel layers "
          "Conv2D'" },
        { "{\"filters_n\": 1}", KEEL_EARG,
          "Conv2D: there is no argument 'filters_n' (did you mean 'filters'?); see 'keel layers "
          "Conv2D'" },
        { "{\"filters\": 1, \"axes\": [1, null]}", KEEL_EARG,
          "Conv2D: axes must be whole numbers, not null" },
        { "{\"weight\": 1}", KEEL_EARG,
          "Conv2D: there is no argument 'weight'; see 'keel layers Conv2D'" },
        { "{\"filters\": 1, \"padding\": \"full\"}", KEEL_EARG,
          "Conv2D: padding must be one of valid, same, not 'full'" },
        { "{\"filters\": 1, \"padding\": \"Same\"}", KEEL_EARG,
          "Conv2D: padding must be one of valid, same, not 'Same'" },
        { "{\"filters\": 1, \"padding\": \"valid|same\"}", KEEL_EARG,
          "Conv2D: padding must be one of valid, same, not 'valid|same'" },
        { "{\"filters\": 1, \"padding\": \"\"}", KEEL_EARG,
          "Conv2D: padding must be one of valid, same, not ''" },
        { "{\"filters\": 1, \"padding\": \"valid\\u0000\"}", KEEL_EARG,
          "Conv2D: padding must be one of valid, same, not 'valid'" },
        { "{\"filters\": 1, \"use_bias\": 1}", KEEL_EARG,
          "Conv2D: use_bias must be true or false, not 1" },
        { "{\"filters\": 1, \"use_bias\": null}", KEEL_EARG,
          "Conv2D: use_bias must be true or false, not null" },
        { "{\"filters\": 1, \"rate\": 1.5}", KEEL_EARG, "Conv2D: rate must be at most 1, not 1.5" },
        { "{\"filters\": 1, \"rate\": true}", KEEL_EARG,
          "Conv2D: rate must be a number, not true" },
        { "{\"filters\": 1, \"rate\": null}", KEEL_EARG,
          "Conv2D: rate must be a number, not null" },
        { "{\"filters\": 1, \"max_value\": -1}", KEEL_EARG,
          "Conv2D: max_value must be at least 0, not -1" },
        { "{\"filters\": 1, \"kernel_size\": [3]}", KEEL_EARG,
          "Conv2D: kernel_size must be 2 whole numbers, not a list of 1" },
        { "{\"filters\": 1, \"kernel_size\": [3, 0]}", KEEL_EARG,
          "Conv2D: kernel_size must be at least 1, not 0" },
        { "{\"filters\": 1, \"kernel_size\": [3, true]}", KEEL_EARG,
          "Conv2D: kernel_size must be whole numbers, not true" },
        { "{\"filters\": 1, \"kernel_size\": null}", KEEL_EARG,
          "Conv2D: kernel_size must be whole numbers, not null" },
        { "{\"filters\": 1, \"pads\": [[[1, 2], 3], [1, 2]]}", KEEL_EARG,
          "Conv2D: pads must be whole numbers, not a list of 2" },
        { "{\"filters\": 1, \"pads\": [[1, 2, 3], [1]]}", KEEL_EARG,
          "Conv2D: pads must be pairs, not a list of 3" },
        { "{\"filters\": 1, \"target\": [1,1,1,1,1,1,1,1,1]}", KEEL_EARG,
          "Conv2D: target has more than 8 numbers" },
        { "{\"filters\": 1, \"label\": \"a\\u0000b\"}", KEEL_EARG,
          "Conv2D: label has a zero byte in it" },
        { "{\"filters\": 1, \"label\": 3}", KEEL_EARG, "Conv2D: label must be a text, not 3" },
        { "{\"filters\": 1, \"regularizer\": null}", KEEL_EARG,
          "Conv2D: regularizer must be a name or an object, not null" },
        { "{\"filters\": 1, \"inner\": {\"class_name\": \"WrapUp\", \"config\": {\"l2\": {}}}}",
          KEEL_EARG, "Conv2D: inner: WrapUp: l2 must be a number, not an object" },
        { "{\"filters\": 1, \"activation\": \"gelu\"}", KEEL_EUNSUP,
          "Conv2D: activation: 'gelu' is not supported" },
        { "{\"filters\": 1, \"groups\": 2}", KEEL_EUNSUP,
          "Conv2D: groups (grouped convolution) must be 1, not 2: nothing else is supported" },
        { "{\"filters\": 1, \"data_format\": null}", KEEL_EUNSUP,
          "Conv2D: data_format (order of dims) must be \"channels_last\", not null: nothing else "
          "is "
          "supported" },
    };
    const int64_t live = keel_memory_live();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        conv_args a;
        assert_int_equal(read_text(cases[i].json, &a), cases[i].want);
        assert_string_equal(keel_error(), cases[i].text);
    }
    assert_int_equal(keel_memory_live(), live);
    conv_args a;
    assert_int_equal(
        read_text("{\"filters\": 1, \"groups\": 1.0, \"data_format\": \"channels_last\","
                  " \"quantization_config\": {\"any\": [1]}, \"activation\": null}",
                  &a),
        KEEL_OK);
    assert_null(a.activation.type);
    keel_fields_free(&conv, &a);
}

static void numbers_that_are_not_finite_are_refused(void **state)
{
    /* JSON has none, but its library can be asked to make one */
    conv_args a = { 0 };
    json_t *config = json_pack("{s:i, s:f}", "filters", 1, "rate", 0.25), *huge = json_real(0.5);
    if (json_real_set(huge, INFINITY) == 0) {
        json_object_set(config, "max_value", huge);
        assert_int_equal(keel_fields_read(&conv, config, &a), KEEL_EARG);
    }
    json_decref(huge);
    json_decref(config);
}

static void infinity_is_a_number_where_the_range_has_no_end(void **state)
{
    static const struct {
        const char *what;
        double min, max, x;
        keel_status want;
    } cases[] = {
        { "above a range with an end", 0, 1, INFINITY, KEEL_EARG },
        { "in a range that has no end above", 0, INFINITY, INFINITY, KEEL_OK },
        { "below it", 0, INFINITY, -INFINITY, KEEL_EARG },
        { "in a range that has no end below", -INFINITY, 1, -INFINITY, KEEL_OK },
        { "above that", -INFINITY, 1, INFINITY, KEEL_EARG },
        { "where there is no range", 0, 0, -INFINITY, KEEL_OK },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double x = 0;
        const keel_field fields[] = {
            { .key = "x", .kind = KEEL_FIELD_FLOAT, .min = cases[i].min, .max = cases[i].max },
            { 0 }
        };
        const keel_type type = { .name = "One", .args_size = sizeof x, .fields = fields };
        json_t *config = json_pack("{s:o}", "x", keel_json_of_number(cases[i].x));
        if (keel_fields_read(&type, config, &x) != cases[i].want)
            fail_msg("%s: %s", cases[i].what, keel_error());
        if (cases[i].want == KEEL_OK) assert_true(x == cases[i].x);
        json_decref(config);
    }
}

static void nesting_has_a_limit(void **state)
{
    for (int depth = 5; depth <= 500; depth += 495) {
        json_t *v = json_string("wrap_up");
        for (int i = 0; i < depth; i++)
            v = json_pack("{s:s, s:{s:o}}", "class_name", "WrapUp", "config", "inner", v);
        conv_args a = { 0 };
        json_t *config = json_pack("{s:i, s:o}", "filters", 1, "inner", v);
        assert_int_equal(keel_fields_read(&conv, config, &a), depth == 5 ? KEEL_OK : KEEL_EARG);
        if (depth == 500) assert_non_null(strstr(keel_error(), "nested deeper than 16"));
        keel_fields_free(&conv, &a);
        json_decref(config);
    }
}

static const char *const whole =
    "{\"filters\": 4, \"seed\": 7, \"kernel_size\": [3, 5], \"pads\": [[1, 2], [3, 4]], "
    "\"target\": "
    "[-1, 2], \"axes\": [0], \"padding\": \"same\", \"use_bias\": false, \"rate\": 0.25, "
    "\"max_value\": 6.0, \"label\": \"x\", \"activation\": \"relu\", \"regularizer\": {\"module\": "
    "\"keras.regularizers\", \"class_name\": \"WrapUp\", \"config\": {\"l2\": 0.5, \"note\": "
    "\"n\", "
    "\"inner\": {\"module\": \"keras.regularizers\", \"class_name\": \"WrapUp\", \"config\": "
    "{\"l2\": 2.0, \"note\": null, \"inner\": null}, \"registered_name\": null}}, "
    "\"registered_name\": null}, \"inner\": null}";

static void what_is_read_is_written_as_keras_writes_it(void **state)
{
    conv_args a;
    assert_int_equal(read_text(whole, &a), KEEL_OK);
    json_t *v = keel_fields_json(&conv, &a);
    char *text = json_dumps(v, 0);
    assert_string_equal(text, whole);
    json_decref(v);
    keel_fields_free(&conv, &a);
    assert_int_equal(read_text("{\"filters\": 1}", &a), KEEL_OK);
    v = keel_fields_json(&conv, &a);
    assert_true(json_is_null(json_object_get(v, "seed")));
    assert_true(json_is_null(json_object_get(v, "axes")));
    assert_true(json_is_null(json_object_get(v, "max_value")));
    assert_null(json_object_get(v, "groups"));
    json_decref(v);
    keel_fields_free(&conv, &a);
    keel_free(text); /* jansson's allocator is ours in this program */
}

static void an_object_is_copied_whole(void **state)
{
    conv_args a;
    keel_object copy = { 0 }, none = { 0 };
    assert_int_equal(read_text(whole, &a), KEEL_OK);
    assert_int_equal(keel_object_copy(&copy, &a.regularizer), KEEL_OK);
    json_t *v = keel_object_json(&a.regularizer);
    keel_fields_free(&conv, &a);
    json_t *w = keel_object_json(&copy);
    assert_true(json_equal(v, w));
    json_decref(v);
    json_decref(w);
    keel_object_free(&copy);
    assert_int_equal(keel_object_copy(&copy, &none), KEEL_OK);
    assert_null(copy.type);
    assert_int_equal(keel_object_default(&copy, &wrap), KEEL_OK);
    assert_true(((wrap_args *)copy.args)->l2 == 0.01);
    keel_object_free(&copy);
    keel_object_free(NULL);
}

static void a_command_line_sets_what_a_file_would(void **state)
{
    const struct {
        const char *key, *text, *json; /* json NULL: refused */
    } cases[] = {
        { "filters", "32", "32" },
        { "filters", "-3", NULL },
        { "filters", "3.5", NULL },
        { "filters", "", NULL },
        { "filters", "99999999999999999999", NULL },
        { "filters", "null", NULL },
        { "filterz", "3", NULL },
        { "seed", "None", "null" },
        { "kernel_size", "3,5", "[3, 5]" },
        { "kernel_size", "7", "7" },
        { "kernel_size", "(3, 5)", "[3, 5]" },
        { "kernel_size", "3,", NULL },
        { "kernel_size", "x", NULL },
        { "target", "(4,)", "[4]" },
        { "target", "2,-1", "[2, -1]" },
        { "pads", "((1,2),(3,4))", "[[1, 2], [3, 4]]" },
        { "pads", "((((((((", NULL },
        { "padding", "same", "\"same\"" },
        { "padding", "full", NULL },
        { "use_bias", "false", "false" },
        { "use_bias", "True", "true" },
        { "use_bias", "1", NULL },
        { "rate", "0.1", "0.10000000000000001" },
        { "rate", ".5", "0.5" },
        { "rate", "1", "1" },
        { "rate", "nan", NULL },
        { "rate", "inf", NULL },
        { "rate", "0.1x", NULL },
        { "max_value", "null", "null" },
        { "label", "a b", "\"a b\"" },
        { "label", "\xFF", NULL },
        { "activation", "relu", "\"relu\"" },
        { "activation", "gelu", NULL },
        { "inner", "null", "null" },
        { "inner", "{\"class_name\": \"WrapUp\", \"config\": {\"l2\": 1}}",
          "{\"class_name\": \"WrapUp\", \"config\": {\"l2\": 1}}" },
        { "groups", "1", "1" },
        { "groups", "2", NULL },
        { "data_format", "channels_last", "\"channels_last\"" },
    };
    const int64_t live = keel_memory_live();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *config = json_object();
        const keel_status s = keel_fields_set(&conv, config, cases[i].key, cases[i].text);
        if (cases[i].json) {
            if (s < 0) fail_msg("%s", keel_error());
            char *text = json_dumps(json_object_get(config, cases[i].key), JSON_ENCODE_ANY);
            assert_string_equal(text, cases[i].json);
            keel_free(text);
        } else {
            assert_true(s < 0);
            assert_int_equal(json_object_size(config), 0);
        }
        json_decref(config);
    }
    assert_int_equal(keel_memory_live(), live);
}

static void every_allocation_may_fail_without_a_leak(void **state)
{
    json_t *config = parse(whole);
    conv_args a = { 0 };
    int64_t calls = keel_memory_calls();
    assert_int_equal(keel_fields_read(&conv, config, &a), KEEL_OK);
    const int64_t live = keel_memory_live(), reads = keel_memory_calls() - calls;
    assert_true(reads >= 4);
    for (int64_t k = 0; k < reads; k++) {
        conv_args b = { 0 };
        keel_memory_fail_at(k);
        assert_int_equal(keel_fields_read(&conv, config, &b), KEEL_ENOMEM);
        assert_int_equal(keel_memory_live(), live);
        assert_null(b.label);
        assert_null(b.regularizer.type);
    }
    for (int64_t k = 0;; k++) { /* defaults are parsed: more of the JSON library */
        conv_args b = { 0 };
        json_t *few = json_pack("{s:i, s:s}", "filters", 1, "data_format", "channels_last");
        calls = keel_memory_calls();
        keel_memory_fail_at(k);
        const keel_status s = keel_fields_read(&conv, few, &b);
        keel_memory_fail_at(-1);
        calls = keel_memory_calls() - calls;
        json_decref(few);
        keel_fields_free(&conv, &b);
        assert_int_equal(keel_memory_live(), live);
        assert_int_equal(s, calls > k ? KEEL_ENOMEM : KEEL_OK);
        if (calls <= k) break;
    }
    for (int64_t k = 0;; k++) {
        calls = keel_memory_calls();
        keel_memory_fail_at(k);
        json_t *v = keel_fields_json(&conv, &a);
        keel_memory_fail_at(-1);
        calls = keel_memory_calls() - calls;
        assert_int_equal(v == NULL, calls > k);
        json_decref(v);
        assert_int_equal(keel_memory_live(), live);
        if (calls <= k) break;
    }
    for (int64_t k = 0;; k++) {
        keel_object copy = { 0 };
        calls = keel_memory_calls();
        keel_memory_fail_at(k);
        const keel_status s = keel_object_copy(&copy, &a.regularizer);
        keel_memory_fail_at(-1);
        calls = keel_memory_calls() - calls;
        assert_int_equal(s, calls > k ? KEEL_ENOMEM : KEEL_OK);
        keel_object_free(&copy);
        assert_int_equal(keel_memory_live(), live);
        if (calls <= k) break;
    }
    const char *const sets[][2] = { { "pads", "((1,2),(3,4))" },
                                    { "label", "x" },
                                    { "rate", "1" } };
    for (size_t i = 0; i < 3; i++)
        for (int64_t k = 0;; k++) {
            json_t *empty = json_object();
            calls = keel_memory_calls();
            keel_memory_fail_at(k);
            const keel_status s = keel_fields_set(&conv, empty, sets[i][0], sets[i][1]);
            keel_memory_fail_at(-1);
            calls = keel_memory_calls() - calls;
            if (s < 0) assert_int_equal(json_object_size(empty), 0);
            json_decref(empty);
            assert_int_equal(keel_memory_live(), live);
            if (calls <= k) break;
        }
    keel_fields_free(&conv, &a);
    json_decref(config);
}

static void *json_malloc(size_t n)
{
    return keel_calloc(1, n);
}

static void lists_are_read_copied_and_written(void **state)
{
    (void)state;
    const int64_t live = keel_memory_live();
    json_t *j = json_loads("{\"class_name\": \"Lists\", \"config\": {\"names\": [\"x\", \"\", "
                           "\"yz\"], \"rates\": [1, 0.5]}}",
                           0, NULL);
    keel_object read = { 0 }, copy = { 0 };
    assert_int_equal(keel_object_read(&read, j, find_lists, "a test"), KEEL_OK);
    for (int64_t at = 0;; at++) {
        keel_memory_fail_at(at);
        const keel_status s = keel_object_copy(&copy, &read);
        keel_memory_fail_at(-1);
        if (s >= 0) break;
        assert_int_equal(s, KEEL_ENOMEM);
        assert_true(at < 20);
    }
    keel_object_free(&read);
    const lists_args *a = copy.args;
    assert_int_equal(a->names.count, 3);
    assert_string_equal(a->names.at[2], "yz");
    assert_int_equal(a->none.count, 0);
    assert_int_equal(a->rates.count, 2);
    assert_true(a->rates.at[1] == 0.5);
    json_t *back = keel_object_json(&copy), *config = json_object_get(back, "config");
    assert_true(json_equal(json_object_get(config, "names"),
                           json_object_get(json_object_get(j, "config"), "names")));
    assert_int_equal(json_array_size(json_object_get(config, "none")), 0);
    json_decref(back);
    keel_object_free(&copy);
    json_decref(j);
    assert_int_equal(keel_memory_live(), live);
}

static void lists_of_a_command_line_are_read(void **state)
{
    (void)state;
    const struct {
        const char *key, *text, *json; /* json NULL: refused */
    } t[] = {
        { "names", "out,head", "[\"out\", \"head\"]" },
        { "names", "['out', \"head\"]", "[\"out\", \"head\"]" },
        { "names", "out", "[\"out\"]" },
        { "names", "[]", "[]" },
        { "none", "None", "null" },
        { "rates", "0.5,1", "[0.5, 1]" },
        { "rates", "[0.5, x]", NULL },
        { "rates", "[]", NULL },
        { "rates", "1", NULL },
    };
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        json_t *config = json_object(),
               *want = t[i].json ? json_loads(t[i].json, JSON_DECODE_ANY, NULL) : NULL;
        const keel_status s = keel_fields_set(&lists, config, t[i].key, t[i].text);
        if (s != (want ? KEEL_OK : KEEL_EARG)) fail_msg("case %zu: %d, %s", i, s, keel_error());
        if (want) assert_true(json_equal(json_object_get(config, t[i].key), want));
        json_decref(want);
        json_decref(config);
    }
}

int main(void)
{
    json_set_alloc_funcs(json_malloc,
                         keel_free); /* so that JSON's allocations fail and count too */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_are_read_copied_and_written),
        cmocka_unit_test(lists_of_a_command_line_are_read),
        cmocka_unit_test(what_is_absent_gets_its_default),
        cmocka_unit_test(tuples_come_in_every_form_keras_takes),
        cmocka_unit_test(objects_come_by_name_or_with_their_config),
        cmocka_unit_test(what_is_wrong_is_named_with_its_place),
        cmocka_unit_test(numbers_that_are_not_finite_are_refused),
        cmocka_unit_test(infinity_is_a_number_where_the_range_has_no_end),
        cmocka_unit_test(nesting_has_a_limit),
        cmocka_unit_test(what_is_read_is_written_as_keras_writes_it),
        cmocka_unit_test(an_object_is_copied_whole),
        cmocka_unit_test(a_command_line_sets_what_a_file_would),
        cmocka_unit_test(every_allocation_may_fail_without_a_leak),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
