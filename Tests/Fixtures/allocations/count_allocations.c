// Counts the heap allocations of a program it is preloaded into, and its calls of fdatasync. When the
// program ends, the two numbers are written to the file that ALLOCATIONS_FILE names.
//
//     cc -O2 -shared -fPIC -o count_allocations.so count_allocations.c -ldl

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

static atomic_ulong allocations;
static atomic_ulong syncs;

static void count(void) { atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed); }

void *malloc(size_t size) {
  count();
  return __libc_malloc(size);
}

void *calloc(size_t number, size_t size) {
  count();
  return __libc_calloc(number, size);
}

void *realloc(void *old, size_t size) {
  count();
  return __libc_realloc(old, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
  count();
  return __libc_memalign(alignment, size);
}

int posix_memalign(void **result, size_t alignment, size_t size) {
  count();
  *result = __libc_memalign(alignment, size);
  return *result == NULL ? 12 : 0;
}

int fdatasync(int file) {
  atomic_fetch_add_explicit(&syncs, 1, memory_order_relaxed);
  int (*next)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
  return next(file);
}

__attribute__((destructor)) static void report(void) {
  const char *path = getenv("ALLOCATIONS_FILE");
  if (path == NULL) return;
  int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (file < 0) return;
  char text[64];
  int length = snprintf(
      text, sizeof text, "%lu %lu\n", atomic_load(&allocations), atomic_load(&syncs));
  if (write(file, text, (size_t)length) < 0) perror("count_allocations");
  close(file);
}
