-- Several people may be asked about an item: each has a slot of it, with a lease or
-- the answer that stands. The item keeps what the answers resolved to.
CREATE TABLE item_answers (
    item_id     bigint  NOT NULL REFERENCES query_items,
    slot        int     NOT NULL CHECK (slot >= 1),
    project_id  bigint  NOT NULL,
    round_id    bigint  NOT NULL,
    rank        int     NOT NULL, -- the order in which people get them
    gold        boolean NOT NULL DEFAULT false, -- made for one person; nobody else gets it
    -- Who works on it until when, or who answered.
    user_id     bigint REFERENCES users,
    lease_until timestamptz,
    grid        boolean NOT NULL DEFAULT false, -- leased for a page of like images
    event_id    bigint REFERENCES label_events,
    verdict     text CHECK (verdict IN ('known', 'unknown', 'skip', 'unreadable')),
    class       int,
    duration_ms bigint  NOT NULL DEFAULT 0,
    answered_at timestamptz,
    PRIMARY KEY (item_id, slot),
    CONSTRAINT item_answers_once UNIQUE (item_id, user_id),
    CHECK ((user_id IS NULL) = (lease_until IS NULL AND event_id IS NULL)),
    CHECK (lease_until IS NULL OR event_id IS NULL),
    CHECK (NOT grid OR lease_until IS NOT NULL),
    CHECK (NOT gold OR user_id IS NOT NULL),
    CHECK ((verdict IS NULL) = (event_id IS NULL)),
    CHECK ((verdict IS NULL) = (answered_at IS NULL)),
    CHECK ((class IS NOT NULL) = (verdict IS NOT DISTINCT FROM 'known'))
)
WITH (fillfactor = 70);
COMMENT ON TABLE item_answers IS 'Slots of items: each is free, leased to a person, or holds the answer that the person stands by.';

INSERT INTO item_answers (item_id, slot, project_id, round_id, rank, user_id, lease_until, event_id, verdict, class, duration_ms, answered_at)
SELECT q.id, 1, q.project_id, q.round_id, q.rank, coalesce(q.decided_by, q.leased_by), q.lease_until,
       q.label_event_id, q.verdict, q.class, coalesce(e.duration_ms, 0), q.decided_at
FROM query_items q
LEFT JOIN label_events e ON e.id = q.label_event_id;

-- What is free, what a person holds, and what they said last.
CREATE INDEX item_answers_open ON item_answers (round_id, rank, slot) WHERE event_id IS NULL AND NOT gold;
CREATE INDEX item_answers_held ON item_answers (user_id, round_id, rank) WHERE user_id IS NOT NULL AND event_id IS NULL;
CREATE INDEX item_answers_given ON item_answers (project_id, user_id, event_id) WHERE event_id IS NOT NULL;
CREATE INDEX item_answers_gold ON item_answers (round_id, user_id) WHERE gold;

-- With the columns go the indexes and checks that name them. The remaining columns
-- that an answer changes are in no index.
ALTER TABLE query_items
    DROP COLUMN leased_by,
    DROP COLUMN lease_until,
    ADD slots    int     NOT NULL DEFAULT 1 CHECK (slots >= 0),
    ADD answered int     NOT NULL DEFAULT 0 CHECK (answered >= 0),
    ADD review   boolean NOT NULL DEFAULT false, -- all have answered and none has most votes
    ADD flagged  int     NOT NULL DEFAULT 0 CHECK (flagged >= 0); -- flags that nobody has resolved
UPDATE query_items SET answered = 1 WHERE verdict IS NOT NULL;
ALTER TABLE query_items ADD CHECK (NOT review OR verdict IS NULL);
DROP INDEX query_items_open, query_items_decided;
CREATE INDEX query_items_review ON query_items (project_id, id) WHERE review OR flagged > 0;
CREATE INDEX query_items_gold ON query_items (round_id) WHERE slice = 'gold';

ALTER TABLE rounds
    ADD audit_count         int NOT NULL DEFAULT 0,
    ADD audit_known_count   int NOT NULL DEFAULT 0 CHECK (audit_known_count >= 0),
    ADD audit_unknown_count int NOT NULL DEFAULT 0 CHECK (audit_unknown_count >= 0),
    ADD gold_count          int NOT NULL DEFAULT 0, -- images with a settled label that this round mixes in
    ADD CHECK (audit_count <= item_count AND audit_known_count <= known_count AND audit_unknown_count <= unknown_count);
COMMENT ON COLUMN rounds.audit_count IS 'Of the items, those drawn at random beside the query; counted in the other columns, too.';

-- An answer may leave the image's label as it is, until others have answered: each
-- event says which event's verdict the label is from then on.
ALTER TABLE label_events DISABLE TRIGGER label_events_append_only;
ALTER TABLE label_events ADD stands bigint;
COMMENT ON COLUMN label_events.stands IS 'The event whose verdict is the image''s label once this one is recorded; null for none.';
UPDATE label_events e
SET stands = CASE WHEN e.kind = 'undo' THEN (SELECT u.supersedes FROM label_events u WHERE u.id = e.supersedes) ELSE e.id END;
ALTER TABLE label_events ENABLE TRIGGER label_events_append_only;
ALTER TABLE label_events
    ADD FOREIGN KEY (image_id, stands) REFERENCES label_events (image_id, id),
    DROP CONSTRAINT label_events_kind_check,
    ADD CONSTRAINT label_events_kind_check CHECK (kind IN ('label', 'undo', 'import', 'correction')),
    DROP CONSTRAINT label_events_check3,
    ADD CHECK (kind IN ('import', 'correction') OR item_id IS NOT NULL),
    ADD CHECK (kind <> 'import' OR item_id IS NULL);
