/* See checkpoint.h. The sections of the member:
 *
 *   head             JSON: identity, place, numbers, names
 *   tally            doubles: the loss, the rows, the loss of each output, the sums of metrics
 *   history          doubles, [epochs][columns]
 *   state/N          the rows' states of the N-th stateful layer, in the model's dtype
 *   callback/N/K     the K-th tensor of the state of the N-th callback
 *   weight/N, slot/N of a float64 model, whose file has float32: weights and the optimizer's state
 */
#include "train/checkpoint.h"
#include "base/memory.h"
#include "model/parts.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include "train/resident.h"
#include "train/sharded.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { HEAD_MAX = 16 << 20, VERSION = 2 };
#define STATE_BYTES_MAX ((size_t)1 << 40)

/* ---- taking a snapshot ----------------------------------------------------------------------- */

static keel_status take_gathered(keel_snapshot *s, const keel_trainer *t)
{
    keel_model_compiled *c = &s->model.compiled;
    const keel_model_compiled *from = &t->model->compiled;
    keel_compiled_state_leave(c);
    if (from->stateless) return KEEL_OK;
    KEEL_TRY(keel_compiled_state_return(&s->model, c));
    for (int i = 0; i < c->n_state; i++)
        if (c->state[i].data)
            memcpy(c->state[i].data, from->state[i].data,
                   (size_t)keel_shape_count(&c->state[i].shape) *
                       keel_dtype_size(c->state[i].dtype));
    return KEEL_OK;
}

static keel_status take_slots(keel_snapshot *s, const keel_trainer *t)
{
    const keel_model_compiled *c = &s->model.compiled;
    if (t->sharded) return take_gathered(s, t);
    for (int i = 0; c->state && i < keel_model_trainable_count(&s->model); i++) {
        const keel_variable v = keel_model_trainable(&s->model, i);
        const keel_updater *u = &t->mover[c->moved_by[v]].update;
        for (int k = 0; k < u->n_slot; k++) {
            const int64_t count = u->slot_count[v * u->n_slot + k];
            if (count > 0)
                memcpy(c->state[i * c->n_slot + k].data, u->slot[v * u->n_slot + k],
                       (size_t)count * keel_dtype_size(t->store->real));
        }
    }
    return KEEL_OK;
}

keel_status keel_snapshot_take(keel_snapshot *s, const keel_trainer *t)
{
    keel_model_compiled *c = &s->model.compiled;
    KEEL_TRY(keel_resident_fetch(t)); /* or it would have an earlier step's weights in this place */
    for (int v = 0; v < s->model.n_weight; v++)
        memcpy(s->model.weight[v].data, keel_store_data(t->store, v),
               (size_t)t->store->weight[v].count * keel_dtype_size(t->store->real));
    for (int k = 0; k < t->n_mover; k++) {
        c->iterations = t->mover[k].update.iterations;
        c->optimizer[k].number = t->mover[k].update.number;
        c->optimizer[k].learning_rate = t->mover[k].update.learning_rate;
    }
    if (t->loss_scale.on) {
        c->loss_scale = t->loss_scale.now;
        c->good_steps = t->loss_scale.good;
    }
    return take_slots(s, t);
}

/* ---- encoding -------------------------------------------------------------------------------- */

typedef struct building {
    keel_section *list;
    int64_t n, capacity;
    keel_status status;
} building;

static void add(building *b, const void *data, size_t n_bytes, const char *name, int64_t number)
{
    if (b->n == b->capacity) {
        const int64_t more = b->capacity ? 2 * b->capacity : 16;
        keel_section *list = keel_grow(b->list, (size_t)more, sizeof *list);
        if (!list) {
            b->status = KEEL_ENOMEM;
            return;
        }
        b->list = list;
        b->capacity = more;
    }
    keel_section *s = &b->list[b->n++];
    *s = (keel_section){ .data = data, .n_bytes = n_bytes };
    if (number < 0)
        snprintf(s->name, sizeof s->name, "%.20s", name);
    else
        snprintf(s->name, sizeof s->name, "%.20s/%d", name, (int)number);
}

