/* copies_cases.h on tiles in plain C, which take the place of the processor's: this program has its
 * own objects of the kernels, and the linker takes them in place of the library's. */
#include "copies_cases.h"

int main(void)
{
    return run_all(KEEL_CPU_AVX512);
}
