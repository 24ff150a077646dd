/* Preloaded into a program under test: sees its calls on files below one directory, writes them
 * into a journal, and at one of them ends the process, fails the call, cuts it short or delays it.
 *
 *     FAULT_TREE     absolute path of the directory
 *     FAULT_JOURNAL  file outside of it, appended to
 *     FAULT_KINDS    letters of the calls that count (below)
 *     FAULT_UNDER    only calls on paths that begin so count; default: the whole tree
 *     FAULT_AT       which of them, from 1
 *     FAULT_ACTION   before | after: SIGKILL before or after the call
 *                    half: SIGKILL when a write has taken the first half of its bytes
 *                    short: a write takes the first half of its bytes
 *                    slow: the call takes 300 ms more
 *                    stop: SIGSTOP before the call, which is made after SIGCONT
 *                    a number: the call is not made and gives this errno
 *     FAULT_STICKY   also every later call that counts
 *
 * Kinds: O open for writing, o open for reading or of a directory, W write, S fsync and fdatasync,
 * T ftruncate, R rename, U unlink, M mkdir, r read, N bytes to a socket (of any peer).
 *
 * The journal has "<kind> <descriptor> <number> <result> <length>\n" and <length> bytes for each
 * call: of O and o the path (number: 1 with O_TRUNC), of W the bytes taken (number: their offset), of
 * T nothing (number: the new length), of R both paths with a 0 byte between, of U and M the path.
 * X, with nothing, says that OpenSSL was freed at exit while other threads still had to end.
 * A result below 0 is an errno. What a process wrote is in it when it is gone, a crash of the machine
 * is not what this is for.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { descriptors = 4096 };
enum action { GO, BEFORE, AFTER, HALF, SHORT, SLOW, STOP, FAIL };

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static char *paths[descriptors]; /* of files in the tree that are open */
static const char *tree, *under, *kinds;
static int journal = -1, at, counted, sticky, failure;
static enum action wanted = GO;

/* The C library's syscall(2): ours, below, is one of the calls that are watched. */
static long (*direct_call(void))(long, ...) {
  static long (*call)(long, ...);
  if (!call) call = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
  return call;
}
#define direct direct_call()
#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static const char *setting(const char *name, const char *otherwise) {
  const char *value = getenv(name);
  return value && *value ? value : otherwise;
}

