"""The faults of the matrix (fault_matrix_proof.py), and how a run must end that meets each of them.

A fault is met once, in the middle of a topic, or it stays from the beginning of a run on. What it is
decides how runs end (`Kind`); the exit codes are those of ExitCodes.md.
"""

import collections

# Stands for a fault that comes again and again.
ALWAYS = 100000

# How runs end that meet a fault. `batch`, `follow`: exit codes while it stays, None for a run that follows and
# goes on; `passes`: met once it is made up for within the run, in both kinds of runs.
Kind = collections.namedtuple("Kind", "batch follow passes")

KINDS = {
    # Tried again for as long as `retry.give_up_after` says.
    "retry": Kind(69, None, True),
    # A new token is asked for, three times in a row.
    "tokens": Kind(77, 77, True),
    # The topic alone is refused: the others are exported first.
    "topic": Kind(77, None, False),
    # Nothing else can be had either.
    "stop": Kind(77, 77, False),
    "quota": Kind(75, None, False),
    # The protocol was broken, by the service's account.
    "bug": Kind(70, 70, False),
    # The stored position cannot be used.
    "replay": Kind(65, 65, False),
    # The stored position is given up: read again from the beginning, or go on with what is new.
    "earliest": Kind(0, None, True),
    "latest": Kind(0, None, True),
    # Somebody has to change it.
    "setting": Kind(78, 78, False),
    # The call goes on.
    "harmless": Kind(0, None, True),
    # Nothing more comes: a run that ends by itself takes it for the end, and the next one goes on.
    "silent": Kind(0, None, True),
    # The event becomes a dead letter, and none is allowed.
    "letter": Kind(65, 65, False),
}

Fault = collections.namedtuple("Fault", "name kind what method")

# ServiceErrors.md#codes: by the code where the program knows it, otherwise by the gRPC status it comes with.
CODES = {
    "retry": [
        "service.unavailable", "service.protection.triggered", "service.protection.stream.limit.triggered",
        "concurrent.client.limit.exceeded", "topic.api.unavailable", "schema.api.unavailable",
        "subscription.fetch.replay.repeated", "subscription.fetch.overflow", "subscription.internal.error",
        "publish.stream.sweeper.timeout", "managed.subscription.already.active",
    ],
    "tokens": [
        "service.auth.error", "service.auth.headers.invalid", "service.auth.refresh.invalid",
        "publish.auth.refresh.invalid",
    ],
    "topic": [
        "topic.not.found", "topic.meta.permission", "schema.meta.permission",
        "subscription.topic.cannot.subscribe",
    ],
    # All topics depend on the managed subscription.
    "stop": [
        "service.tenant.license", "managed.subscription.config.stopped", "managed.subscription.config.deleted",
        "managed.subscription.developer.name.not.found", "managed.subscription.subscription.id.not.found",
        "managed.subscription.subscription.id.invalid",
    ],
    "quota": ["subscription.limit.exceeded"],
    "bug": [
        "topic.validation.empty", "schema.validation.failed", "subscription.fetch.requested.events.invalid",
        "subscription.fetch.topic.mismatch", "subscription.fetch.request.invalid", "publish.topic.mismatch",
        "publish.topic.validation.empty", "publish.event.count.invalid",
        "managed.subscription.id.or.developer.name.empty",
        "managed.subscription.fetch.request.events.invalid", "managed.subscription.fetch.request.invalid",
        "managed.subscription.fetch.request.commit.request.restricted",
        "managed.subscription.fetch.request.auth.request.restricted",
    ],
    "replay": ["subscription.fetch.replayid.corrupted", "subscription.fetch.replayid.validation.failed"],
}

# Statuses without a code, by number.
STATUSES = {
    # 8, too: without a response before it, something in front of the service sheds load.
    "retry": [0, 1, 2, 4, 6, 8, 10, 13, 14, 15],
    "tokens": [16],
    "topic": [5, 7],
    "stop": [9, 12],
    "bug": [3, 11],
}

# Known sentences stand for codes, too (ServiceErrors.md#where-the-information-is).
NO_SENTENCE = "No reason is given."

# HTTP/2 error codes of RST_STREAM.
RESETS = range(14)

