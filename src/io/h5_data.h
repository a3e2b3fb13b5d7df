/* HDF5 files of data, as h5py writes them by default: groups with names, arrays of numbers that are
 * contiguous or in chunks, plain or with deflate, shuffle and fletcher32.
 *
 * The file is read by Keel itself, never by libhdf5, which is not made for files that nobody should
 * trust and reads under one lock. Its structure is read at once: each block of it must lie in the
 * file, and all together may not be larger than the file or 64 MiB, so there are no cycles and no
 * work that the file does not pay for. Rows are read when they are needed, by any thread; decoded
 * chunks are kept in a cache of bounded size.
 *
 * A soft link to an array of the file is that array under another name. What another program may
 * have put into a file (texts, links elsewhere, other filters) does not stop it from being read:
 * only the array that is asked for must be one that Keel reads.
 * Source: HDF5 File Format Specification, version 3.0. */
#ifndef KEEL_IO_H5_DATA_H
#define KEEL_IO_H5_DATA_H
#include "base/scratch.h"
#include "io/file.h"
#include "io/npy.h"

enum { KEEL_H5_FILTERS_MAX = 4 };

typedef enum keel_h5_filter {
    KEEL_H5_DEFLATE = 1,
    KEEL_H5_SHUFFLE = 2,
    KEEL_H5_FLETCHER32 = 3
} keel_h5_filter;

typedef struct keel_h5_chunk {
    uint64_t at; /* in the file; 0: it was never written */
    uint32_t n_bytes;
    uint32_t left_out; /* bit i: filter i was not applied */
} keel_h5_chunk;

typedef struct keel_h5_array {
    size_t name;          /* offset of its path in keel_h5_data.names */
    char why[80];         /* why it cannot be read; "": it can */
    keel_npy_header type; /* only the members about one element */
    keel_shape shape;
    uint64_t at; /* of the elements if they are contiguous, else of the tree of chunks */
    bool chunked;
    int64_t chunk[KEEL_RANK_MAX], grid[KEEL_RANK_MAX]; /* shape of a chunk; chunks in each dim */
    size_t chunk_bytes;
    int64_t n_chunks; /* 0: contiguous rows, which are read one by one */
    int n_filters;
    keel_h5_filter filter[KEEL_H5_FILTERS_MAX]; /* in the order of writing */
    keel_h5_chunk *chunks;                      /* [n_chunks]; set by keel_h5_data_index */
    int32_t *slot;                              /* [n_chunks] in the cache, from 1; 0: in none */
} keel_h5_array;

typedef struct keel_h5_cache keel_h5_cache;

typedef struct keel_h5_data {
    keel_file file;
    keel_h5_array *arrays; /* sorted by path */
    size_t count;
    char *names;
    bool keras; /* it has the weights of a Keras model */
    keel_h5_cache *cache;
} keel_h5_data;

/* Open a file and list its arrays, at most 65,536. `path` is borrowed. KEEL_EFORMAT: damaged;
 * KEEL_EUNSUP: it was written in the newer format (libver='latest'). */
keel_status keel_h5_data_open(keel_h5_data **out, const char *path);
const char *keel_h5_data_name(const keel_h5_data *d, size_t i); /* "train/images" */
void keel_h5_data_close(keel_h5_data *d);

/* Prepare an array for keel_h5_data_row. KEEL_EUNSUP: it cannot be read; the text says why. */
keel_status keel_h5_data_index(keel_h5_data *d, size_t i);

/* Read the stored bytes of one row, an index of the first dim. Thread-safe. Uses buffers 0 and 1 of
 * the scratch. */
keel_status keel_h5_data_row(const keel_h5_data *d, size_t i, int64_t row, void *out,
                             keel_scratch *s);

/* The bytes of these buffers that a row takes where no chunk of it is in the cache; `stored` has
 * also those of zlib. */
void keel_h5_data_needs(const keel_h5_data *d, size_t i, int64_t *stored, int64_t *decoded);

/* From now on the cache takes its memory from this account, which may have less room than it would
 * like; or no longer. It has one account at a time, the first one. */
void keel_h5_data_charge(const keel_h5_data *d, keel_account *a, bool on);

/* h5_chunks.c */
keel_status keel_h5_cache_create(keel_h5_cache **out);
void keel_h5_cache_destroy(keel_h5_cache *c);

#endif
