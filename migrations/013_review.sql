ALTER TABLE imports ADD ignored bigint NOT NULL DEFAULT 0;
COMMENT ON COLUMN imports.ignored IS 'Files that are no images by their names, hidden files, links.';

-- The gallery of answers: gold that went wrong, and items that several people answer.
CREATE INDEX item_answers_gold_wrong ON item_answers (project_id, event_id)
    WHERE gold_result IN ('false-known', 'false-unknown', 'wrong-class');
CREATE INDEX query_items_shared ON query_items (project_id, id) WHERE slots > 1;
