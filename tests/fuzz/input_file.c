#include "tests/fuzz/input_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

void input_file_open(struct input_file *file, const uint8_t *data, size_t size)
{
    file->descriptor = memfd_create("input", MFD_CLOEXEC);
    for (size_t written = 0; written < size;) {
        ssize_t part = write(file->descriptor, data + written, size - written);
        if (part <= 0)
            abort();
        written += (size_t)part;
    }
    if (file->descriptor < 0)
        abort();
    snprintf(file->path, sizeof file->path, "/proc/self/fd/%d", file->descriptor);
}

void input_file_close(struct input_file *file)
{
    close(file->descriptor);
}
