/* A disk that forgets: what was written since the last fsync of a file can be undone.
 *
 * Preloaded into the process under test. Before each write to a file in the folder named
 * by FORGETFUL_DIR the bytes it replaces go to the file FORGETFUL_LOG; an fsync says that
 * everything before it stays. After a kill the parent plays the log backwards: that is the
 * state an honest disk may have after a power cut.
 *
 * Record: kind ('W' write, 'T' truncate, 'S' sync), path length, offset, old size of the
 * file, length of the old bytes, path, old bytes.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static ssize_t (*real_write)(int, const void *, size_t);
static ssize_t (*real_pwrite)(int, const void *, size_t, off_t);
static int (*real_ftruncate)(int, off_t);
static int (*real_fsync)(int);
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const char *folder;
static int out = -1;

__attribute__((constructor)) static void begin(void) {
    real_write = dlsym(RTLD_NEXT, "write");
    real_pwrite = dlsym(RTLD_NEXT, "pwrite64");
    real_ftruncate = dlsym(RTLD_NEXT, "ftruncate64");
    real_fsync = dlsym(RTLD_NEXT, "fsync");
    folder = getenv("FORGETFUL_DIR");
    const char *log = getenv("FORGETFUL_LOG");
    if (folder && log) out = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
}

static int watched(int fd, char *path, size_t size) {
    char link[64];
    if (out < 0 || fd == out) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, size - 1);
    if (length <= 0) return 0;
    path[length] = 0;
    return strncmp(path, folder, strlen(folder)) == 0;
}

static void say(char kind, const char *path, int fd, off_t offset, size_t length) {
    struct stat now;
    char *old = NULL;
    ssize_t held = 0;
    if (fstat(fd, &now)) return;
    if (kind == 'T') length = now.st_size > offset ? (size_t)(now.st_size - offset) : 0;
    if (length && offset < now.st_size) {
        old = malloc(length);
        int again = open(path, O_RDONLY);
        held = again < 0 ? 0 : pread(again, old, length, offset);
        if (again >= 0) close(again);
        if (held < 0) held = 0;
    }
    int64_t head[5] = {kind, (int64_t)strlen(path), offset, now.st_size, held};
    size_t total = sizeof head + (size_t)head[1] + (size_t)held;
    char *record = malloc(total);
    memcpy(record, head, sizeof head);
    memcpy(record + sizeof head, path, (size_t)head[1]);
    if (held) memcpy(record + sizeof head + head[1], old, (size_t)held);
    real_write(out, record, total);
    free(record);
    free(old);
}

static void before(char kind, int fd, off_t offset, size_t length) {
    char path[4096];
    if (!watched(fd, path, sizeof path)) return;
    pthread_mutex_lock(&lock);
    say(kind, path, fd, offset, length);
    pthread_mutex_unlock(&lock);
}

ssize_t write(int fd, const void *data, size_t length) {
    before('W', fd, lseek(fd, 0, SEEK_CUR), length);
    return real_write(fd, data, length);
}

ssize_t pwrite64(int fd, const void *data, size_t length, off_t offset) {
    before('W', fd, offset, length);
    return real_pwrite(fd, data, length, offset);
}

ssize_t pwrite(int fd, const void *data, size_t length, off_t offset) {
    return pwrite64(fd, data, length, offset);
}

int ftruncate64(int fd, off_t length) {
    before('T', fd, length, 0);
    return real_ftruncate(fd, length);
}

int ftruncate(int fd, off_t length) { return ftruncate64(fd, length); }

int fsync(int fd) {
    before('S', fd, 0, 0);
    return 0; /* the page cache outlives a kill, and the parent undoes the rest */
}

int fdatasync(int fd) { return fsync(fd); }
