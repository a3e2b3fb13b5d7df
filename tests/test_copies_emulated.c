/* copies_cases.h for the kernels on tiles in plain C, too, which take the place of the library's.
 */
#include "copies_cases.h"

int main(void)
{
    return run_all();
}
