/* See weights_file.h. */
#include "io/weights_file.h"
#include "base/memory.h"

static keel_status read_file(const void *file, uint64_t at, void *to, size_t n)
{
    const keel_weights_file *f = file;
    return keel_file_read_at(&f->file, at, to, n);
}

static keel_status read_member(const void *file, uint64_t at, void *to, size_t n)
{
    const keel_weights_file *f = file;
    return keel_zip_read_at(f->zip, f->begin + at, to, n);
}

keel_status keel_weights_file_open(keel_weights_file *out, const char *path, size_t limit)
{
    *out = (keel_weights_file){ .file.fd = -1 };
    KEEL_TRY(keel_file_open(&out->file, path));
    if (out->file.n_bytes > limit)
        return keel_fail(KEEL_EFORMAT, "%s: %zu bytes, longer than the %zu that are allowed", path,
                         out->file.n_bytes, limit);
    return keel_weights_open(&out->list, &(keel_h5_source){ read_file, out, out->file.n_bytes });
}

keel_status keel_weights_file_open_member(keel_weights_file *out, keel_zip *zip, const char *name,
                                          size_t limit)
{
    *out = (keel_weights_file){ .file.fd = -1, .zip = zip };
    const int64_t index = keel_zip_find(zip, name);
    const bool fits = index >= 0 && keel_zip_size(zip, index) <= limit;
    size_t n_bytes = fits ? (size_t)keel_zip_size(zip, index) : 0;
    keel_status s;
    if (fits) KEEL_TRY(keel_zip_place(zip, index, &out->begin));
    if (out->begin > 0) {
        s = keel_weights_open(&out->list, &(keel_h5_source){ read_member, out, n_bytes });
    } else {
        KEEL_TRY(keel_zip_read(zip, name, limit, &out->image, &n_bytes));
        s = keel_weights_decode(&out->list, out->image, n_bytes);
        if (s >= 0) keel_weights_read_once(out->list);
    }
    return s < 0 ? keel_fail_within(s, "%s", name) : s;
}

void keel_weights_file_close(keel_weights_file *f)
{
    keel_weights_destroy(f->list);
    keel_file_close(&f->file);
    keel_free(f->image);
    *f = (keel_weights_file){ .file.fd = -1 };
}
