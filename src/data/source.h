/* A source knows one kind of data. There are two: rows that can be read by index, from several
 * threads (arrays, images), and streams that yield batches in their own order (generator,
 * sequence).
 *
 * A file of src/data/sources ends with its const keel_source. Sources of files have `claims` and
 * `open`; those that read a file whole open it as arrays. */
#ifndef KEEL_DATA_SOURCE_H
#define KEEL_DATA_SOURCE_H
#include "base/error.h"
#include "base/philox.h"
#include "base/scratch.h"
#include "keel/dataset.h"
#include <stdatomic.h>
#include <stdbool.h>

_Static_assert(sizeof(keel_string) == 16, "the size of KEEL_STRING in tensor/dtype.c");

/* What the rows look like. */
typedef struct keel_data_spec {
    int n_field;
    keel_data_field field[KEEL_FIELDS_MAX];
    int64_t rows;     /* -1: not known */
    int64_t max_rows; /* streams: of one yield */
    int64_t yields;   /* streams: how many in a pass; -1: not known */
    bool one_shot;    /* streams: cannot begin again */
    bool endless;     /* streams: never ends */
    bool shaped;      /* streams: what comes has a shape of its own, by next_shaped */
    bool by_row;      /* and is one row, not a batch */
    int64_t n_classes;
    char **class_names;
} keel_data_spec;

/* More fields at the end. The strings are borrowed until the dataset is made, which copies them.
 * KEEL_EARG: more than KEEL_FIELDS_MAX. */
keel_status keel_spec_add_all(keel_data_spec *spec, int n, const keel_data_field *fields,
                              const char *name);

/* The fields x, y (NULL: none) and sample_weight, which is float32, of an empty spec; of x and y
 * dtype and shape are read. */
void keel_spec_add_xy(keel_data_spec *spec, const keel_data_field *x, const keel_data_field *y,
                      bool has_weight);

/* The first field of a role, or -1. */
int keel_spec_first(const keel_data_spec *spec, keel_data_role role);

/* Where one row goes and in which types: one of each for every field of the spec. */
typedef struct keel_row {
    const keel_dtype *want;
    void *at[KEEL_FIELDS_MAX]; /* NULL: not wanted; only the spec's are set */
    const int64_t *count;      /* elements: where a row is shorter, 0 is written behind it */
} keel_row;

typedef struct keel_source {
    const char *name;
    const char *help;    /* what it reads, for the message that nothing understood a SRC */
    bool shuffled_split; /* a validation split shuffles first */
    bool in_memory;      /* read is a copy: cheap, never waits, never fails */
    bool (*claims)(const char *spec);
    keel_status (*open)(keel_dataset **out, const char *spec, const keel_dataset_options *o);

    /* rows: any thread, also at the same time. A failure's text names the file and the stage. */
    keel_status (*read)(const void *state, int64_t index, const keel_row *row, keel_scratch *s);
    void (*expect)(const void *state,
                   int64_t index); /* the row will be read soon; NULL: no matter */
    const char *(*row_name)(const void *state, int64_t index); /* NULL: rows have no names */
    /* The tensor that holds field i of all rows as it is, so that a batch can point into it; NULL:
     * none does. */
    const keel_tensor *(*tensor)(const void *state, int i);
    /* The first dim of a row of field i, which is open in the spec; NULL: none of its fields has
     * open dims. */
    int64_t (*length)(const void *state, int i, int64_t index);

    /* streams: one thread at a time. Begin pass `order->epoch`; shuffled by `order` if it is not
     * NULL. The first begin of a stream that was never read does nothing to it. */
    keel_status (*begin)(void *state, uint32_t pass, const keel_chance *order);
    /* Up to spec.max_rows rows, each field in its own dtype; KEEL_END: the pass is over. */
    keel_status (*next)(void *state, void *const *field, int64_t *rows);
    /* Instead of `next` where the spec has open dims: data[i] points to `rows` rows of field i,
     * good until the next call, each of shape[i]; it comes as the spec's. */
    keel_status (*next_shaped)(void *state, const void **data, keel_shape *shape, int64_t *rows);

    void (*close)(void *state);
} keel_source;

/* What several datasets (the parts of a split) share. */
typedef struct keel_data_origin {
    const keel_source *source;
    void *state;
    keel_data_spec spec; /* of all rows; paths and class names are owned */
    char *name;
    _Atomic int references;
} keel_data_origin;

struct keel_dataset {
    keel_data_origin *origin;
    int64_t first, rows; /* the part of the origin's rows, after `order`; rows -1: not known */
    bool ordered;        /* split after a shuffle */
    keel_permutation order;
};

/* The origin's index of row i of the dataset. */
static inline int64_t keel_dataset_index(const keel_dataset *d, int64_t i)
{
    const int64_t at = d->first + i;
    return d->ordered ? (int64_t)keel_permutation_at(&d->order, (uint64_t)at) : at;
}

/* A dataset over all rows of a source. Takes over `state` (closed on failure too) and the class
 * names in *spec; copies `name` and the strings of the fields. KEEL_EARG, KEEL_ESHAPE: fields that
 * cannot be. */
keel_status keel_dataset_create(keel_dataset **out, const keel_source *source, void *state,
                                const keel_data_spec *spec, const char *name);

/* Arrays that the dataset owns: takes over their memory (emptied, on failure too). Class names may
 * be NULL. For readers of whole files. */
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

/* dst[i] = src[i] for i < count. Into float32 and float64 values are rounded; into other types only
 * what they hold exactly goes. Returns count, or the first i that does not fit. */
int64_t keel_convert(void *dst, keel_dtype to, const void *src, keel_dtype from, int64_t count);
bool keel_convert_always_fits(keel_dtype to, keel_dtype from); /* whatever the values */

/* keel_convert from a field's own type; what does not fit is KEEL_EDATA, with field and value. */
keel_status keel_field_write(void *dst, keel_dtype want, const void *src,
                             const keel_data_field *field, int64_t count);

/* A new tensor of texts, copied: one piece of memory, each text with a 0 behind it. */
keel_status keel_strings_create(keel_tensor *out, const keel_shape *shape, const keel_string *text);

/* Weights of rows, `each` numbers a row, of which the first is `first_row` of `name`: KEEL_EDATA
 * names the row and the weight where one is negative or no number. */
keel_status keel_weights_check(const void *weight, keel_dtype dtype, int64_t rows, int64_t each,
                               int64_t first_row, const char *name);

extern const keel_source *const keel_sources[]; /* ends with NULL; made by the build */

#endif
