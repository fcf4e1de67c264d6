CREATE TABLE projects (
    id               bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name             text        NOT NULL CHECK (name <> ''),
    instructions     text        NOT NULL DEFAULT '',
    settings         jsonb       NOT NULL,
    class_version    int         NOT NULL DEFAULT 1 CHECK (class_version >= 1),
    -- Kept in the transaction of every change, so that no page counts images.
    pool_count       bigint      NOT NULL DEFAULT 0 CHECK (pool_count >= 0),
    test_count       bigint      NOT NULL DEFAULT 0 CHECK (test_count >= 0),
    known_count      bigint      NOT NULL DEFAULT 0 CHECK (known_count >= 0),
    unknown_count    bigint      NOT NULL DEFAULT 0 CHECK (unknown_count >= 0),
    skipped_count    bigint      NOT NULL DEFAULT 0 CHECK (skipped_count >= 0),
    unreadable_count bigint      NOT NULL DEFAULT 0 CHECK (unreadable_count >= 0),
    created_by       bigint REFERENCES users,
    created_at       timestamptz NOT NULL,
    CHECK (known_count + unknown_count + skipped_count + unreadable_count <= pool_count)
)
WITH (fillfactor = 50);
CREATE UNIQUE INDEX projects_name ON projects (lower(name));
COMMENT ON TABLE projects IS 'Labeling tasks with their settings and the counts of their pool.';

CREATE TABLE classes (
    project_id bigint NOT NULL REFERENCES projects,
    position   int    NOT NULL CHECK (position >= 0),
    name       text   NOT NULL CHECK (name <> ''),
    key        text   NOT NULL DEFAULT '',
    colour     text   NOT NULL CHECK (colour ~ '^#[0-9a-fA-F]{6}$'),
    version    int    NOT NULL, -- the class version that added it
    PRIMARY KEY (project_id, position)
);
CREATE UNIQUE INDEX classes_name ON classes (project_id, lower(name));
COMMENT ON TABLE classes IS 'Known classes of a project; the position is the column of the networks'' logits.';

CREATE TABLE members (
    project_id    bigint      NOT NULL REFERENCES projects,
    user_id       bigint      NOT NULL REFERENCES users,
    role          text        NOT NULL CHECK (role IN ('admin', 'annotator', 'viewer')),
    label_count   bigint      NOT NULL DEFAULT 0 CHECK (label_count >= 0),
    last_label_at timestamptz,
    created_at    timestamptz NOT NULL,
    PRIMARY KEY (project_id, user_id)
)
WITH (fillfactor = 70);
CREATE INDEX members_user ON members (user_id);
COMMENT ON TABLE members IS 'Who may do what in a project, and how many of their labels stand.';

CREATE TABLE invites (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    project_id  bigint      NOT NULL REFERENCES projects,
    email       text        NOT NULL,
    role        text        NOT NULL CHECK (role IN ('admin', 'annotator', 'viewer')),
    token_hash  bytea       NOT NULL UNIQUE CHECK (octet_length(token_hash) = 32),
    created_by  bigint REFERENCES users,
    created_at  timestamptz NOT NULL,
    expires_at  timestamptz NOT NULL,
    accepted_by bigint REFERENCES users
);
CREATE UNIQUE INDEX invites_open ON invites (project_id, email) WHERE accepted_by IS NULL;
COMMENT ON TABLE invites IS 'Links that make whoever opens them a member; only their hashes are kept.';

CREATE TABLE api_tokens (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    project_id   bigint      NOT NULL REFERENCES projects,
    user_id      bigint      NOT NULL REFERENCES users,
    name         text        NOT NULL,
    secret_hash  bytea       NOT NULL UNIQUE CHECK (octet_length(secret_hash) = 32),
    created_at   timestamptz NOT NULL,
    expires_at   timestamptz NOT NULL,
    last_used_at timestamptz,
    revoked_at   timestamptz
);
CREATE INDEX api_tokens_project ON api_tokens (project_id, id);
COMMENT ON TABLE api_tokens IS 'Bearer tokens of programs, each for one project and one person; only their hashes are kept.';

CREATE TABLE audit_events (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    project_id bigint REFERENCES projects,
    user_id    bigint REFERENCES users, -- null for the command line
    action     text        NOT NULL,
    detail     jsonb       NOT NULL DEFAULT '{}',
    at         timestamptz NOT NULL
);
CREATE INDEX audit_events_project ON audit_events (project_id, id);
COMMENT ON TABLE audit_events IS 'What people with power did, and when.';
