import Cryptography
import Testing

/// Vectors of FIPS 180-4's examples and RFC 1321, appendix A.5.
@Suite("Digests")
struct DigestTests {
  @Test(
    "SHA-256 gives the published hashes",
    arguments: [
      ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
      ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
      (
        "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
      ),
    ])
  func sha256(text: String, hex: String) {
    #expect(SHA256.hash(of: Array(text.utf8)).hex == hex)
  }

  @Test(
    "MD5 gives the published hashes",
    arguments: [
      ("", "d41d8cd98f00b204e9800998ecf8427e"),
      ("abc", "900150983cd24fb0d6963f7d28e17f72"),
      ("message digest", "f96b697d7cb7938d525a2f31aaf161d0"),
    ])
  func md5(text: String, hex: String) throws {
    #expect(try MD5.hash(of: Array(text.utf8)).hex == hex)
  }

  @Test("A snapshot gives the hash so far, and the computation continues")
  func snapshots() {
    let message = Array(
      "a message of several parts, longer than one block of sixty-four bytes".utf8)
    var running = SHA256()
    for (index, byte) in message.enumerated() {
      #expect(running.snapshot() == SHA256.hash(of: Array(message[..<index])))
      running.update([byte])
    }
    var other = running.copy()
    other.update([1])
    #expect(running.snapshot() == SHA256.hash(of: message))
    #expect(other.snapshot() == SHA256.hash(of: message + [1]))
  }
}
