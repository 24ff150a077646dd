#pragma once
// The type checks of curl's headers are macros around the variadic functions restated below.
#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>

// Swift calls no variadic C functions: one wrapper per kind of argument.

static inline CURLcode ccurl_set_long(CURL *handle, CURLoption option, long value) {
  return curl_easy_setopt(handle, option, value);
}

static inline CURLcode ccurl_set_offset(CURL *handle, CURLoption option, curl_off_t value) {
  return curl_easy_setopt(handle, option, value);
}

/// Strings are copied by curl; NULL resets the option.
static inline CURLcode ccurl_set_string(CURL *handle, CURLoption option, const char *value) {
  return curl_easy_setopt(handle, option, value);
}

static inline CURLcode ccurl_set_pointer(CURL *handle, CURLoption option, void *value) {
  return curl_easy_setopt(handle, option, value);
}

static inline CURLcode ccurl_set_list(CURL *handle, CURLoption option, struct curl_slist *value) {
  return curl_easy_setopt(handle, option, value);
}

/// For CURLOPT_WRITEFUNCTION and CURLOPT_HEADERFUNCTION.
static inline CURLcode ccurl_set_write(
    CURL *handle, CURLoption option, size_t (*function)(char *, size_t, size_t, void *)) {
  return curl_easy_setopt(handle, option, function);
}

static inline CURLcode ccurl_set_read(
    CURL *handle, size_t (*function)(char *, size_t, size_t, void *)) {
  return curl_easy_setopt(handle, CURLOPT_READFUNCTION, function);
}

static inline CURLcode ccurl_set_seek(CURL *handle, int (*function)(void *, curl_off_t, int)) {
  return curl_easy_setopt(handle, CURLOPT_SEEKFUNCTION, function);
}

static inline CURLcode ccurl_set_progress(
    CURL *handle,
    int (*function)(void *, curl_off_t, curl_off_t, curl_off_t, curl_off_t)) {
  return curl_easy_setopt(handle, CURLOPT_XFERINFOFUNCTION, function);
}

static inline CURLcode ccurl_get_long(CURL *handle, CURLINFO info, long *value) {
  return curl_easy_getinfo(handle, info, value);
}

/// Restricts the handle to http and https. The names are new in 7.85, the bits deprecated there. The
/// library that is loaded may be older than this header.
static inline CURLcode ccurl_set_http_only(CURL *handle) {
#if LIBCURL_VERSION_NUM >= 0x075500
  CURLcode code = curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
  if (code != CURLE_UNKNOWN_OPTION) return code;
#endif
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wdeprecated-declarations"
  return curl_easy_setopt(handle, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#pragma clang diagnostic pop
}

// Function-like or cast macros that Swift does not see.
static const long ccurl_global_all = CURL_GLOBAL_ALL;
static const long ccurl_auth_basic = (long)CURLAUTH_BASIC;
static const long ccurl_tls_1_2 = CURL_SSLVERSION_TLSv1_2;
static const size_t ccurl_read_abort = CURL_READFUNC_ABORT;
static const size_t ccurl_error_size = CURL_ERROR_SIZE;
