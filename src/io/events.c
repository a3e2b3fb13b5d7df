/* See events.h. Numbers of fields are those of event.proto, summary.proto, tensor.proto and
 * graph.proto of TensorFlow. */
#include "io/events.h"
#include "base/memory.h"
#include "io/crc32c.h"
#include "io/file.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct keel_events {
    FILE *file;
    char *path;
};

/* ---- protocol buffers ------------------------------------------------------------------------ */

typedef struct bytes {
    unsigned char *at;
    size_t n, room;
    bool failed;
} bytes;

static void add(bytes *b, const void *data, size_t n)
{
    if (b->failed || n > SIZE_MAX / 2 - b->n) {
        b->failed = true;
        return;
    }
    if (b->n + n > b->room) {
        const size_t room = 2 * (b->n + n);
        void *p = keel_grow(b->at, room, 1);
        if (!p) {
            b->failed = true;
            return;
        }
        b->at = p;
        b->room = room;
    }
    if (n) memcpy(b->at + b->n, data, n);
    b->n += n;
}

static void varint(bytes *b, uint64_t v)
{
    unsigned char c[10];
    size_t n = 0;
    for (; v > 127; v >>= 7) c[n++] = (unsigned char)(v | 128);
    c[n++] = (unsigned char)v;
    add(b, c, n);
}

static void put_int(bytes *b, int field, int64_t v)
{
    varint(b, (uint64_t)field << 3);
    varint(b, (uint64_t)v);
}

static void put_double(bytes *b, int field, double v)
{
    varint(b, (uint64_t)field << 3 | 1);
    add(b, &v, sizeof v);
}

static void put_bytes(bytes *b, int field, const void *data, size_t n)
{
    varint(b, (uint64_t)field << 3 | 2);
    varint(b, n);
    add(b, data, n);
}

static void put_text(bytes *b, int field, const char *text)
{
    put_bytes(b, field, text, strlen(text));
}

/* A message inside another; `inner` is freed. */
static void put_message(bytes *b, int field, bytes *inner)
{
    if (inner->failed) b->failed = true;
    put_bytes(b, field, inner->at, inner->failed ? 0 : inner->n);
    keel_free(inner->at);
    *inner = (bytes){ 0 };
}

/* ---- records --------------------------------------------------------------------------------- */

static keel_status bad_file(const keel_events *e)
{
    return keel_fail(KEEL_EIO, "%s: %s", e->path, strerror(errno ? errno : EIO));
}

/* Writes one event with `field` of event.proto, and frees it. */
static keel_status write_event(keel_events *e, int64_t step, int field, bytes *content)
{
    bytes b = { 0 };
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    put_double(&b, 1, (double)t.tv_sec + 1e-9 * (double)t.tv_nsec);
    if (step) put_int(&b, 2, step);
    put_message(&b, field, content);
    keel_status s = b.failed ? KEEL_ENOMEM : KEEL_OK;
    if (s >= 0) {
        const uint64_t n = b.n;
        const uint32_t crc_n = keel_crc32c_masked(keel_crc32c(&n, sizeof n));
        const uint32_t crc = keel_crc32c_masked(keel_crc32c(b.at, b.n));
        errno = 0;
        if (fwrite(&n, sizeof n, 1, e->file) != 1 || fwrite(&crc_n, 4, 1, e->file) != 1 ||
            fwrite(b.at, 1, b.n, e->file) != b.n || fwrite(&crc, 4, 1, e->file) != 1 ||
            fflush(e->file))
            s = bad_file(e);
    }
    keel_free(b.at);
    return s;
}

keel_status keel_events_create(keel_events **out, const char *folder)
{
    static const char version[] = "brain.Event:2";
    static int made; /* so that two files of one second differ */
    char host[80] = "host";
    keel_text path = { 0 };
    bytes content = { 0 };
    keel_status s = KEEL_ENOMEM;
    keel_events *e = keel_calloc(1, sizeof *e);
    if (!e) return s;
    gethostname(host, sizeof host - 1);
    keel_text_add(&path, "%s/events.out.tfevents.%010lld.%s.%ld.%d", folder, (long long)time(NULL),
                  host, (long)getpid(), __atomic_fetch_add(&made, 1, __ATOMIC_RELAXED));
    if (path.failed) goto out;
    e->path = path.data;
    path = (keel_text){ 0 };
    if ((s = keel_file_folders(e->path)) < 0) goto out;
    errno = 0;
    if (!(e->file = fopen(e->path, "wb"))) {
        s = bad_file(e);
        goto out;
    }
    add(&content, version, sizeof version - 1);
    if ((s = write_event(e, 0, 3, &content)) < 0) goto out;
    *out = e;
    return KEEL_OK;
out:
    keel_text_free(&path);
    keel_events_close(e);
    return s;
}

