import CZstd
import Foundation
import Pipeline

/// What is wrong with a compressed file.
struct DecompressionError: Error {
  var message: String
}

enum Decompression {
  /// The content of exactly one frame.
  static func content(of frame: [UInt8]) throws -> [UInt8] {
    guard ZSTD_findFrameCompressedSize(frame, frame.count) == frame.count else {
      throw DecompressionError(message: "not exactly one whole frame")
    }
    guard let context = ZSTD_createDCtx() else { throw DecompressionError(message: "no memory") }
    defer { ZSTD_freeDCtx(context) }
    var output: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: ZSTD_DStreamOutSize())
    var position = 0
    while true {
      let (rest, written) = frame.withUnsafeBytes { source in
        chunk.withUnsafeMutableBytes { target in
          var input = ZSTD_inBuffer(src: source.baseAddress, size: source.count, pos: position)
          var out = ZSTD_outBuffer(dst: target.baseAddress, size: target.count, pos: 0)
          let rest = ZSTD_decompressStream(context, &out, &input)
          position = input.pos
          return (rest, out.pos)
        }
      }
      guard ZSTD_isError(rest) == 0 else {
        throw DecompressionError(message: String(cString: ZSTD_getErrorName(rest)))
      }
      output += chunk[..<written]
      if rest == 0 { return output }
    }
  }

  static func lines(of frame: [UInt8]) throws -> [String] {
    let text = String(decoding: try Self.content(of: frame), as: UTF8.self)
    guard text.hasSuffix("\n") else { throw DecompressionError(message: "last line is torn") }
    return text.dropLast().split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
  }

  /// The exit status of `zstd -t` on these files.
  static func zstdTest(_ paths: [String]) throws -> Int32 {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = ["zstd", "-t", "-q"] + paths
    try process.run()
    process.waitUntilExit()
    return process.terminationStatus
  }

  /// Absolute paths of all files below a directory, dot-files included.
  static func files(below directory: String) throws -> [String] {
    let paths = try FileManager.default.subpathsOfDirectory(atPath: directory)
    return paths.map { "\(directory)/\($0)" }.filter { path in
      var isDirectory: ObjCBool = false
      return FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory)
        && !isDirectory.boolValue
    }.sorted()
  }

  /// The permissions of a file or folder.
  static func mode(of path: String) throws -> Int? {
    try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
  }

  static func read(_ path: String) throws -> [UInt8] {
    [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)))
  }
}
