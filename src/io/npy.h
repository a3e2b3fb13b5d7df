/* NumPy's .npy, versions 1 to 3.
 *
 * Reads f2 f4 f8 i1 u1 i2 u2 i4 u4 i8 u8 and bool of either byte order. Keel's tensors have fewer
 * types: f2 becomes float32, i1, i2 and u2 become int32, u4 and u8 become int64, and a bool that is
 * not 0 becomes 1. Fortran order becomes row-major order. Texts of a fixed width (S and U) are read
 * into keel_npy_texts. A u8 of 2^63 or more, complex numbers, dates, objects and structured types
 * are refused by name. Source: numpy/lib/format.py, "NPY format". */
#ifndef KEEL_IO_NPY_H
#define KEEL_IO_NPY_H
#include "io/file.h"
#include "keel/tensor.h"
#include <stdbool.h>

typedef enum keel_npy_type { /* npy_types.c */
                             KEEL_NPY_F2,
                             KEEL_NPY_F4,
                             KEEL_NPY_F8,
                             KEEL_NPY_U1,
                             KEEL_NPY_I4,
                             KEEL_NPY_I8,
                             KEEL_NPY_B1,
                             KEEL_NPY_I1,
                             KEEL_NPY_I2,
                             KEEL_NPY_U2,
                             KEEL_NPY_U4,
                             KEEL_NPY_U8,
                             KEEL_NPY_S, /* bytes, padded with zeros */
                             KEEL_NPY_U, /* 4 bytes per character, padded with zeros */
                             KEEL_NPY_TYPE_COUNT
} keel_npy_type;

/* A parsed header. n_bytes is the size of all elements as stored; offset is where they begin. */
typedef struct keel_npy_header {
    keel_npy_type stored;
    bool swapped;         /* big-endian elements of several bytes */
    size_t element_bytes; /* one element, as stored */
    bool fortran;         /* the first index varies fastest, and there are several */
    bool is_text;         /* KEEL_NPY_S or _U: dtype is then unset */
    keel_dtype dtype;     /* the type that the elements are converted to */
    keel_shape shape;
    size_t offset;
    size_t n_bytes;
} keel_npy_header;

/* Fill the members about one element from a dtype's code, "<f4", or from its name, "float32" or
 * ">int16". KEEL_EUNSUP: any other, which the text names. */
keel_status keel_npy_type_read(keel_npy_header *h, const char *descr);
keel_status keel_npy_type_named(keel_npy_header *h, const char *name);
const char *keel_npy_type_name(keel_npy_type type); /* "float32" */
bool keel_npy_is_plain(const keel_npy_header *h);   /* the stored bytes are those of h->dtype */

/* The size of a header in bytes, from the first 12 bytes of a file (or all, if it has fewer). */
keel_status keel_npy_header_size(size_t *out, const void *begin, size_t n_bytes);
/* Parse a whole header at `begin`; `what` names the file in messages. */
keel_status keel_npy_header_parse(keel_npy_header *out, const void *begin, size_t n_bytes,
                                  const char *what);
/* KEEL_EUNSUP for an array of texts. */
keel_status keel_npy_check_numbers(const keel_npy_header *h, const char *what);
/* Convert `count` stored elements to h->dtype, in stored order; `stored` may be unaligned. Not for
 * texts. KEEL_EDATA: a u8 that int64 has not. */
keel_status keel_npy_convert(const keel_npy_header *h, void *out, const void *stored, size_t count);
/* Convert the whole array to h->dtype, in row-major order. */
keel_status keel_npy_convert_all(const keel_npy_header *h, void *out, const void *stored);

/* An array of texts, UTF-8, in row-major order. */
typedef struct keel_npy_texts {
    keel_shape shape;
    int64_t count;
    char **text; /* [count] */
    char *memory;
} keel_npy_texts;

void keel_npy_texts_free(keel_npy_texts *t); /* NULL and an empty array are allowed */
/* Convert the stored elements of an array of texts. KEEL_EUNSUP: an array of numbers;
 * KEEL_EFORMAT: an element is not valid UTF-8 (S) or has an invalid character (U). */
keel_status keel_npy_texts_make(keel_npy_texts *out, const keel_npy_header *h, const void *stored,
                                const char *what);
keel_status keel_npy_read_texts(keel_npy_texts *out, const char *path);
keel_status keel_npy_decode_texts(keel_npy_texts *out, const void *data, size_t n_bytes,
                                  const char *what);

/* Open a file, read its header, and check that the length of the file agrees with it. */
keel_status keel_npy_open(keel_file *f, keel_npy_header *h, const char *path);

/* Read a whole array into a new tensor (keel_tensor_free). The file must be exactly as long as
 * its header says. KEEL_EUNSUP: an array of texts, or an unsupported type. */
keel_status keel_npy_read(keel_tensor *out, const char *path);
keel_status keel_npy_decode(keel_tensor *out, const void *data, size_t n_bytes, const char *what);

/* Write a tensor as version 1, atomically. */
keel_status keel_npy_write(const char *path, const keel_tensor *t);
/* Write only the header, for a writer that appends rows in pieces. The caller then writes exactly
 * the elements that the header announces. */
keel_status keel_npy_write_header(keel_new_file *f, keel_dtype dtype, const keel_shape *shape);

#endif
