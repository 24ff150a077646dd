import JSON

extension PipelineSchema {
  /// The source and what it consists of.
  static var source: [(name: String, schema: JSONSchema)] {
    [
      (
        "topic",
        .text(pattern: #"^(/(data|event)/[A-Za-z0-9_]+|.*\$\{.*)$"#)
          .described("/data/… for changes of records, /event/… for platform events.")
      ),
      ("start", Self.start.described("Used only when no position is stored yet.")),
      ("source", Self.salesforce), ("org", Self.org),
    ]
  }

  private static var start: JSONSchema {
    .oneOf([
      .choice(["earliest", "latest"]), .reference("variable"),
      .object([
        .required(
          "replay_id", .text(pattern: #"^(([0-9A-Fa-f]{2})+|.*\$\{.*)$"#),
          "Begins after this event; hexadecimal digits.")
      ]),
    ])
  }

  private static var salesforce: JSONSchema {
    let startText = "Where a topic begins if no position is stored; required for a first run."
    let topic = JSONSchema.oneOf([
      .reference("topic"),
      .object([
        .required("topic", .reference("topic"), "Name of the topic."),
        .optional("start", .reference("start"), startText),
      ]),
    ])
    return .object([
      .required("type", .constant("salesforce"), "The Pub/Sub API of Salesforce."),
      .required(
        "topic", .oneOf([.reference("topic"), .list(of: topic, minCount: 1)]),
        "One or more topics to subscribe to."),
      .optional("start", .reference("start"), startText),
      .optional(
        "managed",
        .text(
          pattern: #"^([A-Za-z][A-Za-z0-9_]*|[0-9][A-Za-z0-9]{14}|[0-9][A-Za-z0-9]{17}|.*\$\{.*)$"#),
        "Developer name or record ID of a ManagedEventSubscription of the one topic, read with "
          + "ManagedSubscribe: the service keeps a position, too, and decides where a first run "
          + "begins; the position stored here stays the one that counts."),
      .optional(
        "num_requested",
        .oneOf([.integer(from: 1, through: 100), .reference("variable")]),
        "Events outstanding per stream.", default: 100),
      .optional(
        "on_invalid_replay", .choice(of: SourceConfiguration.InvalidReplayPolicy.self),
        "What a run does if the service no longer knows the stored position: fail with 65, or "
          + "begin a new epoch with the earliest or latest event; snapshot: with the earliest, and all "
          + "records are read again, so that a PostgreSQL sink misses nothing.", default: "fail"),
      .optional(
        "record_ids", .choice(of: SourceConfiguration.RecordIDs.self),
        "rows: a change of several records is one row per record; array: one row with all IDs.",
        default: "rows"),
      .optional("snapshot", Self.snapshot, "Which records are read in addition to changes."),
      .required(
        "org", .oneOf([.reference("path"), .reference("org")]),
        "The org, or the path of a file with it."),
    ])
  }

  private static var snapshot: JSONSchema {
    let defaults = SnapshotConfiguration()
    return .object([
      .optional(
        "mode", .choice(of: SnapshotConfiguration.Mode.self),
        "initial: every record is read once into each PostgreSQL sink and into files; never: only "
          + "changes are exported. By default initial for a PostgreSQL sink whose database does not "
          + "know it yet, never for files."),
      .optional(
        "objects", .list(of: .text(pattern: "^[A-Za-z][A-Za-z0-9_]*$"), minCount: 1),
        "API names of the objects whose records are read; required for channels."),
      .optional(
        "concurrency", .oneOf([.integer(from: 1, through: 10), .reference("variable")]),
        "Objects read at a time.", default: .integer(defaults.concurrency)),
      .optional(
        "visibility_wait", .reference("duration"),
        "Time after which every reader sees a commit; less than 60s for loopback addresses only.",
        default: Self.duration(defaults.visibilityWait)),
      .optional(
        "max_duration", .reference("duration"), "A snapshot that takes longer starts again.",
        default: Self.duration(defaults.maxDuration)),
    ])
  }

  private static var org: JSONSchema {
    .object([
      .optional("$schema", .text(), "Where this schema is, for editors."),
      .optional(
        "endpoint", .text(), "URL of the Pub/Sub API.",
        default: .string(OrgConfiguration.defaultEndpoint)),
      .optional("tls", Self.tls, "How the two ends of a connection are authenticated."),
      .optional(
        "proxy",
        .oneOf([.choice(["environment", "none"]), .reference("variable"), Self.proxy]),
        "How the service and the login are reached. environment: https_proxy, all_proxy and "
          + "no_proxy, never for loopback.", default: "environment"),
      .optional(
        "org_id", .text(pattern: #"^(00D([A-Za-z0-9]{12}|[A-Za-z0-9]{15})|.*\$\{.*)$"#),
        "ID of the org, 15 or 18 characters; by default taken from the login."),
      .required(
        "auth",
        .oneOf([
          Self.clientCredentials, Self.jwtBearer, Self.refreshToken, Self.salesforceCLI, Self.token,
        ]),
        "How an access token is obtained."),
    ]).described("An org, and how to connect to it.")
  }

  private static var tls: JSONSchema {
    .object([
      .optional(
        "ca_file", .text(), "PEM file of the only certificates to trust; empty means unset."),
      .optional(
        "certificate_file", .text(),
        "PEM file of a client certificate and its chain; empty means unset."),
      .optional(
        "key_file", .text(),
        "PEM file of its key, without passphrase, if not in certificate_file; empty means unset."),
    ])
  }

  private static var proxy: JSONSchema {
    .object([
      .required(
        "url", .text(),
        "http://[USER[:PASSWORD]@]HOST[:PORT]; empty means that the environment decides."),
      .optional(
        "no_proxy", .text(),
        "Hosts reached without it, separated by commas: host names (including subdomains), "
          + "addresses, networks."),
    ])
  }
}
