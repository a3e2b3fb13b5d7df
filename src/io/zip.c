/* Zip archives, read by libzip; see zip.h for what is checked. Writing is in zip_write.c. */
#include "io/zip.h"
#include "base/memory.h"
#include "io/file.h"
#include <string.h>
#include <zip.h>

enum {
    MEMBERS_MAX = 65535,
    EXPANSION_MAX = 1032, /* deflate: at best 258 bytes from 2 bits */
};

struct keel_zip {
    zip_t *zip;
    char *what;
    int64_t count;
    uint64_t *sizes; /* of each member, believed */
    keel_map map;    /* the file, when it was opened by path */
};

struct keel_zip_stream {
    keel_zip *zip;
    zip_file_t *file;
    int64_t index;
};

/* What a member's size may be. Deflate only: the other methods that libzip may know are not
 * written by NumPy or Keras and expand without a bound that we could hold against them. */
static keel_status check_member(keel_zip *z, int64_t i, size_t archive_bytes)
{
    zip_stat_t st;
    if (zip_stat_index(z->zip, (zip_uint64_t)i, 0, &st) != 0)
        return keel_fail(KEEL_EFORMAT, "%s: member %lld: %s", z->what, (long long)i,
                         zip_strerror(z->zip));
    const zip_uint64_t need = ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE |
                              ZIP_STAT_COMP_METHOD | ZIP_STAT_ENCRYPTION_METHOD;
    if ((st.valid & need) != need)
        return keel_fail(KEEL_EFORMAT, "%s: member %lld has an incomplete header", z->what,
                         (long long)i);
    if (zip_name_locate(z->zip, st.name, 0) != i)
        return keel_fail(KEEL_EFORMAT, "%s: there are two members '%.200s'", z->what, st.name);
    if (st.encryption_method != ZIP_EM_NONE)
        return keel_fail(KEEL_EUNSUP, "%s: member '%.200s' is encrypted", z->what, st.name);
    if (st.comp_method != ZIP_CM_STORE && st.comp_method != ZIP_CM_DEFLATE)
        return keel_fail(KEEL_EUNSUP,
                         "%s: member '%.200s' has compression %d, known are stored "
                         "and deflated",
                         z->what, st.name, (int)st.comp_method);
    const uint64_t most =
        st.comp_method == ZIP_CM_STORE ? st.comp_size : (st.comp_size + 1) * EXPANSION_MAX;
    if (st.comp_size > archive_bytes || st.size > most ||
        (st.comp_method == ZIP_CM_STORE && st.size != st.comp_size))
        return keel_fail(KEEL_EFORMAT,
                         "%s: member '%.200s' claims %llu bytes in %llu of an archive of %zu",
                         z->what, st.name, (unsigned long long)st.size,
                         (unsigned long long)st.comp_size, archive_bytes);
    z->sizes[i] = st.size;
    return KEEL_OK;
}

static keel_status open_checked(keel_zip *z, const void *data, size_t n_bytes)
{
    zip_error_t e;
    keel_status s = KEEL_OK;
    if (n_bytes < 22) /* an end record; libzip would take no bytes for no members */
        return keel_fail(KEEL_EFORMAT, "%s: not a zip archive, or cut short: %zu bytes", z->what,
                         n_bytes);
    zip_error_init(&e);
    zip_source_t *source = zip_source_buffer_create(data, n_bytes, 0, &e);
    if (source) z->zip = zip_open_from_source(source, ZIP_RDONLY, &e);
    if (!z->zip) {
        const int code = zip_error_code_zip(&e);
        if (code == ZIP_ER_NOZIP)
            s = keel_fail(KEEL_EFORMAT, "%s: not a zip archive, or cut short", z->what);
        else
            s = keel_fail(code == ZIP_ER_MEMORY ? KEEL_ENOMEM : KEEL_EFORMAT,
                          "%s: this zip archive cannot be read: %s", z->what,
                          zip_error_strerror(&e));
        zip_source_free(source);
    }
    zip_error_fini(&e);
    if (s < 0) return s;
    z->count = zip_get_num_entries(z->zip, 0);
    if (z->count > MEMBERS_MAX)
        return keel_fail(KEEL_EFORMAT, "%s: %lld members, more than %d", z->what,
                         (long long)z->count, MEMBERS_MAX);
    z->sizes = keel_calloc((size_t)z->count, sizeof *z->sizes);
    if (!z->sizes) return KEEL_ENOMEM;
    for (int64_t i = 0; i < z->count; i++) KEEL_TRY(check_member(z, i, n_bytes));
    return KEEL_OK;
}

