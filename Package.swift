// swift-tools-version:6.1

import Foundation
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

/// The archive of RE2 is linked, so that the programs run where the library is not installed. Since
/// 2023-07, RE2 is made with Abseil, whose archives differ from system to system; its shared library
/// knows them.
let re2: String = {
  let header = try? String(contentsOfFile: "/usr/include/re2/re2.h", encoding: .utf8)
  return header?.contains("\"absl/") == true ? "re2" : ":libre2.a"
}()

/// The folders of Sources.
enum Floor: String {
  case base = "Base"
  case network = "Network"
  case salesforce = "Salesforce"
  case pipeline = "Pipeline"
  case connectors = "Connectors"
  case program = "Program"
  case simulator = "Simulator"
}

func target(
  _ name: String, in floor: Floor, _ dependencies: [Target.Dependency] = []
) -> Target {
  .target(
    name: name, dependencies: dependencies, path: "Sources/\(floor.rawValue)/\(name)",
    swiftSettings: swiftSettings)
}

func tests(
  _ name: String, _ dependencies: [Target.Dependency] = [],
  support: [Target.Dependency] = [
    "TestSupport"
  ]
) -> Target {
  .testTarget(
    name: "\(name)Tests",
    dependencies: [.byName(name: name)] + support + dependencies,
    swiftSettings: swiftSettings
  )
}

