import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.common.metrics.KafkaMetric;
import org.apache.kafka.common.metrics.MetricsReporter;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.telemetry.ClientTelemetry;
import org.apache.kafka.server.telemetry.ClientTelemetryPayload;
import org.apache.kafka.server.telemetry.ClientTelemetryReceiver;

/**
 * Writes each push of a client to a file: its number, the client instance id, and whether
 * it is the last one.
 */
public class PushRecorder implements MetricsReporter, ClientTelemetry, ClientTelemetryReceiver {
    private final AtomicInteger count = new AtomicInteger();
    private Path directory;

    @Override
    public void configure(Map<String, ?> configs) {
        directory = Path.of(String.valueOf(configs.get("push.recorder.directory")));
    }

    @Override
    public ClientTelemetryReceiver clientReceiver() {
        return this;
    }

    @Override
    public void exportMetrics(AuthorizableRequestContext context, ClientTelemetryPayload payload) {
        ByteBuffer data = payload.data();
        byte[] bytes = new byte[data.remaining()];
        data.get(bytes);
        String name = String.format(
            "%06d_%s_%s", count.incrementAndGet(), payload.clientInstanceId(),
            payload.isTerminating() ? "last" : "push");
        try {
            Path written = Files.write(directory.resolve(name + ".tmp"), bytes);
            Files.move(written, directory.resolve(name), StandardCopyOption.ATOMIC_MOVE);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    @Override
    public void init(List<KafkaMetric> metrics) {}

    @Override
    public void metricChange(KafkaMetric metric) {}

    @Override
    public void metricRemoval(KafkaMetric metric) {}

    @Override
    public void close() {}
}
