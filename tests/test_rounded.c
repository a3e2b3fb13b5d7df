/* rounded_cases.h on this processor. */
#include "rounded_cases.h"

int main(void)
{
    return run_all();
}