static json_t *numbers_of(const keel_trainer *t)
{
    json_t *list = json_array();
    for (int k = 0; k < t->n_mover; k++)
        json_array_append_new(list, json_pack("{s:f,s:f,s:b}", "learning_rate",
                                              t->mover[k].update.learning_rate, "number",
                                              t->mover[k].update.number, "scheduled",
                                              t->mover[k].update.schedule.type != NULL));
    return list;
}

/* Pass and number of each budget. */
static json_t *budgets_of(const keel_ledger *l)
{
    json_t *list = json_array();
    for (int i = 0; l && i < l->n; i++) {
        json_array_append_new(list, json_integer((json_int_t)l->at[i].pass));
        json_array_append_new(list, json_integer((json_int_t)l->at[i].n));
    }
    return list;
}

static json_t *states_of(const keel_model *m)
{
    json_t *list = json_array();
    for (int i = 0; i < m->row_states.n; i++)
        json_array_append_new(list, json_string(m->row_states.state[i].name));
    return list;
}

static json_t *columns_of(const keel_history *h)
{
    json_t *list = json_array();
    for (int i = 0; i < h->count; i++) json_array_append_new(list, json_string(h->name[i]));
    return list;
}

/* ---- callbacks ------------------------------------------------------------------------------- */

static keel_status add_tensors(building *b, const keel_callback *c, int number, json_t *list)
{
    keel_callback_tensor t;
    char name[KEEL_SECTION_NAME];
    keel_status s = KEEL_OK;
    for (int i = 0; s == KEEL_OK && c->state_tensor; i++) {
        t = (keel_callback_tensor){ 0 };
        if ((s = c->state_tensor(c->context, i, &t)) != KEEL_OK) break;
        snprintf(name, sizeof name, "callback/%d", number);
        add(b, t.tensor.data,
            (size_t)keel_shape_count(&t.tensor.shape) * keel_dtype_size(t.tensor.dtype), name, i);
        t.name[sizeof t.name - 1] = 0;
        json_array_append_new(list, json_string(t.name));
    }
    return s < 0 ? s : KEEL_OK;
}

/* The state of a callback as an entry of the head's list. */
static keel_status add_callback(building *b, const keel_callback *c, int number, json_t *list)
{
    char *text = NULL;
    json_t *state = NULL, *tensors = json_array();
    keel_status s = c->save_state ? c->save_state(c->context, &text) : KEEL_OK;
    if (s >= 0 && text && !(state = json_loads(text, JSON_DECODE_ANY, NULL)))
        s = keel_fail(KEEL_ECALLBACK, "its state is not JSON");
    keel_model_summary_free(text);
    if (s >= 0) s = add_tensors(b, c, number, tensors);
    json_t *entry =
        json_pack("{s:o,s:o}", "state", state ? state : json_null(), "tensors", tensors);
    if (!entry || json_array_append_new(list, entry))
        s = s < 0 ? s : keel_fail(KEEL_ENOMEM, "out of memory");
    return s < 0 ? keel_fail_within(s, "the callback %s", c->name ? c->name : "of the caller") : s;
}

static keel_status give_tensors(const keel_checkpoint *c, const keel_callback *to, int number,
                                const json_t *names)
{
    char section[KEEL_SECTION_NAME];
    for (size_t i = 0; i < json_array_size(names); i++) {
        keel_callback_tensor t = { 0 };
        const char *name = json_string_value(json_array_get(names, i));
        const keel_status s =
            to->state_tensor ? to->state_tensor(to->context, (int)i, &t) : KEEL_END;
        snprintf(section, sizeof section, "callback/%d/%d", number, (int)i);
        const keel_section *from = keel_sections_find(&c->sections, section);
        if (s < 0) return s;
        if (s == KEEL_END || !from || !name || strcmp(name, t.name) != 0 ||
            from->n_bytes !=
                (size_t)keel_shape_count(&t.tensor.shape) * keel_dtype_size(t.tensor.dtype))
            return keel_fail(KEEL_EFORMAT, "the checkpoint has a tensor '%s' that it does not take",
                             name ? name : "");
        if (from->n_bytes) memcpy(t.tensor.data, from->data, from->n_bytes);
    }
    return KEEL_OK;
}

