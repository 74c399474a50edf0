#include "core/coprocess.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/file.h"
#include "core/process.h"
#include "core/text.h"

enum {
    LOOK_MS = 100,     /* how often stop requests are looked for */
    READ_SECONDS = 60, /* after which a program that reads nothing is given up */
    PART = 1 << 16,
    EXCERPT = 60 /* characters of a line in a message */
};

struct coprocess {
    char *name, *log;
    off_t begin; /* of the log */
    pid_t id;    /* 0: it has ended, and was waited for */
    int ended;   /* its wait status then */
    int input, output;
    const struct stop *stop;
    struct text received; /* what was read and not yet returned begins at `taken` */
    size_t taken, looked; /* looked: no newline before */
    bool at_end;          /* of its output */
};

/* --- Its end --- */

static bool has_ended(struct coprocess *c)
{
    if (c->id != 0 && waitpid(c->id, &c->ended, WNOHANG) == c->id)
        c->id = 0;
    return c->id == 0;
}

status coprocess_explain(const struct coprocess *c, struct error *error)
{
    char line[LOG_TAIL_MESSAGE];
    log_tail_line(c->log, c->begin, line);
    size_t used = strlen(error->message);
    if (*line != 0 && used < sizeof error->message)
        snprintf(error->message + used, sizeof error->message - used, "; its last line in %s: %s", c->log, line);
    return error->code;
}

static status ended_early(struct coprocess *c, struct error *error)
{
    bool killed = WIFSIGNALED(c->ended);
    error_set(error, ERROR_IO, "%s: ended by itself (%s %d), expected an answer", c->name,
              killed ? "signal" : "exit status", killed ? WTERMSIG(c->ended) : WEXITSTATUS(c->ended));
    return coprocess_explain(c, error);
}

static status closed(struct coprocess *c, const char *what, struct error *error)
{
    for (double until = clock_seconds() + 1; !has_ended(c) && clock_seconds() < until;)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    if (has_ended(c))
        return ended_early(c, error);
    error_set(error, ERROR_IO, "%s: closed its standard %s", c->name, what);
    return coprocess_explain(c, error);
}

/* --- Start --- */

status coprocess_start(struct coprocess **result, const struct coprocess_settings *settings, struct error *error)
{
    int to[2], from[2], log;
    TRY(file_open_own(AT_FDCWD, settings->log, O_WRONLY | O_APPEND, &log, error));
    struct coprocess *c = xcalloc(1, sizeof *c);
    *c = (struct coprocess){.name = xstrdup(settings->name),
                            .log = xstrdup(settings->log),
                            .begin = lseek(log, 0, SEEK_END),
                            .input = -1,
                            .output = -1,
                            .stop = settings->stop};
    /* sockets, since a write to a pipe whose reader is gone raises a signal */
    status outcome = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, to) == 0
                         ? OK
                         : error_errno(error, errno, "%s: cannot be started", c->name);
    if (outcome == OK && pipe2(from, O_CLOEXEC) != 0) {
        outcome = error_errno(error, errno, "%s: cannot be started", c->name);
        close(to[0]);
        close(to[1]);
    } else if (outcome == OK) {
        c->input = to[0];
        c->output = from[0];
        outcome = process_start(&(struct process_start){.arguments = (char *const *)settings->arguments,
                                                        .input = to[1],
                                                        .output = from[1],
                                                        .errors = log,
                                                        .at_parents_end = SIGKILL},
                                &c->id, error);
        close(to[1]);
        close(from[1]);
        c->id = outcome == OK ? c->id : 0;
    }
    close(log);
    if (outcome != OK) {
        coprocess_close(c);
        return outcome;
    }
    fcntl(c->input, F_SETFL, O_NONBLOCK);
    fcntl(c->output, F_SETFL, O_NONBLOCK);
    *result = c;
    return OK;
}

/* --- Lines --- */

/* Reads what is there. What was returned is dropped before. */
static status read_some(struct coprocess *c, struct error *error)
{
    char part[PART];
    ssize_t got = read(c->output, part, sizeof part);
    if (got < 0)
        return errno == EAGAIN || errno == EINTR ? OK
                                                 : error_errno(error, errno, "%s: its output cannot be read", c->name);
    c->at_end = got == 0;
    if (c->taken > 0) {
        c->received.size -= c->taken;
        memmove(c->received.data, c->received.data + c->taken, c->received.size + 1);
        c->looked -= c->taken;
        c->taken = 0;
    }
    text_add_bytes(&c->received, part, (size_t)got);
    if (c->received.size <= COPROCESS_LINE)
        return OK;
    error_set(error, ERROR_FORMAT, "%s: expected a line of at most %zu MB, found more", c->name, COPROCESS_LINE >> 20);
    return coprocess_explain(c, error);
}

static status wait_for(const struct coprocess *c, bool sends, struct error *error)
{
    struct pollfd fds[2] = {{.fd = c->at_end ? -1 : c->output, .events = POLLIN},
                            {.fd = sends ? c->input : -1, .events = POLLOUT}};
    return poll(fds, 2, LOOK_MS) >= 0 || errno == EINTR
               ? OK
               : error_errno(error, errno, "%s: cannot be waited for", c->name);
}

/* Reads meanwhile, so that neither waits for the other's reader. */
static status send_line(struct coprocess *c, const char *line, struct error *error)
{
    size_t length = strlen(line), sent = 0;
    double begin = clock_seconds();
    SCOPED(text_free) struct text whole = {0};
    text_add_bytes(&whole, line, length);
    text_add(&whole, "\n");
    status result = OK;
    while (result == OK && sent < length + 1) {
        ssize_t written = send(c->input, whole.data + sent, length + 1 - sent, MSG_NOSIGNAL);
        sent += written > 0 ? (size_t)written : 0;
        if (written < 0 && errno != EAGAIN && errno != EINTR)
            result = closed(c, "input, expected it to read", error);
        else if (written < 0 && clock_seconds() - begin > READ_SECONDS)
            result = error_set(error, ERROR_IO, "%s: has not read its standard input for %d s", c->name, READ_SECONDS);
        else if (written < 0)
            result = wait_for(c, true, error);
        if (written < 0 && !c->at_end)
            NEXT(result, read_some(c, error));
    }
    return result;
}

