import org.apache.flink.configuration.Configuration;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;

/** W1 and W2 in Flink SQL: BROKERS w1|w2 CLICKS PROFILES OUTPUT FOLDER THREADS. */
public final class FlinkJob {
  private static final String CLICKS =
      "CREATE TABLE clicks (user_id STRING, action STRING, `timestamp` BIGINT, amount DOUBLE, sid STRING)"
          + " WITH (%s)";
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

  public static void main(String[] args) throws Exception {
    String brokers = args[0], work = args[1], clicks = args[2], profiles = args[3], output = args[4];
    Configuration settings = new Configuration();
    settings.setString("parallelism.default", args[6]);
    settings.setString("pipeline.object-reuse", "true");
    settings.setString("execution.checkpointing.interval", "1 s");
    settings.setString("execution.checkpointing.mode", "EXACTLY_ONCE");
    settings.setString("execution.checkpointing.dir", "file://" + args[5]);
    settings.setString("state.backend.type", "hashmap");
    TableEnvironment flink =
        TableEnvironment.create(
            EnvironmentSettings.newInstance().inStreamingMode().withConfiguration(settings).build());
    flink.executeSql(CLICKS.formatted(source(brokers, clicks, output)));
    if (work.equals("w2")) {
      flink.executeSql(PROFILES.formatted(source(brokers, profiles, output)));
    }
    flink.executeSql((work.equals("w1") ? W1_OUTPUT : W2_OUTPUT).formatted(sink(brokers, output)));
    flink.executeSql(work.equals("w1") ? W1 : W2).await();
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
