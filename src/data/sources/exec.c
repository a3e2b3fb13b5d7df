/* A program that writes batches: exec:CMD. Its output is one .npy after the other, the fields of a
 * batch in their order, x y x y; exec(x_0,x_1,y,sample_weight):CMD names others. rows=1000 among
 * them says how many rows there will be, which predict needs.
 *
 * The program is started when the data is opened, since its first batch tells types and shapes;
 * this batch is kept. It runs once for each pass, with KEEL_EPOCH, the number of the pass from 0,
 * and KEEL_FIELDS, the names of what it is to write, in its environment. Its end is that of the
 * pass, unless its status is not 0. */
#include "base/memory.h"
#include "data/layout.h"
#include "data/named.h"
#include "data/stored.h"
#include "io/program.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include <stdio.h>
#include <string.h>

enum { HEADER_BEGIN = 12, ARRAY_BYTES_MAX = 1 << 30 };

typedef struct column { /* one array of each batch */
    char *name;
    keel_stored stored; /* of a field */
    int field;          /* -1: read, but not used */
    keel_npy_header header;
    void *data; /* the rows of the batch as they are stored, row-major */
    size_t room;
} column;

typedef struct programs {
    char *command, *fields; /* fields: "KEEL_FIELDS=x,y" */
    char name[80];          /* in messages: the beginning of the command */
    keel_program *program;
    int n;
    column column[KEEL_FIELDS_MAX];
    void *turned; /* of Fortran order, before it is turned */
    size_t turned_room;
    uint32_t pass;
    bool fresh;       /* nothing of this run was given yet */
    bool ended;       /* the pass is over */
    int64_t number;   /* batches of this run so far */
    int64_t at, rows; /* of the batch in memory, [at, rows) are still to be given */
    int64_t first_row;
    int64_t max_rows;
    keel_failure failure; /* of this run */
    keel_scratch scratch;
} programs;

/* ---- reading --------------------------------------------------------------------------------- */

static keel_status start(programs *p, uint32_t pass)
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

/* Room for n_bytes, of which the first `keep` are there. */
static keel_status reserve(void **data, size_t *room, size_t keep, size_t n_bytes)
{
    if (n_bytes <= *room) return KEEL_OK;
    void *fresh = keel_aligned_calloc(n_bytes, 1);
    if (!fresh) return KEEL_ENOMEM;
    if (keep) memcpy(fresh, *data, keep);
    keel_free(*data);
    *data = fresh;
    *room = n_bytes;
    return KEEL_OK;
}

static keel_status within(const programs *p, const column *c, keel_status s)
{
    return keel_fail_within(s, "%s: '%s' of batch %lld", p->name, c->name,
                            (long long)p->number + 1);
}

/* The output has ended where it must not. If the program has failed, that is the cause. */
static keel_status cut_short(const programs *p, const column *c)
{
    KEEL_TRY(keel_program_finish(p->program));
    return within(p, c, keel_fail(KEEL_EFORMAT, "the program ended before it was complete"));
}

static keel_status read_all(const programs *p, const column *c, void *to, size_t n)
{
    size_t got = 0;
    KEEL_TRY(keel_program_read(p->program, to, n, &got));
    return got < n ? cut_short(p, c) : KEEL_OK;
}

/* What stands there instead of an array is often what the program prints. */
static keel_status not_an_array(const programs *p, const column *c, const char *begin)
{
    char shown[HEADER_BEGIN + 1];
    snprintf(shown, sizeof shown, "%.*s", HEADER_BEGIN, begin);
    return within(p, c,
                  keel_fail(KEEL_EFORMAT,
                            "not a .npy: it begins with '%s'; what the program prints must go to "
                            "its error output",
                            keel_printable(shown, sizeof shown, shown)));
}

