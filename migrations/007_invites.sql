ALTER TABLE invites ADD revoked_at timestamptz;
DROP INDEX invites_open;
CREATE UNIQUE INDEX invites_open ON invites (project_id, email) WHERE accepted_by IS NULL AND revoked_at IS NULL;
