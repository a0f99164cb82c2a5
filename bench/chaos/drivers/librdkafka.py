"""librdkafka as a worker of the fault harness: a producer, or a member of a group.

It writes its own history, one event per line (bench/chaos/check has the format), and works until its standard input
ends. A producer then waits until all that it sent is settled; a member commits and leaves.
"""

import argparse
import sys
import threading
import time
import zlib

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition


class History:
    def __init__(self, path, epoch):
        self.file = open(path, "w", buffering=1 << 16)
        self.epoch = epoch

    def now(self):
        return (time.monotonic_ns() - self.epoch) // 1000

    def write(self, line):
        self.file.write(line + "\n")

    def fatal(self, worker, text):
        now = self.now()
        self.write('{"k":"fatal","w":"%s","t0":%d,"t1":%d,"x":"%s"}' % (worker, now, now, plain(text)))
        self.file.flush()


def plain(text):
    """A text that needs no escapes in JSON."""
    return "".join(c if c.isprintable() and c not in '"\\' else " " for c in str(text))[:300]


def until_input_ends():
    stop = threading.Event()

    def wait():
        sys.stdin.buffer.read()
        stop.set()

    threading.Thread(target=wait, daemon=True).start()
    return stop


def value(worker, tp, n, size):
    """As Go's payload: worker, partition, number, and a filling whose size changes with the number."""
    return b"%s/%s/%d/" % (worker.encode(), tp.encode(), n) + bytes([ord("a") + n % 26]) * (n * 37 % size)


def produce(o, history):
    def on_error(err):
        if err.fatal():
            history.fatal(o.name, err)

    producer = Producer(
        {
            "bootstrap.servers": o.bootstrap,
            "client.id": o.name,
            "enable.idempotence": True,
            "acks": "all",
            "linger.ms": 5,
            "message.timeout.ms": 120_000,
            "request.timeout.ms": 5_000,
            "socket.timeout.ms": 6_000,
            "retry.backoff.ms": 20,
            "retry.backoff.max.ms": 200,
            "reconnect.backoff.ms": 20,
            "reconnect.backoff.max.ms": 500,
            "topic.metadata.refresh.interval.ms": 1_000,
            "queue.buffering.max.messages": 1_000_000,
            "error_cb": on_error,
        }
    )
    stop = until_input_ends()
    places = [(t, p, "%s-%d" % (t, p)) for t in o.topics.split(",") for p in range(o.partitions)]
    numbers = [0] * len(places)
    unsettled = {}
    head = '{"k":"send","w":"%s","tp":"%s","t0":%d,"t1":%d,"n":%d,"c":%d,"r":"%s","o":%d,"x":"%s"}'

    def send(at):
        topic, partition, tp = places[at]
        n = numbers[at]
        numbers[at] += 1
        v = value(o.name, tp, n, o.size)
        crc = zlib.crc32(v)
        t0 = history.now()

        def settled(err, msg):
            unsettled.pop((tp, n), None)
            if err is None:
                offset = msg.offset() if msg.offset() is not None and msg.offset() >= 0 else -1
                history.write(head % (o.name, tp, t0, history.now(), n, crc, "ok", offset, ""))
            else:
                history.write(head % (o.name, tp, t0, history.now(), n, crc, "info", -1, plain(err)))

        unsettled[(tp, n)] = (t0, crc)
        while True:
            try:
                producer.produce(topic, v, o.name.encode(), partition, on_delivery=settled)
                return
            except BufferError:
                producer.poll(0.05)

    began, sent, turn = time.monotonic(), 0, 0
    while not stop.is_set():
        owed = min(int((time.monotonic() - began) * o.rate) - sent, 500)
        for _ in range(owed):
            send(turn % len(places))
        sent += max(owed, 0)
        turn += 1
        producer.poll(0.01)
    left = producer.flush(130)
    for (tp, n), (t0, crc) in unsettled.items():
        history.write(head % (o.name, tp, t0, history.now(), n, crc, "info", -1, "never settled"))
    if left:
        history.fatal(o.name, "%d records were never settled" % left)