/* KEEL_END: the output ends before the array. */
static keel_status read_header(const programs *p, const column *c, keel_npy_header *h)
{
    char begin[HEADER_BEGIN];
    size_t got = 0, size = 0;
    KEEL_TRY(keel_program_read(p->program, begin, sizeof begin, &got));
    if (got == 0) return KEEL_END;
    if (memcmp(begin, "\x93NUMPY", got < 6 ? got : 6) != 0) {
        memset(begin + got, 0, sizeof begin - got);
        return not_an_array(p, c, begin);
    }
    if (got < sizeof begin) return cut_short(p, c);
    keel_status s = keel_npy_header_size(&size, begin, sizeof begin);
    if (s >= 0 && size < sizeof begin)
        s = keel_fail(KEEL_EFORMAT, "a .npy with a header of %zu bytes", size);
    if (s < 0) return within(p, c, s);
    char *bytes = keel_calloc(size, 1);
    if (!bytes) return KEEL_ENOMEM;
    memcpy(bytes, begin, sizeof begin);
    s = read_all(p, c, bytes + sizeof begin, size - sizeof begin);
    if (s >= 0) {
        s = keel_npy_header_parse(h, bytes, size, "its header");
        if (s >= 0 && h->shape.rank == 0)
            s = keel_fail(KEEL_ESHAPE, "one number, not an array of rows");
        if (s >= 0 && h->n_bytes > ARRAY_BYTES_MAX)
            s = keel_fail(KEEL_EFORMAT, "%zu bytes, more than the %d of a batch; write less rows",
                          h->n_bytes, ARRAY_BYTES_MAX);
        if (s < 0) s = within(p, c, s);
    }
    keel_free(bytes);
    return s;
}

static keel_shape row_of(const keel_shape *s)
{
    return keel_shape_of(s->rank - 1, s->dim + 1);
}

/* Batches may differ in their rows alone. */
static keel_status check_like_first(const programs *p, const column *c, const keel_npy_header *h)
{
    char has[96], had[96];
    const keel_npy_header *f = &c->header;
    const keel_shape now = row_of(&h->shape), then = row_of(&f->shape);
    if (h->stored != f->stored || h->swapped != f->swapped)
        return within(p, c,
                      keel_fail(KEEL_EDATA, "%s%s, but the first batch had %s%s",
                                h->swapped ? "big-endian " : "", keel_npy_type_name(h->stored),
                                f->swapped ? "big-endian " : "", keel_npy_type_name(f->stored)));
    if (keel_shape_equal(&now, &then)) return KEEL_OK;
    keel_shape_text(has, &now);
    keel_shape_text(had, &then);
    return within(p, c,
                  keel_fail(KEEL_ESHAPE, "rows of shape %s, but the first batch had %s", has, had));
}

/* Turn Fortran order, whose first dim is that of the rows: elements keep their stored form. */
static void turn(void *to, const void *from, const keel_npy_header *h)
{
    char *out = to;
    const size_t rows = (size_t)h->shape.dim[0], size = h->element_bytes;
    const size_t count = rows ? h->n_bytes / size / rows : 0;
    size_t dim[KEEL_RANK_MAX], strides[KEEL_RANK_MAX] = { 1 };
    for (int d = 0; d < h->shape.rank; d++) dim[d] = (size_t)h->shape.dim[d];
    for (int d = 1; d < h->shape.rank; d++) strides[d] = strides[d - 1] * dim[d - 1];
    for (size_t row = 0; row < rows; row++)
        for (size_t i = 0; i < count; i++) { /* i counts the row's elements, the last dim fastest */
            size_t rest = i, at = row;
            for (int d = h->shape.rank - 1; d > 0; d--) {
                at += rest % dim[d] * strides[d];
                rest /= dim[d];
            }
            memcpy(out, (const char *)from + at * size, size);
            out += size;
        }
}

/* A header may claim what never comes: so memory grows with what has come. */
static keel_status read_growing(const programs *p, const column *c, void **data, size_t *room,
                                size_t n_bytes)
{
    enum { FIRST = 16 << 20 };
    for (size_t got = 0; got < n_bytes;) {
        const size_t more = got ? 2 * got : FIRST;
        KEEL_TRY(reserve(data, room, got, more < n_bytes ? more : n_bytes));
        const size_t end = *room < n_bytes ? *room : n_bytes;
        KEEL_TRY(read_all(p, c, (char *)*data + got, end - got));
        got = end;
    }
    return KEEL_OK;
}

static keel_status read_column(programs *p, column *c, const keel_npy_header *h)
{
    if (!h->fortran) return read_growing(p, c, &c->data, &c->room, h->n_bytes);
    KEEL_TRY(read_growing(p, c, &p->turned, &p->turned_room, h->n_bytes));
    KEEL_TRY(reserve(&c->data, &c->room, 0, h->n_bytes));
    turn(c->data, p->turned, h);
    return KEEL_OK;
}

