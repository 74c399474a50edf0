#include "harness/terminal/screen.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <utf8proc.h>

#include "core/scope.h"

enum { LOOK_MS = 200 };

size_t screen_fitting(const char *line, size_t size, size_t columns)
{
    size_t bytes = 0, column = 0;
    while (bytes < size) {
        utf8proc_int32_t code;
        utf8proc_ssize_t length =
            utf8proc_iterate((const utf8proc_uint8_t *)line + bytes, (utf8proc_ssize_t)(size - bytes), &code);
        if (length <= 0)
            break;
        column += (size_t)utf8proc_charwidth(code);
        if (column > columns)
            break;
        bytes += (size_t)length;
    }
    return bytes;
}

void screen_fit(struct text *fitted, const char *text, size_t columns, size_t rows)
{
    for (size_t row = 0; row < rows && *text; row++) {
        size_t size = strcspn(text, "\n");
        text_add_bytes(fitted, text, screen_fitting(text, size, columns));
        text += size;
        text += *text == '\n';
        if (row + 1 < rows && *text)
            text_add(fitted, "\n");
    }
}

static struct winsize size_of(FILE *stream)
{
    struct winsize size = {0};
    int descriptor = fileno(stream);
    return descriptor >= 0 && isatty(descriptor) && ioctl(descriptor, TIOCGWINSZ, &size) == 0 ? size
                                                                                              : (struct winsize){0};
}

bool screen_obeys(FILE *stream)
{
    const char *kind = getenv("TERM");
    return isatty(fileno(stream)) && (kind == NULL || strcmp(kind, "dumb") != 0);
}

int screen_columns(FILE *stream)
{
    return size_of(stream).ws_col;
}

/* From the upper left corner, each line's rest and the rest of the terminal cleared. */
static void draw(const struct screen *screen, const char *text, const struct winsize *size)
{
    SCOPED(text_free) struct text fitted = {0};
    screen_fit(&fitted, text, size->ws_col, size->ws_row);
    fputs("\033[H", screen->out);
    for (const char *at = fitted.data ? fitted.data : ""; *at; at++)
        if (*at == '\n')
            fputs("\033[K\n", screen->out);
        else
            fputc(*at, screen->out);
    fputs("\033[K\033[J", screen->out);
}

void screen_show(struct screen *screen, const char *text)
{
    bool differs = !screen->shown.data || strcmp(screen->shown.data, text) != 0;
    const struct winsize size = size_of(screen->out);
    if (size.ws_col > 0 && size.ws_row > 0 && screen_obeys(screen->out))
        draw(screen, text, &size);
    else if (differs)
        fputs(text, screen->out);
    if (differs) {
        text_clear(&screen->shown);
        text_add(&screen->shown, "%s", text);
    }
    fflush(screen->out);
}

/* A signal ends poll early; one just before poll is noticed at the next look. */
bool screen_wait(const struct screen *screen, double seconds, const struct stop *stop)
{
    for (int left = (int)(seconds * 1000); left > 0 && !stop_requested(stop); left -= LOOK_MS)
        poll(NULL, 0, left < LOOK_MS ? left : LOOK_MS);
    return !stop_requested(stop) && !ferror(screen->out);
}

void screen_close(struct screen *screen)
{
    if (screen_obeys(screen->out))
        fputc('\n', screen->out);
    fflush(screen->out);
    text_free(&screen->shown);
}
