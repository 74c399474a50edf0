/* Results that were made elsewhere: lines of JSON, and CSV. */
#include "tests/fuzz/target.h"

#include "harness/run/imported.h"
#include "tests/fuzz/input.h"

int fuzz_target(const uint8_t *data, size_t size)
{
    struct imported imported = {.unit = 100};
    if (imported_read(&imported, input_file(data, size), &fuzz_error) == OK)
        assert(imported.count > 0 && imported.file_count == 1);
    imported_free(&imported);
    return 0;
}
