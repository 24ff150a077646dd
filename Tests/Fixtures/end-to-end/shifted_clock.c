// Preloaded into the exporter or a database server: its wall clock is off by the seconds in
// SHIFTED_CLOCK_SECONDS, or by the milliseconds in the first eight bytes of the file SHIFTED_CLOCK_FILE, which
// may change. Clocks that measure time passing are left alone.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile long *shared(void) {
  static const volatile long *milliseconds;
  const char *path = getenv("SHIFTED_CLOCK_FILE");
  if (milliseconds || !path) return milliseconds;
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return NULL;
  void *memory = mmap(NULL, sizeof(long), PROT_READ, MAP_SHARED, file, 0);
  close(file);
  return memory == MAP_FAILED ? NULL : (milliseconds = memory);
}

// In milliseconds.
static long offset(void) {
  const volatile long *milliseconds = shared();
  if (milliseconds) return *milliseconds;
  const char *text = getenv("SHIFTED_CLOCK_SECONDS");
  return text ? atol(text) * 1000 : 0;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  static int (*real)(clockid_t, struct timespec *);
  if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
  int result = real(clock, now);
  if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
    long milliseconds = offset();
    now->tv_sec += milliseconds / 1000;
    now->tv_nsec += milliseconds % 1000 * 1000000;
    if (now->tv_nsec >= 1000000000) {
      now->tv_sec += 1;
      now->tv_nsec -= 1000000000;
    } else if (now->tv_nsec < 0) {
      now->tv_sec -= 1;
      now->tv_nsec += 1000000000;
    }
  }
  return result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
  (void)zone;
  struct timespec time;
  if (clock_gettime(CLOCK_REALTIME, &time) != 0) return -1;
  now->tv_sec = time.tv_sec;
  now->tv_usec = time.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *result) {
  struct timespec now;
  if (clock_gettime(CLOCK_REALTIME, &now) != 0) return -1;
  if (result) *result = now.tv_sec;
  return now.tv_sec;
}
