/* copies_cases.h on the tiles of this processor, where it has any. */
#include "copies_cases.h"

int main(void)
{
    return run_all(KEEL_CPU_AMX);
}
