// Preloaded into the exporter or a database server: its wall clock is off by the seconds in
// SHIFTED_CLOCK_SECONDS, or by those in the first eight bytes of the file SHIFTED_CLOCK_FILE, which may
// change. Clocks that measure time passing are left alone.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile long *shared(void) {
  static const volatile long *seconds;
  const char *path = getenv("SHIFTED_CLOCK_FILE");
  if (seconds || !path) return seconds;
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return NULL;
  void *memory = mmap(NULL, sizeof(long), PROT_READ, MAP_SHARED, file, 0);
  close(file);
  return memory == MAP_FAILED ? NULL : (seconds = memory);
}

static long offset(void) {
  const volatile long *seconds = shared();
  if (seconds) return *seconds;
  const char *text = getenv("SHIFTED_CLOCK_SECONDS");
  return text ? atol(text) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  static int (*real)(clockid_t, struct timespec *);
  if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
  int result = real(clock, now);
  if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
    now->tv_sec += offset();
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
