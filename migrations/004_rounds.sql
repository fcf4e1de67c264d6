CREATE TABLE rounds (
    id               bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    project_id       bigint           NOT NULL REFERENCES projects,
    number           int              NOT NULL CHECK (number >= 0),
    state            text             NOT NULL CHECK (state IN ('queued', 'training', 'scoring', 'labeling', 'closed', 'failed', 'cancelled')),
    strategy         text             NOT NULL,
    cold_start       boolean          NOT NULL DEFAULT false,
    seed             bigint           NOT NULL,
    k                double precision NOT NULL CHECK (k >= 1),
    settings         jsonb            NOT NULL, -- frozen when the round starts
    class_version    int              NOT NULL,
    classes          int              NOT NULL CHECK (classes > 0),
    label_version    bigint           NOT NULL DEFAULT 0, -- the newest label event that training saw
    attempt          int              NOT NULL DEFAULT 1, -- fences workers that were given up
    takeovers        int              NOT NULL DEFAULT 0, -- since the last start or retry by hand
    heartbeat_at     timestamptz, -- of the worker
    progress         jsonb            NOT NULL DEFAULT '{}',
    metrics          jsonb            NOT NULL DEFAULT '{}',
    error            text             NOT NULL DEFAULT '',
    backend          text             NOT NULL DEFAULT '',
    -- Kept in the transaction of every decision; the one that fills them closes the round.
    item_count       int              NOT NULL DEFAULT 0,
    known_count      int              NOT NULL DEFAULT 0 CHECK (known_count >= 0),
    unknown_count    int              NOT NULL DEFAULT 0 CHECK (unknown_count >= 0),
    skipped_count    int              NOT NULL DEFAULT 0 CHECK (skipped_count >= 0),
    unreadable_count int              NOT NULL DEFAULT 0 CHECK (unreadable_count >= 0),
    created_by       bigint REFERENCES users,
    created_at       timestamptz      NOT NULL,
    started_at       timestamptz,
    labeling_at      timestamptz,
    closed_at        timestamptz,
    CONSTRAINT rounds_number UNIQUE (project_id, number),
    UNIQUE (project_id, id),
    CHECK (known_count + unknown_count + skipped_count + unreadable_count <= item_count)
)
WITH (fillfactor = 50);
CREATE UNIQUE INDEX rounds_one_open ON rounds (project_id)
    WHERE state IN ('queued', 'training', 'scoring', 'labeling');
CREATE INDEX rounds_working ON rounds (heartbeat_at) WHERE state IN ('training', 'scoring');
COMMENT ON TABLE rounds IS 'Turns of the loop: train, score, query, label.';

CREATE TABLE round_checkpoints (
    round_id bigint NOT NULL REFERENCES rounds,
    name     text   NOT NULL, -- the network
    data     bytea  NOT NULL,
    PRIMARY KEY (round_id, name)
);
ALTER TABLE round_checkpoints ALTER data SET STORAGE EXTERNAL;
COMMENT ON TABLE round_checkpoints IS 'The networks that a round trained.';

CREATE TABLE query_items (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    project_id     bigint NOT NULL,
    round_id       bigint NOT NULL,
    image_id       bigint NOT NULL,
    rank           int    NOT NULL CHECK (rank >= 1),
    slice          text   NOT NULL CHECK (slice IN ('query', 'audit', 'gold')),
    -- Why this image; all null under a strategy without such scores.
    eu_l           double precision,
    eu_d           double precision,
    au             double precision,
    clean          double precision,
    info           double precision,
    predicted      int,
    -- The decision that stands.
    verdict        text CHECK (verdict IN ('known', 'unknown', 'skip', 'unreadable')),
    class          int,
    decided_by     bigint REFERENCES users,
    decided_at     timestamptz,
    label_event_id bigint,
    -- Who works on it until when.
    leased_by      bigint REFERENCES users,
    lease_until    timestamptz,
    CONSTRAINT query_items_rank UNIQUE (round_id, rank),
    CONSTRAINT query_items_image UNIQUE (round_id, image_id),
    UNIQUE (project_id, round_id, image_id, id),
    FOREIGN KEY (project_id, round_id) REFERENCES rounds (project_id, id),
    FOREIGN KEY (project_id, image_id) REFERENCES images (project_id, id),
    FOREIGN KEY (project_id, class) REFERENCES classes (project_id, position),
    CHECK ((class IS NOT NULL) = (verdict IS NOT DISTINCT FROM 'known')),
    CHECK ((verdict IS NULL) = (decided_by IS NULL)),
    CHECK ((verdict IS NULL) = (decided_at IS NULL)),
    CHECK ((verdict IS NULL) = (label_event_id IS NULL)),
    CHECK ((leased_by IS NULL) = (lease_until IS NULL)),
    CHECK (verdict IS NULL OR leased_by IS NULL)
)
WITH (fillfactor = 70);
CREATE INDEX query_items_open ON query_items (round_id, rank) WHERE verdict IS NULL;
CREATE INDEX query_items_leases ON query_items (leased_by, round_id, rank) WHERE leased_by IS NOT NULL;
CREATE INDEX query_items_decided ON query_items (round_id, decided_by, label_event_id) WHERE verdict IS NOT NULL;
CREATE INDEX query_items_images ON query_items (image_id);
COMMENT ON TABLE query_items IS 'Images that a round asks about, with their leases and decisions.';
