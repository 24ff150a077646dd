#include <gnu/libc-version.h>
#include <stdarg.h>
#include <stdio.h>

#include "CBuildInfo.h"

// Restated from the headers of the libraries. Weak: where a program does not link a library, its
// function has no address.
#define IF_LINKED __attribute__((weak))
typedef struct {
  int age;
  int version_num;
  const char *version_str;
} nghttp2_info;
typedef struct {
  int age;
  const char *version;
} curl_info;
// Not curl_version, which loads the plugins of LDAP to name its version.
IF_LINKED const curl_info *curl_version_info(int age);
IF_LINKED const nghttp2_info *nghttp2_version(int least_version);
IF_LINKED const char *OpenSSL_version(int kind);
IF_LINKED int PQlibVersion(void);
IF_LINKED const char *ZSTD_versionString(void);
IF_LINKED const char *zlibVersion(void);
IF_LINKED const char *MHD_get_version(void);
/// OPENSSL_VERSION_STRING of openssl/crypto.h: "3.0.17", without name and date.
static const int openssl_version_string = 6;

struct text {
  char *bytes;
  size_t capacity, count;
};

__attribute__((format(printf, 2, 3))) static void append(struct text *text, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  size_t left = text->capacity - text->count;
  int count = vsnprintf(text->bytes + text->count, left, format, arguments);
  va_end(arguments);
  if (count < 0 || left == 0) return;
  text->count += (size_t)count < left ? (size_t)count : left - 1;
}

size_t pubsub_etl_libraries(unsigned char *bytes, size_t capacity) {
  struct text text = {(char *)bytes, capacity, 0};
  append(&text, "libraries: glibc %s", gnu_get_libc_version());
  if (curl_version_info) append(&text, ", libcurl %s", curl_version_info(0)->version);
  if (MHD_get_version) append(&text, ", libmicrohttpd %s", MHD_get_version());
  if (nghttp2_version) append(&text, ", libnghttp2 %s", nghttp2_version(0)->version_str);
  // 150013 is 15.13.
  if (PQlibVersion) append(&text, ", libpq %d.%d", PQlibVersion() / 10000, PQlibVersion() % 10000);
  if (OpenSSL_version) append(&text, ", OpenSSL %s", OpenSSL_version(openssl_version_string));
  if (zlibVersion) append(&text, ", zlib %s", zlibVersion());
  if (ZSTD_versionString) append(&text, ", zstd %s", ZSTD_versionString());
  return text.count;
}
