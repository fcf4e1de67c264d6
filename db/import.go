package db

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"winnow"
)

const importColumns = `id, project_id, source, split, labeled, state, total, done, added, duplicates, failed, ignored,
	problems, started_at, finished_at`

func scanImport(row pgx.CollectableRow) (winnow.Import, error) {
	var i winnow.Import
	err := row.Scan(&i.ID, &i.ProjectID, &i.Source, &i.Split, &i.Labeled, &i.State, &i.Total, &i.Done, &i.Added,
		&i.Duplicates, &i.Failed, &i.Ignored, &i.Problems, &i.StartedAt, (*zeronull.Timestamptz)(&i.FinishedAt))
	return i, err
}

// CreateImport records an import that starts now.
func (s *Store) CreateImport(ctx context.Context, by winnow.UserID, imp winnow.Import) (winnow.ImportID, error) {
	var id winnow.ImportID
	err := s.tx(ctx, func(tx pgx.Tx) (err error) {
		id, err = value[winnow.ImportID](ctx, tx, `
			INSERT INTO imports (project_id, source, split, labeled, state, total, started_by, started_at, heartbeat_at)
			VALUES (@project, @source, @split, @labeled, 'running', @total, nullif(@by::bigint, 0), @now, now())
			RETURNING id`,
			pgx.NamedArgs{
				"project": imp.ProjectID, "source": imp.Source, "split": imp.Split, "labeled": imp.Labeled,
				"total": imp.Total, "by": by, "now": s.now(),
			})
		if violates(err, "imports_project_id_fkey") {
			return errNoProject()
		}
		if err != nil {
			return err
		}
		if err := notify(ctx, tx, winnow.Notice{Project: imp.ProjectID, Import: id}); err != nil {
			return err
		}
		return s.audit(ctx, tx, by, imp.ProjectID, "import.start",
			detail{"import": id, "source": imp.Source, "split": imp.Split, "labeled": imp.Labeled})
	})
	return id, wrap(err, "create import")
}

// UpdateImport stores how far an import is, and that its process lives. CodeConflict
// if the import does not run any more.
func (s *Store) UpdateImport(ctx context.Context, imp *winnow.Import) error {
	return wrap(s.saveImport(ctx, imp, winnow.ImportRunning), "update import %d", imp.ID)
}

// FinishImport stores the last figures of an import and the state it ends in.
func (s *Store) FinishImport(ctx context.Context, imp *winnow.Import) error {
	return wrap(s.saveImport(ctx, imp, imp.State), "finish import %d", imp.ID)
}

func (s *Store) saveImport(ctx context.Context, imp *winnow.Import, state winnow.ImportState) error {
	problems := imp.Problems[:min(len(imp.Problems), winnow.MaxImportProblems)]
	if problems == nil {
		problems = []winnow.ImportProblem{}
	}
	return s.tx(ctx, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `
			UPDATE imports
			SET state = @state, total = @total, done = @done, added = @added, duplicates = @duplicates, failed = @failed,
			    ignored = @ignored, problems = @problems, heartbeat_at = now(),
			    finished_at = CASE WHEN @state = 'running' THEN NULL ELSE @now::timestamptz END
			WHERE id = @id AND project_id = @project AND state = 'running'`,
			pgx.NamedArgs{
				"id": imp.ID, "project": imp.ProjectID, "state": state, "total": imp.Total, "done": imp.Done,
				"added": imp.Added, "duplicates": imp.Duplicates, "failed": imp.Failed, "ignored": imp.Ignored, "problems": problems, "now": s.now(),
			})
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return winnow.Errorf(winnow.CodeConflict, "This import does not run any more. The images that went in are kept.")
		}
		return notify(ctx, tx, winnow.Notice{Project: imp.ProjectID, Import: imp.ID})
	})
}

// Import returns an import of a project.
func (s *Store) Import(ctx context.Context, project winnow.ProjectID, id winnow.ImportID) (*winnow.Import, error) {
	i, err := one(ctx, s.pool, scanImport, `
		SELECT `+importColumns+` FROM imports WHERE id = @id AND project_id = @project`,
		pgx.NamedArgs{"project": project, "id": id})
	if err != nil {
		return nil, wrap(missing(err, "There is no such import in this project."), "read import %d", id)
	}
	return &i, nil
}

// Imports lists the imports of a project, newest first.
func (s *Store) Imports(ctx context.Context, project winnow.ProjectID, page winnow.Page) ([]winnow.Import, string, error) {
	w, err := newWindow(page, lastKey)
	if err != nil {
		return nil, "", err
	}
	imports, err := collect(ctx, s.pool, scanImport, `
		SELECT `+importColumns+` FROM imports
		WHERE project_id = @project AND id < @after
		ORDER BY id DESC
		LIMIT @limit`,
		pgx.NamedArgs{"project": project, "after": w.after, "limit": w.limit + 1})
	if err != nil {
		return nil, "", wrap(err, "list imports of project %d", project)
	}
	imports, next := cut(w, imports, func(i winnow.Import) int64 { return int64(i.ID) })
	return imports, next, nil
}

// InterruptDeadImports marks the imports whose process has said nothing for
// olderThan, and returns how many there were.
func (s *Store) InterruptDeadImports(ctx context.Context, olderThan time.Duration) (int, error) {
	var dead []winnow.Notice
	err := s.tx(ctx, func(tx pgx.Tx) (err error) {
		dead, err = collect(ctx, tx, func(row pgx.CollectableRow) (n winnow.Notice, err error) {
			return n, row.Scan(&n.Project, &n.Import)
		}, `
			UPDATE imports SET state = 'interrupted', finished_at = heartbeat_at
			WHERE state = 'running' AND heartbeat_at < now() - @silence::interval
			RETURNING project_id, id`,
			pgx.NamedArgs{"silence": olderThan})
		if err != nil {
			return err
		}
		for _, n := range dead {
			if err := notify(ctx, tx, n); err != nil {
				return err
			}
		}
		return nil
	})
	return len(dead), wrap(err, "interrupt dead imports")
}
