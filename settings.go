package winnow

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Settings are a project's hyper-parameters: the query, the networks and their
// training. A round keeps a frozen copy of them.
type Settings struct {
	// The query.
	Strategy        string  `json:"strategy"`         // one of Strategies
	Budget          int     `json:"budget"`           // b: images queried a round
	Neighbours      int     `json:"neighbours"`       // K of the reverse k-NN
	TargetPrecision float64 `json:"target_precision"` // tP
	K               float64 `json:"k"`                // k_1: candidates per queried image in the first round
	KStep           float64 `json:"k_step"`           // a
	KTolerance      float64 `json:"k_tolerance"`      // z
	Variant         string  `json:"variant"`          // per-class or global
	EUD             string  `json:"eu_d"`             // reference, paper or smoothed
	Monotone        bool    `json:"monotone"`         // isotonic pass over the mixtures' posteriors
	Ablation        string  `json:"ablation"`         // none, or the part of EAOA that is left out
	AutoNext        bool    `json:"auto_next"`        // start the next round when one closes
	Seed            int64   `json:"seed"`

	// The labeling.
	Overlap      int     `json:"overlap"`       // n: people who answer each item
	AuditShare   float64 `json:"audit_share"`   // images drawn at random beside the query, as a share of the budget
	GoldEvery    int     `json:"gold_every"`    // answers of a person between two gold items; 0 for none
	LeaseSeconds int     `json:"lease_seconds"` // how long an annotator holds an item
	Suggest      bool    `json:"suggest"`       // show annotators the class that the model predicts

	// The networks and their training.
	Recipe        string  `json:"recipe"`     // full or fast
	Width         int     `json:"width"`      // channels of the first stage
	InputSize     int     `json:"input_size"` // pixels a side that the networks see
	Epochs        int     `json:"epochs"`
	Batch         int     `json:"batch"`
	LearningRate  float64 `json:"learning_rate"`
	LRStep        int     `json:"lr_step"`  // epochs between learning-rate drops
	LRGamma       float64 `json:"lr_gamma"` // factor of a drop
	Momentum      float64 `json:"momentum"`
	WeightDecay   float64 `json:"weight_decay"`
	CropPad       int     `json:"crop_pad"` // zero padding before the random crop, pixels
	Flip          bool    `json:"flip"`     // random horizontal flip
	EnergyWeight  float64 `json:"energy_weight"`
	MarginKnown   float64 `json:"margin_known"`
	MarginUnknown float64 `json:"margin_unknown"`
}

// Strategies are the query strategies a project may choose.
var Strategies = []string{"eaoa", "random", "uncertainty", "certainty", "coreset", "badge"}

// Variants of EAOA's query and of its data-driven score, what can be left out of it
// to see what it is worth, and recipes of training.
var (
	Variants    = []string{"per-class", "global"}
	EUDVariants = []string{"reference", "paper", "smoothed"}
	Ablations   = []string{"none", "no-eu-d", "eu-only", "au-only"}
	Recipes     = []string{"full", "fast"}
)

// MaxOverlap is how many people may be asked about one image.
const MaxOverlap = 9

// DefaultSettings returns the method's published settings.
func DefaultSettings() Settings {
	return Settings{
		Strategy: "eaoa", Budget: 1500, Neighbours: 250, TargetPrecision: 0.6, K: 5, KStep: 1, KTolerance: 0.05,
		Variant: "per-class", EUD: "reference", Ablation: "none", Seed: 1,
		Overlap: 1, AuditShare: 0.05, GoldEvery: 50, LeaseSeconds: 300,
		Recipe: "full", Width: 16, InputSize: 32, Epochs: 200, Batch: 128, LearningRate: 0.01, LRStep: 60, LRGamma: 0.5,
		Momentum: 0.9, WeightDecay: 5e-4, CropPad: 4, Flip: true,
		EnergyWeight: 0.01, MarginKnown: -25, MarginUnknown: -7,
	}
}

// Setting describes one field of Settings: what a form shows, what validation
// asks. Exactly one of the pointers that Fields returns is set.
type Setting struct {
	Name  string // the JSON name, also the form field
	Group string // "Query", "Labeling", "Networks" or "Training"
	Label string
	Help  string
	Unit  string

	Int     *int
	Int64   *int64
	Float   *float64
	Bool    *bool
	Choice  *string
	Choices []string

	Min, Max float64
	OpenMin  bool // Min itself is not allowed
}

