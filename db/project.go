package db

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"winnow"
)

const projectColumns = `p.id, p.name, p.instructions, p.settings, p.class_version, p.created_at,
	p.pool_count, p.test_count, p.known_count, p.unknown_count, p.skipped_count, p.unreadable_count,
	(SELECT coalesce(json_agg(json_build_object('index', c.position, 'name', c.name, 'key', c.key, 'colour', c.colour)
	                          ORDER BY c.position), '[]')
	 FROM classes c WHERE c.project_id = p.id)`

// settingsJSON reads stored settings over the defaults, which fill in what did not
// exist yet when they were stored.
type settingsJSON winnow.Settings

func (s *settingsJSON) UnmarshalJSON(data []byte) error {
	*s = settingsJSON(winnow.DefaultSettings())
	s.Overlap, s.AuditShare, s.GoldEvery = 1, 0, 0 // as it was before they were settings
	return json.Unmarshal(data, (*winnow.Settings)(s))
}

func projectFields(p *winnow.Project) []any {
	n := &p.Counts
	return []any{
		&p.ID, &p.Name, &p.Instructions, (*settingsJSON)(&p.Settings), &p.ClassVersion, &p.CreatedAt,
		&n.Pool, &n.Test, &n.Known, &n.Unknown, &n.Skipped, &n.Unreadable, &p.Classes,
	}
}

func scanProject(row pgx.CollectableRow) (*winnow.Project, error) {
	p := new(winnow.Project)
	return p, row.Scan(projectFields(p)...)
}

// CreateProject stores a new project and makes its creator its admin.
func (s *Store) CreateProject(ctx context.Context, by winnow.UserID, p *winnow.Project) (winnow.ProjectID, error) {
	if err := p.Validate(); err != nil {
		return 0, err
	}
	var id winnow.ProjectID
	err := s.tx(ctx, func(tx pgx.Tx) (err error) {
		id, err = value[winnow.ProjectID](ctx, tx, `
			INSERT INTO projects (name, instructions, settings, created_by, created_at)
			VALUES (@name, @instructions, @settings, nullif(@by::bigint, 0), @now)
			RETURNING id`,
			pgx.NamedArgs{
				"name": strings.TrimSpace(p.Name), "instructions": p.Instructions, "settings": p.Settings,
				"by": by, "now": s.now(),
			})
		if err != nil {
			return nameTaken(err, p.Name)
		}
		if err := insertClasses(ctx, tx, id, 1, p.Classes); err != nil {
			return err
		}
		if by != 0 {
			if err := s.addMember(ctx, tx, id, by, winnow.RoleAdmin); err != nil {
				return err
			}
		}
		return s.audit(ctx, tx, by, id, "project.create", detail{"name": p.Name})
	})
	return id, wrap(err, "create project")
}

func nameTaken(err error, name string) error {
	if violates(err, "projects_name") {
		return &winnow.Error{Code: winnow.CodeConflict, Field: "name", Message: "A project named " + strings.TrimSpace(name) + " exists already."}
	}
	return err
}

func insertClasses(ctx context.Context, tx pgx.Tx, project winnow.ProjectID, version int, classes []winnow.Class) error {
	batch := new(pgx.Batch)
	for _, c := range classes {
		batch.Queue(`
			INSERT INTO classes (project_id, position, name, key, colour, version)
			VALUES (@project, @position, @name, @key, @colour, @version)`,
			pgx.NamedArgs{
				"project": project, "position": c.Index, "name": strings.TrimSpace(c.Name),
				"key": c.Key, "colour": c.Colour, "version": version,
			})
	}
	return tx.SendBatch(ctx, batch).Close()
}

// Project returns a project.
func (s *Store) Project(ctx context.Context, id winnow.ProjectID) (*winnow.Project, error) {
	p, err := one(ctx, s.pool, scanProject, `SELECT `+projectColumns+` FROM projects p WHERE p.id = @id`,
		pgx.NamedArgs{"id": id})
	return p, wrap(missing(err, "There is no such project."), "read project %d", id)
}

// FindProject returns the project of that name, ignoring case, or else of that id.
func (s *Store) FindProject(ctx context.Context, nameOrID string) (*winnow.Project, error) {
	p, err := one(ctx, s.pool, scanProject, `SELECT `+projectColumns+` FROM projects p WHERE lower(p.name) = lower(@name)`,
		pgx.NamedArgs{"name": strings.TrimSpace(nameOrID)})
	if !errors.Is(err, pgx.ErrNoRows) {
		return p, wrap(err, "find project")
	}
	if id, err := strconv.ParseInt(nameOrID, 10, 64); err == nil {
		return s.Project(ctx, winnow.ProjectID(id))
	}
	return nil, winnow.Errorf(winnow.CodeNotFound, "There is no project named %q.", nameOrID)
}

