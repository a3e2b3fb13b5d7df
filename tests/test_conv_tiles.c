/* conv_tiles_cases.h on the tiles of this processor, where it has any. */
#include "conv_tiles_cases.h"
#include "on_tiles.h"

int main(void)
{
    return on_tiles(run_all);
}
