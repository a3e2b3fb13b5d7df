/* A source reads one kind of data. It is either indexed, so that several threads can read rows by
 * number (arrays, images), or a stream that yields batches in its own order (generator, sequence).
 *
 * A file of src/data/sources ends with its const keel_source. Sources that read files have `claims`
 * and `open`; those that read a whole file open it as arrays. */
#ifndef KEEL_DATA_SOURCE_H
#define KEEL_DATA_SOURCE_H
#include "base/error.h"
#include "base/philox.h"
#include "base/scratch.h"
#include "data/split_order.h"
#include "keel/dataset.h"
#include <stdatomic.h>
#include <stdbool.h>

_Static_assert(sizeof(keel_string) == 16, "the size of KEEL_STRING in tensor/dtype.c");

/* The fields and the number of rows. */
typedef struct keel_data_spec {
    int n_field;
    keel_data_field field[KEEL_FIELDS_MAX];
    int64_t rows;     /* -1: not known */
    int64_t max_rows; /* streams: most rows of a yield */
    int64_t yields;   /* streams: yields in a pass; -1: not known */
    bool one_shot;    /* streams: cannot begin again */
    bool endless;     /* never ends; rows by index are then numbered to KEEL_ENDLESS_ROWS */
    bool shaped;      /* streams: each yield has its own shape and comes from next_shaped */
    bool by_row;      /* shaped: a yield is one row, not a batch */
    bool by_pass;     /* streams: a pass depends only on its number */
    bool batched;     /* a stage has made batches of rows: an element is a batch of max_rows at
                         most, and each is one step. Shapes are those of a row. */
    int64_t n_classes;
    char **class_names;
} keel_data_spec;

#define KEEL_ENDLESS_ROWS (INT64_C(1) << 40)

/* Append fields. Their strings are borrowed until keel_dataset_create copies them. KEEL_EARG: more
 * than KEEL_FIELDS_MAX. */
keel_status keel_spec_add_all(keel_data_spec *spec, int n, const keel_data_field *fields,
                              const char *name);

/* Fill an empty spec with x, y (NULL: none) and a float32 sample_weight; of x and y only dtype and
 * shape are used. */
void keel_spec_add_xy(keel_data_spec *spec, const keel_data_field *x, const keel_data_field *y,
                      bool has_weight);

/* True if rows of a field differ in shape. */
bool keel_spec_is_open(const keel_data_spec *spec);

/* The first field of a role, or -1. */
int keel_spec_first(const keel_data_spec *spec, keel_data_role role);

/* Which row of a run: a stage may draw or shuffle, so that rows depend on all of it. */
typedef struct keel_position {
    uint64_t seed;
    uint64_t pass; /* how often the data was gone through before */
    int64_t index;
    uint16_t stages; /* of parents that come before this one: see keel_applied.number */
} keel_position;

/* The destination of one row: address and type for every field of the spec. */
typedef struct keel_row {
    const keel_dtype *want;
    void *at[KEEL_FIELDS_MAX]; /* NULL: the field is not read */
    const int64_t *count;      /* elements; a shorter row is padded with 0 */
} keel_row;

typedef struct keel_source {
    const char *name;
    const char *help;    /* what it reads, for the error that no source reads SRC */
    bool shuffled_split; /* rows are shuffled before a validation split */
    bool in_memory;      /* `read` only copies: it never waits or fails */
    /* "exec": what begins with "exec:" or "exec(" is asked of this source first, whatever it ends
     * with. NULL: none. */
    const char *prefix;
    bool (*claims)(const char *spec);
    keel_status (*open)(keel_dataset **out, const char *spec, const keel_dataset_options *o);

    /* Indexed. Thread-safe. The text of a failure names the file and the stage. */
    keel_status (*read)(const void *state, int64_t index, const keel_row *row, keel_scratch *s);
    void (*expect)(const void *state,
                   int64_t index); /* hint that the row will be read soon; may be NULL */
    /* The row will be read some rows later: have the operating system fetch its file. NULL: none.
     */
    void (*soon)(const void *state, int64_t index);
    const char *(*row_name)(const void *state, int64_t index); /* NULL: rows have no names */
    /* The tensor that holds field i of all rows, so that a batch can point into it; NULL: there is
     * none. */
    const keel_tensor *(*tensor)(const void *state, int i);
    /* The first dim of a row of field i, which is open in the spec; NULL: no field has open dims.
     */
    int64_t (*length)(const void *state, int i, int64_t index);

    /* Streams. One thread at a time. Begin a pass, shuffled by `order` unless it is NULL. The first
     * begin of a stream that was never read does not reset it. */
    keel_status (*begin)(void *state, uint32_t pass, const keel_chance *order);
    /* Yield up to spec.max_rows rows, each field in its own dtype. KEEL_END: the pass is over. */
    keel_status (*next)(void *state, void *const *field, int64_t *rows);
    /* Replaces `next` if the spec has open dims: data[i] points to `rows` rows of field i, each of
     * shape[i], valid until the next call. On entry shape[i] is that of the spec. */
    keel_status (*next_shaped)(void *state, const void **data, keel_shape *shape, int64_t *rows);

    /* Streams: wait until none of the caller's functions runs. The next call is `begin`. NULL: none
     * ever runs between two calls. */
    void (*rest)(void *state);

    /* Indexed: the bytes that reading a row takes, of buffers and of a decoder; -1, or NULL: not
     * known before. want: the types of the fields; NULL: their own. */
    int64_t (*needs)(const void *state, const keel_dtype *want);
    /* Where that is not known: what the row takes that takes most of those that were looked at so
     * far. NULL: nothing is known of any. */
    int64_t (*at_least)(const void *state, const keel_dtype *want);
    /* Say which row takes most, if that is known; NULL: it never is. */
    void (*largest)(const void *state, char *text, size_t size);
    /* The bytes that it keeps for itself, besides what it yields; what it will keep more is taken
     * from this account from now on, or no longer. NULL: none that count. */
    int64_t (*keeps)(const void *state);
    void (*charge)(void *state, keel_account *a, bool on);

    void (*close)(void *state);
} keel_source;