# Answers of the login: status, error, kind, and a description where it matters.
LOGINS = [
    (400, "invalid_grant", "retry", "token request is already being processed"),
    (400, "invalid_grant", "retry", "login rate exceeded"), (400, "unknown_error", "retry", "retry your request"),
    (400, "invalid_grant", "stop"), (400, "invalid_client_id", "stop"), (401, "invalid_client", "stop"),
    (400, "unsupported_grant_type", "stop"), (400, "invalid_request", "stop"),
    (400, "unauthorized_client", "stop"), (400, "inactive_user", "stop"), (403, "inactive_org", "stop"),
    (400, "rate_limit_exceeded", "retry"), (429, "rate_limit_exceeded", "retry"),
    (500, None, "retry"), (502, None, "retry"), (503, None, "retry"), (504, None, "retry"),
]


def subscribe_faults():
    for kind, codes in CODES.items():
        for code in codes:
            yield Fault(code, kind, {"what": code}, "Subscribe")
    for kind, numbers in STATUSES.items():
        for number in numbers:
            what = {"status": number, "message": NO_SENTENCE}
            yield Fault("status_%d" % number, kind, what, "Subscribe")
    for code in RESETS:
        yield Fault("reset_%d" % code, "retry", {"what": "reset", "http2_code": code}, "Subscribe")
    for effect in ("drop", "no_trailers", "truncate"):
        yield Fault(effect, "retry", {"what": effect}, "Subscribe")
    yield Fault("goaway", "harmless", {"what": "goaway"}, "Subscribe")
    yield Fault("stall", "silent", {"what": "stall"}, "Subscribe")
    yield Fault("undecodable", "letter", {"what": "undecodable"}, "Subscribe")


def schema_faults():
    for kind, codes in (
        ("retry", ["service.unavailable", "schema.api.unavailable", "service.protection.triggered",
                   "subscription.internal.error"]),
        ("tokens", ["service.auth.error"]),
        ("topic", ["schema.meta.permission"]),
        ("stop", ["service.tenant.license"]),
        ("bug", ["schema.validation.failed"]),
        ("quota", ["subscription.limit.exceeded"]),
    ):
        for code in codes:
            yield Fault(code, kind, {"what": code}, "GetSchema")
    for number, kind in ((1, "retry"), (2, "retry"), (13, "retry"), (14, "retry"), (16, "tokens"), (12, "stop")):
        what = {"status": number, "message": NO_SENTENCE}
        yield Fault("status_%d" % number, kind, what, "GetSchema")
    for effect in ("reset", "drop", "no_trailers", "truncate", "stall"):
        yield Fault(effect, "retry", {"what": effect}, "GetSchema")
    yield Fault("goaway", "harmless", {"what": "goaway"}, "GetSchema")


def login_faults():
    for status, error, kind, *said in LOGINS:
        what = {"status": status, "message": said[0] if said else "The login failed."}
        if error:
            what["error_code"] = error
        name = "_".join([error or "page", *said]).replace(" ", "_")
        yield Fault("http_%d_%s" % (status, name), kind, what, "Login")


def limits_faults():
    """The allowance cannot be read: a run without a reserve continues."""
    for status, error in ((403, "FUNCTIONALITY_NOT_ENABLED"), (500, None), (503, None)):
        what = {"what": "status", "status": status, "message": "No."}
        if error:
            what["error_code"] = error
        yield Fault("http_%d" % status, "harmless", what, "Limits")
    for effect in ("html", "cut", "drop"):
        yield Fault(effect, "harmless", {"what": effect}, "Limits")


def policy_faults():
    """The stored position is unusable, and `source.on_invalid_replay` decides."""
    for policy in ("earliest", "latest"):
        for code in CODES["replay"]:
            yield Fault("%s/%s" % (code, policy), policy, {"what": code}, "Subscribe")


def database_faults():
    """SQL that affects all sessions of the role in braces, and SQL that reverts it."""
    yield Fault("too_many_connections", "retry", (
        "ALTER ROLE {} CONNECTION LIMIT 0", "ALTER ROLE {} CONNECTION LIMIT -1"), "Database")
    yield Fault("read_only", "setting", (
        "ALTER ROLE {} SET default_transaction_read_only = on", "ALTER ROLE {} RESET ALL"), "Database")


FAULTS = [
    *subscribe_faults(), *schema_faults(), *login_faults(), *limits_faults(), *policy_faults(), *database_faults(),
]
