/* copies_cases.h for the kernels that this processor runs. */
#include "copies_cases.h"

int main(void)
{
    return run_all();
}
