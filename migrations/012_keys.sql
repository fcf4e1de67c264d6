ALTER TABLE users ADD keys jsonb NOT NULL DEFAULT '{}'; -- action -> key, where it differs from the default
COMMENT ON COLUMN users.keys IS 'The person''s own keys on the labeling page, as package winnow names them: {"unknown": "KeyN"}.';
