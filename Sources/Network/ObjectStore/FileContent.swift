package import Cryptography
package import DurableFiles
internal import HTTPClient

/// A file, or a range of one, that is sent from where it is. Any number of requests may read it.
package final class FileContent: HTTPBodySource, @unchecked Sendable {
  // Guard: immutable after `init`; reading at an offset changes nothing of the open file.
  private let file: OpenFile
  private let start: Int
  package let byteCount: Int
  /// Of these bytes.
  package let sha256: HashValue

  /// - Parameters:
  ///   - range: nil for the complete file.
  ///   - sha256: nil to read the bytes once and compute it.
  package init(
    _ path: String, range: Range<Int>? = nil, sha256: HashValue? = nil,
    on fileSystem: any FileSystem = SystemFileSystem()
  ) throws(FileSystemError) {
    let file = try OpenFile(path, [], on: fileSystem)
    let place: Range<Int>
    if let range { place = range } else { place = 0..<(try file.status().byteCount) }
    if let sha256 { self.sha256 = sha256 } else { self.sha256 = try Self.hash(of: file, place) }
    self.start = place.lowerBound
    self.byteCount = place.count
    self.file = file
  }

  private static let pieceByteCount = 256 << 10

  private static func hash(
    of file: borrowing OpenFile, _ range: Range<Int>
  ) throws(FileSystemError) -> HashValue {
    var hash = SHA256()
    var offset = range.lowerBound
    while offset < range.upperBound {
      let piece = try file.content(
        from: offset, byteCount: min(Self.pieceByteCount, range.upperBound - offset))
      // Sending it fails then, and says why.
      if piece.isEmpty { break }
      hash.update(piece)
      offset += piece.count
    }
    return hash.snapshot()
  }

  package func read(into bytes: UnsafeMutableRawBufferPointer, at offset: Int) throws -> Int {
    let count = try self.file.read(into: bytes, at: self.start + offset)
    guard count > 0 else {
      throw ObjectStoreError(
        .damaged,
        "\(self.file.path) ends at byte \(self.start + offset), before the end of what is sent; another "
          + "process has truncated it")
    }
    return count
  }
}

/// The content of a new object.
package enum ObjectContent: Sendable {
  case bytes([UInt8])
  case file(FileContent)

  var sha256: HashValue {
    switch self {
    case .bytes(let bytes): SHA256.hash(of: bytes)
    case .file(let file): file.sha256
    }
  }

  package var byteCount: Int {
    switch self {
    case .bytes(let bytes): bytes.count
    case .file(let file): file.byteCount
    }
  }
}
