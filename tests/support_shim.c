/* Between a program and the system: a wall clock that is set, and errors at random for one folder.
 *
 * Loaded with LD_PRELOAD. MEMD_SHIM names a file that is mapped and shared with the test, which changes what
 * happens while the program runs; MEMD_SHIM_UNDER is the folder whose files meet the errors.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { HIT_OPEN, HIT_WRITE, HIT_SHORT, HIT_FLUSH, HIT_MAP, HIT_NAME, HIT_ACCEPT, HITS };

struct control {
    int64_t wall_ns;       /* added to the wall clock */
    int32_t permille;      /* of the calls fail */
    int32_t unused;
    uint64_t hits[HITS];
};

static struct control idle, *control = &idle;
static char under[PATH_MAX];
static size_t under_length;
static uint64_t state;

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("MEMD_SHIM"), *folder = getenv("MEMD_SHIM_UNDER");
    state = 88172645463325252ULL ^ ((uint64_t)syscall(SYS_getpid) << 20);
    if (folder && strlen(folder) < sizeof under) {
        strcpy(under, folder);
        under_length = strlen(under);
    }
    int fd = path ? (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    void *at = (void *)syscall(SYS_mmap, NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    syscall(SYS_close, fd);
    if (at != MAP_FAILED)
        control = at;
}

/* ------------------------------------------------------------------------------------------------ the clock */

static int is_wall(clockid_t id) { return id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE; }

int clock_gettime(clockid_t id, struct timespec *at)
{
    static int (*real)(clockid_t, struct timespec *);
    if (!real)
        real = REAL(clock_gettime);
    int status = real(id, at);
    if (status == 0 && is_wall(id) && control->wall_ns) {
        int64_t ns = (int64_t)at->tv_sec * 1000000000 + at->tv_nsec + control->wall_ns;
        at->tv_sec = ns / 1000000000;
        at->tv_nsec = ns % 1000000000;
    }
    return status;
}

int gettimeofday(struct timeval *restrict at, void *restrict zone)
{
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    at->tv_sec = now.tv_sec;
    at->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *to)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (to)
        *to = now.tv_sec;
    return now.tv_sec;
}

/* ----------------------------------------------------------------------------------------------- the errors */

static int is_due(void)
{
    if (!control->permille)
        return 0;
    uint64_t x = __atomic_load_n(&state, __ATOMIC_RELAXED);
    x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    __atomic_store_n(&state, x, __ATOMIC_RELAXED);
    return (int32_t)((x >> 20) % 1000) < control->permille;
}

static int is_under(const char *path) { return under_length && !strncmp(path, under, under_length); }

static int is_file_under(int fd)
{
    char name[64] = "/proc/self/fd/", digits[16], path[PATH_MAX];
    int count = 0, length = 14;
    if (fd < 0)
        return 0;
    do
        digits[count++] = (char)('0' + fd % 10);
    while (fd /= 10);
    while (count)
        name[length++] = digits[--count];
    name[length] = 0;
    long got = syscall(SYS_readlinkat, AT_FDCWD, name, path, sizeof path - 1);
    if (got < 0)
        return 0;
    path[got] = 0;
    return is_under(path);
}

static int is_at_under(int folder, const char *path)
{
    return path[0] == '/' ? is_under(path) : folder != AT_FDCWD && is_file_under(folder);
}

static int fails(int kind, const int *numbers, unsigned count)
{
    __atomic_fetch_add(&control->hits[kind], 1, __ATOMIC_RELAXED);
    errno = numbers[(__atomic_load_n(&state, __ATOMIC_RELAXED) >> 33) % count];
    return -1;
}
#define FAILS(kind, ...) fails(kind, (const int[]){__VA_ARGS__}, sizeof((int[]){__VA_ARGS__}) / sizeof(int))

#define OPEN_ERRORS EIO, ENOSPC, EMFILE, ENFILE, ENOMEM
#define OPENED(name, folder, ...)                                                        \
    mode_t mode = 0;                                                                     \
    if (flags & (O_CREAT | O_TMPFILE)) {                                                 \
        va_list more;                                                                    \
        va_start(more, flags);                                                           \
        mode = va_arg(more, mode_t);                                                     \
        va_end(more);                                                                    \
    }                                                                                    \
    if (is_due() && is_at_under(folder, path))                                           \
        return FAILS(HIT_OPEN, OPEN_ERRORS);                                             \
    return REAL(name)(__VA_ARGS__, mode);

