/* A stage makes the rows of a dataset from those of others, its parents: take, shuffle, map, batch.
 *
 * A file of src/data/stages ends with its const keel_stage. Like a layer it has a field table, so
 * that C calls, pipeline files and the reference read the same arguments. What flows is an element:
 * a row, or behind a stage that makes batches, a batch.
 *
 * Where all parents are read by index, and the stage has `where` or `read`, so is its result: a
 * pure function of the place, which any thread may ask for in any order. Else the result is a
 * stream, made by `begin` and `next`; a stage has these too unless it never stands in a stream. */
#ifndef KEEL_DATA_STAGE_H
#define KEEL_DATA_STAGE_H
#include "base/field.h"
#include "base/text.h"
#include "data/element.h"
#include "data/source.h"

typedef struct keel_stage keel_stage;
typedef struct keel_iter keel_iter;

enum { KEEL_PARENTS_MAX = 64, KEEL_STAGES_MAX = 1024 /* of one dataset */ };

/* A stage with its arguments and parents: the state of the dataset that it makes. */
struct keel_applied {
    const keel_stage *stage;
    void *args; /* stage->type.args_size */
    int n_parent;
    keel_dataset **parent; /* owned */
    int number;            /* of all stages before it, from the sources on: keys its chance, so
                              that a stage added behind it changes nothing */
    bool by_index;
    /* Here or in a stage before this one, a file keeps what comes as a stream, so that elements are
     * by index, and their number is known, only where the file is there; or it keeps what was drawn
     * at random, so that a row read without a run may be another. The elements of a run are the
     * same. */
    bool revived, drawn_once;
    const keel_data_spec *spec;          /* of the result */
    void *made;                          /* by infer; the stage's own */
    const keel_dataset_options *options; /* for infer alone: how a stage that opens files opens
                                            them; NULL: the defaults */
};

struct keel_stage {
    keel_type type; /* name, help, fields; module "keel.data" */
    int n_parent;   /* -1: two or more; -2: one or more */
    bool no_index;  /* the result is a stream in any case */
    bool rowwise;   /* by index, row i is made of row i of parent 0 alone */
    bool one_pass;  /* all passes give the elements of the first, whatever comes before */

    bool draws; /* elements depend on the seed of the run, even where is_random says no */

    /* True if a pass gives other elements than the one before; NULL: it does not by itself. */
    bool (*is_random)(const keel_applied *s);

    /* True if an element may depend on those that were made before it, in earlier passes too; NULL:
     * it does not. */
    bool (*is_sequential)(const keel_applied *s);

    /* True if a pass of a parent may be left before its end; NULL: only where the stage's own is.
     */
    bool (*leaves_early)(const keel_applied *s);

    /* Check the arguments against the parents and change *spec, a copy of parent 0's, into that of
     * the result. s->by_index is set. */
    keel_status (*infer)(keel_applied *s, keel_data_spec *spec);

    /* By index, either: turn the place of an element into that of the parent's element that it is,
     * and return the number of the parent. */
    int (*where)(const keel_applied *s, keel_position *at);
    /* Or: make the row. It may use scratch buffers 0 to 3, and gives keel_scratch_inner to what it
     * calls. */
    keel_status (*read)(const keel_applied *s, keel_position at, const keel_row *row,
                        keel_scratch *scratch);
    /* If rows have open dims; NULL: that of parent 0. */
    int64_t (*length)(const keel_applied *s, int field, keel_position at);
    /* With `length`: the parent whose rows have the same lengths in field *field, which becomes
     * that of the parent; -1: none. NULL: none. */
    int (*length_from)(const keel_applied *s, int *field);
    /* Of a stage that makes batches: the rows of an element, and the place of row i in parent 0. */
    int64_t (*batch_rows)(const keel_applied *s, keel_position at);
    keel_position (*batch_row)(const keel_applied *s, keel_position at, int64_t i);

    /* Streams. it->own has iter_size zeroed bytes; it->at is the place of the next element. `next`
     * gives a reference to an element, or KEEL_END. `end` frees what the iterator owns, and is
     * called before every begin but the first. NULL: nothing to do. */
    size_t iter_size;
    keel_status (*begin)(keel_iter *it);
    keel_status (*next)(keel_iter *it, keel_element **out);
    void (*end)(keel_iter *it);
    /* Leave out the element whose failure was given last; NULL: those of the parents do. */
    void (*pass)(keel_iter *it);

    /* What the user should know of the passes so far, in one line; leaves text as it is: nothing.
     */
    void (*note)(const keel_applied *s, char *text, size_t size);

    void (*release)(keel_applied *s); /* frees s->made; may be NULL */

    /* For data/each.h: make an element of one of parent 0. Called by any thread. */
    keel_status (*make)(const keel_applied *s, keel_account *a, keel_position at,
                        const keel_element *e, keel_element **out, keel_scratch *scratch);
    /* Elements that are ready ahead of the step; 0: as many as help. Such a stage is the last one.
     * NULL: it does not say. */
    int64_t (*ahead)(const keel_applied *s);
    /* Elements of the parents that its stream holds at the same time; NULL: one. */
    int64_t (*holds)(const keel_applied *s);
    /* The bytes of buffers that `read` or `make` takes, besides a row of its own and of its parents
     * where it is read by index; NULL: none. */
    int64_t (*needs)(const keel_applied *s);
    /* The bytes that the stage keeps over passes; what it will keep more is taken from this account
     * from now on, or no longer. NULL: nothing. */
    int64_t (*keeps)(const keel_applied *s);
    void (*charge)(const keel_applied *s, keel_account *a, bool on);
    /* What messages call it, besides its name: that of a callback; NULL: nothing. */
    const char *(*label)(const keel_applied *s);
};

