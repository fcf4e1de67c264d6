// Package migrations holds the database's schema as numbered SQL files. They are
// append-only: what has been released is never edited, and nothing rolls back.
package migrations

import "embed"

// Files are the migrations, NNN_name.sql, in order of their numbers.
//
//go:embed *.sql
var Files embed.FS