static keel_status give_callback(const keel_checkpoint *c, const keel_callback *to, int number)
{
    const json_t *entry = json_array_get(json_object_get(c->head, "callbacks"), (size_t)number);
    const json_t *state = json_object_get(entry, "state");
    keel_status s = KEEL_OK;
    if (!entry) return keel_fail(KEEL_EFORMAT, "the checkpoint has no state for it");
    if (!json_is_null(state) && to->load_state) {
        char *text = json_dumps(state, JSON_ENCODE_ANY | JSON_COMPACT);
        s = text ? to->load_state(to->context, text) : keel_fail(KEEL_ENOMEM, "out of memory");
        free(text); /* of jansson */
    }
    return s < 0 ? s : give_tensors(c, to, number, json_object_get(entry, "tensors"));
}

static keel_status give_callbacks(const keel_checkpoint *c, const keel_standing *st)
{
    for (int i = 0; i < st->n_callback; i++) {
        const keel_callback *to = &st->callback[i];
        const keel_status s = give_callback(c, to, i);
        if (s < 0)
            return keel_fail_within(s, "the callback %s", to->name ? to->name : "of the caller");
    }
    return KEEL_OK;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static json_t *head_of(const keel_standing *st)
{
    const keel_loss_scale *l = &st->trainer->loss_scale;
    const keel_history *h = st->history;
    return json_pack(
        "{s:i,s:O,s:I,s:I,s:I,s:b,s:I,s:o,s:o,s:o,s:o,s:I,s:{s:f,s:I,s:I,s:I}}", "version", VERSION,
        "identity", st->identity, "epoch", (json_int_t)st->epoch, "step", (json_int_t)st->step,
        "rows", (json_int_t)st->rows, "finished", (int)st->finished, "epochs",
        (json_int_t)h->epochs, "columns", columns_of(h), "optimizers", numbers_of(st->trainer),
        "states", states_of(st->trainer->model), "budgets", budgets_of(st->ledger), "iterations",
        (json_int_t)(st->trainer->n_mover ? st->trainer->mover[0].update.iterations : 0),
        "loss_scale", "now", (double)l->now, "good", (json_int_t)l->good, "skipped",
        (json_int_t)l->skipped, "in_a_row", (json_int_t)l->in_a_row);
}

/* Weights and slots of a float64 model. */
static void add_wide(building *b, const keel_trainer *t)
{
    const size_t element = keel_dtype_size(t->store->real);
    if (t->store->real == KEEL_FLOAT32) return;
    for (int v = 0; v < t->store->n_weight; v++)
        add(b, keel_store_data(t->store, v), (size_t)t->store->weight[v].count * element, "weight",
            v);
    const keel_model_compiled *c = &t->model->compiled;
    for (int i = 0; c->state && i < keel_model_trainable_count(t->model); i++) {
        const keel_variable v = keel_model_trainable(t->model, i);
        const keel_updater *u = &t->mover[c->moved_by[v]].update;
        for (int k = 0; k < u->n_slot; k++)
            if (u->slot_count[v * u->n_slot + k] > 0)
                add(b, t->sharded ? c->state[i * c->n_slot + k].data : u->slot[v * u->n_slot + k],
                    (size_t)u->slot_count[v * u->n_slot + k] * element, "slot",
                    (int64_t)i * c->n_slot + k);
    }
}

keel_status keel_standing_encode(const keel_standing *st, void **out, size_t *n_bytes)
{
    building b = { 0 };
    const keel_tally *tally = st->tally;
    const keel_row_states *states = &st->trainer->model->row_states;
    const keel_history *h = st->history;
    json_t *head = head_of(st), *callbacks = json_array();
    char *text = NULL;
    const size_t n_each = (size_t)tally->n_each, n_sum = 2 + n_each + (size_t)tally->n_sum;
    double *sums = keel_calloc(n_sum, sizeof *sums);
    keel_status s = KEEL_ENOMEM;
    if (!sums) goto out;
    for (int i = 0; i < st->n_callback; i++)
        if ((s = add_callback(&b, &st->callback[i], i, callbacks)) < 0) goto out;
    if (head && !json_object_set(head, "callbacks", callbacks))
        text = json_dumps(head, JSON_COMPACT);
    if (!text) {
        s = keel_fail(KEEL_ENOMEM, "out of memory for the state of the training");
        goto out;
    }
    sums[0] = tally->loss;
    sums[1] = tally->rows;
    memcpy(sums + 2, tally->each, n_each * sizeof *sums);
    memcpy(sums + 2 + n_each, tally->metric, (size_t)tally->n_sum * sizeof *sums);
    add(&b, text, strlen(text), "head", -1);
    add(&b, sums, n_sum * sizeof *sums, "tally", -1);
    add(&b, h->value, (size_t)(h->epochs * h->count) * sizeof *h->value, "history", -1);
    for (int i = 0; i < states->n; i++)
        add(&b, states->state[i].data, (size_t)states->state[i].bytes, "state", i);
    add_wide(&b, st->trainer);
    s = b.status < 0 ? b.status : keel_sections_encode(b.list, b.n, out, n_bytes);
out:
    keel_free(sums);
    keel_free(b.list);
    free(text); /* of jansson */
    json_decref(callbacks);
    json_decref(head);
    return s;
}

/* ---- reading --------------------------------------------------------------------------------- */

void keel_checkpoint_free(keel_checkpoint *c)
{
    keel_model_destroy(c->model);
    json_decref(c->head);
    keel_sections_free(&c->sections);
    keel_free(c->block);
    *c = (keel_checkpoint){ 0 };
}

/* A whole number of the head, 0 or more. */
static bool get_count(const json_t *of, const char *key, int64_t *out)
{
    const json_t *value = json_object_get(of, key);
    *out = json_integer_value(value);
    return json_is_integer(value) && *out >= 0;
}

static keel_status read_head(keel_checkpoint *c)
{
    const keel_section *text = keel_sections_find(&c->sections, "head");
    int64_t version;
    if (!text || text->n_bytes > HEAD_MAX) return keel_fail(KEEL_EFORMAT, "it has no head");
    KEEL_TRY(keel_model_parse(text->data, text->n_bytes, "its head", &c->head));
    if (!get_count(c->head, "version", &version))
        return keel_fail(KEEL_EFORMAT, "its head has no version");
    if (version != VERSION)
        return keel_fail(KEEL_EUNSUP,
                         "it has version %lld of this format, and this Keel reads version %d",
                         (long long)version, VERSION);
    if (!json_is_object(json_object_get(c->head, "identity")) ||
        !get_count(c->head, "epoch", &c->epoch) || !get_count(c->head, "step", &c->step) ||
        !get_count(c->head, "rows", &c->rows) || c->epoch > INT32_MAX)
        return keel_fail(KEEL_EFORMAT, "its head does not say where it is");
    c->finished = json_is_true(json_object_get(c->head, "finished"));
    return KEEL_OK;
}

keel_status keel_checkpoint_decode(keel_checkpoint *out, void *block, size_t n_bytes)
{
    keel_checkpoint c = { 0 };
    keel_status s = keel_sections_decode(&c.sections, block, n_bytes);
    if (s >= 0) s = read_head(&c);
    if (s < 0) {
        keel_checkpoint_free(&c);
        return keel_fail_within(s, KEEL_STATE_MEMBER);
    }
    c.block = block;
    *out = c;
    return KEEL_OK;
}

keel_status keel_checkpoint_load(keel_checkpoint *out, const char *path)
{
    keel_zip *zip = NULL;
    keel_model *m = NULL;
    void *block = NULL;
    size_t n_bytes = 0;
    KEEL_TRY(keel_zip_open(&zip, path));
    keel_status s =
        keel_zip_find(zip, KEEL_STATE_MEMBER) < 0
            ? keel_fail(KEEL_EFORMAT, "%s: no checkpoint, since it has no " KEEL_STATE_MEMBER, path)
            : keel_zip_read(zip, KEEL_STATE_MEMBER, STATE_BYTES_MAX, &block, &n_bytes);
    keel_zip_close(zip);
    if (s >= 0) s = keel_model_load(&m, path);
    if (s >= 0 && (s = keel_checkpoint_decode(out, block, n_bytes)) < 0)
        keel_fail_within(s, "%s", path);
    if (s < 0) {
        keel_model_destroy(m);
        keel_free(block);
        return s;
    }
    out->model = m;
    return KEEL_OK;
}

/* ---- giving it to a model -------------------------------------------------------------------- */

static keel_status misfit(const char *what)
{
    return keel_fail(KEEL_EFORMAT, "its %s is not that of this run", what);
}

static bool equal_weights(const keel_model *a, const keel_model *b)
{
    if (a->n_weight != b->n_weight) return false;
    for (int i = 0; i < a->n_weight; i++) {
        const keel_weight_info *x = &a->weight[i].info, *y = &b->weight[i].info;
        if (strcmp(x->name, y->name) || !keel_shape_equal(&x->spec.shape, &y->spec.shape))
            return false;
    }
    return true;
}

static bool equal_states(const keel_model_compiled *a, const keel_model_compiled *b)
{
    if (a->n_state != b->n_state || a->n_slot != b->n_slot || a->n_optimizer != b->n_optimizer)
        return false;
    for (int i = 0; i < a->n_state; i++)
        if (!a->state[i].data != !b->state[i].data ||
            (a->state[i].data && !keel_shape_equal(&a->state[i].shape, &b->state[i].shape)))
            return false;
    return true;
}

/* Copy n elements of the model's dtype: those of a float64 model are in a section. */
static keel_status give_reals(const keel_checkpoint *c, const keel_model *m, void *to,
                              const void *from, int64_t n, const char *section, int64_t number)
{
    char name[KEEL_SECTION_NAME];
    const size_t bytes = (size_t)n * keel_dtype_size(m->dtype);
    if (m->dtype == KEEL_FLOAT32) {
        memcpy(to, from, bytes);
        return KEEL_OK;
    }
    snprintf(name, sizeof name, "%s/%lld", section, (long long)number);
    const keel_section *s = keel_sections_find(&c->sections, name);
    if (!s || s->n_bytes != bytes) return misfit(name);
    memcpy(to, s->data, bytes);
    return KEEL_OK;
}

keel_status keel_checkpoint_give_model(const keel_checkpoint *c, keel_model *m)
{
    const keel_model_compiled *from = &c->model->compiled;
    keel_model_compiled *to = &m->compiled;
    const json_t *numbers = json_object_get(c->head, "optimizers");
    if (!equal_weights(c->model, m) || c->model->dtype != KEEL_FLOAT32) return misfit("model");
    if (!from->given || !to->given || !equal_states(from, to) ||
        json_array_size(numbers) != (size_t)to->n_optimizer)
        return misfit("optimizer");
    m->changes++;
    for (int i = 0; i < m->n_weight; i++)
        KEEL_TRY(give_reals(c, m, m->weight[i].data, c->model->weight[i].data,
                            keel_shape_count(&m->weight[i].info.spec.shape), "weight", i));
    for (int i = 0; i < to->n_state; i++)
        if (to->state[i].data)
            KEEL_TRY(give_reals(c, m, to->state[i].data, from->state[i].data,
                                keel_shape_count(&to->state[i].shape), "slot", i));
    for (int k = 0; k < to->n_optimizer; k++) {
        const json_t *one = json_array_get(numbers, (size_t)k);
        const double rate = json_number_value(json_object_get(one, "learning_rate"));
        if (!(rate >= 0) || isinf(rate)) return misfit("learning rate");
        if (to->optimizer[k].schedule && json_is_false(json_object_get(one, "scheduled")))
            KEEL_TRY(keel_model_set_learning_rate(m, rate)); /* as a callback did */
        to->optimizer[k].learning_rate = rate;
        to->optimizer[k].number = json_number_value(json_object_get(one, "number"));
    }
    to->iterations = from->iterations;
    to->loss_scale = from->loss_scale;
    to->good_steps = from->good_steps;
    return KEEL_OK;
}

/* ---- and to a trainer ------------------------------------------------------------------------ */

static keel_status give_tally(const keel_checkpoint *c, keel_tally *t)
{
    const keel_section *s = keel_sections_find(&c->sections, "tally");
    const size_t n_each = (size_t)t->n_each, n = 2 + n_each + (size_t)t->n_sum;
    if (!s || s->n_bytes != n * sizeof(double)) return misfit("list of metrics");
    const double *sums = s->data;
    t->loss = sums[0];
    t->rows = sums[1];
    memcpy(t->each, sums + 2, n_each * sizeof *sums);
    memcpy(t->metric, sums + 2 + n_each, (size_t)t->n_sum * sizeof *sums);
    return KEEL_OK;
}

static keel_status give_history(const keel_checkpoint *c, const keel_standing *st)
{
    keel_history *h = st->history;
    const keel_section *s = keel_sections_find(&c->sections, "history");
    const json_t *columns = json_object_get(c->head, "columns");
    int64_t epochs;
    if (!s || !get_count(c->head, "epochs", &epochs) || epochs > c->epoch ||
        json_array_size(columns) != (size_t)h->count ||
        s->n_bytes / sizeof(double) != (size_t)(epochs * h->count) || s->n_bytes % sizeof(double))
        return misfit("history");
    for (int i = 0; i < h->count; i++) {
        const char *name = json_string_value(json_array_get(columns, (size_t)i));
        if (!name || strcmp(name, h->name[i])) return misfit("history");
    }
    memcpy(h->value, s->data, s->n_bytes);
    h->epochs = epochs;
    return KEEL_OK;
}

static keel_status give_states(const keel_checkpoint *c, keel_row_states *states)
{
    char name[KEEL_SECTION_NAME];
    const json_t *names = json_object_get(c->head, "states");
    for (size_t i = 0; i < json_array_size(names); i++) {
        const char *of = json_string_value(json_array_get(names, i));
        keel_row_state *to = NULL;
        snprintf(name, sizeof name, "state/%zu", i);
        const keel_section *s = keel_sections_find(&c->sections, name);
        for (int k = 0; of && k < states->n; k++)
            if (!strcmp(states->state[k].name, of)) to = &states->state[k];
        if (!s || !to || s->n_bytes != (size_t)to->bytes) return misfit("list of states");
        memcpy(to->data, s->data, s->n_bytes);
    }
    return KEEL_OK;
}

static keel_status give_budgets(const keel_checkpoint *c, keel_ledger *l)
{
    const json_t *list = json_object_get(c->head, "budgets");
    if (!list || !l) return KEEL_OK; /* of an earlier version */
    if (json_array_size(list) != 2 * (size_t)l->n) return misfit("list of budgets");
    for (int i = 0; i < l->n; i++) {
        const json_int_t pass = json_integer_value(json_array_get(list, 2 * (size_t)i));
        const json_int_t n = json_integer_value(json_array_get(list, 2 * (size_t)i + 1));
        if (pass < 0 || n < 0) return misfit("list of budgets");
        l->at[i].pass = (uint64_t)pass;
        l->at[i].n = n;
    }
    return KEEL_OK;
}

keel_status keel_checkpoint_give_rest(const keel_checkpoint *c, const keel_standing *st)
{
    const json_t *scale = json_object_get(c->head, "loss_scale");
    keel_loss_scale *l = &st->trainer->loss_scale;
    KEEL_TRY(give_history(c, st));
    KEEL_TRY(give_tally(c, st->tally));
    KEEL_TRY(give_states(c, &st->trainer->model->row_states));
    KEEL_TRY(give_budgets(c, st->ledger));
    if (!get_count(scale, "skipped", &l->skipped) || !get_count(scale, "in_a_row", &l->in_a_row))
        return misfit("loss scale");
    return give_callbacks(c, st);
}
