internal import Pipeline

/// Why a command ended. The raw value is the word in reports and logs, which is stable.
///
/// This is the only list of the words, with their exit codes and the text of ExitCodes.md. Failures of
/// streams have the service's words instead.
enum EndReason: String, CaseIterable, Sendable {
  case allowance
  case allowanceUnknown = "allowance_unknown"
  case alreadyRunning = "already_running"
  case ambiguousCondition = "ambiguous_condition"
  case answers
  case cannotPublish = "cannot_publish"
  case cannotSubscribe = "cannot_subscribe"
  case caughtUp = "caught_up"
  case certificate
  case checkpointIO = "checkpoint_io"
  case checkpointTooLarge = "checkpoint_too_large"
  case classification
  case classificationChanged = "classification_changed"
  case connection
  case contract
  case damagedCheckpoint = "damaged_checkpoint"
  case database
  case databaseRefused = "database_refused"
  case databaseRewound = "database_rewound"
  case databaseUnavailable = "database_unavailable"
  case deadLetterLimit = "dead_letter_limit"
  case durationReached = "duration_reached"
  case eventsReached = "events_reached"
  case fileExists = "file_exists"
  case from
  case hasCheckpoint = "has_checkpoint"
  case incomplete
  case inconsistentOutput = "inconsistent_output"
  case input
  case `internal`
  case login
  case lookup
  case lostOutput = "lost_output"
  case lostState = "lost_state"
  case lostTable = "lost_table"
  case malformedResponse = "malformed_response"
  case managedNotFound = "managed_not_found"
  case managedPosition = "managed_position"
  case managedStopped = "managed_stopped"
  case managedTopic = "managed_topic"
  case maxDuration = "max_duration"
  case maxEvents = "max_events"
  case newSink = "new_sink"
  case noCheckpoint = "no_checkpoint"
  case noCopy = "no_copy"
  case noDatabase = "no_database"
  case noHistory = "no_history"
  case noManifest = "no_manifest"
  case noObjects = "no_objects"
  case noPosition = "no_position"
  case noProgress = "no_progress"
  case noRepair = "no_repair"
  case noSink = "no_sink"
  case noStart = "no_start"
  case notConfirmed = "not_confirmed"
  case notSalesforce = "not_salesforce"
  case nothingToCompare = "nothing_to_compare"
  case openGroup = "open_group"
  case otherCheckpoint = "other_checkpoint"
  case otherDirectory = "other_directory"
  case otherOrg = "other_org"
  case otherPipeline = "other_pipeline"
  case otherSinks = "other_sinks"
  case otherStream = "other_stream"
  case output
  case quota
  case refresh
  case refused
  case refusedCondition = "refused_condition"
  case rejectedRow = "rejected_row"
  case schema
  case severalOrgs = "several_orgs"
  case signal
  case sinkIO = "sink_io"
  case stages
  case storesApart = "stores_apart"
  case system
  case tls
  case unavailable
  case undecodable
  case unknownEntity = "unknown_entity"
  case unknownFile = "unknown_file"
  case unknownLetter = "unknown_letter"
  case unknownRecord = "unknown_record"
  case unknownSink = "unknown_sink"
  case unknownTopic = "unknown_topic"
  case unprocessable
  case untrustedPeer = "untrusted_peer"
  case unverifiable
  case unwritable

