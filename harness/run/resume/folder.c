/* The folder of a run: where it is, and whose it is while the run goes on. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/file.h>

#include "core/file.h"
#include "core/scope.h"
#include "core/text.h"
#include "harness/run/run.h"
#include "harness/run/session.h"

/* Below run.folder, where the run began: its name may come from earlier inputs or another name of the suite. */
status session_find_folder(struct session *s, struct error *error)
{
    const char *below = s->run->model.settings.folder;
    SCOPED(run_row_free) struct run_row row = {0};
    TRY(store_read_run(s->sequence->store, s->recorder.id, &row, error));
    const char *place = row.folder != NULL ? run_files_place(row.folder, row.seed) : NULL;
    s->folder = place != NULL ? path_format("%s/%s", below, place) : run_folder(s->run);
    s->resume = run_resume_file(s->folder);
    OWNED char *began = run_resume_file(row.folder != NULL ? row.folder : s->folder);
    bool left = s->stays_stopped = file_exists(began) && !file_exists(s->resume);
    if (left)
        error_set(error, ERROR_ARGUMENT,
                  "run.folder: run %" PRId64 " of %s is to go on in %s, but its resume file is %s; move that there, "
                  "name its folder in run.folder, or delete the file to start from the beginning",
                  s->recorder.id, store_path(s->sequence->store), s->folder, began);
    return left ? ERROR_ARGUMENT : OK;
}

/* The database prevents a run from being written twice; this lock keeps runs of two databases out of one folder. */
static status lock_folder(struct session *s, struct error *error)
{
    s->folder_lock = open(s->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (s->folder_lock < 0)
        return error_errno(error, errno, "%s: cannot open the run's folder", s->folder);
    if (flock(s->folder_lock, LOCK_EX | LOCK_NB) == 0)
        return OK;
    s->stays_stopped = errno == EWOULDBLOCK;
    if (s->stays_stopped)
        return error_set(
            error, ERROR_BUSY,
            "%s: in use by another run of the same suite and seed; wait for it, stop it, or set run.folder", s->folder);
    log_warn(s->run->model.log,
             "%s: cannot be locked (%s); see that no other database has a run of this suite and seed there", s->folder,
             strerror(errno));
    return OK; /* go on on a file system without locks */
}

status session_open_folder(struct session *s, struct error *error)
{
    TRY(session_find_folder(s, error));
    TRY(directory_create(s->folder, error));
    s->run->model.folder = s->folder;
    TRY(lock_folder(s, error));
    return store_run_move(s->sequence->store, s->recorder.id, s->folder, error);
}

/* A folder that was replaced is no longer locked, and the resume file would get into a foreign folder. */
status session_check_folder(const struct session *s, struct error *error)
{
    struct stat own;
    if (fstat(s->folder_lock, &own) == 0 && file_check_same(s->folder, &own, NULL) == OK)
        return OK;
    return error_set(error, ERROR_IO,
                     "%s: was deleted, renamed or replaced while the run used it; restore it and give the same "
                     "command again",
                     s->folder);
}
