#include "harness/sweep/log_tail.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { TAIL = 8192 };

static const char error_mark[] = "mtil: error: ";

/* As text, from the start of a line. */
static void read_tail(const char *path, off_t begin, char tail[TAIL + 1])
{
    tail[0] = 0;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0)
        return;
    off_t end = lseek(descriptor, 0, SEEK_END), first = end - TAIL > begin ? end - TAIL : begin;
    ssize_t got = pread(descriptor, tail, TAIL, first);
    close(descriptor);
    tail[got > 0 ? got : 0] = 0;
    char *line = first > begin ? strchr(tail, '\n') : NULL;
    if (line != NULL)
        memmove(tail, line + 1, strlen(line + 1) + 1);
}

const char *log_tail_find(const char *text, const char *beginning)
{
    const char *found = NULL;
    size_t length = strlen(beginning);
    for (const char *line = text; *line != 0;) {
        size_t span = strcspn(line, "\n");
        if (span > 0 && strncmp(line, beginning, length) == 0)
            found = line;
        line += span + (line[span] != 0);
    }
    return found;
}

static void copy_line(const char *line, char message[LOG_TAIL_MESSAGE])
{
    snprintf(message, LOG_TAIL_MESSAGE, "%.*s", line != NULL ? (int)strcspn(line, "\n") : 0, line != NULL ? line : "");
}

void log_tail_error(const char *path, off_t begin, char message[LOG_TAIL_MESSAGE])
{
    char tail[TAIL + 1];
    read_tail(path, begin, tail);
    const char *line = log_tail_find(tail, error_mark);
    copy_line(line != NULL ? line + sizeof error_mark - 1 : log_tail_find(tail, ""), message);
}

void log_tail_line(const char *path, off_t begin, char message[LOG_TAIL_MESSAGE])
{
    char tail[TAIL + 1];
    read_tail(path, begin, tail);
    copy_line(log_tail_find(tail, ""), message);
}
