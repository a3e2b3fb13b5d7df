/* A program that writes batches: exec:CMD. Its output is one .npy after the other, the fields of a
 * batch in their order, x y x y; exec(x_0,x_1,y,sample_weight):CMD names others. rows=1000 among
 * them says how many rows there will be, which predict needs.
 *
 * The program is started when the data is opened, since its first batch tells types and shapes;
 * this batch is kept. It runs once for each pass, with KEEL_EPOCH, the number of the pass from 0,
 * and KEEL_FIELDS, the names of what it is to write, in its environment. Its end is that of the
 * pass, unless its status is not 0. */
#include "data/sources/exec.h"
#include "base/memory.h"
#include "data/element.h"
#include "data/layout.h"
#include "data/named.h"
#include <stdio.h>
#include <string.h>

/* ---- the source ------------------------------------------------------------------------------ */

static keel_status start(keel_exec *p, uint32_t pass)
{
    char epoch[32];
    snprintf(epoch, sizeof epoch, "KEEL_EPOCH=%u", (unsigned)pass);
    const char *const more[] = { epoch, p->fields, NULL };
    keel_program_close(p->program);
    p->program = NULL;
    p->fresh = p->ended = false;
    p->number = p->at = p->rows = p->first_row = 0;
    p->pass = pass;
    p->failure = (keel_failure){ 0 };
    KEEL_TRY(keel_program_start(&p->program, p->command, p->name, more));
    p->fresh = true;
    return KEEL_OK;
}

static keel_status begin(void *state, uint32_t pass, const keel_chance *order)
{
    (void)order; /* the program decides the order */
    keel_exec *p = state;
    if (p->fresh && p->pass == pass && p->failure.status >= 0) return KEEL_OK;
    return start(p, pass);
}

static keel_status give(keel_exec *p, void *const *field, int64_t n)
{
    for (int i = 0; i < p->n; i++) {
        const keel_exec_column *c = &p->column[i];
        if (c->field < 0) continue;
        KEEL_TRY(keel_stored_write(&c->stored, field[c->field], c->stored.field.dtype,
                                   (const char *)c->rows.data + (size_t)p->at * c->stored.n_bytes,
                                   n, p->first_row, &p->scratch, p->name));
    }
    p->at += n;
    p->first_row += n;
    return KEEL_OK;
}

static keel_status next(void *state, void *const *field, int64_t *rows)
{
    keel_exec *p = state;
    if (p->failure.status < 0) return keel_failure_raise(&p->failure);
    if (p->ended) return KEEL_END;
    p->fresh = false;
    keel_status s = KEEL_OK;
    if (!p->program) s = keel_fail(KEEL_EIO, "%s: is not running", p->name);
    if (s >= 0 && p->at == p->rows) s = keel_exec_read(p);
    p->ended = s == KEEL_END;
    if (s == KEEL_END) return s;
    const int64_t left = p->rows - p->at, n = left < p->max_rows ? left : p->max_rows;
    if (s >= 0) s = give(p, field, n);
    if (s < 0)
        keel_failure_take(&p->failure, s); /* the program does not go back */
    else
        *rows = n;
    return s;
}

/* Of the batches so far; what a run then takes more is charged. */
static int64_t keeps(const void *state)
{
    const keel_exec *p = state;
    int64_t sum = p->turned.charged ? 0 : (int64_t)p->turned.room;
    for (int i = 0; i < p->n; i++)
        if (!p->column[i].rows.charged) sum += (int64_t)p->column[i].rows.room;
    return sum;
}

static void charge(void *state, keel_account *a, bool on)
{
    keel_exec *p = state;
    if (on ? p->account != NULL : p->account != a) return; /* a run reads it */
    for (int i = 0; i < p->n; i++) keel_exec_give_bytes(p, &p->column[i].rows);
    keel_exec_give_bytes(p, &p->turned);
    keel_scratch_free(&p->scratch);
    p->account = p->scratch.account = on ? a : NULL;
}

static void close(void *state)
{
    keel_exec *p = state;
    keel_program_close(p->program);
    for (int i = 0; i < p->n; i++) {
        keel_free(p->column[i].name);
        keel_exec_free_buffer(p, &p->column[i].rows);
    }
    keel_scratch_free(&p->scratch);
    keel_exec_free_buffer(p, &p->turned);
    keel_free(p->command);
    keel_free(p->fields);
    keel_free(p);
}

/* ---- opening --------------------------------------------------------------------------------- */

/* Take rows=N out of the list; what stays are names. */
static keel_status take_rows(keel_layout *l, int64_t *rows)
{
    int n = 0;
    for (int i = 0; i < l->n; i++) {
        const keel_layout_item *item = &l->item[i];
        if (!strcmp(item->name, "rows"))
            KEEL_TRY(keel_layout_number(rows, item, 1, "exec"));
        else if (*item->value)
            return keel_fail(KEEL_EARG,
                             "exec: '%s=%s': the list has names and rows, as in "
                             "exec(x,y,sample_weight,rows=1000):CMD",
                             item->name, item->value);
        else
            l->item[n++] = *item;
    }
    l->n = n;
    return KEEL_OK;
}

