/* Counts what a process does to files below one folder, and fails or kills it at the n-th time.
 *
 * Loaded before libc (LD_PRELOAD), so that also what HDF5, SQLite, Arrow and safetensors do is counted. `plan` is memory
 * that the process which asked shares: it reads the counts after this one has gone.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { OPEN, READ, LIST, WRITE, SYNC, RENAME, REMOVE, MKDIR, KINDS };

struct plan {
    long counts[KINDS];
    int kind;     /* which of them, -1: none */
    long number;  /* at which one, from 1 */
    int error;    /* errno to fail with; 0: SIGKILL; below: that signal, and on it goes */
    int half;     /* a write is done by half before */
    int again;    /* every later one fails, too: a disk that stays full */
    int hit;      /* whether it came to that */
    char folder[PATH_MAX];
};

static struct plan *plan;

void interpose(struct plan *given) { plan = given; }

static int below(const char *path) {
    size_t length = strlen(plan->folder);
    return strncmp(path, plan->folder, length) == 0 && (path[length] == '/' || path[length] == 0);
}

static int concerns_at(int folder, const char *path) {
    char full[2 * PATH_MAX], link[64];
    if (!plan || !path) return 0;
    if (path[0] == '/') return below(path);
    if (folder == AT_FDCWD) {
        if (!getcwd(full, PATH_MAX)) return 0;
    } else {
        snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
        ssize_t length = readlink(link, full, PATH_MAX - 1);
        if (length < 0) return 0;
        full[length] = 0;
    }
    return below(full);
}

static int concerns(int descriptor) {
    char link[64], full[PATH_MAX];
    if (!plan) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, full, sizeof full - 1);
    if (length < 0) return 0;
    full[length] = 0;
    return below(full);
}

/* Whether this is the one, or one after it. */
static int due(int kind) {
    long number = __sync_add_and_fetch(&plan->counts[kind], 1);
    if (plan->kind != kind) return 0;
    return number == plan->number || (plan->again && number > plan->number);
}

/* Whether the operation is refused. */
static int strike(void) {
    plan->hit = 1;
    if (!plan->error) {
        kill(getpid(), SIGKILL);
        for (;;) pause();
    }
    if (plan->error < 0) {
        kill(getpid(), -plan->error);
        return 0;
    }
    errno = plan->error;
    return 1;
}

#define REAL(name) \
    static __typeof__(&name) real; \
    if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

#define REFUSE(kind, concerned, result) \
    if ((concerned) && due(kind) && strike()) return result;

static int opening(int flags) { return (flags & O_ACCMODE) == O_RDONLY && !(flags & O_CREAT) ? READ : OPEN; }

#define MODE(flags) \
    mode_t mode = 0; \
    if ((flags) & (O_CREAT | O_TMPFILE)) { va_list rest; va_start(rest, flags); mode = va_arg(rest, mode_t); va_end(rest); }

int open(const char *path, int flags, ...) {
    REAL(open); MODE(flags)
    REFUSE(opening(flags), concerns_at(AT_FDCWD, path), -1)
    return real(path, flags, mode);
}
int open64(const char *path, int flags, ...) {
    REAL(open64); MODE(flags)
    REFUSE(opening(flags), concerns_at(AT_FDCWD, path), -1)
    return real(path, flags, mode);
}
int openat(int folder, const char *path, int flags, ...) {
    REAL(openat); MODE(flags)
    REFUSE(opening(flags), concerns_at(folder, path), -1)
    return real(folder, path, flags, mode);
}
int openat64(int folder, const char *path, int flags, ...) {
    REAL(openat64); MODE(flags)
    REFUSE(opening(flags), concerns_at(folder, path), -1)
    return real(folder, path, flags, mode);
}
FILE *fopen64(const char *path, const char *how) {
    REAL(fopen64);
    REFUSE(how[0] == 'r' && !strchr(how, '+') ? READ : OPEN, concerns_at(AT_FDCWD, path), NULL)
    return real(path, how);
}
FILE *fopen(const char *path, const char *how) {
    REAL(fopen);
    REFUSE(how[0] == 'r' && !strchr(how, '+') ? READ : OPEN, concerns_at(AT_FDCWD, path), NULL)
    return real(path, how);
}
DIR *opendir(const char *path) {
    REAL(opendir);
    REFUSE(LIST, concerns_at(AT_FDCWD, path), NULL)
    return real(path);
}

