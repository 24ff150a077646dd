import COpenSSL

/// How long the library stays usable.
package enum OpenSSLLifetime {
  /// Keeps OpenSSL whole until the process is gone.
  ///
  /// Otherwise exit(3) frees what it holds while threads that used it may still be ending; each of
  /// them frees its share too (OPENSSL_init_crypto(3), `OPENSSL_INIT_NO_ATEXIT`). To be called
  /// before anything else uses OpenSSL, libcurl included; later calls have no effect.
  package static func outliveThreads() {
    let done = OPENSSL_init_crypto(UInt64(OPENSSL_INIT_NO_ATEXIT), nil)
    precondition(done == 1, "OpenSSL cannot be initialised")
  }
}
