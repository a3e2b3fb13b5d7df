/* The types in which the values of a call are held.
 *
 * A layer casts its inputs to the type of its policy, but not those that are whole: bfloat16 has
 * not the numbers of all rows of a table. An operation of keras.ops has no policy: as in Keras it
 * takes the widest type of its operands. */
#include "base/python_json.h"
#include "model/parts.h"
#include <string.h>

/* Whether an argument of a call has real numbers: alone, or in an array of float32 or wider. A
 * narrow array does not widen the values beside it. */
static bool real_number(const json_t *v)
{
    double x;
    return !json_is_integer(v) && !json_is_boolean(v) && keel_json_number(v, &x);
}

static bool real_array(const json_t *v)
{
    const json_t *config = json_object_get(v, "config");
    const char *dtype = json_string_value(json_object_get(config, "dtype"));
    return dtype && (!strcmp(dtype, "float32") || !strcmp(dtype, "float64"));
}

/* Whether it makes real numbers of whole ones beside it: also a narrow array, and a list of
 * numbers. */
static bool real_anywhere(const json_t *v)
{
    const char *dtype = json_string_value(json_object_get(json_object_get(v, "config"), "dtype"));
    bool any = real_number(v) || (dtype && strstr(dtype, "float"));
    for (size_t i = 0; i < json_array_size(v) && !any; i++)
        any = real_anywhere(json_array_get(v, i));
    return any;
}

static bool any_argument(const keel_emit *e, bool (*is)(const json_t *))
{
    const json_t *args = json_object_get(e->call, "args");
    json_t *kwargs = json_object_get(e->call, "kwargs"), *v;
    const char *key;
    bool any = false;
    for (size_t i = 0; i < json_array_size(args) && !any; i++) any = is(json_array_get(args, i));
    json_object_foreach(kwargs, key, v) any = any || is(v);
    return any;
}

/* The widest type of an operation's values that are not bool or whole in Keras: those stay as they
 * are beside others, and alone they are exact in float32. */
static keel_dtype widest(const keel_emit *e)
{
    keel_dtype held = KEEL_FLOAT32;
    bool met = false;
    for (int i = 0; i < e->n_in; i++) {
        keel_dtype own = keel_graph_spec(e->graph, e->in[i])->dtype;
        if (keel_emit_is_whole(e, i)) continue;
        if (!keel_dtype_is_narrow(own)) own = KEEL_FLOAT32;
        if (met && own != held) return KEEL_FLOAT32;
        held = own;
        met = true;
    }
    return held;
}

/* Whether a layer that does not round whole inputs has no others. */
static bool all_whole(const keel_layer *kind, const keel_emit *e)
{
    bool all = (kind->whole == KEEL_WHOLE_KEPT || kind->whole == KEEL_WHOLE_TAKEN) && e->n_in > 0;
    for (int i = 0; i < e->n_in && all; i++) all = keel_emit_is_whole(e, i);
    return all;
}

keel_dtype keel_emit_held(const keel_model_layer *l, const keel_emit *e)
{
    const keel_graph *g = e->graph;
    if (g->real != KEEL_FLOAT32) return g->real;
    if (!l->kind->operation || e->n_in == 0)
        return all_whole(l->kind, e) ? KEEL_FLOAT32 : l->compute;
    if (l->kind->places || any_argument(e, real_array)) return KEEL_FLOAT32;
    if (l->kind->wide_alone && e->n_in == 1 && any_argument(e, real_number)) return KEEL_FLOAT32;
    return widest(e);
}

bool keel_emit_gives_whole(const keel_emit *e, int out)
{
    bool all = e->gives == KEEL_WHOLE_KEPT && e->n_in > 0 && !any_argument(e, real_anywhere);
    for (int i = 0; i < e->n_in && all; i++) all = keel_emit_is_whole(e, i);
    return all || e->gives == KEEL_WHOLE_ALWAYS || (e->gives == KEEL_WHOLE_SECOND && out > 0);
}

keel_status keel_emit_cast_back(keel_emit *e)
{
    const keel_dtype own = widest(e);
    for (int i = 0; i < e->n_out; i++)
        if (!keel_emit_gives_whole(e, i))
            KEEL_TRY(keel_graph_cast(e->graph, e->out[i], own, &e->out[i]));
    return KEEL_OK;
}
