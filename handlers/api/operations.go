package api

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"winnow"
	"winnow/handlers"
)

func (s *service) register() {
	secured := []map[string][]string{{tokenScheme: {}}}
	schemas := s.api.OpenAPI().Components.Schemas
	failure := &huma.Response{Description: "A problem (RFC 9457).", Content: map[string]*huma.MediaType{
		"application/problem+json": {Schema: schemas.Schema(typeOf[handlers.Problem](), true, "Problem")},
	}}
	huma.Register(s.api, huma.Operation{
		OperationID: "get-project", Method: http.MethodGet, Path: "/api/v1/projects/{id}", Security: secured, Tags: []string{"Project"},
		Summary:   "A project, its classes and where its pool stands",
		Responses: map[string]*huma.Response{"default": failure},
	}, handle(s, s.project))
	huma.Register(s.api, huma.Operation{
		OperationID: "list-rounds", Method: http.MethodGet, Path: "/api/v1/projects/{id}/rounds", Security: secured, Tags: []string{"Rounds"},
		Summary:   "Rounds, newest first",
		Responses: map[string]*huma.Response{"default": failure},
	}, handle(s, s.rounds))
	huma.Register(s.api, huma.Operation{
		OperationID: "get-round", Method: http.MethodGet, Path: "/api/v1/projects/{id}/rounds/{number}", Security: secured, Tags: []string{"Rounds"},
		Summary:   "A round with its counts, precision, accuracy and k",
		Responses: map[string]*huma.Response{"default": failure},
	}, handle(s, s.round))
	huma.Register(s.api, huma.Operation{
		OperationID: "export-labels", Method: http.MethodGet, Path: "/api/v1/projects/{id}/labels", Security: secured, Tags: []string{"Labels"},
		Middlewares: huma.Middlewares{s.inTurn},
		Summary:     "Labels as JSON Lines or CSV, streamed",
		Description: "One row an image, in the order of their ids. Known, unknown, skip, unreadable and unlabeled stay apart. Without filters: every decided image of the pool. " +
			"With answers=true, one row an answer that stands, of every annotator, by round and image (AnswerRecord); status is then that of the answer.",
		Responses: map[string]*huma.Response{"default": failure, "200": {
			Description: "The rows.",
			Content: map[string]*huma.MediaType{
				"application/jsonl": {Schema: &huma.Schema{AnyOf: []*huma.Schema{
					schemas.Schema(typeOf[winnow.LabelRecord](), true, "LabelRecord"),
					schemas.Schema(typeOf[winnow.AnswerRecord](), true, "AnswerRecord"),
				}}},
				"text/csv": {Schema: &huma.Schema{Type: huma.TypeString}},
			},
		}},
	}, handle(s, s.labels))
	huma.Register(s.api, huma.Operation{
		OperationID: "correct-label", Method: http.MethodPost, Path: "/api/v1/projects/{id}/images/{image}/correction", Security: secured, Tags: []string{"Labels"},
		Summary: "Correct the label of an image",
		Description: "Appends a correction: an admin's last word on an image that has a label, or whose answers have no majority. Counts and precision follow; what was said before stays in the history. " +
			"The same Idempotency-Key with the same content again is the same correction.",
		Responses: map[string]*huma.Response{"default": failure},
	}, handle(s, s.correct))
	huma.Register(s.api, huma.Operation{
		OperationID: "list-annotators", Method: http.MethodGet, Path: "/api/v1/projects/{id}/annotators", Security: secured, Tags: []string{"Labels"},
		Summary:   "How people label: rate, agreement, gold accuracy",
		Responses: map[string]*huma.Response{"default": failure},
	}, handle(s, s.annotators))
}

// handle gives an operation's errors the form of problem JSON.
func handle[In, Out any](s *service, f func(context.Context, *In) (*Out, error)) func(context.Context, *In) (*Out, error) {
	return func(ctx context.Context, in *In) (*Out, error) {
		out, err := f(ctx, in)
		if err != nil {
			return nil, s.problem(ctx, err)
		}
		return out, nil
	}
}

// InProject is the part of the address that names the project.
type InProject struct {
	ID int64 `path:"id" doc:"The project." minimum:"1"`
}

// Project is what the API tells of a project.
type Project struct {
	ID           int64          `json:"id"`
	Name         string         `json:"name"`
	Instructions string         `json:"instructions"`
	ClassVersion int            `json:"class_version" doc:"Grows by one whenever classes are added."`
	Classes      []winnow.Class `json:"classes"`
	Counts       Counts         `json:"counts"`
}

// Counts say where a project's images stand.
type Counts struct {
	Pool       int64 `json:"pool"`
	Test       int64 `json:"test"`
	Known      int64 `json:"known"`
	Unknown    int64 `json:"unknown"`
	Skipped    int64 `json:"skipped"`
	Unreadable int64 `json:"unreadable"`
	Unlabeled  int64 `json:"unlabeled"`
}

