// Package api is Winnow's REST API under /api/v1, described by OpenAPI from its own
// types, with a page to try it at /api/docs.
package api

import (
	"context"

	"winnow"
)

// Store is what the API needs of the store.
type Store interface {
	UserByToken(ctx context.Context, secret string) (winnow.Token, winnow.User, error)
	Role(ctx context.Context, project winnow.ProjectID, user winnow.User) (winnow.Role, error)
	Project(ctx context.Context, id winnow.ProjectID) (*winnow.Project, error)
	Rounds(ctx context.Context, project winnow.ProjectID, page winnow.Page) ([]*winnow.Round, string, error)
	Round(ctx context.Context, project winnow.ProjectID, number int) (*winnow.Round, error)
	ExportLabels(ctx context.Context, project winnow.ProjectID, f winnow.LabelFilter, fn func(winnow.LabelRecord) error) error
}