// Projects lists the projects that a person may see, newest first.
func (s *Store) Projects(ctx context.Context, user winnow.User, page winnow.Page) ([]winnow.ProjectSummary, string, error) {
	w, err := newWindow(page, lastKey)
	if err != nil {
		return nil, "", err
	}
	projects, err := collect(ctx, s.pool, func(row pgx.CollectableRow) (p winnow.ProjectSummary, err error) {
		return p, row.Scan(append(projectFields(&p.Project), &p.Role)...)
	}, `
		SELECT `+projectColumns+`, CASE WHEN @site_admin::boolean THEN 'admin' ELSE m.role END
		FROM projects p
		LEFT JOIN members m ON m.project_id = p.id AND m.user_id = @user
		WHERE p.id < @after AND (@site_admin::boolean OR m.role IS NOT NULL)
		ORDER BY p.id DESC
		LIMIT @limit`,
		pgx.NamedArgs{"user": user.ID, "site_admin": user.SiteAdmin, "after": w.after, "limit": w.limit + 1})
	if err != nil {
		return nil, "", wrap(err, "list projects")
	}
	projects, next := cut(w, projects, func(p winnow.ProjectSummary) int64 { return int64(p.ID) })
	return projects, next, wrap(s.addLatest(ctx, projects), "list projects")
}

// addLatest fills in the newest round of each project.
func (s *Store) addLatest(ctx context.Context, projects []winnow.ProjectSummary) error {
	ids := make([]winnow.ProjectID, len(projects))
	for i, p := range projects {
		ids[i] = p.ID
	}
	rounds, err := collect(ctx, s.pool, scanRound, `
		SELECT `+roundColumns+`
		FROM unnest(@ids::bigint[]) AS project (id)
		JOIN LATERAL (SELECT * FROM rounds WHERE project_id = project.id ORDER BY number DESC LIMIT 1) r ON true`,
		pgx.NamedArgs{"ids": ids})
	if err != nil {
		return err
	}
	latest := make(map[winnow.ProjectID]*winnow.Round, len(rounds))
	for _, r := range rounds {
		latest[r.ProjectID] = r
	}
	for i := range projects {
		projects[i].Latest = latest[projects[i].ID]
	}
	return nil
}

// UpdateProject stores name, instructions, settings and classes. Classes added at
// the end make a new class version. Once a label exists or a round is open, classes
// are neither removed nor renamed (CodeConflict): that would rewrite history.
func (s *Store) UpdateProject(ctx context.Context, by winnow.UserID, p *winnow.Project) error {
	if err := p.Validate(); err != nil {
		return err
	}
	err := s.tx(ctx, func(tx pgx.Tx) error {
		old, err := one(ctx, tx, scanProject, `SELECT `+projectColumns+` FROM projects p WHERE p.id = @id FOR UPDATE OF p`,
			pgx.NamedArgs{"id": p.ID})
		if err != nil {
			return missing(err, "There is no such project.")
		}
		version, err := s.updateClasses(ctx, tx, old, p.Classes)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `
			UPDATE projects
			SET name = @name, instructions = @instructions, settings = @settings, class_version = @version
			WHERE id = @id`,
			pgx.NamedArgs{
				"id": p.ID, "name": strings.TrimSpace(p.Name), "instructions": p.Instructions,
				"settings": p.Settings, "version": version,
			})
		if err != nil {
			return nameTaken(err, p.Name)
		}
		if err := notify(ctx, tx, winnow.Notice{Project: p.ID}); err != nil {
			return err
		}
		return s.audit(ctx, tx, by, p.ID, "project.update", detail{"class_version": version, "settings": p.Settings})
	})
	return wrap(err, "update project %d", p.ID)
}

// updateClasses brings the classes of a locked project to those given, and returns
// the class version that they make.
func (s *Store) updateClasses(ctx context.Context, tx pgx.Tx, old *winnow.Project, classes []winnow.Class) (version int, err error) {
	kept := min(len(old.Classes), len(classes))
	rewrites := kept < len(old.Classes)
	for i, c := range classes[:kept] {
		rewrites = rewrites || strings.TrimSpace(c.Name) != old.Classes[i].Name
	}
	args := pgx.NamedArgs{"project": old.ID, "kept": kept}
	if rewrites {
		fixed, err := value[bool](ctx, tx, `
			SELECT EXISTS (SELECT FROM label_events WHERE project_id = @project)
			    OR EXISTS (SELECT FROM rounds WHERE project_id = @project
			               AND state IN ('queued', 'training', 'scoring', 'labeling'))`, args)
		if err != nil {
			return 0, err
		}
		if fixed {
			return 0, &winnow.Error{
				Code: winnow.CodeConflict, Field: "classes",
				Message: "Classes cannot be removed or renamed once there are labels or an open round; new ones can be added at the end.",
			}
		}
	}
	// Names may have changed places: free them all before they are given again.
	if _, err := tx.Exec(ctx, `UPDATE classes SET name = name || chr(1) || position WHERE project_id = @project`, args); err != nil {
		return 0, err
	}
	if _, err := tx.Exec(ctx, `DELETE FROM classes WHERE project_id = @project AND position >= @kept`, args); err != nil {
		return 0, err
	}
	batch := new(pgx.Batch)
	for _, c := range classes[:kept] {
		batch.Queue(`
			UPDATE classes SET name = @name, key = @key, colour = @colour
			WHERE project_id = @project AND position = @position`,
			pgx.NamedArgs{
				"project": old.ID, "position": c.Index, "name": strings.TrimSpace(c.Name),
				"key": c.Key, "colour": c.Colour,
			})
	}
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return 0, err
	}
	version = old.ClassVersion
	if len(classes) > kept {
		version++
	}
	return version, insertClasses(ctx, tx, old.ID, version, classes[kept:])
}
