{{ config(materialized='table', partition='day', interval='10s') }}
-- A window: each minute leaves once, when no order of it is expected any more. A backfill of a day
-- makes the same rows of the same orders.
SELECT date_trunc('minute', placed_at) AS minute, count(*) AS orders, sum(amount) AS revenue
FROM {{ ref('stg_orders') }}
GROUP BY ALL
