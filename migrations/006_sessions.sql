ALTER TABLE users ADD session_epoch bigint NOT NULL DEFAULT 0;
COMMENT ON COLUMN users.session_epoch IS 'Grows when the password changes; sessions of an earlier epoch have ended.';