keel_status keel_zip_open_memory(keel_zip **out, const void *data, size_t n_bytes, const char *what)
{
    keel_zip *z = keel_calloc(1, sizeof *z);
    if (!z) return KEEL_ENOMEM;
    z->what = keel_strdup(what);
    const keel_status s = z->what ? open_checked(z, data, n_bytes) : KEEL_ENOMEM;
    if (s >= 0)
        *out = z;
    else
        keel_zip_close(z);
    return s;
}

keel_status keel_zip_open(keel_zip **out, const char *path)
{
    keel_map map = { 0 };
    keel_zip *z = NULL;
    KEEL_TRY(keel_map_open(&map, path));
    const keel_status s =
        keel_zip_open_memory(&z, map.data ? (const void *)map.data : "", map.n_bytes, path);
    if (s < 0) {
        keel_map_close(&map);
        return s;
    }
    z->map = map;
    *out = z;
    return KEEL_OK;
}

void keel_zip_close(keel_zip *z)
{
    if (!z) return;
    if (z->zip) zip_discard(z->zip);
    keel_map_close(&z->map);
    keel_free(z->sizes);
    keel_free(z->what);
    keel_free(z);
}

int64_t keel_zip_count(const keel_zip *z)
{
    return z->count;
}

const char *keel_zip_name(const keel_zip *z, int64_t index)
{
    return zip_get_name(z->zip, (zip_uint64_t)index, ZIP_FL_ENC_RAW);
}

int64_t keel_zip_find(const keel_zip *z, const char *name)
{
    return zip_name_locate(z->zip, name, 0);
}

const char *keel_zip_what(const keel_zip *z)
{
    return z->what;
}

uint64_t keel_zip_size(const keel_zip *z, int64_t index)
{
    return z->sizes[index];
}

keel_status keel_zip_stream_open(keel_zip_stream **out, keel_zip *z, int64_t index)
{
    keel_zip_stream *s = keel_calloc(1, sizeof *s);
    if (!s) return KEEL_ENOMEM;
    *s = (keel_zip_stream){ z, zip_fopen_index(z->zip, (zip_uint64_t)index, 0), index };
    if (!s->file) {
        keel_free(s);
        return keel_fail(KEEL_EFORMAT, "%s: member '%.200s': %s", z->what, keel_zip_name(z, index),
                         zip_strerror(z->zip));
    }
    *out = s;
    return KEEL_OK;
}

static keel_status stream_fail(const keel_zip_stream *s, const char *why)
{
    return keel_fail(KEEL_EFORMAT, "%s: member '%.200s' is damaged: %s", s->zip->what,
                     keel_zip_name(s->zip, s->index), why);
}

keel_status keel_zip_stream_read(keel_zip_stream *s, void *data, size_t n_bytes)
{
    unsigned char *p = data;
    while (n_bytes > 0) {
        const zip_int64_t got = zip_fread(s->file, p, n_bytes);
        if (got < 0) return stream_fail(s, zip_file_strerror(s->file));
        if (got == 0) return stream_fail(s, "it ends before the size it claims");
        p += got;
        n_bytes -= (size_t)got;
    }
    return KEEL_OK;
}

keel_status keel_zip_stream_finish(keel_zip_stream *s)
{
    char more;
    keel_status status = KEEL_OK;
    const zip_int64_t got = zip_fread(s->file, &more, 1); /* libzip compares the CRC at the end */
    if (got < 0) status = stream_fail(s, zip_file_strerror(s->file));
    if (got > 0) status = stream_fail(s, "it is longer than the size it claims");
    keel_zip_stream_close(s);
    return status;
}

void keel_zip_stream_close(keel_zip_stream *s)
{
    if (!s) return;
    zip_fclose(s->file);
    keel_free(s);
}

keel_status keel_zip_read(keel_zip *z, const char *name, size_t limit, void **data, size_t *n_bytes)
{
    const int64_t index = keel_zip_find(z, name);
    if (index < 0) return keel_fail(KEEL_EFORMAT, "%s: has no member '%.200s'", z->what, name);
    const uint64_t size = z->sizes[index];
    if (size > limit)
        return keel_fail(KEEL_EFORMAT, "%s: member '%.200s' has %llu bytes, more than %zu", z->what,
                         name, (unsigned long long)size, limit);
    keel_zip_stream *stream = NULL;
    unsigned char *bytes = keel_calloc((size_t)size + 1, 1);
    keel_status s = bytes ? keel_zip_stream_open(&stream, z, index) : KEEL_ENOMEM;
    if (s >= 0) s = keel_zip_stream_read(stream, bytes, (size_t)size);
    if (s >= 0) {
        s = keel_zip_stream_finish(stream);
        stream = NULL;
    }
    keel_zip_stream_close(stream);
    if (s < 0) {
        keel_free(bytes);
        return s;
    }
    *data = bytes;
    *n_bytes = (size_t)size;
    return KEEL_OK;
}
