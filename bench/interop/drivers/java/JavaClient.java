import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.utils.internals.AppInfoParser;

/** Kafka's own Java client: Admin, KafkaProducer, KafkaConsumer. Each call closes what it opened. */
final class JavaClient {
    private final String bootstrap;

    JavaClient(String bootstrap) {
        this.bootstrap = bootstrap;
    }

    ObjectNode hello() {
        ObjectNode hello = Driver.JSON.createObjectNode().put("client", "java").put("version", AppInfoParser.getVersion()).put("idempotent", true);
        ArrayNode codecs = hello.putArray("codecs");
        List.of("none", "gzip", "snappy", "lz4", "zstd").forEach(codecs::add);
        hello.putArray("lacks");
        ArrayNode groups = hello.putArray("groups");
        List.of("classic/range", "classic/roundrobin", "classic/sticky", "classic/cooperative-sticky", "classic/regex",
            "consumer/uniform", "consumer/range", "consumer/regex").forEach(groups::add);
        return hello;
    }

    Properties common() {
        Properties p = new Properties();
        p.put("bootstrap.servers", bootstrap);
        p.put("client.id", "interop-java");
        p.put("enable.metrics.push", "true");
        return p;
    }

    void create(String topic, int partitions, JsonNode config) throws Exception {
        Map<String, String> configs = new HashMap<>();
        config.properties().forEach(e -> configs.put(e.getKey(), e.getValue().asText()));
        try (Admin admin = Admin.create(common())) {
            admin.createTopics(List.of(new NewTopic(topic, partitions, (short) 1).configs(configs))).all().get(30, TimeUnit.SECONDS);
        }
    }

    void remove(String topic) throws Exception {
        try (Admin admin = Admin.create(common())) {
            admin.deleteTopics(List.of(topic)).all().get(30, TimeUnit.SECONDS);
        }
    }

    /** Changes a topic by every kind of administrative request and describes it afterwards. */
    ObjectNode administer(JsonNode r) throws Exception {
        String topic = r.path("topic").asText();
        Map.Entry<String, JsonNode> config = r.path("config").properties().iterator().next();
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        TopicPartition first = new TopicPartition(topic, 0);
        try (Admin admin = Admin.create(common())) {
            if (partitions(admin, topic) < r.path("count").asInt()) {
                admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(r.path("count").asInt()))).all().get(30, TimeUnit.SECONDS);
            }
            admin.incrementalAlterConfigs(Map.of(resource, List.of(
                new AlterConfigOp(new ConfigEntry(config.getKey(), config.getValue().asText()), AlterConfigOp.OpType.SET)))).all().get(30, TimeUnit.SECONDS);
            admin.deleteRecords(Map.of(first, RecordsToDelete.beforeOffset(r.path("from").asLong()))).all().get(30, TimeUnit.SECONDS);
            return Driver.JSON.createObjectNode()
                .put("partitions", partitions(admin, topic))
                .put("value", admin.describeConfigs(List.of(resource)).all().get(30, TimeUnit.SECONDS).get(resource).get(config.getKey()).value())
                .put("earliest", offset(admin, first, OffsetSpec.earliest()))
                .put("latest", offset(admin, first, OffsetSpec.latest()));
        }
    }

    private static int partitions(Admin admin, String topic) throws Exception {
        return admin.describeTopics(List.of(topic)).allTopicNames().get(30, TimeUnit.SECONDS).get(topic).partitions().size();
    }

    private static long offset(Admin admin, TopicPartition partition, OffsetSpec spec) throws Exception {
        return admin.listOffsets(Map.of(partition, spec)).partitionResult(partition).get(30, TimeUnit.SECONDS).offset();
    }

    List<Long> produce(JsonNode r) throws Exception {
        Properties p = common();
        p.put("acks", r.path("acks").asText());
        p.put("compression.type", r.path("codec").asText());
        p.put("enable.idempotence", r.path("idempotent").asText());
        if (!r.path("idempotent").asBoolean()) { // without sequences, a batch sent again would arrive after its successors
            p.put("max.in.flight.requests.per.connection", "1");
        }
        p.put("linger.ms", "5");
        p.put("batch.size", "262144");
        p.put("max.request.size", String.valueOf(16 << 20));
        p.put("delivery.timeout.ms", "30000");
        p.put("request.timeout.ms", "10000");
        p.put("max.block.ms", "10000");
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        List<Long> offsets = new ArrayList<>();
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(p, new ByteArraySerializer(), new ByteArraySerializer())) {
            for (JsonNode record : r.path("records")) {
                List<Header> headers = new ArrayList<>();
                record.path("headers").forEach(h -> headers.add(new RecordHeader(h.path("name").asText(), bytes(h.path("value")))));
                sent.add(producer.send(new ProducerRecord<>(r.path("topic").asText(), r.path("partition").asInt(),
                    record.path("timestamp").asLong(), bytes(record.path("key")), bytes(record.path("value")), headers)));
            }
            for (Future<RecordMetadata> f : sent) {
                RecordMetadata m = f.get(30, TimeUnit.SECONDS);
                offsets.add(m.hasOffset() ? m.offset() : -1);
            }
        }
        return offsets;
    }

    void read(JsonNode r, ArrayNode out) throws Exception {
        Properties p = common();
        p.put("auto.offset.reset", "none");
        p.put("enable.auto.commit", "false");
        p.put("isolation.level", "read_committed");
        p.put("fetch.max.wait.ms", "50"); // closing waits for the fetch that is under way
        TopicPartition tp = new TopicPartition(r.path("topic").asText(), r.path("partition").asInt());
        int count = r.path("count").asInt();
        long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(r.path("waitMs").asLong(30_000));
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(p, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.assign(List.of(tp));
            consumer.seek(tp, r.path("from").asLong());
            while (out.size() < count) {
                long left = deadline - System.nanoTime();
                if (left <= 0) {
                    throw new TimeoutException(out.size() + " of " + count + " records");
                }
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofNanos(left))) {
                    add(out, record);
                }
            }
        }
    }

    private static void add(ArrayNode out, ConsumerRecord<byte[], byte[]> record) {
        ObjectNode o = out.addObject();
        o.put("key", record.key()).put("value", record.value());
        o.put("timestamp", record.timestamp()).put("timestampType", record.timestampType().toString());
        o.put("offset", record.offset());
        ArrayNode headers = o.putArray("headers");
        record.headers().forEach(h -> headers.addObject().put("name", h.key()).put("value", h.value()));
    }

    private static byte[] bytes(JsonNode base64) {
        return base64.isNull() || base64.isMissingNode() ? null : Base64.getDecoder().decode(base64.asText());
    }
}