int open(const char *path, int flags, ...) { OPENED(open, AT_FDCWD, path, flags) }
int open64(const char *path, int flags, ...) { OPENED(open64, AT_FDCWD, path, flags) }
int openat(int at, const char *path, int flags, ...) { OPENED(openat, at, at, path, flags) }
int openat64(int at, const char *path, int flags, ...) { OPENED(openat64, at, at, path, flags) }

#define WRITTEN(name, ...)                                                               \
    if (is_due() && is_file_under(fd)) {                                                 \
        if (size > 1 && state & 1024) {                                                  \
            __atomic_fetch_add(&control->hits[HIT_SHORT], 1, __ATOMIC_RELAXED);          \
            size /= 2;                                                                   \
        } else {                                                                         \
            return FAILS(HIT_WRITE, EIO, ENOSPC, EDQUOT, EINTR);                         \
        }                                                                                \
    }                                                                                    \
    return REAL(name)(__VA_ARGS__);

ssize_t write(int fd, const void *data, size_t size) { WRITTEN(write, fd, data, size) }
ssize_t pwrite(int fd, const void *data, size_t size, off_t at) { WRITTEN(pwrite, fd, data, size, at) }
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) { WRITTEN(pwrite64, fd, data, size, at) }

#define ON_FILE(kind, name, ...)                                                         \
    if (is_due() && is_file_under(fd))                                                   \
        return FAILS(kind, EIO, ENOSPC);                                                 \
    return REAL(name)(__VA_ARGS__);

int fsync(int fd) { ON_FILE(HIT_FLUSH, fsync, fd) }
int fdatasync(int fd) { ON_FILE(HIT_FLUSH, fdatasync, fd) }
int ftruncate(int fd, off_t size) { ON_FILE(HIT_WRITE, ftruncate, fd, size) }
int ftruncate64(int fd, off64_t size) { ON_FILE(HIT_WRITE, ftruncate64, fd, size) }

void *mmap(void *at, size_t size, int protection, int flags, int fd, off_t from)
{
    static void *(*real)(void *, size_t, int, int, int, off_t);
    if (!real)
        real = REAL(mmap);
    if (is_due() && !(flags & MAP_ANONYMOUS) && is_file_under(fd))
        return FAILS(HIT_MAP, ENOMEM), MAP_FAILED;
    return real(at, size, protection, flags, fd, from);
}

void *mmap64(void *at, size_t size, int protection, int flags, int fd, off64_t from)
{
    return mmap(at, size, protection, flags, fd, from);
}

#define NAMED(name, folder, path, ...)                                                   \
    if (is_due() && is_at_under(folder, path))                                           \
        return FAILS(HIT_NAME, EIO, ENOSPC, EACCES);                                     \
    return REAL(name)(__VA_ARGS__);

int mkdirat(int at, const char *path, mode_t mode) { NAMED(mkdirat, at, path, at, path, mode) }
int mkdir(const char *path, mode_t mode) { NAMED(mkdir, AT_FDCWD, path, path, mode) }
int unlinkat(int at, const char *path, int flags) { NAMED(unlinkat, at, path, at, path, flags) }
int symlinkat(const char *to, int at, const char *path) { NAMED(symlinkat, at, path, to, at, path) }
int renameat(int one, const char *from, int two, const char *to)
{
    NAMED(renameat, two, to, one, from, two, to)
}
int renameat2(int one, const char *from, int two, const char *to, unsigned flags)
{
    NAMED(renameat2, two, to, one, from, two, to, flags)
}

int accept4(int fd, struct sockaddr *restrict peer, socklen_t *restrict size, int flags)
{
    if (is_due())
        return FAILS(HIT_ACCEPT, EMFILE, ENFILE, ENOMEM);
    return REAL(accept4)(fd, peer, size, flags);
}