  /// The exit codes, the usual one first.
  var codes: [ExitCode] {
    switch self {
    case .database, .lookup, .managedTopic, .newSink, .notSalesforce, .otherCheckpoint, .refresh,
      .stages, .untrustedPeer, .unverifiable:
      [.configuration]
    case .checkpointTooLarge, .contract, .damagedCheckpoint, .deadLetterLimit, .hasCheckpoint,
      .inconsistentOutput, .lostOutput, .lostState, .lostTable, .noCheckpoint, .noManifest,
      .openGroup, .otherDirectory, .otherOrg, .otherPipeline, .otherSinks, .otherStream,
      .rejectedRow, .severalOrgs, .undecodable, .unknownFile, .unprocessable:
      [.data]
    case .internal:
      [.internal]
    case .checkpointIO, .fileExists, .sinkIO, .unwritable:
      [.output]
    case .allowanceUnknown, .cannotPublish, .cannotSubscribe, .databaseRefused,
      .managedNotFound, .managedStopped:
      [.refused]
    case .durationReached, .eventsReached:
      [.success]
    case .allowance, .classificationChanged, .databaseRewound, .incomplete,
      .noPosition, .nothingToCompare, .quota:
      [.tryAgain]
    case .connection, .databaseUnavailable, .malformedResponse, .managedPosition, .noProgress,
      .unavailable:
      [.unavailable]
    case .ambiguousCondition, .answers, .certificate, .from, .input, .maxEvents, .noCopy,
      .noDatabase,
      .noHistory, .noObjects, .noRepair, .noSink, .notConfirmed, .refusedCondition,
      .unknownEntity, .unknownLetter, .unknownRecord, .unknownSink, .unknownTopic:
      [.usage]
    case .classification:
      [.data, .refused]
    case .alreadyRunning:
      [.tryAgain, .success]
    case .storesApart:
      [.data, .tryAgain]
    case .system:
      [.internal, .tryAgain]
    case .output:
      [.output, .tryAgain]
    case .refused:
      [.refused, .unavailable]
    case .caughtUp:
      [.success, .data]
    case .maxDuration, .signal:
      [.success, .tryAgain]
    case .tls:
      [.tryAgain, .configuration]
    case .schema:
      [.unavailable, .data]
    case .noStart:
      [.usage, .configuration]
    case .login:
      [.unavailable, .tryAgain, .refused, .configuration]
    }
  }

