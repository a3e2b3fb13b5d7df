/* Any bytes as a TFRecord file; and pieces of them, each with a length byte before it, as the
 * records of one, with the right checksums, so that what is behind them is reached. */
#include "io/crc32c.h"
#include "record_rows.h"
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void add(unsigned char *out, size_t *n, const void *bytes, size_t count)
{
    if (count) memcpy(out + *n, bytes, count);
    *n += count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const x[] = { "x" }, *const two[] = { "x", "t=y" };
    static const char *const raw[] = { "x=uint8(None,2)" };
    keel_dataset_options o = KEEL_DATASET_OPTIONS;
    o.height = o.width = 4;
    rows_read(rows_file(data, size, ".tfrecord"), &o);
    if (!size) return 0;
    unsigned char *out = malloc(17 * size + 16);
    size_t n = 0;
    for (size_t at = 1; at < size;) {
        uint64_t length = data[at++];
        if (length > size - at) length = size - at;
        uint32_t sum = keel_crc32c_masked(keel_crc32c(&length, 8));
        add(out, &n, &length, 8);
        add(out, &n, &sum, 4);
        add(out, &n, data + at, length);
        sum = keel_crc32c_masked(keel_crc32c(data + at, length));
        add(out, &n, &sum, 4);
        at += length;
    }
    o.inputs = data[0] & 1 ? x : two;
    o.n_input = data[0] & 1 ? 1 : 2;
    o.features = raw;
    o.n_feature = data[0] >> 1 & 1;
    o.label_mode = (keel_label_mode)(data[0] >> 2 & 3);
    o.class_count = data[0] >> 4 & 3;
    rows_read(rows_file(out, n, ".tfrecord"), &o);
    free(out);
    return 0;
}
