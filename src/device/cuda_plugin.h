/* Between libkeel and libkeel_cuda.so, its plug-in for NVIDIA's GPUs. The plug-in is built of the
 * same sources and uses libkeel's own structs, so both must be of one build: KEEL_CUDA_ABI grows
 * with any change of device.h or of a call (ops/op.h). */
#ifndef KEEL_DEVICE_CUDA_PLUGIN_H
#define KEEL_DEVICE_CUDA_PLUGIN_H
#include "device/device.h"

enum { KEEL_CUDA_ABI = 11 };

typedef struct keel_cuda_plugin {
    int abi;             /* KEEL_CUDA_ABI */
    const char *version; /* of Keel */
    /* The GPUs that CUDA shows to this process. KEEL_EDEVICE: none, and why. */
    keel_status (*count)(int *out);
    keel_status (*open)(keel_device **out, int number);
} keel_cuda_plugin;

#define KEEL_CUDA_PLUGIN "keel_cuda" /* the name of the plug-in's keel_cuda_plugin */

#endif