typedef struct keel_applied keel_applied; /* data/stage.h */

/* Shared by several datasets, the parts of a split. */
typedef struct keel_data_origin {
    const keel_source *source;
    void *state;
    const keel_applied *applied; /* `state`, if the rows are made by a stage of others */
    keel_data_spec spec;         /* of all rows; paths and class names are owned */
    char *name;
    int64_t *gone; /* [n_gone] rows that a skip list leaves out, ascending */
    int64_t n_gone;
    char *note;                     /* about them, or NULL */
    struct keel_warnings *warnings; /* of decoders, or NULL */
    _Atomic int references;
} keel_data_origin;

struct keel_dataset {
    keel_data_origin *origin;
    int64_t first, rows;     /* its range of the origin's rows, in `order`; rows -1: not known */
    keel_split_order *order; /* split after a shuffle; NULL: the origin's */
};

/* The index of the k-th row that is not left out. */
int64_t keel_dataset_kept(const keel_data_origin *o, int64_t k);

/* The origin's index of row i of the dataset. */
static inline int64_t keel_dataset_index(const keel_dataset *d, int64_t i)
{
    const int64_t at = d->first + i;
    const int64_t k = d->order ? d->order->at[at] : at;
    return d->origin->n_gone ? keel_dataset_kept(d->origin, k) : k;
}

/* Row `at` of a dataset by index, whether a source or a stage makes it; at.index counts rows of the
 * dataset. Thread-safe. */
keel_status keel_dataset_read(const keel_dataset *d, keel_position at, const keel_row *row,
                              keel_scratch *s);
/* Where a field of that row lies in memory as it is, for whoever only reads it; NULL: it must be
 * copied by keel_dataset_read. */
const void *keel_dataset_row_in_memory(const keel_dataset *d, keel_position at, int field);
void keel_dataset_expect(const keel_dataset *d, keel_position at);
/* True if rows of d are read from files of their own, of which keel_dataset_soon tells. */
bool keel_dataset_has_files(const keel_dataset *d);
void keel_dataset_soon(const keel_dataset *d, keel_position at);
/* The first dim of a row of field i, which is open. */
int64_t keel_dataset_length(const keel_dataset *d, int i, keel_position at);

/* A dataset of all rows of a source. Takes ownership of `state` (closed on failure too) and of the
 * class names in *spec; copies `name` and the strings of the fields. KEEL_EARG, KEEL_ESHAPE:
 * invalid fields. */
keel_status keel_dataset_create(keel_dataset **out, const keel_source *source, void *state,
                                const keel_data_spec *spec, const char *name);

/* A dataset of arrays that it owns: takes their memory and empties `fields`, on failure too. Class
 * names may be NULL. For sources that read whole files. */
keel_status keel_dataset_adopt_fields(keel_dataset **out, keel_array_field *fields, int n,
                                      int64_t n_classes, char **class_names, const char *name);

/* The same for x, y and sample_weight; y and weight may be NULL. */
keel_status keel_dataset_adopt_arrays(keel_dataset **out, keel_tensor *x, keel_tensor *y,
                                      keel_tensor *weight, int64_t n_classes, char **class_names,
                                      const char *name);

/* Apply validation_split and subset of the options to a whole dataset: replaces *d. */
keel_status keel_dataset_take_subset(keel_dataset **d, const keel_dataset_options *o);

/* The caller's options over the defaults, checked; NULL: the defaults. */
keel_status keel_dataset_options_read(keel_dataset_options *out, const keel_dataset_options *o);

/* dst[i] = src[i] for i < count. float32 and float64 take rounded values; other types only what
 * they hold exactly. Returns count, or the first i that does not fit. */
int64_t keel_convert(void *dst, keel_dtype to, const void *src, keel_dtype from, int64_t count);
bool keel_convert_always_fits(keel_dtype to, keel_dtype from); /* for any value */

/* keel_convert from a field's own type. KEEL_EDATA: a value does not fit; the text names field and
 * value. */
keel_status keel_field_write(void *dst, keel_dtype want, const void *src,
                             const keel_data_field *field, int64_t count);

/* A new tensor with copies of texts, in one block of memory, each ended by a zero byte. */
keel_status keel_strings_create(keel_tensor *out, const keel_shape *shape, const keel_string *text);

/* Check the weights of rows, `each` numbers per row; the first row is row `first_row` of `name`.
 * KEEL_EDATA: one is negative or not finite; the text names row and weight. */
keel_status keel_weights_check(const void *weight, keel_dtype dtype, int64_t rows, int64_t each,
                               int64_t first_row, const char *name);

extern const keel_source *const keel_sources[]; /* ends with NULL; made by the build */

#endif
