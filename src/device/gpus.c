/* See gpus.h. */
#define _GNU_SOURCE /* dladdr */
#include "device/gpus.h"
#include "base/hash.h"
#include "device/cuda_plugin.h"
#include <ctype.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- listed ---------------------------------------------------------------------------------- */

/* NVML's functions that are used here: its header is not needed to build Keel. */
typedef struct nvmlDevice_st *nvml_device;
typedef struct nvml_memory {
    unsigned long long total, free, used;
} nvml_memory;

typedef struct nvml {
    void *library;
    int (*init)(void), (*shutdown)(void), (*count)(unsigned *n);
    int (*handle)(unsigned index, nvml_device *out);
    int (*name)(nvml_device d, char *out, unsigned size);
    int (*uuid)(nvml_device d, char *out, unsigned size);
    int (*memory)(nvml_device d, nvml_memory *out);
} nvml;

static bool load_nvml(nvml *x)
{
    static const char *const name[] = { "nvmlInit_v2",
                                        "nvmlShutdown",
                                        "nvmlDeviceGetCount_v2",
                                        "nvmlDeviceGetHandleByIndex_v2",
                                        "nvmlDeviceGetName",
                                        "nvmlDeviceGetUUID",
                                        "nvmlDeviceGetMemoryInfo" };
    void *const function[] = { &x->init, &x->shutdown, &x->count, &x->handle,
                               &x->name, &x->uuid,     &x->memory };
    x->library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; x->library && i < sizeof name / sizeof *name; i++) {
        void *at = dlsym(x->library, name[i]);
        if (!at) {
            dlclose(x->library);
            x->library = NULL;
        } else
            memcpy(function[i], &at, sizeof at);
    }
    return x->library;
}

/* The GPU that an entry of CUDA_VISIBLE_DEVICES names, by its number or the beginning of its UUID;
 * -1: none, and CUDA hides those behind it, too. */
static int named(const nvml *x, int n, const char *entry, size_t length)
{
    char uuid[96];
    nvml_device d;
    char *end;
    const long number = strtol(entry, &end, 10);
    if (end == entry + length && length > 0) return number >= 0 && number < n ? (int)number : -1;
    for (int i = 0; i < n && length > 4; i++)
        if (!x->handle((unsigned)i, &d) && !x->uuid(d, uuid, sizeof uuid) &&
            !strncmp(uuid, entry, length))
            return i;
    return -1;
}

/* Numbers of the GPUs of the machine, in the order in which CUDA shows them. */
static int find_visible(const nvml *x, int n, int out[KEEL_GPUS_MAX])
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    int count = 0;
    for (int i = 0; !visible && i < n && i < KEEL_GPUS_MAX; i++) out[count++] = i;
    for (const char *p = visible; p && *p && count < KEEL_GPUS_MAX;) {
        const size_t length = strcspn(p, ",");
        const int at = named(x, n, p, length);
        if (at < 0) break;
        out[count++] = at;
        p += length + (p[length] == ',');
    }
    return count;
}

int keel_gpus_find(keel_gpu out[KEEL_GPUS_MAX])
{
    nvml x = { 0 };
    unsigned all = 0;
    int number[KEEL_GPUS_MAX], n = 0;
    if (!load_nvml(&x)) return 0;
    if (!x.init()) {
        if (!x.count(&all)) n = find_visible(&x, all < INT_MAX ? (int)all : 0, number);
        for (int i = 0; i < n; i++) {
            nvml_device d;
            nvml_memory memory = { 0 };
            char uuid[96];
            out[i] = (keel_gpu){ .name = "a GPU that cannot be asked" };
            if (x.handle((unsigned)number[i], &d)) continue;
            if (x.name(d, out[i].name, sizeof out[i].name)) out[i].name[0] = 0;
            if (!x.memory(d, &memory) && memory.total <= INT64_MAX)
                out[i].memory = (int64_t)memory.total;
            if (!x.uuid(d, uuid, sizeof uuid)) out[i].id = keel_fingerprint(uuid, strlen(uuid));
        }
        x.shutdown();
    }
    dlclose(x.library);
    return n;
}

