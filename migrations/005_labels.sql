CREATE TABLE label_events (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    project_id    bigint      NOT NULL,
    image_id      bigint      NOT NULL,
    round_id      bigint,
    item_id       bigint,
    user_id       bigint REFERENCES users, -- null for imports from the command line
    kind          text        NOT NULL CHECK (kind IN ('label', 'undo', 'import')),
    verdict       text CHECK (verdict IN ('known', 'unknown', 'skip', 'unreadable')),
    class         int,
    client_key    text CHECK (client_key <> ''),
    duration_ms   bigint      NOT NULL DEFAULT 0 CHECK (duration_ms >= 0),
    supersedes    bigint REFERENCES label_events,
    class_version int         NOT NULL,
    at            timestamptz NOT NULL,
    CONSTRAINT label_events_client_key UNIQUE (user_id, client_key),
    UNIQUE (image_id, id),
    FOREIGN KEY (project_id, image_id) REFERENCES images (project_id, id),
    FOREIGN KEY (project_id, round_id, image_id, item_id) REFERENCES query_items (project_id, round_id, image_id, id),
    CONSTRAINT label_events_class FOREIGN KEY (project_id, class) REFERENCES classes (project_id, position),
    CHECK ((class IS NOT NULL) = (verdict IS NOT DISTINCT FROM 'known')),
    CHECK ((verdict IS NULL) = (kind = 'undo')),
    CHECK (kind <> 'undo' OR supersedes IS NOT NULL),
    CHECK ((item_id IS NULL) = (kind = 'import')),
    CHECK ((round_id IS NULL) = (item_id IS NULL)),
    CHECK (kind = 'import' OR (user_id IS NOT NULL AND client_key IS NOT NULL))
);
CREATE INDEX label_events_project ON label_events (project_id, id);
-- A decision is undone once.
CREATE UNIQUE INDEX label_events_undone ON label_events (supersedes) WHERE kind = 'undo';
COMMENT ON TABLE label_events IS 'Everything anybody ever said of an image; only ever appended to.';

CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation';
END
$$;
CREATE TRIGGER label_events_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON label_events
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER audit_events_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_events
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

ALTER TABLE images ADD FOREIGN KEY (id, label_event_id) REFERENCES label_events (image_id, id);
ALTER TABLE query_items ADD FOREIGN KEY (image_id, label_event_id) REFERENCES label_events (image_id, id);

CREATE TABLE late_decisions (
    user_id     bigint      NOT NULL REFERENCES users,
    client_key  text        NOT NULL CHECK (client_key <> ''),
    item_id     bigint      NOT NULL REFERENCES query_items,
    verdict     text        NOT NULL CHECK (verdict IN ('known', 'unknown', 'skip', 'unreadable')),
    class       int,
    duration_ms bigint      NOT NULL DEFAULT 0,
    at          timestamptz NOT NULL,
    PRIMARY KEY (user_id, client_key)
);
COMMENT ON TABLE late_decisions IS 'Decisions that came when the item was somebody else''s: kept for the record, never counted.';