// Fields returns the table of the settings: the one place that names, describes
// and bounds each. The pointers lead into s.
func (s *Settings) Fields() []Setting {
	const (
		query    = "Query"
		labeling = "Labeling"
		networks = "Networks"
		training = "Training"
	)
	return []Setting{
		{Name: "strategy", Group: query, Label: "Strategy", Help: "How images are chosen.", Choice: &s.Strategy, Choices: Strategies},
		{Name: "budget", Group: query, Label: "Budget", Unit: "images", Help: "Images queried each round.", Int: &s.Budget, Min: 1, Max: 1_000_000},
		{Name: "target_precision", Group: query, Label: "Target precision", Help: "Share of queried images that should be of known classes.", Float: &s.TargetPrecision, Min: 0, Max: 1},
		{Name: "k", Group: query, Label: "First k", Help: "Candidates considered for each image queried, in the first round.", Float: &s.K, Min: 1, Max: 10_000},
		{Name: "k_step", Group: query, Label: "k step", Help: "How far k moves when precision misses the target.", Float: &s.KStep, Min: 0, Max: 1000},
		{Name: "k_tolerance", Group: query, Label: "k tolerance", Help: "How far precision may be from the target before k moves.", Float: &s.KTolerance, Min: 0, Max: 1},
		{Name: "neighbours", Group: query, Label: "Neighbours", Help: "Pool images each labeled image points at in the data-driven score.", Int: &s.Neighbours, Min: 1, Max: 100_000},
		{Name: "variant", Group: query, Label: "Query variant", Help: "Shares by predicted class, or one list.", Choice: &s.Variant, Choices: Variants},
		{Name: "eu_d", Group: query, Label: "Data-driven score", Help: "Form of the data-driven epistemic uncertainty.", Choice: &s.EUD, Choices: EUDVariants},
		{Name: "monotone", Group: query, Label: "Monotone posteriors", Help: "Make the mixtures' posteriors monotone in the score.", Bool: &s.Monotone},
		{Name: "ablation", Group: query, Label: "Ablation", Help: "Leave out a part of EAOA: the data-driven score, the aleatoric score, or all but it.", Choice: &s.Ablation, Choices: Ablations},
		{Name: "auto_next", Group: query, Label: "Start the next round by itself", Help: "As soon as a round closes.", Bool: &s.AutoNext},
		{Name: "seed", Group: query, Label: "Seed", Help: "Rounds with the same seed, labels and settings query the same images.", Int64: &s.Seed, Min: 0, Max: math.MaxInt32},

		{Name: "overlap", Group: labeling, Label: "Answers an image", Help: "People who answer each image; the answer of most of them is its label.", Int: &s.Overlap, Min: 1, Max: MaxOverlap},
		{Name: "audit_share", Group: labeling, Label: "Audit share", Help: "Images drawn at random beside the query, as a share of the budget: the unbiased view of the pool.", Float: &s.AuditShare, Min: 0, Max: 0.5},
		{Name: "gold_every", Group: labeling, Label: "Gold every", Unit: "answers", Help: "How often a person is asked about an image whose label is settled; 0 for never.", Int: &s.GoldEvery, Min: 0, Max: 10_000},
		{Name: "lease_seconds", Group: labeling, Label: "Lease", Unit: "s", Help: "How long an image stays with an annotator who does not answer.", Int: &s.LeaseSeconds, Min: 10, Max: 86_400},
		{Name: "suggest", Group: labeling, Label: "Show the model's suggestion", Help: "Marks the class that the classifier predicts. It saves a look on easy images, and leads people to agree with the model on hard ones.", Bool: &s.Suggest},

		{Name: "width", Group: networks, Label: "Width", Unit: "channels", Help: "Channels of the first stage; 64 is the textbook ResNet-18.", Int: &s.Width, Min: 2, Max: 256},
		{Name: "input_size", Group: networks, Label: "Input size", Unit: "px", Help: "Side of the square the networks see.", Int: &s.InputSize, Min: 8, Max: 256},

		{Name: "recipe", Group: training, Label: "Recipe", Help: "full trains as set below. fast takes about a fifth of the time: .15 of the epochs and half the batch, but at least 160 steps, with Nesterov momentum in one cycle of the learning rate up to three times the one below.", Choice: &s.Recipe, Choices: Recipes},
		{Name: "epochs", Group: training, Label: "Epochs", Help: "Passes over the labeled images, from scratch each round.", Int: &s.Epochs, Min: 1, Max: 10_000},
		{Name: "batch", Group: training, Label: "Batch", Unit: "images", Help: "Images in one step.", Int: &s.Batch, Min: 2, Max: 4096},
		{Name: "learning_rate", Group: training, Label: "Learning rate", Float: &s.LearningRate, Min: 0, OpenMin: true, Max: 10},
		{Name: "lr_step", Group: training, Label: "Learning-rate step", Unit: "epochs", Help: "Epochs between drops of the learning rate.", Int: &s.LRStep, Min: 1, Max: 10_000},
		{Name: "lr_gamma", Group: training, Label: "Learning-rate factor", Help: "The learning rate is multiplied by this at each drop.", Float: &s.LRGamma, Min: 0, OpenMin: true, Max: 1},
		{Name: "momentum", Group: training, Label: "Momentum", Float: &s.Momentum, Min: 0, Max: 0.9999},
		{Name: "weight_decay", Group: training, Label: "Weight decay", Float: &s.WeightDecay, Min: 0, Max: 1},
		{Name: "crop_pad", Group: training, Label: "Crop padding", Unit: "px", Help: "Zero padding before the random crop; 0 for none.", Int: &s.CropPad, Min: 0, Max: 64},
		{Name: "flip", Group: training, Label: "Mirror images", Help: "Flip at random from left to right while training.", Bool: &s.Flip},
		{Name: "energy_weight", Group: training, Label: "Energy loss weight", Help: "0 trains the detector by cross-entropy alone.", Float: &s.EnergyWeight, Min: 0, Max: 100},
		{Name: "margin_known", Group: training, Label: "Energy margin, known", Float: &s.MarginKnown, Min: -1000, Max: 1000},
		{Name: "margin_unknown", Group: training, Label: "Energy margin, unknown", Float: &s.MarginUnknown, Min: -1000, Max: 1000},
	}
}

