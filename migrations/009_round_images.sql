ALTER TABLE rounds ADD image_version bigint NOT NULL DEFAULT 0; -- the newest image that the round saw; 0 before it began
COMMENT ON COLUMN rounds.image_version IS 'With label_version, what the round works on: fixed when it first begins, so that whoever takes it over queries the same.';
