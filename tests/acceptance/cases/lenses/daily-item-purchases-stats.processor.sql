INSERT INTO daily-item-purchases-stats
SELECT STREAM
    itemId
  , COUNT(*) AS dailyPurchases
  , AVG(price / quantity) AS average_per_unit
FROM purchases
WINDOW BY TUMBLE 1d
GROUP BY itemId;
