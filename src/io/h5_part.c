/* See h5_part.h. After a failure libhdf5 is told that all is well: it would otherwise try again
 * whenever it closes a file, and at the end of the process.
 * Source: "HDF5 Virtual File Layer", the HDF Group. */
#include "io/h5_part.h"
#include <stdlib.h>
#include <string.h>
#if __has_include(<H5FDdevelop.h>)
#include <H5FDdevelop.h> /* from HDF5 1.14 on */
#endif

typedef struct driven {
    H5FD_t base; /* libhdf5's, and first */
    keel_h5_part *part;
    haddr_t end, allocated;
} driven;

#define ADDRESS_MAX ((haddr_t)1 << 62)

static driven *of(H5FD_t *file)
{
    return (driven *)file;
}

static const driven *seen(const H5FD_t *file)
{
    return (const driven *)file;
}

static bool failed(const driven *d)
{
    return d->part->failure.status < 0;
}

static void take(driven *d, keel_status s)
{
    if (s < 0) keel_failure_take(&d->part->failure, s);
}

static H5FD_t *open_part(const char *name, unsigned flags, hid_t access, haddr_t most)
{
    keel_h5_part *const *part = H5Pget_driver_info(access);
    driven *d = part ? calloc(1, sizeof *d) : NULL; /* libhdf5's own memory is not counted either */
    (void)name, (void)flags, (void)most;
    if (!d) return NULL;
    d->part = *part;
    return &d->base;
}

static herr_t close_part(H5FD_t *file)
{
    driven *d = of(file);
    d->part->n_bytes = d->end;
    free(d);
    return 0;
}

/* As of libhdf5's own drivers for files, so that it lays out the file as they do. */
static herr_t features(const H5FD_t *file, unsigned long *out)
{
    (void)file;
    *out = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
           H5FD_FEAT_AGGREGATE_SMALLDATA;
    return 0;
}

static haddr_t get_allocated(const H5FD_t *file, H5FD_mem_t kind)
{
    (void)kind;
    return seen(file)->allocated;
}

static herr_t set_allocated(H5FD_t *file, H5FD_mem_t kind, haddr_t end)
{
    (void)kind;
    of(file)->allocated = end;
    return 0;
}

static haddr_t get_end(const H5FD_t *file, H5FD_mem_t kind)
{
    (void)kind;
    return seen(file)->end;
}

static herr_t read_part(H5FD_t *file, H5FD_mem_t kind, hid_t how, haddr_t at, size_t n, void *data)
{
    driven *d = of(file);
    const size_t there = at >= d->end ? 0 : d->end - at < n ? (size_t)(d->end - at) : n;
    (void)kind, (void)how;
    memset((char *)data + there, 0, n - there);
    if (failed(d))
        memset(data, 0, there);
    else
        take(d, keel_new_file_read_at(d->part->file, d->part->at + (int64_t)at, data, there));
    return 0;
}

static herr_t write_part(H5FD_t *file, H5FD_mem_t kind, hid_t how, haddr_t at, size_t n,
                         const void *data)
{
    driven *d = of(file);
    (void)kind, (void)how;
    if (at > ADDRESS_MAX || n > ADDRESS_MAX - at) return -1;
    if (!failed(d))
        take(d, keel_new_file_write_at(d->part->file, d->part->at + (int64_t)at, data, n));
    if (at + n > d->end) d->end = at + n;
    return 0;
}

static herr_t truncate_part(H5FD_t *file, hid_t how, hbool_t closing)
{
    driven *d = of(file);
    (void)how, (void)closing;
    if (d->end == d->allocated) return 0;
    d->end = d->allocated;
    if (!failed(d)) take(d, keel_new_file_resize(d->part->file, d->part->at + (int64_t)d->end));
    return 0;
}

static const H5FD_class_t DRIVER = {
#ifdef H5FD_CLASS_VERSION
    .version = H5FD_CLASS_VERSION,
    .value = 512, /* those below are registered ones */
#endif
    .name = "part",
    .maxaddr = ADDRESS_MAX,
    .fc_degree = H5F_CLOSE_WEAK,
    .fapl_size = sizeof(keel_h5_part *),
    .open = open_part,
    .close = close_part,
    .query = features,
    .get_eoa = get_allocated,
    .set_eoa = set_allocated,
    .get_eof = get_end,
    .read = read_part,
    .write = write_part,
    .truncate = truncate_part,
    .fl_map = H5FD_FLMAP_DICHOTOMY,
};

keel_status keel_h5_part_use(hid_t access, keel_h5_part *p)
{
    static hid_t driver = -1;
    if (driver < 0 || H5Iis_valid(driver) <= 0) driver = H5FDregister(&DRIVER);
    if (driver < 0 || H5Pset_driver(access, driver, &p) < 0)
        return keel_fail(KEEL_EIO, "libhdf5 takes no driver for files");
    return KEEL_OK;
}
