/* What a kernel has of its device. The emulator has no streams: a launch has ended when it returns.
 * Doubles of libraries check that they are given the one that it shows. A program with the real
 * device (device.cu) has that one's. */
#include "emulator.h"
#include "machine.h"
#include "ops/cuda/_kernel.h"

namespace
{
cuda_faults faults;
uint32_t allocated_at; /* releases, and one */
} // namespace

__attribute__((weak)) cudaStream_t keel_cuda_stream(const keel_call *c)
{
    (void)c;
    return emu_only_stream();
}

__attribute__((weak)) cuda_faults *keel_cuda_faults(const keel_call *c)
{
    (void)c;
    if (allocated_at == emu.releases + 1) return &faults;
    allocated_at = emu.releases + 1;
    faults = {};
    faults.word = static_cast<cuda_word *>(emu_allocate(sizeof(cuda_word), "faults"));
    faults.on_host = faults.word;
    emu_copy_in(faults.word, &CUDA_NO_FAULT, sizeof CUDA_NO_FAULT);
    return &faults;
}

keel_status emu_data_fault(void)
{
    return allocated_at == emu.releases + 1 ? cuda_faults_take(&faults) : KEEL_OK;
}

keel_device *emu_device(void)
{
    return nullptr;
}
