import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.FileOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.regex.Pattern;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.CloseOptions;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.FencedInstanceIdException;
import org.apache.kafka.common.errors.RebalanceInProgressException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** Members of groups: each is a thread of its own that consumes until it shall leave. */
final class Members {
    private static final Map<String, String> ASSIGNORS = Map.of(
        "range", "org.apache.kafka.clients.consumer.RangeAssignor",
        "roundrobin", "org.apache.kafka.clients.consumer.RoundRobinAssignor",
        "sticky", "org.apache.kafka.clients.consumer.StickyAssignor",
        "cooperative-sticky", "org.apache.kafka.clients.consumer.CooperativeStickyAssignor");

    private final Map<String, Member> members = new HashMap<>();

    void join(JsonNode r, Properties common) throws IOException {
        Member member = new Member(r, common);
        members.put(r.path("member").asText(), member);
        member.thread.start();
    }

    /** Lets a member go in order, or, abandoned, without a word to the group, as one that was killed. */
    void leave(JsonNode r) throws Exception {
        Member member = members.remove(r.path("member").asText());
        member.abandon = r.path("abandon").asBoolean();
        member.stop = true;
        member.thread.join(r.path("waitMs").asLong(30_000));
        if (member.thread.isAlive()) {
            throw new TimeoutException("the member does not end");
        }
        if (member.failure != null) {
            throw member.failure;
        }
    }

    /** Commits an offset for a group without members and asks for it again. */
    static ObjectNode commit(JsonNode r, Properties common) throws Exception {
        String group = r.path("group").asText();
        TopicPartition tp = new TopicPartition(r.path("topic").asText(), r.path("partition").asInt());
        Properties p = new Properties();
        p.putAll(common);
        p.put("group.id", group);
        p.put("enable.auto.commit", "false");
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(p, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.assign(List.of(tp));
            consumer.commitSync(Map.of(tp, new OffsetAndMetadata(r.path("from").asLong(), r.path("metadata").asText())));
        }
        try (Admin admin = Admin.create(common)) {
            OffsetAndMetadata got = admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get(30, TimeUnit.SECONDS).get(tp);
            return Driver.JSON.createObjectNode().put("offset", got.offset()).put("metadata", got.metadata());
        }
    }

    private static final class Member implements ConsumerRebalanceListener, Runnable {
        final Thread thread;
        volatile boolean stop;
        volatile boolean abandon;
        volatile Exception failure;

        private final JsonNode r;
        private final KafkaConsumer<byte[], byte[]> consumer;
        private final FileOutputStream journal; // the Go drivers show its form
        private TopicPartition seek;

        Member(JsonNode r, Properties common) throws IOException {
            this.r = r;
            journal = new FileOutputStream(r.path("log").asText(), true);
            Properties p = new Properties();
            p.putAll(common);
            p.put("group.id", r.path("group").asText());
            p.put("auto.offset.reset", r.path("reset").asText());
            p.put("enable.auto.commit", "false");
            p.put("fetch.max.wait.ms", "100");
            p.put("metadata.max.age.ms", r.path("pattern").asText().isEmpty() ? "300000" : "1000");
            String assignor = r.path("assignor").asText();
            if (r.path("protocol").asText().equals("consumer")) {
                p.put("group.protocol", "consumer");
                p.put("group.remote.assignor", assignor);
            } else {
                int session = r.path("sessionMs").asInt();
                p.put("group.protocol", "classic");
                p.put("partition.assignment.strategy", ASSIGNORS.get(assignor));
                p.put("session.timeout.ms", session);
                p.put("heartbeat.interval.ms", session / 10);
                p.put("max.poll.interval.ms", Math.max(session, 10_000));
            }
            if (!r.path("instance").asText().isEmpty()) {
                p.put("group.instance.id", r.path("instance").asText());
            }
            if (r.hasNonNull("seek")) {
                seek = new TopicPartition(r.path("topics").path(0).asText(), r.path("seek").path("partition").asInt());
            }
            consumer = new KafkaConsumer<>(p, new ByteArrayDeserializer(), new ByteArrayDeserializer());
            thread = new Thread(this, "member-" + r.path("member").asText());
            thread.setDaemon(true);
        }

        @Override
        public void run() {
            try (journal) {
                try {
                    subscribe();
                    while (!stop) {
                        poll();
                    }
                } catch (Exception e) {
                    write(new StringBuilder("failed " + System.currentTimeMillis() + " " + e.toString().replace('\n', ' ') + "\n"));
                    throw e;
                } finally {
                    if (abandon) {
                        consumer.close(CloseOptions.groupMembershipOperation(CloseOptions.GroupMembershipOperation.REMAIN_IN_GROUP).withTimeout(Duration.ZERO));
                    } else {
                        consumer.close();
                    }
                }
            } catch (Exception e) {
                failure = e;
                e.printStackTrace();
            }
        }

        private void subscribe() {
            String pattern = r.path("pattern").asText();
            if (pattern.isEmpty()) {
                List<String> topics = new java.util.ArrayList<>();
                r.path("topics").forEach(t -> topics.add(t.asText()));
                consumer.subscribe(topics, this);
            } else if (r.path("protocol").asText().equals("consumer")) {
                consumer.subscribe(new SubscriptionPattern(pattern), this); // the broker's regular expressions
            } else {
                consumer.subscribe(Pattern.compile(pattern), this);
            }
        }

        private void poll() throws IOException {
            Map<TopicPartition, OffsetAndMetadata> next = new HashMap<>();
            StringBuilder lines = new StringBuilder();
            long now = System.currentTimeMillis();
            for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(100))) {
                line(lines, "got", now, record.topic(), record.partition(), record.offset());
                next.put(new TopicPartition(record.topic(), record.partition()), new OffsetAndMetadata(record.offset() + 1, record.leaderEpoch(), ""));
            }
            write(lines);
            if (next.isEmpty()) {
                return;
            }
            try {
                consumer.commitSync(next);
                long done = System.currentTimeMillis();
                next.forEach((tp, o) -> line(lines, "committed", done, tp.topic(), tp.partition(), o.offset()));
            } catch (CommitFailedException | RebalanceInProgressException | FencedInstanceIdException e) {
                lines.append("refused ").append(System.currentTimeMillis()).append(' ').append(e.toString().replace('\n', ' ')).append('\n');
            }
            write(lines);
        }

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            event("assigned", partitions);
            if (seek != null && partitions.contains(seek)) {
                consumer.seek(seek, r.path("seek").path("offset").asLong());
                seek = null;
            }
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            event("revoked", partitions);
        }

        private void event(String kind, Collection<TopicPartition> partitions) {
            StringBuilder lines = new StringBuilder();
            long now = System.currentTimeMillis();
            partitions.forEach(tp -> line(lines, kind, now, tp.topic(), tp.partition(), -1));
            try {
                write(lines);
            } catch (IOException e) {
                throw new java.io.UncheckedIOException(e);
            }
        }

        private static void line(StringBuilder lines, String kind, long time, String topic, int partition, long offset) {
            lines.append(kind).append(' ').append(time).append(' ').append(topic).append(' ').append(partition).append(' ').append(offset).append('\n');
        }

        private void write(StringBuilder lines) throws IOException {
            journal.write(lines.toString().getBytes(StandardCharsets.UTF_8));
            lines.setLength(0);
        }
    }
}
