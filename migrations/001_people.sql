COMMENT ON TABLE schema_version IS 'The number of the newest migration applied; kept by tern.';

CREATE TABLE users (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    email         text        NOT NULL UNIQUE CHECK (email = lower(email) AND email <> ''),
    name          text        NOT NULL,
    password_hash text, -- argon2id; null until a password is set
    site_admin    boolean     NOT NULL DEFAULT false,
    created_at    timestamptz NOT NULL
);
COMMENT ON TABLE users IS 'People who sign in.';

CREATE TABLE sessions (
    token  text PRIMARY KEY,
    data   bytea       NOT NULL,
    expiry timestamptz NOT NULL
);
CREATE INDEX sessions_expiry ON sessions (expiry);
COMMENT ON TABLE sessions IS 'Browser sessions, in the form that scs expects.';

CREATE TABLE sign_in_links (
    token_hash bytea PRIMARY KEY CHECK (octet_length(token_hash) = 32),
    user_id    bigint      NOT NULL REFERENCES users,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    used_at    timestamptz
);
COMMENT ON TABLE sign_in_links IS 'One-time links that sign a person in; only their hashes are kept.';
