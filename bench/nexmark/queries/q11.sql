SELECT
  bidder,
  count(*) AS bid_count,
  epoch_ms(min(dateTime)) AS window_start,
  epoch_ms(max(dateTime)) + INTERVAL 10 SECOND AS window_end
FROM (
  SELECT bidder, dateTime, count(*) FILTER (WHERE begins) OVER (PARTITION BY bidder ORDER BY dateTime) AS session
  FROM (
    SELECT bidder, dateTime, dateTime - lag(dateTime) OVER (PARTITION BY bidder ORDER BY dateTime) > 10000 AS begins
    FROM bid
  )
)
GROUP BY bidder, session
HAVING window_end < getvariable('complete')