__attribute__((constructor)) static void start(void) {
  tree = setting("FAULT_TREE", "/nowhere");
  under = setting("FAULT_UNDER", tree);
  kinds = setting("FAULT_KINDS", "");
  at = atoi(setting("FAULT_AT", "0"));
  sticky = *setting("FAULT_STICKY", "") != 0;
  const char *action = setting("FAULT_ACTION", "");
  static const char *const names[] = {"", "before", "after", "half", "short", "slow", "stop"};
  for (int index = GO; index <= STOP; index++)
    if (!strcmp(action, names[index])) wanted = (enum action)index;
  failure = atoi(action);
  if (failure > 0) wanted = FAIL;
  const char *file = setting("FAULT_JOURNAL", NULL);
  if (file) journal = (int)direct(SYS_openat, AT_FDCWD, file,
                                   O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  /* High, so that the program's descriptors are those it would have without this. */
  if (journal >= 0) {
    int high = (int)direct(SYS_fcntl, journal, F_DUPFD_CLOEXEC, 900);
    if (high >= 0) {
      direct(SYS_close, journal);
      journal = high;
    }
  }
}

static void die(void) {
  direct(SYS_kill, (int)direct(SYS_getpid), SIGKILL);
  for (;;) pause();
}

static void all(const void *bytes, size_t count) {
  const char *rest = bytes;
  while (count > 0) {
    long done = direct(SYS_write, journal, rest, count);
    if (done <= 0) die(); /* Half a journal would prove nothing. */
    rest += done;
    count -= (size_t)done;
  }
}

static void note(char kind, int file, long long number, long long result, const void *bytes,
                 size_t count) {
  if (journal < 0) return;
  int code = errno;
  char head[128];
  int length = snprintf(head, sizeof head, "%c %d %lld %lld %zu\n", kind, file, number,
                        result < 0 ? -(long long)code : result, count);
  all(head, (size_t)length);
  all(bytes, count);
  errno = code;
}

static int begins(const char *path, const char *with) {
  size_t length = strlen(with);
  return !strncmp(path, with, length) && (path[length] == 0 || path[length] == '/');
}
static int inside(const char *path) { return path && begins(path, tree); }

static const char *known(int file) {
  return file >= 0 && file < descriptors ? paths[file] : NULL;
}

/* What is to happen to this call. Holds the guard from here to `leave`. */
static enum action enter(char kind, const char *path) {
  pthread_mutex_lock(&guard);
  if (!at || !strchr(kinds, kind) || (path && !begins(path, under))) return GO;
  counted++;
  if (counted != at && !(sticky && counted > at)) return GO;
  if (wanted == BEFORE) die();
  if (wanted == FAIL) errno = failure;
  if (wanted == STOP) direct(SYS_kill, (int)direct(SYS_getpid), SIGSTOP);
  if (wanted == SLOW) {
    struct timespec length = {0, 300000000};
    nanosleep(&length, NULL);
  }
  return wanted;
}

static void leave(enum action action) {
  if (action == AFTER || action == HALF) die();
  pthread_mutex_unlock(&guard);
}

static int opening(const char *path, int flags, int (*real)(const char *, int, mode_t),
                   mode_t mode) {
  if (!inside(path)) return real(path, flags, mode);
  char kind = (flags & O_ACCMODE) == O_RDONLY ? 'o' : 'O';
  enum action action = enter(kind, path);
  int file = action == FAIL ? -1 : real(path, flags, mode);
  note(kind, file, (flags & O_TRUNC) != 0, file, path, strlen(path));
  if (file >= 0 && file < descriptors) paths[file] = strdup(path);
  leave(action);
  return file;
}

static int real_open(const char *path, int flags, mode_t mode) {
  return (int)direct(SYS_openat, AT_FDCWD, path, flags, mode);
}

int open(const char *path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(list, mode_t) : 0;
  va_end(list);
  return opening(path, flags, real_open, mode);
}

int open64(const char *path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(list, mode_t) : 0;
  va_end(list);
  return opening(path, flags, real_open, mode);
}

DIR *opendir(const char *path) {
  if (!inside(path)) return REAL(opendir)(path);
  enum action action = enter('o', path);
  DIR *stream = action == FAIL ? NULL : REAL(opendir)(path);
  note('o', -1, 0, stream ? 0 : -1, path, strlen(path));
  leave(action);
  return stream;
}

int close(int file) {
  if (known(file)) {
    pthread_mutex_lock(&guard);
    free(paths[file]);
    paths[file] = NULL;
    pthread_mutex_unlock(&guard);
  }
  return (int)direct(SYS_close, file);
}

static int is_socket(int file) {
  struct stat status;
  return !fstat(file, &status) && S_ISSOCK(status.st_mode);
}

ssize_t write(int file, const void *bytes, size_t count) {
  const char *path = known(file);
  if (!path && !is_socket(file)) return direct(SYS_write, file, bytes, count);
  enum action action = enter(path ? 'W' : 'N', path);
  size_t asked = (action == HALF || action == SHORT) && count > 1 ? count / 2 : count;
  ssize_t done = action == FAIL ? -1 : direct(SYS_write, file, bytes, asked);
  if (path) {
    long long end = direct(SYS_lseek, file, 0, SEEK_CUR);
    note('W', file, end - (done > 0 ? done : 0), done, bytes, done > 0 ? (size_t)done : 0);
  } else {
    note('N', file, 0, done, "", 0);
  }
  leave(action);
  return done;
}

ssize_t send(int file, const void *bytes, size_t count, int flags) {
  enum action action = enter('N', NULL);
  ssize_t done =
      action == FAIL ? -1 : direct(SYS_sendto, file, bytes, count, flags, NULL, (socklen_t)0);
  note('N', file, 0, done, "", 0);
  leave(action);
  return done;
}

ssize_t pread(int file, void *bytes, size_t count, off_t offset) {
  const char *path = known(file);
  if (!path) return direct(SYS_pread64, file, bytes, count, offset);
  enum action action = enter('r', path);
  ssize_t done = action == FAIL ? -1 : direct(SYS_pread64, file, bytes, count, offset);
  note('r', file, 0, done, "", 0);
  leave(action);
  return done;
}

static int synchronizing(int file, long number) {
  const char *path = known(file);
  if (!path) return (int)direct(number, file);
  enum action action = enter('S', path);
  int result = action == FAIL ? -1 : (int)direct(number, file);
  note('S', file, 0, result, "", 0);
  leave(action);
  return result;
}

int fsync(int file) { return synchronizing(file, SYS_fsync); }
int fdatasync(int file) { return synchronizing(file, SYS_fdatasync); }

int ftruncate(int file, off_t length) {
  const char *path = known(file);
  if (!path) return (int)direct(SYS_ftruncate, file, length);
  enum action action = enter('T', path);
  int result = action == FAIL ? -1 : (int)direct(SYS_ftruncate, file, length);
  note('T', file, length, result, "", 0);
  leave(action);
  return result;
}

static int renaming(const char *from, const char *to, unsigned int flags) {
  if (!inside(from) && !inside(to))
    return (int)direct(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, flags);
  char both[2 * PATH_MAX];
  int length = snprintf(both, sizeof both, "%s%c%s", from, 0, to);
  enum action action = enter('R', to);
  int result =
      action == FAIL ? -1 : (int)direct(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, flags);
  note('R', -1, flags, result, both, (size_t)length);
  leave(action);
  return result;
}

int rename(const char *from, const char *to) { return renaming(from, to, 0); }

/* renameat2 is called by its number; the rest is passed on. */
long syscall(long number, ...) {
  va_list list;
  va_start(list, number);
  long arguments[6];
  for (int index = 0; index < 6; index++) arguments[index] = va_arg(list, long);
  va_end(list);
  if (number == SYS_renameat2)
    return renaming((const char *)arguments[1], (const char *)arguments[3],
                    (unsigned int)arguments[4]);
  return direct(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4],
                arguments[5]);
}

/* Registered with atexit(3) by libcrypto unless it is told not to. */
void OPENSSL_cleanup(void);
void OPENSSL_cleanup(void) { note('X', -1, 0, 0, "", 0); }

int unlink(const char *path) {
  if (!inside(path)) return (int)direct(SYS_unlink, path);
  enum action action = enter('U', path);
  int result = action == FAIL ? -1 : (int)direct(SYS_unlink, path);
  note('U', -1, 0, result, path, strlen(path));
  leave(action);
  return result;
}

int mkdir(const char *path, mode_t mode) {
  if (!inside(path)) return (int)direct(SYS_mkdir, path, mode);
  enum action action = enter('M', path);
  int result = action == FAIL ? -1 : (int)direct(SYS_mkdir, path, mode);
  note('M', -1, 0, result, path, strlen(path));
  leave(action);
  return result;
}
