// Package api is Winnow's REST API under /api/v1: described by an OpenAPI document
// made of its own types, with a page to read and try it at /api/docs that loads
// nothing from elsewhere. Programs sign in with a project's bearer token.
package api

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"
	"github.com/go-chi/chi/v5"

	"winnow"
	"winnow/handlers"
)

// Store is what the API needs of the store.
type Store interface {
	UserByToken(ctx context.Context, secret string) (winnow.Token, winnow.User, error)
	Role(ctx context.Context, project winnow.ProjectID, user winnow.User) (winnow.Role, error)
	Project(ctx context.Context, id winnow.ProjectID) (*winnow.Project, error)
	Rounds(ctx context.Context, project winnow.ProjectID, page winnow.Page) ([]*winnow.Round, string, error)
	Round(ctx context.Context, project winnow.ProjectID, number int) (*winnow.Round, error)
	LabelStore
}

// LabelStore is what the API needs of the store for labels and answers.
type LabelStore interface {
	ExportLabels(ctx context.Context, project winnow.ProjectID, f winnow.LabelFilter, fn func(winnow.LabelRecord) error) error
	ExportAnswers(ctx context.Context, project winnow.ProjectID, f winnow.LabelFilter, fn func(winnow.AnswerRecord) error) error
	Correct(ctx context.Context, project winnow.ProjectID, by winnow.UserID, image winnow.ImageID, verdict winnow.Verdict, class int, clientKey string) (winnow.EventID, error)
	AnnotatorFigures(ctx context.Context, project winnow.ProjectID, user winnow.UserID, page winnow.Page) ([]winnow.AnnotatorFigures, string, error)
}

type service struct {
	store   Store
	log     *slog.Logger
	api     huma.API
	exports chan struct{} // places of those that run
}

const tokenScheme = "token"

// Mount adds the API and its documentation to the router, which serves /api.
func Mount(r chi.Router, store Store, log *slog.Logger) {
	config := huma.DefaultConfig("Winnow", "1")
	config.Info.Description = "Labels and rounds of a project, for programs. " +
		"Make a token on the project's People page and send it as `Authorization: Bearer …`. " +
		"Errors are problem JSON (RFC 9457) with a `code` that does not change."
	config.OpenAPIPath = openAPIPath
	config.DocsPath = ""    // ours needs no other site
	config.SchemasPath = "" // they are in the document
	config.CreateHooks = nil
	config.Transformers = []huma.Transformer{unify}
	config.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		tokenScheme: {Type: "http", Scheme: "bearer", Description: "A project's API token."},
	}
	s := &service{store: store, log: log, exports: make(chan struct{}, maxExports)}
	s.api = humachi.New(r, config)
	s.api.UseMiddleware(s.authenticate)
	s.register()
	delete(s.api.OpenAPI().Components.Schemas.Map(), "ErrorModel") // the library's own, which nobody gets to see
	r.Get("/api", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, docsPath, http.StatusFound) })
	mountDocs(r)
}

// authenticate lets requests through that carry a good token.
func (s *service) authenticate(ctx huma.Context, next func(huma.Context)) {
	secret, ok := strings.CutPrefix(ctx.Header("Authorization"), "Bearer ")
	if !ok || strings.TrimSpace(secret) == "" {
		ctx.SetHeader("WWW-Authenticate", `Bearer realm="winnow"`)
		s.fail(ctx, winnow.Errorf(winnow.CodeUnauthenticated, "Send an API token as \"Authorization: Bearer …\". An admin makes one on the project's People page."))
		return
	}
	token, user, err := s.store.UserByToken(ctx.Context(), strings.TrimSpace(secret))
	if err != nil {
		ctx.SetHeader("WWW-Authenticate", `Bearer realm="winnow", error="invalid_token"`)
		s.fail(ctx, err)
		return
	}
	next(huma.WithValue(ctx, callerKey{}, caller{token, user}))
}

