/* The kernels of winograd_cases.h that use tiles, on tiles in plain C. */
enum { EMULATED = 1 };
#include "winograd_cases.h"
#include "on_tiles.h"

int main(void)
{
    return on_emulated_tiles(run_all);
}