ssize_t write(int descriptor, const void *content, size_t size) {
    REAL(write);
    if (concerns(descriptor) && due(WRITE)) {
        if (plan->half && plan->error >= 0) real(descriptor, content, size / 2);
        if (strike()) return -1;
    }
    return real(descriptor, content, size);
}
ssize_t pwrite(int descriptor, const void *content, size_t size, off_t place) {
    REAL(pwrite);
    if (concerns(descriptor) && due(WRITE)) {
        if (plan->half && plan->error >= 0) real(descriptor, content, size / 2, place);
        if (strike()) return -1;
    }
    return real(descriptor, content, size, place);
}
ssize_t pwrite64(int descriptor, const void *content, size_t size, off64_t place) {
    REAL(pwrite64);
    if (concerns(descriptor) && due(WRITE)) {
        if (plan->half && plan->error >= 0) real(descriptor, content, size / 2, place);
        if (strike()) return -1;
    }
    return real(descriptor, content, size, place);
}
ssize_t writev(int descriptor, const struct iovec *pieces, int count) {
    REAL(writev);
    REFUSE(WRITE, concerns(descriptor), -1)
    return real(descriptor, pieces, count);
}
size_t fwrite(const void *content, size_t size, size_t count, FILE *file) {
    REAL(fwrite);
    REFUSE(WRITE, plan && concerns(fileno(file)), 0)
    return real(content, size, count, file);
}
int fallocate(int descriptor, int mode, off_t start, off_t size) {
    REAL(fallocate);
    REFUSE(WRITE, concerns(descriptor), -1)
    return real(descriptor, mode, start, size);
}
int posix_fallocate(int descriptor, off_t start, off_t size) {
    REAL(posix_fallocate);
    if (concerns(descriptor) && due(WRITE) && strike()) return plan->error;
    return real(descriptor, start, size);
}
int posix_fallocate64(int descriptor, off64_t start, off64_t size) {
    REAL(posix_fallocate64);
    if (concerns(descriptor) && due(WRITE) && strike()) return plan->error;
    return real(descriptor, start, size);
}

int fsync(int descriptor) { REAL(fsync); REFUSE(SYNC, concerns(descriptor), -1) return real(descriptor); }
int fdatasync(int descriptor) { REAL(fdatasync); REFUSE(SYNC, concerns(descriptor), -1) return real(descriptor); }

int rename(const char *from, const char *to) {
    REAL(rename);
    REFUSE(RENAME, concerns_at(AT_FDCWD, to), -1)
    return real(from, to);
}
int renameat(int folder, const char *from, int target, const char *to) {
    REAL(renameat);
    REFUSE(RENAME, concerns_at(target, to), -1)
    return real(folder, from, target, to);
}
int unlink(const char *path) { REAL(unlink); REFUSE(REMOVE, concerns_at(AT_FDCWD, path), -1) return real(path); }
int unlinkat(int folder, const char *path, int flags) {
    REAL(unlinkat);
    REFUSE(REMOVE, concerns_at(folder, path), -1)
    return real(folder, path, flags);
}
int rmdir(const char *path) { REAL(rmdir); REFUSE(REMOVE, concerns_at(AT_FDCWD, path), -1) return real(path); }
int mkdir(const char *path, mode_t mode) {
    REAL(mkdir);
    REFUSE(MKDIR, concerns_at(AT_FDCWD, path), -1)
    return real(path, mode);
}