static keel_status name_columns(keel_exec *p, const keel_layout *l, const keel_dataset_options *o)
{
    char name[KEEL_LAYOUT_TEXT];
    const int inputs = o->n_input ? o->n_input : 1, targets = o->n_target ? o->n_target : 1;
    const bool y = o->n_target > 0 || o->label_mode != KEEL_LABEL_NONE;
    const int n = l->n ? l->n : inputs + (y ? targets : 0);
    if (n > KEEL_FIELDS_MAX)
        return keel_fail(KEEL_EARG, "%s: a batch has at most %d arrays", p->name, KEEL_FIELDS_MAX);
    for (; p->n < n; p->n++) {
        const bool input = p->n < inputs;
        if (l->n)
            snprintf(name, sizeof name, "%s", l->item[p->n].name);
        else if ((input ? inputs : targets) == 1)
            snprintf(name, sizeof name, "%s", input ? "x" : "y");
        else
            snprintf(name, sizeof name, "%c_%d", input ? 'x' : 'y', input ? p->n : p->n - inputs);
        p->column[p->n].field = -1;
        if (!(p->column[p->n].name = keel_strdup(name))) return KEEL_ENOMEM;
    }
    return KEEL_OK;
}

/* "KEEL_FIELDS=x,y". */
static keel_status set_fields(keel_exec *p)
{
    size_t size = sizeof "KEEL_FIELDS=";
    for (int i = 0; i < p->n; i++) size += strlen(p->column[i].name) + 1;
    if (!(p->fields = keel_calloc(size, 1))) return KEEL_ENOMEM;
    strcpy(p->fields, "KEEL_FIELDS=");
    for (int i = 0; i < p->n; i++) {
        if (i) strcat(p->fields, ",");
        strcat(p->fields, p->column[i].name);
    }
    return KEEL_OK;
}

/* Types and shapes of the fields, from the first batch. */
static keel_status describe(keel_exec *p, const keel_named *chosen, const keel_dataset_options *o,
                            keel_data_spec *spec)
{
    for (int i = 0; i < chosen->n; i++) {
        const keel_named_field *f = &chosen->field[i];
        keel_exec_column *c = &p->column[f->array];
        if (c->field >= 0)
            return keel_fail(KEEL_EARG, "%s: '%s' is used for two fields", p->name, c->name);
        c->field = i;
        const keel_data_field field = { .path = f->path,
                                        .shape = keel_row_shape(&c->header.shape),
                                        .role = f->role,
                                        .target = f->target };
        KEEL_TRY(keel_stored_init(&c->stored, &field, &c->header, false, o, f->choice, p->name));
        spec->field[i] = c->stored.field;
    }
    spec->n_field = chosen->n;
    return KEEL_OK;
}

static keel_status first_batch(keel_exec *p)
{
    KEEL_TRY(start(p, 0));
    const keel_status s = keel_exec_read(p);
    if (s == KEEL_END) return keel_fail(KEEL_EDATA, "%s: ended without a batch", p->name);
    if (s < 0) return s;
    if (p->rows < 1) return keel_fail(KEEL_EDATA, "%s: its first batch has no rows", p->name);
    p->max_rows = p->rows;
    return KEEL_OK;
}

static keel_status prepare(keel_exec *p, const char *spec, const keel_dataset_options *o,
                           keel_named *chosen, int64_t *rows)
{
    keel_layout l;
    const char *names[KEEL_FIELDS_MAX];
    KEEL_TRY(keel_layout_read(&l, spec, "exec"));
    KEEL_TRY(take_rows(&l, rows));
    if (!l.rest || !l.rest[strspn(l.rest, " \t")])
        return keel_fail(KEEL_EARG, "%s: give a program, as in exec:./batches", spec);
    if (o->subset != KEEL_SUBSET_ALL && o->validation_split > 0)
        return keel_fail(KEEL_EUNSUP,
                         "%s: what a program writes cannot be split; give a second one for "
                         "validation",
                         spec);
    if (!(p->command = keel_strdup(l.rest))) return KEEL_ENOMEM;
    snprintf(p->name, sizeof p->name, "exec:%.64s%s", p->command,
             strlen(p->command) > 64 ? "..." : "");
    KEEL_TRY(name_columns(p, &l, o));
    for (int i = 0; i < p->n; i++) names[i] = p->column[i].name;
    KEEL_TRY(keel_named_choose(chosen, names, p->n, o, p->name));
    KEEL_TRY(set_fields(p));
    return first_batch(p);
}

static bool claims(const char *spec)
{
    return keel_layout_claims(spec, "exec");
}

extern const keel_source keel_source_exec;

static keel_status open_program(keel_dataset **out, const char *spec, const keel_dataset_options *o)
{
    keel_named chosen = { .n = 0 };
    keel_data_spec fields = { .rows = -1, .yields = -1, .by_pass = true };
    keel_exec *p = keel_calloc(1, sizeof *p);
    if (!p) return KEEL_ENOMEM;
    keel_status s = prepare(p, spec, o, &chosen, &fields.rows);
    if (s >= 0) s = describe(p, &chosen, o, &fields);
    if (s < 0) {
        close(p);
    } else {
        fields.max_rows = p->max_rows;
        s = keel_dataset_create(out, &keel_source_exec, p, &fields, p->name);
    }
    for (int i = 0; s >= 0 && i < p->n; i++) /* the dataset has copied the strings */
        if (p->column[i].field >= 0)
            p->column[i].stored.field = (*out)->origin->spec.field[p->column[i].field];
    keel_named_free(&chosen);
    return s;
}

const keel_source keel_source_exec = {
    .name = "exec",
    .help = "exec:CMD, a program that writes .npy after .npy",
    .prefix = "exec",
    .claims = claims,
    .open = open_program,
    .begin = begin,
    .next = next,
    .keeps = keeps,
    .charge = charge,
    .close = close,
};
