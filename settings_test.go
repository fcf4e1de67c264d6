package winnow_test

import (
	"encoding/json"
	"math"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"winnow"
)

func TestDefaultSettingsAreTheMethods(t *testing.T) {
	t.Parallel()
	s := winnow.DefaultSettings()
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, f := range s.Fields() {
		got[f.Name] = f.String()
	}
	want := map[string]string{
		"strategy": "eaoa", "budget": "1500", "neighbours": "250", "target_precision": "0.6", "k": "5", "k_step": "1",
		"k_tolerance": "0.05", "variant": "per-class", "eu_d": "reference", "ablation": "none", "monotone": "false", "auto_next": "false",
		"seed": "1", "overlap": "1", "audit_share": "0.05", "gold_every": "50", "lease_seconds": "300", "suggest": "false",
		"width": "16", "input_size": "32", "recipe": "full",
		"epochs": "200", "batch": "128", "learning_rate": "0.01", "lr_step": "60", "lr_gamma": "0.5", "momentum": "0.9",
		"weight_decay": "0.0005", "crop_pad": "4", "flip": "true", "energy_weight": "0.01", "margin_known": "-25", "margin_unknown": "-7",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
}

// TestFieldsCoverSettings holds the table against the struct: every field of Settings is
// in it once, under its JSON name, with a pointer into the struct it was asked of.
func TestFieldsCoverSettings(t *testing.T) {
	t.Parallel()
	var s winnow.Settings
	v := reflect.ValueOf(&s).Elem()
	at := map[uintptr]string{}
	for i := range v.NumField() {
		at[v.Field(i).Addr().Pointer()] = v.Type().Field(i).Tag.Get("json")
	}
	for _, f := range s.Fields() {
		var pointers []uintptr
		for _, p := range []any{f.Int, f.Int64, f.Float, f.Bool, f.Choice} {
			if p := reflect.ValueOf(p); !p.IsNil() {
				pointers = append(pointers, p.Pointer())
			}
		}
		if len(pointers) != 1 {
			t.Errorf("%s has %d pointers, want 1", f.Name, len(pointers))
			continue
		}
		if at[pointers[0]] != f.Name {
			t.Errorf("the row %q leads to the field %q", f.Name, at[pointers[0]])
		}
		delete(at, pointers[0])
		if f.Label == "" || f.Group == "" {
			t.Errorf("%s has label %q in group %q", f.Name, f.Label, f.Group)
		}
	}
	for _, name := range at {
		t.Errorf("the setting %s is not in the table", name)
	}
}

// TestSettingsBounds tries every bound of every number, and one step beyond.
func TestSettingsBounds(t *testing.T) {
	t.Parallel()
	for i, f := range new(winnow.Settings).Fields() {
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			try := func(v float64) (string, error) {
				s := winnow.DefaultSettings()
				s.InputSize, s.CropPad = 256, 0 // so that neither bound of one is against the other
				set := s.Fields()[i]
				switch {
				case set.Int != nil:
					*set.Int = int(v)
				case set.Int64 != nil:
					*set.Int64 = int64(v)
				default:
					*set.Float = v
				}
				return set.String(), s.Validate()
			}
			switch {
			case f.Bool != nil:
				return
			case f.Choice != nil:
				s := winnow.DefaultSettings()
				*s.Fields()[i].Choice = "none of them"
				wantInvalid(t, s.Validate(), f.Name, "is not one of "+f.Choices[0])
				return
			}
			step := 1.0
			bad := []float64{}
			if f.Float != nil {
				step = 1e-9
				bad = append(bad, math.NaN(), math.Inf(1), math.Inf(-1))
			}
			good := []float64{f.Max}
			if f.OpenMin {
				bad = append(bad, f.Min)
			} else {
				good = append(good, f.Min)
			}
			bad = append(bad, f.Min-max(step, math.Abs(f.Min)*1e-9), f.Max+max(step, f.Max*1e-9))
			for _, v := range good {
				if text, err := try(v); err != nil {
					t.Errorf("%s: %v", text, err)
				}
			}
			for _, v := range bad {
				if _, err := try(v); err == nil {
					t.Errorf("accepted %v", v)
				} else {
					wantInvalid(t, err, f.Name, "")
				}
			}
		})
	}
}

func TestSettingsCropBelowInput(t *testing.T) {
	t.Parallel()
	s := winnow.DefaultSettings()
	s.InputSize, s.CropPad = 8, 8
	wantInvalid(t, s.Validate(), "crop_pad", "not below the input size 8")
	s.CropPad = 7
	if err := s.Validate(); err != nil {
		t.Error(err)
	}
}

// TestSettingRoundTrip writes every default as a form does and reads it back.
func TestSettingRoundTrip(t *testing.T) {
	t.Parallel()
	want := winnow.DefaultSettings()
	var got winnow.Settings
	into := got.Fields()
	for i, f := range want.Fields() {
		if err := into[i].Set(" " + f.String() + " "); err != nil {
			t.Errorf("%s: %v", f.Name, err)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("settings through a form (-want +got):\n%s", diff)
	}
	data, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var stored winnow.Settings
	if err := json.Unmarshal(data, &stored); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, stored); diff != "" {
		t.Errorf("settings through JSON (-want +got):\n%s", diff)
	}
}

func TestSettingSet(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, value string
		want        string // after Set
		err         string
	}{
		{"budget", "40", "40", ""},
		{"budget", "1e3", "1500", "a whole number"},
		{"budget", "", "1500", "a whole number"},
		{"budget", "99999999999999999999", "1500", "a whole number"},
		{"seed", "7", "7", ""},
		{"seed", "7.5", "1", "a whole number"},
		{"learning_rate", "1e-3", "0.001", ""},
		{"learning_rate", "1,5", "0.01", "a number"},
		{"learning_rate", "1e999", "0.01", "a number"},
		{"monotone", "on", "true", ""},
		{"flip", "", "false", ""}, // an unticked box
		{"flip", "perhaps", "true", "on or off"},
		{"strategy", "random", "random", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name+"="+tt.value, func(t *testing.T) {
			t.Parallel()
			s := winnow.DefaultSettings()
			for _, f := range s.Fields() {
				if f.Name != tt.name {
					continue
				}
				err := f.Set(tt.value)
				if tt.err != "" {
					wantInvalid(t, err, tt.name, tt.err)
				} else if err != nil {
					t.Error(err)
				}
				if got := f.String(); got != tt.want {
					t.Errorf("the setting is %q, want %q", got, tt.want)
				}
				return
			}
			t.Fatalf("no setting %s", tt.name)
		})
	}
}
