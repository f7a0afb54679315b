WITH registered AS (
  SELECT id, name, time_bucket(INTERVAL 10 SECOND, epoch_ms(dateTime), TIMESTAMP '1970-01-01') AS window_start
  FROM person
),
sold AS (
  SELECT DISTINCT
    seller,
    time_bucket(INTERVAL 10 SECOND, epoch_ms(dateTime), TIMESTAMP '1970-01-01') AS window_start
  FROM auction
)
SELECT p.id, p.name, p.window_start
FROM registered p JOIN sold a ON p.id = a.seller AND p.window_start = a.window_start
WHERE p.window_start + INTERVAL 10 SECOND <= getvariable('complete')
