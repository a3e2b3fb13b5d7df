/* The kernels of winograd_cases.h that this processor can run. */
enum { EMULATED = 0 };
#include "winograd_cases.h"

int main(void)
{
    return run_all();
}