// Validate reports the first setting outside its bounds.
func (s *Settings) Validate() error {
	for _, f := range s.Fields() {
		if err := f.validate(); err != nil {
			return err
		}
	}
	if s.CropPad >= s.InputSize {
		return Invalid("crop_pad", "Crop padding %d is not below the input size %d.", s.CropPad, s.InputSize)
	}
	return nil
}

func (f *Setting) validate() error {
	var v float64
	switch {
	case f.Choice != nil:
		if !slices.Contains(f.Choices, *f.Choice) {
			return Invalid(f.Name, "%q is not one of %s.", *f.Choice, strings.Join(f.Choices, ", "))
		}
		return nil
	case f.Bool != nil:
		return nil
	case f.Int != nil:
		v = float64(*f.Int)
	case f.Int64 != nil:
		v = float64(*f.Int64)
	default:
		v = *f.Float
	}
	if math.IsNaN(v) || v < f.Min || v > f.Max || (f.OpenMin && v == f.Min) {
		least := "at least"
		if f.OpenMin {
			least = "above"
		}
		return Invalid(f.Name, "%s must be %s %s and at most %s; got %s.", f.Label, least, num(f.Min), num(f.Max), num(v))
	}
	return nil
}

// String returns the value as a form field holds it.
func (f *Setting) String() string {
	switch {
	case f.Choice != nil:
		return *f.Choice
	case f.Bool != nil:
		return strconv.FormatBool(*f.Bool)
	case f.Int != nil:
		return strconv.Itoa(*f.Int)
	case f.Int64 != nil:
		return strconv.FormatInt(*f.Int64, 10)
	default:
		return num(*f.Float)
	}
}

// Set parses the value of a form field; on an error the setting keeps its value. It does
// not check bounds; Validate does.
func (f *Setting) Set(value string) error {
	value = strings.TrimSpace(value)
	switch {
	case f.Choice != nil:
		*f.Choice = value
	case f.Bool != nil:
		switch value {
		case "true", "on", "1":
			*f.Bool = true
		case "false", "off", "0", "":
			*f.Bool = false
		default:
			return f.unparsed("on or off", value)
		}
	case f.Int != nil:
		v, err := strconv.Atoi(value)
		if err != nil {
			return f.unparsed("a whole number", value)
		}
		*f.Int = v
	case f.Int64 != nil:
		v, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return f.unparsed("a whole number", value)
		}
		*f.Int64 = v
	default:
		v, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return f.unparsed("a number", value)
		}
		*f.Float = v
	}
	return nil
}

func (f *Setting) unparsed(want, value string) error {
	return Invalid(f.Name, "%s must be %s; got %q.", f.Label, want, clip(value, 40))
}

func num(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

func clip(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return fmt.Sprintf("%s…", string(r[:n]))
	}
	return s
}