keel_status keel_events_close(keel_events *e)
{
    keel_status s = KEEL_OK;
    if (!e) return s;
    errno = 0;
    if (e->file && fclose(e->file)) s = bad_file(e);
    keel_free(e->path);
    keel_free(e);
    return s;
}

/* ---- summaries ------------------------------------------------------------------------------- */

enum { DT_FLOAT = 1, DT_DOUBLE = 2, DT_STRING = 7 };
enum { DATA_SCALAR = 1, DATA_TENSOR = 2, DATA_BLOBS = 3 };

/* The head of a tensor.proto: type and shape. */
static bytes begin_tensor(int type, int rank, const int64_t *dim)
{
    bytes tensor = { 0 }, shape = { 0 };
    for (int i = 0; i < rank; i++) {
        bytes d = { 0 };
        put_int(&d, 1, dim[i]);
        put_message(&shape, 2, &d);
    }
    put_int(&tensor, 1, type);
    put_message(&tensor, 2, &shape);
    return tensor;
}

static keel_status write_tensor(keel_events *e, const char *tag, int64_t step, const char *plugin,
                                int data_class, bytes *tensor)
{
    bytes data = { 0 }, metadata = { 0 }, value = { 0 }, summary = { 0 };
    put_text(&data, 1, plugin);
    put_message(&metadata, 1, &data);
    put_int(&metadata, 4, data_class);
    put_text(&value, 1, tag);
    put_message(&value, 8, tensor);
    put_message(&value, 9, &metadata);
    put_message(&summary, 1, &value);
    return write_event(e, step, 5, &summary);
}

keel_status keel_events_scalar(keel_events *e, const char *tag, int64_t step, double value)
{
    const float x = (float)value;
    bytes tensor = begin_tensor(DT_FLOAT, 0, NULL);
    put_bytes(&tensor, 4, &x, sizeof x);
    return write_tensor(e, tag, step, "scalars", DATA_SCALAR, &tensor);
}

static double real_at(keel_dtype real, const void *value, int64_t i)
{
    return real == KEEL_FLOAT64 ? ((const double *)value)[i] : (double)((const float *)value)[i];
}

keel_status keel_events_histogram(keel_events *e, const char *tag, int64_t step, keel_dtype real,
                                  const void *value, int64_t n)
{
    enum { BUCKETS = 30 };
    double bucket[BUCKETS][3] = { 0 }, least = INFINITY, most = -INFINITY;
    for (int64_t i = 0; i < n; i++) {
        const double v = real_at(real, value, i);
        if (!isfinite(v)) continue;
        least = fmin(least, v);
        most = fmax(most, v);
    }
    if (!(least <= most)) return KEEL_OK; /* nothing to show */
    const int64_t buckets = least < most ? BUCKETS : 1;
    const double width = least < most ? (most - least) / BUCKETS : 1;
    if (least == most) least -= 0.5;
    for (int k = 0; k < buckets; k++) {
        bucket[k][0] = least + width * k;
        bucket[k][1] = k == BUCKETS - 1 ? most : least + width * (k + 1);
    }
    for (int64_t i = 0; i < n; i++) {
        const double v = real_at(real, value, i);
        if (!isfinite(v)) continue;
        const int64_t k = (int64_t)((v - least) / width);
        bucket[k < 0 ? 0 : k >= buckets ? buckets - 1 : k][2]++;
    }
    bytes tensor = begin_tensor(DT_DOUBLE, 2, (int64_t[]){ buckets, 3 });
    put_bytes(&tensor, 4, bucket, (size_t)buckets * sizeof *bucket);
    return write_tensor(e, tag, step, "histograms", DATA_TENSOR, &tensor);
}

keel_status keel_events_images(keel_events *e, const char *tag, int64_t step, int64_t width,
                               int64_t height, const keel_events_image *image, int n)
{
    char number[24];
    bytes tensor = begin_tensor(DT_STRING, 1, (int64_t[]){ n + 2 });
    snprintf(number, sizeof number, "%lld", (long long)width);
    put_text(&tensor, 8, number);
    snprintf(number, sizeof number, "%lld", (long long)height);
    put_text(&tensor, 8, number);
    for (int i = 0; i < n; i++) put_bytes(&tensor, 8, image[i].png, image[i].n_bytes);
    return write_tensor(e, tag, step, "images", DATA_BLOBS, &tensor);
}

keel_status keel_events_graph(keel_events *e, const keel_events_node *node, int n)
{
    bytes graph = { 0 };
    for (int i = 0; i < n; i++) {
        bytes b = { 0 };
        put_text(&b, 1, node[i].name);
        put_text(&b, 2, node[i].op);
        for (int k = 0; k < node[i].n_input; k++) put_text(&b, 3, node[i].input[k]);
        put_message(&graph, 1, &b);
    }
    return write_event(e, 0, 4, &graph);
}
