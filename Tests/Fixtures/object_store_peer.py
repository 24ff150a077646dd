"""Runs an object store that checks signatures, with a bucket "exports": object_store_peer.py seaweedfs|moto FILE
[CERTIFICATE KEY]. Writes what its clients need to FILE as JSON, then prints its port. With a certificate, SeaweedFS
speaks TLS only. "sts" instead is moto without checks, because with them it takes no request without a signature.

Lines of commands for SeaweedFS: "stop" kills it with SIGKILL, "start" starts it with the same data; both are answered
by the file FILE.done, which the caller has removed before.
"""

import ctypes
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

# Before anything imports them: no instance metadata, no files of the user.
os.environ.update(AWS_EC2_METADATA_DISABLED="true", AWS_CONFIG_FILE="/nonexistent", AWS_SHARED_CREDENTIALS_FILE="/nonexistent")

import boto3
import botocore.config

kind, out = sys.argv[1], pathlib.Path(sys.argv[2])
tls = sys.argv[3:]


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [sock.getsockname()[1] for sock in sockets]
    for sock in sockets:
        sock.close()
    return ports


def client(service, port, key, secret, **more):
    style = botocore.config.Config(s3={"addressing_style": "path"}, retries={"max_attempts": 1})
    return boto3.client(
        service, endpoint_url="http%s://127.0.0.1:%d" % ("s" if tls else "", port), region_name="us-east-1",
        aws_access_key_id=key, aws_secret_access_key=secret, config=style, verify=not tls and None, **more)


def ready(description, port):
    out.write_text(json.dumps(description))
    print(port, flush=True)


def die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


class SeaweedFS:
    KEY, SECRET = "AKIDTEST", "secret/key+of=the/tests"

    def __init__(self):
        self.directory = tempfile.mkdtemp(prefix="pubsub-etl-test-")
        identity = {"name": "tests", "credentials": [{"accessKey": self.KEY, "secretKey": self.SECRET}], "actions": ["Admin"]}
        reader = {"name": "reader", "credentials": [{"accessKey": "READER", "secretKey": "reader"}], "actions": ["Read", "List"]}
        config = os.path.join(self.directory, "s3.json")
        pathlib.Path(config).write_text(json.dumps({"identities": [identity, reader]}))
        names = ["master.port", "master.port.grpc", "volume.port", "volume.port.grpc", "filer.port", "filer.port.grpc",
                 "s3.port.grpc", "s3.port.iceberg", "s3.port.lance"]
        ports = free_ports(len(names) + 1)
        self.port = ports.pop()
        ports = ["-%s=%d" % pair for pair in zip(names, ports)]
        security = ["-s3.port.https=%d" % self.port, "-s3.cert.file=" + tls[0], "-s3.key.file=" + tls[1]] if tls else []
        self.command = ["weed", "server", "-dir=" + self.directory, "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-filer", "-s3",
                        "-s3.config=" + config, "-s3.domainName=s3.localhost", "-s3.autoCreateBucket=false",
                        "-volume.max=8", "-master.volumeSizeLimitMB=64", "-master.electionTimeout=1s", *ports, *security]
        if not tls:
            self.command.append("-s3.port=%d" % self.port)
        self.process = None

    def start(self):
        self.log = open(os.path.join(self.directory, "log"), "a")
        self.process = subprocess.Popen(
            self.command, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, preexec_fn=die_with_parent,
            cwd=self.directory)
        store = client("s3", self.port, self.KEY, self.SECRET)
        while True:
            assert self.process.poll() is None, open(self.log.name).read()[-2000:]
            try:
                store.create_bucket(Bucket="exports")
            except store.exceptions.BucketAlreadyOwnedByYou:
                pass
            except store.exceptions.BucketAlreadyExists:
                pass
            except Exception:
                time.sleep(0.05)  # it starts
                continue
            try:
                # The parts of the server find each other a moment later.
                store.put_object(Bucket="exports", Key="ready", Body=b"x")
                store.delete_object(Bucket="exports", Key="ready")
                return
            except Exception:
                time.sleep(0.05)

    def stop(self):
        self.process.kill()
        self.process.wait()

    def run(self):
        self.start()
        ready({"access_key": self.KEY, "secret_key": self.SECRET}, self.port)
        for line in sys.stdin:
            getattr(self, line.strip())()
            pathlib.Path(str(out) + ".done").touch()
        self.stop()
        shutil.rmtree(self.directory)


def run_sts():
    import moto.server
    server = moto.server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    ready({}, server.get_host_and_port()[1])
    sys.stdin.read()
    server.stop()


def run_moto():
    # The first calls, which make the user and the role, are not checked.
    setup = ["create_user", "put_user_policy", "create_access_key", "create_role", "put_role_policy", "create_bucket"]
    os.environ["INITIAL_NO_AUTH_ACTION_COUNT"] = str(len(setup))
    import moto.server
    server = moto.server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    port = server.get_host_and_port()[1]
    policy = json.dumps({"Version": "2012-10-17", "Statement": [
        {"Effect": "Allow", "Action": ["s3:*", "sts:*"], "Resource": "*"}]})
    iam = client("iam", port, "any", "any")
    iam.create_user(UserName="tests")
    iam.put_user_policy(UserName="tests", PolicyName="all", PolicyDocument=policy)
    key = iam.create_access_key(UserName="tests")["AccessKey"]
    trust = json.dumps({"Version": "2012-10-17", "Statement": [
        {"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:AssumeRole"}]})
    role = iam.create_role(RoleName="writer", AssumeRolePolicyDocument=trust)["Role"]["Arn"]
    iam.put_role_policy(RoleName="writer", PolicyName="all", PolicyDocument=policy)
    client("s3", port, "any", "any").create_bucket(Bucket="exports")
    own = key["AccessKeyId"], key["SecretAccessKey"]
    session = client("sts", port, *own).assume_role(RoleArn=role, RoleSessionName="tests")["Credentials"]
    ready({"access_key": own[0], "secret_key": own[1], "role": role, "session_access_key": session["AccessKeyId"],
           "session_secret_key": session["SecretAccessKey"], "session_token": session["SessionToken"]}, port)
    sys.stdin.read()
    server.stop()


{"moto": run_moto, "sts": run_sts, "seaweedfs": lambda: SeaweedFS().run()}[kind]()
