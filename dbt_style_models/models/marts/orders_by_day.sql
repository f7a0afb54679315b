{{ config(materialized='table', partition='day', interval='10s') }}
SELECT order_id, customer_id, amount, status, placed_at
FROM {{ ref('stg_orders') }}
