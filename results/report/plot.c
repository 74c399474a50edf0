#include "results/report/plot.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/file.h"

#define PROGRAM "gnuplot"

enum { SAID_MOST = 400 }; /* bytes of gnuplot's complaint that are passed on */

static bool is_in(const char *folder, size_t size)
{
    char *path = path_format("%.*s/" PROGRAM, (int)size, folder);
    bool found = path != NULL && access(path, X_OK) == 0 && !file_is_directory(path);
    free(path);
    return found;
}

bool plot_is_available(void)
{
    const char *folders = getenv("PATH");
    for (size_t size; folders != NULL; folders += size + 1) {
        size = strcspn(folders, ":");
        if (is_in(folders, size))
            return true;
        if (folders[size] == 0)
            break;
    }
    return false;
}

/* --- Writing --- */

static status write_text(const struct report *report, const char *stem, const char *end, struct text *text,
                         struct error *error)
{
    char *path = path_format("%s/" PLOT_FOLDER "/%s.%s", report->folder, stem, end);
    struct file_writer writer;
    status result = path == NULL || text->failed
                        ? error_set(error, ERROR_MEMORY, "%s: no memory for figure %s", report->folder, stem)
                        : file_writer_open_one_of_many(&writer, path, error);
    if (result == OK)
        result = file_writer_write(&writer, text->data, text->size, error);
    if (result == OK)
        result = file_writer_close(&writer, error);
    free(path);
    text_free(text);
    return result;
}

static status remember(struct report *report, const char *stem, struct error *error)
{
    if (report->plot_count == report->plot_capacity) {
        size_t capacity = report->plot_capacity ? report->plot_capacity * 2 : 64;
        char **larger = realloc(report->plot, capacity * sizeof *larger);
        if (larger == NULL)
            return error_set(error, ERROR_MEMORY, "%s: no memory for a list of figures", report->folder);
        report->plot = larger;
        report->plot_capacity = capacity;
    }
    char *copy = path_format("%s.gp", stem);
    if (copy == NULL)
        return error_set(error, ERROR_MEMORY, "%s: no memory for a list of figures", report->folder);
    report->plot[report->plot_count++] = copy;
    return OK;
}

status plot_write(struct report *report, const struct figure *figure, struct error *error)
{
    struct text script = {0}, data = {0};
    plot_script(&script, figure);
    plot_data(&data, figure);
    status result = write_text(report, figure->name, "gp", &script, error);
    if (result == OK)
        result = write_text(report, figure->name, "dat", &data, error);
    text_free(&data);
    return result == OK ? remember(report, figure->name, error) : result;
}

/* --- Drawing --- */

static status start(const struct report *report, char *const *arguments, int complaints, pid_t *child,
                    struct error *error)
{
    posix_spawn_file_actions_t actions;
    char *folder = path_format("%s/" PLOT_FOLDER, report->folder);
    if (folder == NULL || posix_spawn_file_actions_init(&actions) != 0) {
        free(folder);
        return error_set(error, ERROR_MEMORY, "%s: no memory to start " PROGRAM, report->folder);
    }
    int code = posix_spawn_file_actions_addchdir_np(&actions, folder);
    code = code ? code : posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    code = code ? code : posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    code = code ? code : posix_spawn_file_actions_adddup2(&actions, complaints, STDERR_FILENO);
    code = code ? code : posix_spawnp(child, PROGRAM, &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    free(folder);
    return code == 0 ? OK : error_errno(error, code, PROGRAM " cannot be started");
}

/* Keeps the end, which says what was wrong, in one line. */
static void read_complaints(int descriptor, char said[SAID_MOST + 1])
{
    char part[4096];
    size_t size = 0;
    for (ssize_t got; (got = read(descriptor, part, sizeof part)) > 0 || (got < 0 && errno == EINTR);)
        for (ssize_t i = 0; i < got; i++) {
            if (size == SAID_MOST)
                memmove(said, said + 1, --size);
            said[size++] = (unsigned char)part[i] < ' ' ? ' ' : part[i];
        }
    said[size] = 0;
}

static status wait_for(const struct report *report, pid_t child, const char *said, struct error *error)
{
    int ended;
    while (waitpid(child, &ended, 0) < 0)
        if (errno != EINTR)
            return error_errno(error, errno, PROGRAM " cannot be waited for");
    TRY(report_stopped(report, error));
    if (WIFEXITED(ended) && WEXITSTATUS(ended) == 0)
        return OK;
    return error_set(error, ERROR_IO, PROGRAM " could not draw the figures (%s %d): %s",
                     WIFEXITED(ended) ? "exit status" : "signal",
                     WIFEXITED(ended) ? WEXITSTATUS(ended) : WTERMSIG(ended), said);
}

static status draw(struct report *report, char *const *arguments, struct error *error)
{
    int ends[2];
    pid_t child;
    char said[SAID_MOST + 1];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return error_errno(error, errno, "cannot hear " PROGRAM);
    status result = start(report, arguments, ends[1], &child, error);
    close(ends[1]);
    if (result == OK) {
        read_complaints(ends[0], said);
        result = wait_for(report, child, said, error);
    }
    close(ends[0]);
    return result;
}

static status check_drawn(const struct report *report, struct error *error)
{
    static const char *const ends[] = {"svg", "png"};
    for (size_t i = 0; i < report->plot_count; i++)
        for (size_t k = 0; k < 2; k++) {
            const char *script = report->plot[i];
            char *path =
                path_format("%s/" PLOT_FOLDER "/%.*s.%s", report->folder, (int)strlen(script) - 3, script, ends[k]);
            uint64_t size = 0;
            status result = path ? file_size(path, &size, error) : error_set(error, ERROR_MEMORY, "no memory");
            free(path);
            TRY(result);
            if (size == 0)
                return error_set(error, ERROR_IO, PROGRAM " left %s empty; is the disk full?", script);
        }
    return OK;
}

status plot_draw(struct report *report, struct error *error)
{
    if (report->plot_count == 0)
        return OK;
    char **arguments = calloc(report->plot_count + 2, sizeof *arguments);
    if (arguments == NULL)
        return error_set(error, ERROR_MEMORY, "%s: no memory to start " PROGRAM, report->folder);
    arguments[0] = (char *)PROGRAM;
    memcpy(arguments + 1, report->plot, report->plot_count * sizeof *arguments);
    status result = draw(report, arguments, error);
    free(arguments);
    return result == OK ? check_drawn(report, error) : result;
}