/* The line that was received; NULL: it is not whole. */
static const char *take_line(struct coprocess *c)
{
    char *begin = c->received.data != NULL ? c->received.data + c->taken : NULL;
    char *end = begin != NULL ? memchr(c->received.data + c->looked, '\n', c->received.size - c->looked) : NULL;
    c->looked = c->received.size;
    if (end == NULL)
        return NULL;
    *end = 0;
    c->looked = c->taken = (size_t)(end - c->received.data) + 1;
    return strlen(begin) == (size_t)(end - begin) ? begin : "a line with a NUL"; /* which is no JSON */
}

static status receive_line(struct coprocess *c, double seconds, const char **line, struct error *error)
{
    double begin = clock_seconds();
    while ((*line = take_line(c)) == NULL) {
        if (c->at_end)
            return closed(c, "output, expected an answer", error);
        if (stop_requested(c->stop))
            return error_set(error, ERROR_STOPPED, "stopped while %s was at work", c->name);
        if (seconds > 0 && clock_seconds() - begin > seconds) {
            error_set(error, ERROR_IO, "%s: has not answered for %g s", c->name, seconds);
            return coprocess_explain(c, error);
        }
        TRY(wait_for(c, false, error));
        TRY(read_some(c, error));
    }
    return OK;
}

/* --- Messages --- */

status coprocess_send(struct coprocess *c, json_t *message, struct error *error)
{
    OWNED char *line = message != NULL ? json_dumps(message, JSON_COMPACT) : NULL;
    json_decref(message);
    if (line == NULL)
        return error_set(error, ERROR_FORMAT, "%s: a name or path that is not UTF-8 cannot be sent to it", c->name);
    return send_line(c, line, error);
}

const char *coprocess_text(const json_t *message, const char *key)
{
    const char *text = json_string_value(json_object_get(message, key));
    return text != NULL ? text : "";
}

status coprocess_receive(struct coprocess *c, double seconds, json_t **message, struct error *error)
{
    const char *line;
    *message = NULL;
    TRY(receive_line(c, seconds, &line, error));
    *message = json_loads(line, 0, NULL);
    const char *type = coprocess_text(*message, "type");
    const char *why = coprocess_text(*message, "message");
    if (strcmp(type, "error") == 0)
        error_set(error, ERROR_IO, "%s: %s", c->name, *why != 0 ? why : "reports an error without a message");
    else if (*type == 0)
        error_set(error, ERROR_FORMAT, "%s: expected one line with an object of JSON that has a \"type\", found %.*s%s",
                  c->name, EXCERPT, *line != 0 ? line : "an empty one", strlen(line) > EXCERPT ? "…" : "");
    else
        return OK;
    json_decref(*message);
    *message = NULL;
    return coprocess_explain(c, error);
}

char *coprocess_command(const struct options *options)
{
    struct text words = {0};
    text_add(&words, "%s", "");
    for (size_t i = 0; i < options_list_size(options, "command"); i++)
        text_add(&words, "%s%s", i > 0 ? " " : "", options_list_item(options, "command", i));
    return words.data;
}

static json_t *value_of(const char *text)
{
    json_t *value = json_loads(text, JSON_DECODE_ANY, NULL);
    if (json_is_number(value) || json_is_boolean(value))
        return value;
    json_decref(value);
    return json_string(text);
}

json_t *coprocess_options(const struct options *options)
{
    static const char prefix[] = "options.";
    json_t *values = json_object();
    for (const struct option *option = options_table(options); option->name != NULL; option++)
        if (strncmp(option->name, prefix, sizeof prefix - 1) == 0)
            json_object_set_new(values, option->name + sizeof prefix - 1,
                                value_of(options_as_text(options, option->name)));
    return values;
}

void coprocess_finish(struct coprocess *c)
{
    c->stop = NULL;
}

status coprocess_end(struct coprocess *c, double seconds, struct error *error)
{
    double begin = clock_seconds();
    close(c->input);
    c->input = -1;
    while (!has_ended(c)) {
        if (clock_seconds() - begin > seconds) {
            error_set(error, ERROR_IO, "%s: has not ended %.0f s after it was asked to", c->name, seconds);
            return coprocess_explain(c, error);
        }
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    if (WIFEXITED(c->ended) && WEXITSTATUS(c->ended) == 0)
        return OK;
    bool killed = WIFSIGNALED(c->ended);
    error_set(error, ERROR_IO, "%s: expected exit status 0 at its end, found %s %d", c->name,
              killed ? "signal" : "exit status", killed ? WTERMSIG(c->ended) : WEXITSTATUS(c->ended));
    return coprocess_explain(c, error);
}

uint64_t coprocess_peak(const struct coprocess *c)
{
    return c != NULL && c->id != 0 ? memory_peak_of(c->id) : 0;
}

/* Its own children with it. */
void coprocess_close(struct coprocess *c)
{
    if (c == NULL)
        return;
    if (c->input >= 0)
        close(c->input);
    if (c->output >= 0)
        close(c->output);
    if (!has_ended(c)) {
        kill(-c->id, SIGKILL);
        while (waitpid(c->id, &c->ended, 0) < 0 && errno == EINTR)
            ;
    }
    text_free(&c->received);
    free(c->name);
    free(c->log);
    free(c);
}
