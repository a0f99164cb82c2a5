"""The conversation of a Python driver with the interop suite.

One JSON request a line comes from standard input, one JSON answer a line goes to standard output, as the package
comment of bench/interop describes. A client is an object with the methods hello, create, delete, administer,
produce, read, join, commit and code; each call closes what it opened.
"""

import base64
import json
import os
import sys
import traceback

import member


def encode(value):
    """Bytes as base64; None, Kafka's null, as null."""
    return None if value is None else base64.b64encode(value).decode()


def decode(text):
    """The inverse of encode."""
    return None if text is None else base64.b64decode(text)


class Record:
    """One record to write: bytes or None, headers as a list of (name, bytes or None), a timestamp in ms."""

    def __init__(self, j):
        self.key = decode(j.get("key"))
        self.value = decode(j.get("value"))
        self.headers = [(h["name"], decode(h.get("value"))) for h in j.get("headers") or []]
        self.timestamp = j["timestamp"]


def as_json(key, value, headers, timestamp, offset):
    """One record that was read."""
    return {
        "key": encode(key),
        "value": encode(value),
        "headers": [{"name": n, "value": encode(v)} for n, v in headers or []],
        "timestamp": timestamp,
        "offset": offset,
    }


def handle(client, r):
    op = r["op"]
    if op == "hello":
        return {"hello": client.hello()}
    if op == "create":
        client.create(r["topic"], r["count"], r.get("config") or {})
        return {}
    if op == "delete":
        client.delete(r["topic"])
        return {}
    if op == "admin":
        ((key, value),) = r["config"].items()
        partitions, found, earliest, latest = client.administer(r["topic"], r["count"], key, value, r["from"])
        return {"admin": {"partitions": partitions, "value": found, "earliest": earliest, "latest": latest}}
    if op == "produce":
        records = [Record(j) for j in r["records"]]
        offsets = client.produce(r["topic"], r["partition"], r["codec"], r["acks"], r["idempotent"], records)
        return {"offsets": offsets}
    if op == "read":
        wait = r.get("waitMs") or 30_000
        return {"records": client.read(r["topic"], r["partition"], r["from"], r["count"], wait / 1000)}
    if op == "join":
        member.join(client, r)
        return {}
    if op == "leave":
        member.leave(r["member"], (r.get("waitMs") or 30_000) / 1000)
        return {}
    if op == "commit":
        offset, metadata = client.commit(r["group"], r["topic"], r["partition"], r["from"], r["metadata"])
        return {"committed": {"offset": offset, "metadata": metadata}}
    raise ValueError(f"no operation {op}")


def serve(new_client):
    """Answers requests until standard input ends. new_client(bootstrap) makes the client at the first hello."""
    # Only answers may reach the real standard output; what a library prints goes to the log.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    client = None
    for line in sys.stdin:
        r = json.loads(line)
        try:
            if r["op"] == "hello":
                client = new_client(r["bootstrap"])
            answer = handle(client, r)
        except Exception as e:  # the suite shall see every failure and go on
            traceback.print_exc()
            answer = {"error": {"message": f"{type(e).__name__}: {e}"}}
            code = client.code(e) if client is not None else None
            if code is not None:
                answer["error"]["code"] = code
        answer["id"] = r["id"]
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
