import org.apache.flink.configuration.Configuration;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;

/** W1, W2 and W3 in Flink SQL: BROKERS w1|w2|w3 CLICKS PROFILES OUTPUT FOLDER THREADS. */
public final class FlinkJob {
  private static final String CLICKS =
      "CREATE TABLE clicks (user_id STRING, action STRING, `timestamp` BIGINT, amount DOUBLE, sid STRING)"
          + " WITH (%s)";
  private static final String TIMED_CLICKS =
      "CREATE TABLE clicks (user_id STRING, `timestamp` BIGINT, `at` AS TO_TIMESTAMP_LTZ(`timestamp`, 3),"
          + " WATERMARK FOR `at` AS `at`) WITH (%s)";
  private static final String PROFILES =
      "CREATE TABLE profiles (user_id STRING, subscription_tier STRING, full_name STRING) WITH (%s)";

  private static final String W1_OUTPUT =
      "CREATE TABLE written (user_id STRING, action STRING, `timestamp` BIGINT, amount DOUBLE, sid STRING)"
          + " WITH (%s)";
  private static final String W1 =
      "INSERT INTO written SELECT user_id, action, `timestamp`, amount, sid FROM clicks WHERE amount >= 1";

  private static final String W2_OUTPUT =
      "CREATE TABLE written (user_id STRING, action STRING, `timestamp` BIGINT, subscription_tier STRING,"
          + " full_name STRING) WITH (%s, 'key.format' = 'raw', 'key.fields' = 'user_id')";
  private static final String W2 =
      "INSERT INTO written SELECT /*+ STATE_TTL('c' = '30s', 'p' = '365d') */"
          + " c.user_id, c.action, c.`timestamp`, p.subscription_tier, p.full_name"
          + " FROM clicks c JOIN profiles p ON c.user_id = p.user_id";

  private static final String W3_OUTPUT =
      "CREATE TABLE written (user_id STRING, clicks BIGINT, `start` BIGINT)"
          + " WITH (%s, 'key.format' = 'raw', 'key.fields' = 'user_id')";
  private static final String W3 =
      "INSERT INTO written SELECT user_id, COUNT(*),"
          + " 1000 * CAST(TIMESTAMPDIFF(SECOND, TIMESTAMP '1970-01-01 00:00:00', window_start) AS BIGINT)"
          + " FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(`at`), INTERVAL '5' SECOND))"
          + " GROUP BY user_id, window_start, window_end";

  public static void main(String[] args) throws Exception {
    String brokers = args[0], work = args[1], clicks = args[2], profiles = args[3], output = args[4];
    Configuration settings = new Configuration();
    settings.setString("parallelism.default", args[6]);
    settings.setString("pipeline.object-reuse", "true");
    settings.setString("execution.checkpointing.interval", "1 s");
    settings.setString("execution.checkpointing.mode", "EXACTLY_ONCE");
    settings.setString("execution.checkpointing.dir", "file://" + args[5]);
    settings.setString("state.backend.type", "hashmap");
    settings.setString("table.local-time-zone", "UTC");
    TableEnvironment flink =
        TableEnvironment.create(
            EnvironmentSettings.newInstance().inStreamingMode().withConfiguration(settings).build());
    String source = source(brokers, clicks, output), sink = sink(brokers, output);
    switch (work) {
      case "w1" -> run(flink, W1, CLICKS.formatted(source), W1_OUTPUT.formatted(sink));
      case "w2" -> {
        String known = PROFILES.formatted(source(brokers, profiles, output));
        run(flink, W2, CLICKS.formatted(source), known, W2_OUTPUT.formatted(sink));
      }
      case "w3" -> run(flink, W3, TIMED_CLICKS.formatted(source), W3_OUTPUT.formatted(sink));
      default -> throw new IllegalArgumentException(work);
    }
  }

  private static void run(TableEnvironment flink, String query, String... tables) throws Exception {
    for (String table : tables) {
      flink.executeSql(table);
    }
    flink.executeSql(query).await();
  }

  private static String source(String brokers, String topic, String group) {
    return "'connector' = 'kafka', 'properties.bootstrap.servers' = '%s', 'topic' = '%s',".formatted(brokers, topic)
        + " 'properties.group.id' = '%s', 'scan.startup.mode' = 'earliest-offset',".formatted(group)
        + " 'properties.isolation.level' = 'read_committed', 'value.format' = 'json'";
  }

  private static String sink(String brokers, String topic) {
    return "'connector' = 'kafka', 'properties.bootstrap.servers' = '%s', 'topic' = '%s',".formatted(brokers, topic)
        + " 'value.format' = 'json', 'sink.delivery-guarantee' = 'exactly-once',"
        + " 'sink.transactional-id-prefix' = '%s', 'properties.transaction.timeout.ms' = '600000'".formatted(topic);
  }
}
