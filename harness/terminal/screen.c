#include "harness/terminal/screen.h"

#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <utf8proc.h>

#define ENTER "\033[?1049h\033[?25l" /* the alternate screen, no cursor */
#define LEAVE "\033[?25h\033[?1049l"

enum { COLUMNS = 80, ROWS = 24, LOOK_MS = 200 };

/* Reads keys at once and without echo. Disables Ctrl-Z, which would leave the terminal in this state. */
static void take_keys(struct screen *screen)
{
    struct termios raw;
    if (!isatty(fileno(screen->in)) || tcgetattr(fileno(screen->in), &screen->before) != 0)
        return;
    raw = screen->before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    raw.c_cc[VSUSP] = _POSIX_VDISABLE;
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    screen->keys = tcsetattr(fileno(screen->in), TCSAFLUSH, &raw) == 0;
}

void screen_open(struct screen *screen, FILE *in, FILE *out)
{
    *screen = (struct screen){.in = in, .out = out, .whole = isatty(fileno(out)) != 0};
    if (!screen->whole)
        return;
    take_keys(screen);
    fputs(ENTER, out);
}

/* The number of leading bytes of line that fill at most columns. */
static size_t fitting_bytes(const char *line, size_t size, size_t columns)
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
        text_add_bytes(fitted, text, fitting_bytes(text, size, columns));
        text += size;
        text += *text == '\n';
        if (row + 1 < rows && *text)
            text_add(fitted, "\n");
    }
}

int screen_columns(FILE *stream)
{
    struct winsize size;
    int descriptor = fileno(stream);
    if (descriptor < 0 || !isatty(descriptor) || ioctl(descriptor, TIOCGWINSZ, &size) != 0)
        return 0;
    return size.ws_col;
}

static void draw(const struct screen *screen, const char *text)
{
    struct winsize size = {0};
    struct text fitted = {0};
    bool known = ioctl(fileno(screen->out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0;
    screen_fit(&fitted, text, known ? size.ws_col : COLUMNS, known ? size.ws_row : ROWS);
    fputs("\033[H", screen->out);
    for (const char *at = fitted.data ? fitted.data : ""; *at; at++)
        if (*at == '\n')
            fputs("\033[K\n", screen->out);
        else
            fputc(*at, screen->out);
    fputs("\033[K\033[J", screen->out);
    text_free(&fitted);
}

void screen_show(struct screen *screen, const char *text)
{
    bool differs = !screen->shown.data || strcmp(screen->shown.data, text) != 0;
    if (screen->whole)
        draw(screen, text);
    else if (differs)
        fputs(text, screen->out);
    if (differs) {
        text_clear(&screen->shown);
        text_add(&screen->shown, "%s", text);
    }
    fflush(screen->out);
}

/* Whether q was pressed. */
static bool read_keys(struct screen *screen)
{
    char keys[64];
    ssize_t count = read(fileno(screen->in), keys, sizeof keys);
    if (count <= 0)
        screen->keys = false; /* the terminal is gone; signals still end the program */
    return count > 0 && (memchr(keys, 'q', (size_t)count) || memchr(keys, 'Q', (size_t)count));
}

/* A signal ends poll early; one just before poll is noticed at the next update. */
bool screen_wait(struct screen *screen, double seconds, const struct stop *stop)
{
    for (int left = (int)(seconds * 1000); !stop_requested(stop); left -= LOOK_MS) {
        struct pollfd input = {.fd = screen->keys ? fileno(screen->in) : -1, .events = POLLIN};
        if (poll(&input, 1, left < LOOK_MS ? left : LOOK_MS) > 0)
            return !read_keys(screen);
        if (left <= LOOK_MS)
            break;
    }
    return !stop_requested(stop) && !ferror(screen->out);
}

void screen_close(struct screen *screen)
{
    if (screen->keys)
        tcsetattr(fileno(screen->in), TCSAFLUSH, &screen->before);
    if (screen->whole) {
        fputs(LEAVE, screen->out);
        if (screen->shown.data)
            fputs(screen->shown.data, screen->out);
    }
    fflush(screen->out);
    text_free(&screen->shown);
}
