package api

import (
	"context"
	"time"

	"winnow"
)

type correctInput struct {
	InProject
	Image int64  `path:"image" minimum:"1" doc:"The image."`
	Key   string `header:"Idempotency-Key" required:"true" minLength:"1" maxLength:"64" doc:"Yours to choose: printable ASCII, a new one for each correction."`
	Body  struct {
		Verdict winnow.Verdict `json:"verdict" enum:"known,unknown,skip,unreadable"`
		Class   *int           `json:"class,omitempty" minimum:"0" doc:"Index of the class, for the verdict known."`
	}
}

type correctOutput struct {
	Body struct {
		Event winnow.EventID `json:"event" doc:"The correction in the image's history."`
	}
}

func (s *service) correct(ctx context.Context, in *correctInput) (*correctOutput, error) {
	id, user, err := s.allowAdmin(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	class := -1
	if in.Body.Class != nil {
		class = *in.Body.Class
	}
	out := new(correctOutput)
	out.Body.Event, err = s.store.Correct(ctx, id, user, winnow.ImageID(in.Image), in.Body.Verdict, class, in.Key)
	return out, err
}

// Annotator is what the API tells of how one person labels.
type Annotator struct {
	User             winnow.UserID `json:"user"`
	Name             string        `json:"name" doc:"Name, or e-mail of a person without one."`
	Labels           int           `json:"labels" doc:"Answers that stand."`
	ActiveSeconds    float64       `json:"active_seconds" doc:"Spent on answers, each at most a minute."`
	LabelsPerHour    *float64      `json:"labels_per_hour,omitempty"`
	MedianSeconds    float64       `json:"median_seconds" doc:"From shown to answered, of the last answers."`
	Shared           int           `json:"shared" doc:"Answers to decided images that others answered, too."`
	Agreed           int           `json:"agreed" doc:"Those of them equal to the decision."`
	Gold             int           `json:"gold" doc:"Answers to images of the gold set."`
	GoldRight        int           `json:"gold_right"`
	GoldFalseKnown   int           `json:"gold_false_known" doc:"Said a known class; the image is of an unknown one."`
	GoldFalseUnknown int           `json:"gold_false_unknown" doc:"Said unknown; the image is of a known class."`
	GoldWrongClass   int           `json:"gold_wrong_class" doc:"Said a known class; the image is of another."`
	LastAt           *time.Time    `json:"last_at,omitempty"`
	Here             bool          `json:"here" doc:"Is labeling at this moment."`
}

type annotatorsInput struct {
	InProject
	After string `query:"after" doc:"The cursor that the page before gave as next."`
	Limit int    `query:"limit" minimum:"1" maximum:"200" default:"50"`
}

type annotatorsOutput struct {
	Body struct {
		Annotators []Annotator `json:"annotators"`
		Next       string      `json:"next,omitempty" doc:"The cursor of the next page; absent on the last one."`
	}
}

func (s *service) annotators(ctx context.Context, in *annotatorsInput) (*annotatorsOutput, error) {
	id, _, err := s.allowAdmin(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	figures, next, err := s.store.AnnotatorFigures(ctx, id, 0, winnow.Page{After: in.After, Limit: in.Limit})
	if err != nil {
		return nil, err
	}
	out := new(annotatorsOutput)
	out.Body.Next = next
	out.Body.Annotators = make([]Annotator, len(figures))
	for i, f := range figures {
		out.Body.Annotators[i] = newAnnotator(f)
	}
	return out, nil
}

func newAnnotator(f winnow.AnnotatorFigures) Annotator {
	a := Annotator{
		User: f.UserID, Name: f.User, Labels: f.Labels, ActiveSeconds: f.Active.Seconds(), MedianSeconds: f.Median.Seconds(),
		Shared: f.Shared, Agreed: f.Agreed, Gold: f.Gold, GoldRight: f.GoldRight, GoldFalseKnown: f.GoldFalseKnown,
		GoldFalseUnknown: f.GoldFalseUnknown, GoldWrongClass: f.GoldWrongClass, LastAt: timePointer(f.LastAt), Here: f.Here,
	}
	if n, ok := f.LabelsPerHour(); ok {
		a.LabelsPerHour = &n
	}
	return a
}