/* ---- the plug-in ----------------------------------------------------------------------------- */

static keel_status no_driver(const char *text)
{
    return keel_fail(KEEL_EDEVICE,
                     "devices '%s': this machine has no driver for NVIDIA GPUs (libcuda.so.1); "
                     "install it, or use --devices cpu",
                     text);
}

/* The folder of the library, or of a program that it is linked into. */
static void own_folder(char out[PATH_MAX])
{
    static const char here;
    Dl_info library;
    snprintf(out, PATH_MAX, ".");
    if (!dladdr(&here, &library) || !library.dli_fname || !strchr(library.dli_fname, '/')) return;
    snprintf(out, PATH_MAX, "%s", library.dli_fname);
    *strrchr(out, '/') = 0;
}

static keel_status load(const char *text, const keel_cuda_plugin **out)
{
    static const char *const below[] = { "", "/keel" };
    char folder[PATH_MAX], path[PATH_MAX + 32] = "", why[KEEL_ERROR_MAX / 2];
    own_folder(folder);
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL), *plugin = NULL;
    if (!driver) return no_driver(text);
    dlclose(driver);
    for (size_t i = 0; i < sizeof below / sizeof *below; i++) {
        snprintf(path, sizeof path, "%s%s/libkeel_cuda.so", folder, below[i]);
        if (!access(path, R_OK)) break;
        *path = 0;
    }
    if (!*path)
        return keel_fail(KEEL_EDEVICE,
                         "devices '%s': the plug-in for GPUs is missing: no libkeel_cuda.so in %s "
                         "or %s/keel; build Keel where nvcc of CUDA 13 is found",
                         text, folder, folder);
    plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!plugin)
        return keel_fail(KEEL_EDEVICE, "devices '%s': the plug-in for GPUs cannot be loaded: %s",
                         text, keel_printable(why, sizeof why, dlerror()));
    const keel_cuda_plugin *p = dlsym(plugin, KEEL_CUDA_PLUGIN);
    if (!p || p->abi != KEEL_CUDA_ABI || strcmp(p->version, KEEL_VERSION) != 0) {
        keel_fail(KEEL_EDEVICE,
                  "devices '%s': %s is of another build of Keel (%s, interface %d; this one is %s, "
                  "%d); install both from one build",
                  text, path, p && p->abi > 0 ? p->version : "?", p ? p->abi : 0, KEEL_VERSION,
                  KEEL_CUDA_ABI);
        dlclose(plugin);
        return KEEL_EDEVICE;
    }
    *out = p; /* it stays loaded: CUDA does not like to be unloaded */
    return KEEL_OK;
}

/* ---- opened ---------------------------------------------------------------------------------- */

bool keel_gpus_named(const char *text)
{
    return text && !strncmp(text, "cuda", 4) && (!text[4] || text[4] == ':' || text[4] == ',');
}

static keel_status bad(const char *text, const char *why)
{
    return keel_fail(KEEL_EARG, "devices '%s': %s", text, why);
}

static const char *read_number(const char *p, int *out)
{
    int n = 0;
    if (!isdigit((unsigned char)*p)) return NULL;
    for (; isdigit((unsigned char)*p); p++) n = n < 100000 ? 10 * n + (*p - '0') : n;
    *out = n;
    return p;
}

/* A device that the text names: part `part` of so many of a GPU. */
typedef struct named_gpu {
    int number, part, parts;
} named_gpu;

/* Cores come behind GPUs, so that lanes are in the order of the text. */
static keel_status take_beside(const char *text, const char *p, const char **beside)
{
    if (strstr(p, "cuda")) return bad(text, "name GPUs before cores: cuda:0-1,cpu:0-1");
    *beside = p;
    return KEEL_OK;
}

