ALTER TABLE round_checkpoints ADD training bytea;
COMMENT ON COLUMN round_checkpoints.training IS 'Digest of all that the network was trained from: another attempt with the same takes it over. Null before this was kept.';

-- Unlogged: it is a cache of a gigabyte and more for a pool of a million, needed for
-- minutes. After a crash of the server it is empty, and the chunks are scored again.
CREATE UNLOGGED TABLE score_chunks (
    round_id     bigint NOT NULL REFERENCES rounds,
    number       int    NOT NULL CHECK (number >= 0), -- in the order of the pool
    model        bytea  NOT NULL CHECK (octet_length(model) = 32), -- digest of the networks and of which outputs are kept
    images       bigint[] NOT NULL,
    image_count  int    NOT NULL CHECK (image_count > 0),
    claims       int    NOT NULL DEFAULT 0, -- how often it was given to a worker; the last has it
    heartbeat_at timestamptz, -- of the worker that has it; null while nobody has
    scores       bytea, -- null until it is scored; float32, little-endian
    PRIMARY KEY (round_id, number)
);
ALTER TABLE score_chunks ALTER scores SET STORAGE EXTERNAL; -- noise does not compress
COMMENT ON TABLE score_chunks IS 'Parts of the pool of rounds in work, shared among workers, with the scores that are there. Gone when the round opens for labeling.';
