import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.ObjectReader;
import com.fasterxml.jackson.databind.ObjectWriter;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.common.serialization.Deserializer;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.Serializer;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.GlobalKTable;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.Windowed;

/** W1, W2 and W3 in Kafka Streams: BROKERS w1|w2|w3 CLICKS PROFILES OUTPUT FOLDER THREADS. */
public final class StreamsJob {
  private static final ObjectMapper MAPPER = new ObjectMapper();
  private static final byte[] NOTHING = {0};

  public static final class Click {
    public String user_id;
    public String action;
    public long timestamp;
    public double amount;
    public String sid;
  }

  public static final class Profile {
    public String user_id;
    public String subscription_tier;
    public String full_name;
  }

  public static final class Enriched {
    public String user_id;
    public String action;
    public long timestamp;
    public String subscription_tier;
    public String full_name;
  }

  public static final class Counted {
    public String user_id;
    public long clicks;
    public long start;
  }

  private static final Duration WINDOW = Duration.ofSeconds(5);
  // more than there is: no click is late, however unevenly partitions are read
  private static final Duration GRACE = Duration.ofHours(1);

  public static void main(String[] args) {
    String brokers = args[0], work = args[1], clicks = args[2], profiles = args[3], output = args[4];
    Properties settings = new Properties();
    settings.put(StreamsConfig.APPLICATION_ID_CONFIG, output);
    settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, brokers);
    settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
    settings.put(StreamsConfig.STATE_DIR_CONFIG, args[5]);
    settings.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, args[6]);
    settings.put(StreamsConfig.REPLICATION_FACTOR_CONFIG, 1);
    settings.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");

    StreamsBuilder builder = new StreamsBuilder();
    switch (work) {
      case "w1" ->
          read(builder, clicks)
              .filter((key, click) -> click.amount >= 1)
              .to(output, Produced.with(Serdes.ByteArray(), json(Click.class)));
      case "w2" -> {
        GlobalKTable<String, Profile> known =
            builder.globalTable(profiles, Consumed.with(Serdes.String(), json(Profile.class)));
        read(builder, clicks)
            .leftJoin(known, (key, click) -> click.user_id, StreamsJob::enriched)
            .map((key, row) -> KeyValue.pair(row.user_id, row))
            .to(output, Produced.with(Serdes.String(), json(Enriched.class)));
      }
      case "w3" -> {
        Consumed<byte[], Click> timed =
            Consumed.with(Serdes.ByteArray(), json(Click.class))
                .withTimestampExtractor((record, known) -> ((Click) record.value()).timestamp);
        builder.stream(clicks, timed)
            .map((key, click) -> KeyValue.pair(click.user_id, NOTHING))
            .groupByKey(Grouped.with(Serdes.String(), Serdes.ByteArray()))
            .windowedBy(TimeWindows.ofSizeAndGrace(WINDOW, GRACE))
            .count(Materialized.with(Serdes.String(), Serdes.Long()))
            .toStream()
            .map((group, count) -> KeyValue.pair(group.key(), counted(group, count)))
            .to(output, Produced.with(Serdes.String(), json(Counted.class)));
      }
      default -> throw new IllegalArgumentException(work);
    }
    KafkaStreams streams = new KafkaStreams(builder.build(), settings);
    Runtime.getRuntime().addShutdownHook(new Thread(streams::close));
    streams.start();
  }

  private static KStream<byte[], Click> read(StreamsBuilder builder, String clicks) {
    return builder.stream(clicks, Consumed.with(Serdes.ByteArray(), json(Click.class)));
  }

  private static Counted counted(Windowed<String> group, long count) {
    Counted row = new Counted();
    row.user_id = group.key();
    row.clicks = count;
    row.start = group.window().start();
    return row;
  }

  private static Enriched enriched(Click click, Profile profile) {
    Enriched row = new Enriched();
    row.user_id = click.user_id;
    row.action = click.action;
    row.timestamp = click.timestamp;
    if (profile != null) {
      row.subscription_tier = profile.subscription_tier;
      row.full_name = profile.full_name;
    }
    return row;
  }

  private static <T> Serde<T> json(Class<T> type) {
    ObjectReader reader = MAPPER.readerFor(type);
    ObjectWriter writer = MAPPER.writerFor(type);
    Serializer<T> out =
        (topic, value) -> {
          try {
            return value == null ? null : writer.writeValueAsBytes(value);
          } catch (IOException error) {
            throw new UncheckedIOException(error);
          }
        };
    Deserializer<T> in =
        (topic, bytes) -> {
          try {
            return bytes == null ? null : reader.readValue(bytes);
          } catch (IOException error) {
            throw new UncheckedIOException(error);
          }
        };
    return Serdes.serdeFrom(out, in);
  }
}