  /// For the page: one clause, Markdown.
  var meaning: String {
    switch self {
    case .allowance:
      "`allowance.reserve` keeps the rest of the org's daily events for others; a later run "
        + "continues"
    case .allowanceUnknown:
      "`allowance.reserve` is set, and the org does not say how many events it may deliver"
    case .alreadyRunning:
      "another run or command holds the lock, the directory or the lease; code 0 with "
        + "`if_running: skip`"
    case .ambiguousCondition: "`snapshot --where` needs one `--entity`"
    case .answers: "`init` needs an answer, and there is no terminal to ask for it"
    case .cannotPublish: "the run-as user may not publish to the topic"
    case .cannotSubscribe: "the run-as user may not subscribe to the topic"
    case .caughtUp:
      "every event up to the end of the stream is exported; code 65 if `run.fail_on` has "
        + "what the run found"
    case .certificate: "the file of `permissions --certificate` has no usable certificate"
    case .checkpointIO: "the checkpoint could not be read or written"
    case .checkpointTooLarge: "too many events of a channel have one replay ID"
    case .classification:
      "the org does not say how fields are classified, so nothing can be masked by "
        + "classification"
    case .classificationChanged: "the classification of fields changed during the run; run again"
    case .connection: "the connection to the service failed"
    case .contract: "the tables lack something, and `contract` is `freeze`"
    case .damagedCheckpoint: "the checkpoint cannot be read as one"
    case .database: "the tables or the database do not fit the pipeline file"
    case .databaseRefused: "the database refused the login or a privilege is missing"
    case .databaseRewound: "the database has an older position than this run, as after a restore"
    case .databaseUnavailable:
      "the database did not answer for `retry.give_up_after`, or for 10 s after a signal"
    case .deadLetterLimit: "more dead letters than `dead_letter` allows"
    case .durationReached: "the duration of `run.until` has passed"
    case .eventsReached: "the number of events that was asked for is exported"
    case .fileExists: "`init` does not replace a file"
    case .from: "`run --dry-run --from` has a replay ID for several topics"
    case .hasCheckpoint: "`checkpoint restore` found a checkpoint, which it does not replace"
    case .incomplete: "`verify` could not judge all records"
    case .inconsistentOutput: "files, manifest and position contradict each other"
    case .input: "`publish` cannot read its input"
    case .internal: "a defect of this program"
    case .login: "no access token: unavailable, no descriptors left, refused, or misconfigured"
    case .lookup: "an object of `source.lookups` does not exist, or its changes cannot be found"
    case .lostOutput: "files that the manifest lists are missing"
    case .lostState: "a stored position is gone"
    case .lostTable: "a table that cannot be rebuilt is missing"
    case .malformedResponse: "a response of the service could not be read"
    case .managedNotFound:
      "the managed subscription does not exist, or the run-as user may not see it"
    case .managedPosition: "the managed subscription did not take the stored position"
    case .managedStopped: "the managed subscription is stopped"
    case .managedTopic: "the managed subscription belongs to another topic"
    case .maxDuration: "the time limit of the run was reached; code 0 while records were still read"
    case .maxEvents: "`--max-events` of a dry run is less than the number of topics"
    case .newSink: "a sink without a position joins sinks that have one"
    case .noCheckpoint: "there is no checkpoint yet"
    case .noCopy: "`verify` found no copy to compare"
    case .noDatabase: "`plan` found no database and no masked columns"
    case .noHistory: "`rebuild` and `tail --last` need history tables"
    case .noManifest: "`checkpoint restore` found no manifest to restore positions from"
    case .noObjects: "`checkpoint accept-org` found no objects whose records can be read"
    case .noPosition: "no event arrived, so there is no first position"
    case .noProgress: "the org's records made no progress for `retry.give_up_after`"
    case .noRepair: "`verify --repair` cannot correct this sink"
    case .noSink: "no sink of the pipeline is suitable for the command"
    case .noStart: "a first run needs `start`; `run --dry-run` without a position needs `--from`"
    case .notConfirmed: "the command asks for `--yes`"
    case .notSalesforce: "what answered at the org's address is not Salesforce"
    case .nothingToCompare: "`verify --checksums` found no finished files"
    case .openGroup: "an event of an open group did not come again"
    case .otherCheckpoint: "the checkpoint belongs to another pipeline"
    case .otherDirectory:
      "the `directory` of a files sink was changed, and the files did not move along"
    case .otherOrg: "the position, the files or the tables belong to another org"
    case .otherPipeline: "the files of the directory belong to another pipeline"
    case .otherSinks: "`dead-letters retry`: the checkpoint has other sinks than the pipeline file"
    case .otherStream:
      "the first change after the position is more than an hour older than the newest "
        + "exported one"
    case .output: "standard output or a file of the command could not be written"
    case .quota: "an allowance of the org is used up"
    case .refresh: "`check --connect`: a field of `source.refresh` cannot be read"
    case .refused:
      "the org or the service refused the request: a permission is missing, or the topic, "
        + "object or event is not valid"
    case .refusedCondition:
      "the org refused a condition of `snapshot --where`, `source.snapshot.where` or `source.subset`"
    case .rejectedRow: "the database refused a row"
    case .schema: "an event does not fit its schema; `publish`: the schema is not available"
    case .severalOrgs: "`checkpoint restore` found manifests of several orgs"
    case .signal: "stopped by a signal; code 0 for a run that follows"
    case .sinkIO: "a sink could not be written"
    case .stages: "a stage does not fit the columns"
    case .storesApart: "one sink has not come as far as another; 75 in `dead-letters retry`"
    case .system: "a system call failed; 75 if descriptors, threads or memory were exhausted"
    case .tls: "a TLS peer could not prove its identity; 75 if resources were exhausted"
    case .unavailable: "the service or the org did not answer for `retry.give_up_after`"
    case .undecodable: "a dead letter cannot be decoded"
    case .unknownEntity: "no table or file of the pipeline has this object"
    case .unknownFile: "a file has a name that only the exporter gives, and is not in the manifest"
    case .unknownLetter: "there is no dead letter with this ID"
    case .unknownRecord: "`erase`: the ID belongs to another object"
    case .unknownSink: "the pipeline has no such sink"
    case .unknownTopic: "the pipeline has no such topic"
    case .unprocessable: "a stage refuses a dead letter"
    case .untrustedPeer: "the service could not prove its identity"
    case .unverifiable: "the lines lack columns that `verify` needs"
    case .unwritable: "a directory cannot be written"
    }
  }
}

extension RunOutcome {
  /// The word in the report and in the log.
  var word: String {
    let reason: EndReason
    switch self {
    case .caughtUp: reason = .caughtUp
    case .eventsReached: reason = .eventsReached
    case .durationReached: reason = .durationReached
    case .outOfTime, .readingGoesOn: reason = .maxDuration
    case .allowanceSpent: reason = .allowance
    case .interrupted: reason = .signal
    case .noPosition: reason = .noPosition
    case .deadLetterLimit: reason = .deadLetterLimit
    case .failed(let failure): return failure.reason
    }
    return reason.rawValue
  }
}
