package chaos

import (
	"testing"

	"winnow"
	"winnow/db"
)

// addImages adds n images to a project's pool, faster than any import: they have no
// bytes.
func addImages(t testing.TB, s *db.Store, project winnow.ProjectID, n int) {
	t.Helper()
	for _, sql := range []string{
		`INSERT INTO images (project_id, sha256, media_type, width, height, bytes, source_path, split, created_at)
		 SELECT $1::bigint, sha256(n::text::bytea), 'image/jpeg', 640, 480, 60000, 'images/' || n || '.jpg', 'pool', now()
		 FROM generate_series(1, $2::int) n`,
		`UPDATE projects SET pool_count = pool_count + $2::int WHERE id = $1::bigint`,
	} {
		if _, err := s.Pool().Exec(t.Context(), sql, project, n); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Pool().Exec(t.Context(), `ANALYZE`); err != nil {
		t.Fatal(err)
	}
}
