"""Members of groups, for the Python drivers: each is a thread of its own that consumes until it shall leave."""

import threading
import time

MEMBERS = {}


class Journal:
    """The file into which a member writes what happened to it, a line an event, at once: what it wrote is there when its
    process is killed. What is got is written before it is committed. The Go drivers show the form."""

    def __init__(self, path):
        self.file = open(path, "ab", buffering=0)

    def write(self, kind, topic, partition, offset=-1):
        self.file.write(f"{kind} {now()} {topic} {partition} {offset}\n".encode())

    def got(self, records):
        """Writes many (topic, partition, offset) at once."""
        t = now()
        self.file.write("".join(f"got {t} {topic} {p} {o}\n" for topic, p, o in records).encode())

    def assigned(self, partitions):
        for topic, p in partitions:
            self.write("assigned", topic, p)

    def revoked(self, partitions):
        for topic, p in partitions:
            self.write("revoked", topic, p)

    def refused(self, e):
        """A commit that the broker did not take, as after a rebalance."""
        self.file.write(f"refused {now()} {e!r}\n".encode())

    def failed(self, e):
        self.file.write(f"failed {now()} {e!r}\n".encode())


def now():
    return time.time_ns() // 1_000_000


class Membership:
    """As what to consume in a group."""

    def __init__(self, j):
        self.group = j["group"]
        self.topics = j.get("topics") or []
        self.pattern = j.get("pattern") or ""  # in place of topics: a regular expression
        self.protocol = j["protocol"]  # classic or consumer
        self.assignor = j["assignor"]
        self.reset = j["reset"]
        self.session_ms = j["sessionMs"]  # for the classic protocol; in the other the broker says
        self.heartbeat_ms = self.session_ms // 10
        self.instance = j.get("instance") or ""  # of a static member: group.instance.id
        seek = j.get("seek")  # moves one partition of the first topic when it is first assigned
        self.seek = (self.topics[0], seek["partition"], seek["offset"]) if seek else None


class Member:
    def __init__(self, client, membership, path):
        self.journal = Journal(path)
        self.stop = threading.Event()
        self.error = None
        self.thread = threading.Thread(target=self.run, args=(client, membership), daemon=True)
        self.thread.start()

    def run(self, client, membership):
        try:
            client.join(membership, self.journal, self.stop)
        except Exception as e:
            self.error = e
            self.journal.failed(e)


def join(client, r):
    MEMBERS[r["member"]] = Member(client, Membership(r), r["log"])


def leave(name, wait):
    """Lets a member go in order and waits for it."""
    member = MEMBERS.pop(name)
    member.stop.set()
    member.thread.join(wait)
    if member.thread.is_alive():
        raise TimeoutError(f"the member {name} does not end")
    if member.error is not None:
        raise member.error