def member(o, history):
    config = {
        "bootstrap.servers": o.bootstrap,
        "client.id": o.name,
        "group.id": o.group,
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        "socket.timeout.ms": 6_000,
        "reconnect.backoff.ms": 20,
        "reconnect.backoff.max.ms": 500,
        "retry.backoff.ms": 20,
        "fetch.wait.max.ms": 100,
        "topic.metadata.refresh.interval.ms": 1_000,
        "group.protocol": o.protocol,
    }
    if o.protocol == "classic":
        config.update({"partition.assignment.strategy": "range", "session.timeout.ms": 3_000, "heartbeat.interval.ms": 500})
    positions = {}

    def assigned(_, partitions):
        now = history.now()
        for p in partitions:
            positions.pop((p.topic, p.partition), None)
            history.write('{"k":"assign","w":"%s","g":"%s","tp":"%s-%d","t0":%d,"t1":%d,"o":-1,"pa":10000000}' % (o.name, o.group, p.topic, p.partition, now, now))

    def revoked(_, partitions):
        now = history.now()
        for p in partitions:
            positions.pop((p.topic, p.partition), None)
            history.write('{"k":"revoke","w":"%s","g":"%s","tp":"%s-%d","t0":%d,"t1":%d}' % (o.name, o.group, p.topic, p.partition, now, now))

    consumer = Consumer(config)
    consumer.subscribe(o.topics.split(","), on_assign=assigned, on_revoke=revoked, on_lost=revoked)
    stop = until_input_ends()

    def commit():
        offsets = [TopicPartition(t, p, at) for (t, p), at in positions.items()]
        if not offsets:
            return
        t0 = history.now()
        results, text = {}, ""
        try:
            results = {(r.topic, r.partition): r.error for r in consumer.commit(offsets=offsets, asynchronous=False)}
        except KafkaException as e:
            text = plain(e)
        t1 = history.now()
        for p in offsets:
            ok = (p.topic, p.partition) in results and results[(p.topic, p.partition)] is None
            history.write(
                '{"k":"commit","w":"%s","g":"%s","tp":"%s-%d","t0":%d,"t1":%d,"o":%d,"r":"%s","x":"%s"}'
                % (o.name, o.group, p.topic, p.partition, t0, t1, p.offset, "ok" if ok else "info", text)
            )

    committed = time.monotonic()
    while not stop.is_set():
        t0 = history.now()
        by_place = {}
        for m in consumer.consume(1000, 0.05):
            if m.error():
                if m.error().fatal() or m.error().code() == KafkaError._AUTO_OFFSET_RESET:
                    history.fatal(o.name, m.error())
                continue
            by_place.setdefault((m.topic(), m.partition()), []).append(m)
        t1 = history.now()
        for (topic, partition), messages in by_place.items():
            tp = "%s-%d" % (topic, partition)
            records = ",".join('{"o":%d,"w":"%s","n":%d,"c":%d}' % ((m.offset(),) + recognise(m.value(), tp)) for m in messages)
            history.write('{"k":"poll","w":"%s","g":"%s","tp":"%s","t0":%d,"t1":%d,"rs":[%s]}' % (o.name, o.group, tp, t0, t1, records))
            positions[(topic, partition)] = messages[-1].offset() + 1
        if time.monotonic() - committed > 0.25:
            commit()
            committed = time.monotonic()
    commit()
    consumer.close()


def recognise(v, tp):
    """Who sent a value, its number, and its checksum."""
    v = v or b""
    parts = v.split(b"/", 3)
    if len(parts) != 4 or parts[1] != tp.encode() or not parts[2].isdigit() or not parts[0].isalnum():
        return "", 0, zlib.crc32(v)
    return parts[0].decode(), int(parts[2]), zlib.crc32(v)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("role", choices=["produce", "member"])
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--name", required=True)
    parser.add_argument("--history", required=True)
    parser.add_argument("--epoch", type=int, required=True, help="CLOCK_MONOTONIC when the history began, ns")
    parser.add_argument("--topics", required=True)
    parser.add_argument("--partitions", type=int, default=0)
    parser.add_argument("--rate", type=float, default=0, help="records per second")
    parser.add_argument("--size", type=int, default=1, help="of the filling, at most, bytes")
    parser.add_argument("--group", default="")
    parser.add_argument("--protocol", default="classic")
    o = parser.parse_args()
    history = History(o.history, o.epoch)
    try:
        {"produce": produce, "member": member}[o.role](o, history)
    except Exception as e:
        history.fatal(o.name, "the driver: %r" % (e,))
        raise
    finally:
        history.file.close()


main()
