#include "harness/terminal/progress.h"

#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/scope.h"
#include "core/text.h"
#include "datasets/cache/cache.h"
#include "harness/terminal/screen.h"

enum { ENOUGH_REPORTS = 5, WARM_REPORTS = 2 };
static const double enough_seconds = 3, shortest_memory = 30, remembered_share = 0.25, outlier = 8;

double work_share(const struct progress_work *work)
{
    double done = 0, total = 0;
    for (size_t k = 0; k < WORK_KINDS; k++) {
        done += fmin(work->done[k], work->total[k]);
        total += work->total[k];
    }
    return total > 0 ? fmax(done / total, 0) : 0;
}

static bool is_known(const struct pace *pace)
{
    return pace->amount > 0;
}

/* Seconds per unit; for an unknown kind, the mean of the others weighted by their share of the work. */
static double pace_of(const struct time_left *left, const struct progress_work *work, size_t kind)
{
    double seconds = 0, amount = 0;
    if (is_known(&left->paces[kind]))
        return left->paces[kind].seconds / left->paces[kind].amount;
    for (size_t k = 0; k < WORK_KINDS; k++)
        if (is_known(&left->paces[k])) {
            seconds += work->total[k] * (left->paces[k].seconds / left->paces[k].amount);
            amount += work->total[k];
        }
    return amount > 0 ? seconds / amount : 0;
}

/* The second report of a kind replaces the first one. */
static void learn(struct pace *pace, double seconds, double amount)
{
    double expected = is_known(pace) ? amount * (pace->seconds / pace->amount) : 0;
    if (pace->reports++ < WARM_REPORTS) {
        *pace = (struct pace){.reports = pace->reports};
    } else if (expected > 0) {
        amount = fmin(amount, amount * outlier * seconds / expected);
        seconds = fmin(seconds, outlier * expected);
    }
    pace->watched += seconds;
    double faded = exp(-seconds / fmax(shortest_memory, remembered_share * pace->watched));
    pace->seconds = faded * pace->seconds + seconds;
    pace->amount = faded * pace->amount + amount;
}

void time_left_note(struct time_left *left, double now, const struct progress_work *work)
{
    double gained[WORK_KINDS], expected[WORK_KINDS], sum = 0, gain = 0;
    if (!left->begun || memcmp(left->last.total, work->total, sizeof work->total) != 0) {
        *left = (struct time_left){.last = *work, .when = now, .begun = true};
        return;
    }
    for (size_t k = 0; k < WORK_KINDS; k++) {
        gained[k] = fmax(work->done[k] - left->last.done[k], 0);
        expected[k] = gained[k] * pace_of(left, work, k);
        gain += gained[k];
        sum += expected[k];
    }
    if (gain == 0)
        return; /* the time belongs to what is done next */
    for (size_t k = 0; k < WORK_KINDS; k++)
        if (gained[k] > 0)
            learn(&left->paces[k], (now - left->when) * (sum > 0 ? expected[k] / sum : gained[k] / gain), gained[k]);
    left->last = *work;
    left->when = now;
}

double time_left_seconds(const struct time_left *left, const struct progress_work *work)
{
    double seconds = 0, rest = 0, known = 0, watched = 0;
    size_t reports = 0;
    for (size_t k = 0; k < WORK_KINDS; k++) {
        double of_kind = fmax(work->total[k] - work->done[k], 0);
        rest += of_kind;
        known += left->paces[k].reports > WARM_REPORTS ? of_kind : 0;
        seconds += of_kind * pace_of(left, work, k);
        reports += left->paces[k].reports;
        watched += left->paces[k].watched;
    }
    bool enough = reports >= ENOUGH_REPORTS && watched >= enough_seconds && known >= rest / 2;
    return rest > 0 && enough ? seconds : TIME_UNKNOWN;
}

enum { NARROWEST = 60, WIDEST = 500, NAME = 64 };
static const double line_seconds = 0.1, plain_seconds = 5, listener_seconds = 1;
static const double last_seconds = 1; /* do not print the end of a very short activity */

