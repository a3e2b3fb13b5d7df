/* The kernels of split_cases.h on tiles in plain C, which give the bits of the processor's: this
 * program brings its own _split_amx.c, and the linker takes it in place of the library's. */
#define KEEL_TILES_EMULATED
#pragma GCC optimize("O3")
#include "split_cases.h"
#include "ops/x86/_split_amx.c"

int main(void)
{
    return run_all();
}
