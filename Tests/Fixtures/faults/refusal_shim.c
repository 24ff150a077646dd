/* Preloaded into a program under test: one call that the program itself makes for its threads and
 * event loops is not made and fails. Calls of the libraries it uses are left alone.
 *
 *     REFUSE_CALL   epoll_create1, eventfd, epoll_ctl, pipe or pthread_create
 *     REFUSE_AT     which of these calls, from 1
 *     REFUSE_ERRNO  what it fails with
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

static atomic_int counted;

/* The errno to fail with, or 0 when the call is to be made. */
static int refused(const char *call, void *caller) {
  const char *wanted = getenv("REFUSE_CALL"), *at = getenv("REFUSE_AT"), *number = getenv("REFUSE_ERRNO");
  if (!wanted || !at || !number || strcmp(wanted, call) != 0) return 0;
  Dl_info info;
  if (!dladdr(caller, &info) || !info.dli_fname) return 0;
  const char *name = strrchr(info.dli_fname, '/');
  if (strcmp(name ? name + 1 : info.dli_fname, program_invocation_short_name) != 0) return 0;
  return atomic_fetch_add(&counted, 1) + 1 == atoi(at) ? atoi(number) : 0;
}

static int failed(int number) {
  errno = number;
  return -1;
}

int epoll_create1(int flags) {
  int number = refused("epoll_create1", __builtin_return_address(0));
  return number ? failed(number) : ((int (*)(int))dlsym(RTLD_NEXT, "epoll_create1"))(flags);
}

int eventfd(unsigned int value, int flags) {
  int number = refused("eventfd", __builtin_return_address(0));
  return number ? failed(number) : ((int (*)(unsigned int, int))dlsym(RTLD_NEXT, "eventfd"))(value, flags);
}

int epoll_ctl(int set, int operation, int descriptor, struct epoll_event *event) {
  int number = refused("epoll_ctl", __builtin_return_address(0));
  return number ? failed(number)
                : ((int (*)(int, int, int, struct epoll_event *))dlsym(RTLD_NEXT, "epoll_ctl"))(
                      set, operation, descriptor, event);
}

int pipe(int ends[2]) {
  int number = refused("pipe", __builtin_return_address(0));
  return number ? failed(number) : ((int (*)(int *))dlsym(RTLD_NEXT, "pipe"))(ends);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *), void *argument) {
  int number = refused("pthread_create", __builtin_return_address(0));
  return number ? number
                : ((int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *))dlsym(
                      RTLD_NEXT, "pthread_create"))(thread, attributes, body, argument);
}
