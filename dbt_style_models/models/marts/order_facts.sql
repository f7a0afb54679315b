{{ config(
    key='order_id',
    emission={'type': 'smart', 'require': ['country']},
    state={'events': {'default_ttl': '1h'}},
) }}
SELECT
  o.order_id,
  o.customer_id,
  o.amount,
  o.amount >= {{ var('large_order', 1000) }} AS is_large,
  o.placed_at,
  c.name AS customer,
  c.country
FROM {{ ref('stg_orders') }} o
LEFT JOIN {{ source('shop', 'customers') }} c ON o.customer_id = c.customer_id
