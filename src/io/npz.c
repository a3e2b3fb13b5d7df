/* NumPy's .npz; see npz.h. */
#include "io/npz.h"
#include "base/memory.h"
#include "base/text.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include <stdio.h>
#include <string.h>

enum { NAME_MAX_BYTES = 512 };

/* Length of the name without ".npy", or -1. */
static int stem_length(const char *member)
{
    const size_t n = member ? strlen(member) : 0;
    return n > 4 && n < NAME_MAX_BYTES && !strcmp(member + n - 4, ".npy") ? (int)n - 4 : -1;
}

int64_t keel_npz_count(const keel_zip *z)
{
    int64_t count = 0;
    for (int64_t i = 0; i < keel_zip_count(z); i++) count += stem_length(keel_zip_name(z, i)) >= 0;
    return count;
}

keel_status keel_npz_name(const keel_zip *z, int64_t index, char *out, size_t size)
{
    int64_t left = index;
    for (int64_t i = 0; index >= 0 && i < keel_zip_count(z); i++) {
        const char *member = keel_zip_name(z, i);
        const int length = stem_length(member);
        if (length < 0 || left-- > 0) continue;
        snprintf(out, size, "%.*s", length, member);
        return KEEL_OK;
    }
    return keel_fail(KEEL_EARG, "array number %lld of an archive with %lld", (long long)index,
                     (long long)keel_npz_count(z));
}

static int64_t find(const keel_zip *z, const char *name)
{
    char member[NAME_MAX_BYTES + 8];
    const int n = snprintf(member, sizeof member, "%s.npy", name);
    return n < 0 || (size_t)n >= sizeof member ? -1 : keel_zip_find(z, member);
}

bool keel_npz_has(const keel_zip *z, const char *name)
{
    return find(z, name) >= 0;
}

/* Open the member and read its header; the stream is then at the first element. */
static keel_status begin(keel_zip_stream **out, keel_npy_header *h, keel_zip *z, const char *name)
{
    keel_zip_stream *stream = NULL;
    unsigned char first[12], *bytes = NULL;
    size_t size = 0;
    const int64_t index = find(z, name);
    if (index < 0) return keel_fail(KEEL_EFORMAT, "%s: has no array '%s'", keel_zip_what(z), name);
    if (keel_zip_size(z, index) < sizeof first)
        return keel_fail(KEEL_EFORMAT, "%s: array '%s' is shorter than a .npy header",
                         keel_zip_what(z), name);
    keel_status s = keel_zip_stream_open(&stream, z, index);
    if (s >= 0) s = keel_zip_stream_read(stream, first, sizeof first);
    if (s < 0) goto out;
    if ((s = keel_npy_header_size(&size, first, sizeof first)) < 0) {
        s = keel_fail_within(s, "%s: array '%s'", keel_zip_what(z), name);
        goto out;
    }
    if (size < sizeof first || size > keel_zip_size(z, index)) {
        s = keel_fail(KEEL_EFORMAT, "%s: array '%s': the header claims %zu bytes", keel_zip_what(z),
                      name, size);
        goto out;
    }
    bytes = keel_calloc(size, 1);
    if (!bytes) {
        s = KEEL_ENOMEM;
        goto out;
    }
    memcpy(bytes, first, sizeof first);
    s = keel_zip_stream_read(stream, bytes + sizeof first, size - sizeof first);
    if (s < 0) goto out;
    if ((s = keel_npy_header_parse(h, bytes, size, name)) < 0)
        s = keel_fail_within(s, "%s", keel_zip_what(z));
    else if (keel_zip_size(z, index) - size != h->n_bytes) {
        char shape[96];
        keel_shape_text(shape, &h->shape);
        s = keel_fail(KEEL_EFORMAT,
                      "%s: array '%s' has %llu bytes of elements, its shape %s needs %zu",
                      keel_zip_what(z), name, (unsigned long long)(keel_zip_size(z, index) - size),
                      shape, h->n_bytes);
    }
    if (s < 0) goto out;
    *out = stream;
    stream = NULL;
out:
    keel_free(bytes);
    keel_zip_stream_close(stream);
    return s;
}