let package = Package(
  name: "pubsub-etl",
  products: [
    .library(name: "SalesforcePubSub", targets: ["SalesforcePubSub", "PubSubAPI"]),
    .library(name: "Avro", targets: ["Avro"]),
    .library(name: "GRPCHTTP2", targets: ["HTTP2Transport"]),
    .executable(name: "pubsub-etl", targets: ["Exporter"]),
    .executable(name: "pubsub-simulator", targets: ["PubSubSimulatorCLI"]),
    .executable(name: "pubsub-etl-rehearsal", targets: ["RehearsedExporter"]),
  ],
  dependencies: [
    .package(url: "https://github.com/grpc/grpc-swift-2", exact: "2.4.3"),
    .package(url: "https://github.com/grpc/grpc-swift-protobuf", exact: "2.4.1"),
    .package(url: "https://github.com/apple/swift-protobuf", exact: "1.39.0", traits: []),
    .package(url: "https://github.com/apple/swift-argument-parser", exact: "1.8.2"),
    .package(url: "https://github.com/apple/swift-log", exact: "1.16.2"),
  ],
  targets: [
    // MARK: C: libraries of the system, and what only C can say.
    .systemLibrary(
      name: "CNGHTTP2", path: "Sources/C/CNGHTTP2", pkgConfig: "libnghttp2",
      providers: [.apt(["libnghttp2-dev"])]),
    .systemLibrary(
      name: "COpenSSL", path: "Sources/C/COpenSSL", pkgConfig: "openssl",
      providers: [.apt(["libssl-dev"])]),
    .systemLibrary(
      name: "CCurl", path: "Sources/C/CCurl", pkgConfig: "libcurl",
      providers: [.apt(["libcurl4-openssl-dev"])]),
    .systemLibrary(
      name: "CZlib", path: "Sources/C/CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"])]),
    .systemLibrary(
      name: "CZstd", path: "Sources/C/CZstd", pkgConfig: "libzstd",
      providers: [.apt(["libzstd-dev"])]),
    .systemLibrary(
      name: "CPQ", path: "Sources/C/CPQ", pkgConfig: "libpq", providers: [.apt(["libpq-dev"])]),
    .systemLibrary(
      name: "CMicroHTTPD", path: "Sources/C/CMicroHTTPD", pkgConfig: "libmicrohttpd",
      providers: [.apt(["libmicrohttpd-dev"])]),
    .systemLibrary(name: "CSystem", path: "Sources/C/CSystem"),
    // Text of floating-point numbers, by the C++ standard library.
    .target(name: "CShortestDecimal", path: "Sources/C/CShortestDecimal"),
    // Regular expressions in linear time.
    .target(name: "CRE2", path: "Sources/C/CRE2", linkerSettings: [.linkedLibrary(re2)]),
    // What `--version` says.
    .target(name: "CBuildInfo", path: "Sources/C/CBuildInfo"),
    // The arguments of the process, from the C library.
    .target(name: "CArguments", path: "Sources/C/CArguments"),
    // MARK: Base: what depends on no protocol.
    // The time that a process goes by.
    target("Clocks", in: .base),
    // Buffers; text of numbers, dates and base64; the wall clock of the machine.
    target("Bytes", in: .base, ["CShortestDecimal"]),
    target("JSON", in: .base, ["Bytes"]),
    // Threads, locks, timers and waiting for descriptors.
    target("EventLoop", in: .base, ["CArguments", "CSystem", "Clocks"]),
    // Digests, signatures, and texts that only the holders of a key can read.
    target("Cryptography", in: .base, ["COpenSSL", "Bytes"]),
    // Files that survive a crash: the system calls behind them, and their errors.
    target("DurableFiles", in: .base, ["CSystem"]),
    target("Avro", in: .base, ["Bytes", "JSON", "Cryptography"]),
    // Files of columns, as analytical databases read them.
    target("Parquet", in: .base, ["CZstd", "Bytes"]),
    // MARK: Network: bytes over the network.
    target("TLSStream", in: .network, ["COpenSSL", "CSystem", "EventLoop"]),
    target("HTTPClient", in: .network, ["CCurl", "Bytes", "Clocks", "EventLoop", "TLSStream"]),
    target(
      "HTTP2Transport", in: .network,
      ["CNGHTTP2", "CZlib", "Bytes", "Clocks", "EventLoop", "TLSStream", grpcCore]),
    // Objects in S3-compatible storage.
    target(
      "ObjectStore", in: .network,
      ["Bytes", "Clocks", "JSON", "Cryptography", "DurableFiles", "HTTPClient"]),
    // Connections to PostgreSQL, by libpq.
    target("PostgresClient", in: .network, ["CPQ", "Clocks", "Cryptography"]),
    // MARK: Salesforce: the service, its login, its records, its schemas, and one client made of them.
    // Generated; the messages that carry events are read without it.
    .target(
      name: "PubSubMessages", dependencies: [grpcCore, swiftProtobuf],
      path: "Sources/Salesforce/PubSubMessages", exclude: ["Protos"], swiftSettings: swiftSettings),
    target(
      "PubSubAPI", in: .salesforce,
      ["Clocks", "EventLoop", "PubSubMessages", grpcCore, grpcProtobuf, swiftProtobuf]),
    target(
      "SalesforceAuth", in: .salesforce,
      [
        "Clocks", "Bytes", "JSON", "EventLoop", "Cryptography", "HTTPClient", "DurableFiles",
      ]),
    // Records by the REST API and Bulk API 2.0.
    target(
      "SalesforceREST", in: .salesforce, ["Bytes", "Clocks", "JSON", "HTTPClient", "EventLoop"]),
    // Formulas of fields, as expressions for PostgreSQL.
    target("Formulas", in: .salesforce, ["PostgresClient"]),
    // Schemas by the IDs that the service gives them, in memory and in files.
    target(
      "SchemaStore", in: .salesforce,
      ["Clocks", "Bytes", "JSON", "EventLoop", "Cryptography", "DurableFiles", "Avro"]),
    target(
      "SalesforcePubSub", in: .salesforce,
      [
        "Clocks", "EventLoop", "Cryptography", "TLSStream", "HTTPClient", "HTTP2Transport",
        "PubSubAPI", "SalesforceAuth", "Avro", "SchemaStore", grpcCore,
      ]),
    // MARK: Pipeline: how a run is conducted, wherever events come from or go to.
    // Expressions over the columns of a row.
    target("CEL", in: .pipeline, ["CRE2", "CSystem", "Bytes", "JSON"]),
    // How a run is conducted.
    target(
      "Pipeline", in: .pipeline, ["Clocks", "Bytes", "JSON", "Cryptography", "CEL", "EventLoop"]),
    // Where a run stands, on disk.
    target("Checkpoint", in: .pipeline, ["Clocks", "Bytes", "JSON", "DurableFiles", "Pipeline"]),
    // MARK: Connectors: sources and sinks.
    target(
      "PubSubSource", in: .connectors,
      [
        "Clocks", "Bytes", "JSON", "EventLoop", "Cryptography", "DurableFiles", "PubSubAPI", "Avro",
        "SchemaStore", "Pipeline", grpcCore,
      ]),
    // Records as REST and Bulk have them, as rows of their events.
    target(
      "RESTSource", in: .connectors,
      ["CShortestDecimal", "Clocks", "Bytes", "EventLoop", "SalesforceREST", "Pipeline"]),
    target(
      "FileSink", in: .connectors,
      [
        "CZstd", "CSystem", "Clocks", "Bytes", "JSON", "EventLoop", "Cryptography",
        "DurableFiles", "Pipeline",
      ]),
    target(
      "PostgresSink", in: .connectors,
      [
        "Clocks", "Bytes", "JSON", "Cryptography", "PostgresClient", "Formulas", "Pipeline",
        "Checkpoint",
      ]),
    // MARK: Program: options, pipeline file, assembly, commands. The executable has no code but its start.
    target(
      "PubSubETL", in: .program,
      [
        "CBuildInfo", "CSystem", "Clocks", "Bytes", "JSON", "CEL", "EventLoop", "Cryptography",
        "TLSStream", "HTTPClient",
        "HTTP2Transport", "DurableFiles", "PubSubAPI", "SalesforceAuth", "SalesforceREST",
        "SalesforcePubSub", "SchemaStore", "Pipeline", "Checkpoint",
        "PubSubSource", "RESTSource", "FileSink", "PostgresClient", "PostgresSink", grpcCore,
        argumentParser, logging,
      ]),
    .executableTarget(
      name: "Exporter", dependencies: ["PubSubETL"], path: "Sources/Program/Exporter",
      swiftSettings: swiftSettings),
    // MARK: Simulator: the org, what it holds and logs; the servers that deliver it; a pipeline in
    // compressed time. The program never imports it.
    // A clock that skips idle waits.
    target("RehearsalClock", in: .simulator, ["CSystem", "Clocks", "EventLoop"]),
    target("SimulatedOrg", in: .simulator, ["COpenSSL", "EventLoop"]),
    target(
      "PubSubSimulator", in: .simulator,
      [
        "CNGHTTP2", "COpenSSL", "CMicroHTTPD", "CZlib", "Clocks", "JSON", "EventLoop", "TLSStream",
        "PubSubMessages", "RehearsalClock", "SimulatedOrg", swiftProtobuf,
      ]),
    target("Rehearsal", in: .simulator, ["JSON", "SimulatedOrg", "PubSubSimulator"]),
    .executableTarget(
      name: "PubSubSimulatorCLI",
      dependencies: [
        "PubSubSimulator", "SimulatedOrg", "Rehearsal", "JSON", "EventLoop", "TLSStream",
        "CBuildInfo", argumentParser,
      ],
      path: "Sources/Simulator/PubSubSimulatorCLI",
      swiftSettings: swiftSettings
    ),
    // The program by a clock that the simulator serves.
    .executableTarget(
      name: "RehearsedExporter", dependencies: ["Clocks", "PubSubETL", "RehearsalClock"],
      path: "Sources/Simulator/RehearsedExporter", swiftSettings: swiftSettings),
    // MARK: Tests.
    .target(
      name: "TestSupport",
      dependencies: ["Bytes", "EventLoop", "PostgresClient", "DurableFiles", "Pipeline", grpcCore],
      path: "Tests/TestSupport",
      swiftSettings: swiftSettings),
    // A simulated org that answers REST.
    .target(
      name: "OrgTestSupport",
      dependencies: [
        "TestSupport", "HTTPClient", "SalesforceREST", "PubSubSimulator", "SimulatedOrg",
      ],
      path: "Tests/OrgTestSupport",
      swiftSettings: swiftSettings),
    // What tests of subscriptions have in common.
    .target(
      name: "PubSubTestSupport", dependencies: ["EventLoop", "PubSubAPI"],
      path: "Tests/PubSubTestSupport", swiftSettings: swiftSettings),
    // The way of an event on one thread, to count its instructions.
    .executableTarget(
      name: "EventBenchmark",
      dependencies: [
        "Bytes", "Cryptography", "DurableFiles", "FileSink", "Pipeline", "PubSubAPI",
        "PubSubSource", "SimulatedOrg", argumentParser,
      ],
      path: "Tests/EventBenchmark", swiftSettings: swiftSettings),
    tests("Clocks", support: []),
    tests("Bytes"),
    tests("JSON", ["Bytes"]),
    tests("CEL", ["Bytes", "JSON"]),
    tests("Cryptography"),
    tests("EventLoop", support: []),
    tests("TLSStream", ["EventLoop"]),
    tests("HTTPClient"),
    tests(
      "ObjectStore",
      ["Bytes", "Clocks", "JSON", "Cryptography", "DurableFiles", "EventLoop", "HTTPClient"]),
    tests("HTTP2Transport", ["CSystem", "EventLoop", "TLSStream", grpcCore]),
    tests("PostgresClient"),
    tests("DurableFiles"),
    tests(
      "PubSubAPI", ["EventLoop", "HTTP2Transport", "PubSubMessages", grpcCore, swiftProtobuf]),
    tests(
      "SalesforceAuth", ["EventLoop", "JSON", "HTTPClient", "Cryptography", "DurableFiles"]),
    tests("Formulas", ["JSON", "PostgresClient"]),
    tests(
      "SalesforceREST", ["OrgTestSupport", "JSON", "HTTPClient", "PubSubSimulator", "SimulatedOrg"]),
    tests("Avro", ["Bytes", "JSON", "Cryptography"], support: []),
    tests("Parquet", ["Bytes"]),
    tests("SchemaStore", ["EventLoop", "DurableFiles", "Avro"]),
    tests(
      "SalesforcePubSub",
      [
        "PubSubTestSupport", "EventLoop", "Clocks", "TLSStream", "PubSubAPI", "PubSubMessages",
        "SalesforceAuth", "Avro", "SchemaStore", grpcCore, swiftProtobuf,
      ]),
    tests("Pipeline", ["Bytes", "JSON", "Cryptography", "Checkpoint"]),
    tests("Checkpoint", ["JSON", "DurableFiles", "Pipeline"]),
    tests(
      "PubSubSource",
      [
        "PubSubTestSupport", "CSystem", "Clocks", "JSON", "EventLoop", "DurableFiles",
        "PubSubMessages", "PubSubAPI", "Avro", "SchemaStore", "Pipeline", grpcCore, swiftProtobuf,
      ]),
    tests(
      "FileSink",
      [
        "CZstd", "Bytes", "JSON", "EventLoop", "Cryptography", "DurableFiles", "Pipeline",
        "Checkpoint",
      ]),
    tests(
      "RESTSource",
      [
        "OrgTestSupport", "Clocks", "HTTPClient", "Avro", "JSON", "SalesforceREST", "Pipeline",
        "PubSubSource",
        "PubSubSimulator", "SimulatedOrg",
      ]),
    tests(
      "PostgresSink", ["Clocks", "Bytes", "JSON", "Cryptography", "PostgresClient", "Pipeline"]),
    tests("RehearsalClock", ["CSystem", "Clocks", "EventLoop"], support: []),
    tests("SimulatedOrg"),
    tests("PubSubSimulator", ["SimulatedOrg"]),
    tests("Rehearsal", ["JSON", "SimulatedOrg"], support: []),
    tests(
      "PubSubETL",
      [
        "OrgTestSupport", "PubSubSimulator", "SimulatedOrg",
        "Clocks", "Bytes", "JSON", "Cryptography", "TLSStream", "HTTPClient", "PostgresClient",
        "DurableFiles",
        "SalesforceAuth", "SalesforceREST", "EventLoop", "PubSubAPI", "PubSubMessages",
        "Pipeline", "Checkpoint", "FileSink", "PostgresSink", argumentParser, logging, grpcCore,
        swiftProtobuf,
      ]),
    // The real programs against each other; runs what `swift build` has built.
    .testTarget(
      name: "EndToEndTests", dependencies: ["TestSupport"], swiftSettings: swiftSettings),
  ],
  cxxLanguageStandard: .cxx17
)
