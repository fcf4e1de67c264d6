CREATE TABLE imports (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    project_id   bigint      NOT NULL REFERENCES projects,
    source       text        NOT NULL,
    split        text        NOT NULL CHECK (split IN ('pool', 'test')),
    labeled      boolean     NOT NULL,
    state        text        NOT NULL CHECK (state IN ('running', 'done', 'failed', 'interrupted')),
    total        bigint      NOT NULL DEFAULT 0,
    done         bigint      NOT NULL DEFAULT 0,
    added        bigint      NOT NULL DEFAULT 0,
    duplicates   bigint      NOT NULL DEFAULT 0,
    failed       bigint      NOT NULL DEFAULT 0,
    problems     jsonb       NOT NULL DEFAULT '[]',
    started_by   bigint REFERENCES users,
    started_at   timestamptz NOT NULL,
    heartbeat_at timestamptz NOT NULL,
    finished_at  timestamptz,
    UNIQUE (project_id, id)
);
CREATE INDEX imports_running ON imports (heartbeat_at) WHERE state = 'running';
COMMENT ON TABLE imports IS 'Runs of an import with their reports.';

CREATE TABLE images (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    project_id     bigint      NOT NULL REFERENCES projects,
    sha256         bytea       NOT NULL CHECK (octet_length(sha256) = 32),
    media_type     text        NOT NULL,
    width          int         NOT NULL CHECK (width > 0),
    height         int         NOT NULL CHECK (height > 0),
    bytes          bigint      NOT NULL,
    source_path    text        NOT NULL,
    metadata       jsonb,
    split          text        NOT NULL CHECK (split IN ('pool', 'test')),
    import_id      bigint,
    -- The label that stands; written in the transaction of the label event.
    verdict        text CHECK (verdict IN ('known', 'unknown', 'skip', 'unreadable')),
    class          int,
    label_event_id bigint,
    created_at     timestamptz NOT NULL,
    CONSTRAINT images_identity UNIQUE (project_id, sha256),
    UNIQUE (project_id, id),
    CONSTRAINT images_class FOREIGN KEY (project_id, class) REFERENCES classes (project_id, position),
    FOREIGN KEY (project_id, import_id) REFERENCES imports (project_id, id),
    CHECK ((class IS NOT NULL) = (verdict IS NOT DISTINCT FROM 'known')),
    CHECK ((verdict IS NULL) = (label_event_id IS NULL))
);
CREATE INDEX images_queryable ON images (project_id, id) WHERE split = 'pool' AND verdict IS NULL;
CREATE INDEX images_split ON images (project_id, split, id);
CREATE INDEX images_verdict ON images (project_id, verdict, id) WHERE verdict IS NOT NULL;
CREATE INDEX images_class ON images (project_id, class, id) WHERE class IS NOT NULL;
COMMENT ON TABLE images IS 'Images of a project, once each by content, with the label that stands.';

CREATE TABLE image_files (
    image_id     bigint PRIMARY KEY REFERENCES images,
    original     bytea NOT NULL,
    display      bytea, -- null when browsers read the original
    display_type text,
    thumbnail    bytea NOT NULL,
    CHECK ((display IS NULL) = (display_type IS NULL))
);
-- The bytes are compressed already.
ALTER TABLE image_files
    ALTER original SET STORAGE EXTERNAL,
    ALTER display SET STORAGE EXTERNAL,
    ALTER thumbnail SET STORAGE EXTERNAL;
COMMENT ON TABLE image_files IS 'The bytes of images: as imported, for browsers, and as thumbnails.';

CREATE TABLE image_pixels (
    image_id bigint NOT NULL REFERENCES images,
    size     int    NOT NULL CHECK (size > 0),
    rgb      bytea  NOT NULL,
    PRIMARY KEY (image_id, size),
    CHECK (octet_length(rgb) = size * size * 3)
)
WITH (toast_tuple_target = 8160); -- 32x32 RGB stays in the row: training reads them all
ALTER TABLE image_pixels ALTER rgb SET STORAGE EXTERNAL;
COMMENT ON TABLE image_pixels IS 'Images as the networks see them: square RGB of a given side.';