type projectOutput struct{ Body Project }

func (s *service) project(ctx context.Context, in *InProject) (*projectOutput, error) {
	id, err := s.allow(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	p, err := s.store.Project(ctx, id)
	if err != nil {
		return nil, err
	}
	c := p.Counts
	return &projectOutput{Project{
		ID: int64(p.ID), Name: p.Name, Instructions: p.Instructions, ClassVersion: p.ClassVersion, Classes: p.Classes,
		Counts: Counts{c.Pool, c.Test, c.Known, c.Unknown, c.Skipped, c.Unreadable, c.Unlabeled()},
	}}, nil
}

// Round is what the API tells of a round.
type Round struct {
	Number       int               `json:"number"`
	State        winnow.RoundState `json:"state" enum:"queued,training,scoring,labeling,closed,failed,cancelled"`
	Strategy     string            `json:"strategy"`
	ColdStart    bool              `json:"cold_start" doc:"Nothing was labeled: the query is a random draw."`
	Seed         int64             `json:"seed"`
	K            float64           `json:"k"`
	NextK        *float64          `json:"next_k,omitempty"`
	ClassVersion int               `json:"class_version"`
	Total        int               `json:"total" doc:"Images queried."`
	Known        int               `json:"known"`
	Unknown      int               `json:"unknown"`
	Skipped      int               `json:"skipped"`
	Unreadable   int               `json:"unreadable"`
	Left         int               `json:"left" doc:"Images that wait for a decision."`
	Precision    *float64          `json:"precision,omitempty" doc:"known / (known + unknown) of the query, so far."`
	AuditTotal   int               `json:"audit_total" doc:"Of the images, those drawn at random beside the query; counted in the figures above, too."`
	AuditKnown   int               `json:"audit_known"`
	AuditUnknown int               `json:"audit_unknown"`
	AuditShare   *float64          `json:"audit_precision,omitempty" doc:"known / (known + unknown) of the audit slice: what the pool gives."`
	TestAccuracy *float64          `json:"test_accuracy,omitempty"`
	PoolSize     int               `json:"pool_size"`
	CreatedAt    time.Time         `json:"created_at"`
	LabelingAt   *time.Time        `json:"labeling_at,omitempty"`
	ClosedAt     *time.Time        `json:"closed_at,omitempty"`
}

func newRound(r *winnow.Round) Round {
	out := Round{
		Number: r.Number, State: r.State, Strategy: r.Strategy, ColdStart: r.ColdStart, Seed: r.Seed, K: r.K,
		NextK: r.Metrics.NextK, ClassVersion: r.ClassVersion, Total: r.Counts.Total, Known: r.Counts.Known, Unknown: r.Counts.Unknown,
		Skipped: r.Counts.Skipped, Unreadable: r.Counts.Unreadable, Left: r.Counts.Left(), TestAccuracy: r.Metrics.TestAccuracy,
		AuditTotal: r.Counts.AuditTotal, AuditKnown: r.Counts.AuditKnown, AuditUnknown: r.Counts.AuditUnknown,
		PoolSize: r.Metrics.PoolSize, CreatedAt: r.CreatedAt, LabelingAt: timePointer(r.LabelingAt), ClosedAt: timePointer(r.ClosedAt),
	}
	if p, ok := r.Counts.Precision(); ok {
		out.Precision = &p
	}
	if p, ok := r.Counts.AuditPrecision(); ok {
		out.AuditShare = &p
	}
	return out
}

type roundsInput struct {
	InProject
	After string `query:"after" doc:"The cursor that the page before gave as next."`
	Limit int    `query:"limit" minimum:"1" maximum:"200" default:"50"`
}

type roundsOutput struct {
	Body struct {
		Rounds []Round `json:"rounds"`
		Next   string  `json:"next,omitempty" doc:"The cursor of the next page; absent on the last one."`
	}
}

func (s *service) rounds(ctx context.Context, in *roundsInput) (*roundsOutput, error) {
	id, err := s.allow(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	rounds, next, err := s.store.Rounds(ctx, id, winnow.Page{After: in.After, Limit: in.Limit})
	if err != nil {
		return nil, err
	}
	out := &roundsOutput{}
	out.Body.Next = next
	out.Body.Rounds = make([]Round, len(rounds))
	for i, r := range rounds {
		out.Body.Rounds[i] = newRound(r)
	}
	return out, nil
}

type roundInput struct {
	InProject
	Number int `path:"number" doc:"The round's number in its project, from 0." minimum:"0"`
}

type roundOutput struct{ Body Round }

func (s *service) round(ctx context.Context, in *roundInput) (*roundOutput, error) {
	id, err := s.allow(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	r, err := s.store.Round(ctx, id, in.Number)
	if err != nil {
		return nil, err
	}
	return &roundOutput{newRound(r)}, nil
}

func timePointer(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
