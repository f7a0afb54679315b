-- Users, for streams of clicks to be joined with: `kaflow dev --with postgres`, and `deploy/compose.yaml`.
CREATE TABLE users (
    user_id integer PRIMARY KEY,
    first_name text NOT NULL,
    last_name text NOT NULL,
    age integer,
    email text NOT NULL,
    last_login timestamp,
    is_active boolean NOT NULL,
    country text,
    preferred_language text,
    subscription_level text,
    marketing_opt_in boolean NOT NULL
);
INSERT INTO users VALUES
(1, 'Alice', 'Smith', 30, 'alice.smith@example.com', '2025-01-15 10:15:00', true, 'USA', 'en', 'premium', true),
(2, 'Bruno', 'Costa', 41, 'bruno.costa@example.com', '2025-01-14 18:02:11', true, 'Portugal', 'pt', 'free', false),
(3, 'Chidi', 'Okafor', 27, 'chidi.okafor@example.com', NULL, false, 'Nigeria', 'en', 'free', false),
(4, 'Dana', 'Novak', NULL, 'dana.novak@example.com', '2025-01-16 07:30:45', true, 'Czechia', 'cs', 'premium', true),
(5, 'Emi', 'Sato', 35, 'emi.sato@example.com', '2024-12-30 23:59:59', true, 'Japan', 'ja', 'basic', true);
