WITH highest AS (
  SELECT
    max(price) AS price,
    time_bucket(INTERVAL 10 SECOND, epoch_ms(dateTime), TIMESTAMP '1970-01-01') AS window_start,
    window_start + INTERVAL 10 SECOND AS window_end
  FROM bid
  GROUP BY window_start
)
SELECT b.auction, b.price, b.bidder, b.dateTime, b.extra
FROM bid b JOIN highest h ON b.price = h.price
WHERE epoch_ms(b.dateTime) BETWEEN h.window_start AND h.window_end
  AND h.window_end <= getvariable('complete')
