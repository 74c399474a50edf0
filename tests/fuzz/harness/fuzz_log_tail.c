/* Logs that a run wrote. What is told of one is a part of one line. */
#include "tests/fuzz/target.h"

#include <string.h>

#include "harness/sweep/child.h"
#include "tests/fuzz/input.h"

int fuzz_target(const uint8_t *data, size_t size)
{
    char message[LOG_TAIL_MESSAGE];
    const char *path = input_file(data, size);
    for (off_t begin = 0; begin <= (off_t)size + 1; begin += (off_t)size / 2 + 1) {
        log_tail_error(path, begin, message);
        assert(strlen(message) < sizeof message && strchr(message, '\n') == NULL);
        log_tail_line(path, begin, message);
        assert(strlen(message) < sizeof message && strchr(message, '\n') == NULL);
    }
    return 0;
}
