"""Drives kafka-python."""

import time

import kafka
from kafka import ConsumerRebalanceListener, KafkaAdminClient, KafkaConsumer, KafkaProducer, OffsetAndMetadata, TopicPartition
from kafka.admin import ConfigResource, NewTopic
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.errors import BrokerResponseError, KafkaError

import protocol


class KafkaPython:
    def __init__(self, bootstrap):
        self.bootstrap = bootstrap

    def hello(self):
        return {
            "client": "kafka-python",
            "version": kafka.__version__,
            "codecs": ["none", "gzip", "snappy", "lz4", "zstd"],
            "idempotent": True,
            "lacks": ["write-null-header", "write-nothing"],
            "groups": ["classic/range", "classic/roundrobin", "classic/sticky", "classic/cooperative-sticky", "classic/regex"],
        }

    def create(self, topic, partitions, config):
        admin = KafkaAdminClient(bootstrap_servers=self.bootstrap)
        try:
            admin.create_topics([NewTopic(topic, partitions, 1, topic_configs=config)])
        finally:
            admin.close()

    def delete(self, topic):
        admin = KafkaAdminClient(bootstrap_servers=self.bootstrap)
        try:
            admin.delete_topics([topic])
        finally:
            admin.close()

    def administer(self, topic, partitions, key, value, below):
        admin = KafkaAdminClient(bootstrap_servers=self.bootstrap)
        consumer = KafkaConsumer(bootstrap_servers=self.bootstrap, group_id=None)
        tp = TopicPartition(topic, 0)

        def count():
            return len(admin.describe_topics([topic])[0]["partitions"])

        try:
            if count() < partitions:
                admin.create_partitions({topic: partitions})
            admin.alter_configs([ConfigResource("TOPIC", topic, {key: value})])
            admin.delete_records({tp: below})
            configs = admin.describe_configs([ConfigResource("TOPIC", topic, [key])], config_filter="all")
            found = configs["topic"][topic][key]["value"]
            return count(), found, consumer.beginning_offsets([tp])[tp], consumer.end_offsets([tp])[tp]
        finally:
            consumer.close()
            admin.close()

    def produce(self, topic, partition, codec, acks, idempotent, records):
        producer = KafkaProducer(
            bootstrap_servers=self.bootstrap,
            acks="all" if idempotent or acks == -1 else acks,
            compression_type=None if codec == "none" else codec,
            enable_idempotence=idempotent,
            # Without sequences, a batch sent again would arrive after its successors.
            max_in_flight_requests_per_connection=5 if idempotent else 1,
            linger_ms=5,
            batch_size=256 << 10,
            max_request_size=16 << 20,
            request_timeout_ms=10_000,
            delivery_timeout_ms=30_000,
        )
        try:
            sent = [
                producer.send(
                    topic, partition=partition, key=r.key, value=r.value, headers=r.headers, timestamp_ms=r.timestamp
                )
                for r in records
            ]
            producer.flush(30)
            return [-1 if acks == 0 else f.get(30).offset for f in sent]
        finally:
            producer.close(5)

    def read(self, topic, partition, start, count, wait):
        consumer = KafkaConsumer(
            bootstrap_servers=self.bootstrap,
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset="none",
            fetch_max_wait_ms=50,
        )
        out = []
        deadline = time.monotonic() + wait
        try:
            tp = TopicPartition(topic, partition)
            consumer.assign([tp])
            consumer.seek(tp, start)
            while len(out) < count:
                left = deadline - time.monotonic()
                if left <= 0:
                    raise TimeoutError(f"{len(out)} of {count} records")
                for records in consumer.poll(timeout_ms=int(min(left, 1.0) * 1000)).values():
                    for m in records:
                        out.append(protocol.as_json(m.key, m.value, m.headers, m.timestamp, m.offset))
        finally:
            consumer.close()
        return out

    def join(self, m, journal, stop):
        strategies = {
            "range": RangePartitionAssignor,
            "roundrobin": RoundRobinPartitionAssignor,
            "sticky": StickyPartitionAssignor,
            "cooperative-sticky": CooperativeStickyAssignor,
        }
        consumer = KafkaConsumer(
            bootstrap_servers=self.bootstrap,
            group_id=m.group,
            auto_offset_reset=m.reset,
            enable_auto_commit=False,
            partition_assignment_strategy=[strategies[m.assignor]],
            session_timeout_ms=m.session_ms,
            heartbeat_interval_ms=m.heartbeat_ms,
            max_poll_interval_ms=max(m.session_ms, 10_000),
            fetch_max_wait_ms=50,
            metadata_max_age_ms=1000 if m.pattern else 300_000,
        )

        class Listener(ConsumerRebalanceListener):
            seek = m.seek

            def on_partitions_assigned(self, partitions):
                journal.assigned(partitions)
                if self.seek and TopicPartition(*self.seek[:2]) in partitions:
                    consumer.seek(TopicPartition(*self.seek[:2]), self.seek[2])
                    self.seek = None

            def on_partitions_revoked(self, partitions):
                journal.revoked(partitions)

        if m.pattern:
            consumer.subscribe(pattern=m.pattern, listener=Listener())
        else:
            consumer.subscribe(m.topics, listener=Listener())
        try:
            while not stop.is_set():
                # Not much shorter: a poll that ends while a rejoin is under way makes kafka-python 3.0.12 forget it. See stalls in
                # bench/interop/groups.go.
                got = consumer.poll(timeout_ms=1000)
                journal.got((r.topic, r.partition, r.offset) for records in got.values() for r in records)
                next_offsets = {tp: OffsetAndMetadata(records[-1].offset + 1, "", -1) for tp, records in got.items() if records}
                if not next_offsets:
                    continue
                try:
                    consumer.commit(next_offsets)
                    for tp, o in next_offsets.items():
                        journal.write("committed", tp.topic, tp.partition, o.offset)
                except KafkaError as e:
                    journal.refused(e)
        finally:
            consumer.close(autocommit=False)

    def commit(self, group, topic, partition, offset, metadata):
        consumer = KafkaConsumer(bootstrap_servers=self.bootstrap, group_id=group, enable_auto_commit=False)
        try:
            tp = TopicPartition(topic, partition)
            consumer.assign([tp])
            consumer.commit({tp: OffsetAndMetadata(offset, metadata, -1)})
            got = consumer.committed(tp, metadata=True)
            return got.offset, got.metadata
        finally:
            consumer.close()

    def code(self, e):
        return e.errno if isinstance(e, BrokerResponseError) and e.errno >= 0 else None


if __name__ == "__main__":
    protocol.serve(KafkaPython)
