#pragma once
#include <arpa/inet.h>
#include <microhttpd.h>
#include <string.h>

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
