/* rounded_cases.h on tiles in plain C. */
#include "rounded_cases.h"
#include "on_tiles.h"

int main(void)
{
    return on_emulated_tiles(run_all);
}
