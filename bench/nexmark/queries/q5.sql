WITH counts AS (
  SELECT auction, count(*) AS num, start AS window_start
  FROM (
    SELECT
      auction,
      unnest([time_bucket(INTERVAL 2 SECOND, epoch_ms(dateTime), TIMESTAMP '1970-01-01') - n * INTERVAL 2 SECOND
        FOR n IN range(5)]) AS start
    FROM bid
  )
  GROUP BY ALL
)
SELECT auction, num, window_start, window_start + INTERVAL 10 SECOND AS window_end
FROM counts
WHERE window_end <= getvariable('complete')
QUALIFY num = max(num) OVER (PARTITION BY window_start)
