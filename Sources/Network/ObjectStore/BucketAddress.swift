internal import Bytes
package import HTTPClient

/// Where a bucket is, and how its objects are addressed.
package struct BucketAddress: Sendable, Equatable {
  package let bucket: String
  /// What requests are signed for.
  package let region: String
  /// Without the bucket.
  package let endpoint: ServiceAddress
  /// The bucket is the first part of the path, not of the host name.
  package let usesPathStyle: Bool

  /// Why an address cannot be used.
  package struct Mistake: Error, Sendable, CustomStringConvertible {
    package enum Part: Sendable { case bucket, region, endpoint }
    package var part: Part
    package var description: String
  }

  /// - Parameters:
  ///   - region: nil for `us-east-1`, which stores other than AWS take for their own.
  ///   - endpoint: nil for AWS in that region.
  ///   - usesPathStyle: nil for the path style with an endpoint, and for buckets with a dot, which no
  ///     certificate of AWS covers.
  package init(
    bucket: String, region: String? = nil, endpoint: ServiceAddress? = nil,
    usesPathStyle: Bool? = nil
  ) throws(Mistake) {
    guard (3...63).contains(bucket.utf8.count),
      bucket.utf8.allSatisfy({ $0.isWordCharacter || "-.".utf8.contains($0) }),
      !bucket.hasPrefix("."), !bucket.hasSuffix("."), !bucket.contains("..")
    else {
      throw Mistake(
        part: .bucket,
        description:
          "the name of a bucket has 3 to 63 letters, digits, '-' and '.', such as my-bucket"
      )
    }
    let region = region ?? "us-east-1"
    guard (1...40).contains(region.utf8.count),
      region.utf8.allSatisfy({ $0.isWordCharacter || $0 == UInt8(ascii: "-") })
    else {
      throw Mistake(
        part: .region,
        description: "a region has up to 40 letters, digits and '-', such as eu-central-1")
    }
    let suffix = region.hasPrefix("cn-") ? ".cn" : ""
    self.bucket = bucket
    self.region = region
    self.endpoint =
      endpoint
      ?? ServiceAddress(
        isSecure: true, host: "s3.\(region.lowercased()).amazonaws.com\(suffix)", port: 443)
    self.usesPathStyle = usesPathStyle ?? (endpoint != nil || bucket.contains("."))
    let host = self.endpoint.host
    let isAddress = host.contains(":") || host.utf8.allSatisfy { "0123456789.".utf8.contains($0) }
    guard self.usesPathStyle || !isAddress else {
      throw Mistake(
        part: .endpoint,
        description: "a bucket cannot be part of an IP address; use path_style, or a host name")
    }
  }

  /// `https://host:port`, the bucket included where it is part of it.
  var origin: String {
    guard !self.usesPathStyle else { return self.endpoint.url }
    return ServiceAddress(
      isSecure: self.endpoint.isSecure, host: "\(self.bucket).\(self.endpoint.host)",
      port: self.endpoint.port
    ).url
  }

  /// Encoded; of the bucket itself without a key.
  func path(of key: String?) -> String {
    let path = self.usesPathStyle ? "/\(self.bucket)/\(key ?? "")" : "/\(key ?? "")"
    // Stores list a bucket with and without the slash after it; the shorter one is usual.
    let isBucket = self.usesPathStyle && key == nil
    return RequestSigner.encodedPath(isBucket ? "/\(self.bucket)" : path)
  }

  /// For messages.
  func name(of key: String?) -> String {
    "s3://\(self.bucket)" + (key.map { "/\($0.shown(upTo: 300))" } ?? "")
  }
}
