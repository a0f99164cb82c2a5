"""Drives aiokafka."""

import asyncio

import aiokafka
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRebalanceListener, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.errors import BrokerResponseError, KafkaError, for_code
from aiokafka.structs import OffsetAndMetadata

import protocol


class Aio:
    def __init__(self, bootstrap):
        self.bootstrap = bootstrap
        self.loop = asyncio.new_event_loop()

    def hello(self):
        return {
            "client": "aiokafka",
            "version": aiokafka.__version__,
            "codecs": ["none", "gzip", "snappy", "lz4", "zstd"],
            "idempotent": True,
            # A record must have a key or a value; INVALID_RECORD is an unknown error to it.
            "lacks": ["write-nothing", "code-87"],
            "groups": ["classic/range", "classic/roundrobin", "classic/sticky", "classic/regex"],
        }

    def create(self, topic, partitions, config):
        async def run():
            admin = AIOKafkaAdminClient(bootstrap_servers=self.bootstrap)
            await admin.start()
            try:
                answer = await admin.create_topics([NewTopic(topic, partitions, 1, topic_configs=config)])
                check(answer.topic_errors)
            finally:
                await admin.close()

        self.loop.run_until_complete(run())

    def delete(self, topic):
        async def run():
            admin = AIOKafkaAdminClient(bootstrap_servers=self.bootstrap)
            await admin.start()
            try:
                check((await admin.delete_topics([topic])).topic_error_codes)
            finally:
                await admin.close()

        self.loop.run_until_complete(run())

    def administer(self, topic, partitions, key, value, below):
        async def run():
            admin = AIOKafkaAdminClient(bootstrap_servers=self.bootstrap)
            consumer = AIOKafkaConsumer(bootstrap_servers=self.bootstrap, group_id=None)
            await admin.start()
            await consumer.start()

            async def count():
                return len((await admin.describe_topics([topic]))[0]["partitions"])

            try:
                if await count() < partitions:
                    check((await admin.create_partitions({topic: NewPartitions(partitions)})).topic_errors)
                resource = ConfigResource(ConfigResourceType.TOPIC, topic, {key: value})
                for answer in await admin.alter_configs([resource]):
                    check([(r[3], r[0], r[1]) for r in answer.resources])
                tp = TopicPartition(topic, 0)
                await admin.delete_records({tp: RecordsToDelete(below)})
                answers = await admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic, {key: None})])
                found = [e[1] for e in answers[0].resources[0][4] if e[0] == key][0]
                earliest = (await consumer.beginning_offsets([tp]))[tp]
                latest = (await consumer.end_offsets([tp]))[tp]
                return await count(), found, earliest, latest
            finally:
                await consumer.stop()
                await admin.close()

        return self.loop.run_until_complete(run())

    def produce(self, topic, partition, codec, acks, idempotent, records):
        async def run():
            producer = AIOKafkaProducer(
                bootstrap_servers=self.bootstrap,
                acks="all" if idempotent or acks == -1 else acks,
                compression_type=None if codec == "none" else codec,
                enable_idempotence=idempotent,
                linger_ms=5,
                max_batch_size=256 << 10,
                max_request_size=16 << 20,
            )
            await producer.start()
            try:
                sent = [
                    await producer.send(
                        topic,
                        partition=partition,
                        key=r.key,
                        value=r.value,
                        headers=r.headers,
                        timestamp_ms=r.timestamp,
                    )
                    for r in records
                ]
                done = await asyncio.wait_for(asyncio.gather(*sent), 30)
            finally:
                await producer.stop()
            return [-1 if m is None or acks == 0 else m.offset for m in done]

        return self.loop.run_until_complete(run())

    def read(self, topic, partition, start, count, wait):
        async def run():
            consumer = AIOKafkaConsumer(
                bootstrap_servers=self.bootstrap,
                group_id=None,
                enable_auto_commit=False,
                auto_offset_reset="none",
                fetch_max_wait_ms=500,
            )
            await consumer.start()
            try:
                tp = TopicPartition(topic, partition)
                consumer.assign([tp])
                consumer.seek(tp, start)
                out = []
                while len(out) < count:
                    m = await consumer.getone(tp)
                    out.append(protocol.as_json(m.key, m.value, m.headers, m.timestamp, m.offset))
                return out
            finally:
                await consumer.stop()

        return self.loop.run_until_complete(asyncio.wait_for(run(), wait))

    def join(self, m, journal, stop):
        asyncio.run(self.consume(m, journal, stop))

    async def consume(self, m, journal, stop):
        strategies = {
            "range": RangePartitionAssignor,
            "roundrobin": RoundRobinPartitionAssignor,
            "sticky": StickyPartitionAssignor,
        }
        consumer = AIOKafkaConsumer(
            bootstrap_servers=self.bootstrap,
            group_id=m.group,
            auto_offset_reset=m.reset,
            enable_auto_commit=False,
            partition_assignment_strategy=[strategies[m.assignor]],
            session_timeout_ms=m.session_ms,
            heartbeat_interval_ms=m.heartbeat_ms,
            rebalance_timeout_ms=m.session_ms,
            fetch_max_wait_ms=100,
            metadata_max_age_ms=1000 if m.pattern else 300_000,
        )

        class Listener(ConsumerRebalanceListener):
            seek = m.seek

            async def on_partitions_assigned(self, assigned):
                journal.assigned(assigned)
                if self.seek and TopicPartition(*self.seek[:2]) in assigned:
                    consumer.seek(TopicPartition(*self.seek[:2]), self.seek[2])
                    self.seek = None

            async def on_partitions_revoked(self, revoked):
                journal.revoked(revoked)

        if m.pattern:
            consumer.subscribe(pattern=m.pattern, listener=Listener())
        else:
            consumer.subscribe(m.topics, listener=Listener())
        await consumer.start()
        try:
            while not stop.is_set():
                got = await consumer.getmany(timeout_ms=100)
                journal.got((tp.topic, tp.partition, r.offset) for tp, records in got.items() for r in records)
                offsets = {tp: records[-1].offset + 1 for tp, records in got.items() if records}
                if not offsets:
                    continue
                try:
                    await consumer.commit(offsets)
                    for tp, offset in offsets.items():
                        journal.write("committed", tp.topic, tp.partition, offset)
                except KafkaError as e:  # IllegalStateError too: a partition that was taken away meanwhile
                    journal.refused(e)
        finally:
            await consumer.stop()

    def commit(self, group, topic, partition, offset, metadata):
        async def run():
            consumer = AIOKafkaConsumer(bootstrap_servers=self.bootstrap, group_id=group, enable_auto_commit=False)
            admin = AIOKafkaAdminClient(bootstrap_servers=self.bootstrap)
            await consumer.start()
            await admin.start()
            try:
                tp = TopicPartition(topic, partition)
                consumer.assign([tp])
                await consumer.commit({tp: OffsetAndMetadata(offset, metadata)})
                got = (await admin.list_consumer_group_offsets(group, partitions=[tp]))[tp]
                return got.offset, got.metadata
            finally:
                await admin.close()
                await consumer.stop()

        return self.loop.run_until_complete(run())

    def code(self, e):
        return e.errno if isinstance(e, BrokerResponseError) and e.errno >= 0 else None


def check(topic_errors):
    """Raises the first error of an admin answer: tuples of topic, code and perhaps a message."""
    for topic, code, *message in topic_errors:
        if code != 0:
            raise for_code(code)(f"{topic}: {message}")


if __name__ == "__main__":
    protocol.serve(Aio)
