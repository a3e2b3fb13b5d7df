/* Writes tensors as .npy files, in NumPy's format 1.0: magic, length of the header, the header as a
 * Python dict, padded so that the elements begin at a multiple of 64 bytes. */
#include "setup.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static bool write_npy(FILE *f, const void *tensor)
{
    const keel_tensor *t = tensor;
    static const struct {
        const char *name;
        size_t bytes;
    } types[KEEL_DTYPE_COUNT] = {
        [KEEL_FLOAT32] = { "<f4", 4 }, [KEEL_FLOAT64] = { "<f8", 8 }, [KEEL_UINT8] = { "|u1", 1 },
        [KEEL_INT32] = { "<i4", 4 },   [KEEL_INT64] = { "<i8", 8 },   [KEEL_BOOL] = { "|b1", 1 }
    };
    char head[256], shape[160] = "";
    size_t at = 0, count = 1;
    for (int i = 0; i < t->shape.rank; i++) {
        at += (size_t)snprintf(shape + at, sizeof shape - at, "%lld, ", (long long)t->shape.dim[i]);
        count *= (size_t)t->shape.dim[i];
    }
    if (t->shape.rank > 1) shape[at - 2] = 0;
    const int n =
        snprintf(head, sizeof head, "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }",
                 types[t->dtype].name, shape);
    const int padded = (10 + n + 1 + 63) / 64 * 64 - 10;
    const unsigned char begin[10] = {
        0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (unsigned char)padded, (unsigned char)(padded >> 8)
    };
    return fwrite(begin, 1, sizeof begin, f) == sizeof begin &&
           fprintf(f, "%s%*s\n", head, padded - 1 - n, "") == padded &&
           fwrite(t->data, types[t->dtype].bytes, count, f) == count;
}

int keel_save_npy(const keel_tensor *t, const char *path)
{
    return keel_save_whole(path, write_npy, t);
}

/* Make the rename survive a crash, where the file system can. */
static void sync_folder(const char *path)
{
    char folder[4096] = ".";
    const char *slash = strrchr(path, '/');
    if (slash) snprintf(folder, sizeof folder, "%.*s/", (int)(slash - path), path);
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return;
    fsync(fd);
    close(fd);
}

int keel_save_whole(const char *path, bool (*write)(FILE *f, const void *what), const void *what)
{
    char part[4096 + 32];
    snprintf(part, sizeof part, "%s.%ld.tmp", path, (long)getpid());
    FILE *f = fopen(part, "wb");
    if (!f) return keel_complain(EXIT_FAILED, "%s: cannot be created: %s", path, strerror(errno));
    const bool written = write(f, what) && !fflush(f) && (!fsync(fileno(f)) || errno == EINVAL);
    const int why = errno;
    const bool closed = !fclose(f);
    if (written && closed && !rename(part, path)) {
        sync_folder(path);
        return EXIT_OK;
    }
    const int code = keel_complain(EXIT_FAILED, "%s: could not be written: %s", path,
                                   strerror(written ? errno : why));
    unlink(part);
    return code;
}
