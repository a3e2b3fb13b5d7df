/* NVIDIA's GPUs. They are listed by NVML, which makes no context, and opened by a plug-in that is
 * loaded when the first of them is named. Without a driver or the plug-in they are refused. */
#ifndef KEEL_DEVICE_GPUS_H
#define KEEL_DEVICE_GPUS_H
#include "device/device.h"

enum { KEEL_GPUS_MAX = 64 };

typedef struct keel_gpu {
    char name[96];  /* "NVIDIA H100 80GB HBM3" */
    int64_t memory; /* bytes */
    uint64_t id;    /* the same in every process that sees it; 0: it is not known */
} keel_gpu;

/* Those that cuda:0, cuda:1 ... name, as CUDA_VISIBLE_DEVICES says; returns how many, 0 without a
 * driver. A pure query. */
int keel_gpus_find(keel_gpu out[KEEL_GPUS_MAX]);

/* Whether the text of --devices names GPUs: "cuda" or "cuda:...". */
bool keel_gpus_named(const char *text);
/* What such a text says. */
typedef struct keel_gpus_text {
    bool all;
    uint64_t numbers;   /* a bit for each that is named; those from KEEL_GPUS_MAX on have none */
    const char *beside; /* as below */
} keel_gpus_text;
/* KEEL_EARG: an invalid text. */
keel_status keel_gpus_read(keel_gpus_text *out, const char *text);
/* Opens "cuda" (all), "cuda:0", "cuda:0-3" or "cuda:0,cuda:2"; "cuda:0x4" is one GPU divided into
 * four logical devices, each with a fourth of the memory. *beside: what the text names behind them
 * ("cpu:0-1"); NULL: nothing. KEEL_EARG: an invalid text; KEEL_EDEVICE: what is missing here. Close
 * them by their type. */
keel_status keel_gpus_open(const char *text, keel_device *out[KEEL_GPUS_MAX], int *n,
                           const char **beside);

#endif