/* Those of the text; *n 0: all. */
static keel_status read_text(const char *text, named_gpu out[KEEL_GPUS_MAX], int *n,
                             const char **beside)
{
    const bool all = !strcmp(text, "cuda") || !strncmp(text, "cuda,", 5);
    *n = 0;
    *beside = NULL;
    if (all) return text[4] ? take_beside(text, text + 5, beside) : KEEL_OK;
    for (const char *p = text;; p++) {
        int first, last, parts = 1;
        if (!strncmp(p, "cpu", 3)) return take_beside(text, p, beside);
        if (strncmp(p, "cuda:", 5) != 0)
            return bad(text, "GPUs are named cuda:0-3 or cuda:0,cuda:2, and cores behind them "
                             "cpu:0-1");
        p = read_number(p + 5, &first);
        if (!p) return bad(text, "a number is missing after 'cuda:'");
        last = first;
        if (*p == '-') p = read_number(p + 1, &last);
        if (!p || last < first) return bad(text, "a range is written cuda:0-3");
        if (*p == 'x') p = read_number(p + 1, &parts);
        if (!p || parts < 1) return bad(text, "a GPU is divided by cuda:0x4");
        for (; first <= last; first++) {
            if (parts > KEEL_GPUS_MAX - *n) return bad(text, "more than 64 devices");
            for (int i = 0; i < *n; i++)
                if (out[i].number == first) return bad(text, "a GPU is named twice");
            for (int i = 0; i < parts; i++) out[(*n)++] = (named_gpu){ first, i, parts };
        }
        if (!*p) break;
        if (*p != ',') return bad(text, "GPUs are separated by commas");
    }
    return KEEL_OK;
}

keel_status keel_gpus_read(keel_gpus_text *out, const char *text)
{
    named_gpu named[KEEL_GPUS_MAX];
    keel_gpus_text said = { 0 };
    int n = 0;
    KEEL_TRY(read_text(text, named, &n, &said.beside));
    said.all = n == 0;
    for (int i = 0; i < n; i++)
        if (named[i].number < KEEL_GPUS_MAX) said.numbers |= UINT64_C(1) << named[i].number;
    *out = said;
    return KEEL_OK;
}

static keel_status open_one(const keel_cuda_plugin *plugin, named_gpu g, keel_device **out)
{
    KEEL_TRY(plugin->open(out, g.number));
    if (g.parts == 1) return KEEL_OK;
    (*out)->memory /= g.parts;
    snprintf((*out)->name, sizeof(*out)->name, "cuda:%d.%d", g.number, g.part);
    return KEEL_OK;
}

keel_status keel_gpus_open(const char *text, keel_device *out[KEEL_GPUS_MAX], int *n,
                           const char **beside)
{
    const keel_cuda_plugin *plugin = NULL;
    named_gpu named[KEEL_GPUS_MAX];
    int count = 0, opened = 0, there = 0;
    KEEL_TRY(read_text(text, named, &count, beside));
    KEEL_TRY(load(text, &plugin));
    keel_status s = plugin->count(&there);
    if (s < 0) return keel_fail_within(s, "devices '%s'", text);
    if (there > KEEL_GPUS_MAX) there = KEEL_GPUS_MAX;
    for (int i = 0; count == 0 && i < there; i++) named[i] = (named_gpu){ i, 0, 1 };
    if (count == 0) count = there;
    for (; s >= 0 && opened < count; opened += s >= 0) {
        if (named[opened].number >= there)
            s = keel_fail(KEEL_EDEVICE,
                          "devices '%s': there is no cuda:%d; 'keel devices' lists %d", text,
                          named[opened].number, there);
        else
            s = open_one(plugin, named[opened], &out[opened]);
    }
    if (s < 0)
        while (opened > 0) opened--, out[opened]->type->close(out[opened]);
    *n = opened;
    return s;
}
