#pragma once
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

// Function-like macros do not reach Swift; each is restated under its own name with a prefix.
static inline long c_SSL_set_tlsext_host_name(SSL *ssl, const char *name) {
  return SSL_set_tlsext_host_name(ssl, name);
}
static inline int c_SSL_CTX_set_min_proto_version(SSL_CTX *context, int version) {
  return (int)SSL_CTX_set_min_proto_version(context, version);
}
static inline long c_SSL_CTX_set_mode(SSL_CTX *context, long mode) {
  return SSL_CTX_set_mode(context, mode);
}
static inline long c_SSL_CTX_set_read_ahead(SSL_CTX *context, int yes) {
  return SSL_CTX_set_read_ahead(context, yes);
}
static inline int c_SSL_CTX_add0_chain_cert(SSL_CTX *context, X509 *certificate) {
  return (int)SSL_CTX_add0_chain_cert(context, certificate);
}

// Constants built from casts or shifts are not imported.
static const uint64_t C_SSL_OP_NO_RENEGOTIATION = SSL_OP_NO_RENEGOTIATION;
static const long C_SSL_MODE_STREAMING =
    SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER;
