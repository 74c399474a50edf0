/* Preloaded into the program (LD_PRELOAD), makes the n-th of its calls that write go wrong.
 *
 *     MTIL_FAULT_LOG=calls.txt mtil …            a line per call
 *     MTIL_FAULT="17 fail" mtil …                the 17th fails: no space, a broken disk, no memory
 *     MTIL_FAULT="17 full" mtil …                and so do all that need space from there on
 *     MTIL_FAULT="17 short" mtil …               if it writes, it writes half
 *     MTIL_FAULT="17 interrupted" mtil …         if it writes, it is interrupted before (EINTR)
 *     MTIL_FAULT="17 kill" mtil …                SIGKILL comes before it
 *
 * The program's own children are spared, and the first three descriptors. The C library's stdio writes by other ways:
 * what is written there is not seen.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum mode { COUNT, FAIL, FULL, SHORT, INTERRUPTED, KILL };

static struct {
    enum mode mode;
    int call, log; /* the call that goes wrong; −1: no log */
    atomic_int calls;
} faults = {.log = -1};

__attribute__((constructor)) static void begin(void)
{
    static const char *const names[] = {
        [FAIL] = "fail", [FULL] = "full", [SHORT] = "short", [INTERRUPTED] = "interrupted", [KILL] = "kill"};
    const char *fault = getenv("MTIL_FAULT"), *log = getenv("MTIL_FAULT_LOG");
    char word[16] = "";
    if (log != NULL)
        faults.log = (int)syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (fault != NULL && sscanf(fault, "%d %15s", &faults.call, word) == 2)
        for (enum mode mode = FAIL; mode <= KILL; mode++)
            if (strcmp(word, names[mode]) == 0)
                faults.mode = mode;
    unsetenv("LD_PRELOAD");
}

static void write_log(int number, const char *name, int file, const char *path)
{
    char own[32], target[300] = "", line[400];
    snprintf(own, sizeof own, "/proc/self/fd/%d", file);
    if (path == NULL && file >= 0 && syscall(SYS_readlinkat, AT_FDCWD, own, target, sizeof target - 1) > 0)
        path = target;
    int size = snprintf(line, sizeof line, "%d %s %.300s\n", number, name, path != NULL ? path : "");
    syscall(SYS_write, faults.log, line, (size_t)size);
}

/* Counts a call and says what becomes of it: an errno, 0 where it is to be made. */
static int fault(const char *name, int file, const char *path, int nature)
{
    int number = atomic_fetch_add(&faults.calls, 1) + 1;
    bool here = number == faults.call;
    if (faults.log >= 0 && (here || faults.mode == COUNT))
        write_log(number, name, file, path);
    if (here && faults.mode == KILL)
        kill(getpid(), SIGKILL);
    if (here && faults.mode == INTERRUPTED && strstr(name, "write") != NULL)
        return EINTR;
    bool fails = (here && faults.mode == FAIL) || (faults.mode == FULL && number >= faults.call && nature == ENOSPC);
    return fails ? nature : 0;
}

#define FAULT(file, path, nature)                                                                                      \
    do {                                                                                                               \
        int fault_number_ = fault(__func__, file, path, nature);                                                       \
        if (fault_number_ != 0) {                                                                                      \
            errno = fault_number_;                                                                                     \
            return -1;                                                                                                 \
        }                                                                                                              \
    } while (0)

/* How much of a write is made, once it is counted. */
static size_t part_of(size_t size)
{
    bool here = faults.mode == SHORT && atomic_load(&faults.calls) == faults.call;
    return here && size > 1 ? size / 2 : size;
}

ssize_t write(int file, const void *data, size_t size)
{
    if (file > STDERR_FILENO)
        FAULT(file, NULL, ENOSPC);
    return syscall(SYS_write, file, data, file > STDERR_FILENO ? part_of(size) : size);
}

ssize_t pwrite(int file, const void *data, size_t size, off_t offset)
{
    FAULT(file, NULL, ENOSPC);
    return syscall(SYS_pwrite64, file, data, part_of(size), offset);
}

int fsync(int file)
{
    FAULT(file, NULL, EIO);
    return (int)syscall(SYS_fsync, file);
}

int fdatasync(int file)
{
    FAULT(file, NULL, EIO);
    return (int)syscall(SYS_fdatasync, file);
}

int syncfs(int file)
{
    FAULT(file, NULL, EIO);
    return (int)syscall(SYS_syncfs, file);
}

int ftruncate(int file, off_t size)
{
    FAULT(file, NULL, ENOSPC);
    return (int)syscall(SYS_ftruncate, file, size);
}

/* oneDNN crashes when there is no memory for the code that it generates. */
static bool is_library_that_crashes(const void *caller)
{
    Dl_info about;
    return dladdr(caller, &about) != 0 && about.dli_fname != NULL && strstr(about.dli_fname, "libdnnl") != NULL;
}

void *mmap(void *address, size_t size, int protection, int flags, int file, off_t offset)
{
    bool spared = is_library_that_crashes(__builtin_return_address(0));
    int number = spared ? 0 : fault(__func__, file, NULL, ENOMEM);
    if (number == 0)
        return (void *)syscall(SYS_mmap, address, size, protection, flags, file, offset);
    errno = number;
    return MAP_FAILED;
}

int rename(const char *from, const char *to)
{
    FAULT(-1, from, EIO);
    return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int renameat2(int from_folder, const char *from, int to_folder, const char *to, unsigned flags)
{
    FAULT(-1, from, EIO);
    return (int)syscall(SYS_renameat2, from_folder, from, to_folder, to, flags);
}

int mkdir(const char *path, mode_t mode)
{
    FAULT(-1, path, ENOSPC);
    return (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
}

int unlink(const char *path)
{
    FAULT(-1, path, EIO);
    return (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}

int open(const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    if ((flags & O_CREAT) != 0)
        FAULT(-1, path, ENOSPC);
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int openat(int folder, const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    if ((flags & O_CREAT) != 0)
        FAULT(-1, path, ENOSPC);
    return (int)syscall(SYS_openat, folder, path, flags, mode);
}

/* The names that programs with 64-bit offsets call. */
ssize_t pwrite64(int, const void *, size_t, off_t) __attribute__((alias("pwrite")));
int ftruncate64(int, off_t) __attribute__((alias("ftruncate")));
void *mmap64(void *, size_t, int, int, int, off_t) __attribute__((alias("mmap")));
int open64(const char *, int, ...) __attribute__((alias("open")));
int openat64(int, const char *, int, ...) __attribute__((alias("openat")));
