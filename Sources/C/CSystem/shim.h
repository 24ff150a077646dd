// What the Glibc module of Swift does not show.
#pragma once
// _GNU_SOURCE stays undefined: with it, types of the C library look different here than in the other
// C modules, and the importer refuses to mix them.
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
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

// syncfs and the locks of open files are hidden likewise; the numbers are the kernel's (fcntl.h).
static inline int c_syncfs(int file) { return (int)syscall(SYS_syncfs, file); }
static const int C_F_OFD_SETLK = 37;
static const int C_F_OFD_SETLKW = 38;

// accept4, pipe2 and pthread_setname_np are hidden likewise. sys/socket.h is not included on purpose: its
// types would then belong to this module in some builds and to Glibc's in others.
static inline int c_accept4(int listener, int flags) {
  return (int)syscall(SYS_accept4, listener, 0, 0, flags);
}
static inline int c_pipe2(int *ends, int flags) { return (int)syscall(SYS_pipe2, ends, flags); }
static inline int c_count_after(const char *text, const char *name, unsigned long long *count) {
  const char *found = strstr(text, name);
  return found != NULL && sscanf(found + strlen(name), "%llu", count) == 1;
}
static inline long c_gettid(void) { return syscall(SYS_gettid); }
// From a status file of /proc: 1 and the counts of context switches for a thread that sleeps, else 0.
static inline int c_sleeping_thread(const char *path, unsigned long long *voluntary,
                                    unsigned long long *involuntary) {
  char text[4096];
  int descriptor = open(path, O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return 0;
  ssize_t count = read(descriptor, text, sizeof text - 1);
  close(descriptor);
  if (count <= 0) return 0;
  text[count] = 0;
  return strstr(text, "\nState:\tS") != NULL &&
         c_count_after(text, "\nvoluntary_ctxt_switches:", voluntary) &&
         c_count_after(text, "\nnonvoluntary_ctxt_switches:", involuntary);
}
static inline void c_set_thread_name(const char *name) { prctl(PR_SET_NAME, name, 0, 0, 0); }

// Hidden likewise; takes time linear in both texts.
extern void *memmem(const void *text, size_t count, const void *part, size_t part_count);
static inline const void *c_memmem(const void *text, size_t count, const void *part,
                                   size_t part_count) {
  return memmem(text, count, part, part_count);
}