type callerKey struct{}

// caller is whose token a request carries.
type caller struct {
	token winnow.Token
	user  winnow.User
}

// allow checks that the token is one of this project, and that its owner may still
// look at it. A project that the token is not for does not exist for it.
func (s *service) allow(ctx context.Context, project int64) (winnow.ProjectID, error) {
	id, role, err := s.role(ctx, project)
	if err != nil {
		return 0, err
	}
	if !role.Allows(winnow.RoleViewer) {
		return 0, winnow.Errorf(winnow.CodeForbidden, "The token's owner may not read this project.")
	}
	return id, nil
}

// allowAdmin is allow for what only admins may do: the token's owner must still be one.
func (s *service) allowAdmin(ctx context.Context, project int64) (winnow.ProjectID, winnow.UserID, error) {
	id, role, err := s.role(ctx, project)
	if err != nil {
		return 0, 0, err
	}
	if !role.Allows(winnow.RoleAdmin) {
		return 0, 0, winnow.Errorf(winnow.CodeForbidden, "This needs a token of an admin of the project.")
	}
	c, _ := ctx.Value(callerKey{}).(caller)
	return id, c.user.ID, nil
}

// role is what the token's owner may do in the project that the token is for.
func (s *service) role(ctx context.Context, project int64) (winnow.ProjectID, winnow.Role, error) {
	c, _ := ctx.Value(callerKey{}).(caller)
	id := winnow.ProjectID(project)
	if c.token.ProjectID != id {
		return 0, "", winnow.Errorf(winnow.CodeNotFound, "There is no such project, or the token is not for it.")
	}
	role, err := s.store.Role(ctx, id, c.user)
	return id, role, err
}

// fail answers with problem JSON.
func (s *service) fail(ctx huma.Context, err error) {
	problem := s.problem(ctx.Context(), err)
	ctx.SetHeader("Content-Type", "application/problem+json")
	ctx.SetHeader("Cache-Control", "no-store")
	ctx.SetStatus(problem.Status)
	_ = json.NewEncoder(ctx.BodyWriter()).Encode(problem)
}

func (s *service) problem(ctx context.Context, err error) *problem {
	p := &problem{handlers.NewProblem(err)}
	if p.Status >= 500 && ctx.Err() == nil {
		s.log.ErrorContext(ctx, "api request failed", "code", string(p.Code), "error", err)
	}
	return p
}

// unify gives the errors that the library finds by itself, such as a number that is
// none, the form of all others.
func unify(_ huma.Context, _ string, v any) (any, error) {
	m, ok := v.(*huma.ErrorModel)
	if !ok {
		return v, nil
	}
	p := &problem{handlers.Problem{
		Type: "about:blank", Title: http.StatusText(m.Status), Status: m.Status, Detail: m.Detail, Code: codeOf(m.Status),
	}}
	var found []string
	for _, e := range m.Errors {
		_, field, _ := strings.Cut(e.Location, ".") // "query.limit"
		if p.Field == "" {
			p.Field = field
		}
		if field != "" {
			field += ": "
		}
		found = append(found, field+e.Message)
	}
	if len(found) > 0 {
		p.Detail = strings.Join(found, "; ")
	}
	return p, nil
}

// codeOf is the code of a status that the library chose.
func codeOf(status int) winnow.Code {
	switch status {
	case http.StatusRequestEntityTooLarge:
		return winnow.CodeTooLarge
	case http.StatusNotAcceptable, http.StatusUnsupportedMediaType:
		return winnow.CodeUnsupported
	}
	if status >= 500 {
		return winnow.CodeInternal
	}
	return winnow.CodeInvalid
}

// problem is an error of an operation, in the form that huma writes.
type problem struct{ handlers.Problem }

func (p *problem) Error() string               { return p.Detail }
func (p *problem) GetStatus() int              { return p.Status }
func (p *problem) ContentType(_ string) string { return "application/problem+json" }
