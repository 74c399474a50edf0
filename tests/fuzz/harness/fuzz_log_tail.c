/* Logs that a run wrote. What is told of one is a part of one line. */
#include "tests/fuzz/target.h"

#include <string.h>

#include "harness/sweep/log_tail.h"
#include "tests/fuzz/input_file.h"

int fuzz_target(const uint8_t *data, size_t size)
{
    struct input_file file;
    char message[LOG_TAIL_MESSAGE];
    int failed = 0;
    input_file_open(&file, data, size);
    for (off_t begin = 0; begin <= (off_t)size + 1; begin += (off_t)size / 2 + 1) {
        log_tail_error(file.path, begin, message);
        failed |= strlen(message) >= sizeof message || strchr(message, '\n') != NULL;
        log_tail_line(file.path, begin, message);
        failed |= strlen(message) >= sizeof message || strchr(message, '\n') != NULL;
    }
    input_file_close(&file);
    return failed;
}