struct progress {
    FILE *stream;
    enum progress_style style;
    int columns;
    double (*clock)(void);
    pthread_mutex_t mutex;
    char activity[NAME], subject[NAME]; /* of the last report */
    double activity_begin, shown;       /* shown: time of the last print */
    uint64_t activity_images, activity_step;
    struct time_left left;
    struct progress_work work; /* of the last report, of some work or else of steps */
    bool begun, line_open, works;
    struct text line;
    progress_listener *notify;
    void *listener;
    double notified; /* time of the last call of the listener */
};

void progress_create(struct progress **result, const struct progress_settings *settings)
{
    struct progress *progress = xcalloc(1, sizeof *progress);
    progress->stream = settings->stream;
    progress->clock = settings->clock != NULL ? settings->clock : clock_seconds;
    progress->columns = settings->columns;
    progress->style = settings->style;
    if (settings->style == PROGRESS_AUTOMATIC)
        progress->style = screen_obeys(settings->stream) && screen_columns(settings->stream) >= NARROWEST
                              ? PROGRESS_LINE
                              : PROGRESS_PLAIN;
    pthread_mutex_init(&progress->mutex, NULL);
    *result = progress;
}

/* While a run reports work, steps without work (images decoded on demand) do not count as work. */
static void note_work(struct progress *progress, const struct progress_state *state, double now)
{
    struct progress_work steps = {.done = {(double)state->step}, .total = {(double)state->steps}};
    if (state->work == NULL && !progress->works && steps.done[0] < progress->work.done[0])
        progress->left.begun = false;
    if (state->work != NULL || !progress->works)
        progress->work = state->work != NULL ? *state->work : steps;
    progress->works = progress->works || state->work != NULL;
    time_left_note(&progress->left, now, &progress->work);
}

static struct progress_news derive_news(const struct progress *progress, const struct progress_state *state, double now)
{
    struct progress_news news = {.state = state, .done = work_share(&progress->work)};
    double elapsed = now - progress->activity_begin;
    if (state->images > progress->activity_images && elapsed > 0.5)
        news.images_per_second = (double)(state->images - progress->activity_images) / elapsed;
    news.seconds_left = time_left_seconds(&progress->left, &progress->work);
    if (news.seconds_left >= 0)
        news.seconds_left = fmax(news.seconds_left, state->at_least);
    return news;
}

static void format_line(struct progress *progress, const struct progress_news *news)
{
    const struct progress_state *state = news->state;
    struct text *line = &progress->line;
    text_clear(line);
    if (state->tasks > 0)
        text_add(line, "task %zu of %zu  ", state->task, state->tasks);
    text_add(line, "%s", state->activity);
    if (state->subject != NULL) {
        text_add(line, " ");
        text_add_visible(line, state->subject);
    }
    if (state->steps > 0)
        text_add(line, "  %llu/%llu", (unsigned long long)state->step, (unsigned long long)state->steps);
    else if (state->step > 0)
        text_add(line, "  %llu", (unsigned long long)state->step);
    if (state->loss != 0 && isfinite(state->loss))
        text_add(line, "  loss %.3f", state->loss);
    if (news->images_per_second > 0)
        text_add(line, news->images_per_second < 10 ? "  %.1f images/s" : "  %.0f images/s", news->images_per_second);
    if (news->seconds_left >= 0) {
        text_add(line, "  ");
        text_add_duration(line, news->seconds_left);
        text_add(line, " left");
    }
}

static void erase_line(struct progress *progress)
{
    if (progress->line_open)
        fputs("\r\033[K", progress->stream);
    progress->line_open = false;
}

static void show(struct progress *progress, double now)
{
    if (progress->line.data == NULL)
        return;
    progress->shown = now;
    if (progress->style == PROGRESS_PLAIN) {
        fprintf(progress->stream, "mtil: %s\n", progress->line.data);
    } else {
        int columns = progress->columns > 0 ? progress->columns : screen_columns(progress->stream);
        if (columns <= 0 || columns > WIDEST)
            columns = NARROWEST;
        erase_line(progress);
        /* one column less, so that the line never wraps */
        size_t fitting = screen_fitting(progress->line.data, progress->line.size, (size_t)columns - 1);
        fprintf(progress->stream, "%.*s", (int)fitting, progress->line.data);
        progress->line_open = true;
    }
    fflush(progress->stream);
}

