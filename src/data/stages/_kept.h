/* Elements kept in a file, as cache with a filename and snapshot do. What comes before is gone
 * through once, in its first pass, and the file is put into its place when it has all elements.
 * From then on, in later runs too, they are read from the file by number.
 *
 * Where rows are read by number anyway, they are written in the order in which they are asked for.
 * A stream is written as it comes; in later runs it is rows by number. Batches and texts stay
 * streams: a batch by number is found through the rows it is made of, and texts by number must
 * live as long as the data. */
#ifndef KEEL_DATA_STAGES_KEPT_H
#define KEEL_DATA_STAGES_KEPT_H
#include "data/stage.h"
#include "data/window.h"

typedef struct keel_kept_iter {
    keel_window *window; /* over the file; NULL: the parent is gone through */
    keel_scratch scratch;
    keel_element *in; /* that could not be written */
    int64_t next;     /* to be read, or written */
    bool writes;
} keel_kept_iter;

/* The functions of a keel_stage; `path` is borrowed as long as the stage. */
keel_status keel_kept_infer(keel_applied *s, keel_data_spec *spec, const char *path, bool deflate);
keel_status keel_kept_read(const keel_applied *s, keel_position at, const keel_row *row,
                           keel_scratch *scratch);
int64_t keel_kept_length(const keel_applied *s, int i, keel_position at);
int keel_kept_length_from(const keel_applied *s, int *i);
keel_status keel_kept_begin(keel_iter *it);
keel_status keel_kept_next(keel_iter *it, keel_element **out);
void keel_kept_pass(keel_iter *it);
void keel_kept_end(keel_iter *it);
void keel_kept_note(const keel_applied *s, char *text, size_t size);
void keel_kept_release(keel_applied *s);

#endif
