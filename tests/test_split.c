/* split_cases.h on the tiles of this processor, where it has any. */
#include "split_cases.h"
#include "on_tiles.h"

int main(void)
{
    return on_tiles(run_all);
}
