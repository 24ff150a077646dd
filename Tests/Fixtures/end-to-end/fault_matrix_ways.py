"""How cells of the matrix (fault_matrix_proof.py) meet faults that are not met as those of a call are: an
unusable position under a policy, and a database that is away."""

import hashlib
import signal

import fault_matrix
import fault_matrix_cell
import postgres
import service_faults_proof

FIRST, SECOND = fault_matrix_cell.TOPICS
# Pauses between attempts on a database are real.
DATABASE_TIME = ("--set", "retry.give_up_after=5s")


def meet(cell, fault, stays, is_following):
    if fault.kind in ("earliest", "latest"):
        return unusable(cell, fault, stays, is_following)
    if fault.method == "Database":
        return database(cell, fault, stays, is_following)
    return cell.meet(fault, stays, is_following)


def unusable(cell, fault, stays, is_following):
    """The position of one topic is refused. Its events are exported according to the policy, and no other topic
    is affected."""
    cell.run(0, "--max-events", "40")
    kept = cell.committed()[SECOND]
    before = events(cell, SECOND)
    cell.simulator.fault(
        method="Subscribe", topic=SECOND, times=fault_matrix.ALWAYS if stays else 1, **fault.what)
    options = ["--set", "source.on_invalid_replay=" + fault.kind]
    process = cell.start(*options, *(["--follow"] if is_following else []))
    if is_following:
        # With `latest`, what is published before the stream is open is not read.
        cell.wait(process, lambda: "epoch=2" in cell.said(), "another epoch")
        cell.wait(process, lambda: cell.simulator.get("stats")["streams"] == 2, "two streams")
        for topic in (FIRST, SECOND):
            cell.simulator.publish(30, topic)
        expected = {FIRST: len(events(cell, FIRST))}
        expected[SECOND] = len(events(cell, SECOND)) if fault.kind == "earliest" else 30
        cell.wait(process, lambda: cell.committed() == expected, "all events")
        process.send_signal(signal.SIGTERM)
    report = cell.finish(process, 0)
    holes = [found["topic"] for found in report["attention"] if found["kind"] == "holes"]
    if holes != [SECOND]:
        cell.fail("the report has holes of", holes)
    cell.simulator.forget_faults()
    cell.run(0)
    later = events(cell, SECOND)[len(before):]
    wanted = {FIRST: set(events(cell, FIRST)), SECOND: set(before[:kept] + later)}
    if fault.kind == "earliest":
        wanted[SECOND].update(before)
    for topic in (FIRST, SECOND):
        if cell.output:
            check_files(cell, topic, wanted[topic])
        if cell.url:
            check_history(cell, topic, wanted[topic])
    return 0


def check_files(cell, topic, wanted):
    entity = fault_matrix_cell.entity(topic)
    for epoch in (1, 2):
        directory = "%s/%s" % (cell.output, entity)
        found = service_faults_proof.lines(directory, "-e%d-" % epoch)
        keys = [(line["_event_id"], line["_record_id"]) for line in found]
        if len(keys) != len(set(keys)):
            cell.fail("rows of epoch", epoch, "are there twice in the files of", entity)
    found = {line["_event_id"] for line in service_faults_proof.lines(directory)}
    if found != wanted:
        cell.fail(entity, "files:", len(found - wanted), "events too many,", len(wanted - found), "missing")


def check_history(cell, topic, wanted):
    entity = fault_matrix_cell.entity(topic)
    table = "%s.%s_history" % (cell.schema, entity.lower())
    rows = [tuple(row) for row in postgres.query(cell.url, "SELECT _event_id, _record_id FROM " + table)]
    if len(rows) != len(set(rows)):
        cell.fail("rows are there twice in", table)
    found = {row[0] for row in rows}
    if found != wanted:
        cell.fail(table, len(found - wanted), "events too many,", len(wanted - found), "missing")


def events(cell, topic):
    """IDs of the published events, in their order."""
    return [event["event_id"] for event in cell.simulator.published() if event["topic"] == topic]


def database(cell, fault, stays, is_following):
    """The database refuses all logins, or all writes: from the start of a run that ends by itself, and in the
    middle of one that follows."""
    admin, role = cell.admin_url, "cell_" + hashlib.sha256(cell.name.encode()).hexdigest()[:16]
    postgres.query(admin, "CREATE ROLE %s LOGIN" % role)
    postgres.query(admin, "GRANT CREATE ON DATABASE warehouse TO %s; GRANT %s TO %s" % (role, role, postgres.ROLE))
    cell.environment["DATABASE_URL"] = cell.url.replace(postgres.ROLE + "@", role + "@")
    begin, end = (sql.format(role) for sql in fault.what)
    ended = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = '%s'" % role
    cell.run(0, "--max-events", "40")
    if is_following:
        process = cell.start("--follow", *DATABASE_TIME)
        cell.wait(process, lambda: sum(cell.committed().values()) >= cell.published(), "all events")
    postgres.query(admin, begin)
    postgres.query(admin, ended)
    if is_following:
        cell.simulator.publish(30, FIRST)
    else:
        process = cell.start(*DATABASE_TIME)
    if fault.kind == "setting":
        cell.finish(process, fault_matrix.KINDS["setting"].batch)
        postgres.query(admin, end)
    elif not stays or is_following:
        attempts = 3 if stays else 1
        cell.wait(process, lambda: cell.said().count("; retrying in ") >= attempts, "%d attempts" % attempts)
        postgres.query(admin, end)
        if is_following:
            cell.wait(process, lambda: sum(cell.committed().values()) >= cell.published(), "new events")
            process.send_signal(signal.SIGTERM)
        cell.finish(process, 0)
    else:
        cell.finish(process, 69)
        postgres.query(admin, end)
    cell.run(0)
    cell.run(0)
    if cell.said():
        cell.fail("a run without a fault is not silent")
    return cell.compare()
