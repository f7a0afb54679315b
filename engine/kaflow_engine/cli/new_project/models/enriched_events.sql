{{ config(
    key='user_id',
    emission={'type': 'smart', 'require': ['subscription_tier']},
) }}
-- Events with what is known about their user, as soon as that is known.
SELECT e.user_id, e.event_type, e.timestamp, p.subscription_tier, p.country
FROM {{ source('app', 'events') }} e
LEFT JOIN {{ source('app', 'profiles') }} p ON e.user_id = p.user_id