keel_status keel_npz_header(keel_npy_header *out, keel_zip *z, const char *name)
{
    keel_zip_stream *stream = NULL;
    keel_npy_header h;
    KEEL_TRY(begin(&stream, &h, z, name));
    keel_zip_stream_close(stream);
    *out = h;
    return KEEL_OK;
}

/* Read all stored elements at once, for texts and Fortran order; finishes the stream. */
static keel_status read_stored(void **out, keel_zip_stream *stream, const keel_npy_header *h)
{
    void *stored = keel_calloc(h->n_bytes, 1);
    keel_status s = stored ? keel_zip_stream_read(stream, stored, h->n_bytes) : KEEL_ENOMEM;
    if (s >= 0)
        s = keel_zip_stream_finish(stream);
    else
        keel_zip_stream_close(stream);
    if (s < 0)
        keel_free(stored);
    else
        *out = stored;
    return s;
}

keel_status keel_npz_read_texts(keel_npy_texts *out, keel_zip *z, const char *name)
{
    keel_zip_stream *stream = NULL;
    keel_npy_header h;
    void *stored = NULL;
    KEEL_TRY(begin(&stream, &h, z, name));
    KEEL_TRY(read_stored(&stored, stream, &h));
    keel_status s = keel_npy_texts_make(out, &h, stored, name);
    keel_free(stored);
    return s < 0 ? keel_fail_within(s, "%s", keel_zip_what(z)) : s;
}

static keel_status unread(keel_status s, const keel_zip *z, const char *name)
{
    char shown[80];
    return keel_fail_within(s, "%s: array '%s'", keel_zip_what(z),
                            keel_printable(shown, sizeof shown, name));
}

static keel_status read_fortran(keel_tensor *out, keel_zip_stream *stream, const keel_npy_header *h)
{
    void *stored = NULL;
    keel_tensor t = { 0 };
    KEEL_TRY(read_stored(&stored, stream, h));
    keel_status s = keel_tensor_create(&t, h->dtype, &h->shape);
    if (s >= 0) s = keel_npy_convert_all(h, t.data, stored);
    if (s >= 0)
        *out = t;
    else
        keel_tensor_free(&t);
    keel_free(stored);
    return s;
}

keel_status keel_npz_read(keel_tensor *out, keel_zip *z, const char *name)
{
    enum { PIECE = 1 << 16 }; /* a multiple of every element's size */
    keel_zip_stream *stream = NULL;
    unsigned char *piece = NULL;
    keel_tensor t = { 0 };
    keel_npy_header h;
    KEEL_TRY(begin(&stream, &h, z, name));
    keel_status s = keel_npy_check_numbers(&h, name);
    if (s < 0) {
        s = keel_fail_within(s, "%s", keel_zip_what(z));
        goto out;
    }
    if (h.fortran) {
        s = read_fortran(out, stream, &h);
        return s == KEEL_EDATA ? unread(s, z, name) : s;
    }
    s = keel_tensor_create(&t, h.dtype, &h.shape);
    if (s < 0) goto out;
    piece = keel_calloc(PIECE, 1);
    if (!piece) {
        s = KEEL_ENOMEM;
        goto out;
    }
    const size_t count = (size_t)keel_shape_count(&h.shape);
    const size_t size = h.element_bytes;
    char *to = t.data;
    const size_t to_size = count ? keel_dtype_size(h.dtype) : 1;
    for (size_t done = 0; done < count;) {
        const size_t n = count - done < PIECE / size ? count - done : PIECE / size;
        s = keel_zip_stream_read(stream, piece, n * size);
        if (s < 0) goto out;
        if ((s = keel_npy_convert(&h, to + done * to_size, piece, n)) < 0) {
            s = unread(s, z, name);
            goto out;
        }
        done += n;
    }
    s = keel_zip_stream_finish(stream);
    stream = NULL;
    if (s < 0) goto out;
    *out = t;
    t = (keel_tensor){ 0 };
out:
    keel_free(piece);
    keel_zip_stream_close(stream);
    keel_tensor_free(&t);
    return s;
}

keel_status keel_npz_read_file(keel_tensor *out, const char *path, const char *name)
{
    keel_zip *z = NULL;
    KEEL_TRY(keel_zip_open(&z, path));
    keel_status s = keel_npz_read(out, z, name);
    keel_zip_close(z);
    return s;
}
