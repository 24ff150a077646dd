// swift-tools-version:6.1

import PackageDescription

let swiftSettings: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
]

let grpcCore = Target.Dependency.product(name: "GRPCCore", package: "grpc-swift-2")
let grpcProtobuf = Target.Dependency.product(name: "GRPCProtobuf", package: "grpc-swift-protobuf")
let swiftProtobuf = Target.Dependency.product(name: "SwiftProtobuf", package: "swift-protobuf")
let argumentParser = Target.Dependency.product(
  name: "ArgumentParser", package: "swift-argument-parser")
let logging = Target.Dependency.product(name: "Logging", package: "swift-log")

func target(_ name: String, _ dependencies: [Target.Dependency] = []) -> Target {
  .target(name: name, dependencies: dependencies, swiftSettings: swiftSettings)
}

func tests(_ name: String, _ dependencies: [Target.Dependency] = []) -> Target {
  .testTarget(
    name: "\(name)Tests",
    dependencies: [.byName(name: name), "TestSupport"] + dependencies,
    swiftSettings: swiftSettings
  )
}

let package = Package(
  name: "pubsub-etl",
  products: [
    .executable(name: "pubsub-etl", targets: ["PubSubETL"]),
    .executable(name: "pubsub-simulator", targets: ["PubSubSimulatorCLI"]),
  ],
  dependencies: [
    .package(url: "https://github.com/grpc/grpc-swift-2", exact: "2.4.3"),
    .package(url: "https://github.com/grpc/grpc-swift-protobuf", exact: "2.4.1"),
    .package(url: "https://github.com/apple/swift-protobuf", exact: "1.39.0", traits: []),
    .package(url: "https://github.com/apple/swift-argument-parser", exact: "1.8.2"),
    .package(url: "https://github.com/apple/swift-log", exact: "1.16.2"),
  ],
  targets: [
    // 0: C libraries of the system, and JSON.
    .systemLibrary(
      name: "CNGHTTP2", pkgConfig: "libnghttp2", providers: [.apt(["libnghttp2-dev"])]),
    .systemLibrary(name: "COpenSSL", pkgConfig: "openssl", providers: [.apt(["libssl-dev"])]),
    .systemLibrary(
      name: "CCurl", pkgConfig: "libcurl", providers: [.apt(["libcurl4-openssl-dev"])]),
    .systemLibrary(name: "CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"])]),
    .systemLibrary(name: "CZstd", pkgConfig: "libzstd", providers: [.apt(["libzstd-dev"])]),
    .systemLibrary(name: "CPQ", pkgConfig: "libpq", providers: [.apt(["libpq-dev"])]),
    .systemLibrary(
      name: "CMicroHTTPD", pkgConfig: "libmicrohttpd", providers: [.apt(["libmicrohttpd-dev"])]),
    .systemLibrary(name: "CSystem"),
    // Shortest text of floating-point numbers, by the C++ standard library.
    .target(name: "CNumbers"),
    // What `--version` says.
    .target(name: "CBuildInfo"),
    target("JSON", ["CNumbers"]),
    // Threads, locks, timers and waiting for descriptors.
    target("EventLoop", ["CSystem"]),
    // 1: bytes over the network, digests.
    target("Digest", ["COpenSSL"]),
    target("TLSStream", ["EventLoop", "COpenSSL", "CSystem"]),
    .target(
      name: "HTTPClient", dependencies: ["EventLoop", "CCurl"], swiftSettings: swiftSettings),
    target("HTTP2Transport", ["CNGHTTP2", "CZlib", "TLSStream", "EventLoop", grpcCore]),
    // 2: the service, the login, the format.
    // Generated; the messages that carry events are read without it.
    .target(
      name: "PubSubMessages", dependencies: [grpcCore, grpcProtobuf, swiftProtobuf],
      exclude: ["Protos"], swiftSettings: swiftSettings),
    .target(
      name: "PubSubAPI",
      dependencies: ["PubSubMessages", "EventLoop", grpcCore, grpcProtobuf, swiftProtobuf],
      swiftSettings: swiftSettings),
    .target(
      name: "SalesforceAuth", dependencies: ["HTTPClient", "JSON", "COpenSSL"],
      swiftSettings: swiftSettings),
    target("Avro", ["JSON", "Digest"]),
    // 3: how a run is conducted.
    target("Pipeline", ["JSON", logging]),
    // Where a run stands, on disk, and the calls that make files durable.
    .target(
      name: "Checkpoint", dependencies: ["Pipeline", "JSON", "CSystem"],
      swiftSettings: swiftSettings),
    // 4: the ends of a pipeline.
    target(
      "PubSubSource",
      ["PubSubAPI", "Avro", "Pipeline", "JSON", "Digest", "EventLoop", grpcCore, logging]),
    target("FileSink", ["Checkpoint", "Pipeline", "JSON", "Digest", "CZstd", "CSystem"]),
    // What a database holds besides rows, and the connection to it.
    .target(
      name: "PostgresStore", dependencies: ["Checkpoint", "Pipeline", "JSON", "Digest", "CPQ"],
      swiftSettings: swiftSettings),
    target("PostgresSink", ["PostgresStore", "Pipeline", "JSON", "Digest", "CPQ"]),
    // The simulator: events; the calls that deliver them, login, control, TLS.
    target("SimulatedOrg", ["COpenSSL"]),
    .target(
      name: "PubSubSimulator",
      dependencies: [
        "SimulatedOrg", "CNGHTTP2", "COpenSSL", "CMicroHTTPD", "TLSStream", "EventLoop",
        "PubSubMessages", swiftProtobuf,
      ],
      swiftSettings: swiftSettings),
    // 5: the programs.
    .executableTarget(
      name: "PubSubETL",
      dependencies: [
        "HTTP2Transport", "PubSubAPI", "SalesforceAuth", "HTTPClient", "Pipeline", "Checkpoint",
        "PubSubSource", "FileSink", "PostgresStore", "PostgresSink", "JSON", "CSystem", "TLSStream",
        "EventLoop", "CBuildInfo", grpcCore, argumentParser, logging,
      ],
      swiftSettings: swiftSettings
    ),
    .executableTarget(
      name: "PubSubSimulatorCLI",
      dependencies: [
        "PubSubSimulator", "SimulatedOrg", "TLSStream", "CBuildInfo", argumentParser,
      ],
      swiftSettings: swiftSettings
    ),
    // Tests.
    .target(
      name: "TestSupport", dependencies: ["EventLoop", grpcCore], path: "Tests/TestSupport",
      swiftSettings: swiftSettings),
    tests("JSON"),
    tests("Digest"),
    tests("EventLoop"),
    tests("TLSStream", ["EventLoop"]),
    tests("HTTPClient"),
    tests("HTTP2Transport", ["PubSubAPI", "TLSStream", "EventLoop", "CSystem", grpcCore]),
    tests("PubSubAPI", ["PubSubMessages", "EventLoop", grpcCore, swiftProtobuf]),
    tests("SalesforceAuth", ["HTTPClient"]),
    tests("Avro", ["JSON", "Digest"]),
    tests("Pipeline", ["Checkpoint", "JSON"]),
    tests("Checkpoint", ["Pipeline", "JSON"]),
    tests(
      "PubSubSource",
      [
        "PubSubAPI", "PubSubMessages", "Avro", "Pipeline", "JSON", "EventLoop", "CSystem", grpcCore,
        swiftProtobuf,
      ]),
    tests("FileSink", ["Checkpoint", "Pipeline", "JSON"]),
    // Of `PostgresStore` too: both need a server and the same tables.
    tests("PostgresSink", ["PostgresStore", "Pipeline", "JSON", "CPQ"]),
    tests("SimulatedOrg"),
    tests("PubSubSimulator", ["SimulatedOrg"]),
    tests(
      "PubSubETL",
      [
        "Pipeline", "Checkpoint", "JSON", "FileSink", "PostgresStore", "PostgresSink",
        "SalesforceAuth", "TLSStream", argumentParser, logging,
      ]),
    // The real programs against each other; runs what `swift build` has built.
    .testTarget(
      name: "EndToEndTests", dependencies: ["TestSupport"], swiftSettings: swiftSettings),
  ],
  cxxLanguageStandard: .cxx17
)
