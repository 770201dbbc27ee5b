import io.kubernetes.client.extended.leaderelection.LeaderElectionConfig;
import io.kubernetes.client.extended.leaderelection.LeaderElector;
import io.kubernetes.client.extended.leaderelection.resourcelock.LeaseLock;
import io.kubernetes.client.openapi.ApiClient;
import io.kubernetes.client.util.ClientBuilder;
import io.kubernetes.client.util.KubeConfig;
import java.io.File;
import java.io.FileReader;
import java.time.Duration;
import java.time.Instant;

/**
 * An elector of client-java, closed by SIGTERM. Arguments: KUBECONFIG NAMESPACE LEASE IDENTITY DURATION DEADLINE RETRY
 * (seconds).
 */
public final class Elector {
    private static volatile LeaderElector current;
    private static volatile boolean ending;

    public static void main(String[] arguments) throws Exception {
        KubeConfig file = KubeConfig.loadKubeConfig(new FileReader(arguments[0]));
        file.setFile(new File(arguments[0]));
        ApiClient client = ClientBuilder.kubeconfig(file).build();
        client.setConnectTimeout(3000).setReadTimeout(3000).setWriteTimeout(3000);
        LeaseLock lock = new LeaseLock(arguments[1], arguments[2], arguments[3], client);
        Duration[] times = new Duration[3];
        for (int number = 0; number < 3; number++) {
            times[number] = Duration.ofSeconds(Long.parseLong(arguments[4 + number]));
        }
        Runtime.getRuntime().addShutdownHook(new Thread(Elector::end));
        while (!ending) {
            try (LeaderElector elector = new LeaderElector(new LeaderElectionConfig(lock, times[0], times[1], times[2]))) {
                current = elector;
                elector.run(() -> say("started", arguments), () -> say("stopped", arguments));
            }
        }
    }

    private static void end() {
        ending = true;
        if (current != null) {
            current.close();
        }
    }

    private static synchronized void say(String event, String[] arguments) {
        System.out.printf(
                "{\"time\":\"%s\",\"namespace\":\"%s\",\"identity\":\"%s\",\"event\":\"%s\"}%n",
                Instant.now(), arguments[1], arguments[3], event);
        System.out.flush();
    }
}
