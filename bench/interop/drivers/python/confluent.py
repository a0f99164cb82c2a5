"""Drives confluent-kafka, which is librdkafka under Python."""

import time

import confluent_kafka
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewPartitions, NewTopic, OffsetSpec

import protocol


class Confluent:
    def __init__(self, bootstrap):
        self.common = {"bootstrap.servers": bootstrap, "client.id": "interop-confluent"}

    def hello(self):
        return {
            "client": "confluent",
            "version": f"{confluent_kafka.__version__}/librdkafka-{confluent_kafka.libversion()[0]}",
            "codecs": ["none", "gzip", "snappy", "lz4", "zstd"],
            "idempotent": True,
            "lacks": [],
            "groups": [
                "classic/range",
                "classic/roundrobin",
                "classic/cooperative-sticky",
                "classic/regex",
                "consumer/uniform",
                "consumer/range",
                "consumer/regex",
            ],
        }

    def create(self, topic, partitions, config):
        admin = AdminClient(self.common)
        for future in admin.create_topics([NewTopic(topic, partitions, 1, config=config)]).values():
            future.result(30)

    def delete(self, topic):
        admin = AdminClient(self.common)  # held: the futures fail when it goes
        for future in admin.delete_topics([topic], operation_timeout=30).values():
            future.result(30)

    def administer(self, topic, partitions, key, value, below):
        admin = AdminClient(self.common)

        def done(futures):
            return [future.result(30) for future in futures.values()][0]

        def count():
            return len(admin.list_topics(topic, 30).topics[topic].partitions)

        def offset(spec):
            return done(admin.list_offsets({TopicPartition(topic, 0): spec})).offset

        if count() < partitions:
            done(admin.create_partitions([NewPartitions(topic, partitions)]))
        entry = ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
        done(admin.incremental_alter_configs([resource]))
        done(admin.delete_records([TopicPartition(topic, 0, below)]))
        configs = done(admin.describe_configs([ConfigResource(ConfigResource.Type.TOPIC, topic)]))
        return count(), configs[key].value, offset(OffsetSpec.earliest()), offset(OffsetSpec.latest())

    def produce(self, topic, partition, codec, acks, idempotent, records):
        producer = confluent_kafka.Producer(
            self.common
            | {
                "acks": acks,
                "compression.type": codec,
                "enable.idempotence": idempotent,
                # Without sequences, a batch sent again would arrive after its successors.
                "max.in.flight": 5 if idempotent else 1,
                "linger.ms": 5,
                "message.max.bytes": 16 << 20,
                "message.timeout.ms": 30_000,
                "message.send.max.retries": 100 if idempotent else 3,
            }
        )
        offsets = [None] * len(records)
        errors = []

        def delivered(i):
            def callback(err, message):
                if err is not None:
                    errors.append(err)
                else:
                    offsets[i] = -1 if acks == 0 else message.offset()

            return callback

        for i, r in enumerate(records):
            producer.produce(
                topic,
                partition=partition,
                key=r.key,
                value=r.value,
                headers=r.headers,
                timestamp=r.timestamp,
                on_delivery=delivered(i),
            )
        left = producer.flush(30)
        if errors:
            raise confluent_kafka.KafkaException(errors[0])
        if left:
            raise TimeoutError(f"{left} of {len(records)} records were not delivered")
        return offsets

    def read(self, topic, partition, start, count, wait):
        consumer = confluent_kafka.Consumer(
            self.common
            | {
                "group.id": "interop-confluent",
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "auto.offset.reset": "error",
                "fetch.wait.max.ms": 500,
            }
        )
        out = []
        deadline = time.monotonic() + wait
        try:
            consumer.assign([TopicPartition(topic, partition, start)])
            while len(out) < count:
                left = deadline - time.monotonic()
                if left <= 0:
                    raise TimeoutError(f"{len(out)} of {count} records")
                message = consumer.poll(min(left, 1.0))
                if message is None:
                    continue
                if message.error():
                    raise confluent_kafka.KafkaException(message.error())
                out.append(
                    protocol.as_json(
                        message.key(), message.value(), message.headers(), message.timestamp()[1], message.offset()
                    )
                )
        finally:
            consumer.close()
        return out

    def join(self, m, journal, stop):
        config = {
            "group.id": m.group,
            "auto.offset.reset": m.reset,
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "fetch.wait.max.ms": 100,
            "topic.metadata.refresh.interval.ms": 1000,  # how soon a pattern sees a topic
        }
        if m.protocol == "consumer":
            config |= {"group.protocol": "consumer", "group.remote.assignor": m.assignor}
        else:
            config |= {
                "partition.assignment.strategy": m.assignor,
                "session.timeout.ms": m.session_ms,
                "heartbeat.interval.ms": m.heartbeat_ms,
                "max.poll.interval.ms": max(m.session_ms, 10_000),
            }
        if m.instance:
            config["group.instance.id"] = m.instance
        consumer = confluent_kafka.Consumer(self.common | config)
        incremental = m.protocol == "consumer" or m.assignor.startswith("cooperative")
        seek = m.seek

        def assigned(consumer, partitions):
            nonlocal seek
            journal.assigned((p.topic, p.partition) for p in partitions)
            for p in partitions:
                if seek and (p.topic, p.partition) == seek[:2]:
                    p.offset = seek[2]
                    seek = None
            (consumer.incremental_assign if incremental else consumer.assign)(partitions)

        def revoked(consumer, partitions):
            journal.revoked((p.topic, p.partition) for p in partitions)
            (consumer.incremental_unassign(partitions) if incremental else consumer.unassign())

        consumer.subscribe([m.pattern] if m.pattern else m.topics, on_assign=assigned, on_revoke=revoked, on_lost=revoked)
        try:
            while not stop.is_set():
                # The first call waits and serves rebalances; the second takes what else is there.
                first = consumer.poll(0.1)
                if first is None:
                    continue
                messages = [first]
                if first.error() is None:
                    messages += consumer.consume(200, 0)
                got = {}
                for message in messages:
                    if message.error():
                        journal.refused(message.error())
                    else:
                        got.setdefault((message.topic(), message.partition()), []).append(message.offset())
                journal.got((t, p, o) for (t, p), offsets in got.items() for o in offsets)
                if not got:
                    continue
                try:
                    offsets = [TopicPartition(t, p, offsets[-1] + 1) for (t, p), offsets in got.items()]
                    for p in consumer.commit(offsets=offsets, asynchronous=False):
                        if p.error:
                            journal.refused(p.error)
                        else:
                            journal.write("committed", p.topic, p.partition, p.offset)
                except confluent_kafka.KafkaException as e:
                    journal.refused(e)
        finally:
            consumer.close()

    def commit(self, group, topic, partition, offset, metadata):
        consumer = confluent_kafka.Consumer(self.common | {"group.id": group})
        try:
            tp = TopicPartition(topic, partition, offset, metadata)
            for p in consumer.commit(offsets=[tp], asynchronous=False):
                if p.error:
                    raise confluent_kafka.KafkaException(p.error)
            got = consumer.committed([TopicPartition(topic, partition)], 20)[0]
            return got.offset, got.metadata or ""
        finally:
            consumer.close()

    def code(self, e):
        if isinstance(e, confluent_kafka.KafkaException) and e.args and isinstance(e.args[0], confluent_kafka.KafkaError):
            code = e.args[0].code()
            return code if code >= 0 else None  # negative ones are librdkafka's own
        return None


if __name__ == "__main__":
    protocol.serve(Confluent)
