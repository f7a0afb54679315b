SELECT
  bidder,
  count(*) AS bid_count,
  time_bucket(INTERVAL 10 SECOND, epoch_ms(arrival), TIMESTAMP '1970-01-01') AS window_start,
  window_start + INTERVAL 10 SECOND AS window_end
FROM bid
GROUP BY bidder, window_start
HAVING window_end <= getvariable('complete')
