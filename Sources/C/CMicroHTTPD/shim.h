#pragma once
#include <arpa/inet.h>
#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// Swift calls no variadic C functions.

/// A daemon on 127.0.0.1 with a thread for each connection; port 0: chosen by the system.
static inline struct MHD_Daemon *c_mhd_start(
    uint16_t port, MHD_AccessHandlerCallback handler, void *context,
    MHD_RequestCompletedCallback completed) {
  struct sockaddr_in address;
  memset(&address, 0, sizeof address);
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return MHD_start_daemon(
      MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION |
          MHD_USE_SUPPRESS_DATE_NO_CLOCK,
      port, NULL, NULL, handler, context, MHD_OPTION_SOCK_ADDR, (struct sockaddr *)&address,
      MHD_OPTION_NOTIFY_COMPLETED, completed, NULL, MHD_OPTION_CONNECTION_TIMEOUT, 60u,
      MHD_OPTION_END);
}

/// 0 when it is not known.
static inline uint16_t c_mhd_port(struct MHD_Daemon *daemon) {
  const union MHD_DaemonInfo *info = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT);
  return info ? info->port : 0;
}

// How Swift sees these enumerations depends on the version of the header.
static inline enum MHD_Result c_mhd_yes(void) { return MHD_YES; }
static inline enum MHD_Result c_mhd_no(void) { return MHD_NO; }
static inline enum MHD_ValueKind c_mhd_query(void) { return MHD_GET_ARGUMENT_KIND; }
static inline enum MHD_ValueKind c_mhd_headers(void) { return MHD_HEADER_KIND; }

static inline struct MHD_Response *c_mhd_response(const void *body, size_t byte_count) {
  return MHD_create_response_from_buffer(byte_count, (void *)body, MHD_RESPMEM_MUST_COPY);
}

/// A body that does not come as it should.
struct c_mhd_faulty_body {
  size_t count;
  size_t end;
  int is_slow;
  char bytes[];
};

static inline ssize_t c_mhd_read_faulty(void *state, uint64_t position, char *buffer, size_t room) {
  struct c_mhd_faulty_body *body = (struct c_mhd_faulty_body *)state;
  if (position >= body->end) {
    return body->end < body->count ? MHD_CONTENT_READER_END_WITH_ERROR
                                   : MHD_CONTENT_READER_END_OF_STREAM;
  }
  size_t count = body->end - position;
  if (count > room) count = room;
  if (body->is_slow) {
    struct timespec pause = {2, 0};
    nanosleep(&pause, NULL);
    count = 1;
  }
  memcpy(buffer, body->bytes + position, count);
  return (ssize_t)count;
}

/// A copy of the body, sent in chunks: it ends with an error after `end` bytes, or is slow throughout.
/// NULL when there is no memory.
static inline struct MHD_Response *c_mhd_faulty_response(
    const void *bytes, size_t count, size_t end, int is_slow) {
  struct c_mhd_faulty_body *body = malloc(sizeof *body + count);
  if (!body) return NULL;
  body->count = count;
  body->end = end;
  body->is_slow = is_slow;
  if (count) memcpy(body->bytes, bytes, count);
  return MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 4096, c_mhd_read_faulty, body, free);
}