/* The dataset that a stage makes. Takes `config` (NULL: all defaults) as Keras JSON, and shares the
 * parents, which the caller still destroys. KEEL_EARG, KEEL_ESHAPE, KEEL_EUNSUP: the stage refuses
 * its arguments or parents; the text names the stage. */
keel_status keel_stage_apply(keel_dataset **out, const keel_stage *stage, const json_t *config,
                             keel_dataset *const *parent, int n_parent);
/* The same, with the options that the source of the pipeline was opened with. */
keel_status keel_stage_apply_with(keel_dataset **out, const keel_stage *stage, const json_t *config,
                                  keel_dataset *const *parent, int n_parent,
                                  const keel_dataset_options *options);
/* The same for a stage whose args were filled by C code, not from JSON: takes *args, which has
 * args_size bytes and is copied; stage->type.release frees what it owns, on failure too. */
keel_status keel_stage_apply_args(keel_dataset **out, const keel_stage *stage, const void *args,
                                  keel_dataset *const *parent, int n_parent);

/* NULL: there is no such stage. */
const keel_stage *keel_stage_find(const char *name);
/* The i-th stage: those of this room, then those made of layers; NULL behind the last. */
const keel_stage *keel_stage_at(int i);

/* The key of the random numbers of a stage at a place. */
keel_chance keel_stage_chance(const keel_applied *s, const keel_position *at);

/* Parent k's place of a stage whose own place is `at`, for the same element. */
keel_position keel_stage_into(const keel_applied *s, int k, const keel_position *at);

/* What makes a row of d by index, if a stage does, whose place there *at becomes; NULL: a source
 * does, or a stream. */
const keel_data_origin *keel_stage_of_row(const keel_dataset *d, keel_position *at);

/* Follow a place of a batched dataset to the stage that makes the batch; NULL: its rows cannot be
 * found by index. */
const keel_applied *keel_stage_of_batch(const keel_dataset *d, keel_position *at);

/* The dataset of a source, or of a stage that is a stream, that a place stands for; at->index
 * becomes the row of its origin. */
const keel_data_origin *keel_dataset_origin_at(const keel_dataset *d, keel_position *at);

/* The longest first dim of field i over all rows, and a row that has it; -1: rows never end, and
 * their lengths are computed one by one. */
int64_t keel_dataset_longest(const keel_dataset *d, int i, int64_t *row);

/* The rows of all batches of a pass; -1: not known. */
int64_t keel_stage_rows(const keel_dataset *d);

/* The spec of a dataset as a parent: `rows` counts elements, and yields of several rows are
 * batches. */
keel_data_spec keel_stage_spec(const keel_dataset *d);

/* Class names of a parent's spec are copied, as keel_dataset_create takes them over. After a
 * failure too they are freed by keel_spec_free_classes. */
keel_status keel_spec_copy_classes(keel_data_spec *spec);
void keel_spec_free_classes(keel_data_spec *spec);

/* What the parents of a stage must share, so that the spec `a` of the first describes them all:
 * fields, roles, types, shapes, classes, and whether elements are batches. KEEL_ESHAPE names d. */
keel_status keel_stage_check_same(const keel_data_spec *a, const keel_data_spec *b,
                                  const keel_dataset *d);

/* The name of a stage of a dataset that gives other elements in each pass, or NULL. */
const char *keel_stage_random(const keel_dataset *d);

/* The name of a stage by which rows change their places from pass to pass, or NULL. */
const char *keel_stage_reorders(const keel_dataset *d);

/* The name of a stage that gives rows more than once in a pass, or NULL. */
const char *keel_stage_repeats(const keel_dataset *d);

/* True if rows come folder by folder of a directory. */
bool keel_stage_by_folder(const keel_dataset *d);

/* The source of both, if it is a stream, which only one reader at a time can read; NULL: there is
 * none. */
const keel_data_origin *keel_stage_shared(const keel_dataset *a, const keel_dataset *b);

/* True if the elements depend on the seed of the run. */
bool keel_stage_draws(const keel_dataset *d);

/* True of a failure that may be the fault of an element; out of memory and a wrong call are not. */
bool keel_stage_may_pass(keel_status s);

/* Add the stages of a dataset with their arguments, so that a run can tell whether it goes on with
 * the same pipeline. Functions in C are known by their stage alone. */
void keel_stage_describe(const keel_dataset *d, keel_text *t);

/* The notes of the stages of a dataset: of several the first. "": there is none. */
void keel_stage_note(const keel_dataset *d, char *text, size_t size);

/* Another handle on a dataset, with its own range. */
keel_dataset *keel_dataset_share(const keel_dataset *d);

extern const keel_stage *const keel_stages[]; /* ends with NULL; made by the build */

/* Stages that a later room makes of layers, which this one does not see; NULL behind the last. */
const keel_stage *keel_layer_stage(int i);

#endif
