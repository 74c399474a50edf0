#include "harness/run/checkpoint_writer.h"

static void *write_snapshot(void *argument)
{
    struct checkpoint_writer *writer = argument;
    writer->result = checkpoint_write(writer->snapshot, writer->path, &writer->error);
    atomic_store(&writer->ended, true);
    return NULL;
}

status checkpoint_writer_finish(struct checkpoint_writer *writer, struct error *error)
{
    if (writer->running)
        pthread_join(writer->thread, NULL);
    writer->running = false;
    checkpoint_snapshot_free(writer->snapshot);
    writer->snapshot = NULL;
    if (writer->result != OK && error != NULL)
        *error = writer->error;
    status result = writer->result;
    writer->result = OK;
    return result;
}

status checkpoint_writer_check(struct checkpoint_writer *writer, struct error *error)
{
    return writer->running && atomic_load(&writer->ended) ? checkpoint_writer_finish(writer, error) : OK;
}

/* A thread that cannot be started is no failure: the caller writes. */
status checkpoint_writer_save(struct checkpoint_writer *writer, const struct run *run, const struct selector *selector,
                              const char *path, const struct checkpoint_place *place, struct error *error)
{
    TRY(checkpoint_writer_finish(writer, error));
    TRY(checkpoint_take(&writer->snapshot, run, selector, place, error));
    writer->path = path;
    atomic_store(&writer->ended, false);
    writer->running = pthread_create(&writer->thread, NULL, write_snapshot, writer) == 0;
    if (writer->running)
        return OK;
    write_snapshot(writer);
    return checkpoint_writer_finish(writer, error);
}