/* Read a batch. KEEL_END: the program has ended well, after a whole batch. */
static keel_status read_batch(programs *p)
{
    int64_t rows = 0;
    for (int i = 0; i < p->n; i++) {
        column *c = &p->column[i];
        keel_npy_header h = { 0 };
        keel_status s = read_header(p, c, &h);
        if (s < 0) return s;
        if (s == KEEL_END) {
            if (i > 0) return cut_short(p, c);
            KEEL_TRY(keel_program_finish(p->program));
            return KEEL_END;
        }
        if (c->header.shape.rank) KEEL_TRY(check_like_first(p, c, &h));
        if (i > 0 && h.shape.dim[0] != rows)
            return within(p, c,
                          keel_fail(KEEL_ESHAPE, "%lld rows, but '%s' has %lld",
                                    (long long)h.shape.dim[0], p->column[0].name, (long long)rows));
        rows = h.shape.dim[0];
        KEEL_TRY(read_column(p, c, &h));
        if (!c->header.shape.rank) c->header = h;
    }
    p->number++;
    p->at = 0;
    p->rows = rows;
    return KEEL_OK;
}

/* ---- the source ------------------------------------------------------------------------------ */

static keel_status begin(void *state, uint32_t pass, const keel_chance *order)
{
    (void)order; /* the program decides the order */
    programs *p = state;
    if (p->fresh && p->pass == pass && p->failure.status >= 0) return KEEL_OK;
    return start(p, pass);
}

static keel_status give(programs *p, void *const *field, int64_t n)
{
    for (int i = 0; i < p->n; i++) {
        const column *c = &p->column[i];
        if (c->field < 0) continue;
        KEEL_TRY(keel_stored_write(&c->stored, field[c->field], c->stored.field.dtype,
                                   (const char *)c->data + (size_t)p->at * c->stored.n_bytes, n,
                                   p->first_row, &p->scratch, p->name));
    }
    p->at += n;
    p->first_row += n;
    return KEEL_OK;
}

static keel_status next(void *state, void *const *field, int64_t *rows)
{
    programs *p = state;
    if (p->failure.status < 0) return keel_failure_raise(&p->failure);
    if (p->ended) return KEEL_END;
    p->fresh = false;
    keel_status s = KEEL_OK;
    if (!p->program) s = keel_fail(KEEL_EIO, "%s: is not running", p->name);
    if (s >= 0 && p->at == p->rows) s = read_batch(p);
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

static void close(void *state)
{
    programs *p = state;
    keel_program_close(p->program);
    for (int i = 0; i < p->n; i++) {
        keel_free(p->column[i].name);
        keel_free(p->column[i].data);
    }
    keel_scratch_free(&p->scratch);
    keel_free(p->turned);
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

static keel_status name_columns(programs *p, const keel_layout *l, const keel_dataset_options *o)
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
static keel_status set_fields(programs *p)
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
static keel_status describe(programs *p, const keel_named *chosen, const keel_dataset_options *o,
                            keel_data_spec *spec)
{
    for (int i = 0; i < chosen->n; i++) {
        const keel_named_field *f = &chosen->field[i];
        column *c = &p->column[f->array];
        if (c->field >= 0)
            return keel_fail(KEEL_EARG, "%s: '%s' is used for two fields", p->name, c->name);
        c->field = i;
        const keel_data_field field = {
            .path = f->path, .shape = row_of(&c->header.shape), .role = f->role, .target = f->target
        };
        KEEL_TRY(keel_stored_init(&c->stored, &field, &c->header, false, o, f->choice, p->name));
        spec->field[i] = c->stored.field;
    }
    spec->n_field = chosen->n;
    return KEEL_OK;
}

static keel_status first_batch(programs *p)
{
    KEEL_TRY(start(p, 0));
    const keel_status s = read_batch(p);
    if (s == KEEL_END) return keel_fail(KEEL_EDATA, "%s: ended without a batch", p->name);
    if (s < 0) return s;
    if (p->rows < 1) return keel_fail(KEEL_EDATA, "%s: its first batch has no rows", p->name);
    p->max_rows = p->rows;
    return KEEL_OK;
}

static keel_status prepare(programs *p, const char *spec, const keel_dataset_options *o,
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
    programs *p = keel_calloc(1, sizeof *p);
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
    .close = close,
};
