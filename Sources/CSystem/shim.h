// What the Glibc module of Swift does not show.
#pragma once
// _GNU_SOURCE stays undefined: with it, types of the C library look different here than in the other
// C modules, and the importer refuses to mix them.
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

// renameat2 and its flags are hidden behind _GNU_SOURCE, which the importer does not define.
static inline int c_renameat2(int from_dir, const char *from, int to_dir, const char *to,
                              unsigned int flags) {
  return (int)syscall(SYS_renameat2, from_dir, from, to_dir, to, flags);
}
static const unsigned int C_RENAME_NOREPLACE = 1;

// accept4 and pthread_setname_np are hidden likewise. sys/socket.h is not included on purpose: its
// types would then belong to this module in some builds and to Glibc's in others.
static inline int c_accept4(int listener, int flags) {
  return (int)syscall(SYS_accept4, listener, 0, 0, flags);
}
static inline long c_gettid(void) { return syscall(SYS_gettid); }
static inline void c_set_thread_name(const char *name) { prctl(PR_SET_NAME, name, 0, 0, 0); }

// Hidden likewise; takes time linear in both texts.
extern void *memmem(const void *text, size_t count, const void *part, size_t part_count);
static inline const void *c_memmem(const void *text, size_t count, const void *part,
                                   size_t part_count) {
  return memmem(text, count, part, part_count);
}
