-- What a person's labeling amounts to, kept with every answer. It outlives their
-- membership.
CREATE TABLE annotators (
    project_id         bigint NOT NULL REFERENCES projects,
    user_id            bigint NOT NULL REFERENCES users,
    label_count        bigint NOT NULL DEFAULT 0, -- answers that stand
    active_ms          bigint NOT NULL DEFAULT 0, -- of all answers ever given
    shared_count       bigint NOT NULL DEFAULT 0, -- to decided items that others answered, too
    agreed_count       bigint NOT NULL DEFAULT 0, -- those equal to the decision
    gold_count         bigint NOT NULL DEFAULT 0,
    gold_right         bigint NOT NULL DEFAULT 0,
    gold_false_known   bigint NOT NULL DEFAULT 0,
    gold_false_unknown bigint NOT NULL DEFAULT 0,
    gold_wrong_class   bigint NOT NULL DEFAULT 0,
    since_gold         int    NOT NULL DEFAULT 0, -- answers since a gold item was last given out
    last_label_at      timestamptz,
    PRIMARY KEY (project_id, user_id)
)
WITH (fillfactor = 50);
COMMENT ON TABLE annotators IS 'How people label in a project: counts kept with every answer.';

INSERT INTO annotators (project_id, user_id, label_count, active_ms, last_label_at)
SELECT e.project_id, e.user_id,
       (SELECT count(*) FROM item_answers a
        WHERE a.project_id = e.project_id AND a.user_id = e.user_id AND a.event_id IS NOT NULL),
       sum(least(e.duration_ms, 60000)), max(e.at)
FROM label_events e
WHERE e.kind = 'label'
GROUP BY e.project_id, e.user_id;

ALTER TABLE members DROP COLUMN label_count, DROP COLUMN last_label_at;

ALTER TABLE item_answers ADD gold_result text
    CHECK (gold_result IN ('right', 'false-known', 'false-unknown', 'wrong-class', 'none'));
ALTER TABLE item_answers ADD CHECK ((gold_result IS NOT NULL) = (gold AND event_id IS NOT NULL));
COMMENT ON COLUMN item_answers.gold_result IS 'The answer to a gold item beside the label that the image had then; none for one that was skipped or could not be read.';

CREATE TABLE gold_images (
    image_id   bigint PRIMARY KEY REFERENCES images,
    project_id bigint      NOT NULL REFERENCES projects,
    set_by     bigint REFERENCES users,
    set_at     timestamptz NOT NULL
);
CREATE INDEX gold_images_project ON gold_images (project_id, image_id);
COMMENT ON TABLE gold_images IS 'Images whose label is settled: rounds mix them in to see how well people label.';

CREATE TABLE item_flags (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    item_id     bigint      NOT NULL REFERENCES query_items,
    user_id     bigint      NOT NULL REFERENCES users,
    note        text        NOT NULL,
    at          timestamptz NOT NULL,
    resolved_by bigint REFERENCES users,
    resolved_at timestamptz,
    CHECK ((resolved_by IS NULL) = (resolved_at IS NULL))
);
CREATE UNIQUE INDEX item_flags_open ON item_flags (item_id, user_id) WHERE resolved_at IS NULL;
COMMENT ON TABLE item_flags IS 'Requests of annotators that an admin look at an item.';
