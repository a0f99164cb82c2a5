import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.protocol.Errors;

/**
 * Drives Kafka's own client and command line tools for the interop suite, in one long-lived JVM: a tool of its own
 * would start a JVM a run. One JSON request a line comes from standard input, one JSON answer a line goes to standard
 * output, as the package comment of bench/interop describes.
 */
public final class Driver {
    static final ObjectMapper JSON = new ObjectMapper().disable(JsonGenerator.Feature.AUTO_CLOSE_TARGET);

    public static void main(String[] args) throws IOException {
        // Nothing but answers may reach the real standard output: a tool or a library that prints goes to the log.
        PrintStream answers = System.out;
        System.setOut(System.err);
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8), 1 << 16);
        Tools tools = new Tools();
        Members members = new Members();
        JavaClient client = null;
        String line;
        while ((line = requests.readLine()) != null) {
            JsonNode request = JSON.readTree(line);
            ObjectNode answer = JSON.createObjectNode().put("id", request.path("id").asInt());
            try {
                String op = request.path("op").asText();
                if (op.equals("hello")) {
                    client = new JavaClient(request.path("bootstrap").asText());
                }
                answer(op, request, answer, client, tools, members);
            } catch (Throwable failure) { // the suite shall see every failure, linkage errors too, and go on
                ObjectNode error = answer.putObject("error");
                Throwable cause = root(failure);
                error.put("message", cause.toString());
                Errors code = Errors.forException(cause);
                if (cause instanceof ApiException && code != Errors.UNKNOWN_SERVER_ERROR) {
                    error.put("code", code.code());
                }
                failure.printStackTrace();
            }
            answers.println(JSON.writeValueAsString(answer));
            answers.flush();
        }
    }

    private static void answer(String op, JsonNode r, ObjectNode answer, JavaClient client, Tools tools, Members members)
        throws Exception {
        switch (op) {
            case "hello" -> answer.set("hello", client.hello());
            case "create" -> client.create(r.path("topic").asText(), r.path("count").asInt(), r.path("config"));
            case "delete" -> client.remove(r.path("topic").asText());
            case "produce" -> {
                ArrayNode offsets = answer.putArray("offsets");
                client.produce(r).forEach(offsets::add);
            }
            case "admin" -> answer.set("admin", client.administer(r));
            case "read" -> client.read(r, answer.putArray("records"));
            case "join" -> members.join(r, client.common());
            case "leave" -> members.leave(r);
            case "commit" -> answer.set("committed", Members.commit(r, client.common()));
            case "tool" -> {
                List<String> args = new ArrayList<>();
                r.path("args").forEach(a -> args.add(a.asText()));
                Tools.Result result = tools.run(r.path("main").asText(), args, r.path("stdin").asText(""), r.path("waitMs").asLong(60_000));
                answer.putObject("tool").put("exit", result.exit()).put("out", result.out()).put("err", result.err());
            }
            default -> throw new IllegalArgumentException("no operation " + op);
        }
    }

    /** Unwraps what futures and retries have put around the broker's answer. */
    private static Throwable root(Throwable t) {
        while (!(t instanceof ApiException) && t.getCause() != null) {
            t = t.getCause();
        }
        return t;
    }
}
