/* Any bytes as a CSV that three threads read in parts of a few bytes: what they find is what one
 * thread finds, or they fail as it does. Missing values are refused, dropped or filled. */
#define _GNU_SOURCE /* memfd_create */
#include "base/memory.h"
#include "data/sources/csv.h"
#include "tensor/shape.h"
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const keel_tensor *array(const keel_dataset *d, int i)
{
    return d->origin->source->tensor(d->origin->state, i);
}

static bool same(const keel_dataset *a, const keel_dataset *b)
{
    if (keel_dataset_rows(a) != keel_dataset_rows(b)) return false;
    for (int i = 0; i < keel_dataset_field_count(a); i++) {
        const keel_tensor *x = array(a, i), *y = array(b, i);
        const size_t n = (size_t)keel_shape_count(&x->shape);
        if (x->dtype != y->dtype || !keel_shape_equal(&x->shape, &y->shape)) return false;
        if (x->dtype != KEEL_STRING &&
            memcmp(x->data, y->data, n * (x->dtype == KEEL_INT64 ? 8 : 4)))
            return false;
        for (size_t k = 0; x->dtype == KEEL_STRING && k < n; k++)
            if (strcmp(((const keel_string *)x->data)[k].data,
                       ((const keel_string *)y->data)[k].data))
                return false;
    }
    return true;
}

static void compare(const char *path, const keel_dataset_options *o, uint64_t part)
{
    keel_dataset *one = NULL, *many = NULL;
    char says[256] = "";
    const keel_status s = keel_csv_open(&one, path, "y", o, 1, part);
    if (s < 0) snprintf(says, sizeof says, "%s", keel_error());
    const keel_status t = keel_csv_open(&many, path, "y", o, 3, part);
    /* Whether a wrong cell or a zero byte behind it is told depends on how much is read at once. */
    const bool no_text =
        t < 0 && (strstr(says, "not a text") || strstr(keel_error(), "not a text"));
    if (s != t || (s >= 0 && !same(one, many)) ||
        (s < 0 && !no_text && strncmp(says, keel_error(), sizeof says - 1)))
        __builtin_trap();
    keel_dataset_destroy(one);
    keel_dataset_destroy(many);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const inputs[] = { "a", "b" };
    static const keel_vocabulary words = { .column = "b" };
    static const char header[] = "a,b,y\n1,x,0\n";
    char path[64];
    if (size < 2) return 0;
    const int fd = memfd_create("fuzz", 0);
    if (fd < 0) return 0;
    keel_dataset_options o = KEEL_DATASET_OPTIONS;
    o.missing = (keel_missing)(data[0] % 4);
    o.inputs = inputs;
    o.n_input = 2;
    o.vocabularies = &words;
    o.n_vocabulary = data[0] / 4 % 2;
    const uint64_t part = 1 + data[1] % 64;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (write(fd, header, sizeof header - 1) == (ssize_t)sizeof header - 1 &&
        write(fd, data + 2, size - 2) == (ssize_t)size - 2)
        compare(path, &o, part);
    close(fd);
    if (keel_memory_live() != 0) __builtin_trap();
    return 0;
}