/* A new activity or subject: rates count from here. */
static bool begin_activity(struct progress *progress, const struct progress_state *state, double now)
{
    const char *subject = state->subject != NULL ? state->subject : "";
    if (progress->begun && strncmp(progress->activity, state->activity, NAME - 1) == 0 &&
        strncmp(progress->subject, subject, NAME - 1) == 0 && state->step >= progress->activity_step)
        return false;
    if (!progress->works && strncmp(progress->activity, state->activity, NAME - 1) != 0)
        progress->left.begun = false;
    snprintf(progress->activity, NAME, "%s", state->activity);
    snprintf(progress->subject, NAME, "%s", subject);
    progress->begun = true;
    progress->activity_begin = now;
    progress->activity_images = state->images;
    progress->activity_step = state->step;
    return true;
}

static bool is_due(const struct progress *progress, const struct progress_state *state, bool is_new, double now)
{
    bool is_last = state->steps > 0 && state->step >= state->steps;
    double interval = progress->style == PROGRESS_LINE ? line_seconds : is_last ? last_seconds : plain_seconds;
    return progress->style != PROGRESS_QUIET &&
           (is_new || (is_last && progress->style == PROGRESS_LINE) || now - progress->shown >= interval);
}

void progress_report(struct progress *progress, const struct progress_state *state)
{
    if (progress == NULL)
        return;
    pthread_mutex_lock(&progress->mutex);
    double now = progress->clock();
    bool is_new = begin_activity(progress, state, now), due = is_due(progress, state, is_new, now);
    note_work(progress, state, now);
    bool notifies = progress->notify != NULL && (is_new || now - progress->notified >= listener_seconds);
    if (due || notifies) {
        struct progress_news news = derive_news(progress, state, now);
        if (due) {
            format_line(progress, &news);
            show(progress, now);
        }
        if (notifies) {
            progress->notified = now;
            progress->notify(progress->listener, &news);
        }
    }
    pthread_mutex_unlock(&progress->mutex);
}

void progress_listen(struct progress *progress, progress_listener *notify, void *context)
{
    if (progress == NULL)
        return;
    pthread_mutex_lock(&progress->mutex);
    progress->notify = notify;
    progress->listener = context;
    pthread_mutex_unlock(&progress->mutex);
}

static void end_line(struct progress *progress)
{
    if (progress->line_open)
        fputc('\n', progress->stream);
    progress->line_open = false;
    fflush(progress->stream);
}

void progress_end(struct progress *progress)
{
    if (progress == NULL)
        return;
    pthread_mutex_lock(&progress->mutex);
    end_line(progress);
    progress->begun = progress->works = progress->left.begun = false;
    pthread_mutex_unlock(&progress->mutex);
}

void progress_destroy(struct progress *progress)
{
    if (progress == NULL)
        return;
    end_line(progress);
    pthread_mutex_destroy(&progress->mutex);
    text_free(&progress->line);
    free(progress);
}

static void write_message(void *context, enum log_level level, const char *message)
{
    struct progress *progress = context;
    pthread_mutex_lock(&progress->mutex);
    bool reopen = progress->line_open;
    erase_line(progress);
    SCOPED(text_free) struct text visible = {0};
    text_add_visible(&visible, message);
    fprintf(progress->stream, "mtil: %s%s\n", level == LOG_WARN ? "warning: " : "", visible.data);
    if (reopen)
        show(progress, progress->shown);
    fflush(progress->stream);
    pthread_mutex_unlock(&progress->mutex);
}

struct log progress_log(struct progress *progress, enum log_level least)
{
    return (struct log){.write = write_message, .context = progress, .least = least};
}

static void report(void *context, const char *dataset, size_t done, size_t total)
{
    const struct cache_progress *shown = context;
    progress_report(shown->progress,
                    &(struct progress_state){
                        .activity = "decode", .subject = dataset, .step = done, .steps = total, .images = done});
}

void cache_progress_begin(struct cache *cache, struct cache_progress *shown)
{
    cache_watch(cache, (struct cache_watcher){.stop = shown->stop, .progress = report, .context = shown});
}

void cache_progress_end(struct cache *cache)
{
    cache_watch(cache, (struct cache_watcher){0});
}
